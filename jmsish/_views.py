"""Queues and exchanges of an embedded broker as a program sees them: live, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from jmsish.broker.bindings import Binding
from jmsish.broker.changes import Item
from jmsish.broker.freezes import Freezes
from jmsish.broker.policy import ExchangeSettings, QueueSettings
from jmsish.broker.views import ExchangeView as BrokerExchangeView
from jmsish.broker.views import QueueView as BrokerQueueView
from jmsish.destination import Queue
from jmsish.drivers.serving import BrokerDriver
from jmsish.engine.received import ReceivedMessage
from jmsish.errors import MessageFormatError
from jmsish.freezing import Freeze, Name, change, name_of, named_items
from jmsish.message import BytesMessage, Message, read_in

_T = TypeVar("_T")


class QueueView:
    """A queue, live: each attribute says what holds at the moment it is read."""

    __slots__ = ("_driver", "_view")

    def __init__(self, driver: BrokerDriver, view: BrokerQueueView) -> None:
        self._driver = driver
        self._view = view

    def _read(self, attribute: str) -> Any:
        return self._driver.call(lambda: getattr(self._view, attribute))

    @property
    def name(self) -> str:
        return self._view.name

    @property
    def settings(self) -> QueueSettings:
        """The settings it was declared with."""
        settings: QueueSettings = self._read("settings")
        return settings

    @property
    def is_temporary(self) -> bool:
        return bool(self._read("is_temporary"))

    @property
    def is_deleted(self) -> bool:
        return bool(self._read("is_deleted"))

    @property
    def redirected_to(self) -> str | None:
        """The queue it is paired with by :meth:`~jmsish.EmbeddedBroker.redirect`, if it is."""
        name: str | None = self._read("redirected_to")
        return name

    @property
    def depth(self) -> int:
        """All messages the queue owns: available, acquired, delayed."""
        return int(self._read("depth"))

    @property
    def available(self) -> int:
        """Messages that a consumer could have now."""
        return int(self._read("available"))

    @property
    def acquired(self) -> int:
        """Messages that a consumer or a transaction holds."""
        return int(self._read("acquired"))

    @property
    def octets(self) -> int:
        """The size of all it owns."""
        return int(self._read("octets"))

    @property
    def consumer_count(self) -> int:
        return int(self._read("consumer_count"))

    @property
    def enqueued(self) -> int:
        """How many messages ever came in."""
        return int(self._read("enqueued"))

    @property
    def dequeued(self) -> int:
        """How many were taken out for good: accepted, dead-lettered, purged."""
        return int(self._read("dequeued"))

    @property
    def redelivered(self) -> int:
        """How often a message came back counted."""
        return int(self._read("redelivered"))

    @property
    def dead_lettered(self) -> int:
        """How many went to the dead-letter queue."""
        return int(self._read("dead_lettered"))

    @property
    def expired(self) -> int:
        """How many ran out of time."""
        return int(self._read("expired"))

    @property
    def dropped(self) -> int:
        """How many gave way to newer ones."""
        return int(self._read("dropped"))

    def messages(self, acquired: bool = False) -> Iterator[Message]:
        """What is available, in queue order, or all that the queue owns: as of now, as a consumer would get them.

        One that no client of ours could read is shown as a BytesMessage of all its octets.
        """
        payloads = self._driver.call(lambda: list(self._view.payloads(acquired)))
        queue = Queue(self.name)
        return (_shown(payload, queue) for payload in payloads)

    def purge(self) -> int:
        """Remove what is available; what somebody holds stays. Returns how many went."""
        return self._driver.call(self._view.purge)

    def __repr__(self) -> str:
        return shown(self, self._driver)


class ExchangeView:
    """An exchange, live: each attribute says what holds at the moment it is read.

    What changes its bindings waits while somebody else holds it frozen, at most ``timeout`` seconds, then it raises
    :class:`~jmsish.errors.FreezeTimeoutError`; from inside a freeze of one's own it raises
    :class:`~jmsish.errors.FreezeReentryError`, for there the freeze itself is to be told.
    """

    __slots__ = ("_driver", "_freezes", "_view")

    def __init__(self, driver: BrokerDriver, view: BrokerExchangeView, freezes: Freezes) -> None:
        self._driver = driver
        self._view = view
        self._freezes = freezes

    def _read(self, attribute: str) -> Any:
        return self._driver.call(lambda: getattr(self._view, attribute))

    @property
    def name(self) -> str:
        return self._view.name

    @property
    def type(self) -> str:
        """``"direct"``, ``"topic"``, ``"fanout"`` or ``"headers"``."""
        return self._view.type

    @property
    def settings(self) -> ExchangeSettings:
        """The settings in force."""
        settings: ExchangeSettings = self._read("settings")
        return settings

    @property
    def is_temporary(self) -> bool:
        return self._view.is_temporary

    @property
    def is_deleted(self) -> bool:
        return bool(self._read("is_deleted"))

    @property
    def received(self) -> int:
        """How many messages were ever sent to it."""
        return int(self._read("received"))

    @property
    def routed(self) -> int:
        """How many of them went to one queue or more."""
        return int(self._read("routed"))

    @property
    def dropped(self) -> int:
        """How many of them nobody wanted, which went unnoticed."""
        return int(self._read("dropped"))

    @property
    def rejected(self) -> int:
        """How many of them nobody wanted, which their senders were told."""
        return int(self._read("rejected"))

    @property
    def released(self) -> int:
        """How many of them nobody wanted, which their senders were given back."""
        return int(self._read("released"))

    @property
    def octets(self) -> int:
        """The size of all that was ever sent to it."""
        return int(self._read("octets"))

    def bindings(self) -> list[Binding]:
        """The bindings in force, those of subscriptions included."""
        return self._driver.call(self._view.bindings)

    def matched(self, queue: Name, key: str = "", *, kind: str = "queue") -> int:
        """How many messages a binding has wanted; ``InvalidDestinationError`` where there is none."""
        name = name_of(queue)
        return self._driver.call(lambda: self._view.matched(name, key, kind=kind))

    def freeze(self, timeout: float | None = None, max_hold: float | None = 30) -> Freeze:
        """Hold it still for a block, ``with`` or ``async with``: see :class:`~jmsish.freezing.Freeze`."""
        return Freeze(self._driver, self._freezes, (self.name,), timeout, max_hold)

    def _change(self, action: Callable[[], _T], timeout: float | None) -> _T:
        return change(self._driver, self._freezes, self._view.exchange, action, timeout)

    @property
    def is_frozen(self) -> bool:
        """Whether somebody holds it, or what waited for that is being routed."""
        return bool(self._read("is_frozen"))

    @property
    def waiting(self) -> int:
        """How many messages and changes wait until it is not frozen any more."""
        return int(self._read("waiting"))

    def bind(
        self,
        queue: Name,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        *,
        replace: bool = False,
        timeout: float | None = None,
    ) -> bool:
        """Bind a queue; False where this binding is there already and asks the same.

        ``arguments``: ``x-match`` (``"all"`` or ``"any"``) and the properties to match, for a headers exchange;
        ``x-filter-jms-selector``, a selector; ``qpid.exclusive-binding`` (``True``) in a direct exchange, for the
        place of all others with this key. A binding that is there with other arguments is changed only with
        ``replace=True``, else it is a ``ValueError``, as is an illegal key or argument;
        :class:`~jmsish.errors.InvalidDestinationError` if there is no such queue.
        """
        name = name_of(queue)
        return self._change(lambda: self._view.bind(name, key, arguments, replace=replace), timeout)

    def unbind(self, queue: Name, key: str = "", *, timeout: float | None = None) -> bool:
        """Take a binding away; False where there was none. Any spelling of a pattern will do."""
        name = name_of(queue)
        return self._change(lambda: self._view.unbind(name, key), timeout)

    def bind_exchange(
        self,
        name: Name,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        *,
        replace: bool = False,
        timeout: float | None = None,
    ) -> bool:
        """Bind another exchange, which is given what matches; loops are cut. Otherwise as :meth:`bind`."""
        other = name_of(name)
        return self._change(lambda: self._view.bind_exchange(other, key, arguments, replace=replace), timeout)

    def unbind_exchange(self, name: Name, key: str = "", *, timeout: float | None = None) -> bool:
        """Take the binding of another exchange away; False where there was none."""
        other = name_of(name)
        return self._change(lambda: self._view.unbind_exchange(other, key), timeout)

    def rebind(self, add: Iterable[Item] = (), remove: Iterable[Item] = (), *, timeout: float | None = None) -> None:
        """Take the bindings in ``remove`` away and add those in ``add``, in one step: no message sees a part of it.

        An item is a :class:`Binding`, ``(queue, key)`` or ``(queue, key, arguments)``. If one of them is wrong (no such
        queue, an illegal key or argument, nothing to remove), the error names it and nothing has changed.
        """
        items = named_items(add), named_items(remove)
        self._change(lambda: self._view.rebind(*items), timeout)

    def __repr__(self) -> str:
        return shown(self, self._driver)


def shown(view: QueueView | ExchangeView, driver: BrokerDriver) -> str:
    """A view as it is printed; from inside the broker, where nothing can be read, its name only."""
    if driver.runs_here():
        return f"<{type(view).__name__} {view.name!r}>"
    return driver.call(lambda: repr(view._view))


def _shown(payload: bytes, queue: Queue) -> Message:
    try:
        received = ReceivedMessage(payload)
        received.check()
        return read_in(received, queue)
    except (ValueError, MessageFormatError):
        return BytesMessage(payload)
