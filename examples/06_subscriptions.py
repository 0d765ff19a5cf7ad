"""Four kinds of subscription to one topic, a selector, and a browser that only looks.

A newsroom publishes stories. A reader gets what comes while it reads. Two translators share one subscription, so each
story is translated once. The archive has a durable subscription: it is away for a while and misses nothing. Of all
stories it wants those on sports only, so it says so with a selector, and the broker keeps no others for it.

Run it:  python examples/06_subscriptions.py [amqp://host]
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable

import jmsish

STORIES = [("sports", "a draw"), ("weather", "rain"), ("sports", "a win"), ("weather", "sun")]


def publish(session: jmsish.Session, topic: jmsish.Topic, stories: Iterable[tuple[str, str]]) -> None:
    with session.create_producer(topic) as producer:
        for section, text in stories:
            producer.send(text, properties={"section": section})


def take(consumer: jmsish.MessageConsumer) -> list[str]:
    """What is there now."""
    taken = []
    while (message := consumer.receive(timeout=0)) is not None:
        taken.append(str(message.body))
    return taken


def demonstrate(url: str) -> None:
    run = uuid.uuid4().hex[:8]
    archive_id = f"archive-{run}"
    with jmsish.connect(url) as connection, connection.create_session() as session:
        news = session.create_topic(f"news-{run}")

        # The archive subscribes once, and goes. Its subscription belongs to its client id and stays.
        open_archive(url, archive_id, news)

        # Plain: begins with the consumer, ends with it, and each consumer gets everything.
        reader = session.create_consumer(news)
        # Shared: consumers of one name, here or on other connections, get each message once between them.
        translators = [session.create_shared_consumer(news, f"translators-{run}") for _ in range(2)]
        publish(session, news, STORIES)

        read = take(reader)
        print(f"  the reader got {len(read)} stories")
        translated = [text for translator in translators for text in take(translator)]
        print(f"  the translators got {len(translated)} between them")
        archived = open_archive(url, archive_id, news)
        print(f"  the archive, back again, got {archived}")
        assert read == [text for _, text in STORIES]
        assert sorted(translated) == sorted(read)
        assert archived == ["a draw", "a win"]

        look_at_a_queue(session, session.create_queue(f"letters-{run}"))
    end_archive(url, archive_id)


def open_archive(url: str, client_id: str, news: jmsish.Topic) -> list[str]:
    """Open the durable subscription (the first time: make it), and take what it has collected."""
    with jmsish.connect(url, client_id=client_id) as connection, connection.create_session() as session:
        return take(session.create_durable_consumer(news, "archive", "section = 'sports'"))


def end_archive(url: str, client_id: str) -> None:
    """A durable subscription collects until somebody ends it."""
    with jmsish.connect(url, client_id=client_id) as connection, connection.create_session() as session:
        session.unsubscribe("archive")
        try:
            session.unsubscribe("archive")
        except jmsish.InvalidDestinationError as error:
            print(f"  ended: {error}")


def look_at_a_queue(session: jmsish.Session, letters: jmsish.Queue) -> None:
    """A browser shows what is on a queue, in its order, and takes nothing."""
    producer = session.create_producer(letters)
    for number in range(1, 4):
        producer.send(f"letter {number}", properties={"urgent": number == 2})
    with session.create_browser(letters, "urgent = TRUE") as browser:
        print(f"  urgent: {[message.body for message in browser]}")
    with session.create_consumer(letters) as consumer:
        assert take(consumer) == ["letter 1", "letter 2", "letter 3"]


def main() -> None:
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url)


if __name__ == "__main__":
    main()
