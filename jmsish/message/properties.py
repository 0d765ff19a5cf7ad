"""The properties of a message: a mapping, and typed access by the conversion table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, cast

from jmsish.errors import MessageFormatError, MessageNotWriteableError
from jmsish.message.contents import property_value
from jmsish.message.conversions import convert, kind_of, written
from jmsish.message.names import check_name
from jmsish.types import Char, UInt

if TYPE_CHECKING:
    from jmsish.message.base import Message

# Properties that stand in a field of the AMQP properties, or nowhere, by the slot they are kept in.
_SLOTS: Mapping[str, tuple[str, str]] = {
    "JMSXGroupID": ("_group_id", "string"),
    "JMSXGroupSeq": ("_group_sequence", "int"),
    "JMSXUserID": ("_user_id", "string"),
    "JMSXDeliveryCount": ("_delivery_count", "int"),
    "JMS_AMQP_REPLY_TO_GROUP_ID": ("_reply_to_group_id", "string"),
    "JMS_AMQP_TTL": ("_ttl", "long"),
    "JMS_AMQP_ACK_TYPE": ("_ack_type", "int"),
    "JMS_AMQP_TYPED_ENCODING": ("_typed_encoding", "boolean"),
}

_ACK_TYPE = "JMS_AMQP_ACK_TYPE"

# What says how a body is encoded is no more part of the properties than the body: whoever copies them leaves it.
_NAMED = tuple(name for name in _SLOTS if name != "JMS_AMQP_TYPED_ENCODING")


class Properties(MutableMapping[str, Any]):
    """The properties of one message as a mapping; changes go to the message.

    Setting checks name and value as JMS has it; on a received message it raises ``MessageNotWriteableError`` until
    ``clear_properties()``.
    """

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        self._message = message

    def __getitem__(self, name: str) -> Any:
        if name in _SLOTS:
            value = self._slot_value(name)
            if value is None:
                raise KeyError(name)
            return value
        return self._message._properties[name]

    def _slot_value(self, name: str) -> Any:
        value = getattr(self._message, _SLOTS[name][0])
        # A count of deliveries is none before the first.
        return None if name == "JMSXDeliveryCount" and value == 0 else value

    def __setitem__(self, name: str, value: Any) -> None:
        message = self._message
        check_name(name)
        # How to acknowledge is asked of the one who received a message, so it may be set on a received one.
        if message._locked_properties and name != _ACK_TYPE:
            raise MessageNotWriteableError(
                "the properties of a received message are read-only; clear_properties() removes them"
            )
        message._plain = False
        if name in _SLOTS:
            setattr(message, _SLOTS[name][0], self._checked_slot(name, value))
        else:
            message._properties[name] = property_value(value, name)

    def _checked_slot(self, name: str, value: Any) -> Any:
        if value is None and name != "JMSXDeliveryCount":
            return None
        kind = _SLOTS[name][1]
        if kind_of(value) is None:
            raise MessageFormatError(f"property {name} cannot be {value!r}")
        value = convert(value, kind, f"property {name}")
        if name == "JMS_AMQP_TTL" and not 0 <= value <= UInt.MAX:
            raise MessageFormatError(f"JMS_AMQP_TTL={value} is out of range (0 to {UInt.MAX})")
        if name == _ACK_TYPE and not 1 <= value <= 5:
            raise MessageFormatError(f"JMS_AMQP_ACK_TYPE={value} is out of range (1 to 5)")
        return value

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        message = self._message
        if message._locked_properties:
            raise MessageNotWriteableError(
                "the properties of a received message are read-only; clear_properties() removes them"
            )
        if name in _SLOTS:
            setattr(message, _SLOTS[name][0], 0 if name == "JMSXDeliveryCount" else None)
        else:
            del message._properties[name]

    def __iter__(self) -> Iterator[str]:
        for name in self._message._properties:
            if name not in _SLOTS:
                yield name
        for name in _NAMED:
            if self._slot_value(name) is not None:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        if name in _SLOTS:
            return self._slot_value(cast(str, name)) is not None
        return name in self._message._properties

    def __repr__(self) -> str:
        return repr(dict(self))


class TypedProperties:
    """Access to properties by JMS type: a get converts by the table, a set fixes the type.

    A property that is not there reads as ``None`` where it is read as a string or an object, as false where as a
    boolean, and raises ``NumberFormatError`` (a ``ValueError``) where as a number. What the table forbids raises
    ``MessageFormatError``.
    """

    __slots__ = ()

    def _typed(self, name: str, target: str) -> Any:
        if not name:
            raise ValueError("the name of a property is empty")
        value = Properties(cast("Message", self)).get(name)
        return convert(str(value) if isinstance(value, Char) else value, target, f"property {name}")

    def _write(self, name: str, value: Any, target: str) -> None:
        Properties(cast("Message", self))[name] = written(value, target, f"property {name}")

    def property_exists(self, name: str) -> bool:
        """Whether there is a property of this name."""
        return name in Properties(cast("Message", self))

    def get_boolean_property(self, name: str) -> bool:
        """The property as a boolean."""
        return bool(self._typed(name, "boolean"))

    def get_byte_property(self, name: str) -> int:
        """The property as an 8-bit integer."""
        return int(self._typed(name, "byte"))

    def get_short_property(self, name: str) -> int:
        """The property as a 16-bit integer."""
        return int(self._typed(name, "short"))

    def get_int_property(self, name: str) -> int:
        """The property as a 32-bit integer."""
        return int(self._typed(name, "int"))

    def get_long_property(self, name: str) -> int:
        """The property as a 64-bit integer."""
        return int(self._typed(name, "long"))

    def get_float_property(self, name: str) -> float:
        """The property as a 32-bit floating point number."""
        return float(self._typed(name, "float"))

    def get_double_property(self, name: str) -> float:
        """The property as a 64-bit floating point number."""
        return float(self._typed(name, "double"))

    def get_string_property(self, name: str) -> str | None:
        """The property as a text."""
        found: str | None = self._typed(name, "string")
        return found

    def get_object_property(self, name: str) -> Any:
        """The property as it is, whatever its type."""
        return Properties(cast("Message", self)).get(name)

    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a boolean."""
        self._write(name, value, "boolean")

    def set_byte_property(self, name: str, value: int) -> None:
        """Set an 8-bit integer."""
        self._write(name, value, "byte")

    def set_short_property(self, name: str, value: int) -> None:
        """Set a 16-bit integer."""
        self._write(name, value, "short")

    def set_int_property(self, name: str, value: int) -> None:
        """Set a 32-bit integer."""
        self._write(name, value, "int")

    def set_long_property(self, name: str, value: int) -> None:
        """Set a 64-bit integer."""
        self._write(name, value, "long")

    def set_float_property(self, name: str, value: float) -> None:
        """Set a 32-bit floating point number."""
        self._write(name, value, "float")

    def set_double_property(self, name: str, value: float) -> None:
        """Set a 64-bit floating point number."""
        self._write(name, value, "double")

    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a text."""
        self._write(name, value, "string")

    def set_object_property(self, name: str, value: Any) -> None:
        """Set a value of any type that a property may have; ``MessageFormatError`` for any other."""
        Properties(cast("Message", self))[name] = value
