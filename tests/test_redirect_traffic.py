"""A redirect that begins and ends again and again under traffic: each message is received once, and in order."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

import jmsish

MESSAGES = 400


@pytest.mark.parametrize("wire", ["vm", "tcp"])
@pytest.mark.parametrize("transacted", [False, True], ids=["each", "transacted"])
def test_a_redirect_under_traffic_loses_doubles_and_reorders_nothing(wire: str, transacted: bool) -> None:
    with jmsish.EmbeddedBroker() as broker:
        url = broker.url if wire == "vm" else broker.listen().url
        broker.declare_queue("a")
        broker.declare_queue("b")
        broker.redirect("a", "b")
        got: dict[str, list[int]] = {"a": [], "b": []}
        arrived, over = threading.Semaphore(0), threading.Event()

        def consume(name: str) -> None:
            with jmsish.connect(url) as connection:
                consumer = connection.create_session().create_consumer(jmsish.Queue(name))
                while not over.is_set():
                    message = consumer.receive(timeout=0.1)
                    if message is not None:
                        got[name].append(message.body["number"])
                        arrived.release()

        def publish() -> None:
            with jmsish.connect(url) as connection:
                session = connection.create_session(transacted=transacted)
                producer = session.create_producer(jmsish.Queue("a"))
                for number in range(MESSAGES):
                    producer.send({"number": number})
                    if transacted and number % 5 == 4:
                        session.commit()

        threads = [threading.Thread(target=consume, args=(name,)) for name in got]
        threads.append(threading.Thread(target=publish))
        for thread in threads:
            thread.start()
        try:
            for number in range(MESSAGES):
                assert arrived.acquire(timeout=30), f"lost: {MESSAGES - number}"
                if number % 20 == 10:
                    broker.end_redirect("a")
                elif number % 20 == 0 and number:
                    broker.redirect("a", "b")
        finally:
            over.set()
            for thread in threads:
                thread.join(30)
        assert broker.queue("a").depth == broker.queue("b").depth == 0
    assert sorted(got["a"] + got["b"]) == list(range(MESSAGES))
    assert got["b"][0] == 0
    for numbers in got.values():
        assert all(one < other for one, other in pairwise(numbers))
