"""One delivery of a message, in either direction."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .link import Link
    from .states import DeliveryState
    from .streaming import IncomingStream

__all__ = ["UNSENT", "Delivery"]

UNSENT = -1
"""The id of an outgoing delivery of which no frame has been written: ids are given when that happens."""


class Delivery:
    """A delivery; one object each, so it is slim: what is rare has its default in the class.

    ``id``               session-wide delivery-id; :data:`UNSENT` until the first frame is written
    ``payload``          the message, whole; of an incoming delivery still in transit, empty
    ``settled``          this end has settled it (pre-settled deliveries are settled from the start)
    ``remote_settled``   the peer has settled it
    ``state``            what this end last said of it
    ``remote_state``     what the peer last said of it, the state on its transfer included
    ``context``          belongs to the owner of the engine
    """

    __slots__ = (
        "__dict__",
        "_tag",
        "context",
        "id",
        "link",
        "payload",
        "remote_settled",
        "remote_state",
        "settled",
        "state",
    )

    # Rare: set on the few deliveries that have them, in the instance's dictionary, which only then comes to be.
    message_format: int = 0
    rcv_settle_mode: int | None = None
    """What the transfer asked for; ``None`` leaves it to the link."""
    aborted: bool = False
    complete: bool = True
    """Whether all its frames have been read; false while an incoming delivery is in transit."""
    oversize: bool = False
    mixed_states: bool = False
    """The frames of the delivery carried different states (Part 4, 4.4.1 wants the same on each)."""
    parts: list[bytes] | None = None
    gathered: BytesIO | None = None
    """What came of a large one, held once: its buffer becomes the payload without another copy."""
    stream: IncomingStream | None = None
    """An incoming delivery that is read while it arrives."""
    announced: bool = False
    """That it is large was reported."""
    size: int = 0

    def __init__(
        self,
        link: Link,
        id: int,
        tag: bytes | None,
        payload: bytes,
        settled: bool,
        remote_settled: bool,
        context: Any = None,
    ) -> None:
        self.link = link
        self.id = id
        self._tag = tag
        self.payload = payload
        self.settled = settled
        self.remote_settled = remote_settled
        self.context = context
        self.state: DeliveryState | None = None
        self.remote_state: DeliveryState | None = None

    @property
    def tag(self) -> bytes:
        """The delivery-tag; where the sender gave none, the id in four octets."""
        tag = self._tag
        return (self.id & 0xFFFFFFFF).to_bytes(4, "big") if tag is None else tag

    def __repr__(self) -> str:
        marks = [word for word in ("settled", "remote_settled", "aborted", "oversize") if getattr(self, word)]
        said = "".join(f" {word}" for word in marks)
        return f"<Delivery {self.id} tag={self.tag!r} {len(self.payload)} octets on {self.link.name!r}{said}>"
