"""How a consumer joins its session: what it may be attached to, and whether the broker grants what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.client.cbs import address_of, authorised
from jmsish.client.filters import dropped_filter
from jmsish.client.links import SHARED_SUBSCRIPTIONS, attach_consumer, attaching
from jmsish.client.procedures import Procedure
from jmsish.client.reattaching import elsewhere
from jmsish.engine.outcomes import AmqpError, Source
from jmsish.errors import InvalidDestinationError, InvalidSelectorError, JMSError, UnsupportedFeatureError, error_for
from jmsish.profiles.profile import BROWSING, DURABLE, SELECTORS, SHARED, TOPIC_CONSUMERS

if TYPE_CHECKING:
    from jmsish.client.consumer import ClientConsumer


def join(consumer: ClientConsumer) -> Procedure[None]:
    """Attach a consumer; unread buffers of its siblings go back first, so that it sees all there is (D1).

    Raises `InvalidDestinationError` for a destination that cannot be consumed from, `InvalidSelectorError` for a
    selector the broker does not take, `UnsupportedFeatureError` where it drops a filter or has no shared subscriptions.
    """
    session = consumer.session
    session.check()
    _check_destination(consumer)
    _check_profile(consumer)
    yield from session.ready_to_consume()
    yield from authorised(session.connection, address_of(consumer))
    if session.siblings(consumer) and not consumer.browsing:
        yield from _make_room(consumer)
    yield from session.connection.until_online(party=session)
    consumer.rename(session.connection.temporary.current(consumer.destination))
    session.check()  # what was waited for came, and may have been the last thing that came
    session.enroll(consumer)
    try:
        with attaching("no consumer"):
            attach_consumer(consumer)
        yield consumer.attached, session.connection.request_deadline()
        # What is done from now on is nothing of the time before.
        yield from session.connection.until_online(party=session)
    except BaseException:
        if consumer.is_granted:  # cancelled in the moment in which it came: messages may be on their way already
            yield from consumer.close()
        else:
            session.forget(consumer)
            consumer.abandon()
        raise


def _check_destination(consumer: ClientConsumer) -> None:
    destination, subscription = consumer.destination, consumer.subscription
    if subscription is not None and not destination.is_topic:
        raise InvalidDestinationError(f"a {subscription} is one to a topic, not to {destination}")
    if subscription is not None and subscription.durable and destination.is_temporary:
        # jms rule 141
        raise InvalidDestinationError(f"a {subscription} outlives {destination}: no temporary topic has one")
    if consumer.browsing and destination.is_topic:
        raise InvalidDestinationError(f"a browser looks into a queue, not into {destination}")
    consumer.session.connection.temporary.check_consumable(destination)


def _check_profile(consumer: ClientConsumer) -> None:
    """Raise `UnsupportedFeatureError` for what this kind of broker is known not to do, before it is asked."""
    profile = consumer.session.connection.profile
    if not profile.lacks:
        return
    if consumer.browsing:
        profile.require(BROWSING)
    if consumer.selector is not None or consumer.no_local:
        profile.require(SELECTORS)
    subscription = consumer.subscription
    if subscription is not None and subscription.shared:
        profile.require(SHARED)
    if subscription is not None and subscription.durable:
        profile.require(DURABLE)
    if consumer.destination.is_topic:
        profile.require(TOPIC_CONSUMERS)


def _make_room(newcomer: ClientConsumer) -> Procedure[None]:
    session = newcomer.session
    siblings = session.siblings(newcomer)
    session.enroll(newcomer)  # from now on the siblings' credit is on demand
    try:
        yield from session.cancel(siblings, session.connection.request_deadline())
    finally:
        session.strike(newcomer)


def what_is_missing(consumer: ClientConsumer) -> JMSError | None:
    """Of what was asked for, what the broker's attach does not grant; None when all is there (M61, M65)."""
    link = consumer.link
    assert link is not None and isinstance(link.source, Source)
    dropped = dropped_filter(link.source, link.remote_source)
    if dropped is not None:
        return UnsupportedFeatureError(f"the broker does not apply {dropped}", scope="link")
    if SHARED_SUBSCRIPTIONS in link.desired_capabilities:
        if SHARED_SUBSCRIPTIONS not in link.remote_offered_capabilities:
            return UnsupportedFeatureError("the broker has no shared subscriptions", scope="link")
    return None


def why_detached(consumer: ClientConsumer, error: AmqpError | None) -> JMSError:
    """What a detach of the broker's means: refused where the attach was not granted before, else lost."""
    refused = not consumer.attached.done()
    text = f"consumer of {consumer.destination}: "
    if error is None:
        text += "the broker has no such node" if refused else "the broker detached the link"
        return (InvalidDestinationError if refused else JMSError)(text, scope="link")  # M66
    text += (error.description or error.condition) + elsewhere(error)
    info = dict(error.info or {})
    if refused and consumer.selector is not None and error.condition == "amqp:invalid-field" and _names_filter(info):
        return InvalidSelectorError(text, scope="link", condition=error.condition, info=info)
    return error_for(error.condition, text, scope="link", info=info)


def _names_filter(info: dict[object, object]) -> bool:
    """Our broker says `field`, others `invalid-field`."""
    return "filter" in map(str, info.values())
