"""One exchange: what it does with a message, who is bound to it, and who uses it.

It knows nothing of AMQP; who brings messages has read them, and says where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsish.broker.arrival import Arrival
from jmsish.broker.bindings import DIRECT, EXCHANGE, HEADERS, TOPIC, Accepts, Bound
from jmsish.broker.changes import Changes, Item
from jmsish.broker.gates import Gate, GateClosed, Waiter
from jmsish.broker.patterns import normalised
from jmsish.broker.policy import ExchangeSettings
from jmsish.broker.queues import Queue
from jmsish.broker.routing import NOWHERE, Routed, Way
from jmsish.broker.tables import TABLES, Table
from jmsish.errors import InvalidDestinationError

if TYPE_CHECKING:
    from jmsish.broker.exchanges import Exchanges

DISCARD: Final = "discard"
REJECT: Final = "reject"
RELEASE: Final = "release"


class Publisher(Protocol):
    """Who brings messages to an exchange."""

    def lost_exchange(self) -> None:
        """The exchange was deleted."""


class Exchange:
    """One exchange."""

    __slots__ = (
        "alternate", "alternate_of", "deleted", "dropped", "gate", "home", "last", "name", "octets", "owner",
        "publishers", "rejected", "released", "routed", "sequence", "settings", "simple", "table", "type", "unroutable",
    )  # fmt: skip
    kind: Final = EXCHANGE

    def __init__(self, name: str, type: str, settings: ExchangeSettings, home: Exchanges, owner: object = None) -> None:
        self.name = name
        self.type = type
        self.home = home
        self.owner = owner
        """The connection a temporary topic belongs to."""
        self.table: Table = TABLES[type]()
        self.gate = Gate(name)
        """Before its table: whoever routes or binds passes it, or waits there (see `freezes`)."""
        self.deleted = False
        self.publishers: dict[Publisher, None] = {}
        self.alternate: Exchange | None = None
        """Which is given what goes nowhere."""
        self.alternate_of: dict[Exchange, None] = {}
        """Whose alternate this is."""
        self.routed = self.dropped = self.rejected = self.released = self.octets = 0
        self.sequence = 0
        """The last number given, if messages are numbered."""
        self.last: tuple[str, Arrival] | None = None
        """The last message and its key, if it is kept for those who come later."""
        self.change(settings)

    def change(self, settings: ExchangeSettings) -> None:
        """Take over settings. ValueError or InvalidDestinationError where they cannot be, and nothing has changed."""
        alternate = None if settings.alternate is None else self.home.named(settings.alternate)
        if alternate is self:
            raise ValueError(f"the exchange {self.name!r} cannot be its own alternate")
        before = self.alternate
        if alternate is not None:
            alternate.alternate_of[self] = None
        self.alternate, self.settings = alternate, settings
        self.unroutable = settings.unroutable or (REJECT if self.type == DIRECT else DISCARD)
        """What becomes of a message that goes nowhere, unless its sender asked for something else."""
        self.simple = alternate is None and not (settings.sequence or settings.initial_value)
        """Nothing is done but to look into the table."""
        if not settings.initial_value:
            self.last = None
        if before is not None and before is not alternate:
            before.serve_no_more(self)

    # --- routing

    @property
    def received(self) -> int:
        """How many messages were ever sent to it, whatever became of them."""
        return self.routed + self.dropped + self.rejected + self.released

    def route(
        self, key: str, payload: bytes, count: int, origin: object, unroutable: str | None = None
    ) -> Routed:  # hot: run for every message that is published
        """The queues that get a message: none if it goes nowhere, which is counted as ``unroutable`` says.

        GateClosed where it has to wait, here or further on its way: then it was not counted, and is to start anew.
        """
        if self.gate.closed:
            raise GateClosed(self.gate, self)
        table = self.table
        match = table.cache.get(key)
        if match is None:
            match = table.match(key, payload)
        if match.is_easy and self.simple:
            self.octets += len(payload)
            self.routed += 1
            match.hits += 1
            return match.routed
        if match.leads_on or not self.simple:
            way = Way(key, payload, count, origin)
            way.follow(self)
            routed = way.end()
        else:
            self.octets += len(payload)
            match.hits += 1
            routed = match.chosen(payload, count, origin) if match.choosy else match.routed
        if routed.queues:
            self.routed += 1
        elif unroutable is None and self.unroutable == DISCARD:
            self.dropped += 1
        else:
            self.lose(unroutable or self.unroutable)
        return routed

    def lose(self, outcome: str) -> None:
        """Count a message that went nowhere."""
        if outcome == DISCARD:
            self.dropped += 1
        elif outcome == REJECT:
            self.rejected += 1
        else:
            self.released += 1

    def refuse(self) -> None:
        """A message that was routed goes nowhere, for one of its queues has no room: its sender is told."""
        self.routed -= 1
        self.rejected += 1

    def count(self, reached: bool) -> None:
        """Count a message that came from another exchange; if it goes nowhere from here, no sender hears of it."""
        if reached:
            self.routed += 1
        else:
            self.dropped += 1

    def reach(self, key: str) -> tuple[Queue, ...] | None:
        """All queues that messages with a key may go to; None where that is not for the key to say."""
        queues: dict[Queue, None] = {}
        seen: dict[Exchange, None] = {self: None}
        waiting: list[Exchange] = [self]
        while waiting:
            exchange = waiting.pop()
            if exchange.type == HEADERS:
                return None
            onward = [exchange.alternate]
            for bound in exchange.table.match(key, b"").bounds:
                if bound.queue is not None:
                    queues[bound.queue] = None
                onward.append(bound.exchange)
            for each in onward:
                if each is not None and each not in seen:
                    seen[each] = None
                    waiting.append(each)
        return tuple(queues)

    def send_initial(self, bound: Bound, before: Table) -> None:
        """Give the last message to a new binding that matches it, unless its queue had it already by another."""
        assert self.last is not None
        key, arrival = self.last
        payload = arrival.payload
        count = 0 if arrival.history is None else arrival.history.count
        if bound not in self.table.match(key, payload).bounds:
            return
        if bound.accepts is not None and not bound.accepts(payload, count, None):
            return
        if any(each.target == bound.target and (each.accepts is None or each.accepts(payload, count, None))
               for each in before.match(key, payload).bounds):  # fmt: skip
            return
        bound.counted += 1
        if bound.exchange is not None:
            Initial(bound.exchange, key, arrival, count).go()
        elif bound.queue is not None and bound.queue.refusal(1, len(payload)) is None:
            bound.queue.add(arrival.copy())

    # --- bindings

    def normal(self, key: str) -> str:
        """The normal form of a key of a binding. ValueError for a pattern that is illegal, TypeError for no text."""
        if not isinstance(key, str):
            raise TypeError(f"the key of a binding is a str, not {type(key).__name__}")
        return normalised(key) if self.type == TOPIC else key

    def changes(self) -> Changes:
        """To collect changes that are put in force together."""
        return Changes(self)

    def _live(self) -> Changes:
        if self.gate.closed:
            raise GateClosed(self.gate, self)
        return self.changes()

    def bind(
        self,
        target: Queue | Exchange,
        key: str = "",
        accepts: Accepts | None = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        replace: bool = False,
    ) -> bool:
        """Bind a queue or an exchange; what it says and raises is said at :meth:`Changes.bind`.

        This and the others below are writers: GateClosed where they have to wait.
        """
        changes = self._live()
        changed = changes.bind(target, key, accepts, arguments, replace=replace)
        changes.put_in_force()
        return changed

    def unbind(self, target: Queue | Exchange, key: str = "") -> bool:
        """Take a binding away; False where there was none. Any spelling of the pattern will do."""
        changes = self._live()
        changed = changes.unbind(target, key)
        changes.put_in_force()
        return changed

    def rebind(self, add: Iterable[Item] = (), remove: Iterable[Item] = ()) -> None:
        """Take bindings away and add others, by names, in one step: no message sees a part of it.

        ``ValueError``, ``TypeError`` or ``InvalidDestinationError`` names what is wrong, and nothing has changed.
        """
        changes = self._live()
        for item in remove:
            changes.remove(item)
        for item in add:
            changes.add(item)
        changes.put_in_force()

    def unbind_all(self, target: str) -> None:
        """A queue or exchange goes, and its bindings with it, in one step: at the thaw, if somebody holds this one."""
        hold = self.gate.hold
        if hold is not None:
            hold.target_gone(target)
            return
        changes = Changes(self)
        changes.unbind_all(target)
        changes.put_in_force()

    def bound(self, target: str, key: str) -> Bound:
        """The binding of a target, by its identity; ``InvalidDestinationError`` where there is none."""
        bound = self.table.find(target, self.normal(key))
        if bound is None:
            kind, _, name = target.partition(":")
            raise InvalidDestinationError(f"{self.name!r} has no binding of the {kind} {name!r} with the key {key!r}")
        self.table.count()
        return bound

    def is_durable(self, bound: Bound) -> bool:
        """Whether one of its bindings is durable: only if both ends are."""
        target = bound.queue or bound.exchange
        return self.settings.durable and target is not None and target.settings.durable

    # --- who uses it

    def join(self, publisher: Publisher) -> None:
        """A link publishes to it from now on."""
        self.publishers[publisher] = None

    def leave(self, publisher: Publisher) -> None:
        """A link publishes to it no more."""
        if self.publishers.pop(publisher, self) is None and not self.publishers:
            self.home.perhaps_unused(self)

    def serve_no_more(self, other: Exchange) -> None:
        """It is the alternate of another exchange no more."""
        self.alternate_of.pop(other, None)
        if not self.alternate_of:
            self.home.perhaps_unused(self)

    @property
    def is_used(self) -> bool:
        """Whether it has bindings, links, exchanges whose alternate it is, or somebody who waits for it or holds it."""
        return bool(self.table.size or self.publishers or self.alternate_of or self.gate.closed)


class Initial(Waiter):
    """The last message of an exchange, on its way to another one that was bound to it."""

    __slots__ = ("_arrival", "_count", "_exchange", "_key")

    def __init__(self, exchange: Exchange, key: str, arrival: Arrival, count: int) -> None:
        super().__init__()
        self._exchange = exchange
        self._key = key
        self._arrival = arrival
        self._count = count

    def go(self) -> None:
        """It goes to the queues that the other leads to, all or none; no sender is there to hear of it."""
        arrival = self._arrival
        try:
            routed = self._exchange.route(self._key, arrival.payload, self._count, None, DISCARD)
        except GateClosed as closed:
            closed.gate.come(self)
            return
        if routed.refusal(1, len(arrival.payload)) is None:
            routed.add(arrival)


class Nameless(Exchange):
    """The nameless exchange: every queue is bound by its own name, and by no other, nor can anybody else bind."""

    __slots__ = ()

    def route(self, key: str, payload: bytes, count: int, origin: object, unroutable: str | None = None) -> Routed:
        """The queue whose name is the key."""
        self.octets += len(payload)
        queue = self.home.queues.get(key)
        if queue is None:
            self.lose(unroutable or self.unroutable)
            return NOWHERE
        self.routed += 1
        return Routed((queue,))

    def reach(self, key: str) -> tuple[Queue, ...] | None:
        queue = self.home.queues.get(key)
        return () if queue is None else (queue,)

    def changes(self) -> Changes:
        raise ValueError("in the nameless exchange every queue is bound by its own name; nothing else can be")
