"""What went wrong with locks elsewhere (exchanges-and-policy 5.4), and does not here."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.errors import FreezeReentryError, FreezeTimeoutError, IllegalStateError
from tests.broker.frozen import ACCEPTED, Play
from tests.broker.pubsub import subscriber


def fanout() -> Play:
    play = Play()
    play.exchange(type="fanout")
    play.queues("q")
    play.bind("x", "q", "")
    return play


def test_report_36_a_route_whose_delivery_unbinds_does_not_wait_for_itself() -> None:
    """QPID-4672: under the read lock something asked for the write lock. Here a full queue makes a subscriber go."""
    play = fanout()
    freeze = play.held()
    peer = play.connect()
    sender = play.publisher("x", peer)
    sender.send("m")
    receiver = subscriber(peer, topic="x", credit=0)  # waits behind the message, and binds
    receiver.detach()
    play.broker.delete_queue("q")  # unbinds while the exchange is held
    play.thaw(freeze)
    assert play.bound() == [] and play.all_open()


def test_report_37_who_looks_at_the_bindings_sees_them_before_or_after() -> None:
    """QPID-1963, QPID-1971: queries walked a structure that was being changed."""
    play = fanout()
    for number in range(100):
        play.queues(f"q{number}")
    freeze = play.held()
    walk = iter(play.broker.router.exchanges.named("x").table)
    next(walk)
    for number in range(100):
        play.stage(freeze, f"q{number}", "")
    play.thaw(freeze)
    assert list(walk) == [] and len(play.bound()) == 101


def test_report_38_changes_of_different_exchanges_do_not_wait_for_each_other() -> None:
    """RabbitMQ 1900: bind and unbind locked both ends, and so each other."""
    play = fanout()
    play.exchange("y", "fanout")
    play.held()
    assert play.binds("q", "", exchange="y").result(0) is True


def test_report_39_a_queue_with_thousands_of_bindings_goes_in_one_step() -> None:
    """RabbitMQ 12926: deleting it stopped publishing for tens of seconds."""
    play = Play()
    exchange = play.exchange(type="topic")
    play.queues("q", "r")
    play.broker.exchange("x").rebind(add=[("q", f"k{number}.*") for number in range(3000)])
    play.bind("x", "r", "#")
    freeze = play.held()
    table = exchange.table
    play.broker.delete_queue("q")
    assert exchange.table is table
    play.thaw(freeze)
    assert play.bound() == [("r", "#")]


def test_report_40_subscribers_that_come_together_do_not_deadlock() -> None:
    """andes 711: the binding lock was held over calls to others."""
    play = Play()
    for name in ("x", "y"):
        play.exchange(name, "topic")
    both = play.held("x", "y")
    peers = [play.connect() for _ in range(4)]
    receivers = [subscriber(peer, topic=name) for peer in peers for name in ("x", "y", "x")]
    assert not any(receiver.link.remote_attached for receiver in receivers)
    play.thaw(both)
    assert all(receiver.link.remote_attached for receiver in receivers)


def test_report_41_42_a_holder_looks_and_freezes_again_while_a_writer_waits() -> None:
    """fasteners 86 and 4, minemeld 295: write, then read, with another writer waiting, hung."""
    play = fanout()
    outer = play.held()
    waiting = play.freeze(owner="other")
    inner = play.held()  # let through, though another one came before
    assert [bound.binding.queue for bound in inner.hold_of("x").changes.table] == ["q"]
    assert [binding.queue for binding in play.broker.exchange("x").bindings()] == ["q"]
    play.thaw(inner)
    assert not waiting.granted.done()
    play.thaw(outer)
    assert waiting.granted.done()


def test_report_43_a_holder_that_writes_beside_its_freeze_is_told() -> None:
    """Waggle-mcp 67: read, then write in one thread hung silently."""
    play = fanout()
    play.held()
    with pytest.raises(FreezeReentryError):
        play.binds("q", "", owner="holder")


def test_report_44_new_readers_wait_behind_a_writer_that_waits() -> None:
    """crewAI 4541, configcat 11: steady readers starved the writer."""
    play = fanout()
    first = play.held()
    sender = play.publisher("x")
    answers = [sender.send(f"m{number}")[0] for number in range(3)]
    second = play.freeze(owner="second")
    answers += [sender.send(f"n{number}")[0] for number in range(3)]
    play.thaw(first)
    assert second.granted.done() and answers == [[ACCEPTED]] * 3 + [[]] * 3


@pytest.mark.parametrize("gone", [(0,), (1,), (0, 1), (0, 1, 2)])
def test_report_45_46_47_waiters_that_go_in_any_order_leave_nothing_behind(gone: tuple[int, ...]) -> None:
    """sglang 39984, aiorwlock 170, cpython 1031, anyio 1145: a cancelled waiter kept the lock, or swallowed a call."""
    play = fanout()
    first = play.held()
    waiting = [play.freeze(owner=number) for number in range(3)]
    (answer,) = play.publisher("x").send("m")
    bound = play.binds("q", "")
    for number in gone:
        play.freezes.cancel(waiting[number])
        with pytest.raises(IllegalStateError, match="cancelled"):
            waiting[number].granted.result(0)
        play.freezes.cancel(waiting[number])  # twice is once
    play.thaw(first)
    for number, freeze in enumerate(waiting):
        if number not in gone:
            assert freeze.granted.result(0) is None
            play.thaw(freeze)
    assert answer == [ACCEPTED] and bound.result(0) is False and play.all_open()


def test_report_46_a_waiter_cancelled_as_it_is_granted_gives_back() -> None:
    play = fanout()
    first = play.held()
    second = play.freeze(owner="second")
    play.freezes.release(first)
    assert second.granted.done()  # and nobody there to take it
    play.freezes.cancel(second)
    assert play.all_open()


@pytest.mark.parametrize("timeout", [0, 1])
def test_report_47_changes_that_ran_out_of_time_are_not_done_later(timeout: float) -> None:
    play = fanout()
    play.queues("r")
    first = play.held()
    bound: Any = play.binds("r", "", timeout=timeout)
    behind = play.binds("q", "")
    play.let_time_pass(1)
    with pytest.raises(FreezeTimeoutError):
        bound.result(0)
    play.thaw(first)
    assert play.bound() == [("q", "")] and behind.result(0) is False
