"""Messages as octets: sections, the header that is written anew, and peeking."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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
    ReceivedMessage,
    bare_offset,
    check_sections,
    delivery_count_of,
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
from jmsish.message import message_from, read_in
from jmsish.types import Byte, Long, Symbol, Timestamp, UInt, ULong

NOW = 1_700_000_000_000
BARE = encode_message(properties=["id", None, "q"], application_properties={"a": 1}, body=(AMQP_VALUE, "text"))
ANNOTATIONS = encode_described(0x72, encode({Symbol("x-opt-a"): Byte(1)}))
DELIVERY_ANNOTATIONS = encode_described(0x71, encode({Symbol("x-opt-d"): 1}))
FOOTER = encode_described(0x78, encode({Symbol("x-opt-f"): 1}))


def section(code: int, value: Any) -> bytes:
    return encode_described(code, encode(value))


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
INSIDE: dict[int, Any] = {0x71: {}, 0x72: {}, 0x74: {}, 0x75: b"", 0x78: {}}
"""What a section of this number holds, if it is no list."""


@pytest.mark.parametrize(("right", "codes"), ORDERS)
def test_sections_stand_in_their_order(right: bool, codes: list[int]) -> None:
    payload = b"".join(section(code, INSIDE.get(code, [])) for code in codes)
    if right:
        check_sections(payload)
    else:
        with pytest.raises(DecodeError):
            check_sections(payload)


@pytest.mark.parametrize("code", [0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x78])
def test_a_section_holds_what_its_number_says(code: int) -> None:
    check_sections(section(code, INSIDE.get(code, [])))
    for wrong in ("text", [] if code in INSIDE else {}):
        with pytest.raises(DecodeError, match="of format code"):
            check_sections(section(code, wrong))


@pytest.mark.parametrize(
    "payload", [b"\x00", b"\x01", b"\x00Sw", b"\x00Sw\xa1\x05abc", b"\x00S\x24\x45", b"AMQP\x00\x01"]
)
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        check_sections(payload)


@given(st.binary(max_size=100), st.integers(0, 90))
@example(b"\x00Sw\xa1", 0)
@example(b"\x00", 0)
@example(b"\x00" * 100, 0)
def test_any_octets_are_a_message_or_refused(noise: bytes, at: int) -> None:
    whole = encode_header(Header(True)) + ANNOTATIONS + BARE
    for payload in (noise, whole[:at] + noise + whole[at + len(noise) :]):
        for read in (
            check_sections, split_header, bare_offset, delivery_count_of, lambda octets: is_expired(octets, 0),
            lambda octets: peek_properties(octets, TO), lambda octets: read_all(ReceivedMessage(octets)), checked,
        ):  # fmt: skip
            try:
                read(payload)
            except (DecodeError, MessageFormatError):
                pass


WHOLE = (
    encode_header(Header(True, 3, 500, True, 2)) + DELIVERY_ANNOTATIONS + ANNOTATIONS
    + section(0x73, ["id", b"u", "to", "s", "r", "c", Symbol("text/plain"), None, Timestamp(1), Timestamp(2), "g"])
    + section(0x74, {"a": 1}) + section(DATA, b"ab") + section(DATA, b"cd") + FOOTER
)  # fmt: skip
OCTETS_THAT_MEAN_SOMETHING = st.sampled_from(bytes.fromhex("00 01 40 45 53 70 72 73 75 77 a1 b1 c0 c1 d0 e0 f0 ff"))


@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), OCTETS_THAT_MEAN_SOMETHING), max_size=4),
    st.integers(0, len(WHOLE)),
)
def test_a_damaged_message_gives_its_headers_or_an_error_of_its_own(changes: list[tuple[int, int]], end: int) -> None:
    payload = bytearray(WHOLE)
    for at, octet in changes:
        payload[at] = octet
    try:
        message = message_from(ReceivedMessage(bytes(payload[:end])))
    except (DecodeError, MessageFormatError):
        return
    for name in ("body", "jms_message_id", "jms_correlation_id", "jms_reply_to", "jms_destination", "jms_expiration",
                 "jms_timestamp", "jms_delivery_time", "jms_type"):  # fmt: skip
        try:
            getattr(message, name)
        except MessageFormatError:
            pass
    try:
        dict(message.properties)
    except MessageFormatError:
        pass


def checked(octets: bytes) -> None:
    """As it is done with each message before it is handed over."""
    received = ReceivedMessage(octets)
    received.check()
    read_in(received)


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
    ("expiry", "expired"),
    [(None, False), ("soon", False), (Timestamp(0), False), (Timestamp(10), True), (Timestamp(11), False)],
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


# ---------------------------------------------------------------- checking all of it

CHECKED = [
    (b"", None),
    (section(AMQP_VALUE, "x"), None),
    (section(0x73, ["ID:1", None, "q", None, None, None, None, None, Timestamp(9)]) + section(AMQP_VALUE, 1), 9),
    (section(0x73, [None] * 8 + ["soon"]) + section(AMQP_VALUE, 1), None),
    (section(0x73, [None] * 8 + [Symbol("soon")]) + section(AMQP_VALUE, 1), None),
    (b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x73" + encode([None] * 8 + [Timestamp(9)]), 9),
    (b"\x00Ss\xd0\x00\x00\x00\x15\x00\x00\x00\x09" + b"\x40" * 8 + b"\x83" + bytes(7) + b"\x09", 9),
    (b"\x00Ss\x45" + section(0x74, {"a": 1}), None),
    (section(0x73, [UUID(int=1), None, None, None, None, b"c"]) + FOOTER, None),
    (section(0x73, [None] * 6 + ["text/plain", "gzip"]), None),
]


@pytest.mark.parametrize(("payload", "expiry"), CHECKED)
def test_checking_finds_the_expiry_time_and_nothing_wrong(payload: bytes, expiry: int | None) -> None:
    for before in (b"", encode_header(Header()) + ANNOTATIONS):
        assert ReceivedMessage(before + payload).check() == expiry


WRONG = [
    b"\x00Sw\xa1",
    b"\x00Sw\xa1\x02\xff\xfe",
    b"\x00Ss",
    b"\x00Ss\xa1\x01x",
    b"\x00Ss\xc0\x02\x01",
    b"\x00Ss\xc0\x03\x01\x40\x40",
    b"\x00Ss\xc0\x0f\x0e" + b"\x40" * 14,
    b"\x00Ss\xc0\x04\x01\xa1\x01\xff",
    b"\x00Ss\xc0\x03\x01\x54\x05",
    section(0x73, [None] * 5 + [5]),
    section(0x73, []) * 2,
    section(AMQP_VALUE, 1) + section(0x73, []),
    section(DATA, b"a") + section(AMQP_SEQUENCE, []),
    section(AMQP_VALUE, 1) + FOOTER[:-1],
]


@pytest.mark.parametrize("payload", WRONG)
def test_checking_finds_what_is_wrong(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        ReceivedMessage(payload).check()


def test_checking_decodes_a_short_text_and_leaves_everything_else() -> None:
    received = ReceivedMessage(section(0x73, ["ID:1"]) + section(AMQP_VALUE, "é"))
    received.check()
    assert received.text == "é" and received.body() == (AMQP_VALUE, "é") and not received.has_application_properties
    other = ReceivedMessage(section(0x74, {"a": 1}) + section(AMQP_VALUE, {"a": 1}))
    other.check()
    assert other.text is None and other.has_application_properties and other.body() == (AMQP_VALUE, {"a": 1})


@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), OCTETS_THAT_MEAN_SOMETHING), max_size=4),
    st.integers(0, len(WHOLE)),
)
def test_what_was_checked_and_read_in_fails_nowhere_later(changes: list[tuple[int, int]], end: int) -> None:
    """An application that has got a message never finds out that it cannot be read."""
    payload = bytearray(WHOLE)
    for at, octet in changes:
        payload[at] = octet
    try:
        received = ReceivedMessage(bytes(payload[:end]))
        received.check()
        message = read_in(received)
    except (DecodeError, MessageFormatError):
        return
    for name in ("body", "jms_message_id", "jms_correlation_id", "jms_reply_to", "jms_destination", "jms_expiration",
                 "jms_timestamp", "jms_type", "jms_priority", "content_type"):  # fmt: skip
        getattr(message, name)
    assert isinstance(dict(message.properties), dict)
