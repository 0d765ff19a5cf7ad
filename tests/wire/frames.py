"""AMQP frames by hand, in both directions, for tests that look at the wire.

Writing::

    write("begin", channel=1, next_outgoing_id=0, incoming_window=10, outgoing_window=10)
    write("transfer", payload=b"...", handle=0, delivery_id=0, delivery_tag=b"t")
    write("attach", name="x", handle=0, role=RECEIVER, source=composite("source", address="q"))

Fields are named as in the standard, with underscores. A plain value is given the type the standard has for the field;
one that is typed already (``UInt(5)``, ``Symbol("x")``, ``Raw(octets)``) travels as it is, so that wrong ones can be
made as well. Fields left out are null, and nulls at the end are left out.

Reading::

    for frame in read(octets):
        frame.name, frame.channel, frame.fields["handle"], frame.payload

``read`` takes protocol headers and SASL frames as well. ``trace`` makes lines to read of them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from jmsish.engine.values import decode, encode, encode_list
from jmsish.types import Array, Described, Symbol, UByte, UInt, ULong, UShort

SENDER, RECEIVER = False, True

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"


def symbols(value: Any) -> Any:
    """A field of several symbols."""
    return Symbol(value) if isinstance(value, str) else Array([Symbol(item) for item in value], 0xA3)


def _same(value: Any) -> Any:
    return value


def _symbol_keys(value: dict[Any, Any]) -> dict[Any, Any]:
    return {Symbol(key) if type(key) is str else key: item for key, item in value.items()}


_TERMINUS = [
    ("address", str), ("durable", UInt), ("expiry_policy", Symbol), ("timeout", UInt), ("dynamic", bool),
    ("dynamic_node_properties", _symbol_keys),
]  # fmt: skip

COMPOSITES: dict[str, tuple[int, list[tuple[str, Any]]]] = {
    "open": (0x10, [
        ("container_id", str), ("hostname", str), ("max_frame_size", UInt), ("channel_max", UShort),
        ("idle_time_out", UInt), ("outgoing_locales", symbols), ("incoming_locales", symbols),
        ("offered_capabilities", symbols), ("desired_capabilities", symbols), ("properties", _symbol_keys),
    ]),
    "begin": (0x11, [
        ("remote_channel", UShort), ("next_outgoing_id", UInt), ("incoming_window", UInt), ("outgoing_window", UInt),
        ("handle_max", UInt), ("offered_capabilities", symbols), ("desired_capabilities", symbols),
        ("properties", _symbol_keys),
    ]),
    "attach": (0x12, [
        ("name", str), ("handle", UInt), ("role", bool), ("snd_settle_mode", UByte), ("rcv_settle_mode", UByte),
        ("source", _same), ("target", _same), ("unsettled", _same), ("incomplete_unsettled", bool),
        ("initial_delivery_count", UInt), ("max_message_size", ULong), ("offered_capabilities", symbols),
        ("desired_capabilities", symbols), ("properties", _symbol_keys),
    ]),
    "flow": (0x13, [
        ("next_incoming_id", UInt), ("incoming_window", UInt), ("next_outgoing_id", UInt), ("outgoing_window", UInt),
        ("handle", UInt), ("delivery_count", UInt), ("link_credit", UInt), ("available", UInt), ("drain", bool),
        ("echo", bool), ("properties", _symbol_keys),
    ]),
    "transfer": (0x14, [
        ("handle", UInt), ("delivery_id", UInt), ("delivery_tag", bytes), ("message_format", UInt), ("settled", bool),
        ("more", bool), ("rcv_settle_mode", UByte), ("state", _same), ("resume", bool), ("aborted", bool),
        ("batchable", bool),
    ]),
    "disposition": (0x15, [
        ("role", bool), ("first", UInt), ("last", UInt), ("settled", bool), ("state", _same), ("batchable", bool),
    ]),
    "detach": (0x16, [("handle", UInt), ("closed", bool), ("error", _same)]),
    "end": (0x17, [("error", _same)]),
    "close": (0x18, [("error", _same)]),
    "error": (0x1D, [("condition", Symbol), ("description", str), ("info", _symbol_keys)]),
    "received": (0x23, [("section_number", UInt), ("section_offset", ULong)]),
    "accepted": (0x24, []),
    "rejected": (0x25, [("error", _same)]),
    "released": (0x26, []),
    "modified": (0x27, [
        ("delivery_failed", bool), ("undeliverable_here", bool), ("message_annotations", _symbol_keys),
    ]),
    "source": (0x28, [
        *_TERMINUS, ("distribution_mode", Symbol), ("filter", _symbol_keys), ("default_outcome", _same),
        ("outcomes", symbols), ("capabilities", symbols),
    ]),
    "target": (0x29, [*_TERMINUS, ("capabilities", symbols)]),
    "coordinator": (0x30, [("capabilities", symbols)]),
    "declare": (0x31, [("global_id", _same)]),
    "discharge": (0x32, [("txn_id", bytes), ("fail", bool)]),
    "declared": (0x33, [("txn_id", bytes)]),
    "transactional-state": (0x34, [("txn_id", bytes), ("outcome", _same)]),
    "sasl-mechanisms": (0x40, [("sasl_server_mechanisms", symbols)]),
    "sasl-init": (0x41, [("mechanism", Symbol), ("initial_response", bytes), ("hostname", str)]),
    "sasl-challenge": (0x42, [("challenge", bytes)]),
    "sasl-response": (0x43, [("response", bytes)]),
    "sasl-outcome": (0x44, [("code", UByte), ("additional_data", bytes)]),
}  # fmt: skip

_NAMES: dict[Any, str] = {}
for _name, (_code, _) in COMPOSITES.items():
    _NAMES[_code] = _name
    _NAMES[f"amqp:{_name}:list"] = _name


class Raw:
    """Octets put into a frame as they are."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets


def _octets(value: Any, kind: Any) -> bytes:
    if isinstance(value, Raw):
        return value.octets
    # Values that have a wire type of their own keep it, right or wrong.
    if value is None or type(value) in (UInt, ULong, UByte, UShort, Symbol, Described, Array):
        return encode(value)
    return encode(kind(value))


def composite(name: str, /, *, symbolic: bool = False, wide: bool = False, **fields: Any) -> Raw:
    """A described list, encoded. ``symbolic``: its descriptor is the symbol; ``wide``: a list32."""
    code, kinds = COMPOSITES[name]
    unknown = set(fields) - {field for field, _ in kinds}
    if unknown:
        raise TypeError(f"{name} has no field {', '.join(sorted(unknown))}")
    parts = [_octets(fields.get(field), kind) for field, kind in kinds]
    while parts and parts[-1] == b"\x40":
        parts.pop()
    descriptor = encode(Symbol(f"amqp:{name}:list") if symbolic else ULong(code))
    body = encode_list(parts)
    if wide:
        content = b"".join(parts)
        body = struct.pack(">BII", 0xD0, len(content) + 4, len(parts)) + content
    return Raw(b"\x00" + descriptor + body)


def wrap(body: bytes, channel: int = 0, kind: int = 0, *, offset: int = 2) -> bytes:
    """A frame around a body; ``offset`` is the data offset, in words, and the extended header is zeros."""
    return struct.pack(">IBBH", offset * 4 + len(body), offset, kind, channel) + bytes(offset * 4 - 8) + body


def write(
    name: str, /, channel: int = 0, payload: bytes = b"", *, symbolic: bool = False, wide: bool = False, **fields: Any
) -> bytes:
    """The octets of a frame."""
    body = composite(name, symbolic=symbolic, wide=wide, **fields).octets
    return wrap(body + payload, channel, 1 if name.startswith("sasl-") else 0)


@dataclass
class Frame:
    """A frame read back; ``name`` is ``header`` for a protocol header and ``empty`` for a heartbeat."""

    name: str
    channel: int = 0
    fields: dict[str, Any] = field(default_factory=dict)
    payload: bytes = b""
    octets: bytes = b""

    def __getattr__(self, name: str) -> Any:
        """The fields as attributes; those that were left out are ``None``."""
        kinds = COMPOSITES.get(self.__dict__["name"], (0, []))[1]
        if name in [field for field, _ in kinds]:
            return self.fields.get(name)
        raise AttributeError(name)

    @property
    def condition(self) -> str | None:
        """The condition of the error in the frame, where it has one."""
        error = self.fields.get("error")
        return None if error is None else str(error.fields["condition"])

    @property
    def description(self) -> str:
        """The description of the error in the frame."""
        error = self.fields.get("error")
        return "" if error is None else str(error.fields.get("description"))

    def __str__(self) -> str:
        if self.name == "header":
            return f"header {self.octets!r}"
        said = ", ".join(f"{key}={_short(value)}" for key, value in self.fields.items())
        load = f" + {len(self.payload)} octets" if self.payload else ""
        return f"[{self.channel}] {self.name}({said}){load}"


def _short(value: Any) -> str:
    if isinstance(value, Frame):
        return f"{value.name}({', '.join(f'{key}={_short(item)}' for key, item in value.fields.items())})"
    if isinstance(value, (bool, type(None), bytes, dict)):
        return repr(value)
    if isinstance(value, Array):
        return "[" + ", ".join(map(_short, value)) + "]"
    return str(value) if isinstance(value, int) else repr(str(value))


def _known(value: Any) -> Any:
    """Described values of known kinds become frames without a channel, all the way down."""
    if isinstance(value, Described) and isinstance(value.value, list):
        name = _NAMES.get(value.descriptor)
        if name is not None:
            return Frame(name, fields=_fields(name, value.value))
    return value


def _fields(name: str, values: list[Any]) -> dict[str, Any]:
    kinds = COMPOSITES[name][1]
    assert len(values) <= len(kinds), f"{name} has too many fields"
    return {kind[0]: _known(value) for kind, value in zip(kinds, values, strict=False) if value is not None}


def read(octets: bytes) -> list[Frame]:
    """All frames and headers in ``octets``, which must end with a whole one."""
    frames, pos = [], 0
    while pos < len(octets):
        if octets[pos : pos + 4] == b"AMQP":
            frames.append(Frame("header", octets=octets[pos : pos + 8]))
            pos += 8
            continue
        size, offset, kind, channel = struct.unpack_from(">IBBH", octets, pos)
        assert pos + size <= len(octets), "the octets end in the middle of a frame"
        whole = octets[pos : pos + size]
        pos += size
        body = whole[offset * 4 :]
        if not body:
            frames.append(Frame("empty", channel, octets=whole))
            continue
        value, end = decode(body, 0)
        name = _NAMES[value.descriptor]
        assert (kind == 1) == name.startswith("sasl-")
        frames.append(Frame(name, channel, _fields(name, value.value), body[end:], whole))
    return frames


def trace(octets: bytes, arrow: str = "->") -> str:
    """The frames in ``octets`` as lines to read."""
    return "\n".join(f"{arrow} {frame}" for frame in read(octets))
