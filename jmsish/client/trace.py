"""The life of each delivery, told on the logger `jmsish.trace` at DEBUG, for tools that draw it.

A record's attributes are `event`, `queue`, `consumer`, `delivery_id`, `message_id` and `count` (JMSXDeliveryCount).
Whether anybody listens is asked once, when the connection is made, so that nobody pays who does not look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jmsish.engine.codec import MESSAGE_ID, delivery_count_of, peek_properties

if TYPE_CHECKING:
    from jmsish.destination import Destination
    from jmsish.engine.delivery import Delivery

log = logging.getLogger("jmsish.trace")

Calls = list[tuple[Callable[..., Any], tuple[Any, ...]]]


class Trace:
    """Tells what happens to deliveries; the telling itself happens outside the ownership, as one of `calls`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._enlisted: dict[object, list[tuple[Delivery, Destination]]] = {}

    def delivery(self, event: str, delivery: Delivery, queue: Destination, consumer: object = None) -> None:
        self.message(event, delivery.payload, queue, consumer, delivery.id)

    def message(
        self, event: str, payload: bytes, queue: Destination | None, consumer: object = None, delivery_id: int = -1
    ) -> None:
        fields = {
            "event": event,
            "queue": str(queue),
            "consumer": f"consumer-{id(consumer):x}" if consumer is not None else "",
            "delivery_id": delivery_id,
            "message_id": peek_properties(payload, MESSAGE_ID)[0],
            "count": delivery_count_of(payload) + 1,
        }
        self._calls.append((tell, (fields,)))

    def enlisted(self, session: object, delivery: Delivery, queue: Destination) -> None:
        self._enlisted.setdefault(session, []).append((delivery, queue))
        self.delivery("enlisted", delivery, queue)

    def discharged(self, session: object, event: str) -> None:
        """The transaction of `session` ended: what was enlisted in it is committed or rolled back."""
        for delivery, queue in self._enlisted.pop(session, ()):
            self.delivery(event, delivery, queue)


def tell(fields: dict[str, Any]) -> None:
    log.debug("%(event)s %(message_id)s %(queue)s", fields, extra=fields)


def trace_if_wanted(calls: Calls) -> Trace | None:
    return Trace(calls) if log.isEnabledFor(logging.DEBUG) else None
