"""Bindings: what one says, what its arguments ask of a message, and the binding in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.headers import Criteria
from jmsish.broker.patterns import normalised
from jmsish.broker.policy import near_miss
from jmsish.broker.selectors import read_selector
from jmsish.engine.encoding import encode
from jmsish.engine.selecting import Predicate, predicate
from jmsish.errors import InvalidSelectorError
from jmsish.selector import Selector
from jmsish.types import ULong

if TYPE_CHECKING:
    from jmsish.broker.exchanges import Exchange
    from jmsish.broker.queues import Queue
    from jmsish.broker.routing import Match

DIRECT: Final = "direct"
TOPIC: Final = "topic"
FANOUT: Final = "fanout"
HEADERS: Final = "headers"
TYPES: Final = (DIRECT, TOPIC, FANOUT, HEADERS)

QUEUE: Final = "queue"
EXCHANGE: Final = "exchange"

SELECTOR: Final = "x-filter-jms-selector"
"""The argument that is a selector: the binding takes what it selects."""
EXCLUSIVE: Final = "qpid.exclusive-binding"
"""The argument, of direct exchanges, that makes a binding take the place of all others with its key."""

_LARGEST_LONG: Final = (1 << 63) - 1

Accepts = Callable[[bytes, int, object], bool]
"""Whether a binding wants a message: its octets, its failed deliveries so far, the connection it came on."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A queue that gets what an exchange is given for a key; exchange, queue and key together are one binding.

    ``key`` is in its normal form: patterns that match the same keys are the same. With the kind ``"exchange"``,
    ``queue`` is the name of another exchange, which is given the message in turn.
    """

    exchange: str
    queue: str
    key: str = ""
    arguments: Mapping[str, Any] | None = field(default=None, hash=False)
    kind: str = QUEUE


@dataclass(frozen=True, slots=True)
class Asked:
    """What the arguments of a binding ask, understood; equal if they ask the same, however it is written."""

    criteria: Criteria | None = None
    """Of a headers exchange: which messages match."""
    selector: str | None = None
    exclusive: bool = False
    selects: Predicate | None = field(default=None, compare=False)


NOTHING_ASKED: Final = Asked()


def understood(type: str, key: str, arguments: Mapping[str, Any] | None) -> tuple[str, Asked]:
    """The key in the normal form of a type of exchange, and what the arguments ask there.

    ``ValueError`` or ``TypeError`` for what is illegal, ``InvalidSelectorError`` for a selector that cannot be read.
    """
    if not isinstance(key, str):
        raise TypeError(f"the key of a binding is a str, not {_kind(key)}")
    if not key.isascii():
        _check_form(key, "the key of a binding")
    if type == TOPIC:
        key = normalised(key)
    if arguments is None and type != HEADERS:
        return key, NOTHING_ASKED
    return key, _asked(type, {} if arguments is None else arguments)


def _asked(type: str, arguments: Mapping[str, Any]) -> Asked:
    if not isinstance(arguments, Mapping):
        raise TypeError(f"the arguments of a binding are a mapping, not {_kind(arguments)}")
    for name in arguments:
        if not isinstance(name, str):
            raise TypeError(f"the name of an argument is a str, not {name!r}")
    selector = _selector(arguments.get(SELECTOR))
    if type == HEADERS:
        others = {name: value for name, value in arguments.items() if name != SELECTOR}
        criteria, exclusive = Criteria.read(others), False
    else:
        criteria, exclusive = None, type == DIRECT and _flag(arguments.get(EXCLUSIVE, False))
        known = (SELECTOR, EXCLUSIVE) if type == DIRECT else (SELECTOR,)
        for name in arguments:
            if name not in known:
                raise ValueError(f"a {type} exchange knows no argument {name!r}: {near_miss(name, known)}")
    for name, value in sayable(arguments).items():
        _check_form(name, "the name of an argument")
        _check_form(value, f"the argument {name!r}")
    if selector is None:
        return Asked(criteria, None, exclusive)
    return Asked(criteria, selector.text, exclusive, predicate(selector))


def sayable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the arguments, as they are told: whole numbers that only fit without a sign are such."""
    return {
        name: ULong(value) if type(value) is int and _LARGEST_LONG < value <= 2 * _LARGEST_LONG + 1 else value
        for name, value in arguments.items()
    }


def _check_form(value: object, what: str) -> None:
    """Whatever a binding asks must fit into a message: one that does not would make all of them unreadable."""
    try:
        encode(value)
    except UnicodeEncodeError:
        raise ValueError(f"{what} is {value!r}: half a character is no text") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what} is {value!r}, and has no AMQP form: {error}") from None


def _selector(text: object) -> Selector | None:
    if text is not None and not isinstance(text, str):
        raise TypeError(f"{SELECTOR} is a selector, a str, not {_kind(text)}")
    try:
        return read_selector(text)
    except InvalidSelectorError as error:
        raise InvalidSelectorError(f"{SELECTOR}: {error}", position=error.position) from None


def _flag(value: object) -> bool:
    # Peers that write tables of AMQP 0-10 say 1 where others say true.
    if not isinstance(value, int) or value not in (0, 1):
        raise ValueError(f"{EXCLUSIVE} is true or false, not {value!r}")
    return bool(value)


def _kind(value: object) -> str:
    return type(value).__name__


def identity(target: Queue | Exchange | Binding) -> str:
    """How a table knows a target: a queue and an exchange may have one name, and are two (QPID-8572)."""
    if isinstance(target, Binding):
        return f"{target.kind}:{target.queue}"
    return f"{target.kind}:{target.name}"


class Bound:
    """A binding in force: the queue or exchange itself, and what it asks of a message beyond the key."""

    __slots__ = ("accepts", "alone", "asked", "binding", "counted", "exchange", "queue", "target")

    def __init__(self, binding: Binding, target: Queue | Exchange, asked: Asked, accepts: Accepts | None) -> None:
        self.binding = binding
        self.target = identity(target)
        self.queue: Queue | None = None
        self.exchange: Exchange | None = None
        if target.kind == QUEUE:
            self.queue = target  # type: ignore[assignment]
        else:
            self.exchange = target  # type: ignore[assignment]
        self.asked = asked
        self.accepts = _both(accepts, asked.selects)
        """None: it wants whatever matches."""
        self.counted = 0
        """How many messages it has wanted, but for those that a match has still to tell it of."""
        self.alone: Match | None = None
        """What a key leads to that leads to this binding only; made for the first."""

    @property
    def matched(self) -> int:
        """How many messages it has wanted; if its table has told it of all (:meth:`Table.count`)."""
        if self.alone is None or self.accepts is not None or self.queue is None:
            return self.counted  # who looks at each message, and who leads on, counts by itself
        return self.counted + self.alone.hits

    def retire(self) -> None:
        """It is in force no more."""
        self.counted, self.alone = self.matched, None


def _both(accepts: Accepts | None, selects: Predicate | None) -> Accepts | None:
    if selects is None:
        return accepts
    if accepts is None:
        return lambda payload, count, origin: selects(payload, count)
    return lambda payload, count, origin: selects(payload, count) and accepts(payload, count, origin)
