"""Links of AMQP 1.0 to exchanges: addresses, the filters that bind, subscriptions, dynamic nodes, what goes nowhere.

The tables are those of exchanges and policy, 1.7 and 1.8.
"""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, RELEASED, Modified, Rejected, Source, Target, TransactionalState
from jmsish.engine.values import NULL, encode, encode_described, encode_map, encode_string
from jmsish.types import Byte, Described, Symbol, UInt, ULong
from tests.broker.frozen import Play
from tests.broker.pubsub import attach, condition, durable, look_up, only, publisher, selector, shared, subscriber
from tests.broker.world import Peer, Receiver, World, in_transaction, message, properties

DIRECT, TOPIC, FANOUT, HEADERS = "direct", "topic", "fanout", "headers"
TYPES = (DIRECT, TOPIC, FANOUT, HEADERS)
CODES = {DIRECT: ULong(0x0000468C00000000), TOPIC: ULong(0x0000468C00000001), HEADERS: ULong(0x0000468C00000002)}
SYMBOLS = {
    DIRECT: Symbol("apache.org:legacy-amqp-direct-binding:string"),
    TOPIC: Symbol("apache.org:legacy-amqp-topic-binding:string"),
    HEADERS: Symbol("apache.org:legacy-amqp-headers-binding:map"),
}
FORMS = (CODES, SYMBOLS)
DEFAULTS = {
    DIRECT: {"default-subject-filter": Described(SYMBOLS[DIRECT], "")},
    TOPIC: {"default-subject-filter": Described(SYMBOLS[TOPIC], "#")},
    FANOUT: {},
    HEADERS: {"default-headers-filter": Described(SYMBOLS[HEADERS], {"x-match": "all"})},
}


@pytest.fixture
def peer(world: World) -> Peer:
    """One client of a broker with an exchange of each type, named by it."""
    for type in TYPES:
        world.broker.declare_exchange(type, type, unroutable="discard")
    return world.connect("client")


def keyed(body: str, key: str | None = None, **headers: Any) -> bytes:
    """A message with a subject and application properties."""
    subject = b"" if key is None else properties(NULL, NULL, NULL, encode_string(key))
    pairs = [each for name, value in headers.items() for each in (encode_string(name), encode(value))]
    return subject + (encode_described(0x74, encode_map(pairs)) if headers else b"") + message(body)


def post(peer: Peer, address: str, *keys: str | None, **headers: Any) -> list[list[Any]]:
    """Send a message for each key, whose body is the key ("-" for none); what was answered to each."""
    sender = peer.sender(address)
    answers = [sender.transfer(keyed("-" if key is None else key, key, **headers)) for key in keys]
    peer.world.run()
    return answers


def bound(world: World, exchange: str) -> list[str]:
    return sorted(binding.key for binding in world.broker.exchange(exchange).bindings())


def filters(*wishes: Any) -> dict[Any, Any]:
    return {Symbol(f"f{number}"): wish for number, wish in enumerate(wishes)}


def by_headers(mode: str, **entries: Any) -> Described:
    return Described(CODES[HEADERS], {"x-match": mode, **entries})


def by_topic(pattern: str) -> Described:
    return Described(CODES[TOPIC], pattern)


def in_force(receiver: Receiver) -> dict[Any, Any]:
    return dict(receiver.link.remote_source.filter or {})


def descriptors(granted: dict[Any, Any]) -> list[type]:
    return [type(value.descriptor) for value in granted.values()]


# --- addresses


@pytest.mark.parametrize("capabilities", [(), ("queue",), ("topic",)])
@pytest.mark.parametrize("type", [DIRECT, TOPIC])
def test_an_exchange_and_a_key_as_source(world: World, peer: Peer, type: str, capabilities: tuple[str, ...]) -> None:
    receiver = attach(peer, address=f"{type}/a.b", capabilities=capabilities)
    post(peer, type, "a.b", "a.c", None)
    assert receiver.receive() == ["a.b"] and bound(world, type) == ["a.b"] and in_force(receiver) == {}
    assert [view.name for view in world.broker.queues()] == [only(world).queue]


@pytest.mark.parametrize("type", [FANOUT, HEADERS])
def test_a_key_where_none_is_looked_at_is_the_name_of_the_binding(world: World, peer: Peer, type: str) -> None:
    receiver = attach(peer, address=f"{type}/a.b")
    post(peer, type, "a.b", "a.c", None)
    assert receiver.receive() == ["a.b", "a.c", "-"] and bound(world, type) == ["a.b"]


@pytest.mark.parametrize("type", [DIRECT, TOPIC])
def test_an_exchange_and_a_key_as_target_fix_the_key_for_the_whole_link(peer: Peer, type: str) -> None:
    receiver = attach(peer, address=f"{type}/fixed", credit=10)
    assert post(peer, f"{type}/fixed", "another", "fixed", None) == [[ACCEPTED]] * 3
    assert receiver.receive() == ["another", "fixed", "-"]


def test_the_key_of_a_target_has_no_wildcards(peer: Peer) -> None:
    star, word = attach(peer, address="topic/*"), attach(peer, address="topic/b")
    post(peer, "topic/*", None)
    assert star.receive() == ["-"] and word.receive() == []


@pytest.mark.parametrize("address", ["topic/", "direct/"])
def test_the_key_after_the_slash_may_be_empty(world: World, peer: Peer, address: str) -> None:
    receiver = attach(peer, address=address)
    post(peer, address.rstrip("/"), None, "", "a")
    assert receiver.receive() == ["-", ""] and in_force(receiver) == {}


def test_a_key_may_have_a_slash(peer: Peer) -> None:
    receiver = attach(peer, address="topic/a/b.*")
    post(peer, "topic", "a/b.c", "a/b")
    assert receiver.receive() == ["a/b.c"]


@pytest.mark.parametrize("address", ["/topic", "/topic/a", "/", "none/a"])
def test_a_leading_slash_is_not_the_form_of_an_exchange(world: World, peer: Peer, address: str) -> None:
    attach(peer, address=address)
    assert [view.name for view in world.broker.queues()] == [address] and world.broker.subscriptions() == []


def test_without_a_key_the_subject_is_the_key_and_else_the_empty_one(peer: Peer) -> None:
    named, empty = attach(peer, address="direct/k"), attach(peer, address="direct/")
    post(peer, "direct", "k", None)
    assert named.receive() == ["k"] and empty.receive() == ["-"]


def test_a_queue_of_the_name_comes_first_and_a_capability_decides(world: World, peer: Peer) -> None:
    world.broker.declare_queue("topic")
    exchange = attach(peer, address="topic", capabilities=("topic",))
    peer.sender("topic").send("for the queue")
    publisher(peer, "topic").send("for the exchange")
    both = attach(peer, address="topic", capabilities=("topic", "queue"), distribution_mode="copy")
    queue = attach(peer, address="topic")
    assert (queue.receive(), exchange.receive(), both.receive()) == (
        ["for the queue"], ["for the exchange"], ["for the queue"],
    )  # fmt: skip


@pytest.mark.parametrize("address", ["nobody", "nobody/a"])
def test_an_unknown_node_at_the_attach(address: str) -> None:
    peer = World({"policy": {"auto_create": False}}).connect()
    for end in (attach(peer, address=address), peer.sender(address)):
        assert condition(end) == "amqp:not-found"


# --- the default binding of each type


@pytest.mark.parametrize(("type", "key", "wanted"), [
    (TOPIC, "#", ["a", "b.c", "-"]), (FANOUT, "", ["a", "b.c", "-"]), (DIRECT, "", ["-"]),
    (HEADERS, "", ["a", "b.c", "-"]),
])  # fmt: skip
def test_the_default_binding_is_in_force_and_said(
    world: World, peer: Peer, type: str, key: str, wanted: list[str]
) -> None:
    receiver = attach(peer, address=type)
    post(peer, type, "a", "b.c", None)
    assert receiver.receive() == wanted and bound(world, type) == [key] and only(world).topic == type
    assert in_force(receiver) == DEFAULTS[type]


@pytest.mark.parametrize("type", TYPES)
def test_the_predeclared_are_attached_to_like_others(world: World, type: str) -> None:
    peer, name = world.connect(), "amq.match" if type == HEADERS else f"amq.{type}"
    receiver = attach(peer, address=name)
    post(peer, name, None)
    assert receiver.receive() == ["-"] and in_force(receiver) == DEFAULTS[type]


# --- filters that bind


@pytest.mark.parametrize("form", FORMS, ids=["code", "symbol"])
@pytest.mark.parametrize(("type", "value", "wanted"), [(DIRECT, "a.*", ["a.*"]), (TOPIC, "a.*", ["a.b", "a.*"])])
def test_a_subject_filter_is_the_binding_and_echoed_as_it_came(
    world: World, peer: Peer, form: dict[str, Any], type: str, value: str, wanted: list[str]
) -> None:
    wish = filters(Described(form[type], value))
    receiver = attach(peer, address=type, filter=wish)
    post(peer, type, "a.b", "a.*", "b", None)
    assert receiver.receive() == wanted and bound(world, type) == [value]
    assert in_force(receiver) == wish and descriptors(in_force(receiver)) == [form[type].__class__]


@pytest.mark.parametrize("form", FORMS, ids=["code", "symbol"])
@pytest.mark.parametrize(("arguments", "wanted"), [
    ({"x-match": "all", "colour": "red", "size": 9}, True), ({"x-match": "any", "colour": "blue", "size": 9}, True),
    ({"x-match": "all", "colour": "blue", "size": 9}, False), ({"x-match": "all", "colour": None}, True),
    ({"x-match": "all", "colour": ""}, False), ({"x-match": "any"}, False), ({"x-match": "ALL"}, True),
    ({"x-match": "all", "x-other": 1}, True), ({"x-match": "all", "size": ULong(9)}, True),
    ({"x-match": "all", "size": True}, False), ({"x-match": "all", "x-filter-jms-selector": "= 1"}, True),
])  # fmt: skip
def test_a_headers_filter_is_the_binding_and_echoed_as_it_came(
    peer: Peer, form: dict[str, Any], arguments: dict[str, Any], wanted: bool
) -> None:
    wish = filters(Described(form[HEADERS], arguments))
    receiver = attach(peer, address=HEADERS, filter=wish)
    post(peer, HEADERS, "m1", colour="red", size=9)
    assert receiver.receive() == ["m1"] * wanted
    assert in_force(receiver) == wish and descriptors(in_force(receiver)) == [form[HEADERS].__class__]


@pytest.mark.parametrize(("type", "wanted"), [(DIRECT, ["a.*"]), (TOPIC, ["a.b", "a.*"])])
def test_a_plain_string_is_a_subject_filter(peer: Peer, type: str, wanted: list[str]) -> None:
    wish = filters("a.*")
    receiver = attach(peer, address=type, filter=wish)
    post(peer, type, "a.b", "a.*", None)
    assert receiver.receive() == wanted and in_force(receiver) == wish
    assert not isinstance(in_force(receiver)["f0"], Symbol)


@pytest.mark.parametrize("form", FORMS, ids=["code", "symbol"])
def test_a_topic_filter_on_a_direct_exchange_becomes_a_direct_one(peer: Peer, form: dict[str, Any]) -> None:
    receiver = attach(peer, address=DIRECT, filter=filters(Described(form[TOPIC], "a.*")))
    post(peer, DIRECT, "a.b", "a.*")
    assert receiver.receive() == ["a.*"] and in_force(receiver) == filters(Described(form[DIRECT], "a.*"))
    assert descriptors(in_force(receiver)) == [form[DIRECT].__class__]


@pytest.mark.parametrize(("type", "wish"), [
    (TOPIC, Described(CODES[DIRECT], "a")), (TOPIC, by_headers("any")),
    (DIRECT, by_headers("any")), (FANOUT, Described(CODES[DIRECT], "a")),
    (FANOUT, by_topic("a")), (FANOUT, "a"), (FANOUT, by_headers("any")),
    (HEADERS, by_topic("a")), (HEADERS, Described(CODES[DIRECT], "a")), (HEADERS, "a"),
    (TOPIC, Described(ULong(0x0000468C00000005), "xquery")), (TOPIC, Symbol("a")), (TOPIC, Described(ULong(7), "a")),
])  # fmt: skip
def test_what_does_not_fit_the_type_is_neither_in_force_nor_echoed(peer: Peer, type: str, wish: Any) -> None:
    receiver = attach(peer, address=type, filter=filters(wish))
    post(peer, type, None)
    assert receiver.receive() == ["-"] and in_force(receiver) == DEFAULTS[type]


@pytest.mark.parametrize("second", [Described(SYMBOLS[TOPIC], "b.#"), "b.#", by_topic("a.*")])
def test_of_two_subject_filters_the_first_is_in_force(world: World, peer: Peer, second: Any) -> None:
    first = by_topic("a.*")
    receiver = attach(peer, address=TOPIC, filter=filters(first, second))
    post(peer, TOPIC, "a.x", "b.x")
    assert receiver.receive() == ["a.x"] and in_force(receiver) == filters(first) and bound(world, TOPIC) == ["a.*"]


def test_a_key_in_the_address_and_a_filter_are_two_bindings_and_one_copy(world: World, peer: Peer) -> None:
    wish = filters(by_topic("*.b"))
    receiver = attach(peer, address="topic/a.*", filter=wish)
    post(peer, TOPIC, "a.b", "a.c", "c.b", "c.c")
    assert receiver.receive() == ["a.b", "a.c", "c.b"] and in_force(receiver) == wish
    assert bound(world, TOPIC) == ["*.b", "a.*"]


def test_the_same_in_two_spellings_is_one_binding(world: World, peer: Peer) -> None:
    attach(peer, address="topic/#.*", filter=filters(by_topic("*.#")))
    assert bound(world, TOPIC) == ["*.#"]


def test_a_subject_filter_and_a_selector_and_no_local_together(world: World, peer: Peer) -> None:
    wish = {**filters(Described(SYMBOLS[TOPIC], "a.*")), **selector("colour = 'red'"),
            Symbol("local"): Described(ULong(0x0000468C00000003), [])}  # fmt: skip
    receiver = attach(peer, address=TOPIC, filter=wish)
    other = world.connect()
    for colour in ("red", "green"):
        post(other, TOPIC, "a.b", "b", colour=colour)
    post(peer, TOPIC, "a.mine", colour="red")
    assert receiver.receive() == ["a.b"] and in_force(receiver) == wish
    view = world.broker.exchange(TOPIC)
    assert (view.routed, view.dropped, world.broker.queue(only(world).queue).enqueued) == (1, 4, 1)


@pytest.mark.parametrize(("type", "wish", "word"), [
    (HEADERS, Described(CODES[HEADERS], {"x-match": "all", "nested": {"a": 1}}), "nested"),
    (HEADERS, Described(CODES[HEADERS], {"x-match": "all", "nested": [1]}), "nested"),
    (HEADERS, Described(CODES[HEADERS], {"x-match": "all", "nested": Described(ULong(1), 1)}), "nested"),
    (HEADERS, Described(CODES[HEADERS], {"x-match": "all", UInt(7): 1}), "7"),
    (HEADERS, Described(CODES[HEADERS], {}), "x-match"),
    (HEADERS, by_headers("some"), "some"),
    (HEADERS, Described(CODES[HEADERS], {"x-match": 1}), "x-match"),
    (HEADERS, Described(CODES[HEADERS], "x-match"), "map"), (HEADERS, Described(CODES[HEADERS], None), "map"),
    (TOPIC, Described(CODES[TOPIC], None), "string"), (TOPIC, Described(CODES[TOPIC], 7), "string"),
    (DIRECT, Described(SYMBOLS[DIRECT], ["a"]), "string"),
    (TOPIC, Described(CODES[TOPIC], ".".join(["*"] * 10_000)), "256"), (TOPIC, ".".join(["#"] * 10_000), "256"),
])  # fmt: skip
def test_an_illegal_filter_is_refused_by_the_field_and_nothing_is_made(
    world: World, peer: Peer, type: str, wish: Any, word: str
) -> None:
    for address in (type, "a queue"):
        refused = attach(peer, address=address, filter=filters(wish))
        assert condition(refused) == "amqp:invalid-field"
        assert refused.error is not None and refused.error.info == {"field": "filter"}
        assert word in str(refused.error.description) and len(str(refused.error.description)) < 400
    dynamic = attach(peer, dynamic=True, capabilities=("temporary-topic",), filter=filters(wish))
    assert condition(dynamic) == "amqp:invalid-field"
    assert world.broker.queues() == [] and len(world.broker.exchanges()) == 8


def test_a_pattern_in_the_address_is_refused_by_its_field(peer: Peer) -> None:
    refused = attach(peer, address="topic/" + ".".join(["#"] * 10_000))
    assert condition(refused) == "amqp:invalid-field"
    assert refused.error is not None and refused.error.info == {"field": "source"}


def test_a_topic_of_jms_may_have_a_subject_filter_too(world: World) -> None:
    peer = world.connect()
    receiver = subscriber(peer, "news", filter=filters(by_topic("weather.*")))
    for topic in ("news", "weather.today", "sport"):
        publisher(peer, topic).send(topic)
    assert receiver.receive() == ["news", "weather.today"]


# --- bug reports (exchanges and policy, 5.2 and 1.8)


@pytest.mark.parametrize(("report", "pattern", "key", "wanted"), [
    ("lavinmq 1607", "a.*.c.#", "a.b.c", True), ("lavinmq 1299", "a.*", "a.b.c", False),
    ("kombu 2568", "*.b", "x.y.b", False), ("kombu 2568", "a*", "ab", False),
    ("rabbitmq-mock 137", "something.#", "something", True), ("rabbitmq-server 1383", "a.#.b", "a.b", True),
    ("rabbitmq-server 14810", "#.b.#", "b", True),
    ("1.8", "#.a", "a.a", True), ("1.8", "a.#.b", "a.b.b", True), ("1.8", "#.*", "a.b", True),
    ("1.8", "a.#.#", "a", True), ("1.8", "#.a", "a.x", False),
])  # fmt: skip
@pytest.mark.parametrize("form", ["filter", "address", "queue", "browsed"])
def test_bugs_18_to_22_words_at_exchanges_and_queues_alike(
    world: World, peer: Peer, report: str, pattern: str, key: str, wanted: bool, form: str
) -> None:
    address, wish = {
        "filter": (TOPIC, filters(by_topic(pattern))), "address": (f"topic/{pattern}", None),
    }.get(form, ("q", filters(by_topic(pattern))))  # fmt: skip
    receiver = attach(peer, address=address, filter=wish, distribution_mode="copy" if form == "browsed" else None)
    post(peer, address.partition("/")[0], key)
    assert receiver.receive() == [key] * wanted, report


def test_bug_23_an_empty_key_stays_in_its_exchange(world: World, peer: Peer) -> None:
    """rabbitmq-server 16425: it reached queues that were bound to other exchanges."""
    readers = [attach(peer, address=address) for address in ("direct", "fanout", "amq.topic", "topic/", "topic/*")]
    post(peer, "topic", None)
    assert [reader.receive() for reader in readers] == [[], [], [], ["-"], ["-"]]


def test_bug_24_two_patterns_that_match_are_one_copy(world: World, peer: Peer) -> None:
    """QPID-2482."""
    receiver = attach(peer, address="topic/a.#", filter=filters("#.b"))
    post(peer, TOPIC, "a.b")
    assert receiver.receive() == ["a.b"]


@pytest.mark.parametrize("closed", [True, False])
def test_bug_25_nothing_of_a_wildcard_subscription_is_left(world: World, peer: Peer, closed: bool) -> None:
    """artemis 150, QPID-3403, QPID-7679: nodes and cached matches leaked."""
    exchange = world.broker.exchange(TOPIC).exchange
    for number in range(3):
        receiver = attach(
            peer, f"link-{number}", address=f"topic/a.{number}.#", filter=filters("*.b"), expiry_policy="link-detach"
        )
        post(peer, TOPIC, "x.b")
        assert exchange.table.size == 2 and receiver.receive() == ["x.b"]
        receiver.detach(closed=closed)
        assert exchange.table.size == 0 and not exchange.table.cache and list(exchange.table) == []
    assert world.broker.queues() == []


# --- subject filters at queues


@pytest.mark.parametrize("form", FORMS, ids=["code", "symbol"])
@pytest.mark.parametrize("mode", ["move", "copy"])
@pytest.mark.parametrize(("kind", "wanted"), [(TOPIC, ["a.b", "a.*"]), (DIRECT, ["a.*"])])
def test_at_a_queue_a_subject_filter_selects(
    world: World, form: dict[str, Any], mode: str, kind: str, wanted: list[str]
) -> None:
    peer = world.connect()
    post(peer, "q", "a.b", "b", "a.*", None)
    wish = filters(Described(form[kind], "a.*"))
    receiver = attach(peer, address="q", distribution_mode=mode, filter=wish)
    assert receiver.receive() == wanted and in_force(receiver) == wish
    assert world.depth("q") == ((4, 0) if mode == "copy" else (4 - len(wanted), len(wanted)))
    rest = [body for body in ("a.b", "b", "a.*", "-") if mode == "copy" or body not in wanted]
    assert attach(peer, address="q").receive() == rest


@pytest.mark.parametrize(
    ("pattern", "wanted"), [("a.*", ["a.b"]), ("#", ["a.b", "b", "-"]), ("", ["-"]), ("*", ["b", "-"])]
)
def test_at_a_queue_a_plain_string_selects_by_words(world: World, pattern: str, wanted: list[str]) -> None:
    peer = world.connect()
    post(peer, "q", "a.b", "b", None)
    receiver = attach(peer, address="q", filter=filters(pattern))
    assert receiver.receive() == wanted and in_force(receiver) == filters(pattern)


def test_at_a_queue_a_subject_filter_and_a_selector_are_both_in_force(world: World) -> None:
    peer = world.connect()
    wish = {**filters(by_topic("a.#")), **selector("colour = 'red'")}
    receiver = attach(peer, address="q", filter=wish)
    for colour in ("red", "green"):
        post(peer, "q", "a.b", "b", colour=colour)
    assert receiver.receive() == ["a.b"] and in_force(receiver) == wish


def test_at_a_queue_a_headers_filter_is_not_in_force(world: World) -> None:
    peer = world.connect()
    receiver = attach(peer, address="q", filter=filters(by_headers("any")))
    post(peer, "q", "a")
    assert receiver.receive() == ["a"] and in_force(receiver) == {}


def test_what_a_subject_filter_leaves_stays_in_its_place(world: World) -> None:
    peer = world.connect()
    post(peer, "q", "a", "b", "c")
    chosen = attach(peer, address="q", filter=filters("b"), credit=1)
    chosen.dispose(chosen.take(), Modified(delivery_failed=True))
    chosen.detach()
    assert attach(peer, address="q").receive() == ["a", "b+1", "c"]


# --- subscription queues: names, lifetimes, refusals


def test_a_private_subscription_is_of_its_container(world: World, peer: Peer) -> None:
    other = world.connect("other")
    for each in (peer, other):
        durable(each, "name", HEADERS, capabilities=())
    names = {view.queue for view in world.broker.subscriptions()}
    assert names == {"jmsish.subscription.durable/client/name", "jmsish.subscription.durable/other/name"}


@pytest.mark.parametrize("to_all", [True, False])
@pytest.mark.parametrize("type", [FANOUT, TOPIC])
def test_a_shared_one_is_of_its_container_unless_global(world: World, peer: Peer, type: str, to_all: bool) -> None:
    other = world.connect("other")
    readers = [shared(each, "name|1", type, to_all=to_all) for each in (peer, other)]
    post(peer, type, "m1", "m2")
    taken = [reader.receive() for reader in readers]
    assert sorted(taken[0] + taken[1]) == sorted(["m1", "m2"] * (1 if to_all else 2))
    assert len(world.broker.subscriptions()) == (1 if to_all else 2)
    for reader in readers:
        assert ("global" in reader.link.remote_source.capabilities) == to_all
        assert "shared" in reader.link.remote_source.capabilities


@pytest.mark.parametrize(("policy", "after_link", "after_session"), [
    ("link-detach", 0, 0), ("session-end", 1, 0), ("connection-close", 1, 1), ("never", 1, 1),
])  # fmt: skip
@pytest.mark.parametrize("type", TYPES)
def test_it_lives_as_its_expiry_policy_says(
    world: World, peer: Peer, type: str, policy: str, after_link: int, after_session: int
) -> None:
    session = peer.begin()
    receiver = attach(peer, "link", session=session, address=type, expiry_policy=policy, credit=0)
    receiver.detach(closed=False)
    assert len(world.broker.subscriptions()) == after_link
    session.end()
    world.run()
    assert len(world.broker.subscriptions()) == after_session
    peer.close()
    assert len(world.broker.subscriptions()) == (policy == "never")


def test_a_timeout_is_a_delay(world: World, peer: Peer) -> None:
    attach(peer, "link", address=FANOUT, expiry_policy="link-detach", timeout=10).detach(closed=False)
    world.advance(9)
    assert len(world.broker.subscriptions()) == 1
    world.advance(2)
    assert world.broker.subscriptions() == [] and bound(world, FANOUT) == []


def test_a_private_queue_in_use(world: World, peer: Peer) -> None:
    durable(peer, "name", DIRECT, capabilities=())
    assert condition(durable(world.connect("client"), "name", DIRECT, capabilities=())) == "amqp:resource-locked"


@pytest.mark.parametrize(("type", "first", "second"), [
    (TOPIC, by_topic("a"), by_topic("b")), (TOPIC, "a", None),
    (DIRECT, Described(CODES[DIRECT], "a"), "b"),
    (HEADERS, by_headers("all", n=1), by_headers("any", n=1)),
    (HEADERS, by_headers("all", n=1), None),
])  # fmt: skip
def test_attached_again_with_other_filters(world: World, peer: Peer, type: str, first: Any, second: Any) -> None:
    """Idle: made anew, and what it held is gone. Read: locked."""
    other, wishes = world.connect("client"), [None if wish is None else filters(wish) for wish in (first, second)]
    reader = durable(peer, "name", type, capabilities=(), filter=wishes[0], credit=0)
    post(peer, type, "a", n=1)
    assert only(world).depth == 1
    again = durable(other, "name", type, capabilities=(), filter=wishes[1])
    assert condition(again) == "amqp:resource-locked" and only(world).depth == 1
    reader.detach(closed=False)
    assert durable(other, "name", type, capabilities=(), filter=wishes[1]).receive() == [] and only(world).depth == 0
    assert len(bound(world, type)) == 1


@pytest.mark.parametrize(("type", "first", "second"), [
    (TOPIC, by_topic("#.*"), "*.#"), (DIRECT, by_topic("a"), Described(SYMBOLS[DIRECT], "a")),
    (TOPIC, None, "#"), (HEADERS, None, Described(CODES[HEADERS], {"x-match": "ALL", "x-y": 1})),
    (HEADERS, by_headers("all", n=1), by_headers("all", n=Byte(1))),
])  # fmt: skip
def test_the_same_in_other_words_is_the_same_subscription(
    world: World, peer: Peer, type: str, first: Any, second: Any
) -> None:
    wishes = [None if wish is None else filters(wish) for wish in (first, second)]
    durable(peer, "name", type, capabilities=(), filter=wishes[0], credit=0).detach(closed=False)
    post(peer, type, "a", n=1)
    assert durable(peer, "name", type, capabilities=(), filter=wishes[1]).receive() == ["a"]


def test_a_shared_one_in_use_with_other_filters(world: World, peer: Peer) -> None:
    shared(peer, "name|1", TOPIC, filter=filters("a"))
    refused = shared(peer, "name|2", TOPIC, filter=filters("b"))
    assert condition(refused) == "amqp:precondition-failed" and "'topic/b'" in str(refused.error)


def test_the_close_of_a_shared_durable_one_that_others_read(world: World, peer: Peer) -> None:
    readers = [durable(peer, f"name|{number}", FANOUT, capabilities=("shared",), credit=0) for number in range(2)]
    readers[0].detach()
    assert condition(readers[0]) == "amqp:resource-locked" and len(world.broker.subscriptions()) == 1
    readers[1].detach()
    assert condition(readers[1]) is None and world.broker.subscriptions() == []


def test_an_attach_without_a_source_recovers_the_source_with_its_filters(world: World, peer: Peer) -> None:
    wish = filters(by_headers("any", n=1))
    durable(peer, "name", HEADERS, capabilities=(), filter=wish).detach(closed=False)
    source = look_up(peer, "name").link.remote_source
    assert source.address == HEADERS and source.filter == wish


@pytest.mark.parametrize("settled", [True, False])
def test_settlement_is_as_asked(peer: Peer, settled: bool) -> None:
    receiver = attach(peer, address=FANOUT, link={"snd_settle_mode": 1 if settled else 0})
    post(peer, FANOUT, "m1")
    (delivery,) = receiver.take()
    assert delivery.remote_settled == settled


# --- capabilities


@pytest.mark.parametrize(("address", "granted"), [
    ("topic", {"topic", "legacy-amqp-topic-binding", "create-on-demand"}),
    ("direct/a", {"topic", "legacy-amqp-direct-binding", "create-on-demand"}),
    ("headers", {"topic", "legacy-amqp-headers-binding", "create-on-demand"}),
    ("amq.fanout", {"topic", "durable", "create-on-demand"}), ("q", {"queue", "create-on-demand"}),
    ("kept", {"queue", "durable", "create-on-demand"}),
])  # fmt: skip
def test_of_the_capabilities_asked_for_those_come_back_that_are_true(
    world: World, peer: Peer, address: str, granted: set[str]
) -> None:
    world.broker.declare_queue("kept", durable=True)
    asked = ("create-on-demand", "durable", "legacy-amqp-direct-binding", "legacy-amqp-topic-binding",
             "legacy-amqp-headers-binding", "unheard-of", "queue" if "queue" in granted else "topic")  # fmt: skip
    receiver = attach(peer, address=address, capabilities=asked)
    sender = peer.sender(target=Target(address=address, capabilities=asked))
    assert set(receiver.link.remote_source.capabilities) == granted == set(sender.link.remote_target.capabilities)


# --- the exchange goes away


@pytest.mark.parametrize("type", TYPES)
def test_who_is_attached_to_an_exchange_that_goes_hears_it_at_once(world: World, peer: Peer, type: str) -> None:
    world.broker.declare_queue("plain")
    world.broker.exchange(type).bind("plain", "", {"x-match": "all"} if type == HEADERS else None)
    ends = [peer.sender(type), peer.sender(f"{type}/k"), attach(peer, address=type),
            durable(peer, "name", type, capabilities=()), shared(peer, "s", type)]  # fmt: skip
    relay, bystander = peer.sender(None), attach(peer, address="plain")
    world.broker.delete_exchange(type)
    world.broker.step()
    world.run()
    assert [condition(end) for end in ends] == ["amqp:resource-deleted"] * 5
    assert {str(end.error.description) for end in ends if end.error} == {f"the exchange {type!r} was deleted"}
    assert not relay.detached and not bystander.detached and world.broker.subscriptions() == []


def test_a_subscription_that_somebody_bound_to_it_too_stays(world: World, peer: Peer) -> None:
    receiver = attach(peer, address=FANOUT)
    world.broker.exchange(DIRECT).bind(only(world).queue, "k")
    world.broker.delete_exchange(DIRECT)
    world.broker.step()
    world.run()
    assert not receiver.detached and len(world.broker.subscriptions()) == 1


# --- what goes nowhere


@pytest.fixture
def strict(world: World) -> Peer:
    for name in ("discard", "reject", "release"):
        world.broker.declare_exchange(name, "fanout", unroutable=name)
    return world.connect()


def unroutable_sender(peer: Peer, exchange: str, *capabilities: str, **options: Any) -> Any:
    return peer.sender(target=Target(address=exchange, capabilities=capabilities), **options)


@pytest.mark.parametrize(("exchange", "asked", "outcome"), [
    ("discard", (), "accepted"), ("discard", ("REJECT_UNROUTABLE",), "rejected"),
    ("reject", (), "rejected"), ("reject", ("DISCARD_UNROUTABLE",), "accepted"),
    ("release", (), "released"), ("release", ("DISCARD_UNROUTABLE",), "accepted"),
    ("release", ("REJECT_UNROUTABLE",), "rejected"), ("discard", ("DISCARD_UNROUTABLE",), "accepted"),
    ("reject", ("DISCARD_UNROUTABLE", "REJECT_UNROUTABLE"), "rejected"),
    ("discard", ("DISCARD_UNROUTABLE", "REJECT_UNROUTABLE"), "accepted"),
])  # fmt: skip
def test_a_link_may_say_what_is_to_become_of_it(
    world: World, strict: Peer, exchange: str, asked: tuple[str, ...], outcome: str
) -> None:
    sender = unroutable_sender(strict, exchange, *asked)
    answer = sender.transfer(keyed("m1", "the.key"))
    world.run()
    (state,) = answer
    assert type(state).__name__.lower() == outcome
    if isinstance(state, Rejected):
        assert state.error is not None and state.error.condition == "amqp:not-found"
        assert "the.key" in str(state.error.description)
    view = world.broker.exchange(exchange)
    assert (view.dropped, view.rejected, view.released) == tuple(
        int(outcome == each) for each in ("accepted", "rejected", "released")
    )
    assert list(sender.link.remote_target.capabilities) == (list(asked) if len(asked) == 1 else [])


def test_at_a_queue_they_say_nothing(strict: Peer) -> None:
    assert list(unroutable_sender(strict, "q", "REJECT_UNROUTABLE").link.remote_target.capabilities) == []


def test_a_topic_of_jms_may_be_asked_to_reject(world: World, strict: Peer) -> None:
    sender = unroutable_sender(strict, "news", "topic", "REJECT_UNROUTABLE")
    assert set(sender.link.remote_target.capabilities) == {"topic", "REJECT_UNROUTABLE"}
    assert isinstance(sender.send("m1")[0][0], Rejected)
    subscriber(strict, "news")
    assert sender.send("m2") == [[ACCEPTED]]


def test_the_relay_honours_it_for_each_exchange(world: World, strict: Peer) -> None:
    relay = strict.sender(target=Target(capabilities=("REJECT_UNROUTABLE",)))
    assert list(relay.link.remote_target.capabilities) == ["REJECT_UNROUTABLE"]
    answers = [relay.transfer(properties(NULL, NULL, encode_string(to)) + message("m")) for to in ("discard", "q")]
    world.run()
    assert isinstance(answers[0][0], Rejected) and answers[1] == [ACCEPTED]


def test_the_alternate_comes_first(world: World, strict: Peer) -> None:
    world.broker.declare_queue("q")
    world.broker.declare_exchange("alternate", "fanout").bind("q")
    world.broker.declare_exchange("discard", "fanout", alternate="alternate")
    assert unroutable_sender(strict, "discard", "REJECT_UNROUTABLE").send("m1") == [[ACCEPTED]]
    assert world.bodies("q") == ["m1"]


def test_where_the_source_does_not_list_rejected_the_link_ends(strict: Peer) -> None:
    source = Source(address="here", outcomes=("amqp:accepted:list",))
    sender = unroutable_sender(strict, "discard", "REJECT_UNROUTABLE", source=source)
    sender.transfer(keyed("m1", "the.key"))
    strict.world.run()
    assert condition(sender) == "amqp:not-found" and "the.key" in str(sender.error.description)


def test_settled_outside_a_transaction_the_link_ends(strict: Peer) -> None:
    sender = unroutable_sender(strict, "discard", "REJECT_UNROUTABLE")
    sender.send("m1", settled=True)
    assert condition(sender) == "amqp:not-found"


def test_settled_in_a_transaction_that_is_rolled_back(world: World, strict: Peer) -> None:
    controller, sender = strict.controller(), unroutable_sender(strict, "discard", "REJECT_UNROUTABLE")
    txn = controller.declare()
    strict.sender("q").send("m0", state=in_transaction(txn))
    sender.send("m1", settled=True, state=in_transaction(txn))
    assert not sender.detached and controller.commit(txn) == "amqp:transaction:rollback"
    assert world.bodies("q") == []


@pytest.mark.parametrize(("asked", "outcome"), [("DISCARD_UNROUTABLE", ACCEPTED), ("REJECT_UNROUTABLE", Rejected)])
def test_unsettled_in_a_transaction_it_hears_the_outcome(strict: Peer, asked: str, outcome: Any) -> None:
    controller = strict.controller()
    txn = controller.declare()
    ((state, *_),) = unroutable_sender(strict, "release", asked).send("m1", state=in_transaction(txn))
    assert isinstance(state, TransactionalState)
    assert state.outcome == outcome if outcome is ACCEPTED else isinstance(state.outcome, outcome)
    assert controller.commit(txn) is None


def test_released_where_the_exchange_says_so(strict: Peer) -> None:
    assert strict.sender("release").send("m1") == [[RELEASED]]


@pytest.mark.parametrize("type", TYPES)
def test_one_of_several_queues_refuses_and_none_gets_it(world: World, peer: Peer, type: str) -> None:
    readers = [durable(peer, name, type, capabilities=(), credit=0) for name in ("one", "two")]
    world.broker.declare_queue("jmsish.subscription.durable/client/two", max_messages=1)
    first, second = post(peer, type, None, None)
    assert first == [ACCEPTED] and isinstance(second[0], Rejected)
    assert second[0].error is not None and second[0].error.condition == "amqp:resource-limit-exceeded"
    assert [len(reader.receive(5)) for reader in readers] == [1, 1]


def test_bindings_are_evaluated_when_the_transfer_arrives(world: World, peer: Peer) -> None:
    controller = peer.controller()
    txn = controller.declare()
    publisher(peer, HEADERS).send("m1", state=in_transaction(txn))
    late = attach(peer, address=HEADERS)
    assert controller.commit(txn) is None and late.receive() == []


# --- frozen


@pytest.mark.parametrize("type", TYPES)
def test_an_attach_with_filters_to_a_frozen_exchange_waits_for_the_thaw(type: str) -> None:
    play = Play()
    play.exchange("x", type)
    wish = {
        DIRECT: filters("a"), TOPIC: filters("a.#"), HEADERS: filters(by_headers("all")),
    }.get(type)  # fmt: skip
    freeze, peer = play.held("x"), play.connect()
    receiver = attach(peer, address="x/b", filter=wish)
    sender = peer.sender("x")
    assert receiver.link.remote_source is None and play.bound() == [] and not sender.detached
    play.thaw(freeze)
    answers = [sender.transfer(keyed(key, key)) for key in ("a", "b")]
    play.run()
    assert answers == [[ACCEPTED]] * 2
    assert receiver.receive() == ["a", "b"] and in_force(receiver) == (wish or {})
