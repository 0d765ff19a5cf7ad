"""Random consumers, sends, receives, commits, rollbacks, recovers, closes and cuts, against a model of what JMS allows.

The real client, engine and broker run in this process, joined by the in-memory pipe, on one virtual clock. After every
step the broker has heard everything (a round trip on each connection), and its queues are compared with the model:
nothing lost, nothing doubled, in order. Every frame is read along (`wiretap`): at most one outcome a delivery, credit
never overdrawn.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import jmsish
from jmsish import AcknowledgeMode
from jmsish.drivers.registry import connect_vm
from jmsish.testing import VirtualClock
from tests.effort import in_the_gate

from ..scenarios.cut import cut_in_memory
from .model import DEAD, LIMIT, LIMITED, Line, Model, Reader, Seat, Sent
from .wiretap import Wiretap

QUEUES = ["plain", LIMITED]
MODES: dict[str, dict[str, Any]] = {
    "transacted": {"transacted": True},
    "client": {"acknowledge_mode": AcknowledgeMode.CLIENT},
    "individual": {"acknowledge_mode": AcknowledgeMode.INDIVIDUAL},
    "auto": {"acknowledge_mode": AcknowledgeMode.AUTO},
    "dups_ok": {"acknowledge_mode": AcknowledgeMode.DUPS_OK},
}
PREFETCH = [1000, 3, 1, 0]
MOST = 3
index = st.integers(min_value=0, max_value=63)


class Redelivery(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.broker = jmsish.EmbeddedBroker(clock=self.clock)
        self.broker.start()
        for name in QUEUES:
            self.broker.declare_queue(name, max_delivery_attempts=LIMIT if name == LIMITED else 0, dead_letter=DEAD)
        self.model = Model()
        self.taps: list[Wiretap] = []

    def dial(self) -> Line:
        """A connection whose every frame is read along."""

        def tapped(name: str) -> Any:
            self.taps.append(Wiretap(connect_vm(name)))
            return self.taps[-1]

        with mock.patch("jmsish.sync.connection.connect_vm", tapped):
            return Line(jmsish.connect(self.broker.url, clock=self.clock))

    # -- opening

    @initialize(
        modes=st.lists(st.sampled_from(list(MODES)), min_size=1, max_size=4),
        queue=st.sampled_from(QUEUES),
        count=st.integers(1, 4),
        prefetch=st.sampled_from(PREFETCH),
    )
    def set_the_stage(self, modes: list[str], queue: str, count: int, prefetch: int) -> None:
        """One connection, some sessions, messages, and a consumer in each session."""
        self.connect()
        for mode in modes:
            self.open_session(0, mode)
            self.open_consumer(len(self.model.seats) - 1, queue, prefetch, None)
        for _ in range(3):
            self.send(0, queue, count, 4, 0, None, "red")
        self.commit(0)

    @precondition(lambda self: len(self.model.lines) < MOST)
    @rule()
    def connect(self) -> None:
        self.model.lines.append(self.dial())
        self.open_session(len(self.model.lines) - 1, "transacted")

    @precondition(lambda self: self.model.lines and len(self.model.seats) < 2 * MOST)
    @rule(which=index, mode=st.sampled_from(list(MODES)))
    def open_session(self, which: int, mode: str) -> None:
        line = self.model.lines[which % len(self.model.lines)]
        line.seats.append(Seat(line.real.create_session(**MODES[mode]), line, mode))

    @precondition(lambda self: self.model.seats and len(self.model.readers) < 2 * MOST)
    @rule(
        which=index,
        queue=st.sampled_from(QUEUES),
        prefetch=st.sampled_from(PREFETCH),
        colour=st.sampled_from([None, None, "red", "blue"]),
    )
    def open_consumer(self, which: int, queue: str, prefetch: int, colour: str | None) -> None:
        seat = self.model.seats[which % len(self.model.seats)]
        selector = f"colour = '{colour}'" if colour else None
        consumer = seat.real.create_consumer(seat.real.create_queue(queue), selector, prefetch=prefetch)
        seat.readers.append(Reader(consumer, seat, queue, colour))
        self.model.put_back()  # unread buffers of the session's other consumers went back (D1)

    # -- working

    @precondition(lambda self: self.model.seats)
    @rule(
        which=index,
        queue=st.sampled_from(QUEUES),
        count=st.integers(1, 4),
        priority=st.sampled_from([4, 4, 4, 9, 0]),
        lifetime=st.sampled_from([0, 0, 0, 0, 30]),
        group=st.sampled_from([None, None, None, "a", "b"]),
        colour=st.sampled_from(["red", "blue"]),
    )
    def send(
        self, which: int, queue: str, count: int, priority: int, lifetime: int, group: str | None, colour: str
    ) -> None:
        seat = self.model.seats[which % len(self.model.seats)]
        producer = seat.real.create_producer(seat.real.create_queue(queue))
        for _ in range(count):
            # Without a lifetime on the limited queue: whether expiry or the limit comes first is not for JMS to say.
            seconds = 0 if queue == LIMITED else lifetime
            expires = self.clock() + seconds if seconds else None
            message = self.model.sends(seat, queue, priority, expires, group, colour)
            properties = {"colour": colour, **({"JMSXGroupID": group} if group else {})}
            producer.send(message.body, priority=priority, time_to_live=seconds, properties=properties)
        producer.close()

    @precondition(lambda self: self.model.readers)
    @rule(which=index, count=st.integers(1, 5))
    def receive(self, which: int, count: int) -> None:
        reader = self.model.readers[which % len(self.model.readers)]
        for _ in range(count):
            message = reader.real.receive_no_wait()
            if message is None:
                if reader.seat.line.started:
                    self.nothing_was_there(reader)
                return
            assert reader.seat.line.started, "a stopped connection delivered"
            self.model.receives(reader, message, self.clock())

    def nothing_was_there(self, reader: Reader) -> None:
        """A receive that asked the broker and got nothing: then nothing is ready for it but what has expired.

        Whose a group is, is not known here: its messages may be for others.
        """
        for message in self.broker.queue(reader.queue).messages():
            sent = self.model.messages[message.body]
            gone = sent.expires is not None and sent.expires <= self.clock()
            assert gone or sent.group is not None or not reader.wants(sent), f"{sent} was ready"

    @precondition(lambda self: self.model.readers)
    @rule(which=index, first=st.integers(1, 3), then=st.integers(0, 3), good=st.booleans())
    def work(self, which: int, first: int, then: int, good: bool) -> None:
        """What applications do: receive, settle or give back, receive on."""
        seat = self.model.readers[which % len(self.model.readers)].seat
        self.receive(which, first)
        if not good:
            self.give_back(self.model.seats.index(seat))
        elif seat.mode == "transacted":
            seat.real.commit()
            self.model.commits(seat)
        elif seat.held:
            self.model.acknowledges(seat, len(seat.held) - 1).acknowledge()
        self.receive(which, then)

    @precondition(lambda self: any(seat.held and seat.mode in ("client", "individual") for seat in self.model.seats))
    @rule(which=index, message=index)
    def acknowledge(self, which: int, message: int) -> None:
        seats = [seat for seat in self.model.seats if seat.held and seat.mode in ("client", "individual")]
        seat = seats[which % len(seats)]
        self.model.acknowledges(seat, message % len(seat.held)).acknowledge()

    @precondition(lambda self: any(seat.mode == "transacted" for seat in self.model.seats))
    @rule(which=index)
    def commit(self, which: int) -> None:
        seats = [seat for seat in self.model.seats if seat.mode == "transacted"]
        seat = seats[which % len(seats)]
        seat.real.commit()
        self.model.commits(seat)

    @precondition(lambda self: self.model.seats)
    @rule(which=index)
    def give_back(self, which: int) -> None:
        seat = self.model.seats[which % len(self.model.seats)]
        if seat.mode == "transacted":
            seat.real.rollback()
        else:
            seat.real.recover()
        self.model.gives_back(seat)

    @precondition(lambda self: self.model.lines)
    @rule(which=index, again=st.booleans())
    def stop(self, which: int, again: bool) -> None:
        """Stops a connection, which then delivers nothing; starts it again, at once or whenever."""
        line = self.model.lines[which % len(self.model.lines)]
        line.started = False
        line.real.stop()
        for reader in [reader for seat in line.seats for reader in seat.readers]:
            assert reader.real.receive_no_wait() is None
        if again:
            self.start(which)

    @precondition(lambda self: any(not line.started for line in self.model.lines))
    @rule(which=index)
    def start(self, which: int) -> None:
        stopped = [line for line in self.model.lines if not line.started]
        line = stopped[which % len(stopped)]
        line.started = True
        line.real.start()

    @rule(seconds=st.sampled_from([1, 31]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    # -- ending

    @precondition(lambda self: self.model.readers)
    @rule(which=index)
    def close_consumer(self, which: int) -> None:
        reader = self.model.readers[which % len(self.model.readers)]
        reader.real.close()
        reader.seat.readers.remove(reader)
        self.model.put_back()

    @precondition(lambda self: len(self.model.seats) > 1)
    @rule(which=index)
    def close_session(self, which: int) -> None:
        seat = self.model.seats[which % len(self.model.seats)]
        seat.real.close()
        seat.line.seats.remove(seat)
        self.model.gives_back(seat)

    @precondition(lambda self: len(self.model.lines) > 1)
    @rule(which=index)
    def close_connection(self, which: int) -> None:
        line = self.model.lines[which % len(self.model.lines)]
        line.real.close()
        self.model.lines.remove(line)
        for seat in line.seats:
            self.model.gives_back(seat)

    @precondition(lambda self: len(self.model.lines) > 1)
    @rule(which=index, receives=st.integers(0, 3), reader=index)
    def cut(self, which: int, receives: int, reader: int) -> None:
        """Breaks a wire, at once after some receives whose acknowledgements may not have left."""
        line = self.model.lines[which % len(self.model.lines)]
        readers = [reader for seat in line.seats for reader in seat.readers]
        if readers and line.started:
            self.receive(self.model.readers.index(readers[reader % len(readers)]), receives)
        cut_in_memory(line.real)
        doubtful = self.model.cut(line)
        line.real.close()
        self.resolve(doubtful)

    def resolve(self, doubtful: list[Sent]) -> None:
        """Asks the broker what nobody else can know: was this acknowledgement heard, was that attempt the last?"""
        here = {queue: set(self.bodies(queue)) for queue in (*QUEUES, DEAD)}
        for message in doubtful:
            if message.body in here[message.queue]:
                message.comes_back(known=(0, 0))
        for message in self.model.messages.values():
            if message.state == "queued" and message.may_be_dead:
                if message.body in here[DEAD]:
                    message.state = "dead"
                    message.known_low = LIMIT
                else:
                    message.known_high = LIMIT - 1

    # -- what always holds

    def bodies(self, queue: str) -> list[Any]:
        try:
            return [message.body for message in self.broker.queue(queue).messages(acquired=True)]
        except jmsish.InvalidDestinationError:
            return []

    @invariant()
    def the_queues_own_what_they_should(self) -> None:
        for line in self.model.lines:
            line.real.create_session().close()
        self.resolve([])
        for seat in self.model.seats:
            if not seat.lazy:
                seat.unsure.clear()
        for queue in QUEUES:
            owned, there = self.model.owned(queue, self.clock()), self.bodies(queue)
            assert [body for body in there if body in set(owned)] == owned, f"{queue} is {there}"
            assert set(there) - set(owned) <= self.model.tolerated(queue), f"{queue} is {there}, should be {owned}"
            assert len(there) == len(set(there)), f"{queue} doubles: {there}"
            view = self.broker.queue(queue)
            assert view.depth == view.available + view.acquired == len(there)
            held = sum(message.queue == queue for seat in self.model.seats for message, _ in seat.held)
            assert held <= view.acquired
        dead = self.bodies(DEAD)
        assert set(dead) == self.model.dead() and len(dead) == len(set(dead)), f"dead letters are {dead}"
        assert [problem for tap in self.taps for problem in tap.problems] == []

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is not None:
                return  # a step failed already: that is the failure to show; or hypothesis gave this example up
            for line in list(self.model.lines):
                line.real.close()
                self.model.lines.remove(line)
                for seat in line.seats:
                    self.model.gives_back(seat)
            self.the_queues_own_what_they_should()
            self.read_to_the_end()
        finally:
            for line in self.model.lines:
                with contextlib.suppress(jmsish.JMSError):
                    line.real.close()
            self.broker.stop()

    def read_to_the_end(self) -> None:
        """Everybody is gone: one reader gets all that is left, in the order of the queue, with the right counts."""
        line = self.dial()
        self.model.lines.append(line)
        seat = Seat(line.real.create_session(transacted=True), line, "transacted")
        line.seats.append(seat)
        for queue in QUEUES:
            reader = Reader(seat.real.create_consumer(seat.real.create_queue(queue)), seat, queue)
            seat.readers.append(reader)
            expected, got = self.model.owned(queue, self.clock()), []
            while (message := reader.real.receive_no_wait()) is not None:
                self.model.receives(reader, message, self.clock())
                got.append(message.body)
            assert got == expected
        seat.real.commit()
        self.model.commits(seat)
        for queue in QUEUES:
            assert self.bodies(queue) == []
        line.real.close()
        assert not list(self.broker.transactions())


TestRedelivery = Redelivery.TestCase
TestRedelivery.settings = settings(settings.default, stateful_step_count=40, max_examples=in_the_gate(100))
# A busy machine takes minutes for it, and JMSISH_HYPOTHESIS=explore on any.
pytestmark = pytest.mark.timeout(900)
