"""Maximum message size at the client: what it does not send, and what it does not take."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer, Completion
from jmsish.client.sending import StreamedSend
from jmsish.client.subscriptions import Subscription
from jmsish.client.transaction import LARGEST_CONTROL
from jmsish.destination import Queue, Topic
from jmsish.engine.link import Link
from jmsish.engine.outcomes import AmqpError, Rejected
from jmsish.engine.streaming import OutgoingStream
from jmsish.errors import ConnectionLostError, JMSError, SendRejectedError
from jmsish.message import TextMessage
from jmsish.modes import AcknowledgeMode

from .peer import Peer, message

LIMIT = 300
EXCEEDED = "amqp:link:message-size-exceeded"


class Limited(Peer):
    """A peer that takes messages of so many octets; ``announced`` says whether its attach tells."""

    def __init__(self, *, announced: bool = True, credit: int = 100, **options: Any) -> None:
        self.credit = credit
        self.posted: list[Any] = []
        super().__init__(**options)
        if announced:
            self.answer_attach = lambda link: link.attach(max_message_size=LIMIT)

    def _attached(self, link: Link) -> None:
        super()._attached(link)
        if link.attached and not link.is_sender and link not in self.coordinators:
            link.flow(self.credit)

    def _delivered(self, link: Link, delivery: Any) -> None:
        if link not in self.coordinators:
            self.posted.append(delivery)
        super()._delivered(link, delivery)

    def transfers(self) -> list[Any]:
        return [frame for frame in self.frames if frame.name == "transfer"]


def sized(size: int) -> bytes:
    return b"\x00\x53\x77\xb1" + (size - 8).to_bytes(4, "big") + b"x" * (size - 8)


def producing(
    peer: Peer,
    mode: AcknowledgeMode = AcknowledgeMode.AUTO,
    destination: Queue | None = Queue("q"),  # noqa: B008
) -> ClientProducer:
    producer = ClientProducer(peer.session(mode), destination)
    peer.run(producer.attach())
    return producer


def send(peer: Peer, producer: ClientProducer, payload: bytes, context: Any = None) -> None:
    """As a face does: at once, or with the waiting that it takes."""
    if not producer.post(payload, context):
        peer.run(producer.send(payload, context))
    peer.pump()


def refused(caught: Any, size: int, limit: int = LIMIT) -> None:
    error = caught.value
    assert isinstance(error, SendRejectedError) and not error.outcome_unknown
    assert (error.condition, error.scope) == (EXCEEDED, "link")
    assert str(size) in str(error) and str(limit) in str(error)
    assert error.info == {"message-size": size, "max-message-size": limit}


@pytest.mark.parametrize("destination", [Queue("q"), None])
@pytest.mark.parametrize("mode", [AcknowledgeMode.AUTO, AcknowledgeMode.TRANSACTED])
def test_what_is_too_large_raises_before_anything_is_sent_and_the_next_goes(
    mode: AcknowledgeMode, destination: Queue | None
) -> None:
    peer = Limited()
    producer = producing(peer, mode, destination)
    before = len(peer.transfers())
    for _ in range(3):
        with pytest.raises(SendRejectedError) as caught:
            send(peer, producer, sized(LIMIT + 1))
        refused(caught, LIMIT + 1)
    assert len(peer.transfers()) == before
    send(peer, producer, sized(LIMIT))
    assert [len(delivery.payload) for delivery in peer.posted] == [LIMIT]
    if mode is AcknowledgeMode.TRANSACTED:
        peer.run(producer.session.commit())
        assert "commit" in peer.told()


def test_it_needs_no_credit_to_be_refused() -> None:
    peer = Limited(credit=0)
    producer = producing(peer)
    with pytest.raises(SendRejectedError) as caught:
        producer.post(sized(LIMIT + 1), None)
    refused(caught, LIMIT + 1)
    assert producer.post(sized(LIMIT), None) is False, "this one waits for credit"


def test_it_needs_no_transaction_to_be_refused() -> None:
    peer = Limited()
    producer = producing(peer, AcknowledgeMode.TRANSACTED)
    controller = producer.session.controller
    assert controller is not None
    controller.posting = None
    with pytest.raises(SendRejectedError):
        producer.post(sized(LIMIT + 1), None)


def test_an_asynchronous_send_raises_in_the_caller_and_calls_nobody() -> None:
    """Nothing was begun, so there is nothing to be completed (JMS 3.1, 7.3)."""
    peer = Limited()
    producer = producing(peer)
    completion = Completion(lambda message, error: pytest.fail("called"), TextMessage("m"), producer.session)
    with pytest.raises(SendRejectedError):
        producer.post(sized(LIMIT + 1), completion)
    assert not producer.pending and not peer.core.calls


@pytest.mark.parametrize("announced", [True, False])
def test_the_limit_can_be_read(announced: bool) -> None:
    """azure-uamqp-c 98: an application that could not."""
    peer = Limited(announced=announced)
    producer = producing(peer)
    assert producer.max_message_size == (LIMIT if announced else 0)


def test_zero_and_absent_are_no_limit() -> None:
    """vcabbage/amqp 56, 90."""
    peer = Limited()
    peer.answer_attach = lambda link: link.attach(max_message_size=0)
    producer = producing(peer)
    send(peer, producer, sized(200_000))
    assert [len(delivery.payload) for delivery in peer.posted] == [200_000]


@pytest.mark.parametrize("limit", [2**31, 2**32, 2**63 - 1, 2**64 - 1])
def test_a_limit_of_more_than_31_bits(limit: int) -> None:
    peer = Limited()
    peer.answer_attach = lambda link: link.attach(max_message_size=limit)
    producer = producing(peer)
    assert producer.max_message_size == limit
    send(peer, producer, sized(200_000))
    assert len(peer.posted) == 1


def test_a_message_larger_than_a_frame_is_cut_by_the_frame_size_alone() -> None:
    """fe2o3 383, rhea 410: the two limits have nothing to do with each other."""
    peer = Limited()
    peer.answer_attach = lambda link: link.attach(max_message_size=1 << 21)
    producer = producing(peer)
    size = peer.core.engine.max_frame_out
    send(peer, producer, sized(size + 100))
    assert [len(delivery.payload) for delivery in peer.posted] == [size + 100]
    assert len(peer.transfers()) == 2


# -- streams -----------------------------------------------------------------------------------------------------------


def test_a_stream_of_a_known_size_is_refused_before_it_begins() -> None:
    peer = Limited(credit=0)
    producer = producing(peer)
    sending = StreamedSend(producer, None)
    with pytest.raises(SendRejectedError) as caught:
        next(sending.begin(LIMIT + 1))
    refused(caught, LIMIT + 1)
    assert peer.transfers() == [] and producer.credited is None


def test_a_stream_of_an_unknown_size_is_refused_as_soon_as_it_would_pass() -> None:
    """What is there of it may be less than a frame; nothing was sent then."""
    peer = Limited()
    producer = producing(peer)
    sending = StreamedSend(producer, None)
    peer.run(sending.begin())
    sending.check_size(LIMIT)
    with pytest.raises(SendRejectedError):
        sending.check_size(LIMIT + 1)
    sending.abort()
    peer.pump()
    assert peer.transfers() == []
    send(peer, producer, sized(LIMIT))
    assert len(peer.posted) == 1


# -- a broker that says nothing of its limit ---------------------------------------------------------------------------


def broker_refuses(peer: Limited, *, close: bool) -> None:
    """The answers of DISPATCH-975 to what was posted, all in one write."""
    [delivery] = peer.posted
    error = AmqpError(EXCEEDED, "Message size exceeded")
    if not delivery.remote_settled:
        delivery.link.session.disposition(delivery, Rejected(error), True)
    delivery.link.detach(closed=True, error=error)
    if close:
        peer.engine.close(AmqpError("amqp:connection:forced", "Message size exceeded"))
    peer.pump()


class Deaf(Limited):
    """Takes what comes without an answer."""

    def _delivered(self, link: Link, delivery: Any) -> None:
        self.posted.append(delivery)


@pytest.mark.parametrize("close", [True, False])
def test_whoever_waits_hears_that_it_was_too_large_and_not_that_the_connection_went(close: bool) -> None:
    """The rejection comes first; what ends after it is told by the calls that follow."""
    peer = Deaf(announced=False)
    producer = producing(peer)
    outcome: Future[Any] = Future()
    send(peer, producer, sized(LIMIT + 1), outcome)
    broker_refuses(peer, close=close)
    state = outcome.result(timeout=0)
    assert isinstance(state, Rejected) and state.error is not None and state.error.condition == EXCEEDED
    with pytest.raises(ConnectionLostError if close else SendRejectedError, match="Message size exceeded"):
        producer.check()


# -- the client as a receiver ------------------------------------------------------------------------------------------


def consuming(**options: Any) -> tuple[Peer, ClientConsumer]:
    peer = Peer(max_message_size=LIMIT, **options)
    return peer, peer.consumer(peer.session(AcknowledgeMode.CLIENT))


def test_the_option_is_told_the_broker() -> None:
    peer, _ = consuming()
    assert [frame.max_message_size for frame in peer.frames if frame.name == "attach"] == [LIMIT]
    without = Peer()
    without.consumer(without.session(AcknowledgeMode.CLIENT))
    assert [frame.fields.get("max_message_size") for frame in without.frames if frame.name == "attach"] == [None]


@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_message_beyond_it_ends_the_link_with_the_link_error(in_pieces: bool) -> None:
    """Link by link, as vertx-proton 115 and RabbitMQ 14389 say. The message is the broker's still."""
    peer, consumer = consuming()
    if in_pieces:
        peer.engine.max_frame_out = 512
    told: list[JMSError] = []
    peer.core.exception_listener = told.append
    peer.messages += [sized(LIMIT), sized(700), sized(LIMIT)]
    peer.pump()
    [detach] = [frame for frame in peer.frames if frame.name == "detach"]
    assert detach.closed and detach.condition == EXCEEDED
    assert [frame for frame in peer.frames if frame.name == "disposition"] == []
    with pytest.raises(JMSError, match="more than 300 octets") as caught:
        peer.run(consumer.receive(None, wait=False))
    assert caught.value.condition == EXCEEDED and not isinstance(caught.value, SendRejectedError)
    assert [call[1][0].condition for call in peer.core.calls] == [EXCEEDED], "nobody waited: the listener is told"
    peer.messages = [message(1)]
    again = peer.consumer(consumer.session)
    assert peer.receive(again, 1) == [message(1)]


def test_who_waits_is_told_and_the_listener_is_not() -> None:
    peer, consumer = consuming()
    waiting = peer.begin(consumer.receive(None))
    peer.messages.append(sized(LIMIT + 1))
    with pytest.raises(JMSError, match="more than 300 octets"):
        peer.run(waiting)
    assert peer.core.calls == []


def test_one_of_exactly_the_limit_is_taken() -> None:
    peer, consumer = consuming()
    peer.messages.append(sized(LIMIT))
    assert peer.receive(consumer, 1) == [sized(LIMIT)]


def test_a_body_that_is_read_while_it_arrives_ends_with_the_same_error() -> None:
    """Not as if it had ended: half a body is not a body."""
    peer, consumer = consuming(stream_threshold=50)
    head = b"\x00\x53\x75\xb0" + (1000).to_bytes(4, "big")
    sending = OutgoingStream(peer.links[0], state=None, settled=False, context=None)
    sending.put(head + bytes(100), last=False)
    peer.pump()
    delivery = peer.run(consumer.receive(None, wait=False))
    assert delivery is not None and delivery.stream is not None and not delivery.complete
    body = consumer.session.reading
    assert body is not None and body.take(1000) == bytes(100) and body.take(1000) is None
    waiting = peer.begin(body.wait())
    sending.put(bytes(LIMIT), last=True)
    peer.run(waiting)
    with pytest.raises(JMSError, match="more than 300 octets") as caught:
        body.take(1000)
    assert caught.value.condition == EXCEEDED and consumer.session.engine_session.unread == 0


def test_of_a_durable_subscription_the_link_is_detached_and_not_closed() -> None:
    """To close it would end the subscription (M67)."""
    peer = Peer(max_message_size=LIMIT, client_id="me")
    session = peer.session(AcknowledgeMode.CLIENT)
    subscription = Subscription("news", durable=True, shared=False)
    consumer = ClientConsumer(session, Topic("t"), prefetch=10, subscription=subscription)
    peer.run(session.add_consumer(consumer))
    peer.messages.append(sized(LIMIT + 1))
    peer.pump()
    [detach] = [frame for frame in peer.frames if frame.name == "detach"]
    assert not detach.closed and detach.condition == EXCEEDED


@pytest.mark.parametrize("sizes", [(LIMIT + 1,), (100, LIMIT + 1, 100), (100, 100, LIMIT + 1)])
def test_a_browser_that_got_too_much_says_so_and_not_that_this_is_all(sizes: tuple[int, ...]) -> None:
    """What came before it may be shown first; what came behind it is not."""
    peer = Peer(max_message_size=LIMIT)
    browser = ClientConsumer(peer.session(AcknowledgeMode.AUTO), Queue("q"), prefetch=10, browsing=True)
    peer.run(browser.session.add_consumer(browser))
    peer.messages += [sized(size) for size in sizes]
    peer.pump()
    for _ in range(2):
        with pytest.raises(JMSError, match="more than 300 octets") as caught:
            while peer.run(browser.browse()) is not None:
                pass
        assert caught.value.condition == EXCEEDED


@pytest.mark.parametrize(("limit", "enough"), [(1, False), (LARGEST_CONTROL - 1, False), (LARGEST_CONTROL, True)])
def test_a_limit_below_a_commit_is_told_before_a_transaction_begins(limit: int, enough: bool) -> None:
    """Such a broker would close the connection at the first of it; other sessions are as good as before."""
    peer = Peer()
    peer.answer_attach = lambda link: link.attach(max_message_size=limit)
    if enough:
        peer.session(AcknowledgeMode.TRANSACTED)
        assert peer.declared == 1
        return
    with pytest.raises(SendRejectedError, match=f"the broker takes {limit} at most") as caught:
        peer.session(AcknowledgeMode.TRANSACTED)
    assert caught.value.info == {"message-size": LARGEST_CONTROL, "max-message-size": limit}
    assert [frame for frame in peer.frames if frame.name == "transfer"] == []
    peer.answer_attach = Link.attach
    peer.messages = [message(1)]
    assert peer.receive(peer.consumer(peer.session(AcknowledgeMode.AUTO)), 1) == [message(1)]
