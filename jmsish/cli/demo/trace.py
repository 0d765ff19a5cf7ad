"""The life of each delivery, drawn as a timeline.

Pure, except that `TraceCollector` is a logging handler: the client core reports on the logger `jmsish.trace` at
DEBUG, with the fields of `TraceEvent` as attributes of the record. A lane is one message; time runs to the right,
one column per moment (events of different messages that happened in one stroke share it), and the line between two
signs says where the message was meanwhile.
"""

from __future__ import annotations

import logging
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

LOGGER = "jmsish.trace"


@dataclass(frozen=True)
class TraceEvent:
    """One event in the life of a message. `time` is in seconds; `count` is JMSXDeliveryCount where it is known,
    else 0.
    """

    time: float
    event: str
    message_id: str
    queue: str = ""
    consumer: str = ""
    delivery_id: int = -1
    count: int = 0


@dataclass(frozen=True)
class Sign:
    """How an event is drawn, and the line that follows it until the next one (its plain twin for terminals without
    UTF-8).
    """

    mark: str
    line: str
    plain_line: str
    meaning: str


QUEUE, BUFFER, HAND, GONE = "·", "─", "━", " "
_PLAIN = {QUEUE: ".", BUFFER: "-", HAND: "=", GONE: " "}


def _sign(mark: str, line: str, meaning: str) -> Sign:
    return Sign(mark, line, _PLAIN[line], meaning)


SIGNS: dict[str, Sign] = {
    "sent": _sign("s", QUEUE, "sent"),
    "prefetched": _sign("p", BUFFER, "prefetched, unread"),
    "handed_over": _sign("1", HAND, "handed over (the digit: which delivery)"),
    "enlisted": _sign("e", HAND, "enlisted in the transaction"),
    "committed": _sign("C", GONE, "committed"),
    "acknowledged": _sign("A", GONE, "acknowledged"),
    "rolled_back": _sign("X", QUEUE, "rolled back, counted"),
    "released": _sign("r", QUEUE, "released, not counted"),
    "modified": _sign("m", QUEUE, "given back, counted"),
    "lost": _sign("!", QUEUE, "its connection was cut"),
    "dead_lettered": _sign("D", GONE, "dead-lettered"),
}
_OTHER = _sign("?", QUEUE, "other")
COLOURS = {"X": "31;1", "D": "31;1", "!": "35;1", "C": "32;1", "A": "32;1", "r": "33", "m": "33", "s": "36", "p": "34"}
COLOURS |= dict.fromkeys("123456789+", "1")
HELD = ("prefetched", "handed_over", "enlisted")
LONGEST_NAME = 28
WIDEST_STEP = 3
RULER_STEP = 20


class TraceCollector(logging.Handler):
    """Keeps the events of some of the messages sent to `queue`, by their place (from 1), so that a long run stays
    small.
    """

    def __init__(self, queue: str, lanes: range) -> None:
        super().__init__(logging.DEBUG)
        self.queue = queue
        self.lanes = lanes
        self.events: list[TraceEvent] = []
        self._sent = 0
        self._kept: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        event = event_of(record)
        if event is None or event.queue not in ("", self.queue):
            return
        if event.event == "sent":
            self._sent += 1
            if self._sent in self.lanes:
                self._kept.add(event.message_id)
        if event.message_id in self._kept:
            self.events.append(event)


def completed(events: Sequence[TraceEvent], limit: int = 0) -> list[TraceEvent]:
    """The events with those that the client cannot tell.

    When a connection is cut, the client is told nothing of the deliveries it had; so a message that is prefetched again
    while it was still held was lost before, and so was everything else held at that time. And where the broker
    dead-letters (`limit`), the attempt that reaches the limit is the last.
    """
    held: dict[str, TraceEvent] = {}
    attempts: Counter[str] = Counter()
    told: list[TraceEvent] = []
    for event in events:
        if event.event == "prefetched" and event.message_id in held:
            for last in held.values():
                lost = replace(last, time=event.time, event="lost")
                told += with_end(lost, attempts, limit, is_attempt=last.event != "prefetched")
            held.clear()
        if event.event in HELD:
            held[event.message_id] = event
        else:
            held.pop(event.message_id, None)
        told += with_end(event, attempts, limit, is_attempt=event.event == "rolled_back")
    return told


def with_end(event: TraceEvent, attempts: Counter[str], limit: int, *, is_attempt: bool) -> list[TraceEvent]:
    """The event, and the dead-lettering that it brings about if it is one failed attempt too many."""
    attempts[event.message_id] += is_attempt
    if is_attempt and attempts[event.message_id] == limit:
        return [event, replace(event, event="dead_lettered")]
    return [event]


def event_of(record: logging.LogRecord) -> TraceEvent | None:
    """The event a log record tells, or None if it tells none."""
    fields: Mapping[str, object] = record.__dict__
    event, message_id = fields.get("event"), fields.get("message_id")
    if not isinstance(event, str) or not message_id:
        return None
    number, count = fields.get("delivery_id"), fields.get("count")
    return TraceEvent(
        time=record.created,
        event=event,
        message_id=str(message_id),
        queue=bare_name(fields.get("queue")),
        consumer=str(fields.get("consumer") or ""),
        delivery_id=number if isinstance(number, int) else -1,
        count=count if isinstance(count, int) else 0,
    )


def bare_name(queue: object) -> str:
    """A destination's name, whether it is given as a value, as `queue://name` or bare."""
    name = str(getattr(queue, "name", queue) or "")
    return name.partition("://")[2] or name


def columns(events: Sequence[TraceEvent]) -> list[int]:
    """The column of each event: a new one when the kind changes or the message already has an event in the present
    one.
    """
    placed: list[int] = []
    column, kind, present = -1, "", set[str]()
    for event in events:
        if event.event != kind or event.message_id in present:
            column, kind = column + 1, event.event
            present.clear()
        present.add(event.message_id)
        placed.append(column)
    return placed


def draw(
    events: Iterable[TraceEvent],
    labels: Mapping[str, str] | None = None,
    *,
    width: int = 100,
    plain: bool = False,
    colour: bool = False,
) -> str:
    """Draw the lanes of all messages in `events`, in blocks of the given width, with a legend below."""
    ordered = list(events)
    if not ordered:
        return "no events were traced"
    lanes = list(dict.fromkeys(event.message_id for event in ordered))
    names = {lane: (labels or {}).get(lane, lane)[-LONGEST_NAME:] for lane in lanes}
    margin = max(map(len, names.values()))
    room = max(width - margin - 3, 20)
    grid = _Grid(ordered, room, plain)
    bar = "|" if plain else "│"
    blocks = []
    for start in range(0, grid.width, room):
        rows = {lane: grid.row(lane)[start : start + room].rstrip() for lane in lanes}
        block = [
            f"{names[lane]:>{margin}} {bar} {coloured(row) if colour else row}" for lane, row in rows.items() if row
        ]
        if block:
            blocks.append("\n".join([grid.ruler(start, room, margin), *block]))
    return "\n\n".join([*blocks, legend(ordered, width=width, plain=plain)])


class _Grid:
    """Lanes as rows of characters over all columns; a short story is drawn at a wider step."""

    def __init__(self, events: Sequence[TraceEvent], room: int, plain: bool) -> None:
        self.plain = plain
        placed = columns(events)
        self.step = max(1, min(WIDEST_STEP, room // (placed[-1] + 1)))
        self.width = (placed[-1] + 1) * self.step
        self.times: dict[int, float] = {}
        self.lives: dict[str, list[tuple[int, TraceEvent]]] = {}
        for column, event in zip(placed, events, strict=True):
            self.times.setdefault(column, event.time - events[0].time)
            self.lives.setdefault(event.message_id, []).append((column * self.step, event))

    def row(self, lane: str) -> str:
        cells = [" "] * self.width
        life = self.lives[lane]
        ends = [column for column, _ in life[1:]] + [self.width]
        for (column, event), end in zip(life, ends, strict=True):
            sign = SIGNS.get(event.event, _OTHER)
            cells[column] = mark(event)
            for index in range(column + 1, end):
                cells[index] = sign.plain_line if self.plain else sign.line
        return "".join(cells)

    def ruler(self, start: int, room: int, margin: int) -> str:
        """Milliseconds since the first event, every twenty columns."""
        text = ""
        for column in range(start, min(start + room, self.width), RULER_STEP):
            text = text.ljust(column - start) + f"{self.times.get(column // self.step, 0.0) * 1000:.1f} ms"
        return " " * (margin + 3) + text


def coloured(row: str) -> str:
    """The row with its signs in colour (ANSI)."""
    return "".join(f"\x1b[{COLOURS[sign]}m{sign}\x1b[0m" if sign in COLOURS else sign for sign in row)


def mark(event: TraceEvent) -> str:
    """The sign of an event; a hand-over shows which delivery it was."""
    if event.event == "handed_over" and event.count:
        return str(event.count) if event.count < 10 else "+"
    return SIGNS.get(event.event, _OTHER).mark


def legend(events: Sequence[TraceEvent], *, width: int = 100, plain: bool = False) -> str:
    """The signs that occur, and the lines between them."""
    met = list(dict.fromkeys(event.event for event in events))
    known = [name for name in SIGNS if name in met]
    others = [name for name in met if name not in SIGNS]
    signs = [f"{SIGNS[name].mark} {SIGNS[name].meaning}" for name in known]
    signs += [f"{_OTHER.mark} {', '.join(others)}"] if others else []
    waits = [(QUEUE, "on the queue"), (BUFFER, "in a consumer's buffer"), (HAND, "in the application's hands")]
    lines = [f"{(_PLAIN[line] if plain else line) * 3} {meaning}" for line, meaning in waits]
    return "\n".join(textwrap.fill("; ".join(texts), width) for texts in (signs, lines))
