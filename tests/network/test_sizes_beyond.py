"""Size limits at routers beyond the matrix: the list "not covered by any upstream test" (exchanges and policy, 3.7)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish import SendRejectedError
from jmsish.testing import RouterNetwork
from tests.broker.policies import group
from tests.network.clients import EXCEEDED, Client, clients, received, too_large
from tests.network.raw import RawClient, head, text
from tests.network.test_aborts import hear_abort, raw
from tests.network.test_network_api import assert_forced, denied

LIMIT = 50_000


@pytest.fixture(params=["vm", "tcp"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def body_of(size: int) -> bytes:
    """A message of exactly so many octets."""
    return head(size - 8) + bytes(size - 8)


def parts_of(octets: bytes, size: int) -> list[bytes]:
    return [octets[start : start + size] for start in range(0, len(octets), size)]


def expect_forced(sender: RawClient, number: int, *, taken_back: bool = False) -> None:
    """Rejected, the link closed, the connection closed: in this order, as W10 says.

    One that was taken back in the same moment is settled by that.
    """
    if not taken_back:
        settled = sender.expect("disposition", but=("flow",), first=number, settled=True)
        assert settled.fields["state"].name == "rejected"
    assert sender.expect("detach", but=("flow", "disposition"), closed=True).condition == EXCEEDED
    closed = sender.expect("close", but=("flow", "end"))
    assert (closed.condition, closed.description) == ("amqp:connection:forced", "Message size exceeded")


# --- exactly, and what counts


@pytest.mark.parametrize("over", [-1, 0, 1])
@pytest.mark.parametrize("frame", [512, 4000])
def test_the_limit_is_exact_whatever_the_frames(transport: str, over: int, frame: int) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        with raw(network["INT.A"].url, network["EA1"].url) as (receiver, sender):
            receiver.receiver("orders", 10)
            network.wait_for_address("orders", at="EA1")
            assert sender.sender("orders").fields["max_message_size"] == LIMIT
            *first, last = parts_of(body_of(LIMIT + over), frame - 64)
            number = sender.begin_message(*first)
            sender.go_on(last, last=True)
            if over > 0:
                expect_forced(sender, number)
            else:
                assert receiver.hear_message() == body_of(LIMIT + over)
                receiver.accept(0)
                assert sender.outcome_of(number) == "accepted"


@pytest.mark.parametrize("what", ["annotations", "properties"])
def test_sections_before_a_body_of_one_octet_count(transport: str, what: str) -> None:
    code = {"annotations": 0x72, "properties": 0x74}[what]
    name = b"\xa3\x03x-y" if what == "annotations" else b"\xa1\x03x-y"
    value = b"\xb0" + (LIMIT).to_bytes(4, "big") + bytes(LIMIT)
    section = b"\x00\x53" + bytes([code]) + b"\xd1" + (4 + len(name + value)).to_bytes(4, "big") + b"\x00\x00\x00\x02"
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        with raw(network["INT.A"].url, network["EA1"].url) as (receiver, sender):
            receiver.receiver("orders", 10)
            network.wait_for_address("orders", at="EA1")
            sender.sender("orders")
            *first, last = parts_of(section + name + value + text("x"), 4000)
            number = sender.begin_message(*first)
            sender.go_on(last, last=True)
            expect_forced(sender, number)


# --- what is announced, and of which width


def test_the_limit_is_announced_for_each_link_and_absent_where_there_is_none(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        with raw(network["EA1"].url, network["INT.A"].url) as (limited, free):
            assert limited.attach("a", 0, False).fields["max_message_size"] == LIMIT
            for handle, address in enumerate([None, "$management"], 1):
                assert limited.sender(address, handle).fields["max_message_size"] == LIMIT
            assert limited.attach("b", 9, True).fields.get("max_message_size") is None  # the peer receives on it
            assert free.attach("a", 0, False).fields.get("max_message_size") is None


@pytest.mark.parametrize("limit", [(1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1])
def test_a_limit_has_64_bits(transport: str, limit: int) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": limit, "INT.A": limit}, transport=transport) as network:
        with clients(network, "INT.A", "EA1") as (receiver, sender):
            consumer = receiver.consumer("orders")
            network.wait_for_address("orders", at="EA1")
            producer = sender.producer("orders")
            assert producer.limit == limit
            producer.send("small", "x" * 300_000)
            assert received(consumer, 2) == ["small", "x" * 300_000]
            assert producer.heard() == [None] * 2


@pytest.mark.parametrize("claimed", [(1 << 31) + 7, (1 << 32) - 20])
def test_a_message_that_claims_more_than_two_to_the_31_goes_through_as_it_comes(transport: str, claimed: int) -> None:
    """Nothing is allocated for what is claimed: the receiver has the first mebioctet while the rest is to come."""
    with RouterNetwork("EA1-INT.A-INT.B-EB1", transport=transport) as network:
        with raw(network["EB1"].url, network["EA1"].url) as (receiver, sender):
            receiver.receiver("orders", 10)
            network.wait_for_address("orders", at="EA1")
            sender.sender("orders")
            sender.begin_message(head(claimed))
            wanted, came = len(head(claimed)), b""
            for _ in range(60):  # as much at a time as a window takes
                sender.go_on(*[bytes(4000)] * 5)
                wanted += 20_000
                while len(came) < wanted:
                    came += receiver.hear_transfer(more=True).payload
            assert came.startswith(head(claimed))
            sender.abort()
            hear_abort(receiver)
            sender.post(text("after"))
            assert receiver.hear_message() == text("after")


def test_a_limit_above_two_to_the_31_is_passed_by_what_is_claimed_only(transport: str) -> None:
    """What counts is what came, not what a section says that it has."""
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        with raw(network["INT.A"].url, network["EA1"].url) as (receiver, sender):
            receiver.receiver("orders", 10)
            network.wait_for_address("orders", at="EA1")
            sender.sender("orders")
            number = sender.begin_message(head((1 << 31) + 1), *[bytes(4000)] * 12)
            assert receiver.hear_transfer(more=True).payload
            sender.go_on(*[bytes(4000)] * 2)
            expect_forced(sender, number)
            hear_abort(receiver)


# --- which limit holds


LEVELS = [(vhost, of_group) for vhost in (None, 0, 60_000) for of_group in (None, 0, 70_000)]


@pytest.mark.parametrize(("vhost", "of_group"), LEVELS)
def test_group_over_virtual_host_over_router_at_the_door_of_clients(
    transport: str, vhost: int | None, of_group: int | None
) -> None:
    config = leveled(LIMIT, vhost, of_group)
    wanted = next(each for each in (of_group, vhost, LIMIT) if each is not None)
    with RouterNetwork("EA1-INT.A", configs={"EA1": config}, transport=transport) as network:
        with clients(network, "INT.A", "EA1") as (receiver, sender):
            consumer = receiver.consumer("orders")
            network.wait_for_address("orders", at="EA1")
            producer = sender.producer("orders")
            assert producer.limit == (wanted or None)
            if wanted:
                producer.send("x" * (wanted + 1))
                assert len(too_large(producer.heard())) == 1
                assert_forced(sender)
            else:
                producer.send("x" * 200_000)
                assert received(consumer, 1) == ["x" * 200_000]


@pytest.mark.parametrize(("vhost", "of_group"), LEVELS)
def test_group_over_virtual_host_over_router_at_the_door_of_edges(
    transport: str, vhost: int | None, of_group: int | None
) -> None:
    config = leveled(LIMIT, vhost, of_group)
    wanted = next(each for each in (of_group, vhost, LIMIT) if each is not None)
    with RouterNetwork("EA1-INT.A", configs={"INT.A": config}, transport=transport) as network:
        with clients(network, "INT.A", "EA1") as (receiver, sender):
            consumer = receiver.consumer("orders")
            network.wait_for_address("orders", at="EA1")
            producer = sender.producer("orders")
            assert producer.limit is None  # the edge has none
            producer.send("x" * (wanted - 200 if wanted else 200_000))
            assert len(received(consumer, 1)) == 1 and producer.heard() == [None]
            if wanted:
                producer.send("x" * (wanted + 1))
                assert len(too_large(producer.heard()[1:])) == 1
                assert not sender.losses


def leveled(of_router: int, vhost: int | None, of_group: int | None) -> dict[str, Any]:
    """A configuration with these limits, None where nothing is said."""
    settings = group(**({} if of_group is None else {"max_message_size": of_group}))
    host: dict[str, Any] = {"groups": {"all": settings}}
    if vhost is not None:
        host["max_message_size"] = vhost
    return {"policy": {"max_message_size": of_router}, "vhosts": {"$default": host}}


def test_a_limit_that_is_changed_holds_for_connections_to_come(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", transport=transport) as network:
        with clients(network, "INT.A", "EA1") as (receiver, before):
            consumer = receiver.consumer("orders")
            network.wait_for_address("orders", at="EA1")
            network["EA1"].policy.change(max_message_size=LIMIT)
            with clients(network, "EA1") as (after,):
                old, new = before.producer("orders"), after.producer("orders")
                assert (old.limit, new.limit) == (None, LIMIT)
                old.send("x" * 60_000)
                assert received(consumer, 1) == ["x" * 60_000]
                new.send("x" * 60_000)
                assert len(too_large(new.heard())) == 1
                assert_forced(after)
                assert not before.losses


def test_a_limit_that_is_changed_holds_for_the_next_uplink(transport: str) -> None:
    with RouterNetwork("EA1-INT.A-INT.B", transport=transport) as network:
        with clients(network, "INT.B", "EA1") as (receiver, sender):
            consumer = receiver.consumer("orders")
            network.wait_for_address("orders", at="EA1")
            producer = sender.producer("orders")
            network["INT.A"].policy.change(max_message_size=LIMIT)
            producer.send("x" * 60_000)
            assert received(consumer, 1) == ["x" * 60_000]
            cut_uplink(network, "EA1")
            network.wait()
            network.wait_for_address("orders", at="EA1")
            producer.send("x" * 60_000)
            assert len(too_large(producer.heard(2))) == 1
            assert not sender.losses


def cut_uplink(network: RouterNetwork, edge: str) -> None:
    """Let the interior close it; the edge comes again."""
    router = network[edge].router

    def close() -> None:
        router._node.uplink.close(None)  # type: ignore[union-attr]

    router._call(close)
    router._wait_until(lambda: router._node.uplink is not None, "its uplink again", 10.0)


# --- others on the same connection


def test_a_second_link_of_the_same_session_goes_with_it(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        with raw(network["INT.A"].url, network["INT.A"].url, network["EA1"].url) as (first, second, sender):
            first.receiver("one", 10)
            second.receiver("two", 10)
            network.wait_for_address("one", at="EA1")
            network.wait_for_address("two", at="EA1")
            sender.sender("one", 0)
            sender.sender("two", 1)
            before = sender.post(text("before"), handle=1)
            assert second.hear_message() == text("before")
            number = sender.begin_message(*[bytes(4000)] * 13)
            sender.post(text("behind"), handle=1)
            expect_forced(sender, number)
            assert before < number
        with clients(network, "INT.A") as (client,):
            assert received(client.consumer("two"), 0) == []


@pytest.mark.parametrize("beyond", [True, False])
def test_who_aborts_beyond_the_limit_was_too_large_and_who_does_below_was_not(transport: str, beyond: bool) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        with raw(network["INT.A"].url, network["EA1"].url) as (receiver, sender):
            receiver.receiver("orders", 10)
            network.wait_for_address("orders", at="EA1")
            sender.sender("orders")
            number = sender.begin_message(*[bytes(4000)] * 12)
            assert receiver.hear_transfer(more=True).payload
            if beyond:
                sender.go_on(bytes(4000))
            sender.abort()
            if beyond:
                expect_forced(sender, number, taken_back=True)
            else:
                hear_abort(receiver)
                sender.post(text("after"))
                assert receiver.hear_message() == text("after")
            assert denied(network)["EA1"] == beyond


@pytest.mark.parametrize("blocked", ["credit", "window"])
@pytest.mark.parametrize("at", ["EA1", "INT.A"])
def test_a_receiver_that_takes_nothing_hides_no_message_that_is_too_large(
    transport: str, blocked: str, at: str
) -> None:
    """It is found when it has come, whoever may take it; what one may send ahead is more than the limit."""
    with RouterNetwork("EA1-INT.A", limits={at: LIMIT}, transport=transport) as network:
        with raw(network["INT.A"].url, window=1 << 30 if blocked == "credit" else 1) as (receiver,):
            receiver.attach("orders", 0, True)
            receiver.flow(0 if blocked == "credit" else 10, window=1)
            network.wait_for_address("orders", at="EA1")
            with raw(network["EA1"].url) as (sender,):
                sender.sender("orders")
                number = sender.begin_message(*[bytes(4000)] * 13)
                if at == "EA1":
                    expect_forced(sender, number)
                elif blocked == "window":
                    assert sender.outcome_of(number) == "rejected"
                else:
                    # The interior has given the edge no credit for it: it waits in the edge until somebody takes it.
                    receiver.flow(10)
                    assert sender.outcome_of(number) == "rejected"


# --- counters, requests, the client


def test_refusals_are_counted_for_the_router_and_for_the_virtual_host_and_can_be_set_back(transport: str) -> None:
    configs = {"EA1": leveled(0, LIMIT, None)}
    with RouterNetwork("EA1-INT.A", configs=configs, transport=transport) as network:
        for count in (1, 2):
            with clients(network, "INT.A", "EA1") as (receiver, sender):
                receiver.consumer("orders")
                network.wait_for_address("orders", at="EA1")
                producer = sender.producer("orders")
                producer.send("x" * 60_000)
                producer.heard()
                assert_forced(sender)
            denials = network["EA1"].policy.denials
            assert denials.max_message_size_denied == denials.vhosts["$default"].max_message_size_denied == count
        assert denied(network)["INT.A"] == 0
        network["EA1"].policy.reset_denials()
        assert network["EA1"].policy.denials.max_message_size_denied == 0


def test_a_request_to_the_management_node_has_the_limit(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": 2000}, transport=transport) as network:
        with raw(network["EA1"].url) as (client,):
            client.sender("$management")
            number = client.begin_message(bytes(1900), bytes(1900))
            expect_forced(client, number)
            assert denied(network)["EA1"] == 1


def test_a_client_that_reconnects_sends_the_next_message(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        receiver = Client(network["INT.A"].url)
        consumer = receiver.consumer("orders")
        network.wait_for_address("orders", at="EA1")
        sender = Client(f"failover:({network['EA1'].url})")
        producer = sender.producer("orders")
        producer.send("x" * 60_000)
        assert len(too_large(producer.heard())) == 1
        sender.producer("orders").send("small")  # by a new link, of the connection that was made again
        assert received(consumer, 1) == ["small"]
        sender.close()
        receiver.close()


def test_what_a_client_checks_itself_costs_no_connection(transport: str) -> None:
    with RouterNetwork("EA1-INT.A", limits={"EA1": LIMIT}, transport=transport) as network:
        with clients(network, "INT.A", "EA1") as (receiver, sender):
            consumer = receiver.consumer("orders")
            network.wait_for_address("orders", at="EA1")
            producer = sender.session.create_producer(sender.destination("orders"))
            with pytest.raises(SendRejectedError) as failed:
                producer.send("x" * 60_000)
            assert failed.value.condition == EXCEEDED and denied(network)["EA1"] == 0
            producer.send("small", on_completion=lambda message, error: None)
            assert received(consumer, 1) == ["small"]
