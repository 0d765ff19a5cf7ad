"""Routers by configuration: what is made of it, and a link route whose connector comes later."""

from __future__ import annotations

import logging

import pytest

import jmsish


def test_a_link_route_may_wait_for_a_connector_that_a_program_makes() -> None:
    config = {
        "router": {"id": "INT.A", "mode": "interior"},
        "link_routes": [{"prefix": "orders", "connector": "broker"}],
    }
    with jmsish.EmbeddedBroker() as broker, jmsish.EmbeddedBroker(config=config) as router:
        assert router.router.link_routes == []
        router.connector(broker.url, name="broker")
        router.router.wait_for_link_route("orders")
        with jmsish.connect(router.url) as connection:
            session = connection.create_session()
            session.create_producer(session.create_queue("orders.new")).send("hello")
        assert broker.queue("orders.new").depth == 1


def test_queues_in_the_configuration_of_a_router_are_told_to_be_of_no_use(caplog: pytest.LogCaptureFixture) -> None:
    config = {"router": {"id": "INT.A", "mode": "interior"}, "queues": {"orders": {}}}
    with caplog.at_level(logging.WARNING):
        jmsish.EmbeddedBroker(config=config)
    assert "holds no queues and exchanges" in caplog.text


def test_a_link_route_leads_to_no_router() -> None:
    config = {
        "router": {"id": "EA1", "mode": "edge"},
        "connectors": [{"url": "vm://somewhere", "role": "edge", "name": "uplink"}],
        "link_routes": [{"prefix": "orders", "connector": "uplink"}, {"prefix": "", "connector": ""}],
    }
    with pytest.raises(ValueError) as raised:
        jmsish.EmbeddedBroker(config=config)
    assert "[[link_routes]] 1 connector 'uplink' leads to a router" in str(raised.value)
    assert "[[link_routes]] 2 prefix is missing" in str(raised.value)
    assert "[[link_routes]] 2 connector is missing" in str(raised.value)


def test_a_broker_is_no_router() -> None:
    broker = jmsish.EmbeddedBroker()
    with pytest.raises(jmsish.UnsupportedFeatureError, match="no router"):
        broker.connector("vm://other")
    router = jmsish.EmbeddedBroker(config={"router": {"id": "INT.A", "mode": "interior"}})
    with pytest.raises(jmsish.UnsupportedFeatureError, match="holds no queues"):
        router.queue("orders")
