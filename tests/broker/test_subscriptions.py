"""Subscriptions: who they belong to, how long they live, who may read them, and how they end."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, RELEASED, Modified, Source
from tests.broker.pubsub import (
    attach,
    condition,
    durable,
    look_up,
    no_local,
    only,
    publisher,
    selector,
    shared,
    shared_durable,
    subscriber,
)
from tests.broker.world import World, in_transaction


def publish(world: World, *bodies: str, topic: str = "news") -> None:
    """From a client that comes for it and goes."""
    peer = world.connect("publisher")
    publisher(peer, topic).send(*bodies)
    peer.close()


def held(world: World) -> dict[str, int]:
    """By name, how much each subscription holds."""
    return {view.name: view.depth for view in world.broker.subscriptions()}


def leave(world: World, peer: Any, receiver: Any, way: str) -> None:
    """The receiver goes, in one of the ways there are."""
    if way == "detach":
        receiver.detach(closed=False)
    elif way == "end":
        receiver.session.end()
        world.run()
    elif way == "close":
        peer.close()
    else:
        peer.cut()


WAYS = ["detach", "end", "close", "cut"]

# --- unshared, non-durable


def test_rule_123_a_non_durable_subscription_dies_with_its_consumer(world: World) -> None:
    peer = world.connect()
    receiver = subscriber(peer)
    view = only(world)
    assert (view.topic, view.durable, view.shared, view.consumers) == ("news", False, False, 1)
    assert view.queue.startswith("jmsish.subscription.") and world.broker.queue(view.queue).consumer_count == 1
    receiver.detach()
    assert world.broker.subscriptions() == [] and world.broker.queues() == []
    assert world.broker.exchange("amq.topic").bindings() == []


@pytest.mark.parametrize("way", WAYS)
def test_m55_expiry_link_detach_ends_it_with_any_detach(world: World, way: str) -> None:
    peer = world.connect()
    receiver = subscriber(peer, expiry_policy="link-detach")
    publish(world, "m1")
    leave(world, peer, receiver, way)
    assert world.broker.subscriptions() == [] and world.broker.queues() == []


@pytest.mark.parametrize("way", WAYS)
def test_m55_expiry_session_end_keeps_it_until_the_session_ends(world: World, way: str) -> None:
    peer = world.connect()
    receiver = attach(peer, "link", address="news", capabilities=("topic",), credit=0)
    assert receiver.link.remote_source.expiry_policy == "session-end"
    leave(world, peer, receiver, way)
    publish(world, "m1")
    if way == "detach":
        assert held(world) == {"link": 1}
        again = attach(peer, "link", address="news", capabilities=("topic",))
        assert again.receive() == ["m1"]
        again.detach(closed=True)
    assert world.broker.subscriptions() == [] and world.broker.queues() == []


@pytest.mark.parametrize("way", WAYS)
def test_m55_expiry_connection_close_keeps_it_until_the_connection_is_over(world: World, way: str) -> None:
    peer = world.connect()
    receiver = attach(peer, "link", address="news", expiry_policy="connection-close", credit=0)
    # Without the capability "topic", "news" is a queue.
    assert world.broker.subscriptions() == [] and not receiver.detached
    receiver.detach()
    receiver = attach(peer, "link", address="amq.topic/news", expiry_policy="connection-close", credit=0)
    leave(world, peer, receiver, way)
    publish(world, "m1")
    assert held(world) == ({"link": 1} if way in ("detach", "end") else {})
    if way == "end":
        again = attach(peer, "link", address="amq.topic/news", expiry_policy="connection-close", session=peer.begin())
        assert again.receive() == ["m1"]
    peer.cut()
    assert world.broker.subscriptions() == []


def test_a_subscription_stays_for_its_timeout(world: World) -> None:
    peer = world.connect()
    options = {"address": "amq.topic/news", "expiry_policy": "link-detach", "timeout": 30, "credit": 0}
    attach(peer, "link", **options).detach(closed=False)
    publish(world, "m1")
    world.advance(29)
    again = attach(peer, "link", **{**options, "credit": 10})
    assert again.receive() == ["m1"]
    world.advance(60)
    assert len(world.broker.subscriptions()) == 1
    again.detach(closed=False)
    world.advance(29)
    assert len(world.broker.subscriptions()) == 1
    world.advance(2)
    assert world.broker.subscriptions() == []


def test_two_links_of_one_name_on_two_connections_are_two_subscriptions(world: World) -> None:
    first = attach(world.connect("client"), "link", address="amq.topic/news")
    second = attach(world.connect("client"), "link", address="amq.topic/news")
    publish(world, "m1")
    assert first.receive() == second.receive() == ["m1"]


def test_a_detached_subscription_comes_again_anew_with_another_topic(world: World) -> None:
    peer = world.connect()
    attach(peer, "link", address="amq.topic/news", credit=0).detach(closed=False)
    publish(world, "m1")
    again = attach(peer, "link", address="amq.topic/weather")
    publish(world, "m2", topic="weather")
    assert again.receive() == ["m2"] and held(world) == {"link": 1}


def test_clients_of_the_same_link_names_have_subscriptions_of_their_own(world: World) -> None:
    one, two = world.connect("one"), world.connect("two")
    first, second = durable(one), durable(two)
    publish(world, "m1")
    assert first.receive() == second.receive() == ["m1"]
    assert {view.client_id for view in world.broker.subscriptions()} == {"one", "two"}


# --- unshared, durable


@pytest.mark.parametrize("way", WAYS)
def test_rule_129_m67_a_durable_subscription_collects_while_nobody_reads(world: World, way: str) -> None:
    peer = world.connect("client")
    receiver = durable(peer)
    publish(world, "m1")
    receiver.accept(receiver.take())
    leave(world, peer, receiver, way)
    publish(world, "m2", "m3")
    assert held(world) == {"sub": 2} and only(world).consumers == 0
    peer.close()
    assert durable(world.connect("client")).receive() == ["m2", "m3"]


def test_m54_m55_m69_the_answer_says_what_is_in_force(world: World) -> None:
    receiver = durable(world.connect(), filter={**selector("colour = 'red'"), **no_local()})
    source = receiver.link.remote_source
    assert isinstance(source, Source)
    assert (source.address, source.durable, source.expiry_policy, source.distribution_mode, source.capabilities) == (
        "news", 2, "never", "copy", ("topic",),
    )  # fmt: skip
    assert source.filter == {**selector("colour = 'red'"), **no_local()}


def test_a_close_of_its_link_ends_a_durable_subscription(world: World) -> None:
    peer = world.connect()
    receiver = durable(peer)
    publish(world, "m1")
    receiver.detach(closed=True)
    assert world.broker.subscriptions() == [] and world.broker.queues() == [] and receiver.error is None


def test_rule_130_a_second_consumer_of_an_unshared_durable_subscription_is_refused(world: World) -> None:
    peer, same = world.connect("client"), world.connect("client")
    first = durable(peer)
    refused = durable(same)
    assert condition(refused) == "amqp:resource-locked"
    assert refused.error is not None and "'sub'" in str(refused.error.description)
    publish(world, "m1")
    assert first.receive() == ["m1"]
    first.detach(closed=False)
    assert not durable(same).detached


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("weather", {}),
    ("news", {"filter": selector("colour = 'red'")}),
    ("news", {"filter": no_local()}),
]


@pytest.mark.parametrize(("topic", "options"), CHANGES)
def test_rule_131_m71_another_topic_selector_or_no_local_makes_an_idle_one_anew(
    world: World, topic: str, options: dict[str, Any]
) -> None:
    peer = world.connect()
    durable(peer).detach(closed=False)
    publish(world, "old")
    again = durable(peer, topic=topic, **options)
    assert again.receive() == [] and held(world) == {"sub": 0}
    assert only(world).topic == topic
    again.detach(closed=False)
    back = durable(peer)
    publish(world, "new")
    assert back.receive() == ["new"]


def test_m71_the_same_again_is_the_same(world: World) -> None:
    peer = world.connect()
    wish = {"topic": "news.*.#", "filter": selector("TRUE")}
    durable(peer, **wish).detach(closed=False)
    publish(world, "m1", topic="news.eu")
    assert durable(peer, **{**wish, "topic": "news.#.*"}).receive() == ["m1"]


@pytest.mark.parametrize(("topic", "options"), CHANGES)
def test_m71_another_topic_selector_or_no_local_is_refused_while_it_is_read(
    world: World, topic: str, options: dict[str, Any]
) -> None:
    peer, same = world.connect("client"), world.connect("client")
    receiver = durable(peer)
    assert condition(durable(same, topic=topic, **options)) == "amqp:resource-locked"
    publish(world, "m1")
    assert receiver.receive() == ["m1"] and only(world).topic == "news"


def test_a_bad_wish_leaves_what_is_there_alone(world: World) -> None:
    peer = world.connect()
    durable(peer).detach(closed=False)
    publish(world, "m1")
    assert condition(durable(peer, filter=selector("("))) == "amqp:invalid-field"
    assert condition(durable(peer, topic=".".join("a" * 300))) == "amqp:invalid-field"
    assert durable(peer).receive() == ["m1"]


def test_rule_139_any_name_will_do(world: World) -> None:
    peer = world.connect("client/1")
    names = ["x" * 128, "a_b.c-d", "ü/%|", "a/b", "a%2Fb", "x" * 5000]
    for name in names:
        assert not durable(peer, name, credit=0).detached
    assert [view.name for view in world.broker.subscriptions()] == names
    assert len({view.queue for view in world.broker.subscriptions()}) == len(names)


# --- what was delivered and not settled


def test_what_is_read_and_not_settled_goes_back_to_its_place_when_the_session_ends(world: World) -> None:
    peer = world.connect("client")
    receiver = durable(peer, credit=0)
    publish(world, "m1", "m2", "m3")
    receiver.flow(2)
    first, _ = receiver.take()
    receiver.dispose([first], RELEASED)
    receiver.detach(closed=False)
    peer.close()
    assert world.bodies(only(world).queue) == ["m1", "m2", "m3"]
    assert durable(world.connect("client")).receive() == ["m1", "m2+1", "m3"]


def test_s118_what_is_released_after_the_detach_goes_back_at_once(world: World) -> None:
    peer = world.connect("client")
    receiver = durable(peer)
    publish(world, "m1", "m2")
    deliveries = receiver.take()
    receiver.detach(closed=False)
    assert world.depth(only(world).queue) == (0, 2)
    receiver.dispose(deliveries, RELEASED)
    assert durable(peer).receive() == ["m1", "m2"]


def test_a_lost_connection_gives_back_in_place(world: World) -> None:
    peer = world.connect("client")
    durable(peer)
    publish(world, "m1", "m2")
    peer.cut()
    publish(world, "m3")
    assert durable(world.connect("client")).receive() == ["m1+1", "m2+1", "m3"]


def test_a_subscription_has_dead_letters_like_any_queue(world: World) -> None:
    peer = world.connect()
    receiver = durable(peer)
    world.broker.declare_queue(only(world).queue, max_delivery_attempts=1, dead_letter="dead")
    publish(world, "m1")
    receiver.dispose(receiver.take(), Modified(delivery_failed=True))
    assert world.bodies("dead") == ["m1"]


# --- shared


def test_rule_126_m62_a_shared_subscription_lives_while_a_consumer_of_it_is_open(world: World) -> None:
    one, two = world.connect("client"), world.connect("client")
    first, second = shared(one, "sub|volatile1"), shared(two, "sub|volatile2")
    assert (only(world).name, only(world).client_id, only(world).consumers) == ("sub", "client", 2)
    first.detach()
    publish(world, "m1")
    assert second.receive() == ["m1"]
    two.cut()
    assert world.broker.subscriptions() == [] and world.broker.queues() == []


def test_rule_136_each_message_goes_to_one_of_the_consumers(world: World) -> None:
    peer = world.connect()
    first, second = shared(peer, "sub|volatile1"), shared(peer, "sub|volatile2")
    publish(world, "m1", "m2", "m3", "m4")
    assert (first.receive(), second.receive()) == (["m1", "m3"], ["m2", "m4"])


def test_rule_126_rule_128_the_name_is_that_of_the_client_id_or_of_all(world: World) -> None:
    """M56, M70: ``global`` says that no client id was set."""
    one, two = world.connect("one"), world.connect("two")
    for to_all, count in ((False, 2), (True, 1)):
        first = shared(one, "sub|volatile1", to_all=to_all)
        second = shared(two, "sub|volatile1", to_all=to_all)
        assert len(world.broker.subscriptions()) == count
        publish(world, "m1", "m2")
        assert len(first.receive() + second.receive()) == 4 // (3 - count)
        assert [view.client_id for view in world.broker.subscriptions()] == ([None] if to_all else ["one", "two"])
        first.detach()
        second.detach()
    assert world.broker.subscriptions() == []


def test_m56_the_capabilities_of_sharing_are_echoed(world: World) -> None:
    receiver = shared(world.connect(), to_all=True)
    assert receiver.link.remote_source.capabilities == ("topic", "shared", "global")


@pytest.mark.parametrize(("kind", "names"), [
    (shared, ["sub|volatile1", "sub|volatile2", "sub|volatile3"]),
    (shared_durable, ["sub", "sub|2", "sub|3"]),
])  # fmt: skip
@pytest.mark.parametrize("to_all", [False, True])
def test_m62_the_name_is_what_stands_before_the_bar(world: World, kind: Any, names: list[str], to_all: bool) -> None:
    peer = world.connect()
    if to_all:
        names = [name.replace("volatile", "global-volatile") for name in names]
        names = ["sub|global", "sub|global2", "sub|global3"] if kind is shared_durable else names
    receivers = [kind(peer, name, to_all=to_all) for name in names]
    assert (only(world).name, only(world).consumers) == ("sub", 3)
    publish(world, "m1", "m2", "m3")
    assert [receiver.receive() for receiver in receivers] == [["m1"], ["m2"], ["m3"]]


@pytest.mark.parametrize("kind", [shared, shared_durable])
@pytest.mark.parametrize(("topic", "options"), CHANGES[:2])
def test_rule_133_joining_with_another_topic_or_selector_is_refused(
    world: World, kind: Any, topic: str, options: dict[str, Any]
) -> None:
    peer = world.connect()
    first = kind(peer)
    refused = kind(peer, "sub|x2", topic, **options)
    assert condition(refused) == "amqp:precondition-failed"
    assert refused.error is not None and "'sub' is in use for 'news'" in str(refused.error.description)
    publish(world, "m1")
    assert first.receive() == ["m1"] and only(world).consumers == 1


@pytest.mark.parametrize(("topic", "options"), CHANGES[:2])
def test_rule_132_another_topic_or_selector_makes_an_idle_shared_durable_one_anew(
    world: World, topic: str, options: dict[str, Any]
) -> None:
    peer = world.connect()
    shared_durable(peer).detach(closed=False)
    publish(world, "old")
    again = shared_durable(peer, topic=topic, **options)
    assert again.receive() == [] and only(world).topic == topic


def test_rule_129_a_shared_durable_subscription_collects_while_nobody_reads(world: World) -> None:
    one, two = world.connect(), world.connect()
    shared_durable(one, "sub|global", to_all=True).detach(closed=False)
    publish(world, "m1", "m2")
    assert shared_durable(two, "sub|global", to_all=True).receive() == ["m1", "m2"]


@pytest.mark.parametrize("idle", [True, False])
@pytest.mark.parametrize(("older", "newer"), [(durable, shared_durable), (shared_durable, durable)])
def test_rule_134_shared_and_unshared_durable_ones_have_one_space_of_names(
    world: World, older: Any, newer: Any, idle: bool
) -> None:
    peer, same, other = world.connect("client"), world.connect("client"), world.connect("other")
    receiver = older(peer)
    if idle:
        receiver.detach(closed=False)
    assert condition(newer(same)) == "amqp:precondition-failed"
    assert not newer(other).detached
    publish(world, "m1")
    assert held(world) == {"sub": 1} and len(world.broker.subscriptions()) == 2


def test_rule_135_a_shared_non_durable_and_a_durable_one_of_a_name_are_separate(world: World) -> None:
    peer = world.connect()
    volatile, lasting = shared(peer), durable(peer)
    publish(world, "m1")
    assert volatile.receive() == lasting.receive() == ["m1"] and len(world.broker.subscriptions()) == 2


def test_m72_a_close_while_others_read_leaves_a_shared_durable_subscription(world: World) -> None:
    peer = world.connect()
    first, second = shared_durable(peer, "sub"), shared_durable(peer, "sub|2")
    first.detach(closed=True)
    assert condition(first) == "amqp:resource-locked"
    publish(world, "m1")
    assert second.receive() == ["m1"]
    second.detach(closed=True)
    assert second.error is None and world.broker.subscriptions() == []


def test_what_one_consumer_releases_another_gets(world: World) -> None:
    peer = world.connect()
    first, second = shared(peer, "sub|volatile1"), shared(peer, "sub|volatile2", credit=0)
    publish(world, "m1", "m2")
    deliveries = first.take()
    first.detach()
    first.dispose(deliveries, RELEASED)
    assert second.receive(10) == ["m1", "m2"]


# --- unsubscribe (M68, M69)


@pytest.mark.parametrize(("kind", "name", "to_all"), [
    (durable, "sub", False), (shared_durable, "sub", False), (shared_durable, "sub|global", True),
    (shared_durable, "sub|2", False),
])  # fmt: skip
def test_m68_m69_a_subscription_is_found_by_its_name_and_ends_with_the_close(
    world: World, kind: Any, name: str, to_all: bool
) -> None:
    peer = world.connect("client")
    options = {"to_all": True} if to_all else {}
    kind(peer, name, filter=selector("TRUE"), **options).detach(closed=False)
    asking = world.connect("other" if to_all else "client")
    question = look_up(asking, name.split("|")[0] + "|global" * to_all, to_all=to_all)
    source = question.link.remote_source
    assert isinstance(source, Source) and not question.detached
    assert (source.address, source.durable, source.expiry_policy, source.distribution_mode) == (
        "news", 2, "never", "copy",
    )  # fmt: skip
    assert source.filter == selector("TRUE") and "topic" in source.capabilities
    question.detach(closed=True)
    assert question.error is None
    assert world.broker.subscriptions() == [] and world.broker.queues() == []


def test_m69_to_look_alone_changes_nothing(world: World) -> None:
    receiver = durable(world.connect("client"))
    publish(world, "m1")
    question = look_up(world.connect("client"))
    assert not question.detached and only(world).consumers == 1
    question.detach(closed=False)
    assert receiver.receive() == ["m1"] and question.error is None


@pytest.mark.parametrize("to_all", [False, True])
def test_rule_138_an_unknown_name_is_not_found(world: World, to_all: bool) -> None:
    peer = world.connect("client")
    durable(world.connect("another client"))
    shared_durable(peer, "mine")
    question = look_up(peer, "mine|global" if to_all else "sub", to_all=to_all)
    assert condition(question) == "amqp:not-found" and question.link.remote_source is None
    assert question.error is not None and "no subscription" in str(question.error.description)


def test_a_non_durable_subscription_is_not_found(world: World) -> None:
    peer = world.connect()
    shared(peer, "sub|volatile1")
    attach(peer, "link", address="amq.topic/news")
    same = world.connect(peer.engine.container_id)
    assert condition(look_up(same, "sub")) == condition(look_up(same, "link")) == "amqp:not-found"


def refusal_of_unsubscribe(world: World, name: str = "sub", *, to_all: bool = False) -> str | None:
    """By another connection of the client, which has no link of that name."""
    question = look_up(world.connect("client"), name, to_all=to_all)
    assert not question.detached
    question.detach(closed=True)
    return None if question.error is None else question.error.condition


@pytest.mark.parametrize("kind", [durable, shared_durable])
def test_rule_137_not_with_an_active_consumer(world: World, kind: Any) -> None:
    peer = world.connect("client")
    receiver = kind(peer)
    assert refusal_of_unsubscribe(world) == "amqp:resource-locked"
    publish(world, "m1")
    assert receiver.receive() == ["m1"]
    receiver.detach(closed=False)


def test_rule_137_not_with_unacknowledged_messages(world: World) -> None:
    peer = world.connect("client")
    receiver = durable(peer)
    publish(world, "m1", "m2")
    first, second = receiver.take()
    receiver.detach(closed=False)
    assert refusal_of_unsubscribe(world) == "amqp:resource-locked"
    receiver.dispose([first], ACCEPTED)
    assert refusal_of_unsubscribe(world) == "amqp:resource-locked"
    receiver.dispose([second], ACCEPTED)
    assert refusal_of_unsubscribe(world) is None
    assert world.broker.subscriptions() == []


@pytest.mark.parametrize("commit", [True, False])
def test_rule_137_not_with_messages_in_a_transaction(world: World, commit: bool) -> None:
    peer = world.connect("client")
    receiver, controller = durable(peer), peer.controller()
    publish(world, "m1")
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    receiver.detach(closed=False)
    assert refusal_of_unsubscribe(world) == "amqp:resource-locked"
    assert (controller.commit if commit else controller.roll_back)(txn) is None
    assert held(world) == {"sub": 0 if commit else 1}
    assert refusal_of_unsubscribe(world) is None


def test_an_ended_subscription_can_be_looked_up_no_more(world: World) -> None:
    peer = world.connect("client")
    durable(peer).detach(closed=False)
    first, second = look_up(peer), look_up(world.connect("client"))
    first.detach(closed=True)
    second.detach(closed=True)
    assert first.error is None and second.error is None
    assert condition(look_up(peer)) == "amqp:not-found"


def test_a_stolen_link_does_not_end_its_subscription(world: World) -> None:
    """Attached anew in another session, a link is taken from where it was (2.6.1); what it had read is back."""
    peer = world.connect("client")
    first = durable(peer)
    publish(world, "m1")
    peer.engine.link_names.clear()  # what keeps our own engine from doing it
    second = durable(peer, session=peer.begin(), credit=0)
    assert condition(first) == "amqp:link:stolen" and not second.detached
    publish(world, "m2")
    assert held(world) == {"sub": 2}
    first.dispose(first.take(), RELEASED)
    assert second.receive(10) == ["m1", "m2"]


def test_who_only_asked_gets_no_messages(world: World) -> None:
    peer = world.connect()
    durable(peer).detach(closed=False)
    publish(world, "m1")
    question = look_up(peer)
    question.flow(10)
    assert condition(question) == "amqp:not-allowed" and question.receive() == []
    assert held(world) == {"sub": 1}


def test_a_lookup_outlives_nothing(world: World) -> None:
    peer = world.connect()
    durable(peer).detach(closed=False)
    question = look_up(peer, session=peer.begin())
    question.session.end()
    world.run()
    peer.cut()
    assert held(world) == {"sub": 0}


# --- as queues


def test_m70_the_queue_of_a_subscription_says_whose_it_is(world: World) -> None:
    peer = world.connect("client/1")
    durable(peer, "a|b")
    shared_durable(peer, "c|2")
    shared_durable(peer, "d|global", to_all=True)
    shared(peer, "e|volatile1")
    shared(peer, "e|global-volatile1", to_all=True)
    subscriber(peer, name="f")
    assert [view.queue.removeprefix("jmsish.subscription.") for view in world.broker.subscriptions()] == [
        "durable/client%2F1/a%7Cb", "durable/client%2F1/c", "durable.global/d",
        "shared/client%2F1/e", "shared.global/e", "volatile/client%2F1/f",
    ]  # fmt: skip


def test_a_subscription_is_a_queue_to_tools(world: World) -> None:
    peer = world.connect()
    durable(peer, credit=0)
    publish(world, "m1", "m2")
    queue = world.broker.queue(only(world).queue)
    assert (queue.depth, queue.available, queue.consumer_count) == (2, 2, 1)
    assert queue.purge() == 2 and held(world) == {"sub": 0}
    browser = attach(peer, address=queue.name, distribution_mode="copy")
    peer.sender(queue.name).send("m3")
    assert browser.receive() == ["m3"] and held(world) == {"sub": 1}


def test_rule_130_the_name_of_the_queue_is_no_way_around_it(world: World) -> None:
    peer = world.connect()
    receiver, together = durable(peer, "sub"), shared_durable(peer, "together")
    alone, many = (view.queue for view in world.broker.subscriptions())
    assert condition(peer.receiver(alone)) == "amqp:resource-locked"
    assert condition(peer.receiver(many)) is None and not together.detached
    receiver.detach(closed=False)
    by_name = peer.receiver(alone)
    assert condition(by_name) is None and condition(durable(peer, "sub")) == "amqp:resource-locked"


def test_who_browses_the_queue_is_in_nobodys_way(world: World) -> None:
    peer = world.connect("client")
    receiver = durable(peer, credit=0)
    browser = attach(world.connect(), address=only(world).queue, distribution_mode="copy")
    receiver.detach(closed=False)
    publish(world, "m1")
    again = durable(peer)
    assert again.receive() == browser.receive() == ["m1"]
    again.detach(closed=True)
    assert condition(browser) == "amqp:resource-deleted" and world.broker.subscriptions() == []


def test_a_deleted_queue_is_a_subscription_ended(world: World) -> None:
    receiver = durable(world.connect())
    world.broker.delete_queue(only(world).queue)
    world.run()
    assert condition(receiver) == "amqp:resource-deleted" and world.broker.subscriptions() == []
    assert world.broker.exchange("amq.topic").bindings() == []


def test_the_queue_of_a_subscription_is_not_made_by_its_name(world: World) -> None:
    peer = world.connect()
    name = "jmsish.subscription.durable/client/sub"
    assert condition(peer.sender(name)) == condition(peer.receiver(name)) == "amqp:not-found"
    with pytest.raises(ValueError, match="the broker's own"):
        world.broker.declare_queue(name)


def test_views_say_all_of_a_subscription(world: World) -> None:
    world.broker.declare_exchange("prices", "topic")
    peer = world.connect("client")
    durable(peer, "a", "news", filter=selector("TRUE"))
    durable(peer, "b", "prices", filter=no_local())
    attach(
        peer,
        "c|volatile1",
        address="prices/eu.#",
        capabilities=("topic", "shared", "global"),
        expiry_policy="link-detach",
    )
    rows = [
        (v.name, v.client_id, v.topic, v.selector, v.no_local, v.durable, v.shared, v.depth, v.consumers)
        for v in world.broker.subscriptions()
    ]
    assert rows == [
        ("a", "client", "news", "TRUE", False, True, False, 0, 1),
        ("b", "client", "prices", None, True, True, False, 0, 1),
        ("c", None, "prices/eu.#", None, False, False, True, 0, 1),
    ]


def test_nothing_is_left_of_a_thousand_subscriptions(world: World) -> None:
    peer = world.connect()
    for number in range(200):
        subscriber(peer, f"topic.{number}").detach()
        attach(peer, f"link{number}", address=f"amq.topic/{number}").detach(closed=False)
    peer.session.end()
    world.run()
    router = world.broker.router
    assert world.broker.queues() == [] and world.broker.subscriptions() == []
    assert router.exchanges.topic.table.size == 0 and not router.subscriptions._held
    assert not router.exchanges._where_bound
