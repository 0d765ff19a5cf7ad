"""`on_oversize = "link"` at routers: only the link ends, whether a client's or an edge's onward one."""

from __future__ import annotations

import pytest

from jmsish.testing import RouterNetwork
from tests.network.clients import EXCEEDED, clients, received, too_large
from tests.network.raw import RawClient, text
from tests.network.test_aborts import raw
from tests.network.test_network_api import denied

LIMIT = 50_000
CONFIG = {"policy": {"max_message_size": LIMIT, "on_oversize": "link"}}


@pytest.fixture(params=["vm", "tcp"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_client_keeps_its_connection_and_its_other_links(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", configs={"EA1": CONFIG}, transport=transport) as network:
        with clients(network, "INT.A", "EA1") as (receiver, sender):
            consumers = receiver.consumer("one"), receiver.consumer("two")
            for address in ("one", "two"):
                network.wait_for_address(address, at="EA1")
            first, second = sender.producer("one"), sender.producer("two")
            first.send("x" * 60_000)
            assert len(too_large(first.heard())) == 1
            second.send("small")
            assert received(consumers[1], 1) == ["small"]
            again = sender.producer("one")
            again.send("small")
            assert received(consumers[0], 1) == ["small"]
            assert not [loss for loss in sender.losses if loss.condition != EXCEEDED]
        assert denied(network)["EA1"] == 1


def test_an_edge_keeps_its_uplink_and_the_sender_its_link(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", configs={"INT.A": CONFIG}, transport=transport) as network:
        with clients(network, "INT.A", "EA1", "EA1") as (receiver, sender, other):
            consumers = receiver.consumer("one"), receiver.consumer("two")
            for address in ("one", "two"):
                network.wait_for_address(address, at="EA1")
            (connector,) = network["EA1"].router.connectors
            before = connector._connector.connection
            first, second = sender.producer("one"), other.producer("two")
            first.send("x" * 60_000)
            assert len(too_large(first.heard())) == 1
            second.send("small")
            assert received(consumers[1], 1) == ["small"]
            first.send("small")  # by the same link, when the edge has asked its interior for another
            assert received(consumers[0], 1) == ["small"]
            assert not (sender.losses or other.losses)
            assert connector._connector.connection is before
        assert denied(network) == {"EA1": 0, "INT.A": 1}


def test_the_rest_of_it_is_read_over_and_what_follows_goes_through(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", configs={"EA1": CONFIG}, transport=transport) as network:
        with raw(network["INT.A"].url, network["EA1"].url) as (receiver, sender):
            receiver.receiver("orders", 10)
            network.wait_for_address("orders", at="EA1")
            sender.sender("orders")
            number = sender.begin_message(*[bytes(4000)] * 14)
            sender.go_on(*[bytes(4000)] * 14, last=True)
            assert sender.outcome_of(number) == "rejected"
            assert sender.expect("detach", but=("flow",)).condition == EXCEEDED
            sender.say("detach", handle=0, closed=True)
            sender.sender("orders", 1)
            sender.post(text("after"), handle=1)
            hear_after(receiver)


def hear_after(receiver: RawClient) -> None:
    """The next message that comes whole."""
    frame = receiver.hear_transfer()
    while frame.payload != text("after"):
        frame = receiver.hear_transfer()
