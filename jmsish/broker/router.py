"""From addresses to queues: made on first use or declared, temporary, deleted; and where dead letters go."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from jmsish.broker.config import BrokerConfig
from jmsish.broker.octets import annotated, for_another_life
from jmsish.broker.order import ACQUIRED, Entry, History
from jmsish.broker.policy import DEFAULT_SETTINGS, QueueSettings
from jmsish.broker.queues import Arrival, Queue, QueueHome
from jmsish.engine.outcomes import AmqpError
from jmsish.types import Symbol, Timestamp, UInt

RESERVED = "jmsish.temporary."
"""How the names of temporary nodes begin. Such a name is never made on first use: used when gone, it is an error."""

NOT_FOUND = "amqp:not-found"
NOT_IMPLEMENTED = "amqp:not-implemented"
RESOURCE_LOCKED = "amqp:resource-locked"

DEAD_FROM = "x-opt-dead-letter-from"
DEAD_REASON = "x-opt-dead-letter-reason"
DEAD_TIME = "x-opt-dead-letter-time"
DEAD_COUNT = "x-opt-dead-letter-delivery-count"
DEAD_ERROR = "x-opt-dead-letter-error"
EXPIRED = "expired"


class Refusal(Exception):
    """An address, or a wish about it, that is not granted."""

    def __init__(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        super().__init__(description)
        self.error = AmqpError(condition, description, info)


class Router:
    """All queues by name."""

    def __init__(self, config: BrokerConfig, home: QueueHome) -> None:
        self.queues: dict[str, Queue] = {}
        self._config = config
        self._home = home
        for name, settings in config.queues.items():
            self._make(name, settings)

    def resolve(self, address: str) -> Queue:
        """The queue of an address, made now if it may be (3.5.1: the address names a node); Refusal otherwise."""
        queue = self.queues.get(address)
        if queue is not None:
            return queue
        if address.startswith(RESERVED):
            raise Refusal(NOT_FOUND, f"the temporary queue {address!r} is gone")
        if not self._config.auto_create:
            raise Refusal(NOT_FOUND, f"there is no queue {address!r}")
        return self._make(address, DEFAULT_SETTINGS)

    def declare(self, name: str, settings: Mapping[str, Any]) -> Queue:
        """The queue of that name with these settings; one that is there takes them over from now on."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"a queue needs a name, not {name!r}")
        if name.startswith(RESERVED):
            raise ValueError(f"names that begin with {RESERVED!r} are those of temporary queues")
        checked = QueueSettings.from_mapping(settings, f"the queue {name!r}")
        queue = self.queues.get(name)
        if queue is None:
            return self._make(name, checked)
        queue.settings = checked
        return queue

    def make_temporary(self, owner: object) -> Queue:
        """A queue with a name nobody used before; with an owner, only that connection receives from it."""
        return self._make(f"{RESERVED}{token_hex(16)}", DEFAULT_SETTINGS, owner)

    def delete(self, queue: Queue) -> None:
        """Remove a queue with all it owns; its consumers and producers lose it."""
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
        queue.deleted = True
        for consumer in list(queue.consumers.values()):
            consumer.lost_queue()
        for producer in list(queue.producers):
            producer.lost_queue()

    def _make(self, name: str, settings: QueueSettings, owner: object = None) -> Queue:
        queue = self.queues[name] = Queue(name, settings, self._home, owner)
        return queue

    # --- dead letters

    def bury(self, queue: Queue, entry: Entry, reason: str, error: AmqpError | None) -> None:
        """Archive an entry in hand and put it into the dead-letter queue; what dies there is dropped (D13)."""
        entry.state = ACQUIRED
        queue.archive(entry)
        queue.dead_lettered += 1
        self._carry(queue, entry, queue.settings.dead_letter, reason, error)

    def carry_expired(self, queue: Queue, entry: Entry) -> None:
        """An expired message, archived already, goes to the expiry address, or nowhere."""
        self._carry(queue, entry, queue.settings.expiry_address, EXPIRED, None)

    def _carry(self, queue: Queue, entry: Entry, name: str, reason: str, error: AmqpError | None) -> None:
        if not name or name == queue.name or queue.deleted:
            return
        target = self.queues.get(name) or self._make(name, self._config.queues.get(name, DEFAULT_SETTINGS))
        history = entry.history or History()
        notes: dict[Any, Any] = {
            Symbol(DEAD_FROM): queue.name,
            Symbol(DEAD_REASON): reason,
            Symbol(DEAD_TIME): Timestamp(round(self._home.now() * 1000)),
            Symbol(DEAD_COUNT): UInt(history.count),
        }
        if error is not None:
            notes[Symbol(DEAD_ERROR)] = str(error)
        payload = annotated(for_another_life(entry.payload), notes)
        target.add(Arrival(payload, entry.block.level.priority))
