"""The asyncio face: the same names, parameters and meaning as `jmsish`, awaitable where the blocking ones wait."""

from jmsish.aio.connection import Connection, ConnectionFactory, connect
from jmsish.aio.consumer import MessageConsumer, QueueBrowser
from jmsish.aio.producer import MessageProducer
from jmsish.aio.session import Session

__all__ = [
    "Connection",
    "ConnectionFactory",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "Session",
    "connect",
]
