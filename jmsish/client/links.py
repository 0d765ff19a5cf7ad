"""How the links of JMS consumers and producers are attached (M44 to M65)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jmsish.client.filters import wished_filters
from jmsish.destination import wire_name
from jmsish.engine.conditions import EngineStateError
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    AmqpError,
    DeliveryState,
    Modified,
    Rejected,
    Source,
    Target,
)
from jmsish.engine.termini import CONFIGURATION, UNSETTLED_STATE
from jmsish.errors import JMSError
from jmsish.modes import AcknowledgeMode
from jmsish.profiles.profile import MODIFIED
from jmsish.types import Int, Symbol

if TYPE_CHECKING:
    from jmsish.client.consumer import ClientConsumer
    from jmsish.client.producer import ClientProducer
    from jmsish.destination import Destination
    from jmsish.profiles import Profile

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

SETTLED, UNSETTLED = 1, 0
"""snd-settle-mode (Part 2, 2.8.2)."""

SHARED_SUBSCRIPTIONS = "SHARED-SUBS"
"""The capability of a broker, or of a link, that has shared subscriptions (M31, M65)."""

CONSUMER_PRIORITY = Symbol("priority")
"""The link property by which brokers know the priority of a consumer."""


def outcomes_at(profile: Profile) -> tuple[str, ...]:
    """The outcomes that our links can be told, or tell."""
    return OUTCOMES if profile.has(MODIFIED) else OUTCOMES[:3]


def _default_outcome(profile: Profile, presettled: bool) -> DeliveryState:
    if presettled:
        return ACCEPTED
    return Modified(delivery_failed=True) if profile.has(MODIFIED) else RELEASED


def node_durability(profile: Profile, destination: Destination | None) -> int:
    """How durable the terminus of a queue is, where that decides what the broker makes (`Profile.asks_durability`)."""
    if not profile.asks_durability or destination is None or destination.is_topic or destination.is_temporary:
        return 0
    return CONFIGURATION


def consumer_source(consumer: ClientConsumer, presettled: bool) -> Source:
    """The source we ask for; its default outcome decides what a rolled-back or forgotten delivery becomes (D4)."""
    destination = consumer.destination
    connection = consumer.session.connection
    subscription = consumer.subscription
    durable = subscription is not None and subscription.durable
    return Source(
        address=consumer.address or wire_name(destination, connection.prefixes),
        durable=UNSETTLED_STATE if durable else node_durability(connection.profile, destination),
        expiry_policy="never" if durable else "link-detach",  # M55
        distribution_mode="copy" if consumer.browsing or durable else None,
        filter=wished_filters(consumer),
        default_outcome=_default_outcome(connection.profile, presettled),
        outcomes=outcomes_at(connection.profile),
        capabilities=(destination.capability, *connection.subscriptions.capabilities(subscription)),
    )


def attach_consumer(consumer: ClientConsumer) -> None:
    """Attach its link.  Raises `IllegalStateError` where the connection's other subscriptions forbid it (M64)."""
    session = consumer.session
    connection = session.connection
    presettled = consumer.browsing or session.mode is AcknowledgeMode.NONE
    subscription = consumer.subscription
    if subscription is None:
        name = connection.unique_name(f"receiver:{consumer.destination.name}")
    else:
        name = connection.subscriptions.enter(consumer)
        if subscription.shared and connection.profile.share_names is not None:
            name = connection.profile.share_names.format(name=subscription.name, topic=consumer.destination.name)
    asks = subscription is not None and subscription.shared and not connection.offers(SHARED_SUBSCRIPTIONS)
    consumer.link = session.engine_session.receiver(
        name,
        source=consumer_source(consumer, presettled),
        target=Target(address=name),
        snd_settle_mode=SETTLED if presettled else UNSETTLED,
        properties={CONSUMER_PRIORITY: Int(consumer.priority)} if consumer.priority else None,
        desired_capabilities=(SHARED_SUBSCRIPTIONS,) if asks else (),
        max_message_size=connection.options.max_message_size or 0,
        context=consumer,
    )


@contextmanager
def attaching(what: str) -> Iterator[None]:
    """Raises a `JMSError` where no attach can be written: names do not fit a frame, or the session is over."""
    try:
        yield
    except EngineStateError as error:
        raise JMSError(f"{what} can be attached: {error}", scope="session") from error


def attach_producer(producer: ClientProducer, destination: Destination | None) -> None:
    session = producer.session
    address = producer.address
    if address is None and destination is not None:
        address = wire_name(destination, session.connection.prefixes)
    name = session.connection.unique_name(f"sender:{address or ''}")
    link = session.engine_session.sender(
        name,
        source=Source(address=name, outcomes=OUTCOMES),
        target=Target(
            address=address,
            durable=node_durability(session.connection.profile, destination),
            capabilities=() if destination is None else (destination.capability,),
        ),
        snd_settle_mode=2,
        desired_capabilities=("DELAYED_DELIVERY",),
        context=producer,
    )
    # Acknowledgements and posts of a transaction commute; so those of a hundred messages are one frame.
    link.overtakes = True
    if producer.kept:
        producer.coming = link
    else:
        producer.link = link
