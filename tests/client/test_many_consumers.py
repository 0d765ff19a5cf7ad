"""What a message or a commit costs does not grow with the consumers that its session has besides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.client.session import ClientSession
from jmsish.modes import AcknowledgeMode

from .rig import Rig


class Untouched(list[ClientConsumer]):
    """The consumers of a session; whoever looks through them all fails."""

    def __iter__(self) -> Iterator[ClientConsumer]:
        raise AssertionError("all consumers of the session were looked through")


@pytest.fixture
def rig() -> Rig:
    return Rig()


def crowded(rig: Rig, mode: AcknowledgeMode) -> tuple[ClientSession, ClientConsumer]:
    """A session with a consumer of `q`, which has messages, and others of other queues."""
    session = rig.session(rig.connect(), mode)
    for number in range(5):
        rig.consumer(session, f"other-{number}")
    consumer = rig.consumer(session, prefetch=4)
    rig.send(*(f"m{number}" for number in range(1, 10)))
    return session, consumer


@pytest.mark.parametrize("mode", list(AcknowledgeMode))
def test_receiving_asks_no_other_consumer(rig: Rig, mode: AcknowledgeMode) -> None:
    """Nor do commit, rollback and recover, where no two consumers read one queue."""
    session, consumer = crowded(rig, mode)
    everyone = list(session.consumers)
    untouched: Any = Untouched(session.consumers)
    session.consumers = untouched
    assert [rig.receive(consumer) for _ in range(9)] == [f"m{number}" for number in range(1, 10)]
    if mode is AcknowledgeMode.TRANSACTED:
        rig.run(session.rollback())
        assert [rig.receive(consumer) for _ in range(3)] == ["m1*2", "m2*2", "m3*2"]
        rig.run(session.commit())
    else:
        rig.run(session.recover())
    session.consumers = everyone
    rig.run(session.close())


def test_only_those_who_share_give_back_at_a_commit(rig: Rig) -> None:
    """D1: of six consumers, the two that read one queue."""
    session, first = crowded(rig, AcknowledgeMode.TRANSACTED)
    second = rig.consumer(session)
    assert session.siblings(first) == [second] and session.siblings(second) == [first]
    assert [c for c in session.consumers if session.has_sibling(c)] == [first, second]
    rig.run(second.close())
    assert not any(session.has_sibling(c) for c in session.consumers)
    assert rig.receive(first) == "m1"
