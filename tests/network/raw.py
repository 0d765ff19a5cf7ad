"""Clients of a real network that are nothing but frames, in memory and over TCP: what no client of ours would send."""

from __future__ import annotations

from itertools import count
from typing import Any
from urllib.parse import urlsplit

from jmsish.drivers.registry import connect_vm
from jmsish.errors import ConnectionLostError
from tests.wire.frames import AMQP_HEADER, RECEIVER, SENDER, Frame, composite, write
from tests.wire.raw import RawPeer, SocketLine

PATIENCE = 30.0
_names = count(1)


class PipeLine:
    """A connection inside the process."""

    def __init__(self, url: str) -> None:
        self._pipe = connect_vm(url.removeprefix("vm://"))

    def write(self, octets: bytes) -> None:
        try:
            self._pipe.send(octets)
        except ConnectionLostError:
            pass  # whoever expects an answer sees the end of the line

    def read(self, *, patient: bool = True) -> bytes | None:
        try:
            return self._pipe.recv(PATIENCE) if patient else self._pipe.recv_nowait()
        except TimeoutError:
            return None
        except ConnectionLostError:
            return b""

    def drop(self) -> None:
        self._pipe.close()

    def advance(self, seconds: float) -> None:
        """It passes by itself."""


class RawClient(RawPeer):
    """A connection with one session and, as a rule, one link."""

    def __init__(self, url: str, *, max_frame_size: int | None = None, window: int = 1 << 30) -> None:
        parts = urlsplit(url)
        if parts.scheme == "vm":
            line: Any = PipeLine(url)
        else:
            assert parts.hostname is not None and parts.port is not None
            line = SocketLine(parts.hostname, parts.port, PATIENCE)
        super().__init__(line, url)
        opened: dict[str, Any] = {} if max_frame_size is None else {"max_frame_size": max_frame_size}
        self.send(AMQP_HEADER, write("open", container_id=f"raw-{next(_names)}", **opened))
        self.say("begin", next_outgoing_id=0, incoming_window=window, outgoing_window=1 << 30)
        self.expect("header")
        self.expect("open")
        self._room = self.expect("begin").fields["incoming_window"]
        """Transfers that may be sent before a flow says that there may be more."""
        self._sent = 0
        self._deliveries = count()

    def sender(self, address: str | None, handle: int = 0, **fields: Any) -> Frame:
        """Attach one; the answer, once there is credit."""
        attached = self.attach(address, handle, SENDER, **fields)
        theirs = attached.fields["handle"]
        self.expect("flow", handle=theirs, link_credit=lambda credit: bool(credit))
        return attached

    def receiver(self, address: str, credit: int, handle: int = 0) -> Frame:
        attached = self.attach(address, handle, RECEIVER)
        self.flow(credit, handle)
        return attached

    def attach(self, address: str | None, handle: int, role: bool, **fields: Any) -> Frame:
        there = {} if address is None else {"address": address}
        source = composite("source", **(there if role == RECEIVER else {}))
        target = composite("target", **(there if role == SENDER else {}))
        if role == SENDER:
            fields["initial_delivery_count"] = 0
        self.say("attach", name=f"link-{handle}", handle=handle, role=role, source=source, target=target, **fields)
        return self.expect("attach", but=("flow",), name=f"link-{handle}")

    def flow(self, credit: int, handle: int = 0, *, window: int = 1 << 30, next_incoming: int = 0) -> None:
        self.say(
            "flow", next_incoming_id=next_incoming, incoming_window=window, next_outgoing_id=0,
            outgoing_window=1 << 30, handle=handle, delivery_count=0, link_credit=credit,
        )  # fmt: skip

    def begin_message(self, *parts: bytes, handle: int = 0, settled: bool = False) -> int:
        """The first parts of a large message; its delivery-id."""
        number = next(self._deliveries)
        first, *rest = parts
        self._transfer(
            write("transfer", 0, first, handle=handle, delivery_id=number, delivery_tag=b"%d" % number,
                  settled=settled, more=True),
        )  # fmt: skip
        if rest:
            self.go_on(*rest, handle=handle)
        return number

    def go_on(self, *parts: bytes, handle: int = 0, last: bool = False) -> None:
        for number, part in enumerate(parts, 1):
            self._transfer(write("transfer", 0, part, handle=handle, more=not (last and number == len(parts))))

    def _transfer(self, frame: bytes) -> None:
        """Send one when the session's window is open; what is heard meanwhile is kept."""
        kept = []
        while not self._room:
            heard = self.hear()
            if heard is None:
                break
            kept.append(heard)
        self._frames.extendleft(reversed(kept))
        self._room -= 1
        self._sent += 1
        self.send(frame)

    def hear(self, *, patient: bool = True) -> Frame | None:
        frame = super().hear(patient=patient)
        if frame is not None and frame.name == "flow" and frame.fields.get("next_incoming_id") is not None:
            self._room = max(frame.fields["next_incoming_id"] + frame.fields["incoming_window"] - self._sent, 0)
        return frame

    def abort(self, handle: int = 0) -> None:
        self._transfer(write("transfer", handle=handle, aborted=True))

    def post(self, payload: bytes, handle: int = 0) -> int:
        """A message that fits a frame."""
        number = next(self._deliveries)
        self._transfer(write("transfer", 0, payload, handle=handle, delivery_id=number, delivery_tag=b"%d" % number))
        return number

    def hear_transfer(self, **pattern: Any) -> Frame:
        return self.expect("transfer", but=("flow", "disposition"), **pattern)

    def hear_message(self) -> bytes:
        """The octets of the next message; its last transfer was there."""
        octets = b""
        while True:
            frame = self.hear_transfer()
            octets += frame.payload
            assert not frame.fields.get("aborted"), f"{self.name}: it was aborted"
            if not frame.fields.get("more"):
                return octets

    def accept(self, first: int, last: int | None = None) -> None:
        self.say("disposition", role=RECEIVER, first=first, last=last, settled=True, state=composite("accepted"))

    def outcome_of(self, number: int) -> str:
        frame = self.expect("disposition", but=("flow", "detach"), first=lambda first: first <= number)
        return str(frame.fields["state"].name)


def text(body: str) -> bytes:
    """A small message."""
    return b"\x00\x53\x77\xa1" + bytes([len(body)]) + body.encode()


def head(size: int) -> bytes:
    """The first octets of a message that claims to have a body of so many."""
    return b"\x00\x53\x75\xb0" + size.to_bytes(4, "big")
