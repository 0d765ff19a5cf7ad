"""How many examples a property is tried with that needs more or fewer than the others."""

from __future__ import annotations

from hypothesis import settings

USUAL = 150
"""What the profile ``default`` of ``tests/conftest.py`` tries."""


def examples(number: int) -> int:
    """So many in the gate, and as many times more as the profile at hand tries more."""
    return number * settings.default.max_examples // USUAL
