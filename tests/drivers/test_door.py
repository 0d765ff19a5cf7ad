"""The door: who is in is heard before those who come, and of those each has its turn."""

from __future__ import annotations

import select
import selectors
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from jmsish.drivers import door, listener
from jmsish.drivers.door import Door
from jmsish.drivers.outlet import SocketOutlet

from .calls import Threads
from .conftest import PATIENCE, Wire
from .toy import ToyConnection

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE


class Somebody:
    """A watched socket, and the other end of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.crowd = "another host" if name.isupper() else "one host"
        self.near, self.far = socket.socketpair()
        self.speak()

    def fileno(self) -> int:
        return self.near.fileno()

    def speak(self) -> None:
        self.far.send(b"x")

    def readable(self) -> None:
        self.near.recv(10)

    def writable(self) -> None:
        pass

    def close(self) -> None:
        self.near.close()
        self.far.close()


@pytest.fixture
def people() -> Iterator[Callable[[str], list[Somebody]]]:
    made: list[Somebody] = []

    def make(names: str) -> list[Somebody]:
        made.extend(Somebody(name) for name in names)
        return made[-len(names) :]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def entrance() -> Iterator[Door]:
    entrance = Door()
    yield entrance
    entrance.close()


def inside(entrance: Door) -> list[object]:
    return [key.data for key, _ in entrance.select(0)]


def test_who_is_at_the_door_is_seen_as_the_door(entrance: Door, people: Callable[[str], list[Somebody]]) -> None:
    one, guest = people("ab")
    entrance.watch(one, READ, at_the_door=False)
    entrance.watch(guest, READ, at_the_door=True)
    assert set(inside(entrance)) == {one, entrance}
    assert [(each, mask) for each, mask in entrance.waiting()] == [(guest, READ)]
    guest.readable()
    assert inside(entrance) == [one]


def test_each_has_its_turn_before_the_first_has_another(
    entrance: Door, people: Callable[[str], list[Somebody]]
) -> None:
    guests = people("abc")
    for each in guests:
        entrance.watch(each, READ, at_the_door=True)
    called = []
    for _ in range(7):
        who, _ = next(entrance.waiting())
        assert isinstance(who, Somebody)
        called.append(who.name)
        who.readable()
        who.speak()  # at once, so that it has something whenever somebody looks
    assert sorted(called[:3]) == ["a", "b", "c"]
    assert called[3:6] == called[:3] and called[6] == called[0]


def test_who_comes_from_another_host_does_not_wait_for_all_of_the_first(
    entrance: Door, people: Callable[[str], list[Somebody]]
) -> None:
    """Though it has something only when their turns have begun, and they have something whenever somebody looks."""
    for each in people("a" * 300):
        entrance.watch(each, READ, at_the_door=True)
    next(entrance.waiting())
    (other,) = people("B")
    entrance.watch(other, READ, at_the_door=True)
    turns = 0
    while True:
        turns += 1
        who, _ = next(entrance.waiting())
        if who is other:
            break
        who.readable()
        who.speak()  # type: ignore[attr-defined]
    assert turns <= door._LOOK + 2, "of three hundred"
    other.readable()
    other.speak()
    following = [next(entrance.waiting())[0] for _ in range(door._LOOK + 2)]
    assert other in following


def test_who_was_let_in_is_inside(entrance: Door, people: Callable[[str], list[Somebody]]) -> None:
    (guest,) = people("a")
    entrance.watch(guest, READ, at_the_door=True)
    entrance.let_in(guest)
    entrance.let_in(guest)
    assert inside(entrance) == [guest] and not list(entrance.waiting())
    entrance.watch(guest, READ | WRITE, at_the_door=True)  # it stays where it is
    assert [(key.data, mask) for key, mask in entrance.select(0)] == [(guest, READ | WRITE)]
    entrance.watch(guest, 0, at_the_door=True)
    assert not inside(entrance)


def test_who_was_to_be_written_to_only_is_let_in_as_that(
    entrance: Door, people: Callable[[str], list[Somebody]]
) -> None:
    guest, unwatched = people("ab")
    entrance.watch(guest, WRITE, at_the_door=True)
    entrance.let_in(guest)
    entrance.let_in(unwatched)
    assert [(key.data, mask) for key, mask in entrance.select(0)] == [(guest, WRITE)]


def test_who_has_gone_or_come_in_meanwhile_is_not_called(
    entrance: Door, people: Callable[[str], list[Somebody]]
) -> None:
    guests = people("abcd")
    for each in guests:
        entrance.watch(each, READ, at_the_door=True)
    first, _ = next(entrance.waiting())
    gone, entered, left = (each for each in guests if each is not first)
    entrance.watch(gone, 0, at_the_door=True)
    gone.close()
    entrance.let_in(entered)
    assert [each for each, _ in entrance.waiting()] == [left]


@pytest.fixture
def without_nesting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system whose selector cannot be watched."""
    monkeypatch.setattr(door.selectors, "DefaultSelector", selectors.SelectSelector)


def test_a_selector_that_cannot_be_watched(without_nesting: None, people: Callable[[str], list[Somebody]]) -> None:
    entrance = Door()
    one, guest = people("ab")
    entrance.watch(one, READ, at_the_door=False)
    entrance.watch(guest, READ, at_the_door=True)
    assert set(inside(entrance)) == {one, guest}
    entrance.let_in(guest)
    assert set(inside(entrance)) == {one, guest}
    entrance.close()


def test_a_broker_without_a_door(without_nesting: None) -> None:
    wire = Wire("tcp")
    try:
        transports = [wire.connect(f"c{number}") for number in range(3)]
        for transport in transports:
            transport.send(b"echo here\n")
            assert transport.recv(PATIENCE) == b"here\n"
    finally:
        wire.stop()


# In the I/O thread.


class Pause:
    """The I/O thread stands still for a block, and what it hears after that is noted."""

    def __init__(self, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard: list[str] = []
        self._wire = wire
        self._go = threading.Event()
        self._stands = threading.Event()
        hear = listener.SocketReactor._hear

        def note(reactor: listener.SocketReactor, watched: door.Watched, mask: int) -> None:
            if isinstance(watched, (SocketOutlet, listener.Listener)):
                self.heard.append(watched.peer if isinstance(watched, SocketOutlet) else "accept")
            hear(reactor, watched, mask)

        monkeypatch.setattr(listener.SocketReactor, "_hear", note)

    def __enter__(self) -> Pause:
        def stand() -> None:
            self._stands.set()
            self._go.wait(PATIENCE)

        self._wire.reactor.post(stand)
        assert self._stands.wait(PATIENCE)
        self.heard.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._go.set()

    def await_octets(self) -> None:
        """Until what was said to each connection is there to be read."""
        for outlet in self._wire.reactor._outlets:
            assert select.select([outlet], [], [], PATIENCE)[0]


def test_who_is_in_is_heard_before_those_who_come(tcp: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty come at once and one who is in has a word: at most one of the twenty is accepted before it."""
    monkeypatch.setattr(listener, "SLICE", 0.0)
    one = tcp.connect("one")
    address = tcp.broker.connections[0].peer
    with Pause(tcp, monkeypatch) as pause:
        comers = [socket.create_connection(("127.0.0.1", tcp.port), timeout=PATIENCE) for _ in range(20)]
        one.send(b"echo here\n")
        pause.await_octets()
    assert one.recv(PATIENCE) == b"here\n"
    for each in comers:
        assert each.recv(100) == b"hello\n"
        each.close()
    assert pause.heard.index(address) <= 1
    assert pause.heard.count("accept") >= 20


def test_a_turn_takes_one_of_those_who_come_and_those_who_are_in_first(
    tcp: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SLICE", 0.0)
    turns = [""]
    turn, hear = listener.SocketReactor._turn, listener.SocketReactor._hear

    def note_turn(reactor: listener.SocketReactor) -> None:
        turns.append("")
        turn(reactor)

    def note(reactor: listener.SocketReactor, watched: door.Watched, mask: int) -> None:
        turns[-1] += "a" if isinstance(watched, listener.Listener) else "d" if watched in reactor._lobby else "i"
        hear(reactor, watched, mask)

    monkeypatch.setattr(listener.SocketReactor, "_turn", note_turn)
    monkeypatch.setattr(listener.SocketReactor, "_hear", note)
    one = tcp.connect("one")
    monkeypatch.setattr(ToyConnection, "is_open", property(lambda self: False, lambda self, value: None), raising=False)
    for _ in range(5):
        comers = [socket.create_connection(("127.0.0.1", tcp.port), timeout=PATIENCE) for _ in range(8)]
        one.send(b"echo turn\n")
        assert one.recv(PATIENCE) == b"turn\n"
        for each in comers:
            assert each.recv(100) == b"hello\n"
            each.close()
    while "".join(turns).count("d") < 40:
        one.send(b"echo turn\n")
        assert one.recv(PATIENCE) == b"turn\n"
    assert "".join(turns).count("a") >= 40
    assert all("d" not in heard[:-1] and heard.count("a") <= 1 for heard in turns)


def test_the_first_of_many_are_answered_before_the_last_are_read(tcp: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = [tcp.connect(f"c{number}") for number in range(100)]
    read_before_an_answer: list[int] = []
    with Pause(tcp, monkeypatch) as pause:
        deliver = SocketOutlet.deliver

        def note(outlet: SocketOutlet, data: bytes) -> None:
            read_before_an_answer.append(len(pause.heard))
            deliver(outlet, data)

        monkeypatch.setattr(SocketOutlet, "deliver", note)
        for each in crowd:
            each.send(b"echo here\n")
        pause.await_octets()
    for each in crowd:
        assert each.recv(PATIENCE) == b"here\n"
    assert 16 < read_before_an_answer[0] <= 32 and len(read_before_an_answer) == 100


def test_the_io_thread_keeps_the_time(tcp: Wire) -> None:
    """A second thread would have the broker's lock when it has to wait for the interpreter."""
    threads = Threads()
    one = tcp.connect("one")
    one.send(b"at 0.01 later\n")
    assert one.recv(PATIENCE) == b"later\n"
    pipe = tcp.driver.connect("vm://toy")
    assert pipe.recv(PATIENCE) == b"hello\n"
    pipe.send(b"name two\nat 0.01 for a pipe\n")  # set by this thread
    assert pipe.recv(PATIENCE) == b"for a pipe\n"
    assert not threads.new()
    pipe.close()
