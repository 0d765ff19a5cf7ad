"""Who may come in: what a connection is offered to prove itself with, and who decides about it.

Theory of operation.  What is offered follows from four things: whether anything is configured that could tell people
apart (users, a file of them, an authenticator), what TLS has shown, whether others can read the wire, and what the
configuration allows.

    ===============================  =================================================================================
    inside the process (``vm://``)   PLAIN and ANONYMOUS; every name is believed
    nothing configured               the same, and EXTERNAL; where a certificate was shown EXTERNAL alone
    users                            the SCRAM mechanisms that all users can use, and PLAIN
    an authenticator                 OAUTHBEARER and XOAUTH2; without users PLAIN too
    ===============================  =================================================================================

Where others can read the wire (no TLS, and the peer is not this machine) those that send the secret itself are left
out, PLAIN, OAUTHBEARER and XOAUTH2, unless ``allow_cleartext`` says otherwise. Nobody is told whether there is a user
of some name: an unknown one gets the same answer as a wrong password, after the same work.

What takes time, a key to derive or the authenticator of the program, is a question
(:data:`~jmsish.engine.sasl.Question`) that the driver asks with no lock held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jmsish.broker.certificates import COMMON_NAME, identity_of
from jmsish.broker.users import User, Users
from jmsish.engine.mechanisms import CONTROL
from jmsish.engine.oauth import TOKEN_MECHANISMS, AskToken
from jmsish.engine.sasl import SaslServer

ANONYMOUS: Final = "anonymous"
"""Who comes in without a name."""


@dataclass(frozen=True, slots=True)
class AuthenticationConfig:
    """The section ``[authentication]``."""

    users_file: str = ""
    """The path of a file of users (``jmsish user``); it is read again when it changes."""
    mechanisms: tuple[str, ...] | None = None
    """The mechanisms that may be offered, in this order; None: all that fit."""
    allow_cleartext: bool = False
    """Whether passwords and tokens may be asked for where others can read them."""
    certificate_identity: str = COMMON_NAME
    """What of a client's certificate is its name."""


class Authentication:
    """Knows the users of one broker, and what to ask of each connection."""

    def __init__(
        self, config: AuthenticationConfig, users: Mapping[str, User], authenticator: AskToken | None = None
    ) -> None:
        self.config = config
        self._configured = users
        self._users = Users(users)
        self._seed: bytes | None = None  # of what has been said to unknown names
        self._authenticator = authenticator
        self.is_required = bool(users or config.users_file or authenticator)
        """Whether there is anything that tells people apart: an empty file of users lets nobody in, not everybody."""

    def take_file(self, users: Mapping[str, User]) -> None:
        """The users of the file, from now on; one of the configuration comes before one of the same name there."""
        self._users = Users({**users, **self._configured}, self._seed)

    def offer(
        self,
        *,
        trusted: bool,
        identity: str | None = None,
        certificate: Mapping[str, Any] | None = None,
        exposed: bool = False,
    ) -> SaslServer:
        """What a connection is asked.

        ``identity`` is a name that needs no proof, ``certificate`` what TLS has verified of the peer, as
        ``ssl.SSLSocket.getpeercert`` gives it; ``exposed`` says that others can read what is sent.
        """
        users = self._users
        self._seed = users.seed
        if certificate:
            identity = users.certified(identity_of(certificate, self.config.certificate_identity))
        open_to_all = trusted or not (self.is_required or certificate)
        offered = ["EXTERNAL"] if identity is not None else []
        if open_to_all:
            offered += ["PLAIN", "ANONYMOUS"]
        else:
            guarded = exposed and not self.config.allow_cleartext
            offered += [name for name in self._proofs(users) if not (guarded and name in _REVEALING)]
        if self.config.mechanisms is not None and not trusted:
            offered = [name for name in self.config.mechanisms if name in offered]
        return SaslServer(
            offered,
            _Asked(users, identity, open_to_all).authenticate,
            token=self._authenticator,
            token_plain=not (open_to_all or users),
            scram=users.find,
            prepare=users.prepare,
            allow_no_sasl=open_to_all and (self.config.mechanisms is None or trusted),
            judged=True,
        )

    def _proofs(self, users: Users) -> list[str]:
        """The mechanisms by which somebody can prove a name here."""
        if not self.is_required:
            return []
        proofs = [*users.mechanisms]
        if self._authenticator is not None:
            proofs += TOKEN_MECHANISMS
        if users or self._authenticator is not None:
            proofs.append("PLAIN")
        return proofs


_REVEALING: Final = frozenset(("PLAIN", *TOKEN_MECHANISMS))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The decision about one connection."""

    users: Users
    identity: str | None
    open_to_all: bool

    def authenticate(
        self, mechanism: str, username: str | None, password: str | None
    ) -> str | Callable[[], str | None] | None:
        """See :data:`jmsish.engine.mechanisms.Authenticate`."""
        if mechanism == "EXTERNAL":
            return self.identity if username in (None, self.identity) else None
        if mechanism == "ANONYMOUS":
            return ANONYMOUS if self.open_to_all else None
        if self.open_to_all:
            # Every name is believed that can be one: it is told to logs and terminals.
            return None if CONTROL.search(username or "") else username or ANONYMOUS
        return self.users.check(username or "", password or "")
