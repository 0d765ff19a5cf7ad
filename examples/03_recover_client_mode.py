"""CLIENT mode: acknowledge when you are sure, recover when you are not.

`acknowledge()` on a message acknowledges everything the session has delivered so far. `recover()` gives back what
is not acknowledged: what was received comes again, first and in order, with its count raised; what was only fetched
ahead comes behind it as if for the first time.

Run it:  python examples/03_recover_client_mode.py [amqp://host]
"""

from __future__ import annotations

import sys
import uuid

import jmsish


def receive(consumer: jmsish.MessageConsumer) -> jmsish.Message:
    message = consumer.receive(timeout=5)
    assert message is not None, "a message was expected within 5 seconds"
    print(f"  got {message.body}  delivery {message.delivery_count}  redelivered {message.jms_redelivered}")
    return message


def demonstrate(url: str) -> None:
    with jmsish.connect(url) as connection:
        session = connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.CLIENT)
        queue = session.create_queue(f"recover-{uuid.uuid4().hex[:8]}")
        producer = session.create_producer(queue)
        for number in range(1, 6):
            producer.send(f"reading {number}")
        consumer = session.create_consumer(queue)

        print("two readings, acknowledged by one call on the second")
        receive(consumer)
        receive(consumer).acknowledge()

        print("two more, not acknowledged, and recover")
        assert [receive(consumer).body, receive(consumer).body] == ["reading 3", "reading 4"]
        session.recover()

        print("they come again, before the one nobody has read yet")
        again = [receive(consumer) for _ in range(3)]
        assert [message.body for message in again] == ["reading 3", "reading 4", "reading 5"]
        assert [message.delivery_count for message in again] == [2, 2, 1]
        assert [message.jms_redelivered for message in again] == [True, True, False]

        again[-1].acknowledge()
        session.recover()
        assert consumer.receive_no_wait() is None
        print("all acknowledged: recover brings nothing back")


def main() -> None:
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url)


if __name__ == "__main__":
    main()
