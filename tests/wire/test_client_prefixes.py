"""M25: what a broker wants before the names of queues and topics it says in its open; programs never see it."""

from __future__ import annotations

from typing import Any

from jmsish.destination import Queue, Topic
from jmsish.engine.codec import AMQP_VALUE, encode_message
from jmsish.message import Message
from jmsish.modes import AcknowledgeMode

from .peer import Peer


def received(peer: Peer, payload: bytes) -> Message:
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    peer.messages = [payload]
    peer.pump()
    delivery: Any = peer.run(consumer.receive(None, wait=False))
    message: Message = delivery.context
    return message


def test_m25_prefixes_that_the_open_of_the_broker_names() -> None:
    peer = Peer(properties={"queue-prefix": "queue://", "topic-prefix": "topic://"})
    payload = encode_message(properties=[None, None, "queue://q", None, "queue://answers"], body=(AMQP_VALUE, "x"))
    message = received(peer, payload)
    assert (message.jms_destination, message.jms_reply_to) == (Queue("q"), Queue("answers"))
    attach = next(frame for frame in peer.frames if frame.name == "attach")
    assert attach.fields["source"].fields["address"] == "queue://q"


def test_m25_the_options_go_before_the_open() -> None:
    peer = Peer(properties={"queue-prefix": "queue://"}, queue_prefix="mine.", topic_prefix="t.")
    payload = encode_message(
        annotations={"x-opt-jms-reply-to": 1}, properties=[None, None, "mine.q", None, "t.answers"]
    )
    message = received(peer, payload)
    assert (message.jms_destination, message.jms_reply_to) == (Queue("q"), Topic("answers"))


def test_m25_without_prefixes_names_are_as_they_are() -> None:
    message = received(Peer(), encode_message(properties=[None, None, "queue://q"], body=(AMQP_VALUE, "x")))
    assert message.jms_destination == Queue("queue://q")
