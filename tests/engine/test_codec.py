"""Messages as octets: sections, the header that is written anew, peeking, and what a send makes of a message."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.destination import Queue, TemporaryQueue, Topic
from jmsish.engine import received as received_module
from jmsish.engine import sections
from jmsish.engine.codec import (
    ABSOLUTE_EXPIRY_TIME,
    AMQP_SEQUENCE,
    AMQP_VALUE,
    CORRELATION_ID,
    DATA,
    MESSAGE_ID,
    SUBJECT,
    TO,
    Header,
    MessageTemplate,
    ReceivedMessage,
    bare_offset,
    check_sections,
    delivery_count_of,
    encode_for_send,
    encode_header,
    encode_message,
    is_expired,
    message_annotations_at,
    peek_properties,
    split_header,
    with_annotations,
    with_header,
)
from jmsish.engine.values import DecodeError, encode, encode_described
from jmsish.errors import MessageFormatError
from jmsish.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage, message_from
from jmsish.types import Byte, Long, Symbol, Timestamp, UByte, UInt, ULong

NOW = 1_700_000_000_000
BARE = encode_message(properties=["id", None, "q"], application_properties={"a": 1}, body=(AMQP_VALUE, "text"))
ANNOTATIONS = encode_described(0x72, encode({Symbol("x-opt-a"): Byte(1)}))
DELIVERY_ANNOTATIONS = encode_described(0x71, encode({Symbol("x-opt-d"): 1}))
FOOTER = encode_described(0x78, encode({Symbol("x-opt-f"): 1}))


def section(code: int, value: Any) -> bytes:
    return encode_described(code, encode(value))


def sent(message: Message, **given: Any) -> bytes:
    terms: dict[str, Any] = {
        "message_id": "ID:1", "timestamp": NOW, "now": NOW, "destination": Queue("q"), "delivery_mode": 2,
        "priority": 4, "ttl": 0,
    }  # fmt: skip
    return encode_for_send(message, **{**terms, **given})


# ---------------------------------------------------------------- the header

HEADERS = [
    (Header(), "005370 c00201 42"),
    (Header(durable=True), "005370 c00201 41"),
    (Header(priority=9), "005370 c00402 42 5009"),
    (Header(ttl=5), "005370 c00503 42 40 5205"),
    (Header(first_acquirer=True), "005370 c00504 42 40 40 41"),
    (Header(delivery_count=2), "005370 c00705 42 40 40 40 5202"),
    (Header(True, 4, 0xFFFFFFFF, True, 300), "005370 c00e05 41 40 70ffffffff 41 700000012c"),
]


@pytest.mark.parametrize(("header", "octets"), HEADERS)
def test_headers_have_their_octets_and_come_back(header: Header, octets: str) -> None:
    assert encode_header(header) == bytes.fromhex(octets)
    assert split_header(encode_header(header) + BARE) == (header, len(encode_header(header)))


FOREIGN_HEADERS = [
    ("005370 45", Header()),
    ("005370 d0 00000005 00000001 41", Header(durable=True)),
    ("00 80 0000000000000070 c00201 41", Header(durable=True)),
    ("00 a3 10" + b"amqp:header:list".hex() + "c00301 5601", Header(durable=True)),
    ("005370 c00605 40 40 40 40 43", Header()),
]


@pytest.mark.parametrize(("octets", "header"), FOREIGN_HEADERS)
def test_other_forms_of_a_header_are_understood(octets: str, header: Header) -> None:
    raw = bytes.fromhex(octets)
    assert split_header(raw + BARE) == (header, len(raw))
    received = ReceivedMessage(raw + ANNOTATIONS + BARE)
    assert received.header() == header and received.body() == (AMQP_VALUE, "text")


WRONG_HEADERS = [
    "005370 c00201 5401",
    "005370 c00302 41 5404",
    "005370 c00302 41 41",
    "005370 c00706 404040404040",
    "005370 c10100",
    "005370 c0ff",
    "005370",
    "005370 a10161",
]


@pytest.mark.parametrize("octets", WRONG_HEADERS)
def test_a_header_that_is_none_is_refused(octets: str) -> None:
    with pytest.raises(DecodeError):
        split_header(bytes.fromhex(octets))
    with pytest.raises(DecodeError):
        ReceivedMessage(bytes.fromhex(octets))


def test_w17_a_message_without_header_leaves_without_one_the_first_time() -> None:
    header, rest = split_header(BARE)
    assert (header, rest) == (None, 0)
    assert with_header(BARE, header, rest, 0) == BARE
    assert with_header(BARE, header, rest, 3) == encode_header(Header(delivery_count=3)) + BARE
    assert delivery_count_of(with_header(BARE, header, rest, 3)) == 3 and delivery_count_of(BARE) == 0


def test_the_bare_message_and_its_annotations_pass_octet_for_octet() -> None:
    payload = encode_header(Header(True, 7, 1000)) + DELIVERY_ANNOTATIONS + ANNOTATIONS + BARE + FOOTER
    header, rest = split_header(payload)
    assert header == Header(True, 7, 1000) and payload[rest:] == ANNOTATIONS + BARE + FOOTER
    again = with_header(payload, header, rest, 2)
    assert again == encode_header(Header(True, 7, 1000, False, 2)) + ANNOTATIONS + BARE + FOOTER
    assert with_header(again, *split_header(again), 0)[: len(encode_header(header))] == encode_header(header)


def test_delivery_annotations_end_here() -> None:
    """3.2.2: they "convey information from the sending peer to the receiving peer"."""
    for payload in (DELIVERY_ANNOTATIONS + BARE, encode_header(Header()) + DELIVERY_ANNOTATIONS + BARE):
        header, rest = split_header(payload)
        assert payload[rest:] == BARE
        assert ReceivedMessage(payload).delivery_annotations() == {"x-opt-d": 1}
    assert ReceivedMessage(ANNOTATIONS + BARE).delivery_annotations() == {}


def test_nothing_at_all_has_neither_header_nor_body() -> None:
    assert split_header(b"") == (None, 0) and bare_offset(b"") == 0
    received = ReceivedMessage(b"")
    assert (received.body(), received.properties(), received.application_properties()) == ((0, None), [None] * 13, {})
    assert (received.property(TO), received.body_octets(), received.body_section()) == (None, b"", 0)


def test_annotations_are_added_or_replaced_before_the_bare_message() -> None:
    for payload, kept in ((BARE, {}), (ANNOTATIONS + BARE, {"x-opt-a": 1}), (ANNOTATIONS, {"x-opt-a": 1})):
        octets = with_annotations(payload, 0, {"x-opt-why": "limit", "x-opt-a2": Long(5)})
        annotations, bare = message_annotations_at(octets, 0)
        assert annotations == {**kept, "x-opt-why": "limit", "x-opt-a2": 5} and type(annotations["x-opt-a2"]) is Long
        assert octets[bare:] == payload[bare_offset(payload) :]
    replaced = with_annotations(ANNOTATIONS + BARE, 0, {"x-opt-a": "new"})
    assert message_annotations_at(replaced, 0)[0] == {"x-opt-a": "new"}


# ---------------------------------------------------------------- sections

ORDERS = [
    (True, [0x70, 0x71, 0x72, 0x73, 0x74, 0x77, 0x78]),
    (True, [0x75, 0x75, 0x75]),
    (True, [0x76, 0x76, 0x78]),
    (True, [0x73]),
    (True, []),
    (False, [0x72, 0x70]),
    (False, [0x73, 0x73]),
    (False, [0x77, 0x77]),
    (False, [0x75, 0x76]),
    (False, [0x76, 0x77]),
    (False, [0x77, 0x73]),
    (False, [0x78, 0x77]),
    (False, [0x78, 0x78]),
    (False, [0x79]),
    (False, [0x24]),
]


@pytest.mark.parametrize(("right", "codes"), ORDERS)
def test_sections_stand_in_their_order(right: bool, codes: list[int]) -> None:
    payload = b"".join(section(code, []) for code in codes)
    if right:
        check_sections(payload)
    else:
        with pytest.raises(DecodeError):
            check_sections(payload)


@pytest.mark.parametrize(
    "payload", [b"\x00", b"\x01", b"\x00Sw", b"\x00Sw\xa1\x05abc", b"\x00S\x24\x45", b"AMQP\x00\x01"]
)
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        check_sections(payload)


@given(st.binary(max_size=100), st.integers(0, 90))
def test_any_octets_are_a_message_or_refused(noise: bytes, at: int) -> None:
    whole = encode_header(Header(True)) + ANNOTATIONS + BARE
    for payload in (noise, whole[:at] + noise + whole[at + len(noise) :]):
        for read in (
            check_sections, split_header, bare_offset, delivery_count_of, lambda octets: is_expired(octets, 0),
            lambda octets: peek_properties(octets, TO), lambda octets: read_all(ReceivedMessage(octets)),
        ):  # fmt: skip
            try:
                read(payload)
            except DecodeError:
                pass


def read_all(received: ReceivedMessage) -> None:
    received.delivery_annotations()
    received.message_annotations()
    received.properties()
    received.application_properties()
    received.body()


BODIES: list[tuple[bytes, tuple[int, Any]]] = [
    (section(AMQP_VALUE, "x"), (AMQP_VALUE, "x")),
    (section(AMQP_VALUE, "x" * 300), (AMQP_VALUE, "x" * 300)),
    (section(AMQP_VALUE, "x") + FOOTER, (AMQP_VALUE, "x")),
    (section(AMQP_VALUE, None), (AMQP_VALUE, None)),
    (section(AMQP_VALUE, {"a": [1]}), (AMQP_VALUE, {"a": [1]})),
    (section(DATA, b"ab"), (DATA, b"ab")),
    (section(DATA, b"ab") + section(DATA, b"") + section(DATA, b"cd") + FOOTER, (DATA, b"abcd")),
    (section(AMQP_SEQUENCE, [1, "b"]), (AMQP_SEQUENCE, [1, "b"])),
    (section(AMQP_SEQUENCE, [1]) + section(AMQP_SEQUENCE, [2]), (AMQP_SEQUENCE, [1, 2])),
    (b"", (0, None)),
    (FOOTER, (0, None)),
]


@pytest.mark.parametrize(("octets", "body"), BODIES)
def test_bodies(octets: bytes, body: tuple[int, Any]) -> None:
    received = ReceivedMessage(encode_header(Header()) + section(0x73, ["id"]) + section(0x74, {}) + octets)
    assert received.body() == body and received.body_section() == body[0]
    assert received.body_octets() == octets.removesuffix(FOOTER)


def test_each_reading_of_a_body_is_a_value_of_its_own() -> None:
    received = ReceivedMessage(section(AMQP_VALUE, {"a": [1]}))
    received.body()[1]["a"].append(2)
    assert received.body() == (AMQP_VALUE, {"a": [1]})


WRONG_BODIES = [
    b"\x00Sw\xa1\x01\xff",
    section(AMQP_VALUE, 1) * 2,
    section(DATA, b"a") + section(AMQP_VALUE, 1),
    section(DATA, "text"),
    section(AMQP_SEQUENCE, {}),
    section(AMQP_VALUE, "abc")[:-1],
    section(DATA, b"a") + b"\x00",
]


@pytest.mark.parametrize("octets", WRONG_BODIES)
def test_a_broken_body_is_refused_when_it_is_read(octets: bytes) -> None:
    received = ReceivedMessage(encode_header(Header()) + octets)
    with pytest.raises(DecodeError):
        received.body()


def test_properties_are_read_one_by_one_or_all() -> None:
    fields = [
        ULong(7),
        b"u",
        "to",
        "subject",
        None,
        UUID(int=5),
        Symbol("a/b"),
        None,
        Timestamp(9),
        Timestamp(8),
        "g",
        UInt(3),
    ]
    received = ReceivedMessage(ANNOTATIONS + section(0x73, fields) + section(AMQP_VALUE, 1))
    assert [received.property(index) for index in range(13)] == received.properties() == [*fields, None]
    assert type(received.property(0)) is ULong
    wide = b"\x00Ss\xd0" + (len(section(0x73, fields)) - 6 + 4).to_bytes(4, "big") + (12).to_bytes(4, "big")
    assert ReceivedMessage(wide + section(0x73, fields)[6:]).properties() == [*fields, None]
    assert ReceivedMessage(section(0x73, [])).property(0) is None


def test_peeking_reads_only_what_is_asked() -> None:
    payload = ANNOTATIONS + section(0x73, ["id", None, "to", "subject", None, b"corr"]) + section(AMQP_VALUE, 1)
    assert peek_properties(payload, SUBJECT, MESSAGE_ID, ABSOLUTE_EXPIRY_TIME) == ("subject", "id", None)
    assert peek_properties(payload, CORRELATION_ID, bare=bare_offset(payload)) == (b"corr",)
    assert peek_properties(section(AMQP_VALUE, 1), TO) == (None,)
    # A fault behind what is asked is not met.
    assert peek_properties(b"\x00Ss\xc0\x09\x02\xa1\x02to\xff\xff\xff\xff", 0) == ("to",)


@pytest.mark.parametrize(
    ("expiry", "expired"), [(None, False), (Timestamp(0), False), (Timestamp(10), True), (Timestamp(11), False)]
)
def test_expiry_is_the_absolute_time(expiry: Any, expired: bool) -> None:
    assert is_expired(section(0x73, [None] * 8 + [expiry]) + section(AMQP_VALUE, 1), 10) is expired
    assert not is_expired(section(AMQP_VALUE, 1), 10)


def test_messages_with_the_same_beginning_share_what_was_read_of_it() -> None:
    one, two = ReceivedMessage(ANNOTATIONS + BARE), ReceivedMessage(ANNOTATIONS + section(AMQP_VALUE, 2))
    assert one.prefix is two.prefix
    one.message_annotations()["x-opt-a"] = 5
    assert two.message_annotations() == {"x-opt-a": 1}


def test_a_flood_of_different_headers_is_not_kept() -> None:
    for ttl in range(3000):
        ReceivedMessage(encode_header(Header(ttl=ttl)) + BARE)
    assert len(sections._HEADERS) <= sections._HEADERS_LIMIT
    assert len(received_module._PREFIXES) <= received_module._PREFIXES_LIMIT


# ---------------------------------------------------------------- what a send makes of a message

SENT = [
    (Message(), 0, b""),
    (ObjectMessage({"a": 1}), 1, section(AMQP_VALUE, {"a": 1})),
    (MapMessage({"a": b"x"}), 2, section(AMQP_VALUE, {"a": b"x"})),
    (BytesMessage(b"ab"), 3, section(DATA, b"ab")),
    (StreamMessage([1, None]), 4, section(AMQP_SEQUENCE, [1, None])),
    (TextMessage("é"), 5, section(AMQP_VALUE, "é")),
    (TextMessage(None), 5, section(AMQP_VALUE, None)),
]


@pytest.mark.parametrize(("message", "number", "body"), SENT)
def test_m01_m09_types_and_bodies_that_are_sent(message: Message, number: int, body: bytes) -> None:
    received = ReceivedMessage(sent(message))
    assert received.body_octets() == body
    annotations = received.message_annotations()
    assert annotations == {"x-opt-jms-msg-type": number, "x-opt-jms-dest": 0}
    assert {type(value) for value in annotations.values()} == {Byte}
    assert received.properties()[6] == ("application/octet-stream" if number == 3 else None)
    check_sections(received.payload)


FIELDS = [
    ("message-id", 0, {"message_id": "ID:7"}, "ID:7"),
    ("no message-id", 0, {"message_id": None}, None),
    ("user-id", 1, {"jmsx_user_id": "ann"}, b"ann"),
    ("to", 2, {"destination": Topic("t")}, "t"),
    ("expiry", 8, {"ttl": 5000}, Timestamp(NOW + 5000)),
    ("no expiry", 8, {"ttl": 0}, None),
    ("timestamp", 9, {"timestamp": NOW}, Timestamp(NOW)),
    ("no timestamp", 9, {"timestamp": 0}, None),
]


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(("name", "index", "given", "value"), FIELDS)
def test_m13_fields_that_a_send_fills(name: str, index: int, given: dict[str, Any], value: Any, plain: bool) -> None:
    message = TextMessage("x")
    if not plain:
        message.properties["a"] = 1
    found = ReceivedMessage(sent(message, **given)).property(index)
    assert found == value and type(found) is type(value)


@given(
    type_code=st.sampled_from([Message(), TextMessage("%b%"), BytesMessage(b"%"), MapMessage({"%": 1})]),
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300),
    identity=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=300).map("ID:".__add__),
    mode=st.sampled_from([1, 2]),
    priority=st.integers(0, 9),
    ttl=st.sampled_from([0, 1, 2**32, 2**40]),
    timestamp=st.sampled_from([0, NOW]),
    user=st.none() | st.text(max_size=5),
)
def test_the_fast_way_gives_the_octets_of_the_general_one(
    type_code: Message,
    name: str,
    identity: str | None,
    mode: int,
    priority: int,
    ttl: int,
    timestamp: int,
    user: str | None,
) -> None:
    terms: dict[str, Any] = {
        "message_id": identity, "timestamp": timestamp, "destination": TemporaryQueue(name), "delivery_mode": mode,
        "priority": priority, "ttl": ttl, "jmsx_user_id": user,
    }  # fmt: skip
    fast = sent(type_code, **terms)
    type_code._plain = False
    try:
        assert sent(type_code, **terms) == fast
    finally:
        type_code._plain = True
    check_sections(fast)


@pytest.mark.parametrize("body", ["text", "x" * 300, b"octets", {"a": 1}, [1, 2], (1, 2), None])
@pytest.mark.parametrize("ttl", [0, 1000])
@pytest.mark.parametrize("identified", [True, False])
def test_a_template_gives_the_octets_of_a_message(body: Any, ttl: int, identified: bool) -> None:
    template = MessageTemplate(
        Topic("t"),
        prefixes=("q.", "t."),
        delivery_mode=1,
        priority=7,
        ttl=ttl,
        id_prefix="ID:%p:" if identified else None,
    )
    kinds: dict[type, type[Any]] = {str: TextMessage, bytes: BytesMessage, dict: MapMessage, list: StreamMessage}
    kinds |= {tuple: StreamMessage}
    for number in (9, 10, 123456):
        message = Message() if body is None else kinds[type(body)](body)
        identity = template.message_id(number)
        assert identity == (f"ID:%p:{number}" if identified else None)
        assert template.encode(body, number, NOW) == sent(
            message,
            message_id=identity,
            destination=Topic("t"),
            prefixes=("q.", "t."),
            delivery_mode=1,
            priority=7,
            ttl=ttl,
        )


def test_a_template_refuses_a_body_that_makes_no_message() -> None:
    with pytest.raises(MessageFormatError, match="a body of type object"):
        MessageTemplate(Queue("q"), id_prefix=None).encode(object(), 1, NOW)


def test_m16_m30_the_header_is_always_there_and_says_mode_priority_and_ttl() -> None:
    assert ReceivedMessage(sent(Message())).prefix.has_header
    assert ReceivedMessage(sent(Message())).header() == Header(durable=True)
    other = sent(Message(), delivery_mode=1, priority=9, ttl=500)
    assert ReceivedMessage(other).header() == Header(durable=False, priority=9, ttl=500)
    # A time to live beyond the 32 bits of the header is in the expiry time alone.
    assert ReceivedMessage(sent(Message(), ttl=2**40)).header().ttl == 2**32 - 1
    assert ReceivedMessage(sent(Message(), ttl=2**40)).property(8) == NOW + 2**40


def test_m16_jms_amqp_ttl_overrides_the_header_alone() -> None:
    message = TextMessage("x")
    message.properties["JMS_AMQP_TTL"] = 77
    received = ReceivedMessage(sent(message, ttl=500))
    assert received.header().ttl == 77 and received.property(8) == NOW + 500
    assert received.application_properties() == {}
    message.properties["JMS_AMQP_TTL"] = 0
    assert ReceivedMessage(sent(message, ttl=500)).header().ttl is None


def test_m17_a_delay_is_an_annotation_and_only_then() -> None:
    delayed = ReceivedMessage(sent(TextMessage("x"), delivery_time=NOW + 1))
    assert delayed.message_annotations()["x-opt-delivery-time"] == NOW + 1
    assert type(delayed.message_annotations()["x-opt-delivery-time"]) is Long
    assert "x-opt-delivery-time" not in ReceivedMessage(sent(TextMessage("x"))).message_annotations()


def test_m22_the_user_id_is_never_the_applications() -> None:
    message = TextMessage("x")
    message.properties["JMSXUserID"] = "admin"
    assert ReceivedMessage(sent(message)).property(1) is None and "JMSXUserID" not in message.properties
    message.properties["JMSXUserID"] = "admin"
    assert ReceivedMessage(sent(message, jmsx_user_id="ann")).property(1) == b"ann"
    assert message.properties["JMSXUserID"] == "ann"


def test_m23_kinds_are_annotated() -> None:
    message = TextMessage("x")
    message.jms_reply_to = TemporaryQueue("r")
    annotations = ReceivedMessage(sent(message, destination=Topic("t"))).message_annotations()
    assert annotations == {"x-opt-jms-msg-type": 5, "x-opt-jms-dest": 1, "x-opt-jms-reply-to": 2}


def test_m25_prefixes_go_before_names_on_the_wire() -> None:
    message = TextMessage("x")
    message.jms_reply_to = Queue("r")
    received = ReceivedMessage(sent(message, destination=Topic("t"), prefixes=("q.", "t.")))
    assert (received.property(2), received.property(4)) == ("t.t", "q.r")
    temporary = ReceivedMessage(sent(TextMessage("x"), destination=TemporaryQueue("n"), prefixes=("q.", "t.")))
    assert temporary.property(2) == "n"


def test_a_send_sets_the_headers_of_the_message() -> None:
    message = TextMessage("x")
    message.jms_message_id, message.jms_priority, message.jms_expiration, message.jms_timestamp = "ID:own", 1, 2, 3
    sent(message, message_id="ID:9", priority=8, ttl=10, destination=Topic("t"), delivery_mode=1)
    assert (message.jms_message_id, message.jms_priority, message.jms_expiration) == ("ID:9", 8, NOW + 10)
    assert (message.jms_timestamp, message.jms_delivery_time, message.jms_destination) == (NOW, NOW, Topic("t"))
    assert message.jms_delivery_mode == 1 and message.jms_delivery_mode.name == "NON_PERSISTENT"
    sent(message, message_id=None, timestamp=0, delivery_time=NOW + 5)
    assert (message.jms_message_id, message.jms_timestamp, message.jms_expiration) == (None, 0, 0)
    assert message.jms_delivery_time == NOW + 5


def test_a_message_that_cannot_be_encoded_stays_as_it_was() -> None:
    message = TextMessage("\ud800")
    with pytest.raises(ValueError, match="surrogates"):
        sent(message)
    assert message.jms_message_id is None


# ---------------------------------------------------------------- sending on what was received

FORWARDED = (
    section(0x70, [True, UByte(9), UInt(50), None, UInt(2)])
    + DELIVERY_ANNOTATIONS
    + section(
        0x72,
        {
            Symbol("x-opt-jms-msg-type"): Byte(5),
            Symbol("x-opt-to-type"): "queue",
            Symbol("x-opt-qpid-tracestate"): {"a": 1},
        },
    )
    + section(
        0x73,
        ["other", b"user", "old", "kind", "back", "corr", Symbol("text/plain; charset=latin-1"), Symbol("identity")]
        + [Timestamp(1), Timestamp(2), "group", UInt(5), "reply-group"],
    )
    + section(0x74, {"a": UInt(1), "odd name": Timestamp(2)})
    + section(DATA, b"\xe9")
    + FOOTER
)


def test_a_received_message_goes_on_with_the_octets_of_its_body_and_properties() -> None:
    message = message_from(ReceivedMessage(FORWARDED), Queue("old"))
    received = ReceivedMessage(sent(message, destination=Queue("new"), message_id="ID:new"))
    assert received.body_octets() == section(DATA, b"\xe9")
    assert received.application_property_octets() == section(0x74, {"a": UInt(1), "odd name": Timestamp(2)})
    assert received.header() == Header(durable=True)
    assert received.properties() == [
        "ID:new", None, "new", "kind", "back", "corr", "text/plain; charset=latin-1", "identity", None, NOW, "group", 5,
        "reply-group",
    ]  # fmt: skip
    assert received.delivery_annotations() == {}


def test_m02_m29_annotations_of_the_mapping_are_made_anew_and_others_kept() -> None:
    message = message_from(ReceivedMessage(FORWARDED), Queue("old"))
    annotations = ReceivedMessage(sent(message, destination=Topic("new"))).message_annotations()
    assert annotations == {
        "x-opt-jms-msg-type": 5, "x-opt-jms-dest": 1, "x-opt-jms-reply-to": 0, "x-opt-qpid-tracestate": {"a": 1},
    }  # fmt: skip


def test_a_changed_body_and_changed_properties_are_encoded_anew() -> None:
    message = message_from(ReceivedMessage(FORWARDED), Queue("old"))
    assert isinstance(message, TextMessage) and message.text == "é"
    message.clear_body()
    message.text = "new"
    message.clear_properties()
    message.properties["b"] = True
    received = ReceivedMessage(sent(message))
    assert received.body() == (AMQP_VALUE, "new") and received.application_properties() == {"b": True}
    assert received.properties()[6:8] == [None, None] and received.properties()[10:] == [None, None, None]
    assert received.property(SUBJECT) == "kind"
