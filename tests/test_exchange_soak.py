"""The short form of the soak in the benches: bindings swapped under four publishers, and every message counted."""

from __future__ import annotations

import pytest

import jmsish
from tests.bench.soak import Soak


@pytest.mark.parametrize("wire", ["vm", "tcp"])
@pytest.mark.parametrize("type", ["direct", "topic", "fanout", "headers"])
def test_no_message_is_lost_doubled_or_mixed_while_bindings_are_swapped(wire: str, type: str) -> None:
    with jmsish.EmbeddedBroker() as broker:
        soak = Soak(broker, broker.url if wire == "vm" else broker.listen().url, type)
        soak.run(50, between=5)
    assert soak.total >= 50 * 5
