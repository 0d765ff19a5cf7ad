"""The conformance scenarios: the bundled broker passes them, and what is wrong with another is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import jmsish
from jmsish import conformance
from jmsish.conformance import FAIL, NOT_SUPPORTED, PASS, Scenario
from jmsish.conformance.stage import Difference, Stage, equal, raises, seen
from jmsish.conformance.table import TABLE, scenario

HASTE = {"patience": 5.0, "quiet": 0.01}


@pytest.fixture
def broker() -> Iterator[jmsish.EmbeddedBroker]:
    with jmsish.EmbeddedBroker() as broker:
        yield broker


@pytest.mark.parametrize("each", conformance.scenarios(), ids=lambda each: each.name)
def test_the_bundled_broker_passes(each: Scenario, broker: jmsish.EmbeddedBroker) -> None:
    card = conformance.check(broker.url, only=[each.name], **HASTE)
    (result,) = card.results
    assert (result.result, result.why) == (PASS, "")
    left = {queue.name: [message.body for message in queue.messages()] for queue in broker.queues() if queue.depth}
    assert left == ({"DLQ": ["m1"]} if each.name == "outcome-rejected" else {}), "it leaves nothing behind"
    assert not broker.subscriptions()


def test_redelivery_one_to_twelve_are_all_there() -> None:
    assert [each.name for each in conformance.scenarios(["redelivery-*"])] == [
        f"redelivery-{n:03}" for n in range(1, 13)
    ]


def test_over_one_given_queue(broker: jmsish.EmbeddedBroker) -> None:
    with jmsish.connect(broker.url) as connection:
        connection.create_session().create_producer(jmsish.Queue("scratch")).send("left over")
    card = conformance.check(broker.url, only=["redelivery-00*", "rollback-033"], queue="scratch", **HASTE)
    assert [each.result for each in card.results] == [PASS] * 9 + [NOT_SUPPORTED]
    assert "only one was given" in card.results[-1].why
    assert broker.queue("scratch").depth == 0


def test_a_broker_that_makes_no_queues_is_told_so() -> None:
    with jmsish.EmbeddedBroker(config={"policy": {"auto_create": False}}) as broker:
        (result,) = conformance.check(broker.url, only=["redelivery-001"], **HASTE).results
    assert result.result == NOT_SUPPORTED and result.why.startswith("the broker has no such node and makes none:")


def test_what_a_profile_lacks_is_not_tried(broker: jmsish.EmbeddedBroker) -> None:
    card = conformance.check(broker.url, only=["redelivery-001", "redelivery-009"], profile="solace", **HASTE)
    assert [each.result for each in card.results] == [NOT_SUPPORTED, PASS]
    assert card.results[0].why.startswith("Solace has no transactions")
    assert card.profile == "solace" and card.product == "jmsish"


def test_a_difference_and_an_error_of_the_broker_are_failures(broker: jmsish.EmbeddedBroker) -> None:
    broker.declare_queue("few", max_messages=1)

    @scenario("test-difference", "expects too much")
    def play(stage: Stage) -> None:
        stage.send("m1")
        stage.expect(stage.session().create_consumer(stage.queue()), "m1*2")

    @scenario("test-error", "sends too much")
    def play_on(stage: Stage) -> None:
        stage.send("m1 m2", jmsish.Queue("few"))

    try:
        card = conformance.check(broker.url, only=["test-*"], **HASTE)
    finally:
        del TABLE["test-difference"], TABLE["test-error"]
    assert [each.result for each in card.results] == [FAIL, FAIL]
    assert card.results[0].why == "expected 'm1*2', got 'm1'"
    assert card.results[1].why.startswith("SendRejectedError: the broker rejected the message")
    assert (card.passed, card.failed, card.not_supported) == (0, 2, 0)


def test_the_card_as_a_mapping(broker: jmsish.EmbeddedBroker) -> None:
    card = conformance.check(f"{broker.url}?jms.prefetch=10", only=["message-text"], **HASTE).as_dict()
    assert card["url"] == broker.url and card["broker"]["profile"] == "jmsish"
    assert (card["passed"], card["failed"], card["not_supported"]) == (1, 0, 0)
    assert card["results"][0].keys() == {"scenario", "title", "result", "why", "seconds"}


def test_a_pattern_that_fits_nothing_names_what_was_meant() -> None:
    with pytest.raises(ValueError, match="did you mean 'redelivery-001'"):
        conformance.scenarios(["redelivry-001"])


def test_two_of_one_name() -> None:
    with pytest.raises(ValueError, match="two scenarios 'redelivery-001'"):
        scenario("redelivery-001", "again")(lambda stage: None)


def test_the_words_of_a_script() -> None:
    assert seen(None) == "none"
    with pytest.raises(Difference, match=r"x: expected 1, got 2"):
        equal(2, 1, "x")
    with pytest.raises(Difference, match="raised nothing, where KeyError"):
        raises(KeyError, dict)
    raises(KeyError, {}.__getitem__, "x")
