"""Octets for the parsers without a guide: valid ones spoiled, at random from a seed, so the same in every run."""

from __future__ import annotations

import signal
import traceback
from pathlib import Path
from random import Random
from time import thread_time

from tests.fuzz.arena import Hang, where
from tests.fuzz.mutation import spoiled
from tests.fuzz.parsers import TARGETS, Target

CORPUS = Path(__file__).parent / "corpus"
SLOW = 1.0
"""Seconds of work on a few hundred octets that are a find by themselves."""


def corpus_of(name: str) -> list[bytes]:
    """The valid inputs of a target, and those that were found once."""
    kept = [path.read_bytes() for path in sorted((CORPUS / name).glob("*")) if path.is_file()]
    return [*TARGETS[name].seeds, *kept]


def tried(target: Target, octets: bytes) -> BaseException | None:
    """What a target raises that it must not, if anything; to take too long is a find as well."""

    def hanging(number: int, frame: object) -> None:
        raise Hang("no end")

    before = signal.signal(signal.SIGVTALRM, hanging)
    signal.setitimer(signal.ITIMER_VIRTUAL, 30.0)
    began = thread_time()
    try:
        target.run(octets)
    except (Exception, Hang) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    took = thread_time() - began
    return AssertionError(f"{took:.1f} s for {len(octets)} octets") if took > SLOW else None


def feed(name: str, number: int, seed: int = 0, finds: Path | None = None) -> dict[str, bytes]:
    """So many spoiled inputs for one target; by the places of the faults, an input for each."""
    rng = Random(f"{seed}/{name}")
    target, pool = TARGETS[name], corpus_of(name)
    found: dict[str, bytes] = {}
    for octets in pool:
        note(name, target, octets, found, finds)
    for _ in range(number):
        octets = rng.choice(pool)
        for _ in range(rng.choice((1, 1, 2, 4))):
            octets = spoiled(rng, octets) if rng.random() < 0.9 else octets + rng.choice(pool)
        note(name, target, octets[:5000], found, finds)
    return found


def note(name: str, target: Target, octets: bytes, found: dict[str, bytes], finds: Path | None) -> None:
    error = tried(target, octets)
    if error is None or where(error) in found:
        return
    found[where(error)] = octets
    if finds is not None:
        traceback.print_exception(error)
        finds.mkdir(parents=True, exist_ok=True)
        (finds / f"{name}-{len(found)}").write_bytes(octets)
