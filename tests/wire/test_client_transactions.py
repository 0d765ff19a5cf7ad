"""Transactions as the client puts them on the wire (scenarios G, as b.4 reads it)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.link import Link
from jmsish.engine.outcomes import ACCEPTED, AmqpError, Modified, Rejected, Source
from jmsish.errors import (
    IllegalStateError,
    OperationTimeoutError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsish.modes import AcknowledgeMode

from .frames import write
from .peer import Peer, message


def received_two_of_five(peer: Peer, prefetch: int = 10) -> tuple:  # type: ignore[type-arg]
    session = peer.session()
    consumer = peer.consumer(session, prefetch)
    peer.give(5)
    assert peer.receive(consumer, 2) == [message(1), message(2)]
    return session, consumer


def test_s115_m96_an_acknowledgement_is_settled_at_hand_over_under_the_transaction() -> None:
    peer = Peer()
    session = peer.session()
    consumer = peer.consumer(session)
    peer.give(2)
    peer.told()
    peer.receive(consumer, 1)
    assert peer.told() == ["accepted in a transaction 0"]


def test_s116_m95_commit_with_the_consumer_open_is_discharge_and_declare_and_nothing_else() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.told()
    peer.run(session.commit())
    assert peer.told() == ["commit", "declare"]


def test_s116_one_round_trip() -> None:
    """One message in and one out: post, acknowledgement, discharge and declare leave in one write."""
    peer = Peer()
    session = peer.session()
    consumer, producer = peer.consumer(session), peer.producer(session)
    peer.give(1)
    peer.told()
    assert consumer.receive_now() is not None
    assert producer.post(message(9), None)
    peer.run(session.commit())
    assert peer.told() == ["transfer", "accepted in a transaction 0", "commit", "declare"]


def test_s117_m89_closed_before_the_commit_the_link_goes_last() -> None:
    peer = Peer()
    session, consumer = received_two_of_five(peer)
    peer.told()
    peer.run(consumer.close())
    assert peer.told() == ["drain", "released 2-4"]
    peer.run(session.commit())
    assert peer.told() == ["commit", "declare", "detach"]


def test_s118_closed_after_the_commit() -> None:
    peer = Peer()
    session, consumer = received_two_of_five(peer)
    peer.run(session.commit())
    peer.told()
    peer.run(consumer.close())
    assert peer.told() == ["drain", "released 2-4", "detach"]


def test_s119_m90_rollback_drains_discharges_releases_and_only_then_gives_credit() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.told()
    peer.run(session.rollback())
    assert peer.told() == ["drain", "rollback", "declare", "released 2-4", "credit 10"]


def test_s120_rollback_after_the_consumer_closed() -> None:
    peer = Peer()
    session, consumer = received_two_of_five(peer)
    peer.told()
    peer.run(consumer.close())
    peer.run(session.rollback())
    assert peer.told() == ["drain", "released 2-4", "rollback", "declare", "detach"]


def test_s121_a_full_buffer_needs_no_drain() -> None:
    peer = Peer()
    session = peer.session()
    consumer = peer.consumer(session, prefetch=5)
    peer.give(5)
    consumer.prefetch = 0  # no credit is granted again while it reads
    peer.receive(consumer, 2)
    peer.told()
    consumer.prefetch = 5
    peer.run(session.rollback())
    assert peer.told() == ["rollback", "declare", "released 2-4", "credit 5"]


def test_s122_what_the_drain_brings_is_given_back_unmarked() -> None:
    peer = Peer()
    session, consumer = received_two_of_five(peer)
    peer.answers_drains = False
    peer.told()
    steps = peer.begin(session.rollback())
    data = peer.core.take_output()
    peer.messages = [message(6), message(7)]  # under way when the drain arrives
    peer.engine.receive(data)
    peer.answers_drains = True
    peer.pump()
    assert [d.payload for d in consumer.buffer] == [message(n) for n in range(3, 8)]
    peer.run(steps)
    assert "released 2-6" in peer.told()


def test_s123_a_drain_that_is_never_answered_does_not_stop_the_rollback() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.answers_drains = False
    peer.told()
    with pytest.raises(OperationTimeoutError):
        peer.run(session.rollback())
    told = peer.told()
    assert told[0] == told[1] == "drain", "asked again"
    assert [line for line in told if line != "drain"][:2] == ["rollback", "declare"]


def test_s124_the_source_of_a_transacted_consumer() -> None:
    peer = Peer()
    peer.consumer(peer.session())
    source = peer.links[0].remote_source
    assert isinstance(source, Source)
    assert source.default_outcome == Modified(delivery_failed=True)
    assert set(source.outcomes or ()) == {f"amqp:{n}:list" for n in ("accepted", "rejected", "released", "modified")}


def test_s125_m97_a_rejected_discharge_is_a_rollback() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.answer = lambda fail: Rejected(AmqpError("amqp:transaction:rollback", "no room"))
    with pytest.raises(TransactionRolledBackError, match="no room") as caught:
        peer.run(session.commit())
    assert caught.value.condition == "amqp:transaction:rollback"
    told = peer.told()
    assert told[-5:] == ["commit", "declare", "drain", "released 2-4", "credit 10"]
    peer.answer = None
    peer.run(session.commit())  # without work nothing is asked
    assert peer.told() == []


def test_s126_the_control_link_closed_before_the_commit() -> None:
    peer = Peer()
    session, consumer = received_two_of_five(peer)
    peer.coordinators[0].detach(closed=True, error=AmqpError("amqp:transaction:timeout", "too long"))
    peer.pump()
    peer.told()
    peer.receive(consumer, 1)
    assert not any("in a transaction" in line for line in peer.told()), "no disposition after the loss"
    with pytest.raises(TransactionRolledBackError, match="too long"):
        peer.run(session.commit())
    assert "failed 2" in peer.told(), "what was handed over after the loss goes back, counted"
    peer.give(1, first=6)
    assert peer.run(consumer.receive(None, wait=False)) is not None
    peer.run(session.commit())
    assert peer.told()[-2:] == ["commit", "declare"], "a fresh transaction on a fresh control link"


def test_s126_m98_the_control_link_closed_instead_of_an_answer() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.answer = None
    steps = peer.begin(session.commit())
    peer.pump()
    peer.coordinators[0].detach(closed=True, error=AmqpError("amqp:transaction:rollback", "cannot"))
    with pytest.raises(TransactionRolledBackError, match="cannot"):
        peer.run(steps)


def test_s126_a_rollback_after_the_loss_raises_nothing() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.coordinators[0].detach(closed=True)
    peer.pump()
    peer.run(session.rollback())


def test_s127_m100_a_commit_that_is_never_answered_is_in_doubt_and_the_session_goes_on() -> None:
    peer = Peer()
    session, consumer = received_two_of_five(peer)
    peer.answer = None
    with pytest.raises(TransactionInDoubtError):
        peer.run(session.commit())
    peer.answer = lambda fail: Rejected(None)
    peer.receive(consumer, 1)
    with pytest.raises(TransactionRolledBackError):
        peer.run(session.commit())


def test_s127_a_rollback_that_is_never_answered_times_out() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.answer = None
    with pytest.raises(OperationTimeoutError):
        peer.run(session.rollback())


def test_s128_a_session_that_closes_rolls_back_and_ends() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.told()
    peer.run(session.close())
    assert peer.told() == ["drain", "rollback", "released 2-4", "end"]


def test_s128_without_work_too() -> None:
    peer = Peer()
    session = peer.session()
    peer.told()
    peer.run(session.close())
    assert peer.told() == ["rollback", "end"]


def test_s084_close_then_recover() -> None:
    """At the close only a drain is seen; at the recover both go back counted, then the link goes."""
    peer = Peer()
    session = peer.session(AcknowledgeMode.CLIENT)
    consumer = peer.consumer(session)
    peer.give(2)
    peer.receive(consumer, 2)
    peer.told()
    peer.run(consumer.close())
    assert peer.told() == ["drain"]
    peer.run(session.recover())
    assert peer.told() == ["failed 0-1", "detach"]


def test_s085_m89_close_then_acknowledge() -> None:
    peer = Peer()
    session = peer.session(AcknowledgeMode.CLIENT)
    consumer = peer.consumer(session)
    peer.give(5)
    peer.receive(consumer, 3)
    third = session.ledger.delivered[2]
    peer.told()
    peer.run(consumer.close())
    assert peer.told() == ["drain", "released 3-4"]
    session.ledger.acknowledge(third)
    assert peer.told() == ["accepted 0-2", "detach"]


def test_s087_m88_close_of_the_session_counts_what_was_handed_over() -> None:
    peer = Peer()
    session = peer.session(AcknowledgeMode.CLIENT)
    consumer = peer.consumer(session)
    peer.give(5)
    peer.receive(consumer, 3)
    third = session.ledger.delivered[2]
    peer.told()
    peer.run(session.close())
    assert peer.told() == ["drain", "failed 0-2", "released 3-4", "end"]
    with pytest.raises(IllegalStateError):
        session.ledger.acknowledge(third)


def test_a_drain_answered_in_mid_delivery_waits_for_its_rest() -> None:
    """proton-j answers a drain after the first frame of a delivery, and sends the rest for new credit only."""
    peer = Peer()
    session, consumer = received_two_of_five(peer)
    link, limit = peer.links[0], peer.links[0].delivery_count + peer.links[0].credit
    peer.answers_drains = False
    steps = peer.begin(session.rollback())
    peer.pump()
    numbers = {"next_incoming_id": 0, "incoming_window": 2048, "outgoing_window": 2048, "handle": link.handle}
    whole = message(6)
    peer.core.receive(
        write("transfer", payload=whole[:3], handle=link.handle, delivery_id=5, delivery_tag=b"6", more=True)
        + write("flow", **numbers, next_outgoing_id=6, delivery_count=limit, link_credit=0, drain=True)
    )
    assert consumer.drained is not None and not consumer.drained.done(), "half a delivery is still under way"
    assert consumer.link is not None and consumer.link.credit == 1
    peer.core.receive(
        write("transfer", payload=whole[3:], handle=link.handle, delivery_id=5, delivery_tag=b"6")
        + write("flow", **numbers, next_outgoing_id=7, delivery_count=limit + 1, link_credit=0, drain=True)
    )
    assert consumer.drained.done()
    assert [d.payload for d in consumer.buffer] == [message(n) for n in range(3, 7)]
    steps.close()


# -- links detached in the middle --------------------------------------------------------------------------------------

GONE = AmqpError("amqp:link:detach-forced", "not wanted here")


def used_in_a_transaction(peer: Peer, how: str) -> Any:
    """A session with something in its transaction, by the link last attached."""
    if how == "received":
        return received_two_of_five(peer)[0]
    session = peer.session()
    assert peer.producer(session).post(message(9), None)
    peer.pump()
    return session


@pytest.mark.parametrize("how", ["received", "sent"])
def test_a_link_detached_in_the_middle_of_a_transaction_makes_its_commit_a_rollback(how: str) -> None:
    """What is under way by a link that the broker has detached is dropped there; the rest alone is no transaction."""
    peer = Peer()
    session = used_in_a_transaction(peer, how)
    the_link(peer).detach(closed=True, error=GONE)
    peer.pump()
    peer.told()
    with pytest.raises(TransactionRolledBackError, match="detached the .* in the middle of the transaction"):
        peer.run(session.commit())
    assert peer.told() == ["rollback", "declare"]
    peer.run(session.commit())  # the next has no part in it


@pytest.mark.parametrize("how", ["received", "sent"])
def test_a_link_detached_before_the_answer_to_a_commit_leaves_it_in_doubt(how: str) -> None:
    peer = Peer()
    session = used_in_a_transaction(peer, how)

    def answer(fail: bool) -> Any:
        the_link(peer).detach(closed=True, error=GONE)
        return ACCEPTED

    peer.answer = answer
    with pytest.raises(TransactionInDoubtError, match="without all that was in it") as caught:
        peer.run(session.commit())
    assert (caught.value.received, caught.value.sent) == ((2, 0) if how == "received" else (0, 1))
    peer.answer = lambda fail: ACCEPTED
    peer.run(session.commit())


def test_a_link_detached_that_has_no_part_in_the_transaction_is_nothing_to_it() -> None:
    peer = Peer()
    session, _ = received_two_of_five(peer)
    peer.producer(session)
    the_link(peer).detach(closed=True, error=GONE)
    peer.pump()
    peer.told()
    peer.run(session.commit())
    assert peer.told() == ["commit", "declare"]


def the_link(peer: Peer) -> Link:
    """The broker's end of the link that was attached last."""
    return [link for session in peer.engine.sessions.values() for link in session.links.values()
            if link not in peer.coordinators and link.attached][-1]  # fmt: skip
