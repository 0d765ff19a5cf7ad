"""Questions that take their time are asked with nothing held."""

from __future__ import annotations

import logging
import sys
import threading
from functools import partial

import pytest

import jmsish
from jmsish.drivers.asking import _OF_ONE, Asking

from .conftest import PATIENCE, Wire


def test_a_question_holds_up_nobody(tcp: Wire) -> None:
    """The broker serves others, and even the lock is free, while one waits for its answer."""
    begun, go = threading.Event(), threading.Event()

    def slow() -> bytes:
        begun.set()
        assert go.wait(PATIENCE)
        return b"at last"

    tcp.broker.asked["slow"] = slow
    waiting, other = tcp.connect(), tcp.connect()
    waiting.send(b"ask slow\n")
    assert begun.wait(PATIENCE)
    other.send(b"echo meanwhile\n")
    assert other.recv(PATIENCE) == b"meanwhile\n"
    assert not tcp.driver._lock.locked()
    go.set()
    assert waiting.recv(PATIENCE) == b"answer at last\n"


def test_who_has_gone_meanwhile_hurts_nobody(tcp: Wire) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow() -> bytes:
        begun.set()
        assert go.wait(PATIENCE)
        return b"too late"

    tcp.broker.asked["slow"] = slow
    gone = tcp.connect()
    gone.send(b"ask slow\n")
    assert begun.wait(PATIENCE)
    gone.close()
    go.set()
    other = tcp.connect()
    other.send(b"echo well\n")
    assert other.recv(PATIENCE) == b"well\n"


def test_nothing_is_asked_for_who_has_gone(tcp: Wire) -> None:
    """A flood that hangs up at once leaves questions behind, and no work."""
    from jmsish.drivers.errands import Errands

    class Gone:
        closed = True

    Errands._answer(tcp.driver.errands, Gone(), lambda: pytest.fail("asked"))  # type: ignore[arg-type]


def test_what_raises_is_a_system_error_and_its_text_is_kept(tcp: Wire, caplog: pytest.LogCaptureFixture) -> None:
    def raises() -> bytes:
        raise LookupError("hunter2")

    tcp.broker.asked["raises"] = raises
    client = tcp.connect()
    with caplog.at_level(logging.DEBUG):
        client.send(b"ask raises\n")
        answer = client.recv(PATIENCE)
    assert b"LookupError" in answer and b"code=2" in answer
    assert "LookupError at " in caplog.text and "test_asking.py" in caplog.text
    assert "hunter2" not in caplog.text and b"hunter2" not in answer


def test_many_questions_have_few_threads_and_all_are_asked() -> None:
    asking, done, threads = Asking("test"), threading.Semaphore(0), set()

    def question() -> None:
        threads.add(threading.current_thread().name)
        done.release()

    for _ in range(100):
        asking.ask(question)
    for _ in range(100):
        assert done.acquire(timeout=PATIENCE)
    assert asking._threads <= 8 and threads == {"jmsish-broker-test-asks"}
    asking.stop()
    asking.ask(question)
    assert not asking._waiting


def test_who_asks_much_has_nobody_else_wait() -> None:
    """A host that began a thousand logins at once had those of all others wait behind them."""
    asking, begun, go, other = Asking("test"), threading.Semaphore(0), threading.Event(), threading.Event()

    def slow() -> None:
        begun.release()
        assert go.wait(PATIENCE)

    for _ in range(100):
        asking.ask(slow, "a crowd")
    for _ in range(_OF_ONE):
        assert begun.acquire(timeout=PATIENCE)
    asking.ask(other.set, "somebody else")
    assert other.wait(PATIENCE)
    assert not begun.acquire(blocking=False)
    go.set()
    for _ in range(100 - _OF_ONE):
        assert begun.acquire(timeout=PATIENCE)
    asking.stop()


def test_all_who_ask_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsish.drivers.asking._THREADS", 1)
    asking, asked = Asking("test"), list[str]()
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert go.wait(PATIENCE)

    asking.ask(slow, "a")
    assert begun.wait(PATIENCE)
    for name in ("a1", "a2", "a3", "b1", "c1", "b2"):
        asking.ask(partial(asked.append, name), name[0])
    asking.ask(done.set, "a")
    go.set()
    assert done.wait(PATIENCE)
    assert asked == ["a1", "b1", "c1", "a2", "b2", "a3"]
    asking.stop()


def test_a_question_that_raises_ends_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    asking, done = Asking("test"), threading.Event()

    def wrong() -> None:
        raise RuntimeError("of ours")

    asking.ask(wrong)
    asking.ask(done.set)
    assert done.wait(PATIENCE)
    asking.stop()


def test_threads_go_when_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsish.drivers.asking._PATIENCE", 0.001)
    asking, ran = Asking("test"), threading.Event()
    workers: list[threading.Thread] = []

    def question() -> None:
        workers.append(threading.current_thread())
        ran.set()

    for _ in range(2):
        ran.clear()
        asking.ask(question)
        assert ran.wait(PATIENCE)
        workers[-1].join(PATIENCE)
        assert not workers[-1].is_alive()
    assert asking._threads == 0


class Told(logging.Handler):
    """Counts what the log is told."""

    def __init__(self) -> None:
        super().__init__()
        self.records = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.release()


def test_what_would_end_a_program_ends_no_thread() -> None:
    """There are few threads, and after as many of these nobody could log in any more."""
    asking, asked, told = Asking("b"), threading.Event(), Told()
    log = logging.getLogger("jmsish.broker")
    log.addHandler(told)
    try:
        for _ in range(20):
            asking.ask(sys.exit)
        asking.ask(asked.set)
        assert asked.wait(PATIENCE)
        assert all(told.records.acquire(timeout=PATIENCE) for _ in range(20))
    finally:
        log.removeHandler(told)
        asking.stop()


def test_an_authenticator_that_ends_the_program_is_one_that_failed() -> None:
    def authenticator(mechanism: str, response: bytes) -> str | None:
        raise SystemExit("hunter2")

    with jmsish.EmbeddedBroker(authenticator=authenticator) as broker:
        with pytest.raises(jmsish.ConnectionLostError, match="a system error at the server"):
            jmsish.connect(broker.listen().url, token=lambda: "hunter2", connect_timeout=PATIENCE)
