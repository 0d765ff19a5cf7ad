"""Lines that are longer than what is called in one step, at exchanges that lead to one another."""

from __future__ import annotations

import random

import pytest

from jmsish import InvalidDestinationError
from jmsish.broker import attach, freezes
from jmsish.engine.values import encode_string
from tests.broker.frozen import ACCEPTED, Play
from tests.broker.pubsub import subscriber
from tests.broker.world import message, properties


def about(subject: str) -> bytes:
    return properties(b"\x40", b"\x40", b"\x40", encode_string(subject))


def test_long_lines_at_two_exchanges_of_one_way_come_to_an_end() -> None:
    play = Play()
    for name in ("a", "b"):
        play.exchange(name, "fanout")
    play.queues("q")
    play.bind("b", "q", "")
    play.broker.exchange("a").bind_exchange("b", "")
    senders = [play.publisher("a") for _ in range(5)]
    freeze = play.held("a", "b")
    for number in range(1000):
        for sender in senders:
            sender.transfer(message(f"m{number}"))
    play.run()
    play.freezes.release(freeze)
    for _ in range(10):
        play.broker.step()
    assert play.all_open() and play.depth("q") == (5000, 0)


@pytest.mark.parametrize("at_a_time", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_lines_called_a_few_at_a_time_lose_double_and_reorder_nothing(
    seed: int, at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezes, "AT_A_TIME", at_a_time)
    play, chance = Play(), random.Random(seed)
    chain = ("a", "b", "c")
    for name in chain:
        play.exchange(name, "fanout")
        play.queues(f"q{name}")
        play.bind(name, f"q{name}", "")
    for name, following in zip(chain, "bca", strict=True):  # a loop: whatever is sent goes everywhere
        play.broker.exchange(name).bind_exchange(following, "")
    senders = {name: play.publisher(name) for name in chain}
    sent, answers = dict.fromkeys(chain, 0), []
    for round in range(10):
        held = play.freeze(*chance.sample(chain, 3), owner=round, timeout=0)
        for _ in range(12):
            name = chance.choice(chain)
            answers += senders[name].send(f"{name}:{sent[name]}", settled=chance.random() < 0.2)
            sent[name] += 1
        if held.is_held:
            play.freezes.release(held)
        for _ in range(chance.randrange(20)):
            play.broker.step()
    for _ in range(1000):
        play.broker.step()
    play.run()
    assert play.all_open() and play.bodies("qa") == play.bodies("qb") == play.bodies("qc")
    for name, count in sent.items():
        numbers = [int(body.partition(":")[2]) for body in play.bodies("qa") if body.startswith(name)]
        assert numbers == list(range(count))


def test_f1_credit_that_is_given_beside_what_waits_is_less_by_that() -> None:
    play = Play()
    for name, type in (("x", "direct"), ("y", "fanout")):
        play.exchange(name, type)
    play.queues("q")
    play.bind("x", "q", "free")
    play.broker.exchange("x").bind_exchange("y", "held")
    play.bind("y", "q", "")
    sender = play.publisher("x")
    freeze = play.held("y")
    for number in range(1000):  # all of them in one piece: the first 600 are routed, and then there is credit to give
        sender.transfer(message("m", properties=about("free" if number < 600 else "held")))
    play.run()
    assert play.depth("q") == (600, 0) and play.gate("y").waiting == 400
    while sender.link.credit:
        sender.transfer(message("m", properties=about("held")))
    play.run()
    assert play.gate("y").waiting == 1000
    play.thaw(freeze)
    assert sender.link.credit > 500 and play.all_open()


def test_d3_an_attach_that_meets_a_fault_at_the_thaw_ends_and_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play()
    play.exchange("news", "topic")
    play.queues("q")
    play.bind("news", "q", "#")
    freeze = play.held("news")
    receiver = subscriber(play.connect("c"))
    (answers,) = play.publisher("news").send("m")

    def fault(*_: object, **__: object) -> None:
        raise RuntimeError("no fault of the one who freezes")

    with monkeypatch.context() as patch:
        patch.setattr(attach, "_subscribe", fault)
        play.thaw(freeze)
    assert receiver.detached and play.bodies("q") == ["m"] and answers == [ACCEPTED] and play.all_open()


def test_h2_an_exchange_that_its_holder_deleted_is_said_to_be_gone() -> None:
    play = Play()
    play.exchange("x")
    play.exchange("y")
    freeze = play.held("x", "y")
    play.broker.delete_exchange("x")
    with pytest.raises(InvalidDestinationError, match="'x' was deleted meanwhile"):
        freeze.hold_of("x")
    with pytest.raises(ValueError, match="'z' is not among"):
        freeze.hold_of("z")
    play.thaw(freeze)
    assert play.all_open()
