"""The abort tests next to the matrix of sizes (exchanges and policy, 3.7: 01 to 07), in memory and over TCP.

A receiver has a short message, then the beginning of a long one that never ends, then ten messages, short, ten, short.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from jmsish import EmbeddedBroker
from jmsish._router_network import NetworkRouter
from jmsish.testing import RouterNetwork
from tests.network.clients import clients, received, wait_until_all_know_of_all
from tests.network.raw import RawClient, head, text

PARTS = (head(1_000_000), *[bytes(4000)] * 12)
"""What is said of the long one: more than what makes a router begin to send it on."""
TEN = [f"ten {number}" for number in range(10)]


@pytest.fixture(params=["vm", "tcp"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def raw(*urls: str, window: int = 1 << 30) -> Iterator[list[RawClient]]:
    made: list[RawClient] = []
    try:
        for url in urls:
            made.append(RawClient(url, window=window))
        yield made
    finally:
        for each in made:
            with suppress(OSError):
                each.line.drop()


def give_up(sender: RawClient, how: str) -> None:
    """End a message in its middle."""
    if how == "abort":
        sender.abort()
    elif how == "detach":
        sender.say("detach", handle=0, closed=True)
    elif how == "end":
        sender.say("end")
    elif how == "close":
        sender.say("close")
    else:
        sender.line.drop()


def hear_abort(receiver: RawClient) -> None:
    """What came of the long one, and then that it is taken back."""
    while True:
        frame = receiver.hear_transfer()
        if frame.fields.get("aborted"):
            return
        assert frame.fields.get("more")


@pytest.mark.parametrize("how", ["cut", "detach", "end", "close", "abort"])
@pytest.mark.parametrize("line", ["INT.A", "INT.A-INT.B", "EA1-INT.A-INT.B-EB1"])
def test_01_02_05_06_a_message_that_ends_in_its_middle(transport: str, line: str, how: str) -> None:
    """Truncated over one router (01), over two (02), and over four; aborted by a word of its sender (05, 06)."""
    with RouterNetwork(line, transport=transport) as network:
        near, far = list(network.routers)[0], list(network.routers)[-1]
        with raw(network[far].url, network[near].url, network[near].url) as (receiver, sender, other):
            receiver.receiver("orders", 100)
            network.wait_for_address("orders", at=near)
            sender.sender("orders")
            other.sender("orders")
            sender.post(text("short"))
            assert receiver.hear_message() == text("short")
            sender.begin_message(*PARTS)
            began = receiver.hear_transfer(more=True)
            assert began.payload.startswith(head(1_000_000))
            give_up(sender, how)
            hear_abort(receiver)
            still = sender if how == "abort" else other
            for row in (TEN, ["short"], TEN, ["short"]):
                for body in row:
                    still.post(text(body))
                assert [receiver.hear_message() for _ in row] == [text(body) for body in row]
            receiver.accept(0, 100)
            assert still.outcome_of(1) == "accepted"


@pytest.mark.parametrize("how", ["cut", "detach", "end", "close", "abort"])
@pytest.mark.parametrize("line", ["INT.A", "EA1-INT.A"])
def test_03_04_the_same_over_link_routes(transport: str, line: str, how: str) -> None:
    """The broker at the end has a message when it has all of it; so its receivers see none of this one."""
    with EmbeddedBroker() as broker:
        url = broker.url if transport == "vm" else broker.listen().url
        with RouterNetwork(line, transport=transport, routes={"orders": ("INT.A", url)}) as network:
            near = next(iter(network.routers))
            with raw(network[near].url, network[near].url) as (sender, other), clients(network, near) as (client,):
                consumer = client.consumer("orders")
                sender.sender("orders")
                other.sender("orders")
                sender.outcome_of(sender.post(text("short")))
                sender.begin_message(*PARTS)
                give_up(sender, how)
                still = sender if how == "abort" else other
                sent = [body for row in (TEN, ["short"], TEN, ["short"]) for body in row]
                for body in sent:
                    still.post(text(body))
                assert received(consumer, len(sent) + 1) == ["short", *sent]
            assert broker.queue("orders").depth == 0


@pytest.mark.parametrize("how", ["cut", "abort"])
def test_07_a_truncated_multicast_message_is_aborted_everywhere(transport: str, how: str) -> None:
    with RouterNetwork("EA1-INT.A-INT.B-EB1", transport=transport, multicast=["news"]) as network:
        urls = [router.url for router in network]
        with raw(*urls, urls[0], urls[0]) as (*receivers, sender, other):
            for each in receivers:
                each.receiver("news", 100)
            wait_until_all_know_of_all(network, "news")
            sender.sender("news")
            other.sender("news")
            sender.begin_message(*PARTS)
            for each in receivers:
                assert each.hear_transfer(more=True).payload.startswith(head(1_000_000))
            give_up(sender, how)
            for each in receivers:
                hear_abort(each)
            for body in ("short", *TEN, "short"):
                other.post(text(body))
            for each in receivers:
                assert [each.hear_message() for _ in range(12)] == [
                    text(body) for body in ("short", *TEN, "short")
                ]


@pytest.mark.parametrize("line", ["INT.B", "INT.A-INT.B"])
def test_three_subscribers_of_whom_one_has_begun_when_the_abort_comes(transport: str, line: str) -> None:
    """Who has had the first frames hears that they are taken back; who has had none hears nothing, and has its credit.

    A message goes on as fast as the slowest takes it: these two have no window yet.
    """
    with RouterNetwork(line, transport=transport, multicast=["news"]) as network:
        near, far = next(iter(network)).url, network["INT.B"].url
        with raw(far, near) as (begun, sender), raw(far, far, window=0) as blocked:
            for each in (begun, *blocked):
                each.attach("news", 0, True)
                each.flow(1, window=1 << 30 if each is begun else 0)
            network.wait_for_address("news")
            network["INT.B"].router._wait_until(lambda: credit(network["INT.B"], "news") == 3, "credit of all", 10.0)
            sender.sender("news")
            sender.begin_message(*PARTS)
            assert begun.hear_transfer(more=True).payload
            sender.abort()
            hear_abort(begun)
            begun.flow(2)
            for each in blocked:
                each.flow(1)  # its window opens: nothing was waiting in it
            sender.post(text("after"))
            for each in blocked:
                assert each.hear_message() == text("after")


def credit(router: NetworkRouter, address: str) -> int:
    """What the receivers of an address have given a router."""
    known = router.router._node.known_address(address)
    return 0 if known is None else sum(each.link.credit for each in known.receivers)
