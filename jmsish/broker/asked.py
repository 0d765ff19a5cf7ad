"""What a request to the management node asks, read part by part, and what is answered to it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jmsish.broker.entities import BAD_REQUEST, Kind, Refused
from jmsish.broker.policy import near_miss

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.connection import ServerConnection

OK, CREATED, STAGED, NO_CONTENT, FAULT, NOT_IMPLEMENTED = 200, 201, 202, 204, 500, 501

_NAMES: Final = ("name", "identity", "object-path")


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


class Asked(NamedTuple):
    """An operation on entities of one type, and who asks for it."""

    broker: Broker
    connection: ServerConnection | None
    kind: Kind[Any]
    request: Request

    @property
    def body(self) -> dict[str, Any]:
        """The map in the body, empty where there is none."""
        body = self.request.body
        if body is None:
            return {}
        if not isinstance(body, dict) or not all(isinstance(key, str) for key in body):
            raise Refused(BAD_REQUEST, "the body must be a map of attributes by name")
        return body

    @property
    def name(self) -> str:
        """The entity: by ``name``, or ``identity``, of the properties; some clients put the name into the body only.

        Broker-J's way is a ``key`` beside an ``index`` that says what the key is.
        """
        name = self.name_if_any
        if name is None and self.kind.is_single:
            return ""
        if name is None:
            raise Refused(BAD_REQUEST, "the application property 'name' is missing: which one is meant?")
        return name

    @property
    def name_if_any(self) -> str | None:
        """The same, where it need not be said."""
        properties, body = self.request.properties, self.request.body
        places: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [
            (properties, (*_NAMES, "key") if "index" in properties or self.kind.named_by_key else _NAMES)
        ]
        if isinstance(body, dict):
            places.append((body, _NAMES))
        for place, keys in places:
            for key in keys:
                name = place.get(key)
                if isinstance(name, str) and name:
                    return name
        return None

    @property
    def attributes(self) -> dict[str, Any]:
        """Those in the body. Of another broker's types those in camelCase that mean nothing here are left out."""
        kind, type = self.kind, self.request.type
        foreign = type != kind.name
        found = {
            key: value
            for key, value in self.body.items()
            if key in kind.settings or (key not in (*_NAMES, "type") and (key.islower() or not foreign))
        }
        return {**kind.implied.get(type, {}), **found}

    def check(self, *known: str) -> None:
        """Refuse what the body says beside these; to our own types only, as others' clients say more."""
        if self.request.type != self.kind.name:
            return
        for key in self.body:
            if key not in known and key not in (*_NAMES, "type"):
                raise Refused(BAD_REQUEST, f"{self.request.operation} knows no {key!r}: {near_miss(key, known)}")

    def argument(self, *names: str) -> Any:
        """An argument of an operation, by one of its names, in the body or in the application properties."""
        properties = self.request.properties
        for place in (self.body, properties):
            for name in names:
                if name == "key" and place is properties and "index" in place:
                    continue  # Broker-J's way to name the entity
                if place.get(name) is not None:
                    return place[name]
        return None

    def text(self, *names: str) -> str | None:
        """An argument that is a text."""
        value = self.argument(*names)
        if value is not None and not isinstance(value, str):
            raise Refused(BAD_REQUEST, f"{names[0]} must be a text, not {value!r}")
        return value

    def seconds(self, name: str) -> float | None:
        """An argument that is a number of seconds."""
        value = self.argument(name)
        if value is None:
            return None
        try:
            number = float(value) if not isinstance(value, bool) and isinstance(value, (int, float, str)) else -1.0
        except ValueError:
            number = -1.0
        if not (isfinite(number) and number >= 0):
            raise Refused(BAD_REQUEST, f"{name} must be a number of seconds, 0 or more, not {value!r}")
        return number


def unpacked(value: Any, what: str) -> Any:
    """A list or a map, which clients that have flat bodies only may send as a text in JSON."""
    if not isinstance(value, str):
        return value
    try:
        import json  # only who has flat bodies needs it

        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise Refused(BAD_REQUEST, f"{what} cannot be read as JSON: {error}") from None
