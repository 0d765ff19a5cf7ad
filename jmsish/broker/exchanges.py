"""Exchanges: a message goes to every queue whose binding matches its routing key, one copy to each, all or none.

Theory of operation.  The bindings of an exchange are one immutable :class:`Table`, replaced as a whole: who routes
takes the table once, and who binds makes another one that shares nearly all with it. What a key leads to is remembered
in the table, so it is forgotten with it and never wrong. A copy is no copy: all queues hold the same octets.

An exchange knows nothing of AMQP; who brings messages has read them, and says where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from jmsish.broker.patterns import Node, PersistentMap, added, found, normalised, removed
from jmsish.broker.queues import Arrival, Queue

TOPIC: Final = "topic"
NOT_YET: Final = ("direct", "fanout", "headers")
AMQ_TOPIC: Final = "amq.topic"
PREDECLARED: Final = "amq."
"""How the names of exchanges that are always there begin; nobody makes or deletes one."""
_REMEMBERED_AT_MOST: Final = 4096
_LONGEST_REMEMBERED: Final = 256

Accepts = Callable[[bytes, int, object], bool]
"""Whether a binding wants a message: its octets, its failed deliveries so far, the connection it came on."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A queue that gets what an exchange is given for a key or a pattern; one exchange, queue and key are one binding.

    ``key`` is in its normal form: patterns that match the same keys are the same.
    """

    exchange: str
    queue: str
    key: str = ""
    arguments: Mapping[str, Any] | None = None


class Bound:
    """A binding in force: the queue itself, and what it asks of a message beyond the key."""

    __slots__ = ("accepts", "binding", "queue")

    def __init__(self, binding: Binding, queue: Queue, accepts: Accepts | None) -> None:
        self.binding = binding
        self.queue = queue
        self.accepts = accepts


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
            settings = queue.settings
            if (settings.max_messages or settings.max_octets) and not queue.deleted:
                why = queue.refusal(messages, octets)
                if why is not None:
                    return why
        return None


class Table:
    """All bindings of a topic exchange at one time; :meth:`bind` and :meth:`unbind` make another table."""

    __slots__ = ("_cache", "_queues", "_root", "size")

    def __init__(
        self,
        root: Node[Bound] | None = None,
        queues: PersistentMap[PersistentMap[Bound]] | None = None,
        size: int = 0,
    ) -> None:
        self._root: Node[Bound] = Node() if root is None else root
        self._queues: PersistentMap[PersistentMap[Bound]] = PersistentMap() if queues is None else queues
        self.size = size
        self._cache: dict[str, tuple[Routed, tuple[Bound, ...]]] = {}

    def find(self, queue: str, key: str) -> Bound | None:
        """The binding of a queue by its key in normal form."""
        keys = self._queues.get(queue)
        return None if keys is None else keys.get(key)

    def bind(self, bound: Bound) -> Table:
        """With this binding more; the caller has looked that it is new."""
        binding = bound.binding
        keys: PersistentMap[Bound] = self._queues.get(binding.queue) or PersistentMap()
        queues = self._queues.put(binding.queue, keys.put(binding.key, bound))
        return Table(added(self._root, binding.key, bound), queues, self.size + 1)

    def unbind(self, bound: Bound) -> Table:
        """Without this binding; the caller has looked that it is there."""
        binding = bound.binding
        keys = self._queues.get(binding.queue)
        assert keys is not None
        keys = keys.without(binding.key)
        queues = self._queues.put(binding.queue, keys) if keys.size else self._queues.without(binding.queue)
        return Table(removed(self._root, binding.key, bound), queues, self.size - 1)

    def of(self, queue: str) -> list[Bound]:
        """The bindings of one queue."""
        keys = self._queues.get(queue)
        return [] if keys is None else [bound for _, bound in keys.items()]

    def __iter__(self) -> Iterator[Bound]:
        for _, keys in self._queues.items():
            for _, bound in keys.items():
                yield bound

    def match(self, key: str) -> tuple[Routed, tuple[Bound, ...]]:
        """The queues that get every message of this key, and the bindings that have to look at each first."""
        matched = self._cache.get(key)
        if matched is None:
            matched = self._match(key)
            if len(key) <= _LONGEST_REMEMBERED:
                if len(self._cache) >= _REMEMBERED_AT_MOST:
                    self._cache.clear()
                self._cache[key] = matched
        return matched

    def _match(self, key: str) -> tuple[Routed, tuple[Bound, ...]]:
        every = found(self._root, key)
        # One copy for a queue, however many of its bindings match; one that asks for nothing decides for the others.
        plain = dict.fromkeys(bound.queue for bound in every if bound.accepts is None)
        choosy = tuple(bound for bound in every if bound.accepts is not None and bound.queue not in plain)
        return Routed(tuple(plain)), choosy


class Publisher(Protocol):
    """Who brings messages to an exchange."""

    def lost_exchange(self) -> None:
        """The exchange was deleted."""


class Exchange:
    """One exchange of the type topic."""

    __slots__ = ("_where_bound", "deleted", "dropped", "name", "owner", "publishers", "received", "routed", "table")
    type: Final = TOPIC

    def __init__(self, name: str, where_bound: dict[str, dict[Exchange, None]], owner: object = None) -> None:
        self.name = name
        self._where_bound = where_bound
        """By the names of queues, the exchanges that have bindings of them, or had."""
        self.owner = owner
        """The connection a temporary topic belongs to."""
        self.table = Table()
        self.deleted = False
        self.publishers: dict[Publisher, None] = {}
        self.received = self.routed = self.dropped = 0

    def route(self, key: str, payload: bytes, count: int, origin: object) -> Routed:
        """The queues that get a message; none is no error: a topic without subscribers takes what it is given."""
        routed, choosy = self.table.match(key)
        if choosy:
            queues = dict.fromkeys(routed.queues)
            for bound in choosy:
                assert bound.accepts is not None
                if bound.queue not in queues and bound.accepts(payload, count, origin):
                    queues[bound.queue] = None
            routed = Routed(tuple(queues))
        self.received += 1
        if routed.queues:
            self.routed += 1
        else:
            self.dropped += 1
        return routed

    def bind(self, queue: Queue, key: str, accepts: Accepts | None = None) -> bool:
        """Bind a queue; False where this binding is there already. ValueError for an illegal pattern."""
        pattern = normalised(key)
        if self.table.find(queue.name, pattern) is not None:
            return False
        self.table = self.table.bind(Bound(Binding(self.name, queue.name, pattern), queue, accepts))
        self._where_bound.setdefault(queue.name, {})[self] = None
        return True

    def unbind(self, queue: Queue, key: str) -> bool:
        """Take a binding away; False where there was none. Any spelling of the pattern will do."""
        bound = self.table.find(queue.name, normalised(key))
        if bound is None:
            return False
        self.table = self.table.unbind(bound)
        return True

    def unbind_all(self, queue: Queue) -> None:
        """The queue goes, and its bindings with it, in one step."""
        table = self.table
        for bound in table.of(queue.name):
            table = table.unbind(bound)
        self.table = table


class Exchanges:
    """All exchanges by name."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._by_name: dict[str, Exchange] = {}
        self._where_bound: dict[str, dict[Exchange, None]] = {}
        self.make(AMQ_TOPIC)
        for name in declared:
            self.declare(name, TOPIC)

    @property
    def topic(self) -> Exchange:
        """``amq.topic``, whose keys are the topics that have no exchange of their own."""
        return self._by_name[AMQ_TOPIC]

    def get(self, name: str) -> Exchange | None:
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Exchange]:
        return iter(self._by_name.values())

    def declare(self, name: str, type: str) -> Exchange:
        """The exchange of that name, made now if there is none."""
        check_type(type, f"the exchange {name!r}")
        existing = self._by_name.get(name) if isinstance(name, str) else None
        if existing is not None:
            return existing
        check_name(name)
        return self.make(name)

    def make(self, name: str, owner: object = None) -> Exchange:
        exchange = self._by_name[name] = Exchange(name, self._where_bound, owner)
        return exchange

    def remove(self, exchange: Exchange) -> None:
        """The exchange goes; those who publish to it are told. What was bound to it is the caller's affair."""
        if self._by_name.get(exchange.name) is exchange:
            del self._by_name[exchange.name]
        exchange.deleted = True
        exchange.table = Table()
        for publisher in list(exchange.publishers):
            publisher.lost_exchange()

    def forget(self, queue: Queue) -> None:
        """The queue goes, and with it its bindings everywhere."""
        for exchange in self._where_bound.pop(queue.name, ()):
            exchange.unbind_all(queue)


def check_type(type: object, where: str) -> None:
    """Only topics can be made; ``ValueError`` says so."""
    if type in NOT_YET:
        raise ValueError(f"{where}: the type {type!r} is not supported in this version, only 'topic' is")
    if type != TOPIC:
        raise ValueError(f"{where}: the type must be 'topic', not {type!r}")


def check_name(name: object) -> None:
    """A name that an exchange may be given; ``ValueError`` says what is wrong with it."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"an exchange needs a name, not {name!r}")
    if name.startswith((PREDECLARED, "jmsish.")):
        raise ValueError(f"the name {name!r} is reserved: those that begin with 'amq.' or 'jmsish.' are the broker's")
    if "/" in name:
        raise ValueError(f"the name {name!r} has a '/', which in an address divides the exchange from the key")
