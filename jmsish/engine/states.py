"""Delivery states, outcomes and errors: the plain values of Part 3, 3.4 and Part 4, 4.5.

All are frozen. Each state has its octets in ``encoded``, made once, so that settling a million deliveries with one
object encodes nothing. A state of a kind not known here is an :class:`UnknownState` and travels back as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jmsish.types import Described

from .values import (
    NULL,
    DecodeError,
    decode,
    encode,
    encode_binary,
    encode_boolean,
    encode_described,
    encode_list,
    encode_map,
    encode_string,
    encode_symbol,
    encode_uint,
    encode_ulong,
)

UINT_MAX = 0xFFFFFFFF
ULONG_MAX = 0xFFFFFFFFFFFFFFFF

__all__ = [
    "ACCEPTED",
    "MODIFIED_FAILED",
    "MODIFIED_FAILED_UNDELIVERABLE",
    "RELEASED",
    "Accepted",
    "AmqpError",
    "Declared",
    "DeliveryState",
    "Modified",
    "Received",
    "Rejected",
    "Released",
    "TransactionalState",
    "UnknownState",
    "composite",
    "decode_state",
    "encode_fields",
    "error_of",
    "list_of",
    "number_field",
    "state_of",
    "typed_field",
]


def composite(code: int, *parts: bytes) -> bytes:
    """A described list; nulls at its end are left out."""
    count = len(parts)
    while count and parts[count - 1] == NULL:
        count -= 1
    return encode_described(code, encode_list(parts[:count]))


_set = object.__setattr__


def _octets() -> Any:
    return field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class AmqpError:
    """An error of Part 2, 2.8.14."""

    condition: str
    description: str | None = None
    info: Mapping[Any, Any] | None = None
    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        octets = composite(
            0x1D,
            encode_symbol(self.condition),
            NULL if self.description is None else encode_string(self.description),
            NULL if self.info is None else encode_fields(self.info),
        )
        _set(self, "encoded", octets)

    def __str__(self) -> str:
        return f"{self.condition}: {self.description}" if self.description else self.condition

    def cut(self, room: int) -> AmqpError:
        """The same in so many octets at most: the information goes first, then the end of the description."""
        if len(self.encoded) <= room:
            return self
        text = (self.description or "").encode()[: max(room - len(self.condition) - 16, 0)].decode("utf-8", "ignore")
        return AmqpError(self.condition[: room - 16], text or None)


def encode_fields(fields: Mapping[Any, Any]) -> bytes:
    """A map whose keys are symbols, whatever kind of text they are here."""
    parts: list[bytes] = []
    for key, value in fields.items():
        parts.append(encode_symbol(key) if isinstance(key, str) else encode(key))
        parts.append(encode(value))
    return encode_map(parts)


class DeliveryState:
    """Any state of a delivery; ``encoded`` holds its octets."""

    __slots__ = ()
    encoded: bytes


@dataclass(frozen=True, slots=True)
class Accepted(DeliveryState):
    """The message was processed: it may go."""

    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        _set(self, "encoded", b"\x00\x53\x24\x45")


@dataclass(frozen=True, slots=True)
class Released(DeliveryState):
    """The message was not processed, and nothing was tried."""

    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        _set(self, "encoded", b"\x00\x53\x26\x45")


@dataclass(frozen=True, slots=True)
class Rejected(DeliveryState):
    """The message is invalid and cannot be processed."""

    error: AmqpError | None = None
    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        _set(self, "encoded", composite(0x25, NULL if self.error is None else self.error.encoded))


@dataclass(frozen=True, slots=True)
class Modified(DeliveryState):
    """The message was not processed, and is changed where it is kept."""

    delivery_failed: bool = False
    undeliverable_here: bool = False
    message_annotations: Mapping[Any, Any] | None = None
    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        annotations = self.message_annotations
        octets = composite(
            0x27,
            encode_boolean(True) if self.delivery_failed else NULL,
            encode_boolean(True) if self.undeliverable_here else NULL,
            NULL if annotations is None else encode_fields(annotations),
        )
        _set(self, "encoded", octets)


@dataclass(frozen=True, slots=True)
class Received(DeliveryState):
    """How far a partial delivery has got: no outcome."""

    section_number: int
    section_offset: int
    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        octets = composite(0x23, encode_uint(self.section_number), encode_ulong(self.section_offset))
        _set(self, "encoded", octets)


@dataclass(frozen=True, slots=True)
class Declared(DeliveryState):
    """The outcome of a declare: the transaction exists."""

    txn_id: bytes
    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        _set(self, "encoded", composite(0x33, encode_binary(self.txn_id)))


@dataclass(frozen=True, slots=True)
class TransactionalState(DeliveryState):
    """The delivery, or its outcome, is part of a transaction."""

    txn_id: bytes
    outcome: DeliveryState | None = None
    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        outcome = NULL if self.outcome is None else self.outcome.encoded
        _set(self, "encoded", composite(0x34, encode_binary(self.txn_id), outcome))


@dataclass(frozen=True, slots=True)
class UnknownState(DeliveryState):
    """A state of no known kind: its descriptor (``None`` where the value was a bare one) and its value."""

    descriptor: Any
    value: Any
    encoded: bytes = _octets()

    def __post_init__(self) -> None:
        value = self.value if self.descriptor is None else Described(self.descriptor, self.value)
        _set(self, "encoded", encode(value))


ACCEPTED = Accepted()
RELEASED = Released()
MODIFIED_FAILED = Modified(delivery_failed=True)
MODIFIED_FAILED_UNDELIVERABLE = Modified(delivery_failed=True, undeliverable_here=True)


# -- decoding ----------------------------------------------------------------------------------------------------------


def typed_field(
    fields: list[Any], index: int, kind: type | tuple[type, ...], name: str, mandatory: bool = False
) -> Any:
    value = fields[index] if index < len(fields) else None
    if value is None:
        if mandatory:
            raise DecodeError(f"the mandatory field {name} is missing", 0)
        return None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise DecodeError(f"the field {name} cannot be a {type(value).__name__}", 0)
    return value


def number_field(
    fields: list[Any], index: int, name: str, limit: int = UINT_MAX, *, mandatory: bool = False
) -> int | None:
    """A field that is a number from 0 to ``limit``, whatever the width that it came in."""
    value = typed_field(fields, index, int, name, mandatory)
    if value is None:
        return None
    if not 0 <= value <= limit:
        raise DecodeError(f"the field {name} cannot be {int(value)}", 0)
    return int(value)


def error_of(value: Any) -> AmqpError | None:
    """The error in a decoded field; DecodeError when it is something else."""
    if value is None:
        return None
    if not isinstance(value, Described) or value.descriptor not in (0x1D, "amqp:error:list"):
        raise DecodeError("an error field that holds no error", 0)
    fields = list_of(value, "error")
    condition = typed_field(fields, 0, str, "error.condition", mandatory=True)
    try:
        return AmqpError(
            str(condition), typed_field(fields, 1, str, "error.description"), typed_field(fields, 2, dict, "error.info")
        )
    except UnicodeEncodeError:
        raise DecodeError("the field error.condition is no symbol", 0) from None


def list_of(value: Described, name: str) -> list[Any]:
    fields = value.value
    if not isinstance(fields, list):
        raise DecodeError(f"{name} is described, but no list", 0)
    return fields


def _rejected(fields: list[Any]) -> DeliveryState:
    return Rejected(error_of(fields[0] if fields else None))


def _modified(fields: list[Any]) -> DeliveryState:
    failed = typed_field(fields, 0, bool, "modified.delivery-failed")
    undeliverable = typed_field(fields, 1, bool, "modified.undeliverable-here")
    annotations = typed_field(fields, 2, dict, "modified.message-annotations")
    if annotations is None:
        if failed:
            return MODIFIED_FAILED_UNDELIVERABLE if undeliverable else MODIFIED_FAILED
    return Modified(bool(failed), bool(undeliverable), annotations)


def _received(fields: list[Any]) -> DeliveryState:
    number = number_field(fields, 0, "received.section-number", mandatory=True)
    offset = number_field(fields, 1, "received.section-offset", ULONG_MAX, mandatory=True)
    return Received(number or 0, offset or 0)


def _transactional(fields: list[Any]) -> DeliveryState:
    txn_id = typed_field(fields, 0, bytes, "transactional-state.txn-id", mandatory=True)
    outcome = fields[1] if len(fields) > 1 else None
    return TransactionalState(txn_id, None if outcome is None else state_of(outcome))


def _declared(fields: list[Any]) -> DeliveryState:
    return Declared(typed_field(fields, 0, bytes, "declared.txn-id", mandatory=True))


# A symbolic descriptor means the same as its number (Part 1, 1.5).
_STATES: dict[Any, Callable[[list[Any]], DeliveryState]] = {
    0x23: _received,
    "amqp:received:list": _received,
    0x24: lambda fields: ACCEPTED,
    "amqp:accepted:list": lambda fields: ACCEPTED,
    0x25: _rejected,
    "amqp:rejected:list": _rejected,
    0x26: lambda fields: RELEASED,
    "amqp:released:list": lambda fields: RELEASED,
    0x27: _modified,
    "amqp:modified:list": _modified,
    0x33: _declared,
    "amqp:declared:list": _declared,
    0x34: _transactional,
    "amqp:transactional-state:list": _transactional,
}


def state_of(value: Any) -> DeliveryState:
    """The state in a decoded value that is not null."""
    if not isinstance(value, Described):
        return UnknownState(None, value)
    descriptor = value.descriptor
    build = _STATES.get(descriptor) if isinstance(descriptor, (int, str)) else None
    if build is None:
        return UnknownState(descriptor, value.value)
    return build(list_of(value, "a delivery state"))


# States repeat: one transaction's on each of its transfers, accepted on nearly everything else. Keyed by octets.
_KNOWN: dict[bytes, DeliveryState] = {}
_KNOWN_LIMIT = 512


def decode_state(buf: bytes, pos: int) -> tuple[DeliveryState, int]:
    """The state at ``pos`` and the offset behind it."""
    code = buf[pos + 3]
    end = pos + 4 if code == 0x45 else pos + 5 + buf[pos + 4]
    if buf[pos + 1] != 0x53 or (code != 0x45 and code != 0xC0):
        value, end = decode(buf, pos)
        return state_of(value), end
    octets = buf[pos:end]
    state = _KNOWN.get(octets)
    if state is None:
        value, end = decode(buf, pos)
        state = state_of(value)
        if len(_KNOWN) >= _KNOWN_LIMIT:
            _KNOWN.clear()
        if len(octets) <= 80:
            _KNOWN[octets] = state
    return state, end
