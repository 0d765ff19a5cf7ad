"""Fixtures for tests of programs that use JMS: a fresh broker in memory for each test, and a connection and
sessions on it.

Installed with the product (entry point `pytest11`), so a test only names what it wants:

    def test_orders_are_confirmed(jms_broker, jms_session):
        orders = jms_session.create_queue("orders")
        jms_session.create_producer(orders).send("one order")
        assert jms_broker.queue("orders").depth == 1

Two marks change what a fixture makes: `@pytest.mark.jms_broker(config={"queues": {"orders":
{"max_delivery_attempts": 3}}})` takes the arguments of `EmbeddedBroker`, and
`@pytest.mark.jms_connection(prefetch=1)` those of `connect`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import jmsish

MARKS = {
    "jms_broker": "arguments of EmbeddedBroker for the fixture jms_broker (config=..., clock=...)",
    "jms_connection": "arguments of jmsish.connect for the fixture jms_connection (prefetch=..., client_id=...)",
}


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}(**arguments): {meaning}")


def marked(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    """The arguments of the marks of this name, the nearest to the test winning."""
    arguments: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers(name))):
        arguments.update(mark.kwargs)
    return arguments


@pytest.fixture
def jms_broker(request: pytest.FixtureRequest) -> Iterator[jmsish.EmbeddedBroker]:
    """A broker in memory for this test alone: `.url` to connect to, `.queue(name)` to look at, `.listen()` for a port.

    Queues are made on first use; `.declare_queue(name, max_delivery_attempts=3)` declares one with settings. The mark
    `@pytest.mark.jms_broker(config={...})` starts it with a configuration.
    """
    with jmsish.EmbeddedBroker(**marked(request, "jms_broker")) as broker:
        yield broker


@pytest.fixture
def jms_url(jms_broker: jmsish.EmbeddedBroker) -> str:
    """The URL of this test's broker, for code that connects by itself: `jmsish.aio.connect(jms_url)` as well."""
    return jms_broker.url


@pytest.fixture
def jms_connection(request: pytest.FixtureRequest, jms_url: str) -> Iterator[jmsish.Connection]:
    """A started connection to this test's broker, closed at the end of the test.

    The mark `@pytest.mark.jms_connection(prefetch=1)` gives it options.
    """
    with jmsish.connect(jms_url, **marked(request, "jms_connection")) as connection:
        yield connection


@pytest.fixture
def jms_session(jms_connection: jmsish.Connection) -> Iterator[jmsish.Session]:
    """A session that acknowledges by itself (AUTO) on this test's connection."""
    with jms_connection.create_session() as session:
        yield session


@pytest.fixture
def jms_transacted_session(jms_connection: jmsish.Connection) -> Iterator[jmsish.Session]:
    """A transacted session on this test's connection; what is not committed at the end of the test is rolled back."""
    with jms_connection.create_session(transacted=True) as session:
        yield session
