"""Changes to the bindings of one exchange: collected aside, then put in force in one step, or forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jmsish.broker.bindings import EXCHANGE, QUEUE, Accepts, Binding, Bound, identity, sayable, understood
from jmsish.errors import InvalidDestinationError, InvalidSelectorError

if TYPE_CHECKING:
    from jmsish.broker.exchanges import Exchange
    from jmsish.broker.queues import Queue

Mark = tuple[Any, ...]
"""How far a collection had come, for :meth:`Changes.back_to`."""
Item = Binding | Sequence[Any]
"""A binding as one says it in a list: a Binding, or ``(queue, key)``, or ``(queue, key, arguments)``."""


class Changes:
    """What is to become of the bindings of an exchange; until :meth:`put_in_force` nothing has changed.

    ``table`` shows them as they will be. Who collects over time sees that nobody else changes the exchange meanwhile.
    """

    __slots__ = ("_base", "_fresh", "_gone", "_targets", "exchange", "table")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._base = self.table = exchange.table
        self._fresh: list[Bound] = []
        self._gone: list[Bound] = []
        self._targets: dict[str, None] = {}

    # --- by objects

    def bind(
        self,
        target: Queue | Exchange,
        key: str = "",
        accepts: Accepts | None = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        replace: bool = False,
    ) -> bool:
        """Bind a queue or an exchange; False where this binding is there already, and asks the same.

        ``ValueError`` for an illegal pattern or argument, and for other arguments than those it has, unless ``replace``
        says that they give way. ``InvalidDestinationError`` where one of both ends is gone.
        """
        exchange = self.exchange
        key, asked = understood(exchange.type, key, arguments)
        for end in (exchange, target):
            if end.deleted:
                raise InvalidDestinationError(f"the {end.kind} {end.name!r} is gone")
        existing = self.table.find(identity(target), key)
        changed = asked.exclusive and self._clear(key, identity(target))
        if existing is not None:
            if existing.asked == asked:
                return changed
            if not replace:
                raise ValueError(
                    f"{exchange.name!r} has a binding of {target.name!r} with the key {key!r} and other arguments: "
                    "unbind it first, or say replace"
                )
            self._remove(existing)
        copy = None if arguments is None else sayable(arguments)
        binding = Binding(exchange.name, target.name, key, copy, target.kind)
        bound = Bound(binding, target, asked, accepts)
        self.table = self.table.bind(bound)
        self._fresh.append(bound)
        self._targets[bound.target] = None
        return True

    def _clear(self, key: str, target: str) -> bool:
        """Take the bindings of all others with a key away, for an exclusive one."""
        others = [bound for bound in self.table.at(key) if bound.target != target]
        for bound in others:
            self._remove(bound)
        return bool(others)

    def _remove(self, bound: Bound) -> None:
        self.table = self.table.unbind(bound)
        self._gone.append(bound)
        self._targets[bound.target] = None

    def unbind(self, target: Queue | Exchange, key: str = "") -> bool:
        """Take a binding away; False where there was none. Any spelling of a pattern will do."""
        bound = self.table.find(identity(target), self.exchange.normal(key))
        if bound is None:
            return False
        self._remove(bound)
        return True

    def unbind_all(self, target: str) -> None:
        """Take all bindings of a target away, by its identity."""
        bounds = self.table.of(target)
        if bounds:
            self.table = self.table.unbind_all(bounds)
            self._gone += bounds
            self._targets[target] = None

    def unbind_gone(self, target: str) -> bool:
        """Take the bindings away of a target that was deleted; whether one was bound only in this collection.

        A new one of the same name keeps its own.
        """
        fresh = False
        for bound in self.table.of(target):
            if (bound.queue or bound.exchange).deleted:  # type: ignore[union-attr]
                fresh = fresh or bound in self._fresh
                self._remove(bound)
        return fresh

    # --- up to here, and back

    def mark(self) -> Mark:
        """How far it has come."""
        return self.table, len(self._fresh), len(self._gone), dict(self._targets)

    def back_to(self, mark: Mark) -> None:
        """Forget what was collected since."""
        self.table, fresh, gone, self._targets = mark
        del self._fresh[fresh:], self._gone[gone:]

    # --- by names

    def add(self, item: Item, *, replace: bool = False) -> bool:
        """Bind what an item names; the error says which item was wrong."""
        try:
            name, key, arguments, kind = self._read(item)
            return self.bind(self._target(name, kind), key, None, arguments, replace=replace)
        except InvalidSelectorError as error:
            raise InvalidSelectorError(f"{_said(item)}: {error}", position=error.position) from None
        except (ValueError, TypeError, InvalidDestinationError) as error:
            raise type(error)(f"{_said(item)}: {error}") from None

    def remove(self, item: Item) -> None:
        """Unbind what an item names; ``ValueError`` where there is no such binding."""
        try:
            name, key, _, kind = self._read(item)
            if not self.unbind(self._target(name, kind), key):
                raise ValueError(f"there is no such binding in {self.exchange.name!r}")
        except (ValueError, TypeError, InvalidDestinationError) as error:
            raise type(error)(f"{_said(item)}: {error}") from None

    def _read(self, item: Item) -> tuple[str, str, Mapping[str, Any] | None, str]:
        if isinstance(item, Binding):
            if item.exchange != self.exchange.name:
                raise ValueError(f"it is a binding of {item.exchange!r}, not of {self.exchange.name!r}")
            return item.queue, item.key, item.arguments, item.kind
        if isinstance(item, str) or not isinstance(item, Sequence) or not 1 <= len(item) <= 3:
            raise TypeError("a binding is a Binding, (queue, key) or (queue, key, arguments)")
        name, key, arguments = (*item, "", None)[:3] if len(item) == 1 else (*item, None)[:3]
        return name, key, arguments, QUEUE

    def _target(self, name: str, kind: str) -> Queue | Exchange:
        if kind not in (QUEUE, EXCHANGE):
            raise ValueError(f"the kind of a binding is {QUEUE!r} or {EXCHANGE!r}, not {kind!r}")
        home = self.exchange.home
        return home.named(name) if kind == EXCHANGE else home.queue(name)

    # --- done

    def put_in_force(self) -> None:
        """From now on messages follow the changed table; what is new gets the initial value, if there is one."""
        exchange, base, table = self.exchange, self._base, self.table
        if exchange.table is not base:
            raise RuntimeError(f"the bindings of {exchange.name!r} were changed by somebody else meanwhile")
        if table is base:
            return
        exchange.table = table
        base.retire()
        exchange.home.bound(exchange, self._targets)
        if exchange.last is not None:
            for bound in self._fresh:
                if table.find(bound.target, bound.binding.key) is bound:
                    exchange.send_initial(bound, base)
        for bound in self._gone:
            bound.retire()
        self._base, self._fresh, self._gone, self._targets = table, [], [], {}
        if not table.size:
            exchange.home.perhaps_unused(exchange)


def _said(item: object) -> str:
    if isinstance(item, Binding):
        return f"the binding of {item.queue!r} with the key {item.key!r}"
    return f"the binding {item!r}"
