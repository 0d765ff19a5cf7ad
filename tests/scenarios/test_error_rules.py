"""Errors by rules 200 to 204 of JMS 3.1: one family, what they carry, and when each has to be raised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import jmsish
from jmsish.errors import error_for

from .face import Face
from .steps import cut_behind_the_discharge, expect, stage


async def raised_by(call: Callable[[], Any]) -> Any:
    """What a call raises, waiting or not."""
    try:
        result = call()
        if isinstance(result, Awaitable):
            await result
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


async def test_rule_200_an_error_has_text_code_and_cause(face: Face) -> None:
    """200: the text of an error says what happened, `condition` is its code, `__cause__` what it comes from."""
    face.broker_with(config={"policy": {"auto_create": False}, "queues": {"orders": {}}})
    play = await stage(face, "transacted", "m1", cuttable=True)
    refused = await raised_by(lambda: play.session.create_consumer(play.session.create_queue("nowhere")))
    assert isinstance(refused, jmsish.InvalidDestinationError) and "nowhere" in str(refused)
    assert refused.condition == "amqp:not-found" and refused.scope == "link"
    await expect(await play.consumer(), "m1")
    lost = await cut_behind_the_discharge(face, lambda: face.cut(play.connection), play.session.commit())
    assert isinstance(lost, jmsish.TransactionInDoubtError)
    assert isinstance(lost.__cause__, jmsish.ConnectionLostError)
    await play.connection.close()
    closed = await raised_by(play.connection.create_session)
    assert isinstance(closed.__cause__, jmsish.ConnectionLostError)


@pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)
async def test_rule_200_the_cause_of_a_connection_that_cannot_be_made(face: Face) -> None:
    """200: the error of the operating system stays reachable, and the text names the place."""
    error = await raised_by(lambda: face.connect("amqp://127.0.0.1:1"))
    assert isinstance(error, jmsish.ConnectionLostError) and "127.0.0.1:1" in str(error)
    assert isinstance(error.__cause__, OSError)


async def must_raise(face: Face) -> dict[str, tuple[type[Exception], Callable[[], Any]]]:
    play = await stage(face, "client")
    transacted = await play.connection.create_session(transacted=True)
    producer = await play.session.create_producer(play.destination)
    await producer.send({"a": 1})
    await producer.send(b"12")
    consumer = await play.consumer()
    mapped: Any = await consumer.receive(timeout=30)
    octets: Any = await consumer.receive(timeout=30)
    octets.read_bytes(2)
    return {
        "commit": (jmsish.IllegalStateError, play.session.commit),
        "rollback": (jmsish.IllegalStateError, play.session.rollback),
        "recover": (jmsish.IllegalStateError, transacted.recover),
        "client-id": (jmsish.InvalidClientIDError, lambda: face.connect(client_id="")),
        "destination": (jmsish.InvalidDestinationError, lambda: play.session.create_consumer(None)),  # type: ignore[arg-type]
        "selector": (
            jmsish.InvalidSelectorError,
            lambda: play.session.create_consumer(play.destination, "colour = = 'red'"),
        ),
        "browser": (jmsish.InvalidSelectorError, lambda: play.session.create_browser(play.destination, "a >")),
        "eof": (jmsish.MessageEOFError, octets.read_byte),
        "format": (jmsish.MessageFormatError, lambda: mapped.get_boolean("a")),
        "not-readable": (jmsish.MessageNotReadableError, play.session.create_bytes_message().read_byte),
        "not-writeable": (jmsish.MessageNotWriteableError, lambda: octets.write_byte(1)),
        "properties": (jmsish.MessageNotWriteableError, lambda: mapped.set_int_property("n", 1)),
    }


@pytest.mark.parametrize(
    "case",
    [
        "commit", "rollback", "recover", "client-id", "destination", "selector", "browser", "eof", "format",
        "not-readable", "not-writeable", "properties",
    ],
)  # fmt: skip
async def test_rule_202_the_cases_that_must_raise(face: Face, case: str) -> None:
    """202: each wrong call has its error; JMSSecurity is rule 19, TransactionRolledBack rule 67."""
    kind, call = (await must_raise(face))[case]
    error = await raised_by(call)
    assert type(error) is kind and isinstance(error, jmsish.JMSError) and str(error)


@pytest.mark.parametrize("scope", ["connection", "session", "link"])
def test_rule_203_no_resources(scope: str) -> None:
    """203: where the broker has not the resources, ResourceAllocationError with its condition."""
    error = error_for("amqp:resource-limit-exceeded", "too many", scope)
    assert type(error) is jmsish.ResourceAllocationError and error.condition == "amqp:resource-limit-exceeded"


def test_rule_203_nobody_else_ends_our_transactions() -> None:
    """203: there is no transaction that is ended elsewhere, so nothing raises TransactionInProgressError; programs may
    name it all the same."""
    assert issubclass(jmsish.TransactionInProgressError, jmsish.JMSError)


def test_rule_204_there_is_no_legacy_domain() -> None:
    """204: queue and topic sessions, which refuse each other's methods, are not there: a session is of both kinds."""
    assert not [name for name in dir(jmsish) if name.startswith(("QueueSession", "TopicSession", "QueueConnection"))]
    for session in (jmsish.Session, jmsish.aio.Session):
        assert hasattr(session, "create_browser") and hasattr(session, "create_durable_consumer")
