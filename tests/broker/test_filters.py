"""Filters: which of a source's wishes are in force, and that the answer says exactly these."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import Modified
from jmsish.engine.values import encode, encode_described, encode_map, encode_string
from jmsish.types import Described, Symbol, ULong
from tests.broker.pubsub import (
    NO_LOCAL_CODE,
    SELECTOR_CODE,
    attach,
    condition,
    durable,
    no_local,
    only,
    publisher,
    selector,
    shared,
    shared_durable,
    subscriber,
)
from tests.broker.world import Receiver, World, message

SELECTOR_FORMS = [
    SELECTOR_CODE, Symbol("apache.org:selector-filter:string"), Symbol("apache.org:jms-selector-filter:string"),
]  # fmt: skip
NO_LOCAL_FORMS = [
    NO_LOCAL_CODE, Symbol("apache.org:no-local-filter:list"), Symbol("apache.org:jms-no-local-filter:list"),
]  # fmt: skip


def coloured(colour: str) -> bytes:
    """A message whose body is its colour."""
    payload = message(colour)
    properties = encode_described(0x74, encode_map([encode_string("colour"), encode(colour)]))
    return properties + payload


def send_colours(sender: Any, *colours: str) -> None:
    for colour in colours:
        sender.transfer(coloured(colour))
    sender.world.run()


def in_force(receiver: Receiver) -> dict[Any, Any]:
    return dict(receiver.link.remote_source.filter or {})


# --- selectors


@pytest.mark.parametrize("descriptor", SELECTOR_FORMS)
@pytest.mark.parametrize("key", ["jms-selector", "selector", "anything"])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_m57_m59_m60_m61_a_selector_is_known_by_its_descriptor_and_echoed_as_it_came(
    world: World, descriptor: Any, key: str, kind: str
) -> None:
    peer = world.connect()
    wish = {Symbol(key): Described(descriptor, "colour = 'red'")}
    receiver = attach(peer, address="d", capabilities=(kind,), filter=wish)
    send_colours(publisher(peer, "d") if kind == "topic" else peer.sender("d"), "red", "green", "red")
    assert receiver.receive() == ["red", "red"]
    assert in_force(receiver) == wish
    (answer,) = in_force(receiver).values()
    assert type(answer.descriptor) is type(descriptor)


def test_rule_140_a_selector_of_a_subscription_filters_what_is_added(world: World) -> None:
    peer = world.connect()
    receiver = durable(peer, filter=selector("colour = 'red'"), credit=0)
    send_colours(publisher(peer), "red", "green")
    assert world.broker.queue(only(world).queue).enqueued == 1
    assert only(world).selector == "colour = 'red'"
    assert receiver.receive(10) == ["red"]
    exchange = world.broker.exchange("amq.topic")
    assert (exchange.received, exchange.routed, exchange.dropped) == (2, 1, 1)


def test_a_browser_honours_its_selector(world: World) -> None:
    peer = world.connect()
    send_colours(peer.sender("q"), "red", "green", "red")
    browser = attach(peer, address="q", distribution_mode="copy", filter=selector("colour = 'red'"))
    assert browser.receive() == ["red", "red"] and in_force(browser) == selector("colour = 'red'")
    assert world.depth("q") == (3, 0)


def test_a_selector_may_look_at_the_delivery_count(world: World) -> None:
    peer = world.connect()
    plain = attach(peer, address="q", credit=1)
    peer.sender("q").send("m1")
    again = attach(peer, address="q", filter=selector("JMSXDeliveryCount > 1"))
    assert again.receive() == []
    plain.dispose(plain.take(), Modified(delivery_failed=True))
    assert again.receive() == ["m1+1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [("colour = ", "colour = "), ("(" * 10_000, None), ("a = 'x" + "y" * 100_000, None),
     (7, "a selector is a string"), (None, "a selector is a string"), ([], "a selector is a string")],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_bad_selector_is_refused_by_the_field(world: World, text: Any, words: str | None, kind: str) -> None:
    world.broker.declare_queue("d")
    refused = attach(world.connect(), address="d", capabilities=(kind,), filter=selector(text))
    assert condition(refused) == "amqp:invalid-field"
    assert refused.error is not None and refused.error.info == {"field": "filter"}
    assert words is None or words in str(refused.error.description)
    assert world.broker.subscriptions() == [] and world.broker.queue("d").consumer_count == 0


def test_a_bad_selector_makes_nothing(world: World) -> None:
    peer = world.connect()
    for wish in ({"address": "new"}, {"dynamic": True}, {"dynamic": True, "capabilities": ("temporary-topic",)}):
        assert condition(attach(peer, filter=selector("= 1"), **wish)) == "amqp:invalid-field"
    assert world.broker.queues() == [] and len(world.broker.exchanges()) == 4


@pytest.mark.parametrize("text", ["", "   "])
def test_rule_180_a_blank_selector_selects_everything(world: World, text: str) -> None:
    peer = world.connect()
    receiver = subscriber(peer, filter=selector(text))
    publisher(peer).send("m1")
    assert receiver.receive() == ["m1"] and only(world).selector is None


def test_of_two_selectors_the_first_is_in_force(world: World) -> None:
    peer = world.connect()
    first, second = Described(SELECTOR_CODE, "colour = 'red'"), Described(SELECTOR_CODE, "colour = 'green'")
    receiver = subscriber(peer, filter={Symbol("a"): first, Symbol("b"): second})
    send_colours(publisher(peer), "red", "green")
    assert receiver.receive() == ["red"] and in_force(receiver) == {"a": first}


# --- what is not known


@pytest.mark.parametrize("value", [
    Symbol("colour"), Described(ULong(0x0000468C00000005), "xquery"), Described(Symbol("example:filter"), "x"),
    Described(3.5, "x"), None, 7,
])  # fmt: skip
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_m61_what_is_not_known_is_not_in_force_and_not_echoed(world: World, value: Any, kind: str) -> None:
    receiver = attach(world.connect(), address="d", capabilities=(kind,), filter={Symbol("f"): value})
    assert not receiver.detached and in_force(receiver) == {}


# --- no-local


@pytest.mark.parametrize("descriptor", NO_LOCAL_FORMS)
@pytest.mark.parametrize("value", ["NoLocalFilter{}", [], None, True])
def test_m58_no_local_is_anything_described_so(world: World, descriptor: Any, value: Any) -> None:
    peer, other = world.connect(), world.connect()
    receiver = subscriber(peer, filter=no_local(value, descriptor))
    publisher(peer).send("mine")
    publisher(other).send("theirs")
    assert receiver.receive() == ["theirs"]
    assert in_force(receiver) == no_local(value, descriptor) and only(world).no_local


def test_no_local_on_a_queue_is_not_in_force_and_not_echoed(world: World) -> None:
    peer = world.connect()
    receiver = attach(peer, address="q", filter={**no_local(), **selector("colour = 'red'")})
    send_colours(peer.sender("q"), "red")
    assert receiver.receive() == ["red"] and in_force(receiver) == selector("colour = 'red'")


@pytest.mark.parametrize("attach_shared", [shared, shared_durable])
def test_no_local_on_a_shared_subscription_is_not_in_force_and_not_echoed(world: World, attach_shared: Any) -> None:
    peer = world.connect()
    receiver = attach_shared(peer, filter=no_local())
    publisher(peer).send("mine")
    assert receiver.receive() == ["mine"] and in_force(receiver) == {}


def test_rule_124_no_local_of_a_non_durable_subscription_is_by_connection(world: World) -> None:
    """Two connections of one client id are two: what the other publishes is not local."""
    peer, same = world.connect("client"), world.connect("client")
    receiver = subscriber(peer, filter=no_local())
    publisher(peer).send("mine")
    publisher(same).send("of my other connection")
    relay = peer.sender(None)
    assert receiver.receive() == ["of my other connection"] and not relay.detached


def test_rule_125_no_local_of_a_durable_subscription_is_by_client_id_too(world: World) -> None:
    peer, same, other = world.connect("client"), world.connect("client"), world.connect("other")
    receiver = durable(peer, filter=no_local())
    for number, publishing in enumerate((peer, same, other)):
        publisher(publishing).send(f"m{number}")
    assert receiver.receive() == ["m2"]
    receiver.detach(closed=False)
    peer.close()
    publisher(same).send("m3")
    publisher(other).send("m4")
    again = world.connect("client")
    assert durable(again, filter=no_local(), credit=0).receive(10)[-1] == "m4"
    assert world.broker.queue(only(world).queue).enqueued == 2


def test_no_local_and_a_selector_together(world: World) -> None:
    peer, other = world.connect(), world.connect()
    wish = {**no_local(), **selector("colour = 'red'")}
    receiver = subscriber(peer, filter=wish)
    for sender in (publisher(peer), publisher(other)):
        send_colours(sender, "red", "green")
    assert receiver.receive() == ["red"] and in_force(receiver) == wish


# --- priority of a consumer


@pytest.mark.parametrize("name", ["priority", "rabbitmq:priority"])
def test_the_priority_of_a_consumer_is_a_property_of_its_link(world: World, name: str) -> None:
    peer = world.connect()
    usual = attach(peer, address="q", credit=10)
    high = attach(peer, address="q", credit=2, link={"properties": {Symbol(name): 5}})
    low = attach(peer, address="q", credit=10, link={"properties": {Symbol(name): -1}})
    peer.sender("q").send("m1", "m2", "m3")
    assert (high.receive(), usual.receive(), low.receive()) == (["m1", "m2"], ["m3"], [])


@pytest.mark.parametrize("value", ["5", True, 5.0, None])
def test_a_priority_that_is_no_whole_number_is_none(world: World, value: Any) -> None:
    peer = world.connect()
    usual = attach(peer, address="q", credit=10)
    odd = attach(peer, address="q", credit=10, link={"properties": {Symbol("priority"): value}})
    peer.sender("q").send("m1", "m2")
    assert usual.receive() == ["m1"] and odd.receive() == ["m2"]
