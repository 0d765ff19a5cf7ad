"""The broker of the arena: how it is set up, what must hold when all attackers have gone, how it is made new again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jmsish.broker.bindings import Binding
from tests.fuzz.bystander import QUIET
from tests.fuzz.conversations import PASSWORD, USER

if TYPE_CHECKING:
    from tests.fuzz.arena import Arena

QUEUES: dict[str, dict[str, Any]] = {
    "q0": {}, "q1": {"max_delivery_attempts": 2}, "q2": {"redelivery_delay": 1.0, "exclusive_consumer": True},
    "small": {"max_messages": 2}, "drops": {"max_messages": 3, "overflow": "drop-head"},
    "blocks": {"max_messages": 3, "overflow": "block"}, "groups": {"group_key": "b", "expiry_address": "expired"},
    "DLQ": {}, "expired": {}, **QUIET,
}  # fmt: skip
EXCHANGES: dict[str, dict[str, Any]] = {
    "direct": {"type": "direct"}, "topic": {"type": "topic"}, "fanout": {"type": "fanout"},
    "headers": {"type": "headers"}, "chain": {"type": "direct", "alternate": "fanout"},
    "quiet-topic": {"type": "topic"},
}  # fmt: skip
BINDINGS = [
    {"exchange": "direct", "queue": "q0", "key": "k"}, {"exchange": "topic", "queue": "q1", "key": "a.*"},
    {"exchange": "fanout", "queue": "q0"}, {"exchange": "fanout", "queue": "small"},
    {"exchange": "headers", "queue": "q2", "arguments": {"x-match": "any", "a": 1}},
    {"exchange": "chain", "kind": "exchange", "queue": "topic", "key": "a.b"},
    {"exchange": "quiet-topic", "queue": "quiet-copies", "key": "news"},
]  # fmt: skip


OVERSIZE: tuple[dict[str, Any], ...] = (
    {"max_message_size": 5000, "on_oversize": "link"}, {}, {"max_message_size": 5000, "on_oversize": "connection"},
)  # fmt: skip


def configuration(variant: int) -> dict[str, Any]:
    policy = {"transaction_timeout": 20.0, "max_transaction_size": 500, **OVERSIZE[variant % len(OVERSIZE)]}
    return {
        "policy": policy,
        "users": {USER: {"password": PASSWORD}},
        "queues": QUEUES,
        "exchanges": EXCHANGES,
        "bindings": BINDINGS,
    }


class Find(AssertionError):
    """What must not be."""


def sweep(arena: Arena) -> None:
    """All attackers go; then nothing of them may be left but what they were allowed to make, which is removed."""
    for number in list(arena.attackers):
        arena.lose(number)
    arena.let_pass(1.0)
    arena.let_pass(61.0)
    arena.bystander.work()
    check_gone(arena)
    check_queues(arena)
    restore(arena)
    arena.let_pass(1.0)
    check_restored(arena)
    arena.bystander.work()


def must(holds: object, text: str) -> None:
    if not holds:
        raise Find(text)


def check_gone(arena: Arena) -> None:
    """No connection, transaction, freeze or closed gate is left of those who have gone."""
    broker = arena.broker
    mine = {peer.connection for peer in arena.peers}
    must(set(broker._connections) == mine, "connections left")
    named = {each for same in broker._containers.values() for each in same}
    must(named <= mine and all(broker._containers.values()), "containers left")
    must(not broker.transactions(), "transactions left")
    must(not broker.freezes._of, "freezes left")
    must(not broker.freezes.unfinished and not broker.unfinished, "work left undone")
    for exchange in broker.router.exchanges:
        gate = exchange.gate
        must(not gate.closed and not gate.waiting, "a gate is closed or has a line")
    for subscription in broker.router.subscriptions:
        must(not subscription.is_active, "a subscription has a consumer left")


def check_queues(arena: Arena) -> None:
    """Nobody but the client receives; what the queues count is what they have."""
    mine = arena.bystander.consumers()
    for name, queue in arena.broker.router.queues.items():
        must(len(queue.consumers) == mine.get(name, 0), "consumers left on a queue")
        must(not queue.acquired, "messages are held by nobody")
        must(bool(queue.producers) is (name in arena.bystander.produces), "producers left on a queue")
        places = [payload for payload, _ in queue.places(True)]
        delayed = queue.depth - queue.available
        must(queue.available == len(places), "a queue counts other messages than it has")
        if not delayed:
            must(queue.octets == sum(map(len, places)), "a queue counts other octets than it has")


def restore(arena: Arena) -> None:
    """As it was in the beginning, but for the client's own."""
    broker = arena.broker
    for name in list(broker.router.queues):
        if name not in QUIET:
            broker.delete_queue(name)
    for view in broker.exchanges():
        if view.name not in ("", "quiet-topic"):
            view.rebind(remove=view.bindings())
            broker.declare_exchange(view.name, view.type, alternate=None)
    for view in broker.exchanges():
        if view.name != "quiet-topic" and not view.name.startswith("amq.") and view.name:
            broker.delete_exchange(view.name)
    broker.step()
    for name, settings in QUEUES.items():
        if name not in QUIET:
            broker.declare_queue(name, **settings)
    for name, made in EXCHANGES.items():
        if name != "quiet-topic":
            broker.declare_exchange(name, made["type"], alternate=made.get("alternate"))
    for binding in BINDINGS[:-1]:
        broker.exchange(binding["exchange"]).rebind(add=[Binding(**binding)])
    broker.step()


def check_restored(arena: Arena) -> None:
    """What is kept beside queues and exchanges is gone with them."""
    broker, router = arena.broker, arena.broker.router
    must(not list(router.subscriptions), "subscriptions left")
    must(not router.lifetimes._by_queue and not router.lifetimes._exchanges, "lifetimes of nodes left")
    must(not broker._unfinished and not broker._dirty, "queues left to be served")
    must(not broker._timers._waiting, f"timers left: {[type(each) for each in broker._timers._waiting.values()]}")
    must(not broker._timers._asked, "timers left by what asked for them")
    must(set(router.queues) == set(QUEUES), "other queues than in the beginning")
