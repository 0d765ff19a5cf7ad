"""The bundled broker: a whole one as a state machine, without socket, thread or clock.

``broker`` holds all; ``connection`` answers one engine's events with ``attach``, ``incoming``, ``outgoing``,
``dispositions`` and ``coordinator``; ``router`` turns addresses into queues; ``queues`` and ``order`` keep messages in
order; ``consumers`` hands them out; ``settlement`` and ``transactions`` say what becomes of them;
``users`` knows who may come in.
"""

from __future__ import annotations

from jmsish.broker.broker import Broker
from jmsish.broker.config import BrokerConfig, ListenerConfig
from jmsish.broker.connection import ServerConnection
from jmsish.broker.policy import QueueSettings
from jmsish.broker.users import User, scram_key
from jmsish.broker.views import ConnectionView, QueueView, TransactionView

__all__ = [
    "Broker",
    "BrokerConfig",
    "ConnectionView",
    "ListenerConfig",
    "QueueSettings",
    "QueueView",
    "ServerConnection",
    "TransactionView",
    "User",
    "scram_key",
]
