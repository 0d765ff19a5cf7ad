"""Bindings: what is one, how they change in one step, exchanges bound to exchanges; and all of it against a model."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsish.broker import Binding
from jmsish.broker.bindings import identity
from jmsish.broker.exchanges import Exchange
from jmsish.broker.patterns import matches, normalised
from jmsish.broker.tables import REMEMBERED_AT_MOST, Table
from jmsish.errors import InvalidDestinationError, InvalidSelectorError
from tests.broker.test_exchange_types import TYPES, arguments_for
from tests.broker.test_exchanges import FORKS
from tests.broker.test_headers_exchange import plainly
from tests.broker.wiring import Wiring, bearing, names, put
from tests.broker.world import World
from tests.effort import examples


@pytest.fixture
def wiring() -> Wiring:
    return Wiring()


# --- what a binding is


@pytest.mark.parametrize("type", TYPES)
def test_bound_twice_nothing_has_changed(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    arguments = arguments_for(type)
    assert wiring.bind(exchange, "q0", "k", arguments)
    table = exchange.table
    assert not wiring.bind(exchange, "q0", "k", arguments)
    assert exchange.table is table
    assert [bound.binding for bound in table] == [Binding("x", "q0", "k", arguments)]


@pytest.mark.parametrize("type", TYPES)
def test_unbound_twice_there_was_none(wiring: Wiring, type: str) -> None:
    """One broker reported success where nothing was bound (5.6)."""
    exchange = wiring.declare("x", type)
    wiring.bind(exchange, "q0", "k", arguments_for(type))
    assert not wiring.unbind(exchange, "q0", "other") and not wiring.unbind(exchange, "q1", "k")
    assert wiring.unbind(exchange, "q0", "k")
    assert not wiring.unbind(exchange, "q0", "k")


@pytest.mark.parametrize("type", TYPES)
def test_other_arguments_only_by_replacing(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    plain = arguments_for(type)
    chosen = {**(plain or {}), "x-filter-jms-selector": "n = 1"}
    wiring.bind(exchange, "q0", "k", plain)
    with pytest.raises(ValueError, match="unbind it first, or say replace"):
        wiring.bind(exchange, "q0", "k", chosen)
    assert names(exchange, "k") == ["q0"]
    assert wiring.bind(exchange, "q0", "k", chosen, replace=True)
    assert not wiring.bind(exchange, "q0", "k", chosen, replace=True)
    assert names(exchange, "k") == [] and names(exchange, "k", bearing(n=1)) == ["q0"]


def test_a_binding_is_a_value() -> None:
    binding = Binding("x", "q", "k", {"x-match": "all"})
    assert binding == Binding("x", "q", "k", {"x-match": "all"}) and hash(binding) == hash(Binding("x", "q", "k"))
    assert binding.kind == "queue" and Binding("x", "q", kind="exchange") != Binding("x", "q")
    with pytest.raises(AttributeError):
        binding.key = "other"  # type: ignore[misc]


def test_what_the_caller_does_to_the_arguments_later_changes_nothing(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "headers")
    arguments = {"x-match": "all", "a": 1}
    wiring.bind(exchange, "q0", "k", arguments)
    arguments["a"] = 2
    (bound,) = exchange.table
    assert bound.binding.arguments == {"x-match": "all", "a": 1}
    assert names(exchange, "", bearing(a=1)) == ["q0"]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("key", [None, 5, b"k", ["k"]])
def test_a_key_is_text(wiring: Wiring, type: str, key: Any) -> None:
    exchange = wiring.declare("x", type)
    with pytest.raises(TypeError, match="the key of a binding is a str"):
        wiring.bind(exchange, "q0", key, arguments_for(type))
    with pytest.raises(TypeError, match="the key of a binding is a str"):
        wiring.unbind(exchange, "q0", key)
    assert exchange.table.size == 0


def test_what_is_gone_is_bound_no_more(wiring: Wiring) -> None:
    exchange, queue = wiring.declare("x", "fanout"), wiring.queues["q0"]
    wiring.delete_queue("q0")
    with pytest.raises(InvalidDestinationError, match="the queue 'q0' is gone"):
        exchange.bind(queue)
    wiring.exchanges.remove(exchange)
    with pytest.raises(InvalidDestinationError, match="the exchange 'x' is gone"):
        wiring.bind(exchange, "q1")


# --- many at once


def table_of(exchange: Exchange) -> set[tuple[str, str]]:
    return {(bound.binding.queue, bound.binding.key) for bound in exchange.table}


@pytest.mark.parametrize("type", ["direct", "topic", "fanout"])
def test_rebind_takes_away_and_adds_in_one_step(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    exchange.rebind(add=[("q0", "a"), ("q1", "b")])
    before = exchange.table
    exchange.rebind(
        add=[("q2", "a"), Binding("x", "q3", "b"), ("q4", "c", {"x-filter-jms-selector": "n = 1"}), ("q5",)],
        remove=[("q0", "a"), Binding("x", "q1", "b")],
    )
    assert table_of(exchange) == {("q2", "a"), ("q3", "b"), ("q4", "c"), ("q5", "")}
    assert {(bound.binding.queue, bound.binding.key) for bound in before} == {("q0", "a"), ("q1", "b")}
    assert sum(1 for _ in exchange.table) == exchange.table.size == 4


def test_what_is_taken_away_may_come_back_otherwise(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "direct")
    wiring.bind(exchange, "q0", "a")
    exchange.rebind(add=[("q0", "a", {"x-filter-jms-selector": "n = 1"})], remove=[("q0", "a")])
    assert names(exchange, "a") == [] and names(exchange, "a", bearing(n=1)) == ["q0"]


def test_nothing_to_change_is_no_change(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "direct")
    wiring.bind(exchange, "q0", "a")
    table = exchange.table
    exchange.rebind()
    exchange.rebind(add=[("q0", "a")])
    assert exchange.table is table


WRONG: list[tuple[str, Any, Any, str]] = [
    ("none", ("q9x", "a"), InvalidDestinationError, "'q9x', 'a'.*there is no queue 'q9x'"),
    ("not text", (5, "a"), InvalidDestinationError, "there is no queue 5"),
    ("key", ("q1", 5), TypeError, "the key of a binding is a str"),
    ("pattern", ("q1", ".".join(["#", "a"] * 5000)), ValueError, "at most 256 words; this one has 10000"),
    ("argument", ("q1", "a", {"colour": 1}), ValueError, "knows no argument 'colour'"),
    ("arguments", ("q1", "a", "all"), TypeError, "are a mapping"),
    ("selector", ("q1", "a", {"x-filter-jms-selector": "= 1"}), InvalidSelectorError, "'q1'"),
    ("other", ("q0", "a", {"x-filter-jms-selector": "n = 1"}), ValueError, "and other arguments"),
    ("exchange", Binding("y", "q1", "a"), ValueError, "it is a binding of 'y', not of 'x'"),
    ("kind", Binding("x", "q1", "a", None, "topic"), ValueError, "'queue' or 'exchange', not 'topic'"),
    ("no exchange", Binding("x", "q1", "a", None, "exchange"), InvalidDestinationError, "no exchange 'q1'"),
    ("text", "q1", TypeError, "a binding is a Binding"),
    ("too long", ("q1", "a", None, 1), TypeError, "a binding is a Binding"),
    ("empty", (), TypeError, "a binding is a Binding"),
    ("nothing", None, TypeError, "a binding is a Binding"),
]


@pytest.mark.parametrize(("item", "error", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_one_wrong_item_and_nothing_has_changed(wiring: Wiring, item: Any, error: Any, words: str) -> None:
    exchange = wiring.declare("x", "topic")
    exchange.rebind(add=[("q0", "a"), ("q0", "b")])
    table, where = exchange.table, dict(wiring.exchanges._where_bound)
    with pytest.raises(error, match=words):
        exchange.rebind(add=[("q2", "a"), item, ("q3", "a")], remove=[("q0", "b")])
    assert exchange.table is table and wiring.exchanges._where_bound == where
    assert names(exchange, "a") == ["q0"] == names(exchange, "b")


@pytest.mark.parametrize("item", [("q0", "c"), ("q1", "a"), Binding("x", "q0", "a", None, "exchange"), ("q0x", "a")])
def test_to_remove_what_is_not_there(wiring: Wiring, item: Any) -> None:
    wiring.declare("q0", "fanout")
    exchange = wiring.declare("x", "topic")
    wiring.bind(exchange, "q0", "a")
    table = exchange.table
    with pytest.raises((ValueError, InvalidDestinationError), match="q0|q1"):
        exchange.rebind(add=[("q2", "a")], remove=[item])
    with pytest.raises(ValueError, match="there is no such binding in 'x'"):
        exchange.rebind(remove=[("q0", "a"), ("q0", "a")])
    assert exchange.table is table


def test_a_collection_that_is_dropped_leaves_no_trace(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "direct")
    wiring.bind(exchange, "q0", "a")
    changes = exchange.changes()
    changes.add(("q1", "a"))
    changes.remove(("q0", "a"))
    assert {bound.binding.queue for bound in changes.table} == {"q1"}
    assert names(exchange, "a") == ["q0"]


def test_a_collection_of_others_meanwhile_is_noticed(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "direct")
    changes = exchange.changes()
    changes.add(("q1", "a"))
    wiring.bind(exchange, "q0", "a")
    with pytest.raises(RuntimeError, match="changed by somebody else meanwhile"):
        changes.put_in_force()
    assert names(exchange, "a") == ["q0"]


# --- queues that go


@pytest.mark.parametrize("type", TYPES)
def test_rabbitmq_12926_a_queue_goes_with_its_bindings_in_one_step_each(
    wiring: Wiring, type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges = [wiring.declare(name, type) for name in ("x", "y")]
    for exchange in exchanges:
        for number in range(300):
            wiring.bind(exchange, "q0", f"k.{number}", arguments_for(type))
        wiring.bind(exchange, "q1", "k.1", arguments_for(type))
    tables = [exchange.table for exchange in exchanges]
    replaced: list[Table] = []
    monkeypatch.setattr(Table, "retire", lambda table: replaced.append(table))
    wiring.delete_queue("q0")
    assert replaced == tables and all(exchange.table.size == 1 for exchange in exchanges)
    assert names(exchanges[0], "k.1") == ["q1"]
    assert [table.size for table in tables] == [301, 301]


def test_lavinmq_1567_a_queue_bound_by_two_keys(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "topic")
    wiring.bind(exchange, "q0", "a.#")
    wiring.bind(exchange, "q0", "#.a")
    wiring.unbind(exchange, "q0", "a.#")
    assert names(exchange, "a") == ["q0"] and names(exchange, "a.b") == []
    # It is still known where the queue is bound.
    wiring.delete_queue("q0")
    assert exchange.table.size == 0 and wiring.exchanges._where_bound == {}


@pytest.mark.parametrize("type", TYPES)
def test_artemis_211_nothing_is_left_of_what_was_bound(wiring: Wiring, type: str) -> None:
    """Nodes, caches and where-bound entries go (also QPID-3403, QPID-7679)."""
    exchange = wiring.declare("x", type)
    for number in range(100):
        wiring.bind(exchange, f"q{number % 10}", f"k.{number}.*", arguments_for(type))
        names(exchange, f"k.{number}.x", bearing(a=number))
    for number in range(100):
        wiring.unbind(exchange, f"q{number % 10}", f"k.{number}.*")
    table = exchange.table
    assert table.size == 0 and not table.cache and list(table) == [] and not table._targets.size
    assert getattr(table, "is_bare", True) and wiring.exchanges._where_bound == {}


def test_seventeen_patterns_are_bound_and_unbound_until_the_tree_is_empty(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "topic")
    for number, pattern in enumerate(FORKS):
        wiring.queue(f"p{number}")
        wiring.bind(exchange, f"p{number}", pattern)
    order = list(enumerate(FORKS))
    random.Random(4616).shuffle(order)
    while order:
        for key in ("a.b.c.d", "a", "d", "d.a", "", "a.c.x", "x.b"):
            assert names(exchange, key) == sorted(f"p{number}" for number, pattern in order if matches(pattern, key))
        number, pattern = order.pop()
        assert wiring.unbind(exchange, f"p{number}", pattern)
    assert exchange.table.is_bare  # type: ignore[attr-defined]


def test_rabbitmq_1872_what_is_remembered_belongs_to_its_table(wiring: Wiring) -> None:
    """Route tables never are out of step with the bindings: one is derived from the other, in the same step."""
    for type in TYPES:
        exchange = wiring.declare(f"x{type}", type)
        wiring.bind(exchange, "q0", "k", arguments_for(type))
        changes = exchange.changes()
        changes.bind(wiring.queues["q1"], "k", None, arguments_for(type))
        changes.unbind(wiring.queues["q0"], "k")
        assert names(exchange, "k") == ["q0"]
        changes.put_in_force()
        assert names(exchange, "k") == ["q1"]


@pytest.mark.parametrize("type", TYPES)
def test_what_is_remembered_is_bounded(wiring: Wiring, type: str) -> None:
    exchange = wiring.declare("x", type)
    wiring.bind(exchange, "q0", "k", {"x-match": "any", "n": None} if type == "headers" else None)
    for number in range(REMEMBERED_AT_MOST + 100):
        exchange.route(f"{number}", bearing(n=number), 0, None)
        assert len(exchange.table.cache) <= REMEMBERED_AT_MOST


# --- exchanges bound to exchanges


def test_lavinmq_117_all_of_them_are_followed(wiring: Wiring) -> None:
    outer = wiring.declare("outer", "fanout")
    for number in range(5):
        inner = wiring.declare(f"inner{number}", "fanout")
        assert outer.bind(inner)
        wiring.bind(inner, f"q{number}")
    wiring.bind(outer, "q9")
    assert names(outer) == ["q0", "q1", "q2", "q3", "q4", "q9"]
    assert not outer.bind(wiring.exchanges.named("inner3"))


def test_types_may_differ_on_the_way(wiring: Wiring) -> None:
    topic, direct, headers = (wiring.declare(name, name) for name in ("topic", "direct", "headers"))
    topic.bind(direct, "a.#")
    direct.bind(headers, "a.b")
    wiring.bind(headers, "q0", "", {"x-match": "all", "n": 1})
    assert names(topic, "a.b", bearing(n=1)) == ["q0"]
    assert names(topic, "a.b", bearing(n=2)) == names(topic, "a.c", bearing(n=1)) == names(topic, "b") == []


def test_one_copy_by_however_many_ways(wiring: Wiring) -> None:
    outer = wiring.declare("outer", "fanout")
    for number in range(3):
        inner = wiring.declare(f"inner{number}", "topic")
        outer.bind(inner)
        wiring.bind(inner, "q0", "#")
        wiring.bind(inner, "q0", "*")
    wiring.bind(outer, "q0")
    assert put(outer, "m1", "k") == ["q0"]
    assert wiring.queues["q0"].depth == 1


@pytest.mark.parametrize("length", [1, 2, 3, 10])
def test_loops_end(wiring: Wiring, length: int) -> None:
    ring = [wiring.declare(f"x{number}", "fanout") for number in range(length)]
    for number, exchange in enumerate(ring):
        assert exchange.bind(ring[(number + 1) % length])
        wiring.bind(exchange, f"q{number}")
    for exchange in ring:
        assert names(exchange) == [f"q{number}" for number in range(length)]
    assert all(exchange.received == length for exchange in ring)


def test_a_chain_longer_than_a_stack_of_calls(wiring: Wiring) -> None:
    chain = [wiring.declare(f"x{number}", "fanout") for number in range(3000)]
    for exchange, following in zip(chain, chain[1:], strict=False):
        exchange.bind(following)
    wiring.bind(chain[-1], "q0")
    assert names(chain[0]) == ["q0"] and chain[0].reach("") == (wiring.queues["q0"],)


def test_a_selector_on_the_way(wiring: Wiring) -> None:
    outer, inner = wiring.declare("outer", "fanout"), wiring.declare("inner", "fanout")
    outer.bind(inner, "", None, {"x-filter-jms-selector": "n > 1"})
    wiring.bind(inner, "q0")
    assert names(outer, "", bearing(n=2)) == ["q0"] and names(outer, "", bearing(n=1)) == []
    assert (inner.received, outer.dropped) == (1, 1)
    assert outer.bound(identity(inner), "").matched == 1


def test_counters_on_the_way(wiring: Wiring) -> None:
    outer, inner, idle = (wiring.declare(name, "direct") for name in ("outer", "inner", "idle"))
    outer.bind(inner, "k")
    outer.bind(idle, "k")
    wiring.bind(inner, "q0", "k")
    assert names(outer, "k", b"12345") == ["q0"]
    assert [(each.received, each.routed, each.dropped, each.rejected) for each in (outer, inner, idle)] == [
        (1, 1, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0),
    ]  # fmt: skip
    assert inner.octets == 5


def test_each_exchange_on_the_way_has_its_own_alternate(wiring: Wiring) -> None:
    rest = wiring.declare("rest", "fanout")
    wiring.bind(rest, "q9")
    outer, inner = wiring.declare("outer", "fanout"), wiring.declare("inner", "direct", alternate="rest")
    outer.bind(inner)
    wiring.bind(outer, "q0")
    wiring.bind(inner, "q1", "k")
    assert names(outer, "k") == ["q0", "q1"] and names(outer, "other") == ["q0", "q9"]


def test_an_exchange_that_goes_is_bound_nowhere(world: World) -> None:
    broker = world.broker
    broker.declare_queue("q")
    broker.declare_exchange("inner", "fanout").bind("q")
    outer = broker.exchange("amq.fanout")
    assert outer.bind_exchange("inner") and not outer.bind_exchange("inner")
    assert outer.bindings() == [Binding("amq.fanout", "inner", "", None, "exchange")]
    world.connect().sender("amq.fanout").send("m1")
    broker.delete_exchange("inner")
    assert outer.bindings() == [] and world.bodies() == ["m1"]


def test_unbound_it_is_followed_no_more(world: World) -> None:
    broker = world.broker
    broker.declare_queue("q")
    broker.declare_exchange("inner", "fanout").bind("q")
    outer = broker.exchange("amq.topic")
    outer.bind_exchange("inner", "#.*")
    assert outer.matched("inner", "*.#", kind="exchange") == 0
    sender = world.connect().sender("amq.topic/a")
    sender.send("m1")
    assert outer.matched("inner", "#.*", kind="exchange") == 1
    assert outer.unbind_exchange("inner", "*.#") and not outer.unbind_exchange("inner", "*.#")
    sender.send("m2")
    assert world.bodies() == ["m1"]


def test_bind_by_name_of_what_is_not_there(world: World) -> None:
    view = world.broker.exchange("amq.direct")
    for call, words in (
        (lambda: view.bind("none"), "no queue 'none'"), (lambda: view.unbind("none"), "no queue 'none'"),
        (lambda: view.bind_exchange("none"), "no exchange 'none'"),
        (lambda: view.unbind_exchange("none"), "no exchange 'none'"),
    ):  # fmt: skip
        with pytest.raises(InvalidDestinationError, match=words):
            call()
    assert [queue.name for queue in world.broker.queues()] == []


def test_credit_follows_the_queues_behind_other_exchanges(world: World) -> None:
    broker = world.broker
    broker.declare_queue("narrow", max_messages=1, overflow="block")
    broker.declare_exchange("inner", "fanout").bind("narrow")
    broker.declare_exchange("outer", "direct").bind_exchange("inner", "k")
    sender = world.connect().sender("outer/k")
    assert sender.link.credit == 1
    sender.send("m1")
    assert sender.link.credit == 0
    world.queue("narrow").purge()
    world.run()
    assert sender.link.credit == 1


# --- a model

KEYS = ["", "a", "b", "a.b", "a.b.a", "*", "#"]
PATTERNS = [*KEYS, "a.*", "a.#", "#.b", "*.#", "#.*"]
PROPERTIES: list[dict[str, Any]] = [{}, {"n": 1}, {"n": 2, "c": "x"}, {"n": True, "c": None}]
SELECTED = {"x-filter-jms-selector": "n = 1"}
CRITERIA: list[dict[str, Any]] = [
    {"x-match": "all"}, {"x-match": "any"}, {"x-match": "all", "n": 1}, {"x-match": "any", "n": 1, "c": None},
    {"x-match": "all", "n": 2, "c": "x"}, {"x-match": "all", "n": True, **SELECTED},
]  # fmt: skip
Identity = tuple[str, str, str, str]
"""Of a binding: exchange, kind of target, its name, key in normal form."""


class Model:
    """What exchanges mean, written as plainly as can be."""

    def __init__(self, types: dict[str, str], alternates: dict[str, str]) -> None:
        self.types = types
        self.alternates = alternates
        self.bound: dict[Identity, dict[str, Any] | None] = {}

    def identity(self, exchange: str, kind: str, target: str, key: str) -> Identity:
        return exchange, kind, target, normalised(key) if self.types[exchange] == "topic" else key

    def route(self, start: str, key: str, properties: dict[str, Any]) -> list[str]:
        queues: set[str] = set()
        reached: dict[str, bool] = {}

        def follow(exchange: str) -> bool:
            if exchange in reached:
                return reached[exchange]
            wanting = [each for each in self.bound if each[0] == exchange and self.wants(each, key, properties)]
            found = {target for _, kind, target, _ in wanting if kind == "queue"}
            queues.update(found)
            reached[exchange] = bool(found)
            for onward in sorted(target for _, kind, target, _ in wanting if kind == "exchange"):
                reached[exchange] = follow(onward) or reached[exchange]
            if not reached[exchange] and exchange in self.alternates:
                reached[exchange] = follow(self.alternates[exchange])
            return reached[exchange]

        follow(start)
        return sorted(queues)

    def wants(self, binding: Identity, key: str, properties: dict[str, Any]) -> bool:
        exchange, _, _, bound_key = binding
        arguments = dict(self.bound[binding] or {})
        selector = arguments.pop("x-filter-jms-selector", None)
        if selector is not None and (type(properties.get("n")) is not int or properties["n"] != 1):
            return False
        kind = self.types[exchange]
        if kind == "headers":
            mode = arguments.pop("x-match")
            return plainly(mode, arguments, properties)
        return kind == "fanout" or (key == bound_key if kind == "direct" else matches(bound_key, key))


exchange_names = ["x0", "x1", "x2"]
TARGETS = [*(("queue", name) for name in ("q0", "q1", "q2", "?")), ("exchange", "x1"), ("exchange", "x2")]
items = st.tuples(
    st.sampled_from(
        [("queue", "q0"), ("queue", "q1"), ("queue", "q2"), ("exchange", "x1"), ("exchange", "x2"), ("queue", "?")]
    ),
    st.sampled_from(PATTERNS),
    st.sampled_from([None, None, SELECTED]),
    st.sampled_from(CRITERIA),
)
steps = st.one_of(
    st.tuples(st.just("bind"), st.sampled_from(exchange_names), items, st.booleans()),
    st.tuples(st.just("unbind"), st.sampled_from(exchange_names), items),
    st.tuples(
        st.just("rebind"), st.sampled_from(exchange_names), st.lists(items, max_size=3), st.lists(items, max_size=2)
    ),
    st.tuples(st.just("delete"), st.sampled_from(["q0", "q1", "q2"])),
)


class Both:
    """The exchanges and the model, which hear the same."""

    def __init__(self, types: list[str], alternates: dict[str, str]) -> None:
        self.wiring = Wiring(3)
        self.model = Model(dict(zip(exchange_names, types, strict=True)), alternates)
        self.exchanges = {name: self.wiring.declare(name, type) for name, type in self.model.types.items()}
        for name, alternate in alternates.items():
            self.wiring.declare(name, self.model.types[name], alternate=alternate)

    def said(self, exchange: str, item: Any) -> Binding:
        (kind, target), key, plain, criteria = item
        arguments = criteria if self.model.types[exchange] == "headers" else plain
        return Binding(exchange, target, key, arguments, kind)

    def do(self, step: Any) -> None:
        getattr(self, step[0])(*step[1:])

    def bind(self, exchange: str, item: Any, replace: bool) -> None:
        changes = self.exchanges[exchange].changes()
        said = self.said(exchange, item)
        try:
            changes.add(said, replace=replace)
        except (ValueError, InvalidDestinationError):
            assert not self.may_add(said, {} if replace else self.model.bound)
            return
        changes.put_in_force()
        assert self.may_add(said, {} if replace else self.model.bound)
        self.model.bound[self.identity(said)] = said.arguments and dict(said.arguments)

    def unbind(self, exchange: str, item: Any) -> None:
        self.rebind(exchange, [], [item])

    def rebind(self, exchange: str, add: list[Any], remove: list[Any]) -> None:
        after, legal = dict(self.model.bound), True
        for said in (self.said(exchange, item) for item in remove):
            legal = legal and after.pop(self.identity(said), 0) != 0
        for said in (self.said(exchange, item) for item in add):
            legal = legal and self.may_add(said, after)
            after[self.identity(said)] = said.arguments and dict(said.arguments)
        table = self.exchanges[exchange].table
        try:
            self.exchanges[exchange].rebind([self.said(exchange, each) for each in add],
                                            [self.said(exchange, each) for each in remove])  # fmt: skip
        except (ValueError, InvalidDestinationError):
            assert not legal and self.exchanges[exchange].table is table
            return
        assert legal
        self.model.bound = after

    def delete(self, queue: str) -> None:
        self.wiring.delete_queue(queue)
        self.wiring.queue(queue)
        self.model.bound = {each: asked for each, asked in self.model.bound.items() if each[1:3] != ("queue", queue)}

    def identity(self, said: Binding) -> Identity:
        return self.model.identity(said.exchange, said.kind, said.queue, said.key)

    def may_add(self, said: Binding, bound: dict[Identity, dict[str, Any] | None]) -> bool:
        return said.queue != "?" and bound.get(self.identity(said), said.arguments) == said.arguments

    def check(self) -> None:
        for name, exchange in self.exchanges.items():
            for key in KEYS:
                for properties in PROPERTIES:
                    expected = self.model.route(name, key, properties)
                    for _ in range(2):  # found, and remembered
                        assert names(exchange, key, bearing(properties)) == expected
            assert exchange.table.size == len(list(exchange.table))
        found = {
            (each.binding.exchange, each.binding.kind, each.binding.queue, each.binding.key)
            for exchange in self.exchanges.values() for each in exchange.table
        }  # fmt: skip
        assert found == set(self.model.bound)


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.sampled_from(TYPES), min_size=3, max_size=3),
    st.dictionaries(st.sampled_from(exchange_names), st.sampled_from(exchange_names), max_size=3).map(
        lambda found: {name: other for name, other in found.items() if name != other}
    ),
    st.lists(steps, max_size=12),
)
def test_any_sequence_of_changes_routes_as_the_model_says(
    types: list[str], alternates: dict[str, str], sequence: list[Any]
) -> None:
    both = Both(types, alternates)
    for step in sequence:
        both.do(step)
        both.check()
    for exchange in both.exchanges.values():
        changes = exchange.changes()
        for bound in exchange.table:
            changes.remove(bound.binding)
        changes.put_in_force()
        assert exchange.table.size == 0 and getattr(exchange.table, "is_bare", True)
    assert both.wiring.exchanges._where_bound == {}


@pytest.mark.parametrize("type", TYPES)
def test_a_long_random_history_of_one_exchange(type: str) -> None:
    chance = random.Random(9698)
    both = Both([type, "fanout", "fanout"], {})
    for number in range(400):
        (kind, target), key = ("queue", f"q{chance.randrange(3)}"), chance.choice(PATTERNS)
        item = ((kind, target), key, chance.choice([None, SELECTED]), chance.choice(CRITERIA))
        if chance.random() < 0.6:
            both.bind("x0", item, True)
        else:
            both.unbind("x0", item)
        if number % 40 == 39:
            both.check()


# --- what others got wrong (5.2)

REPORTS = [
    ("lavinmq_1607_a_hash_may_be_nothing", "a.*.c.#", "a.b.c", True),
    ("lavinmq_1607_nor_is_it_nothing_else", "a.*.c.#", "a.b", False),
    ("lavinmq_1299_a_star_is_one_word", "a.*", "a.b.c", False),
    ("kombu_2568_a_star_crosses_no_dot", "a.*.c", "a.b.b.c", False),
    ("kombu_2568_patterns_are_no_expressions", "a+.b", "aa.b", False),
    ("kombu_2568_a_dot_is_a_dot", "a.b", "axb", False),
    ("kombu_2568_the_whole_key_counts", "b", "a.b", False),
    ("rabbitmq_mock_137_something_and_nothing_more", "something.#", "something", True),
    ("rabbitmq_1383_a_hash_in_the_middle_may_be_nothing", "a.#.b", "a.b", True),
    ("rabbitmq_14810_and_at_the_beginning", "#.b", "b", True),
    ("rabbitmq_16425_the_empty_key_is_one_empty_word", "*", "", True),
    ("rabbitmq_16425_and_no_other_word", "a", "", False),
    ("qpid_queue_filter_backtracks_1", "#.a", "a.a", True),
    ("qpid_queue_filter_backtracks_2", "a.#.b", "a.b.b", True),
    ("qpid_queue_filter_backtracks_3", "#.*", "a.b", True),
    ("qpid_queue_filter_backtracks_4", "a.#.#", "a", True),
]


@pytest.mark.parametrize(("pattern", "key", "wanted"), [row[1:] for row in REPORTS], ids=[row[0] for row in REPORTS])
def test_reports_about_wildcards(wiring: Wiring, pattern: str, key: str, wanted: bool) -> None:
    exchange = wiring.declare("x", "topic")
    wiring.bind(exchange, "q0", pattern)
    assert names(exchange, key) == ["q0"] * wanted


def test_qpid_2482_two_patterns_and_one_copy(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "topic")
    for pattern in ("a.*", "*.b", "#.b.#", "a.#.b"):
        wiring.bind(exchange, "q0", pattern)
    assert put(exchange, "m1", "a.b") == ["q0"] and wiring.queues["q0"].depth == 1
    assert put(exchange, "m2", "b.b") == ["q0"] and wiring.queues["q0"].depth == 2
    assert [exchange.bound("queue:q0", pattern).matched for pattern in ("a.*", "*.b", "#.b.#", "a.#.b")] == [1, 2, 2, 1]


def test_one_broker_found_bindings_where_the_tree_only_passed_by(wiring: Wiring) -> None:
    """5.6: an inner node is no binding, and the key is normalised when one asks."""
    exchange = wiring.declare("x", "topic")
    wiring.bind(exchange, "q0", "a.b.#.*")
    for key in ("a", "a.b", "a.b.*", "a.b.#"):
        assert exchange.table.find("queue:q0", key) is None
        with pytest.raises(InvalidDestinationError):
            exchange.bound("queue:q0", key)
    assert exchange.bound("queue:q0", "a.b.#.*").binding.key == "a.b.*.#"


def test_malicious_patterns_are_bound_and_cost_no_more_than_others(wiring: Wiring) -> None:
    exchange = wiring.declare("x", "topic")
    worst = ".".join(["#", "a"] * 127 + ["b"])
    wiring.bind(exchange, "q0", worst)
    wiring.bind(exchange, "q1", ".".join(["#"] * 256))
    assert names(exchange, ".".join("a" * 2000)) == ["q1"]
    assert names(exchange, ".".join("a" * 2000) + ".b") == ["q0", "q1"]
