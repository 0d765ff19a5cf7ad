"""How a connection is made again after a loss: the options of ``failover:`` URLs."""

from __future__ import annotations

from dataclasses import dataclass

from jmsish.option_kinds import FLAG, Checked, Kind, choice, count, option, seconds

__all__ = ["LIST_ACTIONS", "QPID_FAILOVER_NAMES", "FailoverOptions"]

LIST_ACTIONS = ("REPLACE", "ADD", "IGNORE")
"""What may be done with the hosts that a broker names in the properties of its open."""

_ACTION = choice(*LIST_ACTIONS)
_ACTION = Kind(_ACTION.check, lambda name, text: text.upper())
_ATTEMPTS = count(0, optional=True)
_MILLISECONDS = seconds(optional=False, per_second=1000)


@dataclass(frozen=True, kw_only=True)
class FailoverOptions(Checked):
    """How connections are made again after a loss; ``failover.…`` in the URL. Durations are seconds.

    An attempt is one turn through all brokers; the waits stand between attempts.
    """

    initial_reconnect_delay: float = option(0, seconds(optional=False))
    """The wait before the first attempt after a loss."""
    reconnect_delay: float = option(0.01, seconds(optional=False))
    """The wait before the second attempt."""
    max_reconnect_delay: float = option(30, seconds(optional=False))
    """The longest wait between attempts."""
    use_reconnect_back_off: bool = option(True, FLAG)
    """Whether the wait grows from attempt to attempt."""
    reconnect_back_off_multiplier: float = option(2.0, seconds(optional=False))
    """By what factor it grows."""
    max_reconnect_attempts: int | None = option(None, _ATTEMPTS)
    """How many attempts are made after a loss; ``None``: without end; 0: none, a loss is final."""
    startup_max_reconnect_attempts: int | None = option(None, _ATTEMPTS)
    """How many attempts are made the first time, at least one; ``None``: as ``max_reconnect_attempts``."""
    warn_after_reconnect_attempts: int | None = option(10, _ATTEMPTS)
    """Each time so many attempts have failed a warning says so; ``None`` or 0: never."""
    randomize: bool = option(False, FLAG)
    """Whether the brokers are tried in random order."""
    amqp_open_server_list_action: str = option("REPLACE", _ACTION)
    """What becomes of the hosts that a broker names in its open (``failover-server-list``): they replace those of the
    URL, are added to them, or are ignored."""


QPID_FAILOVER_NAMES = {
    "failover.initialReconnectDelay": ("initial_reconnect_delay", _MILLISECONDS.read),
    "failover.reconnectDelay": ("reconnect_delay", _MILLISECONDS.read),
    "failover.maxReconnectDelay": ("max_reconnect_delay", _MILLISECONDS.read),
    "failover.useReconnectBackOff": ("use_reconnect_back_off", FLAG.read),
    "failover.reconnectBackOffMultiplier": ("reconnect_back_off_multiplier", seconds(optional=False).read),
    "failover.maxReconnectAttempts": ("max_reconnect_attempts", _ATTEMPTS.read),
    "failover.startupMaxReconnectAttempts": ("startup_max_reconnect_attempts", _ATTEMPTS.read),
    "failover.warnAfterReconnectAttempts": ("warn_after_reconnect_attempts", _ATTEMPTS.read),
    "failover.randomize": ("randomize", FLAG.read),
    "failover.amqpOpenServerListAction": ("amqp_open_server_list_action", _ACTION.read),
}
"""Names of Qpid JMS: the option each stands for, and how its text is read; durations are milliseconds there."""
