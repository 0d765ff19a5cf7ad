"""Proton's own Python client reads from exchanges of our broker with the filters that bind."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need

PATIENCE = 30.0
LEGACY = "apache.org:legacy-amqp-{}-binding:{}"


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Any:
    need(fetch.proton)
    from proton.utils import BlockingConnection

    connection = BlockingConnection(broker.listen().url, timeout=PATIENCE, allowed_mechs="ANONYMOUS")
    yield connection
    connection.close()


@pytest.mark.interop
@pytest.mark.parametrize(("address", "descriptor", "value", "wanted"), [
    ("amq.topic", "topic", "a.#", ["m1", "m2"]), ("amq.direct", "direct", "a.b", ["m1"]),
    ("amq.direct", "topic", "a.b", ["m1"]), ("amq.match", "headers", {"x-match": "all", "n": 2}, ["m2"]),
    ("amq.topic/a.b", None, None, ["m1"]), ("amq.fanout", None, None, ["m1", "m2", "m3"]),
    ("amq.topic", None, "*.c", ["m2"]), ("queue", "topic", "#.b", ["m1", "m3"]), ("queue", None, "a.c", ["m2"]),
])  # fmt: skip
def test_protons_filters(connection: Any, address: str, descriptor: str | None, value: Any, wanted: list[str]) -> None:
    from proton import Described, Message, symbol
    from proton.reactor import Filter

    wish: Any = value
    if descriptor is not None:
        kind = "map" if descriptor == "headers" else "string"
        wish = Described(symbol(LEGACY.format(descriptor, kind)), value)
    options = None if value is None else Filter({symbol("filter"): wish})
    receiver = connection.create_receiver(address, credit=10, options=options)
    if value is not None:
        in_force = receiver.link.remote_source.filter
        in_force.rewind()
        assert in_force.next() is not None
        granted = in_force.get_dict()[symbol("filter")]
        if (address, descriptor) == ("amq.direct", "topic"):
            wish = Described(symbol(LEGACY.format("direct", "string")), value)
        assert granted == wish
    exchange = address.partition("/")[0]
    sender = connection.create_sender(exchange)
    for number, key in enumerate(("a.b", "a.c", "b"), 1):
        message = Message(f"m{number}", subject=key, properties={"n": number})
        try:
            sender.send(message, timeout=PATIENCE)
        except Exception as error:  # what a direct exchange does with what nobody wants
            assert exchange == "amq.direct", error
    bodies = []
    for _ in wanted:
        bodies.append(receiver.receive(timeout=PATIENCE).body)
        receiver.accept()
    receiver.link.drain(10)
    connection.wait(lambda: not (receiver.link.draining() or receiver.link.queued), timeout=PATIENCE, msg="draining")
    assert bodies == wanted and not receiver.fetcher.has_message


@pytest.mark.interop
def test_proton_hears_that_a_nested_filter_is_refused(connection: Any) -> None:
    from proton import Described, symbol
    from proton.reactor import Filter
    from proton.utils import LinkDetached

    wish = Described(symbol(LEGACY.format("headers", "map")), {"x-match": "all", "nested": {"a": 1}})
    with pytest.raises(LinkDetached, match="amqp:invalid-field"):
        connection.create_receiver("amq.match", credit=1, options=Filter({symbol("filter"): wish}))
