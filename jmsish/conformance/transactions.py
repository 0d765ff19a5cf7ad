"""Transactions as the other sessions see them."""

from __future__ import annotations

from jmsish import DeliveryMode
from jmsish.conformance.stage import Stage, words
from jmsish.conformance.table import transacted


@transacted("transaction-001", "what is sent is invisible before the commit")
def invisible(stage: Stage) -> None:
    session = stage.transacted()
    session.create_producer(stage.queue()).send("m1")
    other = stage.connect().create_session()
    consumer = other.create_consumer(stage.queue())
    stage.expect(consumer, "none")
    session.commit()
    stage.expect(consumer, "m1 none")


@transacted("transaction-002", "what is received is nobody else's before the commit")
def taken(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1")
    stage.expect(session.create_consumer(stage.queue()), "m1")
    stage.holds("")
    session.commit()
    stage.holds("")


@transacted("transaction-003", "two sessions of one connection have transactions of their own")
def two_sessions(stage: Stage) -> None:
    one, two = stage.transacted(), stage.transacted()
    one.create_producer(stage.queue()).send("one")
    two.create_producer(stage.queue()).send("two")
    one.rollback()
    two.commit()
    stage.holds("two")


@transacted("transaction-004", "one transaction with a send for each message received")
def moved(stage: Stage) -> None:
    session = stage.transacted()
    stage.send(words(10))
    consumer = session.create_consumer(stage.queue())
    producer = session.create_producer(stage.queue("q2"))
    for word in words(10).split():
        producer.send(stage.expect(consumer, word)[0].body)
    session.commit()
    stage.holds("")
    stage.holds(words(10), stage.queue("q2"))


@transacted("transaction-005", "a connection closed in a transaction rolls back what it sent and received")
def closed_amid(stage: Stage) -> None:
    connection = stage.connect()
    session = connection.create_session(transacted=True)
    stage.send("m1")
    stage.expect(session.create_consumer(stage.queue()), "m1")
    session.create_producer(stage.queue()).send("x")
    connection.close()
    stage.holds("m1*2")


@transacted("transaction-006", "non-persistent messages in a transaction")
def not_persistent(stage: Stage) -> None:
    session = stage.transacted()
    producer = session.create_producer(stage.queue())
    producer.send("x", delivery_mode=DeliveryMode.NON_PERSISTENT)
    session.rollback()
    producer.send("m1", delivery_mode=DeliveryMode.NON_PERSISTENT)
    session.commit()
    stage.holds("m1")


@transacted("transaction-007", "a hundred transactions one after the other")
def hundred(stage: Stage) -> None:
    session = stage.transacted()
    producer = session.create_producer(stage.queue())
    for word in words(100).split():
        producer.send(word)
        session.commit()
    stage.holds(words(100))


@transacted("transaction-008", "a thousand messages in one transaction")
def thousand(stage: Stage) -> None:
    session = stage.transacted()
    producer = session.create_producer(stage.queue())
    for word in words(1000).split():
        producer.send(word)
    session.commit()
    stage.holds(words(1000))
