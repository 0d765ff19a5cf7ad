"""Exchanges: the words of topics, the tree that matches them, tables of bindings, and what an exchange promises."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.broker.exchanges import Binding, Exchange, Exchanges
from jmsish.broker.order import History
from jmsish.broker.patterns import Node, PersistentMap, added, found, matches, normalised, removed, removed_all
from jmsish.broker.policy import DEFAULT_SETTINGS, QueueSettings
from jmsish.broker.portions import Job
from jmsish.broker.queues import Arrival, Queue
from jmsish.errors import InvalidDestinationError
from tests.broker.world import World

# --- words (1.5)

TABLE = [
    ("", "empty", "a, ."),
    (".", ".", "empty, a."),
    ("*", "a, empty", "a.b, ."),
    ("#", "empty, a, a.b, ., ..", ""),
    ("a.*", "a.b, a.", "a, a.b.c"),
    ("*.a", "x.a, .a", "a, x.y.a"),
    ("a.#", "a, a.b, a.b.c, a.", "b, ab"),
    ("#.a", "a, x.a, x.y.a, a.a", "a.x"),
    ("a.#.b", "a.b, a.x.b, a..x.y.b, a.b.b", "a.b., q.x.b, a"),
    ("a.*.#", "a.b, a.b.c", "a"),
    ("a.*.#.b", "a.c.b, a.c.d.d.b", "a.b"),
    ("a.*.#.b.c", "a.a.b.c, a.b.c.b.c", "a.c.b.b, a.b.c.b"),
    ("a.*.#.b.c.#.d", "a.a.b.c.d", "a.c.b.b.c"),
    ("a.#.*.#.d", "a.a.b.c.d", "a.c.b.b.c"),
    ("*.x.#.y", "a.x.y, a.x.p.q.y", "a.a.x.y"),
    ("*.*.*.#", "x.y.z, x.y.z.a", "x.y"),
    ("a.#.b.#.c", "a.b.c, a.x.x.b.y.y.c", "a.c"),
    ("*.stock.#", "usd.stock, eur.stock.db", "stock.nasdaq"),
    ("#.b.#", "b, a.b, b.c, a.b.c.b", "a.c"),
    ("x.x.*", "x.x.y, x.x.", "x.x"),
    # Beside other characters, and in a key, wildcards are ordinary words.
    ("a*", "a*", "ab, a.b"),
    ("#b", "#b", "ab, b"),
    ("a.b#.c", "a.b#.c", "a.bx.c"),
]


def keys(listed: str) -> list[str]:
    return ["" if key == "empty" else key for key in listed.split(", ")] if listed else []


@pytest.mark.parametrize(("pattern", "yes", "no"), TABLE)
def test_the_table_of_topic_words(pattern: str, yes: str, no: str) -> None:
    assert [key for key in keys(yes) if not matches(pattern, key)] == []
    assert [key for key in keys(no) if matches(pattern, key)] == []


def test_wildcards_in_a_key_are_ordinary_words() -> None:
    candidates = ["*", "#", "a", "*.*", "a.#", ""]
    assert [pattern for pattern in candidates if matches(pattern, "*")] == ["*", "#"]
    assert [pattern for pattern in candidates if matches(pattern, "#")] == ["*", "#"]


@pytest.mark.parametrize(("pattern", "normal"), [
    ("#.#.#.#", "#"),
    ("#.*.#.*.#.#.*", "*.*.*.#"),
    ("a.*.#.*.#.*.#", "a.*.*.*.#"),
    ("#.#", "#"),
    ("#.*", "*.#"),
    ("a.#.#", "a.#"),
    ("#.*.a.#.*", "*.#.a.*.#"),
    ("a.b.c", "a.b.c"),
    ("a.*.b.#.c", "a.*.b.#.c"),
    ("", ""),
    ("..", ".."),
    ("a*.#b", "a*.#b"),
])  # fmt: skip
def test_runs_of_wildcards_have_one_spelling(pattern: str, normal: str) -> None:
    assert normalised(pattern) == normal
    assert normalised(normal) == normal


def test_a_pattern_has_at_most_256_words() -> None:
    assert normalised(".".join("a" * 256)).count(".") == 255
    with pytest.raises(ValueError, match="at most 256 words; this one has 10000"):
        normalised(".".join(["a"] * 10_000))


def plainly(pattern: list[str], key: list[str]) -> bool:
    """The meaning of a pattern, as a definition."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return plainly(pattern[1:], key) or (bool(key) and plainly(pattern, key[1:]))
    return bool(key) and pattern[0] in ("*", key[0]) and plainly(pattern[1:], key[1:])


def test_every_small_pattern_matches_as_defined() -> None:
    patterns = [list(words) for size in (1, 2, 3) for words in product(("a", "b", "", "*", "#"), repeat=size)]
    every = [list(words) for size in (1, 2, 3) for words in product(("a", "b", "", "*"), repeat=size)]
    wrong = [
        (pattern, key)
        for pattern in patterns
        for key in every
        if matches(".".join(pattern), ".".join(key)) != plainly(pattern, key)
    ]
    assert wrong == []


words = st.lists(st.sampled_from(["a", "b", "c", "", "*", "#", "a*"]), min_size=1, max_size=6).map(".".join)


@given(st.lists(words, max_size=30, unique_by=normalised), words, st.data())
def test_the_tree_finds_what_the_plain_matcher_finds(patterns: list[str], key: str, data: st.DataObject) -> None:
    """And each once; and a tree from which some were removed is the tree of the others."""
    root: Node[str] = Node()
    for pattern in patterns:
        root = added(root, normalised(pattern), pattern)
    expected = {pattern for pattern in patterns if plainly(pattern.split("."), key.split("."))}
    result = found(root, key)
    assert len(result) == len(set(result)) and set(result) == expected
    gone = data.draw(st.lists(st.sampled_from(patterns), unique=True)) if patterns else []
    before = root
    for pattern in gone:
        root = removed(root, normalised(pattern), pattern)
    assert set(found(root, key)) == expected - set(gone)
    assert set(found(before, key)) == expected
    assert root.is_bare == (set(gone) == set(patterns))


@given(st.lists(words, max_size=30, unique_by=normalised), words, st.data())
def test_many_removed_in_one_go_are_as_many_removed(patterns: list[str], key: str, data: st.DataObject) -> None:
    root: Node[str] = Node()
    for pattern in patterns:
        root = added(root, normalised(pattern), pattern)
    gone = data.draw(st.lists(st.sampled_from(patterns), unique=True)) if patterns else []
    rest = removed_all(root, [(normalised(pattern), pattern) for pattern in gone])
    assert set(found(rest, key)) == set(found(root, key)) - set(gone)
    assert rest.is_bare == (set(gone) == set(patterns))


# The patterns of a broker's well-known test of its tree, in our words: everything that meets at a fork.
FORKS = [
    "a.b.c.d", "a.b.*.d", "a.#.d", "#.d", "*.b.c.*", "a.*.*.#", "#", "a.b.#", "*", "a", "a.#.c.#", "#.c.#.d", "*.*.*.*",
    "a.b.c.*.#", "#.b.*.#", "d.#.a", "*.#.d",
]  # fmt: skip


def test_seventeen_patterns_at_the_same_forks() -> None:
    root: Node[str] = Node()
    for pattern in FORKS:
        root = added(root, pattern, pattern)
    assert len(FORKS) == 17
    assert set(found(root, "a.b.c.d")) == set(FORKS) - {"*", "a", "d.#.a"}
    assert set(found(root, "a")) == {"#", "*", "a"}
    assert set(found(root, "d")) == {"#.d", "#", "*"}
    assert set(found(root, "d.a")) == {"#", "d.#.a"}
    shuffled = FORKS[:]
    random.Random(17).shuffle(shuffled)
    for pattern in shuffled:
        assert pattern in found(root, pattern.replace("*", "x").replace("#", "y"))
        root = removed(root, pattern, pattern)
    assert root.is_bare


def test_a_malicious_pattern_costs_its_length_for_each_word() -> None:
    """A node is entered once for each word of the key, whatever the pattern: counted, not timed."""
    entered = 0

    class Counting(PersistentMap[Node[str]]):
        def __init__(self, inner: PersistentMap[Node[str]]) -> None:
            super().__init__(inner.buckets, inner.size)

        @property
        def mask(self) -> int:  # type: ignore[override]
            nonlocal entered
            entered += 1
            return 0

        @mask.setter
        def mask(self, value: int) -> None: ...

    def counted(node: Node[str] | None) -> Node[str] | None:
        if node is None:
            return None
        inner = None
        if node.words is not None:
            children = {word: counted(child) for word, child in node.words.items()}
            inner = Counting(PersistentMap(({k: v for k, v in children.items() if v is not None},), len(children)))
        return Node(node.here, inner, counted(node.one), counted(node.any))

    depth = 64
    root = counted(added(Node(), normalised(".".join(["#", "a"] * depth + ["b"])), "p"))
    assert root is not None
    entered = 0
    assert found(root, ".".join("a" * 200)) == []
    assert 0 < entered <= 2 * (depth + 1) * 200


# --- the persistent map


@given(st.lists(st.tuples(st.integers(0, 300), st.booleans())))
def test_the_map_is_a_dictionary_that_leaves_its_past_alone(steps: list[tuple[int, bool]]) -> None:
    map_: PersistentMap[int] = PersistentMap()
    model: dict[str, int] = {}
    past: list[tuple[PersistentMap[int], dict[str, int]]] = []
    for number, put in steps:
        past.append((map_, dict(model)))
        if put:
            map_ = map_.put(str(number), number)
            model[str(number)] = number
        else:
            map_ = map_.without(str(number))
            model.pop(str(number), None)
    for each, expected in [*past, (map_, model)]:
        assert dict(each.items()) == expected and each.size == len(expected)
        assert all(each.get(name) == value for name, value in expected.items())


@given(
    st.dictionaries(st.integers(0, 300), st.integers()),
    st.dictionaries(st.integers(0, 300), st.one_of(st.none(), st.integers()), max_size=200),
)
def test_many_changes_in_one_go_are_as_many_changes(before: dict[int, int], changes: dict[int, int | None]) -> None:
    map_: PersistentMap[int] = PersistentMap(({},)).changed(before)
    after = map_.changed(changes)
    expected = {name: value for name, value in {**before, **changes}.items() if value is not None}
    assert dict(map_.items()) == before and map_.size == len(before)
    assert dict(after.items()) == expected and after.size == len(expected)
    assert all(after.get(name) == value for name, value in expected.items())
    assert after.put(-1, 5).without(-1).size == len(expected)


def test_a_change_copies_about_the_square_root() -> None:
    map_: PersistentMap[int] = PersistentMap()
    for number in range(20_000):
        map_ = map_.put(str(number), number)
    assert len(map_.buckets) + max(map(len, map_.buckets)) < 500
    for number in range(20_000):
        map_ = map_.without(str(number))
    assert map_.size == 0 and len(map_.buckets) <= 2


# --- an exchange


class Home:
    """A broker that only has a clock."""

    def now(self) -> float:
        return 1000.0

    def wake(self, queue: Queue) -> None: ...

    def begin(self, job: Job) -> None: ...

    def schedule(self, due: float, queue: Queue) -> None: ...

    def resume(self, queue: Queue) -> None: ...

    def expired(self, queue: Queue, entry: object) -> None: ...


def queue(name: str, **settings: object) -> Queue:
    return Queue(name, QueueSettings.from_mapping(settings, name) if settings else DEFAULT_SETTINGS, Home())


@pytest.fixture
def exchange() -> Exchange:
    return Exchanges().declare("prices", "topic")


def names(exchange: Exchange, key: str) -> list[str]:
    return sorted(each.name for each in exchange.route(key, b"", 0, None).queues)


def test_a_queue_gets_one_copy_however_many_bindings_match(exchange: Exchange) -> None:
    q1, q2 = queue("q1"), queue("q2")
    for pattern in ("a.*", "a.#", "#.b", "#.b.#"):
        exchange.bind(q1, pattern)
    exchange.bind(q2, "a.b")
    assert names(exchange, "a.b") == ["q1", "q2"]
    assert names(exchange, "a.b.c.b") == ["q1"]


def test_a_binding_that_asks_for_nothing_decides_for_those_of_its_queue_that_do(exchange: Exchange) -> None:
    q1, q2 = queue("q1"), queue("q2")
    exchange.bind(q1, "a", lambda payload, count, origin: False)
    exchange.bind(q2, "a", lambda payload, count, origin: payload == b"yes")
    exchange.bind(q2, "#", lambda payload, count, origin: count == 7)
    assert names(exchange, "a") == []
    assert [each.name for each in exchange.route("a", b"yes", 7, None).queues] == ["q2"]
    exchange.bind(q1, "*")
    assert names(exchange, "a") == ["q1"]


def test_patterns_that_normalise_alike_are_one_binding(exchange: Exchange) -> None:
    q = queue("q")
    assert exchange.bind(q, "#.*")
    assert not exchange.bind(q, "*.#")
    assert [bound.binding for bound in exchange.table] == [Binding("prices", "q", "*.#")]
    assert exchange.unbind(q, "#.#.*")
    assert not exchange.unbind(q, "#.*")
    assert list(exchange.table) == [] and names(exchange, "a") == []


def test_the_table_is_replaced_and_what_was_remembered_goes_with_it(exchange: Exchange) -> None:
    q1, q2 = queue("q1"), queue("q2")
    exchange.bind(q1, "a")
    before = exchange.table
    assert names(exchange, "a") == names(exchange, "a") == ["q1"]
    exchange.bind(q2, "#")
    assert names(exchange, "a") == ["q1", "q2"]
    assert [each.name for each in before.match("a", b"").routed.queues] == ["q1"]
    exchange.unbind(q1, "a")
    assert names(exchange, "a") == ["q2"]


def test_what_is_remembered_is_bounded(exchange: Exchange) -> None:
    q = queue("q")
    exchange.bind(q, "#")
    for number in range(10_000):
        exchange.route(f"key.{number}", b"", 0, None)
    exchange.route("long" * 100, b"", 0, None)
    assert len(exchange.table.cache) <= 4096
    assert "long" * 100 not in exchange.table.cache


def test_all_copies_are_the_same_octets(exchange: Exchange) -> None:
    q1, q2 = queue("q1"), queue("q2")
    exchange.bind(q1, "#")
    exchange.bind(q2, "#")
    payload = bytes(1000)
    exchange.route("a", payload, 0, None).append(payload, 4)
    first, second = q1.take(), q2.take()
    assert first is not None and second is not None and first.payload is second.payload is payload


def test_each_queue_has_its_own_history(exchange: Exchange) -> None:
    q1, q2 = queue("q1"), queue("q2")
    exchange.bind(q1, "#")
    exchange.bind(q2, "#")
    exchange.route("a", b"m", 2, None).add(Arrival(b"m", 4, History(2, 2000.0)))
    first, second = q1.take(), q2.take()
    assert first is not None and second is not None and first.history is not second.history
    first.past().count += 1
    assert second.past().count == 2 and second.past().expires == 2000.0


def test_all_or_none(exchange: Exchange) -> None:
    q1, q2 = queue("q1"), queue("q2", max_messages=1)
    exchange.bind(q1, "#")
    exchange.bind(q2, "#")
    routed = exchange.route("a", b"m", 0, None)
    assert routed.refusal(1, 1) is None
    routed.append(b"m", 4)
    assert "q2" in (routed.refusal(1, 1) or "")
    q2.deleted = True
    assert routed.refusal(1, 1) is None and routed.present == (q1,)


def test_counters(exchange: Exchange) -> None:
    exchange.bind(queue("q"), "a")
    for key in ("a", "b", "a"):
        exchange.route(key, b"", 0, None)
    assert (exchange.received, exchange.routed, exchange.dropped) == (3, 2, 1)


def test_an_illegal_pattern_changes_nothing(exchange: Exchange) -> None:
    q = queue("q")
    exchange.bind(q, "a")
    table = exchange.table
    with pytest.raises(ValueError, match="256 words"):
        exchange.bind(q, ".".join(["#", "a"] * 5000))
    assert exchange.table is table


# --- declared and deleted

ALWAYS = ["amq.direct", "amq.topic", "amq.fanout", "amq.match"]


def test_amq_topic_is_always_there(world: World) -> None:
    view = world.broker.exchange("amq.topic")
    assert (view.name, view.type, view.is_temporary, view.bindings()) == ("amq.topic", "topic", False, [])
    assert world.broker.declare_exchange("amq.topic", "topic").name == "amq.topic"
    with pytest.raises(ValueError, match="always there"):
        world.broker.delete_exchange("amq.topic")


def test_declared_twice_is_the_same(world: World) -> None:
    world.broker.declare_exchange("prices", "topic")
    world.broker.declare_exchange("prices", "topic")
    assert [view.name for view in world.broker.exchanges()] == [*ALWAYS, "prices"]
    world.broker.delete_exchange("prices")
    with pytest.raises(InvalidDestinationError, match="no exchange 'prices'"):
        world.broker.exchange("prices")
    with pytest.raises(InvalidDestinationError, match="no exchange 'prices'"):
        world.broker.delete_exchange("prices")


@pytest.mark.parametrize(("name", "kind", "words"), [
    ("prices", "queue", "must be one of 'direct', 'topic', 'fanout', 'headers', not 'queue'"),
    ("", "topic", "needs a name"),
    (None, "topic", "needs a name"),
    ("amq.mine", "topic", "is reserved"),
    ("qpid.mine", "topic", "is reserved"),
    ("jmsish.temporary.x", "topic", "is reserved"),
    ("a/b", "topic", "divides the exchange from the key"),
])  # fmt: skip
def test_what_cannot_be_declared(world: World, name: str, kind: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        world.broker.declare_exchange(name, kind)
    assert [view.name for view in world.broker.exchanges()] == ALWAYS


def test_declared_by_the_configuration() -> None:
    world = World({"exchanges": {"prices": {"type": "topic"}, "amq.topic": {"type": "topic"}}})
    assert world.broker.exchange("prices").type == "topic"


def test_a_deleted_queue_takes_its_bindings_along(world: World) -> None:
    world.broker.declare_queue("q")
    exchange = world.broker.router.exchanges.declare("prices", "topic")
    exchange.bind(world.broker.router.queues["q"], "a.#")
    exchange.bind(world.broker.router.queues["q"], "b")
    assert len(world.broker.exchange("prices").bindings()) == 2
    world.broker.delete_queue("q")
    assert world.broker.exchange("prices").bindings() == []
