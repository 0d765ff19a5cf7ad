"""What becomes of a delivery, by acknowledge mode (M81 to M88, M108, D3, D6, D12), and how little is said for it."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.destination import Queue
from jmsish.engine.outcomes import ACCEPTED, Modified, Source
from jmsish.errors import ConnectionLostError
from jmsish.modes import AcknowledgeMode
from tests.broker.world import message as counted

from .frames import Frame
from .peer import Peer, message

AUTO, CLIENT, DUPS_OK, INDIVIDUAL = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL
)  # fmt: skip


def given(peer: Peer, mode: AcknowledgeMode, count: int = 5, prefetch: int = 20) -> ClientConsumer:
    """A consumer with so many messages in its buffer."""
    consumer = peer.consumer(peer.session(mode), prefetch)
    peer.give(count)
    peer.told()
    return consumer


def outcomes(peer: Peer) -> list[Frame]:
    """The states of the dispositions said so far."""
    return [frame.state for frame in peer.frames if frame.name == "disposition"]


# --- AUTO and DUPS_OK


def test_m81_auto_accepts_before_receive_returns() -> None:
    """Settled, and one disposition a message: nothing is left to do when the application has it."""
    peer = Peer()
    consumer = given(peer, AUTO)
    for number in range(2):
        assert consumer.receive_now() is not None
        assert peer.told() == [f"accepted {number}"]


def test_m81_auto_accepts_when_the_listener_has_returned() -> None:
    """Not before: until then the message is the broker's."""
    peer = Peer()
    consumer = given(peer, AUTO)
    consumer.set_listening(True)
    assert consumer.session.next_for_listener() is not None
    assert peer.told() == []
    consumer.session.ledger.listener_returned()
    assert peer.told() == ["accepted 0"]


def test_m113_d12_dups_ok_is_no_other_name_of_auto() -> None:
    """Ten at a time, the rest a second after the last receive; Qpid JMS has AUTO for it."""
    peer = Peer()
    consumer = given(peer, DUPS_OK, 12, prefetch=100)
    peer.core.tick(100.0)
    peer.receive(consumer, 9)
    assert peer.told() == []
    peer.receive(consumer, 3)
    assert peer.told() == ["accepted 0-9"]
    peer.core.tick(100.9)
    assert peer.told() == []
    peer.core.tick(101.1)
    assert peer.told() == ["accepted 10-11"]


@pytest.mark.parametrize("mode", [AUTO, DUPS_OK])
def test_m86_m113_d6_what_a_listener_raised_on_is_failed_and_not_released(mode: AcknowledgeMode) -> None:
    """So that its count goes up; what was not read goes back behind it, uncounted, and credit is given again."""
    peer = Peer()
    consumer = given(peer, mode, 3, prefetch=10)
    consumer.set_listening(True)
    assert consumer.session.next_for_listener() is not None
    assert peer.run(consumer.session.listener_failed()) == 1
    assert peer.told() == ["drain", "failed 0", "released 1-2", "credit 10"]


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL, AcknowledgeMode.TRANSACTED])
def test_m86_in_other_modes_nothing_is_said_of_it(mode: AcknowledgeMode) -> None:
    """The application gives it back, or does not."""
    peer = Peer()
    consumer = given(peer, mode, 3)
    consumer.set_listening(True)
    assert consumer.session.next_for_listener() is not None
    peer.told()
    assert peer.run(consumer.session.listener_failed()) == 0
    assert peer.told() == []


# --- CLIENT and INDIVIDUAL


def test_m82_acknowledge_is_for_all_consumers_and_for_what_was_handed_over() -> None:
    """Message 1 is in a buffer still."""
    peer = Peer()
    session = peer.session(CLIENT)
    consumers = []
    for number, queue in enumerate(("q", "r")):
        consumer = ClientConsumer(session, Queue(queue), prefetch=2)
        peer.run(session.add_consumer(consumer))
        peer.give(2, first=2 * number + 1)
        consumers.append(consumer)
    peer.receive(consumers[0], 1)
    peer.receive(consumers[1], 2)
    assert not outcomes(peer)
    peer.told()
    session.ledger.acknowledge(session.ledger.delivered[0])
    assert [word for word in peer.told() if "credit" not in word] == ["accepted 0", "accepted 2-3"]


def test_m82_m113_an_old_message_acknowledges_the_newer_ones() -> None:
    """Acknowledging is the session's, not the message's; in Qpid JMS a message can say it once."""
    peer = Peer()
    consumer = given(peer, CLIENT)
    ledger = consumer.session.ledger
    peer.receive(consumer, 1)
    first = ledger.delivered[0]
    ledger.acknowledge(first)
    peer.receive(consumer, 2)
    ledger.acknowledge(first)
    assert peer.told() == ["accepted 0", "accepted 1-2"]


def test_m82_what_nobody_acknowledges_is_failed_by_default() -> None:
    """Qpid JMS keeps modified(delivery-failed) as the state of each delivery; ours is the default outcome of the link
    (D4), so the broker knows it without a word."""
    peer = Peer()
    given(peer, CLIENT)
    source = peer.links[0].remote_source
    assert isinstance(source, Source) and source.default_outcome == Modified(delivery_failed=True)


def test_m83_individual_accepts_one() -> None:
    """Out of order, and each once."""
    peer = Peer()
    consumer = given(peer, INDIVIDUAL)
    peer.receive(consumer, 3)
    ledger = consumer.session.ledger
    second = ledger.delivered[1]
    ledger.acknowledge(second)
    assert peer.told() == ["accepted 1"]
    ledger.acknowledge(second)
    assert peer.told() == []


def test_m83_without_acknowledgement_the_link_is_settled() -> None:
    """By its snd-settle-mode (1); what the broker forgets when it sends is accepted by default (D4)."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AcknowledgeMode.NONE))
    (attach,) = [frame for frame in peer.frames if frame.name == "attach"]
    assert attach.snd_settle_mode == 1
    source = peer.links[0].remote_source
    assert isinstance(source, Source) and source.default_outcome == ACCEPTED
    peer.links[0].send(message(1), settled=True)
    peer.pump()
    peer.receive(consumer, 1)
    assert not outcomes(peer), "nothing is said of it"


# --- limits


@pytest.mark.parametrize(
    ("policy", "name", "fields"),
    [
        (None, "modified", {"delivery_failed": True, "undeliverable_here": True}),
        ("modified_failed_undeliverable", "modified", {"delivery_failed": True, "undeliverable_here": True}),
        ("modified_failed", "modified", {"delivery_failed": True}),
        ("released", "released", {}),
        ("rejected", "rejected", {"error": ...}),
        ("accepted", "accepted", {}),
    ],
)
def test_m85_delivered_too_often(policy: str | None, name: str, fields: dict[str, object]) -> None:
    """By the header's delivery-count: one at the limit is handed over, one beyond it is refused by the policy."""
    options: dict[str, Any] = {} if policy is None else {"redelivery_outcome": policy}
    peer = Peer(max_redeliveries=2, **options)
    consumer = peer.consumer(peer.session(INDIVIDUAL))
    peer.messages = [counted("m3", delivery_count=3), counted("m2", delivery_count=2)]
    peer.pump()
    delivery = peer.run(consumer.receive(None, wait=False))
    assert delivery is not None and delivery.payload.endswith(b"m2")
    (state,) = outcomes(peer)
    assert state.name == name and set(state.fields) == set(fields)
    assert all(state.fields[field] == value for field, value in fields.items() if value is not ...)


# --- giving back


def test_m87_d3_recover_tells_the_broker() -> None:
    """Qpid JMS puts them back into its own buffer and counts by itself; then the broker and its limits know nothing."""
    peer = Peer()
    consumer = given(peer, CLIENT, 5, prefetch=10)
    peer.receive(consumer, 2)
    peer.told()
    peer.run(consumer.session.recover())
    assert peer.told() == ["drain", "failed 0-1", "released 2-4", "credit 10"]


@pytest.mark.parametrize("handed_over", [0, 2])
def test_m88_the_end_of_a_session(handed_over: int) -> None:
    """Failed for what the application has seen, released for what it has not: the broker has nothing to guess."""
    peer = Peer()
    consumer = given(peer, INDIVIDUAL, 5)
    peer.receive(consumer, handed_over)
    peer.told()
    peer.run(consumer.session.close())
    failed = [f"failed 0-{handed_over - 1}"] if handed_over else []
    assert peer.told() == ["drain", *failed, f"released {handed_over}-4", "end"]


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_m108_what_a_lost_connection_leaves(mode: AcknowledgeMode) -> None:
    """Nothing: the buffer is empty, and what was handed over cannot be acknowledged any more; that is said."""
    peer = Peer()
    consumer = given(peer, mode, 5)
    peer.receive(consumer, 2)
    ledger = consumer.session.ledger
    first = ledger.delivered[0]
    peer.core.receive_eof()
    assert not consumer.buffer and not ledger.delivered
    with pytest.raises(ConnectionLostError):
        ledger.acknowledge(first)
    with pytest.raises(ConnectionLostError):
        peer.run(consumer.receive(None, wait=False))
