"""Links that come again: those a broker detached for being idle, and those it redirected to another address."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.client.answers import Answer
from jmsish.client.reattaching import HOPS, IN_A_ROW, SOON
from jmsish.engine.link import Link
from jmsish.engine.outcomes import AmqpError
from jmsish.errors import ConnectionLostError, JMSError
from jmsish.events import DeliveriesLost, LinkReattached
from jmsish.modes import AcknowledgeMode
from jmsish.types import Symbol

from .peer import Peer, message

IDLE = AmqpError("amqp:link:detach-forced", "The link was closed because it was idle for 10 minutes")


def idle(peer: Peer, link: Link) -> None:
    """The broker detaches a link, as Azure Service Bus does."""
    link.detach(closed=True, error=IDLE)
    peer.links = [each for each in peer.links if each is not link]
    peer.pump()


def sender_of(peer: Peer) -> Link:
    """The broker's end of the client's producer."""
    (link,) = [link for session in peer.engine.sessions.values() for link in session.links.values()
               if not link.is_sender and link.attached]  # fmt: skip
    return link


@pytest.fixture
def events() -> list[Any]:
    return []


def peer_with(events: list[Any], **options: Any) -> Peer:
    peer = Peer(**{"reattach_idle_links": True, **options})
    peer.core.event_listener = events.append
    return peer


def tell(peer: Peer) -> None:
    for call, arguments in peer.core.calls:
        call(*arguments)
    peer.core.calls.clear()


def test_a_consumer_that_was_idle_receives_on(events: list[Any]) -> None:
    peer = peer_with(events)
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    for number in (1, 2, 3):
        idle(peer, peer.links[-1])
        peer.give(1, number)
        assert peer.receive(consumer, 1) == [message(number)]
        peer.core.now += 600
    tell(peer)
    assert events == [LinkReattached(consumer.destination)] * 3 and consumer.failure is None


def test_what_it_had_not_read_comes_again_and_is_told(events: list[Any]) -> None:
    peer = peer_with(events)
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    peer.give(2)
    assert len(consumer.buffer) == 2
    idle(peer, peer.links[-1])
    assert not consumer.buffer
    peer.give(2)
    assert peer.receive(consumer, 2) == [message(1), message(2)]
    tell(peer)
    assert DeliveriesLost((consumer.destination,), 2, 0) in events


def test_a_waiting_receive_waits_on(events: list[Any]) -> None:
    peer = peer_with(events)
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    steps = peer.begin(consumer.receive(None))
    idle(peer, peer.links[-1])
    peer.give(1)
    assert peer.run(steps).payload == message(1)


def test_a_producer_that_was_idle_sends_on(events: list[Any]) -> None:
    peer = peer_with(events)
    producer = peer.producer(peer.session(AcknowledgeMode.AUTO))
    idle(peer, sender_of(peer))
    answer: Any = Answer()
    peer.run(producer.send(message(1), answer))
    peer.pump()
    assert answer.done() and answer.exception() is None
    tell(peer)
    assert events == [LinkReattached(producer.destination)]


def test_a_send_in_flight_on_the_old_link_is_of_unknown_outcome(events: list[Any]) -> None:
    peer = peer_with(events)
    producer = peer.producer(peer.session(AcknowledgeMode.AUTO))
    answer: Any = Answer()
    assert producer.post(message(1), answer)
    peer.core.take_output()  # it leaves, and is not heard of
    idle(peer, sender_of(peer))
    error = answer.exception()
    assert isinstance(error, ConnectionLostError) and error.outcome_unknown


def test_an_idle_coordinator_is_attached_anew_for_the_next_work() -> None:
    peer = Peer()
    session = peer.session()
    (link,) = peer.coordinators
    link.detach(closed=True, error=IDLE)
    peer.pump()
    consumer = peer.consumer(session)
    peer.give(1)
    assert peer.receive(consumer, 1) == [message(1)]
    peer.run(session.commit())
    assert len(peer.coordinators) == 2


def test_only_where_it_is_wished_or_known_of_the_broker(events: list[Any]) -> None:
    peer = peer_with(events, reattach_idle_links=None)
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    idle(peer, peer.links[-1])
    assert isinstance(consumer.failure, JMSError)
    peer = peer_with(events, reattach_idle_links=None, profile="servicebus")
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    idle(peer, peer.links[-1])
    assert consumer.failure is None


def test_a_link_that_is_detached_at_once_again_was_not_idle(events: list[Any]) -> None:
    """So no broker makes us attach in a circle; a few times in a row may be the clock of a test."""
    peer = peer_with(events)
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    for _ in range(IN_A_ROW):
        idle(peer, peer.links[-1])
        peer.core.now += SOON / 2
    assert consumer.failure is None
    idle(peer, peer.links[-1])
    assert isinstance(consumer.failure, JMSError)


# -- redirects ---------------------------------------------------------------------------------------------------------


def redirecting(peer: Peer, to: dict[str, Any], times: int = 1) -> list[str]:
    """Refuses so many attaches with a redirect; the addresses that were asked for."""
    asked: list[str] = []

    def answer(link: Link) -> None:
        node = link.remote_source if link.is_sender else link.remote_target
        asked.append(str(node.address))  # type: ignore[union-attr]
        if len(asked) > times:
            link.attach()
        else:
            info = {Symbol(key): value for key, value in to.items()}
            link.refuse(AmqpError("amqp:link:redirect", "it is elsewhere", info))

    peer.answer_attach = answer
    return asked


def test_m40_a_redirect_to_another_address_is_followed() -> None:
    peer = Peer()
    session = peer.session(AcknowledgeMode.AUTO)
    asked = redirecting(peer, {"address": "q-7"})
    consumer = peer.consumer(session)
    assert asked == ["q", "q-7"]
    peer.give(1)
    assert peer.receive(consumer, 1) == [message(1)]
    asked = redirecting(peer, {"address": "q-8"})
    peer.producer(session)
    assert asked == ["q", "q-8"]


def test_m40_a_redirect_of_a_link_to_another_host_is_an_error_that_says_where() -> None:
    peer = Peer()
    session = peer.session(AcknowledgeMode.AUTO)
    redirecting(peer, {"network-host": "b.example", "port": 5671, "address": "q-7"}, times=9)
    for make in (peer.consumer, peer.producer):
        with pytest.raises(JMSError, match=r"b\.example:5671, address 'q-7'") as caught:
            make(session)
        assert caught.value.condition == "amqp:link:redirect"


def test_redirects_in_a_circle_end() -> None:
    peer = Peer()
    session = peer.session(AcknowledgeMode.AUTO)
    asked = redirecting(peer, {"address": "q"}, times=100)
    with pytest.raises(JMSError):
        peer.consumer(session)
    assert len(asked) == HOPS + 1
