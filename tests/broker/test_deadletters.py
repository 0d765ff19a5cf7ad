"""Dead letters: where, why, when and how often is on them; what else they were stays. Redelivery with back-off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.broker.policy import A_YEAR, QueueSettings
from jmsish.engine.arriving import without_expiry
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    MODIFIED_FAILED_UNDELIVERABLE,
    RELEASED,
    AmqpError,
    Rejected,
)
from jmsish.engine.termini import Target
from jmsish.engine.values import NULL, encode_described, encode_list, encode_string, encode_timestamp, encode_uint
from tests.broker.world import Receiver, World, message, properties

PREFIX = "x-opt-dead-letter-"


def notes(delivery: Any) -> dict[str, Any]:
    """What is said on a dead letter, by the ends of the names."""
    annotations = ReceivedMessage(delivery.payload).message_annotations() or {}
    return {key.removeprefix(PREFIX): value for key, value in annotations.items() if key.startswith(PREFIX)}


def one(world: World, name: str = "DLQ") -> Any:
    receiver = world.connect().receiver(name, credit=1)
    (delivery,) = receiver.take()
    receiver.accept([delivery])
    return delivery


def fail(receiver: Receiver, times: int) -> None:
    for _ in range(times):
        receiver.flow(1)
        receiver.dispose(receiver.take(), MODIFIED_FAILED)


def test_a_rejected_message_says_so(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), Rejected(AmqpError("app:bad", "no such customer")))
    assert notes(one(world)) == {
        "from": "q",
        "kind": "queue",
        "reason": "rejected",
        "error": "app:bad: no such customer",
        "time": round(world.clock.now * 1000),
        "delivery-count": 1,
        "times": 1,
        "first-from": "q",
    }


def test_out_of_attempts(world: World) -> None:
    world.broker.declare_queue("q", max_delivery_attempts=3)
    peer = world.connect()
    peer.sender().send("m1")
    world.advance(100)
    fail(peer.receiver(), 3)
    said = notes(one(world))
    assert (said["reason"], said["delivery-count"], said["time"]) == (
        "max-delivery-attempts", 3, round(world.clock.now * 1000),
    )  # fmt: skip
    assert "error" not in said


def test_from_a_subscription_it_says_the_topic(world: World) -> None:
    peer = world.connect()
    receiver = peer.receiver("prices", capabilities=("topic",), credit=1)
    peer.sender("prices", target=Target(address="prices", capabilities=("topic",))).send("m1")
    receiver.dispose(receiver.take(), Rejected())
    said = notes(one(world))
    assert (said["kind"], said["topic"], said["exchange"]) == ("subscription", "prices", "amq.topic")
    assert said["from"].startswith("jmsish.subscription.")


def test_from_a_temporary_queue_it_says_that(world: World) -> None:
    peer = world.connect()
    receiver = peer.receiver(None, dynamic=True, credit=1)
    address = receiver.link.remote_source.address
    peer.sender(address).send("m1")
    receiver.dispose(receiver.take(), Rejected())
    assert notes(one(world))["kind"] == "temporary-queue"


def test_it_counts_its_deaths_and_remembers_the_first(world: World) -> None:
    """Carried on from one dead-letter queue to the next, and sent back as it came."""
    world.broker.declare_queue("DLQ", dead_letter="cellar")
    peer = world.connect()
    peer.sender().send("m1")
    for name in ("q", "DLQ"):
        receiver = peer.receiver(name, credit=1)
        receiver.dispose(receiver.take(), Rejected())
        receiver.detach()
    dead = one(world, "cellar")
    said = notes(dead)
    assert (said["from"], said["times"], said["first-from"]) == ("DLQ", 2, "q")
    peer.sender("other").transfer(dead.payload)
    world.run()
    receiver = peer.receiver("other", credit=1)
    receiver.dispose(receiver.take(), Rejected())
    said = notes(one(world))
    assert (said["from"], said["times"], said["first-from"]) == ("other", 3, "q")


def test_what_dies_in_the_dead_letter_queue_is_dropped(world: World) -> None:
    peer = world.connect()
    peer.sender("DLQ").send("m1")
    receiver = peer.receiver("DLQ", credit=1)
    receiver.dispose(receiver.take(), Rejected())
    assert world.queue("DLQ").depth == 0 and world.queue("DLQ").dead_lettered == 1


def test_an_expired_message_can_be_read_where_it_went(world: World) -> None:
    """Its expiry has passed, and readers look at it: so it goes into an annotation. The rest is as it was sent."""
    world.broker.declare_queue("q", expiry_address="late")
    expiry = round((world.clock.now + 5) * 1000)
    fields = [encode_string("id-1"), NULL, NULL, encode_string("subject"), *[NULL] * 4, encode_timestamp(expiry)]
    sent = message("m1", properties=properties(*fields, NULL, encode_string("group"), encode_uint(7)))
    world.connect().sender().transfer(sent)
    world.run()
    world.advance(6)
    dead = one(world, "late")
    assert notes(dead)["expiry"] == expiry and notes(dead)["reason"] == "expired"
    without = message("m1", properties=properties(*fields[:8], NULL, NULL, encode_string("group"), encode_uint(7)))
    assert dead.payload.endswith(without)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("expiry", [NULL, encode_timestamp(1)])
def test_the_expiry_alone_is_taken_out(wide: bool, expiry: bytes) -> None:
    filler = encode_string("x" * (300 if wide else 10))
    rest = [encode_timestamp(5), encode_string("g"), encode_uint(1), encode_string("r")]
    sent = message("body", properties=properties(filler, *[NULL] * 7, expiry, *rest))
    assert without_expiry(sent) == message("body", properties=properties(filler, *[NULL] * 8, *rest))


@pytest.mark.parametrize(
    "octets",
    [b"", message("m"), message("m", properties=properties()), message("m", properties=properties(*[NULL] * 8))],
)
def test_where_there_is_no_expiry_nothing_is_taken_out(octets: bytes) -> None:
    assert without_expiry(octets) == octets


def test_a_symbolic_descriptor_is_understood_too() -> None:
    section = b"\x00\xa3\x14amqp:properties:list" + encode_list([*[NULL] * 8, encode_timestamp(1)])
    assert without_expiry(section + encode_described(0x77, encode_string("m"))) == (
        b"\x00\xa3\x14amqp:properties:list" + encode_list([NULL] * 9) + encode_described(0x77, encode_string("m"))
    )


@given(
    st.lists(st.sampled_from([NULL, encode_timestamp(1), encode_string("abc"), encode_uint(700)]), max_size=13),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3),
)
def test_properties_that_lie_are_left_alone(fields: list[bytes], damage: list[tuple[int, int]]) -> None:
    """Whatever the octets are, a message can become a dead letter; and it is no longer than before."""
    octets = bytearray(message("body", properties=properties(*fields)))
    for at, value in damage:
        octets[at % len(octets)] = value
    assert len(without_expiry(bytes(octets))) <= len(octets)


def test_an_expired_message_whose_properties_lie(world: World) -> None:
    """A list of ten fields in one octet: they are what follows, and among that an expiry is found."""
    lying = b"\x00\x53\x73\xc0\x01\x0a" + NULL * 8 + encode_timestamp(round(world.clock.now * 1000) + 1000)
    world.broker.declare_queue("q", expiry_address="late")
    world.connect().sender().transfer(lying + encode_described(0x77, encode_string("m1")))
    world.run()
    world.advance(5)
    assert world.queue().expired == 1 and world.broker.queue("late").depth == 1


# --- redelivery with back-off


def test_s148_back_off(world: World) -> None:
    """148: not before the delay, which grows by the multiplier up to the longest."""
    world.broker.declare_queue("q", redelivery_delay=1, redelivery_multiplier=3, max_redelivery_delay=10)
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    for delay in (1, 3, 9, 10, 10):
        receiver.dispose(receiver.take(), MODIFIED_FAILED)
        receiver.flow(1)
        world.advance(delay - 0.01)
        assert not receiver.arrived and world.depth() == (0, 0) and world.queue().depth == 1
        world.advance(0.02)
        assert len(receiver.arrived) == 1
    assert receiver.receive() == ["m1+5"]


def test_s148_later_messages_pass(world: World) -> None:
    world.broker.declare_queue("q", redelivery_delay=10)
    peer = world.connect()
    peer.sender().send("m1", "m2", "m3")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), MODIFIED_FAILED)
    assert receiver.receive(1) == ["m2"]
    world.advance(11)
    assert receiver.receive(5) == ["m1+1", "m3"], "and then it stands where it stood"


def test_what_is_released_is_back_at_once(world: World) -> None:
    world.broker.declare_queue("q", redelivery_delay=10)
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), RELEASED)
    assert receiver.receive(1) == ["m1"]


def test_a_loss_does_not_raise_the_delay(world: World) -> None:
    """A connection lost is no attempt that failed (D5): the message waits the first delay, however often."""
    world.broker.declare_queue("q", redelivery_delay=1, redelivery_multiplier=10)
    world.connect().sender().send("m1")
    for _ in range(3):
        peer = world.connect()
        assert len(peer.receiver(credit=1).arrived) == 1
        peer.cut()
        assert world.bodies() == []
        world.advance(1.01)
        assert world.bodies() == ["m1"]


def test_one_that_waits_for_its_redelivery_expires_at_its_time(world: World) -> None:
    world.broker.declare_queue("q", redelivery_delay=100, expiry_address="late")
    peer = world.connect()
    peer.sender().send("m1", ttl=5000)
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), MODIFIED_FAILED)
    world.advance(4.9)
    assert world.queue().depth == 1
    world.advance(0.2)
    assert world.queue().depth == 0 and world.queue().expired == 1 and world.bodies("late") == ["m1"]


def test_what_expired_in_hand_did_not_fail(world: World) -> None:
    """149, 177: the receiver gives it back as failed because it has expired: it goes the way of the expired."""
    world.broker.declare_queue("q", max_delivery_attempts=1, expiry_address="late")
    peer = world.connect()
    peer.sender().send("m1", ttl=1000)
    receiver = peer.receiver(credit=1)
    world.advance(2)
    receiver.dispose(receiver.take(), MODIFIED_FAILED_UNDELIVERABLE)
    assert notes(one(world, "late"))["reason"] == "expired"
    assert (world.queue().expired, world.queue().dead_lettered) == (1, 0)


def test_the_dead_letter_waits_for_nothing(world: World) -> None:
    world.broker.declare_queue("q", redelivery_delay=100, max_delivery_attempts=2)
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver()
    fail(receiver, 1)
    world.advance(101)
    fail(receiver, 1)
    assert world.bodies("DLQ") == ["m1"]


def test_delays_are_never_endless() -> None:
    assert QueueSettings(redelivery_delay=1, redelivery_multiplier=1e300).delay_after(50) == A_YEAR
    assert QueueSettings(redelivery_delay=5, max_redelivery_delay=2).delay_after(1) == 2
    assert QueueSettings(redelivery_multiplier=2).delay_after(9) == 0
    assert QueueSettings(redelivery_delay=2, redelivery_multiplier=2).delay_after(0) == 2


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("redelivery_multiplier", 0.5, "1 or more"),
        ("redelivery_multiplier", float("nan"), "1 or more"),
        ("redelivery_delay", float("inf"), "seconds"),
        ("max_redelivery_delay", -1, "seconds"),
        ("group_window", -1, "0 (no limit) or more"),
        ("exclusive_consumer", 1, "true or false"),
        ("message_groups", "yes", "true or false"),
        ("sticky_groups", 1, "true or false"),
        ("delayed_delivery", 0, "true or false"),
        ("group_key", None, "application property"),
    ],
)
def test_wrong_settings_are_refused(name: str, value: object, words: str) -> None:
    with pytest.raises((ValueError, TypeError)) as raised:
        QueueSettings.from_mapping({name: value}, "the queue 'q'")
    assert name in str(raised.value) and words in str(raised.value)


def test_accepted_ones_leave_nothing_behind(world: World) -> None:
    peer = world.connect()
    peer.sender().send("m1")
    receiver = peer.receiver(credit=1)
    receiver.dispose(receiver.take(), ACCEPTED)
    assert world.queue().depth == 0 and "DLQ" not in [queue.name for queue in world.broker.queues()]
