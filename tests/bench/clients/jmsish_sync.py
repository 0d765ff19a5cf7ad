"""The blocking face. With the URL `vm` its broker is in this process, and CPU is that of both."""

from __future__ import annotations

import threading

import jmsish
from tests.bench.clients.protocol import BATCH, PATIENCE, TEXT, Watch, arguments, check, serve


class Program:
    def __init__(self, url: str, profiling: bool) -> None:
        self.profiling = profiling
        self.watch = Watch()
        self.url = url
        self.broker: jmsish.EmbeddedBroker | None = None
        if url == "vm":
            self.broker = jmsish.EmbeddedBroker()
            self.broker.start()
            self.url = self.broker.url

    def session(self, transacted: bool = False) -> tuple[jmsish.Connection, jmsish.Session]:
        connection = jmsish.connect(self.url)
        return connection, connection.create_session(transacted)

    # -- what is measured --------------------------------------------------------------------------------------------

    def async_send(self, count: int, queue: str) -> None:
        """Non-persistent: `send` does not wait. Closing the producer waits for all outcomes."""
        connection, session = self.session()
        with connection:
            producer = session.create_producer(session.create_queue(queue))
            producer.delivery_mode = jmsish.DeliveryMode.NON_PERSISTENT
            with self.watch:
                for _ in range(count):
                    producer.send(TEXT)
                producer.close()

    def completion_send(self, count: int, queue: str) -> None:
        """Persistent, with a callback for each outcome."""
        connection, session = self.session()
        outcomes: list[object] = []
        done = threading.Event()

        def completed(message: jmsish.Message, error: jmsish.JMSError | None) -> None:
            outcomes.append(error)
            if len(outcomes) == count:
                done.set()

        with connection:
            producer = session.create_producer(session.create_queue(queue))
            with self.watch:
                for _ in range(count):
                    producer.send(TEXT, on_completion=completed)
                if not done.wait(PATIENCE):
                    raise SystemExit(f"{len(outcomes)} of {count} outcomes came")
        if any(outcomes):
            raise SystemExit(f"refused: {next(filter(None, outcomes))}")

    def receive(self, count: int, queue: str) -> None:
        """From the consumer's attach to the end of its detach, which follows the last acknowledgement."""
        connection, session = self.session()
        with connection, self.watch:
            consumer = session.create_consumer(session.create_queue(queue))
            for _ in range(count):
                check(self.next(consumer).body)
            consumer.close()

    def sync_send(self, count: int, queue: str) -> None:
        connection, session = self.session()
        with connection:
            producer = session.create_producer(session.create_queue(queue))
            with self.watch:
                for _ in range(count):
                    producer.send(TEXT)

    def transacted(self, count: int, queue: str) -> None:
        """One transaction: ten received, ten sent, commit."""
        connection, session = self.session(transacted=True)
        with connection:
            consumer = session.create_consumer(session.create_queue(queue))
            producer = session.create_producer(session.create_queue(queue + ".out"))
            with self.watch:
                for _ in range(count):
                    for _ in range(BATCH):
                        check(self.next(consumer).body)
                        producer.send(TEXT)
                    session.commit()

    transacted_examples = transacted

    def request_reply(self, count: int, queue: str) -> None:
        if self.broker is None:
            return self.ask(count, queue)
        responder = threading.Thread(target=self.respond, args=(count, queue))
        responder.start()
        self.ask(count, queue)
        responder.join(PATIENCE)

    def ask(self, count: int, queue: str) -> None:
        connection, session = self.session()
        with connection:
            producer = session.create_producer(session.create_queue(queue))
            answers = session.create_temporary_queue()
            consumer = session.create_consumer(answers)
            with self.watch:
                for _ in range(count):
                    request = session.create_text_message(TEXT)
                    request.jms_reply_to = answers
                    producer.send(request)
                    check(self.next(consumer).body)

    # -- what has to be there for it ---------------------------------------------------------------------------------

    def respond(self, count: int, queue: str) -> None:
        """Answer so many requests."""
        connection, session = self.session()
        with connection:
            consumer = session.create_consumer(session.create_queue(queue))
            producer = session.create_producer()
            for _ in range(count):
                request = self.next(consumer)
                producer.send(TEXT, destination=request.jms_reply_to)

    def fill(self, count: int, queue: str) -> None:
        self.async_send(count, queue)

    def empty(self, count: int, queue: str) -> None:
        self.receive(count, queue)

    def next(self, consumer: jmsish.MessageConsumer) -> jmsish.Message:
        message = consumer.receive(timeout=PATIENCE)
        if message is None:
            raise SystemExit(f"no message within {PATIENCE} seconds")
        return message


if __name__ == "__main__":
    serve(Program(*arguments()))
