"""A neighbour speaks nonsense, claims what is not its own, tells too much or stops reading: nobody else is hurt."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.network import connection
from jmsish.broker.network.doors import introduce
from jmsish.broker.network.linkroutes import ROUTE
from jmsish.broker.network.reach import HOPS_LIMIT
from jmsish.broker.network.updates import (
    CONTROL,
    EDGE_KEYS_LIMIT,
    KEYS_LIMIT,
    UPDATE_KEYS,
    UPDATE_LIMIT,
    Update,
    decode_update,
    encode_update,
)
from jmsish.engine.outcomes import ACCEPTED, RELEASED, Coordinator, Source, Target
from jmsish.engine.values import encode
from tests.broker.world import Peer, in_transaction, message
from tests.network.stranger import Stranger, taking
from tests.network.test_mobile import bodies
from tests.network.world import Network, Site

LINE = "EA1-INT.A-INT.B"


@pytest.fixture
def line() -> Network:
    return Network(LINE, routes={"orders": ("INT.B", "broker")})


@pytest.fixture(autouse=True)
def others_go_on(line: Network) -> Any:
    """Whatever a neighbour does, the clients of the router, and those behind it, are served as before."""
    receiver = line.connect("INT.A").receiver("others", credit=1000)
    senders = [line.connect(name).sender("others") for name in ("INT.A", "EA1", "INT.B")]

    def check() -> None:
        told = [sender.send("on")[0] for sender in senders]
        assert len(receiver.arrived) == 3
        receiver.accept(receiver.take())
        assert told == [[ACCEPTED]] * 3

    check()
    yield
    check()
    assert {each.router for node in line.nodes.values() for each in hellos(node)} >= {"EA1", "INT.A", "INT.B"}


def hellos(node: Any) -> list[Any]:
    return [each.neighbour for each in node.neighbours]


# --- who it says to be


@pytest.mark.parametrize("router", ["EA1", "INT.A", "INT.B"])
def test_the_id_of_another_is_refused(line: Network, router: str) -> None:
    stranger = Stranger(line, "INT.A", router=router, speaks=False)
    assert router in stranger.why and len(line["INT.A"].neighbours) == 2


@pytest.mark.parametrize("router", ["", "a/b", "a\nb", "x" * 128, 7])
def test_an_id_that_is_none_is_refused(line: Network, router: Any) -> None:
    properties = {**introduce("x", "interior")}
    properties[next(iter(properties))] = router
    peer = Peer(
        Site(line, line["INT.A"]), "x", offered_capabilities=("jmsish:inter-router",), properties=properties  # type: ignore[arg-type]
    )
    line.peers.append(peer)
    line.run()
    (error,) = peer.closed
    assert error is not None and error.condition == "amqp:invalid-field"


def test_what_an_edge_was_is_learned_again_when_it_comes_again(line: Network) -> None:
    """Its place can be taken while it is away: an id is no password, a door is guarded by users and policy."""
    line.wire("EA1", "INT.A").cut()
    stranger = Stranger(line, "INT.A", router="EA1", mode="edge")
    assert not stranger.closed
    line.run()
    stranger.cut()
    for _ in range(3):
        line.advance(2)
    assert line["EA1"].uplink is not None


# --- what it tells


@pytest.mark.parametrize(
    ("tells", "why"),
    [
        ({"RINT.B": 0}, "answers for itself alone"),
        ({"RINT.Z": 0}, "answers for itself alone"),
        ({"Jedge\nEX\nINT.A": 0}, "answers for itself alone"),
        ({"Lorders\nINT.B/broker": 0}, "answers for itself alone"),
        ({"CINT.B/broker": 0}, "answers for itself alone"),
        ({"Afar": 3}, "nothing is behind one"),
    ],
)
def test_an_edge_answers_for_itself_alone(line: Network, tells: dict[str, int], why: str) -> None:
    stranger = Stranger(line, "INT.A", router="EX")
    stranger.tell({"Amine": 0, "REX": 0, "Lx\nEX/c": 0, "CEX/c": 0})
    assert line["INT.B"].reaches("mine")
    stranger.tell({"Anew": 0, **tells})
    assert why in stranger.why
    assert not line["INT.B"].reaches("mine") and not line["INT.B"].reaches("new")
    assert line["EA1"].link_routes.home_of("orders.1") == "INT.B/broker"


def test_an_interior_that_knows_a_router_which_is_here_already_is_let_go(line: Network) -> None:
    stranger = Stranger(line, "INT.A")
    stranger.tell({"RINT.X": 0, "REA1": 1})
    assert "ring" in stranger.why


@pytest.mark.parametrize(
    "octets",
    [
        b"", b"nonsense", b"\x00\x53\x77", b"\x00\x53\x77\x40", message("hello"),
        b"\x00\x53\x77" + encode({"operation": "halt"}),
        b"\x00\x53\x77" + encode({"number": 0, "add": {"Ax": -1}, "remove": []}),
        b"\x00\x53\x77" + encode({"number": 0, "add": {"Ax": 1 << 40}, "remove": []}),
        b"\x00\x53\x77" + encode({"number": 0, "add": {"A": 0}, "remove": []}),
        b"\x00\x53\x77" + encode({"number": 0, "add": {"A" + "x" * 3000: 0}, "remove": []}),
        b"\x00\x53\x77" + encode({"number": 0, "add": {}, "remove": [7]}),
        encode_update(Update(0, {}, [])) * 2,
    ],
    ids=range(12),
)  # fmt: skip
def test_nonsense_ends_the_connection_with_what_is_wrong(line: Network, octets: bytes) -> None:
    stranger = Stranger(line, "INT.A")
    stranger.say(octets)
    assert "cannot be read" in stranger.why and "amqp:decode-error" in stranger.why


def test_what_one_neighbour_tells_does_not_part_the_others(line: Network) -> None:
    """They believe each other what they have believed it."""
    stranger = Stranger(line, "INT.A")
    stranger.tell({"Afar": HOPS_LIMIT - 1, "RINT.FAR": HOPS_LIMIT - 1, "A" + "x" * 2047: 0, "J": 0} | {"J\n\n": 0})
    assert not stranger.closed or "cannot be read" in stranger.why
    stranger = Stranger(line, "INT.A", router="INT.Y")
    stranger.tell({"Afar": HOPS_LIMIT - 1, "RINT.FAR": HOPS_LIMIT - 1, "A" + "x" * 2047: 0, "J\n\n": 0})
    assert not stranger.closed
    assert line["EA1"].reaches("far") and line["EA1"].uplink is not None and len(line["INT.B"].neighbours) == 1


def test_what_later_routers_may_tell_is_left_out(line: Network) -> None:
    stranger = Stranger(line, "INT.A")
    stranger.tell({"Zsomething": 0, "Anew": 0}, ["Zelse"])
    assert not stranger.closed and line["INT.B"].reaches("new")
    assert not any(key[:1] == "Z" for key in line["INT.A"].reach._learned)


@pytest.mark.parametrize("number", [1, 7, -1, 1 << 31])
def test_an_update_out_of_sequence_ends_the_connection(line: Network, number: int) -> None:
    stranger = Stranger(line, "INT.A")
    said = {"number": number, "add": {"Ax": 0}, "remove": []}
    stranger.say(b"\x00\x53\x77" + encode(said))
    assert "0 was expected" in stranger.why and not line["INT.B"].reaches("x")


def test_what_was_never_told_may_be_taken_back(line: Network) -> None:
    stranger = Stranger(line, "INT.A")
    stranger.tell(remove=["Aothers", "RINT.B", "Anothing"])
    assert not stranger.closed and line["EA1"].reaches("others")


def test_a_second_control_link_is_refused(line: Network) -> None:
    stranger = Stranger(line, "INT.A")
    stranger.tell({"Afirst": 0})
    first = stranger.control
    stranger.attach_control("again")
    assert not stranger.control.attached or stranger.control.remote_target is None
    stranger.control, stranger.number = first, 1
    stranger.tell({"Asecond": 0})
    assert line["INT.B"].reaches("second")


def test_an_update_without_an_end_ends_the_connection(line: Network) -> None:
    stranger = Stranger(line, "INT.A")
    stranger.say(b"\x00\x53\x77\xb1\x7f\xff\xff\xff" + bytes(UPDATE_LIMIT))
    assert "an update of more than" in stranger.why


@pytest.mark.parametrize("router", ["INT.X", "EX"])
def test_very_many_addresses_are_too_many(line: Network, monkeypatch: pytest.MonkeyPatch, router: str) -> None:
    assert EDGE_KEYS_LIMIT * 100 <= KEYS_LIMIT <= 1_000_000  # some hundred octets each
    monkeypatch.setattr(connection, "EDGE_KEYS_LIMIT" if router == "EX" else "KEYS_LIMIT", 3000)
    stranger = Stranger(line, "INT.A", router=router)
    stranger.tell({f"Ax{number}": 0 for number in range(2990)})
    assert not stranger.closed and line["EA1"].reaches("x1")
    stranger.tell({f"Ay{number}": 0 for number in range(20)})
    assert "too many for one neighbour" in stranger.why
    assert not any(node.reaches("x1") for node in line.nodes.values())
    assert line["INT.A"].reach._counts.keys() == set(line["INT.A"].neighbours)


def test_many_addresses_are_told_in_many_updates(line: Network) -> None:
    stranger = Stranger(line, "INT.A")
    stranger.tell({f"Ax{number}": 0 for number in range(3000)})
    assert all(line["EA1"].reaches(f"x{number}") for number in range(3000))
    assert line["EA1"].neighbours and not stranger.closed
    later = Stranger(line, "INT.B", router="INT.Y")
    assert len(later.told) >= 3000 / UPDATE_KEYS
    stranger.cut()
    assert not line["EA1"].reaches("x1") and len(later.told) >= 6000 / UPDATE_KEYS


# --- what it asks of brokers


def route(link_name: str, home: str, origin: str, container: str = "forged") -> dict[Any, Any]:
    return {ROUTE: [home, origin, link_name, container]}


def test_a_forged_origin_gets_no_way_of_another(line: Network) -> None:
    """Who could name the connection of a client elsewhere would have its transactions."""
    client = line.connect("EA1")
    controller = client.controller()
    txn = controller.declare()
    client.sender("orders.1").send("a", state=in_transaction(txn), settled=True)
    stranger = Stranger(line, "INT.A", router="EX")
    (origin,) = {way.origin for way in line["INT.A"].link_routes._ways.values()}
    for name, target in (("c", Coordinator()), ("p", Target(address="orders.1"))):
        stranger.session.sender(
            name, source=Source(), target=target, context=(end := Note()),
            properties=route(name, "INT.B/broker", origin),
        )  # fmt: skip
        line.run()
        assert end.error is not None and end.error.condition == "amqp:not-allowed"
    assert {way.whence.container_id for way in line["INT.A"].link_routes._ways.values()} == {"EA1"}
    assert controller.commit(txn) is None
    assert line.brokers["broker"].queue("orders.1").depth == 1


@pytest.mark.parametrize(
    ("address", "home"),
    [
        ("secrets", "INT.B/broker"), ("orders.1", "INT.B/nothing"), ("orders.1", "INT.A/to-INT.B"), ("orders.1", ""),
        ("orders.1", "INT.Z/broker"),
    ],
)  # fmt: skip
def test_a_neighbour_gets_no_further_than_link_routes_lead(line: Network, address: str, home: str) -> None:
    stranger = Stranger(line, "INT.A", router="EX")
    ends = []
    for number in range(2):
        link = stranger.session.sender(
            f"p{number}", source=Source(address="s"), target=Target(address=address),
            context=(end := Note()), properties=route("p", home, "EX/1"),
        )  # fmt: skip
        ends.append(end)
        line.run()
        assert end.error is not None, link
    broker = line.brokers["broker"]
    assert len(broker.connections()) == 1 and not stranger.closed


class Note:
    """What a link of a stranger hears."""

    error: Any = None
    detached = False


@pytest.mark.parametrize("asked", [7, [], ["a"], ["a", "b", "c", 4], {"a": 1}])
def test_a_route_that_is_none_is_refused(line: Network, asked: Any) -> None:
    stranger = Stranger(line, "INT.A", router="EX")
    stranger.session.sender(
        "p", source=Source(), target=Target(address="orders.1"), context=(end := Note()), properties={ROUTE: asked}
    )
    line.run()
    assert end.error is not None and end.error.condition == "amqp:invalid-field"


# --- what it attaches and sends


@pytest.mark.parametrize("address", [None, "", "$management", "$cbs", "x" * 1500])
def test_a_neighbour_names_an_address_that_is_one(line: Network, address: str | None) -> None:
    stranger = Stranger(line, "INT.A", router="EX")
    stranger.session.sender("p", source=Source(), target=Target(address=address), context=(end := Note()))
    line.run()
    assert end.error is not None and not stranger.closed


def test_a_neighbour_receives_nothing_by_links_of_its_own(line: Network) -> None:
    stranger = Stranger(line, "INT.A", router="EX")
    for address in ("others", CONTROL, "$management"):
        stranger.session.receiver(address, source=Source(address=address), target=Target(), context=(end := Note()))
        line.run()
        assert end.error is not None


def test_a_neighbour_with_small_frames_takes_what_it_can(line: Network) -> None:
    """The attach of a link to it would be larger than its frames."""
    stranger = Stranger(line, "INT.A", answers=taking())
    long_, short = "l" * 900, "s"
    stranger.tell({"A" + long_: 0, "A" + short: 0})
    (theirs,) = [each for each in line["INT.A"].neighbours if each.container_id == "INT.X"]
    theirs.engine.max_frame_out = 512
    sender = line.connect("INT.A").sender(long_)
    (told,) = sender.send("a")
    assert told[0].error.condition == "amqp:resource-limit-exceeded"
    line.connect("INT.A").sender(short).send("b")
    assert bodies(stranger.arrived) == ["b"]
    assert len(theirs.sessions) == 3  # the two of the control links, and that of the link


# --- what it does not do


def deafen(network: Network, stranger: Stranger) -> None:
    """It reads nothing any more, and keeps the connection."""
    network.peers.remove(stranger)


def test_a_neighbour_that_stops_reading_holds_only_its_own_senders_up(line: Network) -> None:
    stranger = Stranger(line, "INT.A", answers=taking(10_000))
    stranger.tell({"Astuck": 0})
    stuck = line.connect("EA1").sender("stuck")
    stuck.send("a")
    deafen(line, stranger)
    for _ in range(20):
        stuck.send("x" * 30_000)
    (theirs,) = [each for each in line["INT.A"].neighbours if each.container_id == "INT.X"]
    assert theirs.engine.out_size < 1 << 19
    for number in range(5):
        line.connect("INT.B").receiver(f"more-{number}")
    stranger.connection.receive_eof()
    line.run()
    assert not line["EA1"].reaches("stuck")


def test_a_neighbour_that_stops_reading_is_told_no_more_than_it_takes(line: Network) -> None:
    other = Stranger(line, "INT.B", router="INT.Y")
    deaf = Stranger(line, "INT.A", router="INT.X")
    deafen(line, deaf)
    for number in range(40):
        other.tell({f"A{number}-{index}-" + "x" * 200: 0 for index in range(250)})
    (theirs,) = [each for each in line["INT.A"].neighbours if each.container_id == "INT.X"]
    assert theirs.engine.out_size < 1 << 19
    line.peers.append(deaf)
    line.named.add(deaf.connection)
    line.run()
    told = {key for delivery in deaf.told for key in decode_update(delivery.payload).add}
    assert len([key for key in told if key.endswith("-" + "x" * 200)]) == 10_000


def test_a_neighbour_that_does_not_answer_its_attach_leaves_what_waits_to_come_back_with_it(line: Network) -> None:
    stranger = Stranger(line, "INT.A", answers=lambda link: None)
    stranger.tell({"Amute": 0})
    told = line.connect("EA1").sender("mute").send("a", "b")
    assert told == [[], []]
    stranger.cut()
    assert told == [[RELEASED], [RELEASED]]


def test_a_neighbour_that_does_not_speak_at_all_knows_nothing_and_is_told_everything(line: Network) -> None:
    stranger = Stranger(line, "INT.A", speaks=False)
    assert stranger.told and not stranger.closed
    assert line["EA1"].reach.keys("R").keys() >= {"INT.X"}
