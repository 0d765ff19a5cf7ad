"""The client as transaction controller: what it puts on the wire, and what it makes of what comes (Part 4; issue 4, 6).

The rules for the resource's side are in the other files; here the controller's half of T10 to T53 and T70 to T85.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from jmsish.engine.outcomes import (
    ACCEPTED,
    AmqpError,
    Coordinator,
    Declare,
    Discharge,
    Rejected,
    Source,
    decode_control,
)
from jmsish.errors import (
    ConnectionLostError,
    JMSError,
    JMSSecurityError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    UnsupportedFeatureError,
)
from jmsish.modes import AcknowledgeMode
from tests.wire.frames import Frame
from tests.wire.part4.brokers import Broker, BrokerJ, Grudging, NoCoordinator, Silent
from tests.wire.peer import Peer, message

ROLLBACK = "amqp:transaction:rollback"


def control_transfers(peer: Peer) -> list[Frame]:
    frames = []
    for frame in peer.frames:
        if frame.name == "transfer" and frame.payload[:3] == b"\x00\x53\x77" and frame.payload[4:5] in b"\x53":
            frames.append(frame)
    return frames


def worked(peer: Peer) -> Any:
    """A session that has taken one message and sent one; consumer, producer."""
    session = peer.session()
    consumer, producer = peer.consumer(session), peer.producer(session)
    peer.give(2)
    peer.receive(consumer, 1)
    peer.run(producer.send(message(9), None))
    peer.told()
    return session, consumer, producer


# --- the control link


def test_t010_t014_m93_the_control_link_as_attached() -> None:
    peer = Peer()
    peer.session()
    (link,) = peer.coordinators
    assert isinstance(link.remote_target, Coordinator) and not link.is_sender, "the client is the sending end"
    assert link.remote_target.capabilities == ("amqp:local-transactions",), "T12: what it needs"
    source = link.remote_source
    assert isinstance(source, Source) and "amqp:rejected:list" in (source.outcomes or ()), "T14"


@pytest.mark.parametrize("offered", [(), ("amqp:local-transactions",), ("amqp:local-transactions", "vendor:more")])
def test_t012_capabilities_that_do(offered: tuple[str, ...]) -> None:
    """None at all is what Broker-J says, and it works."""
    peer = Grudging(offered)
    assert peer.session().controller is not None


def test_t012_without_local_transactions_the_controller_detaches_and_says_so_at_once() -> None:
    peer = Grudging(("amqp:distributed-transactions",))
    with pytest.raises(UnsupportedFeatureError, match="local transactions"):
        peer.session()
    assert [frame.name for frame in peer.frames[-2:]] == ["detach", "end"]
    assert peer.core.sessions == set(), "and nothing of it is left"
    peer.session(AcknowledgeMode.AUTO)


@pytest.mark.parametrize("how", ["attach refused", "attach refused without a word", "session ended"])
@pytest.mark.parametrize("condition", ["amqp:not-implemented", "amqp:not-found", "amqp:not-allowed"])
def test_a_broker_without_a_coordinator_is_unsupported_at_once(how: str, condition: str) -> None:
    peer = NoCoordinator(how, condition)
    with pytest.raises(UnsupportedFeatureError, match="transactions") as caught:
        peer.session()
    if how != "attach refused without a word":
        assert caught.value.condition == condition and "no such thing" in str(caught.value)
    assert peer.core.sessions == set()
    peer.session(AcknowledgeMode.AUTO)


def test_a_coordinator_that_is_forbidden_is_a_matter_of_security() -> None:
    with pytest.raises(JMSSecurityError):
        NoCoordinator("attach refused", "amqp:unauthorized-access").session()


def test_a_declare_that_is_refused_says_why() -> None:
    peer = Broker()
    peer.declare_answer = Rejected(AmqpError("amqp:resource-limit-exceeded", "too many transactions"))
    with pytest.raises(Exception, match="too many transactions"):
        peer.session()
    assert peer.core.sessions == set()


@pytest.mark.parametrize("closed", [True, False])
def test_a_detach_of_the_control_link_is_answered(closed: bool) -> None:
    """Part 2, 2.6.6: the other end answers, and the handle is free again."""
    peer = Peer()
    peer.session()
    peer.told()
    peer.coordinators[0].detach(closed=closed)
    assert peer.told() == ["detach"]


# --- declare and discharge


def test_t002_t030_m94_control_messages_are_one_amqp_value_and_unsettled() -> None:
    peer = Peer()
    session, _, _ = worked(peer)
    peer.run(session.commit())
    frames = control_transfers(peer)
    assert len(frames) == 3 and not any(frame.settled for frame in frames)
    commands = [decode_control(frame.payload) for frame in frames]
    assert [type(command) for command in commands] == [Declare, Discharge, Declare]
    assert all(command.global_id is None for command in commands if isinstance(command, Declare)), "T20"
    assert all(frame.state is None for frame in frames), "T16"


def test_t013_t017_a_coordinator_that_grants_one_credit_and_says_nothing_of_itself() -> None:
    """Broker-J: one credit, granted again after each command."""
    peer = BrokerJ()
    session, consumer, producer = worked(peer)
    for number in range(5):
        peer.run(producer.send(message(20 + number), None))
        peer.run(session.commit())
        peer.run(producer.send(message(30 + number), None))
        peer.run(session.rollback())
    assert [command for command in peer.commands if command != "declare"] == ["commit", "rollback"] * 5


def test_t005_the_controller_uses_the_id_it_was_given() -> None:
    peer = Peer()
    session, _, _ = worked(peer)
    ids = [frame.state.txn_id for frame in peer.frames if frame.name == "transfer" and frame.state is not None]
    ids += [frame.state.txn_id for frame in peer.frames if frame.name == "disposition" and frame.state is not None]
    assert ids == [b"txn-1", b"txn-1"]
    peer.run(session.commit())
    (discharge,) = [decode_control(f.payload) for f in control_transfers(peer) if b"\x53\x32" in f.payload[:8]]
    assert isinstance(discharge, Discharge) and discharge.txn_id == b"txn-1"


@pytest.mark.parametrize("first", [True, False], ids=["settled", "unsettled"])
def test_t033_an_answer_counts_settled_or_not(first: bool) -> None:
    peer = Broker()
    peer.settles = first
    session, _, _ = worked(peer)
    peer.run(session.commit())
    peer.pump()
    assert peer.commands == ["declare", "commit", "declare"]
    assert all(not each.engine_session.outgoing for each in peer.core.sessions), "settled by us in the end"


def test_m95_commit_costs_one_round_trip() -> None:
    """Everything the client has to say leaves before any answer, and nothing is said after it."""
    peer = Peer()
    session, _, _ = worked(peer)
    steps = peer.begin(session.commit())
    data = peer.core.take_output()
    peer.engine.receive(data)
    peer._react()
    peer.core.receive(peer.engine.take_output())
    assert peer.core.take_output() == b"", "the answer to the declare behind it came with that to the discharge"
    peer.run(steps)
    assert peer.told() == []


def test_commit_of_an_empty_transaction_costs_none() -> None:
    peer = Peer()
    session = peer.session()
    peer.told()
    for _ in range(3):
        peer.run(session.commit())
        peer.run(session.rollback())
    assert peer.told() == []


@pytest.mark.parametrize("way", ["sends", "receives"])
def test_a_session_that_only_sends_or_only_receives_pays_for_no_more(way: str) -> None:
    peer = Peer()
    session = peer.session()
    if way == "sends":
        producer = peer.producer(session)
        peer.told()
        peer.run(producer.send(message(1), None))
        expected = ["transfer", "commit", "declare"]
    else:
        consumer = peer.consumer(session)
        peer.give(1)
        peer.told()
        peer.receive(consumer, 1)
        expected = ["accepted in a transaction 0", "commit", "declare"]
    peer.run(session.commit())
    assert peer.told() == expected


# --- work


def test_t054_t055_posts_are_settled_and_each_frame_carries_the_id() -> None:
    peer = Peer()
    peer.core.engine.max_frame_out = 512
    session = peer.session()
    producer = peer.producer(session)
    peer.run(producer.send(message(1) + b"\x00\x53\x78\xd1\x00\x00\x04\x04\x00\x00\x00\x00" + bytes(1024), None))
    peer.pump()
    frames = [frame for frame in peer.frames if frame.name == "transfer"][-3:]
    assert [frame.more for frame in frames] == [True, True, False]
    assert all(frame.settled and frame.state.txn_id == b"txn-1" for frame in frames)


def test_t070_m96_an_acknowledgement_names_transaction_and_outcome() -> None:
    peer = Peer()
    session = peer.session()
    consumer = peer.consumer(session)
    peer.give(1)
    peer.receive(consumer, 1)
    (frame,) = [frame for frame in peer.frames if frame.name == "disposition"]
    assert frame.settled and frame.state.txn_id == b"txn-1" and frame.state.outcome.name == "accepted"


def test_t083_it_never_asks_to_acquire_in_a_transaction() -> None:
    """So there is no credit to be taken back before a discharge."""
    peer = Peer()
    session, _, _ = worked(peer)
    peer.run(session.commit())
    peer.run(session.rollback())
    assert not any(frame.properties for frame in peer.frames if frame.name == "flow")


# --- what goes wrong


@pytest.mark.parametrize("condition", [ROLLBACK, "amqp:transaction:timeout", "amqp:transaction:unknown-id", "x:y"])
def test_t042_t044_m97_a_rejected_commit_carries_the_brokers_condition(
    condition: str, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer()
    session, _, _ = worked(peer)
    peer.answer = lambda fail: Rejected(AmqpError(condition, "because"))
    with (
        caplog.at_level(logging.INFO, logger="jmsish.client"),
        pytest.raises(TransactionRolledBackError, match="because") as caught,
    ):
        peer.run(session.commit())
    assert caught.value.condition == condition
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "because" in record.getMessage()


def test_t041_a_rollback_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer()
    session, _, _ = worked(peer)
    with caplog.at_level(logging.INFO, logger="jmsish.client"):
        peer.run(session.rollback())
        peer.run(session.close())
    assert not caplog.records


DETACHES: list[tuple[AmqpError | None, type[Exception]]] = [
    (AmqpError(ROLLBACK, "no"), TransactionRolledBackError),
    (AmqpError("amqp:transaction:timeout", "late"), TransactionRolledBackError),
    (AmqpError("amqp:internal-error", "oh"), TransactionInDoubtError),
    (None, TransactionInDoubtError),
]


@pytest.mark.parametrize(("error", "expected"), DETACHES, ids=["rollback", "timeout", "internal", "no-error"])
def test_t053_m98_the_control_link_ended_with_a_commit_in_flight(
    error: AmqpError | None, expected: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    """A transaction error is the answer; anything else leaves it open whether the commit came before."""
    peer = Silent()
    session, consumer, producer = worked(peer)
    steps = peer.begin(session.commit())
    peer.pump()
    peer.coordinators[0].detach(closed=True, error=error)
    with caplog.at_level(logging.INFO, logger="jmsish.client"), pytest.raises(expected):
        peer.run(steps)
    assert len(caplog.records) == 1
    peer.answers()
    peer.run(producer.send(message(10), None))
    peer.run(session.commit())
    assert peer.commands[-3:] == ["declare", "commit", "declare"], "it goes on, on a new control link"


def test_t053_with_a_rollback_in_flight_it_is_rolled_back() -> None:
    peer = Silent()
    session, _, _ = worked(peer)
    steps = peer.begin(session.rollback())
    peer.pump()
    peer.coordinators[0].detach(closed=True, error=AmqpError(ROLLBACK, "gone"))
    peer.run(steps)


def test_t051_lost_with_work_and_no_commit_in_flight_it_is_rolled_back(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer()
    session, _, _ = worked(peer)
    with caplog.at_level(logging.INFO, logger="jmsish.client"):
        peer.coordinators[0].detach(closed=True, error=AmqpError("amqp:internal-error", "oh"))
        peer.pump()
    assert len(caplog.records) == 1 and "1 messages sent" in caplog.records[0].getMessage()
    with pytest.raises(TransactionRolledBackError, match="oh"):
        peer.run(session.commit())
    peer.run(session.commit())


def test_t051_m99_lost_without_work_nobody_is_troubled(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer()
    session = peer.session()
    producer = peer.producer(session)
    with caplog.at_level(logging.INFO, logger="jmsish.client"):
        peer.coordinators[0].detach(closed=True)
        peer.pump()
    peer.run(producer.send(message(1), None))
    peer.run(session.commit())
    assert not caplog.records and len(peer.coordinators) == 2


def test_a_commit_answered_before_the_control_link_went_has_succeeded() -> None:
    """The answer and the detach come in one read; the declare behind the discharge is lost, and nothing else."""
    peer = Broker()
    session, _, producer = worked(peer)
    peer.declare_answer = None
    peer.detach_after_discharge = True
    peer.run(session.commit())
    peer.detach_after_discharge = False
    peer.declare_answer = "declared"
    peer.run(producer.send(message(10), None))
    peer.run(session.commit())


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
def test_m100_the_connection_lost_in_mid_discharge(commit: bool) -> None:
    """A commit is in doubt, never plain success and never plain failure; a rollback is only lost."""
    peer = Silent()
    session, _, _ = worked(peer)
    steps = peer.begin(session.commit() if commit else session.rollback())
    peer.pump()
    peer.core.receive_eof()
    with pytest.raises(TransactionInDoubtError if commit else ConnectionLostError):
        peer.run(steps)


def test_the_session_ended_in_mid_commit_is_in_doubt() -> None:
    peer = Silent()
    session, _, _ = worked(peer)
    steps = peer.begin(session.commit())
    peer.pump()
    peer.coordinators[0].session.end(AmqpError("amqp:internal-error", "oh"))
    with pytest.raises(TransactionInDoubtError, match="oh"):
        peer.run(steps)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
def test_the_control_link_lost_while_a_drain_is_waited_for(commit: bool) -> None:
    """Between the drain and the discharge nobody watches: the commit must not come out as done."""
    peer = Peer(cancel_on_commit="always")  # so that a commit drains as well
    session, _, _ = worked(peer)
    peer.answers_drains = False
    steps = peer.begin(session.commit() if commit else session.rollback())
    peer.pump()
    peer.coordinators[0].detach(closed=True, error=AmqpError("amqp:internal-error", "oh"))
    peer.answers_drains = True
    peer.pump()
    if commit:
        with pytest.raises(TransactionRolledBackError, match="oh"):
            peer.run(steps)
    else:
        peer.run(steps)
    peer.run(session.commit())
    assert [line for line in peer.log if line in ("commit", "rollback")] == []


# --- M97 to M100: what Qpid JMS does of these, and what ours does


def test_m97_a_rejected_declare_is_said_by_who_works_next() -> None:
    """The commit before it stands as it was answered; whoever works next declares again."""
    peer = Broker()
    session, _, producer = worked(peer)
    peer.declare_answer = Rejected(AmqpError("amqp:resource-limit-exceeded", "too many transactions"))
    peer.run(session.commit())
    with pytest.raises(JMSError, match="too many transactions"):
        peer.run(producer.send(message(10), None))
    peer.declare_answer = "declared"
    peer.run(producer.send(message(10), None))
    peer.run(session.commit())
    assert peer.commands[-3:] == ["declare", "commit", "declare"]


def test_m97_t040_a_rejected_rollback_is_one_all_the_same() -> None:
    """A coordinator cannot refuse it (4.3), and one that no longer knows the transaction has rolled it back."""
    peer = Peer()
    session, _, producer = worked(peer)
    peer.answer = lambda fail: Rejected(AmqpError("amqp:transaction:unknown-id", "which?"))
    peer.run(session.rollback())
    peer.answer = lambda fail: ACCEPTED
    peer.run(producer.send(message(10), None))
    peer.run(session.commit())
    states = [frame.state.txn_id for frame in peer.frames if frame.name == "transfer" and frame.state is not None]
    assert states == [b"txn-1", b"txn-2"]


def test_m99_what_belongs_to_a_lost_transaction_goes_nowhere_and_its_commit_raises() -> None:
    """Sends return, and nothing is written; an acknowledgement is not said; the next transaction is a new one."""
    peer = Peer()
    session, consumer, producer = worked(peer)
    peer.coordinators[0].detach(closed=True, error=AmqpError("amqp:internal-error", "oh"))
    peer.pump()
    peer.told()
    peer.run(producer.send(message(10), None))
    peer.receive(consumer, 1)
    assert not [word for word in peer.told() if "transfer" in word or "accepted" in word]
    with pytest.raises(TransactionRolledBackError, match="oh"):
        peer.run(session.commit())
    peer.told()
    peer.run(producer.send(message(11), None))
    peer.run(session.commit())
    assert peer.told() == ["attach", "declare", "transfer", "commit", "declare"]


def test_m99_a_lost_connection_is_no_lost_transaction_alone() -> None:
    """Without a reconnection the session is gone with its transaction: sends raise, and so does the commit."""
    peer = Peer()
    session, _, producer = worked(peer)
    peer.core.receive_eof()
    for steps in (producer.send(message(10), None), session.commit(), session.rollback()):
        with pytest.raises(ConnectionLostError):
            peer.run(steps)
