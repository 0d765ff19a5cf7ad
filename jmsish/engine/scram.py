"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): a password is proven, never sent; the server proves itself too.

The messages are those of the library scramp, imported only where an exchange takes place: its grammar is strict, it
prepares names and passwords by SASLprep, leaves the hashing to hashlib, and is kept by those who need it for
PostgreSQL. One of our own was weighed and would be the same six hundred lines. What it knows nothing of is here: the
frames, who a user is, what an unknown one hears, and how much work a server may ask of a client.

Channel binding is not offered: a proxy that ends TLS in front of a broker is common, and a client cannot know of it.

The server's last word goes with the outcome (Part 5, 5.3.3.6); a client takes it from a challenge as well, where some
brokers put it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from .conditions import UNAUTHORIZED_ACCESS, Fault
from .mechanisms import Answer, ClientMechanism, Credentials, ServerMechanism, Verdict

__all__ = [
    "DEFAULT_ITERATIONS",
    "MOST_ITERATIONS",
    "SCRAM_MECHANISMS",
    "FindKey",
    "Prepare",
    "ScramKey",
    "ScramServer",
    "ScramSha256Client",
    "ScramSha512Client",
    "normalise",
]

SCRAM_MECHANISMS: Final = {"SCRAM-SHA-512": 64, "SCRAM-SHA-256": 32}
"""Strongest first, with the length of a key in octets."""

DEFAULT_ITERATIONS: Final = 4096
"""The least that RFC 7677 allows; a key made beforehand may have more."""
MOST_ITERATIONS: Final = 1_000_000
"""A second of work or so, in which an event loop stands still: no server may ask a client for more."""
SHORTEST_SALT: Final = 12
LONGEST_TEXT: Final = 512
"""Characters of a name or password that SASLprep is to look at; each may become eighteen."""
LONGEST_MESSAGE: Final = 2048
"""Octets of a message of a client: a name, and a number used once or a proof."""


def normalise(name: str) -> str | None:
    """A user name or password as SCRAM sees it (SASLprep); ``None`` where it has characters that SCRAM forbids.

    So it is with what is too long: to look at sixteen thousand characters that nobody has proven to be anybody takes
    a tenth of a second.
    """
    import scramp.core

    if len(name) > LONGEST_TEXT:
        return None
    try:
        return str(scramp.core.saslprep(name))
    except scramp.ScramException:
        return None


@dataclass(frozen=True, slots=True)
class ScramKey:
    """What a server keeps of a password: enough to check a proof, not enough to make one."""

    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def derive(cls, mechanism: str, password: str, *, salt: bytes, iterations: int = DEFAULT_ITERATIONS) -> ScramKey:
        """The key of a password; ``ValueError`` where it has characters that SCRAM forbids."""
        import scramp

        if len(password) > LONGEST_TEXT:
            raise ValueError(f"no key for {mechanism}: {len(password)} characters, where {LONGEST_TEXT} are the most")
        try:
            info = scramp.ScramMechanism(mechanism).make_auth_info(password, iteration_count=iterations, salt=salt)
        except scramp.ScramException as error:
            raise ValueError(f"no key for {mechanism}: {error}") from None
        salt, stored_key, server_key, iterations = info
        return cls(iterations, salt, stored_key, server_key)

    @classmethod
    def parse(cls, mechanism: str, text: str) -> ScramKey:
        """Read ``iterations:salt:stored-key:server-key``; ``ValueError`` says what is wrong and shows nothing of it."""
        parts = text.split(":")
        if len(parts) != 4:
            raise ValueError("must be iterations:salt:stored-key:server-key, the last three in base64")
        if not (parts[0].isascii() and parts[0].isdigit()) or len(parts[0]) > 8:
            raise ValueError("must begin with the number of iterations")
        iterations = int(parts[0])
        if not DEFAULT_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ValueError(f"must have {DEFAULT_ITERATIONS} to {MOST_ITERATIONS} iterations")
        try:
            salt, stored_key, server_key = (b64decode(part, validate=True) for part in parts[1:])
        except ValueError:
            raise ValueError("must have salt, stored key and server key in base64") from None
        if len(salt) < SHORTEST_SALT:
            raise ValueError(f"must have a salt of {SHORTEST_SALT} octets or more")
        length = SCRAM_MECHANISMS[mechanism]
        if len(stored_key) != length or len(server_key) != length:
            raise ValueError(f"must have keys of {length} octets for {mechanism}")
        return cls(iterations, salt, stored_key, server_key)

    def text(self) -> str:
        """The form that :meth:`parse` reads."""
        octets = (self.salt, self.stored_key, self.server_key)
        return ":".join([str(self.iterations), *(b64encode(part).decode() for part in octets)])


# -- client ------------------------------------------------------------------------------------------------------------


class _ScramClient(ClientMechanism):
    """The client sends its name, hears salt and iterations, sends its proof and hears the server's."""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__(credentials)
        self._exchange: Any = None
        self._proven = False
        self._proved = False

    @classmethod
    def usable(cls, credentials: Credentials) -> bool:
        if not credentials.username or credentials.password is None:
            return False
        return bool(normalise(credentials.username)) and normalise(credentials.password) is not None

    def start(self) -> bytes:
        import scramp

        self._exchange = scramp.ScramClient([self.name], self.credentials.username, self.credentials.password)
        return str(self._exchange.get_client_first()).encode()

    def respond(self, challenge: bytes) -> bytes:
        if self._proven:
            self._check(challenge)
            return b""
        self._take(self._exchange.set_server_first, challenge)
        iterations = int(self._exchange.iterations)
        if iterations > MOST_ITERATIONS:
            raise Fault(
                UNAUTHORIZED_ACCESS, f"{self.name}: the server asks for {iterations} iterations, which is too many"
            )
        self._proven = True
        return str(self._exchange.get_client_final()).encode()

    def finish(self, additional: bytes | None) -> None:
        # Without this anybody who answers "yes" could be the broker.
        if self._proved and not additional:
            return
        if not additional:
            raise Fault(UNAUTHORIZED_ACCESS, f"{self.name}: the server did not prove that it knows the user")
        self._check(additional)

    def _check(self, proof: bytes) -> None:
        self._take(self._exchange.set_server_final, proof)
        self._proved = True

    def _take(self, step: Callable[[str], None], octets: bytes) -> None:
        import scramp

        try:
            step(octets.decode())
        except UnicodeDecodeError:
            raise Fault(UNAUTHORIZED_ACCESS, f"{self.name}: the server's message is not UTF-8") from None
        except scramp.ScramException as error:
            raise Fault(UNAUTHORIZED_ACCESS, f"{self.name}: the server's message does not hold: {error}") from None


class ScramSha256Client(_ScramClient):
    """A password proven with SHA-256 (RFC 7677)."""

    name = "SCRAM-SHA-256"


class ScramSha512Client(_ScramClient):
    """A password proven with SHA-512."""

    name = "SCRAM-SHA-512"


# -- server ------------------------------------------------------------------------------------------------------------

FindKey = Callable[[str, str], "tuple[ScramKey, str | None]"]
"""Asked (mechanism, normalised user name); answers key and identity. For a user that does not exist it makes up a key,
always the same for the same name, and gives no identity: so nobody learns which users there are."""

Prepare = Callable[[str], "Callable[[], None] | None"]
"""Asked (mechanism); answers what has to be done before keys can be found and takes its time, if there is any."""


class _User:
    """Who it is: what the library asks for a key, apart from the exchange, which refers to it."""

    def __init__(self, mechanism: str, find: FindKey) -> None:
        self._mechanism = mechanism
        self._find = find
        self.identity: str | None = None

    def key(self, username: str) -> tuple[bytes, bytes, bytes, int]:
        key, self.identity = self._find(self._mechanism, username)
        return key.salt, key.stored_key, key.server_key, key.iterations


class ScramServer(ServerMechanism):
    """One exchange at a server; a user that does not exist hears the same as one with a wrong password."""

    def __init__(self, mechanism: str, find: FindKey, prepare: Prepare | None = None) -> None:
        import scramp

        super().__init__(lambda mechanism, username, password: None)
        self.mechanism = mechanism
        self._prepare = prepare
        self._user = _User(mechanism, find)
        self._exchange: Any = scramp.ScramMechanism(mechanism).make_server(self._user.key)
        self._began = False
        self._refused = scramp.ScramException

    def step(self, response: bytes | None) -> Answer:
        if response is None:
            return b""  # SCRAM begins with the client; an empty challenge asks for its first message.
        prepare, self._prepare = self._prepare, None
        work = prepare(self.mechanism) if prepare is not None else None
        if work is None:
            return self._take(response)

        def question() -> bytes | Verdict:
            work()
            return self._take(response)

        return question

    def _take(self, response: bytes) -> bytes | Verdict:
        if len(response) > LONGEST_MESSAGE:
            return Verdict(None)
        try:
            return (self._final if self._began else self._first)(response.decode())
        except (self._refused, UnicodeDecodeError):
            # Part 5, 5.3.3.6 has no room for SCRAM's reason beside a refusal, and "unknown-user" would say too much.
            return Verdict(None)

    def _first(self, message: str) -> bytes | Verdict:
        self._exchange.set_client_first(message)
        self._began = True
        return str(self._exchange.get_server_first()).encode()

    def _final(self, message: str) -> bytes | Verdict:
        self._exchange.set_client_final(message)
        return Verdict(self._user.identity, str(self._exchange.get_server_final()).encode())
