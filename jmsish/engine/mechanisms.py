"""The mechanisms of SASL that need no more than a message or two, and what every mechanism is to the exchange."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final

from .conditions import UNAUTHORIZED_ACCESS, Fault

__all__ = [
    "CONTROL",
    "REFUSED",
    "SYSTEM_ERROR",
    "TRY_LATER",
    "AnonymousClient",
    "AnonymousServer",
    "Answer",
    "Authenticate",
    "ClientMechanism",
    "Credentials",
    "ExternalClient",
    "ExternalServer",
    "PlainClient",
    "PlainServer",
    "Question",
    "ServerMechanism",
    "Verdict",
]

CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no name of an identity has, wherever it comes from (a certificate, a login, an authenticator): others may see it
end there, and a log or terminal more than there is."""

REFUSED, SYSTEM_ERROR, TRY_LATER = 1, 2, 4
"""Codes of an outcome that is no yes (Part 5, 5.3.3.7): ``auth``, ``sys`` and ``sys-temp``."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client can prove itself with. ``external`` says that TLS has done so already."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    external: bool = False
    token: str | None = field(default=None, repr=False)
    """An OAuth access token."""
    host: str | None = None
    """Where the client believes to be, for mechanisms that say so (RFC 7628, 3.1)."""
    port: int | None = None


# -- client ------------------------------------------------------------------------------------------------------------


class ClientMechanism:
    """One attempt of a client; the subclasses below are tried strongest first."""

    name: ClassVar[str]
    reveals = False
    """Whether it sends the secret itself, which then wants TLS around it."""
    complaint = ""
    """What the server said of a refusal before the outcome, where it did."""

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
    reveals = True

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
    parting: bytes | None = field(default=None, repr=False)
    """What goes before a no, as one more challenge, whose answer does not count (RFC 7628, 3.2.3)."""
    code: int = REFUSED
    """Of a no."""
    reason: str = "the credentials were refused"
    """Of a no, for our own log; the peer hears the code only."""


Question = Callable[[], "bytes | Verdict"]
"""What takes its time, or is somebody else's code: to be asked outside of all ownership. Gives a challenge, or the
verdict."""

Answer = bytes | Verdict | Question

Authenticate = Callable[[str, "str | None", "str | None"], "str | Callable[[], str | None] | None"]
"""Asked (mechanism, user name, password); answers the identity, ``None`` to refuse, or, where that takes its time, what
is to be called for one of these."""


def _judge(found: str | Callable[[], str | None] | None) -> Verdict | Question:
    """The verdict, or the question that gives it."""
    return (lambda: Verdict(found())) if callable(found) else Verdict(found)


class ServerMechanism:
    """One exchange at a server."""

    name: ClassVar[str]

    def __init__(self, authenticate: Authenticate) -> None:
        self.authenticate = authenticate

    def step(self, response: bytes | None) -> Answer:
        """Take the client's response (``None``: it sent no initial one) and give a challenge, the verdict, or a
        question."""
        raise NotImplementedError


class PlainServer(ServerMechanism):
    """User name and password in the clear (RFC 4616)."""

    name = "PLAIN"

    def step(self, response: bytes | None) -> Answer:
        if response is None:
            return b""
        parts = response.split(b"\0")
        if len(parts) != 3:
            return Verdict(None)
        try:
            authorize, username, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            return Verdict(None)
        if authorize and authorize != username:
            return Verdict(None)  # Nobody acts as somebody else here.
        return _judge(self.authenticate(self.name, username, password))


class AnonymousServer(ServerMechanism):
    """Nobody in particular (RFC 4505); what the client says of itself is no proof."""

    name = "ANONYMOUS"

    def step(self, response: bytes | None) -> Answer:
        return _judge(self.authenticate(self.name, None, None))


class ExternalServer(ServerMechanism):
    """TLS has shown who the client is; the response may name whom it wants to act as."""

    name = "EXTERNAL"

    def step(self, response: bytes | None) -> Answer:
        if response is None:
            return b""
        return _judge(self.authenticate(self.name, response.decode("utf-8", "replace") or None, None))
