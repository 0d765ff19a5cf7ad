"""Freezes where a thread is amid something else: in a signal, or inside the broker itself. Nothing waits for itself."""

from __future__ import annotations

import threading
import time

import pytest

import jmsish
from jmsish import InvalidDestinationError
from tests.broker.frozen import Play


def test_what_is_asked_from_inside_the_broker_is_refused_at_once() -> None:
    told: list[BaseException] = []
    asking = threading.Event()

    def clock() -> float:
        if asking.is_set():
            asking.clear()
            try:
                broker.exchange("amq.topic")
            except jmsish.IllegalStateError as error:
                told.append(error)
        return time.time()

    with jmsish.EmbeddedBroker(clock=clock) as broker:
        asking.set()
        broker.declare_queue("q")
        assert [type(error) for error in told] == [jmsish.IllegalStateError]
        assert broker.exchange("amq.topic").bind("q", "k")


def test_a_freeze_behind_one_that_its_own_holder_waits_for_is_refused() -> None:
    play = Play()
    play.exchange()
    held = play.held(owner="other")
    waiting = play.freeze(owner="me")
    with pytest.raises(jmsish.FreezeReentryError):
        play.freeze(owner="me")  # as a signal would do it, amid the wait for the first
    play.thaw(held)
    assert waiting.is_held
    play.thaw(waiting)
    assert play.all_open()


@pytest.mark.parametrize("outer", [False, True])
def test_g1_a_queue_that_goes_fails_only_the_block_that_was_to_bind_it(outer: bool) -> None:
    play = Play()
    play.exchange()
    play.queues("q", "r")
    play.bind("x", "q")
    freeze = play.held()
    if outer:
        play.stage(freeze, "r")
    inner = play.held()
    play.stage(inner, "r", "other")
    play.broker.delete_queue("r")
    play.freezes.release(inner, commit=False)
    play.stage(freeze, "q", "late")
    if outer:
        with pytest.raises(InvalidDestinationError, match="the queue r was deleted meanwhile"):
            play.thaw(freeze)
    else:
        play.thaw(freeze)
    assert play.bound() == ([("q", "k")] if outer else [("q", "k"), ("q", "late")]) and play.all_open()
