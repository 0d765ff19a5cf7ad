"""How many examples a property is tried with that needs more or fewer than the others."""

from __future__ import annotations

from hypothesis import settings

USUAL = 150
"""What the profile ``default`` of ``tests/conftest.py`` tries."""


def examples(number: int) -> int:
    """So many in the gate, and as many times more as the profile at hand tries more."""
    return number * settings.default.max_examples // USUAL


def in_the_gate(number: int) -> int:
    """So many in the gate, where each takes long; with another profile as many as of any other property."""
    return number if settings.default.max_examples == USUAL else settings.default.max_examples
