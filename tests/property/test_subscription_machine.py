"""Random subscribing, publishing, receiving, settling, closing and unsubscribing, against a model of the rules.

Whatever is done in whatever order: who may join is let in and who may not is refused (jms rules 127 to 137), each
subscription collects what its topic, selector and no-local let through (rules 123 to 126, 140), in order, and what was
seen and given back is marked, nothing else. Everything runs in this process over the in-memory pipe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import jmsish
from jmsish import AcknowledgeMode

OWNERS: list[str | None] = ["alice", None, None]
"""The client ids of the clients that there may be, one connection each."""
KINDS = ("plain", "shared", "durable", "shared durable")
RED = "colour = 'red'"
MODES: list[dict[str, Any]] = [{"transacted": True}, {"acknowledge_mode": AcknowledgeMode.CLIENT}]
index = st.integers(0, 5)
often, seldom = st.sampled_from([False, False, False, True]), st.sampled_from([False] * 9 + [True])


@dataclass(eq=False)
class Sub:
    """A subscription: what it wants, and what it has, by sequence."""

    kind: str
    owner: str | None
    wants: tuple[str, str | None, bool]
    maker: Client
    waiting: dict[int, int] = field(default_factory=dict)
    """Numbers of messages, with how often each was seen and given back."""
    readers: set[Client] = field(default_factory=set)
    """Who ever read it: with one reader, what comes next is certain."""

    def takes(self, publisher: Client, topic: str, colour: str) -> bool:
        wanted, selector, no_local = self.wants
        local = publisher is self.maker if self.kind == "plain" else publisher.owner == self.owner
        return topic == wanted and (selector is None or colour == "red") and not (no_local and local)


@dataclass(eq=False)
class Seat:
    """A consumer: open, or closed and still attached for what it handed over."""

    client: Client
    sub: Sub
    consumer: Any
    name: str
    open: bool = True
    in_hand: dict[int, int] = field(default_factory=dict)

    @property
    def attached(self) -> bool:
        return self.open or bool(self.in_hand)


class Client:
    def __init__(self, url: str, owner: str | None, mode: dict[str, Any]) -> None:
        self.owner = owner
        self.connection = jmsish.connect(url, client_id=owner)
        self.session = self.connection.create_session(**mode)
        self.publishing = self.connection.create_session()
        self.last: Any = None


class Subscribing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.broker = jmsish.EmbeddedBroker()
        self.broker.start()
        self.clients: list[Client | None] = [None] * len(OWNERS)
        self.subs: dict[tuple[str, str | None, str], Sub] = {}
        """The named ones, by space of names, owner and name."""
        self.seats: list[Seat] = []
        self.published = 0

    # -- clients

    def client(self, number: int) -> Client:
        at = number % len(OWNERS)
        found = self.clients[at]
        if found is None:
            found = self.clients[at] = Client(self.broker.url, OWNERS[at], MODES[number % len(MODES)])
        return found

    @initialize(
        kinds=st.lists(st.sampled_from(KINDS[1:]), min_size=1, max_size=4), prefetch=st.sampled_from([0, 3]), mode=index
    )
    def set_the_stage(self, kinds: list[str], prefetch: int, mode: int) -> None:
        """Some subscriptions with messages in them, some consumers that have seen one."""
        for number, kind in enumerate(kinds):
            self.subscribe(number * 3 * (mode % 2), kind, False, False, False, False, prefetch)
        self.publish(mode, False, "red", 5)
        for number in range(len(kinds)):
            self.receive(number, 1)

    @rule(number=index, really=often)
    def close_client(self, number: int, really: bool) -> None:
        """What it had in hand goes back, marked; what it had not seen goes back unmarked."""
        if really:
            self.end(number)

    def end(self, number: int) -> None:
        at = number % len(OWNERS)
        client, self.clients[at] = self.clients[at], None
        if client is not None:
            client.connection.close()
            self.put_back(client)
            for seat in [seat for seat in self.seats if seat.client is client]:
                seat.open = False
                self.leave(seat)

    def put_back(self, client: Client) -> None:
        for seat in [seat for seat in self.seats if seat.client is client]:
            for number, count in seat.in_hand.items():
                seat.sub.waiting[number] = count + 1
            seat.in_hand.clear()
            self.leave(seat)

    def leave(self, seat: Seat) -> None:
        """A link that is gone; the last one takes what is not durable along."""
        if seat.attached or seat not in self.seats:
            return
        self.seats.remove(seat)
        if seat.sub.kind == "shared" and not self.attached(seat.sub):
            self.subs = {key: sub for key, sub in self.subs.items() if sub is not seat.sub}

    def attached(self, sub: Sub) -> list[Seat]:
        return [seat for seat in self.seats if seat.sub is sub and seat.attached]

    # -- subscribing

    @rule(
        number=index, kind=st.sampled_from(KINDS), second=often, elsewhere=seldom, choosy=often, deaf=often,
        prefetch=st.sampled_from([0, 1, 3, 1000]),
    )  # fmt: skip
    def subscribe(
        self, number: int, kind: str, second: bool, elsewhere: bool, choosy: bool, deaf: bool, prefetch: int
    ) -> None:
        name, topic, selector = "b" if second else "a", "u" if elsewhere else "t", RED if choosy else None
        client = self.client(number)
        no_local = deaf and not kind.startswith("shared")
        wants = (topic, selector, no_local)
        refused = self.refusal(client, kind, name, wants)
        try:
            consumer = self.call(client, kind, name, wants, prefetch)
        except jmsish.JMSError as error:
            assert refused, f"{kind} {name} {wants} by {client.owner} was refused: {error}"
            return
        assert not refused, f"{kind} {name} {wants} by {client.owner} should be refused: {refused}"
        sub = self.joined(client, kind, name, wants)
        sub.readers.add(client)
        self.seats.append(Seat(client, sub, consumer, name))

    def call(self, client: Client, kind: str, name: str, wants: tuple[str, str | None, bool], prefetch: int) -> Any:
        session, (topic, selector, no_local) = client.session, wants
        place = session.create_topic(topic)
        if kind == "plain":
            return session.create_consumer(place, selector, no_local=no_local, prefetch=prefetch)
        if kind == "shared":
            return session.create_shared_consumer(place, name, selector, prefetch=prefetch)
        if kind == "durable":
            return session.create_durable_consumer(place, name, selector, no_local=no_local, prefetch=prefetch)
        return session.create_shared_durable_consumer(place, name, selector, prefetch=prefetch)

    def refusal(self, client: Client, kind: str, name: str, wants: tuple[str, str | None, bool]) -> str:
        """Why a subscriber is not let in; empty where he is. Some refusals make the client let go of old links."""
        if kind == "plain":
            return ""
        if kind == "durable" and client.owner is None:
            return "no client id"
        sub = self.subs.get(self.key(client, kind, name))
        if sub is None:
            return ""
        active = [seat for seat in self.attached(sub) if seat.open]
        if sub.kind != kind:
            if not active:
                for seat in self.attached(sub):
                    self.let_go(seat)
            return f"it is {sub.kind}"
        if kind == "durable":
            return "it has a consumer" if active else ""
        return "it is in use otherwise" if self.attached(sub) and sub.wants != wants else ""

    def let_go(self, seat: Seat) -> None:
        """Its link is detached, what it handed over stays in hand: from now on it is not attached for it."""
        seat.sub, shadow = Sub(seat.sub.kind, seat.sub.owner, seat.sub.wants, seat.sub.maker), seat.sub
        seat.sub.waiting = shadow.waiting  # what is put back is there all the same

    def key(self, client: Client, kind: str, name: str) -> tuple[str, str | None, str]:
        return ("durable" if "durable" in kind else "shared", client.owner, name)

    def joined(self, client: Client, kind: str, name: str, wants: tuple[str, str | None, bool]) -> Sub:
        if kind == "plain":
            return Sub(kind, client.owner, wants, client)
        key = self.key(client, kind, name)
        sub = self.subs.get(key)
        if sub is not None and kind == "durable":
            for seat in self.attached(sub):
                self.let_go(seat)
        if sub is None or sub.wants != wants:
            sub = self.subs[key] = Sub(kind, client.owner, wants, client)
        return sub

    # -- messages

    @rule(number=index, elsewhere=seldom, colour=st.sampled_from(["red", "blue"]), count=st.integers(1, 4))
    def publish(self, number: int, elsewhere: bool, colour: str, count: int) -> None:
        topic = "u" if elsewhere else "t"
        client = self.client(number)
        producer = client.publishing.create_producer(client.publishing.create_topic(topic))
        for _ in range(count):
            self.published += 1
            producer.send(f"m{self.published}", properties={"colour": colour})
            for sub in {*self.subs.values(), *(seat.sub for seat in self.seats if seat.sub.kind == "plain")}:
                if sub.takes(client, topic, colour):
                    sub.waiting[self.published] = 0
        producer.close()

    @precondition(lambda self: any(seat.open for seat in self.seats))
    @rule(number=index, count=st.integers(1, 5))
    def receive(self, number: int, count: int) -> None:
        readers = [seat for seat in self.seats if seat.open]
        if not readers:
            return
        seat = readers[number % len(readers)]
        for _ in range(count):
            message = seat.consumer.receive(timeout=0)
            if message is None:
                if len(seat.sub.readers) == 1:
                    assert not seat.sub.waiting, f"{seat.sub} has more"
                return
            got = int(message.body[1:])
            assert got in seat.sub.waiting, f"{got} is not in {seat.sub}"
            if len(seat.sub.readers) == 1:
                assert got == min(seat.sub.waiting), f"{got} comes before {min(seat.sub.waiting)}"
            seen = seat.sub.waiting.pop(got)
            assert message.delivery_count == seen + 1 and message.jms_redelivered == (seen > 0)
            seat.in_hand[got] = seen
            seat.client.last = message

    @rule(number=index)
    def settle(self, number: int) -> None:
        client = self.client(number)
        if client.session.transacted:
            client.session.commit()
        elif client.last is not None:
            client.last.acknowledge()
        for seat in [seat for seat in self.seats if seat.client is client]:
            seat.in_hand.clear()
            self.leave(seat)

    @rule(number=index)
    def give_back(self, number: int) -> None:
        client = self.client(number)
        if client.session.transacted:
            client.session.rollback()
        else:
            client.session.recover()
        self.put_back(client)

    # -- ends

    @precondition(lambda self: any(seat.open for seat in self.seats))
    @rule(number=index)
    def close_consumer(self, number: int) -> None:
        readers = [seat for seat in self.seats if seat.open]
        seat = readers[number % len(readers)]
        seat.consumer.close()
        seat.open = False
        self.leave(seat)

    @rule(number=index, name=st.sampled_from("aaabc"))
    def unsubscribe(self, number: int, name: str) -> None:
        client = self.client(number)
        key = ("durable", client.owner, name)
        sub = self.subs.get(key)
        held = sub is not None and any(seat.attached for seat in self.seats if seat.sub.waiting is sub.waiting)
        try:
            client.session.unsubscribe(name)
        except jmsish.InvalidDestinationError:
            assert sub is None
        except jmsish.JMSError as error:
            assert held, f"{error}, though nobody holds it"
        else:
            assert sub is not None and not held
            del self.subs[key]

    @invariant()
    def the_broker_has_what_is_subscribed(self) -> None:
        """No subscription too many, none missing."""
        queues = {binding.queue for binding in self.broker.exchange("amq.topic").bindings()}
        plain = {id(seat.sub) for seat in self.seats if seat.sub.kind == "plain"}
        assert len(queues) == len(self.subs) + len(plain)

    def teardown(self) -> None:
        """All go; who comes then finds in the durable ones exactly what is left, in order."""
        try:
            for at in range(len(OWNERS)):
                self.end(at)
            for (_, owner, name), sub in self.subs.items():
                client = Client(self.broker.url, owner, MODES[0])
                consumer = self.call(client, sub.kind, name, sub.wants, 1000)
                for number, count in sorted(sub.waiting.items()):
                    message = consumer.receive(timeout=5)
                    assert message is not None and (message.body, message.delivery_count) == (f"m{number}", count + 1)
                assert consumer.receive(timeout=0) is None
                client.session.commit()
                consumer.close()
                client.session.unsubscribe(name)
                client.connection.close()
            assert not list(self.broker.exchange("amq.topic").bindings())
        finally:
            for left in self.clients:
                if left is not None:
                    left.connection.close()
            self.broker.stop()


TestSubscribing = Subscribing.TestCase
TestSubscribing.settings = settings(settings.default, stateful_step_count=30)
# A busy machine takes minutes for it, and JMSISH_HYPOTHESIS=explore on any.
pytestmark = pytest.mark.timeout(900)
