"""Subscriptions: what makes one, who shares it, how long it lives, what it collects, and how it is ended.

A test is named after the rule of Jakarta Messaging 3.1 (4.2, 8.3) that it is about; "plain" is the kind that is neither
durable nor shared.
"""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import expect, numbered, outcome, seen, take_all
from .topics import KINDS, LASTING, NAMED, Client, client, collected, publish, subscribe


def error(result: Any, kind: type[jmsish.JMSError] = jmsish.JMSError) -> bool:
    return isinstance(result, kind)


# --- life


async def test_rule_123_a_plain_subscription_lives_with_its_consumer(face: Face) -> None:
    """What was published before and after is never seen; two consumers have two subscriptions."""
    play = await client(face)
    await play.publish("before")
    first = await play.subscribe()
    second = await play.subscribe()
    await play.publish("m1 m2")
    await expect(first, "m1 m2 none")
    await expect(second, "m1 m2 none")
    await first.close()
    await play.publish("between")
    await expect(await play.subscribe(), "none")
    await expect(second, "between none")


async def test_rule_123_it_goes_with_session_and_connection_too(face: Face) -> None:
    """However the consumer ends, nothing is collected for nobody."""
    reader = await client(face, "alice")
    await reader.subscribe()
    watcher = await client(face)
    await reader.session.close()
    await watcher.publish("m1")
    reader.session = await reader.connection.create_session()
    await expect(await reader.subscribe(), "none")
    await reader.close()
    await watcher.publish("m2")
    again = await client(face, "alice")
    await expect(await again.subscribe(), "none")


async def test_rule_126_a_shared_subscription_lives_while_one_reads_it(face: Face) -> None:
    """The first consumer may go; what comes after the last has gone is not collected."""
    one, two = await client(face), await client(face)
    first = await one.subscribe("shared")
    second = await two.subscribe("shared")
    await first.close()
    await one.publish("m1")
    await expect(second, "m1 none")
    await second.close()
    await one.publish("m2")
    third = await two.subscribe("shared")
    await one.publish("m3")
    await expect(third, "m3 none")


async def test_rule_126_shared_by_name_and_client_id(face: Face) -> None:
    """Those without a client id share by the name alone; one with a client id is by itself, and so is another name."""
    one, two = await client(face), await client(face)
    alice, bob = await client(face, "alice"), await client(face, "bob")
    global_ones = [await one.subscribe("shared"), await two.subscribe("shared")]
    others = [await each.subscribe("shared") for each in (alice, bob)]
    others.append(await one.subscribe("shared", name="other"))
    others.append(await one.subscribe())
    await one.publish(numbered(1, 6))
    for consumer in others:
        await expect(consumer, f"{numbered(1, 6)} none")
    together = [word for consumer in global_ones for word in await take_all(consumer)]
    assert sorted(together) == numbered(1, 6).split()


async def test_rule_127_an_unshared_durable_subscription_needs_a_client_id(face: Face) -> None:
    """One the application chose: that the connection has made itself one is not enough."""
    play = await client(face)
    assert error(await outcome(play.subscribe("durable")), jmsish.IllegalStateError)
    await expect(await play.subscribe("shared durable"), "none")


async def test_rule_128_a_shared_durable_subscription_with_and_without_a_client_id(face: Face) -> None:
    """The name alone where there is none: any such connection can take it up. With one it is that client's."""
    nobody, alice = await client(face), await client(face, "alice")
    for play in (nobody, alice):
        await (await play.subscribe("shared durable")).close()
    await nobody.publish("m1 m2")
    await alice.close()
    await expect(await (await client(face)).subscribe("shared durable"), "m1 m2 none")
    await collected(face, "bob", "shared durable", "")
    await collected(face, "alice", "shared durable", "m1 m2")


@pytest.mark.parametrize("kind", LASTING)
async def test_rule_129_a_durable_subscription_collects_until_it_is_unsubscribed(face: Face, kind: str) -> None:
    """While no consumer, no session, no connection of it is there; and what is acknowledged does not come again."""
    play = await client(face, "alice")
    await (await play.subscribe(kind)).close()
    publisher = await client(face)
    await publisher.publish("m1")
    consumer = await play.subscribe(kind)
    await expect(consumer, "m1")
    await publisher.publish("m2")
    await play.session.close()
    await publisher.publish("m3")
    await play.close()
    await publisher.publish("m4")
    await collected(face, "alice", kind, "m2 m3 m4")
    last = await client(face, "alice")
    await last.session.unsubscribe("s")
    await publisher.publish("m5")
    await expect(await last.subscribe(kind), "none")


@pytest.mark.parametrize("kind", LASTING)
async def test_rule_129_it_survives_a_lost_connection(face: Face, kind: str) -> None:
    """What was handed over and not acknowledged comes again and is marked; what comes meanwhile is collected."""
    play = await client(face, "alice", "client", cuttable=True)
    consumer = await play.subscribe(kind, prefetch=1)
    publisher = await client(face)
    await publisher.publish("m1 m2")
    await expect(consumer, "m1")
    await face.barrier()
    face.cut(play.connection)
    await publisher.publish("m3")
    while error(reader := await outcome(client(face, "alice")), jmsish.InvalidClientIDError):
        await face.turns(1)  # the broker has not yet seen that the wire is gone
    assert isinstance(reader, Client)
    again = await reader.subscribe(kind)
    got = await expect(again, "m1[R2]")
    assert [seen(message) for message in got] == ["m1[R2]"]
    words = await take_all(again)
    assert [word.split("[")[0] for word in words] == ["m2", "m3"]


# --- one consumer, or several


async def test_rule_130_one_consumer_at_a_time(face: Face) -> None:
    """On an unshared durable subscription: neither in this session nor in another."""
    play = await client(face, "alice")
    first = await play.subscribe("durable")
    other = await play.beside()
    for session in (play, other):
        assert error(await outcome(session.subscribe("durable")))
    await play.publish("m1")
    await expect(first, "m1")
    await first.close()
    await expect(await other.subscribe("durable"), "none")


@pytest.mark.parametrize("kind", ["shared", "shared durable"])
@pytest.mark.parametrize("client_id", ["alice", None])
async def test_rule_136_each_message_goes_to_one_of_those_who_share(
    face: Face, kind: str, client_id: str | None
) -> None:
    """In one session, in several, on several connections where no client id divides them."""
    play = await client(face, client_id)
    sessions = [play.session, play.session, (await play.beside()).session]
    if client_id is None:
        sessions.append((await client(face)).session)
    consumers = [await subscribe(session, kind, prefetch=2) for session in sessions]
    await play.publish(numbered(1, 20))
    got: list[str] = []
    idle = 0
    while len(got) < 20 and idle < 100:
        before = len(got)
        for consumer in consumers:
            message = await consumer.receive_no_wait()
            if message is not None:
                got.append(seen(message))
        idle = idle + 1 if len(got) == before else 0
    assert sorted(got) == sorted(numbered(1, 20).split())
    for consumer in consumers:
        await expect(consumer, "none")


async def test_rule_136_a_message_given_back_goes_to_another_of_them(face: Face) -> None:
    """Rolled back by one, read by the next, marked."""
    play = await client(face, None, "transacted")
    other = await client(face)
    first = await play.subscribe("shared", prefetch=1)
    await play.publish("m1")
    await expect(first, "m1")
    second = await other.subscribe("shared")
    await first.close()
    await play.session.rollback()
    await expect(second, "m1[R2] none")


# --- the same name for something else


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "topic": ({"topic": "news"}, {"topic": "sports"}),
    "selector": ({"selector": "colour = 'red'"}, {"selector": "colour = 'blue'"}),
    "selector dropped": ({"selector": "colour = 'red'"}, {}),
    "no_local": ({}, {"no_local": True}),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_rule_131_another_topic_selector_or_no_local_makes_it_anew(face: Face, change: str) -> None:
    """An unshared durable subscription that nobody reads: what it had collected is gone, and it collects anew."""
    await made_anew(face, "durable", *CHANGES[change])


@pytest.mark.parametrize("change", ["topic", "selector", "selector dropped"])
@pytest.mark.parametrize("client_id", ["alice", None])
async def test_rule_132_another_topic_or_selector_makes_it_anew(face: Face, change: str, client_id: str | None) -> None:
    """A shared durable one."""
    await made_anew(face, "shared durable", *CHANGES[change], client_id=client_id)


async def made_anew(
    face: Face, kind: str, before: dict[str, Any], after: dict[str, Any], client_id: str | None = "alice"
) -> None:
    play, publisher = await client(face, client_id), await client(face)
    await (await play.subscribe(kind, **before)).close()
    for topic in ("news", "sports"):
        await publisher.publish("old", topic, properties={"colour": "red"})
    again = await play.subscribe(kind, **after)
    for colour in ("red", "blue"):
        await publisher.publish(f"new-{colour}", after.get("topic", "news"), properties={"colour": colour})
    await expect(again, "new-blue none" if "selector" in after else "new-red new-blue none")
    await again.close()
    await publisher.publish("kept", after.get("topic", "news"), properties={"colour": "blue"})
    await expect(await play.subscribe(kind, **after), "kept none")


@pytest.mark.parametrize("kind", LASTING)
async def test_rule_131_132_the_same_wishes_keep_it(face: Face, kind: str) -> None:
    """Topic, selector and no_local as before: it goes on, whatever the prefetch is."""
    play = await client(face, "alice")
    wishes: dict[str, Any] = {"selector": "colour = 'red'"}
    if kind == "durable":
        wishes["no_local"] = True
    await (await play.subscribe(kind, **wishes)).close()
    await (await client(face)).publish("m1", properties={"colour": "red"})
    await expect(await play.subscribe(kind, prefetch=0, **wishes), "m1 none")


@pytest.mark.parametrize("kind", ["shared", "shared durable"])
@pytest.mark.parametrize("wish", [{"topic": "sports"}, {"selector": "colour = 'blue'"}, {"selector": None}])
async def test_rule_133_who_shares_wants_the_same(face: Face, kind: str, wish: dict[str, Any]) -> None:
    """Another topic or selector while it is read is refused, on the same connection and on another; nothing is lost."""
    play, other = await client(face), await client(face)
    first = await play.subscribe(kind, selector="colour = 'red'")
    await play.publish("m1", properties={"colour": "red"})
    for one in (play, other):
        assert error(await outcome(one.subscribe(kind, **{"selector": "colour = 'red'", **wish})))
    await expect(first, "m1 none")
    await other.subscribe(kind, selector="colour = 'red'")


@pytest.mark.parametrize(("first", "second"), [("durable", "shared durable"), ("shared durable", "durable")])
@pytest.mark.parametrize("active", [True, False])
async def test_rule_134_shared_or_unshared(face: Face, first: str, second: str, active: bool) -> None:
    """Durable subscriptions of both kinds have one space of names; the later call raises, whoever reads or not."""
    play = await client(face, "alice")
    consumer = await play.subscribe(first)
    if not active:
        await consumer.close()
    assert error(await outcome(play.subscribe(second)))
    await play.publish("m1")
    if active:
        await expect(consumer, "m1")
    else:
        await expect(await play.subscribe(first), "m1 none")


@pytest.mark.parametrize("lasting", LASTING)
async def test_rule_135_volatile_and_durable_of_one_name(face: Face, lasting: str) -> None:
    """Two subscriptions: each gets all, and each ends by itself."""
    play = await client(face, "alice")
    volatile, durable = await play.subscribe("shared"), await play.subscribe(lasting)
    await play.publish("m1")
    await expect(volatile, "m1 none")
    await expect(durable, "m1 none")
    await durable.close()
    await play.session.unsubscribe("s")
    await play.publish("m2")
    await expect(volatile, "m2 none")
    await volatile.close()
    await expect(await play.subscribe(lasting), "none")


# --- no_local


async def test_rule_124_no_local_hides_what_the_same_connection_publishes(face: Face) -> None:
    """Whichever of its sessions does; what others publish comes."""
    play, other = await client(face), await client(face)
    deaf = await play.subscribe(no_local=True)
    hearing = await play.subscribe()
    await play.publish("mine")
    await other.publish("theirs")
    await expect(deaf, "theirs none")
    await expect(hearing, "mine theirs none")
    assert deaf.no_local and not hearing.no_local


async def test_rule_125_a_durable_one_hides_what_its_client_id_publishes(face: Face) -> None:
    """Also what an earlier connection of that client did; and it is not kept for later."""
    play, other = await client(face, "alice"), await client(face, "bob")
    await (await play.subscribe("durable", no_local=True)).close()
    await play.publish("mine")
    await play.close()
    play = await client(face, "alice")
    await play.publish("also-mine")
    await other.publish("theirs")
    await expect(await play.subscribe("durable", no_local=True), "theirs none")


# --- the end


@pytest.mark.parametrize("kind", LASTING)
async def test_rule_137_unsubscribe_with_an_active_consumer(face: Face, kind: str) -> None:
    """It is an error, and the consumer goes on."""
    play = await client(face, "alice")
    consumer = await play.subscribe(kind)
    assert error(await outcome(play.session.unsubscribe("s")))
    await play.publish("m1")
    await expect(consumer, "m1")
    await consumer.close()
    await play.session.unsubscribe("s")


async def test_rule_137_with_a_consumer_on_another_connection(face: Face) -> None:
    """A shared durable subscription without client id may be read by anybody: then the broker refuses."""
    play, other = await client(face), await client(face)
    consumer = await play.subscribe("shared durable")
    assert error(await outcome(other.session.unsubscribe("s")))
    await play.publish("m1")
    await expect(consumer, "m1 none")
    await consumer.close()
    await other.session.unsubscribe("s")


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("mode", ["client", "transacted", "individual"])
async def test_rule_137_with_messages_in_hand(face: Face, kind: str, mode: str) -> None:
    """Not acknowledged, or in the current transaction: an error, until they are settled."""
    play = await client(face, "alice", mode)
    consumer = await play.subscribe(kind)
    await play.publish("m1 m2")
    (message,) = await expect(consumer, "m1")
    await consumer.close()
    assert error(await outcome(play.session.unsubscribe("s")))
    await (play.session.commit() if mode == "transacted" else message.acknowledge())
    await play.session.unsubscribe("s")
    await expect(await play.subscribe(kind), "none")


async def test_rule_138_unsubscribe_what_is_not_there(face: Face) -> None:
    """An unknown name, a name of another client, a volatile one, the same twice."""
    play, other = await client(face, "alice"), await client(face)
    await (await play.subscribe("durable")).close()
    await play.subscribe("shared", name="volatile")
    for one, name in ((play, "unknown"), (other, "s"), (play, "volatile")):
        assert error(await outcome(one.session.unsubscribe(name)), jmsish.InvalidDestinationError), name
    await play.session.unsubscribe("s")
    assert error(await outcome(play.session.unsubscribe("s")), jmsish.InvalidDestinationError)


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("name", ["a", "x" * 128, "Az09_.-", "-.", "..", "käse und brot", "a/b:c#d*%25?"])
async def test_rule_139_names(face: Face, kind: str, name: str) -> None:
    """Up to 128 letters, digits, '_', '.', '-'; and what else a name may be made of."""
    play = await client(face, "alice")
    consumer = await play.subscribe(kind, name=name)
    await play.publish("m1")
    await expect(consumer, "m1 none")
    await consumer.close()
    if kind in LASTING:
        await play.publish("m2")
        await expect(again := await play.subscribe(kind, name=name), "m2 none")
        await again.close()
        await play.session.unsubscribe(name)


@pytest.mark.parametrize("kind", NAMED)
async def test_rule_139_what_is_no_name(face: Face, kind: str) -> None:
    """Empty, with a bar, or no text at all: a wrong argument (M63)."""
    play = await client(face, "alice")
    for name, wrong in (("", ValueError), ("a|b", ValueError), (None, TypeError), (1, TypeError)):
        with pytest.raises(wrong):
            await play.subscribe(kind, name=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
async def test_rule_140_a_selector_is_asked_when_a_message_is_added(face: Face, kind: str) -> None:
    """What it does not select is not in the subscription, so nothing of it waits there."""
    play = await client(face, "alice", "client")
    consumer = await play.subscribe(kind, selector="colour = 'red'", prefetch=0)
    for colour in ("blue", "red", "green"):
        await play.publish(f"m-{colour}", properties={"colour": colour})
    names = {binding.queue for binding in face.broker.exchange("amq.topic").bindings()}
    assert [face.broker.queue(name).depth for name in names] == [1]
    await expect(consumer, "m-red none")


async def test_rule_141_no_durable_subscription_to_a_temporary_topic(face: Face) -> None:
    """It would outlive what it is one to."""
    play = await client(face, "alice")
    topic = await play.session.create_temporary_topic()
    for kind in LASTING:
        assert error(await outcome(play.subscribe(kind, topic)), jmsish.InvalidDestinationError)
    consumer = await play.subscribe("shared", topic)
    await play.publish("m1", topic)
    await expect(consumer, "m1 none")


async def test_subscriptions_are_to_topics(face: Face) -> None:
    """A queue has none; and a name in place of a destination is a wrong argument."""
    play = await client(face, "alice")
    for kind in NAMED:
        queue: Any = play.session.create_queue("q")
        assert error(await outcome(subscribe(play.session, kind, queue)), jmsish.InvalidDestinationError)
        assert error(await outcome(subscribe(play.session, kind, object())), jmsish.InvalidDestinationError)
    with pytest.raises(TypeError):
        await play.session.create_durable_consumer("news", "s")  # type: ignore[arg-type]


async def test_publishing_to_nobody(face: Face) -> None:
    """A topic without subscribers takes what it is given."""
    play = await client(face)
    await publish(play.connection, "nobody.listens", "m1 m2")
    await expect(await play.subscribe(topic="nobody.listens"), "none")
