"""Messages whose body is one value: a text, or whatever AMQP has a type for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jmsish.errors import MessageFormatError
from jmsish.message.base import UNREAD, Message
from jmsish.message.content_types import charset_of
from jmsish.message.contents import copy_value, fresh
from jmsish.message.fields import AMQP_VALUE, DATA, JAVA_OBJECT, PICKLED
from jmsish.message.pickling import pickled, unpickled

__all__ = ["ObjectMessage", "TextMessage", "read_body"]


def read_body(message: Message) -> tuple[int, Any]:
    """Section and value of the body that came in; ``MessageFormatError`` if its octets are none."""
    source = message._source
    if source is None:
        return 0, None
    try:
        return source.body()
    except ValueError as fault:
        raise MessageFormatError(f"the body of the message cannot be read: {fault}") from fault


def mismatch(message: Message, value: Any) -> MessageFormatError:
    """The error for a body that is not what the message says it is."""
    return MessageFormatError(f"a {type(message).__name__} whose body is a value of type {type(value).__name__}")


class TextMessage(Message):
    """A message whose body is a text, or ``None``."""

    __slots__ = ()
    type_code = 5

    def __init__(self, text: str | None = None) -> None:
        super().__init__()
        self.text = text

    @property
    def text(self) -> str | None:
        """The text."""
        value = self._body
        if value is UNREAD:
            value = self._body = self._read_text()
        found: str | None = value
        return found

    @text.setter
    def text(self, value: str | None) -> None:
        self._check_writable_body()
        if value is not None and not isinstance(value, str):
            raise TypeError(f"the body of a TextMessage is a str or None, not {value!r}")
        self._body = value

    @property
    def body(self) -> str | None:
        """The text."""
        return self.text

    @body.setter
    def body(self, value: str | None) -> None:
        self.text = value

    def _read_text(self) -> str | None:
        section, value = read_body(self)
        if value is None or (section == AMQP_VALUE and isinstance(value, str)):
            return value
        if section != DATA:
            raise mismatch(self, value)
        charset = charset_of(self._content_type) or "utf-8"
        try:
            return str(value, charset)
        except ValueError as fault:
            raise MessageFormatError(f"the text of the message is not {charset}: {fault}") from fault

    def _load(self) -> None:
        text = None if self._source is None else self._source.text
        self._body = self._read_text() if text is None else text

    def _has_body(self) -> bool:
        return self.text is not None

    def _outgoing_body(self) -> tuple[int, Any]:
        return AMQP_VALUE, self.text

    def __repr__(self) -> str:
        if self._body is UNREAD:
            return super().__repr__()
        text = self._body
        shown = repr(text if text is None or len(text) <= 40 else text[:40] + "…")
        return f"<TextMessage {self._message_id or 'not sent'} {shown}>"


class ObjectMessage(Message):
    """A message whose body is any value that AMQP has a type for: what it holds is read by clients of every language.

    A value that is set is copied, and every ``body`` is a copy: changing it changes no message. A body that some
    language serialised, a Java object or a pickle, stays the octets it came as; ``content_type`` says what they are.
    """

    __slots__ = ()
    type_code = 1

    def __init__(self, value: Any = None) -> None:
        super().__init__()
        self.object = value

    @property
    def object(self) -> Any:
        """The value."""
        value = self._body
        if value is UNREAD:
            value = self._body = read_body(self)[1]
        return fresh(value)

    @object.setter
    def object(self, value: Any) -> None:
        self._check_writable_body()
        self._body = copy_value(value)
        self._content_type = None

    @property
    def body(self) -> Any:
        """The value."""
        return self.object

    @body.setter
    def body(self, value: Any) -> None:
        self.object = value

    def pickle(self, value: Any) -> None:
        """Make the body a pickle of a Python object, which only Python can read, and only by :meth:`unpickle`.

        ``MessageFormatError`` if it cannot be pickled.
        """
        self._check_writable_body()
        self._body = pickled(value)
        self._content_type = PICKLED
        self._plain = False

    def unpickle(self, *, allow: Iterable[type]) -> Any:
        """The Python object whose pickle the body is, if all objects in it are of classes in ``allow``.

        Reading a pickle builds whatever objects its sender chose, so it is never done without being asked, and
        ``allow`` says what may be built; numbers, texts, octets, lists, tuples, maps and sets always may.
        ``MessageFormatError`` if anything else is in it, or the body is no pickle; ``TypeError`` for a wrong ``allow``.
        """
        octets = self.object
        if self._content_type != PICKLED or not isinstance(octets, bytes):
            raise MessageFormatError(f"the body is no pickle: its content type is {self._content_type!r}")
        return unpickled(octets, allow)

    @property
    def _is_serialized(self) -> bool:
        return self._content_type in (PICKLED, JAVA_OBJECT)

    @property
    def _typed_encoding(self) -> bool | None:
        return None if self._is_serialized else True

    @_typed_encoding.setter
    def _typed_encoding(self, value: bool | None) -> None:
        if value is False:
            raise MessageFormatError(
                "JMS_AMQP_TYPED_ENCODING=False asks for a serialised Java object, which Python does not make; "
                "an ObjectMessage holds a value of AMQP, which Java reads"
            )

    def _load(self) -> None:
        source = self._source
        if self._body is UNREAD and source is not None and source.body_section() != DATA:
            self._body = read_body(self)[1]

    def _has_body(self) -> bool:
        return self.object is not None

    def _outgoing_body(self) -> tuple[int, Any]:
        return DATA if self._is_serialized else AMQP_VALUE, self.object
