"""The management node: what an AMQP Management request asks, done, and its answer (AMQP Management 1.0, WD 11).

A request is a message with the application properties ``operation``, ``type`` and, for one entity, ``name`` (or
``identity``, which here is the same); attributes are the map in its body.  The answer carries ``statusCode`` and
``statusDescription``, and the correlation-id of the request (its message-id where it has none).  Nothing here knows
links: who brings requests and carries answers is `management_links`.  Most requests are done at once; one that changes
a frozen exchange, or freezes one, is done when its turn comes, and others are done meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from sys import maxsize
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsish.broker import leases, rebinding
from jmsish.broker.asked import CREATED, FAULT, NO_CONTENT, NOT_IMPLEMENTED, OK, Answer, Asked, Request
from jmsish.broker.connection_kinds import ConnectionKind
from jmsish.broker.entities import (
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    GONE,
    NOT_FOUND,
    TIMED_OUT,
    BrokerKind,
    Kind,
    QueueKind,
    Refused,
    SubscriptionKind,
    TopicKind,
)
from jmsish.broker.exchange_kinds import BindingKind, ExchangeKind
from jmsish.broker.leading import check_led_to, check_pair
from jmsish.broker.policy_kinds import GroupKind, PolicyKind, VhostKind
from jmsish.broker.querying import Query
from jmsish.engine.codec import (
    AMQP_VALUE,
    CORRELATION_ID,
    MESSAGE_ID,
    REPLY_TO,
    Header,
    ReceivedMessage,
    encode_message,
)
from jmsish.engine.decoding import DecodeError
from jmsish.errors import (
    FreezeExpiredError,
    FreezeTimeoutError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    ResourceAllocationError,
)
from jmsish.types import Int

if TYPE_CHECKING:
    from jmsish.broker.grants import Grant
    from jmsish.broker.rebinding import Said

OPERATIONS: Final = (
    "CREATE", "READ", "UPDATE", "DELETE", "QUERY", "PURGE", "REDIRECT", "BIND", "UNBIND", "REBIND", "FREEZE", "THAW",
    "CANCEL", "RESET",
)  # fmt: skip
INQUIRIES: Final = ("GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-MGMT-NODES", "GET-ANNOTATIONS")
NODE_TYPES: Final = ("org.amqp.management", "self")
"""Types that mean the node itself, which answers inquiries and queries over all types."""

class Asker(Protocol):
    """A connection whose request it is."""

    grant: Grant


KINDS: Final[tuple[Kind[Any], ...]] = (
    QueueKind(), TopicKind(), ExchangeKind(), BindingKind(), SubscriptionKind(), BrokerKind(), PolicyKind(),
    VhostKind(), GroupKind(), ConnectionKind(),
)  # fmt: skip


Kinds = Sequence[Kind[Any]]


MOST_COLUMNS: Final = 256
"""Attributes that a QUERY may ask for, each of every entity; all kinds together have half as many."""
LARGEST_REQUEST: Final = 1 << 20
"""Octets. A request is done in one piece, and this one takes most of a second: ten thousand bindings by a REBIND."""


def answer(
    home: Any, payload: bytes, connection: Asker | None = None, kinds: Kinds = KINDS
) -> tuple[str | None, bytes | Future[bytes]]:
    """Do what a message asks: where its answer is to go (None for nowhere), and the answer in octets, now or later.

    ``home`` is what is managed, a broker or a router, and ``kinds`` are the types of entities that it has.
    """
    try:
        message = ReceivedMessage(payload)
        message.check()
        properties = message.properties()
    except DecodeError:
        return None, b""  # nobody can be told: it cannot be read where the answer is to go
    reply_to = properties[REPLY_TO]
    address = reply_to if isinstance(reply_to, str) else None
    said: Said
    try:
        if len(payload) > LARGEST_REQUEST:
            raise ValueError(f"a request of {len(payload)} octets, where {LARGEST_REQUEST} are the most")
        said = _do(home, kinds, _request(message, kinds), connection)
    except Exception as error:
        said = _sorry(error)
    if isinstance(said, Answer):
        return address, _octets(properties, said)
    if said.done():
        return address, _octets(properties, _outcome(said))
    later: Future[bytes] = Future()
    said.add_done_callback(lambda done: later.set_result(_octets(properties, _outcome(done))))
    return address, later


def _outcome(done: Future[Answer]) -> Answer:
    error = done.exception()
    if error is None:
        return done.result()
    said = _sorry(error)
    # It has been told. The frames it came through refer to who keeps it: a ring that only the collector would find.
    told: BaseException | None = error
    while told is not None:
        told.__traceback__ = None
        told = told.__context__
    return said


_STATUSES: Final[tuple[tuple[type[Exception], int], ...]] = (
    (FreezeExpiredError, GONE),
    (FreezeTimeoutError, TIMED_OUT),
    (IllegalStateError, CONFLICT),
    (InvalidDestinationError, NOT_FOUND),
    (ResourceAllocationError, CONFLICT),
    (JMSError, BAD_REQUEST),
    (ValueError, BAD_REQUEST),
    (TypeError, BAD_REQUEST),
)


def _sorry(error: BaseException) -> Answer:
    """What is said to a request that is not granted. What is a fault of ours goes on as one."""
    if isinstance(error, Refused):
        return Answer(error.status, str(error), None)
    if isinstance(error, DecodeError):
        return Answer(BAD_REQUEST, f"the request cannot be read: {error}", None)
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return Answer(status, str(error), None)
    raise error


def _request(message: ReceivedMessage, kinds: Kinds) -> Request:
    properties = message.application_properties()
    section, body = message.body()
    operation, kind = properties.get("operation"), properties.get("type")
    if not isinstance(operation, str) or not operation:
        known = ", ".join(OPERATIONS + INQUIRIES)
        raise Refused(BAD_REQUEST, f"the application property 'operation' is missing: {known}")
    if kind is None and operation in INQUIRIES + ("QUERY",):
        kind = NODE_TYPES[0]
    if not isinstance(kind, str):
        raise Refused(BAD_REQUEST, f"the application property 'type' is missing: {_known_types(kinds)}")
    return Request(operation, kind, properties, body if section == AMQP_VALUE else None)


def _do(home: Any, kinds: Kinds, request: Request, connection: Any) -> Said:
    if request.operation in INQUIRIES:
        return _inquire(kinds, request)
    if request.operation == "QUERY":
        return _query(home, kinds, request, connection)
    kind = _kind(kinds, request.type)
    operation = _ON_KIND.get((kind.name, request.operation)) or _ON_ENTITY.get(request.operation)
    if operation is None or request.operation not in kind.operations:
        known = ", ".join(kind.operations)
        raise Refused(NOT_IMPLEMENTED, f"{request.operation} is not known for {request.type}: {known}")
    _check_right(connection, kind, request.operation)
    return operation(Asked(home, connection, kind, request))


def _check_right(connection: Asker | None, kind: Kind[Any], operation: str) -> None:
    """Who asks may do it; who asks inside this process is not a connection, and may do all."""
    if connection is None:
        return
    grant, right = connection.grant, kind.rights.get(operation) or RIGHTS.get(operation, "may_manage")
    if not getattr(grant, right):
        what = f"{operation} of a {kind.name}"
        raise Refused(FORBIDDEN, f"{what} is not allowed to the user {grant.user!r} ({_TOLD_AS.get(right, right)})")


RIGHTS: Final[dict[str, str]] = {
    "CREATE": "may_create", "UPDATE": "may_create", "DELETE": "may_delete", "PURGE": "may_purge",
    **dict.fromkeys(("REDIRECT", "BIND", "UNBIND", "REBIND", "bind", "unbind"), "may_bind"),
    **dict.fromkeys(("FREEZE", "THAW", "CANCEL"), "may_freeze"),
}  # fmt: skip
"""What one needs for an operation; for those that only look, to be let in to the node at all."""
_TOLD_AS: Final = {"may_administer": "may_manage = true"}


def _kind(kinds: Kinds, name: str) -> Kind[Any]:
    for kind in kinds:
        if name == kind.name or name in kind.aliases:
            return kind
    raise Refused(NOT_IMPLEMENTED, f"the type {name!r} is not managed here: {_known_types(kinds)}")


def _known_types(kinds: Kinds) -> str:
    return ", ".join(kind.name for kind in kinds)


# --- operations on one entity


def _create(asked: Asked) -> Answer:
    check_led_to(asked.connection, asked.kind.leads(asked.attributes))
    return Answer(CREATED, "Created", asked.kind.create(asked.broker, asked.name, asked.attributes))


def _read(asked: Asked) -> Answer:
    return Answer(OK, "OK", asked.kind.read(asked.broker, asked.name))


def _update(asked: Asked) -> Answer:
    check_led_to(asked.connection, asked.kind.leads(asked.attributes))
    return Answer(OK, "OK", asked.kind.update(asked.broker, asked.name, asked.attributes))


def _delete(asked: Asked) -> Said:
    """DELETE. That of a frozen exchange waits, unless its holder wants it."""
    asked.check("timeout")
    broker, kind, name = asked.broker, asked.kind, asked.name

    def act() -> Answer:
        kind.delete(broker, name)
        return Answer(NO_CONTENT, "No Content", {})

    exchange = kind.gated(broker, name)
    if exchange is None or asked.connection is not None and broker.freezes.is_held_by(exchange, asked.connection):
        return act()
    return broker.freezes.write(exchange, act, asked.connection, timeout=asked.seconds("timeout")).done


def _purge(asked: Asked) -> Answer:
    asked.check()
    return Answer(OK, "OK", {"purged": asked.kind.purge(asked.broker, asked.name)})


def _redirect(asked: Asked) -> Answer:
    """REDIRECT: a queue is paired with the one that ``target`` names; without a target its pair ends."""
    asked.check("target")
    target = asked.text("target")
    if target:
        check_pair(asked.connection, asked.name, target)
        asked.broker.redirect(asked.name, target)
        return Answer(OK, "OK", {"redirected_to": target})
    return Answer(OK, "OK", {"redirected_to": None, "moved": asked.broker.end_redirect(asked.name)})


def _reset(asked: Asked) -> Answer:
    """RESET: the counters of refusals begin anew."""
    asked.check()
    asked.broker.denials.reset()
    return Answer(NO_CONTENT, "No Content", {})


def _statistics(asked: Asked) -> Answer:
    return Answer(OK, "OK", asked.kind.statistics(asked.broker))


def _thaw(asked: Asked) -> Answer:
    return leases.thaw(asked, rebinding.thaw_stage)


_ON_ENTITY: Final[dict[str, Callable[[Asked], Said]]] = {
    "CREATE": _create,
    "READ": _read,
    "UPDATE": _update,
    "DELETE": _delete,
    "PURGE": _purge,
    "REDIRECT": _redirect,
    "getStatistics": _statistics,
    "RESET": _reset,
    "BIND": rebinding.bind,
    "UNBIND": rebinding.unbind,
    "REBIND": rebinding.rebind,
    "FREEZE": leases.freeze,
    "THAW": _thaw,
    "CANCEL": leases.cancel,
    "bind": rebinding.bind_as_broker_j,
    "unbind": rebinding.unbind_as_broker_j,
}
_ON_KIND: Final[dict[tuple[str, str], Callable[[Asked], Said]]] = {
    ("binding", "CREATE"): rebinding.create,
    ("binding", "UPDATE"): rebinding.update,
    ("binding", "DELETE"): rebinding.delete,
}


# --- operations on the node


def _query(home: Any, kinds: Kinds, request: Request, connection: Any) -> Said:
    """QUERY (3.2.1): a table of the entities of one type, or of all; some of it by ``offset`` and ``count``."""
    wanted = _wanted_attributes(request.body)
    kinds = kinds if _entity_type(request) is None else (_kind(kinds, str(_entity_type(request))),)
    columns = wanted or tuple(dict.fromkeys(name for kind in kinds for name in kind.attributes))
    offset, count = _number(request, "offset", 0), _number(request, "count", maxsize)
    query = Query(kinds, home, columns, min(offset, maxsize), min(offset + count, maxsize))
    if home.queries is None:
        return query.run()
    home.queries.add(query, connection)
    return query.done


def _entity_type(request: Request) -> str | None:
    named = request.properties.get("entityType")
    if named is None and request.type not in NODE_TYPES:
        named = request.type
    if named is not None and not isinstance(named, str):
        raise Refused(BAD_REQUEST, f"entityType must be a text, not {named!r}")
    return named


def _wanted_attributes(body: Any) -> tuple[str, ...]:
    wanted = body.get("attributeNames", ()) if isinstance(body, dict) else ()
    if not isinstance(wanted, (list, tuple)) or not all(isinstance(name, str) for name in wanted):
        raise Refused(BAD_REQUEST, f"attributeNames must be a list of names, not {wanted!r}")
    if len(wanted) > MOST_COLUMNS:
        raise Refused(BAD_REQUEST, f"attributeNames has {len(wanted)} names, where {MOST_COLUMNS} are the most")
    return tuple(wanted)


def _number(request: Request, name: str, default: int) -> int:
    value = request.properties.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(BAD_REQUEST, f"{name} must be a whole number, 0 or more, not {value!r}")
    return int(value)


def _inquire(kinds: Kinds, request: Request) -> Answer:
    """GET-TYPES and its kin (3.3): what there is to manage, by type."""
    if request.operation == "GET-MGMT-NODES":
        return Answer(OK, "OK", [])
    named = _entity_type(request)
    kinds = kinds if named is None else (_kind(kinds, named),)
    what: dict[str, Callable[[Kind[Any]], list[str]]] = {
        "GET-TYPES": lambda kind: [],
        "GET-ANNOTATIONS": lambda kind: [],
        "GET-ATTRIBUTES": lambda kind: list(kind.attributes),
        "GET-OPERATIONS": lambda kind: list(kind.operations),
    }
    return Answer(OK, "OK", {kind.name: what[request.operation](kind) for kind in kinds})


# --- the answer


def _octets(properties: list[Any], said: Answer) -> bytes:
    """``properties`` are those of the request."""
    correlation = properties[CORRELATION_ID]
    if correlation is None:
        correlation = properties[MESSAGE_ID]
    try:
        return _encoded(properties[REPLY_TO], correlation, said)
    except (TypeError, ValueError) as error:
        # An argument of a binding may be any value of Python, if it was bound in this process.
        return _encoded(properties[REPLY_TO], correlation, Answer(FAULT, f"the answer has no AMQP form: {error}", None))


def _encoded(reply_to: Any, correlation: Any, said: Answer) -> bytes:
    return encode_message(
        header=Header(),
        properties=[None, None, reply_to, None, None, correlation],
        application_properties={"statusCode": Int(said.status), "statusDescription": said.description},
        body=(AMQP_VALUE, {} if said.body is None else said.body),
    )
