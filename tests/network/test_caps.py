"""The section ``[limits]`` holds at a router, too: at its doors for clients, and for neighbours as far as it can."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.network.doors import EDGE, INTER_ROUTER, NORMAL
from jmsish.engine.outcomes import ACCEPTED, Source, Target
from tests.broker.world import End, Receiver
from tests.network.stranger import Stranger
from tests.network.test_partial import in_pieces
from tests.network.world import Network
from tests.wire.frames import AMQP_HEADER, read

LIMIT = "amqp:resource-limit-exceeded"
DOORS = pytest.mark.parametrize("door", [NORMAL, EDGE, INTER_ROUTER])


def network(line: str = "INT.A", **caps: Any) -> Network:
    return Network(line, caps=caps)


@DOORS
def test_who_does_not_open_in_time_is_turned_away(door: str) -> None:
    connection = network(opening_timeout=3)["INT.A"].accept(trusted=False, role=door)
    assert connection.tick(100.0) == 103.0
    connection.receive(b"AMQP\x03\x01\x00\x00")
    connection.tick(103.0)
    connection.take_output()
    assert connection.closed and "within 3 s" in str(connection.engine.error)


@DOORS
def test_a_frame_before_open_is_small(door: str) -> None:
    connection = network()["INT.A"].accept(trusted=True, role=door)
    connection.receive(AMQP_HEADER + (513).to_bytes(4, "big") + b"\x02\x00\x00\x00")
    connection.take_output()
    assert connection.closed and "before open, where 512 are the most" in str(connection.engine.error)


def test_a_begun_frame_has_its_time() -> None:
    routers = network(frame_timeout=5, idle_timeout=0)
    peer = routers.connect("INT.A")
    peer.connection.receive(b"\x00\x00\x10\x00\x02")
    peer.connection.tick(1000.0)
    peer.connection.tick(1005.0)
    closing = read(peer.connection.take_output())[-1]
    assert closing.condition == LIMIT and "did not come whole within 5 s" in closing.description


def test_a_begun_frame_of_a_neighbour_has_its_time() -> None:
    routers = network(frame_timeout=5, idle_timeout=0)
    stranger = Stranger(routers, "INT.A")
    stranger.connection.receive(b"\x00\x00\x10\x00\x02")
    stranger.connection.tick(1000.0)
    stranger.connection.tick(1005.0)
    assert "did not come whole within 5 s" in str(stranger.connection.engine.error)


def test_what_the_open_says() -> None:
    peer = network(idle_timeout=30, max_sessions=10, max_frame_size=4096).connect("INT.A")
    remote = peer.engine.remote
    assert remote is not None
    assert (remote.idle_time_out, remote.channel_max, remote.max_frame_size) == (15_000, 9, 4096)


def test_without_the_section_an_attach_fits_a_frame_and_a_neighbour_has_all_channels() -> None:
    routers = network("INT.A-INT.B")
    remote = routers.connect("INT.A").engine.remote
    assert remote is not None and (remote.max_frame_size, remote.channel_max) == (1 << 14, 4095)
    (wire,) = routers.wires
    assert {end.engine.remote.channel_max for end in (wire.near, wire.far)} == {65535}


def test_a_client_that_attaches_on_and_on_and_detaches_nothing_is_closed() -> None:
    routers = network(max_links=5)
    peer = routers.connect("INT.A")
    for number in range(5):
        assert not peer.sender(f"a{number}").detached
    late = peer.sender("late")
    assert late.error is not None and late.error.condition == LIMIT
    for _ in range(5):
        if not peer.closed:
            peer.sender("more")
    (error,) = peer.closed
    assert error is not None and error.condition == LIMIT and "more than 10 links" in str(error)


def test_links_of_all_who_are_behind_a_neighbour_are_no_flood() -> None:
    """Each client has its limit at its own door: three with as many as they may have do not part the routers."""
    routers = network("INT.A-INT.B", max_links=5)
    receivers, senders = [], []
    for client in range(3):
        near, far = routers.connect("INT.A"), routers.connect("INT.B")
        for number in range(5):
            receivers.append(far.receiver(f"a{client}.{number}", credit=1))
            senders.append(near.sender(f"a{client}.{number}"))
    told = [sender.send("m")[0] for sender in senders]
    for receiver in receivers:
        receiver.accept(receiver.take())
    assert told == [[ACCEPTED]] * 15 and len(routers["INT.A"].neighbours) == 1


def test_the_name_of_a_link() -> None:
    peer = network(max_name_length=64).connect("INT.A")
    for length, refused in ((64, False), (65, True)):
        peer.session.sender("n" * length, source=Source(), target=Target(address="q"), context=(end := End(peer)))
        peer.world.run()
        assert end.detached is refused
    assert end.error is not None and end.error.condition == "amqp:invalid-field"


def body_count(receiver: Receiver) -> int:
    return len(receiver.arrived)


@pytest.mark.parametrize("address", ["a", "many.a"])
@pytest.mark.parametrize("at", ["INT.A", "INT.B"])
def test_a_session_that_settles_nothing_gets_no_more(address: str, at: str) -> None:
    """On one link or on several, of one sender or of many, until it settles some."""
    routers = Network("INT.A-INT.B", caps={"max_unsettled": 5}, multicast=("many.",))
    peer = routers.connect("INT.A")
    receivers = [peer.receiver(name, credit=100) for name in (address, f"{address}.2")]
    for receiver in receivers:
        for _ in range(4):
            sender = routers.connect(at).sender(receiver.link.source.address)
            sender.send("m", "m")
    assert sum(map(body_count, receivers)) == 5
    held = [receiver.take() for receiver in receivers]
    for receiver, deliveries in zip(receivers, held):  # noqa: B905
        receiver.accept(deliveries[:2])
    settled = sum(min(len(deliveries), 2) for deliveries in held)
    assert sum(map(body_count, receivers)) == settled
    for _ in range(10):
        for receiver, deliveries in zip(receivers, held):  # noqa: B905
            receiver.accept(deliveries[2:])
            receiver.accept(receiver.take())
            del deliveries[2:]
    assert not any(map(body_count, receivers)) and not peer.session.incoming


def test_others_go_on_beside_one_that_settles_nothing() -> None:
    routers = network(max_unsettled=5)
    hoarder, other = (routers.connect("INT.A").receiver("a", credit=100) for _ in range(2))
    sender = routers.connect("INT.A").sender("a")
    for _ in range(30):
        sender.send("m")
        other.accept(other.take())
    assert len(hoarder.arrived) == 5


@pytest.mark.parametrize("size", [1, 80_000], ids=["small", "large"])
@pytest.mark.parametrize("route", [False, True], ids=["mobile", "link route"])
def test_a_sender_that_is_to_settle_and_does_not(route: bool, size: int) -> None:
    routers = Network("INT.A", caps={"max_unsettled": 5}, routes={"work.": ("INT.A", "broker")})
    receiver = None if route else routers.connect("INT.A").receiver("a", credit=100, rcv_settle_mode=1)
    peer = routers.connect("INT.A")
    sender = peer.sender("work.a" if route else "a", rcv_settle_mode=1)
    sent = 0
    while not peer.ended and sent < 20:
        sender.send("x" * size, run=False)
        in_pieces(routers, sender, 60_000)
        sent += 1
        if receiver is not None:
            receiver.dispose(receiver.take(), ACCEPTED, settled=False)
    (error,) = peer.ended
    assert error is not None and error.condition == LIMIT and sent == 6


def test_a_neighbour_has_what_all_its_clients_have() -> None:
    routers = network("EA1-INT.A", max_unsettled=5)
    receivers = [routers.connect("INT.A").receiver("a", credit=100) for _ in range(4)]
    routers.connect("EA1").sender("a").send(*["m"] * 20)
    assert [len(receiver.arrived) for receiver in receivers] == [5] * 4
