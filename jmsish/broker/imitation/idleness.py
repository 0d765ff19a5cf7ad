"""The end of a link on which nothing has happened for long (Azure Service Bus: ten minutes)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.broker.incoming import IncomingLink
from jmsish.broker.outgoing import OutgoingLink
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.engine.link import Link

LOOKS = 10
"""How often a link is looked at before its time is over."""


class IdleWatch:
    """Looks at a link now and then, by the clock of the broker, whether messages went over it."""

    __slots__ = ("_broker", "_last", "_link", "_patience", "_seen")

    def __init__(self, broker: Broker, link: Link, patience: float) -> None:
        self._broker = broker
        self._link = link
        self._patience = patience
        self._last = broker.now()
        self._seen = link.delivery_count

    def begin(self) -> None:
        self._broker.remind(self._last + self._patience / LOOKS, self)

    def on_time(self, now: float) -> None:
        """Another look."""
        link, terminal = self._link, self._link.context
        if not link.attached or not isinstance(terminal, (IncomingLink, OutgoingLink)):
            return
        if link.delivery_count != self._seen:
            self._seen, self._last = link.delivery_count, now
        if now - self._last < self._patience:
            self._broker.remind(now + self._patience / LOOKS, self)
            return
        minutes, seconds = divmod(int(self._patience), 60)
        terminal.detach(
            AmqpError(
                "amqp:link:detach-forced",
                f"The link '{link.name}' is force detached. Details: IdleTimerExpired: Idle timeout: "
                f"00:{minutes:02}:{seconds:02}.",
            )
        )
        self._broker.touch(terminal.connection if isinstance(terminal, OutgoingLink) else terminal._connection)
