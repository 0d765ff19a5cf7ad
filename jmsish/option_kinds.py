"""What values an option takes: the check of a Python value, and how the text of a URL is read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from sys import float_info
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = [
    "CALLABLE",
    "FLAG",
    "HALF_CHARACTER",
    "NAMES",
    "OBJECT",
    "PLACE",
    "PROXY",
    "TEXT",
    "VHOST",
    "Checked",
    "WATCHER",
    "Kind",
    "Proxy",
    "choice",
    "count",
    "option",
    "optional",
    "read_proxy",
    "seconds",
    "unknown_name",
]

_LONGEST_HOST = 255
HALF_CHARACTER = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Kind:
    """``check`` gives what an option keeps of a Python value, ``read`` of a text; both raise what is wrong with it."""

    check: Callable[[str, Any], Any]
    read: Callable[[str, str], Any]


def option(default: Any, kind: Kind) -> Any:
    """A field of a dataclass of options."""
    return dataclasses.field(default=default, metadata={"kind": kind})


class Checked:
    """Checks every field by its kind when the object is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, default, check in _fields(kind):
            value = getattr(self, name)
            if value is not default:  # which is as the check would leave it
                object.__setattr__(self, name, check(name, value))


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any, Callable[[str, Any], Any]], ...]:
    """Of each field of a class of options its name, its default and the check of its kind."""
    return tuple((each.name, each.default, each.metadata["kind"].check) for each in dataclasses.fields(kind))


def count(minimum: int, maximum: int = (1 << 31) - 1, *, optional: bool = False) -> Kind:
    """A whole number in a range; ``None``, no limit, where that is allowed."""

    def check(name: str, value: Any) -> Any:
        if value is None and optional:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is a whole number, not {value!r}")
        if not minimum <= value <= maximum:
            raise ValueError(f"{name}={value} is out of range ({minimum} to {maximum})")
        return int(value)

    def read(name: str, text: str) -> Any:
        # Qpid JMS writes "no limit" as -1.
        if optional and text.lower() in ("none", "-1"):
            return None
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{name}={text}: not a whole number") from None

    return Kind(check, read)


def seconds(*, optional: bool, per_second: int = 1) -> Kind:
    """A duration; ``None`` is for ever. In a URL it is counted in units of which a second has ``per_second``."""

    def check(name: str, value: Any) -> Any:
        if value is None and optional:
            return None
        if isinstance(value, timedelta):
            value = value.total_seconds()
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} is a number of seconds or a timedelta, not {value!r}")
        if not 0 <= value <= float_info.max:
            raise ValueError(f"{name}={value} is out of range (0 or more seconds)")
        return value

    def read(name: str, text: str) -> Any:
        if optional and text.lower() in ("none", "-1"):
            return None
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"{name}={text}: not a number") from None
        return number / per_second

    return Kind(check, read)


def choice(*choices: str) -> Kind:
    """One of a few words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name} is one of {', '.join(choices)}, not {value!r}")
        if value not in choices:
            raise ValueError(unknown_name(f"value of {name}", value, choices))
        return value

    return Kind(check, lambda name, text: text)


def optional(kind: Kind) -> Kind:
    """The same, or ``None``."""
    return Kind(lambda name, value: None if value is None else kind.check(name, value), kind.read)


def _check_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    return value


def _read_flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{name}={text}: neither true nor false")
    return text.lower() == "true"


def _check_vhost(name: str, value: Any) -> str | None:
    text = _check_text(name, value)
    if text is not None and len(text.encode()) > _LONGEST_HOST:
        raise ValueError(f"{name} has {_LONGEST_HOST} octets at most, as the name of a host")
    return text


def _check_str(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {type(value).__name__}")  # the value may be a password
    return value


def _check_text(name: str, value: Any) -> str | None:
    # An error of the codec would come late, and hold the whole text, which may be a password.
    text = _check_str(name, value)
    if HALF_CHARACTER.search(text or ""):
        raise ValueError(f"{name} has a lone surrogate, which nothing can be made of")
    return text


def _check_place(name: str, value: Any) -> str | None:
    text = _check_str(name, value)
    if text == "":
        raise ValueError(f"{name} is empty; None, or leaving it out, is the default")
    if text is not None and "\0" in text:
        raise ValueError(f"{name} has a NUL in it")
    return text


def _check_names(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(value.split(",")) if isinstance(value, str) else tuple(value)
    if not names or not all(isinstance(item, str) and item for item in names):
        raise ValueError(f"{name} is one or more names, not {value!r}")
    return tuple(item.strip().upper() for item in names)


def _check_callable(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise TypeError(f"{name} is a callable, not {type(value).__name__}")  # it may be the token itself
    return value


def _check_watcher(name: str, value: Any) -> Any:
    if value is not None and value is not False and not hasattr(value, "session_kind"):
        raise TypeError(f"{name} is a jmsish.otel.Telemetry, False or None, not {value!r}")
    return value


def _no_text(name: str, text: str) -> Any:
    raise ValueError(f"{name} cannot be given in a URL, only as a keyword")


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy; an empty host says that none is to be used."""

    host: str
    port: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)


NO_HOST = re.compile(r"[\s,;()\x00-\x1f\x7f\ud800-\udfff]")
"""What is in no name of a host; a NUL would end one early, in a resolver or a certificate."""


def read_proxy(name: str, url: str) -> Proxy:
    """The proxy of a URL ``http://[user:password@]host:port``; ``ValueError`` shows no password."""
    if not url:
        return Proxy("")
    wanted = f"{name} is an HTTP proxy, as http://host:port"
    found = None
    with suppress(ValueError):  # whose text, and that of its context, may be a password where the port should be
        parts = urlsplit(url if "://" in url else f"http://{url}")
        found = parts.hostname, parts.port
    if found is None:
        raise ValueError(f"{wanted}: the port is no number from 1 to 65535, or an IPv6 address has no brackets")
    host, port = found
    if parts.scheme != "http":
        raise ValueError(f"{wanted}, and not one of the scheme {parts.scheme!r}")
    if not host or NO_HOST.search(host) or port == 0 or parts.path.strip("/") or parts.query:
        raise ValueError(wanted)
    user, secret = (None if text is None else unquote(text) for text in (parts.username, parts.password))
    if HALF_CHARACTER.search(f"{user}{secret}"):
        raise ValueError(f"{name} has a lone surrogate in its user or password, which cannot be sent")
    return Proxy(host, port or 80, user, secret)


def _check_proxy(name: str, value: Any) -> Proxy | None:
    if isinstance(value, str):
        return read_proxy(name, value)
    if value is not None and not isinstance(value, Proxy):
        raise TypeError(f"{name} is a str, not {type(value).__name__}")
    return value


PROXY = Kind(_check_proxy, lambda name, text: text)
FLAG = Kind(_check_flag, _read_flag)
TEXT = Kind(_check_text, lambda name, text: text)
VHOST = Kind(_check_vhost, lambda name, text: text)
PLACE = Kind(_check_place, lambda name, text: text)
"""A file or a host: an empty one, as of a variable that is not set, would be passed over in silence."""
NAMES = Kind(_check_names, lambda name, text: text)
CALLABLE = Kind(_check_callable, _no_text)
WATCHER = Kind(_check_watcher, _no_text)
OBJECT = Kind(lambda name, value: value, _no_text)


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known: with the nearest one that is, or with all."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    if not near:
        # A part that is right (jms.prefetch for prefetch) is a small part of a long name.
        near = [candidate for candidate in known if candidate.rpartition(".")[2] == name.rpartition(".")[2]][:1]
    if near:
        return f"unknown {what} {name!r}: did you mean {near[0]!r}?"
    return f"unknown {what} {name!r}; there are: {', '.join(sorted(known))}"
