"""Closes beside each other, in any order of their steps and of what is under way.

A procedure waits between its steps, and meanwhile others take theirs. Who closes may come from anywhere (jms rule 4),
so there may be several closes at once. Each has to end, by itself and without an error.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any

import pytest

from jmsish.client.answers import Answer
from jmsish.client.consumer import ClientConsumer
from jmsish.client.reconnection import Reconnection
from jmsish.destination import Queue
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import Accepted
from jmsish.errors import ConnectionLostError, IllegalStateError, OperationTimeoutError
from jmsish.modes import AcknowledgeMode
from jmsish.options import parse_url

from .rig import Rig, encode

Steps = Generator[tuple["Future[Any]", Any], Any, Any]


class Play:
    """A session with two consumers of a queue, a browser and a producer; a message has been received."""

    def __init__(self, mode: AcknowledgeMode, dice: random.Random) -> None:
        self.dice = dice
        self.rig = rig = Rig()
        rig.send("m1", "m2", "m3", "m4")
        self.core = core = rig.connect()
        self.session = session = rig.session(core, mode)
        self.first = rig.consumer(session, prefetch=dice.choice([0, 1, 10]))
        self.taken = rig.receive(self.first)
        self.second = rig.consumer(session, prefetch=dice.choice([0, 1, 10]))
        self.browser = ClientConsumer(session, Queue("q"), prefetch=dice.choice([1, 10]), browsing=True)
        rig.run(session.add_consumer(self.browser))
        rig.run(self.browser.browse())
        self.producer = rig.producer(session)
        self.temporary = rig.run(core.temporary.create(False))
        self.client, self.server = rig.pairs[-1]

    def between(self, *procedures: Steps) -> list[Any]:
        """Run procedures by the dice; what each returned, or the error it raised."""
        ends: list[Any] = [...] * len(procedures)
        waits: list[Future[Any] | None] = [None] * len(procedures)
        while ... in ends:
            ready = [at for at, end in enumerate(ends) if end is ... and ((f := waits[at]) is None or f.done())]
            moves: list[Callable[[], bool]] = [self.to_broker, self.to_client]
            while ready or moves:
                at = self.dice.randrange(len(ready) + len(moves))
                if at < len(ready):
                    self.step(procedures, ready[at], waits, ends)
                    break
                if moves.pop(at - len(ready))():
                    break
            else:
                waiting = [procedures[at].__qualname__ for at, end in enumerate(ends) if end is ...]
                raise AssertionError(f"waits for what never comes: {waiting}")
        return ends

    def step(self, procedures: tuple[Steps, ...], at: int, waits: list[Future[Any] | None], ends: list[Any]) -> None:
        steps, future = procedures[at], waits[at]
        error = future.exception() if future is not None else None
        try:
            if error is not None:
                waits[at], _ = steps.throw(error)
            else:
                waits[at], _ = steps.send(None if future is None else future.result())
        except StopIteration as stop:
            ends[at] = stop.value
        except Exception as raised:
            ends[at] = raised

    def to_broker(self) -> bool:
        octets = self.client.take_output()
        if octets:
            self.server.receive(octets)
        self.rig.broker.step()
        return bool(octets)

    def to_client(self) -> bool:
        octets = self.server.take_output()
        if octets:
            self.client.receive(octets)
        return bool(octets)

    def left(self) -> list[str]:
        """What the queue has, by somebody else; nothing is acquired by one that has gone."""
        self.rig.run(self.core.close())
        consumer = self.rig.consumer(self.rig.session(self.rig.connect(), AcknowledgeMode.AUTO))
        return list(iter(lambda: self.rig.receive(consumer), None))


CLOSES: dict[str, Callable[[Play], Steps]] = {
    "first": lambda play: play.first.close(),
    "second": lambda play: play.second.close(),
    "browser": lambda play: play.browser.close(),
    "producer": lambda play: play.producer.close(),
    "session": lambda play: play.session.close(),
    "connection": lambda play: play.core.close(),
    "temporary": lambda play: play.core.temporary.delete(play.temporary),
}


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.TRANSACTED])
@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(CLOSES, 2)), ids="-".join)
def test_two_closes_at_once_end_both(pair: tuple[str, str], mode: AcknowledgeMode) -> None:
    for seed in range(6):
        play = Play(mode, random.Random(seed))
        ends = play.between(*(CLOSES[name](play) for name in pair))
        if "connection" in pair and "temporary" in pair and isinstance(ends[1], IllegalStateError):
            ends[1] = None  # the connection was closed before (jms rule 30)
        assert ends == [None, None], f"seed {seed}"
        assert play.left() == ["m1*2", "m2", "m3", "m4"], f"seed {seed}"


@pytest.mark.parametrize("name", ["producer", "session", "connection"])
def test_two_closes_wait_for_the_same_outcome(name: str) -> None:
    """43: of what was sent before; the second that came to wait for it took the place of the first."""
    for seed in range(6):
        play = Play(AcknowledgeMode.AUTO, random.Random(seed))
        sent: Future[Any] = Answer()
        assert play.producer.post(encode("m5"), sent)
        assert play.between(play.producer.close(), CLOSES[name](play)) == [None, None], f"seed {seed}"
        assert isinstance(sent.result(), Accepted)
        assert play.left()[-1] == "m5"


def test_a_send_that_comes_when_the_close_of_its_producer_has_begun_is_refused_as_by_a_closed_one() -> None:
    play = Play(AcknowledgeMode.AUTO, random.Random(1))
    closing = play.producer.close()
    next(closing)
    assert not play.producer.post(encode("m5"), None)
    with pytest.raises(IllegalStateError, match="closed"):
        play.rig.run(play.producer.send(encode("m5"), None))
    closing.close()


def test_a_session_that_was_being_made_when_the_connection_was_lost_ends_with_it() -> None:
    """It would be made with the rest when the connection is back; whoever asked for it is told of the close instead."""
    rig = Rig()
    core = rig.connect()
    core.reconnection = Reconnection(parse_url("failover:(amqp://a)"))
    begun, _ = next(making := core.create_session(AcknowledgeMode.TRANSACTED))
    core.lose(ConnectionLostError("gone", scope="connection"))
    assert core.offline and not begun.done()
    rig.run(core.close())
    with pytest.raises(IllegalStateError, match="closed"):
        making.throw(begun.exception())


@pytest.mark.parametrize("mode", [AcknowledgeMode.CLIENT, AcknowledgeMode.TRANSACTED])
def test_what_was_taken_is_settled_while_its_consumer_closes(mode: AcknowledgeMode) -> None:
    """38: the close is amid its drain, so the link stays until what was not read has gone back, unmarked."""

    def settling(play: Play) -> Steps:
        if mode is AcknowledgeMode.TRANSACTED:
            yield from play.session.commit()
        else:
            play.session.ledger.acknowledge(None)

    for seed in range(20):
        play = Play(mode, random.Random(seed))
        play.rig.run(play.second.close())
        assert play.rig.receive(play.first) == "m2"
        play.first.prefetch = 10
        play.first.replenish()
        play.rig.pump()
        assert play.between(play.first.close(), settling(play)) == [None, None], f"seed {seed}"
        assert play.left() == ["m3", "m4"], f"seed {seed}"


def test_a_session_that_closes_in_an_attempt_that_fails_is_closed() -> None:
    """The broker was late to take back the rest: it was asked anew over another wire, for the closed session too."""
    rig = Rig()
    core = rig.connect()
    core.reconnection = Reconnection(parse_url("failover:(amqp://a)"))
    session = rig.session(core, AcknowledgeMode.AUTO)
    core.lose(ConnectionLostError("gone", scope="connection"))
    attempt = core.reconnect()
    next(attempt)
    core.join(parse_url("amqp://a"), lambda name: Engine(server=False, container_id=name))
    rig.pairs = [(core, rig.broker.accept(trusted=True))]
    begun = next(attempt)[0]
    while begun is not session.begun:
        rig.pump()
        begun = attempt.send(None)[0]
    ended, _ = next(closing := session.close())
    attempt.throw(OperationTimeoutError("late"))
    assert ended.done()
    with pytest.raises(StopIteration):
        closing.send(None)
