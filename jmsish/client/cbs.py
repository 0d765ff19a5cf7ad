"""Claims-based security: a token for each address, put at the node ``$cbs`` before a link is attached to it.

Theory of operation.  A pair of links in the connection's own session carries requests (``put-token``) and their
answers, told apart by message id.  A link to an address waits until the broker has taken a token for it; what was
taken is put anew when four fifths of its time are over, so that no link ends because a token does.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from jmsish.client.answers import Answer
from jmsish.client.links import OUTCOMES
from jmsish.client.own_session import OwnLink
from jmsish.client.procedures import Interrupted, Procedure, fail, settle
from jmsish.destination import wire_name
from jmsish.engine.outcomes import ACCEPTED, Source, Target
from jmsish.engine.received import ReceivedMessage
from jmsish.engine.values import NULL, encode, encode_described, encode_list, encode_map, encode_string
from jmsish.errors import ConnectionLostError, JMSError, JMSSecurityError
from jmsish.profiles.shared_access import expiry_of, type_of

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.client.consumer import ClientConsumer
    from jmsish.client.producer import ClientProducer
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

NODE = "$cbs"
LIFETIME = 3600
"""Seconds that a token holds which is made here, or does not say how long."""
_SOON = 0.5
"""Seconds until it is looked whether the application has given a token."""
_RETRY = 10.0
"""Seconds until the application is asked again that had none."""
_RENEWED_AFTER = 0.8
"""The part of its time after which a token is put anew."""
_PROPERTIES, _APPLICATION_PROPERTIES, _VALUE = 0x73, 0x74, 0x77
_CORRELATION_ID = 5
_TAKEN = (200, 202)

_NO_TOKEN = (JMSError, TypeError, ValueError)
"""How it is told that there is none: the callable raised, or gave what is no token."""

_log = logging.getLogger("jmsish.client")

MakeToken = Callable[[str, int], str]
"""The token for an audience; the second argument is until when one that is made now shall hold."""

Fetch = Callable[[], "str | None | Awaitable[str | None]"]
"""Asks the application for a token: called outside of the ownership, as all code of its own is, where listeners run."""


@dataclass(slots=True)
class _Claim:
    """A token that the broker has taken."""

    audience: str
    renewed_at: float
    """When it is to be put anew, in monotonic seconds."""


class _Links(OwnLink):
    """One of the two links."""

    def __init__(self, node: TokenNode, link: Link) -> None:
        super().__init__(node.connection.own_session, link, "token node")
        self.node = node

    def on_credit(self) -> None:
        self.node.flush()

    def on_delivery(self, delivery: Delivery) -> None:
        delivery.link.session.disposition(delivery, ACCEPTED, True)
        self.node.answered(delivery.payload)

    def on_detached(self, error: Any) -> None:
        super().on_detached(error)
        self.node.detached(self)

    def interrupted(self, broken: JMSError) -> None:
        super().interrupted(broken)
        self.node.lost(broken)

    def fail(self, error: JMSError) -> None:
        super().fail(error)
        self.node.lost(error)


class TokenNode:
    """The tokens of one connection."""

    def __init__(self, connection: ClientConnection, make: MakeToken | None, fetch: Fetch | None = None) -> None:
        self.connection = connection
        self.make = make
        """None until a token was fetched for the first connection; each one that is made again brings its own."""
        self._fetch = fetch
        self._fetching = False
        self._fresh: str | None = None
        self._was_refused = self._complained = False
        self._ask_from = 0.0
        self._claims: dict[str, _Claim] = {}
        self._waiting: dict[str, Future[None]] = {}
        self._unsent: list[bytes] = []
        self._numbers = count(1)
        self._pair: tuple[_Links, _Links] | None = None

    def authorise(self, address: str | None) -> Procedure[None]:
        """Wait until the broker has taken a token for an address.  Raises `JMSSecurityError` where it does not."""
        audience = f"amqp://{self.connection.engine.hostname or ''}/{address or ''}"
        if audience in self._claims:
            return
        for link in self._pair or self._attach():
            yield from link.until_attached()
        answer = self._put(audience)
        yield answer, self.connection.request_deadline()

    def _attach(self) -> tuple[_Links, _Links]:
        session = self.connection.own_session.begin()
        here = self.connection.unique_name("cbs")
        sender = session.sender(
            f"{here}:requests", source=Source(address=here, outcomes=OUTCOMES), target=Target(address=NODE)
        )
        receiver = session.receiver(f"{here}:answers", source=Source(address=NODE), target=Target(address=here))
        self._here = here
        self._pair = _Links(self, sender), _Links(self, receiver)
        receiver.flow(100)
        return self._pair

    def _put(self, audience: str) -> Future[None]:
        wall = int(self.connection.clock())
        assert self.make is not None
        if self._pair is None:
            self._attach()
        token = self.make(audience, wall + LIFETIME)
        expiry = expiry_of(token) or wall + LIFETIME
        number = f"{self._here}:{next(self._numbers)}"
        answer: Future[None] = Answer()
        self._waiting[number] = answer
        # Whatever the answer is, the same is not asked again before; a refusal takes the claim away.
        after = max(expiry - wall, 1) * _RENEWED_AFTER
        self._claims[audience] = _Claim(audience, self.connection.now + after)
        answer.add_done_callback(lambda done: self._forget_refused(audience, done))
        self._unsent.append(_request(number, self._here, audience, token))
        self.flush()
        return answer

    def _forget_refused(self, audience: str, done: Future[None]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._claims.pop(audience, None)

    def flush(self) -> None:
        """Send the requests for which there is credit."""
        pair = self._pair
        while self._unsent and pair is not None and pair[0].link.credit > 0:
            pair[0].link.send(self._unsent.pop(0), settled=True)

    def answered(self, payload: bytes) -> None:
        """An answer has come: 200 or 202 is yes."""
        received = ReceivedMessage(payload)
        waiting = self._waiting.pop(str(received.property(_CORRELATION_ID)), None)
        said = received.application_properties()
        code = said.get("status-code")
        if code in _TAKEN:
            settle(waiting)
            return
        why = said.get("status-description") or f"status {code}"
        error = JMSSecurityError(f"the broker takes no token of ours: {why}", scope="link")
        fail(waiting, error)

    def tick(self, now: float, deadline: float | None) -> float | None:
        """Put anew what is due; when to come back."""
        if self.connection.offline or self.connection.closed or self.connection.failure is not None:
            return deadline
        due = [claim for claim in self._claims.values() if claim.renewed_at <= now]
        if due and self._fetch is not None and not self._has_fetched(now):
            return now + _SOON if deadline is None else min(deadline, now + _SOON)
        for claim in due:
            self._put(claim.audience).add_done_callback(_tell_refused)
        moments = [claim.renewed_at for claim in self._claims.values()]
        return min(moments if deadline is None else [deadline, *moments], default=None)

    def _has_fetched(self, now: float) -> bool:
        """Whether the application has given another token; it is asked, where it has not been."""
        fresh, self._fresh = self._fresh, None
        if fresh is not None:
            self.make, self._fetching = lambda audience, expiry: fresh, False
            return True
        if self._was_refused:
            self._was_refused = self._fetching = False
            self._ask_from = now + _RETRY
        if not self._fetching and now >= self._ask_from:
            self._fetching = True
            self.connection.calls.append((self._ask, ()))
        return False

    def _ask(self) -> Awaitable[None] | None:
        """Runs where listeners run; an asyncio connection awaits what a coroutine function gives."""
        assert self._fetch is not None
        try:
            found = self._fetch()
        except _NO_TOKEN as error:
            self._refuse(error)
            return None
        if inspect.isawaitable(found):
            return self._take_awaited(found)
        self._take(found)
        return None

    async def _take_awaited(self, found: Awaitable[str | None]) -> None:
        try:
            self._take(await found)
        except _NO_TOKEN as error:
            self._refuse(error)

    def _take(self, token: str | None) -> None:
        self._complained = False
        self._fresh = token

    def _refuse(self, error: Exception) -> None:
        if not self._complained:  # once, and not each time it is asked again
            _log.warning("no token to renew the old one with: %s", error)
        self._complained = self._was_refused = True

    def detached(self, link: _Links) -> None:
        """The broker closed a link, being idle perhaps: what it has taken holds on, and is put anew by new links."""
        if self._pair is None or link not in self._pair:
            return
        pair, self._pair = self._pair, None
        for each in pair:
            if each.link.attached:
                each.link.detach(closed=True)
        self._fail_waiting(JMSSecurityError("the broker closed its token node", scope="link"))

    def lost(self, error: JMSError) -> None:
        """The links are gone, and with them what the broker knew of us."""
        self._pair = None
        self._claims.clear()
        self._fail_waiting(error)

    def _fail_waiting(self, error: JMSError) -> None:
        self._unsent.clear()
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            fail(answer, error)


def _tell_refused(renewal: Future[None]) -> None:
    error = None if renewal.cancelled() else renewal.exception()
    if error is not None:
        _log.warning("a token was not renewed: %s", error)


def _request(number: str, here: str, audience: str, token: str) -> bytes:
    properties = encode_list([encode_string(number), NULL, NULL, NULL, encode_string(here)])
    said = {"operation": "put-token", "type": type_of(token), "name": audience}
    pairs = [part for name, value in said.items() for part in (encode_string(name), encode(value))]
    return (
        encode_described(_PROPERTIES, properties)
        + encode_described(_APPLICATION_PROPERTIES, encode_map(pairs))
        + encode_described(_VALUE, encode_string(token))
    )


def address_of(part: ClientConsumer | ClientProducer) -> str | None:
    """What a link of ours is attached to, on the wire."""
    destination = part.destination
    return None if destination is None else wire_name(destination, part.session.connection.prefixes)


def authorised_again(connection: ClientConnection, addresses: Iterable[str | None]) -> Procedure[None]:
    """The same on a new connection, for all links that are to be attached again: nothing put before counts there."""
    node = connection.cbs
    if node is not None:
        node.lost(ConnectionLostError("the connection was lost"))
        for address in addresses:
            yield from node.authorise(address)


def authorised(connection: ClientConnection, address: str | None) -> Procedure[None]:
    """Before a link is attached: nothing to wait for where the broker takes no tokens."""
    while connection.cbs is not None:
        yield from connection.until_online()
        try:
            yield from connection.cbs.authorise(address)
        except Interrupted:
            continue  # the connection went, and is made again: so is the request
        if not connection.offline:
            return
