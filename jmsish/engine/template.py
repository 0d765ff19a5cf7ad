"""The fast way to octets for a producer that sends bodies: no message object in between."""

from __future__ import annotations

from typing import Any

from jmsish.destination import Destination, Prefixes
from jmsish.engine.composing import encode_body
from jmsish.engine.encoding import encode_string
from jmsish.engine.layout import Layout, Terms, escaped, pack_time
from jmsish.message import body_to_message

_TEXT = 5


class MessageTemplate:
    """What is the same in all messages that one producer sends in one way: destination, mode, priority, time to live.

    Ids are ``id_prefix`` followed by a number of the caller's, in decimal; ``None`` for messages without id.
    """

    __slots__ = ("_below", "_from", "_id_prefix", "_layouts", "_stamped", "_terms", "_text", "_ttl")

    def __init__(
        self,
        destination: Destination,
        *,
        prefixes: Prefixes = ("", ""),
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
        self._id_prefix = None if id_prefix is None else id_prefix.encode()
        # By type of message and octets of the id: there are as many as types are sent, and the number gains digits.
        self._layouts: dict[tuple[int, int], Layout] = {}
        # All of a short text, for numbers of so many digits.
        self._text = b""
        self._from = self._below = 0

    def message_id(self, number: int) -> str | None:
        """The id of the message of this number."""
        return None if self._id_prefix is None else f"{self._id_prefix.decode()}{number}"

    def encode_text(self, text: str, number: int, now: int) -> bytes:
        """The octets of a TextMessage with this body that is sent now."""
        octets = text.encode()
        size = len(octets)
        if self._from <= number < self._below:
            if size < 256:
                return self._text % (number, pack_time(now), size, octets)
        elif self._stamped and not self._ttl:
            self._prepare_texts(number)
        return self._beginning(_TEXT, number, now) + b"\x00Sw" + encode_string(text)

    def _prepare_texts(self, number: int) -> None:
        prefix, digits = self._id_prefix, len(str(number))
        if prefix is not None and number > 0:
            layout = Layout(_TEXT, self._terms, len(prefix) + digits, True, escaped(prefix) + b"%d")
            self._text = layout.format + b"\x00Sw\xa1%c%b"
            self._from, self._below = 10 ** (digits - 1), 10**digits

    def encode(self, body: Any, number: int, now: int) -> bytes:
        """The octets of the message that fits a body: text, octets, mapping, list or tuple, or ``None``."""
        if isinstance(body, str):
            return self.encode_text(body, number, now)
        message = body_to_message(body)
        return self._beginning(message.type_code, number, now) + encode_body(*message._outgoing_body())

    def _beginning(self, type_code: int, number: int, now: int) -> bytes:
        prefix = self._id_prefix
        message_id = b"" if prefix is None else b"%b%d" % (prefix, number)
        key = (type_code, len(message_id))
        layout = self._layouts.get(key)
        if layout is None:
            size = -1 if prefix is None else len(message_id)
            layout = self._layouts[key] = Layout(type_code, self._terms, size, self._stamped)
        return layout.fill(message_id, now, now + self._ttl)
