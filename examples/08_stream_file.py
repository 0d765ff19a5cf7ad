"""A file of any size from one program to another, in little memory: `send(stream=…)` and `message.open()`.

The sender reads the file as fast as the broker takes it, the receiver writes it as fast as it arrives; neither has more
than a few megabytes of it. A transaction at the receiver makes sure that a copy that broke off is made again.

Run it:  python examples/08_stream_file.py [amqp://host]
"""

from __future__ import annotations

import hashlib
import random
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

import jmsish

SIZE = 12_000_000
SMALLEST_STREAM = 1 << 20
"""Octets above which a message is handed over while it arrives."""


def offer(url: str, queue: str, path: Path) -> None:
    """Sends the file, with its name in a property."""
    with jmsish.connect(url) as connection, connection.create_session() as session, path.open("rb") as file:
        producer = session.create_producer(session.create_queue(queue))
        producer.send(stream=file, properties={"name": path.name})


def fetch(url: str, queue: str, folder: Path) -> Path:
    """Receives one file into the folder; it counts as received once it is written."""
    with jmsish.connect(url, stream_threshold=SMALLEST_STREAM, prefetch=1) as connection:
        with connection.create_session(transacted=True) as session, session.transaction():
            message = session.create_consumer(session.create_queue(queue)).receive(timeout=10)
            assert isinstance(message, jmsish.BytesMessage), "no file came"
            path = folder / str(message.properties["name"])
            with message.open() as body, path.open("wb") as file:
                shutil.copyfileobj(body, file)
            return path


def demonstrate(url: str) -> None:
    queue = f"files-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as place:
        here, there = Path(place, "here"), Path(place, "there")
        here.mkdir()
        there.mkdir()
        original = here / "film.bin"
        original.write_bytes(random.Random(7).randbytes(SIZE))
        offer(url, queue, original)
        copy = fetch(url, queue, there)
        same = digest(original) == digest(copy)
        print(f"  {copy.name}: {copy.stat().st_size:,} octets, {'the same' if same else 'another'} content")
        assert same


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    if len(sys.argv) > 1:
        demonstrate(sys.argv[1])
    else:
        with jmsish.EmbeddedBroker() as broker:
            demonstrate(broker.url)


if __name__ == "__main__":
    main()
