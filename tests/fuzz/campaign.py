"""Many mutated conversations with one broker: rounds of a few at once, a sweep after every lot, and a report."""

from __future__ import annotations

import gc
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic, thread_time
from typing import TextIO

from tests.fuzz.arena import Arena, Find, Hang, watched, where
from tests.fuzz.conversations import Speaker
from tests.fuzz.mutation import Mutator, chunks, spoiled
from tests.fuzz.said import Said, frame_octets
from tests.fuzz.transcript import Step, reduced, written

LOT = 100
"""Conversations between two sweeps."""
PAGE = 4096


@dataclass
class Report:
    """What a campaign saw."""

    conversations: int = 0
    octets: int = 0
    finds: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[int, int, int]] = field(default_factory=list)
    """Conversations, octets resident, objects that the collector knows; each after a sweep."""
    longest: float = 0.0
    times: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    """How the connections of the attackers ended, by the condition that the broker said."""


def resident() -> int:
    """Octets of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


class Campaign:
    """Rounds without end; whoever drives it takes as many as are wanted."""

    def __init__(self, seed: int = 0, finds: Path | None = None, log: TextIO = sys.stderr) -> None:
        self.seed = seed
        self.folder = finds
        self.log = log
        self.report = Report()
        self.mutator = Mutator(Random(seed))
        self.number = 0
        self._begin()

    def _begin(self) -> None:
        self.arena = Arena(self.seed)
        for _ in range(20):
            self.arena.bystander.work()
        self.report.alone += self.arena.bystander.times
        self.arena.bystander.times.clear()

    def run(self, conversations: int, tell: Callable[[Report], None] = lambda report: None) -> Report:
        """So many conversations, and a sweep after each lot; ``tell`` hears of each sweep."""
        with watched():
            while self.report.conversations < conversations:
                rng = Random(f"{self.seed}/{self.report.conversations}")
                self.mutator.rng = rng
                try:
                    self.lot(rng, min(LOT, conversations - self.report.conversations))
                except (Exception, Hang) as error:
                    self.found(error)
                self.gather()
                tell(self.report)
        return self.report

    def lot(self, rng: Random, conversations: int) -> None:
        done = 0
        while done < conversations:
            together = min(rng.choice((1, 1, 2, 3)), conversations - done)
            self.round(rng, together)
            done += together
            self.report.conversations += together
        self.arena.play(("sweep",))

    def round(self, rng: Random, together: int) -> None:
        """A few conversations at once, a piece of each at a time."""
        speakers = [self.speaker(rng) for _ in range(together)]
        play = self.arena.play
        looked = False
        while speakers:
            speaker = rng.choice(speakers)
            try:
                play(next(speaker))
            except StopIteration:
                speakers.remove(speaker)
            if not looked and rng.random() < 0.1:
                play(("look",))
                looked = True
        if rng.random() < 0.3:
            play(("pass", rng.choice((0.5, 1.0, 5.0, 30.0))))

    def speaker(self, rng: Random) -> Iterator[Step]:
        """The steps of one conversation."""
        self.number += 1
        number, trusted = self.number, rng.random() < 0.85
        frames = Speaker(rng).converse()
        self.mutator.remember(frames)
        frames = self.mutator.mutate(frames)
        yield ("accept", number, trusted)
        reads = rng.random() < 0.85
        patience = 1 if rng.random() < 0.5 else rng.randint(2, len(frames) + 2)
        for start in range(0, len(frames), patience):
            for octets in self.pieces(rng, number, frames[start : start + patience]):
                self.report.octets += len(octets)
                yield ("receive", number, octets)
                if reads:
                    yield ("take", number)
        if rng.random() < 0.9:
            yield ("eof", number)

    def pieces(self, rng: Random, number: int, frames: list[Said]) -> list[bytes]:
        attacker = self.arena.attackers.get(number)
        if attacker is None:
            return []
        octets = [frame_octets(each, attacker.known) for each in frames]
        if rng.random() < 0.15:
            at = rng.randrange(len(octets))
            octets[at] = spoiled(rng, octets[at])
        return chunks(rng, octets)

    def gather(self) -> None:
        report, arena = self.report, self.arena
        report.longest = max(report.longest, arena.longest)
        report.times += arena.bystander.times
        report.ended += arena.ended
        arena.ended.clear()
        arena.bystander.times.clear()
        if report.conversations // 10_000 > len(report.memory) or not report.memory:
            gc.collect()
            report.memory.append((report.conversations, resident(), len(gc.get_objects())))

    # --- finds

    def found(self, error: BaseException) -> None:
        """Note it, make it small, write it down, and go on with a new broker."""
        place = where(error)
        self.report.finds[place] += 1
        steps = list(self.arena.steps)
        self.report.conversations += 1
        if self.report.finds[place] == 1:
            print(f"FOUND after {self.report.conversations}: {place}", file=self.log, flush=True)
            traceback.print_exception(error, file=self.log)
            if self.folder is not None:
                small = reduced(steps, lambda fewer: replayed(fewer, self.seed) == place, tries=600)
                name = f"{self.seed}-{self.report.conversations}.txt"
                self.folder.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(f"# {place}\n{written(small)}")
                print(f"  {len(steps)} steps, {len(small)} are enough: {name}", file=self.log, flush=True)
        self._begin()


def replayed(steps: list[Step], variant: int = 0) -> str | None:
    """The place of the fault that these steps find in a new broker, if they find one."""
    with watched():
        arena = Arena(variant)
        try:
            for step in steps:
                arena.play(step)
            if not steps or steps[-1] != ("sweep",):
                arena.play(("sweep",))
        except (Exception, Hang) as error:
            return where(error)
    return None


def timed(conversations: int, seed: int = 0, finds: Path | None = None) -> tuple[Report, float, float]:
    """A campaign; seconds of work and of time it took."""
    began, worked = monotonic(), thread_time()
    report = Campaign(seed, finds).run(conversations)
    return report, thread_time() - worked, monotonic() - began


__all__ = ["Campaign", "Find", "Report", "replayed", "timed"]
