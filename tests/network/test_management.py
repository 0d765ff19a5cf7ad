"""The management node of a router, and what it shows: the tree, neighbours, addresses, links, connections, policy."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.network.management import REQUEST_LIMIT
from jmsish.engine.codec import AMQP_VALUE, ReceivedMessage, encode_message
from jmsish.engine.outcomes import ACCEPTED, Rejected, Source, Target
from tests.broker.policies import config
from tests.broker.world import Peer
from tests.network.test_partial import in_pieces
from tests.network.world import Network

LINE = "EA1-INT.A-INT.B-EB1"


@pytest.fixture
def line() -> Network:
    return Network(LINE)


def request(
    operation: str, kind: str, body: Any = None, *, reply_to: str | None = "back", to: str | None = None, **named: Any
) -> bytes:
    return encode_message(
        properties=["m1", None, to, None, reply_to],
        application_properties={"operation": operation, "type": kind, **named},
        body=(AMQP_VALUE, body),
    )


class Desk:
    """A client that asks a router, and reads the answers on a link that receives from the node."""

    def __init__(self, peer: Peer) -> None:
        self.requests = peer.sender("$management")
        self.answers = peer.receiver(source=Source(address="$management"), target=Target(address="back"), credit=1000)

    def ask(self, operation: str, kind: str, body: Any = None, **named: Any) -> tuple[int, Any]:
        """Status and body of the answer; the description instead of the body where it is refused."""
        assert self.requests.send_octets(request(operation, kind, body, **named)) == [ACCEPTED]
        (delivery,) = self.answers.take()
        self.answers.accept([delivery])
        said = ReceivedMessage(delivery.payload)
        properties = said.application_properties()
        status = int(properties["statusCode"])
        return status, said.body()[1] if status < 300 else properties["statusDescription"]

    def rows(self, kind: str) -> list[dict[str, Any]]:
        status, table = self.ask("QUERY", "org.amqp.management", entityType=kind)
        assert status == 200
        return [dict(zip(table["attributeNames"], row, strict=True)) for row in table["results"]]


@pytest.fixture
def desk(line: Network) -> Desk:
    return Desk(line.connect("INT.A"))


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows}


# --- the node


def test_a_router_says_which_types_it_has(desk: Desk) -> None:
    status, kinds = desk.ask("GET-TYPES", "org.amqp.management")
    assert status == 200 and set(kinds) == {
        "router", "neighbour", "join", "address", "link_route", "connector", "connection", "link", "policy", "vhost",
        "group",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        (("READ", "queue"), 501, "'queue' is not managed here: router, neighbour"),
        (("DELETE", "router"), 501, "DELETE is not known for router: READ"),
        (("READ", "router"), 400, "'name' is missing"),
    ],
)
def test_what_a_router_cannot_do_it_says(desk: Desk, asked: tuple[str, str], status: int, says: str) -> None:
    got, why = desk.ask(*asked)
    assert got == status and says in why


@pytest.mark.parametrize(
    "kind", ["router", "neighbour", "join", "address", "link_route", "connector", "connection", "link"]
)
def test_what_does_not_exist_is_not_found(desk: Desk, kind: str) -> None:
    status, why = desk.ask("READ", kind, name="x")
    assert status == 404 and "'x'" in why


def test_each_that_is_shown_can_be_read_by_its_identity(desk: Desk) -> None:
    for kind in ("router", "neighbour", "join", "address", "connector", "connection", "link", "policy", "vhost"):
        for row in desk.rows(kind):
            status, read = desk.ask("READ", kind, name=row["identity"])
            assert status == 200 and read["identity"] == row["identity"] and read["type"] == kind


@pytest.mark.parametrize("back", ["back", "mobile", "nowhere"])
def test_a_request_may_come_by_a_link_without_an_address(line: Network, back: str) -> None:
    """As clients ask that have one link for whatever their messages say."""
    peer = line.connect("INT.A")
    own = peer.receiver(source=Source(address="$management"), target=Target(address="back"), credit=1000)
    mobile = line.connect("EB1").receiver("mobile", credit=1000)
    sender = peer.sender(None)
    for _ in range(600):  # more than a window of them
        asked = request("READ", "router", name="self", to="$management", reply_to=back)
        assert sender.send_octets(asked) == [ACCEPTED]
    arrived = {"back": own, "mobile": mobile}.get(back)
    assert arrived is None or len(arrived.take()) == 600
    assert own.take() == mobile.take() == []
    assert sender.send_octets(request("READ", "router", name="self", to="mobile")) == []
    assert len(mobile.take()) == 1


def test_a_request_by_a_link_without_an_address_needs_the_right() -> None:
    network = Network("INT.A", vhosts=config(targets=["orders"], may_manage=False)["vhosts"])
    (outcome,) = network.connect("INT.A").sender(None).send_octets(request("QUERY", "router", to="$management"))
    assert outcome.error.condition == "amqp:unauthorized-access"


def test_a_large_request_needs_a_link_of_its_own(line: Network) -> None:
    sender = line.connect("INT.A").sender(None)
    told = sender.transfer(request("UPDATE", "policy", {"x": "y" * 50_000}, to="$management"))
    in_pieces(line, sender, 40_000)
    assert told[0].error.condition == "amqp:not-implemented" and "a link of its own" in str(told[0].error)
    assert sender.send_octets(request("READ", "router", name="self", to="$management")) == [ACCEPTED]


def test_an_answer_goes_to_a_mobile_address_wherever_it_is(line: Network) -> None:
    receiver = line.connect("EB1").receiver("answers", credit=1)
    line.connect("EA1").sender("$management").send_octets(request("READ", "router", reply_to="answers", name="self"))
    (delivery,) = receiver.take()
    assert ReceivedMessage(delivery.payload).body()[1]["name"] == "EA1"


def test_an_answer_goes_to_a_dynamic_node_as_clients_make_one(line: Network) -> None:
    peer = line.connect("EA1")
    receiver = peer.receiver(None, dynamic=True, credit=1)
    address = receiver.link.remote_source.address
    peer.sender("$management").send_octets(request("READ", "router", reply_to=address, name="self"))
    assert len(receiver.take()) == 1
    assert line["EA1"].reaches(address)


def test_an_answer_without_a_way_is_dropped_and_the_request_is_over(line: Network) -> None:
    sender = line.connect("EA1").sender("$management")
    credit = sender.link.credit
    for reply_to in ("nowhere", None):
        assert sender.send_octets(request("READ", "router", reply_to=reply_to, name="self")) == [ACCEPTED]
    for _ in range(credit):
        sender.send_octets(request("READ", "router", reply_to="nowhere", name="self"))
    assert sender.link.credit > 0


def test_no_more_requests_come_than_answers_leave(line: Network) -> None:
    peer = line.connect("EA1")
    sender = peer.sender("$management")
    receiver = peer.receiver(source=Source(address="$management"), target=Target(address="back"))
    asked = sender.link.credit
    for _ in range(asked):
        sender.transfer(request("READ", "router", name="self"))
    line.run()
    assert sender.link.credit == 0  # nobody has read one of the answers
    receiver.flow(asked)
    assert len(receiver.take()) == asked and sender.link.credit > 0


def test_answers_that_wait_go_with_who_asked(line: Network) -> None:
    peer = line.connect("EA1")
    peer.receiver(source=Source(address="$management"), target=Target(address="back"))
    peer.sender("$management").send_octets(request("READ", "router", name="self"))
    peer.cut()
    assert not line["EA1"].opened_connections() or all(each.neighbour for each in line["EA1"].opened_connections())


def test_a_request_is_bounded(line: Network) -> None:
    peer = line.connect("EA1")
    sender = peer.sender("$management")
    assert sender.link.remote_max_message_size == REQUEST_LIMIT
    (told,) = sender.send_octets(b"x" * (REQUEST_LIMIT + 1))
    assert isinstance(told, Rejected) and told.error is not None
    assert told.error.condition == "amqp:link:message-size-exceeded"
    assert len(peer.closed) == 1


def test_a_neighbour_has_no_way_to_the_node(line: Network) -> None:
    sender = line.connect("EA1").sender("$management")
    sender.send_octets(request("READ", "router", name="self", reply_to="nowhere"))
    assert not line["INT.A"].reaches("$management")


def test_nonsense_is_answered_where_it_can_be_read(desk: Desk) -> None:
    assert desk.requests.send_octets(b"nonsense") == [ACCEPTED]
    assert desk.answers.take() == []


# --- what it shows


def test_the_routers_with_their_hops(desk: Desk) -> None:
    rows = by_name(desk.rows("router"))
    assert {name: row["hops"] for name, row in rows.items()} == {"INT.A": 0, "EA1": 1, "INT.B": 1, "EB1": 2}
    assert (rows["INT.A"]["mode"], rows["INT.A"]["neighbours"]) == ("interior", 2)
    assert rows["EB1"]["mode"] is None  # it was not asked


@pytest.mark.parametrize("at", ["EA1", "INT.A", "INT.B", "EB1"])
def test_each_router_knows_the_whole_tree(line: Network, at: str) -> None:
    rows = Desk(line.connect(at)).rows("join")
    assert [(row["role"], row["dialler"], row["dialled"]) for row in rows] == [
        ("edge", "EA1", "INT.A"),
        ("edge", "EB1", "INT.B"),
        ("inter-router", "INT.A", "INT.B"),
    ]


def test_a_join_goes_with_its_connection_and_comes_again(line: Network) -> None:
    desk = Desk(line.connect("EA1"))
    line.wire("INT.A", "INT.B").cut()
    line.run()
    assert [row["name"] for row in desk.rows("join")] == ["EA1-INT.A"]
    line.advance(1.0)
    assert [row["name"] for row in desk.rows("join")] == ["EA1-INT.A", "EB1-INT.B", "INT.A-INT.B"]


def test_neighbours_with_what_lies_behind_them(desk: Desk) -> None:
    rows = by_name(desk.rows("neighbour"))
    assert list(rows) == ["EA1", "INT.B"]
    assert rows["EA1"]["behind"] == {"EA1": 1} and rows["INT.B"]["behind"] == {"INT.B": 1, "EB1": 2}
    assert (rows["EA1"]["role"], rows["EA1"]["mode"], rows["EA1"]["connector"]) == ("edge", "edge", None)
    assert (rows["INT.B"]["role"], rows["INT.B"]["connector"]) == ("inter-router", "to-INT.B")
    assert all(row["up"] and row["hops"] == 1 for row in rows.values())


def test_a_neighbour_that_a_connector_has_lost_is_shown_as_down(line: Network, desk: Desk) -> None:
    line.wire("INT.A", "INT.B").cut()
    row = by_name(desk.rows("neighbour"))["INT.B"]
    assert not row["up"] and row["connection"] is None and row["behind"] == {}
    (connector,) = desk.rows("connector")
    assert not connector["up"] and connector["error"] and connector["router"] == "INT.B"


def test_addresses_with_hops_and_counters(line: Network, desk: Desk) -> None:
    receiver = line.connect("EB1").receiver("orders", credit=2)
    sender = line.connect("EA1").sender("orders")
    sender.send("1", "2", "3")
    assert len(receiver.take()) == 2
    row = by_name(desk.rows("address"))["orders"]
    assert (row["hops"], row["towards"], row["multicast"]) == (2, ["INT.B"], False)
    assert (row["receivers"], row["senders"]) == (0, 1)
    assert (row["deliveries_in"], row["deliveries_out"]) == (3, 3)
    there = by_name(Desk(line.connect("EB1")).rows("address"))["orders"]
    assert (there["hops"], there["towards"], there["receivers"]) == (0, [], 1)
    assert (there["deliveries_in"], there["deliveries_out"], there["waiting"]) == (3, 2, 1)


def test_an_address_that_only_a_sender_has_is_shown_without_hops(line: Network, desk: Desk) -> None:
    line.connect("INT.A").sender("nobody")
    row = by_name(desk.rows("address"))["nobody"]
    assert row["hops"] is None and row["senders"] == 1


def test_copies_of_multicast_messages_are_counted_each(line: Network) -> None:
    network = Network(LINE, multicast=("news.",))
    for at in ("INT.A", "INT.A", "EB1"):
        network.connect(at).receiver("news.eu", credit=10)
    network.connect("INT.A").sender("news.eu").send("1", "2")
    row = by_name(Desk(network.connect("INT.A")).rows("address"))["news.eu"]
    assert row["multicast"] and row["hops"] == 0 and row["receivers"] == 2
    assert (row["deliveries_in"], row["deliveries_out"]) == (2, 6)


def test_links_with_their_counters(line: Network, desk: Desk) -> None:
    receiver = line.connect("INT.A", accepted={"peer": "there"}).receiver("orders", credit=10)
    sender = line.connect("INT.A").sender("orders")
    sender.send("1", "2", "3")
    receiver.accept(receiver.take()[:1])
    rows = [row for row in desk.rows("link") if row["address"] == "orders"]
    out, come = sorted(rows, key=lambda row: row["direction"], reverse=True)
    assert (out["direction"], out["delivered"], out["unsettled"], out["credit"]) == ("out", 3, 2, 7)
    assert (come["direction"], come["delivered"], come["unsettled"]) == ("in", 3, 2)
    assert out["peer"].startswith("peer-") and out["kind"] == "mobile"


def test_links_of_neighbours_are_shown_with_their_routers(line: Network, desk: Desk) -> None:
    line.connect("EB1").receiver("orders", credit=10)
    line.connect("EA1").sender("orders").send("1")
    rows = [row for row in desk.rows("link") if row["peer"] in ("EA1", "INT.B")]
    assert {(row["kind"], row["direction"], row["peer"]) for row in rows if row["kind"] == "control"} == {
        ("control", direction, peer) for direction in ("in", "out") for peer in ("EA1", "INT.B")
    }
    through = [(row["direction"], row["peer"]) for row in rows if row["address"] == "orders"]
    assert sorted(through) == [("in", "EA1"), ("out", "INT.B")]


def test_link_routes_and_their_links(line: Network) -> None:
    network = Network(LINE, routes={"work.": ("INT.B", "store")})
    peer = network.connect("EA1")
    peer.sender("work.q").send("1")
    desk = Desk(network.connect("INT.A"))
    (route,) = desk.rows("link_route")
    assert route["name"] == "work.@INT.B/store"
    assert (route["prefix"], route["router"], route["connector"], route["hops"]) == ("work.", "INT.B", "store", 1)
    rows = [row for row in desk.rows("link") if row["kind"] == "route"]
    assert sorted((row["direction"], row["peer"], row["delivered"]) for row in rows) == [
        ("in", "EA1", 1),
        ("out", "INT.B", 1),
    ]
    assert desk.ask("READ", "link_route", name=route["name"])[0] == 200


def test_a_connector_is_shown_without_its_password(line: Network, desk: Desk) -> None:
    line["INT.A"].connector("store", "amqp://me:secret@store.example:5672", "normal")
    row = by_name(desk.rows("connector"))["store"]
    assert (row["url"], row["role"], row["up"]) == ("amqp://store.example:5672", "normal", False)
    assert "secret" not in str(desk.rows("connector"))


def test_connections_with_their_roles(line: Network, desk: Desk) -> None:
    rows = desk.rows("connection")
    assert sorted((row["role"], row["router"]) for row in rows if row["router"]) == [
        ("edge", "EA1"),
        ("inter-router", "INT.B"),
    ]
    (client,) = [row for row in rows if row["role"] == "normal"]
    assert (client["user"], client["vhost"]) == ("anonymous", "$default") and client["receivers"] == 1


# --- policy


def test_the_counters_of_policy(line: Network, desk: Desk) -> None:
    (policy,) = desk.rows("policy")
    (vhost,) = desk.rows("vhost")
    assert policy["connections_current"] == 3 and vhost["connections_current"] >= 1


def test_who_may_only_look_changes_nothing() -> None:
    desk = Desk(policed(sources=["$management"], targets=["$management"]).connect("INT.A"))
    assert desk.ask("READ", "router", name="self")[0] == 200
    assert desk.ask("UPDATE", "policy", {"max_message_size": 10}, name="self")[0] == 403
    assert desk.ask("RESET", "policy", name="self")[0] == 403
    assert desk.ask("DELETE", "connection", name="1")[0] == 403


def policed(**group: Any) -> Network:
    """One router whose clients may use one address, and what else a test says."""
    return Network("INT.A", vhosts=config(**{"sources": ["orders"], "targets": ["orders"], **group})["vhosts"])


@pytest.mark.parametrize("may_manage", [False, None])
def test_who_may_not_manage_has_no_node(may_manage: bool | None) -> None:
    peer = policed(**({} if may_manage is None else {"may_manage": may_manage})).connect("INT.A")
    for end in (peer.sender("$management"), peer.receiver("$management")):
        assert end.error is not None and end.error.condition == "amqp:unauthorized-access"


def test_who_administers_changes_policy_and_ends_connections() -> None:
    network = policed(may_manage=True)
    desk = Desk(network.connect("INT.A"))
    assert desk.ask("UPDATE", "policy", {"max_message_size": 10}, name="self")[0] == 200
    assert desk.rows("policy")[0]["max_message_size"] == 10
    other = network.connect("INT.A")
    sender = other.sender("orders")
    assert sender.link.remote_max_message_size == 10
    (victim,) = [row for row in desk.rows("connection") if row["container_id"] == "peer-1"]
    assert desk.ask("DELETE", "connection", name=victim["name"])[0] == 204
    assert other.closed and other.closed[0] is not None and other.closed[0].condition == "amqp:connection:forced"
    assert desk.ask("RESET", "policy", name="self")[0] == 204


def test_who_ends_its_own_connection_is_gone() -> None:
    network = policed(may_manage=True)
    peer = network.connect("INT.A")
    desk = Desk(peer)
    (row,) = desk.rows("connection")
    desk.requests.send_octets(request("DELETE", "connection", name=row["name"]))
    assert peer.closed and network["INT.A"].opened_connections() == []


def test_an_answer_does_not_go_where_its_asker_may_not_send() -> None:
    network = policed(may_manage=True, sources=["private"])
    private = network.connect("INT.A").receiver("private", credit=1)
    peer = network.connect("INT.A")
    sender = peer.sender("$management")
    sender.send_octets(request("READ", "router", name="self", reply_to="private"))
    assert private.take() == []
    own = peer.receiver(None, dynamic=True, credit=1)
    sender.send_octets(request("READ", "router", name="self", reply_to=own.link.remote_source.address))
    assert len(own.take()) == 1  # its own dynamic node, whatever policy says of addresses


def test_a_refused_link_is_counted() -> None:
    network = policed(may_manage=True)
    peer = network.connect("INT.A")
    assert peer.sender("secrets").error is not None and peer.receiver("secrets").error is not None
    desk = Desk(network.connect("INT.A"))
    (vhost,) = desk.rows("vhost")
    assert (vhost["senders_denied"], vhost["receivers_denied"]) == (1, 1)
    assert desk.rows("policy")[0]["links_denied"] == 2
