"""What is wrong in a configuration: all of it is found, each fault with its place, and told in one error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jmsish.broker.policy import LARGEST_LONG, is_number, near_miss
from jmsish.errors import InvalidSelectorError


class ConfigurationError(ValueError):
    """A configuration that is not valid: every fault that it has, in its order, each with its place."""

    def __init__(self, errors: Iterable[str], path: str = "") -> None:
        self.errors = tuple(errors)
        """One sentence for each fault."""
        head = f"{path}: " if path else ""
        if len(self.errors) == 1:
            text = f"{head}{self.errors[0]}"
        else:
            text = "\n  ".join((f"{head}{len(self.errors)} errors in the configuration:", *self.errors))
        super().__init__(text)

    def in_file(self, path: str) -> ConfigurationError:
        """The same, with the path of the file in front."""
        return ConfigurationError(self.errors, path)


class Faults:
    """The faults found so far."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, sentence: str) -> None:
        """One more, which names its place."""
        self.found.append(sentence)

    @contextmanager
    def caught(self, where: str = "") -> Iterator[None]:
        """What the block raises of a value is a fault, at ``where`` if its sentence does not say that itself."""
        try:
            yield
        except (ValueError, TypeError, InvalidSelectorError) as error:
            self.add(f"{where}: {error}" if where else str(error))

    def check(self) -> None:
        """Raise :class:`ConfigurationError` where there were any."""
        if self.found:
            raise ConfigurationError(self.found)


class Table:
    """One table of a configuration, read key by key; what is wrong is added to the faults and read as its default."""

    __slots__ = ("faults", "table", "where")

    def __init__(self, value: object, where: str, faults: Faults) -> None:
        self.where = where
        self.faults = faults
        self.table: Mapping[str, Any] = {}
        if not isinstance(value, Mapping):
            faults.add(f"{where} must be a table, not {type(value).__name__}")
            return
        for key in value:
            if not isinstance(key, str):
                faults.add(f"{where}: a name must be a string, not {key!r}")
        self.table = {key: value[key] for key in value if isinstance(key, str)}

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def get(self, key: str, default: Any = None) -> Any:
        """The value as it stands there."""
        return self.table.get(key, default)

    def check_keys(self, known: Sequence[str], not_yet: Sequence[str] = ()) -> None:
        """Every key is one of those; ``not_yet`` are refused by name, never silently ignored."""
        for key in self.table:
            if key in not_yet:
                self.faults.add(f"{key!r} in {self.where} is not supported in this version")
            elif key not in known:
                self.faults.add(f"unknown key {key!r} in {self.where}: {near_miss(key, tuple(known))}")

    def wrong(self, key: str, wanted: str) -> None:
        """The value of a key is not what is wanted there."""
        self.faults.add(f"{self.where} {key} must be {wanted}, not {self.table[key]!r}")

    # --- values

    def flag(self, key: str, default: Any = False) -> Any:
        """True or false, and nothing that only looks so: the text ``"True"`` is refused."""
        value = self.table.get(key, default)
        if key in self.table and not isinstance(value, bool):
            self.wrong(key, "true or false")
            return default
        return value

    def count(self, key: str, default: Any = 0, *, least: int = 0, most: int | None = None) -> Any:
        """A whole number, which fits 64 bits with a sign unless ``most`` says otherwise."""
        value = self.table.get(key, default)
        if key not in self.table:
            return default
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and least <= value <= (LARGEST_LONG if most is None else most):
            return value
        is_bounded = most is not None or (is_whole and value > least)
        top = LARGEST_LONG if most is None else most
        self.wrong(key, f"a whole number from {least} to {top}" if is_bounded else f"a whole number, {least} or more")
        return default

    def seconds(self, key: str, default: float = 0.0) -> float:
        """A number of seconds, 0 or more; to wait for ever is 0, and not an infinite number."""
        value = self.table.get(key, default)
        if not is_number(value) or value < 0:
            self.wrong(key, "seconds, 0 or more")
            return default
        return float(value)

    def text(self, key: str, default: Any = None) -> Any:
        """A string."""
        value = self.table.get(key, default)
        if key in self.table and not isinstance(value, str):
            self.wrong(key, "a string")
            return default
        return value

    def choice(self, key: str, known: Sequence[str], default: Any = None) -> Any:
        """One of a few words."""
        value = self.table.get(key, default)
        if key in self.table and value not in known:
            self.wrong(key, f"one of {', '.join(known)}")
            return default
        return value

    def texts(self, key: str, default: Any = (), *, or_one: bool = False) -> Any:
        """A list of strings; ``or_one``: one by itself is a list of one."""
        value = self.table.get(key)
        if key not in self.table:
            return default
        if or_one and isinstance(value, str):
            return (value,)
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            self.wrong(key, "a string, or a list of strings" if or_one else "a list of strings")
            return default
        for each in value:
            if not isinstance(each, str):
                self.faults.add(f"{self.where} {key} must be a list of strings, and has {each!r}")
        return tuple(each for each in value if isinstance(each, str))

    # --- tables

    def table_of(self, key: str) -> Table:
        """The table of that name, empty where there is none."""
        return Table(self.table.get(key, {}), f"{self._head}{key}]", self.faults)

    def tables_of(self, key: str) -> dict[str, Table]:
        """The tables by name in the table of that name: ``[key.NAME]``."""
        outer = self.table_of(key)
        return {name: Table(value, f"{self._head}{key}.{name}]", self.faults) for name, value in outer.table.items()}

    def list_of(self, key: str) -> list[Table]:
        """The tables ``[[key]]``, numbered from 1."""
        value = self.table.get(key, ())
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            self.faults.add(f"[[{key}]] must be a list of tables, not {type(value).__name__}")
            return []
        return [Table(item, f"[[{key}]] {number}", self.faults) for number, item in enumerate(value, 1)]

    @property
    def _head(self) -> str:
        return f"{self.where[:-1]}." if self.where.startswith("[") else "["
