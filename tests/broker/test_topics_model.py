"""Topics against a model: whatever publishers, subscribers and transactions do, subscriptions hold what they should."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from jmsish.broker.patterns import matches
from jmsish.engine.outcomes import RELEASED
from tests.broker.pubsub import condition, durable, look_up, publisher, shared_durable
from tests.broker.world import World, body_of, in_transaction
from tests.effort import examples

CLIENTS = ["alice", "bob"]
NAMES = ["one", "two"]
PATTERNS = ["a", "a.b", "a.*", "#", "*.#.b"]
KEYS = ["a", "a.b", "b", "a.c.b"]

Identity = tuple[str | None, str]


class Held:
    """What the model knows of a subscription."""

    def __init__(self, pattern: str, shared: bool) -> None:
        self.pattern = pattern
        self.shared = shared
        self.bodies: list[str] = []
        self.readers = 0


class Topics(RuleBasedStateMachine):
    readers = Bundle("readers")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.model: dict[Identity, Held] = {}
        self.count = 0
        self.peers: dict[str, Any] = {}
        self.open: dict[int, tuple[Any, Identity, str]] = {}
        self.pending: list[tuple[str, list[Held]]] = []
        self.poster: Any = None
        self.txn: bytes | None = None

    def peer(self, client: str) -> Any:
        if client not in self.peers:
            self.peers[client] = self.world.connect(client)
        return self.peers[client]

    def body(self) -> str:
        self.count += 1
        return f"m{self.count}"

    def wanting(self, key: str) -> list[Held]:
        return [held for held in self.model.values() if matches(held.pattern, key)]

    # --- readers

    @rule(
        target=readers, client=st.sampled_from(CLIENTS), name=st.sampled_from(NAMES), pattern=st.sampled_from(PATTERNS),
        kind=st.sampled_from(["unshared", "shared", "global"]),
    )  # fmt: skip
    def attach(self, client: str, name: str, pattern: str, kind: str) -> Any:
        shared = kind != "unshared"
        identity = (None if kind == "global" else client, name)
        self.count += 1
        link = f"{name}|{self.count}" if shared else name
        existing = self.model.get(identity)
        if not shared and any(who == client and known == link for _, (__, (who, known), ___) in self.open.items()):
            return multiple()  # our own engine does not attach a name twice
        if shared:
            receiver = shared_durable(self.peer(client), link, pattern, to_all=kind == "global", credit=0)
        else:
            receiver = durable(self.peer(client), link, pattern, credit=0)
        expected = None
        if existing is not None:
            if existing.shared != shared:
                expected = "amqp:precondition-failed"
            elif existing.readers and existing.pattern != pattern:
                expected = "amqp:precondition-failed"
        assert condition(receiver) == expected
        if expected is not None:
            return multiple()
        if existing is None or existing.pattern != pattern:
            self.model[identity] = existing = Held(pattern, shared)
        existing.readers += 1
        self.open[id(receiver)] = (receiver, identity, client)
        return receiver

    @rule(receiver=readers, credit=st.integers(1, 4), accept=st.booleans())
    def read(self, receiver: Any, credit: int, accept: bool) -> None:
        if id(receiver) not in self.open:
            return
        _, identity, _ = self.open[id(receiver)]
        receiver.flow(credit)
        taken = receiver.take()
        bodies = [body_of(delivery.payload) for delivery in taken]
        assert bodies == self.model[identity].bodies[:credit]
        receiver.flow(0)
        if accept:
            receiver.accept(taken)
            del self.model[identity].bodies[: len(taken)]
        else:
            receiver.dispose(taken, RELEASED)

    @rule(receiver=consumes(readers), closed=st.booleans())
    def detach(self, receiver: Any, closed: bool) -> None:
        if id(receiver) not in self.open:
            return
        _, identity, _ = self.open.pop(id(receiver))
        receiver.detach(closed=closed)
        held = self.model[identity]
        held.readers -= 1
        assert (receiver.error is not None) == bool(closed and held.readers)
        if closed and not held.readers:
            del self.model[identity]

    @rule(client=st.sampled_from(CLIENTS))
    def lose(self, client: str) -> None:
        if client not in self.peers:
            return
        self.peers.pop(client).cut()
        for key, (_, identity, whose) in list(self.open.items()):
            if whose == client:
                self.model[identity].readers -= 1
                del self.open[key]

    @rule(client=st.sampled_from(CLIENTS), name=st.sampled_from(NAMES), to_all=st.booleans())
    def unsubscribe(self, client: str, name: str, to_all: bool) -> None:
        identity = (None if to_all else client, name)
        asking = self.world.connect(client)
        question = look_up(asking, f"{name}|global" if to_all else name, to_all=to_all)
        held = self.model.get(identity)
        if held is None:
            assert condition(question) == "amqp:not-found"
        else:
            question.detach(closed=True)
            assert condition(question) == ("amqp:resource-locked" if held.readers else None)
            if not held.readers:
                del self.model[identity]
        asking.close()

    # --- publishers

    @rule(key=st.sampled_from(KEYS), settled=st.booleans())
    def publish(self, key: str, settled: bool) -> None:
        body = self.body()
        sender = publisher(self.peer("publisher"), key)
        sender.send(body, settled=settled)
        sender.detach()
        for held in self.wanting(key):
            held.bodies.append(body)

    @precondition(lambda self: self.txn is None)
    @rule()
    def declare(self) -> None:
        self.poster = self.peer("publisher").controller()
        self.txn = self.poster.declare()

    @precondition(lambda self: self.txn is not None)
    @rule(key=st.sampled_from(KEYS))
    def post(self, key: str) -> None:
        assert self.txn is not None
        body = self.body()
        sender = publisher(self.peer("publisher"), key)
        sender.send(body, state=in_transaction(self.txn))
        sender.detach()
        self.pending.append((body, self.wanting(key)))

    @precondition(lambda self: self.txn is not None)
    @rule(commit=st.booleans())
    def discharge(self, commit: bool) -> None:
        assert self.txn is not None
        assert (self.poster.commit if commit else self.poster.roll_back)(self.txn) is None
        self.poster.detach()
        for body, wanting in self.pending if commit else ():
            for held in wanting:
                held.bodies.append(body)
        self.pending, self.txn = [], None

    # --- always

    @invariant()
    def each_subscription_holds_what_it_should(self) -> None:
        views = {(view.client_id, view.name): view for view in self.world.broker.subscriptions()}
        assert {key: (view.topic, view.shared, view.consumers) for key, view in views.items()} == {
            key: (held.pattern, held.shared, held.readers) for key, held in self.model.items()
        }
        for key, view in views.items():
            assert self.world.bodies(view.queue) == self.model[key].bodies
        assert len(self.world.broker.queues()) == len(views) == len(self.world.broker.exchange("amq.topic").bindings())


TestTopics = Topics.TestCase
TestTopics.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
