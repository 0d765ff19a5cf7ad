"""The management node: requests by message, answers by message (AMQP Management 1.0, working draft 11)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.entities import Kind, QueueKind
from jmsish.broker.management import _ON_KIND, answer
from jmsish.broker.network import kinds as router_kinds
from jmsish.engine.codec import AMQP_VALUE, CORRELATION_ID, DATA, ReceivedMessage, encode_message
from jmsish.engine.outcomes import ACCEPTED, Target
from jmsish.types import Int, ULong
from tests.broker.world import Sender, World, in_transaction, message

QUEUE, TOPIC, NODE = "queue", "topic", "org.amqp.management"


def request(
    operation: str | None, kind: str | None, body: Any = None, *, reply_to: str | None = "back",
    message_id: Any = "m1", correlation_id: Any = None, section: int = AMQP_VALUE, **named: Any,
) -> bytes:  # fmt: skip
    asked = {"operation": operation, "type": kind, **named}
    return encode_message(
        properties=[message_id, None, None, None, reply_to, correlation_id],
        application_properties={name: value for name, value in asked.items() if value is not None},
        body=(section, body),
    )


def ask(world: World, *args: Any, **named: Any) -> tuple[int, str, Any]:
    """Status, description and body of the answer."""
    reply_to, octets = answer(world.broker, request(*args, **named))
    assert reply_to == "back"
    said = ReceivedMessage(octets)
    properties = said.application_properties()
    assert type(properties["statusCode"]) is int  # AMQP int, not long
    return properties["statusCode"], properties["statusDescription"], said.body()[1]


def test_a_queue_is_created_read_updated_and_deleted(world: World) -> None:
    status, _, made = ask(world, "CREATE", QUEUE, {"max_delivery_attempts": 3}, name="orders")
    assert status == 201 and made["name"] == made["identity"] == "orders" and made["type"] == "queue"
    assert made["max_delivery_attempts"] == 3 == world.queue("orders").settings.max_delivery_attempts
    world.connect().sender("orders").send("m1")
    status, _, read = ask(world, "READ", QUEUE, identity="orders")
    assert (status, read["depth"], read["enqueued"], read["consumer_count"]) == (200, 1, 1, 0)
    status, _, now = ask(world, "UPDATE", QUEUE, {"max_messages": 10}, name="orders")
    assert status == 200 and now["max_messages"] == 10 and now["max_delivery_attempts"] == 3
    assert world.queue("orders").settings.max_messages == 10
    assert ask(world, "DELETE", QUEUE, name="orders")[0] == 204
    assert ask(world, "READ", QUEUE, name="orders")[0] == 404


def test_a_topic_is_created_read_and_deleted(world: World) -> None:
    status, _, made = ask(world, "CREATE", TOPIC, name="prices")
    assert status == 201 and made["bindings"] == 0
    assert ask(world, "CREATE", TOPIC, name="prices")[0] == 409
    assert ask(world, "UPDATE", TOPIC, {}, name="prices")[0] == 501
    assert ask(world, "DELETE", TOPIC, name="prices")[0] == 204
    assert ask(world, "READ", TOPIC, name="prices")[0] == 404
    assert ask(world, "DELETE", TOPIC, name="amq.topic")[0] == 400  # it is always there


def test_what_exists_is_not_created_twice(world: World) -> None:
    ask(world, "CREATE", QUEUE, {"max_messages": 1}, name="q")
    status, description, _ = ask(world, "CREATE", QUEUE, {"max_messages": 2}, name="q")
    assert status == 409 and "'q'" in description
    assert world.queue("q").settings.max_messages == 1


@pytest.mark.parametrize("operation", ["READ", "UPDATE", "DELETE", "PURGE"])
def test_what_does_not_exist_is_not_found(world: World, operation: str) -> None:
    status, description, _ = ask(world, operation, QUEUE, name="nowhere")
    assert status == 404 and "nowhere" in description


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ((None, QUEUE), 400, "operation"),
        (("CREATE", None), 400, "type"),
        (("CREATE", QUEUE), 400, "name"),
        (("CREATE", "org.apache.qpid.VirtualHost"), 501, "org.apache.qpid.VirtualHost"),
        (("EXPLODE", QUEUE), 501, "EXPLODE"),
        (("PURGE", TOPIC), 501, "PURGE"),
    ],
)
def test_a_request_that_cannot_be_done_says_why(
    world: World, arguments: tuple[Any, Any], status: int, says: str
) -> None:
    got, description, _ = ask(world, *arguments)
    assert got == status and says in description


@pytest.mark.parametrize(
    "attributes",
    [
        {"max_mesages": 1},
        {"maxMessages": 1},
        {"max_messages": -1},
        {"overflow": "explode"},
        {"overflowPolicy": []},
        {"durable": "yes"},
        ["a", "list"],
        {1: 2},
    ],  # fmt: skip
)
def test_wrong_attributes_change_nothing(world: World, attributes: Any) -> None:
    assert ask(world, "CREATE", QUEUE, attributes, name="q")[0] == 400
    assert [view.name for view in world.broker.queues()] == []
    assert ask(world, "CREATE", TOPIC, {"durable": True}, name="t")[0] == 400


@pytest.mark.parametrize(
    ("operation", "kind", "said"),
    [
        ("PURGE", QUEUE, {"count": 1}),
        ("DELETE", QUEUE, {"if_empty": True}),
        ("DELETE", QUEUE, {"timeouts": 1}),
        ("REDIRECT", QUEUE, {"targt": "other"}),
        ("DELETE", "exchange", {"if_unused": True}),
        ("DELETE", "vhost", {"force": True}),
        ("DELETE", "group", {"force": True}),
        ("RESET", "policy", {"only": "links_denied"}),
    ],
)
def test_an_argument_that_is_not_known_is_refused_and_nothing_is_done(
    world: World, operation: str, kind: str, said: dict[str, Any]
) -> None:
    """Who wants one message removed, or a queue deleted if it is empty, does not mean what is done without that."""
    world.connect().sender("q").send("m1")
    world.broker.declare_queue("other")
    world.broker.declare_exchange("q", "direct")
    world.broker.denials.total_denials = 1
    name = {"vhost": "$default", "group": "$default/$default"}.get(kind, "q")
    status, description, _ = ask(world, operation, kind, said, name=name)
    assert status == 400 and f"{operation} knows no {next(iter(said))!r}" in description
    assert world.queue("q").depth == 1 and world.broker.exchange("q").type == "direct"
    assert world.broker.denials.total_denials == 1 and "$default" in world.broker.admission.vhosts
    assert ask(world, "READ", "group", name="$default/$default")[0] == 200


def test_arguments_of_other_brokers_clients_are_passed_over(world: World) -> None:
    world.broker.declare_queue("q")
    assert ask(world, "DELETE", "org.apache.qpid.Queue", {"durable": True, "actor": "me"}, name="q")[0] == 204


def test_a_request_of_broken_octets_is_answered_too(world: World) -> None:
    assert (
        ask(world, "CREATE", QUEUE, b"\x00\x01", section=DATA, name="q")[0] == 201
    )  # a body that is no map says nothing
    assert ask(world, "QUERY", NODE, {"attributeNames": 5})[0] == 400
    assert ask(world, "QUERY", NODE, offset=Int(-1))[0] == 400


def test_broker_j_s_form_of_create_is_understood(world: World) -> None:
    """The name in the map only, attributes of its own: those with a meaning here are kept, others passed over."""
    body = {"name": "q", "object-path": "q", "maximumDeliveryAttempts": 2, "overflowPolicy": "RING", "lvqKey": "k"}
    status, _, made = ask(world, "CREATE", "org.apache.qpid.Queue", body)
    assert status == 201 and made["max_delivery_attempts"] == 2 and made["overflow"] == "drop-head"
    assert ask(world, "CREATE", "org.apache.qpid.TopicExchange", {"name": "t", "object-path": "t"})[0] == 201
    assert ask(world, "DELETE", "org.apache.qpid.StandardQueue", {"object-path": "q"})[0] == 204


def test_query_gives_a_table(world: World) -> None:
    for name in ("a", "b", "c"):
        world.broker.declare_queue(name)
    world.connect().sender("b").send("m1")
    status, _, table = ask(world, "QUERY", NODE, {"attributeNames": ["name", "depth"]}, entityType=QUEUE)
    assert (status, table) == (200, {"attributeNames": ["name", "depth"], "results": [["a", 0], ["b", 1], ["c", 0]]})
    _, _, some = ask(world, "QUERY", QUEUE, {"attributeNames": ["name"]}, offset=Int(1), count=Int(1))
    assert some["results"] == [["b"]]
    _, _, every = ask(world, "QUERY", NODE)
    rows = [dict(zip(every["attributeNames"], row, strict=True)) for row in every["results"]]
    assert [(row["type"], row["name"]) for row in rows] == [
        ("queue", "a"), ("queue", "b"), ("queue", "c"), ("topic", "amq.topic"),
        ("exchange", "amq.direct"), ("exchange", "amq.topic"), ("exchange", "amq.fanout"), ("exchange", "amq.match"),
        ("broker", world.broker.name), ("policy", world.broker.name), ("vhost", "$default"),
        ("group", "$default/$default"), ("connection", "1"),
    ]  # fmt: skip
    assert "max_delivery_attempts" in every["attributeNames"] and "bindings" in every["attributeNames"]


def test_the_node_says_what_it_manages(world: World) -> None:
    assert set(ask(world, "GET-TYPES", NODE)[2]) == {
        "queue", "topic", "exchange", "binding", "subscription", "broker", "policy", "vhost", "group",
        "connection",
    }  # fmt: skip
    assert ask(world, "GET-OPERATIONS", NODE, entityType=TOPIC)[2] == {"topic": ["CREATE", "READ", "DELETE"]}
    assert "depth" in ask(world, "GET-ATTRIBUTES", NODE)[2]["queue"]
    assert ask(world, "GET-MGMT-NODES", NODE)[2] == []


def test_subscriptions_are_read_and_deleted_by_their_queue(world: World) -> None:
    reader = world.connect("ann").receiver("prices", capabilities=("topic",))
    _, _, table = ask(
        world, "QUERY", "subscription", {"attributeNames": ["identity", "client_id", "topic", "consumers"]}
    )
    ((queue, _, topic, consumers),) = table["results"]
    assert (topic, consumers) == ("prices", 1)
    assert ask(world, "READ", "subscription", name=queue)[2]["durable"] is False
    assert ask(world, "DELETE", "subscription", name=queue)[0] == 204
    world.run()
    assert reader.detached and ask(world, "READ", "subscription", name=queue)[0] == 404


def test_purge_leaves_what_somebody_holds(world: World) -> None:
    peer = world.connect()
    sender, receiver = peer.sender(), peer.receiver()
    for number in range(3):
        sender.send(f"m{number}")
    receiver.flow(1)
    assert ask(world, "PURGE", QUEUE, name="q")[2] == {"purged": 2}
    assert world.depth() == (0, 1)


@pytest.mark.parametrize(
    ("message_id", "correlation_id", "said"), [("m", None, "m"), ("m", "c", "c"), (ULong(7), None, 7)]
)
def test_the_answer_names_the_request(world: World, message_id: Any, correlation_id: Any, said: Any) -> None:
    _, octets = answer(world.broker, request("GET-TYPES", NODE, message_id=message_id, correlation_id=correlation_id))
    assert ReceivedMessage(octets).property(CORRELATION_ID) == said


# --- by links


def post(sender: Sender, octets: bytes, **options: Any) -> list[Any]:
    answers = sender.transfer(octets, **options)
    sender.world.run()
    return answers


def replies(receiver: Any) -> list[tuple[int, Any]]:
    found = []
    for delivery in receiver.arrived:
        said = ReceivedMessage(delivery.payload)
        found.append((int(said.application_properties()["statusCode"]), said.property(CORRELATION_ID)))
    return found


def test_answers_come_on_a_link_from_the_node_by_its_target_address(world: World) -> None:
    peer, other = world.connect(), world.connect()
    mine = peer.receiver("$management", target=Target(address="back"), credit=10)
    theirs = other.receiver("$management", target=Target(address="back"), credit=10)
    sender = peer.sender("$management")
    assert post(sender, request("CREATE", QUEUE, name="orders")) == [ACCEPTED]
    assert "orders" in {view.name for view in world.broker.queues()}
    assert replies(mine) == [(201, "m1")] and replies(theirs) == []


def test_answers_come_to_a_dynamic_node(world: World) -> None:
    peer = world.connect()
    receiver = peer.receiver(None, dynamic=True, credit=10)
    address = receiver.link.remote_source.address
    post(peer.sender("$management"), request("READ", QUEUE, name="nowhere", reply_to=address))
    assert replies(receiver) == [(404, "m1")]


def test_without_reply_to_it_is_done_all_the_same(world: World) -> None:
    post(world.connect().sender("$management"), request("CREATE", QUEUE, name="orders", reply_to=None))
    assert world.queue("orders").depth == 0


def test_an_answer_that_has_nowhere_to_go_makes_no_queue(world: World) -> None:
    post(world.connect().sender("$management"), request("CREATE", QUEUE, name="orders", reply_to="nowhere"))
    assert {view.name for view in world.broker.queues()} == {"orders"}


def test_in_a_transaction_it_is_done_at_the_commit(world: World) -> None:
    peer = world.connect()
    control = peer.controller()
    first, second = control.declare(), control.declare()
    sender = peer.sender("$management")
    post(sender, request("CREATE", QUEUE, name="a"), state=in_transaction(first))
    post(sender, request("CREATE", QUEUE, name="b"), state=in_transaction(second))
    assert world.broker.queues() == []
    control.commit(first)
    control.roll_back(second)
    assert [view.name for view in world.broker.queues()] == ["a"]


def test_by_the_anonymous_relay(world: World) -> None:
    peer = world.connect()
    octets = encode_message(
        properties=["m1", None, "$management", None, None],
        application_properties={"operation": "CREATE", "type": "queue", "name": "orders"},
    )
    post(peer.sender(None), octets)
    assert world.queue("orders").depth == 0


def test_a_message_that_is_no_request_makes_nothing(world: World) -> None:
    post(world.connect().sender("$management"), message("nonsense"))
    assert world.broker.queues() == []


def test_there_is_no_queue_of_that_name(world: World) -> None:
    with pytest.raises(ValueError, match=r"\$management"):
        world.broker.declare_queue("$management")


def test_the_broker_itself_is_read(world: World) -> None:
    world.connect().sender("orders").send("m1")
    status, _, read = ask(world, "READ", "broker", name="anything")
    assert status == 200 and read["type"] == "broker" and read["name"] == world.broker.name
    assert (read["queues"], read["messages"], read["connections"]) == (1, 1, 1)
    assert ask(world, "DELETE", "broker", name="anything")[0] == 501


@pytest.mark.parametrize("kind", ["broker", "policy"])
def test_what_there_is_one_of_needs_no_name(world: World, kind: str) -> None:
    status, _, read = ask(world, "READ", kind)
    assert status == 200 and read["name"] == world.broker.name


def test_statistics_as_broker_j_has_them(world: World) -> None:
    """It names an entity by `key` and `index`, and calls what serves a hostname a virtual host."""
    world.connect().sender("orders").send("m1")
    status, _, found = ask(
        world, "getStatistics", "org.apache.qpid.VirtualHost", key="any", index="object-path", statistics="[]"
    )
    assert status == 200
    assert found == {"queueCount": 1, "totalDepthOfQueuesMessages": 1, "connectionCount": 1}
    assert ask(world, "getStatistics", "queue", name="orders")[0] == 501


def test_an_entity_is_named_by_a_key_of_the_properties_too(world: World) -> None:
    ask(world, "CREATE", QUEUE, name="orders")
    assert ask(world, "UPDATE", QUEUE, {"max_messages": 3}, key="orders", index="object-path")[0] == 200
    assert world.queue("orders").settings.max_messages == 3


def test_settings_as_texts_and_by_broker_js_names(world: World) -> None:
    attributes = {
        "durable": "false", "maximumDeliveryAttempts": "3", "messageGroupKeyOverride": "account",
        "messageGroupType": "SHARED_GROUPS",
    }  # fmt: skip
    assert ask(world, "CREATE", "org.apache.qpid.Queue", attributes, name="q")[0] == 201
    settings = world.queue("q").settings
    assert (settings.durable, settings.max_delivery_attempts) == (False, 3)
    assert (settings.group_key, settings.sticky_groups) == ("account", False)
    status, description, _ = ask(world, "CREATE", QUEUE, {"durable": "maybe"}, name="other")
    assert status == 400 and "durable must be true or false" in description
    assert ask(world, "CREATE", QUEUE, {"max_messages": "many"}, name="other")[0] == 400


def test_requests_that_cannot_be_read_hurt_nobody(world: World) -> None:
    """Unreadable where the answer is to go: nobody is told. Unreadable elsewhere: 400. The broker goes on."""
    peer = world.connect()
    answers, sender = peer.receiver(dynamic=True, address=None, credit=10), peer.sender("$management")
    address = answers.link.remote_source.address
    good = request("CREATE", QUEUE, name="qqqq", reply_to=address)
    assert sender.transfer(good.replace(b"m1", b"\xff\xff")) == []
    sender.transfer(good.replace(b"qqqq", b"\xff\xff\xff\xff"))
    world.run()
    (delivery,) = answers.take()
    assert ReceivedMessage(delivery.payload).application_properties()["statusCode"] == 400
    assert not sender.detached and not peer.failed and "qqqq" not in world.broker.router.queues


def test_an_unreadable_request_in_a_transaction_leaves_the_rest_of_the_commit_whole(world: World) -> None:
    peer = world.connect()
    controller = peer.controller()
    txn_id = controller.declare()
    sender = peer.sender("$management")
    bad = request("CREATE", QUEUE, name="made").replace(b"m1", b"\xff\xff")
    sender.transfer(bad, state=in_transaction(txn_id))
    peer.sender("q").send("m1", state=in_transaction(txn_id))
    assert controller.commit(txn_id) is None and world.bodies() == ["m1"]


def test_a_page_of_a_query_looks_at_no_other_entities(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        world.broker.declare_queue(f"q{number}")
    looked_at: list[str] = []
    describe = QueueKind.describe
    monkeypatch.setattr(QueueKind, "describe", lambda kind, view: looked_at.append(view.name) or describe(kind, view))
    table = ask(world, "QUERY", NODE, {"attributeNames": ["name"]}, offset=Int(15), count=Int(2))[2]
    assert table["results"] == [["q15"], ["q16"]] and looked_at == ["q15", "q16"]
    assert ask(world, "QUERY", QUEUE, offset=ULong(2**64 - 1), count=ULong(2**64 - 1))[2]["results"] == []


METHODS = {"CREATE": "create", "READ": "read", "UPDATE": "update", "DELETE": "delete", "PURGE": "purge",
           "getStatistics": "statistics"}  # fmt: skip


def each_kind() -> list[type[Kind[Any]]]:
    """Those of a broker and those of a router, which the import has made."""
    assert router_kinds
    return sorted(Kind.__subclasses__(), key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", each_kind(), ids=lambda kind: kind.__name__)
def test_a_kind_can_do_all_the_operations_it_names(kind: type[Kind[Any]]) -> None:
    """The methods of the base are only a declaration: one that is asked for is there, and a row of a QUERY always."""
    asked = [operation for operation in kind.operations if (kind.name, operation) not in _ON_KIND]
    needed = {METHODS[operation] for operation in asked if operation in METHODS} | {"entities", "describe"}
    assert [name for name in sorted(needed) if getattr(kind, name) is getattr(Kind, name)] == []
