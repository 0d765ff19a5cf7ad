"""Closing consumers, sessions and connections."""

from __future__ import annotations

import threading

from jmsish import AcknowledgeMode
from jmsish.conformance.stage import Difference, Stage, seen, words
from jmsish.conformance.table import scenario, transacted
from jmsish.profiles.profile import DURABLE, SELECTORS, TOPIC_CONSUMERS

CLIENT = AcknowledgeMode.CLIENT


@scenario("closing-078", "sent ahead and never read: not marked after the consumer's close")
def unread(stage: Stage) -> None:
    session = stage.session()
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    stage.prefetched(consumer, 1)
    consumer.close()
    stage.holds("m1")


@scenario("closing-079", "the same for a durable subscription", TOPIC_CONSUMERS, DURABLE)
def unread_durable(stage: Stage) -> None:
    connection = stage.connect(client_id=stage.client_id())
    name = stage.subscription(stage.client_id())
    session = connection.create_session()
    consumer = session.create_durable_consumer(stage.topic(), name)
    stage.send("m1", stage.topic())
    stage.prefetched(consumer, 1)
    consumer.close()
    stage.expect(session.create_durable_consumer(stage.topic(), name), "m1")


@scenario("closing-080", "the same after the connection's close")
def unread_connection(stage: Stage) -> None:
    connection = stage.connect()
    stage.send("m1")
    stage.prefetched(connection.create_session().create_consumer(stage.queue()), 1)
    connection.close()
    stage.holds("m1")


@scenario("closing-082", "recovered twice, closed: counted each time")
def counted(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    for script in ("m1", "m1*2"):
        stage.expect(consumer, script)
        session.recover()
    stage.expect(consumer, "m1*3")
    session.close()
    stage.holds("m1*4")


@scenario("closing-085", "acknowledged after the consumer's close")
def acknowledged_late(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send(words(5))
    consumer = session.create_consumer(stage.queue())
    messages = stage.expect(consumer, "m1 m2 m3")
    consumer.close()
    messages[-1].acknowledge()
    session.close()
    stage.holds("m4 m5")


@transacted("closing-089", "a session's close is a rollback")
def is_rollback(stage: Stage) -> None:
    session = stage.transacted()
    stage.send(words(5))
    stage.expect(session.create_consumer(stage.queue()), "m1 m2")
    session.close()
    stage.holds("m1*2 m2*2 m3 m4 m5")


@scenario("closing-091", "one read, one unread, the connection closed")
def one_of_two(stage: Stage) -> None:
    connection = stage.connect()
    stage.send("m1 m2")
    consumer = connection.create_session().create_consumer(stage.queue())
    stage.prefetched(consumer, 2)
    stage.expect(consumer, "m1")
    connection.close()
    stage.holds("m2")


@transacted("closing-094", "closing one session does not touch another's deliveries")
def not_the_other(stage: Stage) -> None:
    stage.send("m1 m2")
    one, two = (stage.connect(prefetch=0).create_session(transacted=True) for _ in range(2))
    stage.expect(one.create_consumer(stage.queue()), "m1")
    stage.expect(two.create_consumer(stage.queue()), "m2")
    one.close()
    two.commit()
    two.close()
    stage.holds("m1*2")


@scenario("closing-096", "a consumer that waits is given what another session's close gives back")
def wakes(stage: Stage) -> None:
    session = stage.session(CLIENT)
    stage.send("m1")
    stage.expect(session.create_consumer(stage.queue()), "m1")
    waiting = stage.connect().create_session().create_consumer(stage.queue())
    session.close()
    stage.expect(waiting, "m1*2")


@scenario("closing-098", "what a selecting consumer had unread is back for others", SELECTORS)
def selecting(stage: Stage) -> None:
    session = stage.session()
    stage.send("m1 m3", properties={"colour": "red"})
    stage.send("m2", properties={"colour": "blue"})
    red = session.create_consumer(stage.queue(), "colour = 'red'")
    stage.prefetched(red, 2)
    red.close()
    stage.holds("m1 m3 m2")


@scenario("closing-099", "a receive that waits returns nothing when its consumer closes")
def wakes_up(stage: Stage) -> None:
    session = stage.session()
    consumer = session.create_consumer(stage.queue())
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append(seen(consumer.receive(timeout=stage.patience))), daemon=True)
    thread.start()
    stage.waits(consumer)
    consumer.close()
    thread.join(stage.patience)
    if got != ["none"]:
        raise Difference(f"the receive gave {got}")


@scenario("closing-101", "a stopped connection hands nothing over")
def stopped(stage: Stage) -> None:
    connection = stage.connect(start=False)
    consumer = connection.create_session().create_consumer(stage.queue())
    stage.send("m1 m2")
    stage.expect(consumer, "none")
    connection.start()
    stage.expect(consumer, "m1")
    connection.stop()
    stage.expect(consumer, "none")
    connection.start()
    stage.expect(consumer, "m2 none")
