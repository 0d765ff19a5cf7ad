"""SASL, both ends (Part 5, 5.3): who speaks, and with which proof.

A mechanism is a small class, one for each end (:mod:`~jmsish.engine.mechanisms`, :mod:`~jmsish.engine.scram`); the
exchange of frames around it is in :mod:`~jmsish.engine.handshake`. The client takes the strongest mechanism that the
server offers, the credentials at hand allow and the caller has not forbidden. A further mechanism is a further class
in the tables below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .conditions import UNAUTHORIZED_ACCESS, Fault
from .mechanisms import (
    AnonymousClient,
    AnonymousServer,
    Answer,
    Authenticate,
    ClientMechanism,
    Credentials,
    ExternalClient,
    ExternalServer,
    PlainClient,
    PlainServer,
    Question,
    ServerMechanism,
    Verdict,
)
from .oauth import AskToken, OAuthBearerClient, TokenServer, XOAuth2Client
from .scram import SCRAM_MECHANISMS, FindKey, Prepare, ScramServer, ScramSha256Client, ScramSha512Client

__all__ = [
    "CLIENT_MECHANISMS",
    "SERVER_MECHANISMS",
    "Answer",
    "ClientMechanism",
    "Credentials",
    "Question",
    "SaslClient",
    "SaslServer",
    "ServerMechanism",
    "Verdict",
]

CLIENT_MECHANISMS: Final[tuple[type[ClientMechanism], ...]] = (
    ExternalClient,
    OAuthBearerClient,
    XOAuth2Client,
    ScramSha512Client,
    ScramSha256Client,
    PlainClient,
    AnonymousClient,
)
"""In the order in which they are tried. A certificate or token was given on purpose, so it comes before a password."""

_BY_NAME: Final = {kind.name: kind for kind in CLIENT_MECHANISMS}


class SaslClient:
    """What a client brings into the exchange.

    ``mechanisms`` allows only those named, in that order of preference; names that are not known here are passed over,
    and ``ValueError`` is raised where none is known. ``exposed`` says that others can read what is sent: then what
    sends the secret itself is not used, and where a secret is ``promised``, to be told inside of AMQP, nothing is said
    at all; ``layered`` that there is TLS or WebSocket around it.
    """

    def __init__(
        self,
        mechanisms: Sequence[str] | None = None,
        username: str | None = None,
        password: str | None = None,
        external: bool = False,
        *,
        token: str | None = None,
        host: str | None = None,
        port: int | None = None,
        exposed: bool = False,
        promised: bool = False,
        layered: bool = False,
    ) -> None:
        self.credentials = Credentials(username, password, external, token, host, port)
        self.exposed = exposed
        self.promised = promised
        self.layered = layered
        self.named = mechanisms is not None
        self.kinds = CLIENT_MECHANISMS
        if mechanisms is not None:
            self.kinds = tuple(_BY_NAME[name] for name in dict.fromkeys(mechanisms) if name in _BY_NAME)
            if not self.kinds:
                known = ", ".join(_BY_NAME)
                raise ValueError(f"no such SASL mechanism: {', '.join(mechanisms)}; there are: {known}")
        self.mechanism: ClientMechanism | None = None

    def usable(self) -> list[type[ClientMechanism]]:
        """The mechanisms that credentials and caller allow, in the order in which they are tried."""
        return [kind for kind in self.kinds if self._fits(kind) and not (self.exposed and kind.reveals)]

    def _fits(self, kind: type[ClientMechanism]) -> bool:
        held = self.credentials
        # A client with a name or token never goes in as nobody, unless it was told to.
        if kind is AnonymousClient and (held.username is not None or held.token is not None) and not self.named:
            return False
        return kind.usable(held)

    def choose(self, offered: Sequence[str]) -> ClientMechanism:
        """The first usable mechanism of those offered; a Fault says why there is none."""
        if self.exposed and self.promised:
            raise _withheld("cbs")
        for kind in self.usable():
            if kind.name in offered:
                self.mechanism = kind(self.credentials)
                return self.mechanism
        withheld = [kind.name for kind in self.kinds if kind.name in offered and kind.reveals and self._fits(kind)]
        if withheld:
            raise _withheld(" and ".join(withheld))
        ours = ", ".join(kind.name for kind in self.usable()) or "none"
        raise Fault(
            UNAUTHORIZED_ACCESS,
            f"no SASL mechanism in common: the server offers {', '.join(offered) or 'none'}; "
            f"usable with the credentials given: {ours}{self._missing(offered)}",
        )

    def _missing(self, offered: Sequence[str]) -> str:
        """What is wrong with the username and password, or was not given of them, where the server would take them."""
        held = self.credentials
        takes = [name for name in offered if name == "PLAIN" or name.startswith("SCRAM-")]
        if not takes or held.token is not None:
            return ""
        if held.username and held.password:
            scrams = [kind for kind in self.kinds if kind.name in takes and kind.name != "PLAIN"]
            if not scrams or any(kind.usable(held) for kind in scrams):
                return ""
            return " (the user name or the password has characters that SCRAM forbids, by SASLprep)"
        what = "password" if held.username else "username"
        return f" (it takes a username and a password, and no {what} was given)"


def _withheld(what: str) -> Fault:
    return Fault(
        UNAUTHORIZED_ACCESS,
        f"{what} would send the password or token in the clear, for there is no TLS and the broker is not on this "
        f"machine: it was not sent (amqps:// is safe; allow_cleartext=True sends it)",
    )


SERVER_MECHANISMS: dict[str, type[ServerMechanism]] = {
    kind.name: kind for kind in (PlainServer, AnonymousServer, ExternalServer)
}


class SaslServer:
    """What a server asks of its clients.

    ``authenticate`` decides for the mechanisms known here. With ``token`` other names may be offered as well: it is
    asked (mechanism, initial response), outside of all ownership, and answers an identity or ``None``; where
    ``token_plain`` is set it decides PLAIN too. The SCRAM mechanisms need ``scram``, which gives the key of a user, and
    ``prepare`` where keys have to be made first. ``allow_no_sasl`` takes clients that skip the exchange.

    With ``judged`` no verdict is told to the peer before the owner says so: see the event ``JUDGED``.
    """

    def __init__(
        self,
        mechanisms: Sequence[str],
        authenticate: Authenticate,
        *,
        token: AskToken | None = None,
        token_plain: bool = False,
        scram: FindKey | None = None,
        prepare: Prepare | None = None,
        allow_no_sasl: bool = False,
        judged: bool = False,
    ) -> None:
        self.mechanisms = tuple(mechanisms)
        self.authenticate = authenticate
        self.token = token
        self.token_plain = token_plain
        self.scram = scram
        self.prepare = prepare
        self.allow_no_sasl = allow_no_sasl
        self.judged = judged
        unknown = [name for name in self.mechanisms if name not in SERVER_MECHANISMS and not self._scrams(name)]
        if unknown and token is None:
            raise ValueError(f"no such SASL mechanism: {', '.join(unknown)}")

    def begin(self, name: str) -> ServerMechanism | None:
        """The exchange for the mechanism a client chose; ``None`` when it was not offered."""
        if name not in self.mechanisms:
            return None
        if self.scram is not None and self._scrams(name):
            return ScramServer(name, self.scram, self.prepare)
        kind = SERVER_MECHANISMS.get(name)
        if kind is not None and not (kind is PlainServer and self.token_plain):
            return kind(self.authenticate)
        return TokenServer(name, self.token) if self.token is not None else None

    def _scrams(self, name: str) -> bool:
        return self.scram is not None and name in SCRAM_MECHANISMS
