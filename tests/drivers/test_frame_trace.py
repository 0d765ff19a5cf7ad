"""The frame trace, as `JMSISH_TRACE` switches it on."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import jmsish
from jmsish.drivers import frame_trace

PATIENCE = 30.0
PROGRAM = """
import logging, sys, jmsish
with jmsish.EmbeddedBroker("b", config={"users": {"u": {"password": "a-secret"}}}) as broker:
    listener = broker.listen("127.0.0.1", 0)
    with jmsish.connect(listener.url, username="u", password="a-secret", sasl_mechanisms="PLAIN") as connection:
        session = connection.create_session(transacted=True)
        session.create_producer(jmsish.Queue("orders")).send("a body")
        session.commit()
"""


def run(trace: str, program: str = PROGRAM) -> str:
    environment = {**os.environ, "JMSISH_TRACE": trace}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_frames_of_both_ends_go_to_standard_error() -> None:
    told = run("frm")
    assert "client-1 -> ch 0 attach" in told and "broker-2 <- ch 0 attach" in told
    assert 'target=target(address="orders"' in told
    assert "discharge(txn-id=" in told
    assert told.rstrip().splitlines()[-1].endswith("ch 0 close"), "the end of the program waits for the last frame"


def test_no_secret_is_told() -> None:
    told = run("raw")
    assert "sasl-init mechanism=PLAIN initial-response=(11 octets, not shown)" in told
    assert "a-secret" not in told and b"a-secret".hex(" ") not in told
    assert "000000  41 4d 51 50 03 01 00 00" in told, "raw shows octets"
    assert "a body" not in run("frm"), "a trace of frames shows no message"


def test_an_unknown_kind_of_trace_is_said_once_and_nothing_is_traced() -> None:
    told = run("frames")
    assert told.count("a trace is frm or raw") == 1 and "attach" not in told


@pytest.fixture
def traced(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    level = frame_trace.log.level
    with caplog.at_level(logging.DEBUG, "jmsish.frames"):
        frame_trace.begin("frm")
        yield caplog
    frame_trace.end()
    frame_trace.log.setLevel(level)


def test_a_record_has_its_parts_as_attributes(traced: pytest.LogCaptureFixture) -> None:
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url):
        frame_trace.flush()
        records = [record for record in traced.records if record.name == "jmsish.frames"]
    opened = [record for record in records if getattr(record, "performative", "") == "open"]
    assert {record.direction for record in opened} == {"->", "<-"}  # type: ignore[attr-defined]
    assert {record.connection.partition("-")[0] for record in opened} == {"client", "broker"}  # type: ignore[attr-defined]
    assert all(record.channel == 0 and record.levelno == logging.DEBUG for record in opened)  # type: ignore[attr-defined]


def test_a_trace_ends_and_no_connection_after_it_is_traced(traced: pytest.LogCaptureFixture) -> None:
    frame_trace.end()
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url):
        frame_trace.flush()
    assert not [record for record in traced.records if record.name == "jmsish.frames"]


def test_a_trace_that_has_ended_leaves_no_thread(traced: pytest.LogCaptureFixture) -> None:
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url):
        frame_trace.flush()
        assert "jmsish frame trace" in {thread.name for thread in threading.enumerate()}
    frame_trace.end()
    assert "jmsish frame trace" not in {thread.name for thread in threading.enumerate()}


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'all' is no kind of trace: frm or raw"):
        frame_trace.begin("all")


def ended(child: int) -> int:
    """How a child ended; one that stands still is ended, for which it gets -9."""
    codes: list[int] = []
    waiting = threading.Thread(target=lambda: codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    waiting.start()
    waiting.join(20)
    if waiting.is_alive():
        os.kill(child, signal.SIGKILL)
        waiting.join()
    return codes[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_traces_on_in_a_thread_of_its_own() -> None:
    fork = "import os\nchild = os.fork()\nif child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    used = "with jmsish.EmbeddedBroker() as b, jmsish.connect(b.url): pass\n"
    first = "with jmsish.EmbeddedBroker"
    told = run("frm", PROGRAM.replace(first, used + fork + first, 1))
    assert "client-1 -> ch 0 close" in told, "the parent's"
    assert "discharge(txn-id=" in told, "the child's"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_for_what_is_being_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a child has the terminal's lock as it was held then, by a thread that it does not have."""
    writing, go_on, forking, forked = (threading.Event() for _ in range(4))

    def slowly(*_: object) -> None:
        writing.set()
        go_on.wait(PATIENCE)

    monkeypatch.setattr(frame_trace, "tell", slowly)
    monkeypatch.setattr(frame_trace, "BEFORE_FORK", PATIENCE)
    trace = frame_trace._Trace(False)
    trace.follow("one")("->", b"AMQP\x00\x01\x00\x00")
    assert writing.wait(PATIENCE)

    def fork() -> None:
        trace.before_fork()
        forking.set()
        forked.wait(PATIENCE)
        trace.after_fork()

    thread = threading.Thread(target=fork)
    thread.start()
    assert not forking.is_set()
    go_on.set()
    assert forking.wait(PATIENCE)
    assert not trace._telling.acquire(blocking=False)
    trace.after_fork()
    assert not trace._telling.acquire(blocking=False), "another thread than the one that forks gave it back"
    forked.set()
    thread.join(PATIENCE)
    assert trace._telling.acquire(blocking=False)
    trace._telling.release()
    trace.stop(PATIENCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_traces_whoever_held_or_read_what_when_it_was_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread was just beginning the trace, and a terminal took nothing."""
    monkeypatch.setattr(frame_trace, "BEFORE_FORK", 0.0)
    trace = frame_trace._Trace(False)
    with trace._starting, trace._telling:
        trace.before_fork()
        child = os.fork()
        if not child:
            code = 1
            try:
                told = threading.Event()
                monkeypatch.setattr(frame_trace, "tell", lambda *_: told.set())
                trace.follow("one")("->", b"AMQP\x00\x01\x00\x00")
                code = 0 if told.wait(PATIENCE) else 2
            finally:
                os._exit(code)
    assert ended(child) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_trace_that_was_begun_before_another_is_held_over_a_fork_too() -> None:
    first, second = frame_trace._Trace(False), frame_trace._Trace(True)
    frame_trace._before_fork()
    assert not first._telling.acquire(blocking=False) and not second._telling.acquire(blocking=False)
    frame_trace._after_fork()
    assert first._telling.acquire(blocking=False) and second._telling.acquire(blocking=False)


def test_a_handler_that_forks_waits_for_no_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    trace = frame_trace._Trace(False)

    def fork(*_: object) -> None:
        trace.before_fork()
        trace.after_fork()
        told.set()

    monkeypatch.setattr(frame_trace, "BEFORE_FORK", 3600.0)
    monkeypatch.setattr(frame_trace, "tell", fork)
    trace.follow("one")("->", b"AMQP\x00\x01\x00\x00")
    assert told.wait(PATIENCE)
    trace.stop(PATIENCE)


def test_what_is_seen_while_a_trace_ends_is_told_by_the_next_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes nothing from the one that ends: it would not, and whoever ends the trace would wait for it."""
    telling, go_on, told = threading.Event(), threading.Event(), threading.Semaphore(0)

    def tell(name: str, *_: object) -> None:
        if name == "first":
            telling.set()
            go_on.wait(PATIENCE)
        told.release()

    monkeypatch.setattr(frame_trace, "tell", tell)
    trace = frame_trace._Trace(False)
    trace.follow("first")("->", b"AMQP\x00\x01\x00\x00")
    assert telling.wait(PATIENCE)
    before = trace._thread
    assert before is not None
    trace.stop(0)
    trace.follow("second")("->", b"AMQP\x00\x01\x00\x00")
    assert trace._thread is not before
    go_on.set()
    before.join(PATIENCE)
    assert not before.is_alive()
    assert told.acquire(timeout=10) and told.acquire(timeout=10)
    trace.stop(PATIENCE)


def test_at_the_end_of_the_program_nothing_is_being_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is stopped for good with the terminal's lock ends the program by a fatal error."""
    told = threading.Semaphore(0)
    monkeypatch.setattr(frame_trace, "tell", lambda *_: told.release())
    trace = frame_trace._Trace(False)
    saw = trace.follow("one")
    saw("->", b"AMQP\x00\x01\x00\x00")
    trace.fall_silent(10)
    assert told.acquire(blocking=False)
    saw("->", b"AMQP\x00\x01\x00\x00")
    trace.flush(0.0)
    assert trace._telling.locked() and not told.acquire(blocking=False)
    trace._telling.release()
    trace.stop(PATIENCE)
