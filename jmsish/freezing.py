"""Freezing exchanges: nothing is routed by them while their bindings are changed, which happens in one step.

::

    with broker.exchange("orders").freeze(timeout=2.0) as frozen:
        frozen.unbind("old", key="eu.#")
        frozen.bind("new", key="eu.#")

The same object is used with ``with`` by threads and with ``async with`` by tasks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jmsish import _holding
from jmsish.broker.bindings import Binding
from jmsish.broker.changes import Changes, Item
from jmsish.drivers.serving import BrokerDriver
from jmsish.errors import FreezeReentryError, IllegalStateError

if TYPE_CHECKING:
    from jmsish.broker.exchanges import Exchange
    from jmsish.broker.freezes import Freezes
    from jmsish.broker.holds import Change
    from jmsish.broker.holds import Freeze as BrokerFreeze

__all__ = ["Freeze", "FrozenExchange", "change"]

_T = TypeVar("_T")


class Named(Protocol):
    """What bears a name: a view of a queue or an exchange, a `jmsish.Queue`."""

    @property
    def name(self) -> str:
        """The name."""


Name = str | Named
"""How a queue or an exchange is said: by its name, or by what bears it, such as the view that `declare_queue` gave."""


def name_of(what: Name) -> str:
    """The name that is meant.  ``TypeError`` for what is neither a text nor bears one."""
    name = what if isinstance(what, str) else getattr(what, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"a queue or an exchange is said by its name, a str, not by {type(what).__name__}")
    return name


def named_items(items: Iterable[Item]) -> list[Item]:
    """The items of a rebind, each with the name of what is bound in place of what bears it."""
    return [
        (name_of(item[0]), *item[1:]) if isinstance(item, (tuple, list)) and item else item
        for item in items
    ]  # fmt: skip


def owner() -> object:
    """Who holds what is frozen now: the task that runs, else the thread."""
    asyncio = _asyncio()
    try:
        task = None if asyncio is None else asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread() if task is None else task


def _asyncio() -> Any:
    """The module, if anybody in this process has imported it: else no loop runs, and we need not be the first."""
    return sys.modules.get("asyncio")


def _life_of(owner: Any) -> Callable[[], bool]:
    if isinstance(owner, threading.Thread):
        return owner.is_alive
    return lambda: not (owner.done() or owner.get_loop().is_closed())


def _loop_runs() -> bool:
    asyncio = _asyncio()
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def seconds(value: float | None, what: str, *, positive: bool = False) -> float | None:
    """A number of seconds, or None. ``ValueError`` or ``TypeError`` for what is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is a number of seconds or None, not {type(value).__name__}")
    if not value >= 0 or positive and not value > 0:
        raise ValueError(f"{what} must be {'more than 0' if positive else '0 or more'} seconds, not {value!r}")
    return float(value)


def _call(driver: BrokerDriver, function: Callable[[], _T]) -> _T:
    """Run something as the owner of the broker; FreezeReentryError from inside the broker itself, instead of a hang."""
    if driver.runs_here():
        raise FreezeReentryError("this was called from inside the broker, while it routes: it would wait for itself")
    return driver.call(function)


def change(
    driver: BrokerDriver, freezes: Freezes, exchange: Exchange, action: Callable[[], _T], timeout: float | None
) -> _T:
    """Change the bindings of an exchange: when its gate lets us in, at the latest after ``timeout`` seconds."""
    limit = seconds(timeout, "timeout")
    who = owner()
    _refuse_own(freezes, (exchange.name,), who)
    change: Change = _call(driver, lambda: freezes.write(exchange, action, who, timeout=limit))
    try:
        result: _T = _wait(change.done)
    except BaseException:
        if not change.done.done():
            driver.call(lambda: change.fail(IllegalStateError("nobody waits for it any more")))
        raise
    return result


def _refuse_own(freezes: Freezes, names: Iterable[str], who: object) -> None:
    """Raises FreezeReentryError in a task or a thread that was begun inside the block of a freeze, where it would wait
    for the end of that block: who waits for it there would wait for itself."""
    for freeze in _holding.HELD.get():
        name = freeze.keeps_out(freezes, names, who)
        if name is not None:
            raise FreezeReentryError(
                f"this was begun inside the block that holds the exchange {name!r}, and would wait for its end: "
                "change it by the freeze itself"
            )


def _wait(future: Future[_T]) -> _T:
    if not future.done() and _loop_runs():
        raise IllegalStateError(
            "an exchange is frozen by somebody else, and to wait for it here would stop the event loop: "
            "use 'async with' for a freeze, asyncio.to_thread for a change"
        )
    return future.result()


class FrozenExchange:
    """One exchange inside a freeze: what is changed here is in force when the block ends, and not at all if it raises.

    The calls are those of :class:`~jmsish.embedded.ExchangeView`, and raise the same.
    """

    __slots__ = ("_freeze", "name")

    def __init__(self, freeze: Freeze, name: str) -> None:
        self._freeze = freeze
        self.name = name

    def _stage(self, action: Callable[[Changes], _T]) -> _T:
        return self._freeze._stage(self.name, action)

    def bindings(self) -> list[Binding]:
        """The bindings as they will be."""
        return self._stage(lambda changes: [bound.binding for bound in changes.table])

    def bind(
        self, queue: Name, key: str = "", arguments: Mapping[str, Any] | None = None, *, replace: bool = False
    ) -> bool:
        """Bind a queue; False where this binding is there already and asks the same."""
        name = name_of(queue)
        return self._stage(
            lambda changes: changes.bind(changes.exchange.home.queue(name), key, None, arguments, replace=replace)
        )

    def unbind(self, queue: Name, key: str = "") -> bool:
        """Take a binding away; False where there was none. Any spelling of a pattern will do."""
        name = name_of(queue)
        return self._stage(lambda changes: changes.unbind(changes.exchange.home.queue(name), key))

    def bind_exchange(
        self, name: Name, key: str = "", arguments: Mapping[str, Any] | None = None, *, replace: bool = False
    ) -> bool:
        """Bind another exchange, which is given what matches."""
        other = name_of(name)
        return self._stage(
            lambda changes: changes.bind(changes.exchange.home.named(other), key, None, arguments, replace=replace)
        )

    def unbind_exchange(self, name: Name, key: str = "") -> bool:
        """Take the binding of another exchange away; False where there was none."""
        other = name_of(name)
        return self._stage(lambda changes: changes.unbind(changes.exchange.home.named(other), key))

    def rebind(self, add: Iterable[Item] = (), remove: Iterable[Item] = ()) -> None:
        """Take the bindings in ``remove`` away and add those in ``add``; if one is wrong, none of them is staged."""
        added, gone = named_items(add), named_items(remove)

        def stage(changes: Changes) -> None:
            mark = changes.mark()
            try:
                for item in gone:
                    changes.remove(item)
                for item in added:
                    changes.add(item)
            except Exception:
                changes.back_to(mark)
                raise

        self._stage(stage)

    def __repr__(self) -> str:
        return f"<FrozenExchange {self.name!r}>"


class Freeze:
    """A freeze of one exchange or of several, for one block: ``with`` in a thread, ``async with`` in a task.

    Entering waits until nobody else holds the exchanges, at most ``timeout`` seconds
    (:class:`~jmsish.errors.FreezeTimeoutError`; 0 does not wait, None waits as long as it takes). Inside, messages for
    the exchanges wait at the broker, and so do changes of their bindings by others; queues and other exchanges go on.
    The block changes the bindings of its exchange, or with several those of :meth:`exchange`. At its end all of it is
    in force in one step; if the block raises, nothing of it. After ``max_hold`` seconds (30 unless given, by the
    broker's clock) the broker thaws the exchanges by itself, and the block ends with
    :class:`~jmsish.errors.FreezeExpiredError`, nothing changed.
    """

    def __init__(
        self,
        driver: BrokerDriver,
        freezes: Freezes,
        names: Iterable[Name],
        timeout: float | None = None,
        max_hold: float | None = None,
    ) -> None:
        self._driver = driver
        self._freezes = freezes
        self._names = tuple(dict.fromkeys(map(name_of, names)))
        if not self._names:
            raise ValueError("a freeze needs the name of at least one exchange")
        self._timeout = seconds(timeout, "timeout")
        self._max_hold = seconds(max_hold, "max_hold", positive=True)
        self._freeze: BrokerFreeze | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its exchanges."""
        return self._names

    @property
    def is_held(self) -> bool:
        """Whether it holds now: the block was entered, and neither left nor lifted."""
        freeze = self._freeze
        return freeze is not None and freeze.is_held

    # The block.

    def _acquire(self) -> BrokerFreeze:
        if self._freeze is not None:
            raise IllegalStateError("a freeze is for one block: ask for another one")
        who = owner()
        _refuse_own(self._freezes, self._names, who)
        self._freeze = _call(
            self._driver,
            lambda: self._freezes.acquire(
                self._names, who, timeout=self._timeout, max_hold=self._max_hold, alive=_life_of(who)
            ),
        )
        return self._freeze

    def _cancel(self, freeze: BrokerFreeze) -> None:
        self._driver.call(lambda: self._freezes.cancel(freeze))

    def _release(self, commit: bool) -> None:
        freeze = self._freeze
        if freeze is None:
            raise IllegalStateError("this freeze was not entered")
        _holding.leave(self)
        if freeze.owner is not owner():
            self._cancel(freeze)
            raise IllegalStateError("a freeze ends where it began: in the same thread, or the same task")
        if commit or freeze.is_held:  # else the block raises already, and says why
            self._driver.call(lambda: self._freezes.release(freeze, commit=commit))

    def __enter__(self) -> Freeze:
        freeze = self._acquire()
        try:
            _wait(freeze.granted)
        except BaseException:
            self._cancel(freeze)
            raise
        _holding.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release(commit=kind is None)

    async def __aenter__(self) -> Freeze:
        freeze = self._acquire()
        try:
            await _asyncio().wrap_future(freeze.granted)
        except BaseException:
            self._cancel(freeze)
            raise
        _holding.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release(commit=kind is None)

    # Inside.

    def exchange(self, name: Name) -> FrozenExchange:
        """One of its exchanges; ``ValueError`` for others."""
        name = name_of(name)
        if name not in self._names:
            raise ValueError(f"{name!r} is not among the exchanges of this freeze: {', '.join(map(repr, self._names))}")
        return FrozenExchange(self, name)

    @property
    def _only(self) -> FrozenExchange:
        if len(self._names) > 1:
            raise ValueError("this freeze has several exchanges: say which, by its method exchange(name)")
        return FrozenExchange(self, self._names[0])

    def bindings(self) -> list[Binding]:
        """The bindings of its exchange as they will be."""
        return self._only.bindings()

    def bind(
        self, queue: Name, key: str = "", arguments: Mapping[str, Any] | None = None, *, replace: bool = False
    ) -> bool:
        """Bind a queue when the block ends; False where this binding is there already and asks the same."""
        return self._only.bind(queue, key, arguments, replace=replace)

    def unbind(self, queue: Name, key: str = "") -> bool:
        """Take a binding away when the block ends; False where there is none."""
        return self._only.unbind(queue, key)

    def bind_exchange(
        self, name: Name, key: str = "", arguments: Mapping[str, Any] | None = None, *, replace: bool = False
    ) -> bool:
        """Bind another exchange when the block ends."""
        return self._only.bind_exchange(name, key, arguments, replace=replace)

    def unbind_exchange(self, name: Name, key: str = "") -> bool:
        """Take the binding of another exchange away when the block ends; False where there is none."""
        return self._only.unbind_exchange(name, key)

    def rebind(self, add: Iterable[Item] = (), remove: Iterable[Item] = ()) -> None:
        """Take bindings away and add others when the block ends; if one is wrong, none of them."""
        self._only.rebind(add, remove)

    def _stage(self, name: str, action: Callable[[Changes], _T]) -> _T:
        freeze = self._freeze
        if freeze is None:
            raise IllegalStateError("nothing is frozen before the block is entered")
        return _call(self._driver, lambda: action(freeze.hold_of(name).changes))

    def stands_before(self, peer: str, address: str, kind: str, payload: bytes) -> str | None:
        """The exchange at which it would make a message for this address wait, at the broker ``peer``; or None."""
        freeze = self._freeze
        if freeze is None or not freeze.is_held or peer != f"vm://{self._driver.name}":
            return None
        return _call(self._driver, lambda: self._freezes.obstacle(freeze, address, kind, payload))

    def keeps_out(self, freezes: Freezes, names: Iterable[str], who: object) -> str | None:
        """Which of these exchanges, of the broker with these freezes, it holds against ``who``; None for none."""
        freeze = self._freeze
        if freeze is None or not freeze.is_held or freezes is not self._freezes or freeze.owner is who:
            return None
        return next((name for name in names if name in self._names), None)

    def __repr__(self) -> str:
        return f"<Freeze of {', '.join(self._names)}{' held' * self.is_held}>"
