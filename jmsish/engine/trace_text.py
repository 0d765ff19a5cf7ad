"""The names of fields, states and termini, and values as the frame trace shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jmsish.types import Array, Described, Symbol

from .decoding import decode

__all__ = ["code_of", "control_text", "fields_text", "name_of"]

_TERMINUS = "address durable expiry-policy timeout dynamic dynamic-node-properties"

_COMPOSITES: dict[int, tuple[str, str]] = {
    # Part 2, 2.7
    0x10: ("open", "container-id hostname max-frame-size channel-max idle-time-out outgoing-locales incoming-locales "
                   "offered-capabilities desired-capabilities properties"),
    0x11: ("begin", "remote-channel next-outgoing-id incoming-window outgoing-window handle-max offered-capabilities "
                    "desired-capabilities properties"),
    0x12: ("attach", "name handle role snd-settle-mode rcv-settle-mode source target unsettled incomplete-unsettled "
                     "initial-delivery-count max-message-size offered-capabilities desired-capabilities properties"),
    0x13: ("flow", "next-incoming-id incoming-window next-outgoing-id outgoing-window handle delivery-count "
                   "link-credit available drain echo properties"),
    0x14: ("transfer", "handle delivery-id delivery-tag message-format settled more rcv-settle-mode state resume "
                       "aborted batchable"),
    0x15: ("disposition", "role first last settled state batchable"),
    0x16: ("detach", "handle closed error"),
    0x17: ("end", "error"),
    0x18: ("close", "error"),
    0x1D: ("error", "condition description info"),
    # Part 3, 3.4 and 3.5
    0x23: ("received", "section-number section-offset"),
    0x24: ("accepted", ""),
    0x25: ("rejected", "error"),
    0x26: ("released", ""),
    0x27: ("modified", "delivery-failed undeliverable-here message-annotations"),
    0x28: ("source", f"{_TERMINUS} distribution-mode filter default-outcome outcomes capabilities"),
    0x29: ("target", f"{_TERMINUS} capabilities"),
    # Part 4, 4.5
    0x30: ("coordinator", "capabilities"),
    0x31: ("declare", "global-id"),
    0x32: ("discharge", "txn-id fail"),
    0x33: ("declared", "txn-id"),
    0x34: ("transactional-state", "txn-id outcome"),
    # Part 5, 5.3.3
    0x40: ("sasl-mechanisms", "sasl-server-mechanisms"),
    0x41: ("sasl-init", "mechanism initial-response hostname"),
    0x42: ("sasl-challenge", "challenge"),
    0x43: ("sasl-response", "response"),
    0x44: ("sasl-outcome", "code additional-data"),
}  # fmt: skip

_NAMES = {code: name for code, (name, _) in _COMPOSITES.items()}
_CODES = {f"amqp:{name}:list": code for code, name in _NAMES.items()}
_FIELDS = {code: tuple(names.split()) for code, (_, names) in _COMPOSITES.items()}

_MODES = {
    "snd-settle-mode": ("unsettled", "settled", "mixed"),
    "rcv-settle-mode": ("first", "second"),
    "code": ("ok", "auth", "sys", "sys-perm", "sys-temp"),
}

LONGEST_BINARY = 32
"""Of more octets only so many are shown."""


def code_of(descriptor: Any) -> Any:
    """The number of a descriptor; a symbol that the standard does not know stays one (Part 1, 1.5)."""
    return _CODES.get(descriptor, descriptor) if isinstance(descriptor, str) else descriptor


def name_of(descriptor: Any) -> str:
    """The name of a performative; the descriptor itself where it is none that the standard knows."""
    if isinstance(descriptor, int) and descriptor in _NAMES:
        return _NAMES[descriptor]
    return str(descriptor) if isinstance(descriptor, str) else hex(descriptor)


def fields_text(code: int, fields: list[Any], *, secret: bool = False) -> str:
    """``name=value`` of each field that is not null; with ``secret``, of a binary only its size."""
    names = _FIELDS.get(code, ())
    shown = []
    for index, value in enumerate(fields):
        if value is None:
            continue
        name = names[index] if index < len(names) else f"field-{index}"
        if secret and isinstance(value, bytes):
            text = f"({len(value)} octets, not shown)"
        else:
            text = _field_text(name, value)
        shown.append(f"{name}={text}")
    return " ".join(shown)


def control_text(payload: bytes) -> str:
    """The declare or discharge that a message for a coordinator holds; empty for any other message."""
    if payload[:5] not in (b"\x00Sw\x00S", b"\x00Sw\x00\x80") or len(payload) > 256:
        return ""
    value = decode(payload, 3)[0]
    return _text(value) if isinstance(value, Described) and code_of(value.descriptor) in (0x31, 0x32) else ""


def _field_text(name: str, value: Any) -> str:
    if name == "role":
        return "receiver" if value else "sender"
    choices = _MODES.get(name, ())
    if choices and isinstance(value, int) and 0 <= value < len(choices):
        return choices[value]
    return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Symbol):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, bytes):
        rest = f"…({len(value)} octets)" if len(value) > LONGEST_BINARY else ""
        return f"0x{bytes(value[:LONGEST_BINARY]).hex()}{rest}"
    if isinstance(value, Described):
        return _described_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, Array)):
        items: Iterable[Any] = value.items if isinstance(value, Array) else value
        return "[" + ", ".join(map(_text, items)) + "]"
    if isinstance(value, int):
        return str(int(value))
    return repr(float(value)) if isinstance(value, float) else repr(value)


def _described_text(value: Described) -> str:
    fields, code = value.value, code_of(value.descriptor)
    name = name_of(code)
    if not isinstance(fields, list):
        return f"{name}({_text(fields)})"
    inside = fields_text(code, fields) if code in _NAMES else ", ".join(map(_text, fields))
    return f"{name}({inside})" if inside else name
