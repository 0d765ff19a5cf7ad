"""What a queue was told to do: its settings, frozen and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import log
from sys import float_info
from typing import Any

from jmsish.broker.names import check_queue_name

DEFAULT_DEAD_LETTER = "DLQ"
OVERFLOWS = ("reject", "drop-head", "block")
UNROUTABLE = ("discard", "reject", "release")
A_YEAR = 366 * 86_400.0
"""The longest delay of a redelivery where none is set."""
LARGEST_FLOAT = float_info.max
LARGEST_LONG = (1 << 63) - 1
"""What a count may be: what is asked for it is told as an AMQP long."""


def near_miss(name: str, known: tuple[str, ...]) -> str:
    """The end of an error's sentence: the known name that was probably meant, or all of them."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The settings of one queue; 0 means no limit, and a message nobody wants goes to ``dead_letter`` ("" drops it)."""

    durable: bool = False
    max_delivery_attempts: int = 0
    dead_letter: str = DEFAULT_DEAD_LETTER
    expiry_address: str = ""
    redelivery_delay: float = 0.0
    redelivery_multiplier: float = 1.0
    max_redelivery_delay: float = 0.0
    message_groups: bool = True
    group_key: str = ""
    sticky_groups: bool = True
    group_window: int = 0
    exclusive_consumer: bool = False
    delayed_delivery: bool = True
    max_messages: int = 0
    max_octets: int = 0
    overflow: str = "reject"

    def __post_init__(self) -> None:
        for name in ("max_delivery_attempts", "group_window", "max_messages", "max_octets"):
            _check_count(name, getattr(self, name))
        for name in ("dead_letter", "expiry_address"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be the name of a queue, not {getattr(self, name)!r}")
            if getattr(self, name):
                check_queue_name(getattr(self, name), name)
        if not isinstance(self.group_key, str):
            raise TypeError(f"group_key must be the name of an application property, not {self.group_key!r}")
        for name in ("durable", "message_groups", "sticky_groups", "exclusive_consumer", "delayed_delivery"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, not {getattr(self, name)!r}")
        for name in ("redelivery_delay", "max_redelivery_delay"):
            _check_number(name, getattr(self, name), 0, "seconds, 0 or more")
        _check_number("redelivery_multiplier", self.redelivery_multiplier, 1, "a number, 1 or more")
        for name in ("redelivery_delay", "max_redelivery_delay", "redelivery_multiplier"):
            object.__setattr__(self, name, float(getattr(self, name)))  # a whole one may be larger than a long
        if self.overflow not in OVERFLOWS:
            raise ValueError(f"overflow must be one of {', '.join(OVERFLOWS)}, not {self.overflow!r}")

    def delay_after(self, attempts: int) -> float:
        """Seconds until the redelivery of a message after so many failed attempts (one, at least)."""
        delay = float(self.redelivery_delay)
        if not delay:
            return 0.0
        longest = float(self.max_redelivery_delay) or A_YEAR
        rises = max(attempts - 1, 0)
        # Compared by logarithms: the power itself may be too large for a float.
        if delay >= longest or rises * log(self.redelivery_multiplier) >= log(longest / delay):
            return longest
        return float(delay * self.redelivery_multiplier**rises)

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any], where: str) -> QueueSettings:
        """Settings by name, as in the configuration and in ``declare_queue``; an unknown one names its near miss."""
        for name in settings:
            if name not in SETTING_NAMES:
                raise ValueError(f"unknown setting {name!r} of {where}: {near_miss(name, SETTING_NAMES)}")
        try:
            return cls(**settings)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSettings:
    """The settings of one exchange. ``unroutable`` None is by type: reject for direct, discard for the others."""

    durable: bool = False
    auto_delete: bool = False
    alternate: str | None = None
    unroutable: str | None = None
    sequence: bool = False
    initial_value: bool = False

    def __post_init__(self) -> None:
        for name in ("durable", "auto_delete", "sequence", "initial_value"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false, not {getattr(self, name)!r}")
        if self.alternate is not None and not isinstance(self.alternate, str):
            raise TypeError(f"alternate must be the name of an exchange, not {self.alternate!r}")
        if self.alternate == "":
            raise ValueError("alternate must be the name of an exchange, which is not empty")
        if self.unroutable is not None and self.unroutable not in UNROUTABLE:
            raise ValueError(f"unroutable must be one of {', '.join(UNROUTABLE)}, not {self.unroutable!r}")

    @classmethod
    def from_mapping(
        cls, settings: Mapping[str, Any], where: str, before: ExchangeSettings | None = None
    ) -> ExchangeSettings:
        """Settings by name, as in the configuration and in ``declare_exchange``, over those there were before."""
        for name in settings:
            if name not in EXCHANGE_SETTING_NAMES:
                raise ValueError(f"unknown setting {name!r} of {where}: {near_miss(name, EXCHANGE_SETTING_NAMES)}")
        try:
            return replace(cls() if before is None else before, **settings)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}: {error}") from None


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} must be 0 (no limit) or more, not {value}")
    if value > LARGEST_LONG:
        raise ValueError(f"{name} must be {LARGEST_LONG} at most, not {value}")


def _check_number(name: str, value: Any, least: int, wanted: str) -> None:
    if not is_number(value) or value < least:
        raise ValueError(f"{name} must be {wanted}, not {value!r}")


def is_number(value: object) -> bool:
    """Whether it is a number that a float can be: neither infinite nor none, nor a whole one that is too large."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST_FLOAT <= value <= LARGEST_FLOAT


SETTING_NAMES = tuple(field.name for field in fields(QueueSettings))
DEFAULT_SETTINGS = QueueSettings()
EXCHANGE_SETTING_NAMES = tuple(field.name for field in fields(ExchangeSettings))
