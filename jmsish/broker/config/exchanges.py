"""The sections ``[exchanges]`` and ``[[bindings]]``, checked whole before any of it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jmsish.broker.bindings import EXCHANGE, QUEUE, Binding, understood
from jmsish.broker.config.faults import Table
from jmsish.broker.exchanges import PREDECLARED, check_name, check_type
from jmsish.broker.policy import EXCHANGE_SETTING_NAMES, ExchangeSettings, near_miss

EXCHANGE_KEYS: Final = ("type", *EXCHANGE_SETTING_NAMES)
BINDING_KEYS: Final = ("exchange", "queue", "key", "arguments", "kind")


@dataclass(frozen=True, slots=True)
class ExchangeConfig:
    """An exchange that is to be there from the beginning: its type, and the settings that are said."""

    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def exchanges_of(config: Table) -> dict[str, ExchangeConfig]:
    """The exchanges by name."""
    tables = config.tables_of("exchanges")
    return {name: _exchange(name, table, {*tables, *PREDECLARED}) for name, table in tables.items()}


def _exchange(name: str, table: Table, known: Iterable[str]) -> ExchangeConfig:
    table.check_keys(EXCHANGE_KEYS)
    where, faults, type = table.where, table.faults, table.get("type")
    if name not in PREDECLARED:
        with faults.caught(where):
            check_name(name)
    elif type is not None and type != PREDECLARED[name]:
        faults.add(f"{where}: its type is {PREDECLARED[name]!r}, not {type!r}")
    with faults.caught():
        check_type(type, where)
    settings = {}
    for key in EXCHANGE_SETTING_NAMES:
        if key in table:
            with faults.caught():
                ExchangeSettings.from_mapping({key: table.get(key)}, where)  # no setting's rule depends on another's
                settings[key] = table.get(key)
    if name in PREDECLARED and (settings.get("auto_delete") or not settings.get("durable", True)):
        faults.add(f"{where} is always there: it is durable, and never deleted")
    if settings.get("alternate") is not None:
        with faults.caught():
            _check_known(settings["alternate"], known, "exchange", f"{where} alternate")
        if settings["alternate"] == name:
            faults.add(f"{where} alternate: an exchange cannot be its own")
    return ExchangeConfig(type if isinstance(type, str) else "", settings)


def bindings_of(config: Table, exchanges: Mapping[str, ExchangeConfig], queues: Iterable[str]) -> tuple[Binding, ...]:
    """The bindings, between exchanges and queues of the same configuration."""
    types = {**PREDECLARED, **{name: each.type for name, each in exchanges.items()}}
    names = {QUEUE: set(queues), EXCHANGE: set(types)}
    bindings: list[Binding] = []
    for table in config.list_of("bindings"):
        with table.faults.caught():
            binding = _binding(table, names, types)
            if binding is not None and binding not in bindings:
                _check_alone(binding, bindings, table.where)
                bindings.append(binding)
    return tuple(bindings)


def _check_alone(binding: Binding, bindings: Iterable[Binding], where: str) -> None:
    same = (binding.exchange, binding.kind, binding.queue, binding.key)
    if any((other.exchange, other.kind, other.queue, other.key) == same for other in bindings):
        raise ValueError(f"{where}: {binding.queue!r} has another binding with this key and other arguments")


def _binding(table: Table, names: Mapping[str, set[str]], types: Mapping[str, str]) -> Binding | None:
    where, faults = table.where, table.faults
    before = len(faults.found)
    table.check_keys(BINDING_KEYS)
    for key in ("exchange", "queue"):
        if key not in table:
            faults.add(f"{where} needs the key {key!r}")
    kind = table.get("kind", QUEUE)
    if not isinstance(kind, str) or kind not in names:
        faults.add(f"{where}: the kind is {QUEUE!r} or {EXCHANGE!r}, not {kind!r}")
    for key, of in (("exchange", EXCHANGE), ("queue", kind)):
        if key in table and isinstance(of, str) and of in names:
            with faults.caught():
                _check_known(table.get(key), names[of], of, where)
    if len(faults.found) > before:
        return None
    exchange, arguments = table.get("exchange"), table.get("arguments")
    if not types[exchange]:
        return None  # that its type is wrong has been said
    binding = None
    with faults.caught(where):
        key, _ = understood(types[exchange], table.get("key", ""), arguments)
        binding = Binding(exchange, table.get("queue"), key, None if arguments is None else dict(arguments), kind)
    return binding


def _check_known(name: object, known: Iterable[str], what: str, where: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{where}: the name of the {what} is a string, not {name!r}")
    names = tuple(sorted(known))
    if name not in names:
        raise ValueError(f"{where}: there is no {what} {name!r} in the configuration; {near_miss(name, names)}")
