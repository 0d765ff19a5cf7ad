# ruff: noqa: F811
"""What is forgotten half-used is finalized in the middle of anything: in any thread, and under any lock."""

from __future__ import annotations

import gc
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jmsish
from jmsish.client.connection import ClientConnection

from .reach import broker, url  # noqa: F401

PATIENCE = 20


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def half_browsed(session: Any, queue: Any) -> Any:
    looking = iter(session.create_browser(queue))
    next(looking)
    return looking


def half_read(session: Any, queue: Any) -> Any:
    reading = io.BufferedReader(session.create_consumer(queue, prefetch=1).receive(timeout=PATIENCE).open())
    reading.read(1)
    return reading


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("half_used", [half_browsed, half_read])
def test_what_is_collected_while_the_connection_is_owned_is_closed_soon(
    url: str, monkeypatch: pytest.MonkeyPatch, half_used: Callable[[Any, Any], Any]
) -> None:
    """Once, whoever let go of a browser's iterator in a cycle could find all threads of the connection waiting for a
    lock that the collector's own thread held."""
    take_output = ClientConnection.take_output
    collected: list[int] = []

    def collecting(core: ClientConnection) -> bytes:
        if garbage and not collected:
            garbage.clear()
            collected.append(gc.collect())
        return take_output(core)

    garbage: list[Any] = []
    with jmsish.connect(url, stream_threshold=1000) as connection:
        session = connection.create_session()
        queue = session.create_queue("q")
        producer = session.create_producer(queue)
        for _ in range(3):
            producer.send(bytes(100_000))
        cycle = [half_used(session, queue)]
        cycle.append(cycle)  # type: ignore[arg-type]
        monkeypatch.setattr(ClientConnection, "take_output", collecting)
        garbage.append(cycle)
        del cycle
        sender = threading.Thread(target=producer.send, args=("after",), daemon=True)
        sender.start()
        sender.join(PATIENCE)
        assert not sender.is_alive() and collected
        producer.send("and once more")
        assert session._core.reading is None
        assert not [consumer for consumer in session._core.consumers if consumer.browsing]
