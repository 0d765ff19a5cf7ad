"""Exchanges, bindings and freezes by request: what is asked of the management node, and what it answers, and when."""

from __future__ import annotations

import random
from typing import Any

import pytest

from jmsish.broker.leases import REMEMBERED
from jmsish.broker.management import answer
from jmsish.engine.codec import AMQP_VALUE, CORRELATION_ID, ReceivedMessage, encode_message
from jmsish.engine.outcomes import ACCEPTED
from tests.broker.test_management import ask, request
from tests.broker.world import Peer, Sender, World, in_transaction

EXCHANGE, BINDING, QUEUE = "exchange", "binding", "queue"
BLUE = {"queue": "blue", "key": "k"}


@pytest.fixture
def world() -> World:
    """Queues blue, green and red, and the exchange `orders`, of which each message with the key k goes to blue."""
    world = World()
    for name in ("blue", "green", "red"):
        world.broker.declare_queue(name)
    world.broker.declare_exchange("orders", "direct")
    world.broker.exchange("orders").bind("blue", "k")
    return world


def bound(world: World, exchange: str = "orders") -> set[tuple[str, str]]:
    return {(binding.queue, binding.key) for binding in world.broker.exchange(exchange).bindings()}


class Client:
    """A connection that asks, and hears the answers as they come."""

    def __init__(self, world: World, peer: Peer | None = None) -> None:
        self.world = world
        self.peer = peer or world.connect()
        self.answers = self.peer.receiver(None, dynamic=True, credit=1000)
        self.sender = self.peer.sender("$management")
        self.address = self.answers.link.remote_source.address
        self.number = 0

    def post(self, operation: str, kind: str = EXCHANGE, body: Any = None, **named: Any) -> str:
        """Ask, and give the id of the request."""
        self.number += 1
        name = f"r{self.number}"
        octets = request(operation, kind, body, reply_to=self.address, message_id=name, **named)
        assert self.sender.transfer(octets) == []
        self.world.run()
        return name

    def heard(self) -> list[tuple[str, int, Any]]:
        """The answers since the last time: id of the request, status, and body or else what is wrong."""
        found = []
        for delivery in self.answers.take():
            said = ReceivedMessage(delivery.payload)
            properties = said.application_properties()
            status = int(properties["statusCode"])
            told = said.body()[1] if status < 300 else properties["statusDescription"]
            found.append((said.property(CORRELATION_ID), status, told))
        return found

    def ask(self, *args: Any, **named: Any) -> tuple[int, Any]:
        """The answer, which is there at once."""
        number = self.post(*args, **named)
        ((id, status, told),) = self.heard()
        assert id == number
        return status, told

    def freeze(self, *exchanges: str, **named: Any) -> str:
        status, told = self.ask("FREEZE", EXCHANGE, {"exchanges": list(exchanges), **named})
        assert status == 200, told
        return str(told["lease"])


def publish(sender: Sender, body: str, key: str = "k") -> list[Any]:
    octets = encode_message(properties=[None, None, None, key, None], body=(AMQP_VALUE, body))
    answers = sender.transfer(octets)
    sender.world.run()
    return answers


# --- exchanges


def test_an_exchange_is_created_read_changed_and_deleted(world: World) -> None:
    status, _, made = ask(world, "CREATE", EXCHANGE, {"exchange_type": "fanout", "durable": True}, name="news")
    assert status == 201 and (made["name"], made["type"], made["exchange_type"]) == ("news", "exchange", "fanout")
    assert world.broker.exchange("news").settings.durable is made["durable"] is True
    assert (made["unroutable"], made["bindings"], made["frozen"]) == ("discard", 0, False)
    status, _, now = ask(world, "UPDATE", EXCHANGE, {"alternate": "orders", "unroutable": "reject"}, name="news")
    assert status == 200 and (now["alternate"], now["unroutable"], now["durable"]) == ("orders", "reject", True)
    status, description, _ = ask(world, "DELETE", EXCHANGE, name="orders")
    assert status == 409 and "alternate of 'news'" in description
    assert ask(world, "UPDATE", EXCHANGE, {"alternate": ""}, name="news")[2]["alternate"] is None
    assert ask(world, "DELETE", EXCHANGE, name="orders")[0] == 204
    assert ask(world, "READ", EXCHANGE, name="orders")[0] == 404


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout", "headers"])
def test_each_type_is_made_by_its_name(world: World, kind: str) -> None:
    assert ask(world, "CREATE", EXCHANGE, {"type": kind}, name="made")[0] == 201
    assert world.broker.exchange("made").type == kind
    assert ask(world, "READ", "topic", name="made")[0] == (200 if kind == "topic" else 404)


@pytest.mark.parametrize(
    ("attributes", "status", "says"),
    [
        ({}, 400, "exchange_type is missing"),
        ({"type": "fan"}, 400, "the type must be one of"),
        ({"type": "fanout", "exchange_type": "direct"}, 400, "one type only"),
        ({"type": "fanout", "durabel": True}, 400, "durable"),
        ({"type": "fanout", "alternate": "nowhere"}, 400, "alternate: there is no exchange 'nowhere'"),
        ({"type": "fanout", "unroutable": "explode"}, 400, "unroutable"),
    ],
)
def test_an_exchange_that_cannot_be_is_not_made(world: World, attributes: Any, status: int, says: str) -> None:
    got, description, _ = ask(world, "CREATE", EXCHANGE, attributes, name="made")
    assert got == status and says in description
    assert ask(world, "READ", EXCHANGE, name="made")[0] == 404


def test_reserved_and_existing_exchanges_are_not_made_nor_deleted(world: World) -> None:
    assert ask(world, "CREATE", EXCHANGE, {"type": "fanout"}, name="amq.mine")[0] == 400
    assert ask(world, "CREATE", EXCHANGE, {"type": "direct"}, name="orders")[0] == 409
    assert ask(world, "DELETE", EXCHANGE, name="amq.match")[0] == 400


def test_what_an_exchange_was_made_with_stays(world: World) -> None:
    """Only alternate and unroutable change; the rest may be said again as it is."""
    before = ask(world, "READ", EXCHANGE, name="orders")[2]
    for attributes in ({"durable": True}, {"sequence": True}, {"type": "topic"}):
        assert ask(world, "UPDATE", EXCHANGE, attributes, name="orders")[0] == 400
    assert ask(world, "UPDATE", EXCHANGE, {"durable": False, "type": "direct"}, name="orders")[0] == 200
    assert ask(world, "READ", EXCHANGE, name="orders")[2] == before


def test_a_query_has_every_exchange_with_its_counters(world: World) -> None:
    publish(world.connect().sender("orders"), "m1")
    columns = ["name", "exchange_type", "bindings", "routed"]
    table = ask(world, "QUERY", EXCHANGE, {"attributeNames": columns})[2]
    assert table["results"] == [
        ["amq.direct", "direct", 0, 0], ["amq.topic", "topic", 0, 0], ["amq.fanout", "fanout", 0, 0],
        ["amq.match", "headers", 0, 0], ["orders", "direct", 1, 1],
    ]  # fmt: skip


# --- bindings


def test_a_binding_is_created_read_and_deleted_by_its_attributes(world: World) -> None:
    attributes = {"exchange": "orders", "queue": "green", "key": "k"}
    status, _, made = ask(world, "CREATE", BINDING, attributes)
    assert status == 201 and made["identity"] == "orders/green/k" and made["kind"] == "queue"
    assert ask(world, "CREATE", BINDING, attributes)[0] == 200  # bound so already: nothing changes
    publish(world.connect().sender("orders"), "m1")
    status, _, read = ask(world, "READ", BINDING, name="orders/green/k")
    assert (status, read["matched"], read["durable"], read["arguments"]) == (200, 1, False, None)
    assert ask(world, "DELETE", BINDING, attributes)[0] == 204
    assert ask(world, "DELETE", BINDING, attributes)[0] == 404
    assert bound(world) == {("blue", "k")}


def test_a_binding_is_named_by_exchange_queue_and_key(world: World) -> None:
    assert ask(world, "CREATE", BINDING, name="orders/green/k/with/slashes")[0] == 201
    assert ask(world, "CREATE", BINDING, name="orders/red")[0] == 201
    assert bound(world) == {("blue", "k"), ("green", "k/with/slashes"), ("red", "")}
    assert ask(world, "READ", BINDING, identity="orders/red")[2]["key"] == ""
    for name in ("orders/green/k/with/slashes", "orders/red"):
        assert ask(world, "DELETE", BINDING, name=name)[0] == 204
    for name, status in (("orders", 400), ("nowhere/blue", 404), ("orders/nowhere/k", 404)):
        assert ask(world, "CREATE", BINDING, name=name)[0] == status
        assert ask(world, "READ", BINDING, name=name)[0] == status


def test_a_name_that_may_be_two_bindings_is_refused(world: World) -> None:
    world.broker.declare_queue("blue/k")
    world.broker.exchange("orders").bind("blue/k", "x")
    world.broker.exchange("orders").bind("blue", "k/x")
    status, description, _ = ask(world, "DELETE", BINDING, name="orders/blue/k/x")
    assert status == 409 and "blue/k" in description
    assert ask(world, "CREATE", BINDING, name="orders/blue/k/y")[0] == 400
    assert ask(world, "DELETE", BINDING, {"exchange": "orders", "queue": "blue/k", "key": "x"})[0] == 204


def test_an_exchange_is_bound_to_an_exchange(world: World) -> None:
    world.broker.declare_exchange("all", "fanout")
    status, _, made = ask(world, "CREATE", BINDING, name="all/exchange://orders")
    assert status == 201 and (made["kind"], made["queue"]) == ("exchange", "orders")
    assert ask(world, "READ", BINDING, name=made["identity"])[0] == 200
    assert ask(world, "CREATE", BINDING, {"exchange": "all", "queue": "orders", "kind": "queue"})[0] == 404
    assert ask(world, "DELETE", BINDING, {"exchange": "all", "queue": "orders", "kind": "exchange"})[0] == 204
    assert bound(world, "all") == set()


def test_arguments_of_a_binding(world: World) -> None:
    world.broker.declare_exchange("match", "headers")
    attributes = {"exchange": "match", "queue": "blue", "arguments": {"x-match": "all", "eu": True, "size": 3}}
    assert ask(world, "CREATE", BINDING, attributes)[2]["arguments"] == attributes["arguments"]
    assert ask(world, "READ", BINDING, name="match/blue")[2]["arguments"] == attributes["arguments"]
    other = {**attributes, "arguments": '{"x-match": "any", "eu": false}'}  # flat clients write it as a text
    status, description, _ = ask(world, "CREATE", BINDING, other)
    assert status == 409 and "'blue'" in description
    assert ask(world, "CREATE", BINDING, {**other, "replace": True})[0] == 201
    assert ask(world, "READ", BINDING, name="match/blue")[2]["arguments"] == {"x-match": "any", "eu": False}


def test_an_update_of_a_binding_gives_it_other_arguments(world: World) -> None:
    selector = {"x-filter-jms-selector": "a = 1"}
    status, _, now = ask(world, "UPDATE", BINDING, {"arguments": selector}, name="orders/blue/k")
    assert (status, now["arguments"]) == (200, selector)
    assert ask(world, "READ", BINDING, name="orders/blue/k")[2]["arguments"] == selector
    assert ask(world, "UPDATE", BINDING, {"exchange": "orders", **BLUE})[0] == 200
    assert ask(world, "READ", BINDING, name="orders/blue/k")[2]["arguments"] is None
    for named in ({"name": "orders/green/k"}, {"body": {"exchange": "orders", "queue": "green", "key": "k"}}):
        assert ask(world, "UPDATE", BINDING, **named)[0] == 404
    assert ask(world, "UPDATE", BINDING, {"arguments": {"colour": 1}}, name="orders/blue/k")[0] == 400
    assert bound(world) == {("blue", "k")}


@pytest.mark.parametrize(
    ("attributes", "status", "says"),
    [
        ({"queue": "nowhere"}, 404, "no queue 'nowhere'"),
        ({"exchange": "nowhere"}, 404, "no exchange 'nowhere'"),
        ({"queue": None}, 400, "name of the queue"),
        ({"key": 5}, 400, "key must be a text"),
        ({"kind": "cat"}, 400, "'cat'"),
        ({"arguments": {"x-match": "all"}}, 400, "x-match"),
        ({"arguments": 5}, 400, "arguments must be a map"),
        ({"arguments": "{"}, 400, "JSON"),
        ({"arguments": {"x-filter-jms-selector": "a ="}}, 400, "x-filter-jms-selector"),
        ({"replace": "perhaps"}, 400, "replace"),
    ],
)
def test_a_binding_that_cannot_be_changes_nothing(world: World, attributes: Any, status: int, says: str) -> None:
    got, description, _ = ask(world, "CREATE", BINDING, {"exchange": "orders", "queue": "green", **attributes})
    assert got == status and says in description
    assert bound(world) == {("blue", "k")}


def test_a_query_has_the_bindings_of_all_exchanges(world: World) -> None:
    world.broker.exchange("amq.fanout").bind("red")
    table = ask(world, "QUERY", BINDING, {"attributeNames": ["identity", "exchange", "queue", "key", "matched"]})[2]
    assert table["results"] == [
        ["amq.fanout/red", "amq.fanout", "red", "", 0], ["orders/blue/k", "orders", "blue", "k", 0]
    ]  # fmt: skip


def test_bind_and_unbind_are_operations_of_an_exchange(world: World) -> None:
    assert ask(world, "BIND", EXCHANGE, {"queue": "green", "key": "k"}, name="orders")[0] == 201
    assert ask(world, "UNBIND", EXCHANGE, {"queue": "blue", "key": "k"}, name="orders")[0] == 204
    assert bound(world) == {("green", "k")}
    assert ask(world, "BIND", EXCHANGE, {"queue": "green"}, name="nowhere")[0] == 404
    assert ask(world, "BIND", QUEUE, {"queue": "green"}, name="blue")[0] == 501


# --- one step


def test_rebind_is_one_step(world: World) -> None:
    body = {"add": [{"queue": "green", "key": "k"}, ["red", "x"]], "remove": [{"queue": "blue", "key": "k"}]}
    status, _, said = ask(world, "REBIND", EXCHANGE, body, name="orders")
    assert (status, said) == (200, {"exchange": "orders", "added": 2, "removed": 1, "bindings": 2})
    assert bound(world) == {("green", "k"), ("red", "x")}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"add": [["green", "k"], ["nowhere", "k"]]}, 404, "add[1]: there is no queue 'nowhere'"),
        ({"add": [["green", "k"]], "remove": [["red", "k"]]}, 404, "remove[0] ('red', key 'k')"),
        ({"add": [["green", "k"], {"queue": "red", "arguments": {"colour": 1}}]}, 400, "add[1] ('red'"),
        ({"remove": [], "add": [{**BLUE, "arguments": {"qpid.exclusive-binding": True}}]}, 409, "add[0]"),
        ({"add": [{"queue": "green", "exchange": "amq.direct"}]}, 400, "not of 'orders'"),
        ({"add": [{"que": "green"}]}, 400, "add[0]: a binding has no 'que'"),
        ({"add": [5]}, 400, "add[0]"),
        ({"add": "green"}, 400, "JSON"),
        ({"add": 5}, 400, "add must be a list"),
    ],
)
def test_a_rebind_of_which_one_item_is_illegal_changes_nothing(world: World, body: Any, status: int, says: str) -> None:
    got, description, _ = ask(world, "REBIND", EXCHANGE, {"remove": [["blue", "k"]], **body}, name="orders")
    assert got == status and says in description
    assert bound(world) == {("blue", "k")}


def test_no_message_sees_half_of_a_rebind(world: World) -> None:
    client, sender = Client(world), world.connect().sender("orders")
    publish(sender, "m1")
    client.ask("REBIND", EXCHANGE, {"add": [["green", "k"]], "remove": [["blue", "k"]]}, name="orders")
    publish(sender, "m2")
    assert world.bodies("blue") == ["m1"] and world.bodies("green") == ["m2"]


# --- freezes


def test_a_freeze_holds_messages_and_a_thaw_changes_between_them(world: World) -> None:
    client, sender = Client(world), world.connect().sender("orders")
    publish(sender, "m1")
    lease = client.freeze("orders")
    assert ask(world, "READ", EXCHANGE, name="orders")[2]["frozen"] is True
    assert publish(sender, "m2") == []
    assert client.ask("BIND", EXCHANGE, {"queue": "green", "key": "k"}, name="orders", lease=lease)[0] == 202
    assert client.ask("UNBIND", EXCHANGE, {"queue": "blue", "key": "k"}, name="orders", lease=lease)[0] == 204
    assert bound(world) == {("blue", "k")}  # staged
    assert client.ask("THAW", EXCHANGE, lease=lease) == (200, {"lease": lease, "bindings": {"orders": 1}})
    assert bound(world) == {("green", "k")}
    assert world.bodies("blue") == ["m1"] and world.bodies("green") == ["m2"]


def test_a_thaw_brings_lists_with_it(world: World) -> None:
    client = Client(world)
    lease = client.freeze("orders", "amq.fanout")
    wrong = {"lease": lease, "add": [{"queue": "green", "key": "k"}]}
    status, says = client.ask("THAW", EXCHANGE, wrong)
    assert status == 400 and "add[0]: exchange must be one of" in says
    body = {
        "lease": lease,
        "add": [{"exchange": "orders", "queue": "green", "key": "k"}, {"exchange": "amq.fanout", "queue": "red"}],
        "remove": [{"exchange": "orders", "queue": "blue", "key": "k"}],
    }
    assert client.ask("THAW", EXCHANGE, body)[0] == 200  # it was held on
    assert bound(world) == {("green", "k")} and bound(world, "amq.fanout") == {("red", "")}


def test_a_thaw_of_which_one_item_is_illegal_holds_on_as_it_was(world: World) -> None:
    client = Client(world)
    lease = client.freeze("orders")
    client.ask("BIND", EXCHANGE, {"queue": "red", "key": "k"}, name="orders", lease=lease)
    status, says = client.ask("THAW", EXCHANGE, {"lease": lease, "add": [["green", "k"], ["nowhere", "k"]]})
    assert status == 404 and "add[1]" in says
    assert client.ask("THAW", EXCHANGE, lease=lease)[0] == 200
    assert bound(world) == {("blue", "k"), ("red", "k")}


def test_cancel_forgets_what_was_staged(world: World) -> None:
    client = Client(world)
    lease = client.freeze("orders")
    client.ask("REBIND", EXCHANGE, {"remove": [["blue", "k"]]}, name="orders", lease=lease)
    assert client.ask("CANCEL", EXCHANGE, lease=lease)[0] == 204
    assert bound(world) == {("blue", "k")}
    for operation in ("THAW", "CANCEL"):
        status, says = client.ask(operation, EXCHANGE, lease=lease)
        assert status == 410 and "over" in says


def test_what_is_wrong_with_a_staged_change_is_said_at_once_and_forgotten(world: World) -> None:
    client = Client(world)
    lease = client.freeze("orders")
    body = {"add": [["green", "k"], ["nowhere", "k"]]}
    assert client.ask("REBIND", EXCHANGE, body, name="orders", lease=lease)[0] == 404
    assert client.ask("BIND", EXCHANGE, {"queue": "red"}, name="amq.fanout", lease=lease)[0] == 400
    client.ask("THAW", EXCHANGE, lease=lease)
    assert bound(world) == {("blue", "k")}


def test_the_end_of_the_connection_ends_its_freeze(world: World) -> None:
    client, sender = Client(world), world.connect().sender("orders")
    lease = client.freeze("orders")
    client.ask("UNBIND", EXCHANGE, {"queue": "blue", "key": "k"}, name="orders", lease=lease)
    answers = publish(sender, "m1")
    assert answers == []
    client.peer.cut()
    assert answers == [ACCEPTED] and world.bodies("blue") == ["m1"]


def test_the_limit_of_the_hold_ends_a_freeze_and_a_late_thaw_hears_of_it(world: World) -> None:
    client, sender = Client(world), world.connect().sender("orders")
    lease = client.freeze("orders", max_hold=5)
    client.ask("UNBIND", EXCHANGE, {"queue": "blue", "key": "k"}, name="orders", lease=lease)
    answers = publish(sender, "m1")
    world.advance(4.9)
    assert answers == []
    world.advance(0.2)
    assert answers == [ACCEPTED] and bound(world) == {("blue", "k")}
    status, says = client.ask("THAW", EXCHANGE, lease=lease)
    assert status == 410 and "'orders'" in says and "longer than 5 s" in says
    assert client.ask("BIND", EXCHANGE, {"queue": "red"}, name="orders", lease=lease)[0] == 410


def test_a_lease_is_of_one_connection(world: World) -> None:
    client, other = Client(world), Client(world)
    lease = client.freeze("orders")
    for operation in ("THAW", "CANCEL"):
        assert other.ask(operation, EXCHANGE, lease=lease)[0] == 404
    assert client.ask("THAW", EXCHANGE)[0] == 400
    assert client.ask("THAW", EXCHANGE, lease=lease)[0] == 200


def test_a_request_that_waits_is_answered_when_it_is_done_and_blocks_no_other(world: World) -> None:
    holder, other, third = Client(world), Client(world), Client(world)
    lease = holder.freeze("orders")
    bind = other.post("BIND", EXCHANGE, {"queue": "green", "key": "k"}, name="orders")
    freeze = other.post("FREEZE", EXCHANGE, name="orders")
    wrong = other.post("REBIND", EXCHANGE, {"remove": [["red", "k"]]}, name="orders")
    assert other.heard() == []
    assert other.ask("CREATE", QUEUE, name="made")[0] == 201  # on the same link
    assert third.ask("READ", EXCHANGE, name="orders")[1]["waiting"] == 3
    holder.ask("THAW", EXCHANGE, lease=lease)
    (first, status, _), (second, _, told) = other.heard()
    assert (first, status, second) == (bind, 201, freeze)
    assert world.broker.exchange("orders").is_frozen
    other.post("THAW", EXCHANGE, lease=told["lease"])
    assert sorted((id, status) for id, status, _ in other.heard()) == [(wrong, 404), ("r5", 200)]


def test_who_does_not_want_to_wait_says_how_long(world: World) -> None:
    holder, other = Client(world), Client(world)
    lease = holder.freeze("orders")
    assert other.ask("FREEZE", EXCHANGE, {"timeout": 0}, name="orders")[0] == 408
    for operation, body in [("FREEZE", {}), ("BIND", {"queue": "red"}), ("DELETE", {})]:
        number = other.post(operation, EXCHANGE, {"timeout": 2, **body}, name="orders")
        world.advance(1.9)
        assert other.heard() == []
        world.advance(0.2)
        ((id, status, says),) = other.heard()
        assert (id, status) == (number, 408) and "'orders'" in says
    holder.ask("THAW", EXCHANGE, lease=lease)
    assert bound(world) == {("blue", "k")} and other.heard() == []


def test_the_holder_that_would_wait_for_itself_is_told(world: World) -> None:
    client = Client(world)
    lease = client.freeze("orders")
    status, says = client.ask("BIND", EXCHANGE, {"queue": "red"}, name="orders")
    assert status == 409 and "by the freeze itself" in says
    status, says = client.ask("FREEZE", EXCHANGE, {"exchanges": ["amq.fanout", "orders"]})
    assert status == 409 and lease in says
    assert client.ask("THAW", EXCHANGE, lease=lease)[0] == 200


def test_several_freezes_of_one_connection_are_several_leases(world: World) -> None:
    client = Client(world)
    first, second = client.freeze("orders"), client.freeze("amq.fanout")
    assert first != second
    assert client.ask("CANCEL", EXCHANGE, lease=second)[0] == 204
    assert ask(world, "READ", EXCHANGE, name="orders")[2]["frozen"] is True
    assert client.ask("THAW", EXCHANGE, lease=first)[0] == 200


def test_the_holder_may_delete_what_it_holds(world: World) -> None:
    client, other = Client(world), Client(world)
    lease = client.freeze("orders", "amq.fanout")
    number = other.post("BIND", EXCHANGE, {"queue": "red"}, name="orders")
    assert client.ask("DELETE", EXCHANGE, name="orders")[0] == 204
    assert [(id, status) for id, status, _ in other.heard()] == [(number, 404)]
    assert client.ask("THAW", EXCHANGE, lease=lease) == (200, {"lease": lease, "bindings": {"amq.fanout": 0}})


def test_a_deletion_of_a_frozen_exchange_waits(world: World) -> None:
    world.broker.declare_exchange("news", "topic")
    holder, other = Client(world), Client(world)
    lease = holder.freeze("orders", "news")
    numbers = [other.post("DELETE", EXCHANGE, name="orders"), other.post("DELETE", "topic", name="news")]
    assert other.heard() == [] and ask(world, "READ", EXCHANGE, name="orders")[0] == 200
    holder.ask("THAW", EXCHANGE, lease=lease)
    assert sorted((id, status) for id, status, _ in other.heard()) == [(number, 204) for number in numbers]


def test_a_queue_that_is_deleted_before_it_is_bound_makes_the_thaw_fail(world: World) -> None:
    client = Client(world)
    lease = client.freeze("orders")
    client.ask("REBIND", EXCHANGE, {"add": [["green", "k"]], "remove": [["blue", "k"]]}, name="orders", lease=lease)
    assert client.ask("DELETE", QUEUE, name="green")[0] == 204
    status, says = client.ask("THAW", EXCHANGE, lease=lease)
    assert status == 404 and "green" in says
    assert bound(world) == {("blue", "k")}
    assert ask(world, "READ", EXCHANGE, name="orders")[2]["frozen"] is False


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"exchanges": ["nowhere"]}, 404, "nowhere"),
        ({"exchanges": []}, 400, "exchanges must be a list"),
        ({"exchanges": [5]}, 400, "exchanges must be a list"),
        ({}, 400, "name"),
        ({"exchanges": ["orders"], "timeout": -1}, 400, "timeout"),
        ({"exchanges": ["orders"], "timeout": "soon"}, 400, "timeout"),
        ({"exchanges": ["orders"], "max_hold": 0}, 400, "max_hold"),
        ({"exchanges": ["orders"], "max_hold": float("nan")}, 400, "max_hold"),
        ({"exchanges": ["orders"], "max_hold": True}, 400, "max_hold"),
    ],
)
def test_a_freeze_that_cannot_be_says_why(world: World, body: Any, status: int, says: str) -> None:
    client = Client(world)
    got, description = client.ask("FREEZE", EXCHANGE, body)
    assert got == status and says in description
    assert ask(world, "READ", EXCHANGE, name="orders")[2]["frozen"] is False


@pytest.mark.parametrize(
    ("operation", "kind", "body"),
    [
        ("BIND", EXCHANGE, {"queue": "green", "kee": "k"}),
        ("UNBIND", EXCHANGE, {**BLUE, "timeot": 1}),
        ("CREATE", BINDING, {"exchange": "orders", "queue": "green", "kee": "k"}),
        ("DELETE", BINDING, {"exchange": "orders", **BLUE, "kee": "k"}),
        ("REBIND", EXCHANGE, {"remove": [["blue", "k"]], "ad": []}),
        ("FREEZE", EXCHANGE, {"max_hld": 1}),
    ],
)
def test_an_argument_that_is_not_known_is_no_argument_left_out(
    world: World, operation: str, kind: str, body: Any
) -> None:
    """What was mistyped is said, with what was probably meant; nothing is done without it."""
    client = Client(world)
    wrong = next(key for key in body if key in ("kee", "timeot", "ad", "max_hld"))
    status, says = client.ask(operation, kind, body, **({} if kind == BINDING else {"name": "orders"}))
    assert status == 400 and repr(wrong) in says and "did you mean" in says
    assert bound(world) == {("blue", "k")} and not world.broker.exchange("orders").is_frozen


def test_what_was_read_of_a_binding_says_which_to_delete(world: World) -> None:
    read = ask(world, "READ", BINDING, name="orders/blue/k")[2]
    assert ask(world, "DELETE", BINDING, read)[0] == 204
    assert bound(world) == set()


def test_two_holders_that_want_what_the_other_has_are_told(world: World) -> None:
    one, other = Client(world), Client(world)
    first, second = one.freeze("orders"), other.freeze("amq.fanout")
    waiting = one.post("FREEZE", EXCHANGE, name="amq.fanout")
    status, says = other.ask("FREEZE", EXCHANGE, name="orders")
    assert status == 409 and "wait" in says
    assert other.ask("THAW", EXCHANGE, lease=second)[0] == 200
    ((id, status, told),) = one.heard()
    assert (id, status) == (waiting, 200)
    assert {one.ask("THAW", EXCHANGE, lease=lease)[0] for lease in (first, told["lease"])} == {200}


@pytest.mark.parametrize("seed", range(20))
def test_whatever_holders_do_each_message_goes_one_way_and_in_order(world: World, seed: int) -> None:
    """Connections freeze, stage a switch between blue and green, thaw, cancel, are late and die, while others send."""
    chance = random.Random(seed)
    senders = [world.connect().sender("orders") for _ in range(3)]
    clients = [Client(world) for _ in range(3)]
    leases: dict[Client, str] = {}
    sent: list[list[Any]] = []
    statuses: set[int] = set()
    for number in range(300):
        turn, client = chance.random(), chance.choice(clients)
        if turn < 0.5:
            each = chance.randrange(3)
            sent.append(publish(senders[each], f"{each}-{number}"))
        elif turn < 0.55:
            client.peer.cut()
            leases.pop(client, None)
            clients[clients.index(client)] = Client(world)
        elif turn < 0.65:
            world.advance(2)
        elif client not in leases:
            client.post("FREEZE", EXCHANGE, {"max_hold": 1, "exchanges": ["orders", "amq.fanout"]})
        else:
            new, old = ("green", "blue") if ("blue", "k") in bound(world) else ("blue", "green")
            # Items of two exchanges that are frozen say of which they are.
            items = [{"exchange": "orders", "queue": queue, "key": "k"} for queue in (new, old)]
            body = {"lease": leases.pop(client), "add": items[:1], "remove": items[1:]}
            if chance.random() < 0.3:
                client.post("CANCEL", EXCHANGE, {"lease": body["lease"]})
            else:
                client.post("THAW", EXCHANGE, body)
        for each_client in clients:
            for _, status, told in each_client.heard():
                statuses.add(status)
                assert status in (200, 204, 409, 410)
                if status == 200 and "exchanges" in told:
                    leases[each_client] = told["lease"]
    for client in clients:
        client.peer.cut()
    assert all(answers == [ACCEPTED] for answers in sent)
    bodies = [body.split("-") for name in ("blue", "green") for body in world.bodies(name)]
    assert len(bodies) == len({number for _, number in bodies}) == len(sent)
    assert world.bodies("green") and world.bodies("blue") and 410 in statuses
    for name in ("blue", "green"):
        for each in "012":
            numbers = [int(body[2:]) for body in world.bodies(name) if body[0] == each]
            assert numbers == sorted(numbers)


def test_a_freeze_needs_a_connection(world: World) -> None:
    assert ask(world, "FREEZE", EXCHANGE, name="orders")[0] == 400


def test_a_freeze_that_waits_goes_with_its_connection(world: World) -> None:
    holder, other = Client(world), Client(world)
    lease = holder.freeze("orders")
    other.post("FREEZE", EXCHANGE, name="orders")
    other.peer.cut()
    holder.ask("THAW", EXCHANGE, lease=lease)
    assert ask(world, "READ", EXCHANGE, name="orders")[2]["frozen"] is False


def test_in_a_transaction_a_freeze_begins_at_the_commit(world: World) -> None:
    client = Client(world)
    control = client.peer.controller()
    id = control.declare()
    client.sender.transfer(
        request("FREEZE", EXCHANGE, name="orders", reply_to=client.address), state=in_transaction(id)
    )
    world.run()
    assert ask(world, "READ", EXCHANGE, name="orders")[2]["frozen"] is False
    control.commit(id)
    world.run()
    ((_, status, told),) = client.heard()
    assert status == 200 and client.ask("THAW", EXCHANGE, lease=told["lease"])[0] == 200


def test_only_so_many_leases_that_are_over_are_remembered(world: World) -> None:
    client = Client(world)
    leases = []
    for _ in range(REMEMBERED + 10):
        leases.append(client.freeze("orders"))
        assert client.ask("THAW", EXCHANGE, lease=leases[-1])[0] == 200
    assert client.ask("THAW", EXCHANGE, lease=leases[0])[0] == 404
    assert client.ask("THAW", EXCHANGE, lease=leases[-1])[0] == 410


# --- Broker-J


@pytest.mark.parametrize(
    ("type", "made"),
    [
        ("org.apache.qpid.DirectExchange", "direct"),
        ("org.apache.qpid.TopicExchange", "topic"),
        ("org.apache.qpid.FanoutExchange", "fanout"),
        ("org.apache.qpid.HeadersExchange", "headers"),
    ],
)
def test_an_exchange_in_broker_js_form(world: World, type: str, made: str) -> None:
    body = {
        "name": "x", "object-path": "x", "durable": "true", "unroutableMessageBehaviour": "REJECT",
        "alternateBinding": {"destination": "orders"}, "lifetimePolicy": "PERMANENT",
    }  # fmt: skip
    assert ask(world, "CREATE", type, body)[0] == 201
    exchange = world.broker.exchange("x")
    assert (exchange.type, exchange.settings.durable) == (made, True)
    assert (exchange.settings.alternate, exchange.settings.unroutable) == ("orders", "reject")
    assert ask(world, "READ", "org.apache.qpid.Exchange", {"object-path": "x"})[2]["exchange_type"] == made
    assert ask(world, "DELETE", "org.apache.qpid.Exchange", {"object-path": "x"})[0] == 204


def test_the_type_of_an_exchange_is_in_broker_js_body(world: World) -> None:
    assert ask(world, "CREATE", "org.apache.qpid.Exchange", {"type": "fanout", "name": "x"})[0] == 201
    assert world.broker.exchange("x").type == "fanout"


def test_bind_and_unbind_as_broker_j_has_them(world: World) -> None:
    """Arguments in the body or among the properties, the exchange by `key` and `index`; answered with a boolean."""
    kind, named = "org.apache.qpid.DirectExchange", {"key": "orders", "index": "object-path"}
    binding = {"destination": "green", "bindingKey": "k"}
    assert ask(world, "bind", kind, binding, **named)[::2] == (200, True)
    assert ask(world, "bind", kind, **binding, **named)[::2] == (200, False)
    assert bound(world) == {("blue", "k"), ("green", "k")}
    selecting = {"arguments": '{"x-filter-jms-selector": "a = 1"}', **binding}
    assert ask(world, "bind", kind, **selecting, **named)[0] == 409
    assert ask(world, "bind", kind, **selecting, replaceExistingArguments="true", **named)[::2] == (200, True)
    assert ask(world, "unbind", kind, binding, **named)[::2] == (200, True)
    assert ask(world, "unbind", kind, binding, **named)[::2] == (200, False)
    assert bound(world) == {("blue", "k")}
    assert ask(world, "bind", kind, {"destination": "nowhere"}, **named)[0] == 404


def test_broker_js_destination_may_be_an_exchange(world: World) -> None:
    world.broker.declare_exchange("all", "fanout")
    assert ask(world, "bind", "org.apache.qpid.Exchange", {"destination": "orders"}, name="all")[::2] == (200, True)
    (binding,) = world.broker.exchange("all").bindings()
    assert (binding.kind, binding.queue) == ("exchange", "orders")


def test_an_answer_that_waits_finds_its_way_without_a_connection(world: World) -> None:
    """What `answer` gives then is a promise of octets."""
    client = Client(world)
    lease = client.freeze("orders")
    _, later = answer(world.broker, request("BIND", EXCHANGE, {"queue": "red"}, name="orders"))
    assert not isinstance(later, bytes) and not later.done()
    client.ask("THAW", EXCHANGE, lease=lease)
    assert ReceivedMessage(later.result()).application_properties()["statusCode"] == 201
