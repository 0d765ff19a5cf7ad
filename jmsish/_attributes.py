"""What an application may set on the objects it works with: what they have, and nothing else."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any


class KnownAttributes:
    """Refuses attributes that its class does not have: `consumer.message_listener = …` would else be silence.

    A method can be replaced, as tests of applications do.  Private names are the class's own affair.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] != "_" and not hasattr(type(self), name):
            raise AttributeError(_unknown(type(self), name))
        object.__setattr__(self, name, value)


def _unknown(kind: type, name: str) -> str:
    near = get_close_matches(name, [known for known in dir(kind) if known[0] != "_"], n=1)
    return f"a {kind.__name__} has no {name!r}" + (f": did you mean {near[0]!r}?" if near else "")
