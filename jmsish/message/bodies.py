"""Messages whose body is one value: a text, or whatever AMQP has a type for."""

from __future__ import annotations

from typing import Any

from jmsish.errors import MessageFormatError
from jmsish.message.base import UNREAD, Message
from jmsish.message.content_types import charset_of
from jmsish.message.contents import copy_value, fresh
from jmsish.message.fields import AMQP_VALUE, CONTENT_TYPE, DATA
from jmsish.message.headers import text_field

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
        charset = charset_of(text_field(self, CONTENT_TYPE)) or "utf-8"
        try:
            return str(value, charset)
        except UnicodeDecodeError as fault:
            raise MessageFormatError(f"the text of the message is not {charset}: {fault}") from fault

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
    """A message whose body is any value that AMQP has a type for; a serialised Java object stays the octets it came as.

    A value that is set is copied, and every ``body`` is a copy: changing it changes no message.
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

    @property
    def body(self) -> Any:
        """The value."""
        return self.object

    @body.setter
    def body(self, value: Any) -> None:
        self.object = value

    def _has_body(self) -> bool:
        return self.object is not None

    def _outgoing_body(self) -> tuple[int, Any]:
        return AMQP_VALUE, self.object
