"""The message: headers, properties, and what all bodies have in common.

A message that came in is a view of its octets: each header is read from them when it is first asked for, and kept in
a slot. A slot without a value is filled by ``__getattr__``, which Python calls for exactly that case; so making a
message costs little, and reading a header twice costs no more than an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from jmsish.destination import Destination, Prefixes
from jmsish.errors import MessageFormatError, MessageNotWriteableError
from jmsish.message import headers
from jmsish.message.contents import check_body_type, fresh
from jmsish.message.fields import MessageSource
from jmsish.message.ids import correlation_id_text, id_from_text
from jmsish.message.properties import Properties, TypedProperties
from jmsish.modes import DeliveryMode

__all__ = ["Message"]

_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="Message")


class _Unread:
    """Stands for a body that has not been decoded yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<unread>"

    def __reduce__(self) -> str:
        return "UNREAD"


UNREAD: Any = _Unread()


class Message(TypedProperties):
    """A message: headers, properties and, in its subclasses, a body. As such it has no body.

    A received message is read-only: its properties until ``clear_properties()``, its body until ``clear_body()``.
    Its headers may be set, as JMS has it; what the application changes is never seen by anybody else.
    """

    __slots__ = (
        "_ack_type",
        "_body",
        "_content_type",
        "_correlation_id",
        "_default_destination",
        "_delivery_count",
        "_delivery_mode",
        "_delivery_time",
        "_destination",
        "_expiration",
        "_group_id",
        "_group_sequence",
        "_locked_body",
        "_locked_properties",
        "_message_id",
        "_owner",
        "_plain",
        "_prefixes",
        "_priority",
        "_properties",
        "_redelivered",
        "_reply_to",
        "_reply_to_group_id",
        "_source",
        "_timestamp",
        "_ttl",
        "_type",
        "_user_id",
    )

    type_code: ClassVar[int] = 0
    """The number of the type in the annotation ``x-opt-jms-msg-type``."""

    _owner: Any
    _source: MessageSource | None
    _body: Any
    _plain: bool
    """True while nothing was set that a sender would have to look at: what is sent is the body and its headers."""

    def __init__(self) -> None:
        self._source = None
        self._owner = None
        self._body = None
        self._locked_properties = False
        self._locked_body = False
        self._plain = True

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            read = headers.READERS.get(name)
            if read is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = read(self)
            setattr(self, name, value)
            return value

    def __bool__(self) -> bool:
        """Always true: an empty body does not make a message nothing."""
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._message_id or 'not sent'}>"

    @property
    def annotations(self) -> dict[str, Any]:
        """The AMQP message annotations it came with (Part 3, 3.2.3), a copy; empty for a message made here.

        A broker writes here what it has to say about a message, as where a dead letter died.
        """
        return {} if self._source is None else dict(self._source.prefix.annotations)

    # -- body ----------------------------------------------------------------------------------------------------------

    @property
    def body(self) -> Any:
        """The body as a natural Python value; ``None`` if there is none."""
        return None

    @property
    def content_type(self) -> str | None:
        """What the sender said that the body is, such as ``text/plain`` (Part 3, 3.2.4); ``None`` if nothing."""
        return self._content_type

    def get_body(self, type: type[_T]) -> _T | None:
        """The body as ``type``, or ``None`` if there is none; ``MessageFormatError`` if it is not of that type."""
        check_body_type(type)
        if not self.is_body_assignable_to(type):
            raise MessageFormatError(f"the body of a {self.__class__.__name__} cannot be had as {type.__name__}")
        found: _T | None = self.body if self._has_body() else None
        return found

    def is_body_assignable_to(self, type: type[Any]) -> bool:
        """Whether ``get_body(type)`` would give a value, or ``None``, and not raise."""
        check_body_type(type)
        return not self._has_body() or isinstance(self.body, type)

    def _has_body(self) -> bool:
        return False

    def clear_body(self) -> None:
        """Make the body empty and writable; headers and properties stay."""
        self._locked_body = False
        self._body = self._content_type = None

    def _load(self) -> None:
        """Read what is in the body that came in; ``MessageFormatError`` if it cannot be read.

        Octets stay where they are: there is nothing in them that could be wrong.
        """

    def _check_writable_body(self) -> None:
        if self._locked_body:
            raise MessageNotWriteableError("the body of a received message is read-only; clear_body() empties it")

    def _outgoing_body(self) -> tuple[int, Any]:
        """The section the body is sent as, and its value; section 0 is no body at all."""
        return 0, None

    @property
    def _typed_encoding(self) -> bool | None:
        """``JMS_AMQP_TYPED_ENCODING``: whether an object travels as a value of AMQP; ``None`` where there is none."""
        return None

    @_typed_encoding.setter
    def _typed_encoding(self, value: bool | None) -> None:
        if value is not None:
            raise MessageFormatError(f"JMS_AMQP_TYPED_ENCODING is for an ObjectMessage, not a {type(self).__name__}")

    # -- copies --------------------------------------------------------------------------------------------------------

    def __getstate__(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """What there is to pickle: not who acknowledges it, which another process could not reach."""
        state = self._state()
        state["_owner"] = None
        return getattr(self, "__dict__", None), state

    def __copy__(self: _Self) -> _Self:
        """A message of its own with the same headers, properties and body, as writable and as far read as this one."""
        twin = self.__class__.__new__(self.__class__)
        for name, value in self._state().items():
            setattr(twin, name, fresh(value))
        for name, value in getattr(self, "__dict__", {}).items():
            setattr(twin, name, value)
        return twin

    def __deepcopy__(self: _Self, memo: dict[int, Any]) -> _Self:
        return self.__copy__()

    def _state(self) -> dict[str, Any]:
        """The slots that have a value: a header that nobody has read yet is not read for this."""
        state = {}
        for kind in type(self).__mro__:
            for name in kind.__dict__.get("__slots__", ()):
                try:
                    state[name] = object.__getattribute__(self, name)
                except AttributeError:
                    continue
        return state

    # -- acknowledgement -----------------------------------------------------------------------------------------------

    def acknowledge(self) -> Any:
        """Acknowledge what the session has received (CLIENT), or this message (INDIVIDUAL); else nothing happens.

        Raises ``IllegalStateError`` when the session is closed.
        """
        if self._owner is not None:
            return self._owner.acknowledge(self)
        return None

    # -- properties ----------------------------------------------------------------------------------------------------

    @property
    def properties(self) -> Properties:
        """The properties, a mutable mapping of names to values, names beginning JMSX included."""
        return Properties(self)

    def clear_properties(self) -> None:
        """Remove all properties and make them writable; headers and body stay."""
        self._locked_properties = False
        self._plain = False
        self._properties = {}
        self._group_id = self._group_sequence = self._user_id = self._reply_to_group_id = self._ttl = None

    # -- headers -------------------------------------------------------------------------------------------------------

    @property
    def jms_message_id(self) -> str | None:
        """The id, set by ``send``; it begins ``ID:``. ``None`` before, and where ids are disabled."""
        return self._message_id

    @jms_message_id.setter
    def jms_message_id(self, value: str | None) -> None:
        self._message_id = headers.text(value, "jms_message_id")

    @property
    def jms_correlation_id(self) -> str | None:
        """The id of the message that this one answers, or any text of the application's."""
        value = self._correlation_id
        return value if value is None else correlation_id_text(value)

    @jms_correlation_id.setter
    def jms_correlation_id(self, value: str | None) -> None:
        self._plain = False
        self._correlation_id = id_from_text(headers.text(value, "jms_correlation_id"))

    @property
    def jms_correlation_id_bytes(self) -> bytes | None:
        """The correlation id as octets; ``MessageFormatError`` if it is not of that form."""
        value = self._correlation_id
        if value is not None and not isinstance(value, bytes):
            raise MessageFormatError("the correlation id is not binary; jms_correlation_id has its text")
        return value

    @jms_correlation_id_bytes.setter
    def jms_correlation_id_bytes(self, value: bytes | None) -> None:
        if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"jms_correlation_id_bytes takes bytes, not {value!r}")
        self._plain = False
        self._correlation_id = None if value is None else bytes(value)

    @property
    def jms_reply_to(self) -> Destination | None:
        """Where an answer is wanted."""
        return self._reply_to

    @jms_reply_to.setter
    def jms_reply_to(self, value: Destination | None) -> None:
        self._plain = False
        self._reply_to = headers.destination(value, "jms_reply_to")

    @property
    def jms_destination(self) -> Destination | None:
        """Where the message was sent, set by ``send``."""
        return self._destination

    @jms_destination.setter
    def jms_destination(self, value: Destination | None) -> None:
        self._destination = headers.destination(value, "jms_destination")

    @property
    def jms_delivery_mode(self) -> DeliveryMode:
        """Whether the message survives a restart of the broker, set by ``send``."""
        return self._delivery_mode

    @jms_delivery_mode.setter
    def jms_delivery_mode(self, value: DeliveryMode | int) -> None:
        self._delivery_mode = DeliveryMode(value)

    @property
    def jms_redelivered(self) -> bool:
        """Whether the message may have been delivered before."""
        return self._redelivered

    @jms_redelivered.setter
    def jms_redelivered(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"jms_redelivered takes True or False, not {value!r}")
        self._redelivered = value

    @property
    def jms_type(self) -> str | None:
        """The type, a text of the application's; it is the subject of the AMQP message."""
        return self._type

    @jms_type.setter
    def jms_type(self, value: str | None) -> None:
        self._plain = False
        self._type = headers.text(value, "jms_type")

    @property
    def jms_expiration(self) -> int:
        """When the message expires, in milliseconds since the epoch; 0 for never. Set by ``send``."""
        return self._expiration

    @jms_expiration.setter
    def jms_expiration(self, value: int) -> None:
        self._expiration = headers.milliseconds(value, "jms_expiration")

    @property
    def jms_priority(self) -> int:
        """The priority, 0 to 9, set by ``send``."""
        return self._priority

    @jms_priority.setter
    def jms_priority(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"jms_priority is a whole number, not {value!r}")
        if not 0 <= value <= 9:
            raise ValueError(f"jms_priority={value} is out of range (0 to 9)")
        self._priority = int(value)

    @property
    def jms_timestamp(self) -> int:
        """When the message was sent, in milliseconds since the epoch, set by ``send``; 0 if unknown."""
        return self._timestamp

    @jms_timestamp.setter
    def jms_timestamp(self, value: int) -> None:
        self._timestamp = headers.milliseconds(value, "jms_timestamp")

    @property
    def jms_delivery_time(self) -> int:
        """The earliest moment of delivery, in milliseconds since the epoch, set by ``send``."""
        return self._delivery_time

    @jms_delivery_time.setter
    def jms_delivery_time(self, value: int) -> None:
        self._delivery_time = headers.milliseconds(value, "jms_delivery_time")

    @property
    def delivery_count(self) -> int:
        """How often the message was delivered, this time included: 1 the first time, 0 if it was not received."""
        return self._delivery_count

    # Slots are read as attributes of these types; TYPE_CHECKING cannot see them being filled.
    if TYPE_CHECKING:
        _ack_type: int | None
        _content_type: str | None
        _correlation_id: Any
        _default_destination: Destination | None
        _delivery_count: int
        _delivery_mode: DeliveryMode
        _delivery_time: int
        _destination: Destination | None
        _expiration: int
        _group_id: str | None
        _group_sequence: int | None
        _locked_body: bool
        _locked_properties: bool
        _message_id: str | None
        _prefixes: Prefixes
        _priority: int
        _properties: dict[str, Any]
        _redelivered: bool
        _reply_to: Destination | None
        _reply_to_group_id: str | None
        _timestamp: int
        _ttl: int | None
        _type: str | None
        _user_id: str | None
