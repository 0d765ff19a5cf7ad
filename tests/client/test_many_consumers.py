"""What a message or a commit costs does not grow with the consumers that its session has besides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.client.session import ClientSession
from jmsish.modes import AcknowledgeMode

from .rig import Rig, decode


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


def test_a_listener_is_found_without_asking_the_others(rig: Rig) -> None:
    """And those that something came for are served in the order in which it came."""
    session, consumer = crowded(rig, AcknowledgeMode.CLIENT)
    for each in session.consumers:
        each.set_listening(True)
    rig.send("elsewhere", queue="other-2")
    untouched: Any = Untouched(session.consumers)
    everyone, session.consumers = session.consumers, untouched
    heard = []
    while (ready := session.next_for_listener()) is not None:
        heard.append(decode(ready[1]))
        session.ledger.listener_returned()
        prompt = session.listener_prompt()
        assert prompt is not None
        if not prompt.done():
            rig.pump()
    assert heard == ["m1", "m2", "m3", "m4", "elsewhere", "m5", "m6", "m7", "m8", "m9"]
    session.consumers = everyone
    consumer.set_listening(False)
    rig.send("m10")
    assert session.next_for_listener() is None
    consumer.set_listening(True)
    assert session.next_for_listener() is not None
    rig.run(session.close())


def test_closing_one_asks_no_other_consumer(rig: Rig) -> None:
    """Once, each close looked through all of them, and in a crowd at one queue for each of them through all again."""
    session, consumer = crowded(rig, AcknowledgeMode.AUTO)
    sharers = [consumer, *(rig.consumer(session) for _ in range(2))]
    everyone = session.consumers
    untouched: Any = Untouched(everyone)
    session.consumers = untouched
    for each in sharers[:2]:
        rig.run(each.close())
    session.consumers = [each for each in everyone if each not in sharers[:2]]
    assert not session.has_sibling(sharers[2])
    assert [rig.receive(sharers[2]) for _ in range(9)] == [f"m{number}" for number in range(1, 10)]
    rig.run(session.close())
