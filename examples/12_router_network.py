"""A network of routers, as production may have one, in the process of a test: two edges, two interiors, one broker.

    shop - EA1 - INT.A - INT.B - EB1 - worker
                           |
                         broker (queues that begin with "work.")

The shop's orders go straight to the worker behind the other edge: no router keeps them, and a send returns when the
worker has accepted. A message that is too large for a door is refused there. And a transacted session at EA1 works on
a queue of the broker, two routers further on, as if it were connected to it.

Run it:  python examples/12_router_network.py [amqp://broker]
"""

from __future__ import annotations

import queue
import sys
from contextlib import nullcontext

import jmsish
from jmsish.testing import RouterNetwork

LIMIT = 50_000


def straight_through(network: RouterNetwork) -> None:
    """Orders from edge to edge, and one that is too large."""
    with jmsish.connect(network["EA1"].url, send_timeout=10) as shop, jmsish.connect(network["EB1"].url) as worker:
        taken: queue.SimpleQueue[str] = queue.SimpleQueue()
        session = worker.create_session()
        session.create_consumer(session.create_queue("orders")).listener = lambda message: taken.put(message.body)
        network.wait_for_address("orders", at="EA1")  # in production one would just wait: send does

        session = shop.create_session()
        producer = session.create_producer(session.create_queue("orders"))
        for number in range(3):
            producer.send(f"order {number}")  # returns when the worker has accepted it
        print("the worker has", [taken.get(timeout=10) for _ in range(3)])

        assert producer.max_message_size == LIMIT
        try:
            producer.send("x" * 2 * LIMIT)
        except jmsish.JMSError as error:
            print("too large for EA1:", type(error).__name__)
        else:
            raise AssertionError("the edge took a message beyond its limit")

        address = network["INT.A"].router.address("orders")
        assert address is not None and address.hops == 2 and address.deliveries_out == 3
        print(f"INT.A: orders is {address.hops} hops away, over {address.towards[0]}; {address.deliveries_out} went by")


def with_a_broker(network: RouterNetwork) -> None:
    """A transaction over two routers: what is rolled back comes again."""
    with jmsish.connect(network["EA1"].url) as connection:
        with connection.create_session(transacted=True) as session:
            work = session.create_queue("work.example")
            session.create_producer(work).send("a parcel")
            session.commit()
            consumer = session.create_consumer(work)
            first = consumer.receive(timeout=10)
            session.rollback()
            again = consumer.receive(timeout=10)
            session.commit()
        assert first is not None and again is not None and again.delivery_count == 2
        print(f"{again.body!r} of the broker: rolled back, delivered again, committed")


def main(url: str | None) -> None:
    with nullcontext() if url else jmsish.EmbeddedBroker("store") as broker:
        routes = {"work.": ("INT.B", url or broker.url)}
        with RouterNetwork("EA1-INT.A-INT.B-EB1", limits={"EA1": LIMIT}, routes=routes) as network:
            for join in network["EA1"].router.joins:
                print(f"{join.dialler} - {join.dialled} ({join.role})")
            straight_through(network)
            with_a_broker(network)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
