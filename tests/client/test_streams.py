"""What of a large message crosses the wire when nobody reads it to its end."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.client.session import ClientSession
from jmsish.modes import AcknowledgeMode

from .rig import Rig, encode

SIZE = 20 << 20
MESSAGE = b"\x00Su\xb0" + SIZE.to_bytes(4, "big") + bytes(SIZE)


class Scene(Rig):
    """A large message on the queue, `m2` behind it, and a session that has been handed the large one."""

    def __init__(self, mode: AcknowledgeMode) -> None:
        super().__init__()
        sender = self.producer(self.session(self.connect(), AcknowledgeMode.AUTO))
        self.run(sender.send(MESSAGE, None))
        self.run(sender.send(encode("m2"), None))
        core = self.connect(stream_threshold=1000)
        core.engine.incoming_window = 4
        self.came = 0
        receive: Any = core.receive

        def counted(data: bytes) -> None:
            self.came += len(data)
            receive(data)

        core.receive = counted  # type: ignore[method-assign]
        self.reader: ClientSession = self.session(core, mode)
        self.consumer_ = self.consumer(self.reader)
        self.delivery = self.run(self.consumer_.receive(None))
        self.pump()

    def depth(self) -> tuple[int, int]:
        view = self.broker.queue("q")
        return view.available, view.acquired


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT])
def test_nobody_reads_and_little_comes(mode: AcknowledgeMode) -> None:
    """No more than the window and what is allowed to lie unread; the message is the reader's still."""
    scene = Scene(mode)
    assert scene.came < SIZE // 2 and scene.depth() == (1, 1)


@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT])
def test_what_is_skipped_does_not_have_to_come(mode: AcknowledgeMode) -> None:
    """The broker hears that the message is settled, and sends no more of it; the next one follows."""
    scene = Scene(mode)
    reading = scene.reader.reading
    assert reading is not None and reading.take(10) == bytes(10)
    if mode is AcknowledgeMode.AUTO:
        reading.leave()
    else:
        scene.reader.ledger.acknowledge(scene.delivery)
    scene.pump()
    assert scene.came < SIZE // 2
    assert scene.receive(scene.consumer_) == "m2" and scene.reader.reading is None


def test_a_transaction_settles_as_it_begins_and_reads_on() -> None:
    """To the last octet."""
    scene = Scene(AcknowledgeMode.TRANSACTED)
    reading = scene.reader.reading
    assert reading is not None
    size = 0
    while (piece := reading.take(1 << 20)) != b"":
        size += len(piece or b"")
        scene.pump()
    assert size == SIZE
    scene.run(scene.reader.commit())
    assert scene.depth() == (0, 1)


def test_a_rollback_in_the_middle_brings_it_again() -> None:
    """Behind what is still under way of it, which is dropped."""
    scene = Scene(AcknowledgeMode.TRANSACTED)
    scene.run(scene.reader.rollback())
    delivery = scene.run(scene.consumer_.receive(None))
    reading = scene.reader.reading
    assert reading is not None and reading.delivery is delivery is not scene.delivery
    assert delivery.context.delivery_count == 2
