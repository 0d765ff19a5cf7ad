"""The filters of a consumer's source: what is asked for, and whether the broker does it (M57 to M61)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jmsish.engine.outcomes import Source
from jmsish.types import Described, ULong

if TYPE_CHECKING:
    from jmsish.client.consumer import ClientConsumer

SELECTOR_FILTER = "jms-selector"
SELECTOR_DESCRIPTOR = ULong(0x0000468C00000004)
"""M57."""

NO_LOCAL_FILTER = "no-local"
NO_LOCAL_DESCRIPTOR = ULong(0x0000468C00000003)
"""M58: a string, as Qpid JMS sends it and every broker takes it."""

_DESCRIPTORS = {
    SELECTOR_FILTER: frozenset(
        {SELECTOR_DESCRIPTOR, "apache.org:selector-filter:string", "apache.org:jms-selector-filter:string"}
    ),
    NO_LOCAL_FILTER: frozenset(
        {NO_LOCAL_DESCRIPTOR, "apache.org:no-local-filter:list", "apache.org:jms-no-local-filter:list"}
    ),
}
"""The names of each type of filter (M59): a broker may answer with another than it was asked with."""


def wished_filters(consumer: ClientConsumer) -> Mapping[str, Any] | None:
    """The filter map of the source we ask for; None without filters."""
    wished: dict[str, Any] = {}
    if consumer.selector is not None:
        wished[SELECTOR_FILTER] = Described(SELECTOR_DESCRIPTOR, consumer.selector)
    if consumer.no_local:
        wished[NO_LOCAL_FILTER] = Described(NO_LOCAL_DESCRIPTOR, "NoLocalFilter{}")
    return wished or None


def dropped_filter(wished: Source, granted: object) -> str | None:
    """What the broker does not apply of our filters, in words; None when it does all that we asked for.

    "the sending endpoint sets the filter actually in place" (Part 3, 3.5.3): without that a message that was not asked
    for would come through (M61).  A selector in other blanks around it is the same selector.
    """
    in_place = dict(granted.filter or {}) if isinstance(granted, Source) else {}
    for name, asked in (wished.filter or {}).items():
        answer = _answer_to(name, in_place)
        if answer is None:
            return f"the filter {name}"
        if name == SELECTOR_FILTER:
            text = answer.value if isinstance(answer, Described) else answer
            if not isinstance(text, str) or text.strip() != asked.value.strip():
                return f"the selector {asked.value!r}: it has put {text!r} in place"
    return None


def _answer_to(name: str, in_place: Mapping[Any, Any]) -> Any:
    """The entry that answers to one of our filters: by its key, or, under another key, by its type."""
    if name in in_place:
        return in_place[name]
    for value in in_place.values():
        if isinstance(value, Described) and value.descriptor in _DESCRIPTORS[name]:
            return value
    return None
