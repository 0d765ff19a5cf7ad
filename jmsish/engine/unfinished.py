"""Messages that have begun to come and are not whole, which are held: how much of a connection they may take.

One message may be as large as its link lets it, which is looked at with each frame. But a peer may begin one on each of
ten thousand links and finish none, so what there is beside the largest of them is bounded together. Who counts looks at
all links, so it is done now and then only, and what came since is in no sum: a sixteenth of the limit at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conditions import RESOURCE_LIMIT_EXCEEDED, Fault

if TYPE_CHECKING:
    from .engine import Engine

__all__ = ["weigh_unfinished"]

_SHARE = 16


def weigh_unfinished(engine: Engine, size: int) -> None:
    """So many octets more are held of messages that are not whole; Fault if it is too much."""
    limit = engine.limits.max_unfinished
    engine.unweighed += size
    if not limit or engine.unweighed <= limit // _SHARE:
        return
    engine.unweighed = 0
    sizes = []
    for session in engine.remote_sessions.values():
        for link in session.remote_links.values():
            delivery = link.current
            if delivery is not None and delivery.stream is None and not delivery.oversize:
                sizes.append(delivery.size)
    held = sum(sizes) - max(sizes, default=0)
    if held > limit:
        text = f"{len(sizes)} messages are not whole, beside the largest of them {held} octets, where {limit} may be"
        raise Fault(RESOURCE_LIMIT_EXCEEDED, text)
