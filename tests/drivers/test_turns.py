"""Turns: who brings much is worked off in slices, others between them; who takes no answers is asked no more."""

from __future__ import annotations

from itertools import count, pairwise

import pytest

from jmsish.drivers import serving, turns
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.turns import SMALL, Share

from .toy import FULL, ToyBroker, ToyConnection


class Sink:
    """An outlet whose peer takes what a test says."""

    def __init__(self) -> None:
        self.delivered = 0
        self.consumed = 0
        self.held = False
        self.octets = b""
        self.ended = False
        self.resumed = 0
        self.woken: list[int] = []

    def deliver(self, data: bytes) -> None:
        self.delivered += len(data)
        self.octets += data

    def end(self) -> None:
        self.ended = True

    def wake(self) -> None:
        self.woken.append(self.delivered)

    def resume(self) -> None:
        self.resumed += 1


@pytest.fixture
def driver() -> BrokerDriver:
    return BrokerDriver(ToyBroker(lambda: 0.0), name="toy", clock=lambda: 0.0)


def lane(driver: BrokerDriver) -> tuple[object, Sink]:
    sink = Sink()
    return driver.open(sink, trusted=False, resume=sink.resume), sink


# The share of one.


def worked(share: Share) -> list[int]:
    sizes: list[int] = []
    while share.rest:
        share.work(lambda part: sizes.append(len(part)))
    return sizes


def test_slices_by_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice is 0.1 ms of work: at 0.05 microseconds an octet, two thousand octets."""
    now = [0.0]

    def clock() -> float:
        now[0] += 0.0001
        return now[0]

    monkeypatch.setattr(turns, "thread_time", clock)
    share = Share(lambda: None)
    share.pace = 5e-8
    share.put(bytes(5000))
    assert worked(share) == [2000, 2000, 1000]
    assert share.pace == pytest.approx((5e-8 + 1e-7) / 2)


def test_what_is_cheap_comes_in_large_slices_and_what_is_dear_in_small_ones() -> None:
    share = Share(lambda: None)
    share.learn(100_000, 0.0)
    share.learn(100_000, 0.0)
    assert share.pace < 1e-7
    for _ in range(40):
        share.learn(1, 10.0)
    share.put(bytes(1000))
    assert worked(share)[:3] == [128, 128, 128]
    for _ in range(80):
        share.learn(1000, 0.0)
    share.put(bytes(1 << 18))
    assert worked(share) == [1 << 18]


def test_the_octets_are_the_same_in_the_same_order() -> None:
    share = Share(lambda: None)
    share.pace = 1e-6
    chunks = [bytes([number]) * (500 + 700 * number) for number in range(6)]
    for chunk in chunks:
        share.put(chunk)
    got: list[bytes] = []
    while share.rest:
        share.work(got.append)
        share.pace = 1e-6
    assert b"".join(got) == b"".join(chunks)


# In the driver.


def test_others_come_between_two_slices(driver: BrokerDriver) -> None:
    """A flood of one read, and a word of somebody else that comes after it: the word is answered first."""
    (flood, flooded), (other, answered) = lane(driver), lane(driver)
    driver.bring(flood, b"echo x\n" * 100_000)
    driver.pump()
    assert flood.share.rest and driver._left
    before = len(flooded.octets)
    driver.feed(other, b"echo polite\n")
    assert answered.octets.endswith(b"polite\n")
    assert len(flooded.octets) == before
    assert flooded.resumed == 0
    while driver.work_off() is not None:
        pass
    assert flooded.octets.count(b"x\n") == 100_000 and flooded.resumed >= 1 and not flood.share.rest


def test_a_round_ends_when_somebody_else_brings_something(driver: BrokerDriver) -> None:
    (flood, flooded) = lane(driver)
    driver.pressing = lambda: True
    driver.bring(flood, b"echo x\n" * 50_000)
    rounds = 0
    while driver.work_off() is not None:
        rounds += 1
    assert rounds > 3 and flooded.octets.count(b"x\n") == 50_000


def test_who_takes_its_output_while_a_rest_is_worked_off_gets_what_was_held_back(driver: BrokerDriver) -> None:
    """The answers to what was left are more than is held for one; their reader takes them as soon as it is woken."""

    class Reader(Sink):
        def wake(self) -> None:
            self.consumed = self.delivered
            if self.held:
                driver.bring(each, None)

    sink = Reader()
    each = driver.open(sink, trusted=False, resume=sink.resume)
    driver.pressing = lambda: True
    driver.bring(each, b"echo x\n" * 20_000 + b"flood 3000 1000\n")
    while driver.work_off() is not None:
        pass
    assert sink.octets.count(b"x\n") >= 20_000 and sink.octets.endswith(b"00002999" + b"x" * 991 + b"\n")
    assert not sink.held and not driver._inbox


@pytest.fixture
def a_step_takes_longer_than_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    now = count()
    monkeypatch.setattr(serving, "monotonic", lambda: float(next(now)))


def test_who_is_given_much_does_not_keep_the_answers_of_others(
    driver: BrokerDriver, a_step_takes_longer_than_a_slice: None
) -> None:
    """Two megabytes for one, in portions, and an answer for another: it goes out with the first portion."""
    (greedy, gets), (other, answered) = lane(driver), lane(driver)
    driver.bring(greedy, b"flood 2000 1000\n")
    driver.bring(other, b"echo polite\n")
    while driver.work_off() is not None:
        pass
    assert gets.octets.count(b"x\n") > 1000
    portions = [after - before for before, after in pairwise([0, *gets.woken])]
    assert len(portions) > 1 and max(portions) < 3 * FULL
    assert answered.octets == b"hello\npolite\n" and len(answered.woken) == 2


def test_who_does_not_look_for_others_gives_out_all_there_is(
    driver: BrokerDriver, a_step_takes_longer_than_a_slice: None
) -> None:
    """A thread that brought something itself does not come back, so nothing is left for later."""
    (greedy, gets) = lane(driver)
    driver.feed(greedy, b"flood 2000 500\n")
    assert gets.octets.count(b"x\n") == 2000 and driver.work_off() is None


def test_several_floods_take_turns(driver: BrokerDriver) -> None:
    both = [lane(driver) for _ in range(2)]
    for each, _ in both:
        driver.bring(each, b"echo x\n" * 50_000)
    driver.pressing = lambda: True
    for _ in range(6):
        driver.work_off()
    assert all(each.share.rest for each, _ in both)
    counts = [sink.octets.count(b"x\n") for _, sink in both]
    assert min(counts) > 0 and driver.work_off() == 0.0


def test_several_who_bring_much_at_once_come_one_after_the_other(driver: BrokerDriver) -> None:
    """A round works off a slice of the first of them; whoever brings a word meanwhile waits for no more than that."""
    lots = [lane(driver) for _ in range(20)]
    for each, _ in lots:
        driver.bring(each, b"echo x\n" * 50_000)
    driver.pump()
    assert [bool(sink.octets.count(b"x\n")) for _, sink in lots] == [True] + [False] * 19
    driver.pressing = lambda: True
    for _ in range(20):
        driver.work_off()
    assert all(sink.octets.count(b"x\n") for _, sink in lots)


def test_small_ones_are_worked_off_at_once(driver: BrokerDriver) -> None:
    (each, sink) = lane(driver)
    driver.feed(each, b"echo x\n" * (SMALL // 7))
    assert not each.share.rest and sink.octets.count(b"x\n") == SMALL // 7


def test_what_is_brought_behind_a_rest_waits_for_it(driver: BrokerDriver) -> None:
    (each, sink) = lane(driver)
    driver.feed(each, b"echo x\n" * 50_000)
    driver.feed(each, b"echo last\n")
    assert not sink.octets.endswith(b"last\n")
    while driver.work_off() is not None:
        pass
    assert sink.octets.endswith(b"last\n")


def test_the_end_comes_behind_the_rest(driver: BrokerDriver) -> None:
    (each, sink) = lane(driver)
    driver.feed(each, b"echo x\n" * 50_000)
    driver.feed(each, b"")
    connection = each.connection
    assert not connection.eof and not sink.ended
    while driver.work_off() is not None:
        pass
    assert connection.eof and sink.ended and sink.octets.count(b"x\n") == 50_000


def test_who_takes_no_answers_is_asked_no_more_until_it_does(driver: BrokerDriver) -> None:
    (each, sink) = lane(driver)
    sink.held, sink.delivered, each.connection.unsent = True, 2 << 20, 1 << 20
    driver.feed(each, b"echo a\n")
    driver.feed(each, b"echo b\n")
    assert each.connection.received == 0 and driver.work_off() is None
    sink.consumed, each.connection.unsent = sink.delivered, 0
    driver.feed(each, None)
    while driver.work_off() is not None:
        pass
    assert sink.octets.endswith(b"a\nb\n") and sink.resumed >= 1


def test_who_takes_no_answers_may_leave(driver: BrokerDriver) -> None:
    """What it had brought is worked off then, for there may be messages in it."""
    (each, sink) = lane(driver)
    connection = each.connection
    sink.held, sink.delivered, connection.unsent = True, 2 << 20, 1 << 20
    driver.feed(each, b"echo a\n")
    driver.feed(each, b"")
    while driver.work_off() is not None:
        pass
    assert connection.received == 7 and connection.eof and each.gone


@pytest.mark.parametrize("size", [1, 50_000])
def test_what_comes_behind_a_long_piece_of_work_waits_for_it(driver: BrokerDriver, size: int) -> None:
    """The broker is at something that this connection asked for: what it brings is not even looked at."""
    (each, sink) = lane(driver)
    connection = each.connection
    connection.is_busy = True
    driver.feed(each, b"echo x\n" * size)
    driver.feed(each, b"echo last\n")
    driver.feed(each, b"")
    assert driver.work_off() is None
    assert connection.received == 0 and not connection.eof and not each.over
    connection.is_busy = False
    driver.call(lambda: None)
    while driver.work_off() is not None:
        pass
    assert sink.octets.endswith(b"x\nlast\n") and connection.eof and each.gone


def test_who_has_gone_is_not_waited_for(driver: BrokerDriver) -> None:
    (each, _) = lane(driver)
    each.connection.is_busy = True
    driver.feed(each, b"echo x\n")
    each.connection.close()
    driver.call(lambda: None)
    while driver.work_off() is not None:
        pass
    assert each.gone


def test_a_connection_that_fails_leaves_no_rest(driver: BrokerDriver) -> None:
    (each, sink) = lane(driver)
    share = each.share
    driver.feed(each, b"fault\n" + b"echo x\n" * 50_000)
    while driver.work_off() is not None:
        pass
    assert each.gone and sink.ended and not share.rest


def test_inside_the_process_everything_is_worked_off_at_once(driver: BrokerDriver) -> None:
    pipe = driver.connect("vm://toy")
    pipe.recv_nowait()
    pipe.send(b"echo x\n" * 50_000)
    assert (pipe.recv_nowait() or b"").count(b"x\n") == 50_000


def test_another_thread_that_leaves_something_wakes_who_works_it_off(driver: BrokerDriver) -> None:
    woken: list[int] = []
    driver.on_left = lambda: woken.append(1)
    (each, _) = lane(driver)
    driver.bring(each, b"echo x\n" * 50_000)
    driver.call(lambda: None)
    assert woken and each.share.rest


def test_whoever_looked_while_the_first_slice_was_worked_off_is_told(driver: BrokerDriver) -> None:
    """The I/O thread sees a rest and stops reading; the first slice of another thread takes all of it."""
    (each, sink) = lane(driver)
    driver.feed(each, b"echo x\n" * (SMALL // 7 + 10))
    while driver.work_off() is not None:
        pass
    assert not each.share.rest and sink.resumed >= 1


def test_who_is_told_something_for_the_sake_of_another_is_asked_for_its_time(
    driver: BrokerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that another one closes waits for an answer, and has to hear when that is too late."""
    (first, _), (other, told) = lane(driver), lane(driver)
    driver.feed(other, b"name other\n")
    asked: list[object] = []
    monkeypatch.setattr(ToyConnection, "tick", lambda connection, now: asked.append(connection))
    driver.feed(first, b"say other bye\n")
    assert told.octets.endswith(b"bye\n")
    assert asked == [first.connection, other.connection]
