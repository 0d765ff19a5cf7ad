"""Every two calls at once on one session, with the least favourable order of whatever may come in any order.

    python -m tests.stress.pairs --face aio --at vm --seeds 1:2000 [--first receive] [--second close]

With asyncio the loop is a `ShuffledLoop`, and calls are cancelled somewhere on their way; with threads the interpreter
changes between them a million times a second, and everybody loiters at locks. What must hold: a call ends, and as JMS
and the documentation allow; session and connection can be closed behind it; what was sent and not received is on the
queue, in its order, once, and counted as delivered only where somebody had it; what was received is not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import random
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import jmsish
from jmsish import AcknowledgeMode, aio
from tests.scenarios.blocking import Blocking, Running, inline
from tests.stress.books import Books
from tests.stress.loitering import loitering
from tests.stress.shuffled_loop import run_shuffled

QUEUE = "q"
HUNG = 20
MODES = {
    "auto": {"acknowledge_mode": AcknowledgeMode.AUTO},
    "dups_ok": {"acknowledge_mode": AcknowledgeMode.DUPS_OK},
    "client": {"acknowledge_mode": AcknowledgeMode.CLIENT},
    "transacted": {"transacted": True},
}


class Fault(AssertionError):
    """What must not be."""


class Case:
    """One session with what belongs to it, and two calls."""

    def __init__(self, face: str, at: str, seed: int, first: str | None, second: str | None) -> None:
        self.dice = dice = random.Random(f"{face} {at} {seed}")
        self.face, self.at = face, at
        self.mode = dice.choice(list(MODES))
        self.names = [first or dice.choice(list(CALLS)), second or dice.choice(list(CALLS))]
        self.prefetch = dice.choice([0, 1, 3, 100])
        self.sibling = dice.random() < 0.4
        self.listening = dice.random() < 0.15
        self.count = dice.randint(0, 6)
        self.taken = dice.randint(0, 2)
        self.cancels = [dice.randint(0, 30) if face == "aio" and dice.random() < 0.4 else None for _ in range(2)]
        self.waits = [dice.random() * 0.004 if face == "aio" and dice.random() < 0.1 else None for _ in range(2)]
        self.offset = dice.randint(0, 12)
        self.books = Books(self.mode in ("auto", "dups_ok"), face == "aio")
        self.number = 0
        self.still = False
        """Nothing may be handed over now."""
        self.message: Any = None
        self.over = False

    def __repr__(self) -> str:
        told = ("mode", "names", "prefetch", "sibling", "listening", "count", "taken", "cancels", "waits", "offset")
        return ", ".join(f"{name}={getattr(self, name)}" for name in told)

    @property
    def transacted(self) -> bool:
        return self.mode == "transacted"

    # -- the stage

    async def set(self, url: str) -> None:
        self.connection = await self.connect(url)
        feeder = await self.connect(url)
        session = await feeder.create_session()
        producer = await session.create_producer(session.create_queue(QUEUE))
        for number in range(self.count):
            await producer.send(f"m{number}")
            self.books.there.add(f"m{number}")
        await feeder.close()
        self.session = await self.connection.create_session(**MODES[self.mode])
        self.queue = self.session.create_queue(QUEUE)
        self.consumer = await self.session.create_consumer(self.queue, prefetch=self.prefetch)
        if self.sibling:
            self.other = await self.session.create_consumer(self.queue, prefetch=self.prefetch)
        self.producer = await self.session.create_producer(self.queue)
        self.browser = await self.session.create_browser(self.queue)
        for _ in range(min(self.taken, self.count)):
            self.took(await self.consumer.receive(timeout=5), 0)
        if self.listening:
            self.consumer.listener = self.listen

    async def connect(self, url: str) -> Any:
        return await aio.connect(url) if self.face == "aio" else Blocking(jmsish.connect(url))

    def took(self, message: Any, began: int) -> None:
        if message is None:
            return
        self.message = message
        self.books.got(message.text, began)
        if self.books.strict and self.still:
            self.books.faults.append(f"{message.text} was handed over behind a stop or a close")

    async def listen(self, message: Any) -> None:
        began = self.books.ending
        if self.books.strict and self.still:
            self.books.faults.append(f"a listener got {message.text} behind a stop or a close")
        if self.face == "aio":
            for _ in range(self.dice.randint(0, 3)):
                await asyncio.sleep(0)
        self.took(message, began)
        if any(name == "connection.close" and self.given_up(at) for at, name in enumerate(self.names)):
            self.books.blurred.add(message.text)  # who does not wait for the listener any more closes all the same

    # -- two calls

    def given_up(self, at: int) -> bool:
        return self.cancels[at] is not None or self.waits[at] is not None

    async def call(self, at: int) -> None:
        name = self.names[at]
        if self.face == "aio":
            for _ in range(self.offset if at else 0):
                await asyncio.sleep(0)
        try:
            work = CALLS[name](self)
            if self.waits[at] is not None:
                await asyncio.wait_for(work, self.waits[at])
            else:
                await work
        except (asyncio.CancelledError, asyncio.TimeoutError):
            if self.cancels[at] is None and self.waits[at] is None:
                raise
        except jmsish.JMSError as error:
            if not self.allows(at, error):
                raise

    def allows(self, at: int, error: jmsish.JMSError) -> bool:
        name, beside = self.names[at], self.names[1 - at]
        if name in CLOSES:
            return False
        if isinstance(error, jmsish.ConcurrencyError):
            return beside not in {"stop", "start", "browser.close", "consumer.close", "producer.close"} or self.listens
        if isinstance(error, jmsish.IllegalStateError):
            return self.over or beside in CLOSES or self.listens or (name in ("commit", "rollback")) != self.transacted
        return False

    @property
    def listens(self) -> bool:
        return self.listening or "listener" in self.names or "no listener" in self.names

    # -- the end

    async def close(self) -> None:
        self.over = True
        mine = self.books.end()
        await self.session.close()
        self.still = True
        self.books.ended(mine, False)
        await self.connection.close()

    def audit(self, broker: jmsish.EmbeddedBroker) -> list[str]:
        faults, books = list(self.books.faults), self.books
        view = broker.queue(QUEUE)
        until = time.monotonic() + 5
        while broker.queue(QUEUE).acquired and time.monotonic() < until:
            threading.Event().wait(0.001)
        view = broker.queue(QUEUE)
        if view.acquired:
            faults.append(f"{view.acquired} messages are acquired for ever")
        messages = list(view.messages(acquired=True))
        texts = [message.get_body(str) for message in messages]
        if len(texts) != len(set(texts)):
            faults.append(f"doubled: {texts}")
        known = books.maybe | books.blurred
        faults += [f"{text} is lost: {texts}" for text in books.there - known if text not in texts]
        faults += [f"{text} is there: {texts}" for text in books.gone - known if text in texts]
        faults += [f"{text} is there, which never was" for text in texts if text not in books.there | known]
        old = [text for text in texts if text[0] == "m"]
        if old != sorted(old):
            faults.append(f"in another order: {texts}")
        for message, text in zip(messages, texts, strict=True):
            if text not in books.touched | known and (message.delivery_count > 1 or message.jms_redelivered):
                faults.append(f"{text} is counted as delivered, and nobody had it")
        return faults


Call = Callable[[Case], Coroutine[Any, Any, None]]


def receiving(of: Callable[[Case], Awaitable[Any]]) -> Call:
    async def call(case: Case) -> None:
        began = case.books.ending
        case.took(await of(case), began)

    return call


def closing(of: Callable[[Case], Awaitable[Any]], whole: bool = True) -> Call:
    """Behind it nothing is handed over; `whole` ends what is held."""

    async def call(case: Case) -> None:
        if not whole:
            await of(case)
            return
        mine = case.books.end()
        try:
            await of(case)
        except BaseException:
            case.books.ended(mine, None)
            raise
        case.books.ended(mine, False)
        case.still = True

    return call


def ending(of: Callable[[Case], Awaitable[Any]], keeps: bool) -> Call:
    async def call(case: Case) -> None:
        mine = case.books.end()
        try:
            await of(case)
        except (jmsish.IllegalStateError, jmsish.ConcurrencyError):
            case.books.not_ended(mine) if not case.over else case.books.ended(mine, None)
            raise
        except BaseException:
            case.books.ended(mine, None)
            raise
        case.books.ended(mine, keeps)

    return call


async def body(case: Case) -> None:
    began = case.books.ending
    text = await case.consumer.receive_body(str, timeout=0.01)
    if text is not None:
        case.books.got(text, began)
        if case.books.strict and case.still:
            case.books.faults.append(f"{text} was handed over behind a stop or a close")


async def iterate(case: Case) -> None:
    began = case.books.ending
    async for message in case.consumer:
        case.took(message, began)
        return


async def send(case: Case, **arguments: Any) -> None:
    case.number += 1
    text = f"s{case.number}"
    began = case.books.ending
    case.books.maybe.add(text)
    try:
        await case.producer.send(text, **arguments)
    except (jmsish.IllegalStateError, jmsish.ConcurrencyError):
        case.books.maybe.discard(text)
        case.books.gone.add(text)
        raise
    case.books.maybe.discard(text)
    case.books.sent(text, case.transacted, began)


async def send_with_completion(case: Case) -> None:
    case.number += 1
    text = f"s{case.number}"
    case.books.maybe.add(text)

    def completed(message: Any, error: Any) -> None:
        if error is not None:
            case.books.faults.append(f"the completion of {text} heard {error!r}")

    await case.producer.send(text, on_completion=completed)


async def browse(case: Case) -> None:
    async for message in case.browser:
        assert message.text[0] in "ms"


async def acknowledge(case: Case) -> None:
    message = case.message
    if message is not None and case.mode == "client":
        await ending(lambda _: message.acknowledge(), True)(case)


async def recover(case: Case) -> None:
    if case.mode == "client":
        await ending(lambda case: case.session.recover(), False)(case)
    elif not case.transacted:
        await case.session.recover()


async def stop(case: Case) -> None:
    await case.connection.stop()
    if "start" not in case.names:
        case.still = True


async def listener(case: Case) -> None:
    case.consumer.listener = case.listen


async def no_listener(case: Case) -> None:
    case.consumer.listener = None


async def temporary(case: Case) -> None:
    queue = await case.session.create_temporary_queue()
    with contextlib.suppress(jmsish.IllegalStateError):
        await queue.delete()


async def another_session(case: Case) -> None:
    session = await case.connection.create_session(transacted=case.dice.random() < 0.5)
    await session.close()


CALLS: dict[str, Call] = {
    "receive": receiving(lambda case: case.consumer.receive(timeout=0.01)),
    "receive for ever": receiving(lambda case: case.consumer.receive()),
    "receive_no_wait": receiving(lambda case: case.consumer.receive_no_wait()),
    "receive of the other": receiving(
        lambda case: (case.other if case.sibling else case.consumer).receive(timeout=0.01)
    ),
    "receive_body": body,
    "iterate": iterate,
    "send": send,
    "send non-persistent": lambda case: send(case, delivery_mode=jmsish.DeliveryMode.NON_PERSISTENT),
    "send with completion": send_with_completion,
    "commit": ending(lambda case: case.session.commit(), True),
    "rollback": ending(lambda case: case.session.rollback(), False),
    "recover": recover,
    "acknowledge": acknowledge,
    "browse": browse,
    "browser.close": lambda case: case.browser.close(),
    "consumer.close": closing(lambda case: case.consumer.close(), whole=False),
    "producer.close": lambda case: case.producer.close(),
    "session.close": closing(lambda case: case.session.close()),
    "connection.close": closing(lambda case: case.connection.close()),
    "stop": stop,
    "start": lambda case: case.connection.start(),
    "listener": listener,
    "no listener": no_listener,
    "create_consumer": lambda case: case.session.create_consumer(case.queue),
    "create_producer": lambda case: case.session.create_producer(case.queue),
    "temporary queue": temporary,
    "another session": another_session,
}
CLOSES = {"browser.close", "consumer.close", "producer.close", "session.close", "connection.close"}


async def with_tasks(case: Case, url: str) -> None:
    await case.set(url)
    tasks = [asyncio.create_task(case.call(at), name=case.names[at]) for at in (0, 1)]

    async def cancel(at: int) -> None:
        for _ in range(case.cancels[at] or 0):
            await asyncio.sleep(0)
        tasks[at].cancel()

    cancelling = [asyncio.create_task(cancel(at)) for at in (0, 1) if case.cancels[at] is not None]
    await asyncio.wait(tasks, timeout=0.02 if "receive for ever" in case.names or "iterate" in case.names else HUNG)
    await case.close()
    _, late = await asyncio.wait(tasks, timeout=HUNG)
    if late:
        stacks = "\n".join(f"{each}" for each in late)
        raise Fault(f"still there behind the close: {stacks}")
    for task in [*tasks, *cancelling]:
        if not task.cancelled():
            await task
    for _ in range(20):
        await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if left:
        raise Fault(f"tasks that go on behind the close: {left}")


def with_threads(case: Case, url: str) -> None:
    inline(case.set(url))
    threads = [Running(case.call(at), case.names[at]) for at in (0, 1)]
    until = time.monotonic() + (0.02 if "receive for ever" in case.names or "iterate" in case.names else HUNG)
    while not all(thread.done() for thread in threads) and time.monotonic() < until:
        threading.Event().wait(0.001)
    inline(case.close())
    for thread in threads:
        thread._result.result(HUNG)


def play(face: str, at: str, seed: int, first: str | None = None, second: str | None = None) -> tuple[Case, list[str]]:
    case = Case(face, at, seed, first, second)
    try:
        with jmsish.EmbeddedBroker(config={"queues": {QUEUE: {"max_delivery_attempts": 0}}}) as broker:
            url = broker.url if at == "vm" else f"amqp://127.0.0.1:{broker.listen().port}"
            if face == "aio":
                run_shuffled(seed, lambda: with_tasks(case, url), case.dice.random() * 0.5)
            else:
                with loitering(case.dice):
                    with_threads(case, url)
            return case, case.audit(broker)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return case, ["".join(traceback.format_exception(error))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--face", choices=["aio", "threads"], default="aio")
    parser.add_argument("--at", choices=["vm", "tcp"], default="vm")
    parser.add_argument("--seeds", default="1:1000")
    parser.add_argument("--first", choices=CALLS)
    parser.add_argument("--second", choices=CALLS)
    parser.add_argument("--go-on", action="store_true", help="tell all that is found, not the first alone")
    given = parser.parse_args()
    found = 0
    begun = time.monotonic()
    first, last = map(int, given.seeds.split(":"))
    for seed in range(first, last):
        faulthandler.dump_traceback_later(4 * HUNG, exit=True)
        case, faults = play(given.face, given.at, seed, given.first, given.second)
        if faults:
            found += 1
            print(f"seed {seed}: {case}\n  " + "\n  ".join(faults[:5]), flush=True)
            if not given.go_on:
                sys.exit(1)
    print(f"{last - first} pairs, {found} faults, {time.monotonic() - begun:.0f} s")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
