"""Exchanges managed by a client that knows nothing of us: proton writes the requests, nested lists and all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


class Proton:
    """A connection of proton's, and its way to the management node."""

    def __init__(self, url: str) -> None:
        from proton.utils import BlockingConnection

        self.connection = BlockingConnection(url, timeout=30)
        self.receiver = self.connection.create_receiver(None, dynamic=True)
        self.sender = self.connection.create_sender("$management")

    def ask(self, operation: str, body: Any, type: str = "exchange", **named: str) -> tuple[int, Any]:
        from proton import Message

        address = self.receiver.link.remote_source.address
        properties = {"operation": operation, "type": type, **named}
        self.sender.send(Message(body, properties=properties, reply_to=address, id="1"))
        answer = self.receiver.receive(timeout=30)
        self.receiver.accept()
        assert answer.correlation_id == "1"
        return answer.properties["statusCode"], answer.body


@pytest.fixture
def proton(broker: EmbeddedBroker) -> Iterator[Proton]:
    need(fetch.proton)
    broker.declare_queue("blue")
    broker.declare_queue("green")
    broker.declare_exchange("orders", "direct").bind("blue", "k")
    proton = Proton(broker.listen().url)
    yield proton
    proton.connection.close()


def bound(broker: EmbeddedBroker, exchange: str = "orders") -> set[tuple[str, str]]:
    return {(binding.queue, binding.key) for binding in broker.exchange(exchange).bindings()}


def test_proton_rebinds_in_one_step(broker: EmbeddedBroker, proton: Proton) -> None:
    body = {"add": [{"queue": "green", "key": "k"}, ["green", "z"]], "remove": [["blue", "k"]]}
    assert proton.ask("REBIND", body, name="orders") == (
        200, {"exchange": "orders", "added": 2, "removed": 1, "bindings": 2}
    )  # fmt: skip
    assert bound(broker) == {("green", "k"), ("green", "z")}


def test_proton_freezes_and_thaws(broker: EmbeddedBroker, proton: Proton) -> None:
    status, told = proton.ask("FREEZE", {"exchanges": ["orders"], "timeout": 1.5, "max_hold": 30})
    assert status == 200 and told["exchanges"] == ["orders"] and broker.exchange("orders").is_frozen
    assert proton.ask("THAW", {"lease": told["lease"], "remove": [["blue", "k"]]})[0] == 200
    assert bound(broker) == set() and not broker.exchange("orders").is_frozen


def test_the_freeze_of_a_proton_that_goes_is_over(broker: EmbeddedBroker, proton: Proton) -> None:
    assert proton.ask("FREEZE", {}, name="orders")[0] == 200
    proton.connection.close()
    broker.exchange("orders").bind("green", "k", timeout=20)
    assert bound(broker) == {("blue", "k"), ("green", "k")}


def test_arguments_keep_their_types_on_the_way_and_back(broker: EmbeddedBroker, proton: Proton) -> None:
    arguments = {"x-match": "any", "number": 3, "yes": True, "there": None}
    attributes = {"exchange": "amq.match", "queue": "blue", "arguments": arguments}
    assert proton.ask("CREATE", attributes, type="binding")[0] == 201
    status, table = proton.ask("QUERY", {"attributeNames": ["identity", "arguments"]}, type="binding")
    assert status == 200 and ["amq.match/blue", arguments] in table["results"]


def test_bind_in_broker_js_form(broker: EmbeddedBroker, proton: Proton) -> None:
    body = {"destination": "green", "bindingKey": "k", "arguments": {}, "replaceExistingArguments": False}
    named = {"type": "org.apache.qpid.DirectExchange", "key": "orders", "index": "object-path"}
    assert proton.ask("bind", body, **named) == (200, True)
    assert proton.ask("unbind", body, **named) == (200, True)
    assert bound(broker) == {("blue", "k")}
