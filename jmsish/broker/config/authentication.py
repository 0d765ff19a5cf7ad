"""The section ``[authentication]``: by what who connects may prove a name, and where the users are."""

from __future__ import annotations

from typing import Final

from jmsish.broker.authentication import AuthenticationConfig
from jmsish.broker.certificates import COMMON_NAME, IDENTITIES
from jmsish.broker.config.faults import Table
from jmsish.broker.policy import near_miss
from jmsish.engine.oauth import TOKEN_MECHANISMS
from jmsish.engine.scram import SCRAM_MECHANISMS

AUTHENTICATION_KEYS: Final = ("users_file", "mechanisms", "allow_cleartext", "certificate_identity")
MECHANISMS: Final = ("EXTERNAL", *TOKEN_MECHANISMS, *SCRAM_MECHANISMS, "PLAIN", "ANONYMOUS")


def read_authentication(config: Table) -> AuthenticationConfig:
    """The section, or its defaults."""
    table = config.table_of("authentication")
    table.check_keys(AUTHENTICATION_KEYS)
    names = table.texts("mechanisms", None)
    for name in names or ():
        if name not in MECHANISMS:
            table.faults.add(f"{table.where} mechanisms: unknown mechanism {name!r}: {near_miss(name, MECHANISMS)}")
    if names == ():
        table.faults.add(f"{table.where} mechanisms is empty: nobody could come in")
    return AuthenticationConfig(
        users_file=table.text("users_file", ""),
        mechanisms=names,
        allow_cleartext=table.flag("allow_cleartext"),
        certificate_identity=table.choice("certificate_identity", IDENTITIES, COMMON_NAME),
    )
