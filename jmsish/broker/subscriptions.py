"""Subscriptions: queues bound to an exchange, who may read them, and when they go.

A subscription is known by its name and the client id, if it is to outlive its link or to be shared; its link says both
(M62): the name is that of the link, for a shared one what stands before the first ``|``, and the client id is the
container-id, unless the capability ``global`` says that all share it. What its source says of expiry decides how long
it lives (Part 3, 3.5.6): ``never`` is a durable subscription, anything else goes with link, session or connection.
A link that is closed, not merely detached, takes the subscription along.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote

from jmsish.broker.exchanges import AMQ_TOPIC, Exchange
from jmsish.broker.filters import DEFAULT_KEYS, Wanted
from jmsish.broker.gates import GateClosed
from jmsish.broker.groups import Selects
from jmsish.broker.link_policy import check_superseded
from jmsish.broker.names import SUBSCRIPTION
from jmsish.broker.queue_home import QueueHome
from jmsish.broker.queues import Queue
from jmsish.broker.refusals import NOT_ALLOWED, PRECONDITION_FAILED, RESOURCE_LOCKED, UNAUTHORIZED_ACCESS, Refusal
from jmsish.engine.outcomes import AmqpError, Source

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.router import Router
    from jmsish.broker.timers import Timed
    from jmsish.engine.link import Link

NEVER: Final = "never"
SESSION_END: Final = "session-end"
CONNECTION_CLOSE: Final = "connection-close"


class Home(QueueHome, Protocol):
    """What queues and subscriptions ask of the broker they live in."""

    def remind(self, due: float, timed: Timed) -> None:
        """Call ``timed.on_time`` then."""

    def dismiss(self, timed: Timed) -> None:
        """Never call it again."""

    def next_number(self) -> int:
        """A number not used before."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a subscription collects. Other content under the same name is another subscription (jms rules 131, 132)."""

    exchange: Exchange
    wanted: tuple[Wanted, ...]
    """Its bindings: what the address says, what a filter says, or else what is usual for the exchange."""
    selector: str | None = None
    no_local: bool = False

    @property
    def topic(self) -> str:
        """The topic, in the shortest of its spellings."""
        name, key = self.exchange.name, self.wanted[0].key
        if name == AMQ_TOPIC:
            return key
        return name if key == DEFAULT_KEYS[self.exchange.type] else f"{name}/{key}"

    def __str__(self) -> str:
        first, *others = self.wanted
        more = [first, *others] if first.arguments is not None else others
        also = f" with {', '.join(map(str, more))}" if more else ""
        selected = "" if self.selector is None else f" where {self.selector}"
        return f"{self.topic!r}{also}{selected}{' without what its own client publishes' * self.no_local}"


class Subscription:
    """One subscription and its queue."""

    __slots__ = (
        "client_id", "content", "due", "durable", "holder", "home", "name", "origin", "queue", "selects", "shared",
        "source", "timeout",
    )  # fmt: skip

    def __init__(self, home: Subscriptions, name: str, client_id: str | None, content: Content, queue: Queue) -> None:
        self.home = home
        self.name = name
        self.client_id = client_id
        """None: all clients share it."""
        self.content = content
        self.queue = queue
        self.durable = self.shared = False
        self.selects: Selects | None = None
        self.origin: object = None
        """The connection it belongs to, where it does not outlive it."""
        self.holder: object = None
        """The session or connection whose end is its end."""
        self.source = Source()
        """As granted last: the answer to who asks for it by name alone (M69)."""
        self.timeout = 0
        """Seconds that it stays when its life is over, for somebody to come back."""
        self.due = 0.0
        """When they are over; 0 while it lives."""

    def accepts(self, payload: bytes, count: int, origin: object) -> bool:
        """Whether a message is added: "filters what is added to it" (jms rule 140)."""
        if self.content.no_local and self._is_local(origin):
            return False
        return self.selects is None or self.selects(payload, count)

    def _is_local(self, origin: object) -> bool:
        """By connection (jms rule 124), or by client id where it outlives connections (jms rule 125)."""
        if origin is self.origin:
            return True
        return self.durable and self.client_id is not None and getattr(origin, "container_id", None) == self.client_id

    @property
    def is_active(self) -> bool:
        """Somebody reads it; who only browses its queue, as tools do, is in nobody's way."""
        return self._has_readers(1)

    def _has_readers(self, count: int) -> bool:
        """So many at least."""
        readers = (consumer for consumer in self.queue.consumers.values() if not consumer.copies)
        return sum(1 for _ in islice(readers, count)) == count

    def detached(self, closed: bool) -> None:
        """One of its links has gone; it is out of the queue's consumers already."""
        self.home.left(self, closed)

    def refuses_close(self) -> AmqpError | None:
        """Why the subscription does not end with a link that is closed, which is to be told; None where it may."""
        if not (self.shared and self.durable and self._has_readers(2)):
            return None
        description = f"the subscription {self.name!r} goes on: it has other consumers (detach without a close)"
        return AmqpError(RESOURCE_LOCKED, description)

    def on_time(self, now: float) -> None:
        """The time is over that it was to stay for, unless somebody came back."""
        if self.due and self.due <= now and not self.queue.deleted:
            self.home.delete(self)


class Subscriptions:
    """All subscriptions, by the names of their queues."""

    def __init__(self, router: Router, home: Home) -> None:
        self._router = router
        self._home = home
        self._by_queue: dict[str, Subscription] = {}
        self._held: dict[object, dict[Subscription, None]] = {}

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._by_queue.values())

    def of(self, queue: Queue) -> Subscription | None:
        return self._by_queue.get(queue.name)

    # --- attached

    def subscribe(
        self, connection: ServerConnection, link: Link, source: Source, content: Content, selects: Selects | None
    ) -> Subscription:
        """The subscription that a receiver means, made if it is not there, made anew if it was another and idle.

        GateClosed, and nothing is done, where a binding has to be made and the exchange is frozen.
        """
        shared = "shared" in source.capabilities
        durable = source.expiry_policy == NEVER
        client_id = None if shared and "global" in source.capabilities else connection.container_id
        name = link.name.partition("|")[0] if shared else link.name
        queue_name = _queue_name(name, client_id, durable=durable, shared=shared)
        subscription = self._by_queue.get(queue_name)
        if subscription is not None and subscription.is_active and not (durable or shared):
            # A link of this name on another connection of the container: the two have nothing in common.
            queue_name = f"{queue_name}/{self._home.next_number()}"
            subscription = None
        superseded = subscription
        if subscription is not None and not self._admits(subscription, content, shared):
            subscription = None
        if subscription is None:
            if superseded is not None:
                check_superseded(connection, name, superseded.content)
            self._check_makeable(connection, name, durable, superseded)
            if content.exchange.gate.closed:
                raise GateClosed(content.exchange.gate, content.exchange)
            if superseded is not None:
                self.delete(superseded)
            subscription = self._make(queue_name, name, client_id, content, selects)
            subscription.durable, subscription.shared = durable, shared
        subscription.source = source
        if not durable:
            self._revive(subscription, connection, link, source)
        return subscription

    def _check_makeable(
        self, connection: ServerConnection, name: str, durable: bool, superseded: Subscription | None
    ) -> None:
        """A subscription that stays is a queue and its binding, which are created and bound; one that goes with its
        links is a way to receive."""
        grant = connection.grant
        if durable and not (grant.may_create and grant.may_bind):
            missing = "may_bind" if grant.may_create else "may_create"
            raise Refusal(UNAUTHORIZED_ACCESS, f"the durable subscription {name!r} may not be made ({missing})")
        if superseded is None:
            self._router.check_room()

    def _revive(self, subscription: Subscription, connection: ServerConnection, link: Link, source: Source) -> None:
        """Whose it is from now on, and with whom it ends."""
        self._release(subscription)
        subscription.timeout = source.timeout
        if subscription.due:
            subscription.due = 0.0
            self._home.dismiss(subscription)
        if subscription.shared:
            return
        subscription.origin = connection
        if source.expiry_policy == SESSION_END:
            subscription.holder = link.session
        elif source.expiry_policy == CONNECTION_CLOSE:
            subscription.holder = connection
        if subscription.holder is not None:
            self._held.setdefault(subscription.holder, {})[subscription] = None

    def _admits(self, existing: Subscription, content: Content, shared: bool) -> bool:
        """Whether a further link may read what is there; False where it is to be made anew. Refusal where neither."""
        if existing.shared != shared:
            # "may not have the same name and client id: the later call raises" (jms rule 134), idle or not.
            kind = "shared" if existing.shared else "not shared"
            raise Refusal(PRECONDITION_FAILED, f"the subscription {existing.name!r} is there already and is {kind}")
        if existing.is_active and not shared:
            raise Refusal(RESOURCE_LOCKED, f"the subscription {existing.name!r} has a consumer, and is not shared")
        if existing.content == content:
            return True
        if existing.is_active:
            # jms rule 133
            description = f"the subscription {existing.name!r} is in use for {existing.content}, not for {content}"
            raise Refusal(PRECONDITION_FAILED, description)
        return False

    def _make(
        self, queue_name: str, name: str, client_id: str | None, content: Content, selects: Selects | None
    ) -> Subscription:
        queue = self._router.make_reserved(queue_name)
        subscription = self._by_queue[queue_name] = Subscription(self, name, client_id, content, queue)
        subscription.selects = selects
        accepts = None if selects is None and not content.no_local else subscription.accepts
        changes = content.exchange.changes()
        for wanted in content.wanted:
            changes.bind(queue, wanted.key, accepts, wanted.arguments)
        changes.put_in_force()
        return subscription

    # --- looked up by name (M68, M69)

    def find(self, name: str, container_id: str, capabilities: Sequence[str]) -> Subscription | None:
        """The durable subscription that a link name means, by the names that its links have."""
        plain = name.partition("|")[0]
        if "global" in capabilities:
            return self._by_queue.get(_queue_name(plain, None, durable=True, shared=True))
        for each in (name, plain):
            found = self._by_queue.get(_queue_name(each, container_id, durable=True, shared=True))
            if found is not None:
                return found
        return None

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription, as jms rule 137 allows it; Refusal otherwise."""
        if subscription.is_active:
            raise Refusal(RESOURCE_LOCKED, f"the subscription {subscription.name!r} has a consumer: close it first")
        if subscription.queue.acquired:
            raise Refusal(
                RESOURCE_LOCKED,
                f"{subscription.queue.acquired} messages of the subscription {subscription.name!r} "
                "are not acknowledged, or belong to a transaction that is open",
            )
        self.delete(subscription)

    # --- gone

    def left(self, subscription: Subscription, closed: bool) -> None:
        """A link has gone: the last of what is to go with its link takes it along, and a close anything."""
        if subscription.is_active or subscription.queue.deleted:
            return
        if closed:
            self.delete(subscription)
        elif not subscription.durable and subscription.holder is None and not subscription.due:
            self._expire(subscription)

    def ended(self, holder: object) -> None:
        """A session or connection is over, and so are the subscriptions that were to live as long."""
        for subscription in self._held.pop(holder, ()):
            subscription.holder = None
            if not subscription.queue.deleted:
                self._expire(subscription)

    def _expire(self, subscription: Subscription) -> None:
        """ "The expiry-policy ... will be retained for timeout seconds" after its event (3.5.3)."""
        if subscription.timeout:
            subscription.due = self._home.now() + subscription.timeout
            self._home.remind(subscription.due, subscription)
        else:
            self.delete(subscription)

    def delete(self, subscription: Subscription) -> None:
        """The subscription, its binding and what it collected go; who reads it is detached."""
        self._router.delete(subscription.queue)

    def forget(self, queue: Queue) -> None:
        """A queue was deleted, by whomever."""
        subscription = self._by_queue.pop(queue.name, None)
        if subscription is not None:
            self._release(subscription)
            self._home.dismiss(subscription)

    def _release(self, subscription: Subscription) -> None:
        holder, subscription.holder = subscription.holder, None
        held = self._held.get(holder)
        if held is not None:
            held.pop(subscription, None)
            if not held:
                del self._held[holder]


class Lookup:
    """A link that only asked for a subscription by its name (M68). Closed, it ends it; detached, it leaves it."""

    __slots__ = ("_link", "_subscription", "made", "over")

    def __init__(self, link: Link, subscription: Subscription) -> None:
        self._link = link
        self._subscription = subscription
        self.made = None
        self.over = False

    def flowed(self) -> None:
        """Credit: but nobody comes to read by asking what there is."""
        if self._link.credit > 0:
            self.over = True
            self._link.detach(closed=True, error=AmqpError(NOT_ALLOWED, "to receive, attach with a source"))

    def detached(self, closed: bool) -> None:
        """The peer detached, and if it closed the link it unsubscribes."""
        self.over = True
        error = None
        # A link that was stolen was not closed by its peer, who may be about to read the very subscription.
        if closed and self._link.fault is None and not self._subscription.queue.deleted:
            try:
                self._subscription.home.unsubscribe(self._subscription)
            except Refusal as refusal:
                error = refusal.error
        self._link.detach(closed=closed, error=error)

    def lost(self) -> None:
        """Session or connection are over."""
        self.over = True


def _queue_name(name: str, client_id: str | None, *, durable: bool, shared: bool) -> str:
    """The name of a subscription's queue: one name for each identity, readable, and never two alike.

    Shared and unshared durable subscriptions have one space of names (jms rule 134), shared volatile ones another
    (jms rule 135), and what goes with its link a third (jms rule 123).
    """
    kind = "durable" if durable else "shared" if shared else "volatile"
    if client_id is None:
        return f"{SUBSCRIPTION}{kind}.global/{quote(name, safe='')}"
    return f"{SUBSCRIPTION}{kind}/{quote(client_id, safe='')}/{quote(name, safe='')}"
