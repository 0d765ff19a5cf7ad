"""Order, priority, time to live, delay, groups, and receiving without prefetch."""

from __future__ import annotations

from threading import Event
from time import monotonic

from jmsish.conformance.stage import Difference, Stage, words
from jmsish.conformance.table import scenario
from jmsish.profiles.profile import DELAY, PRIORITIES


@scenario("order-001", "five hundred messages of one producer come in their order")
def order(stage: Stage) -> None:
    session = stage.session()
    consumer = session.create_consumer(stage.queue())
    stage.send(words(500))
    stage.expect(consumer, f"{words(500)} none")


@scenario("order-002", "two consumers of a queue get each message once")
def once(stage: Stage) -> None:
    stage.send(words(20))
    consumers = [stage.connect(prefetch=1).create_session().create_consumer(stage.queue()) for _ in range(2)]
    got: list[str] = []
    while len(got) < 20:
        before = len(got)
        got += [m.body for m in (c.receive(timeout=stage.patience) for c in consumers) if m is not None]
        if len(got) == before:
            break
    if sorted(got) != sorted(words(20).split()):
        raise Difference(f"together they got {' '.join(sorted(got))}")


@scenario("order-003", "without prefetch each receive asks for one")
def no_prefetch(stage: Stage) -> None:
    stage.send("m1 m2")
    first = stage.connect(prefetch=0).create_session().create_consumer(stage.queue())
    second = stage.connect(prefetch=0).create_session().create_consumer(stage.queue())
    stage.expect(first, "m1")
    stage.expect(second, "m2 none")
    stage.expect(first, "none")


@scenario("order-004", "receive_no_wait sees what is on the queue")
def no_wait(stage: Stage) -> None:
    session = stage.session()
    consumer = session.create_consumer(stage.queue())
    if consumer.receive_no_wait() is not None:
        raise Difference("the queue was not empty")
    stage.send("m1")
    message = consumer.receive_no_wait()
    if message is None:
        raise Difference("a message that was accepted before was not found")


@scenario("priority-001", "the urgent first", PRIORITIES)
def priority(stage: Stage) -> None:
    for body, urgency in (("m1", 1), ("m9", 9), ("m4", 4)):
        stage.send(body, priority=urgency)
    stage.expect(stage.session().create_consumer(stage.queue()), "m9 m4 m1 none")


@scenario("expiry-001", "a message whose time is over is not delivered")
def expired(stage: Stage) -> None:
    stage.send("m1", time_to_live=0.3)
    stage.send("m2")
    Event().wait(1.0)
    stage.expect(stage.session().create_consumer(stage.queue()), "m2 none")


@scenario("expiry-002", "a message whose time is not over is")
def not_expired(stage: Stage) -> None:
    stage.send("m1", time_to_live=60)
    message = stage.expect(stage.session().create_consumer(stage.queue()), "m1")[0]
    if not message.jms_expiration:
        raise Difference("it does not say when it expires")


@scenario("delay-001", "a delayed message comes when its time has come", DELAY)
def delayed(stage: Stage) -> None:
    consumer = stage.session().create_consumer(stage.queue())
    began = monotonic()
    stage.send("m1", delivery_delay=1.0)
    stage.expect(consumer, "m1")
    if monotonic() - began < 0.9:
        raise Difference(f"it came after {monotonic() - began:.2f} s")


@scenario("group-001", "the messages of a group go to one consumer, in order")
def groups(stage: Stage) -> None:
    consumers = [stage.connect(prefetch=1).create_session().create_consumer(stage.queue()) for _ in range(2)]
    stage.send(words(6), properties={"JMSXGroupID": "g"})
    got = [[m.body for m in iter(lambda c=c: c.receive(timeout=stage.quiet), None)] for c in consumers]  # type: ignore[misc]
    if sorted(got) != [[], words(6).split()]:
        raise Difference(f"they got {got}")
