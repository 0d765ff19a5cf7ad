"""Two calls at once, in hostile order: a short run of `tests/stress/pairs.py`."""

from __future__ import annotations

import pytest

from tests.stress import pairs


@pytest.mark.parametrize(("at", "count"), [("vm", 52), ("tcp", 8)])
def test_two_calls_at_once_end_as_jms_allows_and_every_message_is_counted(at: str, count: int) -> None:
    for seed in range(1, count + 1):
        case, faults = pairs.play("aio", at, seed)
        assert not faults, f"seed {seed}: {case}"
