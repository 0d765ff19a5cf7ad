"""A program is tested against the limits of its production broker: `EmbeddedBroker(profile=…)`."""

from __future__ import annotations

import pytest

import jmsish
from jmsish import conformance
from jmsish.errors import SendRejectedError, UnsupportedFeatureError

MAIN = [
    "redelivery-*",
    "rollback-026",
    "acknowledge-00[1-4]",
    "outcome-*",
    "message-text",
    "browse-001",
    "selector-text",
]

DIFFERENT = {
    "artemis": {},
    "activemq": {},
    "broker-j": {"outcome-rejected"},
    "qpidd": {},
    "rabbitmq": {},
    "rabbitmq-3": {
        "redelivery-009", "redelivery-010", "acknowledge-003", "acknowledge-004", "outcome-modified"
    },  # it counts no delivery
    "servicebus": {},
    "ibmmq": {},
    "solace": {},
}  # fmt: skip
NO_TRANSACTIONS = {*(f"redelivery-{number:03}" for number in range(1, 9)), "rollback-026"}
LACKING = {
    "rabbitmq": {*NO_TRANSACTIONS, "browse-001", "selector-text"},
    "rabbitmq-3": {*NO_TRANSACTIONS, "browse-001", "selector-text"},
    "solace": NO_TRANSACTIONS,
}


@pytest.mark.parametrize("profile", DIFFERENT)
def test_the_scorecard_of_an_imitation(profile: str) -> None:
    """The client passes what the imitated broker can do, fails where it cannot, and tries nothing it has not."""
    with jmsish.EmbeddedBroker(profile=profile) as broker:
        broker.declare_queue("scratch")
        option = {"profile": profile} if profile == "servicebus" else {}
        card = conformance.check(broker.url, only=MAIN, queue="scratch", quiet=0.01, patience=30.0, **option)
    assert card.profile == profile
    found = {result.scenario for result in card.results if result.result == conformance.FAIL}
    lacking = {result.scenario for result in card.results if result.result == conformance.NOT_SUPPORTED}
    assert found == set(DIFFERENT[profile]), [result.why for result in card.results]
    assert lacking == LACKING.get(profile, set())


def test_a_program_for_rabbitmq_hears_early_what_it_cannot_do() -> None:
    with jmsish.EmbeddedBroker(profile="rabbitmq") as broker:
        broker.declare_queue("orders")
        with jmsish.connect(broker.url) as connection:
            assert connection.metadata.profile.name == "rabbitmq" and connection.metadata.broker_product == "RabbitMQ"
            with pytest.raises(UnsupportedFeatureError, match="no transactions"):
                connection.create_session(transacted=True)
            session = connection.create_session()
            session.create_producer(jmsish.Queue("orders")).send("m1")
            message = session.create_consumer(jmsish.Queue("orders")).receive(timeout=30)
            assert message is not None and message.jms_destination == jmsish.Queue("orders")
            with pytest.raises(SendRejectedError, match="released"):
                session.create_producer(jmsish.Queue("other")).send("m1")


def test_without_the_early_word_the_broker_itself_says_no() -> None:
    """The same with a client that takes it for a broker it does not know."""
    with (
        jmsish.EmbeddedBroker(profile="rabbitmq") as broker,
        jmsish.connect(broker.url, profile="unknown") as wire,
    ):
        with pytest.raises(UnsupportedFeatureError, match="Transactions not supported"):
            wire.create_session(transacted=True)


def test_a_delay_at_azure_is_scheduled() -> None:
    from jmsish.testing import VirtualClock

    clock = VirtualClock()
    with jmsish.EmbeddedBroker(profile="servicebus", clock=clock) as broker:
        broker.declare_queue("q")
        with jmsish.connect(broker.url, profile="servicebus", clock=clock) as connection:
            session = connection.create_session()
            session.create_producer(jmsish.Queue("q")).send("m1", delivery_delay=30)
            assert broker.queue("q").available == 0
            clock.advance(31)
            consumer = session.create_consumer(jmsish.Queue("q"))
            message = consumer.receive(timeout=30)
            assert message is not None and message.body == "m1"


def test_an_unknown_profile() -> None:
    with pytest.raises(ValueError, match="unknown profile"):
        jmsish.EmbeddedBroker(profile="websphere")


def test_over_tcp() -> None:
    with jmsish.EmbeddedBroker(profile="artemis") as broker, jmsish.connect(broker.listen().url) as connection:
        assert connection.metadata.profile.name == "artemis"
        assert connection.create_session(transacted=True).transacted
