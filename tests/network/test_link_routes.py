"""Link routes: what is done over any number of routers is what would be done at the broker (R10)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import Broker, BrokerConfig
from jmsish.broker.network.node import RouterNode
from jmsish.engine.conditions import MESSAGE_SIZE_EXCEEDED, EngineStateError
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    RELEASED,
    Coordinator,
    Discharge,
    Source,
    Target,
    TransactionalState,
)
from jmsish.engine.outgoing import flush_dispositions
from tests.broker.world import in_transaction
from tests.network.test_mobile import bodies
from tests.network.world import Network
from tests.wire.frames import read

LINE = "EA1-INT.A-INT.B-EB1"


@pytest.fixture(params=["INT.B", "EA1"])
def net(request: pytest.FixtureRequest) -> Network:
    """Four routers and a broker behind one of them: the clients are at EA1."""
    return Network(LINE, routes={"orders": (request.param, "broker")})


def depth(network: Network, name: str = "orders.new") -> int:
    return network.brokers["broker"].queue(name).depth


def is_open(node: RouterNode, address: str) -> bool:
    return node.link_routes.is_open(node.link_routes.home_of(address))


def test_a_prefix_is_known_everywhere_and_whether_its_broker_is_there() -> None:
    network = Network(LINE, routes={"orders": ("INT.B", "broker")})
    assert [node.link_routes.home_of("orders.new") for node in network.nodes.values()] == ["INT.B/broker"] * 4
    assert network["EA1"].link_routes.home_of("other") is None
    assert all(is_open(node, "orders.new") for node in network.nodes.values())
    network.wire("INT.B", "broker").cut()
    network.run()
    assert [node.link_routes.home_of("orders.new") for node in network.nodes.values()] == ["INT.B/broker"] * 4
    assert not any(is_open(node, "orders.new") for node in network.nodes.values())


@pytest.mark.parametrize("at", ["EA1", "INT.B"])
def test_a_link_route_without_its_broker_is_refused_by_name_and_no_mobile_address(at: str) -> None:
    network = Network(LINE, routes={"orders": ("INT.B", "broker")})
    network.wire("INT.B", "broker").cut()
    network.run()
    peer = network.connect(at)
    for end in (peer.sender("orders.new"), peer.receiver("orders.new", session=peer.begin())):
        assert end.error is not None and end.error.condition == "amqp:not-found" and "broker" in str(end.error)
    assert peer.sender("orders", session=peer.begin()).error is not None
    network.advance(2)
    assert peer.sender("orders.new", session=peer.begin()).send("a") == [[ACCEPTED]]


def test_what_was_a_mobile_address_leads_to_the_broker_when_its_route_is_known() -> None:
    """Links that were attached meanwhile end, with the reason: they would wait there for ever."""
    network = Network("EA1-INT.A")
    network.link_routes["orders"] = ("INT.B", "broker")
    network.brokers["broker"] = Broker("broker", None, clock=network.clock)
    peer = network.connect("EA1")
    receiver, sender = peer.receiver("orders.1", credit=1), peer.sender("orders.1")
    other = peer.sender("other")
    told = sender.send("a", "b")
    assert len(receiver.arrived) == 1
    network.router("INT.B")
    network.join("INT.A", "INT.B")
    network.run()
    assert sender.error is not None and sender.error.condition == "amqp:link:detach-forced"
    assert receiver.error is not None and "attach the link again" in str(receiver.error)
    assert other.error is None
    assert told[1] == [RELEASED]
    assert peer.sender("orders.1").send("c") == [[ACCEPTED]]
    assert depth(network, "orders.1") == 1


def test_a_route_may_name_a_connector_that_is_made_later(caplog: pytest.LogCaptureFixture) -> None:
    network = Network(routes={"orders": ("INT.A", "broker")})
    config = {"router": {"id": "INT.A", "mode": "interior"}, "link_routes": [{"prefix": "o", "connector": "broker"}]}
    node = network.nodes["INT.A"] = RouterNode("INT.A", BrokerConfig.from_mapping(config), clock=network.clock)
    assert "no connector 'broker' yet" in caplog.text and not is_open(node, "orders")
    node.connector("broker", "vm://broker", "normal")
    network.run()
    assert is_open(node, "orders")


def test_what_is_sent_is_in_the_queue_of_the_broker(net: Network) -> None:
    sender = net.connect("EA1").sender("orders.new")
    assert sender.link.credit > 0
    told = sender.send("a", "b", "x" * 100_000)
    assert told == [[ACCEPTED]] * 3
    assert depth(net) == 3
    receiver = net.connect("EA1").receiver("orders.new", credit=10)
    assert bodies(receiver.arrived) == ["a", "b", "x" * 100_000]
    receiver.accept(receiver.take())
    assert depth(net) == 0


def test_credit_is_what_the_receiver_gives(net: Network) -> None:
    net.connect("EA1").sender("orders.new").send("a", "b", "c")
    receiver = net.connect("EA1").receiver("orders.new", credit=2)
    assert bodies(receiver.take()) == ["a", "b"]
    assert receiver.receive(1) == ["c"]
    assert receiver.link.credit == 0


def test_a_drain_is_answered_by_the_broker(net: Network) -> None:
    net.connect("EA1").sender("orders.new").send("a", "b", "c")
    receiver = net.connect("EA1").receiver("orders.new")
    receiver.flow(10, drain=True)
    assert bodies(receiver.arrived) == ["a", "b", "c"]
    assert receiver.link.credit == 0


@pytest.mark.parametrize(("state", "again"), [(ACCEPTED, []), (RELEASED, ["a"]), (MODIFIED_FAILED, ["a+1"])])
def test_the_outcome_is_what_the_broker_hears(net: Network, state: Any, again: list[str]) -> None:
    net.connect("EA1").sender("orders.new").send("a")
    peer = net.connect("EA1")
    receiver = peer.receiver("orders.new", credit=1)
    receiver.dispose(receiver.take(), state)
    assert receiver.receive(1) == again


def test_a_transaction_commits_what_was_sent_and_received(net: Network) -> None:
    net.connect("EA1").sender("orders.new").send("in")
    peer = net.connect("EA1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver("orders.new", credit=1)
    (delivery,) = receiver.take()
    peer.sender("orders.out").send("out", state=in_transaction(txn), settled=True)
    receiver.dispose([delivery], TransactionalState(txn, ACCEPTED))
    assert depth(net) == 1 and depth(net, "orders.out") == 0
    assert controller.command(Discharge(txn, False)) == [ACCEPTED]
    assert depth(net) == 0 and depth(net, "orders.out") == 1


def test_a_transaction_rolls_back(net: Network) -> None:
    net.connect("EA1").sender("orders.new").send("in")
    peer = net.connect("EA1")
    controller = peer.controller()
    txn = controller.declare()
    receiver = peer.receiver("orders.new", credit=1)
    peer.sender("orders.out").send("out", "x" * 50_000, state=in_transaction(txn), settled=True)
    receiver.dispose(receiver.take(), TransactionalState(txn, ACCEPTED))
    assert controller.command(Discharge(txn, True)) == [ACCEPTED]
    assert depth(net) == 1 and depth(net, "orders.out") == 0


def test_a_discharge_never_overtakes_what_was_done(net: Network) -> None:
    net.connect("EA1").sender("orders.new").send(*map(str, range(50)))
    peer = net.connect("EA1")
    controller = peer.controller(session=peer.begin())
    txn = controller.declare()
    receiver = peer.receiver("orders.new", credit=50)
    sender = peer.sender("orders.out")
    for delivery in receiver.take():
        sender.send("y" * 8_000, state=in_transaction(txn), settled=True, run=False)
        peer.session.disposition(delivery, TransactionalState(txn, ACCEPTED), True)
    assert controller.command(Discharge(txn, False)) == [ACCEPTED]
    assert depth(net) == 0 and depth(net, "orders.out") == 50


@pytest.mark.parametrize("own", [True, False])
def test_a_discharge_never_overtakes_what_was_taken(net: Network, own: bool) -> None:
    """Outcomes and the discharge come in one batch, and there is nothing else that the discharge would wait for."""
    net.connect("EA1").sender("orders.new").send(*map(str, range(20)))
    peer = net.connect("EA1")
    receiver = peer.receiver("orders.new", credit=20)
    controller = peer.controller(session=peer.begin() if own else None)
    txn = controller.declare()
    for delivery in receiver.take():
        peer.session.disposition(delivery, TransactionalState(txn, ACCEPTED), True)
    flush_dispositions(peer.engine)  # as a client does that has them in another session
    assert controller.command(Discharge(txn, False)) == [ACCEPTED]
    assert depth(net) == 0


def test_each_client_has_a_connection_of_its_own_at_the_broker(net: Network) -> None:
    first, second = net.connect("EA1"), net.connect("EA1")
    first.sender("orders.new")
    first.receiver("orders.new")
    second.sender("orders.new")
    broker = net.brokers["broker"]
    names = sorted(view.container_id for view in broker.connections())
    assert names == sorted([first.engine.container_id, second.engine.container_id, names[0]])
    first.close()
    assert len(broker.connections()) == 2


def test_a_client_that_is_lost_loses_its_deliveries_at_the_broker(net: Network) -> None:
    net.connect("EA1").sender("orders.new").send("a", "b")
    lost = net.connect("EA1").receiver("orders.new", credit=1)
    assert len(lost.arrived) == 1
    lost.peer.cut()
    receiver = net.connect("EA1").receiver("orders.new", credit=5)
    assert [body.partition("+")[0] for body in receiver.receive()] == ["a", "b"]


def test_a_lost_broker_ends_the_links_and_says_so(net: Network) -> None:
    peer = net.connect("EA1")
    sender, receiver = peer.sender("orders.new"), peer.receiver("orders.new", credit=5)
    for wire in list(net.wires):
        if wire.far.broker is net.brokers["broker"] and not wire.near.ended:
            wire.cut()
    net.run()
    assert sender.detached and receiver.detached
    assert sender.error is not None and receiver.error is not None
    late = peer.receiver("orders.new", session=peer.begin())
    assert not late.link.attached or late.error is None or late.detached


def test_a_lost_router_between_ends_the_links(net: Network) -> None:
    peer = net.connect("EA1")
    sender = peer.sender("orders.new")
    net.wire("EA1", "INT.A").cut()
    net.run()
    home_is_here = net["EA1"].link_routes.home_of("orders.new") == "EA1/broker"
    assert sender.detached is not home_is_here
    net.advance(2)
    assert peer.sender("orders.new", session=peer.begin()).send("again") == [[ACCEPTED]]


def test_a_refused_attach_is_refused_with_the_words_of_the_broker(net: Network) -> None:
    net.brokers["broker"].declare_queue("orders.new")
    receiver = net.connect("EA1").receiver(
        None, source=Source(address="orders.new", filter={"jms-selector": object_filter("a = ")})
    )
    assert receiver.detached
    assert receiver.error is not None and receiver.error.condition == "amqp:invalid-field"


def object_filter(text: str) -> Any:
    from jmsish.types import Described, Symbol

    return Described(Symbol("apache.org:selector-filter:string"), text)


def test_the_size_limit_holds_for_link_routes_too() -> None:
    network = Network(LINE, limits={"EA1": 50_000}, routes={"orders": ("INT.B", "broker")})
    sender = network.connect("EA1").sender("orders.new")
    assert sender.link.remote_max_message_size == 50_000
    (told,) = sender.send("x" * 50_100)
    assert told[0].error.condition == MESSAGE_SIZE_EXCEEDED
    assert len(sender.peer.closed) == 1
    assert depth(network) == 0


def test_two_brokers_and_one_coordinator_are_refused() -> None:
    network = Network(LINE, routes={"orders": ("INT.B", "broker"), "bills": ("INT.A", "other")})
    peer = network.connect("EA1")
    controller = peer.controller()
    assert controller.error is not None and "attach a link to an address of one of them first" in str(controller.error)
    session = peer.begin()
    peer.sender("orders.new", session=session)
    controller = peer.controller(session=session)
    assert controller.declare()
    other = peer.sender("bills.new", session=session)
    assert other.error is not None and "cannot have transactions at two brokers" in str(other.error)
    fine = peer.sender("bills.new", session=peer.begin())
    assert fine.send("a") == [[ACCEPTED]]


def test_without_a_link_route_there_is_no_coordinator() -> None:
    network = Network(LINE)
    peer = network.connect("EA1")
    link = peer.session.sender("c", source=Source(), target=Coordinator(), context=(controller := peer.controller()))
    network.run()
    assert controller.error is not None and "no link route" in str(controller.error)
    assert not link.remote_attached


def test_the_longest_prefix_wins() -> None:
    network = Network(LINE, routes={"orders": ("INT.B", "broker"), "orders.eu": ("INT.A", "other")})
    peer = network.connect("EA1")
    peer.sender("orders.us").send("a")
    peer.sender("orders.eu.1").send("b")
    assert network.brokers["broker"].queue("orders.us").depth == 1
    assert network.brokers["other"].queue("orders.eu.1").depth == 1


def test_nothing_stays_when_all_are_gone(net: Network) -> None:
    peer = net.connect("EA1")
    sender, receiver = peer.sender("orders.new"), peer.receiver("orders.new", credit=10)
    sender.send("a")
    receiver.accept(receiver.take())
    sender.detach()
    receiver.detach()
    peer.close()
    net.advance(2)
    assert len(net.brokers["broker"].connections()) == 1  # the connector's own
    for node in net.nodes.values():
        assert not node.link_routes._ways and not node.link_routes._relays
        for neighbour in node.neighbours:
            assert len(neighbour.sessions) == 2


def long_selector(size: int) -> Any:
    """One that is true of messages of the usual priority."""
    return object_filter("JMSPriority = 4 OR colour <> '" + "x" * size + "'")


@pytest.mark.parametrize("size", [4_000, 8_000, 15_000])
def test_a_long_selector_gets_to_the_broker_and_its_answer_back(net: Network, size: int) -> None:
    receiver = net.connect("EA1").receiver("orders.new", credit=10, filter={"jms-selector": long_selector(size)})
    assert receiver.error is None and receiver.link.remote_attached
    assert receiver.link.remote_source.filter
    sender = net.connect("EB1").sender("orders.new")
    sender.send("one", priority=4)
    sender.send("other", priority=5)
    assert bodies(receiver.arrived) == ["one"]


def test_one_that_fits_no_frame_is_refused_to_who_sends_it(net: Network) -> None:
    """Its own engine says so, for it knows what the router takes; nothing is sent, and the connection stays."""
    peer = net.connect("EA1")
    with pytest.raises(EngineStateError, match=r"the attach takes 2\d+ octets, and the peer's frames hold 16384"):
        peer.receiver("orders.new", filter={"jms-selector": long_selector(20_000)})
    assert peer.sender("orders.new").send("m") == [[ACCEPTED]]


def test_the_name_of_the_way_is_room_enough_beside_what_fits_the_first_frame(net: Network) -> None:
    """An attach grows by the way it goes; where it does not fit between routers any more its client is told."""
    peer = net.connect("EA1")
    told = []
    for size in range(15_900, 16_384, 20):
        try:
            receiver = peer.receiver("orders.new", filter={"jms-selector": long_selector(size)})
        except EngineStateError:
            break
        told.append(receiver.error and receiver.error.condition)
    assert None in told and set(told) <= {None, "amqp:frame-size-too-small"} and not peer.closed


def test_who_asks_for_a_subscription_by_its_name_says_nothing_of_credit(net: Network) -> None:
    """As its client has not: a broker may take that for the wish to receive from it, and refuse it."""
    peer = net.connect("EA1")
    durable = Source(address="orders.t", durable=2, expiry_policy="never", capabilities=("topic",))
    link = peer.session.receiver("subscription", source=durable, target=Target(address="there"), context=Note())
    net.run()
    link.detach(closed=False)
    net.run()
    wires = [wire for wire in net.wires if wire.far.broker is net.brokers["broker"] and not wire.is_cut]
    before = [len(wire.carried) for wire in wires]
    asked = peer.session.receiver("subscription", source=None, target=Target(address="there"), context=(end := Note()))
    net.run()
    said = [frame for wire, start in zip(wires, before, strict=True) for is_out, data in wire.carried[start:] if is_out
            for frame in read(data)]  # fmt: skip
    assert [frame.name for frame in said if frame.name in ("attach", "flow")] == ["attach"]
    assert end.error is None and not end.detached
    asked.detach()
    net.run()
    assert not net.brokers["broker"].subscriptions()


class Note:
    """What a link hears."""

    error: Any = None
    detached = False
