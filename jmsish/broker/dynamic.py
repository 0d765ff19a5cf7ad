"""Dynamic nodes: what may be asked of a node that is made for a link, and how long it lives (Part 3, 3.5.9 to 3.5.13).

Theory of operation.  A node usually goes with the link that made it; the connection sees to that. One that is to
outlive its link has a :class:`Lifetime`, which looks whether its end has come after a link of the node has gone, and
after a message of it has, where that matters: at the next turn of the clock, for then nobody is in the midst of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from jmsish.broker.bindings import TOPIC, TYPES
from jmsish.broker.exchanges import Exchange
from jmsish.broker.policy import ExchangeSettings, QueueSettings, near_miss
from jmsish.broker.queues import Queue
from jmsish.broker.refusals import INVALID_FIELD, NOT_FOUND, Refusal
from jmsish.types import Array, Described, Symbol, ULong

if TYPE_CHECKING:
    from jmsish.broker.exchanges import Exchanges
    from jmsish.broker.timers import Timed

PERMANENT: Final = 0
ON_CLOSE: Final = 0x2B
NO_LINKS: Final = 0x2C
NO_MESSAGES: Final = 0x2D
NO_LINKS_OR_MESSAGES: Final = 0x2E
_POLICIES: Final[Mapping[Any, int]] = {
    **{code: code for code in (ON_CLOSE, NO_LINKS, NO_MESSAGES, NO_LINKS_OR_MESSAGES)},
    "amqp:delete-on-close:list": ON_CLOSE,
    "amqp:delete-on-no-links:list": NO_LINKS,
    "amqp:delete-on-no-messages:list": NO_MESSAGES,
    "amqp:delete-on-no-links-or-messages:list": NO_LINKS_OR_MESSAGES,
}
"""By the descriptors of lifetime policies, their codes."""
_FIELD: Final = {"field": "dynamic-node-properties"}
_POLICY: Final = Symbol("lifetime-policy")
_MODES: Final = Symbol("supported-dist-modes")
_TYPE: Final = "exchange-type"
_ALTERNATE: Final = "alternate-exchange"


@dataclass(frozen=True, slots=True)
class NodeWishes:
    """What is to be true of a node that is made, and what is said of it in the answer."""

    topic: bool = False
    exclusive: bool = False
    """Only the connection that makes it receives from it."""
    type: str = TOPIC
    """Of an exchange."""
    durable: bool = False
    alternate: str | None = None
    lifetime: int = ON_CLOSE
    properties: Mapping[Any, Any] | None = None
    """Those of the wishes that are honoured, and the lifetime policy in force."""

    @property
    def queue_settings(self) -> QueueSettings:
        return QueueSettings(durable=self.durable)

    @property
    def exchange_settings(self) -> ExchangeSettings:
        return ExchangeSettings(durable=self.durable, alternate=self.alternate)

    @classmethod
    def read(cls, asked: Mapping[Any, Any] | None, *, topic: bool, exclusive: bool, exchanges: Exchanges) -> NodeWishes:
        """The wishes of ``dynamic-node-properties``. Refusal names one that is illegal."""
        asked = {} if asked is None else asked
        granted: dict[Any, Any] = {}
        flags = {name: _flag(asked, name, granted) for name in ("durable", "exclusive")}
        durable = bool(flags["durable"])
        lifetime = _lifetime(asked, durable, granted)
        _note_modes(asked, topic, granted)
        wishes = cls(
            topic, exclusive or bool(flags["exclusive"]), durable=durable, lifetime=lifetime, properties=granted
        )
        return wishes._with_exchange(asked, granted, exchanges) if topic else wishes

    def _with_exchange(self, asked: Mapping[Any, Any], granted: dict[Any, Any], exchanges: Exchanges) -> NodeWishes:
        """What only exchanges have: a type, and an alternate."""
        type, alternate = asked.get(_TYPE), asked.get(_ALTERNATE)
        if type is not None:
            if type not in TYPES:
                hint = near_miss(str(type), TYPES)
                raise Refusal(INVALID_FIELD, f"{_TYPE}: {type!r} is none ({hint})", _FIELD)
            granted[Symbol(_TYPE)] = type
        if alternate is not None:
            if not isinstance(alternate, str):
                raise Refusal(INVALID_FIELD, f"{_ALTERNATE}: it is the name of one, not {alternate!r}", _FIELD)
            if exchanges.get(alternate) is None:
                raise Refusal(NOT_FOUND, f"{_ALTERNATE}: there is no exchange {alternate!r}", _FIELD)
            granted[Symbol(_ALTERNATE)] = alternate
        return replace(self, type=str(type or TOPIC), alternate=None if alternate is None else str(alternate))


def _flag(asked: Mapping[Any, Any], name: str, granted: dict[Any, Any]) -> bool | None:
    value = asked.get(name)
    if value is None:
        return None
    if not isinstance(value, bool):
        raise Refusal(INVALID_FIELD, f"{name}: it is true or false, not {value!r}", _FIELD)
    granted[Symbol(name)] = value
    return value


def _lifetime(asked: Mapping[Any, Any], durable: bool, granted: dict[Any, Any]) -> int:
    """The lifetime policy in force: what is asked for, else what auto-delete says, else on close if it is not durable.

    3.5.9: "the value of this entry MUST be of a type which provides the lifetime-policy archetype".
    """
    policy, auto_delete = asked.get(_POLICY), _flag(asked, "auto-delete", granted)
    if policy is not None:
        known = isinstance(policy, Described) and isinstance(policy.descriptor, (int, str))
        code = _POLICIES.get(policy.descriptor) if known else None
        if code is None:
            raise Refusal(INVALID_FIELD, f"{_POLICY}: {policy!r} is none", _FIELD)
        if auto_delete is False:
            del granted[Symbol("auto-delete")]  # it is deleted, as the policy says
        granted[_POLICY] = policy
        return code
    if auto_delete is False or (durable and auto_delete is None):
        return PERMANENT
    code = NO_LINKS if auto_delete else ON_CLOSE
    granted[_POLICY] = Described(ULong(code), [])
    return code


def _note_modes(asked: Mapping[Any, Any], topic: bool, granted: dict[Any, Any]) -> None:
    """Which distribution modes the node has is not for its maker to choose; who asks for some hears which it has."""
    modes = asked.get(_MODES)
    if modes is None:
        return
    for mode in modes if isinstance(modes, (list, Array)) else (modes,):
        if not isinstance(mode, Symbol):
            raise Refusal(INVALID_FIELD, f"{_MODES}: {mode!r} is no symbol", _FIELD)
    granted[_MODES] = Symbol("copy") if topic else Array([Symbol("move"), Symbol("copy")], 0xA3)


# --- lifetimes


class Keeper(Protocol):
    """What a lifetime asks of the broker."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def remind(self, due: float, timed: Timed) -> None:
        """Call ``timed.on_time`` then."""

    def dismiss(self, timed: Timed) -> None:
        """Never call it again."""


class Deleter(Protocol):
    """Who deletes queues."""

    def delete(self, queue: Queue) -> None:
        """Remove a queue."""


class Lifetime:
    """How long one dynamic queue lives, that does not go with its link."""

    __slots__ = ("_asked", "_home", "is_orphan", "policy", "queue")

    def __init__(self, home: Lifetimes, queue: Queue, policy: int) -> None:
        self._home = home
        self._asked = False
        self.queue = queue
        self.policy = policy
        self.is_orphan = False
        """The link that made it is no more."""

    def look(self) -> None:
        """Something has gone: see at the next turn of the clock whether that was the last of it."""
        if not self._asked and self.policy != PERMANENT:
            self._asked = True
            self._home.keeper.remind(self._home.keeper.now(), self)

    def on_time(self, now: float) -> None:
        self._asked = False
        queue = self.queue
        if queue.deleted or not self._is_unlinked:
            return
        if self.policy == NO_LINKS or not queue.depth:
            self._home.deleter.delete(queue)
            return
        if queue.starved is None:
            queue.starved = []
        if self not in queue.starved:
            queue.starved.append(self)  # told when a message goes

    @property
    def _is_unlinked(self) -> bool:
        """3.5.12 looks at the link that made it, 3.5.11 and 3.5.13 at all; one that is detached may come again."""
        if self.policy == NO_MESSAGES or not self.is_orphan:
            return self.is_orphan
        return not (self.queue.consumers or self.queue.producers)

    def top_up(self) -> None:
        """A message has gone."""
        self.look()

    def lost_queue(self) -> None:
        """Nothing is left to look after."""


class Lifetimes:
    """The dynamic nodes that may outlive the links that made them."""

    def __init__(self, keeper: Keeper, deleter: Deleter) -> None:
        self.keeper = keeper
        self.deleter = deleter
        self._by_queue: dict[Queue, Lifetime] = {}
        self._exchanges: dict[Exchange, int] = {}
        """Those that will outlive their links, and by which policy."""

    def begin(self, node: Queue | Exchange, policy: int) -> None:
        """A node was made by a link, to live by this policy."""
        if policy == ON_CLOSE:
            return
        if isinstance(node, Queue):
            self._by_queue[node] = Lifetime(self, node, policy)
        elif policy != NO_MESSAGES:  # an exchange keeps none
            self._exchanges[node] = policy

    def left(self, queue: Queue) -> None:
        """A link of a queue has gone."""
        if self._by_queue:
            lifetime = self._by_queue.get(queue)
            if lifetime is not None:
                lifetime.look()

    def orphaned(self, node: Queue | Exchange) -> bool:
        """The link that made a node was closed, or its session is over; whether the node goes on all the same."""
        if isinstance(node, Exchange):
            return self._leave_alone(node)
        lifetime = self._by_queue.get(node)
        if lifetime is None:
            return False
        lifetime.is_orphan = True
        lifetime.look()
        return True

    def _leave_alone(self, exchange: Exchange) -> bool:
        """It keeps no messages: from now on it goes with the last link and binding, or it stays."""
        policy = self._exchanges.pop(exchange, None)
        if policy in (NO_LINKS, NO_LINKS_OR_MESSAGES) and not exchange.deleted:
            exchange.change(replace(exchange.settings, auto_delete=True))
            exchange.home.perhaps_unused(exchange)
        return policy is not None

    def forget(self, queue: Queue) -> None:
        """A queue was deleted."""
        lifetime = self._by_queue.pop(queue, None)
        if lifetime is not None:
            self.keeper.dismiss(lifetime)
