"""Dynamic nodes, temporary queues, nodes that go, and what is not offered (Part 3, 3.5; JMS mapping)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.types import Array, Described, Symbol, UInt, ULong
from tests.wire.frames import RECEIVER, SENDER, Raw, composite
from tests.wire.protocol.steps import Client, Wire, body_of, in_transaction
from tests.wire.raw import error, like

DELETE_ON_CLOSE = {"lifetime-policy": Described(ULong(0x2B), [])}


def make(client: Client, kind: str = "source", *, capability: str | None = None) -> str:
    """Attach a link with a dynamic node; its address."""
    terminus = dynamic(kind, capabilities=capability, dynamic_node_properties=DELETE_ON_CLOSE)
    if kind == "source":
        client.attach_receiver(None, source=terminus)
        source = client.expect("attach", role=SENDER, source=like("source", address=..., dynamic=True)).source
        address: str = source.address
        return address
    client.attach_sender(None, target=terminus)
    target = client.expect("attach", role=RECEIVER, target=like("target", address=..., dynamic=True)).target
    client.expect("flow")
    address = target.address
    return address


def dynamic(kind: str, **fields: Any) -> Raw:
    return composite(kind, dynamic=True, **fields)


def exists(wire: Wire, address: str) -> bool:
    """Whether somebody else may attach to it."""
    other = wire.client()
    other.attach_receiver(address, name="look")
    attached = other.expect("attach")
    other.drop()
    return attached.source is not None


@pytest.mark.parametrize("kind", ["source", "target"])
def test_a_dynamic_node_lives_as_long_as_its_link(client: Client, wire: Wire, kind: str) -> None:
    address = make(client, kind)
    assert exists(wire, address)
    client.detach()
    assert not exists(wire, address)


@pytest.mark.parametrize("kind", ["source", "target"])
def test_a_detach_that_is_no_close_keeps_it(client: Client, wire: Wire, kind: str) -> None:
    """The link comes again by its name and has its node again (2.6.3), until it is closed."""
    address = make(client, kind)
    client.detach(closed=False)
    assert exists(wire, address)
    assert make(client, kind) == address
    client.detach()
    assert not exists(wire, address)


def test_a_link_of_the_same_name_in_the_other_direction_has_another_node(client: Client) -> None:
    source = make(client, "source")
    client.detach(closed=False)
    assert make(client, "target") != source


@pytest.mark.parametrize("ending", ["end", "close", "drop"])
def test_a_dynamic_node_goes_with_session_or_connection(client: Client, wire: Wire, ending: str) -> None:
    address = make(client)
    if ending == "drop":
        client.drop()
    else:
        client.say(ending, client.channel if ending == "end" else 0)
        client.expect(ending)
    assert not exists(wire, address)


def test_a_dynamic_node_is_a_queue(client: Client, wire: Wire) -> None:
    address = make(client)
    wire.put("m", queue=address)
    client.flow(0, link_credit=1, delivery_count=0)
    assert body_of(client.take().payload) == "m"


def test_a_dynamic_source_with_an_address(client: Client, wire: Wire) -> None:
    """3.5.3: "if dynamic is set to true the address MUST NOT be set"."""
    wire.ours("others take the one or the other")
    client.attach_receiver(None, source=dynamic("source", address=wire.queue))
    client.expect("attach", source=None)
    client.expect("detach", closed=True, error=error("amqp:invalid-field"))


@pytest.mark.parametrize("policy", range(0x2B, 0x2F))
def test_lifetime_policies(client: Client, wire: Wire, policy: int) -> None:
    """All that the standard has are honoured; the answer says which one it is."""
    properties = {"lifetime-policy": Described(ULong(policy), [])}
    client.attach_receiver(None, source=dynamic("source", dynamic_node_properties=properties))
    granted = client.expect("attach", role=SENDER, source=...).source.dynamic_node_properties
    if not wire.foreign:
        assert granted == properties


@pytest.mark.parametrize("policy", [UInt(0xFFFFFFFF), Symbol("delete-on-close"), Described(ULong(0x24), [])], ids=repr)
def test_a_lifetime_policy_that_is_none(client: Client, policy: object) -> None:
    """3.5.9: "the value of this entry MUST be of a type which provides the lifetime-policy archetype"."""
    client.attach_receiver(None, source=dynamic("source", dynamic_node_properties={"lifetime-policy": policy}))
    _refused(client)


@pytest.mark.parametrize("modes", [UInt(0), Array([UInt(1)], 0x70)], ids=repr)
def test_distribution_modes_that_are_none(client: Client, modes: object) -> None:
    client.attach_sender(None, target=dynamic("target", dynamic_node_properties={"supported-dist-modes": modes}))
    _refused(client)


@pytest.mark.parametrize("modes", [Symbol("move"), Array([Symbol("move"), Symbol("copy")], 0xA3)], ids=repr)
def test_distribution_modes(client: Client, modes: object) -> None:
    client.attach_sender(None, target=dynamic("target", dynamic_node_properties={"supported-dist-modes": modes}))
    client.expect("attach", target=like("target", address=...))


def _refused(client: Client) -> None:
    answer = client.expect("attach", "end", "close")
    if answer.name == "attach":
        assert (answer.target if answer.role == RECEIVER else answer.source) is None
        answer = client.expect("detach", closed=True)
    assert answer.condition in ("amqp:decode-error", "amqp:invalid-field")


# -- temporary queues of JMS -------------------------------------------------------------------------------------------


def test_a_temporary_queue_goes_with_its_connection(client: Client, wire: Wire) -> None:
    address = make(client, "target", capability="temporary-queue")
    client.close()
    assert not exists(wire, address)


def test_its_own_connection_receives_from_a_temporary_queue(client: Client) -> None:
    address = make(client, "target", capability="temporary-queue")
    client.transfer("m")
    client.expect("disposition", state="accepted")
    client.receiver(address, 1, name="reader", credit=1)
    assert body_of(client.take().payload) == "m"


def test_another_connection_does_not(client: Client, wire: Wire) -> None:
    address = make(client, "target", capability="temporary-queue")
    other = wire.client()
    other.attach_receiver(address)
    other.expect("attach", source=None)
    other.expect("detach", closed=True, error=error("amqp:resource-locked"))
    other.close()


def test_another_connection_sends_to_a_temporary_queue(client: Client, wire: Wire) -> None:
    address = make(client, "source", capability="temporary-queue")
    other = wire.client()
    other.sender(address)
    other.transfer("reply")
    other.expect("disposition", state="accepted")
    client.flow(0, link_credit=1, delivery_count=0)
    assert body_of(client.take().payload) == "reply"


# -- nodes that go -----------------------------------------------------------------------------------------------------


def test_the_links_of_a_deleted_queue_are_told(client: Client, wire: Wire) -> None:
    broker = wire.ours("it deletes the queue")
    client.sender(wire.queue, 0, name="sender")
    client.receiver(wire.queue, 1, name="receiver", credit=1)
    broker.delete_queue(wire.queue)
    told = [client.expect("detach", closed=True, error=error("amqp:resource-deleted")).handle for _ in range(2)]
    assert sorted(told) == [0, 1]


def test_a_transaction_with_a_post_to_a_deleted_queue(client: Client, wire: Wire) -> None:
    broker = wire.ours("it deletes the queue")
    client.controller(0)
    client.sender(wire.queue, 1)
    txn = client.declare()
    client.transfer("m", 1, state=in_transaction(txn))
    client.expect("disposition", state="transactional-state")
    broker.delete_queue(wire.queue)
    client.expect("detach", error=error("amqp:resource-deleted"))
    outcome = client.discharge(txn)
    assert outcome.name == "rejected" and outcome.condition == "amqp:transaction:rollback"


def test_a_transaction_with_a_retirement_from_a_deleted_queue(client: Client, wire: Wire) -> None:
    broker = wire.ours("it deletes the queue")
    wire.put("m")
    client.controller(0)
    txn = client.declare()
    client.receiver(wire.queue, 1, credit=1)
    number = client.take().delivery_id
    client.dispose(number, state=in_transaction(txn, composite("accepted")))
    broker.delete_queue(wire.queue)
    client.expect("detach", error=error("amqp:resource-deleted"))
    outcome = client.discharge(txn)
    assert outcome.name == "rejected" and outcome.condition == "amqp:transaction:rollback"


def test_no_queue_is_made_of_a_name_that_was_a_temporary_one(client: Client, wire: Wire) -> None:
    address = make(client)
    client.detach()
    client.attach_sender(address)
    client.expect("attach", target=None)
    client.expect("detach", closed=True, error=error("amqp:not-found"))
