"""Links to exchanges, frame by frame: addresses, filters that bind, dynamic exchanges, what goes nowhere.

Exchanges and policy, 1.7 and 1.8. Only brokers with exchanges have these; most of it is ours, or qpid-cpp's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.values import encode, encode_described, encode_list, encode_map, encode_string
from jmsish.types import Described, Symbol, ULong
from tests.wire.frames import RECEIVER, SENDER, Frame, composite
from tests.wire.protocol.steps import ACCEPTED_ONLY, WITH_REJECTED, Client, Wire, body_of, in_transaction, message
from tests.wire.protocol.test_topics import said
from tests.wire.raw import error, like

DIRECT, TOPIC, HEADERS = (ULong(0x0000468C00000000 + number) for number in range(3))
DIRECT_NAME, TOPIC_NAME = (
    Symbol(f"apache.org:legacy-amqp-{type}-binding:string") for type in ("direct", "topic")
)  # fmt: skip
HEADERS_NAME = Symbol("apache.org:legacy-amqp-headers-binding:map")
DELETE_ON_CLOSE = {"lifetime-policy": Described(ULong(0x2B), [])}


@pytest.fixture(autouse=True)
def exchanges(wire: Wire) -> None:
    wire.ours("other brokers have no exchanges, or reach them by other addresses")


def keyed(body: str, key: str | None = None, **headers: Any) -> bytes:
    """A message with a subject and application properties."""
    subject = b"\x40" if key is None else encode_string(key)
    section = encode_described(0x73, encode_list([b"\x40", b"\x40", b"\x40", subject]))
    pairs = [each for name, value in headers.items() for each in (encode_string(name), encode(value))]
    return section + (encode_described(0x74, encode_map(pairs)) if headers else b"") + message(body)


def listen(client: Client, address: str, handle: int = 0, **fields: Any) -> Mapping[str, Any]:
    """Attach a receiver with credit; the filters that are said to be in force."""
    source = composite("source", address=address, **fields)
    client.attach_receiver(None, handle, name=f"reader-{handle}", source=source)
    attached = client.expect("attach", role=SENDER, source=like("source", address=address))
    client.flow(handle, link_credit=100, delivery_count=0)
    granted: Mapping[str, Any] | None = attached.source.fields.get("filter")
    return granted or {}


def publish(wire: Wire, address: str, *payloads: bytes) -> None:
    """Each is accepted, or dropped, before this returns."""
    client = wire.client()
    client.sender(address)
    for payload in payloads:
        number = client.transfer(payload)
        client.expect("disposition", but=("flow",), role=RECEIVER, first=number, settled=True)
    client.close()


def taken(client: Client, count: int) -> list[Any]:
    """So many bodies, and the word of the broker that there is no more."""
    bodies = [body_of(client.take().payload) for _ in range(count)]
    client.flow(0, link_credit=100, delivery_count=count, drain=True)
    client.expect("flow", handle=0, link_credit=0)
    return bodies


def refused(client: Client, condition: str, **pattern: Any) -> Frame:
    """An attach that grants nothing, then the detach that says why."""
    answer = client.expect("attach")
    assert (answer.target if answer.role == RECEIVER else answer.source) is None
    return client.expect("detach", closed=True, error=error(condition, **pattern))


@pytest.mark.parametrize(("wish", "granted"), [
    ({"f": Described(TOPIC, "a.*")}, {"f": Described(TOPIC, "a.*")}),
    ({"f": Described(TOPIC_NAME, "a.*")}, {"f": Described(TOPIC_NAME, "a.*")}),
    ({"f": "a.*"}, {"f": "a.*"}),
    ({"f": Described(TOPIC, "a.*"), "g": Described(TOPIC, "b")}, {"f": Described(TOPIC, "a.*")}),
    ({"f": Described(DIRECT, "a.*"), "g": "a.*"}, {"g": "a.*"}),
])  # fmt: skip
def test_a_topic_exchange_by_filter(client: Client, wire: Wire, wish: dict[str, Any], granted: dict[str, Any]) -> None:
    assert listen(client, "amq.topic", filter=wish) == granted
    publish(wire, "amq.topic", keyed("m1", "a.b"), keyed("m2", "b"), keyed("m3", "a."), keyed("m4"))
    assert taken(client, 2) == ["m1", "m3"]


@pytest.mark.parametrize(("wish", "granted"), [
    (Described(DIRECT, "a.*"), Described(DIRECT, "a.*")), ("a.*", "a.*"),
    (Described(DIRECT_NAME, "a.*"), Described(DIRECT_NAME, "a.*")),
    (Described(TOPIC, "a.*"), Described(DIRECT, "a.*")),
    (Described(TOPIC_NAME, "a.*"), Described(DIRECT_NAME, "a.*")),
])  # fmt: skip
def test_a_direct_exchange_by_filter(client: Client, wire: Wire, wish: Any, granted: Any) -> None:
    in_force = listen(client, "amq.direct", filter={"f": wish})
    assert in_force == {"f": granted}
    if isinstance(granted, Described):
        assert type(in_force["f"].descriptor) is type(granted.descriptor)
    publish(wire, "amq.direct/a.*", keyed("m1", "a.b"))
    publish(wire, "amq.topic", keyed("m2", "a.*"))
    assert taken(client, 1) == ["m1"]


@pytest.mark.parametrize("descriptor", [HEADERS, HEADERS_NAME])
def test_a_headers_exchange_by_filter(client: Client, wire: Wire, descriptor: Any) -> None:
    wish = {"f": Described(descriptor, {"x-match": "any", "colour": "red", "size": 9})}
    in_force = listen(client, "amq.match", filter=wish)
    assert in_force == wish and type(in_force["f"].descriptor) is type(descriptor)
    publish(wire, "amq.match", keyed("m1", colour="red"), keyed("m2", size=ULong(9)), keyed("m3", colour="blue"))
    assert taken(client, 2) == ["m1", "m2"]


@pytest.mark.parametrize(("address", "granted", "wanted"), [
    ("amq.topic", {"default-subject-filter": Described(TOPIC_NAME, "#")}, ["a", "-"]),
    ("amq.direct", {"default-subject-filter": Described(DIRECT_NAME, "")}, ["-"]),
    ("amq.match", {"default-headers-filter": Described(HEADERS_NAME, {"x-match": "all"})}, ["a", "-"]),
    ("amq.fanout", {}, ["a", "-"]),
    ("amq.topic/*", {}, ["a", "-"]), ("amq.direct/a", {}, ["a"]), ("amq.fanout/a", {}, ["a", "-"]),
])  # fmt: skip
def test_what_is_in_force_without_a_filter_is_said(
    client: Client, wire: Wire, address: str, granted: dict[str, Any], wanted: list[str]
) -> None:
    assert listen(client, address) == granted
    sender = wire.client()
    sender.sender(address.partition("/")[0], target=composite(
        "target", address=address.partition("/")[0], capabilities="DISCARD_UNROUTABLE",
    ))  # fmt: skip
    for payload in (keyed("a", "a"), keyed("-")):
        sender.transfer(payload, settled=True)
    sender.close()
    assert taken(client, len(wanted)) == wanted


def test_a_key_in_the_address_and_a_filter(client: Client, wire: Wire) -> None:
    wish = {"f": Described(TOPIC, "*.b")}
    assert listen(client, "amq.topic/a.*", filter=wish) == wish
    publish(wire, "amq.topic", *(keyed(key, key) for key in ("a.b", "a.c", "c.b", "c.c")))
    assert taken(client, 3) == ["a.b", "a.c", "c.b"]


def test_a_target_with_a_key_has_it_for_the_whole_link(client: Client, wire: Wire) -> None:
    listen(client, "amq.direct/fixed")
    publish(wire, "amq.direct/fixed", keyed("m1", "another"), keyed("m2"))
    assert taken(client, 2) == ["m1", "m2"]


@pytest.mark.parametrize(("descriptor", "wanted"), [(TOPIC, ["a.a", "a"]), (TOPIC_NAME, ["a.a", "a"]), (DIRECT, [])])
@pytest.mark.parametrize("mode", ["move", "copy"])
def test_a_subject_filter_at_a_queue(client: Client, wire: Wire, descriptor: Any, wanted: list[str], mode: str) -> None:
    """The bug of 1.8: `#.a` does not fail on `a.a`."""
    publish(wire, wire.queue, keyed("a.a", "a.a"), keyed("a.b", "a.b"), keyed("a", "a"))
    wish = {"f": Described(descriptor, "#.a")}
    assert listen(client, wire.queue, filter=wish, distribution_mode=Symbol(mode)) == wish
    assert taken(client, len(wanted)) == wanted


@pytest.mark.parametrize("wish", [
    Described(HEADERS, {"x-match": "all", "nested": {"a": 1}}), Described(HEADERS, {"x-match": "all", "nested": [1]}),
    Described(HEADERS, {"colour": "red"}), Described(HEADERS, []), Described(TOPIC, 7),
    Described(TOPIC, ".".join(["#"] * 10_000)), Described(HEADERS_NAME, {1: 2, "x-match": "all"}),
])  # fmt: skip
def test_an_illegal_filter(client: Client, wire: Wire, wish: Any) -> None:
    client.attach_receiver(None, source=composite("source", address="amq.match", filter={"f": wish}))
    refused(client, "amqp:invalid-field", info={"field": "filter"})
    client.attach_receiver("amq.match", 1, name="another")
    client.expect("attach", source=like("source", address="amq.match"))


@pytest.mark.parametrize("type", ["direct", "topic", "fanout", "headers"])
def test_a_dynamic_exchange(client: Client, wire: Wire, type: str) -> None:
    asked = {"exchange-type": type, "lifetime-policy": Described(ULong(0x2B), []), "unheard-of": 1, "durable": True}
    target = composite("target", dynamic=True, capabilities="topic", dynamic_node_properties=asked)
    client.attach_sender(None, target=target)
    made = client.expect("attach", role=RECEIVER, target=like("target", address=..., dynamic=True)).target
    assert made.dynamic_node_properties == {name: value for name, value in asked.items() if name != "unheard-of"}
    client.expect("flow")
    other = wire.client()
    listen(other, made.address)
    client.transfer(keyed("m1"))
    client.expect("disposition", but=("flow",), state="accepted")
    assert body_of(other.take().payload) == "m1"
    client.detach()
    other.expect("detach", closed=True, error=error("amqp:resource-deleted"))


@pytest.mark.parametrize("asked", [
    {"exchange-type": "unknown"}, {"durable": 1}, {"exclusive": "x"}, {"auto-delete": ULong(1)},
    {"lifetime-policy": Described(ULong(0x2F), [])},
])  # fmt: skip
def test_an_illegal_property_of_a_node(client: Client, asked: dict[str, Any]) -> None:
    client.attach_sender(None, target=composite(
        "target", dynamic=True, capabilities="topic", dynamic_node_properties=asked,
    ))  # fmt: skip
    refused(client, "amqp:invalid-field")


def test_an_alternate_that_is_not_there(client: Client) -> None:
    client.attach_sender(None, target=composite(
        "target", dynamic=True, capabilities="topic", dynamic_node_properties={"alternate-exchange": "nobody"},
    ))  # fmt: skip
    refused(client, "amqp:not-found")


def strict(client: Client, handle: int = 0, *, capability: str = "REJECT_UNROUTABLE", **fields: Any) -> Frame:
    """A sender to an exchange that nothing is bound to."""
    target = composite("target", address="amq.fanout", capabilities=capability)
    attached = client.sender(None, handle, target=target, **{"outcomes": WITH_REJECTED, **fields})
    assert like("target", capabilities=said(capability))(attached.target)
    return attached


@pytest.mark.parametrize(
    ("capability", "state"), [("REJECT_UNROUTABLE", "rejected"), ("DISCARD_UNROUTABLE", "accepted")]
)
def test_what_goes_nowhere_as_the_link_asks(client: Client, capability: str, state: str) -> None:
    strict(client, capability=capability)
    client.transfer(keyed("m1", "the.key"))
    told = client.expect("disposition", but=("flow",), role=RECEIVER, settled=True, state=state)
    if state == "rejected":
        assert like("rejected", error=error("amqp:not-found", description=lambda text: "the.key" in text))(told.state)


@pytest.mark.parametrize(("outcomes", "settled"), [(ACCEPTED_ONLY, False), (WITH_REJECTED, True)])
def test_the_link_ends_where_its_sender_cannot_hear_of_it(client: Client, outcomes: list[str], settled: bool) -> None:
    strict(client, outcomes=outcomes)
    client.transfer(keyed("m1", "the.key"), settled=settled)
    client.expect("detach", but=("flow",), closed=True, error=error("amqp:not-found"))


def test_settled_in_a_transaction_that_can_only_be_rolled_back(client: Client) -> None:
    client.controller(0)
    strict(client, 1)
    txn = client.declare()
    client.transfer(keyed("m1", "the.key"), 1, settled=True, state=in_transaction(txn))
    outcome = client.discharge(txn, fail=False)
    assert like("rejected", error=error("amqp:transaction:rollback"))(outcome)


def test_an_exchange_that_is_deleted(client: Client, wire: Wire) -> None:
    broker = wire.ours("an exchange is deleted by hand")
    broker.declare_exchange("x", "headers")
    listen(client, "x", filter={"f": Described(HEADERS, {"x-match": "all"})})
    client.sender("x/k", 1)
    broker.delete_exchange("x")
    gone = [client.expect("detach", closed=True, error=error("amqp:resource-deleted")).handle for _ in range(2)]
    assert sorted(gone) == [0, 1]


def test_a_message_comes_as_it_was_sent(client: Client, wire: Wire) -> None:
    listen(client, "amq.match", filter={"f": Described(HEADERS, {"x-match": "all", "n": 1})})
    payload = keyed("m1", "k", n=1)
    publish(wire, "amq.match", payload)
    received = client.take().payload
    assert received == payload and ReceivedMessage(received).body()[1] == "m1"
