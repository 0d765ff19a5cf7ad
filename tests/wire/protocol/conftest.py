"""The broker that the tests of this folder talk to.

By default it is ours, in memory, twice: fed whole writes, and one octet at a time. `JMSISH_WIRE_TARGET=host:port` names
another, to which the tests go over TCP; it must let everybody in and make queues on attach.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.wire.protocol.steps import Client, Wire, memory_wire, socket_wire

TARGET = os.environ.get("JMSISH_WIRE_TARGET")
KINDS = ["socket"] if TARGET else ["whole", "octets"]


@pytest.fixture(params=KINDS)
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    queue = f"wire.{uuid.uuid4().hex[:12]}"
    wire = socket_wire(queue, TARGET) if TARGET else memory_wire(queue, octet_by_octet=request.param == "octets")
    yield wire
    wire.hang_up()


@pytest.fixture(params=KINDS)
def configured(request: pytest.FixtureRequest) -> Callable[[dict[str, Any]], Wire]:
    """A broker of ours with that configuration; another one cannot be told."""

    def make(config: dict[str, Any]) -> Wire:
        if TARGET:
            pytest.skip("for our own broker only: it is given a configuration")
        return memory_wire("q", octet_by_octet=request.param == "octets", config=config)

    return make


@pytest.fixture
def client(wire: Wire) -> Client:
    """An open connection with a session."""
    return wire.client()
