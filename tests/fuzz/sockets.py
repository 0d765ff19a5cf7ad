"""The same conversations over TCP, at a broker as it is served: what the arena leaves out is between socket and core.

They are said without listening, frame after frame in pieces of any size, and the socket is closed, shut down or reset
in the middle. Beside them a well-behaved client works by the public API; in the end nothing of them is left.
"""

from __future__ import annotations

import logging
import socket
import struct
from random import Random
from time import monotonic

import jmsish
from tests.fuzz.conversations import Speaker
from tests.fuzz.mutation import Mutator, chunks
from tests.fuzz.said import Known, frame_octets
from tests.relay import undelayed

PATIENCE = 30.0
QUIET = "quiet"


class Faults(logging.Handler):
    """What the broker reports as a fault of its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


def attack(address: tuple[str, int], rng: Random, mutator: Mutator) -> None:
    """One conversation, as far as the broker listens."""
    frames = mutator.mutate(Speaker(rng).converse())
    pieces = chunks(rng, [frame_octets(each, Known()) for each in frames])
    with undelayed(socket.create_connection(address)) as connection:
        connection.settimeout(0.2)
        try:
            for octets in pieces:
                connection.sendall(octets)
                if rng.random() < 0.2:
                    connection.recv(65536)
            ending = rng.randrange(3)
            if ending == 0:
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            elif ending == 1:  # a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass


def campaign(number: int, seed: int = 0) -> list[str]:
    """So many conversations with a broker over TCP; the faults that it has logged."""
    faults = Faults()
    logger = logging.getLogger("jmsish.broker")
    logger.addHandler(faults)
    mutator = Mutator(Random(seed))
    try:
        with jmsish.EmbeddedBroker(f"fuzz-{seed}") as broker:
            listener = broker.listen("127.0.0.1", 0)
            with jmsish.connect(listener.url) as connection:
                session = connection.create_session()
                queue = session.create_queue(QUIET)
                producer, consumer = session.create_producer(queue), session.create_consumer(queue)

                def turn(text: str) -> None:
                    producer.send(text)
                    message = consumer.receive(timeout=PATIENCE)
                    assert message is not None and message.body == text, "the well-behaved client"

                for each in range(number):
                    mutator.rng = rng = Random(f"{seed}/{each}")
                    attack((listener.host, listener.port), rng, mutator)
                    if each % 5 == 0:
                        turn(str(each))
                end = monotonic() + PATIENCE
                while len(broker.connections()) > 1:
                    assert monotonic() < end, "connections are left"
                    turn("meanwhile")
                assert not broker.transactions(), "transactions are left"
                session.close()  # its last acknowledgement is at the broker
                assert [view.name for view in broker.queues() if view.acquired] == [], "messages are held by nobody"
    finally:
        logger.removeHandler(faults)
    return faults.found
