"""Freezes: who holds which exchanges, what is to change when the hold ends, and when it ends by itself.

Theory of operation.  A freeze takes the gates of its exchanges one after the other in the order of their names, so that
two that want the same never wait for each other. It is *staged*: what the holder changes is collected aside
(:class:`~jmsish.broker.changes.Changes`) and put in force in one step at the end, or forgotten. What others do to the
bindings meanwhile waits in the line of the gate, with the messages; only that a queue or an exchange is deleted waits
for nobody, and its bindings go when the hold is over, before anything is routed.

A hold ends by its holder, by the limit of its time, and by the holder's end: that of a connection is told (by
:meth:`Freezes.lost`), that of a thread or a task is looked for while somebody waits. Time is the broker's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsish.broker.gates import CALLED, Gate, GateClosed, Waiter
from jmsish.broker.holds import HOLDING, OVER, WAITING, Change, Check, Freeze, Hold, Patience
from jmsish.broker.intake import subject_of
from jmsish.broker.routing import Way
from jmsish.errors import (
    FreezeExpiredError,
    FreezeReentryError,
    FreezeTimeoutError,
    IllegalStateError,
    InvalidDestinationError,
)

if TYPE_CHECKING:
    from jmsish.broker.exchanges import Exchange, Exchanges
    from jmsish.broker.timers import Timed

MAX_HOLD: Final = 30.0
"""Seconds that a freeze is held at most, unless something else is said."""
CHECK: Final = 1.0
"""Seconds between two looks, while somebody waits, at whether a holder still lives that cannot say so."""
AT_A_TIME: Final = 2000
"""So many of a line are called in one step of the broker; then others have their turn."""


Lookup = Callable[[str, str], "tuple[Exchange, str | None] | None"]
"""The exchange and the key that an address and the capability of its kind mean, if they mean any."""


class Home(Protocol):
    """What freezes ask of their broker."""

    def now(self) -> float:
        """Seconds of its clock."""

    def remind(self, due: float, timed: Timed) -> None:
        """Call ``timed.on_time`` then."""

    def dismiss(self, timed: Timed) -> None:
        """Call it no more."""


class Freezes:
    """All freezes of a broker."""

    def __init__(self, exchanges: Exchanges, home: Home, lookup: Lookup) -> None:
        self._exchanges = exchanges
        self._lookup = lookup
        self._home = home
        self._of: dict[object, list[Freeze]] = {}
        """By their owners, those that wait or hold."""
        self.unfinished: list[Gate] = []
        """Gates with a line that was not called to its end, for the sake of all others."""

    # --- a freeze begins

    def acquire(
        self,
        names: Iterable[str],
        owner: object,
        *,
        timeout: float | None = None,
        max_hold: float | None = None,
        alive: Callable[[], bool] | None = None,
    ) -> Freeze:
        """A freeze for ``owner``; ``granted`` says when it holds, or how it failed: FreezeTimeoutError after
        ``timeout`` seconds (0: unless it holds at once). ValueError and InvalidDestinationError for wrong exchanges,
        FreezeReentryError where it would wait for its own end.
        """
        named = {name: self._exchanges.named(name) for name in names}
        if not named:
            raise ValueError("a freeze needs at least one exchange")
        exchanges = [named[name] for name in sorted(named)]
        freeze = Freeze(self, exchanges, owner, MAX_HOLD if max_hold is None else max_hold, alive)
        self._of.setdefault(owner, []).append(freeze)
        freeze.proceed()
        if freeze.state == WAITING:
            if self._waits_for_itself(freeze):
                at = "" if freeze.gate is None else freeze.gate.name
                why = f"who holds {at!r} waits for what is held here: both would wait for ever"
                self.fail(freeze, FreezeReentryError(why))
                raise FreezeReentryError(why)  # another: what is raised refers to this frame, and so to the freeze
            self._limit(timeout, lambda: self.fail(freeze, _late(freeze.names, timeout)))
        return freeze

    def _limit(self, timeout: float | None, give_up: Callable[[], None]) -> None:
        if timeout is None:
            return
        if timeout <= 0:
            give_up()
        else:
            self._home.remind(self._home.now() + timeout, Patience(give_up))

    def _waits_for_itself(self, freeze: Freeze) -> bool:
        """Whether the holder of the gate it waits at waits, perhaps by others, for what its own owner holds.

        Or whether it stands behind another freeze of its owner, which begins no block while this one waits (as where
        a signal freezes in a thread that waits for the same already).
        """
        if any(each is not freeze and each.gate is freeze.gate for each in self._of[freeze.owner]):
            return True
        seen: set[object] = set()
        waiting = [freeze]
        while waiting:
            gate = waiting.pop().gate
            hold = None if gate is None else gate.hold
            if not isinstance(hold, Hold):
                continue
            owner = hold.freeze.owner
            if owner == freeze.owner:
                return True
            if owner not in seen:
                seen.add(owner)
                waiting.extend(each for each in self._of.get(owner, ()) if each.state == WAITING)
        return False

    def grant(self, freeze: Freeze) -> None:
        """All of its exchanges are held."""
        freeze.state = HOLDING
        if freeze.holds:  # else the limit of the outer one holds
            self._home.remind(self._home.now() + freeze.max_hold, freeze)
        freeze.granted.set_result(None)

    def fail(self, freeze: Freeze, error: Exception) -> None:
        """It will not be granted; nothing of it stays."""
        if freeze.state != WAITING:
            return
        freeze.give_up()
        self._end(freeze)
        freeze.granted.set_exception(error)

    # --- and ends

    def cancel(self, freeze: Freeze) -> None:
        """Nobody waits for it any more, or wants it any more."""
        if freeze.state == HOLDING:
            self._end(freeze)
        else:
            self.fail(freeze, IllegalStateError("the freeze was cancelled"))

    def release(self, freeze: Freeze, *, commit: bool = True) -> None:
        """The holder is done: what it collected is in force, in one step, or forgotten.

        FreezeExpiredError where the freeze was lifted before; InvalidDestinationError where a queue is gone that was
        to be bound, and nothing was changed. An inner freeze leaves it to the outer one.
        """
        if freeze.state != HOLDING:
            raise freeze.lifted() if freeze.why else IllegalStateError("this freeze is over")
        lost = next((hold.lost for hold in freeze.holds if hold.lost), None) if commit else None
        if commit and lost is None:
            self._end(freeze, commit=True)
            return
        self._end(freeze)
        if lost is not None:
            raise InvalidDestinationError(f"the {lost.replace(':', ' ', 1)} was deleted meanwhile; nothing was changed")

    def _end(self, freeze: Freeze, *, commit: bool = False) -> None:
        freeze.state = OVER
        mine = self._of.get(freeze.owner)
        if mine is not None:
            mine.remove(freeze)
            if not mine:
                del self._of[freeze.owner]
        self._home.dismiss(freeze)
        for hold, mark in freeze.inner:
            hold.depth -= 1
            if not commit and hold.freeze.state == HOLDING:
                hold.back_to(mark)
        self._hand_on(freeze, commit)
        try:
            for hold in freeze.holds:
                if not commit:
                    hold.forget()
            for hold in freeze.holds:
                if not hold.exchange.deleted:
                    hold.changes.put_in_force()
        finally:
            for hold in freeze.holds:
                self._thaw(hold.exchange)
            holds, freeze.holds, freeze.inner = freeze.holds, [], []
            for hold in holds:
                self._call(hold.exchange.gate)
                hold.exchange.home.perhaps_unused(hold.exchange)

    def _hand_on(self, freeze: Freeze, commit: bool) -> None:
        """An outer freeze that ends before an inner one, as leases may, leaves it what both hold."""
        for each in self._of.get(freeze.owner, ()):
            kept = [(hold, mark) for hold, mark in each.inner if hold.freeze is freeze]
            for hold, mark in kept:
                if not commit:
                    hold.forget()
                hold.depth -= 1
                hold.freeze = each
                freeze.holds.remove(hold)
                each.inner.remove((hold, mark))
                each.holds.append(hold)
            if kept and each.state == HOLDING:
                self._home.dismiss(each)
                self._home.remind(self._home.now() + each.max_hold, each)

    def expire(self, freeze: Freeze, now: float) -> None:
        """It was held too long."""
        self._lift(freeze, f"it was held longer than {freeze.max_hold:g} s")

    def _lift(self, freeze: Freeze, why: str) -> None:
        """End a freeze whose holder does not, and those inside it."""
        inside = [
            each for each in self._of.get(freeze.owner, ()) if any(hold.freeze is freeze for hold, _ in each.inner)
        ]
        for each in (*reversed(inside), freeze):
            if each.state == HOLDING:
                each.why = why
                self._end(each)
            else:
                self.fail(each, FreezeExpiredError(why))

    def lost(self, owner: object) -> None:
        """The owner is gone: what it holds is thawed, and its changes are forgotten."""
        for freeze in reversed(self._of.get(owner, [])[:]):
            self._drop(freeze, "its holder is gone")

    def _drop(self, freeze: Freeze, why: str) -> None:
        if freeze.state == WAITING:
            self.fail(freeze, IllegalStateError(why))
        elif freeze.state == HOLDING:
            self._lift(freeze, why)

    def stop(self) -> None:
        """The broker stops: nobody is to wait any more, and nothing of what was collected comes to be."""
        for freeze in [each for mine in self._of.values() for each in mine]:
            if freeze.state == HOLDING:
                freeze.state, freeze.why = OVER, "the broker was stopped"
            freeze.holds, freeze.inner = [], []
        self._of.clear()
        self.unfinished.clear()
        self._exchanges.held.clear()
        waiting = [waiter for exchange in self._exchanges for waiter in exchange.gate.clear()]
        for waiter in waiting:
            waiter.stop()

    # --- the others

    def wait(self, waiter: Waiter, gate: Gate) -> None:
        """Who found the gate closed stands in its line."""
        if gate.come(waiter):
            raise RuntimeError(f"{gate!r} is open")
        self.waits(gate)

    def waits(self, gate: Gate) -> None:
        """Somebody waits at a gate; a holder that cannot tell of its end is looked after now and from time to time."""
        hold = gate.hold
        if not isinstance(hold, Hold):
            return
        alive = hold.freeze.alive
        if alive is None or hold.checked and alive():
            return
        if not alive():
            self._drop_dead(hold.freeze)
        else:
            hold.checked = True
            self._home.remind(self._home.now() + CHECK, Check(self, gate, hold))

    def _drop_dead(self, freeze: Freeze) -> None:
        for each in (freeze, *(each for each in self._of.get(freeze.owner, ()) if each is not freeze)):
            self._drop(each, "the thread or task that held it has ended")

    def write(
        self, exchange: Exchange, action: Callable[[], Any], owner: object = None, *, timeout: float | None = None
    ) -> Change:
        """Change the bindings of an exchange, at once or when its gate lets it in; ``done`` has what ``action`` gives.

        FreezeReentryError where ``owner`` itself holds the exchange; FreezeTimeoutError after ``timeout`` seconds.
        """
        hold = exchange.gate.hold
        if isinstance(hold, Hold) and owner is not None and hold.freeze.owner == owner:
            raise FreezeReentryError(
                f"who holds the exchange {exchange.name!r} changes it by the freeze itself; this would wait for its end"
            )
        change = Change(action)
        if exchange.gate.come(change):
            change.go()
        else:
            self.waits(exchange.gate)
            if not change.done.done():
                self._limit(timeout, lambda: change.fail(_late((exchange.name,), timeout)))
        return change

    def obstacle(self, freeze: Freeze, address: str, kind: str, payload: bytes) -> str | None:
        """The exchange at which a freeze would make a message wait that is sent to an address; or None."""
        topic = self._lookup(address, kind)
        if topic is None:
            return None
        exchange, key = topic
        try:
            Way(subject_of(payload) if key is None else key, payload, 0, None).follow(exchange)
        except GateClosed as closed:
            hold = closed.gate.hold
            return closed.gate.name if isinstance(hold, Hold) and hold.freeze.owner == freeze.owner else None
        return None

    def is_held_by(self, exchange: Exchange, owner: object) -> bool:
        """Whether ``owner`` holds an exchange."""
        hold = exchange.gate.hold
        return isinstance(hold, Hold) and hold.freeze.owner == owner

    def deleted(self, exchange: Exchange) -> None:
        """An exchange was deleted, by its holder or in spite of it: who waits there is told."""
        hold = exchange.gate.hold
        if isinstance(hold, Hold):
            freeze = hold.freeze
            if hold in freeze.holds:
                freeze.holds.remove(hold)
            self._thaw(exchange)
            self._call(exchange.gate)

    # --- calling

    def _thaw(self, exchange: Exchange) -> None:
        self._exchanges.held.pop(exchange, None)
        exchange.gate.thaw()

    def _call(self, gate: Gate) -> None:
        gate.call(AT_A_TIME)
        if gate.state == CALLED and gate not in self.unfinished:
            self.unfinished.append(gate)

    def call_on(self) -> None:
        """Call some more of the lines that were not called to their ends."""
        unfinished, self.unfinished = self.unfinished, []
        for gate in unfinished:
            self._call(gate)


def _late(names: Iterable[str], timeout: float | None) -> FreezeTimeoutError:
    said = ", ".join(map(repr, names))
    return FreezeTimeoutError(f"{said} stayed frozen by somebody else for {timeout:g} s; nothing was changed")


__all__ = ["AT_A_TIME", "MAX_HOLD", "Change", "Freeze", "Freezes", "Hold"]
