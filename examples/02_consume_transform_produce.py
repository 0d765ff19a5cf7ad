"""Take a message, work on it, send the outcome: one transaction for both, so that neither happens without the other.

Orders from `data/orders.csv` become invoices. The rate table that the work needs is down for the first few
currencies it is asked for: the transaction is rolled back, the invoice that may have been sent is never seen, and
the order comes again. One order can never be worked on; after three attempts it is put aside, again in the same
transaction.

Run it:  python examples/02_consume_transform_produce.py [amqp://host]
"""

from __future__ import annotations

import csv
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import jmsish

ORDERS = Path(__file__).with_name("data") / "orders.csv"
TAKEN = 40
MAX_ATTEMPTS = 3


class RateTable:
    """Rates to the euro; the first question for each currency but the euro fails, as a remote system may."""

    RATES = {"EUR": "1", "CHF": "1.04", "GBP": "1.17", "BRL": "0.18", "PLN": "0.23", "SEK": "0.089", "DKK": "0.134",
             "NOK": "0.087", "USD": "0.92", "CAD": "0.68", "JPY": "0.0061", "CZK": "0.0395"}  # fmt: skip

    def __init__(self) -> None:
        self.warm = {"EUR"}

    def rate(self, currency: str) -> Decimal:
        rate = Decimal(self.RATES[currency])
        if currency not in self.warm:
            self.warm.add(currency)
            raise TimeoutError(f"no rate for {currency} yet")
        return rate


def invoice_of(order: dict[str, Any], rates: RateTable) -> dict[str, str]:
    total = int(order["quantity"]) * Decimal(order["unit_price"]) * rates.rate(order["currency"])
    return {"order_id": order["order_id"], "customer": order["customer"], "total_eur": f"{total:.2f}"}


def read_orders() -> list[dict[str, Any]]:
    with open(ORDERS, encoding="utf-8", newline="") as stream:
        orders: list[dict[str, Any]] = list(csv.DictReader(stream))[:TAKEN]
    orders[10]["quantity"] = "a dozen"  # this one can never be invoiced
    return orders


class Invoicing:
    """A worker: `step` is one transaction."""

    def __init__(self, session: jmsish.Session, run: str) -> None:
        self.session = session
        self.orders = session.create_consumer(session.create_queue(f"{run}.orders"))
        self.invoices = session.create_producer(session.create_queue(f"{run}.invoices"))
        self.aside = session.create_producer(session.create_queue(f"{run}.aside"))
        self.rates = RateTable()
        self.rolled_back = 0

    def step(self) -> bool:
        message = self.orders.receive(timeout=1)
        if message is None:
            return False
        try:
            self.invoices.send(invoice_of(dict(message.body), self.rates))
        except (ArithmeticError, ValueError, TimeoutError) as error:
            self.failed(message, error)
        self.session.commit()
        return True

    def failed(self, message: jmsish.Message, error: Exception) -> None:
        order_id = message.body["order_id"]
        if message.delivery_count >= MAX_ATTEMPTS:
            print(f"  {order_id}: put aside after {message.delivery_count} attempts ({error})")
            self.aside.send(message)
        else:
            print(f"  {order_id}: attempt {message.delivery_count} rolled back ({error})")
            self.rolled_back += 1
            self.session.rollback()


def drain(session: jmsish.Session, queue: str) -> list[Any]:
    bodies = []
    with session.create_consumer(session.create_queue(queue)) as consumer:
        while (message := consumer.receive(timeout=1)) is not None:
            bodies.append(dict(message.body))
    session.commit()
    return bodies


def demonstrate(url: str) -> None:
    run = f"invoicing-{uuid.uuid4().hex[:8]}"
    orders = read_orders()
    with jmsish.connect(url) as connection, connection.create_session(transacted=True) as session:
        producer = session.create_producer(session.create_queue(f"{run}.orders"))
        for order in orders:
            producer.send(order)
        session.commit()
        print(f"{len(orders)} orders sent")

        worker = Invoicing(session, run)
        while worker.step():
            pass

        invoices, aside = drain(session, f"{run}.invoices"), drain(session, f"{run}.aside")
    expected = [order["order_id"] for order in orders if order["quantity"] != "a dozen"]
    assert [invoice["order_id"] for invoice in invoices] == expected, "each order once, in the order they were placed"
    assert [order["order_id"] for order in aside] == [orders[10]["order_id"]]
    assert worker.rolled_back >= MAX_ATTEMPTS - 1
    print(f"{len(invoices)} invoices, {len(aside)} order put aside, {worker.rolled_back} rollbacks")
    print("none lost, none doubled")


def main() -> None:
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url)


if __name__ == "__main__":
    main()
