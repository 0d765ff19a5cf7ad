"""Which addresses a group may use: lists of names and prefixes, or patterns of words; both may name the user.

A list has names as they are written; a ``*`` at the end of one stands for any rest, none included. A pattern has words,
divided by ``.`` or ``/``, as those of a topic: ``*`` is one word, ``#`` any number of them. In both ``${user}`` stands
for the name of who is connected, once: in a list anywhere, in a pattern alone in its first or last word. A name that
would make a wildcard there allows its user nothing by that entry.

An address that has wildcards itself, as a subscription to many topics has, is allowed where all are that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from jmsish.broker.patterns import ANY, ONE, Node, added, covers, found, has_wildcard, is_endless, normalised, words_of

USER: Final = "${user}"
"""What stands for the user's name."""
_PLACES: Final = re.compile(r"\$\{[^}]*\}")
"""What looks like it."""
REST: Final = "*"
"""At the end of an item of a list: any rest."""

Decision = Callable[[str], bool]


def check_item(item: str) -> None:
    """What an item of a list may be; ``ValueError`` says what is wrong with it."""
    _check_user(item)
    if REST in item[:-1]:
        raise ValueError(f"{item!r}: {REST!r} is allowed at the end only")


def check_pattern(pattern: str) -> None:
    """What a pattern may be; ``ValueError`` says what is wrong with it."""
    _check_user(pattern)
    words = _words(pattern)
    for place, word in enumerate(words):
        if USER in word and (word != USER or 0 < place < len(words) - 1):
            raise ValueError(f"{pattern!r}: {USER} is the whole first or last word of a pattern, and nothing else")
    normalised(".".join(words))


def _check_user(text: str) -> None:
    if not text:
        raise ValueError("an address is not empty")
    unknown = [name for name in _PLACES.findall(text) if name != USER]
    if unknown:
        raise ValueError(f"{text!r}: there is no {unknown[0]}, only {USER}, the name of who is connected")
    if text.count(USER) > 1:
        raise ValueError(f"{text!r}: {USER} is allowed once")


def _words(text: str) -> list[str]:
    """The words of a pattern or an address: a slash, behind an exchange, divides as a dot does."""
    return words_of(text.replace("/", "."))


@dataclass(frozen=True, slots=True)
class Access:
    """The addresses that a group may use, in one of the two forms. Nothing said is nothing allowed."""

    items: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Everything is allowed, whoever it is."""
        return REST in self.items or ANY in self.patterns

    def decision(self, user: str) -> Decision:
        """What tells whether an address is allowed to this user."""
        if self.is_open:
            return bool  # a blank address never matches
        return _by_pattern(self.patterns, user) if self.patterns else _by_list(self.items, user)


def _by_list(items: Iterable[str], user: str) -> Decision:
    names, prefixes = set(), []
    for item in items:
        filled = item.removesuffix(REST).replace(USER, user)
        if USER in item and has_wildcard(filled.replace("/", ".")):
            continue
        if item.endswith(REST):
            prefixes.append(filled)
        else:
            names.add(filled)
    beginnings = tuple(prefixes)

    def is_allowed(address: str) -> bool:
        if address in names:
            return bool(address)
        if not address or not address.startswith(beginnings):
            return False
        if not has_wildcard(address.replace("/", ".")):
            return True
        # `a.#` also stands for `a`, which need not begin like it.
        shortest = ".".join(word for word in _words(address) if word != ANY)
        return shortest.startswith(tuple(each.replace("/", ".") for each in beginnings))

    return is_allowed


def _by_pattern(patterns: Iterable[str], user: str) -> Decision:
    root: Node[str] = Node()
    own = _words(user)
    filled = []
    for pattern in patterns:
        words = _words(pattern)
        if USER in words:
            if ONE in own or ANY in own:
                continue
            at = words.index(USER)
            words[at : at + 1] = own
        filled.append(normalised(".".join(words)))
        root = added(root, filled[-1], filled[-1])

    def is_allowed(address: str) -> bool:
        if not address or is_endless(address := address.replace("/", ".")):
            return False
        if has_wildcard(address):
            return any(covers(pattern, normalised(address)) for pattern in filled)
        return bool(found(root, address))

    return is_allowed
