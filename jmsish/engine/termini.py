"""Sources, targets and coordinators: the two ends of a link (Part 3, 3.5; Part 4, 4.5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jmsish.types import Array, Described, Symbol

from .states import DeliveryState, composite, encode_fields, list_of, number_field, state_of, typed_field
from .values import (
    NULL,
    TRUE,
    DecodeError,
    encode,
    encode_described,
    encode_list,
    encode_string,
    encode_symbol,
    encode_symbols,
    encode_uint,
)

__all__ = ["Coordinator", "Source", "Target", "Terminus", "encode_names", "names_of", "terminus_of"]

NONE, CONFIGURATION, UNSETTLED_STATE = 0, 1, 2
"""How durable a terminus is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where messages of a link come from."""

    address: str | None = None
    durable: int = NONE
    expiry_policy: str = "session-end"
    timeout: int = 0
    dynamic: bool = False
    dynamic_node_properties: Mapping[Any, Any] | None = None
    distribution_mode: str | None = None
    filter: Mapping[Any, Any] | None = None
    default_outcome: DeliveryState | None = None
    outcomes: tuple[str, ...] | None = None
    capabilities: tuple[str, ...] = ()

    @property
    def encoded(self) -> bytes:
        """The octets of the described value."""
        return composite(
            0x28,
            *_common_fields(self),
            NULL if self.distribution_mode is None else encode_symbol(self.distribution_mode),
            NULL if self.filter is None else encode_fields(self.filter),
            NULL if self.default_outcome is None else self.default_outcome.encoded,
            NULL if self.outcomes is None else encode_names(self.outcomes),
            encode_names(self.capabilities),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where messages of a link go."""

    address: str | None = None
    durable: int = NONE
    expiry_policy: str = "session-end"
    timeout: int = 0
    dynamic: bool = False
    dynamic_node_properties: Mapping[Any, Any] | None = None
    capabilities: tuple[str, ...] = ()

    @property
    def encoded(self) -> bytes:
        """The octets of the described value; an empty target keeps its seven fields out of the list."""
        return composite(0x29, *_common_fields(self), encode_names(self.capabilities))


@dataclass(frozen=True, slots=True)
class Coordinator:
    """The target of a transaction controller's link."""

    capabilities: tuple[str, ...] = ()

    @property
    def encoded(self) -> bytes:
        """The octets of the described value."""
        return composite(0x30, encode_names(self.capabilities))


@dataclass(frozen=True, slots=True)
class UnknownTerminus:
    """A terminus of no known kind, kept as it came so that its attach can be refused by name."""

    descriptor: Any
    value: Any

    @property
    def encoded(self) -> bytes:
        """The octets it came as, or the same value in other octets."""
        return encode(self.value if self.descriptor is None else Described(self.descriptor, self.value))


Terminus = Source | Target | Coordinator | UnknownTerminus


def _common_fields(terminus: Source | Target) -> tuple[bytes, ...]:
    """The fields that sources and targets share, in their order; values that are the default are left out."""
    properties = terminus.dynamic_node_properties
    policy = terminus.expiry_policy
    return (
        NULL if terminus.address is None else encode_string(terminus.address),
        encode_uint(terminus.durable) if terminus.durable else NULL,
        NULL if policy == "session-end" else encode_symbol(policy),
        encode_uint(terminus.timeout) if terminus.timeout else NULL,
        TRUE if terminus.dynamic else NULL,
        NULL if properties is None else encode_fields(properties),
    )


def encode_names(names: Sequence[str]) -> bytes:
    """Several symbols, as Part 1, 1.4 writes fields with ``multiple``: null, or an array."""
    return encode_symbols(tuple(names))


def names_of(value: Any, name: str) -> tuple[str, ...]:
    """The symbols of a field with ``multiple``: null, one symbol and an array are all allowed (T13)."""
    if value is None:
        return ()
    if isinstance(value, Symbol):
        return (str(value),)
    if isinstance(value, (Array, list)) and all(isinstance(item, Symbol) for item in value):
        return tuple(str(item) for item in value)
    raise DecodeError(f"the field {name} holds something else than symbols", 0)


def _address_of(fields: list[Any], name: str) -> str | None:
    address = typed_field(fields, 0, str, f"{name}.address")
    return None if address is None else str(address)


def _shared(fields: list[Any], name: str) -> dict[str, Any]:
    durable = number_field(fields, 1, f"{name}.durable")
    policy = typed_field(fields, 2, Symbol, f"{name}.expiry-policy")
    timeout = number_field(fields, 3, f"{name}.timeout")
    return {
        "address": _address_of(fields, name),
        "durable": durable or 0,
        "expiry_policy": "session-end" if policy is None else str(policy),
        "timeout": timeout or 0,
        "dynamic": bool(typed_field(fields, 4, bool, f"{name}.dynamic")),
        "dynamic_node_properties": typed_field(fields, 5, dict, f"{name}.dynamic-node-properties"),
    }


def _at(fields: list[Any], index: int) -> Any:
    return fields[index] if index < len(fields) else None


def _source_of(fields: list[Any]) -> Source:
    mode = typed_field(fields, 6, Symbol, "source.distribution-mode")
    outcome, outcomes = _at(fields, 8), _at(fields, 9)
    return Source(
        **_shared(fields, "source"),
        distribution_mode=None if mode is None else str(mode),
        filter=typed_field(fields, 7, dict, "source.filter"),
        default_outcome=None if outcome is None else state_of(outcome),
        outcomes=None if outcomes is None else names_of(outcomes, "source.outcomes"),
        capabilities=names_of(_at(fields, 10), "source.capabilities"),
    )


def _target_of(fields: list[Any]) -> Target:
    return Target(**_shared(fields, "target"), capabilities=names_of(_at(fields, 6), "target.capabilities"))


def _coordinator_of(fields: list[Any]) -> Coordinator:
    return Coordinator(names_of(_at(fields, 0), "coordinator.capabilities"))


_TERMINI: dict[Any, Any] = {
    0x28: _source_of,
    "amqp:source:list": _source_of,
    0x29: _target_of,
    "amqp:target:list": _target_of,
    0x30: _coordinator_of,
    "amqp:coordinator:list": _coordinator_of,
}


def terminus_of(value: Any) -> Terminus | None:
    """The terminus in a decoded field; null means there is none."""
    if value is None:
        return None
    if not isinstance(value, Described):
        return UnknownTerminus(None, value)
    build = _TERMINI.get(value.descriptor) if isinstance(value.descriptor, (int, str)) else None
    if build is None:
        return UnknownTerminus(value.descriptor, value.value)
    terminus: Terminus = build(list_of(value, "a terminus"))
    return terminus


EMPTY_SOURCE = encode_described(0x28, encode_list(()))
"""A source that says nothing."""
