"""Request and reply: the client waits on a temporary queue of its own, the server answers wherever it is asked to.

The correlation id of the reply is the message id of the request. The temporary queue is deleted with the client's
connection, so late replies have nowhere to pile up.

Run it:  python examples/04_request_reply.py [amqp://host]
"""

from __future__ import annotations

import sys
import threading
import uuid

import jmsish

RATES = {"EUR": 1.0, "CHF": 1.04, "GBP": 1.17, "USD": 0.92}


class RateServer(threading.Thread):
    """Answers each request on the queue; a request that says stop is its last."""

    def __init__(self, url: str, queue: str) -> None:
        super().__init__(name="rate server", daemon=True)
        self.url = url
        self.queue = queue
        self.answered = 0

    def run(self) -> None:
        with jmsish.connect(self.url) as connection, connection.create_session() as session:
            replies = session.create_producer()  # of no destination: each reply names its own
            for request in session.create_consumer(session.create_queue(self.queue)):
                if request.body == "stop":
                    return
                self.reply(session, replies, request)

    def reply(self, session: jmsish.Session, replies: jmsish.MessageProducer, request: jmsish.Message) -> None:
        currency = str(request.body)
        rate = RATES.get(currency)
        answer = session.create_map_message({"currency": currency, "known": rate is not None, "rate": rate or 0.0})
        answer.jms_correlation_id = request.jms_message_id
        replies.send(answer, destination=request.jms_reply_to)
        self.answered += 1


def ask(session: jmsish.Session, queue: jmsish.Queue, currencies: list[str]) -> dict[str, jmsish.Message]:
    """Sends all requests at once, then collects the replies by their correlation id."""
    inbox = session.create_temporary_queue()
    producer = session.create_producer(queue)
    waiting = {}
    for currency in currencies:
        request = session.create_text_message(currency)
        request.jms_reply_to = inbox
        producer.send(request)
        waiting[request.jms_message_id] = currency
    answers = {}
    with session.create_consumer(inbox) as consumer:
        while waiting:
            reply = consumer.receive(timeout=5)
            assert reply is not None, f"no reply for {sorted(waiting.values())}"
            answers[waiting.pop(reply.jms_correlation_id)] = reply
    inbox.delete()
    return answers


def demonstrate(url: str) -> None:
    name = f"rates-{uuid.uuid4().hex[:8]}"
    server = RateServer(url, name)
    server.start()
    with jmsish.connect(url) as connection, connection.create_session() as session:
        queue = session.create_queue(name)
        answers = ask(session, queue, ["CHF", "GBP", "XXX"])
        for currency, reply in answers.items():
            print(f"  {currency}: {reply.body['rate'] if reply.body['known'] else 'unknown'}")
        session.create_producer(queue).send("stop")
        server.join(5)
    assert not server.is_alive()
    assert answers["CHF"].body["rate"] == 1.04 and not answers["XXX"].body["known"]
    print(f"{server.answered} requests answered")


def main() -> None:
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url)


if __name__ == "__main__":
    main()
