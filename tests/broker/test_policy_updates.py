"""The policy changed while the broker runs, by management and in the process; and the figures that it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import ConfigurationError, Denials, VhostDenials
from jmsish.types import Symbol, UInt, ULong
from tests.broker.policies import OPEN, as_user, config, group, is_let_in, world
from tests.broker.test_management import ask, request
from tests.broker.test_policy_rights import ask as ask_as
from tests.broker.world import World

VHOST = "$default"


def test_a_vhost_is_created_read_updated_and_deleted(world: World) -> None:
    status, _, made = ask(world, "CREATE", "vhost", {"max_connections": UInt(5), "aliases": [Symbol("second")],
                          "groups": {"all": {"users": ["*"], "remote_hosts": ["*"]}}}, name="shop")  # fmt: skip
    assert status == 201 and made["name"] == "shop" and made["max_connections"] == 5
    assert made["groups"]["all"]["sources"] == [] and made["connections_approved"] == 0
    assert world.connect(hostname="second").connection.grant.vhost == "shop"
    status, _, read = ask(world, "READ", "vhost", name="shop")
    assert (status, read["connections_current"], read["per_user"], read["per_host"]) == (
        200, 1, {"anonymous": 1}, {"memory": 1}
    )  # fmt: skip
    status, _, now = ask(world, "UPDATE", "vhost", {"max_connections": 7}, name="shop")
    assert status == 200 and now["max_connections"] == 7 and now["aliases"] == ["second"] and now["groups"]
    assert ask(world, "DELETE", "vhost", name="shop")[0] == 204
    assert ask(world, "READ", "vhost", name="shop")[0] == 404
    assert world.connect(hostname="second").connection.grant.vhost == VHOST


def test_a_group_is_created_read_updated_and_deleted(world: World) -> None:
    name = f"{VHOST}/staff"
    status, _, made = ask(world, "CREATE", "group", {"users": ["joe"], **OPEN, "max_senders": 1}, name=name)
    assert status == 201 and made["identity"] == name and made["vhost"] == VHOST and made["max_senders"] == 1
    assert as_user(world).connection.grant.max_senders == 1
    status, _, now = ask(world, "UPDATE", "group", {"target_pattern": ["a.#"]}, name=name)
    assert status == 200 and now["target_pattern"] == ["a.#"] and "targets" not in now and now["sources"] == ["*"]
    grant = as_user(world).connection.grant
    assert grant.may_send_to("a.b") and not grant.may_send_to("b") and grant.max_senders == 1
    assert ask(world, "READ", "group", name=name)[2]["users"] == ["joe"]
    assert ask(world, "DELETE", "group", name=name)[0] == 204
    assert ask(world, "READ", "group", name=name)[0] == 404
    assert as_user(world).connection.grant.group == "$default"


@pytest.mark.parametrize("pattern", ["a.#", ["a.#"], '["a.#"]'])
def test_one_pattern_may_stand_by_itself(world: World, pattern: Any) -> None:
    name = f"{VHOST}/staff"
    said = {"users": ["joe"], "remote_hosts": ["*"], "source_pattern": pattern, "target_pattern": pattern}
    status, _, made = ask(world, "CREATE", "group", said, name=name)
    assert status == 201 and made["source_pattern"] == made["target_pattern"] == ["a.#"]
    grant = as_user(world).connection.grant
    assert grant.may_send_to("a.b") and not grant.may_send_to("b")


def test_what_holds_for_the_whole_broker_is_read_and_updated(world: World) -> None:
    status, _, found = ask(world, "READ", "policy", name="x")
    assert (status, found["max_connections"], found["max_queues"], found["total_denials"]) == (200, 65535, 0, 0)
    assert ask(world, "UPDATE", "policy", {"max_queues": 1, "auto_create": False}, name="x")[0] == 200
    assert world.connect().sender("q").detached
    world.broker.declare_queue("q")
    assert ask(world, "CREATE", "queue", name="r")[0] == 409
    assert ask(world, "UPDATE", "policy", {"max_connections": 1}, name="x")[2]["max_connections"] == 1
    assert world.connect().connection.closed


@pytest.mark.parametrize(
    ("operation", "kind", "name", "body", "status", "says"),
    [
        ("CREATE", "vhost", VHOST, {}, 409, "there is a virtual host '$default' already"),
        ("UPDATE", "vhost", "$defult", {}, 404, "did you mean '$default'?"),
        ("DELETE", "vhost", "shop", None, 404, "there is no virtual host 'shop'"),
        ("CREATE", "group", f"{VHOST}/{VHOST}", {}, 409, "there is a group '$default' already"),
        ("UPDATE", "group", f"{VHOST}/staff", {}, 404, "there is no group 'staff'"),
        ("READ", "group", "shop/staff", None, 404, "there is no virtual host 'shop'"),
        ("READ", "group", "staff", None, 400, "vhost/group"),
        ("CREATE", "vhost", "shop", {"max_conections": 1}, 400, "did you mean 'max_connections'?"),
        ("CREATE", "vhost", "shop", {"allow_unknown_user": "yes"}, 400, "must be true or false, not 'yes'"),
        ("CREATE", "group", f"{VHOST}/", {}, 400, "a group needs a name"),
        ("CREATE", "vhost", "shop", {"aliases": [VHOST]}, 400, "is a name of the virtual host '$default' already"),
        ("UPDATE", "group", f"{VHOST}/{VHOST}", {"max_senders": -1}, 400, "[vhosts.$default.groups.$default]"),
        ("UPDATE", "group", f"{VHOST}/{VHOST}", {"sources": [], "source_pattern": []}, 400, "two forms of the same"),
        ("UPDATE", "policy", "x", {"on_oversize": "session"}, 400, "must be one of connection, link"),
        ("DELETE", "policy", "x", None, 501, "READ, UPDATE, RESET"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(
    world: World, operation: str, kind: str, name: str, body: Any, status: int, says: str
) -> None:
    before = (world.broker.admission.vhosts, world.broker.config)
    found, description, _ = ask(world, operation, kind, body, name=name)
    assert found == status and says in description
    assert (world.broker.admission.vhosts, world.broker.config) == before


def test_all_that_is_wrong_is_told_at_once(world: World) -> None:
    _, description, _ = ask(world, "CREATE", "vhost", {"max_connections": -1, "groups": {"a": {"max_senders": "x"}},
                            "aliases": [""]}, name="shop")  # fmt: skip
    for place in ("[vhosts.shop] max_connections", "[vhosts.shop.groups.a] max_senders", "[vhosts.shop] aliases: ''"):
        assert place in description


def test_a_user_that_would_be_in_two_groups_is_refused(world: World) -> None:
    ask(world, "CREATE", "group", {"users": ["joe"]}, name=f"{VHOST}/a")
    status, description, _ = ask(world, "CREATE", "group", {"users": ["joe"]}, name=f"{VHOST}/b")
    assert status == 400 and "'a' and 'b'" in description


def test_open_connections_keep_what_they_had() -> None:
    made = world(max_senders=1, max_message_size=100)
    old = as_user(made)
    made.broker.admission.put_group(VHOST, "all", {"max_senders": 0, "targets": [], "max_message_size": 5})
    assert not old.sender().detached and old.connection.grant.max_message_size == 100
    new = as_user(made)
    assert new.sender().detached and new.connection.grant.max_message_size == 5
    made.broker.admission.delete_vhost(VHOST)
    assert old.session is not None and old.receiver().detached is False
    assert not is_let_in(as_user(made))
    old.close(), new.close()
    assert VHOST not in made.broker.denials.vhosts and made.broker.denials.connections_current == 0


def test_limits_per_user_and_per_host_stay_what_they_are_when_a_vhost_is_updated() -> None:
    """A fault of others: they are swapped by an update (exchanges and policy, 5.6)."""
    made = world({"max_connections_per_user": 2, "max_connections_per_host": 5})
    made.broker.admission.put_vhost(VHOST, {"max_connections": 100})
    peers = [as_user(made, "joe", peer=f"10.0.0.{number}:1") for number in range(3)]
    assert [is_let_in(peer) for peer in peers] == [True, True, False]
    others = [as_user(made, f"user{number}", peer="10.0.0.9:1") for number in range(6)]
    assert [is_let_in(peer) for peer in others] == [True] * 5 + [False]


def test_who_is_connected_stays_counted_when_a_vhost_is_updated_or_made_anew() -> None:
    made = world({"max_connections": 2})
    first = as_user(made)
    made.broker.admission.put_vhost(VHOST, {"max_connections_per_user": 9})
    settings = config({"max_connections": 2})["vhosts"][VHOST]
    made.broker.admission.delete_vhost(VHOST)
    made.broker.admission.put_vhost(VHOST, settings)
    assert is_let_in(as_user(made)) and not is_let_in(as_user(made))
    first.close()
    assert is_let_in(as_user(made))


def test_the_form_of_the_addresses_can_be_changed_and_an_implied_group_stays_implied() -> None:
    made = World({"vhosts": {VHOST: {"allow_unknown_user": True}}})
    made.broker.admission.put_vhost(VHOST, {"max_connections": 5})
    assert as_user(made).connection.grant.may_send_to("anything")
    made.broker.admission.put_vhost(VHOST, {"allow_unknown_user": False})
    assert not is_let_in(as_user(made)) and made.broker.admission.vhosts[VHOST].groups == {}


@pytest.mark.parametrize("call", ["vhost", "group", "policy"])
@pytest.mark.parametrize("name", ["", 5, None, "\ud800"])
def test_in_the_process_what_is_wrong_is_a_value_error(call: str, name: Any) -> None:
    made = world()
    with pytest.raises(ConfigurationError):
        if call == "vhost":
            made.broker.admission.put_vhost(name, {})
        elif call == "group":
            made.broker.admission.put_group(VHOST, name, {})
        else:
            made.broker.change_policy({"max_queue": 1})


# --- who may change it


@pytest.mark.parametrize(("may_manage", "status"), [(True, 200), (None, 403)])
def test_the_policy_is_changed_only_by_those_who_may_manage_by_name(may_manage: bool | None, status: int) -> None:
    """Whose lists have the node in them may use it; but who may change a group may do anything."""
    made = world(**({} if may_manage is None else {"may_manage": may_manage}))
    peer = made.connect()
    for kind, name in (("policy", "x"), ("vhost", VHOST), ("group", f"{VHOST}/all")):
        assert ask_as(peer, "READ", kind, name=name)[0] == 200
        assert ask_as(peer, "UPDATE", kind, {}, name=name)[0] == status
    assert ask_as(peer, "RESET", "policy", name="x")[0] == (204 if status == 200 else 403)


@pytest.mark.parametrize(("may_manage", "status"), [(True, 204), (None, 403)])
def test_a_connection_is_ended_only_by_those_who_may_manage_by_name(may_manage: bool | None, status: int) -> None:
    made = world(**({} if may_manage is None else {"may_manage": may_manage}))
    peer, other = as_user(made, "ann"), as_user(made, "joe")
    name = str(other.connection.number)
    read = ask_as(peer, "READ", "connection", name=name)[2]
    assert read["user"] == "joe" and read["identity"] == name
    assert ask_as(peer, "DELETE", "connection", name=name)[0] == status
    made.run()
    ended = [error.condition for error in other.closed if error is not None]
    assert ended == (["amqp:connection:forced"] if status == 204 else [])
    assert ask_as(peer, "READ", "connection", name=name)[0] == (404 if status == 204 else 200)


def test_a_connection_may_be_ended_by_its_own_request() -> None:
    made = world(may_manage=True)
    peer = as_user(made)
    peer.sender("$management").send_octets(request("DELETE", "connection", name=str(peer.connection.number)))
    assert len(peer.closed) == 1 and made.broker.connections() == []


# --- figures


def test_the_counters_are_read_queried_and_reset() -> None:
    made = world({"max_connections": 2}, max_senders=0, max_receivers=0)
    peer = as_user(made)
    peer.sender(), peer.receiver(), peer.receiver()
    as_user(made), as_user(made)
    counted = made.broker.denials
    of_vhost = VhostDenials(connections_approved=2, connections_denied=1, connections_current=2, senders_denied=1,
                            receivers_denied=2)  # fmt: skip
    assert counted.snapshot() == Denials(3, 1, 2, 3, 0, 4, {VHOST: of_vhost})
    _, _, read = ask(made, "READ", "policy", name="x")
    assert (read["connections_processed"], read["links_denied"], read["total_denials"]) == (3, 3, 4)
    names = ["name", "senders_denied", "receivers_denied", "per_user"]
    _, _, table = ask(made, "QUERY", "vhost", {"attributeNames": names})
    assert table["results"] == [[VHOST, 1, 2, {"joe": 2}]]
    assert ask(made, "RESET", "policy", name="x")[0] == 204
    assert counted.snapshot() == Denials(connections_current=2, vhosts={VHOST: VhostDenials(connections_current=2)})


def test_a_snapshot_stays_as_it_is() -> None:
    made = world()
    taken = made.broker.denials.snapshot()
    as_user(made)
    assert taken == Denials(vhosts={VHOST: VhostDenials()})


def test_groups_are_queried(world: World) -> None:
    _, _, table = ask(world, "QUERY", "group", {"attributeNames": ["name", "may_manage", "target_pattern"]})
    assert table["results"] == [[f"{VHOST}/{VHOST}", True, None]]


def test_who_has_flat_bodies_only_sends_lists_and_maps_as_json(world: World) -> None:
    status, _, made = ask(world, "CREATE", "vhost", {"groups": '{"all": {"users": ["*"]}}', "aliases": "[]"}, name="s")
    assert status == 201 and made["groups"]["all"]["users"] == ["*"]
    assert group()["users"] == ["*"]


# --- back to what is not said, and attributes as some clients send them


def test_none_takes_a_setting_back_so_that_it_is_inherited_again() -> None:
    """Unset is different from 0: who has set a limit at run time can take it away again, and not only lift it."""
    made = World({"policy": {"max_message_size": 5000}, **config({"max_message_size": 1000}, max_message_size=10)})
    admission = made.broker.admission

    def size() -> int:
        return admission.decide("joe", "127.0.0.1", None).max_message_size

    assert size() == 10
    admission.put_group(VHOST, "all", {"max_message_size": None, "max_senders": 3})
    assert size() == 1000
    admission.put_vhost(VHOST, {"max_message_size": None})
    assert size() == 5000
    made.broker.change_policy({"max_message_size": None})
    assert size() == 0 == made.broker.config.max_message_size
    assert admission.decide("joe", "127.0.0.1", None).max_senders == 3


def test_none_for_one_form_of_the_addresses_leaves_the_other() -> None:
    made = world(target_pattern=["a.#"])
    made.broker.admission.put_group(VHOST, "all", {"targets": None})
    assert as_user(made).connection.grant.may_send_to("a.b")
    made.broker.admission.put_group(VHOST, "all", {"target_pattern": None})
    assert not as_user(made).connection.grant.may_send_to("a.b")


@pytest.mark.parametrize(
    ("kind", "name", "set_to", "usual"),
    [
        ("group", f"{VHOST}/all", {"max_message_size": 10, "may_manage": False}, {}),
        ("vhost", VHOST, {"max_message_size": 10, "max_connections": 7}, {"max_connections": 65535}),
        ("policy", "x", {"max_message_size": 10, "auto_create": False}, {"max_message_size": 0, "auto_create": True}),
        ("queue", "q", {"max_messages": 5, "dead_letter": "dead"}, {"max_messages": 0, "dead_letter": "DLQ"}),
        ("exchange", "e", {"alternate": "amq.topic"}, {"alternate": None, "durable": False}),
    ],
)
def test_by_management_null_takes_an_attribute_back(
    kind: str, name: str, set_to: dict[str, Any], usual: dict[str, Any]
) -> None:
    made = world()
    made.broker.declare_queue("q")
    made.broker.declare_exchange("e", "topic")
    assert ask(made, "UPDATE", kind, set_to, name=name)[0] == 200
    status, _, now = ask(made, "UPDATE", kind, dict.fromkeys({*set_to, *usual}), name=name)
    assert status == 200 and {key: now.get(key) for key in usual} == usual
    assert all(now.get(key) != value for key, value in set_to.items())


def test_a_queue_is_created_with_null_for_what_it_has_anyway(world: World) -> None:
    status, _, made = ask(world, "CREATE", "queue", {"max_messages": None, "durable": None}, name="q")
    assert status == 201 and made["max_messages"] == 0 and made["durable"] is False


def test_who_sends_all_as_texts_is_understood(world: World) -> None:
    """As for queues. "True" is true, which another product reads as false (exchanges and policy, 5.6)."""
    said = {"max_senders": "5", "may_bind": "False", "max_message_size": "7", "allow_dynamic_source": "True"}
    status, _, now = ask(world, "UPDATE", "group", said, name=f"{VHOST}/{VHOST}")
    assert status == 200 and (now["max_senders"], now["max_message_size"]) == (5, 7)
    assert now["may_bind"] is False and now["allow_dynamic_source"] is True
    said = {"max_connections": "9", "allow_unknown_user": "True"}
    assert ask(world, "UPDATE", "vhost", said, name=VHOST)[2]["max_connections"] == 9
    status, _, now = ask(world, "UPDATE", "policy", {"transaction_timeout": "1.5", "auto_create": "true"}, name="x")
    assert status == 200 and now["transaction_timeout"] == 1.5 and now["auto_create"] is True
    assert ask(world, "CREATE", "queue", {"redelivery_delay": "1.5"}, name="q")[2]["redelivery_delay"] == 1.5
    status, description, _ = ask(world, "UPDATE", "queue", {"redelivery_delay": "soon"}, name="q")
    assert status == 400 and "'soon'" in description


@pytest.mark.parametrize("size", [(1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_the_largest_sizes_there_are_can_be_read(size: int) -> None:
    """A maximum message size is a ulong (2.7.3), and larger than a long may be."""
    limits = {"max_message_size": size}
    made = World({"policy": limits, **config(limits, max_message_size=size)})
    for kind in ("policy", "vhost", "group"):
        status, _, table = ask(made, "QUERY", kind, {"attributeNames": ["max_message_size"]})
        assert status == 200 and table["results"] == [[size]], kind
    status, _, vhost = ask(made, "READ", "vhost", name=VHOST)
    assert status == 200 and vhost["groups"]["all"]["max_message_size"] == size
    assert ask(made, "UPDATE", "group", {"max_message_size": ULong(size)}, name=f"{VHOST}/all")[0] == 200


def test_a_delay_that_is_a_whole_number_beyond_a_long_can_be_read(world: World) -> None:
    world.broker.declare_queue("q", redelivery_delay=1 << 64, redelivery_multiplier=2)
    status, _, table = ask(world, "QUERY", "queue", {"attributeNames": ["redelivery_delay", "redelivery_multiplier"]})
    assert status == 200 and table["results"] == [[float(1 << 64), 2.0]]


def test_unknown_users_do_not_gain_by_the_loss_of_their_group() -> None:
    """Without it one would be implied, which is open to all."""
    groups = {"$default": group(users=[], sources=[], targets=["complaints"])}
    made = World({"vhosts": {VHOST: {"allow_unknown_user": True, "groups": groups}}})
    status, description, _ = ask(made, "DELETE", "group", name=f"{VHOST}/$default")
    assert status == 400 and "allow_unknown_user" in description
    with pytest.raises(ValueError, match="without it they could do all"):
        made.broker.admission.delete_group(VHOST, "$default")
    assert not made.broker.admission.decide("joe", "127.0.0.1", None).may_send_to("orders")
    made.broker.admission.put_vhost(VHOST, {"allow_unknown_user": False})
    assert ask(made, "DELETE", "group", name=f"{VHOST}/$default")[0] == 204
    assert not is_let_in(as_user(made))


def test_names_with_slashes_mean_the_group_that_there_is() -> None:
    made = World({"vhosts": {VHOST: {}, f"{VHOST}/b": {"groups": {"c": group()}}}})
    assert ask(made, "READ", "group", name=f"{VHOST}/b/c")[2]["vhost"] == f"{VHOST}/b"
    assert ask(made, "CREATE", "group", group(users=["x"]), name=f"{VHOST}/b/d")[2]["vhost"] == f"{VHOST}/b"
    made.broker.admission.put_group(VHOST, "b/e", {})
    assert ask(made, "READ", "group", name=f"{VHOST}/b/e")[2]["vhost"] == VHOST
    names = [row[0] for row in ask(made, "QUERY", "group", {"attributeNames": ["name"]})[2]["results"]]
    assert [ask(made, "READ", "group", name=name)[2]["name"] for name in names] == names
