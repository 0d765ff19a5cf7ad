"""Where a message goes: what matched, the queues that get it, and its way through exchanges bound to one another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from jmsish.broker.arrival import Arrival
from jmsish.broker.gates import GateClosed
from jmsish.broker.octets import annotated
from jmsish.types import Long

if TYPE_CHECKING:
    from jmsish.broker.bindings import Bound
    from jmsish.broker.exchanges import Exchange
    from jmsish.broker.queues import Queue

SEQUENCE: Final = "qpid.msg_sequence"
"""The message annotation that numbers the messages of an exchange."""


class Routed:
    """The queues that one message goes to. It takes messages as a queue does, for all of them at once."""

    __slots__ = ("queues",)

    def __init__(self, queues: tuple[Queue, ...]) -> None:
        self.queues = queues

    @property
    def present(self) -> tuple[Queue, ...]:
        """Those that are still there. That one has gone is no reason to refuse a message: nobody misses its copy."""
        return tuple(queue for queue in self.queues if not queue.deleted)

    def append(self, payload: bytes, priority: int) -> None:
        """A message without a past becomes visible in all of them."""
        for queue in self.queues:
            if not queue.deleted:
                queue.append(payload, priority)

    def add(self, arrival: Arrival) -> None:
        """A message becomes visible in all, now or when its time comes. Each queue counts and dates its own."""
        for queue in self.queues:
            if not queue.deleted:
                queue.add(arrival.copy())

    def refusal(self, messages: int, octets: int) -> str | None:
        """Why one of them cannot take so much more, so that none does; or None."""
        for queue in self.queues:
            if queue.limited and not queue.deleted:
                why = queue.refusal(messages, octets)
                if why is not None:
                    return why
        return None


NOWHERE: Final = Routed(())


class Match:
    """What matches in one table: bindings that take whatever matches, those that look at it first, and exchanges."""

    __slots__ = ("_plain", "bounds", "choosy", "hits", "is_easy", "lasting", "leads_on", "routed")

    def __init__(self, bounds: tuple[Bound, ...]) -> None:
        self.bounds = bounds
        self.hits = 0
        """Messages that its plain bindings have not counted yet: however many they are, a message counts once."""
        self.lasting = len(bounds) < 2
        """Its hits are told to nobody else, or to its one binding whenever that is asked: they need not be counted."""
        self._plain = tuple(bound for bound in bounds if bound.accepts is None and bound.queue is not None)
        self.choosy = tuple(
            (bound, bound.accepts, bound.queue)
            for bound in bounds
            if bound.accepts is not None and bound.queue is not None
        )
        self.leads_on = any(bound.exchange is not None for bound in bounds)
        # One copy for a queue, however many of its bindings match.
        self.routed = Routed(tuple(dict.fromkeys(bound.queue for bound in self._plain if bound.queue is not None)))
        self.is_easy = bool(self.routed.queues) and not self.choosy and not self.leads_on
        """Every message goes to these queues and to no others."""

    @classmethod
    def of(cls, bounds: Iterable[Bound]) -> Match:
        """Of the bindings that match, each once."""
        every = tuple(bounds)
        if len(every) == 1:
            # By far the most frequent: keys without end may lead to one binding, and it is the same match for all.
            (bound,) = every
            match = bound.alone
            if match is None:
                match = bound.alone = cls(every)
            return match
        return cls(every) if every else NO_MATCH

    def count(self) -> int:
        """Tell the bindings of the hits; what that costs, in bindings."""
        hits, self.hits = self.hits, 0
        if not hits:
            return 1
        for bound in self._plain:
            bound.counted += hits
        return 1 + len(self._plain)

    def chosen(self, payload: bytes, count: int, origin: object) -> Routed:
        """The queues, where some bindings have to look at the message."""
        queues = dict.fromkeys(self.routed.queues)
        for bound, accepts, queue in self.choosy:
            if accepts(payload, count, origin):
                bound.counted += 1
                queues[queue] = None
        return Routed(tuple(queues))


NO_MATCH: Final = Match(())


class Recorded(Routed):
    """The queues of a message that is numbered, or kept for those who come later, in the step in which they get it.

    So the order in a queue is that of the numbers; in a transaction they are given at the commit. A queue gets the
    number of the exchange that it had the message from, the last on the way that gives numbers.
    """

    __slots__ = ("_keepers", "_numbered")

    def __init__(
        self, queues: dict[Queue, Exchange | None], keepers: list[tuple[Exchange, str, Exchange | None]]
    ) -> None:
        super().__init__(tuple(queues))
        self._numbered = queues
        self._keepers = keepers
        """Exchanges with an initial value, each with the key, and who gives its number."""

    def append(self, payload: bytes, priority: int) -> None:
        self.add(Arrival(payload, priority))

    def add(self, arrival: Arrival) -> None:
        octets: dict[Exchange | None, bytes] = {None: arrival.payload}
        for queue, exchange in self._numbered.items():
            if not queue.deleted:
                queue.add(_with(arrival, exchange, octets))
        for keeper, key, exchange in self._keepers:
            keeper.last = (key, _with(arrival, exchange, octets))


def _with(arrival: Arrival, exchange: Exchange | None, octets: dict[Exchange | None, bytes]) -> Arrival:
    copy = arrival.copy()
    if exchange is not None:
        payload = octets.get(exchange)
        if payload is None:
            exchange.sequence += 1
            payload = octets[exchange] = annotated(arrival.payload, {SEQUENCE: Long(exchange.sequence)})
        copy.payload = payload
    return copy


class _Station:
    """An exchange on a message's way."""

    __slots__ = ("alternate", "exchange", "numberer", "onward", "reached")

    def __init__(self, exchange: Exchange, numberer: Exchange | None) -> None:
        self.exchange = exchange
        self.numberer = exchange if exchange.settings.sequence else numberer
        self.reached = False
        """Whether it has led to a queue."""
        self.onward: list[Exchange] = []
        self.alternate = exchange.alternate


class Way:
    """One message's way: all bindings are followed, and none twice with the same key, so that loops end.

    An exchange by which no queue is reached passes the message to its alternate, and that to its own. Nothing is
    counted before the end: a closed gate on the way (:class:`~jmsish.broker.gates.GateClosed`) stops the whole message.
    """

    def __init__(self, key: str, payload: bytes, count: int, origin: object) -> None:
        self._key = key
        self._message = (payload, count, origin)
        self._queues: dict[Queue, Exchange | None] = {}
        self._keepers: list[tuple[Exchange, str, Exchange | None]] = []
        self._seen: dict[tuple[Exchange, str], _Station] = {}
        self._matched: list[Bound] = []
        self._start: Exchange | None = None

    def follow(self, start: Exchange) -> None:
        """Go all the way from an exchange. (A chain may be longer than a stack of calls.)"""
        self._start = start
        stack = [self._arrive(start, None)]
        while stack:
            station = stack[-1]
            if station.onward:
                following: Exchange | None = station.onward.pop()
            else:
                following = None if station.reached else station.alternate
                station.alternate = None
            if following is not None:
                known = self._seen.get((following, self._key))
                if known is None:
                    stack.append(self._arrive(following, station.numberer))
                else:
                    station.reached |= known.reached
                continue
            stack.pop()
            if stack:
                stack[-1].reached |= station.reached

    def _arrive(self, exchange: Exchange, numberer: Exchange | None) -> _Station:
        payload, count, origin = self._message
        if exchange.gate.closed:
            raise GateClosed(exchange.gate, self._start)
        station = self._seen[exchange, self._key] = _Station(exchange, numberer)
        for bound in exchange.table.match(self._key, payload).bounds:
            if bound.accepts is not None and not bound.accepts(payload, count, origin):
                continue
            self._matched.append(bound)
            if bound.queue is not None:
                self._queues.setdefault(bound.queue, station.numberer)
                station.reached = True
            elif bound.exchange is not None:
                station.onward.append(bound.exchange)
        station.onward.sort(key=lambda each: each.name, reverse=True)
        if exchange.settings.initial_value:
            self._keepers.append((exchange, self._key, station.numberer))
        return station

    def end(self) -> Routed:
        """Where it has led to."""
        self._count()
        if self._keepers or any(exchange is not None for exchange in self._queues.values()):
            return Recorded(self._queues, self._keepers)
        return Routed(tuple(self._queues)) if self._queues else NOWHERE

    def _count(self) -> None:
        size = len(self._message[0])
        for station in self._seen.values():
            exchange = station.exchange
            exchange.octets += size
            if exchange is not self._start:
                exchange.count(station.reached)
        for bound in self._matched:
            bound.counted += 1
