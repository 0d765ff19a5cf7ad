"""What a broker is told before it starts: one file for each section, and :mod:`.whole` for all of it."""

from __future__ import annotations

from jmsish.broker.config.faults import ConfigurationError, Faults, Table
from jmsish.broker.config.listeners import ListenerConfig
from jmsish.broker.config.whole import BrokerConfig

__all__ = ["BrokerConfig", "ConfigurationError", "Faults", "ListenerConfig", "Table"]
