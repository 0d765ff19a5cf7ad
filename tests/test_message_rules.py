"""Headers and properties by the rules of JMS, without a broker: what a send sets, and what belongs to whom."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsish.engine.codec import AMQP_VALUE, Header, ReceivedMessage, encode_for_send, encode_message
from jmsish.errors import MessageFormatError, MessageNotWriteableError
from jmsish.message import Message, ObjectMessage, TextMessage, message_from
from jmsish.modes import DeliveryMode
from jmsish.types import Byte, UInt

NOW = 1_700_000_000_000


def sent(message: Message, **given: Any) -> Message:
    """Sends the message and gives it as its receiver sees it."""
    terms: dict[str, Any] = {
        "message_id": "ID:1", "timestamp": NOW, "now": NOW, "destination": Queue("q"), "delivery_mode": 2,
        "priority": 4, "ttl": 0,
    }  # fmt: skip
    return message_from(ReceivedMessage(encode_for_send(message, **{**terms, **given})), Queue("q"))


PROVIDED = [
    ("jms_destination", {"destination": Topic("t")}, Topic("t")),
    ("jms_delivery_mode", {"delivery_mode": 1}, DeliveryMode.NON_PERSISTENT),
    ("jms_expiration", {"ttl": 5000}, NOW + 5000),
    ("jms_delivery_time", {"delivery_time": NOW + 9}, NOW + 9),
    ("jms_priority", {"priority": 7}, 7),
    ("jms_message_id", {"message_id": "ID:9"}, "ID:9"),
    ("jms_timestamp", {"timestamp": NOW}, NOW),
]


@pytest.mark.parametrize(("name", "given", "value"), PROVIDED)
def test_rule_84_after_a_send_the_message_holds_what_was_used(name: str, given: dict[str, Any], value: Any) -> None:
    message = TextMessage("x")
    received = sent(message, **given)
    assert getattr(message, name) == value == getattr(received, name)


OWN: dict[str, Any] = {
    "jms_destination": Queue("mine"),
    "jms_delivery_mode": DeliveryMode.NON_PERSISTENT,
    "jms_expiration": 5,
    "jms_delivery_time": 6,
    "jms_priority": 1,
    "jms_message_id": "ID:mine",
    "jms_timestamp": 7,
}


@pytest.mark.parametrize("name", OWN)
def test_rule_85_what_the_application_put_there_is_ignored(name: str) -> None:
    message = TextMessage("x")
    setattr(message, name, OWN[name])
    received = sent(message)
    assert getattr(received, name) != OWN[name]
    assert getattr(received, name) == getattr(message, name) == getattr(sent(TextMessage("x")), name)


def test_rule_87_rule_88_without_id_and_timestamp() -> None:
    message = TextMessage("x")
    received = sent(message, message_id=None, timestamp=0)
    assert message.jms_message_id is None and received.jms_message_id is None
    assert message.jms_timestamp == 0 == received.jms_timestamp


def test_rule_87_a_message_that_is_sent_on_without_id_loses_the_one_it_had() -> None:
    again = sent(sent(TextMessage("x"), message_id="ID:first"), message_id=None)
    assert again.jms_message_id is None


def test_rule_89_expiration_is_0_without_a_time_to_live() -> None:
    message = TextMessage("x")
    message.jms_expiration = 5
    assert sent(message, ttl=0).jms_expiration == 0 == message.jms_expiration


def test_rule_90_without_a_delay_a_message_is_due_when_it_is_sent() -> None:
    message = TextMessage("x")
    assert sent(message).jms_delivery_time == NOW == message.jms_delivery_time
    sent(message, timestamp=0)
    assert message.jms_delivery_time == NOW, "also where the timestamp is not wanted"


@pytest.mark.parametrize(
    ("name", "value"), [("jms_correlation_id", "c"), ("jms_reply_to", TemporaryQueue("r")), ("jms_type", "t")]
)
def test_rule_148_what_belongs_to_the_application_goes_as_it_is(name: str, value: Any) -> None:
    message = TextMessage("x")
    setattr(message, name, value)
    received = sent(message)
    assert getattr(received, name) == value == getattr(sent(received), name)
    setattr(received, name, None)
    assert getattr(sent(received), name) is None


EVERY_KIND = [Queue("d"), Topic("d"), TemporaryQueue("d"), TemporaryTopic("d")]


@pytest.mark.parametrize("place", EVERY_KIND, ids=str)
def test_rule_149_rule_150_destinations_keep_their_kind(place: Destination) -> None:
    message = TextMessage("x")
    message.jms_reply_to = place
    received = sent(message, destination=place)
    for found in (received.jms_destination, received.jms_reply_to):
        assert found == place and type(found) is type(place)


def test_rule_151_priorities_are_0_to_9_and_4_by_default() -> None:
    for priority in range(10):
        assert sent(TextMessage("x"), priority=priority).jms_priority == priority
    assert TextMessage("x").jms_priority == 4


def test_rule_152_a_header_that_was_overridden_on_the_way_shows() -> None:
    payload = encode_for_send(
        TextMessage("x"), message_id="ID:1", timestamp=NOW, now=NOW, destination=Queue("q"), delivery_mode=2,
        priority=9, ttl=0,
    )  # fmt: skip
    bare = ReceivedMessage(payload).bare
    annotations = encode_message(annotations={"x-opt-jms-msg-type": Byte(5)})
    overridden = encode_message(header=Header(durable=False, priority=2)) + annotations + payload[bare:]
    message = message_from(ReceivedMessage(overridden))
    assert (message.jms_priority, message.jms_delivery_mode) == (2, DeliveryMode.NON_PERSISTENT)


def test_rule_153_a_correlation_id_of_octets_comes_back_unchanged() -> None:
    message = TextMessage("x")
    message.jms_correlation_id_bytes = bytes(range(256))
    received = sent(message)
    assert received.jms_correlation_id_bytes == bytes(range(256)) == sent(received).jms_correlation_id_bytes


@pytest.mark.parametrize("text", ["mine", "ID:x", "ID:AMQP_ULONG:5"])
def test_rule_154_octets_of_an_id_that_is_none_of_octets(text: str) -> None:
    message = TextMessage("x")
    message.jms_correlation_id = text
    for each in (message, sent(message)):
        with pytest.raises(MessageFormatError, match="jms_correlation_id has its text"):
            _ = each.jms_correlation_id_bytes
    message.jms_correlation_id = None
    assert message.jms_correlation_id_bytes is None


def test_rule_158_nothing_but_all_properties_goes_and_the_body_stays() -> None:
    message = TextMessage("x")
    message.properties.update(a=1, JMSXGroupID="g", JMSXGroupSeq=1, JMS_AMQP_TTL=5)
    message.jms_type = "kind"
    received: Any = sent(message)
    with pytest.raises(MessageNotWriteableError):
        del received.properties["a"]
    for each in (message, received):
        each.clear_properties()
        assert [name for name in each.properties if name != "JMSXDeliveryCount"] == []
        assert (each.text, each.jms_type) == ("x", "kind")
    assert list(sent(received).properties) == ["JMSXDeliveryCount"]


def test_rule_162_headers_are_no_properties() -> None:
    message = TextMessage("x")
    message.jms_type, message.jms_correlation_id, message.jms_reply_to = "t", "c", Queue("r")
    message.properties["mine"] = 1
    assert list(message.properties) == ["mine"]
    assert list(sent(message, ttl=5000, priority=9).properties) == ["mine", "JMSXDeliveryCount"]


def test_rule_163_group_and_count() -> None:
    message = TextMessage("x")
    message.set_string_property("JMSXGroupID", "g")
    message.set_int_property("JMSXGroupSeq", 1)
    received = sent(message)
    assert received.get_string_property("JMSXGroupID") == "g" and received.get_int_property("JMSXGroupSeq") == 1
    assert received.get_int_property("JMSXDeliveryCount") == 1 and received.property_exists("JMSXDeliveryCount")


WRAPS = [(1, 1), (2**31 - 1, 2**31 - 1), (-(2**31), 2**31), (-1, 2**32 - 1), (0, 0)]


@pytest.mark.parametrize(("signed", "unsigned"), WRAPS)
def test_m13_rule_163_the_sequence_of_a_group_has_the_same_32_bits(signed: int, unsigned: int) -> None:
    message = TextMessage("x")
    message.properties["JMSXGroupSeq"] = signed
    received = sent(message)
    source = received._source
    assert source is not None and source.property(11) == unsigned and type(source.property(11)) is UInt
    assert received.properties["JMSXGroupSeq"] == signed == sent(received).properties["JMSXGroupSeq"]


def test_rule_164_names_of_vendors_travel_like_any() -> None:
    message = TextMessage("x")
    message.properties["JMS_ACME_route"] = "north"
    assert sent(message).properties["JMS_ACME_route"] == "north"


def test_m27_typed_encoding_is_what_an_object_message_has_anyway() -> None:
    message = ObjectMessage({"a": 1})
    message.set_boolean_property("JMS_AMQP_TYPED_ENCODING", True)
    assert message.get_boolean_property("JMS_AMQP_TYPED_ENCODING") and "JMS_AMQP_TYPED_ENCODING" in message.properties
    assert list(message.properties) == [], "code that copies properties to a message of another type need not know it"
    assert sent(message).body == {"a": 1}
    with pytest.raises(MessageFormatError, match="Python does not make"):
        message.set_boolean_property("JMS_AMQP_TYPED_ENCODING", False)
    with pytest.raises(MessageFormatError, match="is for an ObjectMessage, not a TextMessage"):
        TextMessage("x").set_boolean_property("JMS_AMQP_TYPED_ENCODING", True)
    assert TextMessage("x").get_boolean_property("JMS_AMQP_TYPED_ENCODING") is False


def test_a_peer_that_writes_group_properties_as_it_likes_is_read_by_the_fields() -> None:
    payload = encode_message(application_properties={"JMSXGroupID": "told twice"}, body=(AMQP_VALUE, "x"))
    assert "JMSXGroupID" not in message_from(ReceivedMessage(payload)).properties
