"""A broker that says more than once what became of a message: the first word counts, and nothing breaks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsish.errors import JMSError
from jmsish.modes import AcknowledgeMode
from tests.client.rig import Rig, encode
from tests.wire.frames import RECEIVER, Frame, composite, read, write


class Repeating(Rig):
    """Between client and broker, each disposition of the broker is replaced by others, in one piece."""

    def __init__(self, instead: Callable[[Frame], bytes]) -> None:
        super().__init__()
        self.instead = instead

    def pump(self) -> None:
        moved = True
        while moved:
            moved = False
            for core, server in self.pairs:
                if data := core.take_output():
                    server.receive(data)
                    moved = True
            self.broker.step()
            for core, server in self.pairs:
                if data := server.take_output():
                    core.receive(b"".join(self.changed(frame) for frame in read(data)))
                    moved = True

    def changed(self, frame: Frame) -> bytes:
        return self.instead(frame) if frame.name == "disposition" else frame.octets


def said(frame: Frame, settled: bool, outcome: str) -> bytes:
    return write(
        "disposition", frame.channel, role=RECEIVER, first=frame.fields["first"], settled=settled,
        state=composite(outcome),
    )  # fmt: skip


@pytest.mark.parametrize("second", ["accepted", "rejected"])
@pytest.mark.parametrize("settled", [False, True])
def test_a_send_that_is_answered_twice(settled: bool, second: str) -> None:
    """Both come in one read, so the second meets a delivery that the first has settled."""
    rig = Repeating(lambda frame: said(frame, False, "accepted") + said(frame, settled, second))
    reported: list[JMSError] = []
    core = rig.connect()
    core.report = reported.append
    session = rig.session(core, AcknowledgeMode.AUTO)
    producer = rig.producer(session)
    for number in range(3):
        rig.run(producer.send(encode(f"m{number}"), None))
    assert core.failure is None and not reported
    assert rig.broker.queue("q").depth == 3 and not session.engine_session.outgoing
