"""The node ``$cbs`` of Azure Service Bus: takes tokens (``put-token``), so that a client that puts them can be tried.

The token is read and not verified: there is nobody here who could. What has run out, or is of no kind, is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.management_links import ManagementNode
from jmsish.engine.codec import AMQP_VALUE, Header, encode_message
from jmsish.engine.received import ReceivedMessage
from jmsish.engine.values import DecodeError
from jmsish.profiles.shared_access import SAS_TOKEN, WEB_TOKEN, expiry_of
from jmsish.types import Int

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.connection import ServerConnection

CLAIMS: Final = "$cbs"
_MESSAGE_ID, _REPLY_TO = 0, 4
_ACCEPTED, _BAD_REQUEST, _UNAUTHORIZED = 202, 400, 401


class ClaimsNode(ManagementNode):
    """Answers as the original does: 202 where a token is taken."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._now = broker.now

    def check(self, connection: ServerConnection, *, receives: bool) -> None:
        """Everybody may: it is how one logs in."""

    def answer(self, connection: ServerConnection, payload: bytes) -> tuple[str | None, bytes]:
        request = ReceivedMessage(payload)
        try:
            request.check()
        except DecodeError:
            return None, b""  # nobody can be told
        reply_to = request.property(_REPLY_TO)
        status, description = self._judge(request)
        octets = encode_message(
            header=Header(),
            properties=[None, None, reply_to, None, None, request.property(_MESSAGE_ID)],
            application_properties={"status-code": Int(status), "status-description": description},
            body=(AMQP_VALUE, None),
        )
        return (reply_to if isinstance(reply_to, str) else None), octets

    def _judge(self, request: ReceivedMessage) -> tuple[int, str]:
        said: dict[str, Any] = dict(request.application_properties())
        kind, token = request.body()
        if said.get("operation") != "put-token" or not isinstance(said.get("name"), str):
            return _BAD_REQUEST, "the request is no put-token with a name"
        if said.get("type") not in (SAS_TOKEN, WEB_TOKEN) or kind != AMQP_VALUE or not isinstance(token, str):
            return _BAD_REQUEST, f"the type of the token must be {SAS_TOKEN} or {WEB_TOKEN}"
        expiry = expiry_of(token)
        if expiry is not None and expiry <= self._now():
            return _UNAUTHORIZED, "ExpiredToken: the token has run out"
        return _ACCEPTED, "Accepted"
