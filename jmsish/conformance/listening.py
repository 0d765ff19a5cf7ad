"""Listeners."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import jmsish
from jmsish import AcknowledgeMode
from jmsish.conformance.stage import Difference, Stage, seen, words
from jmsish.conformance.table import scenario, transacted


class _OnPurposeError(Exception):
    """What the listener of a scenario raises; nobody needs to read of it in a log."""


def _is_no_purpose(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], _OnPurposeError))


class _Listener:
    """Writes down what it is called with, and does what the scenario says."""

    def __init__(self, stage: Stage, wanted: str, act: Callable[[jmsish.Message, int], Any]) -> None:
        self.stage = stage
        self.wanted = wanted
        self.act = act
        self.got: list[str] = []
        self.done = threading.Event()

    def __call__(self, message: jmsish.Message) -> None:
        self.got.append(seen(message))
        if len(self.got) == len(self.wanted.split()):
            self.done.set()
        self.act(message, len(self.got))

    def finish(self) -> None:
        self.done.wait(self.stage.patience)
        if " ".join(self.got) != self.wanted:
            raise Difference(f"expected {self.wanted!r}, the listener got {' '.join(self.got)!r}")


def _listen(stage: Stage, session: jmsish.Session, wanted: str, act: Callable[[jmsish.Message, int], Any]) -> None:
    listener = _Listener(stage, wanted, act)
    consumer = session.create_consumer(stage.queue())
    consumer.listener = listener
    listener.finish()
    session.close()


@transacted("listener-104", "rolled back in the listener, the message comes again before the next")
def roll_back(stage: Stage) -> None:
    session = stage.transacted()
    stage.send("m1 m2 m3")

    def act(message: jmsish.Message, number: int) -> None:
        session.rollback() if number == 1 else session.commit()

    _listen(stage, session, "m1 m1*2 m2 m3", act)
    stage.holds("")


@scenario("listener-063", "recovered in the listener, all that was not acknowledged comes again")
def recover(stage: Stage) -> None:
    session = stage.session(AcknowledgeMode.CLIENT)
    stage.send("m1 m2 m3")

    def act(message: jmsish.Message, number: int) -> None:
        if number == 2:
            session.recover()
        elif number == 5:
            message.acknowledge()

    _listen(stage, session, "m1 m2 m1*2 m2*2 m3", act)
    stage.holds("")


@scenario("listener-107", "a listener that raises gets the message again at once, counted")
def raises(stage: Stage) -> None:
    session = stage.session()
    stage.send("m1 m2 m3")

    def act(message: jmsish.Message, number: int) -> None:
        if number == 1:
            raise _OnPurposeError("the listener of a scenario raises")

    logger = logging.getLogger("jmsish.client")
    logger.addFilter(_is_no_purpose)
    try:
        _listen(stage, session, "m1 m1*2 m2 m3", act)
    finally:
        logger.removeFilter(_is_no_purpose)
    stage.holds("")


@transacted("listener-017", "a hundred messages to a listener that commits every ten")
def commits(stage: Stage) -> None:
    session = stage.transacted()
    stage.send(words(100))

    def act(message: jmsish.Message, number: int) -> None:
        if number % 10 == 0:
            session.commit()

    _listen(stage, session, words(100), act)
    stage.holds("")
