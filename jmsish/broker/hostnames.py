"""From the hostname of an open to a virtual host: by its name, an alias, or a pattern of either.

A name with a label ``*`` or ``#`` is a pattern: ``*.example.com`` is for one label, ``#.example.com`` for any number.
What is written exactly wins over ``*``, and that over ``#``, label by label from the left. Hostnames have no case, a
dot at their end says nothing, and ``münchen.example`` is ``xn--mnchen-3ya.example``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from jmsish.broker.patterns import ANY, ONE, Node, added, found, has_wildcard, is_endless, normalised, words_of

_RANKS: Final = {ONE: 1, ANY: 2}
_END: Final = 3


class Hostnames:
    """The virtual hosts by all that they are called."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        """``names``: of each virtual host its aliases. ``ValueError`` where two are called the same."""
        self._exact: dict[str, str] = {}
        self._patterns: dict[str, str] = {}
        self._tree: Node[str] = Node()
        for fault in self._add_all(names):
            raise ValueError(fault)

    @classmethod
    def faults(cls, names: Mapping[str, Sequence[str]]) -> list[str]:
        """All that is wrong with these names, in sentences that begin with the place in the configuration."""
        return cls({})._add_all(names)

    def _add_all(self, names: Mapping[str, Sequence[str]]) -> list[str]:
        faults = []
        for vhost in names:
            faults += self._add(vhost, vhost, f"[vhosts]: the virtual host {vhost!r}")
        for vhost, aliases in names.items():
            for alias in aliases:
                faults += self._add(alias, vhost, f"[vhosts.{vhost}] aliases: {alias!r}")
        return faults

    def _add(self, name: str, vhost: str, what: str) -> list[str]:
        """Give a virtual host one name, ``what`` where it stands; what is wrong with it."""
        key = _plain(name)
        if not key:
            return [f"{what} is blank"]
        if has_wildcard(key):
            try:
                pattern = normalised(key)
            except ValueError as error:
                return [f"{what}: {error}"]
            if pattern in self._patterns:
                return [f"{what} conflicts with the virtual host {self._patterns[pattern]!r}: {pattern!r}"]
            self._patterns[pattern] = vhost
            self._tree = added(self._tree, pattern, pattern)
            return []
        if key in self._exact:
            return [f"{what} is a name of the virtual host {self._exact[key]!r} already"]
        self._exact[key] = vhost
        return []

    def find(self, hostname: str | None) -> str | None:
        """The virtual host that a hostname means."""
        if not hostname:
            return None
        key = _plain(hostname)
        exact = self._exact.get(key)
        if exact is not None or not self._patterns or is_endless(key):
            return exact
        matches = found(self._tree, key)
        return self._patterns[min(matches, key=_rank)] if matches else None


def _plain(name: str) -> str:
    """One spelling for all of a hostname: in small letters, without the dot of the root, in ASCII (RFC 3490, 4.1).

    Some clients put an address of IPv6 into brackets, as in a URL.
    """
    name = name.lower().removesuffix(".")
    if name.startswith("[") and name.endswith("]") and ":" in name:
        name = name[1:-1]
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name  # no hostname, but a name that a virtual host may have


def _rank(pattern: str) -> tuple[int, ...]:
    return (*(_RANKS.get(word, 0) for word in words_of(pattern)), _END)
