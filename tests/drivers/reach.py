"""A real broker, ways to reach it, and a way that falls silent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import jmsish

from .mute import MutableProxy


@pytest.fixture
def broker() -> Iterator[jmsish.EmbeddedBroker]:
    with jmsish.EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(params=["vm", "tcp"])
def url(request: pytest.FixtureRequest, broker: jmsish.EmbeddedBroker) -> str:
    return broker.url if request.param == "vm" else f"amqp://127.0.0.1:{broker.listen().port}"


@pytest.fixture
def proxy(broker: jmsish.EmbeddedBroker) -> Iterator[MutableProxy]:
    proxy = MutableProxy(broker.listen().port)
    yield proxy
    proxy.close()
