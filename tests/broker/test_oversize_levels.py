"""The maximum message size by broker, virtual host and group, as messages meet it; and what is counted for whom."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED
from tests.broker.policies import OPEN, as_user
from tests.broker.test_oversize import closed_for_size, post
from tests.broker.world import Peer, World

GLOBAL, VHOST, GROUP = 1000, 2000, 3000
LARGE = 4000


def levels(of_vhost: int | None = None, of_group: int | None = None, of_all: int = GLOBAL) -> World:
    """A broker whose virtual host has a group of alice, with these limits; everybody else is in another."""
    group = {"users": ["alice"], **OPEN} | ({} if of_group is None else {"max_message_size": of_group})
    vhost: dict[str, Any] = {"groups": {"staff": group, "others": {"users": ["*"], **OPEN}}}
    if of_vhost is not None:
        vhost["max_message_size"] = of_vhost
    return World({"policy": {"max_message_size": of_all}, "vhosts": {"$default": vhost}})


def largest(peer: Peer) -> int:
    """What is announced, once it is seen to be true: a message of so many octets passes, of one more it does not."""
    sender = peer.sender()
    limit = int(sender.link.remote_max_message_size)
    assert post(sender, limit or LARGE) == [ACCEPTED]
    if limit:
        post(sender, limit + 1)
        assert sender.detached and closed_for_size(peer)
    return limit


@pytest.mark.parametrize("of_group", [None, 0, GROUP])
@pytest.mark.parametrize("of_vhost", [None, 0, VHOST])
def test_group_over_vhost_over_global_unset_inherits_zero_lifts(of_vhost: int | None, of_group: int | None) -> None:
    """Nine combinations. Those of another group have what the virtual host says, or the broker."""
    world = levels(of_vhost, of_group)
    others = GLOBAL if of_vhost is None else of_vhost
    assert largest(as_user(world, "alice")) == (others if of_group is None else of_group)
    assert largest(as_user(world, "bob")) == others


def test_what_came_in_at_a_large_limit_goes_out_at_a_small_one() -> None:
    """Ingress only: who may send no more than 1000 octets may receive more (exchanges and policy, 3.2)."""
    world = levels(of_group=0)
    receiver = as_user(world, "bob").receiver(credit=5)
    assert post(as_user(world, "alice").sender(), LARGE) == [ACCEPTED]
    assert [len(delivery.payload) for delivery in receiver.take()] == [LARGE]


@pytest.mark.parametrize("level", ["broker", "vhost", "group"])
def test_a_limit_that_is_changed_holds_for_connections_to_come(level: str) -> None:
    """It was decided at the open: not even a link that is attached later has another."""
    world = levels(VHOST if level == "vhost" else None, GROUP if level == "group" else None)
    peer = as_user(world, "alice")
    before = peer.sender()
    was = int(before.link.remote_max_message_size)
    if level == "broker":
        world.broker.change_policy({"max_message_size": 500})
    elif level == "vhost":
        world.broker.admission.put_vhost("$default", {"max_message_size": 500})
    else:
        world.broker.admission.put_group("$default", "staff", {"max_message_size": 500})
    assert post(before, was) == [ACCEPTED]
    assert largest(peer) == was
    assert largest(as_user(world, "alice")) == 500


def test_a_mode_that_is_changed_holds_for_connections_to_come() -> None:
    world = levels()
    old = as_user(world, "alice")
    world.broker.change_policy({"on_oversize": "link"})
    new = as_user(world, "alice")
    for peer in (old, new):
        post(peer.sender(), GLOBAL + 1)
    assert closed_for_size(old) and not new.closed


def test_refusals_are_counted_for_their_virtual_host() -> None:
    group = {"all": {"users": ["*"], **OPEN}}
    world = World({
        "policy": {"max_message_size": GLOBAL},
        "vhosts": {"$default": {"groups": group}, "other": {"groups": group, "max_message_size": VHOST}},
    })  # fmt: skip
    for hostname, times in ((None, 1), ("other", 2)):
        for _ in range(times):
            post(world.connect(hostname=hostname).sender(), VHOST + 1)
    denials = world.broker.denials
    assert denials.max_message_size_denied == denials.total_denials == 3
    assert denials.vhost("$default").max_message_size_denied == 1
    assert denials.vhost("other").max_message_size_denied == 2
    denials.reset()
    assert denials.max_message_size_denied == 0 == denials.vhost("other").max_message_size_denied
    post(world.connect(hostname="other").sender(), VHOST + 1)
    assert denials.max_message_size_denied == 1 == denials.vhost("other").max_message_size_denied


@pytest.mark.parametrize(("level", "place"), [("broker", "policy"), ("vhost", "vhosts"), ("group", "groups.staff")])
@pytest.mark.parametrize("wrong", [-1, 1 << 64, "many"])
def test_what_is_no_size_is_refused_with_its_place(wrong: Any, level: str, place: str) -> None:
    with pytest.raises(ValueError, match="max_message_size") as caught:
        levels(wrong if level == "vhost" else None, wrong if level == "group" else None,
               wrong if level == "broker" else GLOBAL)  # fmt: skip
    assert place in str(caught.value)
