"""How consumers ask for messages: windows, pulling one by one, draining, stopping (M75 to M80)."""

from __future__ import annotations

import pytest

from jmsish.client.credit import LATE_ANSWER
from jmsish.engine.link import Link
from jmsish.engine.outcomes import AmqpError
from jmsish.errors import InvalidDestinationError, OperationTimeoutError
from jmsish.modes import AcknowledgeMode

from .peer import Peer, message

AUTO = AcknowledgeMode.AUTO


def asked(peer: Peer) -> list[str]:
    """The credits and drains that the client said."""
    return [word for word in peer.told() if word.startswith(("credit", "drain"))]


def test_m75_a_window_is_granted_at_once_and_topped_up() -> None:
    """All of it at the attach; again when a quarter of it is free, so that a flow is a rare frame."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AUTO), prefetch=100)
    assert asked(peer) == ["credit 100"]
    peer.give(100)
    peer.receive(consumer, 24)
    assert asked(peer) == []
    peer.receive(consumer, 1)
    assert asked(peer) == ["credit 25"]


def test_m76_without_a_window_each_receive_asks_for_one() -> None:
    """And one whose time is over takes the question back, so that nothing comes when nobody looks."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AUTO), prefetch=0)
    assert asked(peer) == []
    receiving = peer.begin(consumer.receive(None))
    assert asked(peer) == ["credit 1"]
    peer.give(3)
    delivery = peer.run(receiving)
    assert delivery is not None and delivery.payload == message(1)
    assert asked(peer) == [] and len(peer.messages) == 2
    peer.messages.clear()
    assert peer.run(consumer.receive(1.0)) is None  # nothing moves any more: its time is over
    assert asked(peer) == ["credit 1", "drain"]
    peer.give(1, 4)
    assert not consumer.buffer


def test_m77_receive_no_wait_looks_here_then_asks_the_broker() -> None:
    """What is in the buffer is handed over without a word; an empty one is drained, then has its credit again."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AUTO), prefetch=10)
    peer.give(1)
    peer.told()
    assert peer.run(consumer.receive(None, wait=False)) is not None
    assert asked(peer) == []
    assert peer.run(consumer.receive(None, wait=False)) is None
    assert asked(peer) == ["drain", "credit 10"]


def test_m77_what_the_drain_brings_is_handed_over() -> None:
    """The answer is what the broker had."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AUTO), prefetch=0)
    peer.messages = [message(1)]
    delivery = peer.run(consumer.receive(None, wait=False))
    assert delivery is not None and delivery.payload == message(1)


@pytest.mark.parametrize("mode", [AUTO, AcknowledgeMode.TRANSACTED])
def test_m78_a_drain_that_is_not_answered_fails_the_request(mode: AcknowledgeMode) -> None:
    """It is asked again meanwhile; the consumer goes on, with its credit."""
    peer = Peer()
    consumer = peer.consumer(peer.session(mode), prefetch=10)
    peer.answers_drains = False
    with pytest.raises(OperationTimeoutError):
        peer.run(consumer.receive(None, wait=False))
    assert consumer.failure is None
    peer.answers_drains = True
    peer.give(2)
    peer.receive(consumer, 2)


def test_m79_a_stopped_connection_keeps_credit_and_buffer() -> None:
    """Nothing is said to the broker; what comes waits here, and a receive does not hand it over."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AUTO), prefetch=10)
    peer.core.stop()
    peer.told()
    peer.give(3)
    assert peer.run(consumer.receive(None, wait=False)) is None
    assert peer.told() == [] and len(consumer.buffer) == 3
    peer.core.start()
    assert len(peer.receive(consumer, 3)) == 3


def test_m80_a_listener_without_a_window_keeps_one_credit() -> None:
    """One message at a time, asked for ahead."""
    peer = Peer()
    session = peer.session(AUTO)
    consumer = peer.consumer(session, prefetch=0)
    consumer.set_listening(True)
    assert asked(peer) == ["credit 1"]
    peer.give(2)
    assert len(consumer.buffer) == 1
    assert session.next_for_listener() is not None
    session.ledger.listener_returned()
    peer.pump()
    assert asked(peer) == ["credit 1"] and len(consumer.buffer) == 1


def test_a_detached_consumer_tells_who_waits() -> None:
    """A receive that waits raises what the broker said."""
    peer = Peer()
    consumer = peer.consumer(peer.session(AUTO), prefetch=0)
    receiving = peer.begin(consumer.receive(None))
    peer.links[-1].detach(closed=True, error=AmqpError("amqp:resource-deleted", "the queue went"))
    with pytest.raises(InvalidDestinationError, match="the queue went"):
        peer.run(receiving)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("rollback", ["rollback", "declare", "released 1-2"]),
        ("commit", ["commit", "declare", "released 1-2"]),
        ("recover", ["failed 0", "released 1-2"]),
    ],
)
def test_what_comes_with_the_answer_to_a_drain_brings_no_credit(call: str, said: list[str]) -> None:
    """Deliveries and the answer in one read: credit follows what is given back, or later messages came before it."""
    peer = Peer(cancel_on_commit="always")
    session = peer.session(AcknowledgeMode.CLIENT if call == "recover" else AcknowledgeMode.TRANSACTED)
    consumer = peer.consumer(session)
    peer.give(1)
    peer.receive(consumer, 1)
    peer.told()
    peer.messages = [message(2), message(3)]  # for credit that is there: they leave with the answer
    peer.run(getattr(session, call)())
    assert peer.told() == ["drain", *said, "credit 10"]


class LateAnswers(Peer):
    """As Artemis: to a drain whose credit is used up it has an answer still, which finds the credit of the next one."""

    is_owed = False

    def _serve(self, link: Link) -> None:
        if self.is_owed and link.drain and link.credit > 0:
            self.is_owed = False
            link.drained()
        asked_for, self.answers_drains = link.credit, False
        super()._serve(link)
        if link.drain and link.credit > 0:
            link.drained()
        elif link.drain and asked_for > 0:
            self.is_owed = True


def test_an_empty_answer_behind_a_drain_that_was_used_up_is_asked_again_at_artemis() -> None:
    """So `receive_no_wait` finds what is there."""
    peer = LateAnswers(profile="artemis")
    consumer = peer.consumer(peer.session(AUTO), prefetch=0)
    peer.messages = [message(1), message(2)]
    peer.receive(consumer, 1)
    assert asked(peer) == ["credit 1", "drain"]
    peer.receive(consumer, 1)
    assert asked(peer) == ["credit 1", "drain", "credit 1"], "the second was answered by nothing"
    for _ in range(2):
        assert peer.run(consumer.receive(None, wait=False)) is None
    assert asked(peer) == ["credit 1", "drain"] * 2


def test_before_it_asks_again_there_is_credit_for_a_moment_which_no_late_answer_takes() -> None:
    """Two questions in a row could each meet the answer to the one before."""
    peer = LateAnswers(profile="artemis")
    consumer = peer.consumer(peer.session(AUTO), prefetch=0)
    peer.messages = [message(1)]
    peer.receive(consumer, 1)
    peer.told()
    steps = consumer.receive(None, wait=False)
    waiting, _ = next(steps)
    peer.pump()
    assert asked(peer) == ["credit 1", "drain"] and waiting.done()
    moment, until = steps.send(None)
    assert asked(peer) == ["credit 1"] and until == peer.core.now + LATE_ANSWER
    peer.messages = [message(2)]
    peer.pump()
    assert moment.done()
    with pytest.raises(StopIteration) as ended:
        steps.send(None)
    assert ended.value.value.payload == message(2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("rollback", ["drain", "detach", "rollback", "declare"]),
        ("recover", ["drain", "detach", "failed 0"]),
    ],
)
def test_a_link_attached_anew_in_place_of_an_answer_gets_credit_last(call: str, said: list[str]) -> None:
    """A broker detaches it for idling where a drain asks: what it gave back of itself must not be overtaken, either."""
    peer = Peer(reattach_idle_links=True)
    session = peer.session(AcknowledgeMode.CLIENT if call == "recover" else AcknowledgeMode.TRANSACTED)
    consumer = peer.consumer(session)
    peer.give(1)
    peer.receive(consumer, 1)
    peer.told()
    peer.answers_drains = False
    steps = peer.begin(getattr(session, call)())
    idle = AmqpError("amqp:link:detach-forced", "idle for ten minutes")
    peer.links[-1].detach(closed=True, error=idle)
    peer.pump()
    assert len(peer.links) == 2 and peer.links[-1].credit == 0
    peer.run(steps)
    assert [word for word in peer.told() if word != "attach"] == [*said, "credit 10"]
