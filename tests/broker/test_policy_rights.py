"""Who may create, delete, bind, freeze, purge and manage: by request, on first use, by dynamic nodes, subscriptions."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.management import RIGHTS, answer
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.outcomes import ACCEPTED, Rejected, Source, Target
from tests.broker.policies import LINK, as_user, config, group, told, world
from tests.broker.test_management import request
from tests.broker.test_policy_links import counted, to
from tests.broker.world import Peer, World

BINDING = {"exchange": "amq.topic", "queue": "q", "key": "k"}

REQUESTS: list[tuple[str, str, str, dict[str, Any], Any]] = [
    ("may_create", "CREATE", "queue", {"name": "new"}, {}),
    ("may_create", "UPDATE", "queue", {"name": "q"}, {"max_messages": 5}),
    ("may_create", "CREATE", "exchange", {"name": "new"}, {"exchange_type": "topic"}),
    ("may_create", "CREATE", "topic", {"name": "new"}, None),
    ("may_delete", "DELETE", "queue", {"name": "q"}, None),
    ("may_delete", "DELETE", "exchange", {"name": "x"}, None),
    ("may_purge", "PURGE", "queue", {"name": "q"}, None),
    ("may_bind", "BIND", "exchange", {"name": "x"}, {"queue": "q", "key": "k"}),
    ("may_bind", "UNBIND", "exchange", {"name": "x"}, {"queue": "q", "key": "bound"}),
    ("may_bind", "REBIND", "exchange", {"name": "x"}, {"add": [["q", "k"]]}),
    ("may_bind", "CREATE", "binding", {"name": "x/q/k"}, {"exchange": "x", "queue": "q", "key": "k"}),
    ("may_bind", "DELETE", "binding", {"name": "x/q/bound"}, None),
    ("may_bind", "REDIRECT", "queue", {"name": "q"}, {"target": "r"}),
    ("may_freeze", "FREEZE", "exchange", {"name": "x"}, {}),
]


def served(**settings: Any) -> tuple[World, Peer]:
    """A broker with a queue, an exchange and a binding, and somebody who has all rights but some."""
    made = world(may_manage=True, **settings)
    for name in ("q", "r"):
        made.broker.declare_queue(name)
    made.broker.declare_exchange("x", "direct").bind("q", "bound")
    return made, made.connect()


def ask(peer: Peer, operation: str, kind: str, body: Any = None, **named: Any) -> tuple[int, str, Any]:
    _, octets = answer(peer.world.broker, request(operation, kind, body, **named), peer.connection)
    assert isinstance(octets, bytes) or octets.done()
    said = ReceivedMessage(octets if isinstance(octets, bytes) else octets.result())
    properties = said.application_properties()
    return properties["statusCode"], properties["statusDescription"], said.body()[1]


@pytest.mark.parametrize(("right", "operation", "kind", "named", "body"), REQUESTS)
@pytest.mark.parametrize("allowed", [True, False])
def test_rights_at_the_management_node(
    right: str, operation: str, kind: str, named: dict[str, Any], body: Any, allowed: bool
) -> None:
    made, peer = served(**{right: allowed})
    before = _picture(made)
    status, description, _ = ask(peer, operation, kind, body, **named)
    if allowed:
        assert 200 <= status < 300, description
    else:
        assert status == 403 and right in description and "'anonymous'" in description
        assert _picture(made) == before


def _picture(made: World) -> Any:
    broker = made.broker
    return (
        [(view.name, view.settings, view.redirected_to) for view in broker.queues()],
        [(view.name, view.bindings(), view.is_frozen) for view in broker.exchanges()],
    )


def test_every_operation_of_the_node_asks_for_a_right_or_only_looks() -> None:
    changing = {operation for _, operation, _, _, _ in REQUESTS} | {"THAW", "CANCEL", "bind", "unbind"}
    assert set(RIGHTS) == changing


@pytest.mark.parametrize("operation", ["READ", "QUERY"])
def test_who_may_only_look_is_served(operation: str) -> None:
    _, peer = served(**dict.fromkeys(set(RIGHTS.values()), False))
    assert ask(peer, operation, "queue", name="q")[0] == 200


LEADING: list[tuple[str, str, dict[str, Any], Any]] = [
    ("CREATE", "queue", {"name": "joe.new"}, {"dead_letter": "others"}),
    ("UPDATE", "queue", {"name": "joe.q"}, {"expiry_address": "others"}),
    ("CREATE", "exchange", {"name": "joe.x"}, {"exchange_type": "topic", "alternate": "prices"}),
    ("UPDATE", "exchange", {"name": "mine"}, {"alternate": "prices"}),
    ("REDIRECT", "queue", {"name": "joe.q"}, {"target": "others"}),
    ("REDIRECT", "queue", {"name": "others"}, {"target": "joe.q"}),
    ("BIND", "exchange", {"name": "prices"}, {"queue": "joe.q", "key": "eu.fr"}),
    ("BIND", "exchange", {"name": "mine"}, {"queue": "others", "key": "k"}),
    ("BIND", "exchange", {"name": "mine"}, {"queue": "prices", "kind": "exchange", "key": "k"}),
    ("BIND", "exchange", {"name": "news"}, {"queue": "joe.q", "key": "#"}),
    ("REBIND", "exchange", {"name": "prices"}, {"add": [["joe.q", "k"]]}),
    ("CREATE", "binding", {"name": "prices/joe.q/k"}, None),
    ("bind", "org.apache.qpid.Exchange", {"name": "prices"}, {"destination": "joe.q", "bindingKey": "k"}),
]
"""What would lead messages past the lists of one who may use the node."""
NARROW = ["joe.*", "mine", "news/eu.*", "$management"]


def narrow(**settings: Any) -> tuple[World, Peer]:
    made = world(sources=NARROW, targets=NARROW, **settings)
    for name in ("joe.q", "joe.r", "others"):
        made.broker.declare_queue(name)
    for name in ("prices", "mine", "news"):
        made.broker.declare_exchange(name, "topic")
    return made, as_user(made)


@pytest.mark.parametrize(("operation", "kind", "named", "body"), LEADING)
def test_nothing_is_led_by_request_where_one_may_not_receive_or_send(
    operation: str, kind: str, named: dict[str, Any], body: Any
) -> None:
    made, peer = narrow()
    before = _picture(made)
    status, description, _ = ask(peer, operation, kind, body, **named)
    assert status == 403 and "'joe'" in description and _picture(made) == before
    made, peer = narrow(may_manage=True)
    status, description, _ = ask(peer, operation, kind, body, **named)
    assert 200 <= status < 300, description


@pytest.mark.parametrize(
    ("operation", "kind", "named", "body"),
    [
        ("CREATE", "queue", {"name": "joe.new"}, {"dead_letter": "joe.dead", "expiry_address": ""}),
        ("CREATE", "exchange", {"name": "joe.x"}, {"exchange_type": "topic", "alternate": "mine"}),
        ("REDIRECT", "queue", {"name": "joe.q"}, {"target": "joe.r"}),
        ("BIND", "exchange", {"name": "mine"}, {"queue": "joe.q", "key": "any"}),
        ("BIND", "exchange", {"name": "news"}, {"queue": "joe.q", "key": "eu.fr"}),
    ],
)
def test_what_stays_within_the_lists_is_led(operation: str, kind: str, named: dict[str, Any], body: Any) -> None:
    status, description, _ = ask(narrow()[1], operation, kind, body, **named)
    assert 200 <= status < 300, description


# --- the node itself


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"may_manage": True}, True),
        ({"may_manage": True, "sources": [], "targets": []}, True),
        ({"may_manage": False}, False),
        ({}, True),
        ({"sources": ["a*"], "targets": ["a*"]}, False),
        ({"sources": ["$management"], "targets": ["$management"]}, True),
    ],
)
def test_may_manage_lets_into_the_node_or_else_the_lists_do(settings: dict[str, Any], allowed: bool) -> None:
    made = world(**settings)
    peer = made.connect()
    sender, receiver = peer.sender("$management"), peer.receiver("$management")
    for end in (sender, receiver):
        assert end.detached is not allowed
        assert allowed or told(end.error) == LINK
    assert counted(made) == ((0, 0, 0, 0) if allowed else (2, 0, 1, 1))
    relayed = peer.sender(None).send("m1", properties=to("$management"))
    assert (relayed[0][0] == ACCEPTED) is allowed


# --- what is made without a request


def test_without_may_create_a_queue_has_to_be_there() -> None:
    made = world(may_create=False)
    made.broker.declare_queue("there")
    peer = made.connect()
    assert not peer.sender("there").detached and not peer.receiver("there").detached
    for end in (peer.sender("new"), peer.receiver("new")):
        assert end.error is not None and end.error.condition == "amqp:unauthorized-access"
        assert "may_create" in (end.error.description or "")
    assert counted(made) == (2, 0, 1, 1)
    anonymous = peer.sender(None)
    answers = [anonymous.send("m", properties=to(name))[0][0] for name in ("there", "new")]
    assert answers[0] == ACCEPTED and isinstance(answers[1], Rejected) and answers[1].error is not None
    assert answers[1].error.condition == "amqp:unauthorized-access" and not anonymous.detached
    assert [view.name for view in made.broker.queues()] == ["there"]


def test_without_may_create_there_are_no_dynamic_nodes() -> None:
    made = world(may_create=False)
    peer = made.connect()
    for end in (peer.receiver(None, dynamic=True), peer.sender(target=Target(dynamic=True))):
        assert told(end.error) == LINK
    assert made.broker.queues() == []


def durable(peer: Peer, topic: str = "news", policy: str = "never") -> Any:
    source = Source(address=topic, durable=2, expiry_policy=policy, capabilities=("topic",))
    return peer.receiver(source=source)


@pytest.mark.parametrize("missing", ["may_create", "may_bind"])
def test_a_durable_subscription_is_created_and_bound_and_one_that_goes_with_its_link_is_not(missing: str) -> None:
    made = world(**{missing: False})
    peer = made.connect()
    refused = durable(peer)
    assert refused.error is not None and refused.error.condition == "amqp:unauthorized-access"
    assert missing in (refused.error.description or "") and made.broker.subscriptions() == []
    assert not durable(peer, policy="link-detach").detached


def test_a_durable_subscription_that_is_there_may_be_read_without_these_rights() -> None:
    made = World(config({"groups": {
        "maker": {**group(), "users": ["alice"]}, "reader": {**group(may_create=False, may_bind=False)},
    }}))  # fmt: skip
    ends = [_End(), _End()]
    for name, end in zip(("alice", "bob"), ends, strict=True):
        peer = as_user(made, name, container_id="desk")
        source = Source(address="news", durable=2, expiry_policy="never", capabilities=("topic",))
        peer.session.receiver("mine", source=source, target=Target(address="x"), context=end)
        made.run()
        assert not end.detached
        peer.cut()


class _End:
    error: Any = None
    detached = False
    arrived: list[Any] = []


# --- how many queues


def limited(**policy: Any) -> World:
    return World({"policy": {"max_queues": 2, **policy}, "queues": {"one": {}}})


def test_max_queues_refuses_the_next_one_however_it_would_be_made() -> None:
    made = limited()
    peer = made.connect()
    assert not peer.sender("two").detached
    ends = [peer.sender("three"), peer.receiver("three"), peer.receiver(None, dynamic=True), durable(peer),
            durable(peer, policy="link-detach")]  # fmt: skip
    for end in ends:
        assert end.error is not None and end.error.condition == "amqp:resource-limit-exceeded"
        assert "max_queues is 2" in (end.error.description or "")
    ((outcome,),) = peer.sender(None).send("m", properties=to("three"))
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:resource-limit-exceeded"
    assert ask(peer, "CREATE", "queue", name="three")[0] == 409
    assert ask(peer, "UPDATE", "queue", {"max_messages": 1}, name="one")[0] == 200
    assert not peer.sender("one").detached and len(made.broker.queues()) == 2
    made.broker.delete_queue("two")
    assert not peer.sender("three").detached


def test_who_manages_needs_no_queue_and_no_right_to_make_one() -> None:
    """A broker with all the queues it may have, and a group that may make none, are managed as others are."""
    made = World({"policy": {"max_queues": 1}, "queues": {"one": {}},
                  **config(may_manage=True, may_create=False, allow_dynamic_source=False, sources=[], targets=[])})
    peer = made.connect()
    answers = peer.receiver("$management", credit=9, target=Target(address="me"))
    sender = peer.sender("$management")
    sender.send_octets(request("DELETE", "queue", name="one", reply_to="me"))
    sender.send_octets(request("QUERY", "queue", reply_to="me"))
    deleted, queried = (ReceivedMessage(delivery.payload) for delivery in answers.take())
    assert deleted.application_properties()["statusCode"] == 204
    assert queried.body()[1]["results"] == [] == made.broker.queues(), "nor is there a queue that others could see"
    assert made.connect().receiver("$management").detached is False
    answers.detach(closed=False)
    assert not peer.connection.temporaries and next(iter(peer.connection.answers.values())).deleted
    again = peer.receiver("$management", credit=9, target=Target(address="me"))
    sender.send_octets(request("QUERY", "queue", reply_to="me"))
    assert len(again.take()) == 1


def test_max_queues_does_not_lose_dead_letters() -> None:
    made = limited(max_queues=1)
    made.broker.declare_queue("one", max_delivery_attempts=1)
    peer = made.connect()
    peer.sender("one").send("m1")
    receiver = peer.receiver("one", credit=1)
    receiver.dispose(receiver.take(), Rejected())
    assert made.bodies("DLQ") == ["m1"]


def test_a_subscription_that_would_be_made_anew_is_not_lost_for_want_of_a_queue() -> None:
    """Another topic under its name: the old one goes as the new one comes, so there is room."""
    made = limited()
    peer = made.connect(container_id="desk")
    for topic in ("news", "sport"):
        source = Source(address=topic, durable=2, expiry_policy="never", capabilities=("topic",))
        link = peer.session.receiver("mine", source=source, target=Target(address="x"), context=_End())
        made.run()
        assert link.local_open and made.broker.subscriptions()[0].topic == topic
        link.detach(closed=False)
        made.run()
