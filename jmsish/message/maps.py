"""The message whose body maps names to values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, cast

from jmsish.errors import MessageFormatError
from jmsish.message.base import UNREAD, Message
from jmsish.message.bodies import mismatch, read_body
from jmsish.message.contents import fresh, item_value
from jmsish.message.conversions import convert, written
from jmsish.message.fields import AMQP_VALUE

__all__ = ["MapMessage"]


class MapMessage(MutableMapping[str, Any], Message):
    """A message whose body maps names to values; the message itself is that mapping.

    Values are booleans, numbers, texts, characters and ``bytes``; an ObjectMessage carries lists and maps of them. A
    ``get_…`` converts by JMS's table, a ``set_…`` fixes the type; a name that is not there reads as ``None``.
    """

    __slots__ = ()
    type_code = 2

    # A message is equal to itself only, whatever a mapping would say.
    __eq__ = object.__eq__
    __hash__ = object.__hash__
    __bool__ = Message.__bool__
    __repr__ = Message.__repr__

    def __init__(self, mapping: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.body = mapping or {}

    @property
    def body(self) -> dict[str, Any]:
        """The map, as a copy."""
        return cast("dict[str, Any]", fresh(self._entries()))

    @body.setter
    def body(self, value: Mapping[str, Any]) -> None:
        self._check_writable_body()
        if not isinstance(value, Mapping):
            raise TypeError(f"the body of a MapMessage is a mapping, not {value!r}")
        self._body = {_check_key(name): item_value(item, "item", name) for name, item in value.items()}

    def _entries(self) -> dict[str, Any]:
        entries: Any = self._body
        if entries is UNREAD:
            section, entries = read_body(self)
            if entries is None:
                entries = {}
            elif section != AMQP_VALUE or not isinstance(entries, dict):
                raise mismatch(self, entries)
            elif not all(isinstance(name, str) for name in entries):
                raise MessageFormatError("a MapMessage with a name that is no text")
            self._body = entries
        found: dict[str, Any] = entries
        return found

    def clear_body(self) -> None:
        """Make the map empty and writable; headers and properties stay."""
        super().clear_body()
        self._body = {}

    def _load(self) -> None:
        self._entries()

    def _has_body(self) -> bool:
        return bool(self._entries())

    def _outgoing_body(self) -> tuple[int, Any]:
        return AMQP_VALUE, self._entries()

    def __getitem__(self, name: str) -> Any:
        return fresh(self._entries()[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._check_writable_body()
        self._entries()[_check_key(name)] = item_value(value, "item", name)

    def __delitem__(self, name: str) -> None:
        self._check_writable_body()
        del self._entries()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._entries()))

    def __len__(self) -> int:
        return len(self._entries())

    def item_exists(self, name: str) -> bool:
        """Whether there is an item of this name."""
        return name in self._entries()

    def _item(self, name: str, target: str) -> Any:
        return convert(self._entries().get(name), target, f"item {name}")

    def _put(self, name: str, value: Any, target: str) -> None:
        self[name] = written(value, target, f"item {name}")

    # -- typed access --------------------------------------------------------------------------------------------------

    def get_boolean(self, name: str) -> bool:
        """The item as a boolean."""
        return bool(self._item(name, "boolean"))

    def get_byte(self, name: str) -> int:
        """The item as an 8-bit integer."""
        return int(self._item(name, "byte"))

    def get_short(self, name: str) -> int:
        """The item as a 16-bit integer."""
        return int(self._item(name, "short"))

    def get_char(self, name: str) -> str:
        """The item as a character."""
        return str(self._item(name, "char"))

    def get_int(self, name: str) -> int:
        """The item as a 32-bit integer."""
        return int(self._item(name, "int"))

    def get_long(self, name: str) -> int:
        """The item as a 64-bit integer."""
        return int(self._item(name, "long"))

    def get_float(self, name: str) -> float:
        """The item as a 32-bit floating point number."""
        return float(self._item(name, "float"))

    def get_double(self, name: str) -> float:
        """The item as a 64-bit floating point number."""
        return float(self._item(name, "double"))

    def get_string(self, name: str) -> str | None:
        """The item as a text."""
        found: str | None = self._item(name, "string")
        return found

    def get_bytes(self, name: str) -> bytes | None:
        """The item as octets."""
        found: bytes | None = self._item(name, "bytes")
        return found

    def get_object(self, name: str) -> Any:
        """The item as it is, whatever its type."""
        return fresh(self._entries().get(name))

    def set_boolean(self, name: str, value: bool) -> None:
        """Set a boolean."""
        self._put(name, value, "boolean")

    def set_byte(self, name: str, value: int) -> None:
        """Set an 8-bit integer."""
        self._put(name, value, "byte")

    def set_short(self, name: str, value: int) -> None:
        """Set a 16-bit integer."""
        self._put(name, value, "short")

    def set_char(self, name: str, value: str) -> None:
        """Set a character."""
        self._put(name, value, "char")

    def set_int(self, name: str, value: int) -> None:
        """Set a 32-bit integer."""
        self._put(name, value, "int")

    def set_long(self, name: str, value: int) -> None:
        """Set a 64-bit integer."""
        self._put(name, value, "long")

    def set_float(self, name: str, value: float) -> None:
        """Set a 32-bit floating point number."""
        self._put(name, value, "float")

    def set_double(self, name: str, value: float) -> None:
        """Set a 64-bit floating point number."""
        self._put(name, value, "double")

    def set_string(self, name: str, value: str | None) -> None:
        """Set a text."""
        self._put(name, value, "string")

    def set_bytes(self, name: str, value: bytes | None) -> None:
        """Set octets."""
        self._put(name, value, "bytes")

    def set_object(self, name: str, value: Any) -> None:
        """Set a value of any type that a body may hold; ``MessageFormatError`` for any other."""
        self[name] = value


def _check_key(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of an item is a str, not {name!r}")
    if not name:
        raise ValueError("the name of an item is empty")
    return name
