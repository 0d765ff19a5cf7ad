"""What is more than queues, by scenario: done with jmsish, seen as `peers/FeaturePeer.java` sees it with Qpid JMS."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import jmsish

PATIENCE = 30.0
Seen = dict[str, Any]
T = TypeVar("T")


class Features:
    """One scenario at a broker: `Features(url).run(name)`. `exchange` is where its topics are, if they are keys."""

    def __init__(self, url: str, exchange: str = "") -> None:
        self.url = url
        self.exchange = exchange
        self.unique = uuid.uuid4().hex
        self.stack = ExitStack()

    def run(self, scenario: str) -> Seen:
        with self.stack:
            self.session = self.connect().create_session()
            self.topic = self.session.create_topic(f"{self.exchange}features.{scenario}.{self.unique}")
            self.queue = self.session.create_queue(f"features.{scenario}.{self.unique}.queue")
            seen: Seen = getattr(self, scenario)()
            return seen

    # -- subscriptions

    def non_durable(self) -> Seen:
        self.publish("a")
        one = self.session.create_consumer(self.topic)
        self.publish("b")
        two = self.session.create_consumer(self.topic)
        self.publish("c")
        return {"one": drain(one, 2), "two": drain(two, 1)}

    def durable(self) -> Seen:
        connection = self.connect("client")
        first = connection.create_session().create_durable_consumer(self.topic, "name")
        self.publish("a")
        seen = {"first": drain(first, 1)}
        connection.close()
        self.publish("b", "c")
        own = self.connect("client").create_session()
        consumer = own.create_durable_consumer(self.topic, "name")
        seen["kept"] = drain(consumer, 2)
        consumer.close()
        own.unsubscribe("name")
        self.publish("d")
        consumer = own.create_durable_consumer(self.topic, "name")
        seen["anew"] = drain(consumer)
        consumer.close()
        own.unsubscribe("name")
        return seen

    def durable_changed(self) -> Seen:
        own = self.connect("client").create_session()
        own.create_durable_consumer(self.topic, "name", "weight > 0").close()
        self.send_weighed(self.topic, 1, 2)
        consumer = own.create_durable_consumer(self.topic, "name", "weight > 1")
        self.send_weighed(self.topic, 1, 3)
        seen = {"other_selector": drain(consumer, 1)}
        consumer.close()
        self.send_weighed(self.topic, 4)
        other = own.create_topic(f"{self.topic.name}.other")
        consumer = own.create_durable_consumer(other, "name", "weight > 1")
        seen["other_topic"] = drain(consumer)
        consumer.close()
        own.unsubscribe("name")
        return seen

    def unsubscribing(self) -> Seen:
        own = self.connect("client").create_session()
        consumer = own.create_durable_consumer(self.topic, "name")
        seen: Seen = {"active": refused(lambda: own.unsubscribe("name"))}
        consumer.close()
        own.unsubscribe("name")
        try:
            own.unsubscribe("name")
        except jmsish.InvalidDestinationError:
            seen["unknown"] = "invalid destination"
        return seen

    def shared(self) -> Seen:
        one, two = self.connect().create_session(), self.connect().create_session()
        name = f"name-{self.unique}"
        first, second = one.create_shared_consumer(self.topic, name), two.create_shared_consumer(self.topic, name)
        other = two.create_shared_consumer(self.topic, f"other-{self.unique}")
        self.publish("a", "b", "c", "d")
        seen = {"together": together(first, second, count=4), "other": drain(other, 4)}
        first.close()
        self.publish("e")
        seen["left"] = drain(second, 1)
        second.close()
        self.publish("f")
        seen["anew"] = drain(one.create_shared_consumer(self.topic, name))
        return seen

    def shared_durable(self) -> Seen:
        return self.share_durably(self.connect(), self.connect(), f"name-{self.unique}")

    def shared_durable_of_a_client(self) -> Seen:
        connection = self.connect("client")
        return self.share_durably(connection, connection, "name")

    def share_durably(self, connection: jmsish.Connection, other: jmsish.Connection, name: str) -> Seen:
        one, two = connection.create_session(), other.create_session()
        first = one.create_shared_durable_consumer(self.topic, name)
        second = two.create_shared_durable_consumer(self.topic, name)
        self.publish("a", "b", "c", "d")
        seen = {"together": together(first, second, count=4)}
        first.close()
        second.close()
        self.publish("e", "f")
        again = two.create_shared_durable_consumer(self.topic, name)
        seen["kept"] = drain(again, 2)
        again.close()
        one.unsubscribe(name)
        self.publish("g")
        again = two.create_shared_durable_consumer(self.topic, name)
        seen["anew"] = drain(again)
        again.close()
        one.unsubscribe(name)
        return seen

    def no_local(self) -> Seen:
        own = self.connect("client").create_session()
        consumer = own.create_consumer(self.topic, no_local=True)
        own.create_producer(self.topic).send("own")
        self.publish("other's")
        return {"received": drain(consumer, 1)}

    # -- selectors, browsers

    def selectors(self) -> Seen:
        self.send_weighed(self.queue, 1, 11, 2, 12, 3)
        heavy = self.session.create_consumer(self.queue, "colour = 'red' AND weight > 10")
        seen: Seen = {"heavy": drain(heavy, 2)}
        heavy.close()
        seen["light"] = drain(self.session.create_consumer(self.queue), 3)
        subscriber = self.session.create_consumer(self.topic, "weight BETWEEN 2 AND 3 OR colour LIKE 'bl_e'")
        self.send_weighed(self.topic, 1, 2, 3, 4)
        seen["published"] = drain(subscriber, 3)
        try:
            self.session.create_consumer(self.queue, "weight >")
        except jmsish.InvalidSelectorError:
            seen["bad"] = "invalid selector"
        return seen

    def browsers(self) -> Seen:
        self.send_weighed(self.queue, 1, 11, 2, 12)
        return {
            "heavy": browse(self.session.create_browser(self.queue, "weight > 10")),
            "all": browse(self.session.create_browser(self.queue)),
            "received": drain(self.session.create_consumer(self.queue), 4),
            "after": browse(self.session.create_browser(self.queue)),
        }

    # -- temporary destinations

    def temporary_queue(self) -> Seen:
        return self.temporary(self.session.create_temporary_queue())

    def temporary_topic(self) -> Seen:
        return self.temporary(self.session.create_temporary_topic())

    def temporary(self, own: Any) -> Seen:
        elsewhere = self.connect().create_session()
        consumer = self.session.create_consumer(own)
        elsewhere.create_producer(own).send("a")
        elsewhere.create_producer().send("b", destination=own)
        seen: Seen = {
            "received": drain(consumer, 2),
            "consumed_elsewhere": refused(lambda: elsewhere.create_consumer(own)),
            "deleted_in_use": refused(own.delete),
        }
        consumer.close()
        own.delete()
        seen["consumed_when_gone"] = refused(lambda: self.session.create_consumer(own))
        return seen

    # -- groups, delay

    def groups(self) -> Seen:
        consumers = [self.session.create_consumer(self.queue) for _ in range(2)]
        producer = self.session.create_producer(self.queue)
        for number in range(4):
            for group in "abc":
                producer.send(f"{group}{number}", properties={"JMSXGroupID": group})
        received = shared_out(consumers, 12)
        owners = {
            group: [place for place, of in enumerate(received) if any(group in it for it in of)] for group in "abc"
        }
        bodies = [[body for of in received for body in of if group in body] for group in "abc"]
        consumers.pop(owners["a"][0]).close()
        producer.send("a4", properties={"JMSXGroupID": "a"})
        return {"owners": [len(of) for of in owners.values()], "bodies": bodies, "left": together(*consumers, count=1)}

    def delay(self) -> Seen:
        producer = self.session.create_producer(self.queue)
        producer.send("later", delivery_delay=2.0)
        producer.send("now")
        consumer = self.session.create_consumer(self.queue)
        first, late = consumer.receive(timeout=PATIENCE), consumer.receive(timeout=PATIENCE)
        assert first is not None and late is not None
        early = time.time_ns() // 1_000_000 < late.jms_delivery_time
        return {"early": early, "received": [first.body, late.body]}

    # -- steps

    def connect(self, client: str | None = None) -> jmsish.Connection:
        client_id = None if client is None else f"{client}-{self.unique}"
        return self.stack.enter_context(once_free(lambda: jmsish.connect(self.url, client_id=client_id)))

    def publish(self, *bodies: str) -> None:
        with self.session.create_producer(self.topic) as producer:
            for body in bodies:
                producer.send(body)

    def send_weighed(self, destination: jmsish.Destination, *weights: int) -> None:
        with self.session.create_producer(destination) as producer:
            for weight in weights:
                colour = "blue" if weight == 4 else "red"
                producer.send(f"w{weight}", properties={"weight": weight, "colour": colour})


def drain(consumer: jmsish.MessageConsumer, count: int = 0) -> list[Any]:
    """All there is: so many are waited for, since not every broker has at hand at once what it has taken; what is there
    beside them, a receive that asks the broker finds."""
    bodies: list[Any] = []
    while len(bodies) < count and (message := consumer.receive(timeout=PATIENCE)) is not None:
        bodies.append(message.body)
    while (message := consumer.receive_no_wait()) is not None:
        bodies.append(message.body)
    return bodies


def shared_out(consumers: Sequence[jmsish.MessageConsumer], count: int) -> list[list[Any]]:
    """What each has got, when so many have come in all: nobody knows to whom."""
    received: list[list[Any]] = [[] for _ in consumers]
    end = time.monotonic() + PATIENCE
    while sum(map(len, received)) < count and time.monotonic() < end:
        for bodies, consumer in zip(received, consumers, strict=True):
            bodies += drain(consumer)
    return received


def together(*consumers: jmsish.MessageConsumer, count: int) -> list[Any]:
    return sorted(body for bodies in shared_out(consumers, count) for body in bodies)


def once_free(action: Callable[[], T]) -> T:
    """Artemis lets go of a client id a moment after the connection that had it has closed."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except jmsish.InvalidClientIDError:
            if time.monotonic() > end:
                raise


def browse(browser: jmsish.QueueBrowser) -> list[Any]:
    with browser:
        return [message.body for message in browser]


def refused(action: Callable[[], Any]) -> bool:
    try:
        action()
    except jmsish.JMSError:
        return True
    return False
