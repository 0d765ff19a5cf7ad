"""What an arriving message asks of its queue: priority, time to live, delivery time, deliveries so far.

Only the header, the annotations and three fields of the properties are looked at; the octets are kept as they came.
Messages of one producer begin alike, so what a beginning says is remembered by its octets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jmsish.broker.order import History
from jmsish.broker.queues import Arrival
from jmsish.engine.arriving import Asked, asked_of
from jmsish.engine.codec import (
    SUBJECT,
    TO,
    bare_offset,
    message_annotations_at,
    property_at,
    split_header,
)
from jmsish.engine.decoding import DecodeError
from jmsish.engine.likeness import LEARNING, SAVED_AT_MOST, Likeness, likeness_of

DEFAULT_PRIORITY: Final = 4
HIGHEST_PRIORITY: Final = 9
_REMEMBERED_AT_MOST: Final = 1024
_LONGEST_REMEMBERED: Final = 256

LAST_SEQUENCE: Final = 0xFFFFFFFF
"""A group sequence of -1 ends its group: JMSXGroupSeq is an int, the field of AMQP a uint."""

LONGEST_BEGINNING: Final = 1 << 16
"""Octets of header and annotations. They are decoded in one piece, when the last frame of a message is there: 10 ms."""

_plain_beginnings: dict[bytes, int] = {}
"""Beginnings (header and annotations, in octets) that ask for nothing but a priority."""


def read(payload: bytes, now: float) -> int | Arrival:
    """The priority of a message that asks for nothing else, or all that it asks. DecodeError for broken sections."""
    bare = _bare_offset(payload)
    asked = asked_of(payload, bare)
    if asked is None:
        priority = _plain_beginnings.get(payload[:bare])
        if priority is not None:
            return priority
    return _read_in_full(payload, bare, asked or (None, None, None), now)


def _bare_offset(payload: bytes) -> int:
    bare = bare_offset(payload)
    if bare > LONGEST_BEGINNING:
        raise DecodeError(f"header and annotations of {bare} octets, where {LONGEST_BEGINNING} are the most", bare)
    return bare


class Intake:
    """Reads what comes on one link. Its messages are mostly alike: then they ask for the same."""

    __slots__ = ("_like", "_now", "_saved")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._like: Likeness | None = None
        self._saved = LEARNING

    def read(self, payload: bytes) -> int | Arrival:
        """As :func:`read`."""
        like = self._like
        if like is not None:
            head, _, id_end, middle, times_end, tail, _, _, priority = like
            if payload.startswith(head) and payload.startswith(middle, id_end) and payload.startswith(tail, times_end):
                if self._saved < SAVED_AT_MOST:
                    self._saved += 1
                return priority  # type: ignore[no-any-return]
        arrival = read(payload, self._now())
        self._saved += 1
        if self._saved > LEARNING and isinstance(arrival, int):
            self._saved -= LEARNING
            self._like = likeness_of(payload, bare_offset(payload), arrival) or like
        return arrival


def _read_in_full(payload: bytes, bare: int, asked: Asked, now: float) -> int | Arrival:
    expiry, name, sequence = asked
    header, rest = split_header(payload)
    annotations, _ = message_annotations_at(payload, rest)
    priority, ttl, count = DEFAULT_PRIORITY, 0, 0
    if header is not None:
        priority, ttl, count = min(header.priority, HIGHEST_PRIORITY), header.ttl or 0, header.delivery_count
    due = _delivery_time(annotations, now)
    group = (name, sequence == LAST_SEQUENCE) if name and isinstance(name, str) else None
    if not (ttl or count or due or expiry or group):
        _remember(payload[:bare], priority)
        return priority
    # "a message expiration time will be computed based on the time of arrival" (3.2.1); without a ttl, the sender's
    # own absolute time, which its clock may have set apart from ours.
    expires = now + ttl / 1000 if ttl else expiry / 1000 if isinstance(expiry, int) else 0.0
    history = History(count, expires) if expires or count else None
    return Arrival(payload, priority, history, due, group)


def _delivery_time(annotations: dict[str, object], now: float) -> float:
    """When the message is to become visible: 0 for at once. The time wins over the delay (M17, M18)."""
    at = annotations.get("x-opt-delivery-time")
    if isinstance(at, int):
        return at / 1000
    delay = annotations.get("x-opt-delivery-delay")
    return now + delay / 1000 if isinstance(delay, int) and delay > 0 else 0.0


def _remember(beginning: bytes, priority: int) -> None:
    if len(beginning) > _LONGEST_REMEMBERED:
        return
    if len(_plain_beginnings) >= _REMEMBERED_AT_MOST:
        _plain_beginnings.clear()
    _plain_beginnings[beginning] = priority


# x-opt-jms-dest: queue, topic, temporary queue, temporary topic (M23); x-opt-routing-type: multicast, anycast (M26).
_JMS_KINDS: Final = {0: "queue", 1: "topic", 2: "queue", 3: "topic"}
_ROUTING_KINDS: Final = {0: "topic", 1: "queue"}


def address_of(payload: bytes) -> tuple[str | None, str | None]:
    """Where a message on an anonymous link is to go, and which kind of node its sender means, if it says so."""
    bare = _bare_offset(payload)
    annotations, _ = message_annotations_at(payload, split_header(payload)[1])
    to = property_at(payload, bare, TO)
    return (to if isinstance(to, str) else None), _kind_in(annotations)


def _kind_in(annotations: dict[str, object]) -> str | None:
    routing = annotations.get("x-opt-routing-type")
    if isinstance(routing, int) and routing in _ROUTING_KINDS:
        return _ROUTING_KINDS[routing]
    kind = annotations.get("x-opt-jms-dest")
    if isinstance(kind, int):
        return _JMS_KINDS.get(kind)
    legacy = annotations.get("x-opt-to-type")
    names = {name.strip() for name in legacy.split(",")} if isinstance(legacy, str) else set()
    return "topic" if "topic" in names else "queue" if "queue" in names else None


def subject_of(payload: bytes) -> str:
    """The routing key of a message by itself: its subject, or the empty key."""
    subject = property_at(payload, bare_offset(payload), SUBJECT)
    return subject if isinstance(subject, str) else ""
