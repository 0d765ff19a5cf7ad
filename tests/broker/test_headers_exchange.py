"""The headers exchange, by the table of 1.6 and what is decided there: application properties, and nothing else."""

from __future__ import annotations

import random
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.broker.exchanges import Exchange
from jmsish.broker.headers import Criteria, comparable
from jmsish.engine.values import NULL, encode_described, encode_list, encode_string
from jmsish.types import (
    Array,
    Byte,
    Char,
    Decimal64,
    Described,
    Double,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from tests.broker.wiring import Raw, Wiring, bearing, names


@pytest.fixture
def wiring() -> Wiring:
    return Wiring()


@pytest.fixture
def exchange(wiring: Wiring) -> Exchange:
    return wiring.declare("h", "headers")


def matches(arguments: dict[str, Any], payload: bytes) -> bool:
    wiring = Wiring(1)
    exchange = wiring.declare("h", "headers")
    wiring.bind(exchange, "q0", "", arguments)
    return names(exchange, "whatever", payload) == ["q0"]


# The lists of both brokers' tests, in our words: the entries of a binding, the properties of a message, all, any.
CASES: list[tuple[dict[str, Any], dict[str, Any], bool, bool]] = [
    ({"a": "1", "b": 2}, {"a": "1", "b": 2}, True, True),
    ({"a": "1", "b": 2}, {"a": "1", "b": 2, "c": 3}, True, True),
    ({"a": "1", "b": 2}, {"a": "1", "b": 3}, False, True),
    ({"a": "1", "b": 2}, {"a": "1"}, False, True),
    ({"a": "1", "b": 2}, {"b": 2}, False, True),
    ({"a": "1", "b": 2}, {"a": "2", "b": 3}, False, False),
    ({"a": "1", "b": 2}, {"c": "1"}, False, False),
    ({"a": "1", "b": 2}, {}, False, False),
    ({"a": "1"}, {"A": "1"}, False, False),
    ({}, {}, True, False),
    ({}, {"a": "1"}, True, False),
    # Without a value an entry asks for presence; the empty string is a value.
    ({"a": None}, {}, False, False),
    ({"a": None}, {"a": "anything"}, True, True),
    ({"a": None}, {"a": 0}, True, True),
    ({"a": None}, {"a": None}, True, True),
    ({"a": None}, {"b": 1}, False, False),
    ({"a": None, "b": 1}, {"a": 5, "b": 1}, True, True),
    ({"a": None, "b": 1}, {"a": 5, "b": 2}, False, True),
    ({"a": ""}, {"a": "x"}, False, False),
    ({"a": ""}, {"a": ""}, True, True),
    ({"a": "x"}, {"a": None}, False, False),
    # Texts are equal whatever their type; octets are no text, a character is none, a time is no number.
    ({"a": "x"}, {"a": Symbol("x")}, True, True),
    ({"a": Symbol("x")}, {"a": "x"}, True, True),
    ({"a": b"x"}, {"a": b"x"}, True, True),
    ({"a": "x"}, {"a": b"x"}, False, False),
    ({"a": "x"}, {"a": Char("x")}, False, False),
    ({"a": Char("x")}, {"a": Char("x")}, True, True),
    ({"a": 5}, {"a": Timestamp(5)}, False, False),
    ({"a": Timestamp(5)}, {"a": Timestamp(5)}, True, True),
    ({"a": "5"}, {"a": 5}, False, False),
    ({"a": UUID(int=7)}, {"a": UUID(int=7)}, True, True),
    ({"a": UUID(int=7)}, {"a": UUID(int=8)}, False, False),
    ({"a": Decimal64(b"12345678")}, {"a": Decimal64(b"12345678")}, True, True),
    ({"a": Decimal64(b"12345678")}, {"a": b"12345678"}, False, False),
]


@pytest.mark.parametrize(("entries", "properties", "every", "any_"), CASES)
def test_entries_against_properties(
    entries: dict[str, Any], properties: dict[str, Any], every: bool, any_: bool
) -> None:
    payload = bearing(properties)
    assert matches({"x-match": "all", **entries}, payload) is every
    assert matches({"x-match": "any", **entries}, payload) is any_


# All forms in which AMQP writes a 7, and in which Python says it.
WIDTHS: dict[str, bytes] = {
    "ubyte": b"\x50\x07", "ushort": b"\x60\x00\x07", "uint": b"\x70\x00\x00\x00\x07", "smalluint": b"\x52\x07",
    "ulong": b"\x80" + struct.pack(">Q", 7), "smallulong": b"\x53\x07", "byte": b"\x51\x07", "short": b"\x61\x00\x07",
    "int": b"\x71\x00\x00\x00\x07", "smallint": b"\x54\x07", "long": b"\x81" + struct.pack(">q", 7),
    "smalllong": b"\x55\x07", "float": b"\x72" + struct.pack(">f", 7), "double": b"\x82" + struct.pack(">d", 7),
}  # fmt: skip
TYPES = [UByte, UShort, UInt, ULong, Byte, Short, Int, Long]


@pytest.mark.parametrize("kind", [*TYPES, int, Float, Double, float])
@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_equal_by_value_in_all_widths(kind: Any, width: str) -> None:
    payload = bearing({"a": Raw(WIDTHS[width])})
    assert matches({"x-match": "all", "a": kind(7)}, payload)
    assert matches({"x-match": "any", "a": kind(7)}, payload)
    assert not matches({"x-match": "all", "a": kind(8)}, payload)


def test_negative_and_large_numbers_keep_their_sign() -> None:
    largest = bearing({"a": ULong(2**64 - 1)})
    assert matches({"x-match": "all", "a": 2**64 - 1}, largest)
    assert not matches({"x-match": "all", "a": -1}, largest)
    assert matches({"x-match": "all", "a": -1}, bearing({"a": Byte(-1)}))
    assert not matches({"x-match": "all", "a": 255}, bearing({"a": Byte(-1)}))


def test_a_float_is_the_double_it_becomes() -> None:
    narrow = bearing({"a": Float(0.1)})
    assert matches({"x-match": "all", "a": Float(0.1)}, narrow)
    assert matches({"x-match": "all", "a": float(Float(0.1))}, narrow)
    assert not matches({"x-match": "all", "a": 0.1}, narrow)
    assert matches({"x-match": "all", "a": 0.5}, bearing({"a": Float(0.5)}))


def test_nothing_equals_no_number() -> None:
    nan = float("nan")
    assert not matches({"x-match": "all", "a": nan}, bearing({"a": nan}))
    assert matches({"x-match": "all", "a": None}, bearing({"a": nan}))


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("form", [b"\x41", b"\x42", b"\x56\x01", b"\x56\x00", b"\x54\x01", b"\x54\x00", b"\x43"])
def test_booleans_equal_booleans_only(said: bool, form: bytes) -> None:
    equal = (b"\x41", b"\x56\x01") if said else (b"\x42", b"\x56\x00")
    assert matches({"x-match": "all", "a": said}, bearing({"a": Raw(form)})) is (form in equal)
    assert matches({"x-match": "any", "a": said}, bearing({"a": Raw(form)})) is (form in equal)


@pytest.mark.parametrize("number", [1, 0, 1.0, 0.0])
def test_a_number_equals_no_boolean(number: float) -> None:
    assert not matches({"x-match": "all", "a": number}, bearing({"a": True}))
    assert not matches({"x-match": "all", "a": number}, bearing({"a": False}))


# --- x-match


@pytest.mark.parametrize("key", ["x-match", "X-Match", "X-MATCH"])
@pytest.mark.parametrize(("mode", "every"), [("all", True), ("ALL", True), ("Any", False), ("any", False)])
def test_the_case_of_letters_is_of_no_matter(key: str, mode: str, every: bool) -> None:
    arguments = {key: mode, "a": 1, "b": 2}
    assert matches(arguments, bearing(a=1)) is not every
    assert matches(arguments, bearing(a=1, b=2))


@pytest.mark.parametrize(("arguments", "words"), [
    (None, "needs the argument 'x-match' once"),
    ({}, "needs the argument 'x-match' once"),
    ({"a": 1}, "needs the argument 'x-match' once"),
    ({"x-match": "all", "X-Match": "all"}, "this one has it 2 times"),
    ({"x-match": "some"}, "must be 'all' or 'any', not 'some'"),
    ({"x-match": ""}, "must be 'all' or 'any', not ''"),
    ({"x-match": None}, "must be 'all' or 'any', not None"),
    ({"x-match": True}, "must be 'all' or 'any', not True"),
    ({"x-match": 1}, "must be 'all' or 'any', not 1"),
    ({"x-match": ["all"]}, "must be 'all' or 'any', not"),
    ({"x-match": "all-with-x"}, "must be 'all' or 'any', not"),
])  # fmt: skip
def test_without_a_mode_nothing_is_bound(wiring: Wiring, exchange: Exchange, arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wiring.bind(exchange, "q0", "k", arguments)
    assert list(exchange.table) == [] and names(exchange, "k", bearing(a=1)) == []


NESTED = [{"b": 1}, {}, [1], (1,), {1}, Array([1], 0x71), Described(Symbol("x"), 1), object()]


@pytest.mark.parametrize("value", NESTED, ids=lambda value: type(value).__name__)
def test_a_nested_value_is_refused(wiring: Wiring, exchange: Exchange, value: Any) -> None:
    """lavinmq 575: nested tables never matched. Here they are no arguments."""
    with pytest.raises(ValueError, match="'a' has a value that no property of a message has"):
        wiring.bind(exchange, "q0", "k", {"x-match": "any", "a": value})
    assert list(exchange.table) == []


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1])
def test_a_number_of_more_than_64_bits_is_refused(wiring: Wiring, exchange: Exchange, value: int) -> None:
    with pytest.raises(ValueError, match="too large for a number of 64 bits"):
        wiring.bind(exchange, "q0", "k", {"x-match": "any", "a": value})


def test_a_nested_property_is_there_and_equals_nothing() -> None:
    payload = bearing({"a": [1, 2], "b": {"c": 1}})
    assert matches({"x-match": "all", "a": None, "b": None}, payload)
    assert not matches({"x-match": "any", "a": 1, "b": "c"}, payload)


def test_keys_that_begin_with_x_are_passed_over() -> None:
    """rabbitmq-server 4143: which keys cannot be matched is said, and what is said holds for both modes."""
    assert matches({"x-match": "all", "x-other": 1, "X-Third": {"any": "thing"}, "a": 1}, bearing(a=1))
    assert not matches({"x-match": "any", "x-other": 1}, bearing({"x-other": 1}))
    assert matches({"x-match": "all", "xa": 1}, bearing(xa=1))


def test_other_sections_say_nothing() -> None:
    properties = encode_described(0x73, encode_list([NULL, NULL, NULL, encode_string("red")]))
    assert not matches({"x-match": "any", "subject": "red", "to": None}, properties)
    assert matches({"x-match": "any", "subject": "red"}, properties + bearing(subject="red"))


@pytest.mark.parametrize("payload", [
    b"\x00\x53\x74\xc1\x05\x02\xa1", b"\x00\x53\x74\xa1\x01a", b"\x00\x53\x74\xc1\xff\x02\xa1\x01a\x41", b"\x00",
    b"\x00\x53\x74\xc1\x05\x02\xa1\x01a\x82",
])  # fmt: skip
def test_properties_that_cannot_be_read_are_none(payload: bytes) -> None:
    assert not matches({"x-match": "any", "a": None}, payload)
    assert matches({"x-match": "all"}, payload)


def test_no_octets_whatever_stop_the_routing(wiring: Wiring, exchange: Exchange) -> None:
    """Properties of all kinds with octets changed, cut and put in at random: what cannot be read matches nothing."""
    wiring.bind(exchange, "q0", "", {"x-match": "any", "a": None, "b": 1})
    wiring.bind(exchange, "q1", "", {"x-match": "all", "a": 1, "c": "x"})
    wiring.bind(exchange, "q2", "", {"x-match": "all"})
    sound = bearing(a=1, b=2.5, c="x", d=b"zz", e=None, f=True, g=[1, 2], h={"k": 1})
    chance = random.Random(1888)
    for _ in range(3000):
        octets = bytearray(sound)
        for _ in range(chance.randint(1, 4)):
            at, octet, what = chance.randrange(len(octets)), chance.randrange(256), chance.random()
            if what < 0.6:
                octets[at] = octet
            elif what < 0.8 and at:
                del octets[at:]
            else:
                octets.insert(at, octet)
        assert "q2" in names(exchange, "k", bytes(octets))


# --- bindings of one queue


def test_qpid_5534_two_bindings_that_match_are_one_copy(wiring: Wiring, exchange: Exchange) -> None:
    wiring.bind(exchange, "q0", "one", {"x-match": "any", "a": 1, "b": 1})
    wiring.bind(exchange, "q0", "two", {"x-match": "all", "a": 1})
    wiring.bind(exchange, "q0", "three", {"x-match": "all"})
    assert names(exchange, "", bearing(a=1, b=1)) == ["q0"]


def test_qpid_4969_other_arguments_under_the_same_key(wiring: Wiring, exchange: Exchange) -> None:
    assert wiring.bind(exchange, "q0", "k", {"x-match": "all", "a": 1})
    assert not wiring.bind(exchange, "q0", "k", {"x-match": "all", "a": 1})
    assert not wiring.bind(exchange, "q0", "k", {"X-Match": "ALL", "a": Long(1), "x-note": "passed over"})
    for other in ({"x-match": "any", "a": 1}, {"x-match": "all", "a": 2}, {"x-match": "all", "a": True}):
        with pytest.raises(ValueError, match="'h' has a binding of 'q0' with the key 'k' and other arguments"):
            wiring.bind(exchange, "q0", "k", other)
    assert names(exchange, "", bearing(a=1)) == ["q0"] and exchange.table.size == 1


def test_replaced_arguments_are_in_force_and_the_old_are_not(wiring: Wiring, exchange: Exchange) -> None:
    """One broker kept the old matcher when arguments were replaced (5.6)."""
    wiring.bind(exchange, "q0", "k", {"x-match": "all", "a": 1})
    assert wiring.bind(exchange, "q0", "k", {"x-match": "all", "b": 2}, replace=True)
    assert names(exchange, "", bearing(a=1)) == [] and names(exchange, "", bearing(b=2)) == ["q0"]
    (bound,) = exchange.table
    assert bound.binding.arguments == {"x-match": "all", "b": 2}


def test_lavinmq_1567_unbinding_one_of_two_leaves_the_other(wiring: Wiring, exchange: Exchange) -> None:
    wiring.bind(exchange, "q0", "one", {"x-match": "all", "a": 1})
    wiring.bind(exchange, "q0", "two", {"x-match": "all", "a": 1})
    assert wiring.unbind(exchange, "q0", "one")
    assert names(exchange, "", bearing(a=1)) == ["q0"]
    assert wiring.unbind(exchange, "q0", "two") and not wiring.unbind(exchange, "q0", "two")
    assert names(exchange, "", bearing(a=1)) == [] and exchange.table.is_bare  # type: ignore[attr-defined]


def test_rabbitmq_13933_criteria_belong_to_their_own_binding(wiring: Wiring, exchange: Exchange) -> None:
    wiring.bind(exchange, "q0", "", {"x-match": "all", "type": "a", "size": 1})
    wiring.bind(exchange, "q1", "", {"x-match": "all", "type": "b", "size": 1})
    assert names(exchange, "", bearing(type="a", size=1)) == ["q0"]
    assert names(exchange, "", bearing(type="b", size=1)) == ["q1"]
    assert names(exchange, "", bearing(type="c", size=1)) == []


def test_a_selector_beside_the_entries(wiring: Wiring, exchange: Exchange) -> None:
    arguments = {"x-match": "all", "a": 1, "x-filter-jms-selector": "size > 5"}
    wiring.bind(exchange, "q0", "", arguments)
    assert names(exchange, "", bearing(a=1, size=6)) == ["q0"]
    assert names(exchange, "", bearing(a=1, size=5)) == []
    assert names(exchange, "", bearing(a=2, size=6)) == []


def test_the_routing_key_is_of_no_matter(wiring: Wiring, exchange: Exchange) -> None:
    wiring.bind(exchange, "q0", "key", {"x-match": "all", "a": 1})
    assert names(exchange, "other", bearing(a=1)) == ["q0"]
    assert names(exchange, "key", bearing(a=2)) == []


def test_an_unbound_name_is_looked_for_no_more(wiring: Wiring, exchange: Exchange) -> None:
    wiring.bind(exchange, "q0", "", {"x-match": "all", "a": 1})
    wiring.bind(exchange, "q1", "", {"x-match": "any", "b": 1})
    wiring.unbind(exchange, "q0")
    assert exchange.table._values_of(bearing(a=1, b=1)) == {"b": 1}  # type: ignore[attr-defined]


def test_long_values_are_matched_and_not_remembered(wiring: Wiring, exchange: Exchange) -> None:
    wiring.bind(exchange, "q0", "", {"x-match": "all", "a": "x" * 1000})
    for _ in range(2):
        assert names(exchange, "", bearing(a="x" * 1000)) == ["q0"]
    assert not exchange.table.cache
    (bound,) = exchange.table
    assert exchange.bound(bound.target, "").matched == 2


# --- against a definition


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.5, 1.0, Float(0.5), UInt(1), Long(2), "", "x", b"x"]),
)
entries = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def plainly(mode: str, wanted: dict[str, Any], properties: dict[str, Any]) -> bool:
    """The meaning of a binding, as a definition."""

    def equal(one: Any, other: Any) -> bool:
        if one is None:
            return True
        if other is None or isinstance(one, bool) is not isinstance(other, bool):
            return False
        return bool(one == other)

    results = [name in properties and equal(value, properties[name]) for name, value in wanted.items()]
    return all(results) if mode == "all" else any(results)


@given(st.lists(st.tuples(st.sampled_from(["all", "any"]), entries), max_size=8), entries)
def test_the_index_finds_what_the_definition_says(
    bound: list[tuple[str, dict[str, Any]]], properties: dict[str, Any]
) -> None:
    wiring = Wiring(8)
    exchange = wiring.declare("h", "headers")
    for number, (mode, wanted) in enumerate(bound):
        wiring.bind(exchange, f"q{number}", "", {"x-match": mode, **wanted})
    expected = [f"q{number}" for number, (mode, wanted) in enumerate(bound) if plainly(mode, wanted, properties)]
    assert names(exchange, "", bearing(properties)) == expected
    for number in range(len(bound)):
        wiring.unbind(exchange, f"q{number}")
    assert exchange.table.is_bare and exchange.table.size == 0  # type: ignore[attr-defined]


@given(values, values)
def test_what_is_compared_is_equal_exactly_if_the_values_are(one: Any, other: Any) -> None:
    if one is not None and other is not None:
        assert (comparable(one) == comparable(other)) is plainly("all", {"a": one}, {"a": other})
        assert comparable(one) != comparable(other) or hash(comparable(one)) == hash(comparable(other))


def test_criteria_that_ask_the_same_are_equal() -> None:
    first = Criteria.read({"x-match": "all", "b": Int(1), "a": None})
    assert first == Criteria.read({"a": None, "b": 1.0, "X-MATCH": "ALL"})
    assert first != Criteria.read({"a": None, "b": 1, "x-match": "any"})
