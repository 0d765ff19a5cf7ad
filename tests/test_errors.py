"""The tree of errors, and the conditions of the peer that each class stands for."""

from __future__ import annotations

import inspect
import pickle

import pytest

from jmsish import errors
from jmsish.errors import (
    ConnectionLostError,
    FreezeExpiredError,
    FreezeReentryError,
    FreezeTimeoutError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    NumberFormatError,
    OperationTimeoutError,
    ResourceAllocationError,
    SendRejectedError,
    TransactionRolledBackError,
    UnsupportedFeatureError,
    error_for,
)

TREE = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, JMSError)}


def test_the_docstring_draws_the_tree() -> None:
    drawn = errors.__doc__ or ""
    for name, kind in TREE.items():
        if not name.startswith("_"):
            assert name in drawn and kind.__doc__


def test_names_are_exported() -> None:
    assert {name for name in TREE if not name.startswith("_")} <= set(errors.__all__)


def test_the_kin_of_freeze_errors() -> None:
    assert issubclass(FreezeTimeoutError, OperationTimeoutError)
    assert issubclass(FreezeExpiredError, IllegalStateError) and issubclass(FreezeReentryError, IllegalStateError)
    assert issubclass(NumberFormatError, ValueError) and not issubclass(NumberFormatError, JMSError)


@pytest.mark.parametrize("kind", TREE.values())
def test_an_error_carries_what_the_peer_said(kind: type[JMSError]) -> None:
    error = kind("text", scope="link", condition="a:b", description="why", info={"k": 1})
    assert (str(error), error.scope, error.condition, error.description, error.info) == (
        "text", "link", "a:b", "why", {"k": 1},
    )  # fmt: skip
    assert (kind("x").scope, kind("x").condition, kind("x").description, kind("x").info) == (None,) * 4
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.condition) == (kind, "text", "a:b")


@pytest.mark.parametrize("kind", [SendRejectedError, ConnectionLostError])
def test_the_outcome_of_a_send_may_be_unknown(kind: type[SendRejectedError]) -> None:
    assert kind("x").outcome_unknown is False and kind("x", outcome_unknown=True).outcome_unknown is True


def test_m37_conditions_that_end_a_connection() -> None:
    table = [
        ("amqp:unauthorized-access", JMSSecurityError),
        ("amqp:resource-limit-exceeded", ResourceAllocationError),
        ("amqp:not-found", ConnectionLostError),
        ("amqp:connection:forced", ConnectionLostError),
        ("amqp:connection:redirect", ConnectionLostError),
        ("amqp:internal-error", ConnectionLostError),
        (None, ConnectionLostError),
    ]
    for condition, kind in table:
        assert type(error_for(condition, "why", "connection")) is kind, condition


def test_m38_conditions_of_links() -> None:
    table = [
        ("amqp:unauthorized-access", JMSSecurityError),
        ("amqp:resource-limit-exceeded", ResourceAllocationError),
        ("amqp:not-found", InvalidDestinationError),
        ("amqp:resource-deleted", InvalidDestinationError),
        ("amqp:transaction:rollback", TransactionRolledBackError),
        ("amqp:not-implemented", UnsupportedFeatureError),
        ("amqp:link:message-size-exceeded", SendRejectedError),
        ("amqp:internal-error", JMSError),
        ("com.example:own", JMSError),
    ]
    for condition, kind in table:
        assert type(error_for(condition, None, "link")) is kind, condition


def test_m36_a_container_id_in_use_is_an_invalid_client_id() -> None:
    error = error_for("amqp:invalid-field", "in use", "connection", {"invalid-field": "container-id"})
    assert type(error) is InvalidClientIDError and error.info == {"invalid-field": "container-id"}
    assert type(error_for("amqp:invalid-field", "x", "link", {"invalid-field": "address"})) is JMSError


def test_the_default_is_for_conditions_without_a_class() -> None:
    default = TransactionRolledBackError
    assert type(error_for("x:y", "why", "transaction", default=default)) is default
    assert type(error_for("amqp:not-found", "why", "link", default=default)) is InvalidDestinationError


def test_the_text_names_condition_and_description() -> None:
    assert str(error_for("amqp:not-found", "no queue x")) == "no queue x (amqp:not-found)"
    assert str(error_for("amqp:not-found")) == "no description given (amqp:not-found)"
    assert str(error_for(None, "why")) == "why"
