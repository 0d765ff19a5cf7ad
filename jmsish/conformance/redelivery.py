"""Redelivery 1 to 12: what lies unread at the client goes to who asks next, in order and unmarked."""

from __future__ import annotations

from jmsish import AcknowledgeMode, MessageConsumer, Session
from jmsish.conformance.stage import Stage
from jmsish.conformance.table import scenario, transacted

THREE = "m1 m2 m3"


def three_ahead(stage: Stage, session: Session) -> MessageConsumer:
    """m1, m2 and m3 on the queue, and unread at a consumer of the session."""
    stage.send(THREE)
    consumer = session.create_consumer(stage.queue())
    stage.prefetched(consumer, 3)
    return consumer


@transacted("redelivery-001", "after a commit a new consumer gets what lay unread at the first, which stays open")
def seed(stage: Stage) -> None:
    session = stage.transacted()
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    session.commit()
    second = session.create_consumer(stage.queue())
    stage.expect(second, "m2 m3 none")
    session.commit()
    stage.expect(first, "none")
    stage.holds("")


@transacted("redelivery-002", "after a commit the first consumer goes on")
def first_goes_on(stage: Stage) -> None:
    session = stage.transacted()
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    session.commit()
    stage.expect(first, "m2 m3 none")
    session.commit()
    stage.holds("")


@transacted("redelivery-003", "the first consumer closes after the second was made")
def first_closes_late(stage: Stage) -> None:
    session = stage.transacted()
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    session.commit()
    second = session.create_consumer(stage.queue())
    first.close()
    stage.expect(second, "m2 m3 none")
    session.commit()
    stage.holds("")


@transacted("redelivery-004", "close, a new consumer, then the commit")
def close_new_commit(stage: Stage) -> None:
    session = stage.transacted()
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    first.close()
    second = session.create_consumer(stage.queue())
    session.commit()
    stage.expect(second, "m2 m3")
    session.commit()
    stage.holds("")


@transacted("redelivery-005", "the same, received from a queue that was empty")
def close_new_commit_later(stage: Stage) -> None:
    session = stage.transacted()
    first = session.create_consumer(stage.queue())
    stage.send(THREE)
    stage.expect(first, "m1")
    first.close()
    second = session.create_consumer(stage.queue())
    session.commit()
    stage.expect(second, "m2 m3 none")
    session.commit()
    stage.holds("")


@transacted("redelivery-006", "close, commit, then a new consumer")
def close_commit_new(stage: Stage) -> None:
    session = stage.transacted()
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    first.close()
    session.commit()
    stage.expect(session.create_consumer(stage.queue()), "m2 m3")
    session.commit()
    stage.holds("")


@transacted("redelivery-007", "rolled back, the message comes again, counted and before those that lay unread")
def rollback_open(stage: Stage) -> None:
    session = stage.transacted()
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    session.rollback()
    stage.expect(first, "m1*2 m2 m3")
    session.commit()
    stage.holds("")


@transacted("redelivery-008", "close, roll back, and a new consumer gets all in order")
def rollback_closed(stage: Stage) -> None:
    session = stage.transacted()
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    first.close()
    session.rollback()
    stage.expect(session.create_consumer(stage.queue()), "m1*2 m2 m3")
    session.commit()
    stage.holds("")


@scenario("redelivery-009", "recovered, the message comes again, counted and before those that lay unread")
def recover_open(stage: Stage) -> None:
    session = stage.session(AcknowledgeMode.CLIENT)
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    session.recover()
    stage.expect(first, "m1*2 m2 m3")[-1].acknowledge()
    stage.holds("")


@scenario("redelivery-010", "recover reaches what a closed consumer handed over")
def recover_closed(stage: Stage) -> None:
    session = stage.session(AcknowledgeMode.CLIENT)
    first = three_ahead(stage, session)
    stage.expect(first, "m1")
    first.close()
    session.recover()
    stage.expect(session.create_consumer(stage.queue()), "m1*2 m2 m3")[-1].acknowledge()
    stage.holds("")


@scenario("redelivery-011", "closing a consumer gives back what it has not read, and nothing else")
def close_is_no_recover(stage: Stage) -> None:
    session = stage.session(AcknowledgeMode.CLIENT)
    first = three_ahead(stage, session)
    taken = stage.expect(first, "m1")
    first.close()
    taken += stage.expect(session.create_consumer(stage.queue()), "m2 m3 none")
    for message in taken:
        message.acknowledge()
    stage.holds("")


@scenario("redelivery-012", "closed with all of it unread, all of it comes again unmarked")
def close_unread(stage: Stage) -> None:
    session = stage.session()
    three_ahead(stage, session).close()
    stage.expect(session.create_consumer(stage.queue()), "m1 m2 m3 none")
    stage.holds("")
