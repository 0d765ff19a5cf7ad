"""Ctrl-C at random moments: the main thread works and is interrupted, a second one works on beside it.

    python -m tests.stress.interrupts --at tcp --seconds 20

After an interrupt the session works on, or says clearly that it does not; nobody hangs. Prints how it went.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import random
import signal
import threading
import time
from collections import Counter
from typing import Any

import jmsish

HUNG = 30


def beside(connection: jmsish.Connection, stop: threading.Event, outcomes: Counter[str]) -> None:
    try:
        session = connection.create_session()
        queue = session.create_queue("beside")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        while not stop.is_set():
            producer.send("x")
            assert consumer.receive(timeout=HUNG / 2) is not None or stop.is_set()  # a close ends it
            outcomes["beside: round trips"] += 1
    except jmsish.JMSError as error:
        outcomes[f"beside: {type(error).__name__}"] += 1


def work(session: Any, producer: Any, consumer: Any) -> None:
    for number in itertools.count():
        producer.send("m")
        consumer.receive(timeout=0.01)
        if session.transacted and number % 3 == 0:
            session.commit()
        elif session.transacted and number % 7 == 0:
            session.rollback()


def interrupted(connection: jmsish.Connection, chance: random.Random, outcomes: Counter[str]) -> bool:
    """One session, interrupted; whether the connection can be used on."""
    try:
        session = connection.create_session(transacted=chance.random() < 0.5)
        queue = session.create_queue("main")
        producer, consumer = session.create_producer(queue), session.create_consumer(queue)
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.random() * 0.01 + 1e-5, 5)  # Python drops some, in callbacks
            work(session, producer, consumer)
        except KeyboardInterrupt:
            outcomes["interrupts"] += 1
        producer.send("n")
        consumer.receive(timeout=0.01)
        session.close()
        outcomes["session went on"] += 1
        return True
    except jmsish.JMSError as error:
        outcomes[f"{type(error).__name__}: {str(error)[:90]}"] += 1
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", choices=["vm", "tcp"], default="tcp")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    chance = random.Random(given.seed)
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + given.seconds
    with jmsish.EmbeddedBroker() as broker:
        url = broker.url if given.at == "vm" else f"amqp://127.0.0.1:{broker.listen().port}"
        while time.monotonic() < until:
            connection = jmsish.connect(url)
            stop = threading.Event()
            other = threading.Thread(target=beside, args=(connection, stop, outcomes))
            other.start()
            faulthandler.dump_traceback_later(HUNG, exit=True)
            while interrupted(connection, chance, outcomes) and time.monotonic() < until:
                faulthandler.dump_traceback_later(HUNG, exit=True)
            stop.set()
            connection.close()
            other.join()
            outcomes["connections"] += 1
    for what, count in sorted(outcomes.items()):
        print(f"{count:8} {what}")


if __name__ == "__main__":
    main()
