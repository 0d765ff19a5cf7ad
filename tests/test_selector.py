"""The rules of message selectors, 180 to 199 (JMS 3.1, 3.8), each on a message made here, received, and undecoded.

Those of literals and words, 183 to 186, are in `test_selector_words.py`.
"""

from __future__ import annotations

import math

import pytest

import jmsish
from jmsish.engine.codec import CORRELATION_ID, GROUP_ID, GROUP_SEQUENCE, USER_ID, Header
from jmsish.engine.selecting import predicate
from jmsish.selector import Selector
from jmsish.types import Byte, Char, Double, Float, Int, Long, Short, Symbol, UInt
from tests.selector_cases import NOW, foreign_octets, made, octets_of, received, refused, selects, unknown

# -- what a selector is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, "", " ", "\t\n "])
def test_rule_180_null_empty_and_blank_are_no_selector(text: str | None) -> None:
    assert Selector.parse(text) is None


def test_rule_180_anything_else_is_one() -> None:
    found = Selector.parse(" weight > 10 ")
    assert found is not None
    assert found.text == " weight > 10 "
    assert found.identifiers == {"weight"}
    assert isinstance(found, jmsish.Selector)


def test_rule_181_a_fault_is_raised_when_the_selector_is_made() -> None:
    assert refused("colour =", "ends where an identifier, a literal or '(' is expected").position == 8


def test_rule_182_the_body_is_not_seen() -> None:
    message = jmsish.MapMessage({"colour": "red"})
    assert Selector("colour IS NULL").matches(message)
    assert predicate(Selector("colour IS NULL"))(octets_of(message), 0)


# -- headers -----------------------------------------------------------------------------------------------------------


def test_rule_187_the_headers_that_selectors_may_name() -> None:
    message = made({}, jms_type="order", jms_correlation_id="c-1")
    octets = octets_of(message, priority=7)
    for condition in [
        "JMSDeliveryMode = 'PERSISTENT'",
        "JMSPriority = 7",
        "JMSMessageID = 'ID:1'",
        f"JMSTimestamp = {NOW}",
        "JMSCorrelationID = 'c-1'",
        "JMSType = 'order'",
    ]:
        assert Selector(condition).matches(received(octets)), condition
        assert predicate(Selector(condition))(octets, 0), condition
        assert not predicate(Selector(f"NOT {condition}"))(octets, 0), condition


@pytest.mark.parametrize(
    "name", ["JMSDestination", "JMSReplyTo", "JMSExpiration", "JMSRedelivered", "JMSDeliveryTime", "JMSWhatever", "JMS"]
)
def test_rule_187_other_headers_are_refused_by_name(name: str) -> None:
    assert refused(f"weight = 1 AND {name} IS NULL", f"{name} cannot be selected by").position == 15


def test_rule_187_headers_that_are_not_there_are_null_and_a_timestamp_is_0() -> None:
    for condition in ["JMSMessageID IS NULL", "JMSCorrelationID IS NULL", "JMSType IS NULL", "JMSTimestamp = 0"]:
        assert Selector(condition).matches(made())
        assert Selector(condition).matches(received(foreign_octets({"a": 1})))
        assert predicate(Selector(condition))(foreign_octets({"a": 1}), 0)


@pytest.mark.parametrize(("header", "name"), [(None, "NON_PERSISTENT"), (Header(), "NON_PERSISTENT")])
def test_rule_188_what_is_not_durable_is_non_persistent(header: Header | None, name: str) -> None:
    octets = foreign_octets({"a": 1}, header=header)
    assert predicate(Selector(f"JMSDeliveryMode = '{name}'"))(octets, 0)
    assert Selector(f"JMSDeliveryMode = '{name}'").matches(received(octets))
    assert not predicate(Selector("JMSDeliveryMode = 'PERSISTENT'"))(octets, 0)


def test_rule_188_a_delivery_mode_is_a_string_and_no_number() -> None:
    octets = octets_of(made(), delivery_mode=2)
    assert predicate(Selector("JMSDeliveryMode IN ('PERSISTENT', 'x')"))(octets, 0)
    assert not predicate(Selector("JMSDeliveryMode = 2"))(octets, 0)
    assert predicate(Selector("JMSDeliveryMode LIKE 'NON%'"))(octets_of(made(), delivery_mode=1), 0)


# -- types -------------------------------------------------------------------------------------------------------------


def test_rule_189_properties_are_not_converted() -> None:
    assert not selects("text > 1")
    assert not selects("text = 5")
    assert selects("text = '5'")
    assert not selects("weight = '11'")
    assert not selects("yes = 'true'")
    assert not selects("yes = 1")


UNLIKE = ["text = 5", "text <> 5", "weight = 'red'", "weight <> 'red'", "yes = 1", "yes <> 1", "colour = TRUE",
          "colour <> TRUE", "zero = no", "zero <> no", "text = weight", "text < weight", "'5' = 5", "TRUE <> 'TRUE'",
          "colour"]  # fmt: skip


@pytest.mark.parametrize("condition", UNLIKE)
def test_rule_190_values_of_unlike_type_compare_to_false(condition: str) -> None:
    assert not selects(condition)
    assert selects(f"NOT ({condition})")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("colour", "BETWEEN 1 AND 5"),
        ("weight", "BETWEEN colour AND 20"),
        ("weight", "LIKE '%'"),
        ("weight", "IN ('x')"),
    ],
)
def test_rule_190_predicates_on_values_of_unlike_type_are_unknown(before: str, after: str) -> None:
    assert unknown(f"{before} {after}")
    assert unknown(f"{before} NOT {after}")


def test_rule_190_numbers_of_all_types_compare() -> None:
    for one in (Byte(5), Short(5), Int(5), Long(5), 5, Float(5), Double(5), 5.0):
        assert selects("n = 5 AND n = 5.0 AND n > 4.5 AND n < 6 AND 5.5f > n AND n <> 6", {"n": one})


EXACTLY = [
    "big = 9223372036854775807", "big <> 9223372036854775806", "big < 9223372036854775808.0",
    "big <> 9.223372036854775807E18",
    "n < 9007199254740993", "n = 9007199254740992", "n <> 9007199254740993", "n + 1 = 9007199254740993",
    "tenth <> 0.1", "tenth = 0.1f", "tenth > 0.1", "9007199254740993 <> d", "d = 9007199254740992", "big > small",
]  # fmt: skip


@pytest.mark.parametrize("condition", EXACTLY)
def test_rule_190_longs_and_doubles_compare_exactly(condition: str) -> None:
    numbers = {"big": Long.MAX, "small": Long.MIN, "n": Long(2**53), "d": float(2**53), "tenth": Float(0.1)}
    assert selects(condition, numbers)


def test_rule_190_what_is_no_number_of_arithmetic_has_its_way() -> None:
    assert selects("n <> n AND NOT n = n AND NOT n > 1 AND NOT n <= 1", {"n": math.nan})
    assert selects("n > 9223372036854775807 AND n = n", {"n": math.inf})


def test_rule_190_texts_of_other_types_are_strings() -> None:
    octets = foreign_octets({"symbol": Symbol("red"), "char": Char("x"), "octets": b"red"})
    assert predicate(Selector("symbol = 'red' AND char = 'x' AND char LIKE '_' AND symbol IN ('red')"))(octets, 0)
    assert predicate(Selector("octets IS NOT NULL AND NOT octets = 'red' AND NOT octets <> 'red'"))(octets, 0)


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_rule_191_strings_and_booleans_have_no_order(sign: str) -> None:
    refused(f"colour {sign} 'red'", "a string where a number is expected", f"{sign} orders numbers")
    refused(f"TRUE {sign} yes", "a boolean where a number is expected")
    assert selects(f"NOT colour {sign} quoted")
    assert selects(f"NOT yes {sign} no")


def test_rule_191_strings_and_booleans_are_equal_or_not() -> None:
    assert selects("colour = 'red' AND colour <> 'Red' AND 'red' = colour AND colour <> quoted AND colour = colour")
    assert selects("yes = TRUE AND no <> TRUE AND no = FALSE AND yes <> no AND TRUE = yes AND yes AND NOT no")
    assert not selects("colour = 'Red' OR colour <> 'red' OR yes = FALSE OR no")


# -- three values ------------------------------------------------------------------------------------------------------

NULLS = ["absent = 1", "absent <> 1", "absent > 1", "1 < absent", "absent = 'x'", "absent <> 'x'", "absent = TRUE",
         "absent <> FALSE", "absent = absent", "absent = weight", "weight <> absent", "absent + 1 = 1",
         "1 - absent < 5",
         "-absent = 1", "+absent = 1", "absent * 0 = 0", "absent LIKE '%'", "absent NOT LIKE '%'", "absent IN ('x')",
         "absent NOT IN ('x')", "absent BETWEEN 1 AND 2", "absent NOT BETWEEN 1 AND 2", "weight BETWEEN absent AND 20",
         "weight BETWEEN 1 AND absent", "absent", "weight / 0 = 1", "weight / zero > 0", "1.5 / 0.0 > 0",
         "colour + 1 = 2", "-colour = 1", "1 + yes = 2", "weight + text = 16", "+colour = 'red'"]  # fmt: skip


@pytest.mark.parametrize("condition", NULLS)
def test_rule_192_what_is_null_or_has_no_value_is_unknown(condition: str) -> None:
    assert unknown(condition)


T, F, U = "yes = TRUE", "yes = FALSE", "absent = TRUE"
TABLE = [
    # left, right, AND, OR
    (T, T, True, True), (T, F, False, True), (T, U, None, True),
    (F, T, False, True), (F, F, False, False), (F, U, False, None),
    (U, T, None, True), (U, F, False, None), (U, U, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "both", "either"), TABLE)
def test_rule_192_and_or_not_have_three_values(left: str, right: str, both: bool | None, either: bool | None) -> None:
    for condition, value in ((f"{left} AND {right}", both), (f"{left} OR {right}", either)):
        assert selects(condition) == (value is True)
        assert selects(f"NOT ({condition})") == (value is False)
        # A third operand, so that the chain is longer than the two for which there is a short way.
        assert selects(f"NOT ({condition} AND {T})") == (value is False)
        assert selects(f"({condition}) OR {F} OR {U}") == (value is True)
        assert selects(f"({condition}) AND {T} AND {T}") == (value is True)


# -- precedence --------------------------------------------------------------------------------------------------------

PRECEDENCE = [
    "1 + 2 * 3 = 7", "(1 + 2) * 3 = 9", "10 - 4 - 3 = 3", "10 - (4 - 3) = 9", "100 / 10 / 5 = 2", "100 / (10 / 5) = 50",
    "2 * 3 / 4 = 1", "-2 + 3 = 1", "-(2 + 3) = -5", "- 2 * - 3 = 6", "1 - -1 = 2", "2 - 1 + 1 = 2", "7 - 2 * 3 = 1",
    "NOT no = TRUE", "NOT 1 = 2 AND 1 = 1", "NOT (1 = 2 AND 1 = 1)", "1 = 1 OR 1 = 2 AND 1 = 3", "NOT NOT yes",
    "NOT no AND yes OR no", "no AND no OR yes", "yes OR no AND no", "NOT (yes AND (no OR no))", "1 + 1 > 1 AND 2 > 1",
    "weight - 1 BETWEEN 2 * 5 AND 5 + 5 AND yes", "NOT weight BETWEEN 1 AND 2", "(colour) = ('red')",
    "((weight)) > (10)",
    "(yes)", "(1 = 1) = TRUE", "(1 = 2) <> yes", "weight+-1=10", "7-2-1=4", "-weight = -11", "-weight*-1 = 11",
]  # fmt: skip


@pytest.mark.parametrize("condition", PRECEDENCE)
def test_rule_193_precedence(condition: str) -> None:
    assert selects(condition)
    assert not selects(f"NOT ({condition})")


ARITHMETIC = [
    "7 / 2 = 3", "-7 / 2 = -3", "7 / -2 = -3", "-7 / -2 = 3", "7 / 2.0 = 3.5", "7. / 2 = 3.5", "big + 1 = small",
    "small - 1 = big", "-small = small", "small / -1 = small", "big * 2 = -2", "big * big = 1", "big + 1.0 > big",
    "-(-9223372036854775808) = small", "weight * price = 27.5", "1 / 3 * 3 = 0", "0.5 + .25 = 0.75", "5 * 0 = 0",
    "1e308 * 10 > big", "0 / 5 = 0", "-0.0 = 0", "big - -1 = small",
]  # fmt: skip


@pytest.mark.parametrize("condition", ARITHMETIC)
def test_rule_193_arithmetic_is_that_of_java(condition: str) -> None:
    assert selects(condition)


# -- BETWEEN, IN, LIKE, NULL -------------------------------------------------------------------------------------------


def test_rule_194_between_is_inclusive() -> None:
    for number, inside in ((9, False), (10, True), (11, True), (12, True), (13, False), (12.5, False), (9.99, False)):
        assert selects("n BETWEEN 10 AND 12", {"n": number}) is inside
        assert selects("n NOT BETWEEN 10 AND 12", {"n": number}) is not inside
    assert selects("weight + 1 BETWEEN weight AND weight * 2")
    assert not selects("weight BETWEEN 12 AND 10")


def test_rule_194_one_bound_may_decide() -> None:
    assert selects("weight NOT BETWEEN 12 AND absent")
    assert selects("weight NOT BETWEEN absent AND 10")
    assert unknown("weight BETWEEN absent AND 12")


def test_rule_194_between_is_arithmetic() -> None:
    refused("colour BETWEEN 'a' AND 'z'", "BETWEEN takes numbers")
    refused("weight BETWEEN 1 AND TRUE", "BETWEEN takes numbers")
    refused("weight BETWEEN 1", "ends where AND is expected")


def test_rule_195_in() -> None:
    assert selects("colour IN ('blue', 'red')")
    assert selects("colour IN ('red')")
    assert selects("colour NOT IN ('blue', 'Red', 'green')")
    assert selects("quoted IN ('it''s', '')")
    assert not selects("colour IN ('blue', 'green')")
    assert not selects("colour NOT IN ('blue', 'red')")


@pytest.mark.parametrize("text", ["5 IN ('5')", "'red' IN ('red')", "weight + 1 IN ('x')", "TRUE IN ('x')"])
def test_rule_195_in_takes_an_identifier(text: str) -> None:
    refused(text, "IN takes an identifier on its left")


@pytest.mark.parametrize(
    "text", ["a IN (1)", "a IN (b)", "a IN ()", "a IN 'x'", "a IN ('x',)", "a IN ('x' 'y')", "a NOT IN"]
)
def test_rule_195_in_takes_strings(text: str) -> None:
    refused(text, "is expected")


LIKE = [
    ("12%3", "123", True), ("12%3", "12993", True), ("12%3", "1234", False), ("l_se", "lose", True),
    ("l_se", "loose", False), ("_", "", False), ("_", "x", True), ("_", "🙂", True), ("%", "", True), ("%", "a\nb",
    True),
    ("", "", True), ("", "a", False), ("a.c", "abc", False), ("a.c", "a.c", True), ("[ab]", "a", False), ("[ab]",
    "[ab]", True),
    ("a*", "aaa", False), ("^a$", "a", False), ("a%", "A", False), ("%a", "bca", True), ("%a", "ab", False), ("%a%",
    "xax", True),
    ("%%", "", True), ("a%%b", "ab", True), ("%ab%ab", "ab", False), ("%ab%ab", "abab", True), ("ab%ba", "aba", False),
    ("a_%", "a", False), ("a_%", "ab", True), ("%_b", "b", False), ("%_b%_d", "abcd", True), ("_%_", "a", False),
    ("a_c", "a\nc", True), ("%a_c%", "xabab\nacx", False), ("%a_c%", "xabac", False), ("%a_c%", "xaba-cx", True),
    ("it''s", "it's", True), ("\\", "\\", True), ("a\\%", "a\\bc", True), ("%x%y%", "yx", False), ("%x%y%", "xy", True),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "like"), LIKE)
def test_rule_196_like(pattern: str, text: str, like: bool) -> None:
    assert selects(f"word LIKE '{pattern}'", {"word": text}) is like
    assert selects(f"word NOT LIKE '{pattern}'", {"word": text}) is not like


ESCAPED = [
    (r"\_%", "\\", "_foo", True), (r"\_%", "\\", "bar", False), ("!%", "!", "%", True), ("!%", "!", "x", False),
    ("a!!b", "!", "a!b", True), ("a!_b", "!", "axb", False), ("a!_b", "!", "a_b", True), ("%!%", "!", "50%", True),
    ("%!%", "!", "50", False), ("a!bc", "!", "abc", True), ("x''y", "''", None, False), ("_%_", "_", "%_", None),
    ("%%", "%", "%", True), ("%%", "%", "x", False), ("!!!_", "!", "!_", True),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "escape", "text", "like"), ESCAPED)
def test_rule_196_escape(pattern: str, escape: str, text: str | None, like: bool | None) -> None:
    condition = f"word LIKE '{pattern}' ESCAPE '{escape}'"
    if like is None:
        refused(condition, "has nothing to escape")
    else:
        assert selects(condition, {} if text is None else {"word": text}) is like


def test_rule_196_like_takes_an_identifier_a_pattern_and_one_character() -> None:
    refused("'x' LIKE 'x'", "LIKE takes an identifier")
    refused("word LIKE other", "a string is expected")
    refused("word LIKE 5", "a string is expected")
    refused("word LIKE 'x' ESCAPE 'ab'", "ESCAPE takes a string of one character")
    refused("word LIKE 'x' ESCAPE ''", "ESCAPE takes a string of one character")
    refused("word LIKE 'x' ESCAPE", "ends where a string is expected")


def test_rule_197_null() -> None:
    assert selects("absent IS NULL AND weight IS NOT NULL AND empty IS NOT NULL AND no IS NOT NULL")
    assert not selects("absent IS NOT NULL")
    assert not selects("weight IS NULL")
    assert not unknown("absent IS NULL")
    assert selects("nothing IS NULL", {"nothing": None})
    refused("5 IS NULL", "IS takes an identifier on its left")
    refused("weight = NULL", "NULL is no value")
    refused("weight IS 5", "where NOT or NULL is expected")


@pytest.mark.parametrize("text", ["weight = 11 -- comment", "weight /* comment */ = 11", "weight = --11", "-- x\nyes"])
def test_rule_198_comments_are_refused(text: str) -> None:
    refused(text, "begins a comment in SQL")


def test_rule_198_signs_with_a_space_between_are_no_comment() -> None:
    assert selects("weight = - -11")
    assert selects("weight - -1 = 12")


# -- JMSX and JMS_ -----------------------------------------------------------------------------------------------------


def test_rule_199_names_that_begin_jmsx_or_jms_underscore() -> None:
    message = made({"JMS_vendor": 5, "JMSXGroupID": "g", "JMSXGroupSeq": 3, "JMSXOwn": "mine"})
    octets = octets_of(message, jmsx_user_id="ann")
    text = "JMS_vendor = 5 AND JMSXGroupID = 'g' AND JMSXGroupSeq = 3 AND JMSXOwn = 'mine' AND JMSXUserID = 'ann'"
    assert Selector(text).matches(received(octets))
    assert predicate(Selector(text))(octets, 0)
    assert Selector(text.replace(" AND JMSXUserID = 'ann'", "")).matches(message)


@pytest.mark.parametrize("name", ["JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSXWhatever", "JMS_Vendor",
                                  "JMS_AMQP_TTL", "JMS_AMQP_ACK_TYPE", "JMS_AMQP_REPLY_TO_GROUP_ID"])  # fmt: skip
def test_rule_199_absent_ones_are_null(name: str) -> None:
    assert selects(f"{name} IS NULL")
    assert unknown(f"{name} = 1")


def test_rule_199_the_delivery_count_counts_this_delivery_too() -> None:
    octets = foreign_octets({"a": 1}, header=Header(delivery_count=2))
    assert Selector("JMSXDeliveryCount = 3").matches(received(octets))
    # The count in force is the broker's, whatever the octets say.
    for failed in (0, 1, 5):
        assert predicate(Selector(f"JMSXDeliveryCount = {failed + 1}"))(octets, failed)


def test_rule_199_fields_of_foreign_messages() -> None:
    fields = {USER_ID: b"\xffann", GROUP_ID: "g", GROUP_SEQUENCE: UInt(2**32 - 1), CORRELATION_ID: "c"}
    octets = foreign_octets({}, fields)
    text = "JMSXUserID LIKE '_ann' AND JMSXGroupID = 'g' AND JMSXGroupSeq = -1 AND JMSCorrelationID = 'c'"
    assert predicate(Selector(text))(octets, 0)
    assert Selector(text).matches(received(octets))
