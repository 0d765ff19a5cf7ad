"""Both faces are one API: the same names, parameters, defaults and words, awaitable where the blocking one waits."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import jmsish
from jmsish import aio

AWAITED = {
    "Connection": {"start", "stop", "close", "create_session"},
    "ConnectionFactory": {"create_connection", "create_context"},
    "JMSContext": {
        "create_context",
        "create_producer",
        "create_consumer",
        "create_durable_consumer",
        "create_shared_consumer",
        "create_shared_durable_consumer",
        "create_browser",
        "create_temporary_queue",
        "create_temporary_topic",
        "unsubscribe",
        "start",
        "stop",
        "close",
        "acknowledge",
        "commit",
        "rollback",
        "recover",
    },
    "JMSProducer": {"send"},
    "JMSConsumer": {"receive", "receive_no_wait", "receive_body", "receive_body_no_wait", "close"},
    "Session": {
        "commit",
        "rollback",
        "recover",
        "close",
        "create_consumer",
        "create_durable_consumer",
        "create_shared_consumer",
        "create_shared_durable_consumer",
        "unsubscribe",
        "create_producer",
        "create_browser",
        "create_temporary_queue",
        "create_temporary_topic",
    },
    "MessageConsumer": {"receive", "receive_no_wait", "receive_body", "close"},
    "MessageProducer": {"send", "close"},
    "QueueBrowser": {"close"},
}
PLAIN = {
    "Session": {
        "create_queue",
        "create_topic",
        "create_message",
        "create_text_message",
        "create_bytes_message",
        "create_map_message",
        "create_stream_message",
        "create_object_message",
        "transaction",
    },
    "JMSContext": {
        "create_queue",
        "create_topic",
        "create_message",
        "create_text_message",
        "create_bytes_message",
        "create_map_message",
        "create_stream_message",
        "create_object_message",
        "transaction",
    },
    "JMSProducer": {"set_priority", "set_property", "set_async", "clear_properties", "property_exists"},
}
ONLY_BLOCKING = {"EmbeddedBroker"}
"""Started and looked at without waiting: one class serves both faces."""


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def faces() -> list[str]:
    """The classes of which each face has its own."""
    return [
        name
        for name in sorted(set(jmsish.__all__) & set(aio.__all__))
        if inspect.isclass(getattr(jmsish, name)) and getattr(jmsish, name) is not getattr(aio, name)
    ]


def members() -> list[tuple[str, str]]:
    return [(name, member) for name in faces() for member in sorted(public(getattr(jmsish, name)))]


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


def test_the_same_names() -> None:
    """Whatever `jmsish` exports has its twin, or is itself, in `jmsish.aio`."""
    assert set(jmsish.__all__) - set(aio.__all__) <= ONLY_BLOCKING | {"aio"}
    assert set(aio.__all__) <= set(jmsish.__all__)


def test_every_kind_of_object_has_two_faces() -> None:
    """Every class that waits is there twice."""
    assert set(AWAITED) <= set(faces())


@pytest.mark.parametrize("name", faces())
def test_the_same_members(name: str) -> None:
    """The twin of a class has the same public members."""
    assert public(getattr(jmsish, name)) == public(getattr(aio, name))
    assert inspect.getdoc(getattr(jmsish, name)) == inspect.getdoc(getattr(aio, name))


@pytest.mark.parametrize(("name", "member"), members())
def test_the_same_member(name: str, member: str) -> None:
    """The twin of a method has the same parameters, defaults and docstring; of a property, the same docstring."""
    blocking = inspect.getattr_static(getattr(jmsish, name), member)
    waiting = inspect.getattr_static(getattr(aio, name), member)
    assert isinstance(blocking, property) == isinstance(waiting, property)
    if isinstance(blocking, property):
        assert (blocking.fset is None) == (waiting.fset is None)
    elif callable(blocking):
        assert parameters(blocking) == parameters(waiting)
    assert inspect.getdoc(blocking) == inspect.getdoc(waiting)
    assert inspect.getdoc(blocking) or not callable(blocking), "a docstring"


@pytest.mark.parametrize("name", AWAITED)
def test_awaited_where_the_blocking_one_waits(name: str) -> None:
    """What waits is a coroutine function in `jmsish.aio`, and what does not is none; `jmsish` has no coroutine."""
    for member in AWAITED[name]:
        assert inspect.iscoroutinefunction(getattr(getattr(aio, name), member)), member
    for member in PLAIN.get(name, set()):
        assert not inspect.iscoroutinefunction(getattr(getattr(aio, name), member)), member
    for member in public(getattr(jmsish, name)):
        assert not inspect.iscoroutinefunction(getattr(getattr(jmsish, name), member)), member


@pytest.mark.parametrize("name", ["connect", "create_context"])
def test_the_same_functions(name: str) -> None:
    """`connect` and its kin take the same arguments."""
    assert parameters(getattr(jmsish, name)) == parameters(getattr(aio, name))
    assert inspect.getdoc(getattr(jmsish, name)) == inspect.getdoc(getattr(aio, name))


@pytest.mark.parametrize(
    "name",
    [
        "Connection",
        "JMSConsumer",
        "JMSContext",
        "MessageConsumer",
        "MessageProducer",
        "QueueBrowser",
        "Session",
    ],
)
def test_context_managers_and_iterators(name: str) -> None:
    """`with` here is `async with` there, and `for` is `async for`."""
    blocking, waiting = getattr(jmsish, name), getattr(aio, name)
    assert hasattr(blocking, "__enter__") and hasattr(waiting, "__aenter__")
    assert hasattr(blocking, "__iter__") == hasattr(waiting, "__aiter__")
    assert hasattr(blocking, "__iter__") == (name in ("JMSConsumer", "MessageConsumer", "QueueBrowser"))


def test_errors_and_messages_are_one_family() -> None:
    """Errors, destinations and modes are the same objects in both faces: one `except` serves both."""
    for name in ("JMSError", "IllegalStateError", "Queue", "Topic", "AcknowledgeMode", "DeliveryMode"):
        assert getattr(jmsish, name) is getattr(aio, name)
