"""What a queue was told to do: its settings, frozen and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

DEFAULT_DEAD_LETTER = "DLQ"
OVERFLOWS = ("reject", "drop-head", "block")


def near_miss(name: str, known: tuple[str, ...]) -> str:
    """The end of an error's sentence: the known name that was probably meant, or all of them."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The settings of one queue; 0 means no limit, and a message nobody wants goes to ``dead_letter`` ("" drops it)."""

    durable: bool = False
    max_delivery_attempts: int = 0
    dead_letter: str = DEFAULT_DEAD_LETTER
    expiry_address: str = ""
    redelivery_delay: float = 0.0
    max_messages: int = 0
    max_octets: int = 0
    overflow: str = "reject"

    def __post_init__(self) -> None:
        for name in ("max_delivery_attempts", "max_messages", "max_octets"):
            _check_count(name, getattr(self, name))
        for name in ("dead_letter", "expiry_address"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be the name of a queue, not {getattr(self, name)!r}")
        if not isinstance(self.durable, bool):
            raise TypeError(f"durable must be true or false, not {self.durable!r}")
        delay = self.redelivery_delay
        if isinstance(delay, bool) or not isinstance(delay, (int, float)) or not delay >= 0:
            raise ValueError(f"redelivery_delay must be seconds, 0 or more, not {delay!r}")
        if self.overflow not in OVERFLOWS:
            raise ValueError(f"overflow must be one of {', '.join(OVERFLOWS)}, not {self.overflow!r}")

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


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} must be 0 (no limit) or more, not {value}")


SETTING_NAMES = tuple(field.name for field in fields(QueueSettings))
DEFAULT_SETTINGS = QueueSettings()
