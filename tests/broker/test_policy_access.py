"""Which addresses a group may use: lists with `*` at the end, patterns of words, and the user's name in both."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jmsish.broker.access import Access, check_item, check_pattern
from jmsish.broker.patterns import covers, matches, normalised


@pytest.mark.parametrize(
    ("items", "address", "allowed"),
    [
        ((), "joe", False),
        (("*",), "joe", True),
        (("*",), "", False),
        (("joe*",), "joe", True),
        (("joe*",), "joey", True),
        (("joe*",), "jo", False),
        (("joe",), "joe", True),
        (("joe",), "joey", False),
        (("joe",), "Joe", False),
        (("", "a*"), "", False),
        (("a", "b*"), "b/c", True),
        (("prices/eu.*",), "prices/eu.fr", True),
        (("prices/eu.*",), "prices", False),
        (("prices",), "prices/eu.fr", False),
        # An address with wildcards is a topic of many: all of them have to be allowed.
        (("a.*",), "a.#", False),
        (("a*",), "a.#", True),
        (("a.b*",), "a.b.*", True),
        (("a.#",), "a.#", True),
        (("*",), "#", True),
        (("prices/*",), "prices/eu.#", True),
    ],
)
def test_lists(items: tuple[str, ...], address: str, allowed: bool) -> None:
    assert Access(items=items).decision("joe")(address) is allowed


@pytest.mark.parametrize(
    ("items", "user", "address", "allowed"),
    [
        (("${user}",), "joe", "joe", True),
        (("${user}",), "joe", "joey", False),
        (("${user}*",), "joe", "joey", True),
        (("temp.${user}.*",), "joe", "temp.joe.1", True),
        (("temp.${user}.*",), "joe", "temp.ann.1", False),
        (("x-${user}-y",), "joe", "x-joe-y", True),
        (("${user}",), "joe*", "joe", False),
        (("${user}",), "joe*", "joe*", True),
        # Whoever is called like a wildcard has no more by that.
        (("${user}",), "*", "*", False),
        (("${user}",), "#", "#", False),
        (("${user}*",), "#", "#", False),
        (("a.${user}",), "#", "a.#", False),
    ],
)
def test_the_user_in_lists(items: tuple[str, ...], user: str, address: str, allowed: bool) -> None:
    assert Access(items=items).decision(user)(address) is allowed


@pytest.mark.parametrize(
    ("patterns", "address", "allowed"),
    [
        (("a.*",), "a.b", True),
        (("a.*",), "a/b", True),
        (("a/*",), "a.b", True),
        (("a.*",), "a", False),
        (("a.*",), "a.b.c", False),
        (("a.#",), "a", True),
        (("a.#",), "a.b.c", True),
        (("#",), "", False),
        (("a.#", "b"), "b", True),
        (("a.#.c",), "a.b.b.c", True),
        (("a.*",), "a.#", False),
        (("a.*",), "a.*", True),
        (("a.#",), "a.*.#", True),
        (("a.#",), "#", False),
        (("#",), "#", True),
        (("a.b", "a.c"), "a.*", False),
        (("a.#",), ".".join("a" * 300), False),
    ],
)
def test_patterns(patterns: tuple[str, ...], address: str, allowed: bool) -> None:
    assert Access(patterns=patterns).decision("joe")(address) is allowed


@pytest.mark.parametrize(
    ("pattern", "user", "address", "allowed"),
    [
        ("${user}.#", "joe", "joe.in", True),
        ("${user}.#", "joe", "ann.in", False),
        ("in.${user}", "joe", "in.joe", True),
        ("${user}", "joe", "joe", True),
        ("${user}.#", "joe.smith", "joe.smith.in", True),
        ("${user}.#", "joe.smith", "joe.in", False),
        ("${user}", "*", "anything", False),
        ("${user}.#", "#", "anything", False),
        ("${user}", "a.#", "a.b", False),
    ],
)
def test_the_user_in_patterns(pattern: str, user: str, address: str, allowed: bool) -> None:
    assert Access(patterns=(pattern,)).decision(user)(address) is allowed


@pytest.mark.parametrize("item", ["", "*a", "a*b", "**", "${user}${user}", "${user}.${user}*"])
def test_items_that_are_refused(item: str) -> None:
    with pytest.raises(ValueError):
        check_item(item)


@pytest.mark.parametrize(
    "pattern", ["", "${user}.${user}", "a.${user}.b", "a${user}", "${user}b.c", ".".join("#" * 300)]
)
def test_patterns_that_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        check_pattern(pattern)


@pytest.mark.parametrize("item", ["a", "*", "a*", "${user}", "${user}*", "x-${user}-*", "a.#"])
def test_items_that_are_taken(item: str) -> None:
    check_item(item)


@pytest.mark.parametrize("pattern", ["a", "*", "#", "${user}", "${user}.#", "a/${user}", "a.*.#"])
def test_patterns_that_are_taken(pattern: str) -> None:
    check_pattern(pattern)


WORDS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).map(".".join)
KEYS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6).map(".".join)


@given(WORDS, WORDS, KEYS)
@example("a.*", "a.#", "a")
@example("#.*", "*", "a")
def test_what_a_pattern_covers_it_matches(pattern: str, other: str, key: str) -> None:
    """No subscription collects what its user may not have: whatever the other matches, the pattern does."""
    if covers(normalised(pattern), normalised(other)) and matches(other, key):
        assert matches(pattern, key)


@given(WORDS)
def test_a_pattern_covers_itself(pattern: str) -> None:
    assert covers(normalised(pattern), normalised(pattern))


@given(WORDS, WORDS, KEYS)
def test_no_address_with_wildcards_is_allowed_where_one_it_stands_for_is_not(item: str, address: str, key: str) -> None:
    for access in (Access(items=(f"{item}*",)), Access(items=(item,)), Access(patterns=(normalised(item),))):
        if item == address and access.items:
            continue  # what is written out is meant
        is_allowed = access.decision("joe")
        if is_allowed(address) and matches(address, key) and "#" not in item and "*" not in item:
            assert is_allowed(key)
