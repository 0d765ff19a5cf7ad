"""Acknowledge modes and recover."""

from __future__ import annotations

from jmsish import AcknowledgeMode
from jmsish.conformance.stage import Stage, words
from jmsish.conformance.table import scenario

CLIENT = AcknowledgeMode.CLIENT


@scenario("recover-053", "two of five received and recovered: all five in order")
def some(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send(words(5))
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1 m2")
    session.recover()
    stage.expect(consumer, "m1*2 m2*2 m3 m4 m5")[-1].acknowledge()
    stage.holds("")


@scenario("recover-054", "one acknowledge covers what the session was given before; the rest is recovered")
def only_the_rest(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send(words(4))
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1 m2 m3")[1].acknowledge()
    stage.expect(consumer, "m4")
    session.recover()
    stage.expect(consumer, "m4*2 none")


@scenario("recover-055", "one acknowledge covers all consumers of the session")
def all_consumers(stage: Stage) -> None:
    session = stage.session(CLIENT)
    consumers = [session.create_consumer(stage.queue(name)) for name in ("q", "q2")]
    for name in ("q", "q2"):
        stage.send("m1", stage.queue(name))
    messages = [stage.expect(consumer, "m1")[0] for consumer in consumers]
    messages[-1].acknowledge()
    session.close()
    stage.holds("", stage.queue("q"))
    stage.holds("", stage.queue("q2"))


@scenario("recover-058", "recovered whole, twenty come again in order")
def whole(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send(words(20))
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, words(20))
    session.recover()
    stage.expect(consumer, " ".join(f"{word}*2" for word in words(20).split()))[-1].acknowledge()
    stage.holds("")


@scenario("recover-059", "behind an acknowledged one the rest comes in order")
def behind(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send("m0 m1 m2 m3")
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m0")[0].acknowledge()
    stage.expect(consumer, "m1 m2")
    session.recover()
    stage.expect(consumer, "m1*2 m2*2 m3")[-1].acknowledge()
    stage.holds("")


@scenario("recover-061", "in AUTO what was received is acknowledged: recover brings nothing back")
def auto(stage: Stage) -> None:
    session = stage.session()
    stage.send("m1 m2")
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1")
    session.recover()
    stage.expect(consumer, "m2 none")
    stage.holds("")


@scenario("acknowledge-001", "AUTO: received is gone")
def auto_gone(stage: Stage) -> None:
    session = stage.session()
    stage.send("m1")
    stage.expect(session.create_consumer(stage.queue()), "m1")
    session.close()
    stage.holds("")


@scenario("acknowledge-002", "DUPS_OK: after a close all that was received is gone")
def dups_ok(stage: Stage) -> None:
    session = stage.session(AcknowledgeMode.DUPS_OK)
    stage.send(words(25))
    stage.expect(session.create_consumer(stage.queue()), words(25))
    session.close()
    stage.holds("")


@scenario("acknowledge-003", "CLIENT: not acknowledged, it comes again to others, counted")
def client_not(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send("m1 m2")
    stage.expect(session.create_consumer(stage.queue()), "m1")
    session.close()
    stage.holds("m1*2 m2")


@scenario("acknowledge-004", "INDIVIDUAL: each by itself, in any order")
def individual(stage: Stage) -> None:
    session = stage.session(AcknowledgeMode.INDIVIDUAL)
    stage.send("m1 m2 m3")
    messages = stage.expect(session.create_consumer(stage.queue()), "m1 m2 m3")
    messages[1].acknowledge()
    session.close()
    stage.holds("m1*2 m3*2")


@scenario("acknowledge-005", "NONE: sent is gone, whether it was read or not")
def none(stage: Stage) -> None:
    session = stage.session(AcknowledgeMode.NONE)
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1")
    session.close()
    stage.holds("")
