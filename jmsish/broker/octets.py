"""Messages written anew where a broker may write: the header and the annotations. The bare message stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jmsish.engine.codec import encode_header, split_header, with_annotations, with_header


def for_delivery(payload: bytes, count: int, expires: float, now: float) -> bytes:
    """The octets to send: count of failed deliveries and remaining time to live in the header, where there is need.

    A message that came without a header leaves without one the first time (W17), and "the transmitted message's
    header SHOULD contain a ttl that is computed as the difference" (3.2.1) where it came with a ttl.
    """
    head, rest = head_for_delivery(payload, count, expires, now)
    return head + payload[rest:] if rest or head else payload


def head_for_delivery(payload: bytes, count: int, expires: float, now: float) -> tuple[bytes, int]:
    """The same in two pieces: what is sent first, and from where on the octets follow as they are."""
    header, rest = split_header(payload)
    if header is not None and header.ttl is not None and expires:
        left = max(0, round((expires - now) * 1000))
        header = header._replace(ttl=min(left, 0xFFFFFFFF))
    elif not count:
        return b"", 0
    return with_header(payload[:rest], header, rest, count), rest


def for_another_life(payload: bytes) -> bytes:
    """The octets with neither time to live nor delivery count: of a message that goes on in another queue."""
    header, rest = split_header(payload)
    if header is None or (header.ttl is None and not header.delivery_count):
        return payload
    return with_header(payload, header._replace(ttl=None), rest, 0)


def annotated(payload: bytes, annotations: Mapping[Any, Any]) -> bytes:
    """The octets with message annotations added; those of the same name are replaced (3.4.5, modified)."""
    header, rest = split_header(payload)
    octets = with_annotations(payload, rest, {str(key): value for key, value in annotations.items()})
    return octets if header is None else encode_header(header) + octets
