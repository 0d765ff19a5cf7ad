"""Performatives as octets, and the rare ones read whole (Part 2, 2.7).

The encoders give the body of a frame. The decoders take the fields after the descriptor, check that each has the type
the standard gives it and that no mandatory one is missing, and give records of plain values. What is wrong raises
:class:`~jmsish.engine.values.DecodeError` with a sentence that names performative and field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jmsish.types import Symbol

from .states import UINT_MAX, AmqpError, composite, encode_fields, error_of, number_field, typed_field
from .termini import Terminus, encode_names, names_of, terminus_of
from .values import (
    NULL,
    TRUE,
    DecodeError,
    decode,
    encode_boolean,
    encode_map,
    encode_string,
    encode_ubyte,
    encode_uint,
    encode_ulong,
    encode_ushort,
)

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)

NAMES = {
    OPEN: "open", BEGIN: "begin", ATTACH: "attach", FLOW: "flow", TRANSFER: "transfer", DISPOSITION: "disposition",
    DETACH: "detach", END: "end", CLOSE: "close",
}  # fmt: skip

SYMBOLS = {f"amqp:{name}:list": code for code, name in NAMES.items()}
"""Symbolic descriptors mean the same as the numbers (Part 1, 1.5)."""


def performative_code(descriptor: Any) -> int:
    """The number of a descriptor, which may be a symbol; -1 where it is neither."""
    if isinstance(descriptor, str):
        return SYMBOLS.get(descriptor, -1)
    return descriptor if isinstance(descriptor, int) else -1


@dataclass(frozen=True, slots=True)
class Open:
    """What the peer's open said."""

    container_id: str
    hostname: str | None = None
    max_frame_size: int = UINT_MAX
    channel_max: int = 0xFFFF
    idle_time_out: int | None = None
    offered_capabilities: tuple[str, ...] = ()
    desired_capabilities: tuple[str, ...] = ()
    properties: Mapping[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """What the peer's begin said."""

    remote_channel: int | None
    next_outgoing_id: int
    incoming_window: int
    outgoing_window: int
    handle_max: int = UINT_MAX


@dataclass(frozen=True, slots=True)
class Attach:
    """What the peer's attach said."""

    name: str
    handle: int
    is_receiver: bool
    snd_settle_mode: int
    rcv_settle_mode: int
    source: Terminus | None
    target: Terminus | None
    unsettled: Mapping[Any, Any] | None
    incomplete_unsettled: bool
    initial_delivery_count: int | None
    max_message_size: int
    offered_capabilities: tuple[str, ...]
    desired_capabilities: tuple[str, ...]
    properties: Mapping[Any, Any] | None


# -- encoders ----------------------------------------------------------------------------------------------------------


def _properties(properties: Mapping[Any, Any] | None) -> bytes:
    return NULL if properties is None else encode_fields(properties)


def encode_open(
    container_id: str,
    *,
    hostname: str | None,
    max_frame_size: int,
    channel_max: int,
    idle_time_out: int | None,
    offered_capabilities: Sequence[str],
    desired_capabilities: Sequence[str],
    properties: Mapping[Any, Any] | None,
) -> bytes:
    """The body of an open frame."""
    return composite(
        OPEN,
        encode_string(container_id),
        NULL if hostname is None else encode_string(hostname),
        encode_uint(max_frame_size),
        encode_ushort(channel_max),
        NULL if idle_time_out is None else encode_uint(idle_time_out),
        NULL,
        NULL,
        encode_names(offered_capabilities),
        encode_names(desired_capabilities),
        _properties(properties),
    )


def encode_begin(
    remote_channel: int | None, next_outgoing_id: int, incoming_window: int, outgoing_window: int, handle_max: int
) -> bytes:
    """The body of a begin frame."""
    return composite(
        BEGIN,
        NULL if remote_channel is None else encode_ushort(remote_channel),
        encode_uint(next_outgoing_id),
        encode_uint(incoming_window),
        encode_uint(outgoing_window),
        encode_uint(handle_max),
    )


def encode_attach(
    *,
    name: str,
    handle: int,
    is_receiver: bool,
    snd_settle_mode: int,
    rcv_settle_mode: int,
    source: bytes,
    target: bytes,
    unsettled: Mapping[Any, Any] | None,
    initial_delivery_count: int | None,
    max_message_size: int,
    offered_capabilities: Sequence[str],
    desired_capabilities: Sequence[str],
    properties: Mapping[Any, Any] | None,
) -> bytes:
    """The body of an attach frame; source and target are encoded already."""
    return composite(
        ATTACH,
        encode_string(name),
        encode_uint(handle),
        encode_boolean(is_receiver),
        encode_ubyte(snd_settle_mode),
        encode_ubyte(rcv_settle_mode),
        source,
        target,
        # An empty map says that nothing is unsettled, null that nothing is known (Part 2, 2.7.3).
        NULL if unsettled is None else encode_map(()),
        NULL,
        NULL if initial_delivery_count is None else encode_uint(initial_delivery_count),
        encode_ulong(max_message_size) if max_message_size else NULL,
        encode_names(offered_capabilities),
        encode_names(desired_capabilities),
        _properties(properties),
    )


def encode_flow(
    next_incoming_id: int | None,
    incoming_window: int,
    next_outgoing_id: int,
    outgoing_window: int,
    link: tuple[int, int | None, int, int | None, bool] | None = None,
    *,
    echo: bool | None = None,
    properties: Mapping[Any, Any] | None = None,
) -> bytes:
    """The body of a flow frame; ``link`` is handle, delivery-count, credit, available and drain."""
    state: tuple[bytes, ...] = (NULL,) * 5
    if link is not None:
        handle, count, credit, available, drain = link
        state = (
            encode_uint(handle),
            NULL if count is None else encode_uint(count),
            encode_uint(credit),
            NULL if available is None else encode_uint(available),
            TRUE if drain else NULL,
        )
    return composite(
        FLOW,
        NULL if next_incoming_id is None else encode_uint(next_incoming_id),
        encode_uint(incoming_window),
        encode_uint(next_outgoing_id),
        encode_uint(outgoing_window),
        *state,
        NULL if echo is None else encode_boolean(echo),
        _properties(properties),
    )


def encode_disposition(is_receiver: bool, first: int, last: int, settled: bool, state: bytes | None) -> bytes:
    """The body of a disposition frame."""
    return composite(
        DISPOSITION,
        encode_boolean(is_receiver),
        encode_uint(first),
        # Suites compare `last` with `first`, so it is said even where it could be left out.
        encode_uint(last),
        encode_boolean(settled),
        NULL if state is None else state,
    )


def encode_detach(handle: int, closed: bool, error: AmqpError | None) -> bytes:
    """The body of a detach frame."""
    return composite(DETACH, encode_uint(handle), TRUE if closed else NULL, NULL if error is None else error.encoded)


def encode_end(error: AmqpError | None) -> bytes:
    """The body of an end frame."""
    return composite(END, NULL if error is None else error.encoded)


def encode_close(error: AmqpError | None) -> bytes:
    """The body of a close frame."""
    return composite(CLOSE, NULL if error is None else error.encoded)


# -- decoders ----------------------------------------------------------------------------------------------------------


def decode_list(buf: bytes, pos: int, end: int, name: str) -> list[Any]:
    """The fields of a rare performative; its frame must hold nothing behind them."""
    fields, pos = decode(buf[:end], pos)
    if not isinstance(fields, list):
        raise DecodeError(f"the body of {name} is no list", pos)
    if pos != end:
        raise DecodeError(f"{end - pos} octets behind the fields of {name}", pos)
    return fields


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _demand(fields: list[Any], index: int, name: str, limit: int = UINT_MAX) -> int:
    return _or(number_field(fields, index, name, limit, mandatory=True), 0)


def _text(fields: list[Any], index: int, name: str, mandatory: bool = False) -> str | None:
    value = typed_field(fields, index, str, name, mandatory)
    return None if value is None else str(value)


def _names(fields: list[Any], index: int, name: str) -> tuple[str, ...]:
    return names_of(fields[index] if index < len(fields) else None, name)


def _map(fields: list[Any], index: int, name: str) -> Mapping[Any, Any] | None:
    value: Mapping[Any, Any] | None = typed_field(fields, index, dict, name)
    return value


def read_open(fields: list[Any]) -> Open:
    """The record of an open."""
    return Open(
        container_id=_text(fields, 0, "open.container-id", mandatory=True) or "",
        hostname=_text(fields, 1, "open.hostname"),
        max_frame_size=_or(number_field(fields, 2, "open.max-frame-size"), UINT_MAX),
        channel_max=_or(number_field(fields, 3, "open.channel-max", 0xFFFF), 0xFFFF),
        idle_time_out=number_field(fields, 4, "open.idle-time-out"),
        offered_capabilities=_names(fields, 7, "open.offered-capabilities"),
        desired_capabilities=_names(fields, 8, "open.desired-capabilities"),
        properties=_map(fields, 9, "open.properties"),
    )


def read_begin(fields: list[Any]) -> Begin:
    """The record of a begin."""
    return Begin(
        remote_channel=number_field(fields, 0, "begin.remote-channel", 0xFFFF),
        next_outgoing_id=_demand(fields, 1, "begin.next-outgoing-id"),
        incoming_window=_demand(fields, 2, "begin.incoming-window"),
        outgoing_window=_demand(fields, 3, "begin.outgoing-window"),
        handle_max=_or(number_field(fields, 4, "begin.handle-max"), UINT_MAX),
    )


def read_attach(fields: list[Any]) -> Attach:
    """The record of an attach."""
    name = _text(fields, 0, "attach.name", mandatory=True) or ""
    if isinstance(fields[0], Symbol):
        raise DecodeError("the field attach.name cannot be a Symbol", 0)
    return Attach(
        name=name,
        handle=_demand(fields, 1, "attach.handle"),
        is_receiver=typed_field(fields, 2, bool, "attach.role", mandatory=True),
        snd_settle_mode=_or(number_field(fields, 3, "attach.snd-settle-mode", 2), 2),
        rcv_settle_mode=_or(number_field(fields, 4, "attach.rcv-settle-mode", 1), 0),
        source=terminus_of(fields[5] if len(fields) > 5 else None),
        target=terminus_of(fields[6] if len(fields) > 6 else None),
        unsettled=_map(fields, 7, "attach.unsettled"),
        incomplete_unsettled=bool(typed_field(fields, 8, bool, "attach.incomplete-unsettled")),
        initial_delivery_count=number_field(fields, 9, "attach.initial-delivery-count"),
        max_message_size=_or(number_field(fields, 10, "attach.max-message-size", (1 << 64) - 1), 0),
        offered_capabilities=_names(fields, 11, "attach.offered-capabilities"),
        desired_capabilities=_names(fields, 12, "attach.desired-capabilities"),
        properties=_map(fields, 13, "attach.properties"),
    )


def read_detach(fields: list[Any]) -> tuple[int, bool, AmqpError | None]:
    """Handle, closed and error of a detach."""
    handle = _demand(fields, 0, "detach.handle")
    closed = bool(typed_field(fields, 1, bool, "detach.closed"))
    return handle, closed, error_of(fields[2] if len(fields) > 2 else None)


def read_error(fields: list[Any]) -> AmqpError | None:
    """The error of an end or a close."""
    return error_of(fields[0] if fields else None)
