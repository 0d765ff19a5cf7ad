"""The blocking face: threads wait, and read for themselves."""

from jmsish.sync.connection import Connection, ConnectionFactory, connect
from jmsish.sync.consumer import MessageConsumer, QueueBrowser
from jmsish.sync.producer import MessageProducer
from jmsish.sync.session import Session

__all__ = [
    "Connection",
    "ConnectionFactory",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "Session",
    "connect",
]
