"""What has no effect is not taken: attributes that the objects of an application do not have."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import jmsish
from jmsish import aio


def refused(thing: Any, name: str) -> str:
    with pytest.raises(AttributeError) as refusal:
        setattr(thing, name, print)
    assert not hasattr(thing, name)
    return str(refusal.value)


NAMES = {
    "MessageConsumer": ("message_listener", "a MessageConsumer has no 'message_listener': did you mean 'listener'?"),
    "JMSConsumer": ("listner", "a JMSConsumer has no 'listner': did you mean 'listener'?"),
    "MessageProducer": ("time_to_lve", "a MessageProducer has no 'time_to_lve': did you mean 'time_to_live'?"),
    "JMSProducer": ("prioritty", "a JMSProducer has no 'prioritty': did you mean 'priority'?"),
    "Connection": ("exceptionListener", "a Connection has no 'exceptionListener': did you mean 'exception_listener'?"),
    "Session": ("zzz", "a Session has no 'zzz'"),
    "QueueBrowser": ("zzz", "a QueueBrowser has no 'zzz'"),
    "JMSContext": ("autostart", "a JMSContext has no 'autostart': did you mean 'auto_start'?"),
}


def test_unknown_names_are_refused_with_the_near_one() -> None:
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url) as connection:
        with jmsish.create_context(broker.url) as context:
            session = connection.create_session()
            queue = session.create_queue("q")
            things = [
                connection, session, session.create_consumer(queue), session.create_producer(queue),
                session.create_browser(queue), context, context.create_producer(), context.create_consumer(queue),
            ]  # fmt: skip
            said = {type(thing).__name__: refused(thing, NAMES[type(thing).__name__][0]) for thing in things}
    assert said == {kind: sentence for kind, (_, sentence) in NAMES.items()}


def test_the_same_with_asyncio() -> None:
    async def main(url: str) -> list[str]:
        async with aio.connect(url) as connection, aio.create_context(url) as context:
            session = await connection.create_session()
            queue = session.create_queue("q")
            things = [
                connection, session, await session.create_consumer(queue), await session.create_producer(queue),
                await session.create_browser(queue), context, await context.create_producer(),
                await context.create_consumer(queue),
            ]  # fmt: skip
            return [refused(thing, NAMES[type(thing).__name__][0]) for thing in things]

    with jmsish.EmbeddedBroker() as broker:
        said = asyncio.run(main(broker.url))
    assert sorted(said) == sorted(sentence for _, sentence in NAMES.values())


def test_a_method_can_be_replaced_on_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of applications do so; and what an application hangs on its own subclass is its own affair."""
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url) as connection:
        session = connection.create_session(transacted=True)
        calls: list[str] = []
        monkeypatch.setattr(session, "commit", lambda: calls.append("commit"))
        session.commit()
        assert calls == ["commit"]
        monkeypatch.undo()
        session.commit()
        assert calls == ["commit"]
