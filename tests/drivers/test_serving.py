"""The broker's driver: combining, nothing left lying, time, faults, slow readers, the end."""

from __future__ import annotations

import gc
import logging
import random
import sys
import threading
import weakref
from collections.abc import Callable
from itertools import count
from time import time
from types import FrameType

import pytest

from jmsish.drivers import alarm, serving
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.transport import HIGH_WATER, PipeEnd
from jmsish.errors import ConnectionLostError
from jmsish.testing import VirtualClock

from .calls import Threads, begin
from .conftest import PATIENCE, Lines
from .toy import FULL, ToyBroker


def make(clock=time) -> tuple[BrokerDriver, ToyBroker]:
    broker = ToyBroker(clock)
    return BrokerDriver(broker, name="toy", clock=clock), broker


def connect(driver: BrokerDriver, name: str = "") -> PipeEnd:
    end = driver.connect("vm://toy")
    assert end.recv(PATIENCE) == b"hello\n"
    if name:
        end.send(b"name %s\n" % name.encode())
    return end


# Who sends, serves.


def test_the_answer_is_there_when_send_returns() -> None:
    driver, _ = make()
    threads = Threads()
    end = connect(driver)
    end.send(b"echo one\necho ")
    end.send(b"two\n")
    assert end.recv_nowait() == b"one\ntwo\n"
    assert end.recv_nowait() is None
    assert not threads.new()
    driver.stop()


def test_who_holds_the_broker_serves_those_who_came_meanwhile() -> None:
    """A sender that finds the broker taken returns at once; the holder does its work before it leaves."""
    driver, broker = make()
    end = connect(driver)
    inside, leave = threading.Event(), threading.Event()
    holder = threading.Thread(target=driver.call, args=(lambda: (inside.set(), leave.wait(PATIENCE)),))
    holder.start()
    assert inside.wait(PATIENCE)
    end.send(b"echo meanwhile\n")
    assert end.recv_nowait() is None
    leave.set()
    holder.join(PATIENCE)
    assert end.recv_nowait() == b"meanwhile\n"
    driver.stop()


def test_a_reader_that_waits_is_woken_by_another_connection() -> None:
    driver, _ = make()
    waiting, other = connect(driver, "waiting"), connect(driver)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(waiting.recv(PATIENCE)))
    reader.start()
    other.send(b"say waiting good morning\n")
    reader.join(PATIENCE)
    assert got == [b"good morning\n"]
    driver.stop()


@pytest.mark.parametrize("seed", range(3))
def test_stress_every_octet_is_accounted_for(seed: int) -> None:
    """Eight threads send to each other and to themselves; all that was sent arrives, in order from each sender."""
    driver, broker = make()
    names = [f"t{number}" for number in range(8)]
    ends = {name: connect(driver, name) for name in names}
    rounds, failures = 150, []

    def life(me: str) -> None:
        try:
            chance, lines, seen = random.Random(f"{seed}{me}"), Lines(ends[me]), dict.fromkeys(names, -1)
            sent = received = 0
            while sent < rounds or received < rounds * len(names):
                if sent < rounds:
                    letters = b"".join(b"say %s %s %d\n" % (to.encode(), me.encode(), sent) for to in names)
                    cut = chance.randrange(len(letters))
                    ends[me].send(letters[:cut])
                    ends[me].send(letters[cut:])
                    sent += 1
                while received < rounds * len(names) and (sent == rounds or chance.random() < 0.8):
                    sender, _, number = lines.next().partition(b" ")
                    assert int(number) == seen[sender.decode()] + 1
                    seen[sender.decode()] += 1
                    received += 1
            assert set(seen.values()) == {rounds - 1}
        except BaseException as failure:
            failures.append((me, failure))
            raise

    threads = [threading.Thread(target=life, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert broker.lost == 0 and not driver._inbox
    driver.stop()


def test_stress_strict_ping_pong_loses_no_wake_up() -> None:
    """Each side sleeps for the other's answer, thousands of times: one lost wake-up would end it."""
    driver, _ = make()
    left, right = connect(driver, "left"), connect(driver, "right")

    def play(end: PipeEnd, other: bytes, serves: bool) -> None:
        lines = Lines(end)
        if serves:
            end.send(b"say %s 0\n" % other)
        while (number := int(lines.next())) < 3000:
            end.send(b"say %s %d\n" % (other, number + 1))
        end.send(b"say %s %d\n" % (other, number + 1))

    partner = threading.Thread(target=play, args=(right, b"left", False))
    partner.start()
    play(left, b"right", True)
    partner.join(PATIENCE)
    assert not partner.is_alive()
    driver.stop()


def test_a_busy_crowd_does_not_keep_one_sender_for_ever() -> None:
    """Readers that answer at once, in the sender's own thread, would hold it in its send without a limit."""
    driver, _ = make()
    one, two = connect(driver, "one"), connect(driver, "two")
    threads: set[str] = set()
    done = threading.Event()

    def again(end: PipeEnd, to: bytes) -> None:
        threads.add(threading.current_thread().name)
        data = end.recv_nowait()
        if data and int(data) < 200:
            driver.bring(lanes[to], b"say %s %d\n" % (to, int(data) + 1))
        elif data:
            done.set()

    lanes = {connection.name.encode(): lane for connection, lane in driver._lanes.items()}
    one.set_reader(lambda: again(one, b"two"))
    two.set_reader(lambda: again(two, b"one"))
    one.send(b"say two 0\n")
    assert done.wait(PATIENCE)
    assert "jmsish-broker-toy-time" in threads  # who took over
    driver.stop()


# Calls of other threads.


def test_call_answers_raises_and_is_followed_by_a_step() -> None:
    driver, broker = make()
    end = connect(driver, "end")
    assert driver.call(lambda: broker.letters.append(("end", b"by call")) or 7) == 7
    assert end.recv_nowait() == b"by call\n"
    with pytest.raises(KeyError, match="no such"):
        driver.call(lambda: (broker.letters.append(("end", b"all the same")), {}["no such"]))
    assert end.recv_nowait() == b"all the same\n"
    driver.stop()


# Slow readers.


def test_a_slow_reader_costs_a_bounded_amount() -> None:
    driver, broker = make()
    end, other = connect(driver), connect(driver)
    lines, count = Lines(end), 5000
    end.send(b"flood %d 1000\n" % count)
    assert HIGH_WATER <= end.delivered - end.consumed <= HIGH_WATER + 2 * FULL
    assert broker.connections[0].largest_output <= 2 * FULL
    other.send(b"echo untroubled\n")
    assert other.recv_nowait() == b"untroubled\n"
    for number in range(count):
        assert int(lines.next()[:8]) == number
    assert end.recv_nowait() is None
    driver.stop()


def test_a_slow_reader_in_another_thread_is_always_resumed() -> None:
    driver, _ = make()
    end, count = connect(driver), 20_000
    got: list[int] = []

    def read() -> None:
        lines = Lines(end)
        got.extend(int(lines.next()[:8]) for _ in range(count))

    reader = threading.Thread(target=read)
    reader.start()
    end.send(b"flood %d 1000\n" % count)
    reader.join(60)
    assert got == list(range(count))
    driver.stop()


def test_last_words_reach_a_slow_reader_too() -> None:
    driver, _ = make()
    end, lines = connect(driver), None
    end.send(b"flood 3000 1000\n")
    end.send(b"bye\n")
    lines = Lines(end)
    said = []
    with pytest.raises(EOFError):
        while True:
            said.append(lines.next())
    assert said[-1] == b"bye"
    driver.stop()


# Time.


def test_a_virtual_clock_runs_the_broker_in_the_thread_that_moves_it() -> None:
    clock = VirtualClock()
    driver, _ = make(clock)
    threads = Threads()
    end = connect(driver, "end")
    end.send(b"at 30 late\nat 10 early\n")
    clock.advance(9)
    assert end.recv_nowait() is None
    clock.advance(1)
    assert end.recv_nowait() == b"early\n"
    clock.advance(100)
    assert end.recv_nowait() == b"late\n"
    assert not threads.new()
    driver.stop()
    assert not clock._listeners


def test_what_is_due_on_the_way_happens_at_its_time() -> None:
    clock = VirtualClock()
    driver, broker = make(clock)
    connect(driver, "end").send(b"at 10 ten\nat 20 twenty\n")
    begin, times = clock(), []
    tick = broker.tick
    broker.tick = lambda now: times.append(round(now - begin)) or tick(now)
    clock.advance(25)
    assert times == [10, 20, 25]
    driver.stop()


def test_a_real_clock_needs_no_call() -> None:
    threads = Threads()
    driver, _ = make()
    end = connect(driver, "end")
    end.send(b"at 0.02 by itself\n")
    assert end.recv(PATIENCE) == b"by itself\n"
    driver.stop()
    assert not threads.new()


def test_the_timers_of_a_connection_stay_real() -> None:
    driver, _ = make(VirtualClock())
    end = connect(driver)
    end.send(b"beat 0.01\n")
    lines = Lines(end)
    assert [lines.next(), lines.next(), lines.next()] == [b"beat"] * 3
    driver.stop()


# Ends and faults.


def test_close_is_the_end_for_the_broker() -> None:
    driver, broker = make()
    end = connect(driver)
    end.close()
    assert broker.connections[0].eof and end.closed
    assert end.recv(0) == b"" and end.recv_nowait() == b""
    assert not driver._lanes
    end.close()
    driver.stop()


def test_the_broker_ends_the_connection_after_its_last_words() -> None:
    driver, broker = make()
    end = connect(driver)
    end.send(b"nonsense\n")
    with pytest.raises(ConnectionLostError, match="vm://toy was ended by the broker"):
        end.send(b"echo more\n")
    assert end.recv(PATIENCE) == b"wrong\nbye\n"
    assert end.recv(PATIENCE) == b"" and end.recv_nowait() == b""
    assert not broker.connections[0].eof
    driver.stop()


def test_a_fault_in_one_connection_ends_that_one_only(caplog: pytest.LogCaptureFixture) -> None:
    driver, broker = make()
    bad, good = connect(driver), connect(driver)
    with caplog.at_level(logging.ERROR, "jmsish.broker"):
        bad.send(b"fault\n")
    assert "a fault inside the toy" in caplog.text
    assert bad.recv(PATIENCE) == b"" and broker.connections[0].eof
    good.send(b"echo well\n")
    assert good.recv_nowait() == b"well\n"
    driver.stop()


def test_a_fault_in_the_step_ends_those_who_led_to_it(caplog: pytest.LogCaptureFixture) -> None:
    driver, _ = make()
    bad, good = connect(driver), connect(driver)
    with caplog.at_level(logging.ERROR, "jmsish.broker"):
        bad.send(b"stepfault\n")
    assert "a fault in the step of the toy" in caplog.text
    assert bad.recv(PATIENCE) == b""
    good.send(b"echo well\n")
    assert good.recv_nowait() == b"well\n"
    driver.stop()


@pytest.mark.parametrize("method", ["receive", "receive_eof", "take_output", "tick"])
def test_a_fault_anywhere_in_a_connection_ends_that_one(
    method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    driver, broker = make()
    bad, good = connect(driver), connect(driver)

    def fault(*_: object) -> None:
        raise RuntimeError(f"a fault in {method}")

    monkeypatch.setattr(broker.connections[0], method, fault)
    with caplog.at_level(logging.ERROR, "jmsish.broker"):
        bad.send(b"echo something\n")
        bad.close()
    assert f"a fault in {method}" in caplog.text and bad.recv(0) == b""
    assert len(driver._lanes) == 1
    good.send(b"echo well\n")
    assert good.recv_nowait() == b"well\n"
    driver.stop()


def test_a_fault_in_the_time_of_the_broker_ends_nobody(caplog: pytest.LogCaptureFixture) -> None:
    driver, broker = make()
    end, tick = connect(driver), broker.tick
    broker.tick = lambda now: {}["tick"]
    with caplog.at_level(logging.ERROR, "jmsish.broker"):
        end.send(b"echo well\n")
    assert "KeyError: 'tick'" in caplog.text and end.recv_nowait() == b"well\n"
    broker.tick = tick
    driver.stop()


def test_an_interrupt_in_the_middle_of_the_broker_leaves_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    """Ctrl-C comes where the thread happens to be, and over memory that may be the broker."""
    driver, broker = make()
    mine, other = connect(driver), connect(driver, "other")
    lane = driver._lanes[broker.connections[1]]
    driver.bring(lane, b"echo before\n")
    with caplog.at_level(logging.CRITICAL, "jmsish.broker"), pytest.raises(KeyboardInterrupt):
        mine.send(b"interrupt\n")
    assert mine.recv(PATIENCE) == b"" and broker.connections[0].eof
    assert not driver._lock.locked()
    third = connect(driver, "third")
    third.send(b"echo well\n")
    assert third.recv(PATIENCE) == b"well\n"
    assert other.recv(PATIENCE) in (b"before\n", b"")
    driver.stop()


def interrupting(count: int) -> Callable[..., None]:
    """Ctrl-C where the interpreter looks for it: as a function is entered, or a built-in one has returned. It comes the
    so many-th time that the driver or its alarm does that."""
    left = [count]

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename in (serving.__file__, alarm.__file__):
            left[0] -= 1
            if not left[0]:
                sys.setprofile(None)
                raise KeyboardInterrupt

    return profile


def test_an_interrupt_anywhere_in_the_driver_leaves_its_locks_free_and_nobody_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One that came just as the lock was taken left it taken, and the stop of the broker waited for it for ever."""
    caplog.set_level(logging.CRITICAL, "jmsish.broker")
    for number in count(1):
        threads = Threads()
        driver, _ = make()
        mine, other = connect(driver, "mine"), connect(driver, "other")
        reading = begin(lambda: other.recv(PATIENCE))  # noqa: B023
        interrupted = False
        sys.setprofile(interrupting(number))
        try:
            mine.send(b"say other one\nat 1000 never\n")
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.setprofile(None)
        assert driver._lock.acquire(timeout=PATIENCE), number
        driver._lock.release()
        third = connect(driver, "third")
        third.send(b"say other two\necho well\n")
        assert third.recv(PATIENCE) == b"well\n"
        assert reading.result(PATIENCE) is not None
        driver.stop()
        assert not [each for each in threads.new() if each.name.startswith("jmsish")], number
        if not interrupted:
            break
    assert number > 10


def test_a_reader_that_fails_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    driver, _ = make()
    end = connect(driver)
    end.set_reader(lambda: {}["reader"])
    with caplog.at_level(logging.ERROR, "jmsish.drivers"):
        end.send(b"echo here\n")
    assert "KeyError" in caplog.text
    assert end.recv_nowait() == b"here\n"
    driver.stop()


def test_stop_says_goodbye_and_wakes_everybody() -> None:
    driver, _ = make()
    ends = [connect(driver) for _ in range(3)]
    said: list[list[bytes]] = []

    def read(end: PipeEnd) -> None:
        said.append([end.recv(PATIENCE), end.recv(PATIENCE)])

    readers = [threading.Thread(target=read, args=(end,)) for end in ends]
    for reader in readers:
        reader.start()
    driver.stop()
    for reader in readers:
        reader.join(PATIENCE)
    assert said == [[b"bye\n", b""]] * 3
    driver.stop()
    with pytest.raises(ConnectionLostError, match="'toy' is stopped"):
        driver.connect("vm://toy")
    with pytest.raises(ConnectionLostError):
        ends[0].send(b"echo\n")


def test_a_driver_that_is_dropped_is_collected_with_its_thread() -> None:
    driver, _ = make()
    end = connect(driver, "end")
    end.send(b"beat 1000\nat 0.01 by itself\n")
    assert end.recv(PATIENCE) == b"by itself\n"
    alarm, gone = driver._alarm, weakref.ref(driver)
    del driver, end
    while gone() is not None:
        gc.collect()
        alarm.join(0.01)  # its thread may be on its way out of the ring
    alarm.join(PATIENCE)
    assert not alarm._thread.is_alive()
