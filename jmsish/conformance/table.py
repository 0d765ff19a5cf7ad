"""The table of scenarios: each is a function that plays on a `Stage`, and raises `Difference` where it is otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jmsish.profiles.profile import TRANSACTIONS

if TYPE_CHECKING:
    from jmsish.conformance.stage import Stage

Play = Callable[["Stage"], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario."""

    name: str
    """Its identity, as ``redelivery-007``: it does not change from version to version."""
    title: str
    """What holds when it passes."""
    play: Play
    needs: tuple[str, ...] = ()
    """What the broker must have for it (`jmsish.profiles.profile.FEATURES`)."""

    @property
    def group(self) -> str:
        return self.name.rpartition("-")[0]


TABLE: dict[str, Scenario] = {}
"""All of them, by name, in the order in which they are run."""


def scenario(name: str, title: str, *needs: str) -> Callable[[Play], Play]:
    """Enter a function into the table."""

    def enter(play: Play) -> Play:
        if name in TABLE:
            raise ValueError(f"there are two scenarios {name!r}")
        TABLE[name] = Scenario(name, title, play, needs)
        return play

    return enter


def transacted(name: str, title: str, *needs: str) -> Callable[[Play], Play]:
    """The same for one that needs transactions."""
    return scenario(name, title, TRANSACTIONS, *needs)
