"""Attaches that wait: a subscription to a frozen exchange comes to be after the thaw, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from jmsish.broker.gates import WRITER, Gate, Waiter
from jmsish.broker.outgoing import OutgoingLink
from jmsish.engine.endpoint import LOCAL_OPEN
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

_log = logging.getLogger("jmsish.broker")


class Pending(Waiter):
    """An attach that is not answered yet. Detached, or with its session gone, it leaves nothing behind."""

    __slots__ = ("_answer", "_connection", "_flow", "_link", "made", "over")
    kind: ClassVar[int] = WRITER

    def __init__(
        self, connection: ServerConnection, link: Link, answer: Callable[[ServerConnection, Link], Any]
    ) -> None:
        super().__init__()
        self._connection = connection
        self._link = link
        self._answer = answer
        self._flow: Mapping[Any, Any] | None = None
        self.made = None
        self.over = False

    @property
    def receives(self) -> bool:
        """The peer wants to receive on it."""
        return self._link.is_sender

    def wait(self, gate: Gate) -> Any:
        """Stand in the line; what answers for the link now, for a turn may come at once."""
        self._link.context = self
        self._connection.broker.freezes.wait(self, gate)
        return self._link.context

    def flowed(self, properties: Mapping[Any, Any] | None) -> None:
        """Credit before the answer: it will be used then."""
        self._flow = properties

    def go(self) -> None:
        """Answer as if the attach had come now."""
        link, connection = self._link, self._connection
        try:
            terminal = self._answer(connection, link)
        except Exception:
            # Whose freeze has ended now is not to hear of it, nor those behind it in the line; whoever attaches is.
            _log.exception("a fault met an attach that had waited for a frozen exchange")
            terminal, fault = None, AmqpError("amqp:internal-error", "the attach met a fault of the broker")
            if link.allows(LOCAL_OPEN):
                link.refuse(fault)
            else:
                link.detach(closed=True, error=fault)
        link.context = terminal
        terminals = link.session.context
        if self in terminals:
            terminals.remove(self)
            if terminal is not None:
                terminals.append(terminal)
        if link.credit > 0 and isinstance(terminal, OutgoingLink):
            terminal.flowed(self._flow)
        connection.broker.touch(connection)

    def detached(self, closed: bool) -> None:
        """The peer waits no longer."""
        self.lost()
        self._link.detach(closed=closed)

    def refuse_oversize(self, delivery: Delivery, error: AmqpError) -> None:
        """A message came before the answer, and was too large."""
        self._link.detach(closed=True, error=error)
        self.lost()

    def lost(self) -> None:
        """Session or connection are over."""
        self.give_up()
        self.over = True
