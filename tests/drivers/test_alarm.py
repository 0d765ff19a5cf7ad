"""The alarm: no thread before there is a deadline, one ring a deadline, an end."""

from __future__ import annotations

import gc
import threading
from time import monotonic

from jmsish.drivers.alarm import Alarm

PATIENCE = 30.0


class Owner:
    def __init__(self) -> None:
        self.rung = threading.Semaphore(0)
        self.alarm = Alarm(self.ring, "test alarm")

    def ring(self) -> None:
        self.rung.release()


def alarm_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "test alarm"]


def test_no_thread_without_a_deadline() -> None:
    owner = Owner()
    assert not alarm_threads()
    owner.alarm.stop()
    owner.alarm.set(0.0)
    assert not alarm_threads()


def test_rings_at_the_time_and_only_then() -> None:
    owner = Owner()
    start = monotonic()
    owner.alarm.set(start + 0.02)
    assert owner.rung.acquire(timeout=PATIENCE)
    assert monotonic() >= start + 0.02
    assert owner.alarm.at == float("inf")
    assert not owner.rung.acquire(blocking=False)
    owner.alarm.stop()
    owner.alarm.join(PATIENCE)
    assert not alarm_threads()


def test_an_earlier_time_overtakes_and_a_later_one_changes_nothing() -> None:
    owner = Owner()
    owner.alarm.set(monotonic() + 1e12)  # longer than a condition can wait at once
    owner.alarm.set(float("inf"))
    owner.alarm.set(monotonic() + 0.01)
    assert owner.rung.acquire(timeout=PATIENCE)
    owner.alarm.stop()
    owner.alarm.join(PATIENCE)


def test_an_owner_that_is_dropped_is_collected() -> None:
    owner = Owner()
    owner.alarm.set(monotonic() + 0.01)
    rung = owner.rung
    assert rung.acquire(timeout=PATIENCE)
    alarm = owner.alarm
    del owner
    gc.collect()
    alarm.set(0.0)
    alarm.join(PATIENCE)
    assert not alarm_threads()


class Faulty:
    def __init__(self) -> None:
        self.rings = 0
        self.rung = threading.Semaphore(0)
        self.alarm = Alarm(self.ring, "test alarm")

    def ring(self) -> None:
        self.rung.release()
        raise RuntimeError("a fault in the ring")


def test_a_fault_does_not_end_it() -> None:
    owner = Faulty()
    for _ in range(2):
        owner.alarm.set(0.0)
        assert owner.rung.acquire(timeout=PATIENCE)
    owner.alarm.stop()
    owner.alarm.join(PATIENCE)


def test_entrusted_to_one_who_waits_anyway() -> None:
    """No thread waits any more, one that did goes, and whoever sets an earlier time wakes that one."""
    owner = Owner()
    woken: list[float] = []
    owner.alarm.set(monotonic() + 1000)
    waiting = alarm_threads()
    owner.alarm.entrust(lambda: woken.append(owner.alarm.at))
    for thread in waiting:
        thread.join(PATIENCE)
    assert len(waiting) == 1 and not alarm_threads() and len(woken) == 1
    assert not owner.alarm.has_come()
    owner.alarm.set(owner.alarm.at + 1)
    assert len(woken) == 1
    owner.alarm.set(0.0)
    assert woken[1:] == [0.0] and owner.alarm.has_come()
    assert owner.alarm.at == float("inf") and not owner.alarm.has_come()
    assert not owner.rung.acquire(blocking=False)
