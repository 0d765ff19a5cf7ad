"""A broker that works off all that comes by TCP in slices of a few octets, one connection after the other.

So each reading is left, taken up again, cut within frames, and met by what others bring: the paths that otherwise only
a flood takes.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

import jmsish
from jmsish.drivers import listener, serving, turns

from .conftest import PATIENCE

BODY = bytes(range(256)) * 500


@pytest.fixture(params=[24, 500, 20_000])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, broker: jmsish.EmbeddedBroker) -> str:
    monkeypatch.setattr(serving, "SMALL", 0)
    monkeypatch.setattr(serving, "SLICE", 1e-9)
    monkeypatch.setattr(serving, "ALONE", 1e-9)
    monkeypatch.setattr(listener, "SLICE", 0.0)
    monkeypatch.setattr(turns, "_LEAST", request.param)
    return f"amqp://127.0.0.1:{broker.listen().port}"


@pytest.fixture
def broker() -> Any:
    with jmsish.EmbeddedBroker() as broker:
        yield broker


def test_a_long_stream_to_the_connection_that_sends_it(url: str) -> None:
    with jmsish.connect(url, stream_threshold=10_000) as connection:
        session = connection.create_session()
        queue = session.create_queue("q")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        for _ in range(3):
            producer.send(stream=[BODY] * 16)
            message: Any = consumer.receive(timeout=PATIENCE)
            with message.open() as body:
                assert body.read() == BODY * 16
        assert consumer.receive_no_wait() is None


def test_transactions_of_several_at_once(url: str, broker: jmsish.EmbeddedBroker) -> None:
    """Each takes, sends on, rolls back every third time; every message comes out once and in order."""
    count, workers = 60, 4
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with jmsish.connect(url) as connection:
                session = connection.create_session(transacted=True)
                consumer = session.create_consumer(session.create_queue(f"in-{number}"))
                producer = session.create_producer(session.create_queue(f"out-{number}"))
                for turn in range(8):  # of which six are committed
                    for _ in range(10):
                        message: Any = consumer.receive(timeout=PATIENCE)
                        producer.send(message.body)
                    session.rollback() if turn % 3 == 2 else session.commit()
        except BaseException as failure:
            failures.append(failure)

    with jmsish.connect(url) as connection:
        session = connection.create_session()
        for number in range(workers):
            producer = session.create_producer(session.create_queue(f"in-{number}"))
            for each in range(count):
                producer.send(f"{each}")
        threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE * 3)
        assert not failures
        for number in range(workers):
            consumer = session.create_consumer(session.create_queue(f"out-{number}"))
            got = [consumer.receive(timeout=PATIENCE) for _ in range(count)]
            assert [message.body for message in got if message is not None] == [f"{each}" for each in range(count)]
            assert broker.queue(f"in-{number}").depth == 0
