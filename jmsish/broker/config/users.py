"""The section ``[users]``: who may log in, by a password, by a salted key in its place, or by a certificate."""

from __future__ import annotations

from typing import Final

from jmsish.broker.config.faults import Table
from jmsish.broker.names import check_text
from jmsish.broker.users import User
from jmsish.engine.scram import ScramKey

SCRAM_KEYS: Final = {"scram_sha_256": "SCRAM-SHA-256", "scram_sha_512": "SCRAM-SHA-512"}
USER_KEYS: Final = ("password", *SCRAM_KEYS, "certificate")


def read_users(config: Table) -> dict[str, User]:
    """The users by name."""
    tables = config.tables_of("users")
    for name in tables:
        with config.faults.caught():
            check_text(name, "[users]: a user")
    return {name: _user(table) for name, table in tables.items()}


def _user(table: Table) -> User:
    table.check_keys(USER_KEYS)
    if not table.table:
        table.faults.add(f"{table.where} needs a password, or in its place {', '.join(USER_KEYS[1:])}")
    keys = {}
    texts: dict[str, str] = {}
    for key in USER_KEYS:
        if key not in table:
            continue
        value = table.get(key)
        if not isinstance(value, str):
            # The value itself is never told.
            table.faults.add(f"{key} in {table.where} must be a string, not {type(value).__name__}")
        elif key in SCRAM_KEYS:
            try:
                keys[SCRAM_KEYS[key]] = ScramKey.parse(SCRAM_KEYS[key], value)
            except ValueError as error:
                table.faults.add(f"{key} in {table.where} {error}")
        else:
            texts[key] = value
    return User(texts.get("password"), keys, texts.get("certificate"))
