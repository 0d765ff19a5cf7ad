"""Whatever waits when the connection or its session goes, hears of it: no wait is left to a timeout."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any

import pytest

from jmsish.client.connection import ClientConnection
from jmsish.errors import ConnectionLostError, IllegalStateError, JMSError
from jmsish.modes import AcknowledgeMode

from .rig import Rig, encode


def waits_for(steps: Generator[Any, Any, Any]) -> Any:
    """Run a procedure to its first wait, and keep it there."""
    future: Any
    future, _ = steps.send(None)
    assert not future.done()
    future.kept = steps
    return future


def finish(waiting: Any) -> None:
    """Resume a procedure that waited: it ends, and waits for nothing that does not come."""
    try:
        while True:
            assert waiting.done()
            error = waiting.exception()
            steps = waiting.kept
            waiting, _ = steps.throw(error) if error is not None else steps.send(waiting.result())
            waiting.kept = steps
    except (JMSError, StopIteration):
        return


def consumer_close(rig: Rig, core: ClientConnection) -> Any:
    consumer = rig.consumer(rig.session(core, AcknowledgeMode.AUTO), prefetch=0)
    return consumer.close()


def producer_close(rig: Rig, core: ClientConnection) -> Any:
    return rig.producer(rig.session(core, AcknowledgeMode.AUTO)).close()


def producer_close_with_a_send_under_way(rig: Rig, core: ClientConnection) -> Any:
    producer = rig.producer(rig.session(core, AcknowledgeMode.AUTO))
    assert producer.post(encode("m1"), Future())
    return producer.close()


def session_close(rig: Rig, core: ClientConnection) -> Any:
    return rig.session(core, AcknowledgeMode.AUTO).close()


def commit(rig: Rig, core: ClientConnection) -> Any:
    session = rig.session(core)
    rig.run(rig.producer(session).send(encode("m1"), None))
    return session.commit()


def temporary_delete(rig: Rig, core: ClientConnection) -> Any:
    return core.temporary.delete(rig.run(core.temporary.create(topic=False)))


def drain(rig: Rig, core: ClientConnection) -> Any:
    return rig.consumer(rig.session(core, AcknowledgeMode.AUTO)).receive(None, wait=False)


WAITS = [
    consumer_close, producer_close, producer_close_with_a_send_under_way, session_close, commit, temporary_delete, drain
]  # fmt: skip


@pytest.mark.parametrize("wait", WAITS)
def test_a_lost_connection_ends_every_wait(wait: Callable[[Rig, ClientConnection], Any]) -> None:
    rig = Rig()
    core = rig.connect()
    future = waits_for(wait(rig, core))
    core.fail(ConnectionLostError("cut"))
    finish(future)


@pytest.mark.parametrize("wait", [w for w in WAITS if w is not temporary_delete])
def test_an_ended_session_ends_every_wait(wait: Callable[[Rig, ClientConnection], Any]) -> None:
    rig = Rig()
    core = rig.connect()
    future = waits_for(wait(rig, core))
    (session,) = core.sessions
    core._on_ended(session.engine_session, None)
    finish(future)


def test_a_consumer_is_not_attached_to_what_was_lost_while_its_siblings_gave_back() -> None:
    """The drain was answered, and then the connection went, before the procedure was resumed."""
    rig = Rig()
    core = rig.connect()
    session = rig.session(core, AcknowledgeMode.AUTO)
    first = rig.consumer(session)
    second = type(first)(session, first.destination, prefetch=10)
    steps = session.add_consumer(second)
    future = waits_for(steps)
    rig.pump()
    assert future.done()
    core.fail(ConnectionLostError("cut"))
    core.engine.receive_eof()
    with pytest.raises(ConnectionLostError):
        steps.send(None)


def test_an_interrupted_failure_is_completed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    core = rig.connect()
    consumer = rig.consumer(rig.session(core, AcknowledgeMode.AUTO))
    future = waits_for(consumer.receive(None))
    monkeypatch.setattr(core, "_lose_outcomes", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.setattr(consumer, "waiter", None)
    with pytest.raises(KeyboardInterrupt):
        core.fail(ConnectionLostError("first"))
    monkeypatch.undo()
    core.fail(ConnectionLostError("second"))
    assert isinstance(future.exception(), ConnectionLostError) and str(core.failure) == "first"


def test_a_producer_that_closes_wakes_its_own_send_that_waits_for_credit() -> None:
    rig = Rig()
    producer = rig.producer(rig.session(rig.connect(), AcknowledgeMode.AUTO))
    assert producer.link is not None
    producer.link.credit = 0
    future = waits_for(producer.send(encode("m1"), None))
    rig.run(producer.close())
    assert isinstance(future.exception(), IllegalStateError)


def test_a_drain_given_up_leaves_credit_and_its_late_answer_too() -> None:
    """A receive that ran out of time gives the drain up; the next one waits, and the message comes to it."""
    rig = Rig()
    core = rig.connect()
    consumer = rig.consumer(rig.session(core, AcknowledgeMode.AUTO))
    steps = consumer.receive(None, wait=False)
    waits_for(steps)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    waiting = waits_for(consumer.receive(None))
    rig.pump()
    assert consumer.link is not None and consumer.link.credit > 0
    rig.send("m1")
    assert waiting.done()


def test_more_sessions_than_the_broker_has_channels_for_is_an_error_of_ours() -> None:
    rig = Rig()
    core = rig.connect()
    core.engine.channel_max = 1
    rig.session(core, AcknowledgeMode.AUTO)
    rig.session(core, AcknowledgeMode.AUTO)
    with pytest.raises(JMSError, match="no session can begin"):
        rig.session(core, AcknowledgeMode.AUTO)
