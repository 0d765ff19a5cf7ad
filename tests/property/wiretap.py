"""Reads the frames of a connection in memory along, and checks what must hold on any wire.

* A delivery gets at most one final outcome, and no word after it, in either direction.
* A sender never sends beyond the credit it was given.
* A disposition speaks of deliveries that were made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jmsish.engine.decoding import decode

BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END = 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17
CLIENT, BROKER = 0, 1


class Stream:
    """One direction: octets in, frames out."""

    def __init__(self, seen: Callable[[int, int, list[Any]], None]) -> None:
        self._seen = seen
        self._octets = b""

    def feed(self, octets: bytes) -> None:
        self._octets += octets
        while len(self._octets) >= 8:
            if self._octets[:4] == b"AMQP":
                self._octets = self._octets[8:]
                continue
            size = int.from_bytes(self._octets[:4], "big")
            if len(self._octets) < size:
                return
            frame, self._octets = self._octets[:size], self._octets[size:]
            begin = frame[4] * 4
            if frame[5] == 0 and begin < size:
                described, _ = decode(frame, begin)
                self._seen(int(described.descriptor), int.from_bytes(frame[6:8], "big"), list(described.value))


class Link:
    """A link in one direction of flow: what its sender may send."""

    def __init__(self, sender: int) -> None:
        self.sender = sender
        self.count = 0
        self.limit = 0
        self.partial = False


class Channel:
    """A session: the deliveries of each side."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self.handles: tuple[dict[int, Link], dict[int, Link]] = ({}, {})
        self.made: tuple[set[int], set[int]] = (set(), set())
        self.settled: tuple[set[int], set[int]] = (set(), set())
        self.last = [0, 0]


class Wiretap:
    """A transport that reads along."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.problems: list[str] = []
        self._sent = Stream(lambda code, channel, fields: self._frame(CLIENT, code, channel, fields))
        self._came = Stream(lambda code, channel, fields: self._frame(BROKER, code, channel, fields))
        self._channels: tuple[dict[int, Channel], dict[int, Channel]] = ({}, {})

    # -- a transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def send(self, data: bytes, deadline: float | None = None, listening: bool = False) -> None:
        self._sent.feed(data)
        self.transport.send(data)

    def recv(self, timeout: float | None = None) -> bytes:
        data: bytes = self.transport.recv(timeout)
        self._came.feed(data)
        return data

    def recv_nowait(self) -> bytes | None:
        data: bytes | None = self.transport.recv_nowait()
        self._came.feed(data or b"")
        return data

    # -- a witness

    def _frame(self, by: int, code: int, number: int, fields: list[Any]) -> None:
        def field(index: int) -> Any:
            return fields[index] if index < len(fields) else None

        if code == BEGIN:
            remote = field(0)
            self._channels[by][number] = Channel() if remote is None else self._channels[1 - by][int(remote)]
        channel = self._channels[by].get(number)
        if channel is None:
            return
        if code == ATTACH:
            self._attach(channel, by, field)
        elif code == FLOW and field(4) is not None:
            self._flow(channel.handles[by][int(field(4))], by, field)
        elif code == TRANSFER:
            self._transfer(channel, by, field)
        elif code == DISPOSITION:
            self._disposition(channel, by, field)
        elif code == DETACH:
            link = channel.handles[by].pop(int(field(0)))
            for name in [name for name, known in channel.links.items() if known is link]:
                del channel.links[name]
        elif code == END:
            del self._channels[by][number]

    def _attach(self, channel: Channel, by: int, field: Callable[[int], Any]) -> None:
        name, is_receiver = str(field(0)), bool(field(2))
        link = channel.links.setdefault(name, Link(1 - by if is_receiver else by))
        channel.handles[by][int(field(1))] = link
        if not is_receiver:
            link.count = int(field(9) or 0)
            link.limit = max(link.limit, link.count)

    def _flow(self, link: Link, by: int, field: Callable[[int], Any]) -> None:
        count = link.count if field(5) is None else int(field(5))
        if by == link.sender:
            link.count = count
            self._within(link)
        else:
            link.limit = max(link.limit, count + int(field(6) or 0))

    def _transfer(self, channel: Channel, by: int, field: Callable[[int], Any]) -> None:
        link = channel.handles[by][int(field(0))]
        if not link.partial:
            link.count += 1
            self._within(link)
            channel.last[by] = int(field(1))
            if channel.last[by] in channel.made[by]:
                self.problems.append(f"delivery-id {channel.last[by]} is used twice")
            channel.made[by].add(channel.last[by])
        link.partial = bool(field(5)) and not field(9)
        if field(4):
            channel.settled[by].add(channel.last[by])

    def _within(self, link: Link) -> None:
        if link.count > link.limit:
            self.problems.append(f"credit is {link.limit - link.count}")

    def _disposition(self, channel: Channel, by: int, field: Callable[[int], Any]) -> None:
        maker = 1 - by if field(0) else by
        first = int(field(1))
        for number in range(first, int(first if field(2) is None else field(2)) + 1):
            if number not in channel.made[maker]:
                self.problems.append(f"a disposition for delivery {number}, which was never made")
            if by != maker and number in channel.settled[maker]:
                self.problems.append(f"a second outcome for delivery {number}: {field(4)!r}")
            if field(3):
                channel.settled[maker].add(number)
