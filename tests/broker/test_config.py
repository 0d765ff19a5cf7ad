"""The configuration: checked whole, near misses named, later keys refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import Broker, BrokerConfig, ListenerConfig, QueueSettings, User
from jmsish.errors import InvalidDestinationError
from tests.broker.world import Clock, World


def test_everything_is_optional() -> None:
    assert BrokerConfig.from_mapping(None) == BrokerConfig.from_mapping({}) == BrokerConfig()


def test_a_full_one() -> None:
    config = BrokerConfig.from_mapping(
        {
            "policy": {"transaction_timeout": 30, "auto_create": False},
            "users": {"alice": {"password": "secret"}},
            "queues": {"orders": {"durable": True, "max_delivery_attempts": 5, "dead_letter": "orders.dead"}},
            "listeners": [{"host": "127.0.0.1", "port": 0, "role": "normal"}, {}],
        }
    )
    assert config.transaction_timeout == 30.0 and not config.auto_create
    assert config.users == {"alice": User("secret")} and "secret" not in repr(config)
    assert config.queues["orders"] == QueueSettings(durable=True, max_delivery_attempts=5, dead_letter="orders.dead")
    assert config.listeners == (ListenerConfig("127.0.0.1", 0), ListenerConfig("127.0.0.1", 5672))
    assert BrokerConfig.from_mapping(config) is config


WRONG: list[tuple[Any, str]] = [
    ({"polcy": {}}, "did you mean 'policy'"),
    ({"policy": {"transaction_timout": 1}}, "did you mean 'transaction_timeout'"),
    ({"queues": {"q": {"max_delivery_attempt": 1}}}, "did you mean 'max_delivery_attempts'"),
    ({"queues": {"q": {"overflow": "drop"}}}, "overflow must be one of"),
    ({"queues": {"q": {"max_messages": -1}}}, "0 (no limit) or more"),
    ({"queues": {"q": {"redelivery_delay": -1}}}, "redelivery_delay"),
    ({"queues": {"q": {"redelivery_delay": float("nan")}}}, "redelivery_delay"),
    ({"users": {"alice": {}}}, "needs a password"),
    ({"users": {"alice": {"passwort": "x"}}}, "did you mean 'password'"),
    ({"users": {"alice": {"scram_sha_256": "x"}}}, "iterations:salt:stored-key:server-key"),
    ({"users": {"alice": {"password": 1}}}, "password in [users.alice] must be a string, not int"),
    ({"vhosts": {}}, "'vhosts' in the configuration is not supported in this version"),
    ({"exchanges": {"prices": {"type": "fan"}}}, "the type must be one of 'direct', 'topic', 'fanout', 'headers', not"),
    ({"exchanges": {"prices": {}}}, "[exchanges.prices]: the type must be one of"),
    ({"exchanges": {"prices": {"typ": "topic"}}}, "did you mean 'type'?"),
    ({"exchanges": {"amq.prices": {"type": "topic"}}}, "the name 'amq.prices' is reserved"),
    ({"exchanges": {"a/b": {"type": "topic"}}}, "the name 'a/b' has a '/'"),
    ({"policy": {"max_connections": 5}}, "not supported in this version"),
    ({"listeners": [{"role": "edge"}]}, "not supported in this version"),
    ({"listeners": [{"port": 70000}]}, "0 to 65535"),
    ({"listeners": [{"hots": "x"}]}, "did you mean 'host'"),
    ({"policy": {"transaction_timeout": -1}}, "seconds"),
    ({"zzz": {}}, "known: policy, users, queues, exchanges, bindings, listeners"),
]


@pytest.mark.parametrize(("config", "words"), WRONG)
def test_wrong_values_are_value_errors_that_name_the_place(config: Any, words: str) -> None:
    with pytest.raises(ValueError) as raised:
        BrokerConfig.from_mapping(config)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    "config",
    [
        [],
        {1: {}},
        {"policy": []},
        {"policy": {"auto_create": "yes"}},
        {"queues": {"q": {"durable": 1}}},
        {"queues": {"q": {"max_messages": True}}},
        {"queues": {"q": {"dead_letter": None}}},
        {"listeners": "127.0.0.1"},
        {"listeners": [{"host": 5}]},
    ],
)
def test_wrong_types_are_type_errors(config: Any) -> None:
    with pytest.raises(TypeError):
        BrokerConfig.from_mapping(config)


def test_queues_of_the_configuration_are_there_at_once() -> None:
    world = World({"queues": {"orders": {"max_delivery_attempts": 5}}})
    assert world.queue("orders").settings.max_delivery_attempts == 5


def test_declare_and_delete() -> None:
    broker = Broker("test", clock=Clock())
    view = broker.declare_queue("q", max_messages=3)
    assert (view.name, view.depth, view.settings.max_messages) == ("q", 0, 3)
    with pytest.raises(ValueError, match="did you mean 'max_messages'"):
        broker.declare_queue("q", max_message=3)
    for name in ("", "jmsish.temporary.x"):
        with pytest.raises(ValueError):
            broker.declare_queue(name)
    broker.delete_queue("q")
    assert view.is_deleted
    for call in (broker.queue, broker.delete_queue):
        with pytest.raises(InvalidDestinationError):
            call("q")


@pytest.mark.parametrize("name", ["$management", "jmsish.temporary.x", "jmsish.subscription.durable/c/s", "\ud800"])
def test_what_the_broker_names_itself_is_no_name_for_a_queue_nor_for_dead_letters(name: str) -> None:
    """A dead-letter queue of such a name would stand where a subscription is made later, which would lose it."""
    for settings in ({"dead_letter": name}, {"expiry_address": name}):
        with pytest.raises(ValueError, match="dead_letter|expiry_address"):
            BrokerConfig.from_mapping({"queues": {"orders": settings}})
    with pytest.raises(ValueError, match="queues"):
        BrokerConfig.from_mapping({"queues": {name: {}}})
    broker = Broker("test", clock=lambda: 0.0)
    with pytest.raises(ValueError, match="a queue"):
        broker.declare_queue(name)
    assert broker.queues() == []


def test_half_a_character_is_no_name() -> None:
    with pytest.raises(ValueError, match="half a character"):
        Broker("test", clock=lambda: 0.0).declare_exchange("a\udc00", "topic")
