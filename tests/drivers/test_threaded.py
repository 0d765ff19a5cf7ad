# ruff: noqa: F811
"""The blocking driver under the real client and broker: silence, losses, interrupts, threads and what they leave.

Everything runs under a limit of its own (`prompt`), so that a hang fails here and not in the patience of the runner.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jmsish
from jmsish.testing import cut
from tests.hurry import give_up_after, hurried

from .calls import FAST, PATIENCE, Threads, await_end, begin, prompt, queue_of
from .mute import MutableProxy
from .reach import broker, proxy, url  # noqa: F401

# -- peers that say nothing -------------------------------------------------------------------------------------------


def test_a_peer_that_accepts_and_never_answers_is_given_up() -> None:
    threads = Threads()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"amqp://127.0.0.1:{silent.getsockname()[1]}"
        error = prompt(lambda: jmsish.connect(url, connect_timeout=FAST))
    assert isinstance(error, jmsish.ConnectionLostError) and "did not answer within 0.2 s" in str(error)
    await_end(threads.new_of_ours())


def test_a_silent_peer_is_followed_by_the_next(broker: jmsish.EmbeddedBroker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"failover:(amqp://127.0.0.1:{silent.getsockname()[1]},amqp://127.0.0.1:{broker.listen().port})"
        jmsish.connect(url, connect_timeout=FAST).close()


@pytest.mark.parametrize("closing", ["consumer", "producer", "session", "connection"])
def test_a_close_that_is_never_answered_ends_by_close_timeout(proxy: MutableProxy, closing: str) -> None:
    threads = Threads()
    connection = jmsish.connect(proxy.url, close_timeout=FAST)
    session = connection.create_session()
    parts: dict[str, Any] = {
        "consumer": session.create_consumer(queue_of(session)),
        "producer": session.create_producer(queue_of(session)),
        "session": session,
        "connection": connection,
    }
    proxy.mute()
    assert isinstance(prompt(parts[closing].close), jmsish.OperationTimeoutError)
    prompt(connection.close)
    await_end(threads.new_of_ours())


def test_a_session_closes_while_its_send_waits_for_an_answer_that_never_comes(proxy: MutableProxy) -> None:
    connection = jmsish.connect(proxy.url, close_timeout=FAST)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    proxy.mute()
    sending = begin(lambda: producer.send("m1"))
    while not session._exclusive._depth:
        threading.Event().wait(0.001)
    assert isinstance(prompt(session.close), jmsish.OperationTimeoutError)
    prompt(connection.close)
    assert isinstance(sending.exception(PATIENCE), jmsish.ConnectionLostError)


def test_silence_of_the_broker_fails_the_waiting_call(proxy: MutableProxy) -> None:
    connection = jmsish.connect(proxy.url)
    consumer = connection.create_session().create_consumer(jmsish.Queue("q"))
    proxy.mute()
    connection._driver.call(lambda: give_up_after(connection, FAST))
    assert isinstance(prompt(consumer.receive), jmsish.ConnectionLostError)
    assert prompt(connection.close) is None


@pytest.mark.parametrize("call", ["commit", "rollback", "receive_no_wait"])
def test_after_a_request_ran_out_of_time_the_session_can_be_used(
    broker: jmsish.EmbeddedBroker, proxy: MutableProxy, call: str
) -> None:
    """The answer is only late."""
    connection = jmsish.connect(proxy.url)
    session = connection.create_session(transacted=True)
    consumer = session.create_consumer(queue_of(session))
    producer = session.create_producer(queue_of(session))
    producer.send("m1")
    session.commit()
    assert consumer.receive(timeout=PATIENCE) is not None
    with late(broker), hurried(connection, request_timeout=FAST):
        error = prompt(getattr(consumer if call == "receive_no_wait" else session, call))
    assert isinstance(error, jmsish.OperationTimeoutError | jmsish.TransactionInDoubtError)
    producer.send("m2")
    session.commit()
    while (message := consumer.receive(timeout=PATIENCE)).text != "m2":
        assert call == "rollback" and message.delivery_count == 2
    session.commit()
    connection.close()


@contextlib.contextmanager
def late(broker: jmsish.EmbeddedBroker) -> Iterator[None]:
    """The broker is busy with something else meanwhile."""
    entered, left = threading.Event(), threading.Event()
    busy = begin(lambda: broker._call(lambda: (entered.set(), left.wait())))
    entered.wait()
    try:
        yield
    finally:
        left.set()
        busy.result(PATIENCE)


# -- losses -----------------------------------------------------------------------------------------------------------


def test_a_loss_ends_every_waiting_call_and_every_thread(url: str, broker: jmsish.EmbeddedBroker) -> None:
    broker.declare_queue("full", max_messages=1, overflow="block")
    threads = Threads()
    connection = jmsish.connect(url)
    calls = []
    for number in range(3):
        session = connection.create_session(transacted=number == 1)
        consumer = session.create_consumer(session.create_queue(f"q{number}"))
        calls.append(begin(consumer.receive, f"receiver {number}"))
    listening = connection.create_session()
    listening.create_consumer(listening.create_queue("l")).listener = print
    cut(connection)
    errors = [call.exception(PATIENCE) for call in calls]
    assert {str(error) for error in errors} == {str(connection._core.failure)}
    assert prompt(connection.close) is None
    await_end(threads.new_of_ours())


def test_a_loss_during_a_detach_ends_the_close_at_once(proxy: MutableProxy) -> None:
    connection = jmsish.connect(proxy.url)
    session = connection.create_session()
    consumer = session.create_consumer(queue_of(session), prefetch=0)
    producer = session.create_producer(queue_of(session))
    proxy.mute()
    closes = [begin(consumer.close), begin(producer.close)]
    driver = connection._driver
    while len(session._core.leaving) < 2:
        driver.call(lambda: None)
    cut(connection)
    assert [close.result(PATIENCE) for close in closes] == [None, None]
    connection.close()


def test_closing_a_session_ends_a_send_that_waits_for_credit(broker: jmsish.EmbeddedBroker, url: str) -> None:
    connection = jmsish.connect(url)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    driver = connection._driver
    driver.call(lambda: setattr(producer._core.link, "credit", 0))
    sending = begin(lambda: producer.send("m1"))
    while producer._core.credited is None:
        driver.call(lambda: None)
    assert prompt(session.close) is None
    assert isinstance(sending.exception(PATIENCE), jmsish.IllegalStateError)
    connection.close()


def test_two_hundred_connections_leave_nothing(url: str) -> None:
    """Closed, cut and dropped ones: neither files nor threads are left of them."""

    def one(number: int) -> None:
        connection = jmsish.connect(url)
        session = connection.create_session(transacted=bool(number % 2))
        session.create_producer(queue_of(session)).send("m")
        session.create_consumer(queue_of(session)).receive(timeout=0)
        if number % 3 == 0:
            cut(connection)
        connection.close()

    threads = Threads()
    one(0)
    await_end(threads.new_of_ours())
    files = len(os.listdir("/proc/self/fd"))
    for number in range(200):
        one(number)
    await_end(threads.new_of_ours())
    assert len(os.listdir("/proc/self/fd")) <= files + 2


def test_a_connection_that_is_dropped_ends_and_warns(broker: jmsish.EmbeddedBroker, url: str) -> None:
    connection = jmsish.connect(url)
    session = connection.create_session()
    consumer = session.create_consumer(queue_of(session))
    standby = connection._driver._standby
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del connection, session, consumer
        gc.collect()
    assert any(w.category is ResourceWarning and "without close" in str(w.message) for w in caught)
    await_end([standby])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_a_child_made_by_fork_the_connection_is_lost_and_the_parents_lives(url: str) -> None:
    connection = jmsish.connect(url)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    waiting = begin(connection.create_session().create_consumer(jmsish.Queue("other")).receive)
    child = os.fork()
    if not child:
        code = 1
        try:
            try:
                producer.send("from the child")
            except jmsish.ConnectionLostError:
                connection.close()
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    producer.send("from the parent")
    assert not waiting.done()
    connection.close()
    assert waiting.result(PATIENCE) is None


# -- interrupts -------------------------------------------------------------------------------------------------------


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Ctrl-C in the main thread, when it waits for the broker."""
    main = threading.main_thread().ident
    assert main is not None

    def place() -> tuple[object, int] | None:
        """Where it waits."""
        frame = sys._current_frames()[main]
        return (frame, frame.f_lasti) if frame.f_code.co_name in ("_wait", "_wait_for_reader") else None

    def press() -> None:
        before = None
        while before is None or place() != before:
            before = place()
            threading.Event().wait(0.001)
        signal.pthread_kill(main, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda: threading.Thread(target=press, daemon=True).start()
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("beside", [False, True])
def test_an_interrupted_receive_leaves_everything_usable(url: str, interrupt: Callable[[], None], beside: bool) -> None:
    """Whether we read the wire ourselves or another thread does."""
    connection = jmsish.connect(url)
    other = connection.create_session().create_consumer(jmsish.Queue("other"))
    waiting = begin(other.receive) if beside else None
    session = connection.create_session(transacted=True)
    consumer = session.create_consumer(queue_of(session))
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        consumer.receive()
    session.create_producer(queue_of(session)).send("m1")
    session.commit()
    assert consumer.receive(timeout=PATIENCE).text == "m1"
    session.commit()
    assert prompt(connection.close) is None
    assert waiting is None or waiting.result(PATIENCE) is None


def test_an_interrupted_commit_leaves_the_session_usable(
    broker: jmsish.EmbeddedBroker, proxy: MutableProxy, interrupt: Callable[[], None]
) -> None:
    connection = jmsish.connect(proxy.url)
    session = connection.create_session(transacted=True)
    producer = session.create_producer(queue_of(session))
    producer.send("m1")
    with late(broker):
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            session.commit()
    producer.send("m2")
    session.commit()
    consumer = session.create_consumer(queue_of(session))
    assert [consumer.receive(timeout=PATIENCE).text for _ in range(2)] == ["m1", "m2"]
    session.commit()
    connection.close()


class Interrupting:
    """A transport whose write is interrupted, once."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def send(self, data: bytes, deadline: float | None = None, listening: bool = False) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_write_ends_the_connection_for_everybody(url: str) -> None:
    """How much of it has left nobody knows, so that nothing can follow it."""
    connection = jmsish.connect(url)
    waiting = begin(connection.create_session().create_consumer(jmsish.Queue("other")).receive)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    connection._driver.transport = Interrupting(connection._driver.transport)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        producer.send("m1")
    assert isinstance(waiting.exception(PATIENCE), jmsish.ConnectionLostError)
    assert isinstance(prompt(lambda: producer.send("m2")), jmsish.ConnectionLostError)
    assert prompt(connection.close) is None


def test_a_fault_inside_the_client_is_heard_by_all_who_wait(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = jmsish.connect(url)
    waiting = begin(connection.create_session().create_consumer(jmsish.Queue("other")).receive)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))

    def fault(*args: Any) -> None:
        raise RuntimeError("a fault inside the client")

    monkeypatch.setattr(connection._core, "_on_disposed", fault)
    sending = begin(lambda: producer.send("m1"))
    errors = [sending.exception(PATIENCE), waiting.exception(PATIENCE)]
    assert any(isinstance(error, jmsish.ConnectionLostError) for error in errors)
    assert all("a fault inside the client" in str(error) for error in errors)
    prompt(connection.close)


# -- listeners and callbacks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, RuntimeError])
def test_a_listener_may_raise_whatever_it_likes(url: str, kind: type[BaseException]) -> None:
    connection = jmsish.connect(url)
    session = connection.create_session()
    seen: list[tuple[str, int]] = []
    all_seen = threading.Event()

    def listen(message: Any) -> None:
        seen.append((message.text, message.delivery_count))
        if message.delivery_count == 1:
            raise kind
        if message.text == "m2":
            all_seen.set()

    session.create_consumer(queue_of(session)).listener = listen
    sender = connection.create_session()
    producer = sender.create_producer(queue_of(sender))
    producer.send("m1")
    producer.send("m2")
    assert all_seen.wait(PATIENCE)
    connection.close()
    assert seen == [("m1", 1), ("m1", 2), ("m2", 1), ("m2", 2)]


def test_a_callback_that_exits_does_not_end_the_callbacks(url: str) -> None:
    connection = jmsish.connect(url)
    session = connection.create_session()
    producer = session.create_producer(queue_of(session))
    done = threading.Event()

    def leave(message: Any, error: Any) -> None:
        raise SystemExit

    producer.send("m1", on_completion=leave)
    producer.send("m2", on_completion=lambda message, error: done.set())
    assert done.wait(PATIENCE)
    connection.close()


def test_a_receive_waits_for_a_listener_thread_that_finds_nothing_to_do(url: str) -> None:
    """It has entered the session for a listener that was taken away meanwhile: that is nobody's use of the session."""
    connection = jmsish.connect(url)
    session = connection.create_session()
    consumer = session.create_consumer(queue_of(session))
    session.create_producer(queue_of(session)).send("m")
    entered, go = threading.Event(), threading.Event()
    seen: list[str] = []
    deliver = jmsish.sync.listeners.ListenerThread._deliver

    def late(self: Any) -> Any:
        entered.set()
        go.wait(PATIENCE)
        return deliver(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jmsish.sync.listeners.ListenerThread, "_deliver", late)
        connection.start()
        consumer.listener = lambda message: seen.append(message.text)
        assert entered.wait(PATIENCE)
        consumer.listener = None
        received = begin(lambda: consumer.receive(PATIENCE))
        assert not received.done()
        go.set()
        assert received.result(PATIENCE).text == "m" and not seen
    connection.close()


def test_taking_a_listener_away_loses_no_message(broker: jmsish.EmbeddedBroker, url: str) -> None:
    connection = jmsish.connect(url)
    session = connection.create_session()
    consumer = session.create_consumer(queue_of(session))
    sender = connection.create_session()
    producer = sender.create_producer(queue_of(sender))
    seen: list[str] = []
    for number in range(200):
        producer.send(f"m{number}")
    for _ in range(50):
        consumer.listener = lambda message: seen.append(message.text)
        consumer.listener = None
    session._listeners.wait_until_idle()  # type: ignore[union-attr]
    while (message := consumer.receive_no_wait()) is not None:
        seen.append(message.text)
    connection.close()
    assert seen == [f"m{number}" for number in range(200)]
