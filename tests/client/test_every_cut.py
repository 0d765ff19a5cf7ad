"""A conversation is played once for each frame in each direction, and the wire breaks before that frame.

Whatever the frame was, the application hears what was promised, and the broker's queues agree with what it heard:

* what was said to be sent is there, once; what was said to be refused or lost is not; of what is not known either;
* what was acknowledged or committed does not come again; what was not, comes again, in its order and marked;
* a transaction is whole: all of it or nothing, and after a doubtful one the doubt is all there is;
* nobody waits for ever, and what was there before is there afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from jmsish.client.answers import Answer
from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer, Completion, rejection
from jmsish.client.session import ClientSession
from jmsish.client.subscriptions import Subscription
from jmsish.destination import Queue, Topic
from jmsish.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from jmsish.modes import AcknowledgeMode

from .cutting import CuttingRig, every_cut
from .rig import Rig, decode, encode

SENT, UNKNOWN, NOT_SENT = "sent", "unknown", "not sent"


class Story:
    """What an application was told in one play."""

    def __init__(self, rig: CuttingRig) -> None:
        self.rig = rig
        self.sends: dict[str, str] = {}
        self.done: list[str] = []
        """Received, and acknowledged for good."""
        self.doubtful: list[str] = []
        """Received in a transaction of which nobody knows."""

    def note(self, text: str, error: BaseException | None) -> None:
        if error is None:
            self.sends[text] = SENT
        else:
            assert isinstance(error, ConnectionLostError), error
            self.sends[text] = UNKNOWN if error.outcome_unknown else NOT_SENT

    def send(self, producer: ClientProducer, text: str) -> None:
        """As the faces do it: at once where it can be, else by waiting; then the outcome."""
        answer: Any = Answer()
        if not producer.post(encode(text), answer):
            self.rig.run(producer.send(encode(text), answer))
        outcome = self.rig.wait(answer)
        self.note(text, outcome if isinstance(outcome, BaseException) else rejection(outcome))

    def receive(self, consumer: ClientConsumer, story: str) -> list[str]:
        """Receives until each of these has been received at least once; what comes before it comes again."""
        wanted = story.split()
        got: list[str] = []
        while not set(wanted) <= {text.partition("*")[0] for text in got}:
            delivery = self.rig.run(consumer.receive(None))
            assert delivery is not None, f"{wanted} wanted, {got} came"
            got.append(decode(delivery))
        return got


def left(rig: CuttingRig, queue: str = "q") -> list[str]:
    """What is on a queue once the client is gone: bodies, in their order, each delivered how often."""
    rig.drain_broker()
    other = Rig()
    other.broker = rig.broker
    core = other.connect()
    consumer = other.consumer(other.session(core, AcknowledgeMode.AUTO), queue, prefetch=100)
    found = []
    while (text := other.receive(consumer)) is not None:
        found.append(text)
    return found


def bodies(found: list[str]) -> list[str]:
    return [text.partition("*")[0] for text in found]


def check_sends(story: Story, found: list[str], taken: list[str], may_double: bool = False) -> None:
    """What is on the queue, and what was taken from it for good, is what was sent."""
    there = Counter(bodies(found)) + Counter(taken)
    for text, outcome in story.sends.items():
        if outcome == SENT:
            assert there[text] == 1 or (may_double and there[text] == 2), (text, outcome, there)
        elif outcome == NOT_SENT:
            assert there[text] == 0, (text, outcome, there)
        else:
            assert there[text] <= 1, (text, outcome, there)
    order = list(dict.fromkeys(bodies(found)))
    assert order == [text for text in story.sends if text in order], "out of order"


def play(conversation: Callable[[CuttingRig], Story], cut: Any, **options: Any) -> Story:
    rig = CuttingRig(cut, **options)
    story = conversation(rig)
    assert rig.core.failure is None and not rig.core.offline
    assert (rig.cuts == 1) is (cut is not None), "the wire was to break once"
    return story


# -- the conversations -------------------------------------------------------------------------------------------------


def sending(rig: CuttingRig) -> Story:
    story = Story(rig)
    producer = rig.producer(rig.session())
    for number in range(4):
        story.send(producer, f"m{number}")
    rig.pump()
    return story


def sending_ahead(rig: CuttingRig) -> Story:
    """Asynchronous sends: each completion is called once, in the order of the sends."""
    story = Story(rig)
    session = rig.session()
    producer = rig.producer(session)
    told: list[Any] = []
    for number in range(5):
        done = Completion(lambda message, error: told.append((message, error)), f"m{number}", session)  # type: ignore[arg-type]
        if not producer.post(encode(f"m{number}"), done):
            rig.run(producer.send(encode(f"m{number}"), done))
        if number == 2:
            rig.pump()
    rig.pump()
    rig.run(producer.close())
    rig.pump()
    assert [message for message, _ in told] == [f"m{number}" for number in range(5)]
    for message, error in told:
        story.note(message, error)
    return story


def filled(rig: CuttingRig, *texts: str, queue: str = "q") -> None:
    """Puts messages on a queue, by a connection that is not cut."""
    other = Rig()
    other.broker = rig.broker
    other.send(*texts, queue=queue)


def receiving_auto(rig: CuttingRig) -> Story:
    story = Story(rig)
    filled(rig, "m0", "m1", "m2", "m3")
    consumer = rig.consumer(rig.session())
    got = story.receive(consumer, "m0 m1 m2 m3")
    rig.pump()
    while (delivery := rig.run(consumer.receive(None, wait=False))) is not None:  # what was not acknowledged in time
        got.append(decode(delivery))
        assert rig.cuts == 1 and "*" in got[-1]
    assert list(dict.fromkeys(bodies(got))) == ["m0", "m1", "m2", "m3"]
    story.done = bodies(got)
    return story


def receiving_client(rig: CuttingRig) -> Story:
    """An acknowledgement for what came by the old connection acknowledges nothing of the new one."""
    story = Story(rig)
    filled(rig, "m0", "m1", "m2", "m3")
    session = rig.session(AcknowledgeMode.CLIENT)
    consumer = rig.consumer(session, prefetch=3)
    got: list[str] = []
    while len(set(story.done)) < 4:
        ledger = session.ledger
        delivery = rig.run(consumer.receive(None))
        assert delivery is not None
        got.append(decode(delivery))
        came_by_this = session.ledger is ledger and delivery.link.session is session.engine_session
        rig.pump()
        before = len(session.ledger.delivered)
        ledger.acknowledge(None)
        if session.ledger is not ledger:
            assert len(session.ledger.delivered) == before
        rig.pump()
        if came_by_this and session.ledger is ledger:
            story.done.append(bodies(got)[-1])
    assert list(dict.fromkeys(bodies(got))) == ["m0", "m1", "m2", "m3"]
    return story


def consume_and_produce(rig: CuttingRig) -> Story:
    """One transaction a message, from q to p; what was rolled back is done again, what is in doubt is not."""
    story = Story(rig)
    filled(rig, "m0", "m1", "m2")
    session = rig.session(AcknowledgeMode.TRANSACTED)
    consumer, producer = rig.consumer(session, "q"), rig.producer(session, "p")
    rolled_back = 0
    while len({*story.done, *story.doubtful}) < 3:
        delivery = rig.run(consumer.receive(None))
        assert delivery is not None
        text = decode(delivery).partition("*")[0]
        if text in story.doubtful:  # it came again: so it was undone
            story.doubtful.remove(text)
        if not producer.post(encode(text), None):
            rig.run(producer.send(encode(text), None))
        error = rig.outcome(session.commit())
        if error is None:
            story.done.append(text)
        elif isinstance(error, TransactionInDoubtError):
            assert (error.sent, error.received) == (1, 1) and error.transaction_id
            story.doubtful.append(text)
        else:
            assert isinstance(error, TransactionRolledBackError), error
            rolled_back += 1
            assert rolled_back == 1
    rig.pump()
    return story


def rolling_back(rig: CuttingRig) -> Story:
    """Scenarios 45 and 165: a rollback that is cut short raises nothing, and loses nothing."""
    story = Story(rig)
    filled(rig, "m0", "m1", "m2")
    session = rig.session(AcknowledgeMode.TRANSACTED)
    consumer = rig.consumer(session)
    assert bodies(story.receive(consumer, "m0 m1"))[0] == "m0"
    assert rig.outcome(session.rollback()) is None
    assert rig.outcome(session.rollback()) is None
    got = bodies(story.receive(consumer, "m0 m1 m2"))
    assert list(dict.fromkeys(got)) == ["m0", "m1", "m2"]
    assert rig.outcome(session.rollback()) is None
    return story


def recovering(rig: CuttingRig) -> Story:
    story = Story(rig)
    filled(rig, "m0", "m1", "m2")
    session = rig.session(AcknowledgeMode.CLIENT)
    consumer = rig.consumer(session)
    story.receive(consumer, "m0 m1")
    assert rig.outcome(session.recover()) is None
    got = bodies(story.receive(consumer, "m0 m1 m2"))
    assert list(dict.fromkeys(got)) == ["m0", "m1", "m2"]
    return story


def listening(rig: CuttingRig) -> Story:
    """What a listener has worked on is acknowledged when it returns; every message reaches it."""
    story = Story(rig)
    filled(rig, "m0", "m1", "m2", "m3")
    session = rig.session()
    consumer = rig.consumer(session)
    consumer.set_listening(True)
    got: list[str] = []
    for _ in range(20):
        rig.pump()
        while (ready := session.next_for_listener()) is not None:
            got.append(decode(ready[1]))
            rig.pump()
            session.ledger.listener_returned()
            rig.pump()
        if len(set(bodies(got))) == 4:
            break
    assert list(dict.fromkeys(bodies(got))) == ["m0", "m1", "m2", "m3"]
    rig.pump()
    story.done = bodies(got)
    return story


def subscribed(rig: CuttingRig) -> Story:
    """A durable subscription collects on while the connection is gone; a shared one is joined again."""
    story = Story(rig)
    rig.core.client_id = "ann"
    session = rig.session()
    durable = Subscription("dur", durable=True, shared=False)
    consumers = [
        rig.consumer(session, Topic("t"), subscription=durable),
        rig.consumer(session, Topic("t"), subscription=Subscription("sha", durable=True, shared=True)),
    ]
    filled_topic(rig, "m0", "m1")
    for consumer in consumers:
        assert list(dict.fromkeys(bodies(story.receive(consumer, "m0 m1")))) == ["m0", "m1"]
    for consumer in consumers:
        rig.run(consumer.close())
    rig.pump()
    error = rig.outcome(rig.core.subscriptions.unsubscribe("dur"))
    assert error is None
    assert isinstance(rig.outcome(rig.core.subscriptions.unsubscribe("dur")), InvalidDestinationError)
    return story


def filled_topic(rig: CuttingRig, *texts: str) -> None:
    other = Rig()
    other.broker = rig.broker
    core = other.connect()
    producer = ClientProducer(other.session(core, AcknowledgeMode.AUTO), Topic("t"))
    other.run(producer.attach())
    for text in texts:
        other.run(producer.send(encode(text), None))
    other.run(core.close())


def request_and_reply(rig: CuttingRig) -> Story:
    """A temporary queue is made again, under another name; its consumer and its producer go along (M105)."""
    story = Story(rig)
    first = rig.run(rig.core.temporary.create(topic=False))
    session = rig.session()
    consumer, producer = rig.consumer(session, first), rig.producer(session, first)
    for number in range(3):
        story.send(producer, f"m{number}")
        if story.sends[f"m{number}"] == SENT and rig.core.temporary.current(first) == consumer.destination:
            delivery = rig.run(consumer.receive(rig.core.now + 1))
            if delivery is None:  # it was on the node that went
                assert rig.cuts == 1
    assert producer.destination == consumer.destination == rig.core.temporary.current(first)
    for number in range(3):
        story.send(producer, f"last{number}")
        delivery = rig.run(consumer.receive(rig.core.now + 1))
        if delivery is not None:
            break
        assert rig.cuts == 1
    assert delivery is not None
    rig.run(consumer.close())
    rig.run(rig.core.temporary.delete(first))
    assert not rig.core.temporary.nodes
    return story


def browsing(rig: CuttingRig) -> Story:
    """A browser goes on behind what it has shown: each message once, in queue order."""
    story = Story(rig)
    filled(rig, "m0", "m1", "m2", "m3")
    browser = rig.consumer(rig.session(), browsing=True, prefetch=2)
    shown = []
    while (delivery := rig.run(browser.browse())) is not None:
        shown.append(decode(delivery).partition("*")[0])
    assert shown == ["m0", "m1", "m2", "m3"]
    rig.run(browser.close())
    return story


def coming_and_going(rig: CuttingRig) -> Story:
    """All kinds of parts are made, used and closed, without an error."""
    story = Story(rig)
    filled(rig, "m0")
    for mode in (AcknowledgeMode.AUTO, AcknowledgeMode.TRANSACTED):
        session = rig.session(mode)
        consumer, producer = rig.consumer(session), rig.producer(session)
        anonymous = rig.producer(session, None)
        rig.run(consumer.receive(None, wait=False))
        rig.run(anonymous.close())
        rig.run(producer.close())
        rig.run(consumer.close())
        rig.run(session.close())
    assert not rig.core.sessions
    return story


def pulling(rig: CuttingRig) -> Story:
    """A receive that does not wait says "nothing" only when the broker has said so."""
    story = Story(rig)
    filled(rig, "m0", "m1")
    session = rig.session()
    consumer = rig.consumer(session, prefetch=0)
    got = []
    while (delivery := rig.run(consumer.receive(None, wait=False))) is not None:
        got.append(decode(delivery))
    assert list(dict.fromkeys(bodies(got))) == ["m0", "m1"]
    return story


CONVERSATIONS: dict[str, Callable[[CuttingRig], Story]] = {
    each.__name__: each
    for each in (
        sending, sending_ahead, receiving_auto, receiving_client, consume_and_produce, rolling_back, recovering,
        listening, subscribed, request_and_reply, browsing, coming_and_going, pulling,
    )
}  # fmt: skip


def check(name: str, cut: Any, **options: Any) -> None:
    story = play(CONVERSATIONS[name], cut, **options)
    rig = story.rig
    if name in ("sending", "sending_ahead"):
        check_sends(story, left(rig), [], may_double=bool(options))
        if options:
            assert set(story.sends.values()) == {SENT}
        assert list(story.sends.values()).count(UNKNOWN) <= (1 if name == "sending" else 5)
    elif name in ("receiving_auto", "listening"):
        assert left(rig) == []
    elif name == "receiving_client":
        assert left(rig) == []
    elif name == "consume_and_produce":
        rest, made = bodies(left(rig)), bodies(left(rig, "p"))
        assert Counter(rest) + Counter(made) == Counter(["m0", "m1", "m2"]), (rest, made, story.done, story.doubtful)
        assert set(story.done) <= set(made) and len(story.doubtful) <= 1
        assert set(rest) <= set(story.doubtful)
    elif name in ("rolling_back", "recovering"):
        assert bodies(left(rig)) == ["m0", "m1", "m2"]
    elif name == "browsing":
        assert left(rig) == ["m0", "m1", "m2", "m3"], "looked at, not touched"


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_frame_of_a_conversation(name: str) -> None:
    for cut in every_cut(CONVERSATIONS[name]):
        try:
            check(name, cut)
        except BaseException as error:
            raise AssertionError(f"{name}, cut at {cut}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("name", ["sending", "sending_ahead"])
def test_every_frame_where_sends_in_flight_are_sent_again(name: str) -> None:
    """With `resend_in_flight` no send raises, and none is missing; some may be there twice."""
    for cut in every_cut(CONVERSATIONS[name], resend_in_flight=True):
        try:
            check(name, cut, resend_in_flight=True)
        except BaseException as error:
            raise AssertionError(f"{name}, cut at {cut}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("what", ["producer", "session", "connection"])
def test_nobody_waits_for_a_send_whose_producer_is_closed_while_the_connection_is_away(what: str) -> None:
    """It was kept to be sent again; now it is of unknown outcome."""
    rig = CuttingRig(resend_in_flight=True, close_timeout=1)
    session = rig.session()
    producer = rig.producer(session)
    answer: Any = Answer()
    assert producer.post(encode("m"), answer)
    rig.down = True
    rig.cut()
    assert producer.kept and not answer.done()
    rig.outcome({"producer": producer, "session": session, "connection": rig.core}[what].close())
    error = answer.exception()
    assert isinstance(error, ConnectionLostError) and error.outcome_unknown


def test_sessions_are_not_kept(recwarn: Any) -> None:
    """After all of it nothing of a closed session is left behind in its connection."""
    rig = CuttingRig()
    coming_and_going(rig)
    rig.cut()
    rig.pump()
    assert not rig.core.sessions and not rig.core.own_session.links
    assert isinstance(rig.outcome(rig.core.create_session(AcknowledgeMode.AUTO)), ClientSession)
    assert JMSError and Queue
