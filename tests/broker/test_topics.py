"""Topics: a message goes to every subscription that wants it, one copy each, all or none; addresses, relay, limits."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.codec import Header, split_header
from jmsish.engine.outcomes import ACCEPTED, Modified, Rejected, Source, Target, TransactionalState
from jmsish.engine.values import NULL, encode, encode_described, encode_map, encode_string, encode_symbol
from jmsish.types import Byte
from tests.broker.pubsub import attach, condition, durable, publisher, subscriber
from tests.broker.world import World, in_transaction, message, properties


def subject(text: str) -> bytes:
    return properties(NULL, NULL, NULL, encode_string(text))


def sent(sender: Any, body: str, **parts: Any) -> list[Any]:
    """Send a message with these sections; what it is answered."""
    answers: list[Any] = sender.transfer(message(body, **parts))
    sender.world.run()
    return answers


# --- routing


def test_each_subscriber_gets_each_message_once(world: World) -> None:
    peer = world.connect()
    first, second, other = subscriber(peer), subscriber(world.connect()), subscriber(peer, "weather")
    answers = publisher(peer).send("m1", "m2")
    assert answers == [[ACCEPTED], [ACCEPTED]]
    assert first.receive() == second.receive() == ["m1", "m2"]
    assert other.receive() == []


def test_what_nobody_subscribes_to_is_accepted_and_discarded(world: World) -> None:
    peer = world.connect()
    assert publisher(peer).send("m1") == [[ACCEPTED]]
    assert subscriber(peer).receive() == []
    exchange = world.broker.exchange("amq.topic")
    assert (exchange.received, exchange.routed, exchange.dropped) == (1, 0, 1)


@pytest.mark.parametrize(("topic", "key", "wanted"), [
    ("a.*", "a.b", True), ("a.*", "a.b.c", False), ("a.#", "a", True), ("#", "anything at all", True),
    ("a.#.c", "a.c", True), ("a*", "ab", False), ("a/b.*", "a/b.c", True),
])  # fmt: skip
def test_wildcards_in_the_name_of_a_subscription(world: World, topic: str, key: str, wanted: bool) -> None:
    peer = world.connect()
    receiver = subscriber(peer, topic)
    publisher(peer, key).send("m1")
    assert receiver.receive() == ["m1"] * wanted


def test_wildcards_in_the_name_of_a_publishers_topic_are_ordinary_words(world: World) -> None:
    peer = world.connect()
    plain, starred = subscriber(peer, "a.b"), subscriber(peer, "a.*")
    publisher(peer, "a.*").send("m1")
    assert plain.receive() == [] and starred.receive() == ["m1"]


def test_headers_come_to_each_subscription_as_they_were_sent(world: World) -> None:
    peer = world.connect()
    first, second = durable(peer, "one"), durable(peer, "two")
    sender = publisher(peer)
    sender.send("low", priority=1, durable=True)
    sender.send("high", priority=8)
    sender.send("short", ttl=1000)
    for receiver in (first, second):
        assert [split_header(each.payload)[0] for each in receiver.take()] == [
            Header(durable=True, priority=1), Header(priority=8), Header(ttl=1000),
        ]  # fmt: skip


def test_priority_orders_within_each_subscription(world: World) -> None:
    peer = world.connect()
    first, second = durable(peer, "one", credit=0), durable(peer, "two", credit=0)
    sender = publisher(peer)
    for body, priority in (("low", 1), ("usual", 4), ("high", 9)):
        sender.send(body, priority=priority)
    assert first.receive(10) == second.receive(10) == ["high", "usual", "low"]


def test_expiry_is_each_subscriptions_own(world: World) -> None:
    peer = world.connect()
    first, second = durable(peer, "one"), durable(peer, "two", credit=0)
    publisher(peer).send("m1", ttl=1000)
    first.accept(first.take())
    world.advance(2)
    assert second.receive(10) == []
    assert {view.name: view.depth for view in world.broker.subscriptions()} == {"one": 0, "two": 0}


def test_a_delayed_message_is_routed_when_it_comes_and_visible_when_it_is_due(world: World) -> None:
    peer = world.connect()
    early = subscriber(peer)
    delay = encode_described(0x72, encode_map([encode_symbol("x-opt-delivery-delay"), encode(5000)]))
    assert sent(publisher(peer), "m1", annotations=delay) == [ACCEPTED]
    late = subscriber(peer)
    assert early.receive() == []
    world.advance(6)
    assert early.receive() == ["m1"] and late.receive() == []


def test_a_count_of_one_subscription_is_not_that_of_another(world: World) -> None:
    peer = world.connect()
    first, second = subscriber(peer), subscriber(peer, credit=0)
    sent(publisher(peer), "m1", delivery_count=3)
    (delivery,) = first.take()
    first.dispose([delivery], Modified(delivery_failed=True))
    assert first.receive() == ["m1+4"] and second.receive(1) == ["m1+3"]


def test_pre_settled_messages_are_routed_too(world: World) -> None:
    peer = world.connect()
    receiver = subscriber(peer)
    publisher(peer).send("m1", settled=True)
    assert receiver.receive() == ["m1"]


# --- addresses


@pytest.fixture
def prices(world: World) -> World:
    world.broker.declare_exchange("prices", "topic")
    return world


def test_a_topic_is_the_exchange_of_its_name_keyed_by_subject(prices: World) -> None:
    peer = prices.connect()
    everything = subscriber(peer, "prices")
    some = attach(peer, address="prices/eu.#")
    sender = publisher(peer, "prices")
    sent(sender, "m1", properties=subject("eu.stock"))
    sent(sender, "m2", properties=subject("us.stock"))
    sent(sender, "m3")
    assert everything.receive() == ["m1", "m2", "m3"] and some.receive() == ["m1"]
    assert {(each.key, each.exchange) for each in prices.broker.exchange("prices").bindings()} == {
        ("#", "prices"), ("eu.#", "prices"),
    }  # fmt: skip
    assert prices.broker.exchange("amq.topic").received == 0


def test_a_key_in_the_address_is_the_key_of_every_message(prices: World) -> None:
    peer = prices.connect()
    receiver = attach(peer, address="prices/eu.*")
    sender = peer.sender("prices/eu.stock")
    sent(sender, "m1", properties=subject("us.stock"))
    assert receiver.receive() == ["m1"]
    assert sender.link.remote_target.address == "prices/eu.stock"
    assert receiver.link.remote_source.address == "prices/eu.*"


@pytest.mark.parametrize("address", ["amq.topic/a.b", "a.b"])
def test_a_topic_is_a_key_of_amq_topic(world: World, address: str) -> None:
    peer = world.connect()
    named, plain = subscriber(peer, "a.b"), attach(peer, address="amq.topic/a.b")
    publisher(peer, address).send("m1")
    assert named.receive() == plain.receive() == ["m1"]


def test_an_existing_queue_comes_first_unless_a_topic_is_asked_for(prices: World) -> None:
    prices.broker.declare_queue("prices")
    prices.broker.declare_queue("prices/eu")
    peer = prices.connect()
    for address in ("prices", "prices/eu"):
        peer.sender(address).send("m1")
        peer.sender(target=Target(address=address, capabilities=("queue",))).send("m2")
        publisher(peer, address).send("m3")
        assert prices.bodies(address) == ["m1", "m2"]
    assert prices.broker.exchange("prices").received == 2


def test_an_exchange_comes_before_a_queue_to_be_made(prices: World) -> None:
    peer = prices.connect()
    receiver = peer.receiver("prices", credit=1)
    peer.sender("prices").send("m1")
    assert receiver.receive() == ["m1"]
    assert all(queue.name.startswith("jmsish.subscription.") for queue in prices.broker.queues())


@pytest.mark.parametrize("address", ["/prices", "other/prices", "prices2/x", "/"])
def test_what_names_no_exchange_before_the_slash_is_a_queue(prices: World, address: str) -> None:
    prices.connect().sender(address).send("m1")
    assert prices.bodies(address) == ["m1"]


def test_asking_for_both_kinds_asks_for_none(prices: World) -> None:
    peer = prices.connect()
    both = peer.sender(target=Target(address="new", capabilities=("queue", "topic")))
    both.send("m1")
    assert prices.bodies("new") == ["m1"]


def test_a_topic_and_a_queue_of_one_name_are_two(world: World) -> None:
    peer = world.connect()
    receiver = subscriber(peer, "both")
    peer.sender("both").send("to the queue")
    publisher(peer, "both").send("to the topic")
    assert receiver.receive() == ["to the topic"] and world.bodies("both") == ["to the queue"]


def test_without_auto_create_a_topic_is_a_declared_exchange() -> None:
    world = World({"policy": {"auto_create": False}, "exchanges": {"prices": {"type": "topic"}}})
    peer = world.connect()
    assert condition(publisher(peer, "news")) == condition(subscriber(peer, "news")) == "amqp:not-found"
    receiver = subscriber(peer, "prices")
    publisher(peer, "prices").send("m1")
    assert receiver.receive() == ["m1"]
    keyed = attach(peer, address="amq.topic/a")
    peer.sender("amq.topic/a").send("m2")
    assert keyed.receive() == ["m2"]


def test_a_pattern_of_10000_words_is_refused_by_the_field(world: World) -> None:
    peer = world.connect()
    refused = subscriber(peer, ".".join(["#", "a"] * 5000))
    assert condition(refused) == "amqp:invalid-field"
    assert refused.error is not None and "256 words" in str(refused.error.description)
    assert world.broker.subscriptions() == [] and world.broker.queues() == []


@pytest.mark.parametrize("capability", ["topic", "temporary-topic"])
def test_m45_the_capability_of_a_topic_is_echoed(world: World, capability: str) -> None:
    peer = world.connect()
    dynamic = capability == "temporary-topic"
    address = None if dynamic else "news"
    receiver = peer.receiver(source=Source(address=address, dynamic=dynamic, capabilities=(capability,)))
    sender = peer.sender(target=Target(address=address, dynamic=dynamic, capabilities=(capability,)))
    for end, terminus in ((receiver, receiver.link.remote_source), (sender, sender.link.remote_target)):
        assert not end.detached and terminus.capabilities == (capability,)
        assert terminus.address == address or (dynamic and terminus.address.startswith("jmsish.temporary."))


def test_m45_the_other_kind_is_not_echoed(prices: World) -> None:
    sender = prices.connect().sender(target=Target(address="prices", capabilities=("queue",)))
    assert sender.link.remote_target.capabilities == ()


# --- the anonymous relay


def to(address: str) -> bytes:
    return properties(NULL, NULL, encode_string(address))


def annotated(key: str, value: Any) -> bytes:
    return encode_described(0x72, encode_map([encode_symbol(key), encode(value)]))


@pytest.mark.parametrize(("key", "value", "topic"), [
    ("x-opt-jms-dest", Byte(0), False), ("x-opt-jms-dest", Byte(1), True), ("x-opt-jms-dest", Byte(3), True),
    ("x-opt-jms-dest", Byte(2), False), ("x-opt-jms-dest", "topic", False), ("x-opt-jms-dest", Byte(9), False),
    ("x-opt-to-type", "topic", True), ("x-opt-to-type", "temporary, topic", True), ("x-opt-to-type", "queue", False),
    ("x-opt-to-type", "nonsense", False), ("x-opt-to-type", 1, False),
    ("x-opt-routing-type", Byte(0), True), ("x-opt-routing-type", Byte(1), False),
    ("x-opt-other", Byte(1), False),
])  # fmt: skip
def test_m23_m26_an_annotation_says_whether_a_relayed_message_is_for_a_topic(
    world: World, key: str, value: Any, topic: bool
) -> None:
    peer = world.connect()
    receiver = subscriber(peer, "d")
    world.broker.declare_queue("d")
    assert sent(peer.sender(None), "m1", annotations=annotated(key, value), properties=to("d")) == [ACCEPTED]
    assert (receiver.receive(), world.bodies("d")) == ((["m1"], []) if topic else ([], ["m1"]))


def test_m26_the_routing_type_comes_first(world: World) -> None:
    peer = world.connect()
    receiver = subscriber(peer, "d")
    both = encode_map([
        encode_symbol("x-opt-jms-dest"), encode(Byte(0)), encode_symbol("x-opt-routing-type"), encode(Byte(0)),
    ])  # fmt: skip
    sent(peer.sender(None), "m1", annotations=encode_described(0x72, both), properties=to("d"))
    assert receiver.receive() == ["m1"]


def test_the_relay_reaches_exchanges_and_keys(prices: World) -> None:
    peer = prices.connect()
    receiver = attach(peer, address="prices/eu")
    relay = peer.sender(None)
    sent(relay, "m1", properties=to("prices/eu"))
    sent(relay, "m2", properties=properties(NULL, NULL, encode_string("prices"), encode_string("eu")))
    assert receiver.receive() == ["m1", "m2"]


def test_the_relay_without_auto_create_refuses_an_unknown_topic() -> None:
    world = World({"policy": {"auto_create": False}})
    relay = world.connect().sender(None)
    (outcome,) = sent(relay, "m1", annotations=annotated("x-opt-jms-dest", Byte(1)), properties=to("t"))
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:not-found" and "topic 't'" in str(outcome.error.description)


# --- limits: all or none


def limit(world: World, name: str, **settings: Any) -> None:
    """Give the queue of the subscription of that name these settings."""
    (view,) = [view for view in world.broker.subscriptions() if view.name == name]
    world.broker.declare_queue(view.queue, **settings)


def depths(world: World) -> dict[str, int]:
    return {view.name: view.depth for view in world.broker.subscriptions()}


def test_a_full_subscription_refuses_the_message_for_all(world: World) -> None:
    peer = world.connect()
    durable(peer, "one", credit=0)
    durable(peer, "two", credit=0)
    limit(world, "two", max_messages=1)
    first, second = publisher(peer).send("m1", "m2")
    assert first == [ACCEPTED]
    assert isinstance(second[0], Rejected) and second[0].error is not None
    assert second[0].error.condition == "amqp:resource-limit-exceeded"
    assert depths(world) == {"one": 1, "two": 1}


def test_octets_are_a_limit_too(world: World) -> None:
    peer = world.connect()
    durable(peer, "one", credit=0)
    durable(peer, "two", credit=0)
    limit(world, "one", max_octets=100)
    answers = publisher(peer).send("x" * 50, "y" * 50)
    assert answers[0] == [ACCEPTED] and isinstance(answers[1][0], Rejected)
    assert depths(world) == {"one": 1, "two": 1}


def test_drop_head_drops_in_the_full_one_only(world: World) -> None:
    peer = world.connect()
    durable(peer, "one", credit=0)
    durable(peer, "two", credit=0)
    limit(world, "two", max_messages=1, overflow="drop-head")
    assert publisher(peer).send("m1", "m2") == [[ACCEPTED], [ACCEPTED]]
    assert depths(world) == {"one": 2, "two": 1}


def test_block_holds_the_publisher_back_until_there_is_room(world: World) -> None:
    peer = world.connect()
    durable(peer, "one", credit=0)
    slow = durable(peer, "two", credit=0)
    limit(world, "two", max_messages=3, overflow="block")
    sender = publisher(peer)
    assert sender.link.credit == 3
    sender.send("m1", "m2", "m3")
    assert sender.link.credit == 0
    slow.flow(1)
    slow.accept(slow.take())
    assert sender.link.credit == 1
    sender.send("m4")
    assert depths(world) == {"one": 4, "two": 3} and sender.link.credit == 0
    slow.detach(closed=True)
    assert sender.link.credit > 100


def test_block_holds_a_publisher_by_subject_back_too(prices: World) -> None:
    peer = prices.connect()
    slow = durable(peer, "slow", "prices/eu.#", credit=0)
    limit(prices, "slow", max_messages=2, overflow="block")
    sender = publisher(peer, "prices")
    while sender.link.credit and depths(prices)["slow"] < 2000:
        sent(sender, "m", properties=subject("eu.x"))
    assert sender.link.credit == 0 and depths(prices)["slow"] == 2
    slow.flow(1)
    slow.accept(slow.take())
    assert sender.link.credit > 0


# --- transactions


def test_a_post_to_a_topic_is_visible_everywhere_at_commit(world: World) -> None:
    peer = world.connect()
    first, second = subscriber(peer), subscriber(world.connect())
    sender, controller = publisher(peer), peer.controller()
    txn = controller.declare()
    assert sender.send("m1", "m2", state=in_transaction(txn)) == [[in_transaction(txn, ACCEPTED)]] * 2
    assert first.receive() == second.receive() == []
    (view,) = world.broker.transactions()
    assert view.posts == 2
    assert controller.commit(txn) is None
    assert first.receive() == second.receive() == ["m1", "m2"]


def test_a_post_rolled_back_is_nowhere(world: World) -> None:
    peer = world.connect()
    receiver = subscriber(peer)
    sender, controller = publisher(peer), peer.controller()
    txn = controller.declare()
    sender.send("m1", state=in_transaction(txn))
    assert controller.roll_back(txn) is None
    assert receiver.receive() == []


def test_a_post_is_routed_when_it_comes_not_at_commit(world: World) -> None:
    peer = world.connect()
    early = subscriber(peer)
    sender, controller = publisher(peer), peer.controller()
    txn = controller.declare()
    sender.send("m1", state=in_transaction(txn))
    late = subscriber(peer)
    assert controller.commit(txn) is None
    assert early.receive() == ["m1"] and late.receive() == []


def test_a_subscription_that_has_gone_does_not_refuse_the_commit(world: World) -> None:
    peer = world.connect()
    goes, stays = subscriber(peer), subscriber(peer)
    sender, controller = publisher(peer), peer.controller()
    txn = controller.declare()
    sender.send("m1", state=in_transaction(txn))
    goes.detach()
    assert controller.commit(txn) is None
    assert stays.receive() == ["m1"]


def test_a_commit_is_refused_where_one_subscription_is_full(world: World) -> None:
    peer = world.connect()
    durable(peer, "one", credit=0)
    durable(peer, "two", credit=0)
    limit(world, "two", max_messages=2)
    sender, controller = publisher(peer), peer.controller()
    txn = controller.declare()
    sender.send("m1", "m2", state=in_transaction(txn))
    publisher(world.connect()).send("before")
    assert controller.commit(txn) == "amqp:transaction:rollback"
    assert depths(world) == {"one": 1, "two": 1}


def test_copies_count_for_the_size_of_a_transaction() -> None:
    world = World({"policy": {"max_transaction_size": 10}})
    peer = world.connect()
    receivers = [subscriber(peer) for _ in range(4)]
    sender, controller = publisher(peer), peer.controller()
    for posts, answer in ((2, None), (3, "amqp:transaction:rollback")):
        txn = controller.declare()
        sender.send(*"m" * posts, state=in_transaction(txn))
        assert controller.commit(txn) == answer
    assert [receiver.receive() for receiver in receivers] == [["m", "m"]] * 4


def test_a_commit_counts_what_comes_to_a_queue_by_all_its_ways(prices: World) -> None:
    peer = prices.connect()
    prices.broker.declare_queue("q", max_messages=2)
    queue = prices.broker.router.queues["q"]
    prices.broker.router.exchanges.declare("prices", "topic").bind(queue, "#")
    controller = peer.controller()
    for count, answer in ((1, None), (2, "amqp:transaction:rollback")):
        txn = controller.declare()
        peer.sender("q").send(*"m" * (count - 1), state=in_transaction(txn))
        publisher(peer, "prices").send("m", state=in_transaction(txn))
        assert controller.commit(txn) == answer
    assert prices.bodies("q") == ["m"]


def test_what_was_taken_from_a_subscription_that_has_gone_can_be_committed(world: World) -> None:
    peer = world.connect()
    receiver, controller = subscriber(peer), peer.controller()
    publisher(peer).send("m1")
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    receiver.detach()
    peer.sender("q").send("m2", state=in_transaction(txn))
    assert controller.commit(txn) is None
    assert world.bodies("q") == ["m2"]


def test_a_relayed_post_to_a_topic_in_a_transaction(world: World) -> None:
    peer = world.connect()
    receiver, controller = subscriber(peer, "d"), peer.controller()
    txn = controller.declare()
    payload = message("m1", annotations=annotated("x-opt-jms-dest", Byte(1)), properties=to("d"))
    answers = peer.sender(None).transfer(payload, state=in_transaction(txn))
    world.run()
    assert answers == [TransactionalState(txn, ACCEPTED)]
    assert controller.commit(txn) is None
    assert receiver.receive() == ["m1"]


# --- exchanges that go


def test_a_deleted_exchange_ends_its_links_and_subscriptions(prices: World) -> None:
    peer = prices.connect()
    sender, receiver = publisher(peer, "prices"), durable(peer, topic="prices")
    prices.broker.delete_exchange("prices")
    prices.run()
    assert condition(sender) == condition(receiver) == "amqp:resource-deleted"
    assert prices.broker.subscriptions() == [] and prices.broker.queues() == []


# --- temporary topics (M103 to M106)


def temporary_topic(peer: Any, capability: str = "temporary-topic") -> tuple[Any, str]:
    creator = peer.sender(target=Target(dynamic=True, capabilities=(capability,)))
    address = creator.link.remote_target.address
    assert isinstance(address, str)
    return creator, address


def test_m103_a_temporary_topic_is_made_by_a_senders_link(world: World) -> None:
    owner, other = world.connect(), world.connect()
    creator, address = temporary_topic(owner)
    assert address.startswith("jmsish.temporary.")
    assert creator.link.remote_target.dynamic and creator.link.remote_target.dynamic_node_properties
    receivers = [subscriber(owner, address, capabilities=("temporary-topic",)) for _ in range(2)]
    # jms rule 144: anyone may send to it, by a link, a link that does not say topic, or the relay.
    publisher(other, address).send("m1")
    other.sender(address).send("m2")
    sent(other.sender(None), "m3", properties=to(address))
    assert [receiver.receive() for receiver in receivers] == [["m1", "m2", "m3"]] * 2
    assert world.broker.exchange(address).is_temporary


def test_rule_143_only_its_own_connection_subscribes_to_it(world: World) -> None:
    owner, other = world.connect(), world.connect()
    _, address = temporary_topic(owner)
    for end in (subscriber(other, address, capabilities=("temporary-topic",)), other.receiver(address)):
        assert condition(end) == "amqp:resource-locked"
    assert world.broker.subscriptions() == []


def test_m104_rule_146_closing_its_link_deletes_it(world: World) -> None:
    owner, other = world.connect(), world.connect()
    creator, address = temporary_topic(owner)
    sender, receiver = publisher(other, address), subscriber(owner, address)
    creator.detach()
    assert condition(sender) == condition(receiver) == "amqp:resource-deleted"
    for end in (publisher(other, address), subscriber(owner, address), other.sender(address)):
        assert condition(end) == "amqp:not-found"
    (outcome,) = sent(other.sender(None), "m", annotations=annotated("x-opt-jms-dest", Byte(3)), properties=to(address))
    assert isinstance(outcome, Rejected) and outcome.error is not None and outcome.error.condition == "amqp:not-found"
    assert not any(view.is_temporary for view in world.broker.exchanges())


@pytest.mark.parametrize("ending", ["close", "cut", "end"])
def test_rule_142_a_temporary_topic_goes_with_its_connection(world: World, ending: str) -> None:
    owner = world.connect()
    _, address = temporary_topic(owner)
    subscriber(owner, address)
    if ending == "end":
        owner.session.end()
        world.run()
    else:
        getattr(owner, ending)()
    assert not any(view.is_temporary for view in world.broker.exchanges())
    assert world.broker.queues() == [] and world.broker.subscriptions() == []


def test_m104_detached_without_a_close_it_stays(world: World) -> None:
    owner = world.connect()
    creator, address = temporary_topic(owner)
    creator.detach(closed=False)
    assert not publisher(world.connect(), address).detached


def test_m106_a_dynamic_source_makes_a_topic_and_subscribes_to_it(world: World) -> None:
    owner = world.connect()
    receiver = attach(owner, dynamic=True, capabilities=("temporary-topic",))
    address = receiver.link.remote_source.address
    publisher(world.connect(), address).send("m1")
    assert receiver.receive() == ["m1"]
    receiver.detach()
    assert world.broker.queues() == [] and not any(view.is_temporary for view in world.broker.exchanges())


def test_a_dynamic_topic_that_is_not_temporary_is_read_by_who_knows_its_name(world: World) -> None:
    owner = world.connect()
    _, address = temporary_topic(owner, "topic")
    receiver = subscriber(world.connect(), address)
    publisher(owner, address).send("m1")
    assert receiver.receive() == ["m1"]


# --- offers


def test_m31_m34_the_connection_offers_all_that_jms_asks_for(world: World) -> None:
    offered = world.connect().engine.remote.offered_capabilities
    assert {"SHARED-SUBS", "DELAYED_DELIVERY", "ANONYMOUS-RELAY", "sole-connection-for-container"} <= set(offered)


def test_m47_m65_a_link_offers_what_it_is_asked_for(world: World) -> None:
    peer = world.connect()
    sender = peer.sender(desired_capabilities=("DELAYED_DELIVERY", "x"))
    receiver = peer.receiver(desired_capabilities=("SHARED-SUBS",))
    assert list(sender.link.remote_offered_capabilities) == ["DELAYED_DELIVERY"]
    assert list(receiver.link.remote_offered_capabilities) == ["SHARED-SUBS"]


def test_a_key_of_more_words_than_a_pattern_may_have_is_refused(world: World) -> None:
    """The longest pattern and the longest key cost a moment; what is longer is rejected, and harms nobody."""
    peer = world.connect()
    worst = peer.receiver(".".join(["#", "a"] * 128), capabilities=("topic",), credit=10)
    longest, endless = ".".join("a" * 256), ".".join("a" * 257)
    sender = peer.sender(None)
    for key in (longest, endless):
        note = encode_described(0x72, encode_map((encode_symbol("x-opt-jms-dest"), encode(Byte(1)))))
        answers = sender.transfer(message("m", annotations=note, properties=properties(NULL, NULL, encode_string(key))))
        world.run()
        if key is longest:
            assert answers == [ACCEPTED]
        else:
            (outcome,) = answers
            assert isinstance(outcome, Rejected) and outcome.error is not None
            assert outcome.error.condition == "amqp:precondition-failed"
    assert len(worst.arrived) == 1
