"""A step ends in the middle, by a fault or by Ctrl-C over ``vm://``: what was not done in it is done in the next."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import broker as module
from jmsish.broker.consumers import serve
from tests.broker.world import World, body_of


def bodies(deliveries: list[Any]) -> list[str]:
    return [body_of(each.payload) for each in deliveries]


def three(world: World) -> tuple[dict[str, Any], dict[str, Any]]:
    """A sender and a receiver of each of three queues."""
    peer = world.connect("peer")
    return {name: peer.sender(name) for name in "abc"}, {name: peer.receiver(name, credit=10) for name in "abc"}


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_fault_in_serving_one_queue_leaves_no_other_unserved(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were marked as those that are going to be served, so that nobody marked them again: they stood still for
    good. The one that has the fault is not tried again at once: it would have it at the next step of anybody."""
    senders, receivers = three(world)
    failures = [RuntimeError("of ours")]

    def failing(queue: Any, *arguments: Any) -> None:
        if failures:
            raise failures.pop()
        serve(queue, *arguments)

    monkeypatch.setattr(module, "serve", failing)
    for name, sender in senders.items():
        sender.send(f"one of {name}", run=False)
    senders["a"].peer.speak()
    with pytest.raises(RuntimeError):
        world.broker.step()
    for name in "bc":
        senders[name].send(f"two of {name}")
        assert bodies(receivers[name].take()) == [f"one of {name}", f"two of {name}"]


WHERE = ["broker.serve", "consumers._serve_takers", "consumers._answer_drains", "broker.Broker.wake",
         "outgoing.OutgoingLink.deliver", "outgoing.OutgoingLink.can_take"]  # fmt: skip


@pytest.mark.parametrize("where", WHERE)
def test_after_an_interrupt_no_queue_stays_unserved(world: World, where: str) -> None:
    """Whatever was half done: who waits is found by asking each consumer."""
    senders, receivers = three(world)
    other = world.connect("other").receiver("d")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"jmsish.broker.{where}", interrupted)
        other.flow(10, drain=True, run=False)
        other.peer.speak()
        for name, sender in senders.items():
            sender.send(f"one of {name}", run=False)
        senders["a"].peer.speak()
        world.broker.step()
    world.broker.interrupted()
    world.run()
    assert other.link.credit == 0
    for name in "abc":
        senders[name].send(f"two of {name}")
        assert bodies(receivers[name].take())[-1] == f"two of {name}"
