"""The collector of garbage in the process of `jmsish broker`: what it looks at, and when at everything."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

import jmsish
from jmsish.cli import collector as module
from jmsish.cli.collector import THRESHOLDS, Collector

FEW = 1000


class Ring:
    """One object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self
        self.more = [object() for _ in range(20)]


class Time:
    """Of the wall and of the processor, which go as a test says."""

    def __init__(self) -> None:
        self.wall = 1000.0
        self.processor = 10.0

    def pass_(self, seconds: float, share: float) -> None:
        self.wall += seconds
        self.processor += seconds * share


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    passing = Time()
    monkeypatch.setattr(module, "monotonic", lambda: passing.wall)
    monkeypatch.setattr(module, "process_time", lambda: passing.processor)
    yield passing
    gc.collect()
    gc.freeze()  # as it was found (tests/conftest.py)


@pytest.fixture
def looks() -> Iterator[list[int]]:
    """Collections of everything."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            seen.append(1)

    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def looked_after(thing: object) -> bool:
    """Whether collections look at it."""
    return any(each is thing for each in gc.get_objects())


def old_rings(count: int = FEW) -> weakref.ref[Ring]:
    """Garbage that was put aside while it was none; one of it."""
    rings = [Ring() for _ in range(count)]
    gc.collect(1)
    assert not looked_after(rings[0])
    return weakref.ref(rings[0])


def test_what_has_outlived_a_collection_is_not_looked_at_again() -> None:
    before = Ring()
    with Collector(lambda: 0):
        assert not looked_after(before)
        made = [Ring() for _ in range(FEW * 10)]
        assert sum(looked_after(each) for each in made[:: FEW // 2]) <= 1
        gc.collect(1)
        assert not looked_after(made[-1])
    assert looked_after(before)


def test_a_ring_that_was_soon_dropped_is_found_by_the_next_collection() -> None:
    with Collector(lambda: 0):
        ring = weakref.ref(Ring())
        gc.collect(0)
        assert ring() is None


def test_nothing_ever_looks_at_everything_while_connections_come_and_stay(looks: list[int]) -> None:
    with Collector(lambda: 0):
        looks.clear()
        kept = [Ring() for _ in range(FEW * 50)]
        assert not looks and kept


def test_old_rings_are_found_once_they_are_too_much_and_it_is_quiet(time: Time) -> None:
    with Collector(lambda: 0, allowance=FEW * 10) as collector:
        ring = old_rings()
        gc.collect()  # which they are kept out of
        assert ring() is not None
        time.pass_(30, 0.5)
        collector.look()
        assert ring() is not None
        time.pass_(30, 0.01)
        collector.look()
        assert ring() is None


def test_a_collection_of_another_thread_in_between_puts_nothing_aside(
    time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moment at which everything is to be looked at again and the look."""
    unfreeze = gc.unfreeze

    def then_another() -> None:
        unfreeze()
        gc.collect(1)

    monkeypatch.setattr(gc, "unfreeze", then_another)
    with Collector(lambda: 0, allowance=FEW * 10) as collector:
        ring = old_rings()
        time.pass_(30, 0.01)
        gc.disable()
        collector.look()
        gc.enable()
        assert ring() is None
        assert not looked_after(collector)


def test_at_many_times_as_much_nobody_waits_for_a_quiet_moment(time: Time) -> None:
    with Collector(lambda: 0, allowance=FEW * 4) as collector:
        ring = old_rings()
        time.pass_(30, 1.0)
        collector.look()
        assert ring() is None


def test_what_the_broker_explains_is_no_reason_to_look(time: Time, looks: list[int]) -> None:
    holds = [0]
    with Collector(lambda: holds[0], allowance=FEW) as collector:
        kept = [Ring() for _ in range(FEW)]
        holds[0] = FEW * 30
        looks.clear()
        time.pass_(30, 0.0)
        collector.look()
        assert not looks and kept


def test_it_is_asked_only_where_there_is_more_than_before(time: Time) -> None:
    asked: list[int] = []

    def explained() -> int:
        asked.append(1)
        return 0

    with Collector(explained, allowance=FEW * 100) as collector:
        asked.clear()
        time.pass_(30, 0.0)
        collector.look()
        assert not asked


def test_what_is_no_garbage_is_not_looked_for_again(time: Time, looks: list[int]) -> None:
    with Collector(lambda: 0, allowance=FEW * 10) as collector:
        kept = [Ring() for _ in range(FEW)]
        looks.clear()
        for _ in range(3):
            time.pass_(30, 0.0)
            collector.look()
        assert len(looks) == 1
        kept += [Ring() for _ in range(FEW // 2)]  # as much as was allowed at first, and half of what is now
        time.pass_(30, 0.0)
        collector.look()
        assert len(looks) == 1


def test_afterwards_it_is_as_it_was() -> None:
    before = gc.get_threshold(), list(gc.callbacks)
    with Collector(lambda: 0):
        assert gc.get_threshold()[:2] == THRESHOLDS[:2]
    assert (gc.get_threshold(), list(gc.callbacks)) == before


def test_an_embedded_broker_leaves_the_collector_alone() -> None:
    before = gc.get_threshold(), list(gc.callbacks), gc.get_freeze_count()
    with jmsish.EmbeddedBroker() as broker:
        broker.listen()
        with jmsish.connect(broker.url):
            assert (gc.get_threshold(), list(gc.callbacks)) == before[:2]
            assert gc.get_freeze_count() <= before[2]


@pytest.mark.parametrize("config", ["", '[router]\nid = "A"\nmode = "interior"\n'])
def test_the_process_of_a_broker_or_router_has_it(config: str, tmp_path: object) -> None:
    path = f"{tmp_path}/broker.toml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(config)
    code = (
        "import gc, os, signal, jmsish.cli.collector as module\n"
        "from jmsish.cli.main import main\n"
        "class Collector(module.Collector):\n"
        "    def __enter__(self):\n"
        "        made = super().__enter__()\n"
        "        self.look()\n"
        "        print(gc.get_freeze_count() > 1000, self._explained() > 0, flush=True)\n"
        "        return made\n"
        "import jmsish.cli.broker as command\n"
        "command.Collector = Collector\n"
        f"main(['broker', '--port', '0', '--config', {path!r}])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on ")
        assert process.stdout.readline().startswith("True ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
