"""The section ``[users]``: who may log in, by a password, by a salted key in its place, or by a certificate."""

from __future__ import annotations

import re
from typing import Final

from jmsish.broker.config.faults import Table
from jmsish.broker.names import check_text
from jmsish.broker.users import User
from jmsish.engine.scram import ScramKey, normalise

SCRAM_KEYS: Final = {"scram_sha_256": "SCRAM-SHA-256", "scram_sha_512": "SCRAM-SHA-512"}
USER_KEYS: Final = ("password", *SCRAM_KEYS, "certificate")

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def read_users(config: Table) -> dict[str, User]:
    """The users by name."""
    users: dict[str, User] = {}
    logins: dict[str, str] = {}
    certificates: dict[str, str] = {}
    for name, table in config.tables_of("users").items():
        user = _user(table)
        with config.faults.caught():
            _check_name(name)
            users[name] = user
            other = logins.setdefault(login_name(name), name)
            if other != name:
                config.faults.add(f"{table.where} is the same name to a login as {other!r}, by SASLprep")
        if user.certificate is not None and (other := certificates.setdefault(user.certificate, name)) != name:
            config.faults.add(f"{table.where} has the certificate of {other!r}: which of them would it be?")
    return users


def _check_name(name: object) -> None:
    check_text(name, "[users]: a user")
    if _CONTROL.search(str(name)):
        raise ValueError(f"[users]: a user cannot be called {name!r}: no login can carry control characters")


def login_name(name: str) -> str:
    """A name as a login sees it (RFC 4616, 2; RFC 5802, 5.1): two that are one here are one user."""
    return name if name.isascii() else normalise(name) or name


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
        elif not value:
            table.faults.add(f"{key} in {table.where} is empty")
        else:
            texts[key] = value
    return User(texts.get("password"), keys, texts.get("certificate"))
