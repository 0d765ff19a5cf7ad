"""What a peer says, as fields that can still be changed: frames before they are octets.

A :class:`Said` is one frame, a :class:`Part` a described list inside one. Values are those of ``tests.wire.frames``:
plain ones get the type of their field, typed ones and octets (:class:`Raw`) travel as they are. A :class:`Txn` stands
for the id of a transaction that the broker has declared on the connection, a :class:`Lease` for one it has granted;
both are known only when the frame is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from jmsish.engine.codec import AMQP_VALUE, encode_message
from jmsish.engine.values import encode, encode_list
from jmsish.types import Array, Described, Symbol, UByte, UInt, ULong, UShort
from tests.wire.frames import COMPOSITES, Raw

WIRE_TYPES = frozenset({UInt, ULong, UByte, UShort, Symbol, Described, Array})
NULL = b"\x40"


@dataclass
class Txn:
    """The transaction declared so many before the last on this connection."""

    back: int = 0


@dataclass
class Lease:
    """The freeze granted so many before the last."""

    back: int = 0


@dataclass
class Part:
    """A described list."""

    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    surplus: list[Any] = field(default_factory=list)
    """Fields behind the last that the standard knows."""

    def copy(self) -> Part:
        return Part(self.name, {key: copied(value) for key, value in self.fields.items()}, list(self.surplus))

    def parts(self) -> Iterator[Part]:
        """This one, and those in it."""
        yield self
        for value in self.fields.values():
            if isinstance(value, Part):
                yield from value.parts()


@dataclass
class Asking:
    """A request to the management node; the values in ``body`` and ``named`` may be a :class:`Lease`."""

    operation: Any
    kind: Any
    body: Any = None
    named: dict[str, Any] = field(default_factory=dict)
    reply_to: Any = "answers"

    def octets(self, known: Known) -> bytes:
        body = self.body
        if isinstance(body, dict):
            body = {key: known.lease(value) if isinstance(value, Lease) else value for key, value in body.items()}
        named = {"operation": self.operation, "type": self.kind, **self.named}
        return encode_message(
            properties=["m1", None, None, None, self.reply_to],
            application_properties={name: value for name, value in named.items() if value is not None},
            body=(AMQP_VALUE, body),
        )


@dataclass
class Command:
    """A declare or a discharge, as the body of a message."""

    command: Part

    def octets(self, known: Known) -> bytes:
        return b"\x00\x53\x77" + part_octets(self.command, known)


Payload = bytes | Asking | Command


@dataclass
class Said:
    """A frame: of a performative, or the octets of what is none."""

    body: Part | None
    channel: int = 0
    payload: Payload = b""
    octets: bytes | None = None
    """In place of all else: a protocol header, an empty frame, anything."""

    def copy(self) -> Said:
        payload = self.payload
        if isinstance(payload, Command):
            payload = Command(payload.command.copy())
        elif isinstance(payload, Asking):
            payload = replace(payload, named=dict(payload.named))
        return Said(self.body and self.body.copy(), self.channel, payload, self.octets)

    @property
    def name(self) -> str:
        return "" if self.body is None else self.body.name


def copied(value: Any) -> Any:
    return value.copy() if isinstance(value, Part) else value


def say(name: str, channel: int = 0, payload: Payload = b"", /, **fields: Any) -> Said:
    return Said(Part(name, {key: value for key, value in fields.items() if value is not None}), channel, payload)


@dataclass
class Known:
    """What a peer has heard and has to repeat."""

    txns: list[bytes] = field(default_factory=list)
    leases: list[str] = field(default_factory=list)

    def txn(self, wanted: Txn) -> bytes:
        return self.txns[-1 - wanted.back % len(self.txns)] if self.txns else b"no-transaction"

    def lease(self, wanted: Lease) -> str:
        return self.leases[-1 - wanted.back % len(self.leases)] if self.leases else "no-lease"


_HEADS = {name: b"\x00" + encode(ULong(code)) for name, (code, _) in COMPOSITES.items()}
_KINDS = {name: tuple(fields) for name, (_, fields) in COMPOSITES.items()}


def value_octets(value: Any, kind: Any, known: Known) -> bytes:
    if value is None:
        return NULL
    if isinstance(value, Part):
        return part_octets(value, known)
    if isinstance(value, Raw):
        return value.octets
    if isinstance(value, Txn):
        return encode(known.txn(value))
    if isinstance(value, dict):
        value = {key: known.txn(item) if isinstance(item, Txn) else item for key, item in value.items()}
    if type(value) in WIRE_TYPES or (kind is bytes and not isinstance(value, bytes)):
        return any_octets(value)
    try:
        return encode(kind(value))
    except (TypeError, ValueError, AttributeError):
        return any_octets(value)  # of a type that the field cannot have: so much the better


def any_octets(value: Any) -> bytes:
    try:
        return encode(value)
    except (TypeError, ValueError):
        return encode(repr(value))


def part_octets(part: Part, known: Known) -> bytes:
    fields = part.fields
    items = [value_octets(fields.get(name), kind, known) for name, kind in _KINDS[part.name]]
    items += [value_octets(value, None, known) if value is not None else NULL for value in part.surplus]
    while items and items[-1] == NULL:
        items.pop()
    return _HEADS[part.name] + encode_list(items)


def frame_octets(said: Said, known: Known) -> bytes:
    """The frame as it travels."""
    if said.octets is not None:
        return said.octets
    assert said.body is not None
    payload = said.payload if isinstance(said.payload, bytes) else said.payload.octets(known)
    body = part_octets(said.body, known) + payload
    kind = 1 if said.body.name.startswith("sasl-") else 0
    return struct.pack(">IBBH", 8 + len(body), 2, kind, said.channel & 0xFFFF) + body
