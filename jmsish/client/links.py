"""How the links of JMS consumers and producers are attached (M44 to M61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jmsish.destination import wire_name
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    AmqpError,
    Modified,
    Rejected,
    Source,
    Target,
)
from jmsish.modes import AcknowledgeMode
from jmsish.types import Described, ULong

if TYPE_CHECKING:
    from jmsish.client.consumer import ClientConsumer
    from jmsish.client.producer import ClientProducer
    from jmsish.destination import Destination

OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
"""What our links can be told: the four outcomes of Part 3, 3.4."""

OUTCOMES_OF_POLICY = {
    "accepted": ACCEPTED,
    "rejected": Rejected(AmqpError("amqp:delivery-limit-exceeded", "max_redeliveries deliveries have failed")),
    "released": RELEASED,
    "modified_failed": MODIFIED_FAILED,
    "modified_failed_undeliverable": MODIFIED_FAILED_UNDELIVERABLE,
}
"""What the option `redelivery_outcome` names (M85)."""

SELECTOR_FILTER = "jms-selector"
SELECTOR_DESCRIPTOR = ULong(0x0000468C00000004)
"""M57, M59."""

NO_LOCAL_FILTER = "no-local"
NO_LOCAL_DESCRIPTOR = ULong(0x0000468C00000003)
"""M58: a string, as Qpid JMS sends it and every broker takes it."""

SETTLED, UNSETTLED = 1, 0
"""snd-settle-mode (Part 2, 2.8.2)."""


def consumer_source(consumer: ClientConsumer, presettled: bool) -> Source:
    """The source we ask for; its default outcome decides what a rolled-back or forgotten delivery becomes (D4)."""
    destination = consumer.destination
    filters: dict[str, Any] | None = None
    if consumer.selector is not None:
        filters = {SELECTOR_FILTER: Described(SELECTOR_DESCRIPTOR, consumer.selector)}
    if consumer.no_local:
        filters = {**(filters or {}), NO_LOCAL_FILTER: Described(NO_LOCAL_DESCRIPTOR, "NoLocalFilter{}")}
    return Source(
        address=wire_name(destination, consumer.session.connection.prefixes),
        expiry_policy="link-detach",
        distribution_mode="copy" if consumer.browsing else None,
        filter=filters,
        default_outcome=ACCEPTED if presettled else Modified(delivery_failed=True),
        outcomes=OUTCOMES,
        capabilities=(destination.capability,),
    )


def attach_consumer(consumer: ClientConsumer) -> None:
    session = consumer.session
    presettled = consumer.browsing or session.mode is AcknowledgeMode.NONE
    name = session.connection.unique_name(f"receiver:{consumer.destination.name}")
    consumer.link = session.engine_session.receiver(
        name,
        source=consumer_source(consumer, presettled),
        target=Target(address=name),
        snd_settle_mode=SETTLED if presettled else UNSETTLED,
        context=consumer,
    )


def attach_producer(producer: ClientProducer, destination: Destination | None) -> None:
    session = producer.session
    address = None if destination is None else wire_name(destination, session.connection.prefixes)
    name = session.connection.unique_name(f"sender:{address or ''}")
    producer.link = session.engine_session.sender(
        name,
        source=Source(address=name, outcomes=OUTCOMES),
        target=Target(address=address, capabilities=() if destination is None else (destination.capability,)),
        snd_settle_mode=2,
        desired_capabilities=("DELAYED_DELIVERY",),
        context=producer,
    )
    # Acknowledgements and posts of a transaction commute; so those of a hundred messages are one frame.
    producer.link.overtakes = True
