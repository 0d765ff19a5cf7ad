"""What two routers, an edge and its interior, grow by when one message of very many octets comes to the edge.

``python -m tests.network.memory TRANSPORT LIMIT OCTETS`` prints it, and what the sender heard. The interior takes
``LIMIT`` octets of a message, the edge any. The sender keeps to the window that it is given and goes on after it was
refused, so all the octets arrive; with 0 as the limit they go through, to a receiver that counts them.
"""

from __future__ import annotations

import sys
from threading import Condition, Thread

from jmsish.testing import RouterNetwork
from tests.network.raw import PATIENCE, RawClient, head
from tests.wire.frames import read, write

FRAME = 4000


def memory(field: str) -> int:
    """A line of the status of this process, in octets."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


class Pouring(RawClient):
    """Sends as many frames as its window holds, and reads only what opens it, and what is said of the message."""

    closed = False
    arrived = b""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.heard: dict[int, str] = {}
        """What was said of each message."""
        self.sent = 0
        self.room = 0
        """Frames that may be sent beside the first and the last of a message."""

    def wait_for_room(self) -> None:
        """Until a flow opens the window."""
        while self.room <= 0 and not self.closed:
            data = self.line.read()
            assert data, "the line ended, or no window was opened"
            self.arrived += data
            whole = self._whole()
            for frame in read(whole):
                if frame.name == "flow":
                    window = frame.fields["next_incoming_id"] + frame.fields["incoming_window"]
                    self.room = window - self.sent - 2
                elif frame.name == "disposition":
                    self.heard[frame.fields["first"]] = frame.fields["state"].name
                elif frame.name == "close":
                    self.closed = True

    def _whole(self) -> bytes:
        end = 0
        while end + 8 <= len(self.arrived) and end + int.from_bytes(self.arrived[end : end + 4], "big") <= len(
            self.arrived
        ):
            end += int.from_bytes(self.arrived[end : end + 4], "big")
        whole, self.arrived = self.arrived[:end], self.arrived[end:]
        return whole

    def pour(self, octets: int) -> int:
        """One message of so many; how many were sent."""
        self.room = self._room - 2
        self.begin_message(head(octets))
        frame = write("transfer", 0, bytes(FRAME), handle=0, more=True)
        left = total = -(-octets // FRAME)
        self.sent = self._sent + 1  # with the last one
        while left:
            self.wait_for_room()
            count = min(self.room, left)
            self.line.write(frame * count)
            self.sent += count
            self.room -= count
            left -= count
        self._sent, self._room = self.sent - 1, self.room + 2
        self.go_on(bytes(8), last=True)
        return total * FRAME


class Counting(Thread):
    """Reads whatever comes, and counts it."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.client = RawClient(url)
        self.octets = 0
        self.heard = Condition()

    def run(self) -> None:
        while data := self.client.line.read():
            with self.heard:
                self.octets += len(data)
                self.heard.notify_all()

    def wait_for(self, octets: int) -> None:
        with self.heard:
            assert self.heard.wait_for(lambda: self.octets >= octets, PATIENCE)


def main(transport: str, limit: int, octets: int) -> None:
    with RouterNetwork("EA1-INT.A", limits={"INT.A": limit} if limit else {}, transport=transport) as network:
        receiving = Counting(network["INT.A"].url)
        receiving.client.receiver("orders", 10)
        receiving.start()
        network.wait_for_address("orders", at="EA1")
        sender = Pouring(network["EA1"].url)
        sender.sender("orders")
        sender.pour(100_000)
        before = memory("VmRSS")
        sent = sender.pour(octets)
        if not limit:
            receiving.wait_for(octets)
        print(memory("VmHWM") - before, sent, sender.heard.get(1, "nothing"), sender.closed, receiving.octets)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
