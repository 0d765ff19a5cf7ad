"""The table of profiles.

Where each line comes from is in docs/profiles.md: seen on the wire, read in the source, or read in the documentation
of the broker.  What is only guessed is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jmsish.profiles.profile import (
    BROWSING,
    DELAY,
    DRAIN,
    DURABLE,
    MODIFIED,
    PRIORITIES,
    SELECTORS,
    SHARED,
    TEMPORARY,
    TOPIC_CONSUMERS,
    TRANSACTIONS,
    Profile,
)

UNKNOWN = Profile(name="unknown", title="an AMQP 1.0 broker")
"""Nothing is assumed of it but what AMQP 1.0 and the mapping for JMS say."""

_NO_TEMPORARY = "RabbitMQ has no temporary destinations over AMQP 1.0: declare a queue for the answers"

_IN_ORDER = "{} gives messages in the order of their arrival, whatever their priority"

_ALL = (
    UNKNOWN,
    Profile(name="jmsish", title="jmsish's own broker"),
    Profile(
        name="artemis",
        title="Apache Artemis",
        outcomes_in_transaction=("accepted",),
        redeliveries="10, then to the dead-letter queue",
        answers_drains_late=True,
    ),
    Profile(
        name="activemq",
        title="Apache ActiveMQ Classic",
        lacks={
            SHARED: "ActiveMQ Classic has no shared subscriptions: each consumer would get every message",
            PRIORITIES: _IN_ORDER.format("a queue of ActiveMQ Classic, unless it is told otherwise,"),
        },
        queue_prefix="queue://",
        topic_prefix="topic://",
        outcomes_in_transaction=("accepted",),
    ),
    Profile(
        name="broker-j",
        title="Apache Qpid Broker-J",
        lacks={PRIORITIES: _IN_ORDER.format("a plain queue of Broker-J")},
        topic_prefix="amq.topic/",
        outcomes_in_transaction=("accepted",),  # a released message is lost when the transaction is rolled back
        rejected="requeued",
        is_delay_per_link=True,
        coordinator_credit=1,
    ),
    Profile(
        name="qpidd",
        title="Apache Qpid C++ broker (qpidd)",
        lacks={DELAY: "qpidd has no delayed delivery: it would deliver at once"},
        rejected="dead letter",
    ),
    Profile(
        name="rabbitmq",
        title="RabbitMQ 4",
        lacks={
            TRANSACTIONS: "RabbitMQ has no transactions over AMQP 1.0: use an acknowledge mode in place of "
            "transacted=True",
            TEMPORARY: _NO_TEMPORARY,
            SELECTORS: "RabbitMQ has no selectors on queues",
            BROWSING: "RabbitMQ cannot browse a queue: a receiver takes what it is sent",
            TOPIC_CONSUMERS: "RabbitMQ has no consumers on topics: declare a queue, bind it to the exchange amq.topic "
            "with the topic as its key, and consume from the queue",
            DURABLE: "RabbitMQ has no subscriptions over AMQP 1.0: declare a queue and bind it to an exchange",
            SHARED: "RabbitMQ has no subscriptions over AMQP 1.0: let several consumers share a queue",
            DELAY: "RabbitMQ has no delayed delivery over AMQP 1.0: it would deliver at once",
            PRIORITIES: _IN_ORDER.format("a plain queue of RabbitMQ"),
        },
        queue_prefix="/queues/",
        topic_prefix="/exchanges/amq.topic/",
        encoded=("/queues/", "/exchanges/"),
        rejected="dead letter",
    ),
    Profile(
        name="rabbitmq-3",
        title="RabbitMQ 3 with the AMQP 1.0 plugin",
        lacks={
            TRANSACTIONS: "RabbitMQ has no transactions over AMQP 1.0: use an acknowledge mode in place of "
            "transacted=True",
            TEMPORARY: _NO_TEMPORARY,
            SELECTORS: "RabbitMQ 3 says yes to every filter and looks at none",
            BROWSING: "RabbitMQ cannot browse a queue: a receiver takes what it is sent",
            DURABLE: "RabbitMQ has no subscriptions over AMQP 1.0: declare a queue and bind it to an exchange",
            SHARED: "RabbitMQ has no subscriptions over AMQP 1.0: let several consumers share a queue",
            DELAY: "RabbitMQ has no delayed delivery over AMQP 1.0: it would deliver at once",
            PRIORITIES: _IN_ORDER.format("a plain queue of RabbitMQ"),
            MODIFIED: "RabbitMQ 3 ends a session in which a message is given back as modified",
            DRAIN: "RabbitMQ 3 ends a session in which a receiver drains",
        },
        queue_prefix="/queue/",
        topic_prefix="/topic/",
        encoded=("/queue/", "/topic/", "/exchange/", "/amq/queue/", "/temp-queue/", "/reply-queue/"),
        asks_durability=True,
        outcomes=("accepted", "rejected", "released"),
        rejected="dropped",
    ),
    Profile(
        name="servicebus",
        title="Azure Service Bus",
        delay_annotation="x-opt-scheduled-enqueue-time",
        redeliveries="10, then to the dead-letter queue",
        idle_detach=600.0,
        uses_cbs=True,
    ),
    Profile(
        name="ibmmq",
        title="IBM MQ",
        lacks={DELAY: "IBM MQ has no delayed delivery over AMQP: it would deliver at once"},
        rejected="unknown",
        share_names="share:{name}:{topic}",
    ),
    Profile(
        name="solace",
        title="Solace PubSub+",
        lacks={
            TRANSACTIONS: "Solace has no transactions over AMQP: use an acknowledge mode in place of transacted=True",
            DELAY: "Solace has no delayed delivery over AMQP: it would deliver at once",
        },
        rejected="unknown",
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({each.name: each for each in _ALL})
"""By name."""

NAMES = tuple(PROFILES)
