"""What programs do with a network of routers, and what is done to it, in memory and over TCP."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import pytest

import jmsish
from jmsish import EmbeddedBroker
from jmsish.testing import RouterNetwork
from tests.network.clients import PATIENCE, Client, clients, received, wait_until_all_know_of_all

LINE = "EA1-INT.A-INT.B-EB1"


@pytest.fixture(params=["vm", "tcp"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def serves(network: RouterNetwork, near: str, far: str) -> None:
    """A message goes from one router to another."""
    with clients(network, far, near) as (receiver, sender):
        consumer = receiver.consumer("check")
        network.wait_for_address("check", at=near)
        producer = sender.producer("check")
        producer.send("x")
        assert received(consumer, 1) == ["x"] and producer.heard() == [None]


# --- programs


def test_a_request_is_answered_over_the_whole_network(transport: str) -> None:
    """The address to answer to is a dynamic one, which only its maker has, and the answers go where they say."""
    with RouterNetwork(LINE, transport=transport) as network, clients(network, "EB1", "EA1") as (server, client):
        requests = server.consumer("service")
        network.wait_for_address("service", at="EA1")

        def serve() -> None:
            answers = server.session.create_producer(None)
            while (request := requests.receive(PATIENCE)).body != "end":
                answers.send(f"re: {request.body}", destination=request.jms_reply_to)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        own = client.session.create_temporary_queue()
        answers = client.session.create_consumer(own)
        producer = client.producer("service")
        for number in range(10):
            request = client.session.create_text_message(f"request {number}")
            request.jms_reply_to = own
            producer.raw.send(request, on_completion=lambda message, error: None)
            answer = answers.receive(PATIENCE)
            assert answer is not None and answer.body == f"re: request {number}"
        producer.send("end")
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_topic_is_for_all(transport: str) -> None:
    with RouterNetwork(LINE, transport=transport) as network, clients(network, *network.routers) as made:
        consumers = [each.session.create_consumer(each.session.create_topic("news")) for each in made]
        wait_until_all_know_of_all(network, "news")
        producer = made[0].session.create_producer(made[0].session.create_topic("news"))
        producer.send("hello", on_completion=lambda message, error: None)
        assert [received(consumer, 1) for consumer in consumers] == [["hello"]] * 4


def test_a_durable_subscription_lives_at_the_broker_and_is_ended_there(transport: str) -> None:
    """It is looked up by its name, without an address, and without a word about credit."""
    with EmbeddedBroker() as broker:
        url = broker.url if transport == "vm" else broker.listen().url
        with RouterNetwork(LINE, transport=transport, routes={"work.": ("INT.B", url)}) as network:
            for number in range(2):
                client = Client(network["EA1"].url, client_id="program")
                topic = client.session.create_topic("work.news")
                consumer = client.session.create_durable_consumer(topic, "subscription")
                if number:
                    assert consumer.receive(PATIENCE).body == "while away"
                producer = client.session.create_producer(topic)
                consumer.close()
                if not number:
                    producer.send("while away")
                client.close()
            client = Client(network["EB1"].url, client_id="program")
            client.session.unsubscribe("subscription")
            with pytest.raises(jmsish.InvalidDestinationError):
                client.session.unsubscribe("subscription")
            client.close()
        assert not broker.subscriptions()


def test_a_queue_is_browsed_by_a_link_route_and_a_selector_is_that_of_the_broker(transport: str) -> None:
    with EmbeddedBroker() as broker:
        url = broker.url if transport == "vm" else broker.listen().url
        with RouterNetwork(LINE, transport=transport, routes={"work.": ("INT.B", url)}) as network:
            with clients(network, "EA1") as (client,):
                queue = client.session.create_queue("work.q")
                producer = client.session.create_producer(None)
                for number in range(5):
                    producer.send(str(number), destination=queue, properties={"odd": bool(number % 2)})
                assert [message.body for message in client.session.create_browser(queue)] == list("01234")
                consumer = client.session.create_consumer(queue, selector="odd = TRUE")
                assert received(consumer, 2) == ["1", "3"]


@pytest.mark.parametrize(
    "address",
    ["a b", "ä€😀", "a\nb", "a\x00b", "/x/", "?a=b&c", "#", "*", "'\"<>&", "\u202e", "..", "A", "L\n", "a" * 1024],
)
def test_an_address_may_be_any_text(address: str) -> None:
    with RouterNetwork(LINE) as network, clients(network, "EB1", "EA1") as (receiver, sender):
        consumer = receiver.consumer(address)
        network.wait_for_address(address, at="EA1")
        producer = sender.producer(address)
        producer.send("x")
        assert received(consumer, 1) == ["x"]


def test_an_address_that_is_too_long_is_refused_with_the_reason(transport: str) -> None:
    with RouterNetwork("INT.A", transport=transport) as network, clients(network, "INT.A") as (client,):
        with pytest.raises(jmsish.JMSError, match="at most 1024 octets"):
            client.consumer("a" * 1025)


def test_receivers_come_and_go_during_streams_and_each_message_is_heard_of(transport: str) -> None:
    stopped = Event()

    def come_and_go(url: str) -> None:
        while not stopped.is_set():
            client = Client(url)
            session = client.connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.INDIVIDUAL)
            consumer = session.create_consumer(session.create_queue("orders"))
            message = consumer.receive(0.05)
            if message is not None:
                accepted.append(message.body)
                message.acknowledge()
            client.close()

    accepted: list[str] = []
    with RouterNetwork(LINE, transport=transport) as network:
        urls = [network["EB1"].url, network["INT.A"].url]
        threads = [Thread(target=come_and_go, args=(url,), daemon=True) for url in urls]
        for thread in threads:
            thread.start()
        with clients(network, "EA1") as (sender,):
            producer = sender.producer("orders")
            producer.send(*(f"{number}" + "x" * 300_000 for number in range(20)))
            outcomes = producer.heard()
        stopped.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    assert outcomes.count(None) <= len(accepted) <= 20 and len(outcomes) == 20


# --- what is done to the network


def test_a_router_that_was_stopped_politely_comes_again(transport: str) -> None:
    with RouterNetwork(LINE, transport=transport) as network:
        network["INT.A"].stop()
        network.revive("INT.A")
        network.wait()
        serves(network, "EA1", "EB1")


def test_to_kill_twice_and_to_revive_one_that_runs_is_silent(transport: str) -> None:
    with RouterNetwork(LINE, transport=transport) as network:
        for name in network.routers:
            network.revive(name)
            network.kill(name)
            network.kill(name)
            network.revive(name)
            network.revive(name)
            network.wait()
        serves(network, "EB1", "EA1")


def test_a_network_can_be_started_again(transport: str) -> None:
    network = RouterNetwork("EA1-INT.A", transport=transport)
    for _ in range(2):
        with network:
            serves(network, "EA1", "INT.A")


def test_what_is_not_connected_is_told_with_the_reason(transport: str) -> None:
    url = "vm://nobody" if transport == "vm" else "amqp://me:secret@127.0.0.1:1"
    network = RouterNetwork("EA1-INT.A", transport=transport, routes={"work.": ("INT.A", url)})
    for router in network:
        router.start()
    network._join("EA1", "INT.A")
    (connector,) = network["INT.A"].router.connectors
    network["INT.A"].router._wait_until(lambda: bool(connector.error), "the failure", PATIENCE)
    with pytest.raises(jmsish.OperationTimeoutError) as failed:
        network.wait(0.5)
    network.stop()
    assert "'broker-1' of 'INT.A' to" in str(failed.value) and "secret" not in str(failed.value)


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 256])
def test_a_connector_has_a_name_that_is_one(name: str) -> None:
    with RouterNetwork("INT.A") as network, pytest.raises(ValueError, match="^name "):
        network["INT.A"].connector("vm://x", name=name)


def test_a_connector_and_a_route_with_a_slash_in_the_name(transport: str) -> None:
    with EmbeddedBroker() as broker:
        url = broker.url if transport == "vm" else broker.listen().url
        config: dict[str, Any] = {
            "connectors": [{"url": url, "name": "a/b"}],
            "link_routes": [{"prefix": "work.", "connector": "a/b"}],
        }
        with RouterNetwork("EA1-INT.A", configs={"INT.A": config}, transport=transport) as network:
            with clients(network, "EA1") as (client,):
                client.session.create_producer(client.destination("work.q")).send("x")
                assert broker.queue("work.q").depth == 1


def test_a_router_whose_clients_may_change_the_policy_has_it_at_hand(transport: str) -> None:
    with RouterNetwork("INT.A", transport=transport) as network:
        policy = network["INT.A"].policy
        policy.declare_vhost("shop", groups={"all": {"users": ["*"], "remote_hosts": ["*"], "sources": ["a"]}})
        assert "shop" in policy.vhosts() and policy.grant("joe", vhost="shop").may_receive_from("a")
        with clients(network, "INT.A"):
            assert policy.denials.connections_current >= 1
