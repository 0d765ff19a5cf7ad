"""The matrix of messages that go to Java and come back: what is sent, and how both sides show what they have.

`show` says of a message of ours what `peers/MatrixPeer.java` says of one of Java's, so that the two can be compared.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import jmsish
from jmsish import Byte, Char, Double, Float, Int, Long, Short
from jmsish.types import Decimal32, Decimal64, Decimal128, Symbol, Timestamp, UByte, UInt, ULong, UShort

Shown = dict[str, Any]
Make = Callable[[jmsish.Session], jmsish.Message]


@dataclass
class Case:
    """A message of ours, and how it is sent; `properties` and `headers` are set before."""

    name: str
    make: Make = lambda session: session.create_text_message("")
    properties: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def message(self, session: jmsish.Session) -> jmsish.Message:
        message = self.make(session)
        message.properties["case"] = self.name
        message.properties.update(self.properties)
        for name, value in self.headers.items():
            setattr(message, name, value)
        return message


# ---------------------------------------------------------------------------------------------------- what is sent

TEXTS = {
    "plain": "order 7",
    "empty": "",
    "none": None,
    "unicode": "Grüße, 世界, 🎉, \u0000 and \uffff",
    "long": "ä" * 70_000,
}
OCTETS = {"empty": b"", "every": bytes(range(256)), "long": bytes(range(256)) * 300}

PROPERTIES: dict[str, Any] = {
    "true": True,
    "false": False,
    "byte": Byte(7),
    "byte-least": Byte(-128),
    "short": Short(300),
    "short-least": Short(-32768),
    "int": Int(-5),
    "int-plain": 70_000,
    "int-zero": Int(0),
    "int-greatest": 2**31 - 1,
    "long": Long(5),
    "long-plain": 2**31,
    "long-least": -(2**63),
    "float": Float(0.1),
    "float-infinite": Float(-math.inf),
    "float-nan": Float(math.nan),
    "double": 0.1,
    "double-fixed": Double(1e300),
    "double-least": 5e-324,
    "double-nan": math.nan,
    "string": "Grüße",
    "string-empty": "",
    "none": None,
}
"""Each type that a property can have; bodies of maps and streams have two more."""

ITEMS: dict[str, Any] = {**PROPERTIES, "char": Char("ß"), "octets": b"\x00\xff", "octets-empty": b""}

OBJECTS: dict[str, Any] = {
    "none": None,
    "string": "text",
    "long": Long(5),
    "boolean": True,
    "double": 2.5,
    "char": Char("ß"),
    "uuid": UUID("12345678-1234-5678-1234-567812345678"),
    "timestamp": Timestamp(1_700_000_000_123),
    "symbols": [Symbol("name")],
    "ubyte": UByte(255),
    "ushort": UShort(65535),
    "uint": UInt(2**32 - 1),
    "ulong": ULong(2**64 - 1),
    "decimal32": Decimal32(bytes.fromhex("2250000f")),
    "decimal64": Decimal64(bytes.fromhex("223800000000000f")),
    "decimal128": Decimal128(bytes.fromhex("2208000000000000000000000000000f")),
    "map": {"a": 1, "b": [Long(2), None, {"c": Byte(3)}]},
    "list": [1, "two", 3.0, [True]],
}

CORRELATIONS: dict[str, Any] = {
    "string": "order-7",
    "string-with-prefix": "ID:order-7",
    "string-that-looks-encoded": "ID:AMQP_STRING:ID:AMQP_UUID:no-uuid",
    "without-prefix": "ID:AMQP_NO_PREFIX:order-7",
    "uuid": "ID:AMQP_UUID:12345678-1234-5678-1234-567812345678",
    "ulong": f"ID:AMQP_ULONG:{2**64 - 1}",
    "binary": "ID:AMQP_BINARY:00FF10",
    "binary-empty": "ID:AMQP_BINARY:",
}
"""Forms that a correlation id can have, by the texts that mean them."""

REPLIES: dict[str, jmsish.Destination] = {
    "queue": jmsish.Queue("answers, all of them"),
    "topic": jmsish.Topic("answers.eu"),
    "temporary-queue": jmsish.TemporaryQueue("temporary-1"),
    "temporary-topic": jmsish.TemporaryTopic("temporary-2"),
}


def _bodies() -> Iterator[Case]:
    for name, text in TEXTS.items():
        yield Case(f"text-{name}", lambda session, text=text: session.create_text_message(text))  # type: ignore[misc]
    for name, octets in OCTETS.items():
        yield Case(f"bytes-{name}", lambda session, octets=octets: session.create_bytes_message(octets))  # type: ignore[misc]
    yield Case("map", lambda session: session.create_map_message(ITEMS))
    yield Case("map-empty", lambda session: session.create_map_message())
    yield Case("stream", lambda session: session.create_stream_message(list(ITEMS.values())))
    yield Case("stream-empty", lambda session: session.create_stream_message())
    yield Case("plain", lambda session: session.create_message())
    for name, value in OBJECTS.items():
        yield Case(f"object-{name}", lambda session, value=value: session.create_object_message(value))  # type: ignore[misc]


def _headers() -> Iterator[Case]:
    for priority in range(10):
        yield Case(f"priority-{priority}", options={"priority": priority})
    for mode in jmsish.DeliveryMode:
        yield Case(f"delivery-mode-{mode.name}", options={"delivery_mode": mode})
    for name, text in {"text": "order", "empty": "", "unicode": "Größe"}.items():
        yield Case(f"type-{name}", headers={"jms_type": text})
    yield Case("expiration", options={"time_to_live": 3600})
    yield Case("delivery-time", options={"delivery_delay": 0.2})
    yield Case("groups", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 7})
    yield Case("groups-negative", properties={"JMSXGroupID": "g", "JMSXGroupSeq": -7})
    for name, text in CORRELATIONS.items():
        yield Case(f"correlation-{name}", headers={"jms_correlation_id": text})
    yield Case("correlation-octets", headers={"jms_correlation_id_bytes": b"\x00\xff"})
    for name, destination in REPLIES.items():
        yield Case(f"reply-to-{name}", headers={"jms_reply_to": destination})


def cases() -> list[Case]:
    properties = [
        Case(f"property-{name}", properties={name.replace("-", "_") + "_": value}) for name, value in PROPERTIES.items()
    ]
    return [*_bodies(), *properties, *_headers()]


# ---------------------------------------------------------------------------------------------------- what is shown

CLASSES: dict[type, str] = {
    bool: "Boolean",
    Byte: "Byte",
    Short: "Short",
    Int: "Integer",
    Long: "Long",
    Float: "Float",
    float: "Double",
    Double: "Double",
    str: "String",
    Char: "Character",
    bytes: "byte[]",
    UUID: "UUID",
    Timestamp: "Date",
    Symbol: "Symbol",
    UByte: "UnsignedByte",
    UShort: "UnsignedShort",
    UInt: "UnsignedInteger",
    ULong: "UnsignedLong",
    Decimal32: "Decimal32",
    Decimal64: "Decimal64",
    Decimal128: "Decimal128",
}
"""What Java calls the type that a value of ours travels as."""


def _value(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return ["Map", {str(name): _value(item) for name, item in value.items()}]
    if isinstance(value, list):
        return ["List", [_value(item) for item in value]]
    if type(value) is int:
        # A plain int is an int where it fits, else a long.
        return ["Integer" if -(2**31) <= value < 2**31 else "Long", str(value)]
    return [CLASSES[type(value)], _scalar(value)]


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return value.hex() if isinstance(value, bytes) else str(value)


def _body(message: jmsish.Message) -> Any:
    if isinstance(message, jmsish.MapMessage):
        return _value(message.body)[1]
    if isinstance(message, jmsish.StreamMessage):
        return [_value(item) for item in message.body]
    return _value(message.body)


def _destination(destination: jmsish.Destination | None) -> Any:
    return None if destination is None else [type(destination).__name__, destination.name]


def _correlation_octets(message: jmsish.Message) -> str | None:
    try:
        octets = message.jms_correlation_id_bytes
    except jmsish.JMSError:
        return None
    return None if octets is None else octets.hex()


def show(message: jmsish.Message) -> Shown:
    """All that a message of ours says, in Java's words."""
    properties = {name: _value(value) for name, value in message.properties.items() if name != "JMSXDeliveryCount"}
    return {
        "type": type(message).__name__,
        "body": _body(message),
        "properties": properties,
        "message_id": message.jms_message_id,
        "correlation_id": message.jms_correlation_id,
        "correlation_octets": _correlation_octets(message),
        "reply_to": _destination(message.jms_reply_to),
        "destination": _destination(message.jms_destination),
        "delivery_mode": int(message.jms_delivery_mode),
        "priority": message.jms_priority,
        "jms_type": message.jms_type,
        "expiration": message.jms_expiration,
        "timestamp": message.jms_timestamp,
        "delivery_time": message.jms_delivery_time,
        "redelivered": message.jms_redelivered,
    }
