"""What a producer says on the wire, and what it makes of the answers: M44 to M52, and sends that meet no answer."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from jmsish.client.producer import LINKS_KEPT, ClientProducer, Completion, rejection
from jmsish.client.sending import StreamedSend
from jmsish.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsish.engine.outcomes import (
    ACCEPTED,
    RELEASED,
    AmqpError,
    Modified,
    Rejected,
    Target,
    TransactionalState,
)
from jmsish.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    OperationTimeoutError,
    SendRejectedError,
    UnsupportedFeatureError,
)
from jmsish.message import TextMessage
from jmsish.modes import AcknowledgeMode

from .peer import Peer, message


class Posts(Peer):
    """A peer that answers posts as the test says, and attaches with what the test says."""

    def __init__(self, *, offers: tuple[str, ...] = ("ANONYMOUS-RELAY",), credit: int = 100, **options: Any) -> None:
        self.verdict: Any = ACCEPTED
        """What a post is answered with; None is no answer."""
        self.credit = credit
        self.link_offers: tuple[str, ...] = ()
        self.refuses: AmqpError | None | bool = False
        self.posted: list[Any] = []
        super().__init__(offers=offers, **options)

    def _attached(self, link: Any) -> None:
        if link.is_sender or not isinstance(link.remote_target, Target):
            super()._attached(link)
        elif self.refuses is not False:
            link.refuse(self.refuses)
        else:
            link.attach(offered_capabilities=self.link_offers)
            link.flow(self.credit)

    def receiver(self) -> Any:
        """The far end of the producer's link."""
        return next(link for session in self.engine.remote_sessions.values() for link in session.remote_links.values())

    def _delivered(self, link: Any, delivery: Any) -> None:
        if link in self.coordinators:
            super()._delivered(link, delivery)
            return
        self.posted.append(delivery)
        if self.verdict is not None and not delivery.remote_settled:
            link.session.disposition(delivery, self.verdict, True)

    def auto(self) -> Any:
        return self.session(AcknowledgeMode.AUTO)

    def to(self, session: Any, destination: Destination | None) -> ClientProducer:
        producer = ClientProducer(session, destination)
        self.run(producer.attach())
        return producer

    def attaches(self) -> list[Any]:
        return [frame for frame in self.frames if frame.name == "attach"]


def send(peer: Peer, producer: ClientProducer, number: int = 1) -> JMSError | None:
    """Sends and waits, as the face does; what the answer means."""
    outcome: Future[Any] = Future()

    def steps() -> Any:
        yield from producer.send(message(number), outcome)
        yield outcome, producer.session.connection.send_deadline()

    peer.run(steps())
    return rejection(outcome.result())


def test_m44_link_name_source_and_outcomes() -> None:
    """A name of its own for each link; the source names the producer, with the four outcomes."""
    peer = Posts()
    session = peer.auto()
    peer.to(session, Queue("orders"))
    peer.to(session, Queue("orders"))
    one, two = peer.attaches()
    assert one.fields["name"] != two.fields["name"] and "orders" in one.fields["name"]
    source = one.fields["source"]
    assert source.address == one.fields["name"]
    words = ("accepted", "rejected", "released", "modified")
    assert [str(outcome) for outcome in source.outcomes] == [f"amqp:{word}:list" for word in words]


@pytest.mark.parametrize(
    ("destination", "capability"),
    [
        (Queue("d"), "queue"),
        (Topic("d"), "topic"),
        (TemporaryQueue("d"), "temporary-queue"),
        (TemporaryTopic("d"), "temporary-topic"),
    ],
)
def test_m45_m74_the_target_says_its_kind(destination: Destination, capability: str) -> None:
    """By a capability; an anonymous target has none, and no address."""
    peer = Posts()
    session = peer.auto()
    named = peer.to(session, destination).link
    anonymous = peer.to(session, None).link
    assert named is not None and anonymous is not None
    said, unsaid = (
        next(frame for frame in peer.attaches() if frame.fields["name"] == link.name).fields["target"]
        for link in (named, anonymous)
    )
    assert said.address == "d" and capability in map(str, said.capabilities)
    assert unsaid.address is None and not unsaid.capabilities


def test_m46_settle_modes() -> None:
    """The receiver settles first; the sender leaves it to each transfer whether it is settled (2.8.2: mixed), since
    posts of a transaction are, and others are not."""
    peer = Posts()
    peer.to(peer.auto(), Queue("q"))
    (attach,) = peer.attaches()
    assert attach.fields.get("rcv_settle_mode") in (None, 0)
    assert attach.fields.get("snd_settle_mode") in (None, 2)


def test_m47_delayed_delivery_is_desired_and_its_lack_refused_here() -> None:
    """Offered by the connection or by the link; else nothing is sent that the broker would deliver at once."""
    peer = Posts()
    producer = peer.to(peer.auto(), Queue("q"))
    assert "DELAYED_DELIVERY" in str(peer.attaches()[0].fields["desired_capabilities"])
    with pytest.raises(UnsupportedFeatureError, match="delayed delivery"):
        producer.check_delay(Queue("q"))
    for offers, link_offers in (((), ("DELAYED_DELIVERY",)), (("DELAYED_DELIVERY",), ())):
        other = Posts(offers=("ANONYMOUS-RELAY", *offers))
        other.link_offers = link_offers
        other.to(other.auto(), Queue("q")).check_delay(Queue("q"))


def test_m47_the_link_of_an_anonymous_producer_decides() -> None:
    """Without a relay it is the link to the destination that is asked."""
    peer = Posts(offers=())
    anonymous = peer.to(peer.auto(), None)
    peer.link_offers = ("DELAYED_DELIVERY",)
    peer.run(anonymous.target_for(Queue("a")))
    peer.link_offers = ()
    peer.run(anonymous.target_for(Queue("b")))
    anonymous.check_delay(Queue("a"))
    with pytest.raises(UnsupportedFeatureError):
        anonymous.check_delay(Queue("b"))


@pytest.mark.parametrize(
    ("reason", "error"),
    [(AmqpError("amqp:not-found", "no such node"), InvalidDestinationError), (None, InvalidDestinationError)],
)
def test_m48_a_null_target_waits_for_the_reason(reason: AmqpError | None, error: type[JMSError]) -> None:
    """The attach that is not granted raises what the detach behind it says; without a reason InvalidDestination."""
    peer = Posts()
    peer.refuses = reason
    session = peer.auto()
    with pytest.raises(error):
        peer.to(session, Queue("nowhere"))
    assert session.producers == []


def test_m49_without_a_relay_a_link_for_each_destination() -> None:
    """Kept for the next send there; not more than a few of them."""
    peer = Posts(offers=())
    anonymous = peer.to(peer.auto(), None)
    assert peer.attaches() == []
    first = peer.run(anonymous.target_for(Queue("q0")))
    assert peer.run(anonymous.target_for(Queue("q0"))) is first
    assert peer.run(anonymous.target_for(Topic("q0"))) is not first
    for number in range(1, LINKS_KEPT):
        peer.run(anonymous.target_for(Queue(f"q{number}")))
    assert first.closed and len(anonymous.by_destination) == LINKS_KEPT
    assert [frame.name for frame in peer.frames].count("detach") == 1
    peer.run(anonymous.close())
    assert [frame.name for frame in peer.frames].count("detach") == LINKS_KEPT + 1


def test_m49_with_a_relay_one_link_for_all() -> None:
    """Its target has no address."""
    peer = Posts()
    anonymous = peer.to(peer.auto(), None)
    assert peer.run(anonymous.target_for(Queue("a"))) is peer.run(anonymous.target_for(Topic("b"))) is anonymous
    assert len(peer.attaches()) == 1


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (Rejected(AmqpError("amqp:resource-limit-exceeded", "the queue is full")), "rejected.*the queue is full"),
        (Rejected(None), "rejected.*no reason"),
        (RELEASED, "released"),
        (Modified(delivery_failed=True), "modified.*counts as a failure"),
        (Modified(undeliverable_here=True), "modified.*not be taken here"),
        (None, "without an outcome"),
    ],
)
def test_m50_each_outcome_is_an_error_of_its_own_words(verdict: Any, text: str) -> None:
    """Only accepted is success."""
    peer = Posts()
    producer = peer.to(peer.auto(), Queue("q"))
    assert send(peer, producer) is None
    if verdict is None:
        error = rejection(None)
    else:
        peer.verdict = verdict
        error = send(peer, producer)
    assert isinstance(error, SendRejectedError) and not error.outcome_unknown
    with pytest.raises(SendRejectedError, match=text):
        raise error
    peer.verdict = ACCEPTED
    assert send(peer, producer) is None


def test_m50_a_destination_that_the_relay_does_not_know() -> None:
    """Said by a rejection, it is an invalid destination."""
    peer = Posts()
    producer = peer.to(peer.auto(), None)
    peer.verdict = Rejected(AmqpError("amqp:not-found", "no such queue"))
    assert isinstance(send(peer, producer), InvalidDestinationError)


def test_m51_who_does_not_wait_goes_on_and_hears_of_refusals() -> None:
    """A post without anybody waiting is said at once; its refusal goes to the exception listener."""
    peer = Posts()
    heard: list[Any] = []
    peer.core.exception_listener = heard.append
    producer = peer.to(peer.auto(), Queue("q"))
    peer.verdict = None
    assert all(producer.post(message(number), None) for number in range(3))
    peer.pump()
    assert len(peer.posted) == 3
    delivery = peer.posted[1]
    delivery.link.session.disposition(delivery, RELEASED, True)
    peer.pump()
    ((function, (error,)),) = peer.core.calls
    assert function == peer.core.exception_listener and "released" in str(error)


def test_m52_a_transacted_send_carries_its_transaction() -> None:
    """And is settled: whether it was taken is the answer to the discharge (Part 4, 4.4.4.1)."""
    peer = Posts()
    session = peer.session()
    producer = peer.to(session, Queue("q"))
    peer.run(producer.send(message(1), None))
    peer.pump()
    (delivery,) = peer.posted
    assert isinstance(delivery.remote_state, TransactionalState) and delivery.remote_state.txn_id == b"txn-1"
    assert delivery.remote_settled
    peer.run(session.commit())


# -- completions (jms rules 96 to 100) -----------------------------------------------------------------------------


def completions(peer: Posts) -> list[str]:
    """The callbacks that have become due, in their order."""
    calls, peer.core.calls = peer.core.calls, []
    return [str(function.__self__.message.text) for function, _ in calls]  # type: ignore[attr-defined]


def test_rule_98_callbacks_come_in_the_order_of_the_sends_not_of_the_answers() -> None:
    """A broker may answer the second before the first; the callback of the second waits for that of the first."""
    peer = Posts()
    producer = peer.to(peer.auto(), Queue("q"))
    peer.verdict = None
    for number in (1, 2, 3):
        assert producer.post(message(number), Completion(lambda *_: None, TextMessage(f"m{number}"), producer.session))
    peer.pump()
    first, second, third = peer.posted
    for delivery, due in ((third, []), (first, ["m1"]), (second, ["m2", "m3"])):
        delivery.link.session.disposition(delivery, ACCEPTED, True)
        peer.pump()
        assert completions(peer) == due


def test_rule_96_a_completion_waits_for_the_answer() -> None:
    """It comes when a send that waits would have returned, and not before."""
    peer = Posts()
    producer = peer.to(peer.auto(), Queue("q"))
    peer.verdict = None
    producer.post(message(1), Completion(lambda *_: None, TextMessage("m1"), producer.session))
    peer.pump()
    assert completions(peer) == []
    delivery = peer.posted[0]
    delivery.link.session.disposition(delivery, RELEASED, True)
    peer.pump()
    ((function, (error,)),) = peer.core.calls
    assert isinstance(error, SendRejectedError)


def test_rule_43_closing_waits_for_the_answers() -> None:
    """A producer that closes stays attached until the last answer has come."""
    peer = Posts(close_timeout=5)
    producer = peer.to(peer.auto(), Queue("q"))
    peer.verdict = None
    producer.post(message(1), Completion(lambda *_: None, TextMessage("m1"), producer.session))
    closing = peer.begin(producer.close())
    peer.pump()
    assert "detach" not in peer.told()
    delivery = peer.posted[0]
    delivery.link.session.disposition(delivery, ACCEPTED, True)
    peer.run(closing)
    assert "detach" in peer.told() and completions(peer) == ["m1"]


# -- sends that are blocked, and links that go away -----------------------------------------------------------------


def test_a_send_without_credit_ends_by_its_timeout_and_sends_nothing() -> None:
    """What did not leave is no doubt: the outcome is known, and the next send goes out when credit comes."""
    peer = Posts(credit=0, send_timeout=5)
    producer = peer.to(peer.auto(), Queue("q"))
    with pytest.raises(OperationTimeoutError, match="no credit for queue://q within send_timeout; nothing") as caught:
        send(peer, producer)
    assert not caught.value.outcome_unknown and peer.posted == []
    peer.receiver().flow(10)
    assert send(peer, producer, 2) is None
    assert [delivery.payload for delivery in peer.posted] == [message(2)]


HUGE = bytes(3_000_000)
"""More than 2048 frames of 512 octets: a window."""


def shut(peer: Posts) -> ClientProducer:
    """A producer whose frames are small, and whose window is not opened again."""
    peer.core.engine.max_frame_out = 512
    session = peer.auto()
    for far in peer.engine.remote_sessions.values():
        far.held_back = True
    return peer.to(session, Queue("q"))


def test_a_link_that_goes_while_a_message_is_half_sent() -> None:
    """Whoever sends it hears of it, and knows that the broker has not got it."""
    peer = Posts()
    producer = shut(peer)
    outcome: Future[Any] = Future()
    peer.run(producer.send(HUGE, outcome))
    assert not outcome.done() and peer.posted == []
    peer.receiver().detach(error=AmqpError("amqp:resource-deleted", "the queue was deleted"))
    peer.pump()
    with pytest.raises(JMSError, match="deleted") as caught:
        outcome.result(0)
    assert not getattr(caught.value, "outcome_unknown", False)


def test_m109_d11_sends_that_a_lost_connection_leaves_without_an_answer() -> None:
    """They end with an error that says the outcome is unknown, callbacks in their order; one that still waited for
    credit has not been sent, and its outcome is known. Nothing is sent again."""
    peer = Posts(credit=2)
    producer = peer.to(peer.auto(), Queue("q"))
    peer.verdict = None
    for number in (1, 2):
        assert producer.post(message(number), Completion(lambda *_: None, TextMessage(f"m{number}"), producer.session))
    peer.pump()
    blocked = peer.begin(producer.send(message(3), None))
    peer.core.receive_eof()
    calls = list(peer.core.calls)
    assert completions(peer)[:2] == ["m1", "m2"]
    errors = [error for _, (error,) in calls[:2]]
    assert all(isinstance(error, ConnectionLostError) and error.outcome_unknown for error in errors)
    with pytest.raises(ConnectionLostError) as caught:
        peer.run(blocked)
    assert not caught.value.outcome_unknown and len(peer.posted) == 2


def test_a_connection_that_goes_while_a_message_is_half_sent() -> None:
    """The same, told by the loss; a message that had left whole is in doubt."""
    peer = Posts()
    producer = shut(peer)
    peer.verdict = None
    sent: Future[Any] = Future()
    half: Future[Any] = Future()
    never: Future[Any] = Future()
    peer.run(producer.send(message(1), sent))
    peer.run(producer.send(HUGE, half))
    peer.run(producer.send(message(2), never))
    peer.core.receive_eof()
    doubts = []
    for outcome in (sent, half, never):
        with pytest.raises(ConnectionLostError) as caught:
            outcome.result(0)
        doubts.append(caught.value.outcome_unknown)
    assert doubts == [True, False, False]


def streaming(peer: Posts, producer: ClientProducer, outcome: Future[Any]) -> StreamedSend:
    sending = StreamedSend(producer, outcome)
    assert peer.run(sending.begin())
    return sending


def fill(peer: Posts, sending: StreamedSend) -> None:
    """Puts parts until one has to wait for the window."""
    while sending.put(bytes(sending.room), last=False):
        peer.pump()


def test_a_stream_waits_for_the_window_part_by_part() -> None:
    """Nothing is put by: one part waits, and the next is asked for when it has left."""
    peer = Posts()
    producer = shut(peer)
    sending = streaming(peer, producer, Future())
    fill(peer, sending)
    assert len(producer.session.engine_session.backlog) == 1
    waiting = peer.begin(sending.wait())
    peer.pump()
    far = peer.receiver().session
    far.held_back = False
    far.write_flow()
    peer.run(waiting)
    assert not producer.session.engine_session.backlog and sending.put(bytes(5), last=True)
    peer.pump()
    assert len(peer.posted) == 1


def test_a_stream_that_waits_for_the_window_ends_by_its_timeout() -> None:
    """And is taken back: the broker never gets it, though its frames came (Part 2, 2.6.14)."""
    peer = Posts(send_timeout=5)
    producer = shut(peer)
    sending = streaming(peer, producer, Future())
    fill(peer, sending)
    with pytest.raises(OperationTimeoutError):
        peer.run(sending.wait())
    sending.abort()
    far = peer.receiver().session
    far.held_back = False
    far.write_flow()
    assert send(peer, producer, 2) is None
    assert [delivery.payload for delivery in peer.posted] == [message(2)]


def test_a_stream_whose_link_goes() -> None:
    """The next part raises why; there is nothing to be taken back."""
    peer = Posts()
    producer = shut(peer)
    sending = streaming(peer, producer, Future())
    fill(peer, sending)
    peer.receiver().detach(error=AmqpError("amqp:resource-deleted", "the queue was deleted"))
    with pytest.raises(JMSError, match="deleted"):
        peer.run(sending.wait())
    with pytest.raises(JMSError, match="deleted"):
        sending.put(b"more", last=True)
    sending.abort()


def test_a_stream_that_the_broker_refuses_before_it_is_whole() -> None:
    """The refusal ends the send; the rest is not sent."""
    peer = Posts()
    producer = peer.to(peer.auto(), Queue("q"))
    sending = streaming(peer, producer, Future())
    assert sending.put(b"a part", last=False)
    peer.pump()
    (partial,) = peer.receiver().session.incoming.values()
    partial.link.session.disposition(partial, Rejected(AmqpError("amqp:resource-limit-exceeded", "full")), True)
    peer.pump()
    with pytest.raises(SendRejectedError, match="full"):
        sending.put(b"more", last=True)
    sending.abort()
    assert send(peer, producer, 2) is None


def test_a_stream_beyond_the_link_s_limit_is_not_sent_on() -> None:
    """amqp:link:message-size-exceeded, as for any message; the producer stays usable."""
    peer = Posts()
    producer = peer.to(peer.auto(), Queue("q"))
    assert producer.link is not None
    producer.link.remote_max_message_size = 100
    sending = streaming(peer, producer, Future())
    sending.put(bytes(60), last=False)
    with pytest.raises(SendRejectedError) as caught:
        sending.put(bytes(60), last=True)
    assert caught.value.condition == "amqp:link:message-size-exceeded"
    sending.abort()
    assert send(peer, producer, 2) is None
    assert [delivery.payload for delivery in peer.posted] == [message(2)]


def test_rule_97_a_stream_that_fails_calls_no_callback() -> None:
    """Also when the connection goes in its middle: the error is raised, and that is all."""
    peer = Posts()
    producer = peer.to(peer.auto(), Queue("q"))
    sending = StreamedSend(producer, Completion(lambda *_: None, TextMessage("m1"), producer.session))
    assert peer.run(sending.begin())
    sending.put(b"a part", last=False)
    peer.pump()
    peer.core.receive_eof()
    with pytest.raises(ConnectionLostError):
        sending.put(b"more", last=True)
    assert completions(peer) == []
