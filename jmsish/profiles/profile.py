"""One kind of broker, as the client has to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jmsish.errors import UnsupportedFeatureError

__all__ = [
    "ANONYMOUS_RELAY",
    "BROWSING",
    "DELAY",
    "DRAIN",
    "DURABLE",
    "FEATURES",
    "MODIFIED",
    "PRIORITIES",
    "SELECTORS",
    "SHARED",
    "TEMPORARY",
    "TOPIC_CONSUMERS",
    "TRANSACTIONS",
    "Profile",
]

TRANSACTIONS = "transactions"
TEMPORARY = "temporary destinations"
SELECTORS = "selectors"
BROWSING = "browsing"
TOPIC_CONSUMERS = "consumers on topics"
DURABLE = "durable subscriptions"
SHARED = "shared subscriptions"
DELAY = "delayed delivery"
ANONYMOUS_RELAY = "anonymous producers"
MODIFIED = "the outcome modified"
DRAIN = "drain"
PRIORITIES = "priorities"

FEATURES = (
    TRANSACTIONS, TEMPORARY, SELECTORS, BROWSING, TOPIC_CONSUMERS, DURABLE, SHARED, DELAY, ANONYMOUS_RELAY, MODIFIED,
    DRAIN, PRIORITIES,
)  # fmt: skip
"""What a broker may lack."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """One kind of broker: where it differs from what AMQP 1.0 and its mapping for JMS lead a client to expect.

    Only what is known is written down: a feature that nobody has seen refused is tried, and the broker's own answer
    counts.
    """

    name: str
    """The word that the option ``profile`` takes."""
    title: str
    """What people call it."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """What it does not do (`FEATURES`), each with the sentence that the application is told before it is tried."""
    queue_prefix: str = ""
    """What stands before the name of a queue on the wire, unless the broker says it itself (M25)."""
    topic_prefix: str = ""
    """The same for topics."""
    encoded: tuple[str, ...] = ()
    """Where not empty, names are percent-encoded behind the prefix; a name that begins with one of these is a whole
    address, and is left as it is."""
    outcomes: tuple[str, ...] = ("accepted", "rejected", "released", "modified")
    """What a receiver may say of a delivery."""
    outcomes_in_transaction: tuple[str, ...] = ("accepted", "rejected", "released", "modified")
    """What it may say of one inside a transaction; others are ignored or lose the message, so they are never said."""
    asks_durability: bool = False
    """A queue that it makes for a link is there after a restart, with its persistent messages, only if the link's
    terminus asks for it."""
    rejected: str = "dead letter"
    """What becomes of a rejected message: ``"dead letter"``, ``"requeued"``, ``"dropped"`` or ``"unknown"``."""
    redeliveries: str = "no limit"
    """After how many failed deliveries a message is given up, where nothing else was declared."""
    delay_annotation: str | None = None
    """The message annotation that delays a delivery, where it is not that of the mapping (M17)."""
    is_delay_per_link: bool = False
    """It says on the link of a producer, not on the connection, whether it holds messages back (M47)."""
    idle_detach: float | None = None
    """After so many seconds without traffic it detaches a link, which is to be attached again."""
    coordinator_credit: int = 1000
    """How many commands the transaction coordinator takes at once; with 1 a commit takes two round trips."""
    answers_drains_late: bool = False
    """To a drain whose credit it has used up it has an answer still, which may come to nothing the drain behind it."""
    uses_cbs: bool = False
    """It takes tokens at the node ``$cbs``, one for each address."""
    share_names: str | None = None
    """How the link of a shared subscription is called, where it is not as in the mapping (M62): a format of ``name``
    and ``topic``."""

    def require(self, feature: str) -> None:
        """Raise `UnsupportedFeatureError`, in a plain sentence, where the broker lacks the feature."""
        if self.lacks:
            sentence = self.lacks.get(feature)
            if sentence is not None:
                raise UnsupportedFeatureError(sentence)

    def has(self, feature: str) -> bool:
        """False where it is known that the broker lacks it."""
        return feature not in self.lacks
