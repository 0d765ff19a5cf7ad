"""What a commit costs on the wire, client and broker together, by the frames in each direction (issue 4, speed)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.rig import Rig, encode
from tests.wire.frames import read


class Counted:
    """A transacted session at a broker; each exchange is one write of the client and all the broker says to it."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.rig.send("m1", "m2", "m3")
        self.core = self.rig.connect()
        self.session = self.rig.session(self.core)
        self.consumer = self.rig.consumer(self.session)
        self.producer = self.rig.producer(self.session, "out")
        self.server = self.rig.pairs[-1][1]
        self.said: list[list[str]] = []
        self.heard: list[list[str]] = []

    def exchange(self) -> None:
        data = self.core.take_output()
        self.server.receive(data)
        self.rig.broker.step()
        back = self.server.take_output()
        self.core.receive(back)
        self.said.append([frame.name for frame in read(data)])
        self.heard.append([frame.name for frame in read(back)])

    def run(self, steps: Any) -> None:
        """Run a procedure, with an exchange whenever it waits for what has not come yet."""
        result = None
        try:
            while True:
                future, _ = steps.send(result)
                while not future.done():
                    self.exchange()
                result = future.result()
        except StopIteration:
            return


def test_one_message_in_one_out_and_the_commit_are_one_round_trip() -> None:
    here = Counted()
    assert here.consumer.receive_now() is not None
    assert here.producer.post(encode("r1"), None)
    here.run(here.session.commit())
    assert here.said == [["transfer", "disposition", "transfer", "transfer"]], "post, retirement, discharge, declare"
    assert here.heard == [["disposition", "disposition"]], "the two answers"
    assert here.core.take_output() == b"" and here.rig.broker.queue("out").depth == 1
    assert here.rig.broker.queue("q").depth == 2


@pytest.mark.parametrize("count", [10, 100])
def test_more_messages_are_more_frames_and_no_more_round_trips(count: int) -> None:
    here = Counted()
    for number in range(count):
        assert here.producer.post(encode(f"r{number}"), None)
    here.run(here.session.commit())
    assert len(here.said) == 1 and here.said[0].count("transfer") == count + 2
    assert here.rig.broker.queue("out").depth == count


def test_an_empty_transaction_costs_nothing() -> None:
    here = Counted()
    here.run(here.session.commit())
    here.run(here.session.rollback())
    assert here.said == [] and here.core.take_output() == b""


def test_a_rollback_without_messages_taken_is_one_round_trip_too() -> None:
    here = Counted()
    assert here.producer.post(encode("r1"), None)
    here.run(here.session.rollback())
    assert here.said == [["transfer", "transfer", "transfer"]]
    assert here.rig.broker.queue("out").depth == 0
