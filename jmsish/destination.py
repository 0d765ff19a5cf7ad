"""Destinations: queues and topics, and the temporary ones that live as long as their connection."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from jmsish.errors import IllegalStateError

__all__ = [
    "Destination",
    "Prefixes",
    "Queue",
    "TemporaryQueue",
    "TemporaryTopic",
    "Topic",
    "destination_of_kind",
    "name_on_wire",
    "parse_destination",
    "wire_name",
]


class Destination:
    """A place that messages are sent to and received from; equal by kind and name, and never changed."""

    __slots__ = ("name",)

    name: str
    """The name, without any prefix that a broker wants on the wire."""
    scheme: ClassVar[str]
    """What stands before ``://`` in the text of a destination of this kind."""
    kind_byte: ClassVar[int]
    """The number of the kind in the annotations ``x-opt-jms-dest`` and ``x-opt-jms-reply-to``."""
    capability: ClassVar[str]
    """The capability of the kind on a source or target."""
    is_topic: ClassVar[bool] = False
    """True for a topic, temporary or not."""
    is_temporary: ClassVar[bool] = False
    """True for a destination that goes with the connection that made it."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a destination is a str, not {type(name).__name__}")
        if not name:
            raise ValueError("the name of a destination is empty")
        object.__setattr__(self, "name", name)

    def __setattr__(self, attribute: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __delattr__(self, attribute: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Destination):
            return NotImplemented
        return self.kind_byte == other.kind_byte and self.name == other.name

    def __hash__(self) -> int:
        return hash((self.kind_byte, self.name))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)


class Queue(Destination):
    """A queue: each message goes to one consumer."""

    __slots__ = ()
    scheme = "queue"
    kind_byte = 0
    capability = "queue"


class Topic(Destination):
    """A topic: each message goes to every subscription."""

    __slots__ = ()
    scheme = "topic"
    is_topic = True
    kind_byte = 1
    capability = "topic"


class TemporaryQueue(Queue):
    """A queue that the broker made for one connection; anyone may send to it, only that connection consumes."""

    __slots__ = ("_owner",)
    scheme = "temp-queue"
    kind_byte = 2
    capability = "temporary-queue"
    is_temporary = True
    _owner: Any

    def __init__(self, name: str, owner: Any = None) -> None:
        super().__init__(name)
        object.__setattr__(self, "_owner", owner)

    def delete(self) -> Any:
        """Delete the queue with what is in it; refused while a consumer of it is open.

        Only the connection that made it can; a temporary queue that came in a message raises ``IllegalStateError``.
        """
        return _delete(self, self._owner)


class TemporaryTopic(Topic):
    """A topic that the broker made for one connection; anyone may publish to it, only that connection consumes."""

    __slots__ = ("_owner",)
    scheme = "temp-topic"
    kind_byte = 3
    capability = "temporary-topic"
    is_temporary = True
    _owner: Any

    def __init__(self, name: str, owner: Any = None) -> None:
        super().__init__(name)
        object.__setattr__(self, "_owner", owner)

    def delete(self) -> Any:
        """Delete the topic; refused while a consumer of it is open.

        Only the connection that made it can; a temporary topic that came in a message raises ``IllegalStateError``.
        """
        return _delete(self, self._owner)


def _delete(destination: Destination, owner: Any) -> Any:
    """What the owner's ``delete_temporary`` gives back is passed on: nothing, or something to await."""
    if owner is None:
        raise IllegalStateError(f"{destination} belongs to another connection, which alone can delete it")
    return owner.delete_temporary(destination)


_KINDS: tuple[type[Destination], ...] = (Queue, Topic, TemporaryQueue, TemporaryTopic)
_BY_SCHEME = {kind.scheme: kind for kind in _KINDS}


def destination_of_kind(kind_byte: int, name: str) -> Destination:
    """The destination of a kind given as its number (0 queue, 1 topic, 2 temporary queue, 3 temporary topic)."""
    if not 0 <= kind_byte < len(_KINDS):
        raise ValueError(f"{kind_byte} is no kind of destination (0 to 3)")
    return _KINDS[kind_byte](name)


def parse_destination(text: str) -> Destination:
    """The destination that a text means: ``queue://NAME``, ``topic://NAME``, or a bare name, which is a queue.

    A scheme that looks like one of these but is none raises ``ValueError``; any other text is a name as it stands.
    """
    if not isinstance(text, str):
        raise TypeError(f"the text of a destination is a str, not {type(text).__name__}")
    scheme, mark, name = text.partition("://")
    if not mark:
        return Queue(text)
    kind = _BY_SCHEME.get(scheme)
    if kind is not None:
        return kind(name)
    if near := get_close_matches(scheme.lower(), _BY_SCHEME, n=1):
        raise ValueError(f"unknown kind of destination {scheme!r} in {text!r}: did you mean {near[0]}://{name}?")
    return Queue(text)


Prefixes = tuple[str, str] | tuple[str, str, tuple[str, ...]]
"""What a broker wants before the names of queues, and of topics.  With a third part names are percent-encoded behind
the prefix, but for those that begin with a text in that part: they are whole addresses (RabbitMQ)."""


def wire_name(destination: Destination, prefixes: Prefixes) -> str:
    """The address of a destination at a broker that wants a prefix before the names of queues, or of topics.

    Temporary destinations have the names the broker gave them; a prefix that is there already is not added again.
    """
    name = destination.name
    if destination.is_temporary:
        return name
    prefix = prefixes[1] if destination.is_topic else prefixes[0]
    if len(prefixes) == 3:
        return name if name.startswith(prefixes[2]) else prefix + quote(name, safe="")
    return name if name.startswith(prefix) else prefix + name


def name_on_wire(address: str, kind_byte: int, prefixes: Prefixes) -> str:
    """The name of a destination whose address came in a message: `wire_name` the other way round."""
    prefix = "" if kind_byte > 1 else prefixes[1] if kind_byte else prefixes[0]
    if not prefix or not address.startswith(prefix) or address == prefix:
        return address
    name = address[len(prefix) :]
    return unquote(name) if len(prefixes) == 3 else name
