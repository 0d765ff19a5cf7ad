"""The four steps this project began with: what a commit leaves unread is there for the next consumer.

    1. Send 3 messages m1, m2, m3 in a transacted session.
    2. Receive m1 only, in the same session, using consumer 1.
    3. Commit the session.
    4. Receive m2 and m3 in the same session, using a new consumer 2.

All three messages were fetched ahead into the buffer of consumer 1, which stays open. A client that leaves m2 and m3
there never delivers them again. The second half does the same with a rollback: what was received comes again and says
so, what only lay in the buffer comes as if for the first time.

Run it:  python examples/01_founding_document.py [amqp://host]
"""

from __future__ import annotations

import sys
import uuid

import jmsish


def receive(consumer: jmsish.MessageConsumer) -> jmsish.Message:
    message = consumer.receive(timeout=5)
    assert message is not None, "a message was expected within 5 seconds"
    print(f"      got {message.body}  delivery {message.delivery_count}  redelivered {message.jms_redelivered}")
    return message


def commit_with_unread_messages(session: jmsish.Session, queue: jmsish.Queue) -> None:
    print("1. send m1, m2, m3 in a transacted session")
    producer = session.create_producer(queue)
    for body in ("m1", "m2", "m3"):
        producer.send(body)
    session.commit()

    print("2. receive m1 with consumer 1")
    consumer1 = session.create_consumer(queue)
    assert receive(consumer1).body == "m1"

    print("3. commit; consumer 1 stays open")
    session.commit()

    print("4. receive m2 and m3 with a new consumer 2")
    consumer2 = session.create_consumer(queue)
    second, third = receive(consumer2), receive(consumer2)
    assert [second.body, third.body] == ["m2", "m3"]
    assert not second.jms_redelivered and not third.jms_redelivered
    assert consumer2.receive_no_wait() is None
    session.commit()
    consumer1.close()
    consumer2.close()


def rollback_with_unread_messages(session: jmsish.Session, queue: jmsish.Queue) -> None:
    print("And with a rollback: send m4, m5, m6; receive m4 with consumer 1; roll back; read on with consumer 2")
    producer = session.create_producer(queue)
    for body in ("m4", "m5", "m6"):
        producer.send(body)
    session.commit()

    consumer1 = session.create_consumer(queue)
    assert receive(consumer1).body == "m4"
    session.rollback()

    consumer2 = session.create_consumer(queue)
    again = [receive(consumer2) for _ in range(3)]
    assert [message.body for message in again] == ["m4", "m5", "m6"]
    assert [message.delivery_count for message in again] == [2, 1, 1]
    session.commit()


def demonstrate(url: str) -> None:
    with jmsish.connect(url) as connection, connection.create_session(transacted=True) as session:
        queue = session.create_queue(f"founding-document-{uuid.uuid4().hex[:8]}")
        commit_with_unread_messages(session, queue)
        rollback_with_unread_messages(session, queue)
    print("Nothing was left behind, nothing was counted that nobody had read.")


def main() -> None:
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url)


if __name__ == "__main__":
    main()
