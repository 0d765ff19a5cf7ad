"""Who may come in by which door, and that a network stays a tree (R2)."""

from __future__ import annotations

import pytest

from jmsish.broker import Broker, BrokerConfig
from jmsish.broker.link_policy import is_told
from jmsish.broker.network.node import RouterNode
from tests.broker.world import Clock
from tests.network.world import Network

LINE = "EA1-INT.A-INT.B-EB1"


def error_of(network: Network, name: str, connector: str) -> str:
    return network[name].connectors[connector].error


def test_a_line_is_whole() -> None:
    network = Network(LINE)
    for node in network.nodes.values():
        assert node.reach.keys("R").keys() == network.nodes.keys()
    assert network["EA1"].reach.keys("R") == {"EA1": 0, "INT.A": 1, "INT.B": 2, "EB1": 3}


def test_a_tree_is_whole() -> None:
    network = Network("EA1-INT.A, EA2-INT.A, INT.A-INT.B, INT.B-INT.C, INT.B-EB1")
    assert network["EB1"].reach.keys("R").keys() == network.nodes.keys()


def test_a_connection_that_would_close_a_ring_is_refused() -> None:
    network = Network("INT.A-INT.B-INT.C")
    network.join("INT.C", "INT.A")
    network.run()
    assert "ring" in error_of(network, "INT.C", "to-INT.A")
    assert not network["INT.C"].connectors["to-INT.A"].is_up
    assert len(network["INT.A"].neighbours) == 1


def test_two_connections_at_the_same_time_do_not_close_a_ring() -> None:
    network = Network()
    for name in ("INT.A", "INT.B", "INT.C"):
        network.router(name)
    network.join("INT.A", "INT.B")
    network.join("INT.B", "INT.C")
    network.join("INT.C", "INT.A")
    network.run()
    for _ in range(20):
        network.wait_for_next()
    for node in network.nodes.values():
        assert node.reach.keys("R").keys() == network.nodes.keys()
    assert sum(len(node.neighbours) for node in network.nodes.values()) == 4


def test_a_second_router_of_one_id_is_refused() -> None:
    network = Network("INT.A-INT.B")
    twin = network.router("INT.C")
    twin.router = "INT.A"
    twin.reach = type(twin.reach)("INT.A")
    network.join("INT.C", "INT.B")
    network.run()
    assert "'INT.A' is reached from 'INT.B' already" in error_of(network, "INT.C", "to-INT.B")


def test_a_router_is_not_its_own_neighbour() -> None:
    network = Network("INT.A-INT.B")
    network.join("INT.A", "INT.A")
    network.run()
    assert "cannot be its own neighbour" in error_of(network, "INT.A", "to-INT.A")


@pytest.mark.parametrize(
    ("near", "far", "role", "what"),
    [
        ("EA1", "INT.A", "inter-router", "'EA1' is no interior"),
        ("INT.B", "INT.A", "edge", "'INT.B' is no edge"),
        ("EA1", "EB1", "edge", "'EB1' is no interior"),
    ],
)
def test_a_wrong_role_is_refused_by_name(near: str, far: str, role: str, what: str) -> None:
    network = Network()
    network.router(near)
    network.router(far)
    network.nodes[near].connector("wrong", f"vm://{far}", role)
    network.run()
    assert what in error_of(network, near, "wrong")
    assert not network[near].neighbours and not network[far].neighbours


def test_an_edge_has_one_uplink() -> None:
    network = Network("EA1-INT.A")
    network.router("INT.B")
    network.nodes["EA1"].connector("second", "vm://INT.B", "edge")
    network.run()
    assert "has an uplink already" in error_of(network, "EA1", "second")


def test_a_client_at_a_door_for_routers_is_refused() -> None:
    network = Network("INT.A-INT.B")
    peer = network.connect("INT.A")
    assert not peer.closed
    client = network["INT.A"].accept(trusted=False, role="inter-router")
    assert client.door == "inter-router"
    network.peers.append(peer := type(peer)(peer.world, "client"))
    peer.connection = client
    network.run()
    (error,) = peer.closed
    assert error is not None and "this is the door for 'inter-router' routers" in str(error)


def test_a_router_at_the_door_for_clients_is_refused() -> None:
    network = Network()
    network.router("INT.A")
    network.router("INT.B")
    accept = network["INT.B"].accept
    network["INT.B"].accept = lambda **options: accept(**{**options, "role": "normal"})  # type: ignore[method-assign]
    network.join("INT.A", "INT.B")
    network.run()
    assert "this is the door for 'normal'" in error_of(network, "INT.A", "to-INT.B")


def test_a_connector_to_something_else_than_a_router_says_so() -> None:
    network = Network()
    network.router("INT.A")
    network.join("INT.A", "INT.B")
    network.run()
    assert "no such router" in error_of(network, "INT.A", "to-INT.B")


@pytest.mark.parametrize(
    ("url", "cleartext", "is_sent"),
    [
        ("amqp://bob:hunter2@192.0.2.1", False, False),
        ("amqp://bob:hunter2@192.0.2.1", True, True),
        ("amqp://bob:hunter2@127.0.0.1", False, True),
        ("amqp://bob:hunter2@localhost", False, True),
        ("amqps://bob:hunter2@192.0.2.1", False, True),
    ],
)
def test_a_connector_sends_no_password_that_others_could_read(url: str, cleartext: bool, is_sent: bool) -> None:
    config = {"router": {"id": "A", "mode": "interior"}, "authentication": {"allow_cleartext": cleartext}}
    node = RouterNode("A", BrokerConfig.from_mapping(config), clock=Clock())
    connector = node.connector("c", url, "normal")
    assert "hunter2" not in repr((connector, node.dials))
    users = {"users": {"bob": {"password": "hunter2"}}, "authentication": {"mechanisms": ["PLAIN"]}}
    near, far = connector.dialled("there"), Broker("b", users, clock=Clock()).accept(trusted=False)
    assert near is not None
    said = b""
    for _ in range(6):
        said += (octets := near.take_output())
        far.receive(octets)
        near.receive(far.take_output())
    assert (b"hunter2" in said) is is_sent is connector.is_up
    assert is_sent or "it was not sent" in connector.error


def test_a_cut_is_healed_and_everything_is_told_anew() -> None:
    network = Network(LINE)
    network.connect("EB1").receiver("orders", credit=10)
    network.wire("INT.A", "INT.B").cut()
    network.run()
    assert not network["EA1"].reaches("orders")
    assert network["EA1"].reach.keys("R").keys() == {"EA1", "INT.A"}
    network.advance(2)
    assert network["EA1"].reaches("orders")
    assert network["EA1"].reach.keys("R").keys() == network.nodes.keys()


def test_a_router_that_comes_later_is_found_within_two_seconds() -> None:
    network = Network()
    network.router("INT.A")
    network.join("INT.A", "INT.B")
    for _ in range(10):
        network.advance(5)
    network.router("INT.B")
    network.advance(1)
    network.advance(1)
    assert network["INT.A"].connectors["to-INT.B"].is_up


def test_a_connector_that_is_closed_is_not_dialled_again() -> None:
    network = Network("INT.A-INT.B")
    network["INT.A"].connectors["to-INT.B"].close()
    network.run()
    network.advance(5)
    assert not network["INT.A"].neighbours and not network["INT.B"].neighbours


def test_who_is_refused_again_and_again_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    network = Network()
    network.router("INT.A")
    network.router("INT.B")
    network.nodes["INT.B"].connector("wrong", "vm://INT.A", "inter-router")
    network.nodes["INT.A"].router = "INT.B"  # a second router of one id
    for _ in range(30):
        network.run()
        network.advance(2.0)
    said = [record.getMessage() for record in caplog.records if "'INT.B' ends the connection" in record.getMessage()]
    assert len(said) == 10 and "(10 times; further ones are told now and then)" in said[-1]
    assert [count for count in range(1, 2001) if is_told(count)] == [*range(1, 11), 100, 1000]
