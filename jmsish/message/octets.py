"""The message whose body is octets."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any, ClassVar, TypeVar, overload

from jmsish.errors import MessageEOFError, MessageFormatError
from jmsish.message.base import UNREAD
from jmsish.message.bodies import mismatch, read_body
from jmsish.message.conversions import kind_of, written
from jmsish.message.fields import AMQP_VALUE, DATA
from jmsish.message.sequential import Sequential, room

__all__ = ["BytesMessage"]

_T = TypeVar("_T")


class BytesMessage(Sequential):
    """A message whose body is octets; numbers are written and read in network order, the highest octet first."""

    __slots__ = ()
    type_code: ClassVar[int] = 3

    def __init__(self, data: bytes = b"") -> None:
        super().__init__()
        self.data = data

    @property
    def data(self) -> bytes:
        """All the octets, in either mode; setting them needs write mode."""
        return bytes(self._octets())

    @data.setter
    def data(self, value: bytes) -> None:
        self._check_writing()
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"the body of a BytesMessage is bytes, not {value!r}")
        self._body = bytes(value)

    @property
    def body(self) -> bytes:
        """All the octets."""
        return self.data

    @body.setter
    def body(self, value: bytes) -> None:
        self.data = value

    @property
    def body_length(self) -> int:
        """How many octets there are; not to be asked in write mode."""
        self._check_readable()
        return len(self._octets())

    def open(self) -> Any:
        """The octets as a file open for reading in binary mode, at the beginning.

        Of a received message this is how a large body is read while it arrives (see the option `stream_threshold`):
        then it can be opened once, and read until the session goes on. With `jmsish.aio` its `read` and `close` are
        awaited. Raises ``IllegalStateError`` when such a body was opened before.
        """
        if self._owner is not None:
            return self._owner.open(self)
        return BytesIO(self._octets())

    def clear_body(self) -> None:
        """Make the body empty, in write mode; headers and properties stay."""
        super().clear_body()
        self._body = b""

    def get_body(self, type: type[_T]) -> _T | None:
        """The octets as ``type``, or ``None`` if there are none; then reading begins at the beginning again."""
        self.reset()
        found = super().get_body(type)
        self.reset()
        return found

    def _octets(self) -> bytes | bytearray:
        value = self._body
        if value is UNREAD:
            section, value = read_body(self)
            if value is None:
                value = b""
            elif section not in (DATA, AMQP_VALUE) or type(value) is not bytes:
                raise mismatch(self, value)
            self._body = value
        octets: bytes | bytearray = value
        return octets

    def _load(self) -> None:
        source = self._source
        if source is not None and source.body_section() not in (0, DATA):
            self._octets()

    def _has_body(self) -> bool:
        return bool(self._octets())

    def _outgoing_body(self) -> tuple[int, Any]:
        return DATA, bytes(self._octets())

    # -- reading -------------------------------------------------------------------------------------------------------

    def _take(self, size: int) -> bytes:
        self._check_readable()
        octets, start = self._octets(), self._position
        if start + size > len(octets):
            raise MessageEOFError(f"{size} octets wanted, {len(octets) - start} left")
        self._position = start + size
        return bytes(octets[start : start + size])

    def _unpack(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def read_boolean(self) -> bool:
        """An octet; true unless it is 0."""
        return self._take(1) != b"\x00"

    def read_byte(self) -> int:
        """A signed 8-bit integer."""
        return int(self._unpack(">b"))

    def read_unsigned_byte(self) -> int:
        """An unsigned 8-bit integer."""
        return int(self._unpack(">B"))

    def read_short(self) -> int:
        """A signed 16-bit integer."""
        return int(self._unpack(">h"))

    def read_unsigned_short(self) -> int:
        """An unsigned 16-bit integer."""
        return int(self._unpack(">H"))

    def read_char(self) -> str:
        """A character of 16 bits."""
        return chr(self._unpack(">H"))

    def read_int(self) -> int:
        """A signed 32-bit integer."""
        return int(self._unpack(">i"))

    def read_long(self) -> int:
        """A signed 64-bit integer."""
        return int(self._unpack(">q"))

    def read_float(self) -> float:
        """A 32-bit floating point number."""
        return float(self._unpack(">f"))

    def read_double(self) -> float:
        """A 64-bit floating point number."""
        return float(self._unpack(">d"))

    def read_utf(self) -> str:
        """A text in Java's modified UTF-8, its length in front."""
        self._check_readable()
        before = self._position
        try:
            return _from_modified_utf8(self._take(self.read_unsigned_short()))
        except (MessageEOFError, MessageFormatError):
            self._position = before
            raise

    @overload
    def read_bytes(self, into: int | None = None) -> bytes: ...
    @overload
    def read_bytes(self, into: bytearray | memoryview) -> int: ...

    def read_bytes(self, into: int | bytearray | memoryview | None = None) -> bytes | int:
        """At most ``into`` octets, or all that are left; ``b""`` at the end.

        Given a buffer it fills it as far as the octets go and returns how many it put there, -1 at the end (jms rule
        173).
        """
        self._check_readable()
        size, view = room(into)
        left = len(self._octets()) - self._position
        piece = self._take(left if size is None else min(size, left))
        if view is None:
            return piece
        view[: len(piece)] = piece
        return len(piece) if left else -1

    # -- writing -------------------------------------------------------------------------------------------------------

    def _add(self, octets: bytes) -> None:
        self._check_writing()
        if not isinstance(self._body, bytearray):
            self._body = bytearray(self._body)
        self._body += octets

    def write_boolean(self, value: bool) -> None:
        """Add an octet, 1 for true and 0 for false."""
        self._add(b"\x01" if written(value, "boolean", "write_boolean") else b"\x00")

    def write_byte(self, value: int) -> None:
        """Add an 8-bit integer."""
        self._add(struct.pack(">b", written(value, "byte", "write_byte")))

    def write_short(self, value: int) -> None:
        """Add a 16-bit integer."""
        self._add(struct.pack(">h", written(value, "short", "write_short")))

    def write_char(self, value: str) -> None:
        """Add a character of 16 bits; one beyond them raises ``ValueError``."""
        self._add(struct.pack(">H", ord(written(value, "char", "write_char"))))

    def write_int(self, value: int) -> None:
        """Add a 32-bit integer."""
        self._add(struct.pack(">i", written(value, "int", "write_int")))

    def write_long(self, value: int) -> None:
        """Add a 64-bit integer."""
        self._add(struct.pack(">q", written(value, "long", "write_long")))

    def write_float(self, value: float) -> None:
        """Add a 32-bit floating point number."""
        self._add(struct.pack(">f", written(value, "float", "write_float")))

    def write_double(self, value: float) -> None:
        """Add a 64-bit floating point number."""
        self._add(struct.pack(">d", written(value, "double", "write_double")))

    def write_utf(self, value: str) -> None:
        """Add a text in Java's modified UTF-8, its length in front; at most 65535 octets."""
        if not isinstance(value, str):
            raise TypeError(f"write_utf takes a str, not {value!r}")
        octets = _to_modified_utf8(value)
        if len(octets) > 0xFFFF:
            raise ValueError(f"a text of {len(octets)} octets; write_utf takes 65535 at most")
        self._add(struct.pack(">H", len(octets)) + octets)

    def write_bytes(self, value: bytes) -> None:
        """Add octets."""
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"write_bytes takes bytes, not {value!r}")
        self._add(bytes(value))

    def write_object(self, value: Any) -> None:
        """Add a value in the form of its type: boolean, number, text (as ``write_utf``) or octets."""
        if value is None:
            raise TypeError("write_object takes a value, not None")
        form = _FORMS.get(kind_of(bytes(value) if isinstance(value, bytearray) else value) or "")
        if form is None:
            raise MessageFormatError(f"a value of type {type(value).__name__} has no form in a BytesMessage")
        getattr(self, f"write_{form}")(value)


_FORMS = {kind: kind for kind in ("boolean", "byte", "short", "int", "long", "float", "double", "char", "bytes")}
_FORMS["string"] = "utf"


def _to_modified_utf8(text: str) -> bytes:
    """Java's: NUL as two octets, characters beyond 16 bits as two surrogates of three octets each."""
    wide = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(wide) // 2}H", wide)
    return b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)


def _from_modified_utf8(octets: bytes) -> str:
    try:
        units = octets.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    except UnicodeDecodeError as fault:
        raise MessageFormatError(f"a text that is not in modified UTF-8: {fault}") from fault
