"""Exchanges and subscriptions of the embedded broker, as a program sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jmsish.embedded import Binding, EmbeddedBroker
from jmsish.errors import InvalidDestinationError
from jmsish.sync import connect

PATIENCE = 30


def test_an_exchange_is_seen_live() -> None:
    with EmbeddedBroker() as broker, connect(broker.url, client_id="desk") as connection:
        exchange = broker.declare_exchange("prices", "topic")
        assert repr(exchange) == "<ExchangeView 'prices' topic bindings=0>"
        session = connection.create_session()
        prices = session.create_topic("prices")
        producer = session.create_producer(prices)
        producer.send("nobody hears")
        consumer = session.create_durable_consumer(prices, "archive")
        producer.send("heard")
        message = consumer.receive(timeout=PATIENCE)
        assert message is not None and message.body == "heard"
        assert (exchange.name, exchange.type, exchange.is_temporary, exchange.is_deleted) == (
            "prices", "topic", False, False,
        )  # fmt: skip
        assert (exchange.received, exchange.routed, exchange.dropped) == (2, 1, 1)
        (view,) = broker.subscriptions()
        assert exchange.bindings() == [Binding("prices", view.queue, "#")]
        assert (view.name, view.client_id, view.topic, view.durable, view.consumers) == (
            "archive", "desk", "prices", True, 1,
        )  # fmt: skip
        broker.delete_exchange("prices")
        assert exchange.is_deleted and exchange.bindings() == [] and broker.subscriptions() == []


def test_exchanges_are_listed() -> None:
    with EmbeddedBroker() as broker, connect(broker.url) as connection:
        broker.declare_exchange("prices", "topic")
        topic = connection.create_session().create_temporary_topic()
        assert [(view.name, view.is_temporary) for view in broker.exchanges()] == [
            ("amq.direct", False), ("amq.topic", False), ("amq.fanout", False), ("amq.match", False),
            ("prices", False), (topic.name, True),
        ]  # fmt: skip
        assert broker.exchange(topic.name).type == "topic"


def test_what_is_not_there_is_said_by_name() -> None:
    with EmbeddedBroker() as broker:
        with pytest.raises(InvalidDestinationError, match="no exchange 'prices'"):
            broker.exchange("prices")
        with pytest.raises(InvalidDestinationError, match="no exchange 'prices'"):
            broker.delete_exchange("prices")
        with pytest.raises(ValueError, match="must be one of 'direct', 'topic', 'fanout', 'headers', not 'fan'"):
            broker.declare_exchange("prices", "fan")


def test_exchanges_of_a_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text('[policy]\nauto_create = false\n[exchanges.prices]\ntype = "topic"\n')
    with EmbeddedBroker(config=file) as broker, connect(broker.url) as connection:
        session = connection.create_session()
        session.create_consumer(session.create_topic("prices")).close()
        with pytest.raises(InvalidDestinationError, match="there is no topic 'news'"):
            session.create_consumer(session.create_topic("news"))
