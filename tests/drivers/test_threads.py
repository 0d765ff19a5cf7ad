"""Threads go on, whatever fails in them; one that the system does not give is tried again."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from time import monotonic, time
from types import FrameType

import pytest

import jmsish
from jmsish.drivers import kept_time, listener, outlet, serving, transport, wakeup
from jmsish.drivers.alarm import Alarm
from jmsish.drivers.asking import _THREADS, Asking
from jmsish.drivers.callbacks import CallbackThread
from jmsish.drivers.frame_trace import _Trace
from jmsish.drivers.listener import SocketReactor
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.websocket import ServerWebSocket
from jmsish.errors import ConnectionLostError, IllegalStateError, ResourceAllocationError

from .calls import begin
from .conftest import PATIENCE, Wire
from .toy import ToyBroker

NoThreads = Callable[[int], None]


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> NoThreads:
    """The system has no thread for the next so many that want to begin."""
    left = [0]
    start = threading.Thread.start

    def scarce(thread: threading.Thread) -> None:
        if left[0] and not thread.name.startswith("pytest"):
            left[0] -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    return lambda times: left.__setitem__(0, times)


def test_an_alarm_without_a_thread_rings_when_it_is_set_again(no_threads: NoThreads) -> None:
    class Owner:
        rung = threading.Event()

        def ring(self) -> None:
            self.rung.set()

    owner = Owner()
    alarm = Alarm(owner.ring, "alarm")
    no_threads(1)
    alarm.set(0.0)
    alarm.set(monotonic())
    assert owner.rung.wait(PATIENCE)
    alarm.stop()
    alarm.join(PATIENCE)


def test_questions_without_a_thread_are_asked_with_the_next(no_threads: NoThreads) -> None:
    asking, asked = Asking("toy"), threading.Semaphore(0)
    no_threads(_THREADS)
    for _ in range(_THREADS):
        asking.ask(lambda: asked.release() and None)
    asking.ask(lambda: asked.release() and None)
    assert all(asked.acquire(timeout=PATIENCE) for _ in range(_THREADS + 1))
    asking.stop()


def test_callbacks_without_a_thread_are_called_with_the_next(no_threads: NoThreads) -> None:
    callbacks, called = CallbackThread("callbacks"), []
    calls = [(called.append, (1,))]
    no_threads(1)
    callbacks.take(calls)
    calls.append((called.append, (2,)))
    callbacks.take(calls)
    callbacks.finish(None)
    assert called == [1, 2] and not calls
    callbacks.end()


def test_a_trace_without_a_thread_tells_with_the_next(
    no_threads: NoThreads, caplog: pytest.LogCaptureFixture
) -> None:
    trace = _Trace(False)
    saw = trace.follow("one")
    no_threads(1)
    with caplog.at_level(logging.DEBUG, "jmsish.frames"):
        saw("->", b"AMQP\x00\x01\x00\x00")
        saw("->", b"\x00\x00\x00\x08\x02\x00\x00\x00")
        trace.stop(PATIENCE)
    assert sum(record.name == "jmsish.frames" and record.levelno == logging.DEBUG for record in caplog.records) == 2


def test_a_listener_without_a_thread_is_an_error_and_the_next_listens(no_threads: NoThreads) -> None:
    with jmsish.EmbeddedBroker() as broker:
        no_threads(1)
        with pytest.raises(ResourceAllocationError, match="cannot begin"):
            broker.listen()
        assert not broker.listeners
        with jmsish.connect(broker.listen().url):
            pass


def test_a_connection_without_a_thread_is_an_error_and_not_left_at_the_broker(no_threads: NoThreads) -> None:
    with jmsish.EmbeddedBroker() as broker:
        no_threads(100)
        with pytest.raises(ResourceAllocationError, match="can't start new thread"):
            jmsish.connect(broker.url)
        assert not broker._driver._lanes


# Faults.


class Failing(logging.Handler):
    """A handler of the program's that fails."""

    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("the disk is full")


@pytest.fixture
def deaf_log() -> Iterator[None]:
    log, handler = logging.getLogger("jmsish"), Failing()
    log.addHandler(handler)
    yield
    log.removeHandler(handler)


def answers(wire: Wire) -> bool:
    client = wire.connect()
    client.send(b"echo well\n")
    return client.recv(PATIENCE) == b"well\n"


def test_a_handler_of_the_log_that_fails_ends_no_thread_of_the_broker(wire: Wire, deaf_log: None) -> None:
    victim = wire.connect("victim")
    victim.send(b"fault\n")
    assert victim.recv(PATIENCE) == b""
    assert answers(wire)


def test_a_handler_of_the_log_that_fails_ends_no_thread_that_asks_or_calls(deaf_log: None) -> None:
    def fail() -> None:
        raise ValueError

    callbacks, asking, reached = CallbackThread("callbacks"), Asking("toy"), threading.Event()
    calls = [(fail, ()), (reached.set, ())]
    callbacks.take(calls)
    assert reached.wait(PATIENCE)
    callbacks.end()
    reached.clear()
    for _ in range(_THREADS):
        asking.ask(fail)
    asking.ask(reached.set)
    assert reached.wait(PATIENCE)
    asking.stop()


def test_a_fault_of_the_io_thread_itself_does_not_end_it(tcp: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it do the same again at once."""
    failed = threading.Event()
    work_off = tcp.driver.work_off

    def fail() -> float | None:
        monkeypatch.setattr(tcp.driver, "work_off", work_off)
        failed.set()
        raise RuntimeError("a fault")

    monkeypatch.setattr(tcp.driver, "work_off", fail)
    tcp.reactor.post(lambda: None)
    assert failed.wait(PATIENCE)
    assert answers(tcp)


@pytest.mark.parametrize("kind", ["pipe", "tcp"])
def test_a_clock_that_fails_ends_no_connection_and_time_goes_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jmsish.drivers.kept_time._AGAIN", 0.01)
    wire = Wire(kind)
    try:
        client = wire.connect()
        failing = [3]

        def clock() -> float:
            if failing[0]:
                failing[0] -= 1
                raise RuntimeError("a fault of the clock")
            return time()

        monkeypatch.setattr(wire.driver, "_clock", clock)
        client.send(b"echo well\n")
        assert client.recv(PATIENCE) == b"well\n"
        client.send(b"at 0.01 later\n")
        assert client.recv(PATIENCE) == b"later\n"
        assert not failing[0]
    finally:
        wire.stop()


def test_a_fault_with_one_who_comes_does_not_end_the_listening(tcp: Wire) -> None:
    """Such as one of the callable that gives the context of TLS."""
    contexts = iter([RuntimeError("a fault of the program's")])

    def context() -> None:
        for fault in contexts:
            raise fault

    other = tcp.reactor.listen("127.0.0.1", 0, context)  # type: ignore[arg-type]
    tcp.listener = other
    with pytest.raises(Exception):  # noqa: B017, PT011 - it is closed, by whichever end
        tcp.connect()
    assert not other.closed and answers(tcp)


def test_a_fault_in_a_later_portion_of_a_read_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read any more meanwhile, and nobody would hear of it again."""
    receive = ServerWebSocket.receive

    def fail(codec: ServerWebSocket, data: bytes) -> bytes:
        if not data:
            raise TypeError("a fault of the library's")
        return receive(codec, data)

    wire = Wire("ws")
    try:
        monkeypatch.setattr(ServerWebSocket, "receive", fail)
        victim = wire.connect()
        layer = victim._layer  # type: ignore[attr-defined]
        for _ in range(100):
            layer.send(b"echo well\n")
        with suppress(ConnectionLostError):
            victim.send(b"echo well\n")
            while victim.recv(PATIENCE):
                pass
        assert answers(wire)
    finally:
        wire.stop()


def test_a_listener_of_a_moment_before_the_stop_does_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = BrokerDriver(ToyBroker(time), name="toy", clock=time)
    reactor = SocketReactor(driver)
    reactor.listen("127.0.0.1", 0)
    made = []
    begin = reactor.begin

    def stopped_meanwhile() -> None:
        begin()
        reactor.stop()

    monkeypatch.setattr(reactor, "begin", stopped_meanwhile)
    monkeypatch.setattr("jmsish.drivers.listener.Listener.close_socket", lambda self: made.append(self._socket.close()))
    with pytest.raises(IllegalStateError, match="is stopped"):
        reactor.listen("127.0.0.1", 0)
    assert len(made) == 2
    driver.stop()


@pytest.mark.parametrize("again", [False, True])
def test_who_was_just_dialling_when_the_broker_stopped_begins_no_thread(
    monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """Nor does the connection go to the broker that was started anew in its place."""
    broker = jmsish.EmbeddedBroker("r", config={"router": {"id": "r", "mode": "interior"}})
    dialled, stopped = threading.Event(), threading.Event()
    connect = socket.create_connection

    def slowly(*given: object) -> socket.socket:
        made = connect(*given)  # type: ignore[arg-type]
        dialled.set()
        assert stopped.wait(PATIENCE)
        return made

    with socket.create_server(("127.0.0.1", 0)) as there:
        broker.start()
        monkeypatch.setattr(socket, "create_connection", slowly)
        broker.connector(f"amqp://127.0.0.1:{there.getsockname()[1]}", role="inter-router")
        assert dialled.wait(PATIENCE)
        monkeypatch.setattr(socket, "create_connection", connect)
        peer, _ = there.accept()
        broker.stop()
        if again:
            broker.start()
            broker.listen()
        stopped.set()
        peer.settimeout(PATIENCE)
        assert peer.recv(100) == b""
        assert again or broker._reactor is None
        peer.close()
        broker.stop()


# Interrupts.


def interrupting(number: int) -> Callable[..., None]:
    """Ctrl-C where the interpreter looks for it, as a function of the drivers is entered or a built-in one has returned
    in it: the so many-th time."""
    left = [number]
    places = {module.__file__ for module in (kept_time, listener, outlet, serving, transport, wakeup)}

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename in places:
            left[0] -= 1
            if not left[0]:
                sys.setprofile(None)
                raise KeyboardInterrupt

    return profile


@pytest.mark.parametrize("burst", [-1.0, float("inf")])
def test_an_interrupt_anywhere_on_the_way_to_a_socket_leaves_nobody_waiting(
    tcp: Wire, monkeypatch: pytest.MonkeyPatch, burst: float
) -> None:
    """Who sends from memory writes to the socket of another itself, or wakes the thread of the sockets to do it."""
    monkeypatch.setattr(logging.getLogger("jmsish.broker"), "disabled", True)
    monkeypatch.setattr(outlet, "BURST", burst)
    for number in count(1):
        mine = tcp.driver.connect("vm://toy")
        other = tcp.connect("other")
        reading = begin(lambda: other.recv(PATIENCE))  # noqa: B023
        turned, interrupted = threading.Event(), False
        tcp.reactor.post(turned.set)
        assert turned.wait(PATIENCE)  # the thread of the sockets writes nothing any more
        sys.setprofile(interrupting(number))
        try:
            mine.send(b"say other one\n")
            mine.send(b"say other two\n")
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.setprofile(None)
        last = tcp.connect("last")
        last.send(b"say other three\necho well\n")
        assert last.recv(PATIENCE) == b"well\n", number
        said = reading.result(PATIENCE).split()
        assert said == [each for each in (b"one", b"two", b"three") if each in said], number
        for each in (mine, other, last):
            each.close()
        if not interrupted:
            break
    assert number > 30
    monkeypatch.setattr(tcp, "_transports", [])
