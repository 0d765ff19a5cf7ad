"""What a message becomes that nobody took: the same message with annotations that say where, why, when and how often.

The bare message stays as it is, but for one field: an expiry that has passed, or will, would keep readers from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.arrival import Arrival
from jmsish.broker.octets import annotated, for_another_life
from jmsish.broker.order import Entry, History
from jmsish.engine.arriving import asked_of, without_expiry
from jmsish.engine.codec import bare_offset, message_annotations_at, split_header
from jmsish.engine.outcomes import AmqpError
from jmsish.types import Symbol, Timestamp, UInt

if TYPE_CHECKING:
    from jmsish.broker.queues import Queue
    from jmsish.broker.subscriptions import Content

EXPIRED: Final = "expired"

FROM: Final = "x-opt-dead-letter-from"
"""The queue it died in."""
KIND: Final = "x-opt-dead-letter-kind"
"""What that is: ``queue``, ``temporary-queue`` or ``subscription``."""
TOPIC: Final = "x-opt-dead-letter-topic"
"""Of a subscription: the topic subscribed to. The one it was sent to is in ``to``, as ever."""
EXCHANGE: Final = "x-opt-dead-letter-exchange"
"""Of a subscription: the exchange it came by."""
REASON: Final = "x-opt-dead-letter-reason"
"""``rejected``, ``max-delivery-attempts`` or ``expired``."""
ERROR: Final = "x-opt-dead-letter-error"
"""What the receiver said when it rejected the message."""
LONGEST_ERROR: Final = 1024
"""Characters of that: one disposition rejects as many messages as a session has, and each gets it."""
TIME: Final = "x-opt-dead-letter-time"
COUNT: Final = "x-opt-dead-letter-delivery-count"
"""How often it was delivered without success."""
EXPIRY: Final = "x-opt-dead-letter-expiry"
"""When it expired, or would have."""
TIMES: Final = "x-opt-dead-letter-times"
"""How often it has become a dead letter, this time included."""
FIRST: Final = "x-opt-dead-letter-first-from"
"""The queue it died in the first time."""


def dead_letter(
    queue: Queue, entry: Entry, reason: str, error: AmqpError | None, now: float, kind: str, content: Content | None
) -> Arrival:
    """The message as it goes to a dead-letter queue or an expiry address, at ``now`` (seconds)."""
    history = entry.history or History()
    payload = entry.payload
    before, _ = message_annotations_at(payload, split_header(payload)[1])
    times, first = before.get(TIMES), before.get(FIRST)
    notes: dict[Any, Any] = {
        Symbol(FROM): queue.name,
        Symbol(KIND): kind,
        Symbol(REASON): reason,
        Symbol(TIME): Timestamp(round(now * 1000)),
        Symbol(COUNT): UInt(history.count),
        Symbol(TIMES): UInt(times + 1 if isinstance(times, int) and 0 < times < 0xFFFFFFFF else 1),
        Symbol(FIRST): first if isinstance(first, str) else queue.name,
    }
    if content is not None:
        notes[Symbol(TOPIC)] = content.topic
        notes[Symbol(EXCHANGE)] = content.exchange.name
    if error is not None:
        notes[Symbol(ERROR)] = str(error)[:LONGEST_ERROR]
    expiry = _expiry_of(payload, history)
    if expiry is not None:
        notes[Symbol(EXPIRY)] = Timestamp(expiry)
    octets = annotated(without_expiry(for_another_life(payload)), notes)
    return Arrival(octets, entry.block.level.priority)


def _expiry_of(payload: bytes, history: History) -> int | None:
    """Milliseconds: by the sender's own word, else by the time to live that was counted here."""
    asked = asked_of(payload, bare_offset(payload))
    expiry = None if asked is None else asked[0]
    if isinstance(expiry, int) and expiry > 0:
        return int(expiry)
    return round(history.expires * 1000) if history.expires else None
