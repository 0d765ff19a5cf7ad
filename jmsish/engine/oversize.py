"""Deliveries that are larger than their link takes (Part 2, 2.7.3: max-message-size).

Theory of operation.  What counts is the payload of the transfers of a delivery, octet by octet: the annotated message,
without frame headers and performatives. The frame that goes beyond the limit is not kept, nor is what came before it,
so a delivery never costs more than the limit and the frame that is being read. It is reported once, at that frame; what
still comes of it is read and dropped, and its end is reported again, or that it finds none (``Engine.discard_limit``).

A peer may write its open, its attach and its first transfers in one go. Who answers the open then learns of a limit
when these transfers have been read already: :func:`limit_messages` sets the limit and measures them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import ABORTED, DELIVERED, OVERSIZE, OVERSIZE_ENDED

if TYPE_CHECKING:
    from .delivery import Delivery
    from .engine import Engine
    from .link import Link

__all__ = ["drop", "exceed", "limit_messages"]


def drop(link: Link, delivery: Delivery, size: int, more: bool) -> None:
    """A frame of ``size`` octets by which a delivery is beyond its link's limit, or which comes after that."""
    if not more:
        link.current = None
        link.arm()
    elif link.current is None:
        link.current = delivery
        link.disarm()
    engine = link.session.engine
    if not delivery.oversize:
        delivery.complete = not more
        engine.report(exceed(link, delivery))
        return
    before = link.discarded
    link.discarded += size
    if not more:
        delivery.complete = True
    elif not before <= engine.discard_limit < link.discarded:
        return
    engine.report((OVERSIZE_ENDED, link, delivery))


def exceed(link: Link, delivery: Delivery) -> tuple[Any, ...]:
    """Forget what came of a delivery that is too large; the event that says so."""
    delivery.oversize = True
    delivery.payload = b""
    delivery.parts = delivery.gathered = None
    if delivery.stream is not None:
        delivery.stream.drop()
    return (OVERSIZE, link, delivery)


def limit_messages(engine: Engine, limit: int, events: list[tuple[Any, ...]]) -> None:
    """From now on the links that the peer makes take messages of so many octets at most; 0 lifts the limit.

    ``events`` are those that were taken and not acted on yet: what they report is measured too, also where the sender
    has taken it back since.
    """
    engine.max_message_size = limit
    if not limit:
        return
    for index, event in enumerate(events):
        if event[0] == DELIVERED:
            size = len(event[2].payload)
        elif event[0] == ABORTED:
            size = event[2].size
        else:
            continue
        if size > limit:
            events[index] = exceed(event[1], event[2])
    for session in engine.remote_sessions.values():
        for link in session.remote_links.values():
            if link.is_sender:
                continue
            link.max_message_size = limit
            link.arm()
            partial = link.current
            if partial is not None and partial.size > limit and not partial.oversize:
                events.append(exceed(link, partial))
