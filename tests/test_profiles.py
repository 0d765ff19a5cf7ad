"""Which broker it is, what its destinations are called, and what it does not do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import jmsish
from jmsish.destination import Queue, TemporaryQueue, Topic, name_on_wire, wire_name
from jmsish.errors import UnsupportedFeatureError
from jmsish.options import make_options, parse_url
from jmsish.profiles import NAMES, PROFILES, UNKNOWN, Profile, missing_at, recognise, version_of
from jmsish.profiles.profile import DELAY, FEATURES, SHARED, TRANSACTIONS


@pytest.mark.parametrize(
    ("product", "version", "name"),
    [
        ("apache-activemq-artemis", "2.40.0", "artemis"),
        ("ActiveMQ", "6.1.6", "activemq"),
        ("Apache Qpid Broker-J Core", "9.2.1", "broker-j"),
        ("qpid", "9.2.1", "broker-j"),
        ("qpid-cpp", "1.39.0", "qpidd"),
        ("RabbitMQ", "4.1.0", "rabbitmq"),
        ("RabbitMQ", "10.0", "rabbitmq"),
        ("RabbitMQ", "3.10.8", "rabbitmq-3"),
        ("IBM MQ", "9.3", "ibmmq"),
        ("Solace PubSub+ Event Broker", "10.4", "solace"),
        ("jmsish", "0.1", "jmsish"),
        ("something else", "1.0", "unknown"),
        ("", "", "unknown"),
    ],
)
def test_found_by_the_product_of_the_open(product: str, version: str, name: str) -> None:
    assert recognise({"product": product, "version": version}).name == name


@pytest.mark.parametrize("properties", [None, {}, {"product": None}, {"product": 7}])
def test_who_says_nothing_is_unknown(properties: Any) -> None:
    assert recognise(properties) is UNKNOWN


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("ns.servicebus.windows.net", "servicebus"),
        ("NS.ServiceBus.Windows.Net.", "servicebus"),
        ("servicebus.windows.net.example.org", "unknown"),
        ("localhost", "unknown"),
        (None, "unknown"),
    ],
)
def test_azure_is_found_by_its_host(host: str | None, name: str) -> None:
    assert recognise({}, (), host).name == name


@pytest.mark.parametrize(("text", "numbers"), [("3.10.8", (3, 10, 8)), ("4.0-rc1", (4, 0)), ("x", ()), (None, ())])
def test_version(text: str | None, numbers: tuple[int, ...]) -> None:
    assert version_of({"version": text}) == numbers


@pytest.mark.parametrize("profile", PROFILES.values(), ids=NAMES)
def test_each_profile_is_sound(profile: Profile) -> None:
    """Its lacks are features, each said in a sentence that names who lacks it; all that it says is a known word."""
    assert set(profile.lacks) <= set(FEATURES)
    for sentence in profile.lacks.values():
        assert sentence[0].isupper() or sentence.startswith(("qpidd", "a "))
        assert not sentence.endswith(".")
    assert profile.rejected in ("dead letter", "requeued", "dropped", "unknown")
    assert set(profile.outcomes_in_transaction) <= set(profile.outcomes) | {"modified"}


def names_for(profile: str) -> Any:
    found = PROFILES[profile]
    return (found.queue_prefix, found.topic_prefix, *((found.encoded,) if found.encoded else ()))


@pytest.mark.parametrize(
    ("profile", "destination", "address"),
    [
        ("rabbitmq", Queue("orders"), "/queues/orders"),
        ("rabbitmq", Queue("Ümläut & 100 %"), "/queues/%C3%9Cml%C3%A4ut%20%26%20100%20%25"),
        ("rabbitmq", Queue("a/b"), "/queues/a%2Fb"),
        ("rabbitmq", Queue("/queues/already%20there"), "/queues/already%20there"),
        ("rabbitmq", Queue("/exchanges/logs/info"), "/exchanges/logs/info"),
        ("rabbitmq", Topic("eu.orders"), "/exchanges/amq.topic/eu.orders"),
        ("rabbitmq", Topic("/exchanges/logs/eu.orders"), "/exchanges/logs/eu.orders"),
        ("rabbitmq-3", Queue("a b"), "/queue/a%20b"),
        ("rabbitmq-3", Topic("a.b"), "/topic/a.b"),
        ("rabbitmq-3", Queue("/amq/queue/a"), "/amq/queue/a"),
        ("broker-j", Queue("orders"), "orders"),
        ("broker-j", Topic("eu.orders"), "amq.topic/eu.orders"),
        ("broker-j", Topic("amq.topic/eu.orders"), "amq.topic/eu.orders"),
        ("activemq", Queue("orders"), "queue://orders"),
        ("activemq", Topic("orders"), "topic://orders"),
        ("activemq", TemporaryQueue("temp-queue://ID:1"), "temp-queue://ID:1"),
        ("artemis", Topic("orders"), "orders"),
        ("servicebus", Queue("orders/Subscriptions/eu"), "orders/Subscriptions/eu"),
    ],
)
def test_addresses(profile: str, destination: Any, address: str) -> None:
    assert wire_name(destination, names_for(profile)) == address


@pytest.mark.parametrize(
    ("profile", "address", "kind", "name"),
    [
        ("rabbitmq", "/queues/a%2Fb", 0, "a/b"),
        ("rabbitmq", "/exchanges/amq.topic/a.b", 1, "a.b"),
        ("rabbitmq", "/exchanges/logs/a.b", 1, "/exchanges/logs/a.b"),
        ("broker-j", "amq.topic/a%20b", 1, "a%20b"),
        ("broker-j", "amq.topic/", 1, "amq.topic/"),
        ("activemq", "queue://a", 2, "queue://a"),
    ],
)
def test_names_of_addresses_that_come_back(profile: str, address: str, kind: int, name: str) -> None:
    assert name_on_wire(address, kind, names_for(profile)) == name


@given(st.text(min_size=1), st.sampled_from(NAMES), st.sampled_from([Queue, Topic]))
def test_a_name_comes_back_as_it_went(name: str, profile: str, kind: Any) -> None:
    names = names_for(profile)
    plain = kind(name)
    whole = name.startswith(tuple(PROFILES[profile].encoded) or (names[plain.is_topic] or "\0",))
    if not whole and name.isprintable():
        assert name_on_wire(wire_name(plain, names), plain.kind_byte, names) == name


def test_require_says_a_plain_sentence() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"^RabbitMQ has no transactions over AMQP 1\.0: use an"):
        PROFILES["rabbitmq"].require(TRANSACTIONS)
    PROFILES["artemis"].require(TRANSACTIONS)
    UNKNOWN.require(TRANSACTIONS)


def test_missing_is_what_the_profile_lacks_and_what_was_not_offered() -> None:
    assert set(missing_at(UNKNOWN, ("ANONYMOUS-RELAY", "SHARED-SUBS"))) == {DELAY}
    assert SHARED in missing_at(PROFILES["activemq"], ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS"))
    assert DELAY not in missing_at(PROFILES["broker-j"], ()), "it says so on links"


# -- the option, and what a connection tells


def test_option_by_keyword_and_in_a_url() -> None:
    assert make_options({"profile": "rabbitmq"}).profile == "rabbitmq"
    assert make_options({}).profile is None
    assert parse_url("amqp://h?jms.profile=solace").options.profile == "solace"
    with pytest.raises(ValueError, match="'rabbitmq'"):
        make_options({"profile": "rabitmq"})


def test_metadata_tells_what_was_found() -> None:
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url) as connection:
        told = connection.metadata
        assert told.profile is PROFILES["jmsish"] and told.broker_product == "jmsish" and told.broker_version
        assert not told.missing
        assert told.remote_properties["product"] == "jmsish" and "SHARED-SUBS" in told.remote_capabilities


def test_the_option_goes_before_what_was_found() -> None:
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url, profile="solace") as connection:
        assert connection.metadata.profile is PROFILES["solace"]
        assert "transactions" in connection.metadata.missing
        with pytest.raises(UnsupportedFeatureError, match="Solace has no transactions over AMQP"):
            connection.create_session(transacted=True)
        assert connection.create_session() is not None
