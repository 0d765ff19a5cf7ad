"""Thousands of connections in one thread, by frames made once: what they cost is the broker's cost alone."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable

from tests.wire.frames import AMQP_HEADER, RECEIVER, SENDER, composite, wrap, write

BEAT = 12.0
"""Seconds between two empty frames of each connection: the broker wants one every thirty."""
SLOTS = 600
"""The empty frames are spread over the time between two of one connection, as those of clients that have nothing to do
with each other."""
HUGE = 0x7FFFFFFF
HEARTBEAT = wrap(b"")
BODY = b"\x00\x53\x77\xa1\x64" + b"m" * 100
BEGIN = write("begin", next_outgoing_id=0, incoming_window=HUGE, outgoing_window=HUGE)
CLOSE = write("close")


def opening(name: str) -> bytes:
    return AMQP_HEADER + write("open", container_id=name, idle_time_out=120_000) + BEGIN


def sender(queue: str, handle: int = 0) -> bytes:
    return write("attach", name=f"{queue}-{handle}", handle=handle, role=SENDER, snd_settle_mode=1,
                 initial_delivery_count=0, source=composite("source"),
                 target=composite("target", address=queue))  # fmt: skip


def receiver(queue: str, handle: int, credit: int) -> bytes:
    attach = write("attach", name=f"{queue}-{handle}", handle=handle, role=RECEIVER, snd_settle_mode=1,
                   source=composite("source", address=queue), target=composite("target"))  # fmt: skip
    flow = write("flow", next_incoming_id=0, incoming_window=HUGE, next_outgoing_id=0, outgoing_window=HUGE,
                 handle=handle, delivery_count=0, link_credit=credit)  # fmt: skip
    return attach + flow


def transfer(number: int, body: bytes = BODY) -> bytes:
    return write(
        "transfer", 0, body, handle=0, delivery_id=number, delivery_tag=number.to_bytes(4, "big"), settled=True
    )


class Member:
    """One connection."""

    def __init__(self, herd: Herd, first: bytes, *, reads: bool = True) -> None:
        self.herd = herd
        self.socket = socket.create_connection(herd.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(first)
        self.socket.setblocking(False)
        self.heard = 0
        self.sent = 0
        self.unsent = b""
        self.gone = False
        if reads:
            herd.selector.register(self.socket, selectors.EVENT_READ, self)
        herd.members[self] = None

    def say(self, octets: bytes) -> bool:
        """Write as much as goes; False where the broker takes no more for now, and the rest is kept."""
        if self.gone:
            return False
        octets = self.unsent + octets
        try:
            sent = self.socket.send(octets)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.leave()
            return False
        self.unsent = octets[sent:]
        return not self.unsent

    def read(self) -> None:
        try:
            octets = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            octets = b""
        self.heard += len(octets)
        if not octets:
            self.leave()

    def leave(self) -> None:
        if not self.gone:
            self.gone = True
            self.herd.members.pop(self, None)
            if self.socket in self.herd.selector.get_map():
                self.herd.selector.unregister(self.socket)
            self.socket.close()


class Herd:
    """All connections that this process has, and the loop that keeps them alive."""

    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self.selector = selectors.DefaultSelector()
        self.members: dict[Member, None] = {}
        self._beat = time.monotonic()
        self._slot = 0

    def pump(self, seconds: float, work: Callable[[], float] | None = None) -> None:
        """Read what comes for so long, and call ``work``, which says in how many seconds it wants to be called."""
        end = time.monotonic() + seconds
        due = 0.0
        while (now := time.monotonic()) < end:
            if work is not None and now >= due:
                due = time.monotonic() + work()
            if now >= self._beat:
                self._beat = now + BEAT / SLOTS
                self._slot = (self._slot + 1) % SLOTS
                for member in list(self.members)[self._slot :: SLOTS]:
                    member.say(HEARTBEAT)
            wait = max(min(end, due if work is not None else end, self._beat) - time.monotonic(), 0)
            for key, _ in self.selector.select(wait):
                key.data.read()

    def settle(self) -> None:
        """Until nothing comes any more."""
        while ready := self.selector.select(0.3):
            for key, _ in ready:
                key.data.read()
