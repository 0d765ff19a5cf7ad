"""What the consumers of both faces share: everything that does not wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jmsish.client.consumer import ClientConsumer
from jmsish.client.session import ClientSession
from jmsish.client.subscriptions import Subscription
from jmsish.destination import Destination
from jmsish.engine.delivery import Delivery
from jmsish.errors import InvalidDestinationError, MessageFormatError
from jmsish.message import Message, StreamMessage
from jmsish.message.contents import check_body_type
from jmsish.selector import Selector
from jmsish.types import Int

__all__ = [
    "BodyReader",
    "ConsumerFace",
    "check_destination",
    "check_queue",
    "new_consumer",
    "selector_of",
]


class ConsumerFace:
    """The members of a consumer that do not wait."""

    _core: ClientConsumer

    @property
    def destination(self) -> Destination:
        """What the consumer reads."""
        return self._core.destination

    @property
    def selector(self) -> str | None:
        """The selector, or None."""
        return self._core.selector

    @property
    def no_local(self) -> bool:
        """Whether the consumer hides what its own connection published."""
        return self._core.no_local

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._core.destination}>"


def new_consumer(
    session: ClientSession,
    destination: Any,
    selector: str | None,
    *,
    no_local: bool = False,
    prefetch: int | None = None,
    priority: int = 0,
    browsing: bool = False,
    subscription: Subscription | None = None,
) -> ClientConsumer:
    """A consumer of checked arguments, not yet attached."""
    session.check()
    check_destination(destination)
    default = session.connection.options.prefetch_for(
        topic=destination.is_topic, durable=subscription is not None and subscription.durable, browser=browsing
    )
    return ClientConsumer(
        session,
        destination,
        prefetch=check_prefetch(prefetch, default),
        browsing=browsing,
        selector=selector_of(selector),
        no_local=bool(no_local) and destination.is_topic,  # what it means at a queue, no standard says
        priority=check_consumer_priority(priority),
        subscription=subscription,
    )


def check_destination(destination: Any) -> Destination:
    if isinstance(destination, str):
        raise TypeError(f"a destination is made by create_queue({destination!r}) or create_topic({destination!r})")
    if not isinstance(destination, Destination):
        raise InvalidDestinationError(f"{destination!r} is no destination")
    return destination


def check_queue(queue: Any) -> Destination:
    """What a browser can look into."""
    if check_destination(queue).is_topic:
        raise InvalidDestinationError(f"a browser looks into a queue, not into {queue}")
    return check_destination(queue)


def check_prefetch(prefetch: int | None, default: int) -> int:
    if prefetch is None:
        return default
    if isinstance(prefetch, bool) or not isinstance(prefetch, int):
        raise TypeError(f"prefetch is an int, not {type(prefetch).__name__}")
    if not 0 <= prefetch <= 0xFFFF:
        raise ValueError(f"prefetch is 0 to 65535, not {prefetch}")
    return prefetch


def check_consumer_priority(priority: int) -> int:
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(f"the priority of a consumer is an int, not {type(priority).__name__}")
    if not Int.MIN <= priority <= Int.MAX:
        raise ValueError(f"the priority of a consumer fits 32 bits; {priority} does not")
    return priority


def selector_of(selector: str | None) -> str | None:
    """The selector, once it has been understood; blank is none (jms rule 180).  Raises `InvalidSelectorError`."""
    return None if Selector.parse(selector) is None else selector


class BodyReader:
    """Reads the body of a delivery as some type before the delivery is handed over."""

    def __init__(self, type: type[Any], message_of: Callable[[Delivery], Message]) -> None:
        self.body: Any = None
        self._type = check_body_type(type)
        self._message_of = message_of

    def __call__(self, delivery: Delivery) -> None:
        message = self._message_of(delivery)
        if isinstance(message, StreamMessage):
            raise MessageFormatError("the body of a StreamMessage is read item by item, not as a whole")
        body = message.get_body(self._type)
        if body is None:  # jms rule 115: no body is no body of that type either
            raise MessageFormatError(f"the {type(message).__name__} has no body, so none as {self._type.__name__}")
        self.body = body
