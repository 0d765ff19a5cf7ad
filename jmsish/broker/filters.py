"""The filters of a source: what a receiver asks for, and which of it is in force (Part 3, 3.5.3, 3.5.8).

A filter is known by its descriptor, never by its key in the map (M57): a code or a symbol, of the registered name or
an older one (M59). What is not known here is not in force, and left out of the answer: "the sending endpoint sets the
filter actually in place, including any filters defaulted at the node" (M61).

Three of them say which messages of an exchange are wanted, and become bindings; each fits some types of exchange only
(exchanges and policy, 1.7). A string without a descriptor is one that fits wherever keys are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from jmsish.broker.bindings import DIRECT, FANOUT, HEADERS, TOPIC
from jmsish.broker.bindings import SELECTOR as SELECTOR_ARGUMENT
from jmsish.broker.headers import X_MATCH, Criteria
from jmsish.broker.intake import subject_of
from jmsish.broker.patterns import ANY, matcher, normalised
from jmsish.broker.refusals import INVALID_FIELD, Refusal
from jmsish.broker.selectors import read_selector, structure_of
from jmsish.engine.decoding import DecodeError
from jmsish.engine.selecting import Predicate, predicate
from jmsish.errors import InvalidSelectorError
from jmsish.selector import Selector
from jmsish.types import Char, Described, Symbol, ULong

SELECTOR: Final = frozenset(
    {0x0000468C00000004, "apache.org:selector-filter:string", "apache.org:jms-selector-filter:string"}
)
NO_LOCAL: Final = frozenset(
    {0x0000468C00000003, "apache.org:no-local-filter:list", "apache.org:jms-no-local-filter:list"}
)
_NAMES: Final = {
    DIRECT: Symbol("apache.org:legacy-amqp-direct-binding:string"),
    TOPIC: Symbol("apache.org:legacy-amqp-topic-binding:string"),
    HEADERS: Symbol("apache.org:legacy-amqp-headers-binding:map"),
}
_CODES: Final = {
    DIRECT: ULong(0x0000468C00000000),
    TOPIC: ULong(0x0000468C00000001),
    HEADERS: ULong(0x0000468C00000002),
}
_BINDING_KINDS: Final[Mapping[Any, str]] = {
    **{code: kind for kind, code in _CODES.items()}, **{name: kind for kind, name in _NAMES.items()}
}  # fmt: skip
"""By the descriptors of the filters that bind, the type of exchange that each was made for."""
PLAIN: Final = "plain"
"""The kind of a filter that is a string, and nothing else is said of it."""
_FITTING: Final = {DIRECT: (DIRECT, TOPIC, PLAIN), TOPIC: (TOPIC, PLAIN), HEADERS: (HEADERS,), FANOUT: ()}
"""The kinds of filters that fit an exchange of a type. One for topics asks a direct exchange for that very key."""
_AT_QUEUES: Final = (DIRECT, TOPIC, PLAIN)
DEFAULT_KEYS: Final = {DIRECT: "", TOPIC: ANY, HEADERS: "", FANOUT: ""}
"""The key of a subscription that asks for none, by the type of its exchange."""
_EVERYTHING: Final = {X_MATCH: "all"}
_DEFAULT_SUBJECT: Final = Symbol("default-subject-filter")
_DEFAULT_HEADERS: Final = Symbol("default-headers-filter")
_FILTER: Final = {Symbol("field"): Symbol("filter")}
_SOURCE: Final = {Symbol("field"): Symbol("source")}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A binding that a subscription wants: its key in normal form, and of a headers exchange what it asks."""

    key: str
    criteria: Criteria | None = None
    arguments: Mapping[str, Any] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return repr(self.key if self.arguments is None else dict(self.arguments))


@dataclass(frozen=True, slots=True)
class Wish:
    """A filter that says what is wanted of an exchange, or by its subject of a queue."""

    name: Any
    """Its key in the map."""
    filter: Any
    """As it came."""
    kind: str
    value: Any
    """A key or pattern; of a headers filter the arguments of a binding."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of one source that are in force."""

    selector: str | None = None
    """Its text; None where all is wanted."""
    selects: Callable[[bytes, int], bool] | None = None
    size: int = 0
    """What it takes to select: characters of the selector's structure, and of a pattern."""
    no_local: bool = False
    granted: Mapping[Any, Any] = field(default_factory=dict)
    """As asked for, under the keys and with the descriptors that the peer used."""
    wishes: tuple[Wish, ...] = ()
    """Those of which the node has to say whether they are in force: :meth:`at_queue`, :meth:`at_exchange`."""

    @classmethod
    def read(cls, wished: Mapping[Any, Any] | None) -> Filters:
        """The filters of a source. Refusal for a selector that is none, and for a binding that cannot be.

        Of two of a kind the first is in force.
        """
        granted: dict[Any, Any] = {}
        wishes: list[Wish] = []
        text: str | None = None
        no_local = chosen = False
        for key, value in (wished or {}).items():
            wish = _wish(key, value)
            if wish is not None:
                wishes.append(wish)
                continue
            descriptor = value.descriptor if isinstance(value, Described) else None
            if not isinstance(descriptor, (int, str)):
                continue
            if descriptor in SELECTOR and not chosen:
                chosen = True
                text = _selector_in(value.value)
            elif descriptor in NO_LOCAL and not no_local:
                # A list by its registration, a string from Qpid JMS: what it holds says nothing (M58).
                no_local = True
            else:
                continue
            granted[key] = value
        selector = _parsed(text)
        if selector is None:
            return cls(None, None, 0, no_local, granted, tuple(wishes))
        size = structure_of(selector.text)
        return cls(selector.text, predicate(selector), size, no_local, granted, tuple(wishes))

    def without_no_local(self) -> Filters:
        """What is left of them where nothing is local: at a queue, and to those who share a subscription."""
        if not self.no_local:
            return self
        granted = {
            key: value for key, value in self.granted.items()
            if not (isinstance(value, Described) and value.descriptor in NO_LOCAL)
        }  # fmt: skip
        return replace(self, no_local=False, granted=granted)

    def at_queue(self) -> Filters:
        """Those in force at a queue: there a subject filter selects, by the words that topic exchanges go by."""
        wish = self._first(_AT_QUEUES)
        if wish is None:
            return self
        granted = {**self.granted, wish.name: wish.filter}
        size = self.size + len(str(wish.value))
        return replace(self, selects=_both(_by_subject(wish), self.selects), size=size, granted=granted)

    def at_exchange(self, type: str, key: str | None) -> tuple[Filters, tuple[Wanted, ...]]:
        """Those in force at an exchange, and the bindings that they are; ``key`` is that of the address, if it has one.

        A key and a filter are two bindings; without either the default of the type is one, and is said.
        """
        wish = self._first(_FITTING[type])
        granted = dict(self.granted)
        if wish is not None:
            granted[wish.name] = _converted(wish) if type == DIRECT else wish.filter
        if type == HEADERS:
            arguments = _EVERYTHING if wish is None else wish.value
            if wish is None:
                granted[_DEFAULT_HEADERS] = Described(_NAMES[HEADERS], dict(arguments))
            wanted = (Wanted(key or "", Criteria.read(arguments), arguments),)
            return replace(self, granted=granted), wanted
        keys = [] if key is None else [_key_of_address(type, key)]
        if wish is not None:
            keys.append(normalised(wish.value) if type == TOPIC else wish.value)
        if not keys:
            keys.append(DEFAULT_KEYS[type])
            if type != FANOUT:
                granted[_DEFAULT_SUBJECT] = Described(_NAMES[type], DEFAULT_KEYS[type])
        return replace(self, granted=granted), tuple(Wanted(each) for each in dict.fromkeys(keys))

    def _first(self, kinds: tuple[str, ...]) -> Wish | None:
        return next((wish for wish in self.wishes if wish.kind in kinds), None)


def _wish(name: Any, value: Any) -> Wish | None:
    """The filter as one that binds; None where it is no such. Refusal where its value is illegal."""
    if not isinstance(value, Described):
        is_text = isinstance(value, str) and not isinstance(value, (Symbol, Char))
        return Wish(name, value, PLAIN, _pattern(name, value)) if is_text else None
    kind = _BINDING_KINDS.get(value.descriptor) if isinstance(value.descriptor, (int, str)) else None
    if kind is None:
        return None
    if kind == HEADERS:
        return Wish(name, value, kind, _arguments(name, value.value))
    if not isinstance(value.value, str):
        raise Refusal(INVALID_FIELD, f"the filter {name!s}: a key is a string, not {value.value!r}", _FILTER)
    return Wish(name, value, kind, str(value.value) if kind == DIRECT else _pattern(name, value.value))


def _pattern(name: Any, text: str) -> str:
    try:
        normalised(text)
    except ValueError as error:
        raise Refusal(INVALID_FIELD, f"the filter {name!s}: {error}", _FILTER) from None
    return str(text)


def _arguments(name: Any, value: Any) -> Mapping[str, Any]:
    """The arguments of a binding that a headers filter asks for. Refusal for all that is illegal, nested values too."""
    if not isinstance(value, Mapping):
        raise Refusal(INVALID_FIELD, f"the filter {name!s}: it is a map, not {value!r}", _FILTER)
    for each in value:
        if not isinstance(each, str):
            raise Refusal(INVALID_FIELD, f"the filter {name!s}: its keys are strings, not {each!r}", _FILTER)
    # A selector is a filter of its own; like all else that begins with "x-" it matches nothing.
    arguments = {str(each): wanted for each, wanted in value.items() if each != SELECTOR_ARGUMENT}
    try:
        Criteria.read(arguments)
    except ValueError as error:
        raise Refusal(INVALID_FIELD, f"the filter {name!s}: {error}", _FILTER) from None
    return arguments


def _converted(wish: Wish) -> Any:
    """What a direct exchange makes of a filter for topics: one for that very key, in the form that the peer used."""
    if wish.kind != TOPIC:
        return wish.filter
    by_code = not isinstance(wish.filter.descriptor, str)
    return Described(_CODES[DIRECT] if by_code else _NAMES[DIRECT], wish.value)


def _key_of_address(type: str, key: str) -> str:
    try:
        return normalised(key) if type == TOPIC else key
    except ValueError as error:
        raise Refusal(INVALID_FIELD, f"the topic {key[:80]!r}: {error}", _SOURCE) from None


def _by_subject(wish: Wish) -> Predicate:
    """Whether a message has the subject that is wanted; one without any has the empty one."""
    wanted: Callable[[str], bool] = {wish.value}.__contains__ if wish.kind == DIRECT else matcher(wish.value)

    def selects(payload: bytes, count: int) -> bool:
        try:
            return wanted(subject_of(payload))
        except DecodeError:
            return False  # whoever sent it: what cannot be read is wanted by nobody who looks at it

    return selects


def _both(first: Predicate, second: Predicate | None) -> Predicate:
    if second is None:
        return first
    return lambda payload, count: first(payload, count) and second(payload, count)


def _selector_in(value: object) -> str:
    if not isinstance(value, str):
        raise Refusal(INVALID_FIELD, f"a selector is a string, not {value!r}", _FILTER)
    return value


def _parsed(text: str | None) -> Selector | None:
    try:
        return read_selector(text)
    except InvalidSelectorError as error:
        raise Refusal(INVALID_FIELD, str(error), _FILTER) from None
