"""Names of properties: the identifiers of the selector language, which are those of Java."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from unicodedata import category

__all__ = ["check_name"]

_RESERVED = frozenset({"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"})

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII).fullmatch

# Java's isJavaIdentifierStart and isJavaIdentifierPart by general category: letters, numbers that are letters, signs of
# currency, and what joins words; then also digits, marks, and what is not seen.
_START = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_PART = _START | {"Nd", "Mn", "Mc", "Cf"}

_HEADERS = frozenset(
    {"JMSCorrelationID", "JMSDeliveryMode", "JMSDeliveryTime", "JMSDestination", "JMSExpiration", "JMSMessageID"}
    | {"JMSPriority", "JMSRedelivered", "JMSReplyTo", "JMSTimestamp", "JMSType"}
)


def is_identifier(name: str) -> bool:
    """Whether the name is an identifier as Java has it (jms rule 186)."""
    if _PLAIN(name) is not None:
        return True
    return name != "" and category(name[0]) in _START and all(category(char) in _PART for char in name[1:])


@lru_cache(maxsize=1024)
def _fault_of(name: str) -> str | None:
    if not name:
        return "the name of a property is empty"
    if not is_identifier(name):
        return f"{name!r} is no name of a property: letters, digits, '_' and '$', not beginning with a digit"
    if name.upper() in _RESERVED:
        return f"{name!r} is a word of the selector language, not a name of a property"
    if name in _HEADERS:
        attribute = "jms_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[3:]).lower()
        return f"{name!r} is a header, not a property: it is the attribute {attribute} of the message"
    return None


def check_name(name: Any) -> str:
    """A name that a property may be given (jms rule 156): an identifier that is no word of the selector language.

    ``TypeError`` for what is no text, ``ValueError`` for an empty name, one that is no identifier, a reserved word in
    any case, and the name of a header.
    """
    if type(name) is not str:
        if not isinstance(name, str):
            raise TypeError(f"the name of a property is a str, not {name!r}")
        name = str.__str__(name)
    fault = _fault_of(name)
    if fault is not None:
        raise ValueError(fault)
    checked: str = name
    return checked
