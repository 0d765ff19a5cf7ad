"""Selectors."""

from __future__ import annotations

import jmsish
from jmsish.conformance.stage import Stage, bodies, equal, raises
from jmsish.conformance.table import scenario
from jmsish.profiles.profile import BROWSING, SELECTORS, TOPIC_CONSUMERS

CASES: tuple[tuple[str, str, str], ...] = (
    ("text", "colour = 'red'", "m1 m3"),
    ("number", "weight >= 2", "m2 m3"),
    ("and-or", "colour = 'blue' AND weight = 2 OR weight > 2", "m2 m3"),
    ("in", "colour IN ('blue', 'green')", "m2"),
    ("like", "colour LIKE 'r%'", "m1 m3"),
    ("between", "weight BETWEEN 2 AND 3", "m2 m3"),
    ("null", "missing IS NULL AND colour IS NOT NULL", "m1 m2 m3"),
    ("arithmetic", "weight * 2 + 1 = 5", "m2"),
)


def _three(stage: Stage, destination: jmsish.Destination | None = None) -> None:
    for body, colour, weight in (("m1", "red", 1), ("m2", "blue", 2), ("m3", "red", 3)):
        stage.send(body, destination, properties={"colour": colour, "weight": weight})


def _enter(word: str, selector: str, wanted: str) -> None:
    @scenario(f"selector-{word}", f"a consumer with the selector {selector}", SELECTORS)
    def play(stage: Stage) -> None:
        _three(stage)
        stage.expect(stage.session().create_consumer(stage.queue(), selector), f"{wanted} none")


for _case in CASES:
    _enter(*_case)


@scenario("selector-headers", "headers in a selector: JMSType, JMSPriority, JMSCorrelationID", SELECTORS)
def headers(stage: Stage) -> None:
    session = stage.session()
    producer = session.create_producer(stage.queue())
    for body, priority in (("m1", 3), ("m2", 7)):
        message = session.create_text_message(body)
        message.jms_type, message.jms_correlation_id = "order", f"c-{body}"
        producer.send(message, priority=priority)
    selector = "JMSType = 'order' AND JMSPriority > 4 AND JMSCorrelationID = 'c-m2'"
    stage.expect(session.create_consumer(stage.queue(), selector), "m2 none")


@scenario("selector-invalid", "a selector that is none is refused")
def invalid(stage: Stage) -> None:
    raises(jmsish.InvalidSelectorError, stage.session().create_consumer, stage.queue(), "colour = = 'red'")


@scenario("selector-topic", "a selector on a topic", SELECTORS, TOPIC_CONSUMERS)
def on_a_topic(stage: Stage) -> None:
    consumer = stage.session().create_consumer(stage.topic(), "colour = 'red'")
    _three(stage, stage.topic())
    stage.expect(consumer, "m1 m3 none")


@scenario("selector-browser", "a selector of a browser", SELECTORS, BROWSING)
def of_a_browser(stage: Stage) -> None:
    _three(stage)
    with stage.session().create_browser(stage.queue(), "weight > 1") as browser:
        equal(bodies(browser), ["m2", "m3"], "the browser showed")
