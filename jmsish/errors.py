"""The errors of jmsish: one tree, JMS names with Python's ending.

::

    JMSError
    ├── IllegalStateError                 a call that the state of the object forbids
    │   ├── FreezeExpiredError            the freeze of an exchange ran out before its block ended
    │   └── FreezeReentryError            the holder of a freeze waits for itself
    ├── InvalidClientIDError              the client id is in use, or refused
    ├── InvalidDestinationError           the destination does not exist, or may not be used so
    ├── InvalidSelectorError              the text of a selector has a fault
    ├── JMSSecurityError                  credentials refused, or an action not permitted
    ├── OperationTimeoutError             no answer within the time allowed
    │   └── FreezeTimeoutError            a freeze did not come about within the time allowed
    ├── MessageFormatError                a value cannot be read, or written, as the type asked for
    ├── MessageNotReadableError           a body is in write mode
    ├── MessageNotWriteableError          a body, or the properties, of a received message are read-only
    ├── MessageEOFError                   read past the end of a body
    ├── SendRejectedError                 the broker refused a message
    ├── ConcurrencyError                  two threads, or tasks, used one session at once
    ├── ResourceAllocationError           the broker has not the resources for it
    ├── TransactionInProgressError        the session is part of another transaction
    ├── TransactionRolledBackError        a commit ended in a rollback
    ├── TransactionInDoubtError           a commit whose answer was lost: nobody here knows how it ended
    ├── ConnectionLostError               the connection failed, or could not be made
    └── UnsupportedFeatureError           the peer, or this library, does not do it

    ValueError
    └── NumberFormatError                 a text that was read as a number is none
    (wrong arguments raise ValueError or TypeError)

What the peer said travels along: ``scope`` is the endpoint it spoke of (``"connection"``, ``"session"``, ``"link"``,
``"delivery"`` or ``"transaction"``), ``condition`` the symbol (``"amqp:not-found"``), ``description`` its sentence,
``info`` its map. All four are ``None`` on an error that arose here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ConcurrencyError",
    "ConnectionLostError",
    "FreezeExpiredError",
    "FreezeReentryError",
    "FreezeTimeoutError",
    "IllegalStateError",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "JMSError",
    "JMSSecurityError",
    "MessageEOFError",
    "MessageFormatError",
    "MessageNotReadableError",
    "MessageNotWriteableError",
    "NumberFormatError",
    "OperationTimeoutError",
    "ResourceAllocationError",
    "SendRejectedError",
    "TransactionInDoubtError",
    "TransactionInProgressError",
    "TransactionRolledBackError",
    "UnsupportedFeatureError",
    "error_for",
]


class JMSError(Exception):
    """The base of every error that jmsish raises for a fault of messaging.

    ``scope``, ``condition``, ``description`` and ``info`` hold what the peer said, or ``None``.
    """

    def __init__(
        self,
        message: str,
        *,
        scope: str | None = None,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.scope = scope
        self.condition = condition
        self.description = description
        self.info = info


class IllegalStateError(JMSError):
    """The state of the object forbids the call: closed, not transacted, already in use."""


class InvalidClientIDError(JMSError):
    """The client id is empty, refused by the broker, or in use by another connection."""


class InvalidDestinationError(JMSError):
    """The destination does not exist, is gone, or may not be used this way."""


class InvalidSelectorError(JMSError):
    """The text of a message selector has a fault; the message points at it.

    ``position`` is the offset of the fault in the text, or ``None`` when it was the peer that refused the selector.
    """

    def __init__(
        self,
        message: str,
        *,
        scope: str | None = None,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message, scope=scope, condition=condition, description=description, info=info)
        self.position = position


class JMSSecurityError(JMSError):
    """The credentials were refused, or the user may not do this."""


class MessageFormatError(JMSError):
    """A value cannot be read, or written, as the type asked for."""


class MessageNotReadableError(JMSError):
    """A body in write mode was read; call ``reset()`` first."""


class MessageNotWriteableError(JMSError):
    """A received message is read-only; call ``clear_body()`` or ``clear_properties()`` first."""


class MessageEOFError(JMSError):
    """A read went past the end of a bytes or stream body."""


class _OutcomeError(JMSError):
    """An error after which it may be unknown what became of a message: ``outcome_unknown`` says so."""

    def __init__(
        self,
        message: str,
        *,
        scope: str | None = None,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(message, scope=scope, condition=condition, description=description, info=info)
        self.outcome_unknown = outcome_unknown


class OperationTimeoutError(_OutcomeError):
    """Something took longer than the time allowed for it.

    ``outcome_unknown`` is true when it was a send that had left, or had begun to: the broker may have the message.
    """


class SendRejectedError(_OutcomeError):
    """The broker refused a message, or gave it back; the producer stays usable.

    ``outcome_unknown`` is true when the message may have been taken all the same.
    """


class ConcurrencyError(JMSError):
    """Two threads, or tasks, used one session at the same time; raised in the one that came second, it names both."""


class ResourceAllocationError(JMSError):
    """The broker has not the resources for what was asked."""


class TransactionInProgressError(JMSError):
    """The session is part of a transaction that is ended elsewhere."""


class TransactionRolledBackError(JMSError):
    """A commit ended in a rollback: nothing of the transaction was done."""


class TransactionInDoubtError(JMSError):
    """The answer to a commit was lost: the transaction may have been done or undone, whole in either case.

    What helps to find out which: ``sent`` and ``received`` say how many messages it sent and took, ``last_sent_id`` and
    ``last_received_id`` are the JMSMessageIDs of the last of either sort (``None`` where there is none). Since all was
    done or nothing, one message decides: that which was sent last is at its destination, or was consumed there, if the
    transaction was committed; that which was received last comes again, marked as redelivered, if it was not.
    ``transaction_id`` is what the broker called it.
    """

    def __init__(
        self,
        message: str,
        *,
        scope: str | None = None,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
        transaction_id: bytes | None = None,
        sent: int = 0,
        received: int = 0,
        last_sent_id: str | None = None,
        last_received_id: str | None = None,
    ) -> None:
        super().__init__(message, scope=scope, condition=condition, description=description, info=info)
        self.transaction_id = transaction_id
        self.sent = sent
        self.received = received
        self.last_sent_id = last_sent_id
        self.last_received_id = last_received_id


class ConnectionLostError(_OutcomeError):
    """The connection failed, or could not be made.

    ``outcome_unknown`` is true when a send was on its way: the broker may have the message.
    """


class UnsupportedFeatureError(JMSError):
    """The peer, or this library, does not offer what was asked."""


class FreezeTimeoutError(OperationTimeoutError):
    """An exchange could not be frozen within the time allowed; nothing was changed."""


class FreezeExpiredError(IllegalStateError):
    """A freeze was held too long and was lifted; its changes did not take effect."""


class FreezeReentryError(IllegalStateError):
    """The holder of a freeze did what would wait for the end of its own freeze."""


class NumberFormatError(ValueError):
    """A text that was read as a number is none."""


_BY_CONDITION: Mapping[str, type[JMSError]] = {
    "amqp:unauthorized-access": JMSSecurityError,
    "amqp:resource-limit-exceeded": ResourceAllocationError,
    "amqp:not-found": InvalidDestinationError,
    "amqp:resource-deleted": InvalidDestinationError,
    "amqp:not-implemented": UnsupportedFeatureError,
    "amqp:transaction:rollback": TransactionRolledBackError,
    "amqp:transaction:timeout": TransactionRolledBackError,
    "amqp:link:message-size-exceeded": SendRejectedError,
}

# What these conditions mean is said of a link or a delivery; when a whole connection ends with one, it is lost.
_NOT_OF_A_CONNECTION = frozenset(
    {"amqp:not-found", "amqp:resource-deleted", "amqp:not-implemented", "amqp:link:message-size-exceeded"}
)


def error_for(
    condition: str | None,
    description: str | None = None,
    scope: str | None = None,
    info: Mapping[Any, Any] | None = None,
    default: type[JMSError] = JMSError,
) -> JMSError:
    """The error that stands for a condition the peer named, carrying all it said.

    ``default`` is the class for conditions that have no class of their own; for ``scope="connection"`` it is
    :class:`ConnectionLostError` unless another one is given.
    """
    if scope == "connection" and default is JMSError:
        default = ConnectionLostError
    found = default
    if condition is not None and not (scope == "connection" and condition in _NOT_OF_A_CONNECTION):
        found = _BY_CONDITION.get(condition, default)
    if condition == "amqp:invalid-field" and info and info.get("invalid-field") == "container-id":
        found = InvalidClientIDError
    said = description or "no description given"
    message = f"{said} ({condition})" if condition else said
    return found(message, scope=scope, condition=condition, description=description, info=info)
