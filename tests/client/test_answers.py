"""Futures that need no lock of their own."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from jmsish.client.answers import Answer
from jmsish.client.procedures import fail, settle
from jmsish.drivers.loop import LoopDriver


def test_an_answer_is_a_future_and_gives_what_came():
    answer: Answer[int] = Answer()
    assert isinstance(answer, Future)
    assert not answer.done()
    assert repr(answer) == "<Answer pending>"
    settle(answer, 5)
    settle(answer, 6)
    fail(answer, ValueError())
    assert answer.done()
    assert answer.result() == 5
    assert answer.exception() is None
    assert repr(answer) == "<Answer done>"


def test_an_answer_raises_what_failed():
    answer: Answer[int] = Answer()
    fault = ValueError("no")
    fail(answer, fault)
    assert answer.exception() is fault
    with pytest.raises(ValueError, match="no"):
        answer.result()


def test_an_answer_cannot_be_taken_back_nor_given_twice_nor_asked_too_early():
    answer: Answer[None] = Answer()
    assert not answer.cancel()
    assert not answer.cancelled()
    assert not answer.running()
    with pytest.raises(AssertionError):
        answer.result()
    with pytest.raises(AssertionError):
        answer.exception()
    answer.set_result(None)
    with pytest.raises(AssertionError):
        answer.set_result(None)


def test_who_wants_to_know_is_called_once_before_or_after():
    answer: Answer[int] = Answer()
    told: list[Any] = []
    answer.add_done_callback(lambda each: told.append(("first", each)))
    answer.add_done_callback(lambda each: told.append(("second", each)))
    answer.set_result(1)
    answer.add_done_callback(lambda each: told.append(("late", each)))
    assert told == [("first", answer), ("second", answer), ("late", answer)]


def test_a_loop_waits_for_an_answer():
    async def wait() -> int:
        driver = LoopDriver.__new__(LoopDriver)
        driver.loop = asyncio.get_running_loop()
        driver._stopped = False
        answer: Answer[int] = Answer()
        driver.loop.call_soon(settle, answer, 7)
        return await driver.wait(answer, None)

    assert asyncio.run(wait()) == 7
