"""What goes wrong with a conversation: its structure first, then its octets, then where it is cut.

A mutation of structure changes the frames before they are written: a field has another value, is of another type, is
left out or is one too many; a frame is dropped, said twice, said too early or on another channel. A mutation of octets
changes what is written. Most conversations get a few of them; some none, for what is valid finds faults too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

from jmsish.engine.values import encode
from jmsish.types import Array, Byte, Char, Described, Float, Long, Short, Symbol, Timestamp, UByte, UInt, ULong, UShort
from tests.fuzz.said import Asking, Command, Known, Part, Said, Txn, frame_octets
from tests.wire.frames import AMQP_HEADER, COMPOSITES, SASL_HEADER, Raw, wrap

NUMBERS = (0, 1, 2, 4, 5, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
LONG_NUMBERS = (2**63 - 1, 2**63, 2**64 - 1)
TEXTS = ("", "a", "q0", "$management", "temp-", "x" * 256, "x" * 5000, "\x00", "ä€😀", "q0/../q1", "%s%n{}", "a" * 70,
         "amqp:accepted:list", "1e999", "[" * 50, '{"a":' * 40, "\ufffe\ud7ff", "-1", "NaN")  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, b"", b"\xff" * 40, UUID(int=0), Char("x"), Float(float("nan")), float("inf"), float("-inf"),
    Byte(-128), Short(-1), Long(-(2**63)), Timestamp(2**63 - 1), Timestamp(-(2**63)), [], [[]], [1, "x", None], {},
    {"a": {"b": {}}}, {None: 1}, {1: 2, 0: 3}, {Symbol("a"): b"b"}, Array([Symbol("a")], 0xA3), Array([], 0x40),
    Array([UInt(1), UInt(2)], 0x70), Described(ULong(0x24), []), Described(Symbol("x:y"), "z"),
    Described(Described(ULong(1), 2), 3), Described(ULong(2**64 - 1), {"x": 1}), Described("text", None),
    Described(ULong(0x28), []), Described(ULong(0x30), []), Described(ULong(0x34), []), Described(ULong(0x23), []),
)  # fmt: skip
RAW = tuple(map(Raw, (
    b"", b"\x00", b"\x00\x00\x00\x00", b"\x00\x53", b"\xc1\x01", b"\xd0\xff\xff\xff\xff\x00\x00\x00\x00",
    b"\xd1\x00\x00\x00\x04\xff\xff\xff\xff", b"\xf0\x00\x00\x00\x05\xff\xff\xff\xff\x40", b"\xe0\x02\xff\x43",
    b"\xb0\xff\xff\xff\xff", b"\xa1\xff", b"\xa3\x02\xff\xff", b"\xa1\x02\xc3\x28", b"\x56\x02", b"\x3f", b"\xff",
    b"\xc0\x01\x00" * 3, b"\xe0\x04\x02\x00\x53\x24", b"\x73\x00\x11\x00\x00", b"\x00\x53\x24\xc0\x02\x00\x00",
    b"\xc0\x04\x01" * 30, b"\x00" * 60 + b"\x40", b"\xc1\x04\x02\x41\x40\x40", b"\xc1\x05\x04\x40\x40\x40\x40",
)))  # fmt: skip
CODES = (0, 1, 0x40, 0x45, 0x7F, 0x80, 0xC0, 0xD0, 0xF0, 0xFF)
PARTS = ("source", "target", "coordinator", "error", "accepted", "modified", "rejected", "received", "released",
         "transactional-state", "declare", "discharge", "declared")  # fmt: skip
NAMES = [name for name in COMPOSITES if not name.startswith("sasl-")]
STRAY = (
    b"", bytes(8), AMQP_HEADER, SASL_HEADER, b"AMQP\x02\x01\x00\x00", b"AMQP\x00\x00\x09\x01",
    b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", wrap(b""), wrap(b"", kind=1),
    wrap(b"", offset=3), wrap(b"\x00"), b"\x00\x00\x00\x07\x02\x00\x00\x00", b"\xff\xff\xff\xff\x02\x00\x00\x00",
    b"\x00\x00\x00\x0c\x03\x00\x00\x00abcd", b"\x00\x00\x00\x08\x00\x00\x00\x00", wrap(bytes(505)),
)  # fmt: skip


def odd_value(rng: Random) -> Any:
    """Any value, of any type."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice((UInt, ULong))(rng.choice(NUMBERS))
    if kind == 1:
        return rng.choice((ULong(rng.choice(LONG_NUMBERS)), UByte(255), UShort(65535), rng.choice(NUMBERS[:10])))
    if kind == 2:
        text = rng.choice(TEXTS)
        return Symbol(text) if text.isascii() and rng.random() < 0.5 else text.encode("utf-8", "replace").decode()
    if kind == 3:
        return rng.choice(RAW)
    if kind == 4:
        return Part(rng.choice(PARTS))
    return rng.choice(ODD)


def fitting_value(rng: Random, kind: Any) -> Any:
    """A value of the field's own type, but not the expected one."""
    if kind is bool:
        return rng.random() < 0.5
    if kind is UInt:
        return rng.choice(NUMBERS)
    if kind in (UByte, UShort):
        return rng.choice(NUMBERS[:7])
    if kind is ULong:
        return rng.choice(NUMBERS + LONG_NUMBERS)
    if kind is str or kind is Symbol:
        return rng.choice(TEXTS).encode("utf-8", "replace").decode()
    if kind is bytes:
        return rng.choice((b"", b"\x00", b"x" * 32, b"x" * 33, b"no-transaction", bytes(range(256))))
    return odd_value(rng)


class Mutator:
    """Changes conversations; ``pool`` has frames of others, to be said here."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.pool: list[Said] = []
        self.structure: tuple[Callable[[list[Said]], None], ...] = (
            self.change_field, self.change_field, self.change_field, self.change_field, self.drop_field,
            self.borrow_field, self.add_surplus, self.retype_part, self.drop, self.double, self.swap, self.move,
            self.rechannel, self.rehandle, self.rename, self.insert, self.stray, self.change_payload,
            self.change_request, self.renumber,
        )  # fmt: skip

    def mutate(self, frames: list[Said]) -> list[Said]:
        """A changed copy."""
        frames = [each.copy() for each in frames]
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 2, 3, 5, 8))):
            if frames:
                self.rng.choice(self.structure)(frames)
        return frames

    def remember(self, frames: list[Said]) -> None:
        """Say some of these in other conversations."""
        self.pool += [each.copy() for each in self.rng.sample(frames, min(2, len(frames)))]
        if len(self.pool) > 200:
            del self.pool[:100]

    # --- fields

    def part(self, frames: list[Said]) -> Part | None:
        """Any part of any frame."""
        said = self.rng.choice(frames)
        if isinstance(said.payload, Command) and self.rng.random() < 0.5:
            return said.payload.command
        return None if said.body is None else self.rng.choice(list(said.body.parts()))

    def change_field(self, frames: list[Said]) -> None:
        part = self.part(frames)
        if part is not None and (kinds := COMPOSITES[part.name][1]):
            known = list(part.fields)
            name = self.rng.choice(known) if known and self.rng.random() < 0.7 else self.rng.choice(kinds)[0]
            kind = dict(kinds).get(name)
            rng = self.rng
            part.fields[name] = fitting_value(rng, kind) if rng.random() < 0.6 else odd_value(rng)

    def drop_field(self, frames: list[Said]) -> None:
        part = self.part(frames)
        if part is not None and part.fields:
            del part.fields[self.rng.choice(list(part.fields))]

    def borrow_field(self, frames: list[Said]) -> None:
        """The value that another part has in some field."""
        part, other = self.part(frames), self.part(frames)
        if part is not None and other is not None and other.fields and (kinds := COMPOSITES[part.name][1]):
            value = self.rng.choice(list(other.fields.values()))
            part.fields[self.rng.choice(kinds)[0]] = value.copy() if isinstance(value, Part) else value

    def add_surplus(self, frames: list[Said]) -> None:
        part = self.part(frames)
        if part is not None:
            part.surplus += [odd_value(self.rng) for _ in range(self.rng.choice((1, 1, 3, 40)))]

    def retype_part(self, frames: list[Said]) -> None:
        part = self.part(frames)
        if part is not None:
            inner = [name for name, value in part.fields.items() if isinstance(value, Part)]
            if inner:
                value = part.fields[self.rng.choice(inner)]
                value.name = self.rng.choice(PARTS)

    # --- frames

    def index(self, frames: list[Said]) -> int:
        return self.rng.randrange(len(frames))

    def drop(self, frames: list[Said]) -> None:
        del frames[self.index(frames)]

    def double(self, frames: list[Said]) -> None:
        at = self.index(frames)
        times = self.rng.choice((1, 1, 2, 30))
        frames[at:at] = [frames[at].copy() for _ in range(times)]

    def swap(self, frames: list[Said]) -> None:
        at, other = self.index(frames), self.index(frames)
        frames[at], frames[other] = frames[other], frames[at]

    def move(self, frames: list[Said]) -> None:
        frames.insert(self.index(frames), frames.pop(self.index(frames)))

    def rechannel(self, frames: list[Said]) -> None:
        self.rng.choice(frames).channel = self.rng.choice((0, 1, 2, 3, 255, 4095, 4096, 65535))

    def rehandle(self, frames: list[Said]) -> None:
        handled = [each for each in frames if each.body is not None and "handle" in each.body.fields]
        if handled:
            body = self.rng.choice(handled).body
            assert body is not None
            body.fields["handle"] = self.rng.choice((0, 1, 2, 3, 4, 255, 4095, 0x7FFFFFFF, 0xFFFFFFFF))

    def rename(self, frames: list[Said]) -> None:
        body = self.rng.choice(frames).body
        if body is not None:
            body.name = self.rng.choice(NAMES)

    def insert(self, frames: list[Said]) -> None:
        if self.pool:
            frames.insert(self.index(frames), self.rng.choice(self.pool).copy())

    def stray(self, frames: list[Said]) -> None:
        octets = self.rng.choice(STRAY)
        if self.rng.random() < 0.3:
            octets = b"\x00\x00\x00" + bytes([8 + 20]) + b"\x02\x00\x00\x00" + self.rng.randbytes(20)
        frames.insert(self.index(frames), Said(None, octets=octets))

    def renumber(self, frames: list[Said]) -> None:
        """Delivery-ids and windows from elsewhere on the circle."""
        by = self.rng.choice((1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))
        for said in frames[self.index(frames) :]:
            for name in ("delivery_id", "next_incoming_id", "next_outgoing_id", "delivery_count", "first"):
                value = None if said.body is None else said.body.fields.get(name)
                if type(value) is int and said.body is not None:
                    said.body.fields[name] = (value + by) & 0xFFFFFFFF

    # --- what messages hold

    def change_payload(self, frames: list[Said]) -> None:
        carriers = [each for each in frames if isinstance(each.payload, bytes) and each.payload]
        said = self.rng.choice(carriers or frames)
        if isinstance(said.payload, bytes):
            said.payload = spoiled(self.rng, said.payload)

    def change_request(self, frames: list[Said]) -> None:
        asking = [each for each in frames if isinstance(each.payload, Asking)]
        if not asking:
            return
        said, rng = self.rng.choice(asking), self.rng
        assert isinstance(said.payload, Asking)
        what = rng.choice(("operation", "kind", "body", "inside", "named", "reply_to"))
        value = plain_value(rng)
        if what == "inside" and isinstance(said.payload.body, dict):
            body = dict(said.payload.body)
            key = rng.choice([*body, "add", "name", "arguments", "exchanges", "timeout"]) if body else "name"
            said.payload = replace(said.payload, body={**body, key: value})
        elif what == "named":
            key = rng.choice(("name", "identity", "type", "count", "offset", "index", "key"))
            said.payload = replace(said.payload, named={**said.payload.named, key: value})
        elif what != "inside":
            said.payload = replace(said.payload, **{what: value})


def plain_value(rng: Random) -> Any:
    """A value that a message body or property can have."""
    value = odd_value(rng)
    while isinstance(value, (Part, Raw, Decimal)):
        value = odd_value(rng)
    try:
        encode(value)
    except (TypeError, ValueError):
        return None
    return value


def spoiled(rng: Random, octets: bytes) -> bytes:
    """Octets with something wrong in them."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not octets:
            return octets
        at = rng.randrange(len(octets))
        kind = rng.randrange(8)
        if kind == 0:
            octets = octets[:at] + bytes([octets[at] ^ (1 << rng.randrange(8))]) + octets[at + 1 :]
        elif kind == 1:
            octets = (
                octets[:at]
                + bytes([rng.choice((0, 1, 0x40, 0x45, 0x7F, 0x80, 0xC0, 0xD0, 0xF0, 0xFF))])
                + octets[at + 1 :]
            )
        elif kind == 2:
            octets = octets[:at] + octets[at + rng.randint(1, 8) :]
        elif kind == 3:
            octets = octets[:at] + rng.randbytes(rng.randint(1, 8)) + octets[at:]
        elif kind == 4:
            end = at + rng.randint(1, 40)
            octets = octets[:end] + octets[at:]
        elif kind == 5:
            octets = octets[:at]
        elif kind == 6:
            octets = octets[:at] + rng.choice(RAW).octets + octets[at:]
        else:
            octets = octets[:at] + rng.choice((1, 255, 65536, 2**31, 2**32 - 1)).to_bytes(4, "big") + octets[at + 4 :]
    return octets


def chunks(rng: Random, frames: list[bytes]) -> list[bytes]:
    """How the octets arrive: frame by frame, all at once, or cut anywhere."""
    kind = rng.randrange(8)
    if kind < 4:
        return [octets for octets in frames if octets]
    whole = b"".join(frames)
    if kind < 6 or len(whole) < 2:
        return [whole] if whole else []
    if kind == 6 and len(whole) < 600:
        return [whole[at : at + 1] for at in range(len(whole))]
    cuts = sorted(rng.randrange(1, len(whole)) for _ in range(rng.randint(1, 6)))
    return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True) if end > start]


__all__ = ["Known", "Mutator", "Txn", "chunks", "frame_octets", "spoiled"]
