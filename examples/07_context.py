"""The simplified API: a shop and its kitchen, each with a context, on one connection.

A `JMSContext` is a connection and a session in one, a `JMSProducer` settings that can be chained and sends to any
queue. The kitchen works in a transaction: a dish that burns is cooked again. The waiter acknowledges a tray at a time.

Run it:  python examples/07_context.py [amqp://host]
"""

from __future__ import annotations

import sys
import uuid

import jmsish
from jmsish import AcknowledgeMode, JMSContext, Queue

ORDERS = ["soup", "steak", "salad", "ice"]


class Burnt(Exception):
    """It happens to steaks, the first time."""


def order(context: JMSContext, kitchen: Queue) -> None:
    waiter = context.create_producer().set_property("table", 7).set_jms_type("order")
    for dish in ORDERS:
        waiter.set_priority(9 if dish == "soup" else 4).send(kitchen, dish)
    print(f"ordered {', '.join(ORDERS)}")


def cook(context: JMSContext, kitchen: Queue, counter: Queue) -> None:
    """Each dish is taken and served in one transaction."""
    dishes = context.create_consumer(kitchen, "table = 7")
    chef = context.create_producer()
    served = 0
    while served < len(ORDERS):
        try:
            with context.transaction():
                message = dishes.receive(timeout=5)
                assert message is not None
                chef.send(counter, {"dish": message.body, "attempt": message.delivery_count})
                if message.body == "steak" and not message.jms_redelivered:
                    raise Burnt("steak")
        except Burnt as burnt:
            print(f"  burnt: {burnt}, once more")
        else:
            served += 1


def serve(context: JMSContext, counter: Queue) -> list[tuple[str, int]]:
    """A tray is acknowledged when it is full: all that the context has received."""
    tray = []
    with context.create_consumer(counter) as dishes:
        while len(tray) < len(ORDERS):
            plate = dishes.receive_body(dict, timeout=5)
            tray.append((plate["dish"], plate["attempt"]))
        context.acknowledge()
        assert dishes.receive_body_no_wait(dict) is None
    return tray


def demonstrate(url: str) -> None:
    run = uuid.uuid4().hex[:8]
    with jmsish.create_context(url, AcknowledgeMode.CLIENT) as waiter:
        kitchen, counter = waiter.create_queue(f"kitchen-{run}"), waiter.create_queue(f"counter-{run}")
        with waiter.create_context(AcknowledgeMode.TRANSACTED) as chef:  # the same connection, another session
            order(waiter, kitchen)
            cook(chef, kitchen, counter)
        tray = serve(waiter, counter)
    assert tray == [("soup", 1), ("steak", 2), ("salad", 1), ("ice", 1)], tray
    print("served " + ", ".join(f"{dish} (attempt {attempt})" for dish, attempt in tray))


def main() -> None:
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url)


if __name__ == "__main__":
    main()
