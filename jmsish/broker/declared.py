"""What a configuration says of exchanges and bindings, checked whole before any of it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jmsish.broker.bindings import EXCHANGE, QUEUE, Binding, understood
from jmsish.broker.exchanges import PREDECLARED, check_name, check_type
from jmsish.broker.policy import EXCHANGE_SETTING_NAMES, ExchangeSettings, near_miss
from jmsish.errors import InvalidSelectorError

EXCHANGE_KEYS: Final = ("type", *EXCHANGE_SETTING_NAMES)
BINDING_KEYS: Final = ("exchange", "queue", "key", "arguments", "kind")


@dataclass(frozen=True, slots=True)
class ExchangeConfig:
    """An exchange that is to be there from the beginning: its type, and the settings that are said."""

    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def exchanges_of(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, ExchangeConfig]:
    """The tables ``[exchanges.NAME]``; ``ValueError`` or ``TypeError`` names the place."""
    exchanges: dict[str, ExchangeConfig] = {}
    for name, table in tables.items():
        where = f"[exchanges.{name}]"
        _check_keys(table, EXCHANGE_KEYS, where)
        type = table.get("type")
        if name not in PREDECLARED:
            try:
                check_name(name)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
        elif type is not None and type != PREDECLARED[name]:
            raise ValueError(f"{where}: its type is {PREDECLARED[name]!r}, not {type!r}")
        check_type(type, where)
        settings = {key: value for key, value in table.items() if key != "type"}
        checked = ExchangeSettings.from_mapping(settings, where)
        if name in PREDECLARED and (checked.auto_delete or not settings.get("durable", True)):
            raise ValueError(f"{where} is always there: it is durable, and never deleted")
        if checked.alternate is not None:
            _check_known(checked.alternate, {*tables, *PREDECLARED}, "exchange", f"{where} alternate")
            if checked.alternate == name:
                raise ValueError(f"{where} alternate: an exchange cannot be its own")
        assert isinstance(type, str)
        exchanges[name] = ExchangeConfig(type, settings)
    return exchanges


def bindings_of(
    tables: Iterable[Mapping[str, Any]], exchanges: Mapping[str, ExchangeConfig], queues: Iterable[str]
) -> tuple[Binding, ...]:
    """The tables ``[[bindings]]``, between exchanges and queues of the same configuration."""
    types = {**PREDECLARED, **{name: each.type for name, each in exchanges.items()}}
    names = {QUEUE: set(queues), EXCHANGE: set(types)}
    bindings: list[Binding] = []
    for number, table in enumerate(tables, 1):
        where = f"[[bindings]] {number}"
        binding = _binding(table, names, types, where)
        for other in bindings:
            if other == binding:
                break
            same = (binding.exchange, binding.kind, binding.queue, binding.key)
            if (other.exchange, other.kind, other.queue, other.key) == same:
                raise ValueError(f"{where}: {binding.queue!r} has another binding with this key and other arguments")
        else:
            bindings.append(binding)
    return tuple(bindings)


def _binding(table: Mapping[str, Any], names: Mapping[str, set[str]], types: Mapping[str, str], where: str) -> Binding:
    _check_keys(table, BINDING_KEYS, where)
    for key in ("exchange", "queue"):
        if key not in table:
            raise ValueError(f"{where} needs the key {key!r}")
    kind = table.get("kind", QUEUE)
    if kind not in names:
        raise ValueError(f"{where}: the kind is {QUEUE!r} or {EXCHANGE!r}, not {kind!r}")
    exchange, target, arguments = table["exchange"], table["queue"], table.get("arguments")
    _check_known(exchange, names[EXCHANGE], "exchange", where)
    _check_known(target, names[kind], kind, where)
    try:
        key, _ = understood(types[exchange], table.get("key", ""), arguments)
    except InvalidSelectorError as error:
        raise ValueError(f"{where}: {error}") from None
    except (ValueError, TypeError) as error:
        raise type(error)(f"{where}: {error}") from None
    return Binding(exchange, target, key, None if arguments is None else dict(arguments), kind)


def _check_known(name: object, known: Iterable[str], what: str, where: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{where}: the name of the {what} is a string, not {name!r}")
    names = tuple(sorted(known))
    if name not in names:
        raise ValueError(f"{where}: there is no {what} {name!r} in the configuration; {near_miss(name, names)}")


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"unknown key {key!r} in {where}: {near_miss(key, known)}")
