"""How each header of a message is read from what came in, and checked when the application sets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jmsish.destination import Destination, destination_of_kind, name_on_wire
from jmsish.errors import MessageFormatError
from jmsish.message import fields
from jmsish.message.ids import message_id_text
from jmsish.modes import DeliveryMode
from jmsish.types import Long, Timestamp

if TYPE_CHECKING:
    from jmsish.message.base import Message

_UINT_SIZE = 1 << 32
_INT_MAX = (1 << 31) - 1


class Meaning(NamedTuple):
    """What the message annotations of the JMS mapping say; ``None`` where one is missing."""

    type_code: int | None
    destination_kind: int | None
    reply_to_kind: int | None
    delivery_time: Any


_LEGACY_KINDS: Mapping[frozenset[str], int] = {
    frozenset({"queue"}): 0,
    frozenset({"topic"}): 1,
    frozenset({"queue", "temporary"}): 2,
    frozenset({"topic", "temporary"}): 3,
}


def _kind(annotations: Mapping[str, Any], key: str, legacy_key: str) -> int | None:
    """The kind of a destination by its annotation, or by the string that older clients write."""
    kind = annotations.get(key)
    if isinstance(kind, int) and not isinstance(kind, bool) and 0 <= kind <= 3:
        return int(kind)
    legacy = annotations.get(legacy_key)
    if isinstance(legacy, str):
        return _LEGACY_KINDS.get(frozenset(word.strip() for word in legacy.split(",")))
    return None


def meaning_of(annotations: Mapping[str, Any]) -> Meaning:
    """What the annotations say; ``MessageFormatError`` for a message type that there is not."""
    code = annotations.get(fields.MESSAGE_TYPE)
    if code is not None and (isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 5):
        raise MessageFormatError(f"{fields.MESSAGE_TYPE} is {code!r}: the types of messages are 0 to 5")
    return Meaning(
        None if code is None else int(code),
        _kind(annotations, fields.DESTINATION_KIND, fields.LEGACY_DESTINATION_KIND),
        _kind(annotations, fields.REPLY_TO_KIND, fields.LEGACY_REPLY_TO_KIND),
        annotations.get(fields.DELIVERY_TIME),
    )


def meaning(prefix: Any) -> Meaning:
    """The same of what stands before a message, made once for all messages that share it."""
    found: Meaning | None = prefix.meaning
    if found is None:
        found = prefix.meaning = meaning_of(prefix.annotations)
    return found


# ---------------------------------------------------------------- what the application sets


def text(value: Any, name: str) -> str | None:
    """A header that is a text or nothing."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is a str or None, not {value!r}")
    return value


def milliseconds(value: Any, name: str) -> int:
    """A header that is a moment."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number of milliseconds, not {value!r}")
    return int(Long(value))


def destination(value: Any, name: str) -> Destination | None:
    """A header that is a destination or nothing."""
    if value is not None and not isinstance(value, Destination):
        raise TypeError(f"{name} is a destination or None, not {value!r}")
    return value


# ---------------------------------------------------------------- what came in


def field(message: Message, index: int) -> Any:
    """A field of the AMQP properties; ``MessageFormatError`` if the octets are none."""
    source = message._source
    if source is None:
        return None
    try:
        return source.property(index)
    except ValueError as fault:
        raise MessageFormatError(f"the properties of the message cannot be read: {fault}") from fault


def text_field(message: Message, index: int) -> str | None:
    """A field that is a text, or a symbol; anything else counts as absent."""
    value = field(message, index)
    return str(value) if isinstance(value, str) else None


def _moment_field(message: Message, index: int) -> int:
    value = field(message, index)
    return int(value) if isinstance(value, int) else 0


def _address(message: Message, index: int, kind: int | None) -> Destination | None:
    """The destination of an address on the wire: without prefix, of the kind annotated, else of the consumer's kind."""
    name = text_field(message, index)
    if not name:
        return None
    default = message._default_destination
    if kind is None:
        kind = 0 if default is None else default.kind_byte
    name = name_on_wire(name, kind, message._prefixes)
    if default is not None and default.name == name and default.kind_byte == kind:
        return default
    return destination_of_kind(kind, name)


def _read_message_id(message: Message) -> str | None:
    return message_id_text(field(message, fields.MESSAGE_ID))


def _read_correlation_id(message: Message) -> Any:
    return field(message, fields.CORRELATION_ID)


def _read_destination(message: Message) -> Destination | None:
    source = message._source
    if source is None:
        return None
    # A missing address is that of the consumer the message came by.
    found = _address(message, fields.TO, meaning(source.prefix).destination_kind)
    return message._default_destination if found is None else found


def _read_reply_to(message: Message) -> Destination | None:
    source = message._source
    return None if source is None else _address(message, fields.REPLY_TO, meaning(source.prefix).reply_to_kind)


def _read_delivery_mode(message: Message) -> DeliveryMode:
    source = message._source
    if source is None or source.prefix.header.durable:
        return DeliveryMode.PERSISTENT
    return DeliveryMode.NON_PERSISTENT


def _read_priority(message: Message) -> int:
    source = message._source
    return 4 if source is None else min(source.prefix.header.priority, 9)


def _read_delivery_count(message: Message) -> int:
    """3.2.1: "the number of unsuccessful previous attempts to deliver this message", which this one adds to."""
    source = message._source
    return 0 if source is None else min(source.prefix.header.delivery_count + 1, _INT_MAX)


def _read_redelivered(message: Message) -> bool:
    source = message._source
    return source is not None and source.prefix.header.delivery_count > 0


def _read_type(message: Message) -> str | None:
    return text_field(message, fields.SUBJECT)


def _read_expiration(message: Message) -> int:
    return _moment_field(message, fields.ABSOLUTE_EXPIRY_TIME)


def _read_timestamp(message: Message) -> int:
    return _moment_field(message, fields.CREATION_TIME)


def _read_delivery_time(message: Message) -> int:
    """The time of delivery asked for; a message sent without a delay could be delivered when it was sent."""
    source = message._source
    value = None if source is None else meaning(source.prefix).delivery_time
    if value is None:
        return message._timestamp
    if not isinstance(value, (Long, Timestamp)):
        raise MessageFormatError(f"{fields.DELIVERY_TIME} is {value!r}: neither a long nor a timestamp")
    return int(value)


def _read_group_sequence(message: Message) -> int | None:
    """AMQP counts in unsigned 32 bits, JMS in signed ones: the same 32 bits."""
    value = field(message, fields.GROUP_SEQUENCE)
    if not isinstance(value, int):
        return None
    return int(value) - _UINT_SIZE if value > _INT_MAX else int(value)


def _read_user_id(message: Message) -> str | None:
    value = field(message, fields.USER_ID)
    if not isinstance(value, bytes):
        return None
    # What is no UTF-8 in it is shown, not refused: the user id is for people to read.
    return value.decode("utf-8", "replace")


def _read_properties(message: Message) -> dict[str, Any]:
    if message._source is None:
        return {}
    try:
        return message._source.application_properties()
    except ValueError as fault:
        raise MessageFormatError(f"the application properties cannot be read: {fault}") from fault


READERS: Mapping[str, Callable[[Message], Any]] = {
    "_ack_type": lambda message: None,
    "_content_type": lambda message: text_field(message, fields.CONTENT_TYPE),
    "_correlation_id": _read_correlation_id,
    "_default_destination": lambda message: None,
    "_delivery_count": _read_delivery_count,
    "_delivery_mode": _read_delivery_mode,
    "_delivery_time": _read_delivery_time,
    "_destination": _read_destination,
    "_expiration": _read_expiration,
    "_group_id": lambda message: text_field(message, fields.GROUP_ID),
    "_group_sequence": _read_group_sequence,
    "_message_id": _read_message_id,
    "_part": lambda message: -1,
    "_position": lambda message: 0,
    "_prefixes": lambda message: ("", ""),
    "_priority": _read_priority,
    "_properties": _read_properties,
    "_redelivered": _read_redelivered,
    "_reply_to": _read_reply_to,
    "_reply_to_group_id": lambda message: text_field(message, fields.REPLY_TO_GROUP_ID),
    "_timestamp": _read_timestamp,
    "_ttl": lambda message: None,
    "_type": _read_type,
    "_user_id": _read_user_id,
    "_writing": lambda message: False,
}
"""By slot, how its value is found the first time it is asked for."""
