"""The configuration: checked whole, near misses named, later keys refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import Broker, BrokerConfig, ConfigurationError, ListenerConfig, QueueSettings, User
from jmsish.engine.outcomes import ACCEPTED
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
    ({"router": {"mode": "edge"}}, "[router] id is missing"),
    ({"exchanges": {"prices": {"type": "fan"}}}, "the type must be one of 'direct', 'topic', 'fanout', 'headers', not"),
    ({"exchanges": {"prices": {}}}, "[exchanges.prices]: the type must be one of"),
    ({"exchanges": {"prices": {"typ": "topic"}}}, "did you mean 'type'?"),
    ({"exchanges": {"amq.prices": {"type": "topic"}}}, "the name 'amq.prices' is reserved"),
    ({"exchanges": {"a/b": {"type": "topic"}}}, "the name 'a/b' has a '/'"),
    ({"policy": {"max_connections": -5}}, "[policy] max_connections must be a whole number, 0 or more, not -5"),
    ({"policy": {"max_message_size": 1 << 64}}, "[policy] max_message_size must be a whole number from 0 to 1844674"),
    ({"policy": {"on_oversize": "session"}}, "[policy] on_oversize must be one of connection, link, not 'session'"),
    ({"policy": {"default_vhost": 5}}, "[policy] default_vhost must be a string, not 5"),
    ({"listeners": [{"role": "edge"}]}, "role 'edge' is a door of an interior router, and this is none"),
    ({"listeners": [{"port": 70000}]}, "0 to 65535"),
    ({"listeners": [{"hots": "x"}]}, "did you mean 'host'"),
    ({"policy": {"transaction_timeout": -1}}, "seconds"),
    ({"zzz": {}}, "known: policy, authentication, users, vhosts, limits, queues, exchanges, bindings, listeners"),
]


@pytest.mark.parametrize(("config", "words"), WRONG)
def test_wrong_values_are_value_errors_that_name_the_place(config: Any, words: str) -> None:
    with pytest.raises(ValueError) as raised:
        BrokerConfig.from_mapping(config)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ([], "the configuration must be a table, not list"),
        ({1: {}}, "the configuration: a name must be a string, not 1"),
        ({"policy": []}, "[policy] must be a table, not list"),
        ({"policy": {"auto_create": "True"}}, "[policy] auto_create must be true or false, not 'True'"),
        ({"queues": {"q": {"durable": 1}}}, "[queues.q]: durable must be true or false, not 1"),
        ({"queues": {"q": {"max_messages": True}}}, "[queues.q]: max_messages must be a whole number"),
        ({"queues": {"q": {"dead_letter": None}}}, "[queues.q]: dead_letter"),
        ({"listeners": "127.0.0.1"}, "[[listeners]] must be a list of tables"),
        ({"listeners": [{"host": 5}]}, "[[listeners]] 1 host must be a string, not 5"),
    ],
)
def test_wrong_types_are_value_errors_too(config: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        BrokerConfig.from_mapping(config)
    assert words in str(raised.value)


def test_every_error_is_found_and_named_by_its_place() -> None:
    config = {
        "polcy": {},
        "policy": {"max_message_size": -1, "auto_create": "yes", "transaction_timeout": "soon"},
        "users": {"alice": {"passwort": "x", "password": 5}, "bob": {}},
        "queues": {"q": {"max_messages": -1, "overflow": "drop", "durables": True}, "$management": {}},
        "exchanges": {"a/b": {"type": "fan", "durable": 1}, "amq.topic": {"type": "direct"}},
        "bindings": [{"exchange": "a/b", "queue": "r"}, {"quue": "q"}],
        "listeners": [{"port": -1, "host": 5}, 7],
    }
    with pytest.raises(ConfigurationError) as raised:
        BrokerConfig.from_mapping(config)
    places = (
        "'polcy' in the configuration", "[policy] max_message_size", "[policy] transaction_timeout",
        "[policy] auto_create", "'passwort' in [users.alice]", "password in [users.alice]", "[users.bob]",
        "[queues.q]: max_messages", "[queues.q]: overflow", "'durables' of [queues.q]", "[queues.$management]",
        "[exchanges.a/b]: the name", "[exchanges.a/b]: the type", "[exchanges.a/b]: durable",
        "[exchanges.amq.topic]: its type", "[[bindings]] 1: there is no queue 'r'", "'quue' in [[bindings]] 2",
        "[[bindings]] 2 needs the key 'exchange'", "[[bindings]] 2 needs the key 'queue'", "[[listeners]] 1 host",
        "[[listeners]] 1 port", "[[listeners]] 2 must be a table",
    )  # fmt: skip
    errors = raised.value.errors
    assert all(any(place in error for error in errors) for place in places), errors
    assert len(errors) == len(places)
    assert str(raised.value).splitlines() == ["22 errors in the configuration:", *(f"  {error}" for error in errors)]


def test_listeners_over_websocket() -> None:
    listeners = [{"protocol": "ws", "port": 80, "origins": ["https://app.example"]}, {"protocol": "amqp"}]
    [first, second] = BrokerConfig.from_mapping({"listeners": listeners}).listeners
    assert (first.protocol, first.port, first.origins) == ("ws", 80, ("https://app.example",))
    assert (second.protocol, second.origins) == ("amqp", ())


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        ({"protocol": "wss"}, r"\[\[listeners\]\] 1 protocol must be one of amqp, ws, not 'wss'"),
        ({"origins": ["x"]}, r"\[\[listeners\]\] 1 has origins, which are for the protocol ws only"),
        ({"protocol": "ws", "origins": ["*", "null", "x"]}, r"\[\[listeners\]\] 1: 'x' is no origin, such as https://"),
        ({"protocol": "ws", "origins": ["https://App.example"]}, "'https://App.example' is no origin"),
        ({"protocol": "ws", "origins": "x"}, r"\[\[listeners\]\] 1 origins must be a list of strings, not 'x'"),
    ],
)
def test_what_is_wrong_with_a_listener_over_websocket(listener: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        BrokerConfig.from_mapping({"listeners": [listener]})


@pytest.mark.parametrize(
    "url",
    [
        "http://bob:hunter2@host:1", "amqp://bob:hunter2@host:99999", "bob:hunter2@host", "amqp://bob:hunter2/@host:x",
        "amqp://bob:hunter2", "amqp://bob:hun?ter2@[::1", "amqp://bob:hunter2@host:1",
    ],
)  # fmt: skip
def test_the_password_in_the_url_of_a_connector_is_not_told(url: str) -> None:
    """Neither where the URL is wrong, whatever is wrong with it, nor in what is read of a right one."""
    connector = {"url": url, "name": "c", "role": "inter-router"}
    try:
        told = repr(BrokerConfig.from_mapping({"router": {"id": "A", "mode": "interior"}, "connectors": [connector]}))
    except ValueError as error:
        told = str(error)
    assert "hunter2" not in told and "hun?ter2" not in told


def test_a_secret_that_is_no_string_is_not_told() -> None:
    with pytest.raises(ConfigurationError) as raised:
        BrokerConfig.from_mapping({"users": {"alice": {"password": ["hunter2"]}}})
    assert "hunter2" not in str(raised.value)


def test_queues_of_the_configuration_are_there_at_once() -> None:
    world = World({"queues": {"orders": {"max_delivery_attempts": 5}}})
    assert world.queue("orders").settings.max_delivery_attempts == 5


def test_a_queue_of_the_configuration_that_was_deleted_comes_again_with_its_settings() -> None:
    """Made anew by its use, as by a dead letter, it has the limits that it is known to have."""
    world = World({"queues": {"orders": {"max_messages": 1}}})
    peer = world.connect()
    world.broker.delete_queue("orders")
    sender = peer.sender("orders")
    assert world.queue("orders").settings.max_messages == 1
    assert sender.send("m1") == [[ACCEPTED]] and sender.send("m2") != [[ACCEPTED]]
    world.broker.delete_queue("orders")
    assert world.broker.declare_queue("orders").settings.max_messages == 0, "who declares it says what it has"


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
