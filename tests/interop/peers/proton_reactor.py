"""Proton's MessagingHandler and reactor.Transaction as a peer: `proton_reactor.py URL SCENARIO QUEUE`.

Prints one line of JSON with what it saw; a message is shown as [body, count], where count is the delivery-count of its
header. A scenario is a generator which yields what it waits for: a function that is asked again after each event of the
reactor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from typing import Any

from proton import UNDESCRIBED, Array, Data, Delivery, Message, symbol
from proton.handlers import TransactionalClientHandler
from proton.reactor import Container, LinkOption

Script = Generator[Callable[[], bool], None, Any]


class QueueNode(LinkOption):
    """Says `queue` at both ends, for brokers which know topics of the same name."""

    def apply(self, link: Any) -> None:
        node = link.target if link.is_sender else link.source
        node.capabilities.put_object(Array(UNDESCRIBED, Data.SYMBOL, symbol("queue")))


class Peer(TransactionalClientHandler):
    """Runs one scenario and closes the connection after it."""

    def __init__(self, url: str, scenario: str, queue: str) -> None:
        super().__init__(prefetch=0, auto_accept=False, peer_close_is_error=True)
        self.url, self.queue = url, queue
        self.script: Script = getattr(self, scenario)()
        self.seen: dict[str, Any] = {}
        self.error: str | None = None
        self.inbox: dict[str, list[tuple[Message, Delivery]]] = {}
        self.transaction: Any = None
        self.discharged = 0
        self.condition: Callable[[], bool] = lambda: True

    # -- events ------------------------------------------------------------------------------------------------------

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = self.connect()

    def on_message(self, event: Any) -> None:
        self.inbox[event.receiver.name].append((event.message, event.delivery))
        self.step()

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        # A view on memory that proton uses again.
        self.transaction.id = bytes(self.transaction.id)
        self.step()

    def on_transaction_committed(self, event: Any) -> None:
        self.discharged += 1
        self.step()

    on_transaction_aborted = on_transaction_committed

    def on_transaction_declare_failed(self, event: Any) -> None:
        self.fail(f"declare failed: {event.delivery.remote_state}")

    def on_transaction_commit_failed(self, event: Any) -> None:
        self.fail(f"commit failed: {event.delivery.remote_state}")

    def on_error_event(self, condition: Any) -> None:
        self.fail(str(condition))

    def on_link_error(self, event: Any) -> None:
        self.fail(str(event.link.remote_condition))

    def on_session_error(self, event: Any) -> None:
        self.fail(str(event.session.remote_condition))

    def on_connection_error(self, event: Any) -> None:
        self.fail(str(event.connection.remote_condition))

    def on_transport_error(self, event: Any) -> None:
        self.fail(str(event.transport.condition))

    def progress(self, event: Any) -> None:
        self.step()

    on_connection_opened = on_link_opened = on_link_closed = on_link_flow = on_sendable = on_settled = progress

    def fail(self, reason: str) -> None:
        self.error = self.error or reason
        self.connection.close()

    def step(self) -> None:
        try:
            while self.error is None and self.condition():
                self.condition = self.script.send(None)
        except StopIteration as stop:
            self.seen, self.condition = stop.value, lambda: False
            self.connection.close()

    # -- verbs -------------------------------------------------------------------------------------------------------

    def connect(self) -> Any:
        mechanism = "PLAIN" if "@" in self.url else "ANONYMOUS"
        return self.container.connect(self.url, allowed_mechs=mechanism, reconnect=False)

    def fill(self, queue: str, bodies: list[Any], transaction: Any = None) -> Script:
        sender = self.container.create_sender(self.connection, queue, options=QueueNode())
        yield lambda: sender.credit >= len(bodies)
        messages = [Message(body, durable=True) for body in bodies]
        if transaction is None:
            deliveries = [sender.send(message) for message in messages]
        else:
            deliveries = [transaction.send(sender, message) for message in messages]
        yield lambda: all(delivery.remote_state for delivery in deliveries)
        sender.close()
        return ["accepted" if delivery.remote_state == Delivery.ACCEPTED else "other" for delivery in deliveries]

    def receiver(self, queue: str, connection: Any = None) -> Any:
        # A name of its own: proton calls all links to one address alike.
        name = f"receiver-{len(self.inbox)}"
        receiver = self.container.create_receiver(connection or self.connection, queue, name=name, options=QueueNode())
        self.inbox[receiver.name] = []
        return receiver

    def take(self, receiver: Any, count: int) -> Script:
        inbox = self.inbox[receiver.name]
        yield lambda: len(inbox) >= count
        taken = inbox[:count]
        del inbox[:count]
        return taken

    def rest(self, receiver: Any) -> Script:
        """Everything there is: credit, drain, and the sender's word that no more comes."""
        receiver.drain(100)
        # Proton takes in a whole read before its handlers see the first event of it.
        yield lambda: not (receiver.draining() or receiver.queued)
        taken = self.inbox[receiver.name][:]
        self.inbox[receiver.name].clear()
        return taken

    def empty(self, queue: str, connection: Any = None) -> Script:
        receiver = self.receiver(queue, connection)
        taken = yield from self.rest(receiver)
        for _, delivery in taken:
            self.accept(delivery)
        receiver.close()
        return show(taken)

    def begin(self, settle_before_discharge: bool) -> Script:
        self.container.declare_transaction(self.connection, self, settle_before_discharge)
        yield lambda: self.transaction is not None
        return self.transaction

    def discharge(self, transaction: Any, failed: bool) -> Script:
        before = self.discharged
        transaction.discharge(failed)
        yield lambda: self.discharged > before

    # -- scenarios ---------------------------------------------------------------------------------------------------

    def send(self) -> Script:
        return {"outcomes": (yield from self.fill(self.queue, ["m1", "m2", "m3"]))}

    def receive(self) -> Script:
        return {"received": (yield from self.empty(self.queue))}

    def outcomes(self) -> Script:
        yield from self.fill(self.queue, ["m1", "m2", "m3", "m4"])
        receiver = self.receiver(self.queue)
        receiver.flow(4)
        first = yield from self.take(receiver, 4)
        bad, back, failed, elsewhere = (delivery for _, delivery in first)
        self.reject(bad)
        self.release(back, delivered=False)
        # Left alone, proton's MODIFIED says delivery-failed = false.
        failed.local.failed = elsewhere.local.failed = elsewhere.local.undeliverable = True
        self.settle(failed, Delivery.MODIFIED)
        self.settle(elsewhere, Delivery.MODIFIED)
        # Proton writes flows before dispositions; a round trip keeps this credit behind them.
        yield from self.empty(self.queue + ".none")
        receiver.flow(6)
        again = yield from self.take(receiver, 2)
        for _, delivery in again:
            self.accept(delivery)
        extra = yield from self.rest(receiver)
        connection = self.connect()
        other = yield from self.empty(self.queue, connection)
        connection.close()
        return {"first": show(first), "again": show(again), "extra": show(extra), "elsewhere": other}

    def commit(self) -> Script:
        yield from self.fill(self.queue, ["m1", "m2", "m3", "m4"])
        receiver = self.receiver(self.queue)
        receiver.flow(4)
        prefetched = yield from self.take(receiver, 4)
        transaction = yield from self.begin(True)
        for _, delivery in prefetched[:2]:
            transaction.accept(delivery)
        yield from self.fill(self.queue + ".out", ["a", "b"], transaction)
        before = yield from self.empty(self.queue + ".out")
        yield from self.discharge(transaction, False)
        after = yield from self.empty(self.queue + ".out")
        for _, delivery in prefetched[2:]:
            self.release(delivery, delivered=False)
        left = yield from self.empty(self.queue)
        return {"received": show(prefetched[:2]), "out_before": before, "out_after": after, "left": left}

    def rollback(self) -> Script:
        return (yield from self._rollback(settle_before_discharge=True))

    def rollback_unsettled(self) -> Script:
        """As proton does it when left alone: retired unsettled, and released by the client after the discharge."""
        return (yield from self._rollback(settle_before_discharge=False))

    def _rollback(self, settle_before_discharge: bool) -> Script:
        yield from self.fill(self.queue, ["m1", "m2", "m3", "m4", "m5"])
        receiver = self.receiver(self.queue)
        receiver.flow(5)
        prefetched = yield from self.take(receiver, 5)
        transaction = yield from self.begin(settle_before_discharge)
        for _, delivery in prefetched[:2]:
            transaction.accept(delivery)
        yield from self.fill(self.queue + ".out", ["a"], transaction)
        yield from self.discharge(transaction, True)
        for _, delivery in prefetched[2:]:
            self.release(delivery, delivered=False)
        receiver.flow(5)
        again = yield from self.take(receiver, 5)
        for _, delivery in again:
            self.accept(delivery)
        out = yield from self.empty(self.queue + ".out")
        left = yield from self.empty(self.queue)
        return {"received": show(prefetched[:2]), "again": show(again), "out": out, "left": left}

    def large(self) -> Script:
        data = bytes(i % 251 for i in range(1 << 20))
        yield from self.fill(self.queue, [data])
        receiver = self.receiver(self.queue)
        receiver.flow(1)
        ((message, delivery),) = yield from self.take(receiver, 1)
        self.accept(delivery)
        return {"equal": bytes(message.body) == data}


def show(taken: list[tuple[Message, Delivery]]) -> list[list[Any]]:
    return [[message.body, message.delivery_count] for message, _ in taken]


def main() -> None:
    peer = Peer(*sys.argv[1:])
    Container(peer).run()
    if peer.error is not None or not peer.seen:
        sys.exit(f"proton_reactor: {peer.error or 'the scenario did not end'}")
    print(json.dumps(peer.seen))


if __name__ == "__main__":
    main()
