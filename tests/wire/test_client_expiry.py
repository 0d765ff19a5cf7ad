"""What has expired on its way or in the buffer is not handed over, and takes no other message's place (M84)."""

from __future__ import annotations

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.destination import Queue, Topic
from jmsish.modes import AcknowledgeMode

from .peer import Peer, message

NOW = 1_700_000_000_000


def expiring(number: int, after: int) -> bytes:
    """A message that expires so many milliseconds from the client's time."""
    return properties(NOW + after) + message(number)


def properties(expiry: int) -> bytes:
    """A properties section that says only when the message expires (Part 3, 3.2.4)."""
    fields = b"\x40" * 8 + b"\x83" + expiry.to_bytes(8, "big")
    return b"\x00\x53\x73\xc0" + bytes([len(fields) + 1, 9]) + fields


def expired(first: int, last: int) -> list[bytes]:
    return [expiring(number, -1) for number in range(first, last + 1)]


def bodies(peer: Peer, consumer: ClientConsumer, wait: bool = False) -> list[int]:
    got = []
    while (delivery := peer.run(consumer.receive(None, wait=wait))) is not None:
        got.append(int(delivery.payload.rpartition(b"m")[2]))
    return got


@pytest.mark.parametrize("destination", [Queue("q"), Topic("t")])
def test_m84_expired_messages_are_given_back_as_undeliverable_here(destination: Queue | Topic) -> None:
    """Failed, and not to come here again; what is behind them is handed over."""
    peer = Peer()
    session = peer.session(AcknowledgeMode.AUTO)
    consumer = ClientConsumer(session, destination, prefetch=10)
    peer.run(session.add_consumer(consumer))
    peer.messages = [*expired(1, 2), expiring(3, 1), expiring(4, 0), message(5)]
    assert bodies(peer, consumer) == [3, 5]
    said = [str(frame.fields["state"]) for frame in peer.frames if frame.name == "disposition"]
    undeliverable = [state for state in said if state.count("True") == 2]
    assert len(undeliverable) == 2 and len(said) == 4, "0 and 1 in one range, 2, 3, 4"


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_s150_a_bufferful_of_expired_messages(prefetch: int) -> None:
    """150: however many windows of them come, the live ones behind are found by one receive that does not wait."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO), prefetch=prefetch)
    peer.messages = [*expired(1, 9), *(message(number) for number in range(10, 14))]
    assert bodies(peer, consumer) == [10, 11, 12, 13]
    assert not peer.messages and not consumer.buffer


def test_s151_expired_in_flight_with_zero_prefetch() -> None:
    """151: a receive that waits asks for one more, and waits on."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO), prefetch=0)
    receiving = peer.begin(consumer.receive(None))
    peer.messages = [*expired(1, 1), message(2)]
    delivery = peer.run(receiving)
    assert delivery is not None and delivery.payload == message(2)
    assert peer.told().count("credit 1") == 2


def test_a_browser_passes_over_what_has_expired_and_says_nothing() -> None:
    """Its deliveries are settled: there is nothing to give back."""
    peer = Peer()
    session = peer.session(AcknowledgeMode.AUTO)
    browser = ClientConsumer(session, Queue("q"), prefetch=2, browsing=True)
    peer.run(session.add_consumer(browser))
    peer.messages = [*expired(1, 5), message(6), *expired(7, 7), message(8)]
    got = []
    while (delivery := peer.run(browser.browse())) is not None:
        got.append(delivery.payload)
    assert got == [message(6), message(8)]
