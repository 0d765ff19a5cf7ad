"""Our client and a broker whose answers are changed on their way: nothing but errors of JMS may come of it.

The client is the sans-I/O core; it opens, sends, receives, commits and closes as an application does, and between it
and a real broker in memory stands somebody who changes frames and octets. An operation may fail by any `JMSError`; what
must not be is another exception, an internal error of the engine, a wait that nothing ends, or work without end.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from jmsish.engine.conditions import INTERNAL_ERROR
from jmsish.engine.decoding import DecodeError
from jmsish.errors import JMSError
from jmsish.modes import AcknowledgeMode
from tests.client.rig import Rig, encode
from tests.fuzz.arena import HANG, Find, watched, where
from tests.fuzz.mutation import Mutator, spoiled
from tests.fuzz.said import Known, Part, Said, frame_octets
from tests.wire.frames import COMPOSITES, Frame, read

MODES = (AcknowledgeMode.TRANSACTED, AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT)


def part_of(frame: Frame) -> Part:
    fields = {name: part_of(value) if isinstance(value, Frame) else value for name, value in frame.fields.items()}
    return Part(frame.name, fields)


def said_of(frame: Frame) -> Said:
    """A frame of the broker, to be changed."""
    if frame.name not in COMPOSITES:
        return Said(None, octets=frame.octets)
    return Said(part_of(frame), frame.channel, frame.payload)


class Meeting(Rig):
    """One client, and what reaches it."""

    def __init__(self, rng: Random, mutator: Mutator) -> None:
        super().__init__()
        self.rng = rng
        self.mutator = mutator
        self.quiet = rng.randint(0, 6)
        """So many times the broker is heard as it is."""

    def pump(self) -> None:
        moved, rounds = True, 0
        while moved:
            moved, rounds = False, rounds + 1
            if rounds > 1000:
                raise Find("client and broker never fall silent")
            for core, server in self.pairs:
                data = core.take_output()
                if data:
                    server.receive(data)
                    moved = True
            self.broker.step()
            for core, server in self.pairs:
                data = server.take_output()
                if data:
                    core.receive(self.changed(data))
                    moved = True

    def changed(self, octets: bytes) -> bytes:
        self.quiet -= 1
        if self.quiet >= 0 or self.rng.random() < 0.5:
            return octets
        if self.rng.random() < 0.3:
            return spoiled(self.rng, octets)
        try:
            frames = [said_of(frame) for frame in read(octets)]
        except (DecodeError, AssertionError, KeyError):
            return octets
        self.mutator.remember(frames)
        return b"".join(frame_octets(each, Known()) for each in self.mutator.mutate(frames))

    # --- what the application does

    def converse(self) -> Counter[str]:
        """All of it, as far as it goes; how each step ended."""
        ended: Counter[str] = Counter()

        def tried(step: Callable[[], Any]) -> Any:
            try:
                found = step()
            except JMSError as error:
                ended[type(error).__name__] += 1
                return None
            ended["done"] += 1
            return found

        # Without a limit a client asks a broker that never answers again and again, for ever: that is what it was told.
        core = tried(lambda: self.connect(request_timeout=5))
        if core is not None:
            session = tried(lambda: self.session(core, self.rng.choice(MODES)))
            if session is not None:
                self.work(session, tried)
                tried(lambda: self.run(session.close()))
            tried(lambda: self.run(core.close()))
        for each, _ in self.pairs:
            self.end(each)
        return ended

    def work(self, session: Any, tried: Callable[[Callable[[], Any]], Any]) -> None:
        producer = tried(lambda: self.producer(session))
        consumer = tried(lambda: self.consumer(session))
        for number in range(self.rng.randint(1, 3)):
            if producer is not None:
                tried(lambda: self.run(producer.send(encode(f"m{number}"), None)))  # noqa: B023 - called at once
            if consumer is not None:
                tried(lambda: self.run(consumer.receive(None, wait=False)))
            if session.mode is AcknowledgeMode.TRANSACTED and self.rng.random() < 0.5:
                ending = self.rng.choice((session.commit, session.rollback))
                tried(lambda: self.run(ending()))  # noqa: B023 - called at once
        if consumer is not None:
            tried(lambda: self.run(consumer.close()))

    def end(self, core: Any) -> None:
        """The socket closes: whoever waited hears of it."""
        core.receive_eof()
        for _ in range(3):
            self.time += 40.0
            core.tick(self.time)
        error = core.engine.error
        if error is not None and error.condition == INTERNAL_ERROR:
            raise Find(str(error))
        core.take_output()


def meet(number: int, seed: int = 0, found: Callable[[int, BaseException], None] | None = None) -> Counter[str]:
    """So many meetings; how their steps ended. A find is raised, unless ``found`` takes it."""
    ended: Counter[str] = Counter()
    mutator = Mutator(Random(seed))
    with watched():
        for each in range(number):
            rng = mutator.rng = Random(f"{seed}/{each}")
            signal.setitimer(signal.ITIMER_VIRTUAL, HANG)
            try:
                ended += Meeting(rng, mutator).converse()
            except BaseException as error:
                if found is None or isinstance(error, KeyboardInterrupt):
                    raise
                ended[where(error)] += 1
                found(each, error)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ended
