"""Changes of bindings by request: one or many, checked whole, in force at once or staged in a freeze.

Who changes an exchange that is frozen waits for its turn, and is answered then; meanwhile nobody waits for this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jmsish.broker.asked import CREATED, NO_CONTENT, OK, STAGED, Answer, Asked, unpacked
from jmsish.broker.bindings import EXCHANGE, QUEUE, identity, understood
from jmsish.broker.entities import BAD_REQUEST, CONFLICT, NOT_FOUND, Refused
from jmsish.broker.exchange_kinds import MARK, BindingKind, ExchangeKind, places_of
from jmsish.broker.leading import check_binding
from jmsish.broker.leases import staging_of
from jmsish.broker.policy import near_miss
from jmsish.errors import InvalidDestinationError, JMSError

if TYPE_CHECKING:
    from jmsish.broker.changes import Changes
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.exchanges import Exchange, Exchanges
    from jmsish.broker.queues import Queue

_EXCHANGES: Final = ExchangeKind()
_BINDINGS: Final = BindingKind()
_WAYS: Final = ("lease", "timeout")
_KEYS: Final = ("exchange", "queue", "destination", "key", "bindingKey", "arguments", "kind", "replace")

Said = Answer | Future[Answer]
"""An answer now, or when it is done."""


class Item(NamedTuple):
    """A binding as a request says it."""

    where: str
    """How errors call it."""
    exchange: str | None
    target: str
    key: str = ""
    arguments: Mapping[str, Any] | None = None
    kind: str | None = None
    """None: the queue of that name, or else the exchange."""
    replace: bool = False


def item_of(value: Any, where: str) -> Item:
    """A binding from a map, or from a list ``[queue, key, arguments]``."""
    if isinstance(value, (list, tuple)) and 1 <= len(value) <= 3:
        value = dict(zip(("queue", "key", "arguments"), value, strict=False))
    if not isinstance(value, Mapping):
        raise Refused(BAD_REQUEST, f"{where} must be a map with queue and key, or a list of them, not {value!r}")
    for key in value:
        if key not in _KEYS:
            hint = near_miss(key, _KEYS) if isinstance(key, str) else f"known are {', '.join(_KEYS)}"
            raise Refused(BAD_REQUEST, f"{where}: a binding has no {key!r}: {hint}")
    return _item(value.get, where)


def _item(get: Callable[[str], Any], where: str) -> Item:
    target, kind = _text(get, where, "queue", "destination"), _text(get, where, "kind")
    if not target:
        raise Refused(BAD_REQUEST, f"{where}: the name of the queue (or of another exchange) is missing")
    if kind not in (None, QUEUE, EXCHANGE):
        raise Refused(BAD_REQUEST, f"{where}: the kind of a binding is {QUEUE!r} or {EXCHANGE!r}, not {kind!r}")
    if kind is None and target.startswith(MARK):
        kind, target = EXCHANGE, target[len(MARK) :]
    elif kind is None and get("queue") is not None:
        kind = QUEUE
    arguments = unpacked(get("arguments"), f"{where}: arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise Refused(BAD_REQUEST, f"{where}: arguments must be a map, not {arguments!r}")
    replace = get("replace")
    if replace not in (None, True, False, "true", "false"):
        raise Refused(BAD_REQUEST, f"{where}: replace must be true or false, not {replace!r}")
    key = _text(get, where, "bindingKey", "key") or ""
    return Item(where, _text(get, where, "exchange"), target, key, arguments or None, kind, replace in (True, "true"))


def _text(get: Callable[[str], Any], where: str, *names: str) -> str | None:
    for name in names:
        value = get(name)
        if value is not None:
            if not isinstance(value, str):
                raise Refused(BAD_REQUEST, f"{where}: {name} must be a text, not {value!r}")
            return value
    return None


def lists_of(asked: Asked) -> tuple[list[Item], list[Item]]:
    """What is to be added and what removed."""
    found = []
    for name in ("add", "remove"):
        value = unpacked(asked.argument(name), name)
        if value is None:
            value = ()
        if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            raise Refused(BAD_REQUEST, f"{name} must be a list of bindings, not {value!r}")
        found.append([item_of(each, f"{name}[{number}]") for number, each in enumerate(value)])
    return found[0], found[1]


# --- staged


def put(changes: Changes, item: Item, who: ServerConnection | None) -> bool:
    """Bind what an item names, for who asks; False where it is bound so already."""
    exchange = changes.exchange
    where = f"{item.where} ({item.target!r}, key {item.key!r})"
    target = _target(exchange, item)
    check_binding(who, exchange, item.key, item.target)
    try:
        key, wanted = understood(exchange.type, item.key, item.arguments)
        existing = changes.table.find(identity(target), key)
        if existing is not None and existing.asked != wanted and not item.replace:
            raise Refused(
                CONFLICT,
                f"{where}: {exchange.name!r} has this binding with other arguments, {existing.binding.arguments!r}: "
                "remove it first, or say replace",
            )
        return changes.bind(target, item.key, None, item.arguments, replace=item.replace)
    except InvalidDestinationError as error:
        raise Refused(NOT_FOUND, f"{where}: {error}") from None
    except (ValueError, TypeError, JMSError) as error:
        raise Refused(BAD_REQUEST, f"{where}: {error}") from None


def take(changes: Changes, item: Item) -> None:
    """Unbind what an item names."""
    exchange = changes.exchange
    where = f"{item.where} ({item.target!r}, key {item.key!r})"
    target = _target(exchange, item)
    try:
        found = changes.unbind(target, item.key)
    except (ValueError, TypeError) as error:
        raise Refused(BAD_REQUEST, f"{where}: {error}") from None
    if not found:
        raise Refused(NOT_FOUND, f"{where}: there is no such binding in {exchange.name!r}")


def _target(exchange: Exchange, item: Item) -> Queue | Exchange:
    home: Exchanges = exchange.home
    queue = home.queues.get(item.target) if item.kind != EXCHANGE else None
    other = home.get(item.target) if item.kind != QUEUE else None
    if queue is None and other is None:
        what = {QUEUE: "queue", EXCHANGE: "exchange", None: "queue and no exchange"}[item.kind]
        raise Refused(NOT_FOUND, f"{item.where}: there is no {what} {item.target!r}")
    if item.exchange is not None and item.exchange != exchange.name:
        raise Refused(BAD_REQUEST, f"{item.where}: it is a binding of {item.exchange!r}, not of {exchange.name!r}")
    return queue if queue is not None else other  # type: ignore[return-value]


def _change(asked: Asked, exchange: Exchange, stage: Callable[[Changes], Answer]) -> Said:
    """Stage changes in the freeze that the request names, or put them in force when the exchange lets them in."""
    lease = asked.text("lease")
    if lease is not None:
        with staging_of(asked, lease, (exchange.name,)) as (changes,):
            said = stage(changes)
        return said if said.status == NO_CONTENT else said._replace(status=STAGED, description="Staged")

    def act() -> Answer:
        changes = exchange.changes()
        said = stage(changes)
        changes.put_in_force()
        return said

    timeout = asked.seconds("timeout")
    return asked.broker.freezes.write(exchange, act, asked.connection, timeout=timeout).done


# --- operations


def bind(asked: Asked) -> Said:
    """BIND: one binding of an exchange; 201, or 200 where it is there already."""
    asked.check(*_KEYS, *_WAYS)
    return _bind(asked, _EXCHANGES.find(asked.broker, asked.name), _item(asked.argument, "the binding"))


def create(asked: Asked) -> Said:
    """CREATE of a binding, by its attributes or by its identity."""
    exchange, item = _binding(asked)
    return _bind(asked, exchange, item)


def _bind(asked: Asked, exchange: Exchange, item: Item) -> Said:
    def stage(changes: Changes) -> Answer:
        changed = put(changes, item, asked.connection)
        bound = changes.table.find(identity(_target(exchange, item)), exchange.normal(item.key))
        assert bound is not None
        status, description = (CREATED, "Created") if changed else (OK, "OK")
        return Answer(status, description, _BINDINGS.said(bound.binding))

    return _change(asked, exchange, stage)


def unbind(asked: Asked) -> Said:
    """UNBIND: one binding of an exchange goes."""
    asked.check(*_KEYS, *_WAYS)
    return _unbind(asked, _EXCHANGES.find(asked.broker, asked.name), _item(asked.argument, "the binding"))


def delete(asked: Asked) -> Said:
    """DELETE of a binding, by its attributes or by its identity."""
    exchange, item = _binding(asked)
    return _unbind(asked, exchange, item)


def update(asked: Asked) -> Said:
    """UPDATE of a binding: other arguments, in one step with the end of those it has."""
    exchange, item = _binding(asked)

    def stage(changes: Changes) -> Answer:
        key = exchange.normal(item.key)
        if changes.table.find(identity(_target(exchange, item)), key) is None:
            raise Refused(NOT_FOUND, f"{item.where}: there is no such binding in {exchange.name!r}")
        put(changes, item._replace(replace=True), asked.connection)
        bound = changes.table.find(identity(_target(exchange, item)), key)
        assert bound is not None
        return Answer(OK, "OK", _BINDINGS.said(bound.binding))

    return _change(asked, exchange, stage)


def _unbind(asked: Asked, exchange: Exchange, item: Item) -> Said:
    def stage(changes: Changes) -> Answer:
        take(changes, item)
        return Answer(NO_CONTENT, "No Content", {})

    return _change(asked, exchange, stage)


def _binding(asked: Asked) -> tuple[Exchange, Item]:
    """The binding that a request means: its attributes say it, or its identity."""
    asked.check(*_KEYS, *_WAYS, *_BINDINGS.attributes)
    broker, name = asked.broker, asked.name_if_any
    if asked.argument("exchange") is not None:
        item = _item(asked.argument, "the binding")
        return _EXCHANGES.find(broker, str(item.exchange)), item
    if name is None:
        raise Refused(BAD_REQUEST, "which binding? Say exchange, queue and key, or a name exchange/queue/key")
    if asked.request.operation != "CREATE":
        exchange, bound = _BINDINGS.find(broker, name)
        binding, arguments = bound.binding, asked.argument("arguments")
        said = {"queue": binding.queue, "kind": binding.kind, "key": binding.key, "arguments": arguments}
        return exchange, _item(said.get, f"the binding {name!r}")
    exchange, places = places_of(broker, name)
    there = [(target, key) for target, key in places if _exists(exchange, target)]
    if len(there) != 1:
        problem = "there is no such queue" if not there else "it may mean several: say exchange, queue and key"
        raise Refused(BAD_REQUEST if there else NOT_FOUND, f"the binding {name!r}: {problem}")
    ((target, key),) = there
    kind, _, queue = target.partition(":")
    said = {**{each: asked.argument(each) for each in ("arguments", "replace")}, "queue": queue, "kind": kind}
    return exchange, _item({**said, "key": key}.get, f"the binding {name!r}")


def _exists(exchange: Exchange, target: str) -> bool:
    kind, _, name = target.partition(":")
    home = exchange.home
    return name in home.queues if kind == QUEUE else home.get(name) is not None


def rebind(asked: Asked) -> Said:
    """REBIND: bindings are removed and others added in one step, or nothing is changed."""
    asked.check("add", "remove", *_WAYS)
    exchange = _EXCHANGES.find(asked.broker, asked.name)
    add, remove = lists_of(asked)

    def stage(changes: Changes) -> Answer:
        for item in remove:
            take(changes, item)
        added = sum([put(changes, item, asked.connection) for item in add])
        size = changes.table.size
        return Answer(OK, "OK", {"exchange": exchange.name, "added": added, "removed": len(remove), "bindings": size})

    return _change(asked, exchange, stage)


def thaw_stage(changes: Sequence[Changes], asked: Asked) -> None:
    """Stage what a THAW brings with it; items name their exchange where several are frozen."""
    asked.check("add", "remove", "lease")
    of = {each.exchange.name: each for each in changes}
    add, remove = lists_of(asked)
    for items, do in ((remove, take), (add, partial(put, who=asked.connection))):
        for item in items:
            name = item.exchange
            if name is None and len(of) == 1:
                (name,) = of
            if name not in of:
                frozen = ", ".join(map(repr, of))
                raise Refused(BAD_REQUEST, f"{item.where}: exchange must be one of those that are frozen: {frozen}")
            do(of[name], item)


# --- as Broker-J has them


def bind_as_broker_j(asked: Asked) -> Said:
    """``bind``: whether anything changed; other arguments take the place of those there are where that is said."""
    exchange = _EXCHANGES.find(asked.broker, asked.name)
    item = _item(asked.argument, "the binding")
    item = item._replace(replace=asked.argument("replaceExistingArguments") in (True, "true"))
    return _change(asked, exchange, lambda changes: Answer(OK, "OK", put(changes, item, asked.connection)))


def unbind_as_broker_j(asked: Asked) -> Said:
    """``unbind``: whether there was such a binding."""
    exchange = _EXCHANGES.find(asked.broker, asked.name)
    item = _item(asked.argument, "the binding")
    return _change(asked, exchange, lambda changes: Answer(OK, "OK", changes.unbind(_target(exchange, item), item.key)))
