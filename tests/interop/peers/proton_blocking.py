"""Proton's BlockingConnection as a peer: `proton_blocking.py URL SCENARIO QUEUE`.

Prints one line of JSON with what it saw; a message is shown as [body, count], where count is the delivery-count of its
header. BlockingConnection knows no transactions.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from proton import UNDESCRIBED, Array, Data, Delivery, Endpoint, Message, symbol
from proton.reactor import LinkOption
from proton.utils import BlockingConnection, BlockingReceiver

PATIENCE = 10.0


class QueueNode(LinkOption):
    """Says `queue` at both ends, for brokers which know topics of the same name."""

    def apply(self, link: Any) -> None:
        node = link.target if link.is_sender else link.source
        node.capabilities.put_object(Array(UNDESCRIBED, Data.SYMBOL, symbol("queue")))


def show(messages: list[Message]) -> list[list[Any]]:
    return [[message.body, message.delivery_count] for message in messages]


def fill(connection: BlockingConnection, queue: str, bodies: list[Any]) -> list[str]:
    sender = connection.create_sender(queue, options=QueueNode())
    deliveries = [sender.send(Message(body, durable=True), timeout=PATIENCE) for body in bodies]
    sender.close()
    return ["accepted" if delivery.remote_state == Delivery.ACCEPTED else "other" for delivery in deliveries]


def receiver_of(connection: BlockingConnection, queue: str, credit: int) -> BlockingReceiver:
    return connection.create_receiver(queue, credit=credit, options=QueueNode())


def rest(connection: BlockingConnection, receiver: BlockingReceiver) -> list[Message]:
    """Everything there is: credit, drain, and the sender's word that no more comes."""
    receiver.link.drain(100)
    connection.wait(lambda: not (receiver.link.draining() or receiver.link.queued), timeout=PATIENCE, msg="draining")
    messages = []
    while receiver.fetcher.has_message:
        messages.append(receiver.receive(timeout=PATIENCE))
    return messages


def empty(connection: BlockingConnection, queue: str) -> list[list[Any]]:
    receiver = receiver_of(connection, queue, 0)
    messages = rest(connection, receiver)
    for _ in messages:
        receiver.accept()
    receiver.close()
    return show(messages)


def send(connection: BlockingConnection, queue: str) -> dict[str, Any]:
    return {"outcomes": fill(connection, queue, ["m1", "m2", "m3"])}


def receive(connection: BlockingConnection, queue: str) -> dict[str, Any]:
    return {"received": empty(connection, queue)}


def outcomes(connection: BlockingConnection, queue: str) -> dict[str, Any]:
    fill(connection, queue, ["m1", "m2", "m3", "m4"])
    receiver = receiver_of(connection, queue, 10)
    first = [receiver.receive(timeout=PATIENCE) for _ in range(4)]
    receiver.reject()
    receiver.release(delivered=False)
    # Left alone, proton's MODIFIED says delivery-failed = false.
    receiver.fetcher.unsettled[0].local.failed = True
    receiver.settle(Delivery.MODIFIED)
    receiver.fetcher.unsettled[0].local.failed = True
    receiver.fetcher.unsettled[0].local.undeliverable = True
    receiver.settle(Delivery.MODIFIED)
    again = [receiver.receive(timeout=PATIENCE) for _ in range(2)]
    receiver.accept()
    receiver.accept()
    extra = rest(connection, receiver)
    elsewhere = BlockingConnection(connection.url, timeout=PATIENCE)
    other = empty(elsewhere, queue)
    elsewhere.close()
    return {"first": show(first), "again": show(again), "extra": show(extra), "elsewhere": other}


def large(connection: BlockingConnection, queue: str) -> dict[str, Any]:
    data = bytes(i % 251 for i in range(1 << 20))
    fill(connection, queue, [data])
    receiver = receiver_of(connection, queue, 1)
    body = receiver.receive(timeout=PATIENCE).body
    receiver.accept()
    return {"equal": bytes(body) == data}


def main() -> None:
    url, scenario, queue = sys.argv[1:]
    connection = BlockingConnection(url, timeout=PATIENCE, allowed_mechs="PLAIN" if "@" in url else "ANONYMOUS")
    seen = {"send": send, "receive": receive, "outcomes": outcomes, "large": large}[scenario](connection, queue)
    assert connection.conn.state & Endpoint.REMOTE_ACTIVE
    connection.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
