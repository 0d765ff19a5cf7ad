"""A message that has crossed leaves nothing behind that only the collector of garbage could find."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.network.world import Network

FEW = 20
LARGE = "x" * 40_000


@pytest.fixture
def _uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_uncollected")
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


@pytest.mark.usefixtures("_uncollected")
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
