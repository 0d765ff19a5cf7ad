"""A broker in memory whose exchanges are frozen, step by step."""

from __future__ import annotations

from typing import Any

from jmsish.broker.exchanges import Exchange
from jmsish.broker.gates import Gate
from jmsish.broker.holds import Freeze
from jmsish.engine.outcomes import ACCEPTED, Target
from jmsish.engine.values import encode_string
from tests.broker.world import Peer, Sender, World, body_of, message, properties

TYPES = ("direct", "topic", "fanout", "headers")
ALL = {"x-match": "all"}


class Play(World):
    """Exchanges and queues, and who freezes them. Owners are strings."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self.freezes = self.broker.freezes

    def exchange(self, name: str = "x", type: str = "direct", **settings: Any) -> Exchange:
        self.broker.declare_exchange(name, type, **settings)
        return self.broker.router.exchanges.named(name)

    def queues(self, *names: str) -> None:
        for name in names:
            self.broker.declare_queue(name)

    def bind(self, exchange: str, queue: str, key: str = "k", **options: Any) -> bool:
        view = self.broker.exchange(exchange)
        arguments = options.pop("arguments", ALL if view.type == "headers" else None)
        return view.bind(queue, key, arguments, **options)

    def gate(self, name: str = "x") -> Gate:
        return self.broker.router.exchanges.named(name).gate

    def freeze(self, *names: str, owner: object = "holder", **options: Any) -> Freeze:
        return self.freezes.acquire(names or ("x",), owner, **options)

    def held(self, *names: str, **options: Any) -> Freeze:
        freeze = self.freeze(*names, **options)
        assert freeze.granted.done()
        freeze.granted.result()
        return freeze

    def stage(self, freeze: Freeze, queue: str, key: str = "k", *, exchange: str = "x", remove: bool = False) -> None:
        changes = freeze.hold_of(exchange).changes
        target = self.broker.router.exchanges.queue(queue)
        if remove:
            assert changes.unbind(target, key)
        else:
            assert changes.bind(target, key, None, ALL if changes.exchange.type == "headers" else None)

    def swap(self, freeze: Freeze, old: str, new: str, key: str = "k", *, exchange: str = "x") -> None:
        self.stage(freeze, old, key, exchange=exchange, remove=True)
        self.stage(freeze, new, key, exchange=exchange)

    def thaw(self, freeze: Freeze, *, commit: bool = True) -> None:
        self.freezes.release(freeze, commit=commit)
        self.run()

    def bound(self, name: str = "x") -> list[tuple[str, str]]:
        return sorted((binding.queue, binding.key) for binding in self.broker.exchange(name).bindings())

    def write(self, action: Any, *, exchange: str = "x", owner: object = "other", timeout: float | None = None) -> Any:
        """A change of bindings by somebody; its future."""
        named = self.broker.router.exchanges.named(exchange)
        return self.freezes.write(named, action, owner, timeout=timeout).done

    def binds(self, queue: str, key: str = "k", **options: Any) -> Any:
        exchange = options.get("exchange", "x")
        return self.write(lambda: self.bind(exchange, queue, key), **options)

    def publisher(self, address: str | None = "x/k", peer: Peer | None = None, **options: Any) -> Sender:
        return (peer or self.connect()).sender(target=Target(address=address), **options)

    def let_time_pass(self, seconds: float) -> None:
        """By the clock of the broker alone: connections are not idle."""
        self.clock.now += seconds
        self.broker.tick(self.clock.now)
        self.run()

    def all_open(self) -> bool:
        return not any(exchange.gate.closed for exchange in self.broker.router.exchanges)


def partly(peer: Peer, octets: int) -> bytes:
    """Feed only the first octets of what a peer has to say; the rest, for later."""
    data = peer.engine.take_output()
    assert 0 < octets < len(data)
    peer.connection.receive(data[:octets])
    return data[octets:]


def numbers(bodies: list[str]) -> list[int]:
    return [int(body.rpartition(":")[2]) for body in bodies]


def of(publisher: str, bodies: list[str]) -> list[int]:
    """The numbers of one publisher's messages, in their order."""
    return numbers([body for body in bodies if body.startswith(f"{publisher}:")])


def addressed(body: str, to: str) -> bytes:
    """A message for an anonymous link."""
    return message(body, properties=properties(b"\x40", b"\x40", encode_string(to)))


__all__ = ["ACCEPTED", "ALL", "TYPES", "Play", "addressed", "body_of", "numbers", "of", "partly"]
