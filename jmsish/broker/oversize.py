"""Messages that are larger than a connection may send, and what they bring upon it (DISPATCH-975).

Theory of operation.  The limit is the grant's, resolved at the open; the engine announces it in the attach of each link
on which the peer sends (the relay's, the management node's and the coordinator's too), counts, and reports the delivery
at the transfer that goes beyond it. The broker forwards nothing of a message before it is whole, so nothing of this
one is anywhere: it is in no queue, no exchange and no transaction. What follows depends on the grant's `on_oversize`.

`"connection"`: the delivery is rejected, its link and then the connection are closed, in this order, at that transfer
and not at the end of the delivery, which may have none. What came in the same batch behind it is dropped, as is what
still comes, until the peer has closed or :data:`~jmsish.broker.connection.FAREWELL` is over.

`"link"`: the rest of the delivery is read and dropped first, because some peers cannot bear an answer in the middle of
a delivery, or send the rest on a handle that they have seen closed. Then it is rejected and its link closed; the rest
of the connection goes on. A delivery whose end does not come is answered so after :data:`PATIENCE` seconds. One of
which more than 64 MiB were dropped closes the connection after all.

=========  =======  =====================================================================
the delivery        what becomes of it
is           when
=========  =======  =====================================================================
read over  whole    rejected, the link closed
read over  aborted  the link closed: an abort takes a message back, not that it was too large
read over  late     rejected, the link closed; what still comes for it is dropped
read over  flood    as ``"connection"``
read over  gone     nothing: its link, session or connection has ended
=========  =======  =====================================================================
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from jmsish.broker.denials import Denials
from jmsish.broker.grants import Grant
from jmsish.broker.link_policy import shortened
from jmsish.engine.conditions import CONNECTION_FORCED, MESSAGE_SIZE_EXCEEDED
from jmsish.engine.outcomes import AmqpError
from jmsish.types import Symbol, ULong

if TYPE_CHECKING:
    from jmsish.engine.delivery import Delivery
    from jmsish.engine.link import Link

_log = logging.getLogger("jmsish.broker")

LINK: Final = "link"
"""The value of `on_oversize` that leaves the connection open."""
DESCRIPTION: Final = "Message size exceeded"
PATIENCE: Final = 10.0
"""Seconds after which a delivery without an end is answered in the middle."""


class Home(Protocol):
    """What is asked of the broker, or the router."""

    denials: Denials


class Limited(Protocol):
    """What is asked of the connection."""

    grant: Grant

    @property
    def broker(self) -> Home:
        """Where the denial is counted."""

    def touched(self) -> None:
        """There is output."""

    def close(self, error: AmqpError | None) -> None:
        """Say goodbye."""


class Oversize:
    """The messages of one connection that were too large, as far as they are not answered."""

    __slots__ = ("_read_over",)

    def __init__(self) -> None:
        self._read_over: dict[Delivery, float | None] = {}
        """Deliveries whose end is awaited, and until when; None as long as no time has passed."""

    def begun(self, connection: Limited, link: Link, delivery: Delivery) -> None:
        """A delivery has gone beyond the limit."""
        if _is_gone(link):
            return
        grant = connection.grant
        _log.info(
            "a message on the link %r of %r is larger than %d octets and is refused",
            shortened(link.name), connection, link.max_message_size,
        )  # fmt: skip
        connection.broker.denials.message_size_denied(grant.vhost)
        if grant.on_oversize != LINK:
            _close(connection, link, delivery)
        elif delivery.complete:
            _refuse(connection, link, delivery)
        else:
            self._read_over[delivery] = None

    def ended(self, connection: Limited, link: Link, delivery: Delivery) -> None:
        """Nothing more comes of it, or so much came that nobody waits for its end."""
        self._read_over.pop(delivery, None)
        if _is_gone(link):
            return
        if delivery.complete:
            _refuse(connection, link, delivery)
        else:
            _close(connection, link, delivery)

    def pass_time(self, connection: Limited, now: float) -> float | None:
        """Let time pass (monotonic seconds); when to come back."""
        for delivery, due in list(self._read_over.items()):
            if _is_gone(delivery.link):
                del self._read_over[delivery]
            elif due is None:
                self._read_over[delivery] = now + PATIENCE
            elif due <= now:
                del self._read_over[delivery]
                _refuse(connection, delivery.link, delivery)
        return min((due for due in self._read_over.values() if due is not None), default=None)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._read_over)


def _refuse(connection: Limited, link: Link, delivery: Delivery) -> None:
    """Rejected, then its link closed, both saying why."""
    info = {Symbol("max-message-size"): ULong(link.max_message_size)}
    error = AmqpError(MESSAGE_SIZE_EXCEEDED, DESCRIPTION, info)
    link.context.refuse_oversize(delivery, error)
    link.forget_current()
    connection.touched()


def _close(connection: Limited, link: Link, delivery: Delivery) -> None:
    _refuse(connection, link, delivery)
    connection.close(AmqpError(CONNECTION_FORCED, DESCRIPTION))


def _is_gone(link: Link) -> bool:
    """Whether nobody answers for the link any more; the peer may have detached it in the same batch, to no avail."""
    terminal = link.context
    return terminal is None or terminal.over or not hasattr(terminal, "refuse_oversize")
