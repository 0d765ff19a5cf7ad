"""What a broker's core wants done outside: questions to ask, connections to dial, with no lock held."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from jmsish.drivers.asking import Asking
from jmsish.drivers.broker_core import BrokerCore, ServerConnection
from jmsish.engine.handshake import trouble
from jmsish.engine.sasl import Question

__all__ = ["Errands"]

_log = logging.getLogger("jmsish.broker")


class Errands:
    """The errands of one broker. ``call`` runs something as its owner."""

    def __init__(self, name: str, call: Callable[[Callable[[], None]], None]) -> None:
        self._call = call
        self._asking = Asking(name)
        self.stop = self._asking.stop
        self.dialler: Callable[[Any], None] = _nobody_dials
        """Called with what the broker wants dialled."""

    def take(self, broker: BrokerCore) -> None:
        """Take over what there is, under the broker's lock."""
        questions, dials = broker.questions, broker.dials
        for connection, question in questions:
            self._asking.ask(partial(self._answer, connection, question), connection.login.crowd)
        for dial in dials:
            self._asking.ask(partial(self.dialler, dial))
        questions.clear()
        dials.clear()

    def _answer(self, connection: ServerConnection, question: Question) -> None:
        """By a thread of :class:`Asking`: ask with nothing held, then tell the connection."""
        if connection.closed:
            return  # It went while others were asked: what a flood leaves behind costs nothing further.
        try:
            answer = question()
        except BaseException as error:  # also what would end a program: it ends this attempt, and no thread
            # Its text may hold what was asked, a token for one: only where it was raised is told.
            _log.error("who wants to log in could not be judged: %s", _place(error))
            answer = trouble(error)
        self._call(lambda: connection.login.answered(answer))


def _nobody_dials(dial: Any) -> None:
    """What is wanted dialled where no dialler was given."""
    dial.connector.failed("this broker dials nobody")


def _place(error: BaseException) -> str:
    """The kind of an error, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__}{where}"
