"""JMS for Python, over AMQP 1.0.

::

    import jmsish

    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url) as connection:
        session = connection.create_session(transacted=True)
        orders = session.create_queue("orders")
        session.create_producer(orders).send("first")
        session.commit()
        print(session.create_consumer(orders).receive(timeout=5).body)
        session.commit()

`jmsish.aio` has the same names for asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jmsish._facade import ConnectionMetaData
from jmsish._version import VERSION as __version__
from jmsish.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsish.embedded import Binding, EmbeddedBroker
from jmsish.errors import *  # noqa: F403
from jmsish.errors import __all__ as _errors
from jmsish.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage
from jmsish.modes import AcknowledgeMode, DeliveryMode
from jmsish.selector import Selector
from jmsish.sync import (
    Connection,
    ConnectionFactory,
    JMSConsumer,
    JMSContext,
    JMSProducer,
    MessageConsumer,
    MessageProducer,
    QueueBrowser,
    Session,
    connect,
    create_context,
)
from jmsish.types import Byte, Char, Double, Float, Int, Long, Short

__all__ = [
    "AcknowledgeMode",
    "Binding",
    "Byte",
    "BytesMessage",
    "Char",
    "Connection",
    "ConnectionFactory",
    "ConnectionMetaData",
    "DeliveryMode",
    "Destination",
    "Double",
    "EmbeddedBroker",
    "Float",
    "Int",
    "JMSConsumer",
    "JMSContext",
    "JMSProducer",
    "Long",
    "MapMessage",
    "Message",
    "MessageConsumer",
    "MessageProducer",
    "ObjectMessage",
    "Queue",
    "QueueBrowser",
    "Selector",
    "Session",
    "Short",
    "StreamMessage",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
    "__version__",
    "connect",
    "create_context",
    *_errors,
]

_ON_REQUEST = ("aio", "testing")
"""Rooms that not everybody needs, and that would make the import slower: loaded when somebody names them."""


def __getattr__(name: str) -> Any:
    if name in _ON_REQUEST:
        return import_module(f"jmsish.{name}")
    raise AttributeError(f"module 'jmsish' has no attribute {name!r}")
