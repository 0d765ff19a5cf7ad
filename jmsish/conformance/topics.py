"""Topics and the four kinds of subscription."""

from __future__ import annotations

import jmsish
from jmsish.conformance.stage import Difference, Stage, raises, words
from jmsish.conformance.table import scenario
from jmsish.profiles.profile import DURABLE, SHARED, TOPIC_CONSUMERS


@scenario("topic-fanout", "each subscriber of a topic gets each message", TOPIC_CONSUMERS)
def fanout(stage: Stage) -> None:
    session = stage.session()
    consumers = [session.create_consumer(stage.topic()) for _ in range(3)]
    stage.send("m1 m2", stage.topic())
    for consumer in consumers:
        stage.expect(consumer, "m1 m2 none")


@scenario("topic-late", "who subscribes later gets what is published later", TOPIC_CONSUMERS)
def late(stage: Stage) -> None:
    session = stage.session()
    first = session.create_consumer(stage.topic())
    stage.send("m1", stage.topic())
    second = session.create_consumer(stage.topic())
    stage.send("m2", stage.topic())
    stage.expect(first, "m1 m2 none")
    stage.expect(second, "m2 none")


@scenario("topic-no-local", "no_local hides what the own connection published", TOPIC_CONSUMERS)
def no_local(stage: Stage) -> None:
    consumer = stage.session().create_consumer(stage.topic(), no_local=True)
    stage.send("m1", stage.topic())
    other = stage.connect().create_session()
    other.create_producer(stage.topic()).send("m2")
    stage.expect(consumer, "m2 none")


@scenario("topic-durable", "a durable subscription keeps what nobody reads", TOPIC_CONSUMERS, DURABLE)
def durable(stage: Stage) -> None:
    who, name = stage.client_id(), stage.subscription(stage.client_id())
    connection = stage.connect(client_id=who)
    connection.create_session().create_durable_consumer(stage.topic(), name).close()
    connection.close()
    stage.send("m1 m2", stage.topic())
    session = stage.connect(client_id=who).create_session()
    stage.expect(session.create_durable_consumer(stage.topic(), name), "m1 m2 none")


@scenario("topic-unsubscribe", "an ended subscription has forgotten what it kept", TOPIC_CONSUMERS, DURABLE)
def unsubscribe(stage: Stage) -> None:
    name = stage.subscription(stage.client_id())
    session = stage.connect(client_id=stage.client_id()).create_session()
    session.create_durable_consumer(stage.topic(), name).close()
    stage.send("m1", stage.topic())
    session.unsubscribe(name)
    stage.expect(session.create_durable_consumer(stage.topic(), name), "none")


@scenario("topic-unsubscribe-unknown", "a subscription that does not exist cannot be ended", TOPIC_CONSUMERS, DURABLE)
def unknown(stage: Stage) -> None:
    session = stage.connect(client_id=stage.client_id()).create_session()
    raises(jmsish.JMSError, session.unsubscribe, stage.name("never"))


@scenario("topic-shared", "the consumers of a shared subscription divide what comes", TOPIC_CONSUMERS, SHARED)
def shared(stage: Stage) -> None:
    _divide(stage, lambda session: session.create_shared_consumer(stage.topic(), stage.name("shared")))


@scenario("topic-shared-durable", "the same for a durable one", TOPIC_CONSUMERS, SHARED, DURABLE)
def shared_durable(stage: Stage) -> None:
    name = stage.subscription()
    _divide(stage, lambda session: session.create_shared_durable_consumer(stage.topic(), name))


def _divide(stage: Stage, subscribe: object) -> None:
    assert callable(subscribe)
    consumers = [subscribe(stage.connect(prefetch=1).create_session()) for _ in range(2)]
    stage.send(words(10), stage.topic())
    got: list[str] = []
    quiet = 0
    while quiet < 2:
        quiet = 0
        for consumer in consumers:
            message = consumer.receive(timeout=stage.quiet)
            if message is None:
                quiet += 1
            else:
                got.append(message.body)
    if sorted(got) != sorted(words(10).split()):
        raise Difference(f"together they got {' '.join(sorted(got))}")


@scenario("topic-client-id", "a client id that is in use is refused to the second connection")
def client_id(stage: Stage) -> None:
    stage.connect(client_id=stage.client_id()).create_session()
    raises(jmsish.InvalidClientIDError, stage.connect, client_id=stage.client_id())
