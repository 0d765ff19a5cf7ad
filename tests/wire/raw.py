"""A client that is nothing but frames: it sends any octets, expects frames by pattern, and shows the talk if one fails.

The line below it is one of two: a broker in this memory (`MemoryLine`), fed whole writes or one octet at a time, or a
socket to any broker (`SocketLine`). A pattern names some fields of a frame::

    peer.expect("disposition", role=RECEIVER, first=0, settled=True, state="accepted")
    peer.expect("detach", error=error("amqp:not-found"))
    peer.expect("transfer", state=like("transactional-state", txn_id=txn), payload=...)

`None` wants the field absent, `...` wants it there, a function is asked, a string is compared with the name of a
described value. What is false may as well be left out.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from jmsish.broker import Broker
from jmsish.engine.values import DecodeError
from tests.relay import undelayed

from .frames import Frame, read, write

SOCKET_PATIENCE = 5.0
"""Seconds in which a broker behind a socket has to say what is expected."""
SOCKET_QUIET = 0.2
"""Seconds without a word that count as silence."""

Pattern = Callable[[Any], bool]


class Line(Protocol):
    def write(self, octets: bytes) -> None: ...

    def read(self, *, patient: bool = True) -> bytes | None:
        """What came; nothing (`b""`) at the end of the line, `None` where nothing comes any more."""

    def drop(self) -> None:
        """Cut the line without a word."""

    def advance(self, seconds: float) -> None:
        """Let time pass, where it is ours to pass."""


class MemoryLine:
    """A connection of a broker in this memory."""

    def __init__(self, broker: Broker, *, octet_by_octet: bool = False, trusted: bool = False) -> None:
        self._broker = broker
        self._connection = broker.accept(trusted=trusted, peer="memory")
        self._piece = 1 if octet_by_octet else 1 << 30
        self._now = 1000.0
        self._connection.tick(self._now)

    def write(self, octets: bytes) -> None:
        for start in range(0, len(octets), self._piece):
            if self._connection.closed:
                return
            self._connection.receive(octets[start : start + self._piece])
            self._broker.step()

    def read(self, *, patient: bool = True) -> bytes | None:
        self._broker.step()
        return self._connection.take_output() or (b"" if self._connection.closed else None)

    def drop(self) -> None:
        self._connection.receive_eof()
        self._broker.step()

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._connection.tick(self._now)
        self._broker.step()


class SocketLine:
    """A connection over TCP."""

    def __init__(self, host: str, port: int, patience: float = SOCKET_PATIENCE) -> None:
        self._patience = patience
        self._socket = undelayed(socket.create_connection((host, port), timeout=patience))

    def write(self, octets: bytes) -> None:
        try:
            self._socket.sendall(octets)
        except (BrokenPipeError, ConnectionResetError):
            pass  # Whoever expects an answer sees the end of the line.

    def read(self, *, patient: bool = True) -> bytes | None:
        self._socket.settimeout(self._patience if patient else SOCKET_QUIET)
        try:
            return self._socket.recv(1 << 16)
        except TimeoutError:
            return None
        except OSError:
            return b""

    def drop(self) -> None:
        self._socket.close()

    def advance(self, seconds: float) -> None:
        """It passes by itself."""


class RawPeer:
    """One end of a connection, by its frames."""

    def __init__(self, line: Line, name: str = "") -> None:
        self.line = line
        self.name = name
        self.over = False
        """The line has ended."""
        self._talk: list[str] = []
        self._frames: deque[Frame] = deque()
        self._rest = b""

    # -- saying --------------------------------------------------------------------------------------------------------

    def send(self, *octets: bytes) -> None:
        """All of it in one write."""
        for each in octets:
            self._note("->", each)
        self.line.write(b"".join(octets))

    def say(self, name: str, /, channel: int = 0, payload: bytes = b"", **fields: Any) -> None:
        """One frame."""
        self.send(write(name, channel, payload, **fields))

    # -- hearing -------------------------------------------------------------------------------------------------------

    def hear(self, *, patient: bool = True) -> Frame | None:
        """The next frame or header; `None` at the end of the line, or where nothing comes."""
        while not self._frames and not self.over:
            octets = self.line.read(patient=patient)
            if octets is None:
                return None
            self.over = not octets
            whole, self._rest = split(self._rest + octets)
            self._note("<-", whole)
            self._frames.extend(frame for frame in read(whole))
        return self._frames.popleft() if self._frames else None

    def expect(self, *names: str, but: tuple[str, ...] = (), **pattern: Any) -> Frame:
        """The next frame, of one of these names and of the pattern; heartbeats, and those in `but`, are passed over."""
        frame = self.hear()
        while frame is not None and self.passes_over(frame, names, but, pattern):
            frame = self.hear()
        if frame is None:
            self.fail(f"{' or '.join(names)} was expected, and {'the line ended' if self.over else 'nothing came'}")
        if frame.name not in names:
            self.fail(f"{' or '.join(names)} was expected, not {frame}")
        for field, wanted in pattern.items():
            actual = getattr(frame, field) if field in ("payload", "octets", "channel") else frame.fields.get(field)
            if not matches(actual, wanted):
                self.fail(f"{field} of {frame} should be {wanted}")
        return frame

    def passes_over(self, frame: Frame, names: tuple[str, ...], but: tuple[str, ...], pattern: dict[str, Any]) -> bool:
        return frame.name in ("empty", *but) and frame.name not in names

    def expect_end(self) -> None:
        """The line ends, and nothing is said before."""
        frame = self.hear()
        while frame is not None and frame.name == "empty":
            frame = self.hear()
        if frame is not None or not self.over:
            self.fail(f"the end of the line was expected, not {frame or 'silence'}")

    def expect_refusal(self, *conditions: str, at: tuple[str, ...] = ("detach", "end", "close")) -> Frame:
        """An error, at whatever level, before which only flows and outcomes come. A socket may just end (2.4.1)."""
        frame = self.expect(*at, but=("flow", "disposition", "open"))
        if conditions and frame.condition not in conditions:
            self.fail(f"{' or '.join(conditions)} was expected, not {frame.condition}: {frame.description}")
        return frame

    def quiet(self) -> None:
        """Nothing is said."""
        frame = self.hear(patient=False)
        while frame is not None and frame.name == "empty":
            frame = self.hear(patient=False)
        if frame is not None:
            self.fail(f"silence was expected, not {frame}")

    def fail(self, reason: str) -> NoReturn:
        raise AssertionError("\n  ".join([f"{self.name}: {reason}", *self._talk]))

    def _note(self, arrow: str, octets: bytes) -> None:
        try:
            self._talk += [f"{arrow} {frame}" for frame in read(octets)]
        except (DecodeError, KeyError, AssertionError, struct.error):
            self._talk.append(f"{arrow} {octets!r}")


def split(octets: bytes) -> tuple[bytes, bytes]:
    """What is whole, and the rest."""
    end = 0
    while end + 8 <= len(octets):
        size = 8 if octets[end : end + 4] == b"AMQP" else struct.unpack_from(">I", octets, end)[0]
        if end + size > len(octets):
            break
        end += max(size, 8)
    return octets[:end], octets[end:]


# -- patterns ----------------------------------------------------------------------------------------------------------


def matches(actual: Any, wanted: Any) -> bool:
    if wanted is ...:
        return actual is not None
    if callable(wanted):
        return bool(wanted(actual))
    if wanted is False:
        return actual is None or actual is False
    if isinstance(actual, Frame) and isinstance(wanted, str):
        return actual.name == wanted
    return bool(actual == wanted)


class like:  # noqa: N801 - reads as a word of the pattern
    """A described value of that name, with these fields."""

    def __init__(self, name: str, /, **fields: Any) -> None:
        self.name, self.fields = name, fields

    def __call__(self, actual: Any) -> bool:
        if not isinstance(actual, Frame) or actual.name != self.name:
            return False
        return all(matches(actual.fields.get(field), wanted) for field, wanted in self.fields.items())

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.fields.items())})"


class one_of:  # noqa: N801 - likewise
    """Any of these."""

    def __init__(self, *choices: Any) -> None:
        self.choices = choices

    def __call__(self, actual: Any) -> bool:
        return any(matches(actual, choice) for choice in self.choices)

    def __repr__(self) -> str:
        return " or ".join(map(str, self.choices))


def error(*conditions: str, **fields: Any) -> Pattern:
    """An error with one of these conditions, or with any where none is named."""
    return like("error", condition=one_of(*conditions) if conditions else ..., **fields)
