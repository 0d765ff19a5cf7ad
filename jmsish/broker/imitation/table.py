"""What each imitated broker is and does: one frozen value a broker.

What was seen on the wire, or is written in a source or a manual, is in it; docs/profiles.md says which is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from jmsish.broker.policy import QueueSettings, near_miss
from jmsish.engine.outcomes import AmqpError
from jmsish.types import Symbol

SOLE: Final = "sole-connection-for-container"
RELAY: Final = "ANONYMOUS-RELAY"
DELAYED: Final = "DELAYED_DELIVERY"
SHARED: Final = "SHARED-SUBS"
LOCAL: Final = "amqp:local-transactions"

APPLIED: Final = "applied"
"""An outcome other than accepted, in a transaction: as the standard says."""
STUCK: Final = "stuck"
"""It is ignored; the message stays with the link until that closes."""
LOST: Final = "lost"
"""A released message is with nobody any more when its transaction is rolled back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imitation:
    """One broker, as a peer sees it."""

    name: str
    # -- its open
    product: str | None = None
    version: str | None = None
    capabilities: tuple[str, ...] = ()
    link_capabilities: tuple[str, ...] = ()
    """What it offers on a link that asks for it."""
    prefixes: tuple[str, str] | None = None
    """What it announces to stand before names; addresses that begin so are of that kind."""
    max_frame_size: int = 131_072
    channel_max: int = 65_535
    idle_timeout: float = 0.0
    """What its open says, in seconds; 0 says nothing."""
    refuses_second_container: bool = True
    # -- what it refuses, and how
    ends_sessions: bool = False
    """It answers a refused attach with the end of the session; otherwise the link is refused."""
    no_transactions: AmqpError | None = None
    no_dynamic_nodes: AmqpError | None = None
    no_relay: AmqpError | None = None
    no_drain: AmqpError | None = None
    no_modified: AmqpError | None = None
    # -- its nodes
    auto_create: bool = True
    addresses: str = "names"
    """``"names"``, ``"rabbitmq"`` (version 2) or ``"rabbitmq-3"`` (version 1)."""
    topic_by_default: bool = False
    """An address that is no queue yet, and of which the attach does not say what it is, is a topic."""
    queue: QueueSettings = field(default_factory=QueueSettings)
    """Settings of a queue for which none are given; ``{}`` in the name of its dead letters stands for its own."""
    releases_unroutable: bool = False
    # -- its links
    selectors: bool | None = True
    """None: it says that a selector is in force and does not look at it."""
    browses: bool = True
    shares: bool = True
    """False: the links of a shared subscription get all messages each."""
    delays: bool = True
    """False: a message that is to come later comes at once."""
    schedules: str | None = None
    """An annotation of its own by which a message comes later."""
    priorities: bool = True
    takes_tokens: bool = False
    """It has a node ``$cbs``."""
    idle_detach: float = 0.0
    """Seconds after which it detaches a link on which nothing happens."""
    # -- its outcomes
    rejected: str = "dead letter"
    """``"dead letter"`` (which a queue without any drops) or ``"requeued"``."""
    undeliverable_here_is_rejected: bool = False
    in_transaction: str = APPLIED
    counts_stuck: bool = False
    """A message that was stuck comes back counted."""
    counts_at_detach: bool | None = None
    """Whether what is unsettled when its link is detached comes back counted; None: as the default outcome says."""
    counts_at_end: bool | None = None
    """The same when the session ends or the connection is closed."""
    counts_at_loss: bool | None = None
    """The same when the socket is cut."""
    # -- its coordinator
    coordinator_capabilities: tuple[str, ...] = (LOCAL,)
    coordinator_credit: int = 1000
    unknown_transaction: str = "rejected"
    """How the discharge of an unknown transaction is answered: ``"rejected"``, ``"detached"`` or ``"closed"``."""

    def opening(self) -> dict[str, Any]:
        """What its open says, as the engine is told it."""
        properties: dict[str, Any] = {"product": self.product, "version": self.version}
        if self.prefixes is not None:
            properties["queue-prefix"], properties["topic-prefix"] = self.prefixes
        return {
            "max_frame_size": self.max_frame_size,
            "channel_max": self.channel_max,
            "idle_timeout": 2 * self.idle_timeout or None,  # the engine says half of what it means (Part 2, 2.4.5)
            "offered_capabilities": self.capabilities,
            "properties": {Symbol(name): value for name, value in properties.items() if value is not None},
        }


def imitation_of(name: str | None) -> Imitation | None:
    """The imitation of a name; None for none, and for jmsish itself. `ValueError` for a name that is none."""
    if name is None or name in ("jmsish", "unknown"):
        return None
    if name not in IMITATIONS:
        raise ValueError(f"unknown profile {name!r}: {near_miss(name, tuple(IMITATIONS))}")
    return IMITATIONS[name]


def _error(condition: str, description: str) -> AmqpError:
    return AmqpError(condition, description)


_NOT_IMPLEMENTED = "amqp:not-implemented"
_NO_TRANSACTIONS = _error(_NOT_IMPLEMENTED, "Transactions not supported")

_ALL = (
    Imitation(
        name="artemis",
        product="apache-activemq-artemis",
        version="2.40.0",
        capabilities=(SOLE, DELAYED, SHARED, RELAY),
        link_capabilities=(DELAYED, SHARED),
        idle_timeout=30.0,
        topic_by_default=True,
        queue=QueueSettings(max_delivery_attempts=10),
        in_transaction=STUCK,
        counts_at_detach=False,
        counts_at_end=False,
        counts_at_loss=True,
        coordinator_capabilities=(LOCAL, "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"),
    ),
    Imitation(
        name="activemq",
        product="ActiveMQ",
        version="6.1.6",
        capabilities=(RELAY, DELAYED),
        link_capabilities=(DELAYED,),
        prefixes=("queue://", "topic://"),
        channel_max=32_767,
        idle_timeout=15.0,
        queue=QueueSettings(dead_letter="ActiveMQ.DLQ"),
        shares=False,
        priorities=False,
        undeliverable_here_is_rejected=True,
        in_transaction=STUCK,
        counts_stuck=True,
        counts_at_detach=False,
        counts_at_end=True,
        counts_at_loss=True,
        unknown_transaction="closed",
    ),
    Imitation(
        name="broker-j",
        product="Apache Qpid Broker-J Core",
        version="9.2.1",
        capabilities=(RELAY, SHARED, SOLE),
        link_capabilities=(DELAYED, SHARED),
        max_frame_size=32_768,
        channel_max=255,
        queue=QueueSettings(dead_letter="", delayed_delivery=False),
        priorities=False,
        rejected="requeued",
        in_transaction=LOST,
        counts_at_detach=True,
        counts_at_end=True,
        counts_at_loss=True,
        coordinator_capabilities=(),
        coordinator_credit=1,
        unknown_transaction="detached",
    ),
    Imitation(
        name="qpidd",
        product="qpid-cpp",
        version="1.39.0",
        capabilities=(RELAY,),
        delays=False,
        releases_unroutable=True,
        auto_create=False,
    ),
    Imitation(
        name="rabbitmq",
        product="RabbitMQ",
        version="4.1.0",
        capabilities=(RELAY,),
        idle_timeout=60.0,
        refuses_second_container=False,
        ends_sessions=True,
        no_transactions=_NO_TRANSACTIONS,
        no_dynamic_nodes=_error(_NOT_IMPLEMENTED, "Dynamic sources not supported"),
        auto_create=False,
        addresses="rabbitmq",
        queue=QueueSettings(dead_letter=""),
        releases_unroutable=True,
        selectors=False,
        browses=False,
        delays=False,
        priorities=False,
        undeliverable_here_is_rejected=True,
    ),
    Imitation(
        name="rabbitmq-3",
        product="RabbitMQ",
        version="3.10.8",
        max_frame_size=32_768,
        channel_max=32_767,
        idle_timeout=60.0,
        refuses_second_container=False,
        ends_sessions=True,
        no_transactions=_NO_TRANSACTIONS,
        no_dynamic_nodes=_error(_NOT_IMPLEMENTED, "Dynamic sources not supported"),
        no_relay=_error("amqp:invalid-field", "address_not_utf8_string"),
        no_drain=_error("amqp:internal-error", "function_clause: send_drained"),
        no_modified=_error("amqp:invalid-field", "Unrecognised state"),
        addresses="rabbitmq-3",
        queue=QueueSettings(dead_letter=""),
        selectors=None,
        delays=False,
        priorities=False,
        counts_at_detach=False,
        counts_at_end=False,
        counts_at_loss=False,
    ),
    Imitation(
        name="servicebus",
        product="Azure Service Bus",  # the original says nothing and is known by its host, which an imitation has not
        max_frame_size=65_536,
        channel_max=4999,
        idle_timeout=240.0,
        auto_create=False,
        queue=QueueSettings(max_delivery_attempts=10, dead_letter="{}/$deadletterqueue"),
        delays=False,
        schedules="x-opt-scheduled-enqueue-time",
        takes_tokens=True,
        idle_detach=600.0,
    ),
    Imitation(
        name="ibmmq",
        product="IBM MQ",
        version="9.3.0",
        capabilities=(RELAY, SHARED),
        link_capabilities=(SHARED,),
        auto_create=False,
        topic_by_default=True,
        delays=False,
    ),
    Imitation(
        name="solace",
        product="Solace PubSub+",
        version="10.4.0",
        capabilities=(RELAY, SHARED),
        link_capabilities=(SHARED,),
        no_transactions=_error(_NOT_IMPLEMENTED, "Transactions are not supported"),
        delays=False,
    ),
)

IMITATIONS: Final[Mapping[str, Imitation]] = MappingProxyType({each.name: each for each in _ALL})
