"""A message acquired under a transaction of which only the first frames have been sent (T86)."""

from __future__ import annotations

from typing import Any

from jmsish.engine.outcomes import Discharge, encode_control
from tests.broker.world import message
from tests.wire.frames import Frame, write
from tests.wire.part4.scene import SYMBOL_TXN_ID, Scene

WINDOW = 4


class PartlySent:
    """The window is shut in the middle of a large message; from there on frames are put in by hand."""

    def __init__(self, scene: Scene, **options: Any) -> None:
        self.scene = scene
        self.peer = scene.connect(max_frame_size=512, incoming_window=WINDOW)
        other = scene.connect().sender()
        other.transfer(_large("m1"))
        scene.run()
        self.control = self.peer.controller()
        self.txn = self.control.declare()
        self.number = self.control.link.session.next_delivery_id
        self.receiver = self.peer.receiver(**options)
        scene.frames(self.peer)
        self.receiver.link.flow(1, properties={SYMBOL_TXN_ID: self.txn})
        self.before = self._inject(self.peer.engine.take_output())
        assert [frame.more for frame in self.before] == [True] * WINDOW

    def _inject(self, octets: bytes) -> list[Frame]:
        """Octets for the broker, and the frames it answers, of which our own engine hears nothing."""
        self.peer.connection.receive(octets)
        self.scene.broker.step()
        self.peer.connection.take_output()
        return self.scene.frames(self.peer, "transfer", "disposition", "detach", "end")

    def discharge(self, fail: bool) -> list[Frame]:
        command = encode_control(Discharge(self.txn, fail))
        return self._inject(
            write(
                "transfer", self.peer.session.channel, command, handle=self.control.link.handle,
                delivery_id=self.number, delivery_tag=b"discharge", message_format=0,
            )
        )  # fmt: skip

    def open_window(self, frames: int = 1000) -> list[Frame]:
        """Let the broker go on sending."""
        return self._inject(
            write(
                "flow", self.peer.session.channel, next_incoming_id=WINDOW, incoming_window=frames,
                next_outgoing_id=self.number + 1, outgoing_window=1000,
            )
        )  # fmt: skip

    def detach_receiver(self) -> list[Frame]:
        return self._inject(write("detach", self.peer.session.channel, handle=self.receiver.link.handle, closed=True))


def _large(text: str) -> bytes:
    """Eight kilobytes in front of a small body."""
    filler = b"\x00\x53\x72\xd1\x00\x00\x20\x10\x00\x00\x00\x02\xa3\x05x-opt\xb0\x00\x00\x20\x00" + bytes(0x2000)
    return filler + message(text)
