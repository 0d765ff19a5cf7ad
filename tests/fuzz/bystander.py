"""A well-behaved client, in the midst of others that are not: everything it does must work, and no later for them."""

from __future__ import annotations

from time import thread_time
from typing import Any

from jmsish.engine.codec import AMQP_VALUE, encode_message
from jmsish.engine.outcomes import ACCEPTED
from tests.broker.world import World, body_of, in_transaction

QUIET: dict[str, dict[str, Any]] = {"quiet": {}, "quiet-copies": {}}
"""Its own queues, whose names nobody says; it publishes to `quiet-topic`, of which one gets the copies."""


class Bystander:
    """Sends and receives on queues of its own, with and without transactions, and publishes to a topic."""

    produces = ("quiet",)

    def __init__(self, world: World) -> None:
        self.world = world
        self.peer = world.connect("bystander")
        self.sender = self.peer.sender("quiet")
        self.publisher = self.peer.sender("quiet-topic/news")
        self.receiver = self.peer.receiver("quiet", credit=100)
        self.copies = self.peer.receiver("quiet-copies", credit=100)
        self.controller = self.peer.controller()
        self.turns = 0
        self.times: list[float] = []

    def consumers(self) -> dict[str, int]:
        return {"quiet": 1, "quiet-copies": 1}

    def work(self) -> None:
        """One turn: what goes in comes out, in order, once, and is accepted."""
        began = thread_time()
        self.turns += 1
        bodies = [f"{self.turns}-{number}" for number in range(2)]
        if self.turns % 4 == 0:
            self.commit(bodies)
        elif self.turns % 7 == 0:
            self.publish(bodies)
        else:
            answers = self.sender.send(*bodies)
            self.check(answers == [[ACCEPTED]] * len(bodies), f"sends were answered {answers}")
            self.expect(self.receiver, bodies)
        self.times.append(thread_time() - began)

    def commit(self, bodies: list[str]) -> None:
        txn = self.controller.declare()
        self.sender.send(*bodies, state=in_transaction(txn))
        self.check(not self.receiver.take(), "what was sent in a transaction came before its commit")
        if self.turns % 8:
            self.check(self.controller.roll_back(txn) is None, "a rollback was refused")
            self.check(not self.receiver.take(), "what was rolled back came")
        else:
            self.check(self.controller.commit(txn) is None, "a commit was refused")
            self.expect(self.receiver, bodies)

    def publish(self, bodies: list[str]) -> None:
        for body in bodies:
            answers = self.publisher.transfer(encode_message(body=(AMQP_VALUE, body)))
            self.world.run()
            self.check(answers == [ACCEPTED], f"a copy was answered {answers}")
        self.expect(self.copies, bodies)

    def expect(self, receiver: Any, bodies: list[str]) -> None:
        arrived = receiver.take()
        found = [body_of(delivery.payload) for delivery in arrived]
        self.check(found == bodies, f"{bodies} were sent, and {found} came")
        receiver.accept(arrived)
        receiver.flow(100)
        self.check(self.world.depth("quiet") == (0, 0), "the queue has what was accepted")

    def check(self, holds: bool, text: str) -> None:
        peer = self.peer
        if not holds or peer.closed or peer.failed or peer.ended:
            raise AssertionError(f"the well-behaved client in turn {self.turns}: {text}; {peer.closed} {peer.failed}")
