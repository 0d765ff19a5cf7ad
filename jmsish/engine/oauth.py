"""OAUTHBEARER (RFC 7628) and XOAUTH2: a token of somebody whom both ends trust stands for the user.

The token is the secret and is sent as it is, so TLS has to be around it (RFC 7628, 5). A server that refuses it says
why in one more challenge, in JSON; the client answers with next to nothing, and the outcome follows (3.2.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from .conditions import UNAUTHORIZED_ACCESS, Fault
from .mechanisms import CONTROL, SYSTEM_ERROR, Answer, ClientMechanism, Credentials, Question, ServerMechanism, Verdict

__all__ = [
    "TOKEN_MECHANISMS",
    "AskToken",
    "Bearer",
    "OAuthBearerClient",
    "TokenServer",
    "XOAuth2Client",
    "check_token",
    "read_bearer",
]

OAUTHBEARER: Final = "OAUTHBEARER"
XOAUTH2: Final = "XOAUTH2"
TOKEN_MECHANISMS: Final = (OAUTHBEARER, XOAUTH2)

_KVSEP = "\x01"
_TOKEN = re.compile(r"[\x21-\x7e]+")  # RFC 6750 allows less; what matters is that nothing ends the field early
_LONGEST_STATUS = 80


def check_token(token: object) -> str:
    """The token, if it can be one. ``TypeError`` and ``ValueError`` show nothing of it."""
    if not isinstance(token, str):
        raise TypeError(f"the token must be a str, not {type(token).__name__}")
    if not _TOKEN.fullmatch(token):
        raise ValueError("the token is empty, or has characters that cannot be in one")
    return token


class Bearer(NamedTuple):
    """What a client said by OAUTHBEARER or XOAUTH2."""

    user: str
    """The user it wants to be; empty where it leaves that to the token."""
    token: str

    def __repr__(self) -> str:
        return f"Bearer(user={self.user!r}, token=…)"


def read_bearer(mechanism: str, response: bytes | None) -> Bearer:
    """User and token in the initial response of OAUTHBEARER or XOAUTH2; ``ValueError`` shows nothing of it."""
    wrong = ValueError(f"this is no response of {mechanism}")
    try:
        head, *pairs = (response or b"").decode().split(_KVSEP)
    except UnicodeDecodeError:
        raise wrong from None
    if pairs[-2:] != ["", ""] or not all("=" in pair for pair in pairs[:-2]):
        raise wrong
    if mechanism == OAUTHBEARER:
        # RFC 7628, 3.1: gs2-header kvsep *kvpair kvsep. Channel binding is not offered, so the flag is "n" or "y".
        found = re.fullmatch(r"[ny],(?:a=([^,]+))?,", head)
        user = _unescape(found[1] or "") if found else None
    else:
        user = head[5:] if head.startswith("user=") else None
    tokens = [pair[12:] for pair in pairs[:-2] if pair[:12].lower() == "auth=bearer "]
    if user is None or len(tokens) != 1 or not _TOKEN.fullmatch(tokens[0]):
        raise wrong
    return Bearer(user, tokens[0])


def _escape(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescape(name: str) -> str | None:
    """RFC 5801, 4: in a saslname ``=2C`` is a comma and ``=3D`` an equals sign; no other ``=`` may be there."""
    if re.search(r"=(?!2C|3D)", name):
        return None
    return name.replace("=2C", ",").replace("=3D", "=")


# -- client ------------------------------------------------------------------------------------------------------------


class _TokenClient(ClientMechanism):
    """The client sends its token, and hears yes, or why not."""

    reveals = True
    _last_word = b""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__(credentials)
        self._refused = False

    @classmethod
    def usable(cls, credentials: Credentials) -> bool:
        return credentials.token is not None

    def respond(self, challenge: bytes) -> bytes:
        if not challenge and not self._refused:
            return self.start()
        if self._refused:
            raise Fault(UNAUTHORIZED_ACCESS, f"{self.name}: the server went on after it had refused the token")
        self._refused = True
        self.complaint = _status(challenge)
        return self._last_word

    def start(self) -> bytes:
        raise NotImplementedError


def _status(challenge: bytes) -> str:
    """The status in a server's error (RFC 7628, 3.2.2); what else it says is for machines."""
    try:
        said = json.loads(challenge)
    except ValueError:  # not UTF-8, or not JSON
        return ""
    status = said.get("status") if isinstance(said, dict) else None
    return status[:_LONGEST_STATUS] if isinstance(status, str) and status.isprintable() else ""


class OAuthBearerClient(_TokenClient):
    """A token, by RFC 7628."""

    name = OAUTHBEARER
    _last_word = _KVSEP.encode()

    def start(self) -> bytes:
        held = self.credentials
        user = f"a={_escape(held.username)}" if held.username else ""
        where = [f"host={held.host}"] if held.host else []
        where += [f"port={held.port}"] if held.port else []
        return _KVSEP.join([f"n,{user},", *where, f"auth=Bearer {held.token}", "", ""]).encode()


class XOAuth2Client(_TokenClient):
    """A token, in the form that was there before RFC 7628."""

    name = XOAUTH2

    def start(self) -> bytes:
        held = self.credentials
        return f"user={held.username or ''}{_KVSEP}auth=Bearer {held.token}{_KVSEP}{_KVSEP}".encode()


# -- server ------------------------------------------------------------------------------------------------------------

AskToken = Callable[[str, "bytes | None"], Any]
"""Asked (mechanism, initial response); answers the identity, or ``None`` to refuse. What else it answers is a fault."""

_SAID = {
    OAUTHBEARER: b'{"status":"invalid_token"}',
    XOAUTH2: b'{"status":"401","schemes":"bearer"}',
}


class TokenServer(ServerMechanism):
    """A mechanism whose one response is judged outside."""

    def __init__(self, mechanism: str, ask: AskToken) -> None:
        super().__init__(lambda mechanism, username, password: None)
        self.mechanism = mechanism
        self._ask = ask

    def step(self, response: bytes | None) -> Answer:
        if response is None:
            return b""  # RFC 4422, 5: the client speaks first, and is asked to where it did not.
        if self.mechanism in TOKEN_MECHANISMS:
            try:
                read_bearer(self.mechanism, response)
            except ValueError:
                return Verdict(None, reason=f"this is no response of {self.mechanism}")
        question: Question = lambda: self._judge(response)  # noqa: E731 - the name is there for the type
        return question

    def _judge(self, response: bytes) -> Verdict:
        identity = self._ask(self.mechanism, response)
        if (wrong := _no_name(identity)) is not None:
            return Verdict(None, code=SYSTEM_ERROR, reason=f"the authenticator answered {wrong}, not a name or None")
        return Verdict(identity, parting=None if identity is not None else _SAID.get(self.mechanism))


def _no_name(identity: Any) -> str | None:
    """What an authenticator answered that is neither a name nor None."""
    if identity is None:
        return None
    if not isinstance(identity, str):
        return type(identity).__name__
    if not identity:
        return "an empty name"
    return "a name with control characters" if CONTROL.search(identity) else None
