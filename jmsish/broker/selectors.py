"""Selectors from outside: how long they may be, and what it costs to ask one about a message.

A selector takes some 20 µs for each ten characters to be read, two hundred octets a character to be kept, and for each
message that it is asked about a tenth of a microsecond a character. The texts of a list behind IN cost little of all
that, so they do not count: what is left of a selector is its structure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jmsish.broker.refusals import RESOURCE_LIMIT_EXCEEDED, Refusal
from jmsish.errors import InvalidSelectorError
from jmsish.selector import Selector

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection

__all__ = ["check_room", "read_selector", "structure_of", "weight_of"]

MOST_STRUCTURE: Final = 8192
"""Characters of the structure of one selector: two or three thousand words."""
MOST_OF_A_CONNECTION: Final = 1 << 19
"""Of the selectors of all links of a connection: fifty for each of ten thousand links."""
_UNIT: Final = 16
"""So much structure costs as much as the look at a message without which no selector can be asked."""
_TEXTS: Final = re.compile(r"'[^']*'|,")


def structure_of(text: str | None) -> int:
    """Characters of a selector beside its texts and commas."""
    return 0 if text is None else len(_TEXTS.sub("", text))


def weight_of(size: int) -> int:
    """What a look at a message costs by a selector of so much structure."""
    return 1 + size // _UNIT


def read_selector(text: str | None) -> Selector | None:
    """The selector of a text, or None if it wants everything; ``InvalidSelectorError`` for a fault, or too much."""
    size = structure_of(text)
    if size > MOST_STRUCTURE:
        raise InvalidSelectorError(
            f"a selector of {size} characters, its texts and commas not counted: the limit is {MOST_STRUCTURE}"
        )
    return Selector.parse(text)


def check_room(connection: ServerConnection, size: int) -> None:
    """There may be one more selector of that size on the connection."""
    if size and connection.selecting + size > MOST_OF_A_CONNECTION:
        text = f"the selectors of a connection have at most {MOST_OF_A_CONNECTION} characters together"
        raise Refusal(RESOURCE_LIMIT_EXCEEDED, text)
