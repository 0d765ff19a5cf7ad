"""The file of users that ``jmsish user`` writes: salted keys by the names of the users, and no password.

It is TOML of the same shape as ``[users]`` of the configuration, without the ``users.`` in front::

    [alice]
    scram_sha_256 = "65536:SALT:STORED-KEY:SERVER-KEY"
    scram_sha_512 = "65536:SALT:STORED-KEY:SERVER-KEY"
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from secrets import token_bytes
from typing import Final

from jmsish.broker.config.faults import Faults, Table
from jmsish.broker.config.users import SCRAM_KEYS, read_users
from jmsish.broker.users import SALT_LENGTH, User
from jmsish.engine.scram import DEFAULT_ITERATIONS, LONGEST_TEXT, MOST_ITERATIONS, ScramKey, normalise

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ITERATIONS: Final = 65_536
"""What a guess at a password costs who has stolen the file, and each login its client: 0.03 to 0.1 s."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")

_HEAD: Final = """\
# Users of a jmsish broker, written by `jmsish user`. Nobody can read a password from these keys, but try many by them:
# keep the file readable for the broker alone.
"""


def parse_users(text: str) -> dict[str, User]:
    """The users in the text of a file. ``ValueError`` says what is wrong, and shows no key."""
    try:
        found = tomllib.loads(text.removeprefix("\ufeff"))  # with which some editors begin a file
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {error}") from None
    faults = Faults()
    users = read_users(Table({"users": found}, "the file", faults))
    faults.check()
    return users


def format_users(users: Mapping[str, User]) -> str:
    """The text of a file, the users in the order of their names."""
    parts = [_HEAD]
    for name in sorted(users):
        user = users[name]
        lines = [f"[{name if _BARE.fullmatch(name) else _quoted(name)}]"]
        if user.password is not None:
            lines.append(f"password = {_quoted(user.password)}")
        lines += [
            f"{key} = {_quoted(user.keys[mechanism].text())}"
            for key, mechanism in SCRAM_KEYS.items()
            if mechanism in user.keys
        ]
        if user.certificate is not None:
            lines.append(f"certificate = {_quoted(user.certificate)}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _quoted(text: str) -> str:
    """A basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\u{ord(each):04x}" if each < " " or each == "\x7f" else each for each in escaped) + '"'


def make_user(name: str, password: str, *, iterations: int = ITERATIONS) -> User:
    """A user with the keys of a password, for all mechanisms. ``ValueError`` where name or password cannot be one."""
    if not name or not name.isprintable() or normalise(name) is None:
        raise ValueError(f"{name!r} cannot be the name of a user")
    if not password:
        raise ValueError("the password is empty")
    if len(password) > LONGEST_TEXT:
        raise ValueError(f"the password has {len(password)} characters, where {LONGEST_TEXT} are the most")
    if not normalise(password):
        raise ValueError("the password has characters that SCRAM forbids (SASLprep): control characters, for one")
    if not DEFAULT_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise ValueError(
            f"the number of iterations is from {DEFAULT_ITERATIONS} to {MOST_ITERATIONS}, not {iterations}"
        )
    return User(
        None,
        {
            mechanism: ScramKey.derive(mechanism, password, salt=token_bytes(SALT_LENGTH), iterations=iterations)
            for mechanism in SCRAM_KEYS.values()
        },
    )
