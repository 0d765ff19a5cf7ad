"""The four types of exchanges and the nameless one, by the tables 1.1 to 1.5 and 1.8: names, types, what they match."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsish.broker import Broker
from jmsish.broker.exchanges import PREDECLARED
from jmsish.engine.codec import message_annotations_at, split_header
from jmsish.engine.outcomes import ACCEPTED, RELEASED, Rejected, Released, Source, Target, TransactionalState
from jmsish.engine.values import encode, encode_described, encode_map, encode_string
from jmsish.errors import InvalidDestinationError, InvalidSelectorError
from tests.broker.pubsub import condition
from tests.broker.test_topics import sent, subject
from tests.broker.wiring import Wiring, bearing, names, octets, put
from tests.broker.world import Clock, World, body_of, in_transaction

TYPES = ["direct", "topic", "fanout", "headers"]
ALL = {"x-match": "all"}


@pytest.fixture
def wiring() -> Wiring:
    return Wiring()


def arguments_for(type: str) -> dict[str, Any] | None:
    """A binding of a headers exchange that matches everything; the others need no arguments."""
    return dict(ALL) if type == "headers" else None


# --- names and types


def test_the_predeclared_exchanges(world: World) -> None:
    assert [(view.name, view.type, view.settings.durable) for view in world.broker.exchanges()] == [
        ("amq.direct", "direct", True), ("amq.topic", "topic", True), ("amq.fanout", "fanout", True),
        ("amq.match", "headers", True),
    ]  # fmt: skip


@pytest.mark.parametrize("name", [*PREDECLARED, ""])
def test_the_predeclared_are_never_deleted(world: World, name: str) -> None:
    with pytest.raises(ValueError, match="is always there"):
        world.broker.delete_exchange(name)
    assert not world.broker.exchange(name).is_deleted


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["amq.new", "qpid.new", "jmsish.new", "", "a/b", "$management"])
def test_reserved_names(world: World, name: str, type: str) -> None:
    with pytest.raises(ValueError, match="reserved|needs a name|has a '/'|the management node"):
        world.broker.declare_exchange(name, type)
    assert len(world.broker.exchanges()) == len(PREDECLARED)


@pytest.mark.parametrize("type", TYPES)
def test_declared_again_it_is_the_same_with_its_bindings(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type, unroutable="reject")
    wiring.bind(exchange, "q0", "k", arguments_for(type))
    assert wiring.declare("x", type) is exchange
    assert exchange.table.size == 1 and exchange.settings.unroutable == "reject"


@pytest.mark.parametrize("other", TYPES)
@pytest.mark.parametrize("type", TYPES)
def test_declared_again_with_another_type(wiring: Wiring, type: str, other: str) -> None:
    wiring.declare("x", type)
    if other != type:
        with pytest.raises(ValueError, match=f"its type is '{type}', not '{other}'"):
            wiring.declare("x", other)
    assert wiring.exchanges.named("x").type == type


def test_settings_given_later_are_in_force_from_then(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "fanout", sequence=True)
    wiring.declare("x", "fanout", unroutable="release")
    assert exchange.settings.sequence and exchange.unroutable == "release"


@pytest.mark.parametrize(("settings", "error", "words"), [
    ({"durabel": True}, ValueError, "unknown setting 'durabel' of the exchange 'x': did you mean 'durable'"),
    ({"durable": 1}, TypeError, "durable must be true or false"),
    ({"sequence": "yes"}, TypeError, "sequence must be true or false"),
    ({"unroutable": "drop"}, ValueError, "unroutable must be one of discard, reject, release, not 'drop'"),
    ({"alternate": ""}, ValueError, "not empty"),
    ({"alternate": 5}, TypeError, "the name of an exchange"),
    ({"alternate": "nowhere"}, InvalidDestinationError, "no exchange 'nowhere'"),
])  # fmt: skip
def test_wrong_settings_make_nothing(wiring: Wiring, settings: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        wiring.declare("x", "direct", **settings)
    assert wiring.exchanges.get("x") is None
    exchange = wiring.declare("x", "direct")
    before = exchange.settings
    with pytest.raises(error, match=words):
        wiring.declare("x", "direct", **settings)
    assert exchange.settings == before


def test_the_predeclared_take_settings_but_these(wiring: Wiring) -> None:
    wiring.declare("amq.fanout", "fanout", unroutable="reject")
    assert wiring.exchanges.named("amq.fanout").unroutable == "reject"
    for wrong in ({"auto_delete": True}, {"durable": False}):
        with pytest.raises(ValueError, match="it is durable, and never deleted"):
            wiring.declare("amq.fanout", "fanout", **wrong)


def test_durable_only_if_both_ends_are(wiring: Wiring) -> None:
    wiring.queue("lasting", durable=True)
    for durable in (True, False):
        exchange = wiring.declare(f"x{durable}", "direct", durable=durable)
        wiring.bind(exchange, "lasting", "k")
        wiring.bind(exchange, "q0", "k")
        exchange.bind(wiring.exchanges.named("amq.fanout"), "k")
        assert {bound.binding.queue: exchange.is_durable(bound) for bound in exchange.table} == {
            "lasting": durable, "q0": False, "amq.fanout": durable,
        }  # fmt: skip


# --- direct (1.4)


@pytest.mark.parametrize(("bound", "key", "wanted"), [
    ("a", "a", True), ("a", "A", False), ("A", "a", False), ("", "", True), ("", "a", False), ("a", "", False),
    ("*", "a", False), ("#", "a", False), ("*", "*", True), ("#", "#", True), ("a.*", "a.b", False),
    ("a.b", "a.b", True), ("a.", "a", False), (" a", "a", False), ("ä", "ä", True), ("ä", "a\u0308", False),
    ("x" * 5000, "x" * 5000, True),
])  # fmt: skip
def test_direct_keys_are_equal_octet_for_octet(wiring: Wiring, bound: str, key: str, wanted: bool) -> None:
    exchange = wiring.exchanges.named("amq.direct")
    wiring.bind(exchange, "q0", bound)
    assert names(exchange, key) == ["q0"] * wanted


def test_many_queues_for_a_key_and_many_keys_for_a_queue(wiring: Wiring) -> None:
    exchange = wiring.declare("d", "direct")
    for queue, key in (("q0", "a"), ("q1", "a"), ("q0", "b"), ("q2", "c")):
        wiring.bind(exchange, queue, key)
    assert names(exchange, "a") == ["q0", "q1"] and names(exchange, "b") == ["q0"] and names(exchange, "c") == ["q2"]
    assert wiring.unbind(exchange, "q0", "a")
    assert names(exchange, "a") == ["q1"] and names(exchange, "b") == ["q0"]


def test_the_empty_key_matches_messages_without_a_subject(world: World) -> None:
    world.broker.declare_queue("q")
    world.broker.exchange("amq.direct").bind("q")
    sender = world.connect().sender("amq.direct")
    assert sent(sender, "m1") == [ACCEPTED]
    assert isinstance(sent(sender, "m2", properties=subject("a"))[0], Rejected)
    assert world.bodies() == ["m1"]


def test_rabbitmq_16425_the_empty_key_stays_in_its_exchange(wiring: Wiring) -> None:
    one, other = wiring.declare("one", "topic"), wiring.declare("other", "topic")
    wiring.bind(one, "q0", "#")
    wiring.bind(other, "q1", "")
    assert names(one, "") == ["q0"] and names(other, "") == ["q1"]


# --- exclusive bindings


def test_an_exclusive_binding_takes_the_place_of_all_others_with_its_key(wiring: Wiring) -> None:
    exchange = wiring.declare("d", "direct")
    for queue in ("q0", "q1", "q2"):
        wiring.bind(exchange, queue, "k")
        wiring.bind(exchange, queue, "other")
    before = exchange.table
    assert wiring.bind(exchange, "q3", "k", {"qpid.exclusive-binding": True})
    assert names(exchange, "k") == ["q3"] and names(exchange, "other") == ["q0", "q1", "q2"]
    # One step: the table before has all of the old bindings, the table after only the new one.
    assert sorted(bound.binding.queue for bound in before.at("k")) == ["q0", "q1", "q2"]


def test_what_is_bound_after_it_stands_beside_it(wiring: Wiring) -> None:
    exchange = wiring.declare("d", "direct")
    wiring.bind(exchange, "q0", "k", {"qpid.exclusive-binding": 1})
    wiring.bind(exchange, "q1", "k")
    assert names(exchange, "k") == ["q0", "q1"]
    assert wiring.bind(exchange, "q0", "k", {"qpid.exclusive-binding": True})
    assert names(exchange, "k") == ["q0"]
    assert not wiring.bind(exchange, "q0", "k", {"qpid.exclusive-binding": True})


def test_an_exclusive_binding_refused_leaves_the_others(wiring: Wiring) -> None:
    exchange = wiring.declare("d", "direct")
    wiring.bind(exchange, "q0", "k")
    wiring.bind(exchange, "q1", "k")
    with pytest.raises(ValueError, match="and other arguments"):
        wiring.bind(exchange, "q0", "k", {"qpid.exclusive-binding": True})
    assert names(exchange, "k") == ["q0", "q1"]
    assert wiring.bind(exchange, "q0", "k", {"qpid.exclusive-binding": True}, replace=True)
    assert names(exchange, "k") == ["q0"]


@pytest.mark.parametrize("type", ["topic", "fanout"])
def test_only_direct_exchanges_have_exclusive_bindings(wiring: Wiring, type: str) -> None:
    with pytest.raises(ValueError, match=f"a {type} exchange knows no argument 'qpid.exclusive-binding'"):
        wiring.bind(wiring.declare("x", type), "q0", "k", {"qpid.exclusive-binding": True})


@pytest.mark.parametrize("value", ["yes", 2, None, 1.0])
def test_exclusive_is_true_or_false(wiring: Wiring, value: Any) -> None:
    exchange = wiring.declare("d", "direct")
    with pytest.raises(ValueError, match="is true or false"):
        wiring.bind(exchange, "q0", "k", {"qpid.exclusive-binding": value})


# --- fanout (1.3)


def test_fanout_gives_everything_to_all_once(wiring: Wiring) -> None:
    exchange = wiring.declare("f", "fanout")
    assert wiring.bind(exchange, "q0") and wiring.bind(exchange, "q1", "key") and wiring.bind(exchange, "q1", "other")
    assert not wiring.bind(exchange, "q1", "key")
    for key in ("", "key", "anything", "#"):
        assert names(exchange, key) == ["q0", "q1"]
    assert exchange.table.size == 3
    assert wiring.unbind(exchange, "q1", "key") and names(exchange) == ["q0", "q1"]
    assert wiring.unbind(exchange, "q1", "other") and names(exchange) == ["q0"]


def test_a_filtered_and_an_unfiltered_binding_of_one_queue(wiring: Wiring) -> None:
    exchange = wiring.declare("f", "fanout")
    wiring.bind(exchange, "q0", "some", {"x-filter-jms-selector": "n > 5"})
    assert names(exchange, "", bearing(n=5)) == [] and names(exchange, "", bearing(n=6)) == ["q0"]
    wiring.bind(exchange, "q0", "all")
    assert names(exchange, "", bearing(n=5)) == ["q0"] == names(exchange, "", bearing(n=6))


# --- selectors


@pytest.mark.parametrize("type", TYPES)
def test_a_binding_takes_what_its_selector_selects(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    wiring.bind(exchange, "q0", "k", {**(arguments_for(type) or {}), "x-filter-jms-selector": "colour = 'red'"})
    wiring.bind(exchange, "q1", "k", arguments_for(type))
    assert names(exchange, "k", bearing(colour="red")) == ["q0", "q1"]
    assert names(exchange, "k", bearing(colour="blue")) == ["q1"]
    assert names(exchange, "k") == ["q1"]


@pytest.mark.parametrize("type", TYPES)
def test_a_selector_that_cannot_be_read_binds_nothing(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    arguments = {**(arguments_for(type) or {}), "x-filter-jms-selector": "= 1"}
    with pytest.raises(InvalidSelectorError, match="x-filter-jms-selector"):
        wiring.bind(exchange, "q0", "k", arguments)
    with pytest.raises(TypeError, match="is a selector, a str, not int"):
        wiring.bind(exchange, "q0", "k", {**arguments, "x-filter-jms-selector": 1})
    assert exchange.table.size == 0


def test_a_blank_selector_is_none(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "direct")
    wiring.bind(exchange, "q0", "k", {"x-filter-jms-selector": "  "})
    assert names(exchange, "k") == ["q0"]
    assert not wiring.bind(exchange, "q0", "k")


@pytest.mark.parametrize("type", ["direct", "topic", "fanout"])
@pytest.mark.parametrize("arguments", [{"x-match": "all"}, {"colour": "red"}, {"x-filter-jms-selektor": "a = 1"}])
def test_unknown_arguments_are_refused(wiring: Wiring, type: str, arguments: dict[str, Any]) -> None:
    exchange = wiring.declare("x", type)
    with pytest.raises(ValueError, match=f"a {type} exchange knows no argument"):
        wiring.bind(exchange, "q0", "k", arguments)
    assert exchange.table.size == 0


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("arguments", [[("x-match", "all")], "all", {1: 2}, 5])
def test_arguments_that_are_no_mapping_of_names(wiring: Wiring, type: str, arguments: Any) -> None:
    exchange = wiring.declare("x", type)
    with pytest.raises(TypeError, match="a mapping|is a str"):
        wiring.bind(exchange, "q0", "k", arguments)
    assert exchange.table.size == 0


# --- the nameless exchange (1.2)


def test_in_the_nameless_exchange_every_queue_has_its_own_name(world: World) -> None:
    nameless = world.broker.exchange("")
    world.broker.declare_queue("a")
    world.broker.declare_queue("b")
    assert [(each.queue, each.key) for each in nameless.bindings()] == [("a", "a"), ("b", "b")]
    world.broker.delete_queue("a")
    assert [each.queue for each in nameless.bindings()] == ["b"] and nameless.type == "direct"


def test_nothing_is_bound_to_it_by_hand(world: World) -> None:
    world.broker.declare_queue("a")
    nameless = world.broker.exchange("")
    for call in (
        lambda: nameless.bind("a", "other"), lambda: nameless.unbind("a", "a"), lambda: nameless.rebind([("a", "b")]),
        lambda: nameless.bind_exchange("amq.fanout"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="every queue is bound by its own name"):
            call()
    assert [(each.queue, each.key) for each in nameless.bindings()] == [("a", "a")]


def test_it_routes_by_the_name(wiring: Wiring) -> None:
    nameless = wiring.exchanges.nameless
    assert names(nameless, "q3") == ["q3"] and names(nameless, "none") == []
    wiring.delete_queue("q3")
    assert names(nameless, "q3") == []
    assert (nameless.received, nameless.routed, nameless.rejected) == (3, 1, 2)


def test_it_is_bound_to_nothing_and_is_no_alternate(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "fanout")
    with pytest.raises(InvalidDestinationError, match="no exchange ''"):
        exchange.bind(wiring.exchanges.named(""))


# --- counters


@pytest.mark.parametrize("type", TYPES)
def test_received_is_the_sum_of_what_became_of_it(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    names(exchange, "k", b"12345")
    wiring.bind(exchange, "q0", "k", arguments_for(type))
    for outcome in (None, "discard", "reject", "release"):
        exchange.route("k", b"123", 0, None, outcome)
    wiring.unbind(exchange, "q0", "k")
    for outcome in ("discard", "reject", "release", "release"):
        exchange.route("k", b"12", 0, None, outcome)
    by_type = (1, 2) if type == "direct" else (2, 1)
    assert (exchange.dropped, exchange.rejected) == by_type
    assert (exchange.received, exchange.routed, exchange.released, exchange.octets) == (9, 4, 2, 25)


@pytest.mark.parametrize("type", TYPES)
def test_matched_is_counted_for_each_binding(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    wiring.bind(exchange, "q0", "k", arguments_for(type))
    wiring.bind(exchange, "q1", "k", {**(arguments_for(type) or {}), "x-filter-jms-selector": "n = 1"})
    for n in (1, 2, 1):
        names(exchange, "k", bearing(n=n))
    matched = {name: exchange.bound(f"queue:{name}", "k").matched for name in ("q0", "q1")}
    assert matched == {"q0": 3, "q1": 2}
    # They survive another table, and keys that are remembered no more.
    wiring.bind(exchange, "q2", "other", arguments_for(type))
    for number in range(5000):
        names(exchange, f"{number}" if number else "k" * 300)
    names(exchange, "k", bearing(n=1))
    assert exchange.bound("queue:q1", "k").matched == 3
    assert exchange.bound("queue:q0", "k").matched == (4 if type in ("direct", "topic") else 5004)
    with pytest.raises(InvalidDestinationError, match="no binding of the queue 'q9'"):
        exchange.bound("queue:q9", "k")


def test_counting_what_is_remembered_no_more_is_shared_out(wiring: Wiring) -> None:
    exchange = wiring.declare("t", "topic")
    wiring.bind(exchange, "q0", "#")
    for round_ in range(20):
        for number in range(1000):
            names(exchange, f"{round_}.{number}")
        wiring.bind(exchange, "q1", f"k.{round_}")
        assert len(exchange.table._uncounted) <= 3000
    assert exchange.bound("queue:q0", "#").matched == 20_000


def test_a_table_that_is_replaced_holds_no_queue_back(wiring: Wiring) -> None:
    """What was remembered goes with it, the queues included that were bound only there."""
    exchange = wiring.declare("t", "topic")
    wiring.bind(exchange, "q0", "a.#")
    wiring.bind(exchange, "q1", "#")
    for number in range(500):
        names(exchange, f"a.{number}")
    wiring.delete_queue("q0")
    assert exchange.table._uncounted == [] and not exchange.table.cache
    assert exchange.bound("queue:q1", "#").matched == 500


# --- what goes nowhere


DEFAULTS = {"direct": "rejected", "topic": "accepted", "fanout": "accepted", "headers": "accepted"}


def said(outcome: Any) -> str:
    if isinstance(outcome, TransactionalState):
        return said(outcome.outcome)
    if isinstance(outcome, Rejected):
        assert outcome.error is not None and outcome.error.condition == "amqp:not-found"
        return "rejected"
    return {ACCEPTED: "accepted", RELEASED: "released"}[outcome]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("unroutable", [None, "discard", "reject", "release"])
def test_what_nobody_wants(world: World, type: str, unroutable: str | None) -> None:
    settings = {} if unroutable is None else {"unroutable": unroutable}
    world.broker.declare_exchange("x", type, **settings)
    expected = {None: DEFAULTS[type], "discard": "accepted", "reject": "rejected", "release": "released"}[unroutable]
    sender = world.connect().sender("x")
    (outcome,) = sent(sender, "m1", properties=subject("key"))
    assert said(outcome) == expected
    if expected == "rejected":
        assert "'key'" in str(outcome.error) and "'x'" in str(outcome.error)
    view = world.broker.exchange("x")
    counted = {"accepted": view.dropped, "rejected": view.rejected, "released": view.released}
    assert view.received == 1 and counted == {name: int(name == expected) for name in counted}
    # The link goes on.
    world.broker.declare_queue("q")
    view.bind("q", "key", arguments_for(type))
    assert sent(sender, "m2", properties=subject("key")) == [ACCEPTED] and world.bodies() == ["m2"]


@pytest.mark.parametrize("unroutable", [None, "discard", "reject", "release"])
def test_what_nobody_wants_of_a_topic(world: World, unroutable: str | None) -> None:
    """Asked for as a topic, an exchange of any type takes what nobody subscribes to, unless it was told otherwise."""
    settings = {} if unroutable is None else {"unroutable": unroutable}
    world.broker.declare_exchange("x", "direct", **settings)
    expected = {None: "accepted", "discard": "accepted", "reject": "rejected", "release": "released"}[unroutable]
    for address in ("x", "x/key"):
        (outcome,) = sent(
            world.connect().sender(target=Target(address=address, capabilities=("topic",))),
            "m1",
            properties=subject("key"),
        )
        assert said(outcome) == expected
    view = world.broker.exchange("x")
    counted = {"accepted": view.dropped, "rejected": view.rejected, "released": view.released}
    assert view.received == 2 and counted == {name: 2 * int(name == expected) for name in counted}
    (outcome,) = sent(world.connect().sender("x/key"), "m1")
    assert said(outcome) == (expected if unroutable else "rejected")


@pytest.mark.parametrize("unroutable", ["reject", "release"])
def test_a_sender_that_settled_hears_it_by_the_end_of_its_link(world: World, unroutable: str) -> None:
    world.broker.declare_exchange("x", "fanout", unroutable=unroutable)
    sender = world.connect().sender("x")
    sender.send("m1", settled=True)
    assert condition(sender) == "amqp:not-found"


@pytest.mark.parametrize(("outcomes", "ended"), [
    (("amqp:accepted:list",), True), (("amqp:released:list",), False), (("amqp:rejected:list",), False),
])  # fmt: skip
def test_released_only_where_the_source_lists_it(world: World, outcomes: tuple[str, ...], ended: bool) -> None:
    world.broker.declare_exchange("x", "fanout", unroutable="release")
    sender = world.connect().sender("x", source=Source(address="here", outcomes=outcomes))
    (answers,) = sender.send("m1")
    assert sender.detached is ended
    if not ended:
        assert isinstance(answers[0], Released if "amqp:released:list" in outcomes else Rejected)


@pytest.mark.parametrize(
    ("unroutable", "word"), [("reject", "rejected"), ("release", "released"), ("discard", "accepted")]
)
def test_in_a_transaction_it_is_said_at_once_and_the_rest_commits(world: World, unroutable: str, word: str) -> None:
    world.broker.declare_exchange("x", "direct", unroutable=unroutable)
    world.broker.declare_queue("q")
    world.broker.exchange("x").bind("q", "k")
    peer = world.connect()
    controller = peer.controller()
    txn = controller.declare()
    sender = peer.sender("x")
    sent_ok = sender.transfer(octets("m1"), state=in_transaction(txn))
    world.run()
    assert said(sent_ok[0]) == word
    keyed = peer.sender("x/k")
    keyed.send("m2", state=in_transaction(txn))
    assert controller.commit(txn) is None
    assert world.bodies() == ["m2"]


def test_settled_in_a_transaction_it_cannot_commit(world: World) -> None:
    world.broker.declare_exchange("x", "direct")
    peer = world.connect()
    controller = peer.controller()
    txn = controller.declare()
    peer.sender("x/none").send("m1", state=in_transaction(txn), settled=True)
    assert controller.commit(txn) == "amqp:transaction:rollback"


def test_routed_when_it_arrives_not_at_the_commit(world: World) -> None:
    world.broker.declare_queue("old")
    world.broker.declare_queue("new")
    view = world.broker.exchange("amq.direct")
    view.bind("old", "k")
    peer = world.connect()
    controller = peer.controller()
    txn = controller.declare()
    peer.sender("amq.direct/k").send("m1", state=in_transaction(txn))
    view.rebind(add=[("new", "k")], remove=[("old", "k")])
    assert controller.commit(txn) is None
    assert world.bodies("old") == ["m1"] and world.bodies("new") == []


def test_one_full_queue_and_no_queue_gets_it(world: World) -> None:
    world.broker.declare_queue("full", max_messages=1)
    world.broker.declare_queue("q")
    view = world.broker.exchange("amq.fanout")
    view.bind("full")
    view.bind("q")
    sender = world.connect().sender("amq.fanout")
    first, second = sender.send("m1", "m2")
    assert first == [ACCEPTED] and isinstance(second[0], Rejected)
    assert second[0].error is not None and second[0].error.condition == "amqp:resource-limit-exceeded"
    assert world.bodies("q") == world.bodies("full") == ["m1"]
    assert (view.received, view.routed, view.rejected, view.dropped) == (2, 1, 1, 0)


# --- alternates


def test_the_alternate_gets_what_goes_nowhere(wiring: Wiring) -> None:
    other = wiring.declare("other", "fanout")
    exchange = wiring.declare("x", "direct", alternate="other")
    wiring.bind(other, "q1")
    wiring.bind(exchange, "q0", "k")
    assert names(exchange, "k") == ["q0"] and names(exchange, "none") == ["q1"]
    assert (exchange.received, exchange.routed, exchange.rejected) == (2, 2, 0)
    assert (other.received, other.routed) == (1, 1)


def test_the_key_goes_along(wiring: Wiring) -> None:
    other = wiring.declare("other", "topic")
    wiring.bind(other, "q1", "a.*")
    exchange = wiring.declare("x", "fanout", alternate="other")
    assert names(exchange, "a.b") == ["q1"] and names(exchange, "b.b") == []
    assert (exchange.routed, exchange.dropped, other.routed, other.dropped) == (1, 1, 1, 1)


def test_a_selector_that_refuses_all_leads_to_the_alternate(wiring: Wiring) -> None:
    wiring.bind(wiring.declare("other", "fanout"), "q1")
    exchange = wiring.declare("x", "fanout", alternate="other")
    wiring.bind(exchange, "q0", "", {"x-filter-jms-selector": "n = 1"})
    assert names(exchange, "", bearing(n=1)) == ["q0"] and names(exchange, "", bearing(n=2)) == ["q1"]


def test_the_chain_is_followed_to_its_end(wiring: Wiring) -> None:
    wiring.declare("c", "fanout")
    wiring.declare("b", "direct", alternate="c")
    first = wiring.declare("a", "direct", alternate="b")
    assert names(first, "k") == []
    wiring.bind(wiring.exchanges.named("c"), "q0")
    assert names(first, "k") == ["q0"]


def test_a_loop_of_alternates_ends(wiring: Wiring) -> None:
    first = wiring.declare("a", "direct")
    second = wiring.declare("b", "direct", alternate="a")
    wiring.declare("a", "direct", alternate="b")
    assert names(first, "k") == names(second, "k") == []
    assert (first.received, first.rejected, first.dropped) == (2, 1, 1)
    wiring.bind(second, "q0", "k")
    assert names(first, "k") == ["q0"]
    # To end the loop, one of them gives its alternate up.
    with pytest.raises(ValueError, match="is the alternate of 'b'"):
        wiring.exchanges.check_deletable(first)
    wiring.declare("b", "direct", alternate=None)
    wiring.exchanges.check_deletable(first)


def test_an_exchange_is_not_its_own_alternate(wiring: Wiring) -> None:
    exchange = wiring.declare("a", "direct")
    with pytest.raises(ValueError, match="'a' cannot be its own alternate"):
        wiring.declare("a", "direct", alternate="a")
    assert exchange.settings.alternate is None and exchange.alternate is None


def test_an_alternate_in_use_is_not_deleted(world: World) -> None:
    world.broker.declare_exchange("other", "fanout")
    world.broker.declare_exchange("x", "direct", alternate="other")
    world.broker.declare_exchange("y", "direct", alternate="other")
    with pytest.raises(ValueError, match="the exchange 'other' is the alternate of 'x', 'y'"):
        world.broker.delete_exchange("other")
    assert not world.broker.exchange("other").is_deleted
    world.broker.delete_exchange("x")
    world.broker.declare_exchange("y", "direct", alternate=None)
    world.broker.delete_exchange("other")
    assert "other" not in [view.name for view in world.broker.exchanges()]


def test_a_temporary_alternate_goes_all_the_same(world: World) -> None:
    owner = world.connect()
    creator = owner.sender(target=Target(dynamic=True, capabilities=("temporary-topic",)))
    address = creator.link.remote_target.address
    world.broker.declare_exchange("x", "direct", alternate=address)
    owner.close()
    assert world.broker.exchange("x").settings.alternate is None


# --- auto-delete


def exists(world: World, name: str = "x") -> bool:
    return name in [view.name for view in world.broker.exchanges()]


@pytest.mark.parametrize("type", TYPES)
def test_auto_delete_with_the_last_binding(world: World, type: str) -> None:
    view = world.broker.declare_exchange("x", type, auto_delete=True)
    for name in ("a", "b"):
        world.broker.declare_queue(name)
        view.bind(name, "k", arguments_for(type))
    view.unbind("a", "k")
    assert exists(world)
    world.broker.delete_queue("b")
    assert not exists(world) and view.is_deleted


def test_it_does_not_go_before_it_was_used(world: World) -> None:
    world.broker.declare_exchange("x", "fanout", auto_delete=True)
    world.run()
    world.broker.declare_queue("a")
    assert not world.broker.exchange("x").unbind("a")
    assert exists(world)


def test_a_link_keeps_it_and_the_last_link_takes_it_along(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout", auto_delete=True)
    world.broker.declare_queue("a")
    view.bind("a")
    peer = world.connect()
    first, second = peer.sender("x"), peer.sender("x")
    view.unbind("a")
    assert exists(world)
    first.detach()
    assert exists(world)
    second.detach()
    assert not exists(world) and second.error is None


def test_a_binding_keeps_it_when_the_last_link_goes(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout", auto_delete=True)
    world.broker.declare_queue("a")
    view.bind("a")
    world.connect().sender("x").detach()
    assert exists(world)


def test_who_has_it_as_alternate_keeps_it(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout", auto_delete=True)
    world.broker.declare_exchange("y", "direct", alternate="x")
    world.broker.declare_queue("a")
    view.bind("a")
    view.unbind("a")
    assert exists(world)
    world.broker.declare_exchange("y", "direct", alternate="x")
    assert exists(world)
    world.broker.delete_exchange("y")
    assert not exists(world)


def test_rebound_in_one_step_it_stays(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout", auto_delete=True)
    for name in ("a", "b"):
        world.broker.declare_queue(name)
    view.bind("a")
    view.rebind(add=[("b", "")], remove=[("a", "")])
    assert exists(world)


def test_without_auto_delete_it_stays(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout")
    world.broker.declare_queue("a")
    view.bind("a")
    world.broker.delete_queue("a")
    assert exists(world)


# --- numbered messages


def numbers(world: World, queue: str = "q") -> list[tuple[str, int]]:
    return [(body_of(payload), number_of(payload)) for payload in world.queue(queue).payloads()]


def number_of(payload: bytes) -> int:
    annotations, _ = message_annotations_at(payload, split_header(payload)[1])
    number = annotations.get("qpid.msg_sequence")
    assert number is None or isinstance(number, int)
    return 0 if number is None else number


@pytest.mark.parametrize("type", TYPES)
def test_messages_are_numbered_in_the_order_of_the_queue(world: World, type: str) -> None:
    view = world.broker.declare_exchange("x", type, sequence=True)
    for name in ("q", "other"):
        world.broker.declare_queue(name)
        view.bind(name, "k", arguments_for(type))
    first, second = world.connect().sender("x/k"), world.connect().sender("x/k")
    first.send("m1")
    second.send("m2", durable=True)
    first.send("m3")
    assert numbers(world) == numbers(world, "other") == [("m1", 1), ("m2", 2), ("m3", 3)]


def test_in_a_transaction_the_number_is_given_at_the_commit(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout", sequence=True)
    world.broker.declare_queue("q")
    view.bind("q")
    peer = world.connect()
    controller = peer.controller()
    txn = controller.declare()
    peer.sender("x").send("late", state=in_transaction(txn))
    world.connect().sender("x").send("early")
    gone = controller.declare()
    peer.sender("x").send("never", state=in_transaction(gone))
    controller.roll_back(gone)
    controller.commit(txn)
    assert numbers(world) == [("early", 1), ("late", 2)]


def test_a_message_that_is_refused_has_no_number(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout", sequence=True)
    world.broker.declare_queue("q", max_messages=1)
    view.bind("q")
    sender = world.connect().sender("x")
    sender.send("m1", "m2")
    world.queue().purge()
    sender.send("m3")
    assert numbers(world) == [("m3", 2)]


def test_the_bare_message_and_its_annotations_stay(world: World) -> None:
    view = world.broker.declare_exchange("x", "fanout", sequence=True)
    world.broker.declare_queue("q")
    view.bind("q")
    note = encode_described(0x72, encode_map([b"\xa3\x07x-opt-a", encode(5)]))
    sent(world.connect().sender("x"), "m1", annotations=note, properties=subject("s"), durable=True)
    (payload,) = world.queue().payloads()
    annotations, _ = message_annotations_at(payload, split_header(payload)[1])
    assert annotations == {"x-opt-a": 5, "qpid.msg_sequence": 1}
    assert payload.endswith(subject("s") + encode_described(0x77, encode_string("m1")))
    header = split_header(payload)[0]
    assert header is not None and header.durable


def test_each_queue_has_the_number_of_the_exchange_it_is_bound_to(wiring: Wiring) -> None:
    outer, inner = wiring.declare("outer", "fanout", sequence=True), wiring.declare("inner", "fanout", sequence=True)
    plain = wiring.declare("plain", "fanout")
    outer.bind(inner)
    outer.bind(plain)
    for exchange, queue in ((outer, "q0"), (inner, "q1"), (plain, "q2")):
        wiring.bind(exchange, queue)
    put(inner, "m0")
    put(outer, "m1")
    put(outer, "m2")
    found = {
        name: [number_of(payload) for payload, _ in wiring.queues[name].places(False)] for name in ("q0", "q1", "q2")
    }
    assert found == {"q0": [1, 2], "q1": [1, 2, 3], "q2": [1, 2]}


@settings(deadline=None)
@given(st.lists(st.one_of(
    st.tuples(st.just("put"), st.sampled_from(["outer", "inner"])),
    st.tuples(st.just("later"), st.sampled_from(["outer", "inner"])),
    st.tuples(st.just("commit"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["bind", "unbind"]), st.sampled_from(["outer", "inner"]), st.integers(0, 2)),
), max_size=40))  # fmt: skip
def test_in_any_order_of_steps_the_order_in_a_queue_is_that_of_the_numbers(steps: list[tuple[Any, ...]]) -> None:
    """Two exchanges that number, one bound to the other; messages put at once, and routed now but put at a commit."""
    wiring = Wiring(3)
    outer, inner = wiring.declare("outer", "fanout", sequence=True), wiring.declare("inner", "fanout", sequence=True)
    outer.bind(inner)
    waiting: list[Any] = []
    homes: dict[str, str] = {}
    for step, *what in steps:
        if step == "put":
            put(wiring.exchanges.named(what[0]), "m")
        elif step == "later":
            waiting.append(wiring.exchanges.named(what[0]).route("", octets("m"), 0, None))
        elif step == "commit" and what[0] < len(waiting):
            waiting.pop(what[0]).append(octets("m"), 4)
        elif step == "bind" and homes.setdefault(f"q{what[1]}", what[0]) == what[0]:
            # Each queue is bound to one of them, ever: its numbers are of one count.
            wiring.bind(wiring.exchanges.named(what[0]), f"q{what[1]}")
        elif step == "unbind":
            wiring.unbind(wiring.exchanges.named(what[0]), f"q{what[1]}")
    for name, queue in wiring.queues.items():
        found = [number_of(payload) for payload, _ in queue.places(False)]
        assert found == sorted(set(found)) and 0 not in found
        assert not found or found[-1] <= wiring.exchanges.named(homes[name]).sequence


# --- the initial value


@pytest.mark.parametrize("type", TYPES)
def test_a_new_binding_gets_the_last_message(world: World, type: str) -> None:
    view = world.broker.declare_exchange("x", type, initial_value=True, unroutable="discard")
    sender = world.connect().sender("x/k")
    for name in ("a", "b", "c"):
        world.broker.declare_queue(name)
    view.bind("a", "k", arguments_for(type))
    assert world.bodies("a") == []
    sender.send("m1", "m2")
    view.bind("b", "k", arguments_for(type))
    assert world.bodies("a") == ["m1", "m2"] and world.bodies("b") == ["m2"]
    view.unbind("a", "k")
    view.unbind("b", "k")
    sender.send("m3")  # to nobody, who would have it all the same
    view.bind("c", "k", arguments_for(type))
    assert world.bodies("c") == ["m3"]


def test_only_if_it_matches_and_only_once(world: World) -> None:
    view = world.broker.declare_exchange("x", "topic", initial_value=True)
    for name in ("a", "b", "c"):
        world.broker.declare_queue(name)
    world.connect().sender("x/k.1").send("m1")
    view.bind("a", "other.*")
    view.bind("b", "k.*", {"x-filter-jms-selector": "n = 1"})
    view.bind("c", "k.*")
    view.bind("c", "#")
    assert (world.bodies("a"), world.bodies("b"), world.bodies("c")) == ([], [], ["m1"])
    assert not view.bind("c", "#")
    assert world.bodies("c") == ["m1"]


def test_what_was_rejected_is_not_the_last_message(world: World) -> None:
    view = world.broker.declare_exchange("x", "direct", initial_value=True)
    world.broker.declare_queue("full", max_messages=1)
    world.broker.declare_queue("q")
    sender = world.connect().sender("x/k")
    sender.send("nobody")
    view.bind("full", "k")
    assert world.bodies("full") == []
    sender.send("m1", "too much")
    view.bind("q", "k")
    assert world.bodies() == ["m1"]


def test_a_rebind_gives_it_to_what_is_new(world: World) -> None:
    view = world.broker.declare_exchange("x", "direct", initial_value=True, sequence=True, unroutable="discard")
    for name in ("a", "b"):
        world.broker.declare_queue(name)
    view.bind("a", "k")
    world.connect().sender("x/k").send("m1")
    view.rebind(add=[("b", "k")], remove=[("a", "k")])
    assert numbers(world, "b") == [("m1", 1)] == numbers(world, "a")


def test_it_goes_on_through_an_exchange_bound_anew(wiring: Wiring) -> None:
    outer, inner = wiring.declare("outer", "fanout", initial_value=True), wiring.declare("inner", "fanout")
    wiring.bind(inner, "q0")
    put(outer, "m1")
    outer.bind(inner)
    assert wiring.queues["q0"].depth == 1


def test_given_up_it_is_forgotten(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "fanout", initial_value=True)
    put(exchange, "m1")
    wiring.declare("x", "fanout", initial_value=False)
    wiring.bind(exchange, "q0")
    assert wiring.queues["q0"].depth == 0 and exchange.last is None


# --- by links


@pytest.mark.parametrize("type", TYPES)
def test_a_sender_says_the_key_by_the_subject_or_by_the_address(world: World, type: str) -> None:
    view = world.broker.declare_exchange("x", type)
    world.broker.declare_queue("q")
    view.bind("q", "k", arguments_for(type))
    peer = world.connect()
    assert sent(peer.sender("x"), "by subject", properties=subject("k")) == [ACCEPTED]
    assert sent(peer.sender("x/k"), "by address", properties=subject("not looked at")) == [ACCEPTED]
    assert world.bodies() == ["by subject", "by address"]


def test_each_message_of_a_headers_exchange_may_go_elsewhere_and_credit_follows(world: World) -> None:
    view = world.broker.exchange("amq.match")
    world.broker.declare_queue("narrow", max_messages=1, overflow="block")
    world.broker.declare_queue("wide")
    view.bind("narrow", "", {"x-match": "all", "to": "narrow"})
    view.bind("wide", "", {"x-match": "all", "to": "wide"})
    sender = world.connect().sender("amq.match/key")
    sent(sender, "m1", properties=bearing(to="wide"))
    assert sender.link.credit > 0
    sent(sender, "m2", properties=bearing(to="narrow"))
    assert sender.link.credit == 0
    world.queue("narrow").purge()
    world.run()
    assert sender.link.credit > 0


def test_qpid_8572_a_queue_and_an_exchange_of_one_name(wiring: Wiring) -> None:
    wiring.queue("same")
    inner = wiring.declare("same", "fanout")
    wiring.bind(inner, "q0")
    exchange = wiring.declare("x", "fanout")
    exchange.bind(inner)
    wiring.bind(exchange, "same")
    assert names(exchange) == ["q0", "same"]
    wiring.delete_queue("same")
    assert names(exchange) == ["q0"]
    wiring.queue("same")
    wiring.bind(exchange, "same")
    wiring.exchanges.remove(inner)
    assert names(exchange) == ["same"]
    assert [(bound.binding.kind, bound.binding.queue) for bound in exchange.table] == [("queue", "same")]


def test_each_broker_has_its_own() -> None:
    one, other = Broker("one", clock=Clock()), Broker("other", clock=Clock())
    one.declare_queue("q")
    one.exchange("amq.fanout").bind("q")
    assert other.exchange("amq.fanout").bindings() == []
