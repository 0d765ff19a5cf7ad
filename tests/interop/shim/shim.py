"""jmsish for the Apache Qpid interoperability test: `shim.py send|receive --broker URL --queue NAME …`.

With `--jms-mode` everything goes through the public API. Without it a message is bare AMQP, without the annotations of
the JMS mapping: that is no business of the public API, so its octets are made here and given to the producer's core.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import Future
from typing import Any

import contents
import typed

import jmsish
from jmsish.client.producer import rejection
from jmsish.engine.composing import encode_message
from jmsish.engine.sections import Header
from jmsish.message.fields import AMQP_VALUE
from jmsish.types import Byte, ULong

Json = dict[str, Any]
PATIENCE = 30.0
COLLECTIONS = ("list", "array", "map", "described")
MESSAGE_TYPE, REPLY_TO_TYPE = "x-opt-jms-msg-type", "x-opt-jms-reply-to"
BYTES = 3
"""The type of a message, by number."""


# ---------------------------------------------------------------------------------------------------- sending


def correlation_of(header: Json) -> Any:
    return bytes.fromhex(header["value"]) if header["type"] == "bytes" else header["value"]


def send_bare(producer: jmsish.MessageProducer, arguments: argparse.Namespace, value: Any, index: int) -> None:
    headers, wanted = arguments.headers, arguments.message_header
    reply_to = headers.get("JMSReplyTo")
    octets = encode_message(
        header=Header(
            durable=wanted.get("durable", False),
            priority=int(wanted.get("priority", 4)),
            ttl=wanted.get("ttl"),
            first_acquirer=wanted.get("first_acquirer", False),
        ),
        annotations=reply_to and {REPLY_TO_TYPE: Byte(reply_to["type"] == "topic")},
        properties=(
            ULong(index),
            None,
            producer.destination.name if producer.destination else None,
            headers.get("JMSType", {}).get("value"),
            reply_to and reply_to["value"],
            correlation_of(headers["JMSCorrelationID"]) if "JMSCorrelationID" in headers else None,
        ),
        application_properties=properties_of(arguments),
        body=(AMQP_VALUE, value),
    )
    post(producer, octets)


def post(producer: Any, octets: bytes) -> None:
    """What `producer.send` does with a message once it has its octets."""
    core, driver = producer._core, producer._session._driver
    outcome: Future[Any] = Future()
    if not driver.step(core.post, octets, outcome):
        driver.run(core.send(octets, outcome))
    refused = rejection(driver.wait(outcome, core.session.connection.send_deadline()))
    if refused is not None:
        raise refused


def message_of(session: jmsish.Session, kind: str, value: Any) -> jmsish.Message:
    if kind == "string":
        return session.create_text_message(value)
    if kind == "binary":
        return session.create_bytes_message(value)
    if kind == "map":
        return session.create_map_message(value)
    if kind == "list":
        return session.create_stream_message(value)
    return session.create_message() if kind == "null" else session.create_object_message(value)


def send_jms(producer: jmsish.MessageProducer, message: jmsish.Message, arguments: argparse.Namespace) -> None:
    headers, wanted = arguments.headers, arguments.message_header
    if "JMSCorrelationID" in headers:
        correlation = correlation_of(headers["JMSCorrelationID"])
        if isinstance(correlation, bytes):
            message.jms_correlation_id_bytes = correlation
        else:
            message.jms_correlation_id = correlation
    if reply_to := headers.get("JMSReplyTo"):
        kind = jmsish.Topic if reply_to["type"] == "topic" else jmsish.Queue
        message.jms_reply_to = kind(reply_to["value"])
    if "JMSType" in headers:
        message.jms_type = headers["JMSType"]["value"]
    message.properties.update(properties_of(arguments))
    durable = wanted.get("durable", True)
    producer.send(
        message,
        delivery_mode=jmsish.DeliveryMode.PERSISTENT if durable else jmsish.DeliveryMode.NON_PERSISTENT,
        priority=int(wanted.get("priority", 4)),
        time_to_live=wanted.get("ttl", 0) / 1000,
    )


def properties_of(arguments: argparse.Namespace) -> Json:
    return {name: typed.property_of(it["type"], it["value"]) for name, it in arguments.properties.items()}


def send(session: jmsish.Session, producer: jmsish.MessageProducer, arguments: argparse.Namespace) -> Json:
    messages = arguments.data
    for entry in messages:
        index, name = entry["index"], entry["type"]
        if not arguments.jms_mode:
            send_bare(producer, arguments, typed.value_of(name, entry["value"]), index)
            continue
        value = typed.value_of(name, entry["value"])
        if arguments.type == "map":
            value = {f"{name}_{index:03d}": value}
        elif arguments.type == "list":
            value = [value]
        send_jms(producer, message_of(session, arguments.type or name, value), arguments)
    return {"messages": messages, "stats": {"sent": len(messages)}}


def send_large(session: jmsish.Session, producer: jmsish.MessageProducer, arguments: argparse.Namespace) -> Json:
    kind, value = arguments.large_content, made(arguments)
    if arguments.jms_mode and kind not in ("array", "described"):
        send_jms(producer, message_of(session, kind, value), arguments)
    else:
        send_bare(producer, arguments, value, 0)
    if kind in COLLECTIONS:
        return {"sent": True, "elements": arguments.elements, "element_size": arguments.element_size}
    return {"sent": True, "size": arguments.size}


def made(arguments: argparse.Namespace) -> Any:
    """The large body that the arguments ask for."""
    kind, seed = arguments.large_content, arguments.seed
    if kind in COLLECTIONS:
        return contents.body(kind, contents.items(seed, arguments.elements, arguments.element_size))
    return (contents.octets if kind == "binary" else contents.text)(seed, arguments.size)


# ---------------------------------------------------------------------------------------------------- receiving


def messages_from(consumer: jmsish.MessageConsumer, count: int, timeout: float) -> list[jmsish.Message]:
    messages: list[jmsish.Message] = []
    end = time.monotonic() + timeout
    while len(messages) < count:
        message = consumer.receive(timeout=max(end - time.monotonic(), 0))
        if message is None:
            break
        messages.append(message)
    return messages


def shown(message: jmsish.Message, place: int) -> Json:
    name, written = body_of(message)
    found = {"index": index_of(message, place), "type": name, "value": written}
    for key, part in (("headers", headers_of(message)), ("properties", shown_properties(message))):
        if part:
            found[key] = part
    found["message_header"] = message_header(message)
    return found


def index_of(message: jmsish.Message, place: int) -> int:
    encoded = (message.jms_message_id or "").rpartition(":")[2]
    return int(encoded) if message.jms_message_id == f"ID:AMQP_ULONG:{encoded}" else place


def body_of(message: jmsish.Message) -> typed.Pair:
    """Type and value; of a map or a stream message, those of its first item."""
    assert message._source is not None
    if not message._source.body_section():
        # To JMS a message without a body is a bytes message, if nothing is said about it.
        return ["bytes", ""] if message.annotations.get(MESSAGE_TYPE) == BYTES else ["null", None]
    body = message.body
    if MESSAGE_TYPE not in message.annotations or isinstance(message, jmsish.ObjectMessage):
        return typed.pair_of(body)
    if isinstance(message, jmsish.TextMessage):
        return ["text", body]
    if isinstance(message, jmsish.BytesMessage):
        return ["bytes", body.hex()]
    if isinstance(message, (jmsish.MapMessage, jmsish.StreamMessage)):
        items = list(body.values()) if isinstance(body, dict) else body
        return typed.pair_of(items[0]) if items else ["none", None]
    return ["null", None]


def headers_of(message: jmsish.Message) -> Json:
    found: Json = {}
    correlation = message.jms_correlation_id
    if correlation is not None and correlation.startswith("ID:AMQP_BINARY:"):
        octets = message.jms_correlation_id_bytes or b""
        found["JMSCorrelationID"] = {"type": "bytes", "value": octets.hex()}
    elif correlation is not None:
        found["JMSCorrelationID"] = correlation
    if reply_to := message.jms_reply_to:
        found["JMSReplyTo"] = {"type": "topic" if reply_to.is_topic else "queue", "value": reply_to.name}
    if message.jms_type is not None:
        found["JMSType"] = message.jms_type
    return found


def shown_properties(message: jmsish.Message) -> Json:
    pairs = {name: typed.property_pair_of(it) for name, it in message.properties.items() if not name.startswith("JMSX")}
    return {name: {"type": kind, "value": written} for name, (kind, written) in pairs.items()}


def message_header(message: jmsish.Message) -> Json:
    """The header section; what JMS has no word for is read from what came."""
    assert message._source is not None
    header = message._source.prefix.header
    return {
        "durable": message.jms_delivery_mode is jmsish.DeliveryMode.PERSISTENT,
        "priority": message.jms_priority,
        "ttl": header.ttl or 0,
        "first_acquirer": header.first_acquirer,
        "delivery_count": message.delivery_count - 1,
    }


def receive(consumer: jmsish.MessageConsumer, arguments: argparse.Namespace) -> Json:
    messages = messages_from(consumer, arguments.count, arguments.timeout)
    found = [shown(message, place) for place, message in enumerate(messages)]
    return {"messages": found, "stats": {"received": len(found)}}


def receive_large(consumer: jmsish.MessageConsumer, arguments: argparse.Namespace) -> Json:
    messages = messages_from(consumer, 1, arguments.timeout)
    if not messages:
        return {"match": False, "error": "no message came"}
    kind, body, expected = arguments.large_content, messages[0].body, made(arguments)
    if kind not in COLLECTIONS:
        place = contents.first_difference(body, expected)
        found = {"match": place is None, "size": len(body), "expected_size": len(expected)}
        return found if place is None else {**found, "first_mismatch_offset": place}
    pieces, wanted = contents.pieces_of(kind, body), contents.pieces_of(kind, expected)
    place = contents.first_difference(pieces, wanted)
    found = {"match": place is None, "elements": len(pieces), "element_size": arguments.element_size}
    if place is not None and place < min(len(pieces), len(wanted)):
        found["first_mismatch_element"] = place
        found["first_mismatch_offset"] = contents.first_difference(pieces[place], wanted[place])
    return found


# ---------------------------------------------------------------------------------------------------- command line


def parse(line: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    sending, receiving = commands.add_parser("send"), commands.add_parser("receive")
    for command in (sending, receiving):
        command.add_argument("--broker", required=True)
        command.add_argument("--queue", required=True)
        command.add_argument("--large-content", choices=["binary", "string", *COLLECTIONS])
        for name in ("--size", "--seed", "--elements", "--element-size"):
            command.add_argument(name, type=int, default=0)
    sending.add_argument("--type")
    sending.add_argument("--count", type=int)
    sending.add_argument("--data", type=json.loads, default=[])
    sending.add_argument("--jms-mode", action="store_true")
    for name in ("--headers", "--properties", "--message-header"):
        sending.add_argument(name, type=json.loads, default={})
    receiving.add_argument("--count", type=int, default=1)
    receiving.add_argument("--timeout", type=float, default=PATIENCE)
    return parser.parse_args(line)


def main(line: list[str]) -> int:
    arguments = parse(line)
    url = arguments.broker if "://" in arguments.broker else f"amqp://{arguments.broker}"
    with jmsish.connect(url, send_timeout=PATIENCE) as connection:
        session = connection.create_session()
        queue = session.create_queue(arguments.queue)
        if arguments.command == "send":
            producer = session.create_producer(queue)
            producer.disable_message_id = True
            found = (send_large if arguments.large_content else send)(session, producer, arguments)
        else:
            consumer = session.create_consumer(queue, prefetch=arguments.count)
            found = (receive_large if arguments.large_content else receive)(consumer, arguments)
    print(json.dumps(found))
    return 0 if found.get("match", True) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
