"""Topics and subscriptions as Qpid JMS attaches to them, frame by frame (M45, M53 to M72, M103)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.types import Array, Described, Symbol, UInt, ULong
from tests.wire.frames import RECEIVER, SENDER, Frame, Raw, composite
from tests.wire.protocol.steps import ALL_OUTCOMES, Client, Wire, body_of
from tests.wire.raw import error, like

SELECTOR = Described(ULong(0x0000468C00000004), "TRUE")
NO_LOCAL = Described(ULong(0x0000468C00000003), "NoLocalFilter{}")
DELETE_ON_CLOSE = {Symbol("lifetime-policy"): Described(ULong(0x2B), [])}
COUNTED = composite("modified", delivery_failed=True)


def said(*names: str) -> Any:
    """Symbols in whatever form several are written."""
    return lambda value: [*value] == [*names] if isinstance(value, Array) else (value,) == names


def source(topic: str, *, durable: bool = False, shared: tuple[str, ...] = (), **fields: Any) -> Raw:
    """What M54 to M56 say of the source of a subscription."""
    lasting: dict[str, Any] = {"expiry_policy": "link-detach"}
    if durable:
        lasting = {"durable": UInt(2), "expiry_policy": "never", "distribution_mode": "copy"}
    return composite(
        "source", address=topic, outcomes=ALL_OUTCOMES, default_outcome=COUNTED, capabilities=["topic", *shared],
        **lasting, **fields,
    )  # fmt: skip


def subscribe(client: Client, name: str, topic: str, handle: int = 0, *, credit: int = 10, **wishes: Any) -> Frame:
    client.attach_receiver(None, handle, name=name, source=source(topic, **wishes))
    attached = client.expect("attach", role=SENDER, name=name, source=...)
    if credit:
        client.flow(handle, link_credit=credit, delivery_count=0)
    return attached


def publish(wire: Wire, topic: str, *bodies: str) -> None:
    client = wire.client()
    client.sender(None, target=composite("target", address=topic, capabilities="topic"))
    for body in bodies:
        client.transfer(body, settled=True)
    client.close()


def look_up(client: Client, name: str, handle: int = 0, *, desired: list[str] | None = None) -> Frame:
    """M68: the first link name, no source."""
    client.attach_receiver(None, handle, name=name, source=None, desired_capabilities=desired)
    return client.expect("attach", role=SENDER, name=name)


def test_m45_m53_m55_a_subscription_that_is_not_durable(client: Client, wire: Wire) -> None:
    attached = subscribe(client, "qpid-jms:receiver:1:1:1:topic", wire.queue)
    assert like("source", address=wire.queue, expiry_policy="link-detach", capabilities=said("topic"))(attached.source)
    publish(wire, wire.queue, "m1", "m2")
    assert [body_of(client.take().payload) for _ in range(2)] == ["m1", "m2"]
    client.dispose(0, 1)
    client.detach()
    publish(wire, wire.queue, "m3")
    subscribe(client, "qpid-jms:receiver:1:1:2:topic", wire.queue)
    publish(wire, wire.queue, "m4")
    assert body_of(client.take().payload) == "m4"


def test_m55_m62_m67_a_durable_subscription_waits_for_its_client(wire: Wire) -> None:
    client = wire.client()
    attached = subscribe(client, "sub", wire.queue, durable=True)
    assert like("source", durable=2, expiry_policy="never", distribution_mode="copy")(attached.source)
    client.detach(closed=False)
    client.close()
    publish(wire, wire.queue, "m1")
    again = wire.peer()
    again.open(container_id=client.name)
    again.begin()
    subscribe(again, "sub", wire.queue, durable=True)
    assert body_of(again.take().payload) == "m1"
    again.dispose(0)
    again.detach()


@pytest.mark.parametrize(("names", "desired", "shared"), [
    (["sub", "sub|2"], None, ("shared",)),
    (["sub|global", "sub|global2"], ["shared", "global"], ("shared", "global")),
])  # fmt: skip
def test_m56_m62_m68_a_shared_durable_subscription(
    client: Client, wire: Wire, names: list[str], desired: list[str] | None, shared: tuple[str, ...]
) -> None:
    names = [wire.queue + name for name in names]
    for handle, name in enumerate(names):
        subscribe(client, name, wire.queue, handle, durable=True, shared=shared)
    publish(wire, wire.queue, "m1", "m2")
    taken = [client.take() for _ in range(2)]
    assert sorted(frame.handle for frame in taken) == [0, 1]
    client.dispose(0, 1)
    for handle in (0, 1):
        client.detach(handle, closed=False)
    found = look_up(client, names[0], 2, desired=desired)
    assert like("source", address=wire.queue, durable=2, expiry_policy="never")(found.source)
    client.detach(2)
    gone = look_up(client, names[0], 3, desired=desired)
    assert gone.source is None
    client.expect("detach", closed=True, error=error("amqp:not-found"))


def test_m68_to_ask_for_an_unknown_name(client: Client) -> None:
    """M66: an attach without a source, then the detach that says why."""
    assert look_up(client, "nobody").source is None
    client.expect("detach", closed=True, error=error("amqp:not-found"))


def test_m72_to_end_a_subscription_that_is_read(client: Client, wire: Wire) -> None:
    subscribe(client, "sub|global", wire.queue, durable=True, shared=("shared", "global"))
    other = wire.client()
    assert look_up(other, "sub|global", desired=["shared", "global"]).source is not None
    other.say("detach", other.channel, handle=0, closed=True)
    other.expect("detach", closed=True, error=error("amqp:resource-locked"))
    client.detach()


def test_m71_a_second_reader_of_a_durable_subscription(client: Client, wire: Wire) -> None:
    subscribe(client, "sub", wire.queue, durable=True)
    other = wire.peer()
    other.open(container_id=client.name)
    other.begin()
    other.attach_receiver(None, name="sub", source=source(wire.queue, durable=True))
    other.expect("attach", role=SENDER, source=None)
    other.expect("detach", closed=True, error=error("amqp:resource-locked"))
    client.detach()


@pytest.mark.parametrize("wish", [
    {"jms-selector": SELECTOR, "no-local": NO_LOCAL},
    {"selector": Described(Symbol("apache.org:selector-filter:string"), "TRUE")},
    {"x": Described(Symbol("apache.org:no-local-filter:list"), [])},
])  # fmt: skip
def test_m57_m58_m61_filters_in_force_come_back_as_they_were_said(
    client: Client, wire: Wire, wish: dict[str, Any]
) -> None:
    unknown = {"unknown": Described(Symbol("example:unknown-filter"), "x")}
    attached = subscribe(client, "link", wire.queue, filter={**wish, **unknown})
    granted = attached.source.fields["filter"]
    assert granted == wish
    assert [type(value.descriptor) for value in granted.values()] == [type(each.descriptor) for each in wish.values()]


def test_m57_a_selector_that_is_none(client: Client, wire: Wire) -> None:
    wish = {"jms-selector": Described(ULong(0x0000468C00000004), "= 1")}
    client.attach_receiver(None, source=source(wire.queue, filter=wish))
    client.expect("attach", role=SENDER, source=None)
    client.expect("detach", closed=True, error=error("amqp:invalid-field"))


def test_m103_m104_a_temporary_topic(client: Client, wire: Wire) -> None:
    target = composite(
        "target", dynamic=True, capabilities="temporary-topic", expiry_policy="link-detach",
        dynamic_node_properties=DELETE_ON_CLOSE,
    )  # fmt: skip
    client.attach_sender(None, name="qpid-jms:temp-topic-creator:ID:1", target=target)
    made = client.expect("attach", role=RECEIVER).target
    assert like("target", address=..., dynamic=True, capabilities=said("temporary-topic"))(made)
    client.expect("flow")
    client.attach_receiver(None, 1, name="reader", source=source(made.address))
    client.expect("attach", role=SENDER, source=...)
    client.flow(1, link_credit=10, delivery_count=0)
    publish(wire, made.address, "m1")
    assert body_of(client.take().payload) == "m1"
    other = wire.client()
    other.attach_receiver(None, source=source(made.address))
    other.expect("attach", source=None)
    other.expect("detach", closed=True)
    client.dispose(0)
    client.say("detach", client.channel, handle=1, closed=True)
    client.expect("detach", closed=True)
    client.detach()
    other.attach_sender(None, 1, name="late", target=composite("target", address=made.address, capabilities="topic"))
    other.expect("attach", target=None)
    other.expect("detach", closed=True, error=error("amqp:not-found"))


def test_m73_the_same_link_name_from_two_connections_is_one_shared_subscription(client: Client, wire: Wire) -> None:
    """Without the numbers of M62: that is how qpid-cpp and its clients share. The capability is what says it."""
    wire.ours("elsewhere the names of M62 are needed")
    other = wire.client()
    for each in (client, other):
        subscribe(each, wire.queue + "sub", wire.queue, durable=True, shared=("shared", "global"))
    publish(wire, wire.queue, "m1", "m2")
    taken = [body_of(each.take().payload) for each in (client, other)]
    assert sorted(taken) == ["m1", "m2"]


@pytest.mark.parametrize("name", ["share:group:prices", "prices", "private:app:prices"])
def test_m74_a_link_name_is_no_wish(client: Client, wire: Wire, name: str) -> None:
    """IBM MQ shares by the link name, and takes an address without a capability for a topic; here only what is said as
    a capability counts: each of the two has all messages of the topic, and an address without any is a queue."""
    wire.ours("what a name means elsewhere is its own affair")
    for each in (client, other := wire.client()):
        subscribe(each, name, wire.queue)
    publish(wire, wire.queue, "m1")
    assert [body_of(each.take().payload) for each in (client, other)] == ["m1", "m1"]
    wire.put("m2", queue="m74." + wire.queue)
    assert wire.take("m74." + wire.queue) == ["m2"]
