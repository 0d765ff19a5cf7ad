"""The filters of a source: what a receiver asks for, and which of it is in force (Part 3, 3.5.3, 3.5.8).

A filter is known by its descriptor, never by its key in the map (M57): a code or a symbol, of the registered name or
an older one (M59). What is not known here is not in force, and left out of the answer: "the sending endpoint sets the
filter actually in place, including any filters defaulted at the node" (M61).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jmsish.types import Described

NO_LOCAL: Final = frozenset(
    {0x0000468C00000003, "apache.org:no-local-filter:list", "apache.org:jms-no-local-filter:list"}
)


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
    def read(cls, wished: Mapping[Any, Any] | None, *, topic: bool) -> Filters:
        """The filters of a source; no-local is in force for topics only."""
        granted: dict[Any, Any] = {}
        no_local = False
        for key, value in (wished or {}).items():
            descriptor = value.descriptor if isinstance(value, Described) else None
            if not isinstance(descriptor, (int, str)):
                continue
            if descriptor in NO_LOCAL and topic and not no_local:
                # A list by its registration, a string from Qpid JMS: what it holds says nothing (M58).
                no_local = True
                granted[key] = value
        return cls(None, None, no_local, granted)
