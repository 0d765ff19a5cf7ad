"""Temporary destinations, browsers, anonymous producers, and what becomes of what is refused."""

from __future__ import annotations

import jmsish
from jmsish.conformance.stage import Difference, Stage, bodies, equal
from jmsish.conformance.table import scenario
from jmsish.profiles.profile import BROWSING, TEMPORARY, TOPIC_CONSUMERS


@scenario("browse-001", "a browser shows what is there, in order, and takes nothing", BROWSING)
def browse(stage: Stage) -> None:
    stage.send("m1 m2 m3")
    with stage.session().create_browser(stage.queue()) as browser:
        equal(bodies(browser), ["m1", "m2", "m3"], "the browser showed")
    stage.holds("m1 m2 m3")


@scenario("temporary-001", "request and reply over a temporary queue", TEMPORARY)
def reply(stage: Stage) -> None:
    session = stage.session()
    answers = session.create_temporary_queue()
    consumer = session.create_consumer(answers)
    request = session.create_text_message("request")
    request.jms_reply_to = answers
    session.create_producer(stage.queue()).send(request)
    server = stage.connect().create_session()
    asked = stage.expect(server.create_consumer(stage.queue()), "request")[0]
    if asked.jms_reply_to is None:
        raise Difference("the request came without its reply-to")
    server.create_producer(asked.jms_reply_to).send("answer")
    stage.expect(consumer, "answer")


@scenario("temporary-002", "a temporary topic", TEMPORARY, TOPIC_CONSUMERS)
def topic(stage: Stage) -> None:
    session = stage.session()
    news = session.create_temporary_topic()
    consumers = [session.create_consumer(news) for _ in range(2)]
    stage.send("m1", news)
    for consumer in consumers:
        stage.expect(consumer, "m1 none")


@scenario("anonymous-001", "one producer, several destinations")
def anonymous(stage: Stage) -> None:
    session = stage.session()
    producer = session.create_producer()
    producer.send("m1", destination=stage.queue())
    producer.send("m2", destination=stage.queue("q2"))
    stage.holds("m1")
    stage.holds("m2", stage.queue("q2"))


@scenario("outcome-released", "released: the message comes again, not counted")
def released(stage: Stage) -> None:
    _given_back(stage, 3, "m1")


@scenario("outcome-modified", "modified, delivery-failed: the message comes again, counted")
def modified(stage: Stage) -> None:
    _given_back(stage, 4, "m1*2")


@scenario("outcome-rejected", "rejected: the message does not come again")
def rejected(stage: Stage) -> None:
    _given_back(stage, 2, "")


def _given_back(stage: Stage, kind: int, script: str) -> None:
    """The property JMS_AMQP_ACK_TYPE says which outcome an acknowledge is."""
    session = stage.session(jmsish.AcknowledgeMode.INDIVIDUAL)
    stage.send("m1")
    consumer = session.create_consumer(stage.queue())
    message = stage.expect(consumer, "m1")[0]
    message.set_int_property("JMS_AMQP_ACK_TYPE", kind)
    consumer.close()
    message.acknowledge()
    session.close()
    stage.holds(script)
