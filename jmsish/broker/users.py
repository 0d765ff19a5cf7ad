"""The users of a broker: what is known of each, and whether a client is who it says."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from secrets import token_bytes
from typing import Final

from jmsish.engine.scram import DEFAULT_ITERATIONS, SCRAM_MECHANISMS, ScramKey, normalise

SALT_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class User:
    """A password, or salted keys in its place, by the names of their mechanisms; or a certificate."""

    password: str | None = field(default=None, repr=False)
    keys: Mapping[str, ScramKey] = field(default_factory=dict, repr=False)
    certificate: str | None = None
    """The name that a certificate has to show for this user, where it is not the user's own."""

    @property
    def has_password(self) -> bool:
        """Whether this user has one, here or as keys."""
        return self.password is not None or bool(self.keys)

    def knows(self, mechanism: str) -> bool:
        """Whether this user can use that SCRAM mechanism."""
        return self.password is not None or mechanism in self.keys


def scram_key(mechanism: str, password: str, *, iterations: int = DEFAULT_ITERATIONS) -> str:
    """A salted key for the configuration, so that no password stands there."""
    return ScramKey.derive(mechanism, password, salt=token_bytes(SALT_LENGTH), iterations=iterations).text()


class Users:
    """All users of one broker.

    An unknown name must look like a wrong password. Its key is made up from the name and a seed, so it is the same each
    time; and keys of passwords are made all at once, so that no single user's takes time of its own.

    ``seed`` is that of the users before these, if there were any: what an unknown name hears may not change where what
    a known one hears does not. A broker that starts again finds its seed in the keys that it knows.
    """

    def __init__(self, users: Mapping[str, User], seed: bytes | None = None) -> None:
        self.users = users
        self.seed = seed if seed is not None else _seed_of(users)
        proving = [user for user in users.values() if user.has_password]
        self.mechanisms = tuple(
            name for name in SCRAM_MECHANISMS if proving and all(user.knows(name) for user in proving)
        )
        """Those of SCRAM that every user can use: one offered to all must be open to all."""
        self._secret = token_bytes(32)
        self._keys: dict[str, dict[str, tuple[ScramKey, str]]] = {}
        # Made beforehand: to prepare a word that is known would take time that one of nobody does not.
        self._blinded = {name: self._blind(user.password) for name, user in users.items() if user.password is not None}
        self._nobodys = self._blind("")
        self._names = {normal: name for name in users if (normal := _prepared(name))}
        self._salted = [user.keys for user in proving if user.password is None]
        self._certified = {user.certificate: name for name, user in users.items() if user.certificate is not None}

    def __bool__(self) -> bool:
        return bool(self.users)

    def certified(self, shown: str | None) -> str | None:
        """The user whose certificate shows this name; the name itself, unless it is that of a user who has to show
        another one."""
        if shown is None:
            return None
        user = self.users.get(shown)
        return self._certified.get(shown, shown if user is None or user.certificate is None else None)

    def check(self, username: str, password: str) -> str | None | Callable[[], str | None]:
        """PLAIN: the name of the user whose password that is, None, or what is to be called for one of these.

        A key takes time to compare with; where one user has only that, all names take it.
        """
        prepared = _prepared(username)
        name = username if username in self.users else self._names.get(prepared)
        user = self.users.get(name) if name is not None else None
        known = self._blinded.get(name) if name is not None else None
        right = hmac.compare_digest(known or self._nobodys, self._blind(password)) and known is not None
        if not self._salted:
            return name if right else None
        salted = user is not None and user.password is None and bool(user.keys)
        keys = user.keys if user is not None and salted else self._alike(username)
        return partial(self._compare, name, keys, password, right, salted)

    def _compare(
        self, name: str | None, keys: Mapping[str, ScramKey], password: str, right: bool, salted: bool
    ) -> str | None:
        matches = self._matches(keys, password)
        return name if (matches if salted else right) else None

    def prepare(self, mechanism: str) -> Callable[[], None] | None:
        """What has to be called before :meth:`find` and may take its time, if there is any: keys of passwords."""
        if mechanism in self._keys or not any(user.password is not None for user in self.users.values()):
            return None
        return partial(self._derived, mechanism)

    def _derived(self, mechanism: str) -> None:
        """By any thread; two who come at once find the same keys."""
        self._keys[mechanism] = self._derive(mechanism)

    def find(self, mechanism: str, username: str) -> tuple[ScramKey, str | None]:
        """SCRAM: key and name of a user, a key made up for a name that there is not."""
        keys = self._keys.get(mechanism)
        if keys is None:
            keys = self._keys[mechanism] = self._derive(mechanism)
        made_up = self._made_up(mechanism, username, sorted({key.iterations for key, _ in keys.values()}))
        return keys.get(username, (made_up, None))

    def _derive(self, mechanism: str) -> dict[str, tuple[ScramKey, str]]:
        keys = {}
        for name, user in self.users.items():
            normal, key = _prepared(name), user.keys.get(mechanism)
            if key is None and user.password is not None and normalise(user.password) is not None:
                key = ScramKey.derive(mechanism, user.password, salt=self._salt(mechanism, normal or name))
            if normal and key is not None:
                keys[normal] = (key, name)
        return keys

    def _made_up(self, mechanism: str, username: str, iterations: list[int]) -> ScramKey:
        length = SCRAM_MECHANISMS[mechanism]
        stored_key, server_key = (
            hmac.digest(self._secret, f"{which} {mechanism} {username}".encode(), hashlib.sha512)[:length]
            for which in ("stored", "server")
        )
        salt = self._salt(mechanism, username)
        chosen = iterations[self._lot(username) % len(iterations)] if iterations else DEFAULT_ITERATIONS
        return ScramKey(chosen, salt, stored_key, server_key)

    def _salt(self, mechanism: str, username: str) -> bytes:
        return hmac.digest(self.seed, f"salt {mechanism} {username}".encode(), hashlib.sha256)[:SALT_LENGTH]

    def _lot(self, username: str) -> int:
        """A number for a name, always the same one."""
        return hmac.digest(self.seed, b"lot " + username.encode("utf-8", "surrogatepass"), hashlib.sha256)[0]

    def _blind(self, text: str) -> bytes:
        """Of one length whatever the text, so that a comparison says nothing of that either."""
        return hmac.digest(self._secret, (_prepared(text) or text).encode("utf-8", "surrogatepass"), hashlib.sha256)

    def _alike(self, username: str) -> Mapping[str, ScramKey]:
        """The keys of some user, for a comparison whose result does not count; for a name always of the same one."""
        return self._salted[self._lot(username) % len(self._salted)]

    @staticmethod
    def _matches(keys: Mapping[str, ScramKey], password: str) -> bool:
        mechanism, key = next(iter(keys.items()))
        try:
            given = ScramKey.derive(mechanism, password, salt=key.salt, iterations=key.iterations)
        except ValueError:
            return False
        return hmac.compare_digest(given.stored_key, key.stored_key)


def _seed_of(users: Mapping[str, User]) -> bytes:
    """The same for the same salted keys, which nobody outside knows all of; by chance where there are none."""
    texts = [f"{mechanism} {key.text()}" for user in users.values() for mechanism, key in user.keys.items()]
    if not texts:
        return token_bytes(32)
    return hashlib.sha256("\n".join(["what unknown names hear", *sorted(texts)]).encode()).digest()


def _prepared(text: str) -> str:
    """A name or password by SASLprep (RFC 4616, 2; RFC 5802, 5.1), empty where that forbids it."""
    if text.isascii() and text.isprintable():
        return text  # It leaves these as they are, and most names are of these.
    return normalise(text) or ""
