"""Frames as lines that a person can read: the frame trace.

Theory of operation.  A :class:`FrameReader` is fed the octets of one direction, cut anywhere, and gives a
:class:`FrameLine` for each frame and protocol header in them, with the names that the standard gives to performatives,
fields and states.  It reads by itself, apart from the engine, so that it shows also what the engine refuses; what it
cannot read it says, and never raises.

Nobody pays for a trace who has none: :func:`engine_kind` is the plain :class:`Engine` unless somebody watches, and
:class:`TracedEngine`, which shows its octets on their way in and out, if somebody does.

What is secret is not shown: the responses of SASL, and the payload of what goes to the node ``$cbs``, which are tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from struct import Struct
from struct import error as StructError
from typing import Any

from jmsish.types import Described

from .decoding import DecodeError, decode
from .engine import Engine
from .frames import AMQP_HEADER, SASL_HEADER, name_foreign_protocol
from .trace_text import code_of, control_text, fields_text, name_of

__all__ = ["IN", "OUT", "FrameLine", "FrameReader", "TracedEngine", "engine_kind", "watch"]

OUT, IN = "->", "<-"
"""Directions, as the engine's owner sees them."""

LONGEST_FRAME = 1 << 28
"""What announces more is no frame: from there on the octets are not read."""

_read_header = Struct(">IBBH").unpack_from
_ATTACH, _TRANSFER, _DETACH = 0x12, 0x14, 0x16
_SECRET = frozenset((0x41, 0x42, 0x43, 0x44))
"""The SASL frames that hold what proves an identity: all but the list of mechanisms."""


@dataclass(frozen=True, slots=True)
class FrameLine:
    """One frame: the channel (``None`` for a header and for SASL), the performative, its fields, its octets."""

    channel: int | None
    performative: str
    fields: str
    octets: bytes
    """As they came; those of a frame with a secret end before it."""

    def __str__(self) -> str:
        place = "" if self.channel is None else f"ch {self.channel} "
        return f"{place}{self.performative} {self.fields}".rstrip()


class FrameReader:
    """Reads the frames of one direction."""

    def __init__(self) -> None:
        self._rest = b""
        self._lost = False
        self._secret_links: set[tuple[int, int]] = set()

    def feed(self, octets: bytes) -> Iterator[FrameLine]:
        """The frames that are whole with these octets."""
        data = self._rest + octets if self._rest else octets
        pos = 0
        while not self._lost and len(data) - pos >= 8:
            if data[pos : pos + 4] == b"AMQP":
                end = pos + 8
                yield FrameLine(None, "header", _header_name(data[pos:end]), data[pos:end])
            else:
                size = _read_header(data, pos)[0]
                if not 8 <= size <= LONGEST_FRAME:
                    self._lost = True
                    text = f"{len(data) - pos} octets that are no frame ({name_foreign_protocol(data[pos : pos + 8])})"
                    yield FrameLine(None, "unreadable:", text, data[pos : pos + 64])
                    break
                end = pos + size
                if end > len(data):
                    break
                yield self._read(data[pos:end])
            pos = end
        self._rest = b"" if self._lost else data[pos:]

    def _read(self, frame: bytes) -> FrameLine:
        size, offset, kind, channel = _read_header(frame, 0)
        if kind == 0 and size == offset * 4:
            return FrameLine(channel, "empty", "", frame)
        try:
            described, end = decode(frame, offset * 4)
            code, fields = code_of(described.descriptor), described.value
            name = name_of(code)
            if kind == 1:
                shown = frame[: offset * 4] if code in _SECRET else frame
                return FrameLine(None, name, fields_text(code, fields, secret=code in _SECRET), shown)
            text = fields_text(code, fields)
            if code == _TRANSFER:
                hidden = (channel, fields[0]) in self._secret_links
                text += _payload_text(frame[end:], hidden)
                return FrameLine(channel, name, text, frame[:end] if hidden else frame)
            self._note_link(channel, code, fields)
            return FrameLine(channel, name, text, frame)
        except (DecodeError, IndexError, AttributeError, TypeError, ValueError, StructError) as fault:
            return FrameLine(channel, "unreadable:", f"a frame of {size} octets: {fault}", frame)

    def _note_link(self, channel: int, code: int, fields: list[Any]) -> None:
        """A sender of ``$cbs`` is remembered, for what it sends are tokens."""
        if code == _ATTACH:
            target = fields[6] if len(fields) > 6 else None
            address = target.value[0] if isinstance(target, Described) and target.value else None
            if not fields[2] and isinstance(address, str) and address.endswith("$cbs"):
                self._secret_links.add((channel, fields[1]))
        elif code == _DETACH:
            self._secret_links.discard((channel, fields[0]))


def _header_name(octets: bytes) -> str:
    known = {AMQP_HEADER: "AMQP 1.0", SASL_HEADER: "AMQP 1.0 with SASL"}
    return known.get(octets) or name_foreign_protocol(octets)


def _payload_text(payload: bytes, hidden: bool) -> str:
    if hidden:
        return f" payload=({len(payload)} octets, not shown)"
    control = control_text(payload)
    return f" payload=({len(payload)} octets{', ' + control if control else ''})"


# -- who watches -------------------------------------------------------------------------------------------------------

Saw = Callable[[str, bytes], None]
"""Is given a direction and octets."""

_watch: Callable[[str], Saw] | None = None
_numbers = count(1)


def watch(begin: Callable[[str], Saw] | None) -> None:
    """From now on ``begin`` is called with the name of each new engine, and what it gives with all its octets.

    Both are called by the engine's owner and must not wait. ``None`` ends the watching of new engines.
    """
    global _watch
    _watch = begin


class TracedEngine(Engine):
    """An engine whose octets are seen."""

    def __init__(self, *, server: bool, **settings: Any) -> None:
        super().__init__(server=server, **settings)
        assert _watch is not None
        self._saw = _watch(f"{'broker' if server else 'client'}-{next(_numbers)}")

    def receive(self, data: bytes) -> None:
        self._saw(IN, bytes(data))
        super().receive(data)

    def take_output(self) -> bytes:
        octets = super().take_output()
        if octets:
            self._saw(OUT, octets)
        return octets


def engine_kind() -> type[Engine]:
    """The class of new engines: the plain one where nobody watches."""
    return Engine if _watch is None else TracedEngine
