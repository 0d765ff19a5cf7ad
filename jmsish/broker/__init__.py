"""The bundled broker: a whole one as a state machine, without socket, thread or clock.

``broker`` holds all; ``connection`` answers one engine's events with ``attach``, ``incoming``, ``outgoing``,
``dispositions`` and ``coordinator``; ``router`` turns addresses into queues and topics; ``exchanges``, with
``bindings``, ``tables``, ``headers``, ``patterns``, ``changes`` and ``routing``, and ``subscriptions`` bring what is
sent to a topic into the queues of those who want it (``filters``); ``queues`` and
``order`` keep messages in order; ``consumers`` hands them out; ``settlement`` and ``transactions`` say what becomes of
them; ``users`` knows who may come in; ``config`` reads what all of it is told, and ``grants`` says what a connection
may do.
"""

from __future__ import annotations

from jmsish.broker.broker import Broker
from jmsish.broker.config import BrokerConfig, ConfigurationError, ListenerConfig
from jmsish.broker.connection import ServerConnection
from jmsish.broker.denials import Denials, VhostDenials
from jmsish.broker.exchanges import Binding
from jmsish.broker.grants import Grant
from jmsish.broker.policy import ExchangeSettings, QueueSettings
from jmsish.broker.users import User, scram_key
from jmsish.broker.views import ConnectionView, ExchangeView, QueueView, SubscriptionView, TransactionView
from jmsish.engine.oauth import read_bearer

__all__ = [
    "Binding",
    "Broker",
    "BrokerConfig",
    "ConfigurationError",
    "ConnectionView",
    "Denials",
    "ExchangeSettings",
    "ExchangeView",
    "Grant",
    "ListenerConfig",
    "QueueSettings",
    "QueueView",
    "ServerConnection",
    "SubscriptionView",
    "TransactionView",
    "User",
    "VhostDenials",
    "read_bearer",
    "scram_key",
]
