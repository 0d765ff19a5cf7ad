"""The fast way to octets for a producer that sends bodies: no message object in between."""

from __future__ import annotations

from typing import Any

from jmsish.destination import Destination
from jmsish.engine.composing import encode_body, plain_octets
from jmsish.engine.encoding import encode_string
from jmsish.engine.layout import Layout, Terms
from jmsish.message import body_to_message

_TEXT = 5


class MessageTemplate:
    """What is the same in all messages that one producer sends in one way: destination, mode, priority, time to live.

    Ids are ``id_prefix`` followed by a number of the caller's, in decimal; ``None`` for messages without id.
    """

    __slots__ = ("_id_prefix", "_stamped", "_terms", "_text_layout", "_text_sizes", "_ttl")

    def __init__(
        self,
        destination: Destination,
        *,
        prefixes: tuple[str, str] = ("", ""),
        delivery_mode: int = 2,
        priority: int = 4,
        ttl: int = 0,
        id_prefix: str | None,
        stamped: bool = True,
        jmsx_user_id: str | None = None,
    ) -> None:
        self._terms = Terms(destination, prefixes, delivery_mode, priority, ttl, jmsx_user_id)
        self._ttl = ttl
        self._stamped = stamped
        self._id_prefix = id_prefix
        # The layout of a text, and for how many octets of id it is: it changes when the number gains a digit.
        self._text_layout: Layout | None = None
        self._text_sizes = -2

    def message_id(self, number: int) -> str | None:
        """The id of the message of this number."""
        return None if self._id_prefix is None else f"{self._id_prefix}{number}"

    def encode_text(self, text: str, number: int, now: int) -> bytes:
        """The octets of a TextMessage with this body that is sent now."""
        prefix = self._id_prefix
        message_id = b"" if prefix is None else f"{prefix}{number}".encode()
        layout = self._text_layout
        if layout is None or len(message_id) != self._text_sizes:
            layout = self._text_layout = self._layout(_TEXT, -1 if prefix is None else len(message_id))
            self._text_sizes = len(message_id)
        return layout.fill(message_id, now, now + self._ttl) + b"\x00Sw" + encode_string(text)

    def _layout(self, type_code: int, id_size: int) -> Layout:
        return Layout(type_code, self._terms, id_size, self._stamped)

    def encode(self, body: Any, number: int, now: int) -> bytes:
        """The octets of the message that fits a body: text, octets, mapping, list or tuple, or ``None``."""
        if isinstance(body, str):
            return self.encode_text(body, number, now)
        type_code, section, value = _fitting(body)
        expiration = now + self._ttl if self._ttl else 0
        beginning = plain_octets(
            type_code,
            self.message_id(number),
            now if self._stamped else 0,
            expiration,
            *self._parameters,
            self._user_id,
        )
        return beginning + encode_body(section, value)


def _fitting(body: Any) -> tuple[int, int, Any]:
    """Type of message, section and value of a body; ``MessageFormatError`` for one that makes no message."""
    message = body_to_message(body)
    return (message.type_code, *message._outgoing_body())
