"""A message that came in: its sections, each decoded when somebody asks for it."""

from __future__ import annotations

from struct import error as struct_error
from typing import Any

from jmsish.engine.decoding import DecodeError, decode
from jmsish.engine.likeness import LEARNING, SAVED_AT_MOST, Likeness, likeness_of
from jmsish.engine.sections import (
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    NO_HEADER,
    PROPERTIES,
    Header,
    bare_offset,
    check_properties,
    check_sections,
    message_annotations_at,
    offset_behind,
    property_at,
    section_at,
    skip,
    split_header,
)
from jmsish.message.fields import AMQP_VALUE, DATA, PROPERTY_COUNT


class Prefix:
    """What stands before the bare message; the messages of one producer mostly have the same, octet for octet."""

    __slots__ = ("annotations", "has_header", "header", "meaning")

    def __init__(self, header: Header | None, annotations: dict[str, Any]) -> None:
        self.has_header = header is not None
        self.header = NO_HEADER if header is None else header
        self.annotations = annotations
        """The message annotations. Shared between messages: to be read only."""
        self.meaning: Any = None
        """What the reader of these annotations made of them, kept for the next message that has the same."""


_PREFIXES: dict[bytes, Prefix] = {}
_PREFIXES_LIMIT = 512
_PREFIX_SIZE_LIMIT = 512


def _decode_prefix(octets: bytes) -> Prefix:
    check_sections(octets)
    header, rest = split_header(octets)
    prefix = Prefix(header, message_annotations_at(octets, rest)[0])
    if len(octets) <= _PREFIX_SIZE_LIMIT:
        if len(_PREFIXES) >= _PREFIXES_LIMIT:
            _PREFIXES.clear()
        _PREFIXES[octets] = prefix
    return prefix


class ReceivedMessage:
    """The octets of a message and lazy views of its sections; octets that are no message raise ``DecodeError``.

    Values are decoded afresh at each call, so a caller may keep and change what it gets.
    """

    __slots__ = ("_body_at", "bare", "has_application_properties", "payload", "prefix", "text")

    prefix: Prefix
    text: str | None

    def __init__(self, payload: bytes, known: tuple[int, Prefix] | None = None) -> None:
        """``known`` is where the bare message begins and what stands before it, where that is known already."""
        self.payload = payload
        if known is None:
            bare = self.bare = bare_offset(payload)
            octets = payload[:bare]
            self.prefix = _PREFIXES.get(octets) or _decode_prefix(octets)
        else:
            self.bare, self.prefix = known
        self._body_at = -1
        self.has_application_properties = False
        self.text = None

    def check(self) -> int | None:
        """The expiry time, ``None`` if there is none; ``DecodeError`` if the sections are not what Part 3, 3.2 says.

        What is inside the application properties and the body is decoded, and so checked, when it is read; but a short
        text, which most bodies are, is decoded here and kept as ``text``.
        """
        expiry, pos = check_properties(self.payload, self.bare)
        self.check_behind(pos)
        return expiry

    def check_behind(self, pos: int) -> None:
        """The same for what follows the properties, from ``pos`` on."""
        payload, size = self.payload, len(self.payload)
        # A short text that ends the message: it has nothing behind it to be out of order.
        if pos + 4 < size and payload[pos : pos + 4] == b"\x00Sw\xa1" and pos + 5 + payload[pos + 4] == size:
            self._body_at = pos
            try:
                self.text = str(payload[pos + 5 :], "utf-8")
            except UnicodeDecodeError as fault:
                raise DecodeError("text that is not utf-8", pos + 5 + fault.start) from None
        else:
            check_sections(payload, pos, PROPERTIES)
            self._body_at = offset_behind(payload, APPLICATION_PROPERTIES, pos)
            self.has_application_properties = self._body_at > pos

    def header(self) -> Header:
        """The header, with the defaults of the standard for what is not in it."""
        return self.prefix.header

    def delivery_annotations(self) -> dict[Any, Any]:
        """The delivery annotations, empty if there are none."""
        pos = 0
        while pos < self.bare:
            code, value = section_at(self.payload, pos)
            if code == DELIVERY_ANNOTATIONS:
                found: dict[Any, Any] = decode(self.payload, value)[0]
                return found
            pos = skip(self.payload, value)
        return {}

    def message_annotations(self) -> dict[str, Any]:
        """The message annotations, empty if there are none."""
        _, rest = split_header(self.payload[: self.bare])
        return message_annotations_at(self.payload[: self.bare], rest)[0]

    def property(self, index: int) -> Any:
        """One field of the properties section, by position; ``None`` if absent."""
        return property_at(self.payload, self.bare, index)

    def properties(self) -> list[Any]:
        """The thirteen fields of the properties section, ``None`` for each that is absent."""
        if self.bare >= len(self.payload):
            return [None] * PROPERTY_COUNT
        code, value = section_at(self.payload, self.bare)
        fields = decode(self.payload, value)[0] if code == PROPERTIES else []
        if not isinstance(fields, list) or len(fields) > PROPERTY_COUNT:
            raise DecodeError("properties that are no list of thirteen fields", self.bare)
        return fields + [None] * (PROPERTY_COUNT - len(fields))

    def application_properties(self) -> dict[str, Any]:
        """The application properties, empty if there are none."""
        octets = self.application_property_octets()
        if not octets:
            return {}
        properties, _ = decode(octets, section_at(octets, 0)[1])
        if not isinstance(properties, dict) or not all(isinstance(name, str) for name in properties):
            raise DecodeError("application properties that are no map of names", self.bare)
        return properties

    def application_property_octets(self) -> bytes:
        """The application properties as they came, section and all; empty if there are none."""
        payload, pos, end = self.payload, self.bare, self.body_offset()
        while pos < end:
            code, value = section_at(payload, pos)
            behind = skip(payload, value)
            if code == APPLICATION_PROPERTIES:
                return payload[pos:behind]
            pos = behind
        return b""

    def body_offset(self) -> int:
        """Where the body begins: behind properties and application properties."""
        if self._body_at >= 0:
            return self._body_at
        self._body_at = offset_behind(self.payload, APPLICATION_PROPERTIES, self.bare)
        return self._body_at

    def body_section(self) -> int:
        """Which section the body is (``DATA``, ``AMQP_SEQUENCE``, ``AMQP_VALUE``); 0 if there is no body."""
        pos = self.body_offset()
        if pos == len(self.payload):
            return 0
        code = section_at(self.payload, pos)[0]
        return 0 if code == FOOTER else code

    def body_octets(self) -> bytes:
        """The sections of the body as they came, without the footer."""
        payload, start = self.payload, self.body_offset()
        pos, size = start, len(self.payload)
        try:
            while pos < size:
                code, value = section_at(payload, pos)
                if code == FOOTER:
                    break
                pos = skip(payload, value)
        except (IndexError, struct_error):
            pos = size + 1
        if pos > size:
            raise DecodeError("the octets end inside a section", size)
        return payload[start:pos]

    def body(self) -> tuple[int, Any]:
        """The section that the body is, and its value; several data sections, or sequences, come as one."""
        if self.text is not None:
            return AMQP_VALUE, self.text
        payload, pos = self.payload, self.body_offset()
        # A short text that ends the message, which most are.
        try:
            if payload[pos : pos + 4] == b"\x00Sw\xa1" and pos + 5 + payload[pos + 4] == len(payload):
                return AMQP_VALUE, str(payload[pos + 5 :], "utf-8")
        except UnicodeDecodeError as fault:
            raise DecodeError("text that is not utf-8", pos + 5 + fault.start) from None
        except IndexError:
            raise DecodeError("the octets end inside the body", pos) from None
        section = self.body_section()
        if section == 0:
            return 0, None
        values = self._body_values(section, pos)
        if section == AMQP_VALUE:
            if len(values) != 1:
                raise DecodeError("a body of several values", pos)
            return section, values[0]
        kind: type = bytes if section == DATA else list
        if not all(isinstance(value, kind) for value in values):
            raise DecodeError("a body section that does not hold what it says", pos)
        if section == DATA:
            return section, b"".join(values)
        return section, values[0] if len(values) == 1 else [item for value in values for item in value]

    def _body_values(self, section: int, pos: int) -> list[Any]:
        payload, size = self.payload, len(self.payload)
        values = []
        while pos < size:
            code, value = section_at(payload, pos)
            if code == FOOTER:
                break
            if code != section:
                raise DecodeError(f"section {code:#x} inside a body of sections {section:#x}", pos)
            item, pos = decode(payload, value)
            values.append(item)
        return values


class Reader:
    """Reads the messages of one link: what it found out of one holds for the next if that is like it."""

    __slots__ = ("_like", "_saved")

    def __init__(self) -> None:
        self._like: Likeness | None = None
        self._saved = LEARNING

    def read(self, payload: bytes) -> tuple[ReceivedMessage, int | None]:  # hot: once for each message received
        """A message that has been checked, and its expiry time, as by ``ReceivedMessage.check``."""
        like = self._like
        if like is not None:
            head, id_at, id_end, middle, times_end, tail, end, is_short_text, known = like
            if (
                payload.startswith(head)
                and payload.startswith(middle, id_end)
                and payload.startswith(tail, times_end)
                and payload[id_at:id_end].isascii()
            ):
                received = ReceivedMessage(payload, known)
                try:
                    if is_short_text and len(payload) - end - 5 == payload[end + 4]:
                        received._body_at = end
                        received.text = str(payload[end + 5 :], "utf-8")
                    else:
                        received.check_behind(end)
                except (IndexError, UnicodeDecodeError):
                    received.check_behind(end)  # it says what is wrong
                if self._saved < SAVED_AT_MOST:
                    self._saved += 1
                return received, None
        received = ReceivedMessage(payload)
        expiry = received.check()
        self._saved += 1
        if self._saved > LEARNING and expiry is None:
            self._saved -= LEARNING
            self._like = likeness_of(payload, received.bare, (received.bare, received.prefix)) or like
        return received, expiry
