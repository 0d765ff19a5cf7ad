"""What sessions and contexts make without asking anybody: destinations and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jmsish.destination import Queue, Topic
from jmsish.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage


class Creators:
    """The creators of a session or a context that do not wait.

    All raise `IllegalStateError` once it is closed (JMS 3.1, 6.2.15); what they made before stays usable.
    """

    def _check_open(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say whether it is open")

    def create_queue(self, name: str) -> Queue:
        """The queue of this name.  It is a value: nothing is asked of, or made at, the broker."""
        self._check_open()
        return Queue(name)

    def create_topic(self, name: str) -> Topic:
        """The topic of this name.  It is a value: nothing is asked of, or made at, the broker."""
        self._check_open()
        return Topic(name)

    def create_message(self) -> Message:
        """A message without a body."""
        self._check_open()
        return Message()

    def create_text_message(self, text: str | None = None) -> TextMessage:
        """A message whose body is a text."""
        self._check_open()
        return TextMessage(text)

    def create_bytes_message(self, data: bytes = b"") -> BytesMessage:
        """A message whose body is octets."""
        self._check_open()
        return BytesMessage(data)

    def create_map_message(self, mapping: Mapping[str, Any] | None = None) -> MapMessage:
        """A message whose body maps names to values."""
        self._check_open()
        return MapMessage(mapping)

    def create_stream_message(self, items: Any = ()) -> StreamMessage:
        """A message whose body is a sequence of values."""
        self._check_open()
        return StreamMessage(items)

    def create_object_message(self, value: Any = None) -> ObjectMessage:
        """A message whose body is a value that AMQP has a type for, lists and maps included."""
        self._check_open()
        return ObjectMessage(value)
