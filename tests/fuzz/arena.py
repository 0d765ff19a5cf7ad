"""A broker in memory that anybody may attack, a well-behaved client beside them, and what must hold whatever they do.

Nothing here waits, and nothing depends on a clock or on chance: the ids that the broker makes up are counted, so the
same steps have the same effect. A :class:`Find` is what must not be: an exception out of the broker, an error that it
calls internal, work without end, something that stays when all attackers are gone, or a word of the client's that the
broker did not keep.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from time import thread_time
from types import FrameType
from typing import Any
from unittest.mock import patch

from jmsish.engine import engine as engine_module
from jmsish.engine.conditions import INTERNAL_ERROR
from tests.broker.world import World
from tests.fuzz.bystander import Bystander
from tests.fuzz.inspection import Find, configuration, sweep
from tests.fuzz.said import Known
from tests.fuzz.transcript import Step

HANG = 30.0
"""Seconds after which one step is taken to have no end."""
SIZES = 512
DECLARED, LEASE = b"\x00\x53\x33", b"lease-"


class Hang(BaseException):
    """A step that has no end; no handler inside the broker may take it for something else."""


def where(error: BaseException) -> str:
    """The exception and the innermost places of ours that it came through: the same for the same fault."""
    places = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if "jmsish" in code.co_filename and "/tests/" not in code.co_filename:
            places.append(f"{code.co_filename.rpartition('jmsish/')[2]}:{code.co_name}")
        traceback = traceback.tb_next
    said = f"{type(error).__name__}: {error}" if isinstance(error, Find) else type(error).__name__
    return " < ".join([said, *reversed(places[-4:])])


@contextmanager
def watched() -> Iterator[None]:
    """Internal errors come out as what they are, a step without end is stopped, ids that are made up are counted."""
    numbers = count(1)
    fail = engine_module.Engine.fail

    def failing(engine: Any, condition: str, description: str) -> None:
        if condition == INTERNAL_ERROR:
            error = sys.exc_info()[1]
            if error is not None:
                raise error
            raise Find(description)
        fail(engine, condition, description)

    def hanging(number: int, frame: FrameType | None) -> None:
        raise Hang("no end")

    def token(size: int) -> bytes:
        return next(numbers).to_bytes(size, "big")

    before = signal.signal(signal.SIGVTALRM, hanging)
    try:
        with (
            patch.object(engine_module.Engine, "fail", failing),
            patch("jmsish.broker.coordinator.token_bytes", token),
            patch("jmsish.broker.router.token_hex", lambda size: token(size).hex()),
        ):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Attacker:
    """One hostile connection, and what it has learned."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.known = Known()
        self.over = False
        self.heard = 0

    def hear(self, octets: bytes) -> None:
        """Look for what has to be said again."""
        self.heard += len(octets)
        self.measure(octets)
        at = octets.find(DECLARED)
        while at >= 0:
            found = octets[at + 3 : at + 60]
            start = found.find(b"\xa0")
            if 0 < start < 8:
                self.known.txns.append(found[start + 2 : start + 2 + found[start + 1]])
            at = octets.find(DECLARED, at + 3)
        at = octets.find(LEASE)
        while at >= 0:
            digits = octets[at + 6 : at + 16]
            end = next((place for place, octet in enumerate(digits) if not 48 <= octet <= 57), len(digits))
            self.known.leases.append("lease-" + digits[:end].decode())
            at = octets.find(LEASE, at + 6)

    def measure(self, octets: bytes) -> None:
        """Whole frames, none larger than the peer takes."""
        pos, limit = 0, max(self.connection.engine.max_frame_out, SIZES)
        while pos < len(octets):
            if octets[pos : pos + 4] == b"AMQP":
                pos += 8
                continue
            size = int.from_bytes(octets[pos : pos + 4], "big")
            if not 8 <= size <= limit or pos + size > len(octets):
                raise Find(f"a frame of {size} octets written, where {limit} are the most")
            pos += size


class Arena(World):
    """The broker, who attacks it, and the client that must not feel it."""

    def __init__(self, variant: int = 0) -> None:
        """``variant`` chooses among the configurations; the same ones come again and again."""
        super().__init__(configuration(variant))
        self.attackers: dict[int, Attacker] = {}
        self.steps: list[Step] = []
        """What was done since the last sweep."""
        self.longest = 0.0
        """Seconds of work that the longest step took."""
        self.ended: Counter[str] = Counter()
        """How the connections of the attackers ended, by the condition that the broker said."""
        self.bystander = Bystander(self)

    # --- steps

    def play(self, step: Step) -> None:
        """Do it."""
        self.steps.append(step)
        verb, *parts = step
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG)
        began = thread_time()
        getattr(self, "_" + verb)(*parts)
        self.longest = max(self.longest, thread_time() - began)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _accept(self, number: int, trusted: bool) -> None:
        self.attackers[number] = Attacker(self.broker.accept(trusted=trusted, peer=f"attacker-{number}"))

    def _receive(self, number: int, octets: bytes) -> None:
        attacker = self.attackers.get(number)
        if attacker is not None and not attacker.over:
            attacker.connection.receive(octets)
            self.broker.step()

    def _take(self, number: int) -> None:
        attacker = self.attackers.get(number)
        if attacker is not None and not attacker.over:
            for _ in range(3):
                octets = attacker.connection.take_output()
                attacker.hear(octets)
                self.broker.step()
                if not octets:
                    break
            if attacker.connection.closed:
                self.lose(number)

    def lose(self, number: int) -> None:
        """The socket of an attacker dies."""
        attacker = self.attackers.pop(number, None)
        if attacker is not None:
            attacker.over = True
            error = attacker.connection.engine.error
            self.ended["without an error" if error is None else error.condition] += 1
            attacker.connection.receive_eof()
            attacker.connection.take_output()
            self.broker.step()

    _eof = lose

    def let_pass(self, seconds: float) -> None:
        """Time, by both clocks, in pieces that no living peer is silent for."""
        while seconds > 0:
            piece = min(seconds, 20.0)
            seconds -= piece
            self.clock.now += piece
            self.monotonic += piece
            self.broker.tick(self.clock.now)
            for peer in self.peers:
                peer.engine.tick(self.monotonic)
            self.run()
            for attacker in list(self.attackers.values()):
                attacker.connection.tick(self.monotonic)
            for peer in self.peers:
                peer.connection.tick(self.monotonic)
            self.run()

    _pass = let_pass

    def _look(self) -> None:
        self.bystander.work()

    def _sweep(self) -> None:
        sweep(self)
        self.steps.clear()
