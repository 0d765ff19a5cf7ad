"""What the simplified API of both faces shares (JMS 3.1, 2.8): what its contexts, producers and consumers do without
waiting.

A `JMSContext` is a connection and a session in one.  Contexts made from each other share the connection, and the last
one to close closes it (`Family`).  A `JMSProducer` is a set of settings and costs nothing at the broker: all producers
of a context send through one anonymous producer of its session, which takes on the settings of whoever sends next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from jmsish._creators import Creators
from jmsish._facade import (
    CompletionListener,
    ConnectionMetaData,
    Duration,
    EventListener,
    ExceptionListener,
    ProducerSettings,
    check_listener,
)
from jmsish.destination import Destination
from jmsish.errors import IllegalStateError
from jmsish.message import Message, ObjectMessage, body_to_message, is_message
from jmsish.modes import AcknowledgeMode, DeliveryMode

P = TypeVar("P", bound="JMSProducerFace")


class Family:
    """The open contexts of one connection."""

    def __init__(self) -> None:
        self._members: set[int] = set()

    def join(self, context: Any) -> None:
        self._members.add(id(context))

    def leave(self, context: Any) -> bool:
        """Whether `context` was the last: then the connection is its to close."""
        self._members.discard(id(context))
        return not self._members


class ContextFace(Creators):
    """The members of a context that do not wait."""

    auto_start: bool = True
    """Whether the first consumer starts the connection (JMS 3.1, 6.1.4): true unless it is set to false."""

    def __init__(self, connection: Any, mode: AcknowledgeMode, family: Family) -> None:
        self._connection = connection
        self._mode = mode
        self._family = family
        self._closed = False
        family.join(self)

    @property
    def session_mode(self) -> AcknowledgeMode:
        """Who acknowledges what is received, and when."""
        return self._mode

    @property
    def transacted(self) -> bool:
        """Whether the session of the context is transacted."""
        return self._mode is AcknowledgeMode.TRANSACTED

    @property
    def is_closed(self) -> bool:
        """Whether the context was closed, by the application or by a failure."""
        return bool(self._closed or self._connection.is_closed)

    @property
    def client_id(self) -> str | None:
        """The client id, or None when nobody gave one; it can be set once, before the context is used.

        See `Connection.client_id` for the errors.
        """
        return self._connection.client_id  # type: ignore[no-any-return]

    @client_id.setter
    def client_id(self, client_id: str) -> None:
        self._check_open()
        self._connection.client_id = client_id

    @property
    def metadata(self) -> ConnectionMetaData:
        """What this library is, and what the broker says of itself."""
        self._check_open()
        return self._connection.metadata  # type: ignore[no-any-return]

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """A callable that gets the errors no call waits for, a lost connection above all."""
        return self._connection.exception_listener  # type: ignore[no-any-return]

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        self._check_open()
        self._connection.exception_listener = listener

    @property
    def event_listener(self) -> EventListener | None:
        """A callable that gets the events of a connection that reconnects; see `Connection.event_listener`."""
        return self._connection.event_listener  # type: ignore[no-any-return]

    @event_listener.setter
    def event_listener(self, listener: EventListener | None) -> None:
        self._check_open()
        self._connection.event_listener = listener

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("the context is closed")

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return f"<{type(self).__name__} {self._mode.name} on {self._connection!r} {state}>"


MESSAGE_BODIES = (str, bytes, bytearray, memoryview, Mapping, list, tuple, type(None))
"""Bodies that have a message type of their own; any other is the value of an ObjectMessage (JMS 3.1, 2.8.4)."""


class JMSProducerFace(ProducerSettings):
    """The settings of a producer of the simplified API.

    Each setting is a property, and has a setter that returns the producer, so that settings can be chained.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pattern = Message()
        """Never sent: headers and properties are set on it first, and so are checked as those of any message."""
        self._headers: dict[str, Any] = {}
        self._properties: dict[str, Any] = {}
        self._completion: CompletionListener | None = None

    # -- how messages are sent -------------------------------------------------------------------------------------

    def set_delivery_mode(self: P, mode: DeliveryMode) -> P:
        """Whether messages are persistent."""
        self.delivery_mode = mode
        return self

    def set_priority(self: P, priority: int) -> P:
        """The priority of messages, 0 to 9."""
        self.priority = priority
        return self

    def set_time_to_live(self: P, duration: Duration) -> P:
        """Seconds until a message expires; 0 for never."""
        self.time_to_live = duration
        return self

    def set_delivery_delay(self: P, duration: Duration) -> P:
        """Seconds before a message may be delivered."""
        self.delivery_delay = duration
        return self

    def set_disable_message_id(self: P, disabled: bool) -> P:
        """Whether sent messages go without an id."""
        self.disable_message_id = disabled
        return self

    def set_disable_message_timestamp(self: P, disabled: bool) -> P:
        """Whether sent messages go without a timestamp."""
        self.disable_message_timestamp = disabled
        return self

    @property
    def async_(self) -> CompletionListener | None:
        """What is called when the broker has answered, as `callback(message, error_or_None)`; None: sends wait."""
        return self._completion

    @async_.setter
    def async_(self, callback: CompletionListener | None) -> None:
        check_listener(callback)
        self._completion = callback

    def set_async(self: P, callback: CompletionListener | None) -> P:
        """Have sends return at once, and `callback(message, error_or_None)` called later; None: they wait."""
        self.async_ = callback
        return self

    # -- headers -----------------------------------------------------------------------------------------------------

    @property
    def jms_type(self) -> str | None:
        """The type that each message gets; None to leave it as it is."""
        return self._pattern.jms_type

    @jms_type.setter
    def jms_type(self, jms_type: str | None) -> None:
        self._set_header("jms_type", jms_type)

    def set_jms_type(self: P, jms_type: str | None) -> P:
        """The type that each message gets; None to leave it as it is."""
        self.jms_type = jms_type
        return self

    @property
    def jms_correlation_id(self) -> str | None:
        """The correlation id that each message gets; None to leave it as it is."""
        return self._pattern.jms_correlation_id

    @jms_correlation_id.setter
    def jms_correlation_id(self, correlation_id: str | None) -> None:
        self._set_header("jms_correlation_id", correlation_id)
        self._headers.pop("jms_correlation_id_bytes", None)

    def set_jms_correlation_id(self: P, correlation_id: str | None) -> P:
        """The correlation id that each message gets; None to leave it as it is."""
        self.jms_correlation_id = correlation_id
        return self

    @property
    def jms_correlation_id_as_bytes(self) -> bytes | None:
        """The correlation id that each message gets, as octets; `MessageFormatError` if it is a text."""
        return self._pattern.jms_correlation_id_bytes

    @jms_correlation_id_as_bytes.setter
    def jms_correlation_id_as_bytes(self, correlation_id: bytes | None) -> None:
        self._set_header("jms_correlation_id_bytes", correlation_id)
        self._headers.pop("jms_correlation_id", None)

    def set_jms_correlation_id_as_bytes(self: P, correlation_id: bytes | None) -> P:
        """The correlation id that each message gets, as octets; None to leave it as it is."""
        self.jms_correlation_id_as_bytes = correlation_id
        return self

    @property
    def jms_reply_to(self) -> Destination | None:
        """Where replies to each message go; None to leave it as it is."""
        return self._pattern.jms_reply_to

    @jms_reply_to.setter
    def jms_reply_to(self, destination: Destination | None) -> None:
        self._set_header("jms_reply_to", destination)

    def set_jms_reply_to(self: P, destination: Destination | None) -> P:
        """Where replies to each message go; None to leave it as it is."""
        self.jms_reply_to = destination
        return self

    def _set_header(self, name: str, value: Any) -> None:
        setattr(self._pattern, name, value)
        if value is None:
            self._headers.pop(name, None)
        else:
            self._headers[name] = value

    # -- properties --------------------------------------------------------------------------------------------------

    def set_property(self: P, name: str, value: Any) -> P:
        """A property that each message gets; it goes before one of the message's own.

        Raises `ValueError` for a name that is none or empty, `MessageFormatError` for a value that JMS has no
        property of (JMS 3.1, 3.5).
        """
        if name is None:
            raise ValueError("a property has a name, which is a str and not None")
        self._pattern.properties[name] = value
        self._properties = dict(self._pattern.properties)
        return self

    def clear_properties(self: P) -> P:
        """Forget the properties set so far; messages keep their own."""
        self._pattern.clear_properties()
        self._properties = {}
        return self

    def property_exists(self, name: str) -> bool:
        """Whether a property of this name was set."""
        return self._pattern.property_exists(name)

    @property
    def property_names(self) -> frozenset[str]:
        """The names of the properties that were set."""
        return frozenset(self._pattern.properties)

    def get_boolean_property(self, name: str) -> bool:
        """The property that was set, as a boolean."""
        return self._pattern.get_boolean_property(name)

    def get_byte_property(self, name: str) -> int:
        """The property that was set, as an 8-bit integer."""
        return self._pattern.get_byte_property(name)

    def get_short_property(self, name: str) -> int:
        """The property that was set, as a 16-bit integer."""
        return self._pattern.get_short_property(name)

    def get_int_property(self, name: str) -> int:
        """The property that was set, as a 32-bit integer."""
        return self._pattern.get_int_property(name)

    def get_long_property(self, name: str) -> int:
        """The property that was set, as a 64-bit integer."""
        return self._pattern.get_long_property(name)

    def get_float_property(self, name: str) -> float:
        """The property that was set, as a 32-bit floating point number."""
        return self._pattern.get_float_property(name)

    def get_double_property(self, name: str) -> float:
        """The property that was set, as a 64-bit floating point number."""
        return self._pattern.get_double_property(name)

    def get_string_property(self, name: str) -> str | None:
        """The property that was set, as a text."""
        return self._pattern.get_string_property(name)

    def get_object_property(self, name: str) -> Any:
        """The property as it was set."""
        return self._pattern.get_object_property(name)

    # -- sending -----------------------------------------------------------------------------------------------------

    def _configure(self, producer: ProducerSettings) -> None:
        """Have the context's producer send as this one says."""
        producer._delivery_mode = self._delivery_mode
        producer._priority = self._priority
        producer._time_to_live = self._time_to_live
        producer._delivery_delay = self._delivery_delay
        producer._disable_message_id = self._disable_message_id
        producer._disable_message_timestamp = self._disable_message_timestamp

    def _made(self, body: Any) -> Any:
        """What to send: a body as it is, or a message with what was set here put over its own (JMS 3.1, 7.8).

        Raises `MessageNotWriteableError` when properties are set here and those of a received message are read-only.
        """
        if not self._properties and not self._headers:
            return body if isinstance(body, MESSAGE_BODIES) or is_message(body) else ObjectMessage(body)
        message = body
        if not isinstance(body, Message):
            known = isinstance(body, MESSAGE_BODIES) or is_message(body)
            message = body_to_message(body) if known else ObjectMessage(body)
        for name, value in self._properties.items():
            message.properties[name] = value
        for name, value in self._headers.items():
            setattr(message, name, value)
        return message


class JMSConsumerFace:
    """The members of a consumer of the simplified API that do not wait."""

    _consumer: Any

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    @property
    def destination(self) -> Destination:
        """What the consumer reads."""
        return self._consumer.destination  # type: ignore[no-any-return]

    @property
    def message_selector(self) -> str | None:
        """The selector, or None."""
        return self._consumer.selector  # type: ignore[no-any-return]

    @property
    def selector(self) -> str | None:
        """The selector, or None."""
        return self._consumer.selector  # type: ignore[no-any-return]

    @property
    def message_listener(self) -> Any:
        """The callable that gets each message, beside the application; None to receive by calls."""
        return self._consumer.listener

    @message_listener.setter
    def message_listener(self, listener: Any) -> None:
        self._consumer.listener = listener

    @property
    def listener(self) -> Any:
        """The same as `message_listener`, by the name that it has on a `MessageConsumer`."""
        return self._consumer.listener

    @listener.setter
    def listener(self, listener: Any) -> None:
        self._consumer.listener = listener

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.destination}>"
