"""Freezing exchanges, properties a to d: what a message sees, who waits for whom, who starves, and who goes on."""

from __future__ import annotations

import random
from typing import Any

import pytest

from jmsish.engine.outcomes import RELEASED, Accepted, Target
from jmsish.engine.values import encode_string
from jmsish.errors import FreezeTimeoutError
from tests.broker.frozen import ACCEPTED, TYPES, Play, of, partly
from tests.broker.pubsub import attach, durable, shared_durable, subscriber
from tests.broker.world import message, properties


def disorder(play: Play, senders: list[Any], chance: random.Random, count: int, middle: Any) -> dict[str, int]:
    """Publishers send, octets travel in any order, and ``middle`` is called at a random moment; how many each sent."""
    sent = {f"p{number}": 0 for number in range(len(senders))}
    at = chance.randrange(count)
    for step in range(count):
        if step == at:
            middle()
        number = chance.randrange(len(senders))
        name, sender = f"p{number}", senders[number]
        if sender.link.credit > 0:
            sender.send(f"{name}:{sent[name]}", run=False)
            sent[name] += 1
        if chance.random() < 0.5:
            chance.choice(senders).peer.speak()
        if chance.random() < 0.2:
            play.broker.step()
        if chance.random() < 0.2:
            chance.choice(senders).peer.hear()
    play.run()
    return sent


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("type", TYPES)
def test_a1_no_message_sees_half_of_a_change(type: str, seed: int) -> None:
    play = Play()
    play.exchange(type=type)
    play.queues("q1", "q2")
    play.bind("x", "q1")
    chance = random.Random(seed)
    senders = [play.publisher() for _ in range(3)]
    freeze: list[Any] = []

    def hold() -> None:
        freeze.append(play.held())
        play.swap(freeze[0], "q1", "q2")

    sent = disorder(play, senders, chance, 60, hold)
    play.thaw(freeze[0])
    more = disorder(play, senders, chance, 20, lambda: None)
    first, second = play.bodies("q1"), play.bodies("q2")
    assert len(first) + len(second) == sum(sent.values()) + sum(more.values())
    for number in range(3):
        name = f"p{number}"
        # a3: what went to q1 was sent before what went to q2, and each in its order
        late = list(range(sent[name]))
        assert of(name, first) + of(name, second) == late + list(range(more[name]))
        assert len(of(name, first)) <= sent[name]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("type", "keys"), [("fanout", ("", "", "")), ("topic", ("a.*", "#", "*.b")), ("headers", ("1", "2", "3"))]
)
def test_a2_a_message_meets_the_old_set_of_bindings_or_the_new_one(type: str, keys: tuple[str, ...], seed: int) -> None:
    play = Play()
    play.exchange(type=type)
    old, new = ("q1", "q2", "q3"), ("q4", "q5")
    play.queues(*old, *new)
    for queue, key in zip(old, keys, strict=True):
        play.bind("x", queue, key)
    senders = [play.publisher("x/a.b") for _ in range(3)]
    freeze: list[Any] = []

    def swap() -> None:
        freeze.append(play.held())
        for queue, key in zip(old, keys, strict=True):
            play.stage(freeze[0], queue, key, remove=True)
        for queue, key in zip(new, keys, strict=False):
            play.stage(freeze[0], queue, key)

    sent = disorder(play, senders, random.Random(seed), 60, swap)
    play.thaw(freeze[0])
    assert len({tuple(play.bodies(queue)) for queue in old}) == 1
    assert len({tuple(play.bodies(queue)) for queue in new}) == 1
    together = play.bodies("q1") + play.bodies("q4")
    assert len(together) == len(set(together)) == sum(sent.values())


@pytest.mark.parametrize("type", ["direct", "topic"])
def test_a2b_several_keys_one_change(type: str) -> None:
    play = Play()
    play.exchange(type=type)
    play.queues("q1", "q2")
    keys = [f"k{number}" for number in range(10)]
    for key in keys:
        play.bind("x", "q1", key)
    peer = play.connect()
    senders = [play.publisher(f"x/{key}", peer) for key in keys]
    count = 0
    for turn in range(4):
        if turn == 1:
            freeze = play.held()
        for sender in senders:
            if turn == 1:
                play.swap(freeze, "q1", "q2", keys[senders.index(sender)])
            sender.send(f"p:{count}")
            count += 1
        if turn == 1:
            play.thaw(freeze)
    first, second = of("p", play.bodies("q1")), of("p", play.bodies("q2"))
    assert first == list(range(10)) and second == list(range(10, 40))


def test_a3_order_over_all_links_is_that_of_arrival() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q1", "q2")
    play.bind("x", "q1", "")
    senders = [play.publisher("x") for _ in range(3)]
    for number in range(9):
        senders[number % 3].send(f"m:{number}")
    freeze = play.held()
    play.swap(freeze, "q1", "q2", "")
    for number in range(9, 30):
        senders[number % 3].send(f"m:{number}")
    assert len(play.bodies("q2")) == 0 and play.gate().waiting == 21
    play.thaw(freeze)
    for number in range(30, 39):
        senders[number % 3].send(f"m:{number}")
    assert of("m", play.bodies("q1")) == list(range(9))
    assert of("m", play.bodies("q2")) == list(range(9, 39))


@pytest.mark.parametrize("type", TYPES)
def test_a4_a_block_that_fails_leaves_everything_as_it_was(type: str) -> None:
    play = Play()
    exchange = play.exchange(type=type)
    play.queues("q1", "q2")
    play.bind("x", "q1")
    before, table = play.broker.exchange("x").bindings(), exchange.table
    freeze = play.held()
    play.swap(freeze, "q1", "q2")
    assert [bound.binding.queue for bound in freeze.hold_of("x").changes.table] == ["q2"]
    assert play.broker.exchange("x").bindings() == before
    play.thaw(freeze, commit=False)
    assert play.broker.exchange("x").bindings() == before and exchange.table is table
    assert play.publisher().send("m") == [[ACCEPTED]]
    assert play.bodies("q1") == ["m"] and play.bodies("q2") == []


def test_a5_a_message_in_flight_is_routed_before_or_after_and_never_during() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q1", "q2")
    play.bind("x", "q1", "")
    play.bind("x", "q2", "")
    sender, other = play.publisher("x"), play.publisher("x")
    sender.send("whole", run=False)
    sender.peer.speak()  # its route is one step: match, and into both queues
    sender.send("in part", run=False)
    rest = partly(sender.peer, 10)
    freeze = play.held()
    assert play.bodies("q1") == play.bodies("q2") == ["whole"]
    sender.peer.connection.receive(rest)
    play.run()
    assert play.bodies("q1") == play.bodies("q2") == ["whole"] and play.gate().waiting == 1
    play.thaw(freeze)
    assert play.bodies("q1") == play.bodies("q2") == ["whole", "in part"]
    assert other.send("after") == [[ACCEPTED]]


@pytest.mark.parametrize("type", TYPES)
def test_a6_what_is_remembered_of_a_key_is_not_older_than_the_bindings(type: str) -> None:
    play = Play()
    play.exchange(type=type)
    play.queues("q1", "q2")
    play.bind("x", "q1")
    sender = play.publisher()
    for number in range(3):
        sender.send(f"warm{number}")
    freeze = play.held()
    play.swap(freeze, "q1", "q2")
    assert sender.send("frozen") == [[]]
    play.thaw(freeze)
    assert play.bodies("q1") == ["warm0", "warm1", "warm2"] and play.bodies("q2") == ["frozen"]


# --- readers and writers


def test_b1_readers_do_not_keep_readers_out() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q1", "q2")
    play.bind("x", "q1", "")
    play.bind("x", "q2", "")
    first, second = play.publisher("x"), play.publisher("x")
    first.send("first", run=False)
    rest = partly(first.peer, 10)  # one is under way
    assert second.send("second") == [[ACCEPTED]]  # and the other passes
    assert play.bodies("q1") == play.bodies("q2") == ["second"]
    first.peer.connection.receive(rest)
    play.run()
    assert play.bodies("q2") == ["second", "first"]
    assert not play.gate().closed


def test_b2_a_route_that_comes_back_to_its_exchange_does_not_wait_for_itself() -> None:
    play = Play()
    play.exchange("x", "topic", initial_value=True)
    play.exchange("y", "topic", alternate="x")
    play.queues("q1")
    play.broker.exchange("x").bind_exchange("y", "#")
    play.broker.exchange("y").bind_exchange("x", "#")
    sender = play.publisher()
    first = play.held()
    sender.send("m1")
    second = play.freeze(owner="next")  # a writer waits while the route is under way
    sender.send("m2")
    bound = play.binds("q1", "#")
    play.thaw(first)
    assert second.granted.done() and play.gate().waiting == 2
    play.thaw(second)
    assert bound.result() is True and play.all_open()
    assert play.bodies("q1") == ["m2"]  # as the initial value: it was routed before the binding


@pytest.mark.parametrize("way", ["bound", "alternate"])
def test_b2_a_delivery_parks_whole_at_the_first_frozen_exchange_on_its_way(way: str) -> None:
    """2.2, hole 3: nobody holds one exchange while it waits for another one."""
    play = Play()
    play.exchange("b", "fanout")
    play.exchange("a", "topic", alternate="b" if way == "alternate" else None)
    play.queues("qa", "qb")
    play.bind("b", "qb", "")
    if way == "bound":
        play.bind("a", "qa", "#")
        play.broker.exchange("a").bind_exchange("b", "k")
    sender, other = play.publisher("a/k"), play.publisher("a/other")
    freeze = play.held("b")
    assert sender.send("m1") == [[]]
    assert play.bodies("qa") == play.bodies("qb") == []  # not even where it could go
    assert play.broker.exchange("a").received == play.broker.exchange("b").received == 0
    if way == "bound":
        assert other.send("free") == [[ACCEPTED]]  # its way does not lead there
        assert play.bodies("qa") == ["free"]
    both = play.freeze("a", "b", owner="both")
    assert play.gate("a").closed and not both.granted.done()  # holds a, waits for b, and nobody who holds b for a
    play.thaw(freeze)
    assert both.granted.done()
    play.thaw(both)
    assert play.all_open()
    assert play.bodies("qb") == ["m1"]
    assert play.broker.exchange("b").routed == 1


def test_b2_messages_of_one_link_do_not_overtake_one_that_waits_further_on() -> None:
    play = Play()
    play.exchange("a", "topic")
    play.exchange("b", "fanout")
    play.queues("q")
    play.bind("a", "q", "#")
    play.broker.exchange("a").bind_exchange("b", "long")
    peer = play.connect()
    sender = play.publisher("a", peer)
    freeze = play.held("b")

    def send(body: str, subject: str) -> list[Any]:
        payload = message(body, properties=properties(b"\x40", b"\x40", b"\x40", encode_string(subject)))
        answer = sender.transfer(payload)
        play.run()
        return answer

    answers = [send("m1", "long"), send("m2", "short"), send("m3", "short")]
    assert answers == [[], [], []]
    assert play.publisher("a/short").send("other link") == [[ACCEPTED]]
    third = play.held("a", owner="third")
    play.thaw(freeze)  # m1 may go on, and stands before a, which is frozen by now
    assert answers == [[], [], []] and play.gate("a").waiting == 3
    play.thaw(third)
    assert play.bodies("q") == ["other link", "m1", "m2", "m3"]
    assert answers == [[ACCEPTED]] * 3 and play.all_open()


@pytest.mark.parametrize("seed", range(40))
def test_b2_a_chain_of_exchanges_frozen_here_and_there_loses_doubles_and_reorders_nothing(seed: int) -> None:
    play, chance = Play(), random.Random(seed)
    chain = ("a", "b", "c")
    for name in chain:
        play.exchange(name, "fanout")
        play.queues(f"q{name}")
        play.bind(name, f"q{name}", "")
    play.broker.exchange("a").bind_exchange("b", "")
    play.broker.exchange("b").bind_exchange("c", "")
    play.broker.exchange("c").bind_exchange("a", "")  # a loop: whatever is sent goes everywhere
    peers = [play.connect() for _ in range(2)]
    senders = {f"{name}{who}": play.publisher(name, peer) for who, peer in enumerate(peers) for name in chain}
    sent, answers, holds = dict.fromkeys(senders, 0), [], []
    for number in range(150):
        step = chance.random()
        if step < 0.7:
            line = chance.choice(list(senders))
            answers += senders[line].send(
                f"{line}:{sent[line]}", settled=chance.random() < 0.2, run=chance.random() < 0.5
            )
            sent[line] += 1
        elif step < 0.85:
            holds.append(play.freeze(*chance.sample(chain, chance.choice([1, 1, 2])), owner=number))
        elif holds:
            freeze = holds.pop(chance.randrange(len(holds)))
            if freeze.is_held:
                play.thaw(freeze)
            else:
                play.freezes.cancel(freeze)
        # A message is in all of them or in none.
        assert play.bodies("qa") == play.bodies("qb") == play.bodies("qc")
    for freeze in holds:
        play.freezes.cancel(freeze)
    play.run()
    bodies = play.bodies("qa")
    assert play.all_open() and bodies == play.bodies("qb") == play.bodies("qc")
    for line, count in sent.items():
        assert of(line, bodies) == list(range(count))
    assert len(bodies) == sum(sent.values())


def test_c1_a_steady_flow_starves_no_freeze() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    senders = [play.publisher("x") for _ in range(4)]
    for number in range(20):
        for sender in senders:
            sender.send(f"m{number}", run=False)
            sender.peer.speak()
        freeze = play.held(owner=number, timeout=0)  # at once, whatever is under way
        play.freezes.release(freeze)
    play.run()
    assert play.depth("q") == (80, 0)
    # and behind a freeze it waits for those that came before it, and for nobody else
    first = play.held(owner="first")
    for sender in senders:
        sender.send("before")
    second = play.freeze(owner="second")
    for sender in senders:
        sender.send("after")
    play.thaw(first)
    assert second.granted.done() and play.depth("q") == (84, 0)
    play.thaw(second)
    assert play.depth("q") == (88, 0)


def test_c2_freezes_back_to_back_starve_no_publisher() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    sender = play.publisher("x")
    held = play.held(owner=0)
    answers = []
    for number in range(1, 30):
        (answer,) = sender.send(f"m{number}")
        answers.append(answer)
        following = play.freeze(owner=number)
        play.thaw(held)
        assert answer == [ACCEPTED]  # with the very next thaw, though another freeze follows at once
        assert following.granted.done()
        held = following
    play.thaw(held)
    assert len(answers) == 29 and play.depth("q") == (29, 0)


@pytest.mark.parametrize("how", ["timeout", "cancelled", "lost"])
def test_c3_a_waiting_writer_that_goes_wakes_those_behind_it(how: str) -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    first = play.held(owner="first")
    waiting = play.freeze(owner="second", timeout=1 if how == "timeout" else None)
    (answer,) = play.publisher("x").send("m")
    third = play.freeze(owner="third")
    if how == "timeout":
        play.advance(1)
        with pytest.raises(FreezeTimeoutError, match="'x' stayed frozen by somebody else for 1 s"):
            waiting.granted.result(0)
    elif how == "cancelled":
        play.freezes.cancel(waiting)
    else:
        play.freezes.lost("second")
    assert answer == []
    play.thaw(first)
    assert answer == [ACCEPTED] and third.granted.done()
    play.thaw(third)
    assert play.all_open()


def test_c3_a_waiting_writer_that_goes_while_it_holds_others_gives_them_back() -> None:
    play = Play()
    play.exchange("a", "fanout")
    play.exchange("b", "fanout")
    play.queues("q")
    play.bind("a", "q", "")
    held = play.held("b", owner="first")
    both = play.freeze("b", "a", owner="second", timeout=1)
    (answer,) = play.publisher("a").send("m")
    assert answer == [] and not both.granted.done()
    play.advance(1)
    assert answer == [ACCEPTED] and both.granted.exception() is not None
    play.thaw(held)
    assert play.all_open()


# --- who goes on


def test_d1_consumers_of_bound_queues_notice_nothing() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    peer = play.connect()
    sender = play.publisher("x", peer)
    sender.send("m1", "m2", "m3")
    play.held()
    receiver = peer.receiver("q")
    browser = peer.receiver("q", distribution_mode="copy")
    assert receiver.receive(2) == ["m1", "m2"]
    held = [delivery for delivery in peer.session.incoming.values() if delivery.link is receiver.link]
    assert browser.receive(10) == ["m3"]
    receiver.dispose(held[:1], ACCEPTED)
    receiver.dispose(held[1:], RELEASED)
    assert play.bodies("q") == ["m2", "m3"]


def test_d2_sending_to_a_bound_queue_itself_goes_on() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    freeze = play.held()
    (parked,) = play.publisher("x").send("by the exchange")
    assert play.publisher("q").send("straight") == [[ACCEPTED]]
    assert play.bodies("q") == ["straight"] and parked == []
    play.thaw(freeze)
    assert play.bodies("q") == ["straight", "by the exchange"]


@pytest.mark.parametrize("make", [subscriber, durable, shared_durable])
def test_d3_a_new_subscription_waits_for_the_thaw(make: Any) -> None:
    play = Play()
    play.exchange("news", "topic")
    before = len(play.broker.queues())
    freeze = play.held("news")
    receiver = make(play.connect("c"), topic="news")  # credit comes at once, behind the attach
    assert not receiver.link.remote_attached and len(play.broker.queues()) == before
    assert play.broker.exchange("news").bindings() == []
    play.thaw(freeze)
    assert receiver.link.remote_attached and not receiver.detached
    assert len(play.broker.exchange("news").bindings()) == 1
    play.publisher("news").send("m")
    assert receiver.receive() == ["m"]  # by the credit that came before the answer


@pytest.mark.parametrize("end", ["detach", "session", "connection", "close"])
def test_d3_whoever_waits_no_longer_leaves_no_queue(end: str) -> None:
    play = Play()
    play.exchange("news", "topic")
    before = len(play.broker.queues())
    freeze = play.held("news")
    peer = play.connect("c")
    receiver = durable(peer, topic="news")
    (parked,) = play.publisher("news").send("m")
    if end == "detach":
        receiver.detach()
        assert receiver.detached and receiver.error is None
    elif end == "session":
        peer.session.end()
        play.run()
    elif end == "connection":
        peer.cut()
    else:
        peer.close()
    assert play.gate("news").waiting == 1  # only the message
    play.thaw(freeze)
    assert parked == [ACCEPTED] and len(play.broker.queues()) == before
    assert play.broker.subscriptions() == [] and play.all_open()


def test_d3_a_subscription_that_is_there_is_taken_up_at_once() -> None:
    play = Play()
    play.exchange("news", "topic")
    peer = play.connect("c")
    durable(peer, topic="news").detach(closed=False)
    play.publisher("news").send("m")
    freeze = play.held("news")
    receiver = durable(peer, topic="news")
    assert receiver.receive() == ["m"]  # nothing has to be bound
    play.thaw(freeze)


def test_d3_one_with_other_content_keeps_the_old_until_the_thaw() -> None:
    play = Play()
    play.exchange("news", "topic")
    peer = play.connect("c")
    durable(peer, topic="news/a").detach(closed=False)
    play.publisher("news/a").send("m")
    freeze = play.held("news")
    receiver = durable(peer, topic="news/b")
    (view,) = play.broker.subscriptions()
    assert view.topic == "news/a" and view.depth == 1 and not receiver.link.remote_attached
    play.thaw(freeze)
    (view,) = play.broker.subscriptions()
    assert view.topic == "news/b" and view.depth == 0 and receiver.link.remote_attached


def test_d3_subscriptions_that_wait_keep_their_place_among_the_messages() -> None:
    play = Play()
    play.exchange("news", "fanout")
    freeze = play.held("news")
    sender = play.publisher("news")
    sender.send("before")
    receiver = subscriber(play.connect("c"), topic="news")
    sender.send("after")
    play.thaw(freeze)
    assert receiver.receive() == ["after"]


@pytest.mark.parametrize("end", ["detach", "session", "connection", "queue", "unsubscribed"])
def test_d4_a_subscriber_that_goes_is_gone_at_once(end: str) -> None:
    play = Play()
    play.exchange("news", "topic")
    play.queues("q")
    play.bind("news", "q", "#")
    peer = play.connect("c")
    receiver = durable(peer, topic="news") if end == "unsubscribed" else subscriber(peer, topic="news")
    (view,) = play.broker.subscriptions()
    queue = play.broker.router.queues[view.queue]
    freeze = play.held("news")
    (parked,) = play.publisher("news").send("m")
    if end == "session":
        peer.session.end()
        play.run()
    elif end == "connection":
        peer.cut()
    elif end == "queue":
        play.broker.delete_queue(view.queue)
        play.run()
    else:
        receiver.detach()
        assert receiver.detached
    assert queue.deleted and play.broker.subscriptions() == []
    assert (view.queue, "#") in play.bound("news")  # only the holder writes
    assert freeze.hold_of("news").changes.table.size == 1  # who sees it gone already
    play.thaw(freeze)
    assert play.bound("news") == [("q", "#")]
    assert parked == [ACCEPTED] and play.bodies("q") == ["m"] and queue.enqueued == 0


def test_d4_a_queue_of_the_same_name_made_meanwhile_is_another_one() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    freeze = play.held()
    play.broker.delete_queue("q")
    play.queues("q")
    play.stage(freeze, "q", "")
    play.publisher("x").send("m")
    play.thaw(freeze)
    assert play.bound() == [("q", "")] and play.bodies("q") == ["m"]


def test_d4_what_went_is_gone_after_a_block_that_failed_too() -> None:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q", "r")
    play.bind("x", "q", "")
    freeze = play.held()
    play.stage(freeze, "r", "")
    play.broker.delete_queue("q")
    play.thaw(freeze, commit=False)
    assert play.bound() == []


def test_a_target_address_may_be_attached_to_a_frozen_exchange_by_a_sender() -> None:
    """Only who binds waits: a publisher may attach, and has its credit."""
    play = Play()
    play.exchange(type="fanout")
    play.held()
    sender = play.connect().sender(target=Target(address="x"))
    assert sender.link.remote_attached and sender.link.credit == 1000
    assert attach(play.connect(), address="q").link.remote_attached


def test_accepted_is_what_a_parked_message_is_told() -> None:
    play = Play()
    play.exchange(type="fanout")
    freeze = play.held()
    (answer,) = play.publisher("x").send("m")
    play.thaw(freeze)
    assert [type(state) for state in answer] == [Accepted]
