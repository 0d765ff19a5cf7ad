"""What a message carries comes as it went: bodies, properties, headers."""

from __future__ import annotations

from typing import Any

import jmsish
from jmsish.conformance.stage import Stage, equal
from jmsish.conformance.table import scenario

BODIES: tuple[tuple[str, type[jmsish.Message], Any], ...] = (
    ("text", jmsish.TextMessage, "Grüße, 世界"),
    ("empty-text", jmsish.TextMessage, ""),
    ("bytes", jmsish.BytesMessage, bytes(range(256))),
    ("map", jmsish.MapMessage, {"name": "lamp", "pieces": 3, "weight": 1.5, "new": True, "code": b"\x00\x01"}),
    ("stream", jmsish.StreamMessage, ["lamp", 3, 1.5, True, b"\x00\x01"]),
    ("none", jmsish.Message, None),
)


def _there_and_back(stage: Stage, message: Any, **how: Any) -> jmsish.Message:
    session = stage.session()
    session.create_producer(stage.queue()).send(message, **how)
    received = session.create_consumer(stage.queue()).receive(timeout=stage.patience)
    if received is None:
        raise jmsish.OperationTimeoutError("the message did not come")
    session.close()
    return received


def _enter(word: str, kind: type[jmsish.Message], body: Any) -> None:
    @scenario(f"message-{word}", f"a {kind.__name__} of {str(body)[:20]!r}")
    def play(stage: Stage) -> None:
        received = _there_and_back(stage, body)
        equal(type(received).__name__, kind.__name__, "the kind of message")
        got = received.body
        equal(dict(got) if isinstance(body, dict) else list(got) if isinstance(body, list) else got, body, "the body")


for _case in BODIES:
    _enter(*_case)


@scenario("message-object", "an ObjectMessage of nested values")
def object_message(stage: Stage) -> None:
    body = {"lines": [{"item": "lamp", "pieces": 3}, {"item": "sofa", "pieces": 1}]}
    equal(_there_and_back(stage, jmsish.ObjectMessage(body)).body, body, "the body")


@scenario("message-large", "a message of a megabyte")
def large(stage: Stage) -> None:
    body = bytes(range(256)) * 4096
    got = _there_and_back(stage, body).body
    equal((len(got), got == body), (len(body), True), "the size, and whether all octets came as they went")


@scenario("message-properties", "properties of every type")
def properties(stage: Stage) -> None:
    wanted = {
        "flag": True, "byte": jmsish.Byte(-1), "short": jmsish.Short(300), "int": 70000, "long": jmsish.Long(1 << 40),
        "float": jmsish.Float(0.5), "double": 0.1, "text": "Grüße",
    }  # fmt: skip
    received = _there_and_back(stage, "m1", properties=wanted)
    equal({name: received.properties.get(name) for name in wanted}, wanted, "the properties")


@scenario("message-headers", "type, correlation id, reply-to, priority and timestamp")
def headers(stage: Stage) -> None:
    message = jmsish.TextMessage("m1")
    message.jms_type, message.jms_correlation_id = "order", "c-1"
    message.jms_reply_to = jmsish.Queue(stage.name("answers"))
    received = _there_and_back(stage, message, priority=7)
    for name in ("jms_type", "jms_correlation_id", "jms_reply_to", "jms_priority", "jms_timestamp", "jms_message_id"):
        equal(getattr(received, name), getattr(message, name), name)


@scenario("message-destination", "a message says which queue it was sent to")
def destination(stage: Stage) -> None:
    equal(_there_and_back(stage, "m1").jms_destination, stage.queue(), "jms_destination")


@scenario("message-binary-correlation-id", "a correlation id of octets")
def binary_correlation_id(stage: Stage) -> None:
    message = jmsish.TextMessage("m1")
    message.jms_correlation_id_bytes = b"\x00\x01\xff"
    equal(_there_and_back(stage, message).jms_correlation_id_bytes, b"\x00\x01\xff", "jms_correlation_id_bytes")


@scenario("message-delivery-mode", "persistent and non-persistent are told apart")
def delivery_mode(stage: Stage) -> None:
    for mode in jmsish.DeliveryMode:
        equal(_there_and_back(stage, "m1", delivery_mode=mode).jms_delivery_mode, mode, "jms_delivery_mode")
