"""A QUERY of much is answered row by row, and who asks again and again holds up nobody but itself."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.entities import QueueKind
from jmsish.broker.management import answer
from jmsish.broker.querying import ROW
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.outcomes import Target
from tests.broker.test_management import NODE, request
from tests.broker.world import Peer, Receiver, Sender, World

NAMES = [f"q{number}" for number in range(9)]


def told(octets: bytes) -> tuple[int, list[str]]:
    """Of an answer the status, and the names of the queues in its first column."""
    said = ReceivedMessage(octets)
    body = said.body()[1]
    return said.application_properties()["statusCode"], [row[0] for row in body["results"]] if "results" in body else []


def all_queues(message_id: str = "m1", **named: Any) -> bytes:
    body = {"attributeNames": ["name", "depth"]}
    return request("QUERY", NODE, body, message_id=message_id, entityType="queue", **named)


class Asker:
    """A connection with the two links that it needs to ask, in a world with nine queues and a few rows a step."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.peer: Peer = world.connect()
        self.answers: Receiver = self.peer.receiver("$management", target=Target(address="back"), credit=100)
        self.sender: Sender = self.peer.sender("$management")

    def ask(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.sender.transfer(payload, settled=True)
        self.peer.speak()

    def heard(self) -> list[tuple[Any, int, list[str]]]:
        """What was answered: to which request, and what."""
        return [
            (ReceivedMessage(each.payload).property(5), *told(each.payload)) for each in self.answers.take()
        ]


def world_of_queues(rows: int) -> World:
    world = World({"queues": {name: {} for name in NAMES}}, portion=rows * ROW)
    world.broker.step()
    return world


@pytest.mark.parametrize("rows", [1, 2, 4, 100])
def test_it_is_answered_in_portions(rows: int) -> None:
    world = world_of_queues(rows)
    asker = Asker(world)
    asker.ask(all_queues())
    steps = 0
    while asker.peer.connection.is_busy:
        assert world.broker.unfinished
        world.broker.step()
        steps += 1
    world.run()
    assert asker.heard() == [("m1", 200, NAMES)]
    assert (steps > 0) == (rows < 10)


def test_a_page_of_it_as_well() -> None:
    world = world_of_queues(1)
    asker = Asker(world)
    asker.ask(all_queues(offset=2, count=4))
    world.run()
    assert asker.heard() == [("m1", 200, NAMES[2:6])]


def test_those_that_ask_are_answered_one_after_the_other() -> None:
    """And no more is done in a step for all of them than for one."""
    world = world_of_queues(2)
    askers = [Asker(world) for _ in range(3)]
    for asker in askers:
        asker.ask(all_queues("first"), all_queues("second"))
    described = []
    original = QueueKind.describe
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QueueKind, "describe", lambda kind, each: described.append(each.name) or original(kind, each))
        while world.broker.unfinished:
            before = len(described)
            world.broker.step()
            assert len(described) - before <= 4
    world.run()
    for asker in askers:
        assert asker.heard() == [("first", 200, NAMES), ("second", 200, NAMES)]
        assert not asker.peer.connection.is_busy


def test_other_requests_and_others_are_served_meanwhile() -> None:
    world = world_of_queues(1)
    asker, other = Asker(world), Asker(world)
    asker.ask(all_queues("long"), request("READ", "queue", message_id="short", name="q3"))
    other.ask(request("CREATE", "queue", message_id="made", name="new"))
    world.broker.step()
    for each in (asker, other):
        each.peer.hear()
    assert [found[0] for found in asker.heard()] == ["short"]
    assert [found[:2] for found in other.heard()] == [("made", 201)]
    world.run()
    assert [found[0] for found in asker.heard()] == ["long"]


def test_a_queue_that_is_deleted_meanwhile_has_its_row_or_none() -> None:
    world = world_of_queues(1)
    asker = Asker(world)
    asker.ask(all_queues())
    world.broker.delete_queue("q8")
    world.broker.declare_queue("later")
    world.run()
    assert asker.heard() in ([("m1", 200, NAMES)], [("m1", 200, NAMES[:8])])


def test_who_has_gone_is_not_answered_and_those_behind_it_are() -> None:
    world = world_of_queues(1)
    gone, other = Asker(world), Asker(world)
    gone.ask(all_queues(), all_queues())
    other.ask(all_queues())
    gone.peer.cut()
    assert other.heard() == [("m1", 200, NAMES)]
    assert not world.broker.portions


def test_what_has_no_amqp_form_is_told_and_does_not_stop_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of_queues(1)
    asker = Asker(world)
    original = QueueKind.describe
    monkeypatch.setattr(
        QueueKind, "describe", lambda kind, each: {"name": object()} if each.name == "q5" else original(kind, each)
    )
    asker.ask(all_queues("first"))
    world.run()
    monkeypatch.undo()
    asker.ask(all_queues("second"))
    world.run()
    assert asker.heard() == [("first", 500, []), ("second", 200, NAMES)]


def test_inside_the_process_it_is_answered_when_it_is_done() -> None:
    world = world_of_queues(1)
    reply_to, later = answer(world.broker, all_queues())
    assert reply_to == "back" and not isinstance(later, bytes) and not later.done()
    world.run()
    assert told(later.result()) == (200, NAMES)
