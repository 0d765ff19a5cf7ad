"""The asyncio face: the same names, parameters and meaning as `jmsish`, awaitable where the blocking ones wait.

::

    import jmsish, jmsish.aio

    async with jmsish.aio.connect(broker.url) as connection:
        session = await connection.create_session(transacted=True)
        consumer = await session.create_consumer(session.create_queue("orders"))
        async for message in consumer:
            ...
            await session.commit()
"""

from jmsish._facade import ConnectionMetaData
from jmsish._version import VERSION as __version__
from jmsish.aio.connection import Connection, ConnectionFactory, connect, create_context
from jmsish.aio.consumer import MessageConsumer, QueueBrowser
from jmsish.aio.context import JMSConsumer, JMSContext, JMSProducer
from jmsish.aio.producer import MessageProducer
from jmsish.aio.session import Session
from jmsish.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsish.embedded import Binding, EmbeddedBroker
from jmsish.errors import *  # noqa: F403
from jmsish.errors import __all__ as _errors
from jmsish.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage
from jmsish.modes import AcknowledgeMode, DeliveryMode
from jmsish.selector import Selector
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
