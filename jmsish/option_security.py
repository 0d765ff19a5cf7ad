"""The options of a connection that say whom to trust, who we are, and what may be sent in the clear."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jmsish.option_kinds import CALLABLE, FLAG, NAMES, PLACE, TEXT, Checked, option

__all__ = ["QPID_SECURITY_NAMES", "TLS_OPTIONS", "SecurityOptions"]


@dataclass(frozen=True, kw_only=True)
class SecurityOptions(Checked):
    """Authentication and TLS. By default the broker's certificate is verified, and so is its name."""

    sasl_mechanisms: tuple[str, ...] | None = option(None, NAMES)
    """The SASL mechanisms allowed, in order of preference; ``None``: all that fit, in the order of
    ``docs/security.md``."""
    cbs: bool = option(False, FLAG)
    """Azure Service Bus: log in as nobody, and put a token for each address at the node ``$cbs``: that of `token`, or
    one made of user name and password, which are the name of a shared access key and the key."""
    token: Callable[[], Any] | None = option(None, CALLABLE)
    """Gives an OAuth access token as a ``str``, asked anew at each connect; with ``jmsish.aio`` it may be a coroutine
    function."""
    allow_cleartext: bool = option(False, FLAG)
    """Whether a password (PLAIN) or token may be sent where others can read it: without TLS, to another machine."""
    tls_ca: str | None = option(None, PLACE)
    """A file of the certificates to trust, in PEM; ``None``: those of the system."""
    tls_certificate: str | None = option(None, PLACE)
    """A file with our own certificate, in PEM, for a broker that asks for one."""
    tls_key: str | None = option(None, PLACE)
    """A file with the key of ``tls_certificate``; ``None``: it is in the same file."""
    tls_key_password: str | None = dataclasses.field(default=None, metadata={"kind": TEXT}, repr=False)
    """What opens that key, where it is encrypted."""
    tls_server_name: str | None = option(None, PLACE)
    """The name that the broker's certificate must be for, which SNI asks for; ``None``: the host of the URL."""
    tls_verify: bool = option(True, FLAG)
    """Whether the broker's certificate is verified. Without, anybody on the way can be the broker."""
    tls_verify_host: bool = option(True, FLAG)
    """Whether its certificate must be for the host of the URL (or ``tls_server_name``)."""


TLS_OPTIONS = tuple(each.name for each in dataclasses.fields(SecurityOptions) if each.name.startswith("tls_"))


def _read_not(name: str, text: str) -> Any:
    return not FLAG.read(name, text)


QPID_SECURITY_NAMES: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "amqp.saslMechanisms": ("sasl_mechanisms", NAMES.read),
    "transport.verifyHost": ("tls_verify_host", FLAG.read),
    "transport.trustAll": ("tls_verify", _read_not),
}
"""Names of Qpid JMS: the option each stands for, and how its text is read."""
