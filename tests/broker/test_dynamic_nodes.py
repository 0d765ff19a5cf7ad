"""Dynamic nodes: what a link may ask of the queue or exchange that is made for it, and how long that lives.

Exchanges and policy, 1.7; the standard, 3.5.9 to 3.5.13.
"""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import Target
from jmsish.types import Array, Described, Symbol, ULong
from tests.broker.pubsub import attach, condition
from tests.broker.world import Peer, World

TOPIC = "topic"
TYPES = ("direct", TOPIC, "fanout", "headers")


@pytest.fixture
def peer(world: World) -> Peer:
    """One client of a broker with an exchange of each type, named by it."""
    for type in TYPES:
        world.broker.declare_exchange(type, type, unroutable="discard")
    return world.connect("client")


def made(peer: Peer, role: str = "target", *, kind: str = "topic", **wishes: Any) -> tuple[Any, str, dict[Any, Any]]:
    """A link with a dynamic node; its address, and what is said of it."""
    asked = {Symbol(name.replace("_", "-")): value for name, value in wishes.items()}
    options: dict[str, Any] = {"dynamic": True, "capabilities": (kind,), "dynamic_node_properties": asked or None}
    if role == "target":
        end: Any = peer.sender(target=Target(**options))
        terminus = end.link.remote_target
    else:
        end = attach(peer, **options)
        terminus = end.link.remote_source
    assert not end.detached, end.error
    return end, terminus.address, dict(terminus.dynamic_node_properties or {})


def policy(code: int) -> Described:
    return Described(ULong(code), [])


ON_CLOSE = {"lifetime-policy": policy(0x2B)}


@pytest.mark.parametrize("type", TYPES)
def test_a_dynamic_target_with_the_capability_topic_is_an_exchange(world: World, peer: Peer, type: str) -> None:
    _, address, said = made(peer, exchange_type=type)
    view = world.broker.exchange(address)
    assert view.type == type and said == {"exchange-type": type, **ON_CLOSE}
    receiver = attach(peer, address=address)
    peer.sender(address).send("m1")
    assert receiver.receive() == ["m1"]


def test_its_type_is_topic_if_nothing_is_said(world: World, peer: Peer) -> None:
    _, address, said = made(peer)
    assert world.broker.exchange(address).type == TOPIC and said == ON_CLOSE


@pytest.mark.parametrize("role", ["target", "source"])
@pytest.mark.parametrize("kind", ["topic", "queue"])
def test_what_is_honoured_is_echoed_and_nothing_else(world: World, peer: Peer, role: str, kind: str) -> None:
    alternate = {} if kind == "queue" else {"alternate_exchange": "fanout"}
    _, address, said = made(
        peer, role, kind=kind, durable=True, exclusive=True, auto_delete=True, unheard_of=1,
        lifetime_policy=policy(0x2C), supported_dist_modes=Symbol("copy"), exchange_type="direct", **alternate,
    )  # fmt: skip
    modes = said.pop("supported-dist-modes")
    common = {"durable": True, "exclusive": True, "auto-delete": True, "lifetime-policy": policy(0x2C)}
    if kind == "topic":
        view = world.broker.exchange(address)
        assert said == {**common, "exchange-type": "direct", "alternate-exchange": "fanout"} and modes == "copy"
        assert view.settings.durable and view.settings.alternate == "fanout" and view.type == "direct"
    else:
        assert said == common and list(modes) == ["move", "copy"]
        assert world.broker.queue(address).settings.durable


def test_an_alternate_exchange_of_a_queue_is_not_honoured(peer: Peer) -> None:
    _, _, said = made(peer, kind="queue", alternate_exchange="fanout")
    assert said == ON_CLOSE


def test_exclusive_is_for_the_connection_that_made_it(world: World, peer: Peer) -> None:
    for kind in ("queue", "topic"):
        _, address, _ = made(peer, kind=kind, exclusive=True)
        assert condition(attach(world.connect(), address=address)) == "amqp:resource-locked"
        assert not attach(peer, address=address).detached
        assert not world.connect().sender(address).detached


@pytest.mark.parametrize(("name", "value", "refused"), [
    ("durable", 1, "amqp:invalid-field"), ("exclusive", "yes", "amqp:invalid-field"),
    ("auto-delete", 0, "amqp:invalid-field"), ("exchange-type", "unknown", "amqp:invalid-field"),
    ("exchange-type", 7, "amqp:invalid-field"), ("exchange-type", [], "amqp:invalid-field"),
    ("alternate-exchange", 7, "amqp:invalid-field"), ("alternate-exchange", "nobody", "amqp:not-found"),
    ("lifetime-policy", Described(ULong(0x2F), []), "amqp:invalid-field"), ("lifetime-policy", 7, "amqp:invalid-field"),
    ("lifetime-policy", Described([], []), "amqp:invalid-field"), ("supported-dist-modes", 7, "amqp:invalid-field"),
])  # fmt: skip
def test_an_illegal_property_is_refused_and_nothing_is_made(
    world: World, peer: Peer, name: str, value: Any, refused: str
) -> None:
    target = Target(dynamic=True, capabilities=("topic",), dynamic_node_properties={Symbol(name): value})
    sender = peer.sender(target=target)
    assert condition(sender) == refused and name in str(sender.error.description)  # type: ignore[union-attr]
    assert len(world.broker.exchanges()) == 8 and world.broker.queues() == []


def exists(world: World, address: str) -> bool:
    return address in {
        *(view.name for view in world.broker.queues()),
        *(view.name for view in world.broker.exchanges()),
    }


@pytest.mark.parametrize("form", [policy(0x2B), Described(Symbol("amqp:delete-on-close:list"), [])])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_on_close_it_goes_with_its_link(world: World, peer: Peer, kind: str, form: Described) -> None:
    end, address, said = made(peer, kind=kind, lifetime_policy=form)
    reader = attach(world.connect(), address=address)
    end.detach()
    assert said == {"lifetime-policy": form} and not exists(world, address)
    assert condition(reader) == "amqp:resource-deleted"


@pytest.mark.parametrize("code", [0x2C, 0x2E])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_on_no_links_it_goes_with_the_last_link(world: World, peer: Peer, kind: str, code: int) -> None:
    end, address, said = made(peer, kind=kind, lifetime_policy=policy(code))
    reader, sender = (
        attach(world.connect(), address=address, expiry_policy="link-detach"),
        world.connect().sender(address),
    )
    assert said == {"lifetime-policy": policy(code)}
    for left in (end, reader):
        left.detach()
        world.advance(1)
        assert exists(world, address)
    sender.detach()
    world.advance(1)
    assert not exists(world, address)


@pytest.mark.parametrize(("code", "stays"), [(0x2C, False), (0x2D, True), (0x2E, True)])
def test_messages_keep_a_queue_where_the_policy_says_so(world: World, peer: Peer, code: int, stays: bool) -> None:
    end, address, _ = made(peer, kind="queue", lifetime_policy=policy(code))
    end.send("m1", "m2")
    end.detach()
    world.advance(1)
    assert exists(world, address) == stays
    if not stays:
        return
    reader = attach(world.connect(), address=address)
    first, second = reader.take()
    reader.accept([first])
    world.advance(1)
    assert exists(world, address)
    reader.accept([second])
    world.advance(1)
    assert exists(world, address) == (code == 0x2E)  # there a link of its own keeps it
    reader.detach()
    world.advance(1)
    assert not exists(world, address)


@pytest.mark.parametrize("code", [0x2C, 0x2D, 0x2E])
def test_it_may_outlive_the_connection_that_made_it(world: World, peer: Peer, code: int) -> None:
    end, address, _ = made(peer, kind="queue", lifetime_policy=policy(code))
    end.send("m1")
    reader = attach(world.connect(), address=address, credit=0)
    peer.close()
    world.advance(1)
    assert reader.receive(1) == ["m1"] and exists(world, address)


@pytest.mark.parametrize("code", [0x2B, 0x2C, 0x2D, 0x2E])
@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize("closed", [True, False])
def test_an_exclusive_one_never_outlives_its_connection(
    world: World, peer: Peer, kind: str, code: int, closed: bool
) -> None:
    end, address, _ = made(peer, kind=kind, lifetime_policy=policy(code), exclusive=True)
    sender = world.connect().sender(address)
    if kind == "queue":
        end.send("m1")
    end.detach(closed=closed)
    world.advance(1)
    peer.close()
    world.advance(1)
    assert not exists(world, address) and condition(sender) == "amqp:resource-deleted"


@pytest.mark.parametrize("wishes", [{"durable": True}, {"auto_delete": False}])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_durable_one_stays_until_it_is_deleted(world: World, peer: Peer, kind: str, wishes: dict[str, Any]) -> None:
    end, address, said = made(peer, kind=kind, **wishes)
    assert "lifetime-policy" not in said
    end.detach()
    peer.close()
    world.advance(1)
    assert exists(world, address)
    (world.broker.delete_queue if kind == "queue" else world.broker.delete_exchange)(address)
    assert not exists(world, address)


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_auto_delete_is_on_no_links(world: World, peer: Peer, kind: str) -> None:
    end, address, said = made(peer, kind=kind, durable=True, auto_delete=True)
    assert said == {"durable": True, "auto-delete": True, "lifetime-policy": policy(0x2C)}
    end.detach()
    world.advance(1)
    assert not exists(world, address)


def test_a_policy_comes_before_auto_delete(peer: Peer) -> None:
    assert made(peer, auto_delete=False, lifetime_policy=policy(0x2C))[2] == {"lifetime-policy": policy(0x2C)}


def test_modes_of_a_dynamic_queue_may_come_as_an_array(peer: Peer) -> None:
    _, _, said = made(peer, kind="queue", supported_dist_modes=Array([Symbol("move"), Symbol("copy")], 0xA3))
    assert list(said["supported-dist-modes"]) == ["move", "copy"]


@pytest.mark.parametrize("code", [0x2B, 0x2C, 0x2D, 0x2E])
@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_detach_that_is_no_close_is_no_end_of_its_link(world: World, peer: Peer, kind: str, code: int) -> None:
    end, address, _ = made(peer, kind=kind, lifetime_policy=policy(code))
    other = world.connect().sender(address)
    end.detach(closed=False)
    other.detach()
    world.advance(1)
    assert exists(world, address)
    peer.close()
    world.advance(1)
    assert not exists(world, address)


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_link_that_comes_again_hears_what_its_node_is(peer: Peer, kind: str) -> None:
    """Not what it asks now."""

    def again(**source: Any) -> Any:
        receiver = attach(peer, "link", capabilities=(kind,), **source)
        return receiver, receiver.link.remote_source.address, receiver.link.remote_source.dynamic_node_properties

    asked = {Symbol("exclusive"): True, **ON_CLOSE}
    first, address, said = again(dynamic=True, dynamic_node_properties=asked)
    first.detach(closed=False)
    second, *answer = again(dynamic=True, dynamic_node_properties={Symbol("durable"): True})
    assert said == asked and answer == [address, asked]
    second.detach(closed=False)
    assert again(address=address)[1:] == (address, asked)
