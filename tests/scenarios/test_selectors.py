"""Selectors of consumers: what they let through, what they leave for others, and who finds their faults.

What selectors mean is in `tests/test_selector*.py`; here they are asked of a broker.
"""

from __future__ import annotations

from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import Stage, again, expect, outcome, seen, send, stage, take_all
from .topics import KINDS, client

RED, BLUE = "colour = 'red'", "colour = 'blue'"


async def paint(play: Stage, story: str) -> None:
    """Sends `r1 b2 r3`: the first letter is the colour."""
    for word in story.split():
        colour = {"r": "red", "b": "blue"}.get(word[0])
        await send(play.connection, play.queue.name, word, properties={"colour": colour} if colour else None)


async def test_rule_114_what_a_selector_does_not_match_stays_for_others(face: Face) -> None:
    """In its place, and not counted."""
    play = await stage(face, "auto")
    await paint(play, "r1 b2 x3 r4 b5")
    await expect(await play.consumer(selector=BLUE), "b2 b5 none")
    await play.queue.comes_to(3)
    await expect(await play.consumer(selector=RED, prefetch=0), "r1 r4 none")
    await expect(await play.consumer(), "x3 none")


async def test_rule_114_consumers_of_one_session_each_by_its_selector(face: Face) -> None:
    """Side by side on one queue, read in any order."""
    play = await stage(face, "transacted")
    red, blue = await play.consumer(selector=RED), await play.consumer(selector=BLUE)
    await paint(play, "r1 b2 r3 b4 x5")
    await expect(blue, "b2")
    await expect(red, "r1 r3 none")
    await expect(blue, "b4 none")
    await play.session.rollback()
    await expect(red, again("r1 r3") + " none")
    await expect(blue, again("b2 b4") + " none")
    await play.session.commit()
    await play.queue.holds(1, acquired=0)
    assert red.selector == RED and blue.selector == BLUE


@pytest.mark.parametrize("selector", [None, "", "  \t\n"])
async def test_rule_180_no_selector(face: Face, selector: str | None) -> None:
    """None, empty and blank select everything."""
    play = await stage(face, "auto", "m1")
    consumer = await play.consumer(selector=selector)
    assert consumer.selector is None
    await expect(consumer, "m1 none")
    await consumer.close()
    await play.send("m2")
    browser = await play.session.create_browser(play.destination, selector)
    assert [seen(message) async for message in browser] == ["m2"]


FAULTY = ("colour = ", "= 'red'", "colour LIKE 5", "(a = 1", "colour = 'red", "NOT", "a IN ()", "1 + ")


@pytest.mark.parametrize("selector", FAULTY)
async def test_rule_181_a_fault_is_found_when_the_consumer_is_made(face: Face, selector: str) -> None:
    """By the client: the error points at it, the broker is not asked, and everything goes on as before."""
    play = await stage(face, "auto", "m1")
    queue = play.destination
    for call in (play.session.create_consumer, play.session.create_browser):
        fault = await outcome(call(queue, selector))
        assert isinstance(fault, jmsish.InvalidSelectorError)
        assert "^" in str(fault)
    await expect(await play.consumer(), "m1 none")


@pytest.mark.parametrize("kind", KINDS)
async def test_rule_181_of_subscriptions_too(face: Face, kind: str) -> None:
    """And no subscription is made."""
    play = await client(face, "alice")
    fault = await outcome(play.subscribe(kind, selector="colour = "))
    assert isinstance(fault, jmsish.InvalidSelectorError)
    assert not list(face.broker.exchange("amq.topic").bindings())


async def test_a_selector_is_a_text(face: Face) -> None:
    """Anything else is a wrong argument."""
    play = await stage(face, "auto")
    for selector in (1, b"a = 1", True):
        with pytest.raises(TypeError):
            await play.consumer(selector=selector)


async def test_selectors_larger_than_any_sane_one(face: Face) -> None:
    """A megabyte of selector, or ten thousand brackets: refused at once, by the client."""
    play = await stage(face, "auto")
    for selector in ("(" * 10_000 + "a = 1" + ")" * 10_000, "a = '" + "x" * 1_000_000 + "' AND"):
        assert isinstance(await outcome(play.consumer(selector=selector)), jmsish.InvalidSelectorError)


async def test_headers_in_a_selector(face: Face) -> None:
    """What the provider sets, and what the application says."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    low: Any = play.session.create_text_message("low")
    low.jms_type, low.jms_correlation_id = "order", "c-1"
    await producer.send(low, priority=1)
    await producer.send("high", priority=8, delivery_mode=jmsish.DeliveryMode.NON_PERSISTENT)
    for selector, found in (
        ("JMSPriority > 4", "high"),
        ("JMSType = 'order'", "low"),
        ("JMSCorrelationID = 'c-1'", "low"),
        ("JMSDeliveryMode = 'NON_PERSISTENT'", "high"),
        (f"JMSMessageID = '{low.jms_message_id}'", "low"),
        (f"JMSTimestamp <= {low.jms_timestamp} AND JMSPriority < 4", "low"),
        ("JMSXDeliveryCount = 1 AND JMSType IS NULL", "high"),
    ):
        browser = await play.session.create_browser(play.destination, selector)
        assert [seen(message) async for message in browser] == [found], selector


@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
async def test_s098_closing_a_consumer_with_a_selector(face: Face, mode: str) -> None:
    """98: what it had buffered is back in its place, for a consumer without a selector as for one with another."""
    play = await stage(face, mode)
    await paint(play, "r1 b2 r3 b4 r5")
    red = await play.consumer(selector=RED)
    await play.queue.prefetched(3)
    await red.close()
    await play.queue.holds(5, acquired=0)
    await expect(blue := await play.consumer(selector=BLUE), "b2")
    await blue.close()
    await face.barrier()
    other = await play.beside("auto")
    await expect(await other.consumer(), "r1 r3 b4 r5 none")


async def test_s098_many_consumers_with_different_selectors(face: Face) -> None:
    """98: ten of them, made and closed in turn while messages come; nothing stays behind, nothing is stuck."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    got: list[str] = []
    for turn in range(10):
        for number in range(10):
            await producer.send(f"m{turn}-{number}", properties={"number": number})
        consumers = [await play.consumer(selector=f"number = {number}") for number in range(turn, 10)]
        for consumer in consumers:
            got += await take_all(consumer)
            await consumer.close()
    for number in range(10):
        got += await take_all(await play.consumer(selector=f"number = {number}"))
    assert sorted(got) == sorted(f"m{turn}-{number}" for turn in range(10) for number in range(10))
    await play.queue.comes_to(0)


async def test_a_message_given_back_is_selected_again(face: Face) -> None:
    """The count is part of what a selector sees."""
    play = await stage(face, "client", "m1 m2")
    consumer = await play.consumer()
    await expect(consumer, "m1")
    await play.session.recover()
    await consumer.close()
    await expect(await play.consumer(selector="JMSXDeliveryCount > 1"), "m1[R2] none")
