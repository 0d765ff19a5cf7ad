"""The mechanisms of SASL that need no more than a message or two, and what every mechanism is to the exchange."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from .conditions import UNAUTHORIZED_ACCESS, Fault

__all__ = [
    "AnonymousClient",
    "AnonymousServer",
    "Authenticate",
    "ClientMechanism",
    "Credentials",
    "ExternalClient",
    "ExternalServer",
    "PlainClient",
    "PlainServer",
    "ServerMechanism",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client can prove itself with. ``external`` says that TLS has done so already."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
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


# -- server ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a server's exchange: the identity, or ``None`` where it was refused."""

    identity: str | None
    additional: bytes | None = field(default=None, repr=False)
    """What goes with a yes (Part 5, 5.3.3.6): the proof of a server that must prove itself too."""


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
