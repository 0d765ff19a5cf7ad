"""The blocking face: threads wait, and read for themselves."""

from jmsish.sync.connection import Connection, ConnectionFactory, connect, create_context
from jmsish.sync.consumer import MessageConsumer, QueueBrowser
from jmsish.sync.context import JMSConsumer, JMSContext, JMSProducer
from jmsish.sync.producer import MessageProducer
from jmsish.sync.session import Session

__all__ = [
    "Connection",
    "ConnectionFactory",
    "JMSConsumer",
    "JMSContext",
    "JMSProducer",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "Session",
    "connect",
    "create_context",
]
