"""What the client says, and what it does not say, to a broker of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer
from jmsish.client.subscriptions import Subscription
from jmsish.destination import Queue, Topic
from jmsish.engine.link import Link
from jmsish.engine.outcomes import Modified
from jmsish.errors import OperationTimeoutError, UnsupportedFeatureError
from jmsish.modes import AcknowledgeMode

from .peer import Peer

AUTO = AcknowledgeMode.AUTO
RABBIT_3 = {"product": "RabbitMQ", "version": "3.10.8"}
RABBIT_4 = {"product": "RabbitMQ", "version": "4.1.0"}
ARTEMIS = {"product": "apache-activemq-artemis", "version": "2.40.0"}


def attach_of(peer: Peer) -> Any:
    return next(frame.fields for frame in reversed(peer.frames) if frame.name == "attach")


def consumer_of(peer: Peer, destination: Any = None, **options: Any) -> ClientConsumer:
    session = peer.run(peer.core.create_session(AUTO))
    consumer = ClientConsumer(session, destination or Queue("q"), prefetch=10, **options)
    peer.run(session.add_consumer(consumer))
    return consumer


@pytest.mark.parametrize("properties", [RABBIT_3, RABBIT_4, {"product": "Solace"}])
def test_a_transacted_session_is_refused_before_anything_is_said(properties: dict[str, Any]) -> None:
    peer = Peer(properties=properties)
    peer.told()
    with pytest.raises(UnsupportedFeatureError, match="has no transactions over AMQP"):
        peer.run(peer.core.create_session(AcknowledgeMode.TRANSACTED))
    assert peer.told() == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"browsing": True}, "cannot browse"),
        ({"selector": "a = 1"}, "no selectors"),
        ({"destination": Topic("t")}, "no consumers on topics: declare a queue, bind it"),
        ({"destination": Topic("t"), "subscription": Subscription("s", durable=False, shared=True)}, "subscriptions"),
        ({"destination": Topic("t"), "subscription": Subscription("s", durable=True, shared=False)}, "subscriptions"),
    ],
)
def test_what_rabbitmq_lacks_is_refused_before_it_is_asked(options: dict[str, Any], sentence: str) -> None:
    peer = Peer(properties=RABBIT_4, client_id="c")
    with pytest.raises(UnsupportedFeatureError, match=sentence):
        consumer_of(peer, **options)
    assert "attach" not in peer.told()


def test_a_temporary_destination_is_refused_before_it_is_asked() -> None:
    peer = Peer(properties=RABBIT_4)
    with pytest.raises(UnsupportedFeatureError, match="no temporary destinations"):
        peer.run(peer.core.temporary.create(False))
    assert "attach" not in peer.told()


def test_delay_is_refused_where_it_would_be_ignored() -> None:
    peer = Peer(properties=RABBIT_4)
    producer = peer.producer(peer.session(AUTO))
    with pytest.raises(UnsupportedFeatureError, match="no delayed delivery"):
        producer.check_delay(Queue("q"))


def test_delay_is_scheduled_where_the_broker_has_its_own_annotation() -> None:
    peer = Peer(profile="servicebus")
    peer.producer(peer.session(AUTO)).check_delay(Queue("q"))


def test_addresses_of_rabbitmq() -> None:
    peer = Peer(properties=RABBIT_4)
    session = peer.session(AUTO)
    peer.run(ClientProducer(session, Queue("a b")).attach())
    assert attach_of(peer)["target"].address == "/queues/a%20b"
    peer.run(ClientProducer(session, Topic("t")).attach())
    assert attach_of(peer)["target"].address == "/exchanges/amq.topic/t"
    consumer_of(peer, Queue("a b"))
    assert attach_of(peer)["source"].address == "/queues/a%20b"


def test_addresses_that_the_broker_announces_go_before_the_profile_and_options_before_both() -> None:
    said = {"product": "ActiveMQ", "queue-prefix": "Q."}
    assert Peer(properties=said).core.prefixes == ("Q.", "topic://")
    assert Peer(properties=said, queue_prefix="mine.").core.prefixes == ("mine.", "topic://")
    assert Peer(properties=said, queue_prefix="").core.prefixes == ("", "topic://")


@pytest.mark.parametrize("kind", [Queue, Topic])
def test_ibm_mq_hears_the_kind_on_every_attach(kind: Any) -> None:
    """Without it a queue becomes a topic."""
    peer = Peer(profile="ibmmq")
    producer = ClientProducer(peer.session(AUTO), kind("x"))
    peer.run(producer.attach())
    assert tuple(attach_of(peer)["target"].capabilities) == (kind.capability,)
    consumer_of(peer, kind("x"))
    assert tuple(attach_of(peer)["source"].capabilities) == (kind.capability,)


def test_a_shared_subscription_at_ibm_mq_has_its_name_for_it() -> None:
    peer = Peer(profile="ibmmq", offers=("SHARED-SUBS",))
    consumer_of(peer, Topic("news"), subscription=Subscription("s", durable=False, shared=True))
    assert attach_of(peer)["name"] == "share:s:news"


# -- outcomes


def test_modified_is_never_said_where_it_ends_the_session() -> None:
    peer = Peer(properties=RABBIT_3)
    session = peer.session(AcknowledgeMode.CLIENT)
    consumer = peer.consumer(session)
    source = attach_of(peer)["source"]
    assert source.default_outcome.name == "released" and "amqp:modified:list" not in source.outcomes
    peer.give(2)
    peer.receive(consumer, 2)
    peer.told()
    peer.run(session.recover())
    assert "released 0-1" in peer.told()


def test_undeliverable_here_is_rejected_where_there_is_no_modified() -> None:
    peer = Peer(properties=RABBIT_3)
    session = peer.session(AcknowledgeMode.CLIENT)
    consumer = peer.consumer(session)
    peer.give(1)
    delivery = consumer.buffer.popleft()
    peer.told()
    session.ledger.dispose(delivery, Modified(delivery_failed=True, undeliverable_here=True))
    assert peer.told() == ["rejected 0"]


def test_modified_is_said_where_it_is_known() -> None:
    peer = Peer(properties=RABBIT_4)
    session = peer.session(AcknowledgeMode.CLIENT)
    consumer = peer.consumer(session)
    peer.give(1)
    peer.receive(consumer, 1)
    peer.told()
    peer.run(session.recover())
    assert "failed 0" in peer.told()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_inside_a_transaction_only_accepted_is_ever_said(end: str) -> None:
    """Artemis, Classic: anything else is ignored, and the message stuck. Broker-J: released and rolled back is lost."""
    peer = Peer(properties=ARTEMIS, cancel_on_commit="always")
    session = peer.session()
    consumer = peer.consumer(session)
    peer.give(5)
    peer.receive(consumer, 2)
    peer.run(getattr(session, end)())
    told = [line for line in peer.told() if "in a transaction" in line]
    assert told and all(line.startswith("accepted in a transaction") for line in told)
    assert peer.core.profile.outcomes_in_transaction == ("accepted",)


# -- drain


def _answers_flows(peer: Peer) -> None:
    """As RabbitMQ does: a flow with echo is answered by the engine; nothing is ever drained."""
    peer.answers_drains = False


def test_credit_is_taken_back_without_a_drain() -> None:
    peer = Peer(properties=RABBIT_3)
    _answers_flows(peer)
    consumer = consumer_of(peer)
    peer.told()
    assert peer.run(consumer.receive(None, wait=False)) is None
    told = peer.told()
    assert "credit 0" in told and "drain" not in told
    assert told[-1] == "credit 10", "and given again"


def test_a_message_under_way_when_the_credit_is_taken_back_is_not_lost() -> None:
    peer = Peer(properties=RABBIT_3)
    _answers_flows(peer)
    consumer = consumer_of(peer)
    steps = peer.begin(consumer.receive(None, wait=False))
    peer.messages.append(b"\x00\x53\x77\xa1\x02m1")
    link: Link = peer.links[0]
    link.send(peer.messages.pop())  # before the broker has read that there is no credit any more
    assert peer.run(steps) is not None


def test_an_echo_that_never_comes_ends_in_time() -> None:
    peer = Peer(properties=RABBIT_3)
    consumer = consumer_of(peer)
    steps = consumer.receive(None, wait=False)
    next(steps)
    with pytest.raises(OperationTimeoutError):
        for _ in range(20):
            steps.throw(OperationTimeoutError("nothing came"))
            peer.core.now += 3600
    assert consumer.drained is None


def test_rabbitmq_3_is_asked_to_keep_the_queues_it_makes() -> None:
    """Otherwise its plugin makes queues that a restart takes away, persistent messages and all."""
    peer = Peer(properties=RABBIT_3)
    consumer_of(peer)
    assert attach_of(peer)["source"].durable == 1
    session = next(iter(peer.core.sessions))
    peer.run(ClientProducer(session, Queue("q")).attach())
    assert attach_of(peer)["target"].durable == 1


def test_other_brokers_are_not_asked_to() -> None:
    peer = Peer(properties=ARTEMIS)
    consumer_of(peer)
    assert attach_of(peer)["source"].durable in (None, 0)
