"""Message ids and correlation ids: what JMS writes as text, AMQP has as string, uuid, ulong or binary.

No form is lost on the way there and back. The text of an id that is no plain ``ID:`` string says what it was:
``ID:AMQP_UUID:…``, ``ID:AMQP_ULONG:…``, ``ID:AMQP_BINARY:…`` (hexadecimal), ``ID:AMQP_NO_PREFIX:…`` (a string that does
not begin ``ID:``), ``ID:AMQP_STRING:…`` (a string that looks like one of these).
"""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from jmsish.errors import MessageFormatError
from jmsish.types import ULong

_ENCODED = re.compile(r"ID:AMQP_(UUID|ULONG|BINARY|NO_PREFIX|STRING):", re.ASCII)
_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_HEX_TEXT = re.compile(r"(?:[0-9a-fA-F]{2})*")
_DECIMAL_TEXT = re.compile(r"[0-9]{1,20}")


def _encoded(value: Any) -> str:
    if isinstance(value, UUID):
        return f"ID:AMQP_UUID:{value}"
    if isinstance(value, bytes):
        return f"ID:AMQP_BINARY:{value.hex().upper()}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"ID:AMQP_ULONG:{value}"
    raise MessageFormatError(f"an id of type {type(value).__name__}: AMQP knows string, uuid, ulong and binary")


def message_id_text(value: Any) -> str | None:
    """The JMS text of a message id as it stands in the message."""
    if value is None:
        return None
    if not isinstance(value, str):
        return _encoded(value)
    if not value.startswith("ID:"):
        return f"ID:AMQP_NO_PREFIX:{value}"
    return f"ID:AMQP_STRING:{value}" if _ENCODED.match(value) else str(value)


def correlation_id_text(value: Any) -> str | None:
    """The JMS text of a correlation id as it stands in the message; the application's own strings are themselves."""
    if value is None:
        return None
    if not isinstance(value, str):
        return _encoded(value)
    return f"ID:AMQP_STRING:{value}" if _ENCODED.match(value) else str(value)


def id_from_text(text: str | None) -> Any:
    """The id that a JMS text means: the inverse of both; ``MessageFormatError`` if its encoded part is none."""
    if text is None:
        return None
    found = _ENCODED.match(text)
    if found is None:
        return str.__str__(text)
    form, rest = found[1], text[found.end() :]
    if form in ("NO_PREFIX", "STRING"):
        return rest
    if form == "UUID" and _UUID_TEXT.fullmatch(rest):
        return UUID(rest)
    if form == "BINARY" and _HEX_TEXT.fullmatch(rest):
        return bytes.fromhex(rest)
    if form == "ULONG" and _DECIMAL_TEXT.fullmatch(rest) and int(rest) <= ULong.MAX:
        return ULong(int(rest))
    raise MessageFormatError(f"{text!r} does not hold the {form.lower()} it announces")
