"""Exchanges of all types, their bindings and their configuration, as a program sees them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import jmsish
from jmsish import Binding, EmbeddedBroker, InvalidDestinationError
from jmsish.broker import BrokerConfig
from jmsish.types import ULong


@pytest.mark.parametrize("type", ["direct", "topic", "fanout", "headers"])
def test_declared_looked_at_and_deleted(type: str) -> None:
    with EmbeddedBroker() as broker:
        view = broker.declare_exchange("x", type, durable=True, unroutable="release", sequence=True)
        assert (view.name, view.type, view.settings.durable, view.settings.unroutable) == ("x", type, True, "release")
        assert repr(view) == f"<ExchangeView 'x' {type} bindings=0>" == repr(broker.exchange("x"))
        assert "x" in [each.name for each in broker.exchanges()]
        with pytest.raises(ValueError, match="did you mean 'unroutable'"):
            broker.declare_exchange("y", type, unroutabel="discard")
        broker.delete_exchange("x")
        assert view.is_deleted
        with pytest.raises(InvalidDestinationError, match="no exchange 'x'"):
            broker.exchange("x")


def test_bound_rebound_and_unbound() -> None:
    with EmbeddedBroker() as broker:
        for name in ("old", "new", "other"):
            broker.declare_queue(name)
        view = broker.exchange("amq.topic")
        assert view.bind("old", "eu.#") and not view.bind("old", key="eu.#")
        assert view.bindings() == [Binding("amq.topic", "old", "eu.#")]
        view.rebind(add=[("new", "eu.#"), Binding("amq.topic", "other", "us.#")], remove=view.bindings())
        assert {(each.queue, each.key) for each in view.bindings()} == {("new", "eu.#"), ("other", "us.#")}
        with pytest.raises(InvalidDestinationError, match="no queue 'none'"):
            view.rebind(add=(each for each in [("old", "a"), ("none", "a")]))
        assert len(view.bindings()) == 2
        assert view.unbind("new", "eu.#") and not view.unbind("new", "eu.#")
        assert view.bind_exchange("amq.fanout", "all.#") and view.unbind_exchange("amq.fanout", "all.#")


def test_said_by_a_view_as_well_as_by_a_name() -> None:
    """What `declare_queue` gives can be put wherever its name can; what has no name is a TypeError that says so."""
    with EmbeddedBroker() as broker:
        old, new, x = broker.declare_queue("old"), broker.declare_queue("new"), broker.declare_exchange("x", "topic")
        y = broker.declare_exchange("y", "fanout")
        assert x.bind(old, "a") and x.matched(old, "a") == 0 and x.bind_exchange(y, "#") and x.unbind_exchange(y, "#")
        x.rebind(add=[(new, "a"), Binding("x", "new", "b")], remove=[(old, "a")])
        with broker.freeze(x, y) as frozen:
            frozen.exchange(x).rebind(add=[(jmsish.Queue("old"), "c")], remove=[(new, "b")])
            frozen.exchange(x).bind_exchange(y, "d")
            frozen.exchange(y).bind(old)
        assert {(each.queue, each.key) for each in x.bindings()} == {("new", "a"), ("old", "c"), ("y", "d")}
        assert broker.queue(old).name == "old" and broker.exchange(y).bindings() == [Binding("y", "old")]
        broker.redirect(old, new)
        broker.end_redirect(old)
        broker.delete_exchange(y)
        broker.delete_queue(old)
        for wrong in (lambda: x.bind(5, "a"), lambda: broker.queue(None), lambda: x.rebind(add=[(b"new", "z")])):
            with pytest.raises(TypeError, match="is said by its name, a str"):
                wrong()  # type: ignore[no-untyped-call]


def test_what_is_not_bound_is_named_as_it_was_asked_for() -> None:
    with EmbeddedBroker() as broker:
        x = broker.declare_exchange("x", "topic")
        for kind in ("queue", "exchange"):
            with pytest.raises(InvalidDestinationError, match=f"'x' has no binding of the {kind} 'q' with the key 'k'"):
                x.matched("q", "k", kind=kind)


def test_a_view_can_be_shown_from_inside_the_broker() -> None:
    """Where nothing can be read, its name is shown, and the error that names it is the one that is raised."""
    with EmbeddedBroker() as broker:
        queue, x = broker.declare_queue("q"), broker.declare_exchange("x", "headers")
        with pytest.raises(ValueError, match="'a' has a value that no property of a message has"):
            x.bind(queue, "k", {"x-match": "all", "a": queue})
        assert broker._call(lambda: (repr(queue), repr(x))) == ("<QueueView 'q'>", "<ExchangeView 'x'>")


def test_counted() -> None:
    with EmbeddedBroker() as broker, jmsish.connect(broker.url) as connection:
        broker.declare_queue("q")
        view = broker.declare_exchange("x", "direct", unroutable="discard")
        view.bind("q", "k", {"x-filter-jms-selector": "size > 5"})
        session = connection.create_session()
        producer = session.create_producer(session.create_topic("x/k"))
        for size in (5, 6, 7):
            message = session.create_text_message("m")
            message.properties["size"] = size
            producer.send(message)
        assert (view.received, view.routed, view.dropped, view.rejected, view.released) == (3, 2, 1, 0, 0)
        assert view.octets > 100 and view.matched("q", "k") == 2
        with pytest.raises(InvalidDestinationError):
            view.matched("q", "other")


def test_other_arguments_only_by_replacing() -> None:
    with EmbeddedBroker() as broker:
        broker.declare_queue("q")
        view = broker.exchange("amq.match")
        with pytest.raises(ValueError, match="needs the argument 'x-match'"):
            view.bind("q")
        assert view.bind("q", "k", {"x-match": "all", "a": 1})
        with pytest.raises(ValueError, match="and other arguments"):
            view.bind("q", "k", {"x-match": "any", "a": 1})
        assert view.bind("q", "k", {"x-match": "any", "a": 1}, replace=True)
        assert view.bindings() == [Binding("amq.match", "q", "k", {"x-match": "any", "a": 1})]


def test_the_nameless_exchange_is_looked_at() -> None:
    with EmbeddedBroker() as broker:
        broker.declare_queue("q")
        view = broker.exchange("")
        assert view.bindings() == [Binding("", "q", "q")] and view.type == "direct"
        with pytest.raises(ValueError, match="every queue is bound by its own name"):
            view.bind("q", "other")


# --- the configuration

FILE = """
[queues.orders]
[queues.rest]
[exchanges.prices]
type = "topic"
alternate = "lost"
durable = true
[exchanges.lost]
type = "fanout"
[exchanges.match]
type = "headers"
unroutable = "reject"
[exchanges."amq.direct"]
type = "direct"
unroutable = "discard"
[[bindings]]
exchange = "prices"
queue = "orders"
key = "eu.#.*"
[[bindings]]
exchange = "lost"
queue = "rest"
[[bindings]]
exchange = "match"
queue = "orders"
arguments = { x-match = "any", urgent = true }
[[bindings]]
exchange = "amq.fanout"
queue = "prices"
kind = "exchange"
"""


def test_a_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(FILE)
    with EmbeddedBroker(config=file) as broker, jmsish.connect(broker.url) as connection:
        assert broker.exchange("prices").bindings() == [Binding("prices", "orders", "eu.*.#")]
        assert broker.exchange("match").bindings() == [
            Binding("match", "orders", "", {"x-match": "any", "urgent": True})
        ]
        assert broker.exchange("amq.fanout").bindings() == [Binding("amq.fanout", "prices", "", None, "exchange")]
        assert broker.exchange("prices").settings.durable and broker.exchange("amq.direct").settings.durable
        session = connection.create_session()
        for key in ("eu.steel", "us.steel"):
            session.create_producer(session.create_topic(f"amq.fanout/{key}")).send(key)
        assert broker.queue("orders").depth == broker.queue("rest").depth == 1
        session.create_producer(session.create_topic("amq.direct/none")).send("dropped")
        assert broker.exchange("amq.direct").dropped == 1
    with broker:  # started anew, it is as it was made
        assert len(broker.exchange("prices").bindings()) == 1


QUEUES = {"queues": {"q": {}}}
TOPIC = {"exchanges": {"x": {"type": "topic"}}, **QUEUES}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"exchanges": {"x": {"type": "topic", "alternate": "y"}}},
     "[exchanges.x] alternate: there is no exchange 'y' in the configuration"),
    ({"exchanges": {"x": {"type": "topic", "alternate": "x"}}}, "alternate: an exchange cannot be its own"),
    ({"exchanges": {"x": {"type": "topic", "unroutable": "drop"}}}, "[exchanges.x]: unroutable must be one of"),
    ({"exchanges": {"x": {"type": "topic", "auto_delet": True}}}, "did you mean 'auto_delete'"),
    ({"exchanges": {"amq.topic": {"type": "direct"}}}, "[exchanges.amq.topic]: its type is 'topic', not 'direct'"),
    ({"exchanges": {"amq.topic": {"type": "topic", "auto_delete": True}}}, "durable, and never deleted"),
    ({"exchanges": {"amq.topic": {"type": "topic", "durable": False}}}, "durable, and never deleted"),
    ({"exchanges": {"qpid.x": {"type": "topic"}}}, "the name 'qpid.x' is reserved"),
    ({"bindings": [{}]}, "[[bindings]] 1 needs the key 'exchange'"),
    ({"bindings": [{"exchange": "x"}]}, "[[bindings]] 1 needs the key 'queue'"),
    ({"bindings": [{"exchange": "x", "queue": "q"}], **QUEUES}, "[[bindings]] 1: there is no exchange 'x'"),
    ({"bindings": [{"exchange": "amq.topics", "queue": "q"}], **QUEUES}, "did you mean 'amq.topic'?"),
    ({"bindings": [{"exchange": "", "queue": "q"}], **QUEUES}, "there is no exchange ''"),
    ({"bindings": [{"exchange": "x", "queue": "r"}], **TOPIC}, "[[bindings]] 1: there is no queue 'r'"),
    ({"bindings": [{"exchange": "x", "queue": "q", "kye": ""}], **TOPIC}, "did you mean 'key'"),
    ({"bindings": [{"exchange": "x", "queue": "q", "key": ".".join("#" * 300)}], **TOPIC}, "at most 256 words"),
    ({"bindings": [{"exchange": "x", "queue": "q", "arguments": {"a": 1}}], **TOPIC}, "knows no argument 'a'"),
    ({"bindings": [{"exchange": "x", "queue": "q", "arguments": {"x-filter-jms-selector": "= 1"}}], **TOPIC},
     "[[bindings]] 1: x-filter-jms-selector"),
    ({"bindings": [{"exchange": "x", "queue": "q", "kind": "topic"}], **TOPIC}, "'queue' or 'exchange', not 'topic'"),
    ({"bindings": [{"exchange": "amq.match", "queue": "q"}], **QUEUES}, "needs the argument 'x-match'"),
    ({"bindings": [{"exchange": "amq.match", "queue": "q", "arguments": {"x-match": "all", "a": {"b": 1}}}], **QUEUES},
     "[[bindings]] 1: the argument 'a' has a value"),
    ({"bindings": [{"exchange": "x", "queue": "q"},
                   {"exchange": "x", "queue": "q", "arguments": {"x-filter-jms-selector": "n = 1"}}], **TOPIC},
     "[[bindings]] 2: 'q' has another binding with this key and other arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "words"), WRONG)
def test_a_configuration_is_checked_whole_before_anything_is_made(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as raised:
        BrokerConfig.from_mapping(config)
    assert words in str(raised.value)


@pytest.mark.parametrize("config", [
    {"bindings": "x"}, {"bindings": {}}, {"bindings": [5]}, {"exchanges": {"x": 5}},
    {"exchanges": {"x": {"type": "topic", "durable": "yes"}}},
    {"bindings": [{"exchange": 5, "queue": "q"}], **QUEUES},
    {"bindings": [{"exchange": "amq.topic", "queue": 5}], **QUEUES},
    {"bindings": [{"exchange": "amq.topic", "queue": "q", "key": 5}], **QUEUES},
    {"bindings": [{"exchange": "amq.topic", "queue": "q", "arguments": 5}], **QUEUES},
])  # fmt: skip
def test_wrong_types_in_a_configuration(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        BrokerConfig.from_mapping(config)


def test_one_binding_said_twice_is_one() -> None:
    binding = {"exchange": "amq.fanout", "queue": "q"}
    config = BrokerConfig.from_mapping({"bindings": [binding, binding], **QUEUES})
    assert config.bindings == (Binding("amq.fanout", "q"),)


@pytest.mark.parametrize(
    "text",
    ['[exchanges."a/b"]\ntype = "topic"', '[exchanges.x]\ntype = "fan"', "exchanges = 3", "[[bindings]]", "[queues"],
)
def test_what_is_wrong_in_a_file_is_told_with_its_path(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text(text)
    with pytest.raises((ValueError, TypeError), match=re.escape(f"{path}: ")):
        EmbeddedBroker(config=path)


@pytest.mark.parametrize("type", ["direct", "topic", "fanout", "headers"])
def test_a_key_that_fits_into_no_message_is_refused(type: str) -> None:
    with EmbeddedBroker() as broker:
        broker.declare_queue("q")
        with pytest.raises(ValueError, match="half a character"):
            broker.declare_exchange("x", type).bind(
                "q", "half \ud800", {"x-match": "all"} if type == "headers" else None
            )
        assert broker.exchange("x").bindings() == []


@pytest.mark.parametrize(
    "arguments", [{"half \ud800": 1}, {"a": "half \ud800"}, {"x-a": object()}, {"x-a": 1 << 70}, {"x-half \ud800": 1}]
)
def test_arguments_that_fit_into_no_message_are_refused_for_they_would_hide_all_bindings(arguments: Any) -> None:
    with EmbeddedBroker() as broker:
        broker.declare_queue("q")
        with pytest.raises(ValueError, match=r"half a character|has no AMQP form"):
            broker.declare_exchange("x", "headers").bind("q", "k", {"x-match": "all", **arguments})
        assert broker.exchange("x").bindings() == []


def test_a_number_that_only_fits_without_a_sign_can_be_asked_for_and_told() -> None:
    with EmbeddedBroker() as broker:
        broker.declare_queue("q")
        view = broker.declare_exchange("x", "headers")
        assert view.bind("q", "k", {"x-match": "all", "a": (1 << 64) - 1})
        (binding,) = view.bindings()
        assert binding.arguments == {"x-match": "all", "a": (1 << 64) - 1} and type(binding.arguments["a"]) is ULong
