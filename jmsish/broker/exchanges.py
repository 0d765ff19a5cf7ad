"""Exchanges: a message goes to every queue whose binding matches it, one copy to each, all or none.

Theory of operation.  The bindings of an exchange are one immutable :class:`Table`, replaced as a whole: who routes
takes the table once, and who binds makes another one (:class:`Changes`) that shares nearly all with it. A copy is no
copy: all queues hold the same octets. Exchanges can be bound to exchanges; then a message is followed all the way
(:class:`Way`) before any queue gets it. One exchange is in :mod:`~jmsish.broker.exchange`; here are all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from jmsish.broker.bindings import DIRECT, FANOUT, HEADERS, TOPIC, TYPES, Binding, identity
from jmsish.broker.exchange import DISCARD, REJECT, RELEASE, Exchange, Nameless, Publisher
from jmsish.broker.names import MANAGEMENT, check_text
from jmsish.broker.policy import ExchangeSettings, near_miss
from jmsish.broker.queues import Queue
from jmsish.broker.routing import Routed
from jmsish.broker.tables import TABLES
from jmsish.errors import InvalidDestinationError

AMQ_TOPIC: Final = "amq.topic"
PREDECLARED: Final[Mapping[str, str]] = {
    "amq.direct": DIRECT, AMQ_TOPIC: TOPIC, "amq.fanout": FANOUT, "amq.match": HEADERS
}  # fmt: skip
"""The exchanges that are always there, with their types."""
RESERVED: Final = ("amq.", "qpid.", "jmsish.")
"""How the names begin that are the broker's: nobody makes or deletes an exchange of such a name."""
NAMELESS: Final = ""
"""The name of the exchange in which every queue is bound by its own name."""

DEFAULT_EXCHANGE_SETTINGS: Final = ExchangeSettings()
_DURABLE: Final = ExchangeSettings(durable=True)


class Exchanges:
    """All exchanges by name, and the bindings between what the broker has."""

    def __init__(self, queues: Mapping[str, Queue] | None = None) -> None:
        self._by_name: dict[str, Exchange] = {}
        self._where_bound: dict[str, dict[Exchange, None]] = {}
        """By the identities of queues and exchanges, the exchanges that have bindings of them."""
        self.held: dict[Exchange, None] = {}
        """Those that somebody holds frozen, and may be about to bind what is not bound yet."""
        self.queues: Mapping[str, Queue] = {} if queues is None else queues
        self.nameless = Nameless(NAMELESS, DIRECT, _DURABLE, self)
        for name, type in PREDECLARED.items():
            self.make(name, type, _DURABLE)

    @property
    def topic(self) -> Exchange:
        """``amq.topic``, whose keys are the topics that have no exchange of their own."""
        return self._by_name[AMQ_TOPIC]

    def get(self, name: str) -> Exchange | None:
        """The exchange of a name, the nameless one excepted, which is no address."""
        return self._by_name.get(name)

    def named(self, name: str) -> Exchange:
        """The exchange of a name; ``InvalidDestinationError`` where there is none."""
        exchange = self._by_name.get(name) if isinstance(name, str) else None
        if exchange is None:
            raise InvalidDestinationError(f"there is no exchange {name!r}")
        return exchange

    def queue(self, name: str) -> Queue:
        """The queue of a name; ``InvalidDestinationError`` where there is none."""
        queue = self.queues.get(name) if isinstance(name, str) else None
        if queue is None:
            raise InvalidDestinationError(f"there is no queue {name!r}")
        return queue

    def __iter__(self) -> Iterator[Exchange]:
        return iter(self._by_name.values())

    def declare(self, name: str, type: str, settings: Mapping[str, Any] | None = None) -> Exchange:
        """The exchange of that name, made now if there is none; one that is there takes over the settings given.

        ``ValueError`` or ``TypeError`` for a wrong name, type or setting, and where one is there of another type.
        """
        where = f"the exchange {name!r}"
        check_type(type, where)
        existing = self._by_name.get(name) if isinstance(name, str) else None
        if existing is None:
            check_name(name)
            return self.make(name, type, ExchangeSettings.from_mapping(settings or {}, where))
        if existing.type != type:
            raise ValueError(f"{where} is there already, and its type is {existing.type!r}, not {type!r}")
        if settings:
            changed = ExchangeSettings.from_mapping(settings, where, existing.settings)
            if name in PREDECLARED and (changed.auto_delete or not changed.durable):
                raise ValueError(f"{where} is always there: it is durable, and never deleted")
            existing.change(changed)
        return existing

    def make(
        self, name: str, type: str, settings: ExchangeSettings = DEFAULT_EXCHANGE_SETTINGS, owner: object = None
    ) -> Exchange:
        """A new exchange, whatever its name."""
        exchange = Exchange(name, type, settings, self, owner)
        self._by_name[name] = exchange
        return exchange

    def check_deletable(self, exchange: Exchange) -> None:
        """``ValueError`` where an exchange has to stay."""
        if exchange.name in PREDECLARED or exchange is self.nameless:
            raise ValueError(
                f"the exchange {exchange.name!r} is always there; only those that were declared can be deleted"
            )
        if exchange.alternate_of:
            users = ", ".join(repr(each.name) for each in exchange.alternate_of)
            raise ValueError(f"the exchange {exchange.name!r} is the alternate of {users}")

    def remove(self, exchange: Exchange) -> None:
        """The exchange goes; those who publish to it are told. What was bound to it is the caller's affair."""
        if self._by_name.get(exchange.name) is exchange:
            del self._by_name[exchange.name]
        exchange.deleted = True
        bounds = list(exchange.table)
        targets = dict.fromkeys(bound.target for bound in bounds)
        for bound in bounds:
            bound.retire()
        exchange.table = TABLES[exchange.type]()
        self.bound(exchange, targets)
        for other in list(exchange.alternate_of):
            other.change(replace(other.settings, alternate=None))
        if exchange.alternate is not None:
            exchange.alternate.serve_no_more(exchange)
        self.forget(exchange)
        for publisher in list(exchange.publishers):
            publisher.lost_exchange()

    def forget(self, target: Queue | Exchange) -> None:
        """A queue or an exchange goes, and with it its bindings everywhere."""
        for exchange in (*self._where_bound.pop(identity(target), ()), *self.held):
            exchange.unbind_all(identity(target))

    def bound(self, exchange: Exchange, targets: Iterable[str]) -> None:
        """Keep in mind where targets are bound, after a change of an exchange."""
        for target in targets:
            if exchange.table.of(target):
                self._where_bound.setdefault(target, {})[exchange] = None
                continue
            where = self._where_bound.get(target)
            if where is not None:
                where.pop(exchange, None)
                if not where:
                    del self._where_bound[target]

    def perhaps_unused(self, exchange: Exchange) -> None:
        """The last binding or the last link has gone: an exchange that is deleted with its last user goes."""
        if exchange.settings.auto_delete and not exchange.deleted and not exchange.is_used:
            self.remove(exchange)


def check_type(type: object, where: str) -> None:
    """One of the four types; ``ValueError`` says so."""
    if type not in TYPES:
        known = ", ".join(map(repr, TYPES))
        meant = near_miss(type, TYPES) if isinstance(type, str) else ""
        hint = f" ({meant})" if meant.startswith("did") else ""  # which there are is said before
        raise ValueError(f"{where}: the type must be one of {known}, not {type!r}{hint}")


def check_name(name: object) -> None:
    """A name that an exchange may be given; ``ValueError`` says what is wrong with it."""
    check_text(name, "an exchange")
    assert isinstance(name, str)
    if name.startswith(RESERVED):
        raise ValueError(
            f"the name {name!r} is reserved: those that begin with 'amq.', 'qpid.' or 'jmsish.' are the broker's"
        )
    if name == MANAGEMENT:
        raise ValueError(f"{name!r} is the management node, and no name for an exchange")
    if "/" in name:
        raise ValueError(f"the name {name!r} has a '/', which in an address divides the exchange from the key")


__all__ = [
    "AMQ_TOPIC",
    "DIRECT",
    "DISCARD",
    "FANOUT",
    "HEADERS",
    "NAMELESS",
    "PREDECLARED",
    "REJECT",
    "RELEASE",
    "TOPIC",
    "Binding",
    "Exchange",
    "Exchanges",
    "Nameless",
    "Publisher",
    "Routed",
    "check_name",
    "check_type",
]
