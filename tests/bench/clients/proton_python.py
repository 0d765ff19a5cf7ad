"""Proton's own Python API, each work by the part of it that is made for it.

`MessagingHandler` streams, `BlockingConnection` sends and asks, `reactor.Transaction` transacts. Messages are bare,
without what JMS adds to a message.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from proton import UNDESCRIBED, Array, Data, Message, symbol
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container, LinkOption
from proton.utils import BlockingConnection

from tests.bench.clients.protocol import BATCH, PATIENCE, PREFETCH, TEXT, Watch, arguments, check, serve


class QueueNode(LinkOption):
    """Says `queue` at both ends, for brokers which know topics of the same name."""

    def apply(self, link: Any) -> None:
        node = link.target if link.is_sender else link.source
        node.capabilities.put_object(Array(UNDESCRIBED, Data.SYMBOL, symbol("queue")))  # type: ignore[arg-type]


class Streaming(MessagingHandler):
    """One connection, one work, and the end of both."""

    def __init__(self, url: str, queue: str, count: int, watch: Watch, **options: Any) -> None:
        super().__init__(peer_close_is_error=True, **options)
        self.url, self.queue, self.count, self.watch = url, queue, count, watch
        self.done = 0
        self.error: str | None = None

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = event.container.connect(self.url, allowed_mechs="ANONYMOUS", reconnect=False)

    def on_transport_error(self, event: Any) -> None:
        self.fail(event.transport.condition)

    def on_connection_error(self, event: Any) -> None:
        self.fail(event.connection.remote_condition)

    def on_session_error(self, event: Any) -> None:
        self.fail(event.session.remote_condition)

    def on_link_error(self, event: Any) -> None:
        self.fail(event.link.remote_condition)

    def on_rejected(self, event: Any) -> None:
        self.fail(event.delivery.remote.condition)

    def fail(self, reason: object) -> None:
        self.error = self.error or str(reason)
        self.connection.close()

    def run(self) -> None:
        Container(self).run()
        if self.error is not None or self.done != self.count:
            raise SystemExit(f"proton: {self.done} of {self.count}: {self.error}")


class Sending(Streaming):
    sent = 0

    def on_connection_opened(self, event: Any) -> None:
        self.container.create_sender(self.connection, self.queue, options=QueueNode())

    def on_sendable(self, event: Any) -> None:
        if not self.sent:
            self.watch.start()
        sender = event.sender
        while self.sent < self.count and sender.credit:
            sender.send(Message(TEXT))
            self.sent += 1

    def on_accepted(self, event: Any) -> None:
        self.done += 1
        if self.done == self.count:
            self.watch.stop()
            self.connection.close()


class Receiving(Streaming):
    def on_connection_opened(self, event: Any) -> None:
        self.watch.start()
        self.container.create_receiver(self.connection, self.queue, options=QueueNode())

    def on_message(self, event: Any) -> None:
        if self.done < self.count:
            check(event.message.body)
            self.done += 1
            if self.done == self.count:
                event.receiver.close()

    def on_link_closed(self, event: Any) -> None:
        self.watch.stop()
        self.connection.close()


class Transacting(Streaming, TransactionHandler):
    """A transaction takes ten messages, sends ten, commits: tuned for speed (prefetch, acceptances settled at once), or
    as proton's examples have it (a flow for each batch, settlement by proton's default)."""

    def __init__(self, *given: Any, tuned: bool) -> None:
        super().__init__(*given, prefetch=PREFETCH if tuned else 0, auto_accept=False)
        self.tuned = tuned
        self.receiver: Any = None
        self.inbox: deque[tuple[Message, Any]] = deque()
        self.transaction: Any = None
        self.sender: Any = None
        self.started = False

    def on_connection_opened(self, event: Any) -> None:
        self.sender = self.container.create_sender(self.connection, self.queue + ".out", options=QueueNode())
        self.receiver = self.container.create_receiver(self.connection, self.queue, options=QueueNode())
        self.declare()

    def declare(self) -> None:
        self.transaction = None
        self.container.declare_transaction(self.connection, handler=self, settle_before_discharge=self.tuned)

    def on_transaction_declared(self, event: Any) -> None:
        if not self.started:
            self.started = True
            self.watch.start()
        self.transaction = event.transaction
        # A view on memory that proton uses again.
        self.transaction.id = bytes(self.transaction.id)
        if not self.tuned:
            self.receiver.flow(BATCH)
        self.step()

    def on_message(self, event: Any) -> None:
        self.inbox.append((event.message, event.delivery))
        self.step()

    def on_sendable(self, event: Any) -> None:
        self.step()

    def step(self) -> None:
        transaction = self.transaction
        if transaction is None or len(self.inbox) < BATCH or self.sender.credit < BATCH:
            return
        for _ in range(BATCH):
            message, delivery = self.inbox.popleft()
            check(message.body)
            transaction.accept(delivery)
            transaction.send(self.sender, Message(TEXT))
        self.transaction = None
        transaction.commit()

    def on_transaction_committed(self, event: Any) -> None:
        self.done += 1
        if self.done < self.count:
            self.declare()
        else:
            self.watch.stop()
            self.connection.close()

    def on_transaction_declare_failed(self, event: Any) -> None:
        self.fail("declare failed")

    def on_transaction_commit_failed(self, event: Any) -> None:
        self.fail("commit failed")

    def on_transaction_aborted(self, event: Any) -> None:
        self.fail("aborted")


class Program:
    def __init__(self, url: str, profiling: bool) -> None:
        self.url, self.profiling = url, profiling
        self.watch = Watch()

    def async_send(self, count: int, queue: str) -> None:
        Sending(self.url, queue, count, self.watch).run()

    completion_send = async_send

    def receive(self, count: int, queue: str) -> None:
        Receiving(self.url, queue, count, self.watch, prefetch=PREFETCH).run()

    def transacted(self, count: int, queue: str) -> None:
        Transacting(self.url, queue, count, self.watch, tuned=True).run()

    def transacted_examples(self, count: int, queue: str) -> None:
        Transacting(self.url, queue, count, self.watch, tuned=False).run()

    def blocking(self) -> Any:
        return BlockingConnection(self.url, timeout=PATIENCE, allowed_mechs="ANONYMOUS")

    def sync_send(self, count: int, queue: str) -> None:
        connection = self.blocking()
        sender = connection.create_sender(queue, options=QueueNode())
        with self.watch:
            for _ in range(count):
                sender.send(Message(TEXT, durable=True))
        connection.close()

    def request_reply(self, count: int, queue: str) -> None:
        connection = self.blocking()
        sender = connection.create_sender(queue, options=QueueNode())
        receiver = connection.create_receiver(None, dynamic=True, credit=10)
        reply_to = receiver.link.remote_source.address
        with self.watch:
            for _ in range(count):
                sender.send(Message(TEXT, durable=True, reply_to=reply_to))
                check(receiver.receive(timeout=PATIENCE).body)
                receiver.accept()
        connection.close()


if __name__ == "__main__":
    serve(Program(*arguments()))
