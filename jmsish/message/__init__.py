"""Messages: what JMS calls Message, TextMessage, BytesMessage, MapMessage, StreamMessage and ObjectMessage."""

from __future__ import annotations

from jmsish.message.base import Message
from jmsish.message.bodies import ObjectMessage, TextMessage
from jmsish.message.foreign import is_message, tell
from jmsish.message.incoming import body_to_message, message_from, read_in
from jmsish.message.maps import MapMessage
from jmsish.message.octets import BytesMessage
from jmsish.message.properties import Properties
from jmsish.message.streams import StreamMessage

__all__ = [
    "BytesMessage",
    "MapMessage",
    "Message",
    "ObjectMessage",
    "Properties",
    "StreamMessage",
    "TextMessage",
    "body_to_message",
    "is_message",
    "message_from",
    "read_in",
    "tell",
]
