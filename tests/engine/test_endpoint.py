"""The table of endpoint states, over the full product of states and inputs."""

from __future__ import annotations

import itertools

import pytest

from jmsish.engine.conditions import EngineStateError
from jmsish.engine.endpoint import (
    LOCAL_CLOSE,
    LOCAL_OPEN,
    REMOTE_CLOSE,
    REMOTE_OPEN,
    STATE_NAMES,
    TABLE,
    UNMAPPED,
    Endpoint,
)

STEPS = (LOCAL_OPEN, REMOTE_OPEN, LOCAL_CLOSE, REMOTE_CLOSE)


def ends_of(history: tuple[int, ...]) -> tuple[str, str] | None:
    """Where both ends are after a history of steps, by what open and close mean; ``None`` when it is not allowed."""
    ends = {"local": "new", "remote": "new"}
    for step in history:
        side = "local" if step in (LOCAL_OPEN, LOCAL_CLOSE) else "remote"
        before, after = ("new", "open") if step in (LOCAL_OPEN, REMOTE_OPEN) else ("open", "closed")
        if ends[side] != before:
            return None
        ends[side] = after
    return ends["local"], ends["remote"]


def test_every_history_leads_where_its_ends_are() -> None:
    """All histories of up to five steps: the table allows exactly the sane ones, and one state is one pair of ends."""
    pairs: dict[int, tuple[str, str]] = {}
    for length in range(6):
        for history in itertools.product(STEPS, repeat=length):
            expected = ends_of(history)
            endpoint = Endpoint()
            try:
                for step in history:
                    endpoint.advance(step)
            except EngineStateError:
                assert expected is None, history
                continue
            assert expected is not None, history
            assert pairs.setdefault(endpoint.state, expected) == expected
            assert (endpoint.local_open, endpoint.remote_open) == (expected[0] == "open", expected[1] == "open")
            assert (endpoint.local_closed, endpoint.remote_closed) == (
                expected[0] == "closed",
                expected[1] == "closed",
            )
    assert len(pairs) == len(set(pairs.values())) == len(TABLE) == len(STATE_NAMES)


@pytest.mark.parametrize("state", range(len(TABLE)), ids=STATE_NAMES)
@pytest.mark.parametrize("step", STEPS)
def test_allows_says_what_advance_does(state: int, step: int) -> None:
    endpoint = Endpoint()
    endpoint.state = state
    if endpoint.allows(step):
        endpoint.advance(step)
        assert endpoint.state == TABLE[state][step] != UNMAPPED
    else:
        with pytest.raises(EngineStateError, match=STATE_NAMES[state]):
            endpoint.advance(step)
        assert endpoint.state == state
