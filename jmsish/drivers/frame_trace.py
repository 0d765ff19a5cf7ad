"""The frame trace of ``JMSISH_TRACE``: what passes between client and broker, on the logger ``jmsish.frames``.

``JMSISH_TRACE=frm`` gives a line for each frame, ``JMSISH_TRACE=raw`` its octets below it. Where nobody has set up
logging, the lines go to standard error.

Theory of operation.  The owner of an engine, who must not wait, puts what it saw into a queue and goes on; a thread of
the trace reads it in the same order, makes the lines, and logs them with the time at which it was seen. So neither a
slow terminal nor a logging handler that itself sends messages holds up a connection, and the lines of two ends in one
process stand in the order of events. :func:`flush` waits until all has been told; at the end of the program it is done
by itself.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import weakref
from queue import SimpleQueue
from time import time
from typing import Any

from jmsish.drivers.telling import began
from jmsish.engine.frame_trace import FrameLine, FrameReader, Saw, watch

__all__ = ["MODES", "begin", "end", "flush", "follow_environment"]

log = logging.getLogger("jmsish.frames")

VARIABLE = "JMSISH_TRACE"
MODES = ("frm", "raw")
PATIENCE = 5.0
"""Seconds that the end of the program waits for the last lines."""


BEFORE_FORK = 1.0
"""Seconds that a fork waits for what was seen to be told."""


_traces: weakref.WeakSet[_Trace] = weakref.WeakSet()
"""All there are: a connection goes on with the one it began with."""


class _Trace:
    """Tells what it is given, in a thread of its own."""

    def __init__(self, raw: bool) -> None:
        self._raw = raw
        self._renew()
        self._thread: threading.Thread | None = None
        _traces.add(self)

    def _renew(self) -> None:
        self._seen: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
        self._starting = threading.Lock()
        self._telling = threading.Lock()
        """Held over each telling, and over a fork: a child would wait for ever for a terminal just written to."""
        self._forking = 0
        """The thread that holds it over a fork."""
        self._process = 0
        """In which the thread runs: a fork leaves it behind."""

    def follow(self, name: str) -> Saw:
        """The eyes for one engine."""
        readers = {"->": FrameReader(), "<-": FrameReader()}

        def saw(direction: str, octets: bytes) -> None:
            if self._process != os.getpid():
                self._start()
            self._seen.put((name, direction, octets, time(), readers[direction]))

        return saw

    def _start(self) -> None:
        with self._starting:
            if self._process != os.getpid():
                thread = began(log, self._run, "jmsish frame trace", self._seen)
                if thread is not None:
                    self._thread, self._process = thread, os.getpid()

    def flush(self, timeout: float) -> None:
        """Wait until what was seen so far is told."""
        if self._process == os.getpid():
            told = threading.Event()
            self._seen.put((told,))
            told.wait(timeout)

    def stop(self, timeout: float) -> None:
        """Tell what was seen so far, and end the thread; it begins again with what is seen after that."""
        with self._starting:
            thread, process, self._process = self._thread, self._process, 0
            told, self._seen = self._seen, SimpleQueue()  # the next thread reads none of what is this one's
        if thread is not None and process == os.getpid():
            told.put(())
            thread.join(timeout)

    def _run(self, queue: SimpleQueue[tuple[Any, ...]]) -> None:
        while seen := queue.get():
            if len(seen) == 1:
                seen[0].set()
                continue
            name, direction, octets, at, reader = seen
            with self._telling:
                try:
                    for line in reader.feed(octets):
                        tell(name, direction, line, at, self._raw)
                except Exception:
                    pass  # a logging handler of the program's fails, so there is nobody to tell

    def before_fork(self) -> None:
        """Tell what was seen, and nothing until the fork is over; a terminal that takes nothing is not waited for."""
        if threading.current_thread() is self._thread:
            return  # a logging handler forks: what it writes to is its own affair
        self.flush(BEFORE_FORK)
        if self._telling.acquire(timeout=BEFORE_FORK):
            self._forking = threading.get_ident()

    def after_fork(self) -> None:
        """In the parent."""
        if self._forking == threading.get_ident():
            self._forking = 0
            self._telling.release()

    def disown(self) -> None:
        """In the child: its own lines are told by a thread of its own. Who held a lock, or was reading, is not here."""
        self._renew()
        self._thread, self._process = None, 0

    def fall_silent(self, timeout: float) -> None:
        """Tell what was seen so far, and nothing more.

        A daemon thread that is stopped for good while it writes to a terminal leaves it locked, and a program that then
        ends cannot write its own last words there.
        """
        self.flush(timeout)
        self._telling.acquire(timeout=timeout)


def tell(name: str, direction: str, line: FrameLine, at: float, raw: bool) -> None:
    """Log one frame, as of the time ``at``."""
    extra = {"connection": name, "direction": direction, "channel": line.channel, "performative": line.performative}
    text = f"{name} {direction} {line}"
    if raw:
        text += "".join("\n" + row for row in dump(line.octets))
    record = log.makeRecord(log.name, logging.DEBUG, "", 0, text, (), None, "", extra)
    record.created, record.msecs = at, (at - int(at)) * 1000
    log.handle(record)


def dump(octets: bytes) -> list[str]:
    """Octets as lines of sixteen: offset, hexadecimal, ASCII."""
    rows = []
    for start in range(0, len(octets), 16):
        row = octets[start : start + 16]
        shown = "".join(chr(octet) if 32 <= octet < 127 else "." for octet in row)
        rows.append(f"    {start:06x}  {row.hex(' '):<47}  {shown}")
    return rows


_current: _Trace | None = None


def _before_fork() -> None:
    for trace in list(_traces):
        trace.before_fork()


def _after_fork() -> None:
    for trace in list(_traces):
        trace.after_fork()


def _in_child() -> None:
    for trace in list(_traces):
        trace.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def begin(mode: str = "frm") -> None:
    """Trace the frames of the connections that are made from now on, at both ends in this process.

    Raises `ValueError` for a mode that is neither ``frm`` nor ``raw``.
    """
    global _current
    if mode not in MODES:
        raise ValueError(f"{mode!r} is no kind of trace: {' or '.join(MODES)}")
    log.setLevel(logging.DEBUG)
    if not log.hasHandlers():
        terminal = logging.StreamHandler(sys.stderr)
        terminal.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(message)s", "%H:%M:%S"))
        log.addHandler(terminal)
    _current = _Trace(mode == "raw")
    watch(_current.follow)


def end() -> None:
    """Trace no further connections; returns when what was seen so far is told."""
    watch(None)
    if _current is not None:
        _current.stop(PATIENCE)


def flush(timeout: float = PATIENCE) -> None:
    """Wait until every frame seen so far has been logged, at most ``timeout`` seconds."""
    if _current is not None:
        _current.flush(timeout)


def _fall_silent() -> None:
    """At the end of the program."""
    if _current is not None:
        _current.fall_silent(PATIENCE)


def follow_environment() -> None:
    """Begin if the variable says so; a word in it that is no kind of trace is told in a warning."""
    words = [word.strip().lower() for word in os.environ.get(VARIABLE, "").split(",") if word.strip()]
    known = [word for word in words if word in MODES]
    if len(known) < len(words):
        log.warning("%s=%s: a trace is %s", VARIABLE, os.environ[VARIABLE], " or ".join(MODES))
    if known:
        begin("raw" if "raw" in known else "frm")
        atexit.register(_fall_silent)
