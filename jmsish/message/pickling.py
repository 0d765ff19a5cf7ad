"""Python objects as octets, and back for those who name the classes that may come.

To read a pickle is to run what its sender wrote in it, so nothing here reads one by itself. Whoever does names the
classes whose objects it may hold; a pickle that asks for anything else, a function above all, is refused before it is
run. Even so a sender can put any state into an object of a class that is allowed: allow classes of plain data, and read
pickles only of senders that are trusted to that degree.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from enum import EnumMeta
from typing import Any

from jmsish.errors import MessageFormatError

__all__ = ["pickled", "unpickled"]

_PROTOCOL = 4
"""Read by every Python that there is since 3.4."""


def pickled(value: Any) -> bytes:
    """The value as octets; ``MessageFormatError`` if it cannot be pickled."""
    import pickle  # for the few who ask for it: not a part of every start

    try:
        return pickle.dumps(value, _PROTOCOL)
    except Exception as fault:  # an object's own __reduce__ may raise anything
        raise MessageFormatError(f"a value of type {type(value).__name__} cannot be pickled: {fault}") from fault


def unpickled(octets: bytes, allow: Iterable[type]) -> Any:
    """The value of a pickle that holds nothing but plain values and objects of the classes in ``allow``.

    ``TypeError`` for an ``allow`` that is no collection of classes; ``MessageFormatError`` for a pickle that asks for
    anything else, or is none.
    """
    import pickle  # as above

    allowed = _by_name(allow)

    def member(kind: Any, name: Any) -> Any:
        """How some versions of Python (3.11.0 to 3.11.3) write a member of an enumeration, and nothing else."""
        if not (isinstance(kind, EnumMeta) and kind in allowed.values()):
            raise pickle.UnpicklingError("it asks for builtins.getattr, which is not among the classes allowed")
        return kind[name]

    class Unpickler(pickle.Unpickler):
        """Knows the classes that are allowed, and imports none."""

        def find_class(self, module: str, name: str) -> Any:
            if (module, name) == ("builtins", "getattr"):
                return member
            found = allowed.get((module, name))
            if found is None:
                raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not among the classes allowed")
            return found

    try:
        return Unpickler(io.BytesIO(octets)).load()
    except Exception as fault:  # an allowed class may raise anything at what the sender gives it
        raise MessageFormatError(f"the pickle cannot be read: {fault}") from fault


def _by_name(allow: Iterable[type]) -> dict[tuple[str, str], type]:
    if isinstance(allow, type) or not isinstance(allow, Iterable):
        raise TypeError(f"allow is a collection of classes, not {allow!r}")
    allowed = {}
    for kind in allow:
        if not isinstance(kind, type):
            raise TypeError(f"allow takes classes, not {kind!r}")
        allowed[kind.__module__, kind.__qualname__] = kind
    return allowed
