"""The in-memory pipe by itself: its reader's callback, its wake-ups, its name in the process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from time import time

import pytest

from jmsish.drivers import registry
from jmsish.drivers.serving import BrokerDriver
from jmsish.drivers.transport import PipeEnd
from jmsish.errors import ConnectionLostError, IllegalStateError

from .conftest import PATIENCE
from .toy import ToyBroker


def test_several_pieces_are_read_as_one() -> None:
    end = PipeEnd("vm://x")
    for piece in (b"a", b"bc", b"def"):
        end.deliver(piece)
    assert end.recv(0) == b"abcdef"
    assert end.delivered == end.consumed == 6


def test_what_was_delivered_comes_before_the_end() -> None:
    end = PipeEnd("vm://x")
    end.deliver(b"last words")
    end.end()
    assert end.recv(0) == b"last words"
    assert end.recv(0) == b""


def test_data_comes_before_an_interrupt() -> None:
    end = PipeEnd("vm://x")
    end.interrupt()
    end.deliver(b"data")
    assert end.recv(0) == b"data"
    with pytest.raises(TimeoutError):
        end.recv(None)


def test_a_wake_up_too_many_does_no_harm() -> None:
    end = PipeEnd("vm://x")
    end.interrupt()
    with pytest.raises(TimeoutError):
        end.recv(None)
    # The signal of the interrupt was never taken; the next wait finds it and goes on waiting.
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(end.recv(PATIENCE)))
    reader.start()
    end.deliver(b"real")
    end.wake()
    end.wake()
    reader.join(PATIENCE)
    assert got == [b"real"]


def test_only_who_waits_is_woken() -> None:
    end = PipeEnd("vm://x")
    end.deliver(b"data")
    end.wake()
    assert end._signal.locked()


def test_the_callback_hears_of_data_and_of_the_end() -> None:
    driver = BrokerDriver(ToyBroker(time), name="toy", clock=time)
    end, calls = driver.connect("vm://toy"), []
    end.set_reader(lambda: calls.append(end.recv_nowait()))
    assert calls == [b"hello\n"]  # what was there already
    end.send(b"echo one\n")
    assert calls[1:] == [b"one\n"]
    driver.stop()
    assert calls[2:] == [b"bye\n"] and end.recv_nowait() == b""
    end.set_reader(None)
    end.set_reader(lambda: calls.append(b"late"))
    assert calls[-1] == b"late"


def test_the_callback_holds_no_lock() -> None:
    driver = BrokerDriver(ToyBroker(time), name="toy", clock=time)
    one, two = driver.connect("vm://toy"), driver.connect("vm://toy")
    one.recv_nowait()
    two.recv_nowait()
    one.send(b"name one\n")
    free: list[bool] = []
    one.set_reader(lambda: free.append(not driver._lock.locked()))
    two.send(b"say one good day\n")
    assert free == [True]
    driver.stop()


# vm://NAME


@pytest.fixture
def named() -> Iterator[BrokerDriver]:
    driver = BrokerDriver(ToyBroker(time), name="registry-test", clock=time)
    registry.register(driver)
    yield driver
    registry.unregister(driver)
    driver.stop()


def test_connect_by_name(named: BrokerDriver) -> None:
    end = registry.connect_vm("registry-test", identity="alice")
    assert end.recv(0) == b"hello\n" and end.peer == "vm://registry-test"
    (connection,) = named._lanes
    assert (connection.trusted, connection.identity, connection.peer) == (True, "alice", "vm://registry-test")


def test_an_unknown_name_names_those_there_are(named: BrokerDriver) -> None:
    with pytest.raises(ConnectionLostError, match=r"vm://nobody: .*running here: .*'registry-test'"):
        registry.connect_vm("nobody")
    registry.unregister(named)
    with pytest.raises(ConnectionLostError, match="vm://registry-test: no broker of that name"):
        registry.connect_vm("registry-test")


def test_two_of_one_name_never_meet(named: BrokerDriver) -> None:
    other = BrokerDriver(ToyBroker(time), name="registry-test", clock=time)
    with pytest.raises(IllegalStateError, match="'registry-test' runs in this process already"):
        registry.register(other)
    registry.register(named)  # the same once more is none of its business
    registry.unregister(other)
    assert "registry-test" in registry.running()
    other.stop()


def test_a_broker_that_is_dropped_leaves_its_name() -> None:
    driver = BrokerDriver(ToyBroker(time), name="dropped", clock=time)
    registry.register(driver)
    del driver
    gc.collect()
    assert "dropped" not in registry.running()
