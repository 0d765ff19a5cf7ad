"""The filters of a source: what a receiver asks for, and which of it is in force (Part 3, 3.5.3, 3.5.8).

A filter is known by its descriptor, never by its key in the map (M57): a code or a symbol, of the registered name or
an older one (M59). What is not known here is not in force, and left out of the answer: "the sending endpoint sets the
filter actually in place, including any filters defaulted at the node" (M61).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from jmsish.broker.refusals import INVALID_FIELD, Refusal
from jmsish.engine.selecting import predicate
from jmsish.errors import InvalidSelectorError
from jmsish.selector import Selector
from jmsish.types import Described, Symbol

SELECTOR: Final = frozenset(
    {0x0000468C00000004, "apache.org:selector-filter:string", "apache.org:jms-selector-filter:string"}
)
NO_LOCAL: Final = frozenset(
    {0x0000468C00000003, "apache.org:no-local-filter:list", "apache.org:jms-no-local-filter:list"}
)
_FILTER: Final = {Symbol("field"): Symbol("filter")}


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of one source that are in force."""

    selector: str | None = None
    """Its text; None where all is wanted."""
    selects: Callable[[bytes, int], bool] | None = None
    no_local: bool = False
    granted: Mapping[Any, Any] = field(default_factory=dict)
    """As asked for, under the keys and with the descriptors that the peer used."""

    @classmethod
    def read(cls, wished: Mapping[Any, Any] | None) -> Filters:
        """The filters of a source. Refusal for a selector that is none.

        Of two of a kind the first is in force.
        """
        granted: dict[Any, Any] = {}
        text: str | None = None
        no_local = chosen = False
        for key, value in (wished or {}).items():
            descriptor = value.descriptor if isinstance(value, Described) else None
            if not isinstance(descriptor, (int, str)):
                continue
            if descriptor in SELECTOR and not chosen:
                chosen = True
                text = _selector_in(value.value)
            elif descriptor in NO_LOCAL and not no_local:
                # A list by its registration, a string from Qpid JMS: what it holds says nothing (M58).
                no_local = True
            else:
                continue
            granted[key] = value
        selector = _parsed(text)
        if selector is None:
            return cls(None, None, no_local, granted)
        return cls(selector.text, predicate(selector), no_local, granted)

    def without_no_local(self) -> Filters:
        """What is left of them where nothing is local: at a queue, and to those who share a subscription."""
        if not self.no_local:
            return self
        granted = {key: value for key, value in self.granted.items() if value.descriptor not in NO_LOCAL}
        return replace(self, no_local=False, granted=granted)


def _selector_in(value: object) -> str:
    if not isinstance(value, str):
        raise Refusal(INVALID_FIELD, f"a selector is a string, not {value!r}", _FILTER)
    return value


def _parsed(text: str | None) -> Selector | None:
    try:
        return Selector.parse(text)
    except InvalidSelectorError as error:
        raise Refusal(INVALID_FIELD, str(error), _FILTER) from None
