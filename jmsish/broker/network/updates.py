"""What routers tell each other over their control link: numbered changes, the first of which is everything (R3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jmsish.broker.network.reach import ADDRESS, BETWEEN, CONNECTOR, HOPS_LIMIT, JOIN, PREFIX, ROUTER
from jmsish.engine.values import DecodeError, decode, encode
from jmsish.types import Described, UInt

CONTROL: Final = "$router"
"""The address of a router's control link."""

_AMQP_VALUE: Final = b"\x00\x53\x77"
UPDATE_KEYS: Final = 250
"""So many keys are in one message."""
UPDATE_LIMIT: Final = 1 << 20
"""Octets of a message that a neighbour may send."""
KEY_LIMIT: Final = 2048
"""Octets of a key: an address, or the prefix of a link route with what it leads to."""
KEYS_LIMIT: Final = 1_000_000
EDGE_KEYS_LIMIT: Final = 10_000
"""What one neighbour may tell in all: an interior for many behind it, an edge for its own clients. It is so much less
that no edge can make its interior tell others more than they bear."""
KINDS: Final = (ADDRESS, PREFIX, CONNECTOR, ROUTER, JOIN)


@dataclass(frozen=True, slots=True)
class Update:
    """One message: what can be reached now with the number of hops, and what cannot any more."""

    number: int
    add: Mapping[str, int]
    remove: Sequence[str]


def encode_update(update: Update) -> bytes:
    """The message, a single amqp-value section."""
    add = {key: UInt(hops) for key, hops in update.add.items()}
    return _AMQP_VALUE + encode({"number": UInt(update.number), "add": add, "remove": list(update.remove)})


def decode_update(payload: bytes) -> Update:
    """The update in a message; DecodeError where it is none."""
    section, end = decode(payload, 0)
    if end != len(payload) or not isinstance(section, Described) or section.descriptor != 0x77:
        raise DecodeError("an update is a single amqp-value section", 0)
    body = section.value
    if not isinstance(body, dict):
        raise DecodeError("an update is a map", 0)
    number, add, remove = body.get("number"), body.get("add"), body.get("remove")
    if not isinstance(number, int) or not isinstance(add, dict) or not isinstance(remove, list):
        raise DecodeError("an update has a number, a map of what is new and a list of what is gone", 0)
    for key, hops in add.items():
        if not _is_key(key) or isinstance(hops, bool) or not isinstance(hops, int) or not 0 <= hops < HOPS_LIMIT:
            raise DecodeError(f"{key!r}: {hops!r} is not a key with its hops", 0)
    for key in remove:
        if not _is_key(key):
            raise DecodeError(f"{key!r} is not a key", 0)
    return Update(
        int(number),
        {str(key): int(hops) for key, hops in add.items() if key[0] in KINDS},  # what later ones tell is not for us
        [str(key) for key in remove if key[0] in KINDS],
    )


def _is_key(key: object) -> bool:
    return isinstance(key, str) and 1 < len(key) <= KEY_LIMIT and len(key.encode("utf-8", "replace")) <= KEY_LIMIT


def edge_fault(update: Update, router: str) -> str | None:
    """What an edge may not tell. It is not trusted: nobody is behind it, and it answers for itself alone."""
    for key, hops in update.add.items():
        kind, rest = key[0], key[1:]
        home = rest.rpartition(BETWEEN)[2].partition("/")[0]
        if hops:
            return f"{rest!r} is not {hops} hops behind an edge, for nothing is behind one"
        if kind == JOIN or (kind == ROUTER and rest != router) or (kind in (PREFIX, CONNECTOR) and home != router):
            return f"an edge answers for itself alone, and not for {rest!r}"
    return None
