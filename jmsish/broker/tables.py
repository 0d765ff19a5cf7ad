"""Tables of bindings: immutable, one for each exchange at a time, and what a key or a message leads to in it.

Theory of operation.  A change makes another table that shares nearly all with the old one: every structure in it is
persistent, so that one binding among 100,000 copies a path. What a key leads to is remembered in the table, so it is
forgotten with it and never wrong. The types differ in their index alone:

========  =====================================================================================================
direct    a map from keys
topic     the tree of :mod:`jmsish.broker.patterns`
fanout    none: all of its bindings match everything
headers   maps from values, one for each set of names that bindings ask about together
========  =====================================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from jmsish.broker.bindings import DIRECT, FANOUT, HEADERS, TOPIC, Bound
from jmsish.broker.headers import Criteria, Reader, Special, reader
from jmsish.broker.patterns import Node, PersistentMap, added, found, removed, removed_all
from jmsish.broker.routing import NOWHERE, Match

REMEMBERED_AT_MOST: Final = 4096
LONGEST_REMEMBERED: Final = 256
TOLD_AT_ONCE: Final = 2000
"""Bindings that are told their hits in the step of a change: about 0.1 ms."""

_Bounds = tuple[Bound, ...]
_T = TypeVar("_T", bound="Table")


class Table:
    """All bindings of an exchange at one time; :meth:`bind` and :meth:`unbind` make another table."""

    __slots__ = ("_passing", "_targets", "_uncounted", "cache", "size")

    def __init__(self, uncounted: list[Match] | None = None) -> None:
        self._targets: PersistentMap[PersistentMap[Bound]] = PersistentMap()
        self.size = 0
        self.cache: dict[Any, Match] = {}
        """What keys lead to that came lately; in all tables but those whose matching is not by the key."""
        self._passing: list[Match] = []
        """Those in the cache that have hits to tell when they go."""
        self._uncounted: list[Match] = [] if uncounted is None else uncounted
        """Matches that are remembered no more and whose hits their bindings do not know yet; handed on from table to
        table. Each new match works off two of them, so they never are many, and no step costs more than its share."""

    def find(self, target: str, key: str) -> Bound | None:
        """The binding of a target by its key in normal form."""
        keys = self._targets.get(target)
        return None if keys is None else keys.get(key)

    def of(self, target: str) -> list[Bound]:
        """The bindings of one target."""
        keys = self._targets.get(target)
        return [] if keys is None else [bound for _, bound in keys.items()]

    def at(self, key: str) -> list[Bound]:
        """The bindings that have this very key."""
        return [bound for bound in self if bound.binding.key == key]

    def __iter__(self) -> Iterator[Bound]:
        for _, keys in self._targets.items():
            for _, bound in keys.items():
                yield bound

    def bind(self: _T, bound: Bound) -> _T:
        """With this binding more; the caller has looked that it is new."""
        table = type(self)(self._uncounted)
        binding = bound.binding
        keys: PersistentMap[Bound] = self._targets.get(bound.target) or PersistentMap()
        table._targets = self._targets.put(bound.target, keys.put(binding.key, bound))
        table.size = self.size + 1
        self._index_into(table, bound, True)
        return table

    def unbind(self: _T, bound: Bound) -> _T:
        """Without this binding; the caller has looked that it is there."""
        table = type(self)(self._uncounted)
        keys = self._targets.get(bound.target)
        assert keys is not None
        keys = keys.without(bound.binding.key)
        targets = self._targets
        table._targets = targets.put(bound.target, keys) if keys.size else targets.without(bound.target)
        table.size = self.size - 1
        self._index_into(table, bound, False)
        return table

    def unbind_all(self: _T, bounds: list[Bound]) -> _T:
        """Without any binding of a target, which has these: what they share is copied once, not for each."""
        table = type(self)(self._uncounted)
        table._targets = self._targets.without(bounds[0].target)
        table.size = self.size - len(bounds)
        self._index_without(table, bounds)
        return table

    def _index_into(self: _T, table: _T, bound: Bound, add: bool) -> None:
        """Give another table the index of this one, with a binding more or less."""
        raise NotImplementedError

    def _index_without(self: _T, table: _T, bounds: list[Bound]) -> None:
        """Give another table the index of this one, with these bindings less."""
        raise NotImplementedError

    def match(self, key: str, payload: bytes) -> Match:
        """What a message with this key leads to."""
        match = self.cache.get(key)
        if match is None:
            match = self._remember(key, Match.of(self._matching(key)), len(key) <= LONGEST_REMEMBERED)
        return match

    def _remember(self, key: Any, match: Match, lastingly: bool) -> Match:
        uncounted = self._uncounted
        for _ in range(min(2, len(uncounted))):
            uncounted.pop().count()
        if lastingly:
            if len(self.cache) >= REMEMBERED_AT_MOST:
                self.retire()
            self.cache[key] = match
            if not match.lasting:
                self._passing.append(match)
        elif not match.lasting:
            uncounted.append(match)
        return match

    def retire(self) -> None:
        """Another table is in force: what was counted here stays counted, most of it told at once."""
        left = TOLD_AT_ONCE
        for match in self._passing:
            if left > 0:
                left -= match.count()
            else:
                self._uncounted.append(match)
        self._passing.clear()
        self.cache.clear()

    def count(self) -> None:
        """Tell all bindings of all their hits."""
        for match in (*self._passing, *self._uncounted):
            match.count()
        self._uncounted.clear()

    def _matching(self, key: str) -> Iterable[Bound]:
        raise NotImplementedError


class DirectTable(Table):
    """Equal keys match, octet for octet; the empty key matches messages without a subject."""

    __slots__ = ("_keys",)

    def __init__(self, uncounted: list[Match] | None = None) -> None:
        super().__init__(uncounted)
        self._keys: PersistentMap[_Bounds] = PersistentMap()

    def at(self, key: str) -> list[Bound]:
        return list(self._keys.get(key) or ())

    def _index_into(self, table: DirectTable, bound: Bound, add: bool) -> None:
        table._keys = _changed(self._keys, bound.binding.key, bound, add)

    def _index_without(self, table: DirectTable, bounds: list[Bound]) -> None:
        table._keys = _reduced(self._keys, ((bound.binding.key, bound) for bound in bounds))

    def match(self, key: str, payload: bytes) -> Match:
        """What is bound by the key. That is so quickly found that what came lately does not give way to it."""
        match = self.cache.get(key)
        if match is None:
            bounds = self._keys.get(key) or ()
            match = Match.of(bounds)
            if not match.lasting or len(self.cache) < REMEMBERED_AT_MOST:
                self._remember(key, match, len(key) <= LONGEST_REMEMBERED)
        return match


class TopicTable(Table):
    """Patterns of words match keys."""

    __slots__ = ("_root",)

    def __init__(self, uncounted: list[Match] | None = None) -> None:
        super().__init__(uncounted)
        self._root: Node[Bound] = Node()

    def _index_into(self, table: TopicTable, bound: Bound, add: bool) -> None:
        change = added if add else removed
        table._root = change(self._root, bound.binding.key, bound)

    def _index_without(self, table: TopicTable, bounds: list[Bound]) -> None:
        table._root = removed_all(self._root, ((bound.binding.key, bound) for bound in bounds))

    def _matching(self, key: str) -> Iterable[Bound]:
        return found(self._root, key)

    @property
    def is_bare(self) -> bool:
        """Nothing is left of the tree."""
        return self._root.is_bare


class FanoutTable(Table):
    """Everything matches; keys only tell the bindings of a queue apart."""

    __slots__ = ()

    def _index_into(self, table: FanoutTable, bound: Bound, add: bool) -> None: ...

    def _index_without(self, table: FanoutTable, bounds: list[Bound]) -> None: ...

    def match(self, key: str, payload: bytes) -> Match:
        """All there is."""
        match = self.cache.get(None)
        if match is None:
            match = self._remember(None, Match.of(self), True)
        return match


class HeadersTable(Table):
    """Application properties match, and the key tells the bindings of a queue apart.

    A binding that wants all of its entries stands in the map of its *shape*, the names it asks about, by its values;
    one that wants any of them stands at each name with its value. So a message costs as much as there are shapes.
    """

    __slots__ = ("_any", "_every", "_names", "_read")

    def __init__(self, uncounted: list[Match] | None = None) -> None:
        super().__init__(uncounted)
        self._every: PersistentMap[PersistentMap[_Bounds]] = PersistentMap()
        self._any: PersistentMap[_Bounds] = PersistentMap()
        self._names: PersistentMap[int] = PersistentMap()
        """How many bindings ask about each."""
        self._read: Reader | None = None
        """Made for the first message: it knows all names, and of bindings there may come thousands before that."""

    def _index_into(self, table: HeadersTable, bound: Bound, add: bool) -> None:
        criteria = bound.asked.criteria
        assert criteria is not None
        table._every, table._any = self._every, self._any
        if criteria.every:
            by_values: PersistentMap[_Bounds] = self._every.get(criteria.shape) or PersistentMap()
            by_values = _changed(by_values, criteria.values, bound, add)
            every = self._every
            shape = criteria.shape
            table._every = every.put(shape, by_values) if by_values.size else every.without(shape)
        else:
            for entry in criteria.entries:
                table._any = _changed(table._any, entry, bound, add)
        table._names = _counted(self._names, [criteria], 1 if add else -1)
        self._read_into(table)

    def _index_without(self, table: HeadersTable, bounds: list[Bound]) -> None:
        every: dict[Any, list[tuple[Any, Bound]]] = {}
        any_: list[tuple[Any, Bound]] = []
        asked: list[Criteria] = []
        for bound in bounds:
            criteria = bound.asked.criteria
            assert criteria is not None
            asked.append(criteria)
            if criteria.every:
                every.setdefault(criteria.shape, []).append((criteria.values, bound))
            else:
                any_.extend((entry, bound) for entry in criteria.entries)
        shapes: dict[Any, PersistentMap[_Bounds] | None] = {}
        for shape, gone in every.items():
            by_values = self._every.get(shape)
            assert by_values is not None
            by_values = _reduced(by_values, gone)
            shapes[shape] = by_values if by_values.size else None
        table._every, table._any = self._every.changed(shapes), _reduced(self._any, any_)
        table._names = _counted(self._names, asked, -1)
        self._read_into(table)

    def _read_into(self, table: HeadersTable) -> None:
        same = table._names.size == self._names.size
        table._read = self._read if same else None

    def _values_of(self, payload: bytes) -> dict[str, Any]:
        """The properties of a message that some binding asks about."""
        read = self._read
        if read is None:
            read = self._read = reader(frozenset(name for name, _ in self._names.items()))
        return read(payload)

    def match(self, key: str, payload: bytes) -> Match:
        """What the properties of a message lead to."""
        values = self._values_of(payload)
        asked = tuple(values.items())
        match = self.cache.get(asked)
        if match is None:
            texts = [value for value in values.values() if isinstance(value, (str, bytes))]
            lastingly = all(len(text) <= LONGEST_REMEMBERED for text in texts)
            match = self._remember(asked, Match.of(self._wanting(values)), lastingly)
        return match

    def _wanting(self, values: dict[str, Any]) -> list[Bound]:
        wanting: dict[Bound, None] = {}
        for shape, by_values in self._every.items():
            if all(name in values for name, _ in shape):
                wanted = tuple(values[name] for name, presence in shape if not presence)
                wanting.update(dict.fromkeys(by_values.get(wanted) or ()))
        if self._any.size:
            for name, value in values.items():
                wanting.update(dict.fromkeys(self._any.get((name, value)) or ()))
                wanting.update(dict.fromkeys(self._any.get((name, Special.PRESENT)) or ()))
        return list(wanting)

    @property
    def is_bare(self) -> bool:
        """Nothing is left of the maps."""
        return not (self._every.size or self._any.size or self._names.size)


def _changed(bounds_of: PersistentMap[_Bounds], name: Any, bound: Bound, add: bool) -> PersistentMap[_Bounds]:
    """A map of bindings with one more or less at a name."""
    bounds = bounds_of.get(name) or ()
    if add:
        return bounds_of.put(name, (*bounds, bound))
    at = bounds.index(bound)
    bounds = bounds[:at] + bounds[at + 1 :]
    return bounds_of.put(name, bounds) if bounds else bounds_of.without(name)


def _reduced(bounds_of: PersistentMap[_Bounds], gone: Iterable[tuple[Any, Bound]]) -> PersistentMap[_Bounds]:
    """A map of bindings without some, each at its name."""
    leaving: dict[Any, set[Bound]] = {}
    for name, bound in gone:
        leaving.setdefault(name, set()).add(bound)
    left: dict[Any, _Bounds | None] = {}
    for name, those in leaving.items():
        left[name] = tuple(bound for bound in bounds_of.get(name) or () if bound not in those) or None
    return bounds_of.changed(left)


def _counted(names: PersistentMap[int], asked: Iterable[Criteria], step: int) -> PersistentMap[int]:
    steps = Counter(name for criteria in asked for name, _ in criteria.entries)
    return names.changed({name: (names.get(name) or 0) + step * times or None for name, times in steps.items()})


TABLES: Final[dict[str, type[Table]]] = {
    DIRECT: DirectTable, TOPIC: TopicTable, FANOUT: FanoutTable, HEADERS: HeadersTable
}  # fmt: skip

__all__ = ["NOWHERE", "TABLES", "DirectTable", "FanoutTable", "HeadersTable", "Table", "TopicTable"]
