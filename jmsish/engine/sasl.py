"""SASL, both ends (Part 5, 5.3): who speaks, and with which proof.

A mechanism is a small class, one for each end; the exchange of frames around it is in
:mod:`~jmsish.engine.handshake`. The client takes the strongest mechanism that the server offers, the credentials at
hand allow and the caller has not forbidden. A further mechanism is a further class in the tables below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from .conditions import UNAUTHORIZED_ACCESS, Fault

__all__ = [
    "CLIENT_MECHANISMS",
    "SERVER_MECHANISMS",
    "ClientMechanism",
    "Credentials",
    "SaslClient",
    "SaslServer",
    "ServerMechanism",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client can prove itself with. ``external`` says that TLS has done so already."""

    username: str | None = None
    password: str | None = None
    external: bool = False


# -- client ------------------------------------------------------------------------------------------------------------


class ClientMechanism:
    """One attempt of a client; the subclasses below are tried strongest first."""

    name: ClassVar[str]

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials

    @classmethod
    def usable(cls, credentials: Credentials) -> bool:
        """Whether the credentials are enough for this mechanism."""
        raise NotImplementedError

    def start(self) -> bytes | None:
        """The initial response."""
        raise NotImplementedError

    def respond(self, challenge: bytes) -> bytes:
        """The answer to a challenge."""
        raise Fault(UNAUTHORIZED_ACCESS, f"the server sent a challenge, which {self.name} has no answer to")

    def finish(self, additional: bytes | None) -> None:
        """The server said yes; raise Fault where it must prove itself too and did not."""


class ExternalClient(ClientMechanism):
    """TLS has shown who we are; a user name asks to act as somebody else."""

    name = "EXTERNAL"

    @classmethod
    def usable(cls, credentials: Credentials) -> bool:
        return credentials.external

    def start(self) -> bytes:
        return (self.credentials.username or "").encode()

    def respond(self, challenge: bytes) -> bytes:
        return self.start()


class PlainClient(ClientMechanism):
    """User name and password in the clear (RFC 4616)."""

    name = "PLAIN"

    @classmethod
    def usable(cls, credentials: Credentials) -> bool:
        return credentials.username is not None and credentials.password is not None

    def start(self) -> bytes:
        return f"\0{self.credentials.username}\0{self.credentials.password}".encode()

    def respond(self, challenge: bytes) -> bytes:
        return self.start()


class AnonymousClient(ClientMechanism):
    """Nobody in particular (RFC 4505)."""

    name = "ANONYMOUS"

    @classmethod
    def usable(cls, credentials: Credentials) -> bool:
        return True

    def start(self) -> bytes:
        return (self.credentials.username or "anonymous").encode()

    def respond(self, challenge: bytes) -> bytes:
        return self.start()


CLIENT_MECHANISMS: list[type[ClientMechanism]] = [ExternalClient, PlainClient, AnonymousClient]
"""Strongest first."""


class SaslClient:
    """What a client brings into the exchange; ``mechanisms`` allows only those named."""

    def __init__(
        self,
        mechanisms: Sequence[str] | None = None,
        username: str | None = None,
        password: str | None = None,
        external: bool = False,
    ) -> None:
        self.credentials = Credentials(username, password, external)
        self.allowed = None if mechanisms is None else tuple(mechanisms)
        self.mechanism: ClientMechanism | None = None

    def usable(self) -> list[type[ClientMechanism]]:
        """The mechanisms that credentials and caller allow, strongest first."""
        return [
            kind
            for kind in CLIENT_MECHANISMS
            if kind.usable(self.credentials) and (self.allowed is None or kind.name in self.allowed)
        ]

    def choose(self, offered: Sequence[str]) -> ClientMechanism:
        """The strongest mechanism of those offered; a Fault names both lists when there is none."""
        usable = self.usable()
        for kind in usable:
            # A client with a user name never goes in as nobody, unless it was told to.
            if kind is AnonymousClient and self.credentials.username is not None and self.allowed is None:
                continue
            if kind.name in offered:
                self.mechanism = kind(self.credentials)
                return self.mechanism
        ours = ", ".join(kind.name for kind in usable) or "none"
        raise Fault(
            UNAUTHORIZED_ACCESS,
            f"no SASL mechanism in common: the server offers {', '.join(offered) or 'none'}; "
            f"usable with the credentials given: {ours}",
        )


# -- server ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a server's exchange: the identity, or ``None`` where it was refused."""

    identity: str | None


Authenticate = Callable[[str, "str | None", "str | None"], "str | None"]
"""Asked (mechanism, user name, password); answers the identity, or ``None`` to refuse."""


class ServerMechanism:
    """One exchange at a server."""

    name: ClassVar[str]

    def __init__(self, authenticate: Authenticate) -> None:
        self.authenticate = authenticate

    def step(self, response: bytes | None) -> bytes | Verdict:
        """Take the client's response (``None``: it sent no initial one) and give a challenge or the verdict."""
        raise NotImplementedError


class PlainServer(ServerMechanism):
    """User name and password in the clear (RFC 4616)."""

    name = "PLAIN"

    def step(self, response: bytes | None) -> bytes | Verdict:
        if response is None:
            return b""
        parts = response.split(b"\0")
        if len(parts) != 3:
            return Verdict(None)
        authorize, username, password = (part.decode("utf-8", "replace") for part in parts)
        if authorize and authorize != username:
            return Verdict(None)  # Nobody acts as somebody else here.
        return Verdict(self.authenticate(self.name, username, password))


class AnonymousServer(ServerMechanism):
    """Nobody in particular (RFC 4505); what the client says of itself is no proof."""

    name = "ANONYMOUS"

    def step(self, response: bytes | None) -> bytes | Verdict:
        return Verdict(self.authenticate(self.name, None, None))


class ExternalServer(ServerMechanism):
    """TLS has shown who the client is; the response may name whom it wants to act as."""

    name = "EXTERNAL"

    def step(self, response: bytes | None) -> bytes | Verdict:
        if response is None:
            return b""
        return Verdict(self.authenticate(self.name, response.decode("utf-8", "replace") or None, None))


SERVER_MECHANISMS: dict[str, type[ServerMechanism]] = {
    kind.name: kind for kind in (PlainServer, AnonymousServer, ExternalServer)
}


class SaslServer:
    """What a server asks of its clients.

    ``authenticate`` decides for the mechanisms known here. With ``token`` other names may be offered as well: it is
    asked (mechanism, initial response) and answers like ``authenticate``. ``allow_no_sasl`` takes clients that skip
    the exchange.
    """

    def __init__(
        self,
        mechanisms: Sequence[str],
        authenticate: Authenticate,
        *,
        token: Callable[[str, bytes | None], str | None] | None = None,
        allow_no_sasl: bool = False,
    ) -> None:
        self.mechanisms = tuple(mechanisms)
        self.authenticate = authenticate
        self.token = token
        self.allow_no_sasl = allow_no_sasl
        unknown = [name for name in self.mechanisms if name not in SERVER_MECHANISMS]
        if unknown and token is None:
            raise ValueError(f"no such SASL mechanism: {', '.join(unknown)}")

    def begin(self, name: str) -> ServerMechanism | None:
        """The exchange for the mechanism a client chose; ``None`` when it was not offered."""
        if name not in self.mechanisms:
            return None
        kind = SERVER_MECHANISMS.get(name)
        if kind is not None:
            return kind(self.authenticate)
        return _TokenServer(name, self.token) if self.token is not None else None


class _TokenServer(ServerMechanism):
    """A mechanism whose one response is judged outside, such as XOAUTH2."""

    def __init__(self, name: str, token: Callable[[str, bytes | None], str | None]) -> None:
        super().__init__(lambda mechanism, username, password: None)
        self.mechanism = name
        self.token = token

    def step(self, response: bytes | None) -> bytes | Verdict:
        return Verdict(self.token(self.mechanism, response))
