"""How consumers and subscriptions are attached, detached and ended, frame by frame (M41, M45, M53 to M69)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.client.session import ClientSession
from jmsish.client.subscriptions import Subscription
from jmsish.destination import Destination, Queue, TemporaryTopic, Topic
from jmsish.engine.link import Link
from jmsish.engine.outcomes import AmqpError, Modified, Source
from jmsish.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    OperationTimeoutError,
    UnsupportedFeatureError,
)
from jmsish.modes import AcknowledgeMode
from jmsish.types import Described, Symbol, ULong

from .frames import Frame
from .peer import Peer

PRICES, ORDERS = Topic("prices"), Topic("orders")
SHARED_SUBS = ("ANONYMOUS-RELAY", "SHARED-SUBS")
OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
SELECTOR = ULong(0x0000468C00000004)
NO_LOCAL = ULong(0x0000468C00000003)

UNSHARED_DURABLE = Subscription("s", durable=True, shared=False)
SHARED_DURABLE = Subscription("s", durable=True, shared=True)
SHARED_VOLATILE = Subscription("s", durable=False, shared=True)


class Scene:
    """A client facing a peer that has shared subscriptions, unless it is told otherwise."""

    def __init__(self, client_id: str | None = "alice", offers: tuple[str, ...] = SHARED_SUBS, **options: Any) -> None:
        self.peer = Peer(offers=offers, client_id=client_id, **options)
        self.session = self.peer.session(AcknowledgeMode.CLIENT)

    def begin(self, destination: Destination = PRICES, session: ClientSession | None = None, **wishes: Any) -> Any:
        """A consumer, and the steps that attach it."""
        consumer = ClientConsumer(session or self.session, destination, **{"prefetch": 10, **wishes})
        return consumer, consumer.session.add_consumer(consumer)

    def open(self, destination: Destination = PRICES, **wishes: Any) -> ClientConsumer:
        consumer, steps = self.begin(destination, **wishes)
        self.peer.run(steps)
        return consumer  # type: ignore[no-any-return]

    def subscribe(self, subscription: Subscription, **wishes: Any) -> ClientConsumer:
        return self.open(subscription=subscription, **wishes)

    @property
    def link(self) -> Link:
        """The receiving link that was attached last, as the peer sees it."""
        return self.peer.links[-1]

    @property
    def source(self) -> Source:
        source = self.link.remote_source
        assert isinstance(source, Source)
        return source

    def sent(self, name: str) -> list[Frame]:
        return [frame for frame in self.peer.frames if frame.name == name]


def refused(error: AmqpError | None) -> Callable[[Link], None]:
    """An attach without a source, and a detach behind it (Part 2, 2.6.3)."""
    return lambda link: link.refuse(error)


# --- ordinary consumers


def test_m53_m54_m74_the_source_of_an_ordinary_consumer() -> None:
    """Address, kind, outcomes and the default outcome modified(delivery-failed) are said; the name is used once."""
    scene = Scene()
    for destination, capability in ((Queue("q"), "queue"), (Topic("t"), "topic")):
        scene.open(destination)
        assert scene.source.address == destination.name
        assert scene.source.capabilities == (capability,)
        assert scene.source.outcomes == OUTCOMES
        assert scene.source.default_outcome == Modified(delivery_failed=True)
        assert scene.link.remote_snd_settle_mode == 0
    names = [link.name for link in scene.peer.links]
    assert len(set(names)) == 2 and names[0].endswith("receiver:q") and names[1].endswith("receiver:t")


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (None, (0, "link-detach", None)),
        (SHARED_VOLATILE, (0, "link-detach", None)),
        (UNSHARED_DURABLE, (2, "never", "copy")),
        (SHARED_DURABLE, (2, "never", "copy")),
    ],
)
def test_m55_durability_expiry_and_distribution(subscription: Subscription | None, expected: object) -> None:
    """What lives on says so: unsettled-state, never, copy; the others go with their link."""
    scene = Scene()
    scene.open(subscription=subscription)
    source = scene.source
    assert (source.durable, source.expiry_policy, source.distribution_mode) == expected


def test_m55_a_browser_copies_and_is_settled() -> None:
    """Distribution mode copy, and nothing to acknowledge."""
    scene = Scene()
    scene.open(Queue("q"), browsing=True)
    assert scene.source.distribution_mode == "copy"
    assert scene.link.remote_snd_settle_mode == 1


@pytest.mark.parametrize(
    ("subscription", "client_id", "expected"),
    [
        (UNSHARED_DURABLE, "alice", ("topic",)),
        (SHARED_DURABLE, "alice", ("topic", "shared")),
        (SHARED_DURABLE, None, ("topic", "shared", "global")),
        (SHARED_VOLATILE, "alice", ("topic", "shared")),
        (SHARED_VOLATILE, None, ("topic", "shared", "global")),
    ],
)
def test_m56_shared_and_global(subscription: Subscription, client_id: str | None, expected: object) -> None:
    """A shared subscription says so, and that it is everybody's where no client id was set."""
    scene = Scene(client_id)
    scene.subscribe(subscription)
    assert scene.source.capabilities == expected


# --- filters


def test_m57_m58_filters_are_asked_for_by_their_codes() -> None:
    """The selector as a string; no-local as the string that Qpid JMS sends."""
    scene = Scene()
    scene.open(selector="a = 1", no_local=True)
    found = scene.source.filter
    assert found is not None and list(found) == ["jms-selector", "no-local"]
    assert (found["jms-selector"].descriptor, found["jms-selector"].value) == (SELECTOR, "a = 1")
    assert (found["no-local"].descriptor, found["no-local"].value) == (NO_LOCAL, "NoLocalFilter{}")


def grant(filters: dict[Any, Any] | None) -> Callable[[Link], None]:
    def answer(link: Link) -> None:
        assert isinstance(link.remote_source, Source)
        link.attach(source=replace(link.remote_source, filter=filters))

    return answer


def described(descriptor: Any, value: Any) -> Any:
    return Described(descriptor, value)


@pytest.mark.parametrize(
    "filters",
    [
        {Symbol("jms-selector"): described(SELECTOR, "a = 1"), Symbol("no-local"): described(NO_LOCAL, [])},
        {Symbol("jms-selector"): described(SELECTOR, "  a = 1\n"), Symbol("no-local"): described(NO_LOCAL, "x")},
        {
            Symbol("selector"): described(Symbol("apache.org:selector-filter:string"), "a = 1"),
            Symbol("local"): described(Symbol("apache.org:no-local-filter:list"), []),
        },
        {
            Symbol("s"): described(Symbol("apache.org:jms-selector-filter:string"), "a = 1"),
            Symbol("n"): described(Symbol("apache.org:jms-no-local-filter:list"), []),
        },
    ],
)
def test_m59_m61_an_echo_in_any_of_the_known_forms_is_one(filters: dict[Any, Any]) -> None:
    """Under our key or another one, by code or by symbol, with other blanks around the selector."""
    scene = Scene()
    scene.peer.answer_attach = grant(filters)
    scene.open(selector="a = 1", no_local=True)
    assert scene.link.credit == 10


@pytest.mark.parametrize(
    ("filters", "word"),
    [
        (None, "jms-selector"),
        ({}, "jms-selector"),
        ({Symbol("jms-selector"): described(SELECTOR, "a = 2")}, "a = 2"),
        ({Symbol("jms-selector"): described(SELECTOR, "a = 1")}, "no-local"),
        ({Symbol("x"): described(ULong(0x0000468C00000005), "a = 1")}, "jms-selector"),
    ],
)
@pytest.mark.parametrize("subscription", [None, UNSHARED_DURABLE])
def test_m61_m113_a_dropped_filter_is_an_error(
    filters: dict[Any, Any] | None, word: str, subscription: Subscription | None
) -> None:
    """The consumer does not come to be, no credit was granted, and the link goes; a durable one is not closed."""
    scene = Scene()
    scene.peer.answer_attach = grant(filters)
    _, steps = scene.begin(selector="a = 1", no_local=True, subscription=subscription)
    with pytest.raises(UnsupportedFeatureError, match=word):
        scene.peer.run(steps)
    assert not scene.session.consumers
    assert not scene.sent("flow")
    (detach,) = scene.sent("detach")
    assert bool(detach.closed) is (subscription is None)


def test_a_selector_the_broker_does_not_take() -> None:
    """An attach refused for its filter is an invalid selector, whichever word the broker has for the field."""
    for field in ("field", "invalid-field"):
        scene = Scene()
        scene.peer.answer_attach = refused(AmqpError("amqp:invalid-field", "no such word", {Symbol(field): "filter"}))
        _, steps = scene.begin(selector="a = 1")
        with pytest.raises(InvalidSelectorError, match="no such word"):
            scene.peer.run(steps)


# --- names


@pytest.mark.parametrize(
    ("subscription", "client_id", "names"),
    [
        (UNSHARED_DURABLE, "alice", ["s"]),
        (SHARED_DURABLE, "alice", ["s", "s|2", "s|3"]),
        (SHARED_DURABLE, None, ["s|global", "s|global2", "s|global3"]),
        (SHARED_VOLATILE, "alice", ["s|volatile1", "s|volatile2", "s|volatile3"]),
        (SHARED_VOLATILE, None, ["s|global-volatile1", "s|global-volatile2", "s|global-volatile3"]),
    ],
)
def test_m62_link_names(subscription: Subscription, client_id: str | None, names: list[str]) -> None:
    """The name, the kind, and a number from the second link on, or from the first where it is volatile."""
    scene = Scene(client_id)
    for _ in names:
        scene.subscribe(subscription)
    assert [link.name for link in scene.peer.links] == names


def test_m62_the_number_counts_while_one_stays_open() -> None:
    """No name is used a second time until all are closed; then it begins anew."""
    scene = Scene()
    first = scene.subscribe(SHARED_DURABLE)
    second = scene.subscribe(SHARED_DURABLE)
    scene.peer.run(first.close())
    third = scene.subscribe(SHARED_DURABLE)
    for consumer in (second, third):
        scene.peer.run(consumer.close())
    scene.subscribe(SHARED_DURABLE)
    assert [link.name for link in scene.peer.links] == ["s", "s|2", "s|3", "s"]


def test_m62_each_subscription_has_its_own_numbers() -> None:
    """Another name, and the volatile one of the same name."""
    scene = Scene()
    scene.subscribe(SHARED_DURABLE)
    scene.subscribe(Subscription("other", durable=True, shared=True))
    scene.subscribe(SHARED_VOLATILE)
    scene.subscribe(SHARED_DURABLE)
    assert [link.name for link in scene.peer.links] == ["s", "other", "s|volatile1", "s|2"]


def test_m62_a_session_that_ended_gives_its_names_back() -> None:
    """As if the consumers had been closed one by one."""
    scene = Scene()
    scene.subscribe(UNSHARED_DURABLE)
    scene.peer.run(scene.session.close())
    scene.session = scene.peer.session(AcknowledgeMode.CLIENT)
    scene.subscribe(UNSHARED_DURABLE)
    assert [link.name for link in scene.peer.links] == ["s", "s"]


def test_m62_a_refused_attach_leaves_its_name_free() -> None:
    """What was not granted is not in use."""
    scene = Scene()
    scene.peer.answer_attach = refused(AmqpError("amqp:not-found", "no"))
    for _ in range(2):
        _, steps = scene.begin(subscription=UNSHARED_DURABLE)
        with pytest.raises(InvalidDestinationError):
            scene.peer.run(steps)
    scene.peer.answer_attach = Link.attach
    scene.subscribe(UNSHARED_DURABLE)


def test_m62_an_attach_that_cannot_be_written_leaves_its_name_free() -> None:
    """The peer allows so many links in a session and no more; a JMS error says so."""
    scene = Scene()
    scene.session.engine_session.remote_handle_max = 0
    scene.open(Queue("q"))
    for subscription in (UNSHARED_DURABLE, SHARED_DURABLE):
        consumer, steps = scene.begin(subscription=subscription)
        with pytest.raises(JMSError, match="1 links"):
            scene.peer.run(steps)
        assert consumer not in scene.session.consumers
    scene.session.engine_session.remote_handle_max = 10
    scene.subscribe(UNSHARED_DURABLE)


def test_an_attach_that_is_not_answered_in_time() -> None:
    """The link is given up: what is granted later gets no credit, and the name is free."""
    scene = Scene()
    scene.peer.answer_attach = lambda link: None
    consumer, steps = scene.begin(subscription=UNSHARED_DURABLE)
    with pytest.raises(OperationTimeoutError):
        scene.peer.run(steps)
    assert consumer.closed and [frame.closed for frame in scene.sent("detach")] == [None]
    scene.peer.links[-1].attach()
    scene.peer.pump()
    assert not scene.sent("flow")
    scene.peer.answer_attach = Link.attach
    scene.subscribe(UNSHARED_DURABLE)


@pytest.mark.parametrize("name", ["", "a|b", "|"])
def test_m63_a_bad_name_is_a_wrong_argument(name: str) -> None:
    """Empty, or with the bar that ends names on the wire."""
    with pytest.raises(ValueError, match="without '|'"):
        Subscription(name, durable=True, shared=False)


def test_m63_no_name_is_a_wrong_argument() -> None:
    """None, or a number."""
    for name in (None, 1):
        with pytest.raises(TypeError):
            Subscription(name, durable=True, shared=False)  # type: ignore[arg-type]


# --- refusals before the broker is asked


def test_m64_a_second_unshared_durable_consumer() -> None:
    """Of one name on one connection there is one at a time, whichever session has it."""
    scene = Scene()
    first = scene.subscribe(UNSHARED_DURABLE)
    second = scene.peer.session(AcknowledgeMode.AUTO)
    for session in (scene.session, second):
        _, steps = scene.begin(session=session, subscription=UNSHARED_DURABLE)
        with pytest.raises(IllegalStateError, match="only one"):
            scene.peer.run(steps)
    assert len(scene.peer.links) == 1, "the broker was not asked"
    scene.peer.run(first.close())
    scene.subscribe(UNSHARED_DURABLE)


@pytest.mark.parametrize(("first", "second"), [(UNSHARED_DURABLE, SHARED_DURABLE), (SHARED_DURABLE, UNSHARED_DURABLE)])
def test_m64_shared_and_unshared(first: Subscription, second: Subscription) -> None:
    """A durable subscription in use is one or the other."""
    scene = Scene()
    open_one = scene.subscribe(first)
    _, steps = scene.begin(subscription=second)
    with pytest.raises(IllegalStateError, match="has a consumer"):
        scene.peer.run(steps)
    assert len(scene.peer.links) == 1
    scene.subscribe(SHARED_VOLATILE)  # which is another thing, under the same name (jms rule 135)
    scene.peer.run(open_one.close())
    scene.subscribe(second)  # whether it may take the other's place, the broker decides


@pytest.mark.parametrize("subscription", [SHARED_DURABLE, SHARED_VOLATILE])
@pytest.mark.parametrize("wish", [{"destination": ORDERS}, {"selector": "a = 2"}, {"selector": None}])
def test_m64_who_shares_wants_the_same(subscription: Subscription, wish: dict[str, Any]) -> None:
    """Another topic or selector, or none, while the first is open."""
    scene = Scene()
    first = scene.subscribe(subscription, selector="a = 1")
    _, steps = scene.begin(**{"selector": "a = 1", "subscription": subscription, **wish})
    with pytest.raises(IllegalStateError, match="cannot share"):
        scene.peer.run(steps)
    scene.peer.run(first.close())
    scene.open(**{"selector": "a = 1", "subscription": subscription, **wish})


def test_m64_a_name_is_given_on_while_its_last_messages_are_unsettled() -> None:
    """The link of a closed durable consumer stays for what it handed over; who opens it anew takes the name, and what
    was handed over can still be acknowledged."""
    scene = Scene()
    first = scene.subscribe(UNSHARED_DURABLE)
    scene.peer.give(1)
    scene.peer.receive(first, 1)
    scene.peer.run(first.close())
    assert not scene.sent("detach")
    scene.subscribe(UNSHARED_DURABLE)
    (detach,) = scene.sent("detach")
    assert not detach.closed
    scene.session.ledger.acknowledge(None)
    assert scene.peer.told()[-1] == "accepted 0"


def test_durable_without_a_client_id() -> None:
    """Jms rule 127: there is nobody it could belong to."""
    scene = Scene(None)
    _, steps = scene.begin(subscription=UNSHARED_DURABLE)
    with pytest.raises(IllegalStateError, match="client_id"):
        scene.peer.run(steps)
    assert not scene.peer.links


def test_subscriptions_are_to_topics() -> None:
    """Not to a queue; durable ones not to a temporary topic either (jms rule 141)."""
    scene = Scene()
    for destination in (Queue("q"), TemporaryTopic("t")):
        _, steps = scene.begin(destination, subscription=UNSHARED_DURABLE)
        with pytest.raises(InvalidDestinationError):
            scene.peer.run(steps)
    assert not scene.peer.links


# --- brokers that do less


@pytest.mark.parametrize("subscription", [SHARED_DURABLE, SHARED_VOLATILE])
def test_m65_no_shared_subscriptions(subscription: Subscription) -> None:
    """Neither the connection nor the link offers them: the link goes, closed where nothing is to be kept."""
    scene = Scene(offers=("ANONYMOUS-RELAY",))
    _, steps = scene.begin(subscription=subscription)
    with pytest.raises(UnsupportedFeatureError, match="shared"):
        scene.peer.run(steps)
    assert scene.link.remote_desired_capabilities == ("SHARED-SUBS",)
    (detach,) = scene.sent("detach")
    assert bool(detach.closed) is not subscription.durable


def test_m65_a_link_may_offer_what_the_connection_does_not() -> None:
    """Broker-J says so on the link."""
    scene = Scene(offers=("ANONYMOUS-RELAY",))
    scene.peer.answer_attach = lambda link: link.attach(offered_capabilities=("SHARED-SUBS",))
    scene.subscribe(SHARED_DURABLE)
    assert scene.link.credit == 10


def test_m65_where_the_connection_offers_them_the_link_does_not_ask() -> None:
    """And a link that is not shared never asks."""
    scene = Scene()
    scene.subscribe(SHARED_DURABLE)
    assert scene.link.remote_desired_capabilities == ()
    plain = Scene(offers=("ANONYMOUS-RELAY",))
    plain.subscribe(UNSHARED_DURABLE)
    assert plain.link.remote_desired_capabilities == ()


def test_m66_an_attach_without_a_source() -> None:
    """The detach behind it says why; one that does not say is an invalid destination. Nobody else hears of it."""
    for error, kind in (
        (AmqpError("amqp:unauthorized-access", "not you"), JMSError),
        (AmqpError("amqp:resource-locked", "in use"), JMSError),
        (None, InvalidDestinationError),
    ):
        scene = Scene()
        heard: list[JMSError] = []
        scene.peer.core.exception_listener = heard.append
        scene.peer.answer_attach = refused(error)
        _, steps = scene.begin()
        with pytest.raises(kind) as raised:
            scene.peer.run(steps)
        assert raised.value.condition == (error.condition if error else None)
        assert not scene.session.consumers and not scene.peer.core.calls, "an error that was raised is not told again"


# --- closing


@pytest.mark.parametrize(
    ("subscription", "closed"),
    [(None, True), (SHARED_VOLATILE, True), (UNSHARED_DURABLE, False), (SHARED_DURABLE, False)],
)
def test_m67_a_durable_subscription_is_detached_and_not_closed(subscription: Subscription, closed: bool) -> None:
    """The others end with their link."""
    scene = Scene()
    scene.peer.run(scene.open(subscription=subscription).close())
    (detach,) = scene.sent("detach")
    assert bool(detach.closed) is closed


# --- unsubscribe


@pytest.mark.parametrize(
    ("client_id", "name", "desired"), [("alice", "s", ()), (None, "s|global", ("shared", "global"))]
)
def test_m41_m68_unsubscribe_looks_up_the_first_link_and_closes_it(
    client_id: str | None, name: str, desired: tuple[str, ...]
) -> None:
    """On a session of its own, with no source; what comes back as a source is closed."""
    scene = Scene(client_id)
    found = Source(address="prices", durable=2, expiry_policy="never")
    scene.peer.answer_attach = lambda link: link.attach(source=found)
    scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))
    link = scene.link
    assert link.name == name and link.remote_source is None and link.remote_target is not None
    assert tuple(link.remote_desired_capabilities) == desired
    assert len(scene.sent("begin")) == 2, "not in the session of the application"
    (detach,) = scene.sent("detach")
    assert detach.closed
    scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))
    assert len(scene.sent("begin")) == 2, "one such session serves all"


@pytest.mark.parametrize("error", [None, AmqpError("amqp:not-found", "no such subscription")])
def test_m68_m69_what_is_not_there_is_an_invalid_destination(error: AmqpError | None) -> None:
    """Whether the broker says so or says nothing."""
    scene = Scene()
    scene.peer.answer_attach = refused(error)
    with pytest.raises(InvalidDestinationError):
        scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))
    scene.peer.answer_attach = Link.attach
    assert not scene.peer.core.failure
    scene.subscribe(UNSHARED_DURABLE)  # the name is free


def test_m68_the_error_on_the_close_is_raised() -> None:
    """For instance because another connection still reads."""
    scene = Scene(None)
    scene.peer.answer_attach = lambda link: link.attach(source=Source(address="prices"))
    scene.peer.answer_close = lambda link: AmqpError("amqp:resource-locked", "two consumers")
    with pytest.raises(JMSError, match="two consumers") as raised:
        scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))
    assert raised.value.condition == "amqp:resource-locked"


@pytest.mark.parametrize("subscription", [UNSHARED_DURABLE, SHARED_DURABLE])
def test_m68_not_while_it_is_in_use(subscription: Subscription) -> None:
    """Jms rule 137: neither while a consumer is open nor while what it handed over is unsettled."""
    scene = Scene()
    consumer = scene.subscribe(subscription)
    scene.peer.give(1)
    scene.peer.receive(consumer, 1)
    for _ in range(2):
        with pytest.raises(IllegalStateError, match="cannot end"):
            scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))
        scene.peer.run(consumer.close())
    assert len(scene.peer.links) == 1, "the broker was not asked"
    scene.session.ledger.acknowledge(None)
    scene.peer.answer_attach = lambda link: link.attach(source=Source(address="prices"))
    scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))


def test_m68_a_shared_volatile_subscription_is_none_to_unsubscribe() -> None:
    """A volatile one of that name does not stand in the way."""
    scene = Scene()
    scene.subscribe(SHARED_VOLATILE)
    scene.peer.answer_attach = lambda link: link.attach(source=Source(address="prices"))
    scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))


def test_m41_the_broker_ends_the_connection_s_own_session() -> None:
    """Whoever waits in it hears why; the next one begins another."""
    scene = Scene()
    scene.peer.answer_attach = lambda link: link.session.end(AmqpError("amqp:internal-error", "oh"))
    with pytest.raises(JMSError, match="oh"):
        scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))
    scene.peer.answer_attach = refused(None)
    with pytest.raises(InvalidDestinationError):
        scene.peer.run(scene.peer.core.subscriptions.unsubscribe("s"))
    assert len(scene.sent("begin")) == 3


# --- priority


def test_the_priority_of_a_consumer_is_a_link_property() -> None:
    """Said only where it is not the usual 0."""
    scene = Scene()
    for priority, said in ((0, None), (7, 7), (-3, -3)):
        scene.open(Queue("q"), priority=priority)
        assert (scene.link.remote_properties or {}).get("priority") == said


def test_a_connection_lost_meanwhile_is_heard_by_who_waits() -> None:
    """For a subscription that is made, looked up or ended."""
    for wait in ("subscribe", "look up", "end"):
        scene = Scene()
        if wait != "end":
            scene.peer.answer_attach = lambda link: None
        else:
            scene.peer.answer_attach = lambda link: link.attach(source=Source(address="prices"))
        core = scene.peer.core
        steps = core.subscriptions.unsubscribe("s")
        if wait == "subscribe":
            _, steps = scene.begin(subscription=UNSHARED_DURABLE)
        scene.peer.begin(steps)
        scene.peer.pump()
        if wait == "end":
            scene.peer.begin(steps)  # the next step: it is attached, and now closes
        core.receive_eof()
        with pytest.raises(ConnectionLostError):
            scene.peer.run(steps)
