"""Exchanges and queues without a broker around them: what is declared, bound and routed by a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jmsish.broker.exchanges import Exchange, Exchanges
from jmsish.broker.policy import DEFAULT_SETTINGS, QueueSettings
from jmsish.broker.portions import Job
from jmsish.broker.queues import Queue
from jmsish.engine.values import encode, encode_described, encode_map, encode_string


class Home:
    """A broker that only has a clock."""

    def now(self) -> float:
        return 1000.0

    def wake(self, queue: Queue) -> None: ...

    def begin(self, job: Job) -> None: ...

    def schedule(self, due: float, queue: Queue) -> None: ...

    def resume(self, queue: Queue) -> None: ...

    def expired(self, queue: Queue, entry: object) -> None: ...


class Wiring:
    """Queues q0 to q9, and the exchanges that a test declares."""

    def __init__(self, queues: int = 10) -> None:
        self.queues: dict[str, Queue] = {}
        self.exchanges = Exchanges(self.queues)
        for number in range(queues):
            self.queue(f"q{number}")

    def queue(self, name: str, **settings: Any) -> Queue:
        checked = QueueSettings.from_mapping(settings, name) if settings else DEFAULT_SETTINGS
        queue = self.queues[name] = Queue(name, checked, Home())
        return queue

    def delete_queue(self, name: str) -> None:
        queue = self.queues.pop(name)
        queue.deleted = True
        self.exchanges.forget(queue)

    def declare(self, name: str, type: str, **settings: Any) -> Exchange:
        return self.exchanges.declare(name, type, settings)

    def bind(self, exchange: Exchange, queue: str, key: str = "", arguments: Any = None, **options: Any) -> bool:
        return exchange.bind(self.queues[queue], key, None, arguments, **options)

    def unbind(self, exchange: Exchange, queue: str, key: str = "") -> bool:
        return exchange.unbind(self.queues[queue], key)


def names(exchange: Exchange, key: str = "", payload: bytes = b"", count: int = 0, origin: object = None) -> list[str]:
    """The queues that a message goes to; each once."""
    found = [queue.name for queue in exchange.route(key, payload, count, origin).queues]
    assert len(found) == len(set(found))
    return sorted(found)


def put(exchange: Exchange, body: str, key: str = "") -> list[str]:
    """Route a message and enqueue it."""
    payload = octets(body)
    routed = exchange.route(key, payload, 0, None)
    routed.append(payload, 4)
    return sorted(queue.name for queue in routed.queues)


def octets(body: str, properties: Iterable[tuple[str, Any]] = ()) -> bytes:
    return bearing(properties) + encode_described(0x77, encode_string(body))


def bearing(properties: Any = (), **more: Any) -> bytes:
    """A message with application properties; one that is bytes is a value encoded already."""
    items = {**dict(properties), **more}
    if not items:
        return b""
    parts = []
    for name, value in items.items():
        parts += [encode_string(name), value.octets if isinstance(value, Raw) else encode(value)]
    return encode_described(0x74, encode_map(parts))


class Raw:
    """A value in octets, of a width that a test chooses."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets

    def __repr__(self) -> str:
        return self.octets.hex()
