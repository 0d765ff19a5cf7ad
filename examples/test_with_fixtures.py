"""Testing a program that uses JMS: the fixtures give each test a fresh broker in memory.

The program is `Dispatcher`: it takes an order, sends it on to the warehouse, and commits. The tests show the things
that are hard to see from outside: that a failure leaves nothing half done, and where an order goes that always
fails.

Run it:  pytest examples/test_with_fixtures.py
"""

from __future__ import annotations

import pytest

import jmsish


class Dispatcher:
    def __init__(self, session: jmsish.Session) -> None:
        self.session = session
        self.orders = session.create_consumer(session.create_queue("orders"))
        self.warehouse = session.create_producer(session.create_queue("warehouse"))

    def dispatch_one(self) -> None:
        order = self.orders.receive(timeout=1)
        if order is None:
            return
        with self.session.transaction():
            self.warehouse.send(f"pick {order.body}")
            if "fragile" in order.body:
                raise RuntimeError("no packer is free")


@pytest.fixture
def orders(jms_session: jmsish.Session) -> jmsish.MessageProducer:
    return jms_session.create_producer(jms_session.create_queue("orders"))


def test_an_order_goes_to_the_warehouse(
    jms_broker: jmsish.EmbeddedBroker, orders: jmsish.MessageProducer, jms_transacted_session: jmsish.Session
) -> None:
    orders.send("3 lamps")
    Dispatcher(jms_transacted_session).dispatch_one()
    assert jms_broker.queue("orders").depth == 0
    assert [message.body for message in jms_broker.queue("warehouse").messages()] == ["pick 3 lamps"]


def test_a_failure_leaves_nothing_half_done(
    jms_broker: jmsish.EmbeddedBroker, orders: jmsish.MessageProducer, jms_transacted_session: jmsish.Session
) -> None:
    orders.send("a fragile lamp")
    dispatcher = Dispatcher(jms_transacted_session)
    with pytest.raises(RuntimeError, match="no packer"):
        dispatcher.dispatch_one()
    assert jms_broker.queue("orders").depth == 1
    assert jms_broker.queue("warehouse").depth == 0


@pytest.mark.jms_broker(config={"queues": {"orders": {"max_delivery_attempts": 2, "dead_letter": "orders.dead"}}})
def test_an_order_that_always_fails_is_put_aside(
    jms_broker: jmsish.EmbeddedBroker, orders: jmsish.MessageProducer, jms_transacted_session: jmsish.Session
) -> None:
    orders.send("a fragile lamp")
    orders.send("a chair")
    dispatcher = Dispatcher(jms_transacted_session)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            dispatcher.dispatch_one()
    dispatcher.dispatch_one()
    assert [message.body for message in jms_broker.queue("orders.dead").messages()] == ["a fragile lamp"]
    assert [message.body for message in jms_broker.queue("warehouse").messages()] == ["pick a chair"]
