"""Who is let in: the order of section 4 of the facts, row by row, with what is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jmsish.broker import VhostDenials
from tests.broker.policies import OPEN, as_user, config, group, is_let_in, world
from tests.broker.world import World


def denials(world: World, vhost: str = "$default") -> VhostDenials:
    return world.broker.denials.vhosts[vhost]


def test_without_policy_everybody_is_let_in_and_counted() -> None:
    """W12: without `vhosts` an open `$default` is implied."""
    world = World()
    peer = world.connect(hostname="anything")
    grant = world.broker.admission.decide("joe", "1.2.3.4", None)
    assert (grant.vhost, grant.group, grant.max_senders) == ("$default", "$default", None)
    assert grant.may_send_to("a") and grant.may_receive_from("b") and grant.may_administer
    assert denials(world) == VhostDenials(connections_approved=1, connections_current=1)
    peer.close()
    assert denials(world).connections_current == 0
    counted = world.broker.denials
    assert (counted.connections_processed, counted.connections_current, counted.total_denials) == (1, 0, 0)


def test_an_open_virtual_host_is_implied_where_only_users_are_configured() -> None:
    world = World({"users": {"alice": {"password": "secret"}}})
    assert world.broker.admission.decide("alice", "1.2.3.4", "x").vhost == "$default"


# --- (1) connections of the whole broker


def test_max_connections_of_the_broker_closes_the_socket_without_a_word() -> None:
    world = World({"policy": {"max_connections": 2}})
    first, second = world.connect(), world.connect()
    third = world.connect()
    assert third.connection.closed and third.connection.take_output() == b"" and third.engine.remote is None
    counted = world.broker.denials
    assert (counted.connections_processed, counted.connections_denied, counted.connections_current) == (3, 1, 2)
    assert counted.total_denials == 1 and not first.closed
    second.close()
    assert is_let_in(world.connect()) and counted.connections_current == 2
    third.cut()
    assert counted.connections_current == 2


def test_max_connections_of_the_broker_counts_who_has_not_opened_yet() -> None:
    world = World({"policy": {"max_connections": 1}})
    world.broker.accept(trusted=False, peer="10.0.0.1:1")
    assert world.broker.accept(trusted=False, peer="10.0.0.1:2").closed


# --- (2) the virtual host

TWO: dict[str, Any] = {
    "vhosts": {
        "shop": {"aliases": ["shop.example.com"], "groups": {"all": group()}},
        "*.eu": {"groups": {"all": group()}},
    }
}


@pytest.mark.parametrize(
    ("hostname", "vhost"),
    [("shop", "shop"), ("SHOP.example.com", "shop"), ("fr.eu", "*.eu"), ("other", None), (None, None)],
)
def test_the_virtual_host_is_chosen_by_the_hostname_of_the_open(hostname: str | None, vhost: str | None) -> None:
    world = World(TWO)
    peer = world.connect(hostname=hostname)
    assert is_let_in(peer) is (vhost is not None)
    if vhost is not None:
        assert peer.connection.grant.vhost == vhost and denials(world, vhost).connections_approved == 1
    else:
        assert world.broker.denials.connections_denied == world.broker.denials.total_denials == 1


def test_who_names_none_gets_the_default_virtual_host() -> None:
    world = World({"policy": {"default_vhost": "shop"}, **TWO})
    assert world.connect(hostname="other").connection.grant.vhost == "shop"


# --- (3) the group of the user

GROUPS: dict[str, Any] = {
    "vhosts": {
        "$default": {
            "allow_unknown_user": False,
            "groups": {"staff": {"users": ["alice", "bob"], **OPEN}, "guests": {"users": ["carl"], **OPEN}},
        }
    }
}


@pytest.mark.parametrize(("user", "name"), [("alice", "staff"), ("carl", "guests"), ("eve", None), ("*", None)])
def test_a_user_is_in_the_group_that_names_it(user: str, name: str | None) -> None:
    world = World(GROUPS)
    peer = as_user(world, user)
    assert is_let_in(peer) is (name is not None)
    if name is not None:
        assert (peer.connection.grant.group, peer.connection.grant.user) == (name, user)
    else:
        assert denials(world).connections_denied == 1


def test_a_group_for_everybody_takes_whom_no_other_names() -> None:
    world = World(config(GROUPS["vhosts"]["$default"] | {"groups": {**GROUPS["vhosts"]["$default"]["groups"],
                  "all": group()}, "allow_unknown_user": True}))  # fmt: skip
    assert as_user(world, "alice").connection.grant.group == "staff"
    assert as_user(world, "eve").connection.grant.group == "all"


def test_unknown_users_fall_into_the_group_default_where_they_are_allowed() -> None:
    vhost = {"allow_unknown_user": True, "groups": {"staff": {"users": ["alice"], **OPEN},
             "$default": {**OPEN, "max_senders": 1}}}  # fmt: skip
    grant = as_user(World({"vhosts": {"$default": vhost}}), "eve").connection.grant
    assert (grant.group, grant.max_senders) == ("$default", 1)


def test_unknown_users_are_denied_where_they_are_not_allowed_even_with_a_group_default() -> None:
    vhost = {"groups": {"$default": dict(OPEN)}}
    assert not is_let_in(as_user(World({"vhosts": {"$default": vhost}}), "eve"))


def test_where_unknown_users_are_allowed_and_no_group_is_theirs_all_is_open_but_the_policy() -> None:
    vhost = {"allow_unknown_user": True, "max_message_size": 5, "groups": {"staff": {"users": ["alice"], **OPEN}}}
    grant = as_user(World({"vhosts": {"$default": vhost}}), "eve").connection.grant
    assert grant.group == "$default" and grant.max_message_size == 5 and grant.may_send_to("a")
    assert not grant.may_administer


def test_who_gives_no_name_is_anonymous() -> None:
    world = World({"vhosts": {"$default": {"groups": {"x": {"users": ["anonymous"], **OPEN}}}}})
    assert world.connect().connection.grant.user == "anonymous"
    assert not is_let_in(as_user(world, "joe"))


def test_in_the_process_the_name_that_is_given_is_the_user_for_policy() -> None:
    assert as_user(World(GROUPS), "alice", trusted=True).connection.grant.group == "staff"


# --- (4) the remote host


@pytest.mark.parametrize(
    ("hosts", "peer", "enters"),
    [
        (["*"], "10.0.0.1:4000", True),
        ([], "10.0.0.1:4000", False),
        (["10.0.0.1"], "10.0.0.1:4000", True),
        (["10.0.0.1"], "10.0.0.2:4000", False),
        (["10.0.0.1-10.0.0.5", "::1"], "10.0.0.3:1", True),
        (["10.0.0.1-10.0.0.5", "::1"], "[::1]:1", True),
        (["localhost"], "vm://test", True),
        ([], "vm://test", False),
    ],
)
def test_remote_hosts(hosts: list[str], peer: str, enters: bool) -> None:
    made = world(remote_hosts=hosts)
    assert is_let_in(made.connect(peer=peer)) is enters
    assert denials(made).connections_denied == (not enters)


# --- (5) how many are there


def test_max_connections_of_a_virtual_host() -> None:
    made = world({"max_connections": 2})
    first = as_user(made, "a", peer="10.0.0.1:1")
    assert is_let_in(first) and is_let_in(as_user(made, "b", peer="10.0.0.2:1"))
    assert not is_let_in(as_user(made, "c", peer="10.0.0.3:1"))
    assert denials(made) == VhostDenials(connections_approved=2, connections_denied=1, connections_current=2)
    first.cut()
    assert is_let_in(as_user(made, "c"))


@pytest.mark.parametrize(("vhost", "of_group"), [(2, None), (9, 2), (1, 2)])
def test_max_connections_per_user_where_the_group_overrides(vhost: int, of_group: int | None) -> None:
    settings = {} if of_group is None else {"max_connections_per_user": of_group}
    made = world({"max_connections_per_user": vhost}, **settings)
    joe = [as_user(made, "joe", peer=f"10.0.0.{number}:1") for number in range(3)]
    assert [is_let_in(peer) for peer in joe] == [True, True, False]
    assert is_let_in(as_user(made, "ann", peer="10.0.0.1:1"))
    joe[0].close()
    assert is_let_in(as_user(made, "joe"))


@pytest.mark.parametrize(("vhost", "of_group"), [(2, None), (9, 2), (1, 2)])
def test_max_connections_per_host_where_the_group_overrides(vhost: int, of_group: int | None) -> None:
    settings = {} if of_group is None else {"max_connections_per_host": of_group}
    made = world({"max_connections_per_host": vhost}, **settings)
    here = [as_user(made, f"user{number}", peer=f"10.0.0.1:{number}") for number in range(3)]
    assert [is_let_in(peer) for peer in here] == [True, True, False]
    assert is_let_in(as_user(made, "ann", peer="10.0.0.2:1"))
    here[0].cut()
    assert is_let_in(as_user(made, "joe", peer="10.0.0.1:9"))


def test_zero_forbids() -> None:
    for settings in ({"max_connections": 0}, {"max_connections_per_user": 0}, {"max_connections_per_host": 0}):
        assert not is_let_in(as_user(world(settings)))


def test_who_is_denied_is_not_counted_among_those_who_are_there_and_closes_nobody_else() -> None:
    """Policy is asked before anything is done for the sake of the newcomer."""
    made = world({"max_connections": 1})
    sole = ("sole-connection-for-container",)
    first = as_user(made, "joe", container_id="same", desired_capabilities=sole)
    second = as_user(made, "eve", container_id="same", desired_capabilities=sole,
                     properties={"sole-connection-enforcement-policy": 1})  # fmt: skip
    assert not is_let_in(second) and not first.closed
    assert made.broker.admission.present("$default").total == 1


@pytest.mark.parametrize("settings", [{"users": ["joe"]}, {"max_sessions": 1, "max_senders": 0}])
def test_a_long_name_of_a_user_does_not_make_a_long_log(
    settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    peer = as_user(world(**settings), "x" * 8000)
    if not peer.closed:
        peer.sender("q")
        assert peer.engine.remote is not None
        peer.engine.remote = replace(peer.engine.remote, channel_max=9)
        peer.begin()
    assert caplog.records and all(len(record.getMessage()) < 1000 for record in caplog.records)


def test_what_was_said_before_the_refusal_is_not_done() -> None:
    """Peers begin and attach without waiting for the answer to their open."""
    made = world(remote_hosts=[])
    peer = made.connect()
    assert not is_let_in(peer) and made.broker.queues() == [] and made.broker.connections() == []


# --- sizes


@pytest.mark.parametrize("of_group", [None, 0, 3])
@pytest.mark.parametrize("of_vhost", [None, 0, 2])
def test_the_maximum_message_size_is_the_groups_else_the_vhosts_else_the_brokers(
    of_vhost: int | None, of_group: int | None
) -> None:
    """Unset inherits, zero lifts, group over vhost over global: nine combinations."""
    vhost = {} if of_vhost is None else {"max_message_size": of_vhost}
    settings = {} if of_group is None else {"max_message_size": of_group}
    made = World({"policy": {"max_message_size": 1, "on_oversize": "link"}, **config(vhost, **settings)})
    grant = made.connect().connection.grant
    assert grant.max_message_size == next(size for size in (of_group, of_vhost, 1) if size is not None)
    assert grant.on_oversize == "link"


@pytest.mark.parametrize("size", [1 << 31, 1 << 32, (1 << 63) - 1, (1 << 64) - 1])
def test_sizes_are_of_64_bits(size: int) -> None:
    assert world(max_message_size=size).connect().connection.grant.max_message_size == size
