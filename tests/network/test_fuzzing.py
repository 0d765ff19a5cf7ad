"""Some hundred mutated conversations with a router, by each of its doors; `fuzzing` plays as many as wanted."""

from __future__ import annotations

import pytest

from tests.network.fuzzing import campaign


@pytest.mark.parametrize("seed", range(3))
def test_mutated_conversations_hurt_nobody(seed: int) -> None:
    campaign(seed, 120)
