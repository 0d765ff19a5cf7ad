"""The rules of Jakarta Messaging about sending, 69 to 102, each on the four faces.

Rules 96 to 98 about a broker that answers late, or out of order, are in `tests/wire/test_client_producers.py`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from datetime import timedelta
from typing import Any

import pytest

import jmsish
from jmsish import DeliveryMode
from jmsish.testing import VirtualClock
from tests.hurry import hurried

from .face import Face
from .steps import expect, numbered, outcome, seen, stage


def silent(message: Any, error: Any) -> None:
    """A completion that is asked for and does nothing."""


async def delivered(play: Any, *args: Any, **arguments: Any) -> Any:
    """Sends one message and receives it."""
    producer = await play.session.create_producer(play.destination)
    await producer.send(*args, **arguments)
    consumer = await play.consumer()
    message = await consumer.receive(timeout=30)
    await consumer.close()
    await producer.close()
    return message


async def test_a_completion_that_raises_is_told_by_its_own_name(face: Face, caplog: pytest.LogCaptureFixture) -> None:
    """In the log: the callable that the application gave, and not one that stands around it; the others go on."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    told: list[Any] = []

    def fails(message: Any, error: Any) -> None:
        raise ValueError("mine")

    await producer.send("m1", on_completion=fails)
    await producer.send("m2", on_completion=lambda message, error: told.append(message.body))
    await producer.close()
    said = [record.getMessage() for record in caplog.records if record.exc_info]
    assert len(said) == 1 and "fails" in said[0] and "Completion" not in said[0] and told == ["m2"]


@pytest.mark.parametrize("wrong", [[("a", 1)], "a", 5], ids=repr)
async def test_properties_of_a_send_are_a_mapping(face: Face, wrong: Any) -> None:
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    with pytest.raises(TypeError, match="properties is a mapping"):
        await producer.send("m1", properties=wrong)
    await play.queue.comes_to(0)


@pytest.mark.parametrize("wrong", [9, "PERSISTENT", None], ids=repr)
async def test_what_is_no_mode_is_told_which_there_are(face: Face, wrong: Any) -> None:
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    with pytest.raises(ValueError, match=r"no DeliveryMode: there are NON_PERSISTENT \(1\), PERSISTENT \(2\)"):
        producer.delivery_mode = wrong
    with pytest.raises(ValueError, match=r"no AcknowledgeMode: there are TRANSACTED \(0\), AUTO \(1\), CLIENT \(2\)"):
        await play.connection.create_session(acknowledge_mode=wrong)


# -- transactions and completions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_rule_69_commit_and_rollback_wait_for_the_callbacks(face: Face, ending: str) -> None:
    """All callbacks have returned before the transaction ends: in them its messages are not on the queue."""
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    log = face.log()
    for body in numbered(1, 20).split():
        await producer.send(body, on_completion=lambda message, error: log.add(f"{message.body} {play.queue.depth}"))
    await (play.session.commit() if ending == "commit" else play.session.rollback())
    assert log.items == [f"{body} 0" for body in numbered(1, 20).split()]
    await play.queue.holds(20 if ending == "commit" else 0)


@pytest.mark.parametrize("call", ["commit", "rollback"])
async def test_rule_70_no_commit_from_a_completion(face: Face, call: str) -> None:
    """It would wait for itself: IllegalStateError."""
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    log = face.log()

    async def done(message: Any, error: Any) -> None:
        log.add(type(await outcome(getattr(play.session, call)())).__name__)

    await producer.send("m1", on_completion=called(done))
    assert await log.reach(1) == ["IllegalStateError"]
    await play.session.commit()
    await play.queue.holds(1)


async def test_rule_70_another_session_may_commit_from_a_completion(face: Face) -> None:
    """Only the session whose send it was would wait for itself."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    other = await play.beside("transacted", same_connection=True)
    await (await other.session.create_producer(other.session.create_queue("answers"))).send("done")
    log = face.log()

    async def done(message: Any, error: Any) -> None:
        await other.session.commit()
        await other.session.close()
        log.add(message.body)

    await producer.send("m1", on_completion=called(done))
    assert await log.reach(1) == ["m1"]
    await face.sight("answers").comes_to(1)


def called(callback: Any) -> Any:
    """A coroutine function as a completion: as it is with asyncio, in place on the blocking face."""

    def done(message: Any, error: Any) -> Any:
        steps = callback(message, error)
        if threading.current_thread() is threading.main_thread():
            return steps
        with contextlib.suppress(StopIteration):
            steps.send(None)
        return None

    return done


@pytest.mark.parametrize("what", ["producer", "session", "connection"])
async def test_rule_44_no_close_from_a_completion(face: Face, what: str) -> None:
    """Of its own producer, session or connection: IllegalStateError, and nothing is closed."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    closing: Any = {"producer": producer, "session": play.session, "connection": play.connection}[what]
    log = face.log()

    async def done(message: Any, error: Any) -> None:
        log.add(type(await outcome(closing.close())).__name__)

    await producer.send("m1", on_completion=called(done))
    assert await log.reach(1) == ["IllegalStateError"]
    await producer.send("m2")
    await play.queue.holds(2)


@pytest.mark.parametrize("what", ["producer", "session", "connection"])
async def test_rule_43_close_waits_for_completions(face: Face, what: str) -> None:
    """When it returns, every asynchronous send is done and its callback has returned."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    closing: Any = {"producer": producer, "session": play.session, "connection": play.connection}[what]
    log = face.log()
    for body in numbered(1, 30).split():
        await producer.send(body, on_completion=lambda message, error: log.add(f"{message.body} {error}"))
    await closing.close()
    assert log.items == [f"{body} None" for body in numbered(1, 30).split()]
    assert play.queue.depth == 30


async def test_rule_72_times_are_those_of_the_send_not_of_the_commit(face: Face) -> None:
    """Timestamp, expiration and delivery time are counted from the send; what expires before the commit is gone."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "transacted", clock=clock)
    producer = await play.session.create_producer(play.destination)
    message: Any = play.session.create_text_message("m1")
    await producer.send(message, time_to_live=1000, delivery_delay=500)
    sent = message.jms_timestamp
    assert (message.jms_expiration, message.jms_delivery_time) == (sent + 1_000_000, sent + 500_000)
    await producer.send("gone", time_to_live=10)
    clock.advance(501)
    await play.session.commit()
    consumer = await play.consumer()
    (got, _) = await expect(consumer, "m1 none")
    assert (got.jms_timestamp, got.jms_expiration, got.jms_delivery_time) == (sent, sent + 1_000_000, sent + 500_000)
    await play.session.commit()


async def test_rule_74_a_transaction_spans_all_producers_of_the_session(face: Face) -> None:
    """To several queues, named and anonymous, streamed and not."""
    play = await stage(face, "transacted")
    other = play.session.create_queue("other")
    named = await play.session.create_producer(play.destination)
    anonymous = await play.session.create_producer()
    for session_end, depth in ((play.session.rollback, 0), (play.session.commit, 2)):
        await named.send("m1")
        await anonymous.send("m2", destination=other)
        await anonymous.send("m3", destination=play.destination)
        await named.send(stream=[b"m4"])
        await session_end()
        await play.queue.holds(depth + (1 if depth else 0))
        await face.sight("other").holds(1 if depth else 0)


# -- order ---------------------------------------------------------------------------------------------------------


async def test_rule_75_one_session_one_destination_one_order(face: Face) -> None:
    """Messages of the same mode and priority arrive in the order of the sends, whichever producer sends them."""
    play = await stage(face, "auto")
    producers = [await play.session.create_producer(play.destination) for _ in range(3)]
    for number, body in enumerate(numbered(1, 60).split()):
        await producers[number % 3].send(body)
    await expect(await play.consumer(), numbered(1, 60) + " none")


async def test_rule_76_priority_may_overtake_and_delay_may_fall_behind(face: Face) -> None:
    """Strictly so on our broker: 9 before 0, equal ones in order, delayed ones when their time comes."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    producer = await play.session.create_producer(play.destination)
    await producer.send("late", priority=9, delivery_delay=60)
    for priority in (0, 4, 9, 5, 9, 0):
        await producer.send(f"p{priority}", priority=priority)
    await play.queue.holds(7)
    consumer = await play.consumer()
    await expect(consumer, "p9 p9 p5 p4 p0 p0 none")
    clock.advance(61)
    await expect(consumer, "late none")


async def test_rule_77_order_holds_within_each_mode(face: Face) -> None:
    """And across them on our broker, which loses nothing while it runs."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    modes = (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT)
    for number, body in enumerate(numbered(1, 40).split()):
        await producer.send(body, delivery_mode=modes[number % 2])
    got = await expect(await play.consumer(), numbered(1, 40) + " none")
    assert [message.jms_delivery_mode for message in got[:2]] == list(modes)


async def test_rule_79_waiting_and_not_waiting_sends_keep_their_order(face: Face) -> None:
    """Of one producer."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    for number, body in enumerate(numbered(1, 60).split()):
        await producer.send(body, on_completion=silent if number % 2 else None)
    await expect(await play.consumer(), numbered(1, 60) + " none")


# -- what send asks for, and what it sets ---------------------------------------------------------------------------


async def test_rule_81_a_destination_is_given_once(face: Face) -> None:
    """To the producer or to each send: neither both nor none."""
    play = await stage(face, "auto")
    named = await play.session.create_producer(play.destination)
    anonymous = await play.session.create_producer()
    assert (named.destination, anonymous.destination) == (play.destination, None)
    with pytest.raises(jmsish.IllegalStateError, match="anonymous"):
        await named.send("m1", destination=play.destination)
    with pytest.raises(jmsish.IllegalStateError, match="needs a destination"):
        await anonymous.send("m1")
    await anonymous.send("m2", destination=play.destination)
    await expect(await play.consumer(), "m2 none")


async def test_rule_82_what_is_no_destination_and_what_is_no_message(face: Face) -> None:
    """InvalidDestination, MessageFormat; a name alone is told how to become a destination."""
    play = await stage(face, "auto")
    anonymous = await play.session.create_producer()
    nowhere: Any = 7
    with pytest.raises(jmsish.InvalidDestinationError):
        await anonymous.send("m1", destination=nowhere)
    name: Any = "orders"
    with pytest.raises(TypeError, match="create_queue"):
        await anonymous.send("m1", destination=name)
    with pytest.raises(jmsish.MessageFormatError):
        await anonymous.send(object(), destination=play.destination)
    with pytest.raises(TypeError, match="a message or a body, or a stream"):
        await anonymous.send(destination=play.destination)
    await anonymous.send("m2", destination=play.destination)
    await expect(await play.consumer(), "m2 none")


async def test_rule_83_a_persistent_send_returns_when_the_broker_has_the_message(face: Face) -> None:
    """It is on the queue then, without any further question."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    for count in range(1, 20):
        await producer.send("m1")
        assert play.queue.depth == count


async def test_rule_84_after_send_the_message_holds_what_was_used(face: Face) -> None:
    """Destination, mode, expiration, delivery time, priority, id and timestamp."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    message: Any = play.session.create_text_message("m1")
    terms: Any = {"delivery_mode": DeliveryMode.NON_PERSISTENT, "priority": 8, "time_to_live": timedelta(minutes=2)}
    await producer.send(message, delivery_delay=0.001, **terms)
    got: Any = await (await play.consumer()).receive(timeout=30)
    for each in (message, got):
        assert each.jms_destination == play.destination
        assert (each.jms_delivery_mode, each.jms_priority) == (DeliveryMode.NON_PERSISTENT, 8)
        assert each.jms_expiration == each.jms_timestamp + 120_000
        assert each.jms_delivery_time == each.jms_timestamp + 1
        assert each.jms_message_id == message.jms_message_id


async def test_rule_85_what_the_application_put_there_is_ignored(face: Face) -> None:
    """The fields that send sets are overwritten, on both sides."""
    play = await stage(face, "auto")
    message: Any = play.session.create_text_message("m1")
    message.jms_message_id = "ID:mine"
    message.jms_priority = 9
    message.jms_timestamp = message.jms_expiration = message.jms_delivery_time = 1
    message.jms_delivery_mode = DeliveryMode.NON_PERSISTENT
    message.jms_destination = play.session.create_queue("elsewhere")
    message.jms_redelivered = True
    got = await delivered(play, message)
    for each in (message, got):
        assert each.jms_message_id != "ID:mine" and each.jms_destination == play.destination
        assert (each.jms_priority, each.jms_delivery_mode, each.jms_expiration) == (4, DeliveryMode.PERSISTENT, 0)
        assert each.jms_timestamp > 1 and each.jms_delivery_time == each.jms_timestamp
    assert not got.jms_redelivered


async def test_rule_86_ids_begin_with_id_and_are_unique(face: Face) -> None:
    """Over producers, sessions and connections."""
    play = await stage(face, "auto")
    ids = []
    for _ in range(2):
        other = await play.beside("auto")
        for _ in range(2):
            producer = await other.session.create_producer(play.destination)
            for body in (None, "a", b"b", {"c": 1}, ["d"]):
                await producer.send(body)
            for _ in range(5):
                ids.append((await (await other.consumer()).receive(timeout=30)).jms_message_id)  # type: ignore[union-attr]
    assert len(set(ids)) == len(ids) == 20
    assert all(str(each).startswith("ID:") for each in ids)


@pytest.mark.parametrize("body", ["m1", b"octets", "stream"])
async def test_rule_87_ids_can_be_left_out(face: Face, body: Any) -> None:
    """Then the message has none; afterwards it has one again."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    consumer = await play.consumer()
    for disabled in (True, False):
        producer.disable_message_id = disabled
        message: Any = play.session.create_bytes_message()
        if body == "stream":
            await producer.send(message, stream=[b"octets"])
        else:
            await producer.send(body)
        got: Any = await consumer.receive(timeout=30)
        assert (got.jms_message_id is None) is disabled
        if body == "stream":
            assert message.jms_message_id == got.jms_message_id


@pytest.mark.parametrize("whole", [False, True])
async def test_rule_88_timestamps_lie_within_the_call_or_are_left_out(face: Face, whole: bool) -> None:
    """0 when disabled, also with a time to live, which needs the time all the same."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    consumer = await play.consumer()
    producer.time_to_live = 100
    for disabled in (True, False):
        producer.disable_message_timestamp = disabled
        before = int(time.time() * 1000)
        await producer.send(play.session.create_text_message("m1") if whole else "m1")
        after = int(time.time() * 1000)
        got: Any = await consumer.receive(timeout=30)
        if disabled:
            assert got.jms_timestamp == 0
        else:
            assert before <= got.jms_timestamp <= after
        assert before + 100_000 <= got.jms_expiration <= after + 100_000


async def test_rule_89_expiration_is_send_time_plus_time_to_live(face: Face) -> None:
    """And 0 without one."""
    play = await stage(face, "auto")
    got = await delivered(play, "m1", time_to_live=1.5)
    assert got.jms_expiration == got.jms_timestamp + 1500
    got = await delivered(play, "m1", time_to_live=0)
    assert got.jms_expiration == 0


async def test_rule_90_delivery_time_is_send_time_plus_delay(face: Face) -> None:
    """Also on the receiving side; without a delay it is the time of the send."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    producer = await play.session.create_producer(play.destination)
    message: Any = play.session.create_text_message("m1")
    await producer.send(message, delivery_delay=timedelta(days=1))
    await producer.send("m2")
    consumer = await play.consumer()
    (now, _) = await expect(consumer, "m2 none")
    assert now.jms_delivery_time == now.jms_timestamp
    clock.advance(86_400)
    (later,) = await expect(consumer, "m1")
    assert later.jms_delivery_time == message.jms_delivery_time == later.jms_timestamp + 86_400_000


async def test_rule_91_defaults(face: Face) -> None:
    """Persistent, priority 4, no time to live, no delay."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    assert (producer.delivery_mode, producer.priority) == (DeliveryMode.PERSISTENT, 4)
    assert (producer.time_to_live, producer.delivery_delay) == (0, 0)
    assert not producer.disable_message_id and not producer.disable_message_timestamp
    got = await delivered(play, "m1")
    assert (got.jms_delivery_mode, got.jms_priority, got.jms_expiration) == (DeliveryMode.PERSISTENT, 4, 0)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("priority", -1, ValueError),
        ("priority", 10, ValueError),
        ("priority", True, TypeError),
        ("priority", 4.0, TypeError),
        ("delivery_mode", 0, ValueError),
        ("delivery_mode", 3, ValueError),
        ("delivery_mode", "PERSISTENT", ValueError),
        ("time_to_live", -1, ValueError),
        ("time_to_live", "1", TypeError),
        ("time_to_live", float("nan"), ValueError),
        ("delivery_delay", -0.5, ValueError),
        ("delivery_delay", timedelta(seconds=-1), ValueError),
        ("delivery_delay", True, TypeError),
        ("on_completion", "later", TypeError),
        ("properties", {"not a name": 1}, ValueError),
    ],
)
async def test_rule_92_and_m114_wrong_terms_are_refused(
    face: Face, name: str, value: Any, error: type[Exception]
) -> None:
    """In a send, and as a setting of the producer; nothing is sent, and the setting stays as it was."""
    play = await stage(face, "auto")
    producer: Any = await play.session.create_producer(play.destination)
    with pytest.raises(error):
        await producer.send("m1", **{name: value})
    if hasattr(producer, name):
        before = getattr(producer, name)
        with pytest.raises(error):
            setattr(producer, name, value)
        assert getattr(producer, name) == before
    await producer.send("m2")
    await expect(await play.consumer(), "m2 none")


async def test_rule_93_terms_of_a_send_are_for_that_send_alone(face: Face) -> None:
    """They override the producer's, an explicit 0 among them; the next send is on the producer's terms."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    producer.priority, producer.time_to_live, producer.delivery_mode = 7, 100, DeliveryMode.NON_PERSISTENT
    consumer = await play.consumer()
    await producer.send("m1", priority=1, time_to_live=0, delivery_mode=DeliveryMode.PERSISTENT)
    await producer.send("m2")
    first, second = [await consumer.receive(timeout=30) for _ in range(2)]
    by_name: Any = {message.body: message for message in (first, second) if message is not None}
    one, two = by_name["m1"], by_name["m2"]
    assert (one.jms_priority, one.jms_expiration, one.jms_delivery_mode) == (1, 0, DeliveryMode.PERSISTENT)
    assert (two.jms_priority, two.jms_delivery_mode) == (7, DeliveryMode.NON_PERSISTENT)
    assert two.jms_expiration == two.jms_timestamp + 100_000
    assert (producer.priority, producer.time_to_live) == (7, 100)


@pytest.mark.parametrize("text", ["ID:AMQP_ULONG:7", "ID:plain", "an application's own", "ID"])
async def test_rule_94_correlation_ids_keep_their_form(face: Face, text: str) -> None:
    """Those that begin `ID:` are message ids; all others are the application's, and come as they went."""
    play = await stage(face, "auto")
    message: Any = play.session.create_text_message("m1")
    message.jms_correlation_id = text
    got = await delivered(play, message)
    assert got.jms_correlation_id == text


async def test_rule_95_a_message_can_be_changed_and_sent_again(face: Face) -> None:
    """Earlier sends are not affected: neither bodies nor properties nor headers."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    message: Any = play.session.create_map_message({"n": 1})
    message.properties["n"] = 1
    await producer.send(message)
    message.set_int("n", 2)
    message.properties["n"] = 2
    message.jms_type = "second"
    await producer.send(message)
    consumer = await play.consumer()
    for number, kind in ((1, None), (2, "second")):
        got: Any = await consumer.receive(timeout=30)
        assert (got.body, got.properties["n"], got.jms_type) == ({"n": number}, number, kind)


# -- asynchronous sends ---------------------------------------------------------------------------------------------


async def test_rule_96_a_completion_comes_when_a_waiting_send_would_return(face: Face) -> None:
    """The message is on the queue by then; a refusal is the completion's error, and not raised."""
    face.broker_with().declare_queue("small", max_messages=1, overflow="reject")
    play = await stage(face, "auto", queue="small")
    producer = await play.session.create_producer(play.destination)
    log = face.log()

    def done(message: Any, error: Any) -> None:
        log.add(f"{message.body} {play.queue.depth} {type(error).__name__}")

    await producer.send("m1", on_completion=done)
    await producer.send("m2", on_completion=done)
    assert await log.reach(2) == ["m1 1 NoneType", "m2 1 SendRejectedError"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"message_or_body": "m1", "priority": 10}, ValueError),
        ({"message_or_body": object()}, jmsish.MessageFormatError),
        ({"stream": 7}, TypeError),
    ],
)
async def test_rule_97_a_send_that_raises_calls_nobody(
    face: Face, arguments: dict[str, Any], error: type[Exception]
) -> None:
    """The error is told once."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    log = face.log()
    with pytest.raises(error):
        await producer.send(**arguments, on_completion=lambda message, error: log.add("never"))
    await producer.send("m1", on_completion=lambda message, error: log.add("m1"))
    await play.session.close()
    assert log.items == ["m1"]


async def test_rule_98_callbacks_in_order_one_at_a_time_elsewhere(face: Face) -> None:
    """Of all producers of the session, and never in the thread that is inside `send`."""
    play = await stage(face, "auto")
    producers = [await play.session.create_producer(play.destination) for _ in range(2)]
    log = face.log()
    sending = [0]
    running = [0]
    sender = threading.get_ident()

    def done(message: Any, error: Any) -> None:
        running[0] += 1
        inside = sending[0] and threading.get_ident() == sender
        log.add(f"{message.body} {running[0]} {bool(inside)}")
        running[0] -= 1

    for number, body in enumerate(numbered(1, 40).split()):
        sending[0] = 1
        await producers[number % 2].send(body, on_completion=done)
        sending[0] = 0
    seen_all = await log.reach(40)
    assert sorted(seen_all) == sorted(f"{body} 1 False" for body in numbered(1, 40).split())
    for remainder in (0, 1):
        mine = [int(item.split()[0][1:]) for item in seen_all if int(item.split()[0][1:]) % 2 == remainder]
        assert mine == sorted(mine)


async def test_rule_98_a_completion_may_send(face: Face) -> None:
    """The session is free between sends; the next callback comes after this one."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    other = await play.beside("auto", same_connection=True)
    answers = await other.session.create_producer(play.session.create_queue("answers"))
    log = face.log()

    async def done(message: Any, error: Any) -> None:
        await answers.send(f"after {message.body}")
        log.add(message.body)

    for body in numbered(1, 5).split():
        await producer.send(body, on_completion=called(done))
    assert await log.reach(5) == numbered(1, 5).split()
    await face.sight("answers").comes_to(5)


async def test_rule_99_and_100_an_asynchronous_send_and_a_loss(face: Face) -> None:
    """What had no answer when the wire broke is told with an error that says whether the broker may have it."""
    play = await stage(face, "auto", cuttable=True)
    producer = await play.session.create_producer(play.destination)
    log = face.log()
    fates: dict[str, Any] = {}

    def done(message: Any, error: Any) -> None:
        fates[message.body] = error
        log.add(message.body)

    bodies = []
    for number in range(1, 100_000):
        body = f"m{number}"
        failed = await outcome(producer.send(body, on_completion=done))
        if failed is not None:
            break
        bodies.append(body)
        if number == 50:
            face.cut(play.connection)
        await face.yield_()
    assert await log.reach(len(bodies)) == bodies
    await face.turns(2)
    there = play.queue.bodies
    for body in bodies:
        error = fates[body]
        assert error is None or isinstance(error, jmsish.ConnectionLostError)
        assert error is not None or body in there
        assert body not in there or error is None or error.outcome_unknown


async def test_rule_101_no_completion_is_a_send_that_waits(face: Face) -> None:
    """`on_completion=None` is the default; what is no callable is refused before anything is sent."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1", on_completion=None)
    assert play.queue.depth == 1
    wrong: Any = 7
    with pytest.raises(TypeError, match="on_completion"):
        await producer.send("m2", on_completion=wrong)
    await play.queue.holds(1)


@pytest.mark.parametrize("mode", list(DeliveryMode))
async def test_rule_102_nothing_is_delivered_twice(face: Face, mode: DeliveryMode) -> None:
    """Whatever the mode; and while the broker runs nothing is lost either."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    producer.delivery_mode = mode
    for body in numbered(1, 300).split():
        await producer.send(body)
    consumer = await play.consumer()
    got = [seen(await consumer.receive(timeout=30)) for _ in range(300)]
    assert got == numbered(1, 300).split()
    assert await consumer.receive_no_wait() is None


# -- delivery delay, beyond the rules --------------------------------------------------------------------------------


async def test_a_delayed_message_is_shown_by_no_browser_and_survives_redelivery(face: Face) -> None:
    """Rule 108: not before its time. Given back after it, it is there at once; it was due once and for all."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "transacted", clock=clock)
    other = await play.beside("auto", clock=clock)
    producer = await other.session.create_producer(play.destination)
    await producer.send("m1", delivery_delay=100)
    await play.queue.holds(1)
    consumer = await play.consumer()
    browser = await other.session.create_browser(play.destination)
    clock.advance(99)
    assert [seen(message) async for message in browser] == []
    await expect(consumer, "none")
    clock.advance(2)
    await expect(consumer, "m1")
    await play.session.rollback()
    await expect(consumer, "m1[R2]")
    await play.session.commit()
    await play.queue.holds(0)


async def test_a_delay_is_cancelled_by_nothing(face: Face) -> None:
    """Not by the end of who sent it, nor by consumers that come and go, nor by what is behind it."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    other = await play.beside("transacted", clock=clock)
    producer = await other.session.create_producer(play.destination)
    await producer.send("m1", delivery_delay=100)
    await other.session.commit()
    await other.connection.close()
    face.connections.remove(other.connection)
    await (await play.consumer()).close()
    await play.send("m2")
    consumer = await play.consumer()
    await expect(consumer, "m2 none")
    await play.queue.holds(1)
    clock.advance(101)
    await expect(consumer, "m1 none")


async def test_a_delayed_message_can_expire_before_it_is_due(face: Face) -> None:
    """The time to live counts from the send (rule 89): it is never delivered then."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1", delivery_delay=100, time_to_live=50)
    await producer.send("m2", delivery_delay=100, time_to_live=500)
    consumer = await play.consumer()
    clock.advance(101)
    await expect(consumer, "m2 none")
    await play.queue.comes_to(0)


async def test_a_delay_on_the_way_to_a_topic(face: Face) -> None:
    """Each subscription gets the message when it is due."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    topic = play.session.create_topic("news")
    subscriber = await play.session.create_consumer(topic)
    producer = await play.session.create_producer()
    await producer.send("m1", destination=topic, delivery_delay=100)
    await producer.send("m2", destination=topic)
    await expect(subscriber, "m2 none")
    clock.advance(101)
    await expect(subscriber, "m1 none")


async def test_a_delayed_stream(face: Face) -> None:
    """Terms of a send are terms of a stream too."""
    clock = VirtualClock()
    face.broker_with(clock=clock)
    play = await stage(face, "auto", clock=clock)
    producer = await play.session.create_producer(play.destination)
    await producer.send(stream=[b"m1"], delivery_delay=100, priority=9)
    await play.queue.holds(1)
    consumer = await play.consumer()
    await expect(consumer, "none")
    clock.advance(101)
    got: Any = await consumer.receive(timeout=30)
    assert (got.body, got.jms_priority) == (b"m1", 9)


# -- anonymous producers and topics ---------------------------------------------------------------------------------


async def test_sends_to_topics_by_named_and_anonymous_producers(face: Face) -> None:
    """Both reach every subscriber; a queue of the same name hears nothing."""
    play = await stage(face, "auto")
    topic = play.session.create_topic("news")
    subscribers = [await play.session.create_consumer(topic) for _ in range(2)]
    named = await play.session.create_producer(topic)
    anonymous = await play.session.create_producer()
    await named.send("m1")
    await anonymous.send("m2", destination=topic)
    await anonymous.send("m3", destination=play.session.create_queue("news"))
    for subscriber in subscribers:
        await expect(subscriber, "m1 m2 none")
    await expect(await play.session.create_consumer(play.session.create_queue("news")), "m3 none")


# -- sends that are blocked -------------------------------------------------------------------------------------------


async def test_a_send_to_a_full_queue_ends_by_its_timeout(face: Face) -> None:
    """Held back for want of credit: OperationTimeoutError, nothing sent, and no doubt about it."""
    face.broker_with().declare_queue("small", max_messages=1, overflow="block")
    play = await stage(face, "auto", queue="small")
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1")
    with hurried(play.connection, send_timeout=0.1), pytest.raises(jmsish.OperationTimeoutError) as caught:
        await producer.send("m2")
    assert not caught.value.outcome_unknown
    with hurried(play.connection, send_timeout=0.1), pytest.raises(jmsish.OperationTimeoutError):
        await producer.send(stream=[b"m3"])
    consumer = await play.consumer()
    await expect(consumer, "m1 none")
    await producer.send("m4")
    await expect(consumer, "m4 none")
