"""The coordinator of an imitated broker: its credit, its capabilities, and how it takes an unknown transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.broker.coordinator import ControlLink
from jmsish.broker.transactions import UNKNOWN_ID
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link


class ImitatingCoordinator(ControlLink):
    """One link to it."""

    __slots__ = ("_way",)

    def __init__(self, connection: ServerConnection, link: Link) -> None:
        super().__init__(connection, link)
        imitation = connection.broker.imitation
        assert imitation is not None
        self.capabilities, self.credit = imitation.coordinator_capabilities, imitation.coordinator_credit
        self._way = imitation.unknown_transaction

    def unknown(self, delivery: Delivery) -> None:
        if self._way == "closed":
            self._connection.close(AmqpError("amqp:decode-error", "the transaction is not known"))
        elif self._way == "detached":
            self._detach(AmqpError(UNKNOWN_ID, "the transaction is not known"))
        else:
            self._refuse(delivery, AmqpError("amqp:illegal-state", "the transaction is not known"))
