"""The matrix of size limits (exchanges and policy, 3.7) as an application meets it, in memory and over TCP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest

import jmsish
from jmsish import EmbeddedBroker, SendRejectedError, aio
from jmsish.testing import RouterNetwork
from tests.network.clients import EXCEEDED, PATIENCE, Client, clients, received, too_large, wait_until_all_know_of_all
from tests.network.test_sizes import ALLOWED, BLOCKED, LIMITS, LINE

_addresses = count(1)


class Stage:
    """The four routers of one transport, and a broker behind INT.B."""

    def __init__(self, transport: str) -> None:
        self.transport = transport
        self.broker = EmbeddedBroker()
        self.broker.start()
        url = self.broker.url if transport == "vm" else self.broker.listen().url
        self.network = RouterNetwork(
            LINE, limits=LIMITS, transport=transport, multicast=("news",), routes={"oversize": ("INT.B", url)}
        )
        self.network.start()

    def address(self, kind: str = "orders") -> str:
        """One that no other test has used."""
        return f"{kind}.{next(_addresses)}"

    def stop(self) -> None:
        self.network.stop()
        self.broker.stop()


@pytest.fixture(scope="module", params=["vm", "tcp"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(request.param)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def net(stage: Stage) -> RouterNetwork:
    """The network, whole, whatever the test before did to an uplink."""
    stage.network.wait()
    return stage.network


def denied(net: RouterNetwork) -> dict[str, int]:
    return {router.id: router.router._node.denials.max_message_size_denied for router in net}


def assert_forced(client: Client) -> None:
    """The connection was closed as the document says."""
    assert "Message size exceeded" in str(client.forced())


@pytest.mark.parametrize(("name", "sending", "receiving", "size"), BLOCKED, ids=lambda value: str(value))
def test_basic_blocked(stage: Stage, net: RouterNetwork, name: str, sending: str, receiving: str, size: int) -> None:
    address = stage.address()
    before = denied(net)
    with clients(net, receiving, sending) as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at=sending)
        producer = sender.producer(address)
        producer.send(*["x" * size] * 10)
        outcomes = producer.heard()
        assert_forced(sender)
        assert len(too_large(outcomes)) >= 1
        assert all(outcomes), "nothing is accepted"
        assert received(consumer, 0) == []
        assert not receiver.losses
    after = denied(net)
    if name in ("4c", "4d", "4e"):
        # What EB1 refuses, INT.B may have refused before, whose limit is smaller.
        assert after.pop("INT.B") - before.pop("INT.B") in (0, 1)
    assert after == {**before, sending: before[sending] + 1}


@pytest.mark.parametrize(("name", "sending", "receiving", "size"), ALLOWED, ids=lambda value: str(value))
def test_basic_allowed(stage: Stage, net: RouterNetwork, name: str, sending: str, receiving: str, size: int) -> None:
    address = stage.address()
    with clients(net, receiving, sending) as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at=sending)
        producer = sender.producer(address)
        producer.send(*["x" * (size - 200)] * 10)
        assert [len(body) for body in received(consumer, 10)] == [size - 200] * 10
        assert producer.heard() == [None] * 10
        assert not sender.losses


@pytest.mark.parametrize("transport", ["vm", "tcp"])
def test_s32_a_limit_of_two_to_the_31_at_a_stand_alone_broker(transport: str) -> None:
    with EmbeddedBroker(config={"policy": {"max_message_size": 1 << 31}}) as broker:
        client = Client(broker.url if transport == "vm" else broker.listen().url)
        consumer, producer = client.consumer("orders"), client.producer("orders")
        assert producer.limit == 1 << 31
        producer.send(*["x" * 200] * 10)
        assert received(consumer, 10) == ["x" * 200] * 10
        assert producer.heard() == [None] * 10
        client.close()


@pytest.mark.parametrize(("name", "receiving"), [("60", "INT.B"), ("61", "EA1")])
def test_compound_60_61_an_uplink_is_checked_again(stage: Stage, net: RouterNetwork, name: str, receiving: str) -> None:
    address = stage.address()
    before = denied(net)
    with clients(net, receiving, "EB1") as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EB1")
        producer = sender.producer(address)
        producer.send(*["x" * 199_600] * 10)
        outcomes = producer.heard()
        # One, unless the machine is so slow that the uplink has come again before all were sent.
        refused = len(too_large(outcomes))
        assert refused >= 1, outcomes
        assert all(outcomes), "all are settled, and none is accepted"
        assert received(consumer, 0) == []
        assert not sender.losses
        assert denied(net) == {**before, "INT.B": before["INT.B"] + refused}
        net.wait()
        net.wait_for_address(address, at="EB1")
        producer.send("small")  # by the same link of the same client
        assert received(consumer, 1) == ["small"]
        assert producer.heard()[10:] == [None]


def test_compound_70_both_refuse(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address()
    with clients(net, "INT.B", "EB1") as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EB1")
        producer = sender.producer(address)
        producer.send(*["x" * 200_200] * 10)
        outcomes = producer.heard()
        assert_forced(sender)
        assert len(too_large(outcomes)) >= 1 and all(outcomes)
        assert received(consumer, 0) == []


def test_compound_80_multicast_stays_where_it_is_small_enough(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address("news")
    before = denied(net)
    with clients(net, *LIMITS, "EB1") as (*receivers, sender):
        consumers = [receiver.consumer(address) for receiver in receivers]
        wait_until_all_know_of_all(net, address)
        producer = sender.producer(address)
        producer.send(*["x" * 199_600] * 10)
        assert received(consumers[-1], 10) == ["x" * 199_600] * 10
        outcomes = producer.heard()
        assert outcomes == [None] * 10
        assert [received(consumer, 0) for consumer in consumers[:-1]] == [[]] * 3
        assert not sender.losses
    after = denied(net)
    assert after.pop("INT.B") > before.pop("INT.B")
    assert after == before


@pytest.mark.parametrize(("name", "sending", "size"), [("81", "EA1", 50_200), ("82", "INT.A", 100_200)])
def test_compound_81_82_multicast_refused_at_the_door(
    stage: Stage, net: RouterNetwork, name: str, sending: str, size: int
) -> None:
    address = stage.address("news")
    before = denied(net)
    with clients(net, *LIMITS, sending) as (*receivers, sender):
        consumers = [receiver.consumer(address) for receiver in receivers]
        net.wait_for_address(address)
        producer = sender.producer(address)
        producer.send(*["x" * size] * 10)
        outcomes = producer.heard()
        assert_forced(sender)
        assert len(too_large(outcomes)) >= 1 and all(outcomes)
        assert [received(consumer, 0) for consumer in consumers] == [[]] * 4
    assert denied(net) == {**before, sending: before[sending] + 1}


def test_compound_90_the_limit_holds_for_link_routes(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address("oversize")
    with clients(net, "EB1") as (sender,):
        producer = sender.producer(address)
        producer.send(*["x" * 200_200] * 10)
        outcomes = producer.heard()
        assert_forced(sender)
        assert len(too_large(outcomes)) >= 1 and all(outcomes)
    assert stage.broker.queue(address).depth == 0
    with clients(net, "EB1") as (sender,):
        producer = sender.producer(address)
        producer.send("small")
        assert producer.heard() == [None]
    assert stage.broker.queue(address).depth == 1


def test_90_the_smallest_limit_on_the_way_is_that_of_the_link(stage: Stage, net: RouterNetwork) -> None:
    """A link route has one attach from end to end, so the client is told it, and the first door holds it to it."""
    address = stage.address("oversize")
    before = denied(net)
    with clients(net, "EB1") as (sender,):
        producer = sender.producer(address)
        assert producer.limit == LIMITS["INT.B"]
        producer.send(*["x" * 199_600] * 10)
        outcomes = producer.heard()
        assert len(too_large(outcomes)) >= 1 and all(outcomes)
        assert_forced(sender)
    assert denied(net) == {**before, "EB1": before["EB1"] + 1}  # the uplink, which others use too, stays
    assert stage.broker.queue(address).depth == 0


# --- not covered by any upstream test


@pytest.mark.parametrize("sending", list(LIMITS))
def test_the_client_is_told_the_limit_of_its_door(stage: Stage, net: RouterNetwork, sending: str) -> None:
    """Before anything is sent it raises by itself, and its connection stays."""
    address = stage.address()
    with clients(net, "INT.B", sending) as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at=sending)
        producer = sender.session.create_producer(sender.destination(address))
        assert producer.max_message_size == LIMITS[sending]
        with pytest.raises(SendRejectedError) as failed:
            producer.send("x" * LIMITS[sending])
        assert failed.value.condition == EXCEEDED
        producer.send("small", on_completion=lambda message, error: None)
        assert received(consumer, 1) == ["small"]
        assert not sender.losses


@pytest.mark.parametrize("over", [0, 1])
def test_exactly_the_limit_passes_and_an_octet_more_does_not(stage: Stage, net: RouterNetwork, over: int) -> None:
    address = stage.address()
    with clients(net, "EB1", "EA1") as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EA1")
        teller = sender.session.create_producer(sender.destination(address))
        with pytest.raises(SendRejectedError) as failed:
            teller.send("x" * 50_000)
        assert failed.value.info is not None
        body = "x" * (100_000 - failed.value.info["message-size"] + over)
        producer = sender.producer(address)
        producer.send(body)
        if over:
            assert len(too_large(producer.heard())) == 1
            assert_forced(sender)
        assert received(consumer, 1 - over) == [body] * (1 - over)
        if not over:
            assert producer.heard() == [None]


def test_properties_count_too(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address()
    with clients(net, "EB1", "EA1") as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EA1")
        producer = sender.producer(address)
        producer.send("x", properties={"note": "y" * 50_000})
        assert len(too_large(producer.heard())) == 1
        assert_forced(sender)
        assert received(consumer, 0) == []


def test_a_pre_settled_one_closes_without_an_outcome(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address()
    with clients(net, "EB1", "EA1") as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EA1")
        producer = sender.producer(address)
        producer.raw.send("x" * 50_200, delivery_mode=jmsish.DeliveryMode.NON_PERSISTENT)
        assert_forced(sender)
        assert received(consumer, 0) == []


def test_the_anonymous_relay_has_the_limit_too(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address()
    with clients(net, "EB1", "EA1") as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EA1")
        producer = sender.producer(None)
        producer.send("small", destination=sender.destination(address))
        assert received(consumer, 1) == ["small"]
        with pytest.raises(SendRejectedError) as failed:
            producer.raw.send("x" * 50_200, destination=sender.destination(address))
        assert failed.value.condition == EXCEEDED and failed.value.info is not None
        assert failed.value.info["max-message-size"] == 50_000
        assert not sender.losses


def test_a_second_session_of_the_same_connection_goes_with_it(stage: Stage, net: RouterNetwork) -> None:
    address, other = stage.address(), stage.address()
    with clients(net, "EB1", "EA1") as (receiver, sender):
        consumers = receiver.consumer(address), receiver.consumer(other)
        for each in (address, other):
            net.wait_for_address(each, at="EA1")
        session = sender.connection.create_session()
        second = session.create_producer(session.create_queue(other))
        second.send("before", on_completion=lambda message, error: None)
        assert received(consumers[1], 1) == ["before"]
        sender.producer(address).send("x" * 50_200)
        assert_forced(sender)
        with pytest.raises(jmsish.JMSError):
            second.send("after")
        assert received(consumers[1], 0) == []


def test_a_new_connection_sends_the_next_message(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address()
    with clients(net, "EB1", "EA1", "EA1") as (receiver, first, second):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EA1")
        first.producer(address).send("x" * 50_200)
        assert_forced(first)
        producer = second.producer(address)
        producer.send("small")
        assert received(consumer, 1) == ["small"]
        assert producer.heard() == [None]


def test_a_stream_without_an_end_is_refused_at_the_limit(stage: Stage, net: RouterNetwork) -> None:
    """An endless message: the router answers at the octet that is too much, and does not wait for its end."""
    address = stage.address()
    given = 0

    def pieces() -> Iterator[bytes]:
        nonlocal given
        while True:
            given += 10_000
            yield bytes(10_000)

    with clients(net, "EB1", "EA1") as (receiver, sender):
        consumer = receiver.consumer(address)
        net.wait_for_address(address, at="EA1")
        producer = sender.producer(address)
        with pytest.raises(jmsish.JMSError):
            producer.raw.send(stream=pieces())
        assert_forced(sender)
        assert received(consumer, 0) == []


def test_two_in_one_transaction_by_a_link_route_are_not_committed(stage: Stage, net: RouterNetwork) -> None:
    """A transaction with one message that is too large: nothing of it is at the broker."""
    address = stage.address("oversize")
    with clients(net, "EA1") as (client,):
        session = client.connection.create_session(transacted=True)
        producer = session.create_producer(session.create_queue(address))
        producer.send("first")
        producer._core.link.remote_max_message_size = 0
        with pytest.raises(jmsish.JMSError) as failed:
            producer.send("x" * 50_200)
            session.commit()
        assert "Message size exceeded" in str(failed.value)
    with clients(net, "EA1") as (client,):  # what the lost one has held is told before
        producer = client.producer(address)
        producer.send("second")
        assert producer.heard() == [None]
        assert received(client.consumer(address), 1) == ["second"]


def test_the_same_with_asyncio(stage: Stage, net: RouterNetwork) -> None:
    address = stage.address()

    async def play() -> None:
        async with aio.connect(net["EB1"].url) as far, aio.connect(net["EA1"].url) as near:
            session = await far.create_session()
            consumer = await session.create_consumer(session.create_queue(address))
            await far.start()
            net.wait_for_address(address, at="EA1")
            session = await near.create_session()
            producer = await session.create_producer(session.create_queue(address))
            sending = asyncio.create_task(producer.send("small"))
            message = await consumer.receive(PATIENCE)
            assert message is not None and message.body == "small"
            await sending
            getattr(producer, "_core").link.remote_max_message_size = 0  # noqa: B009
            with pytest.raises(SendRejectedError) as failed:
                await producer.send("x" * 50_200)
            assert failed.value.condition == EXCEEDED

    asyncio.run(asyncio.wait_for(play(), PATIENCE))


@pytest.mark.parametrize("transport", ["vm", "tcp"])
def test_a_router_with_users_knows_its_neighbours(transport: str) -> None:
    """They log in by their own names, so that a group may be theirs."""
    config = {"users": {"alice": {"password": "secret"}}}
    with RouterNetwork("EA1-INT.A-INT.B", transport=transport, configs={"INT.A": config, "INT.B": config}) as network:
        assert [each.identity for each in network["INT.A"].connections() if each.container_id == "EA1"] == ["EA1"]
        with jmsish.connect(network["INT.B"].url, username="alice", password="secret"):
            pass
        network.kill("INT.A")
        network.revive("INT.A")
        network.wait()
    assert list(config["users"]) == ["alice"], "what was given is left as it was"
