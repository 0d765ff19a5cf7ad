"""What has crossed a router, or gone from it, leaves nothing that only the collector of garbage could find."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from tests.network.world import Network

FEW = 20
LARGE = "x" * 40_000


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("body", ["small", LARGE])
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("credit", [FEW, 0])
def test_a_message_leaves_no_garbage(body: str, settled: bool, credit: int) -> None:
    network = Network("INT.A-INT.B")
    receiver = network.connect("INT.B").receiver("orders", credit=credit)
    sender = network.connect("INT.A").sender("orders")
    gc.collect()
    for _ in range(FEW):
        sender.send(body, settled=settled)
    receiver.flow(FEW)
    arrived = receiver.take()
    assert len(arrived) == FEW
    if not settled:
        receiver.accept(arrived)
    del arrived
    assert gc.collect() == 0


@pytest.mark.usefixtures("uncollected")
def test_a_message_over_a_link_route_leaves_no_garbage() -> None:
    network = Network("INT.A-INT.B", routes={"work.": ("INT.B", "store")})
    peer = network.connect("INT.A")
    receiver = peer.receiver("work.orders", credit=FEW)
    sender = peer.sender("work.orders")
    sender.send("one")
    receiver.accept(receiver.take())
    gc.collect()
    for _ in range(FEW):
        sender.send("small")
    arrived = receiver.take()
    receiver.accept(arrived)
    assert len(arrived) == FEW - 1
    del arrived
    assert gc.collect() == 0


def living() -> Counter[str]:
    """What there is of routers and brokers, by kind, garbage that was not collected included."""
    kinds = (type(each) for each in gc.get_objects())
    return Counter(kind.__qualname__ for kind in kinds if kind.__module__.startswith("jmsish.broker"))


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("end", ["close", "cut", "killed by the router"])
@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize("where", ["orders", "work.orders"])
def test_a_client_that_has_gone_leaves_nothing_at_any_router(where: str, settles: bool, end: str) -> None:
    """Neither its connection, nor its links, nor those made for it on the way, nor what was under way."""
    network = Network("INT.A-INT.B", routes={"work.": ("INT.B", "store")})

    def happen() -> None:
        peers = [network.connect("INT.A"), network.connect("INT.B")]
        sender, receiver = peers[0].sender(where), peers[1].receiver(where, credit=FEW)
        for body in ("small", LARGE):
            sender.send(body, run=False)
        sender.send("settled", settled=True)
        if settles:
            receiver.accept(receiver.take())
        for peer in peers:
            if end == "close":
                peer.close()
            elif end == "cut":
                peer.cut()
            else:
                peer.connection.close(None)
                network.run()
            peer.connection.receive_eof()
            network.run()
        for peer in peers:
            del peer.connection  # of the test's own rings nobody is to ask
        network.peers.clear()
        network.wires = [wire for wire in network.wires if not wire.near.ended]
        network.named.clear()
        for broker in network.brokers.values():
            for view in broker.queues():
                view.purge()
        network.advance(3)

    happen()
    gc.collect()
    before = living()
    happen()
    assert living() - before == Counter()


@pytest.mark.usefixtures("uncollected")
def test_a_neighbour_that_comes_and_goes_leaves_nothing() -> None:
    network = Network("INT.A-INT.B")

    def happen() -> None:
        network.wire("INT.A", "INT.B").cut()
        network.run()
        network.advance(3)
        network.wires = [wire for wire in network.wires if not wire.near.ended]

    happen()
    gc.collect()
    before = living()
    happen()
    assert living() - before == Counter()
