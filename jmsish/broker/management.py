"""The management node: what an AMQP Management request asks, done, and its answer (AMQP Management 1.0, WD 11).

A request is a message with the application properties ``operation``, ``type`` and, for one entity, ``name`` (or
``identity``, which here is the same); attributes are the map in its body.  The answer carries ``statusCode`` and
``statusDescription``, and the correlation-id of the request (its message-id where it has none).  Nothing here knows
links: who brings requests and carries answers is `management_links`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from sys import maxsize
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jmsish.broker.entities import BAD_REQUEST, KINDS, Kind, Refused
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
from jmsish.errors import JMSError
from jmsish.types import Int

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker

OPERATIONS: Final = ("CREATE", "READ", "UPDATE", "DELETE", "QUERY", "PURGE")
INQUIRIES: Final = ("GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-MGMT-NODES", "GET-ANNOTATIONS")
NODE_TYPES: Final = ("org.amqp.management", "self")
"""Types that mean the node itself, which answers inquiries and queries over all types."""

OK, CREATED, NO_CONTENT, NOT_IMPLEMENTED = 200, 201, 204, 501


class Request(NamedTuple):
    """What was asked."""

    operation: str
    type: str
    properties: Mapping[str, Any]
    body: Any


class Answer(NamedTuple):
    """What is said to it."""

    status: int
    description: str
    body: Any


def answer(broker: Broker, payload: bytes) -> tuple[str | None, bytes]:
    """Do what a message asks: where its answer is to go (None for nowhere), and the answer in octets."""
    try:
        message = ReceivedMessage(payload)
        message.check()
        properties = message.properties()
    except DecodeError:
        return None, b""  # nobody can be told: it cannot be read where the answer is to go
    try:
        request = _request(message)
        said = _do(broker, request)
    except Refused as refused:
        said = Answer(refused.status, str(refused), None)
    except DecodeError as error:
        said = Answer(BAD_REQUEST, f"the request cannot be read: {error}", None)
    reply_to = properties[REPLY_TO]
    return (reply_to if isinstance(reply_to, str) else None), _octets(properties, said)


def _request(message: ReceivedMessage) -> Request:
    properties = message.application_properties()
    section, body = message.body()
    operation, kind = properties.get("operation"), properties.get("type")
    if not isinstance(operation, str) or not operation:
        known = ", ".join(OPERATIONS + INQUIRIES)
        raise Refused(BAD_REQUEST, f"the application property 'operation' is missing: {known}")
    if kind is None and operation in INQUIRIES + ("QUERY",):
        kind = NODE_TYPES[0]
    if not isinstance(kind, str):
        raise Refused(BAD_REQUEST, f"the application property 'type' is missing: {_known_types()}")
    return Request(operation, kind, properties, body if section == AMQP_VALUE else None)


def _do(broker: Broker, request: Request) -> Answer:
    if request.operation in INQUIRIES:
        return _inquire(request)
    if request.operation == "QUERY":
        return _query(broker, request)
    kind = _kind(request.type)
    operation = _ON_ENTITY.get(request.operation)
    if operation is None or request.operation not in kind.operations:
        raise Refused(NOT_IMPLEMENTED, f"{request.operation} is not known for {request.type}: {kind.operations}")
    name = _name(request)
    try:
        return operation(broker, kind, name, _attributes(request, kind))
    except (ValueError, TypeError, JMSError) as error:
        raise Refused(BAD_REQUEST, str(error)) from error


def _kind(name: str) -> Kind:
    for kind in KINDS:
        if name == kind.name or name in kind.aliases:
            return kind
    raise Refused(NOT_IMPLEMENTED, f"the type {name!r} is not managed here: {_known_types()}")


def _known_types() -> str:
    return ", ".join(kind.name for kind in KINDS)


_NAMES: Final = ("name", "identity", "object-path")


def _name(request: Request) -> str:
    """The entity: by ``name``, or ``identity``, of the properties; some clients put the name into the body only.

    Broker-J's way is a ``key`` beside an ``index`` that says what the key is.
    """
    body = request.body if isinstance(request.body, dict) else {}
    for place, keys in ((request.properties, (*_NAMES, "key")), (body, _NAMES)):
        for key in keys:
            name = place.get(key)
            if isinstance(name, str) and name:
                return name
    raise Refused(BAD_REQUEST, "the application property 'name' is missing: which one is meant?")


def _attributes(request: Request, kind: Kind) -> dict[str, Any]:
    """The attributes in the body. Of another broker's types those in camelCase that mean nothing here are left out."""
    body = request.body
    if body is None:
        return {}
    if not isinstance(body, dict) or not all(isinstance(key, str) for key in body):
        raise Refused(BAD_REQUEST, "the body must be a map of attributes by name")
    foreign = request.type != kind.name
    return {
        key: value
        for key, value in body.items()
        if key not in (*_NAMES, "type") and (key in kind.settings or key.islower() or not foreign)
    }


# --- operations on one entity


def _create(broker: Broker, kind: Kind, name: str, attributes: dict[str, Any]) -> Answer:
    return Answer(CREATED, "Created", kind.create(broker, name, attributes))


def _read(broker: Broker, kind: Kind, name: str, attributes: dict[str, Any]) -> Answer:
    return Answer(OK, "OK", kind.read(broker, name))


def _update(broker: Broker, kind: Kind, name: str, attributes: dict[str, Any]) -> Answer:
    return Answer(OK, "OK", kind.update(broker, name, attributes))


def _delete(broker: Broker, kind: Kind, name: str, attributes: dict[str, Any]) -> Answer:
    kind.delete(broker, name)
    return Answer(NO_CONTENT, "No Content", {})


def _purge(broker: Broker, kind: Kind, name: str, attributes: dict[str, Any]) -> Answer:
    return Answer(OK, "OK", {"purged": kind.purge(broker, name)})


def _statistics(broker: Broker, kind: Kind, name: str, attributes: dict[str, Any]) -> Answer:
    return Answer(OK, "OK", kind.statistics(broker))


_ON_ENTITY: Final[dict[str, Callable[[Broker, Kind, str, dict[str, Any]], Answer]]] = {
    "CREATE": _create,
    "READ": _read,
    "UPDATE": _update,
    "DELETE": _delete,
    "PURGE": _purge,
    "getStatistics": _statistics,
}


# --- operations on the node


def _query(broker: Broker, request: Request) -> Answer:
    """QUERY (3.2.1): a table of the entities of one type, or of all; some of it by ``offset`` and ``count``."""
    wanted = _wanted_attributes(request.body)
    kinds = KINDS if _entity_type(request) is None else (_kind(str(_entity_type(request))),)
    columns = wanted or tuple(dict.fromkeys(name for kind in kinds for name in kind.attributes))
    offset, count = _number(request, "offset", 0), _number(request, "count", maxsize)
    # What is not asked for is not looked at: a page of a thousand costs a thousand, wherever it is.
    every = ((kind, entity) for kind in kinds for entity in kind.entities(broker))
    page = islice(every, min(offset, maxsize), min(offset + count, maxsize))
    rows = [[attributes.get(name) for name in columns] for attributes in (kind.describe(each) for kind, each in page)]
    return Answer(OK, "OK", {"attributeNames": list(columns), "results": rows})


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
    return tuple(wanted)


def _number(request: Request, name: str, default: int) -> int:
    value = request.properties.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(BAD_REQUEST, f"{name} must be a whole number, 0 or more, not {value!r}")
    return int(value)


def _inquire(request: Request) -> Answer:
    """GET-TYPES and its kin (3.3): what there is to manage, by type."""
    if request.operation == "GET-MGMT-NODES":
        return Answer(OK, "OK", [])
    named = _entity_type(request)
    kinds = KINDS if named is None else (_kind(named),)
    what: dict[str, Callable[[Kind], list[str]]] = {
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
    return encode_message(
        header=Header(),
        properties=[None, None, properties[REPLY_TO], None, None, correlation],
        application_properties={"statusCode": Int(said.status), "statusDescription": said.description},
        body=(AMQP_VALUE, {} if said.body is None else said.body),
    )
