"""The two ends of the control link between neighbours, on which each tells the other what it can reach (R3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.broker.network.updates import CONTROL, UPDATE_KEYS, UPDATE_LIMIT, Update, decode_update, encode_update
from jmsish.engine.conditions import MESSAGE_SIZE_EXCEEDED
from jmsish.engine.outcomes import AmqpError, Source, Target
from jmsish.engine.values import DecodeError

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link
    from jmsish.engine.session import EngineSession

CREDIT = 100


class Teller:
    """Our end: what we tell, numbered from zero, the first time everything."""

    __slots__ = ("_number", "connection", "link")

    def __init__(self, connection: RouterConnection, session: EngineSession) -> None:
        self.connection = connection
        self._number = 0
        router = connection.node.router
        self.link = session.sender(f"router:{router}", source=Source(address=CONTROL), target=Target(address=CONTROL))
        self.link.context = self
        connection.touched()

    def tell(self) -> None:
        """Send what has changed, as far as the neighbour lets us."""
        reach = self.connection.node.reach
        while self.link.credit > 0 and (reach.has_news(self.connection) or not self._number):
            if self.connection.is_full:
                self.connection.stall(self.tell)
                return
            add, remove = reach.take_news(self.connection, UPDATE_KEYS)
            if add or remove or not self._number:
                self.link.send(encode_update(Update(self._number, add, remove)), settled=True)
                self._number += 1
                self.connection.touched()

    def attached(self) -> None:
        """The neighbour has answered."""

    def flowed(self) -> None:
        self.tell()

    def detached(self, closed: bool, error: AmqpError | None = None) -> None:
        self.connection.refuse("the control link was detached")

    def lost(self) -> None:
        """The session is gone, and the connection with it."""


class Listener:
    """The neighbour's end: what it tells."""

    __slots__ = ("_number", "connection", "link", "over")

    def __init__(self, connection: RouterConnection, link: Link) -> None:
        self.connection = connection
        self.link = link
        self.over = False
        self._number = 0
        link.attach(max_message_size=UPDATE_LIMIT)  # however small the messages of clients have to be
        link.flow(CREDIT)

    def delivered(self, delivery: Delivery) -> None:
        """A message of the neighbour; what makes no sense ends the connection, which begins anew with everything."""
        try:
            update = decode_update(delivery.payload)
        except (DecodeError, ValueError) as error:
            self.connection.refuse(f"an update that cannot be read: {error}", "amqp:decode-error")
            return
        if update.number != self._number:
            self.connection.refuse(
                f"the update {update.number} where {self._number} was expected", "amqp:invalid-field"
            )
            return
        self._number += 1
        if self.link.credit < CREDIT // 2:
            self.link.flow(CREDIT)
        self.connection.learn(update)

    def too_large(self) -> None:
        """An update is larger than any that a router makes."""
        self.connection.refuse(f"an update of more than {UPDATE_LIMIT} octets", MESSAGE_SIZE_EXCEEDED)

    def detached(self, closed: bool, error: AmqpError | None = None) -> None:
        self.connection.refuse("the control link was detached")

    def lost(self) -> None:
        self.over = True
