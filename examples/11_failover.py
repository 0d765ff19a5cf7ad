"""A worker that outlives the network and its broker: take an order, bill it, commit, while the wire keeps breaking.

The connection is one of `failover:`. After each break all is made again, and the worker only has to answer two
questions: a commit that was rolled back is done again, and one whose answer was lost is looked into, by the id of the
message that it sent last. In the end every order is billed exactly once. Then, where the broker is our own, it is
stopped and started again under the running worker.

Run it:  python examples/11_failover.py [amqp://host]
"""

from __future__ import annotations

import logging
import sys
import threading
import uuid
from collections import Counter

import jmsish
from jmsish.events import ConnectionEvent
from jmsish.testing import cut

ORDERS = 30
NAME = uuid.uuid4().hex[:8]
ORDERED, BILLED = jmsish.Queue(f"orders-{NAME}"), jmsish.Queue(f"billed-{NAME}")


def fill(url: str) -> None:
    with jmsish.connect(url) as connection:
        producer = connection.create_session().create_producer(ORDERED)
        for number in range(ORDERS):
            producer.send(f"order {number}")


def was_committed(session: jmsish.Session, doubt: jmsish.TransactionInDoubtError) -> bool:
    """A transaction is done whole or not at all: so the message that was sent last in it tells."""
    browser = session.create_browser(BILLED)
    return any(message.jms_message_id == doubt.last_sent_id for message in browser)


def work(connection: jmsish.Connection) -> Counter[str]:
    """Bill all orders; returns how the commits ended."""
    session = connection.create_session(transacted=True)
    looking = connection.create_session()
    consumer, producer = session.create_consumer(ORDERED), session.create_producer(BILLED)
    ended: Counter[str] = Counter()
    for number in range(10_000):
        order = consumer.receive(timeout=2)
        if order is None:
            return ended
        producer.send(f"bill for {order.body}")
        if number % 7 == 3:
            cut(connection)  # the cleaner stumbles over the cable again
        try:
            session.commit()
            ended["committed"] += 1
        except jmsish.TransactionRolledBackError:
            ended["rolled back"] += 1  # it comes again
        except jmsish.TransactionInDoubtError as doubt:
            ended["in doubt, was done" if was_committed(looking, doubt) else "in doubt, was not"] += 1
    raise AssertionError("no end of orders")


def check(url: str) -> None:
    with jmsish.connect(url) as connection:
        session = connection.create_session()
        bills = [message.body for message in session.create_browser(BILLED)]
        assert Counter(bills) == Counter(f"bill for order {number}" for number in range(ORDERS)), bills
        assert not list(session.create_browser(ORDERED))
        for queue in (BILLED, ORDERED):
            consumer = session.create_consumer(queue)
            while consumer.receive_no_wait() is not None:
                pass


def restart(broker: jmsish.EmbeddedBroker) -> None:
    """The broker goes away and comes back; a receive that waits all the time gets what is sent then."""
    with jmsish.connect(f"failover:({broker.url})", client_id="worker") as connection:
        restored = threading.Event()
        connection.event_listener = lambda event: restored.set() if "Restored" in type(event).__name__ else None
        session = connection.create_session()
        consumer, producer = session.create_consumer(ORDERED), session.create_producer(ORDERED)
        broker.stop()
        broker.start()
        assert restored.wait(10)
        producer.send("an order for the new broker")
        message = consumer.receive(timeout=10)
        assert message is not None
        print(f"after a restart of the broker: {message.body}")


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.ERROR)
    url = sys.argv[1] if len(sys.argv) > 1 else None
    broker = None if url else jmsish.EmbeddedBroker()
    if broker is not None:
        broker.start()
        url = broker.url
    assert url is not None
    fill(url)
    happened: Counter[str] = Counter()

    def note(event: ConnectionEvent) -> None:
        happened[type(event).__name__] += 1

    with jmsish.connect(f"failover:({url})?failover.reconnectDelay=10") as connection:
        connection.event_listener = note
        ended = work(connection)
    check(url)
    print(f"{ORDERS} orders, each billed once; the connection broke {happened['ConnectionInterrupted']} times")
    print("commits:", ", ".join(f"{count} {how}" for how, count in sorted(ended.items())))
    if broker is not None:
        restart(broker)
        broker.stop()


if __name__ == "__main__":
    main()
