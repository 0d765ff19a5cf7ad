"""Outcomes, termini and transaction controls: one door to the plain values that travel in performatives.

The values themselves live in :mod:`~jmsish.engine.states` (delivery states and errors) and
:mod:`~jmsish.engine.termini` (sources and targets); the controls of Part 4 are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jmsish.types import Described

from .states import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    Accepted,
    AmqpError,
    Declared,
    DeliveryState,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
    UnknownState,
    composite,
    list_of,
    typed_field,
)
from .termini import Coordinator, Source, Target
from .values import NULL, DecodeError, decode, encode, encode_binary, encode_boolean

__all__ = [
    "ACCEPTED",
    "MODIFIED_FAILED",
    "MODIFIED_FAILED_UNDELIVERABLE",
    "RELEASED",
    "Accepted",
    "AmqpError",
    "Coordinator",
    "Declare",
    "Declared",
    "DecodeError",
    "DeliveryState",
    "Discharge",
    "Modified",
    "Received",
    "Rejected",
    "Released",
    "Source",
    "Target",
    "TransactionalState",
    "UnknownState",
    "decode_control",
    "encode_control",
]


@dataclass(frozen=True)
class Declare:
    """The body of a control message that begins a transaction."""

    global_id: Any = None


@dataclass(frozen=True)
class Discharge:
    """The body of a control message that ends one: ``fail`` rolls back."""

    txn_id: bytes
    fail: bool = False


_AMQP_VALUE = b"\x00\x53\x77"


def encode_control(command: Declare | Discharge) -> bytes:
    """The message that carries a declare or a discharge (Part 4, 4.2, 4.3: the single amqp-value section)."""
    if isinstance(command, Declare):
        global_id = NULL if command.global_id is None else encode(command.global_id)
        return _AMQP_VALUE + composite(0x31, global_id)
    return _AMQP_VALUE + composite(0x32, encode_binary(command.txn_id), encode_boolean(command.fail))


_SECTIONS: dict[Any, int] = {
    name: code
    for code, text in enumerate(
        (
            "amqp:header:list", "amqp:delivery-annotations:map", "amqp:message-annotations:map",
            "amqp:properties:list", "amqp:application-properties:map", "amqp:data:binary",
            "amqp:amqp-sequence:list", "amqp:amqp-value:*", "amqp:footer:map",
        ),
        0x70,
    )
    for name in (code, text)
}  # fmt: skip


CONTROL_LIMIT = 1 << 16
"""Octets of a control message, of which a hundred are wanted: it is decoded in one piece."""


def decode_control(payload: bytes) -> Declare | Discharge:
    """The declare or discharge in a control message; other sections are passed over (T3). DecodeError otherwise."""
    pos, bodies = 0, []
    if len(payload) > CONTROL_LIMIT:
        raise DecodeError(f"a control message of {len(payload)} octets, where {CONTROL_LIMIT} are the most", 0)
    while pos < len(payload):
        section, pos = decode(payload, pos)
        if not isinstance(section, Described) or not isinstance(section.descriptor, (int, str)):
            raise DecodeError("a control message with something that is no section", pos)
        code = _SECTIONS.get(section.descriptor)
        if code is None:
            raise DecodeError(f"a control message with the unknown section {section.descriptor!r}", pos)
        if code in (0x75, 0x76):
            raise DecodeError("the body of a control message is one amqp-value section", pos)
        if code == 0x77:
            bodies.append(section.value)
    if len(bodies) != 1:
        raise DecodeError(f"a control message with {len(bodies)} amqp-value sections", pos)
    return _control_of(bodies[0])


def _control_of(body: Any) -> Declare | Discharge:
    if isinstance(body, Described):
        if body.descriptor in (0x31, "amqp:declare:list"):
            fields = list_of(body, "declare")
            return Declare(fields[0] if fields else None)
        if body.descriptor in (0x32, "amqp:discharge:list"):
            fields = list_of(body, "discharge")
            txn_id = typed_field(fields, 0, bytes, "discharge.txn-id", mandatory=True)
            return Discharge(txn_id, bool(typed_field(fields, 1, bool, "discharge.fail")))
    raise DecodeError("a control message that is neither a declare nor a discharge", 0)
