"""Commit and rollback with messages received: counts, order, and who gets what comes back."""

from __future__ import annotations

import jmsish
from jmsish.conformance.stage import Stage, raises, words
from jmsish.conformance.table import transacted
from jmsish.profiles.profile import TOPIC_CONSUMERS


@transacted("commit-013", "a commit after the consumer has closed")
def ack_after_close(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1")
    consumer.close()
    session.commit()
    stage.holds("")


@transacted("commit-016", "a commit for each of a hundred messages that lie ahead")
def commit_each(stage: Stage) -> None:
    session = stage.transacted()
    stage.send(words(100))
    consumer = session.create_consumer(stage.queue())
    for word in words(100).split():
        stage.expect(consumer, word)
        session.commit()
    stage.holds("")


@transacted("commit-018", "more than the prefetch in one transaction")
def beyond_prefetch(stage: Stage) -> None:
    session = stage.transacted()
    stage.send(words(5))
    stage.expect(session.create_consumer(stage.queue(), prefetch=1), words(5))
    session.commit()
    stage.holds("")


@transacted("commit-019", "the prefetch used up, rolled back, and on")
def exhausted(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1 m2 m3")
    consumer = session.create_consumer(stage.queue(), prefetch=2)
    stage.expect(consumer, "m1 m2")
    session.rollback()
    stage.expect(consumer, "m1*2 m2*2")
    session.commit()
    stage.expect(consumer, "m3 none")
    session.commit()


@transacted("commit-021", "acknowledge() does nothing in a transaction")
def acknowledge_ignored(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1")[0].acknowledge()
    session.rollback()
    stage.expect(consumer, "m1*2")
    session.commit()


@transacted("commit-022", "commit and rollback without work")
def no_work(stage: Stage) -> None:
    session = stage.transacted()
    session.commit()
    session.rollback()
    session.commit()


@transacted("commit-023", "commit, rollback and recover where they are not allowed")
def illegal(stage: Stage) -> None:
    plain, session = stage.session(), stage.transacted()
    raises(jmsish.IllegalStateError, plain.commit)
    raises(jmsish.IllegalStateError, plain.rollback)
    raises(jmsish.IllegalStateError, session.recover)
    session.close()
    raises(jmsish.IllegalStateError, session.commit)


@transacted("rollback-025", "rolled back twice: counted each time")
def three_in_a_row(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    for script in ("m1", "m1*2"):
        stage.expect(consumer, script)
        session.rollback()
    stage.expect(consumer, "m1*3")
    session.commit()
    stage.holds("")


@transacted("rollback-026", "two of five received and rolled back: all five in order")
def some_of_many(stage: Stage) -> None:
    session = stage.transacted()
    stage.send(words(5))
    consumer = session.create_consumer(stage.queue())
    stage.prefetched(consumer, 5)
    stage.expect(consumer, "m1 m2")
    session.rollback()
    stage.expect(consumer, "m1*2 m2*2 m3 m4 m5")
    session.commit()
    stage.holds("")


@transacted("rollback-027", "what lay behind a rolled-back message is not marked")
def not_marked(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1 m2")
    consumer = session.create_consumer(stage.queue(), prefetch=1)
    stage.expect(consumer, "m1")
    session.rollback()
    stage.expect(consumer, "m1*2 m2")
    session.commit()


@transacted("rollback-029", "two hundred received and rolled back: the same order")
def many(stage: Stage) -> None:
    session = stage.transacted()
    stage.send(words(200))
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, words(200))
    session.rollback()
    stage.expect(consumer, " ".join(f"{word}*2" for word in words(200).split()))
    session.commit()


@transacted("rollback-031", "rolled back and closed: another session gets it counted once")
def then_close(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1")
    stage.expect(session.create_consumer(stage.queue()), "m1")
    session.rollback()
    session.close()
    stage.holds("m1*2")


@transacted("rollback-032", "rolled-back messages go to a consumer of another session that waits")
def to_who_waits(stage: Stage) -> None:
    session, other = stage.transacted(), stage.transacted()
    stage.send("m1 m2")
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1 m2")
    waiting = other.create_consumer(stage.queue())
    session.close()
    stage.expect(waiting, "m1*2 m2*2")
    other.commit()
    stage.holds("")


@transacted("rollback-033", "one transaction over two queues")
def two_queues(stage: Stage) -> None:
    session = stage.transacted()
    consumers = []
    for name in ("q", "q2"):
        stage.send("m1 m2", stage.queue(name))
        consumers.append(session.create_consumer(stage.queue(name)))
    for script in ("m1", "m1*2"):
        for consumer in consumers:
            stage.expect(consumer, script)
        session.rollback() if script == "m1" else session.commit()
    for consumer in consumers:
        stage.expect(consumer, "m2 none")
    session.commit()


@transacted("rollback-034", "two consumers of one session on one queue, rolled back: a third gets all in order")
def interleaved(stage: Stage) -> None:
    session = stage.transacted()
    first = session.create_consumer(stage.queue(), prefetch=2)
    second = session.create_consumer(stage.queue(), prefetch=2)
    stage.send(words(4))
    stage.expect(first, "m1")
    first.close()
    second.close()
    session.rollback()
    stage.expect(session.create_consumer(stage.queue()), "m1*2 m2 m3 m4")
    session.commit()


@transacted("rollback-037", "what comes back stands where it stood, not where it was sent")
def order_of_commits(stage: Stage) -> None:
    late, early = stage.transacted(), stage.transacted()
    late.create_producer(stage.queue()).send("m2")
    early.create_producer(stage.queue()).send("m1")
    early.commit()
    late.commit()
    session = stage.transacted()
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1")
    session.rollback()
    stage.expect(consumer, "m1*2 m2")
    session.commit()


@transacted("rollback-042", "a rolled-back send is never seen")
def sends(stage: Stage) -> None:
    session = stage.transacted()
    producer = session.create_producer(stage.queue())
    producer.send("m1")
    session.rollback()
    stage.holds("")
    producer.send("m2")
    session.commit()
    stage.holds("m2")


@transacted("rollback-043", "a send and a receive in one transaction, rolled back")
def both_ways(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1")
    session.create_producer(stage.queue()).send("x")
    session.rollback()
    stage.expect(consumer, "m1*2 none")
    session.commit()
    stage.holds("")


@transacted("rollback-044", "only what was committed is seen")
def committed_only(stage: Stage) -> None:
    session = stage.transacted()
    producer = session.create_producer(stage.queue())
    for word, end in (("m1", session.commit), ("x", session.rollback), ("m2", session.commit)):
        producer.send(word)
        end()
    stage.holds("m1 m2")


@transacted("rollback-047", "a rollback on a topic subscription", TOPIC_CONSUMERS)
def on_a_topic(stage: Stage) -> None:
    session = stage.transacted()
    consumer = session.create_consumer(stage.topic())
    stage.send("m1", stage.topic())
    stage.expect(consumer, "m1")
    session.rollback()
    stage.expect(consumer, "m1*2")
    session.commit()


@transacted("rollback-049", "a session closed in a transaction counts as one more delivery")
def count_over_close(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    for script in ("m1", "m1*2"):
        stage.expect(consumer, script)
        session.rollback()
    stage.expect(consumer, "m1*3")
    session.close()
    stage.holds("m1*4")
