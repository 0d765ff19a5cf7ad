"""SASL, both ends (Part 5, 5.3): who speaks, and with which proof.

A mechanism is a small class, one for each end (:mod:`~jmsish.engine.mechanisms`, :mod:`~jmsish.engine.scram`); the
exchange of frames around it is in :mod:`~jmsish.engine.handshake`. The client takes the strongest mechanism that the
server offers, the credentials at hand allow and the caller has not forbidden. A further mechanism is a further class
in the tables below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .conditions import UNAUTHORIZED_ACCESS, Fault
from .mechanisms import (
    AnonymousClient,
    AnonymousServer,
    Authenticate,
    ClientMechanism,
    Credentials,
    ExternalClient,
    ExternalServer,
    PlainClient,
    PlainServer,
    ServerMechanism,
    Verdict,
)
from .scram import SCRAM_MECHANISMS, FindKey, ScramServer, ScramSha256Client, ScramSha512Client

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

CLIENT_MECHANISMS: list[type[ClientMechanism]] = [
    ExternalClient,
    ScramSha512Client,
    ScramSha256Client,
    PlainClient,
    AnonymousClient,
]
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
        for kind in CLIENT_MECHANISMS:
            if kind.name not in offered or (self.allowed is not None and kind.name not in self.allowed):
                continue
            # A client with a user name never goes in as nobody, unless it was told to.
            if kind is AnonymousClient and self.credentials.username is not None and self.allowed is None:
                continue
            if kind.usable(self.credentials):
                self.mechanism = kind(self.credentials)
                return self.mechanism
        ours = ", ".join(kind.name for kind in self.usable()) or "none"
        raise Fault(
            UNAUTHORIZED_ACCESS,
            f"no SASL mechanism in common: the server offers {', '.join(offered) or 'none'}; "
            f"usable with the credentials given: {ours}",
        )


SERVER_MECHANISMS: dict[str, type[ServerMechanism]] = {
    kind.name: kind for kind in (PlainServer, AnonymousServer, ExternalServer)
}


class SaslServer:
    """What a server asks of its clients.

    ``authenticate`` decides for the mechanisms known here. With ``token`` other names may be offered as well: it is
    asked (mechanism, initial response) and answers like ``authenticate``. The SCRAM mechanisms need ``scram``, which
    gives the key of a user. ``allow_no_sasl`` takes clients that skip the exchange.
    """

    def __init__(
        self,
        mechanisms: Sequence[str],
        authenticate: Authenticate,
        *,
        token: Callable[[str, bytes | None], str | None] | None = None,
        scram: FindKey | None = None,
        allow_no_sasl: bool = False,
    ) -> None:
        self.mechanisms = tuple(mechanisms)
        self.authenticate = authenticate
        self.token = token
        self.scram = scram
        self.allow_no_sasl = allow_no_sasl
        unknown = [name for name in self.mechanisms if name not in SERVER_MECHANISMS and not self._scrams(name)]
        if unknown and token is None:
            raise ValueError(f"no such SASL mechanism: {', '.join(unknown)}")

    def begin(self, name: str) -> ServerMechanism | None:
        """The exchange for the mechanism a client chose; ``None`` when it was not offered."""
        if name not in self.mechanisms:
            return None
        if self.scram is not None and self._scrams(name):
            return ScramServer(name, self.scram)
        kind = SERVER_MECHANISMS.get(name)
        if kind is not None:
            return kind(self.authenticate)
        return _TokenServer(name, self.token) if self.token is not None else None

    def _scrams(self, name: str) -> bool:
        return self.scram is not None and name in SCRAM_MECHANISMS


class _TokenServer(ServerMechanism):
    """A mechanism whose one response is judged outside, such as XOAUTH2."""

    def __init__(self, name: str, token: Callable[[str, bytes | None], str | None]) -> None:
        super().__init__(lambda mechanism, username, password: None)
        self.mechanism = name
        self.token = token

    def step(self, response: bytes | None) -> bytes | Verdict:
        return Verdict(self.token(self.mechanism, response))
