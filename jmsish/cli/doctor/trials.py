"""What JMS needs, tried on scratch addresses; each trial cleans up behind itself."""

from __future__ import annotations

from jmsish.conformance.stage import Stage
from jmsish.conformance.table import Scenario
from jmsish.profiles.profile import (
    BROWSING,
    DELAY,
    DURABLE,
    SELECTORS,
    TEMPORARY,
    TOPIC_CONSUMERS,
    TRANSACTIONS,
)


def _send(stage: Stage) -> None:
    stage.send("m1")


def _receive(stage: Stage) -> None:
    stage.send("m1 m2")
    stage.expect(stage.session().create_consumer(stage.queue()), "m1 m2 none")


def _transaction(stage: Stage) -> None:
    session = stage.transacted()
    producer = session.create_producer(stage.queue())
    producer.send("x")
    session.rollback()
    producer.send("m1")
    session.commit()
    consumer = session.create_consumer(stage.queue())
    stage.expect(consumer, "m1")
    session.rollback()
    stage.expect(consumer, "m1*2 none")
    session.commit()


def _browse(stage: Stage) -> None:
    stage.send("m1")
    with stage.session().create_browser(stage.queue()) as browser:
        seen = [message.body for message in browser]
    stage.holds(" ".join(seen) or "m1")


def _temporary(stage: Stage) -> None:
    session = stage.session()
    answers = session.create_temporary_queue()
    consumer = session.create_consumer(answers)
    stage.send("m1", answers)
    stage.expect(consumer, "m1")


def _delay(stage: Stage) -> None:
    consumer = stage.session().create_consumer(stage.queue())
    stage.send("m1", delivery_delay=1.0)
    stage.expect(consumer, "none")
    stage.expect(consumer, "m1")


def _selector(stage: Stage) -> None:
    consumer = stage.session().create_consumer(stage.queue(), "colour = 'red'")
    stage.send("m1", properties={"colour": "blue"})
    stage.send("m2", properties={"colour": "red"})
    stage.expect(consumer, "m2 none")


def _subscription(stage: Stage) -> None:
    consumers = [stage.session().create_consumer(stage.topic()) for _ in range(2)]
    stage.send("m1", stage.topic())
    for consumer in consumers:
        stage.expect(consumer, "m1 none")


def _durable(stage: Stage) -> None:
    session = stage.connect(client_id=stage.client_id()).create_session()
    name = stage.subscription(stage.client_id())
    session.create_durable_consumer(stage.topic(), name).close()
    stage.send("m1", stage.topic())
    stage.expect(session.create_durable_consumer(stage.topic(), name), "m1")


TRIALS = (
    Scenario("send", "a message is taken", _send),
    Scenario("receive", "two come in their order", _receive),
    Scenario("transaction", "rolled back comes again, committed stays", _transaction, (TRANSACTIONS,)),
    Scenario("browse", "a browser takes nothing", _browse, (BROWSING,)),
    Scenario("temporary queue", "made, used and gone", _temporary, (TEMPORARY,)),
    Scenario("delay", "comes a second later", _delay, (DELAY,)),
    Scenario("selector", "only what is selected comes", _selector, (SELECTORS,)),
    Scenario("subscription", "each subscriber of a topic gets it", _subscription, (TOPIC_CONSUMERS,)),
    Scenario("durable subscription", "it keeps what nobody reads", _durable, (TOPIC_CONSUMERS, DURABLE)),
)
