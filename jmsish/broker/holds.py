"""Holds: an exchange that is held, the freeze that holds it, and the changes of others that wait (see `freezes`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, ClassVar

from jmsish.broker.gates import FREEZER, WRITER, Gate, Waiter
from jmsish.errors import FreezeExpiredError, IllegalStateError, InvalidDestinationError

if TYPE_CHECKING:
    from jmsish.broker.changes import Changes, Mark
    from jmsish.broker.exchanges import Exchange
    from jmsish.broker.freezes import Freezes

WAITING, HOLDING, OVER = range(3)


class Hold:
    """One exchange that is held: by which freeze, how often, and what is to become of its bindings."""

    __slots__ = ("_changes", "checked", "depth", "exchange", "freeze", "gone", "lost")

    def __init__(self, exchange: Exchange, freeze: Freeze) -> None:
        self.exchange = exchange
        self.freeze = freeze
        self.depth = 1
        self._changes: Changes | None = None
        self.gone: dict[str, None] = {}
        """Queues and exchanges that were deleted meanwhile, by their identities: their bindings go with the thaw."""
        self.lost: str | None = None
        """One of them that was to be bound."""
        self.checked = False
        """Somebody looks from time to time whether the holder lives."""

    @property
    def changes(self) -> Changes:
        """What is collected."""
        if self._changes is None:
            self._changes = self.exchange.changes()
        return self._changes

    def target_gone(self, target: str) -> None:
        """A queue or exchange was deleted that may be bound here."""
        self.gone[target] = None
        if self.changes.unbind_gone(target):
            self.lost = target

    def back_to(self, mark: Mark) -> None:
        """Forget what was collected since."""
        self.changes.back_to(mark)
        self.lost = None
        for target in self.gone:
            if self.changes.unbind_gone(target):
                self.lost = target

    def forget(self) -> None:
        """Nothing of what was collected is to be; what is gone is gone."""
        self._changes = None
        for target in self.gone:
            self.changes.unbind_gone(target)


class Freeze(Waiter):
    """A freeze of some exchanges, from the wish to the end."""

    __slots__ = (
        "_freezes",
        "_left",
        "alive",
        "granted",
        "holds",
        "inner",
        "max_hold",
        "names",
        "owner",
        "state",
        "why",
    )
    kind: ClassVar[int] = FREEZER

    def __init__(
        self,
        freezes: Freezes,
        exchanges: list[Exchange],
        owner: object,
        max_hold: float,
        alive: Callable[[], bool] | None,
    ) -> None:
        super().__init__()
        self._freezes = freezes
        self._left = exchanges
        self.names = tuple(exchange.name for exchange in exchanges)
        self.owner = owner
        self.max_hold = max_hold
        self.alive = alive
        """Tells whether the owner lives, where nobody would tell of its end."""
        self.state = WAITING
        self.granted: Future[None] = Future()
        """Done when all are held, or when it is clear that they will not be."""
        self.granted.set_running_or_notify_cancel()  # who stops waiting for it cannot take it from us
        self.holds: list[Hold] = []
        self.inner: list[tuple[Hold, Mark]] = []
        """Those that the owner held already, and what it had collected before."""
        self.why = ""
        """Why it is over, where its holder did not end it."""

    def __repr__(self) -> str:
        return f"<Freeze of {', '.join(self.names)} {('waiting', 'holding', 'over')[self.state]}>"

    @property
    def is_held(self) -> bool:
        """Whether it was granted and is not over."""
        return self.state == HOLDING

    def hold_of(self, name: str) -> Hold:
        """What is collected for one of its exchanges. FreezeExpiredError, or IllegalStateError while it holds none."""
        if self.state != HOLDING:
            raise self.lifted() if self.why else IllegalStateError("the exchange is not frozen (any more)")
        for hold in self._all():
            if hold.exchange.name == name:
                return hold
        if name in self.names:
            raise InvalidDestinationError(f"the exchange {name!r} was deleted meanwhile, and is not frozen any more")
        raise ValueError(f"{name!r} is not among the exchanges of this freeze: {', '.join(map(repr, self.names))}")

    def _all(self) -> Iterator[Hold]:
        yield from self.holds
        for hold, _ in self.inner:
            yield hold

    def lifted(self) -> FreezeExpiredError:
        """What its holder is told."""
        names = ", ".join(map(repr, self.names))
        return FreezeExpiredError(f"the freeze of {names} was lifted, and nothing was changed: {self.why}")

    def proceed(self) -> None:
        """Take one gate after the other, as far as they are open."""
        while self._left:
            exchange = self._left[0]
            if exchange.deleted:
                return self._freezes.fail(self, _gone(exchange))
            hold = exchange.gate.hold
            if isinstance(hold, Hold) and hold.freeze.owner == self.owner:
                hold.depth += 1
                self.inner.append((hold, hold.changes.mark()))
                self._left.pop(0)
            elif exchange.gate.come(self):
                self._take()
            else:
                return self._freezes.waits(exchange.gate)
        self._freezes.grant(self)

    def go(self) -> None:
        exchange = self._left[0]
        self._take()
        if exchange.deleted:
            self._freezes.fail(self, _gone(exchange))
        else:
            self.proceed()

    def _take(self) -> None:
        exchange = self._left.pop(0)
        hold = exchange.gate.hold = Hold(exchange, self)
        exchange.home.held[exchange] = None
        self.holds.append(hold)

    def stop(self) -> None:
        self._freezes.fail(self, IllegalStateError("the broker stops"))

    def on_time(self, now: float) -> None:
        """The time is over, for waiting or for holding."""
        if self.state == HOLDING:
            self._freezes.expire(self, now)


class Patience:
    """The time within which something has to come about."""

    __slots__ = ("_give_up",)

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up

    def on_time(self, now: float) -> None:
        self._give_up()


class Check:
    """Looks after a holder that may have died unseen, as long as somebody waits for it."""

    __slots__ = ("_freezes", "_gate", "_hold")

    def __init__(self, freezes: Freezes, gate: Gate, hold: Hold) -> None:
        self._freezes = freezes
        self._gate = gate
        self._hold = hold

    def on_time(self, now: float) -> None:
        if self._gate.hold is self._hold:
            self._hold.checked = False
            if self._gate.waiting:
                self._freezes.waits(self._gate)


class Change(Waiter):
    """A change of bindings, live: done when the gate lets it in."""

    __slots__ = ("_action", "done")
    kind: ClassVar[int] = WRITER

    def __init__(self, action: Callable[[], Any]) -> None:
        super().__init__()
        self._action = action
        self.done: Future[Any] = Future()
        self.done.set_running_or_notify_cancel()

    def go(self) -> None:
        try:
            result = self._action()
        except Exception as error:
            self.done.set_exception(error)
        else:
            self.done.set_result(result)

    def fail(self, error: Exception) -> None:
        """It is not to be done, unless it is done already."""
        self.give_up()
        if not self.done.done():
            self.done.set_exception(error)

    def stop(self) -> None:
        self.fail(IllegalStateError("the broker stops"))


def _gone(exchange: Exchange) -> InvalidDestinationError:
    return InvalidDestinationError(f"the exchange {exchange.name!r} was deleted while the freeze waited for it")
