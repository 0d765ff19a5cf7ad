"""Browsers: a look at what is on a queue, which changes nothing of it (rule 122)."""

from __future__ import annotations

import time
from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import expect, numbered, outcome, seen, stage
from .test_selectors import BLUE, RED, paint


async def look(browser: Any) -> list[str]:
    return [seen(message) async for message in browser]


@pytest.mark.parametrize("mode", ["auto", "client", "dups_ok", "individual", "transacted"])
async def test_rule_122_a_browser_takes_nothing(face: Face, mode: str) -> None:
    """In order, as often as one likes, uncounted, whatever the mode; the queue is as it was."""
    play = await stage(face, mode, numbered(1, 5))
    browser = await play.session.create_browser(play.destination)
    for _ in range(3):
        assert await look(browser) == numbered(1, 5).split()
    await play.queue.holds(5, acquired=0)
    await browser.close()
    if play.session.transacted:
        await play.session.rollback()
    await expect(await play.consumer(), f"{numbered(1, 5)} none")


async def test_rule_122_an_empty_queue(face: Face) -> None:
    """There is nothing to see, and the look ends."""
    play = await stage(face, "auto")
    assert await look(await play.session.create_browser(play.destination)) == []


async def test_rule_122_more_than_a_window(face: Face) -> None:
    """Past the prefetch, with a window of one, and of none."""
    play = await stage(face, "auto", numbered(1, 20), browser_prefetch=3)
    assert await look(await play.session.create_browser(play.destination)) == numbered(1, 20).split()
    narrow = await stage(face, "auto", browser_prefetch=0)
    assert await look(await narrow.session.create_browser(play.destination)) == numbered(1, 20).split()


async def test_rule_122_it_honours_the_selector(face: Face) -> None:
    """And knows it."""
    play = await stage(face, "auto")
    await paint(play, "r1 b2 r3 x4")
    red = await play.session.create_browser(play.destination, RED)
    assert await look(red) == ["r1", "r3"]
    assert red.selector == RED and red.queue == play.destination
    assert await look(await play.session.create_browser(play.destination, BLUE)) == ["b2"]
    assert await look(await play.session.create_browser(play.destination, "colour IS NULL")) == ["x4"]


async def test_rule_122_each_look_sees_what_is_there_now(face: Face) -> None:
    """What came in between, without what has gone; and what is being read by somebody is not there."""
    play = await stage(face, "client", "m1 m2 m3")
    browser = await play.session.create_browser(play.destination)
    assert await look(browser) == ["m1", "m2", "m3"]
    other = await play.beside("auto")
    await expect(taker := await other.consumer(prefetch=1), "m1")
    await taker.close()
    await play.send("m4")
    assert await look(browser) == ["m2", "m3", "m4"]


async def test_two_looks_at_once(face: Face) -> None:
    """Each has its own place."""
    play = await stage(face, "auto", numbered(1, 3))
    browser = await play.session.create_browser(play.destination)
    pairs = [(seen(one), seen(two)) async for one in browser async for two in browser]
    assert pairs == [(one, two) for one in ("m1", "m2", "m3") for two in ("m1", "m2", "m3")]


async def test_a_look_broken_off(face: Face) -> None:
    """The browser can be closed in the middle, and so can its session."""
    play = await stage(face, "auto", numbered(1, 5), browser_prefetch=2)
    browser = await play.session.create_browser(play.destination)
    got = []
    async for message in browser:
        got.append(seen(message))
        if len(got) == 3:
            await browser.close()
    assert got == ["m1", "m2", "m3"]
    with pytest.raises(jmsish.IllegalStateError):
        await look(browser)
    await browser.close()
    await play.queue.holds(5, acquired=0)


async def test_a_browser_on_a_stopped_connection(face: Face) -> None:
    """What is on the queue can be seen, delivered is nothing."""
    play = await stage(face, "auto", "m1", start=False)
    assert await look(await play.session.create_browser(play.destination)) == ["m1"]
    await play.queue.holds(1, acquired=0)


async def test_a_browser_does_not_show_what_has_expired(face: Face) -> None:
    """Neither at the broker nor in the buffer (unlike M84, which is Qpid JMS's way)."""
    ahead = [0.0]
    play = await stage(face, "auto", clock=lambda: time.time() + ahead[0])
    producer = await play.session.create_producer(play.destination)
    await producer.send("short", time_to_live=1000)
    await producer.send("long")
    browser = await play.session.create_browser(play.destination)
    assert await look(browser) == ["short", "long"]
    ahead[0] = 1001
    assert await look(browser) == ["long"]
    await play.queue.holds(2, acquired=0)


async def test_acknowledging_what_was_browsed_means_nothing(face: Face) -> None:
    """In CLIENT mode it acknowledges what was received, and not what was only looked at."""
    play = await stage(face, "client", "m1 m2")
    consumer = await play.consumer(prefetch=0)
    await expect(consumer, "m1")
    browser = await play.session.create_browser(play.destination)
    (message,) = [message async for message in browser]
    assert seen(message) == "m2"
    await message.acknowledge()
    await play.queue.holds(1, acquired=0)
    await expect(consumer, "m2 none")


async def test_what_cannot_be_browsed(face: Face) -> None:
    """A topic, nothing, a name; and on a closed session nothing at all."""
    play = await stage(face, "auto")
    session: Any = play.session
    for destination in (session.create_topic("t"), None, object()):
        assert isinstance(await outcome(session.create_browser(destination)), jmsish.InvalidDestinationError)
    with pytest.raises(TypeError):
        await session.create_browser("orders")
    await session.close()
    assert isinstance(await outcome(session.create_browser(play.destination)), jmsish.IllegalStateError)


async def test_a_browser_says_what_it_looks_into(face: Face) -> None:
    play = await stage(face, "auto")
    browser = await play.session.create_browser(play.destination)
    assert repr(browser) == f"<QueueBrowser of {play.destination}>"
    await browser.close()
    assert repr(browser) == f"<QueueBrowser of {play.destination} closed>"
