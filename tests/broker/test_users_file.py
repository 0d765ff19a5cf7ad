"""The file of users: what is written is read again, and what is wrong with it is told without a key in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish.broker.config.users import login_name
from jmsish.broker.users import User, Users
from jmsish.broker.users_file import format_users, make_user, parse_users

FEW = 4096


def test_what_is_written_is_read_again() -> None:
    users = {
        "alice": make_user("alice", "secret", iterations=FEW),
        'a "b" \\ c.d': User('pa"ss\\', {}, "CN=x"),
        "Jürgen 🙂": User("word"),
    }
    assert parse_users(format_users(users)) == users


def test_a_file_of_another_system_is_read() -> None:
    """With a mark of the order of octets, and lines that end as they do there."""
    users = {"alice": make_user("alice", "secret", iterations=FEW)}
    assert parse_users("\ufeff" + format_users(users).replace("\n", "\r\n")) == users


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)  # a lone surrogate is no text


@given(st.lists(st.tuples(NAMES, WORDS), max_size=5, unique_by=lambda each: login_name(each[0])))
def test_any_name_and_password_survive(named: list[tuple[str, str]]) -> None:
    users = {name: User(word) for name, word in named}
    assert parse_users(format_users(users)) == users


def test_a_key_is_of_the_password_and_no_password_is_in_the_file() -> None:
    user = make_user("alice", "secret", iterations=FEW)
    text = format_users({"alice": user})
    assert "secret" not in text and text.count("4096:") == 2 and "[alice]" in text
    check = Users(parse_users(text)).check
    for password, right in (("secret", "alice"), ("wrong", None)):
        question = check("alice", password)
        assert callable(question) and question() == right


def test_two_users_of_one_password_have_different_keys() -> None:
    one, two = (make_user("u", "same", iterations=FEW) for _ in range(2))
    assert one.keys["SCRAM-SHA-256"] != two.keys["SCRAM-SHA-256"]


@pytest.mark.parametrize(
    ("name", "password", "said"),
    [
        ("", "x", "name of a user"),
        ("a\nb", "x", "name of a user"),
        ("\x00", "x", "name of a user"),
        ("a", "", "the password is empty"),
        ("a", "hunter\x072", "SASLprep"),
        ("a", "\u00ad", "SASLprep"),
    ],
)
def test_what_cannot_be_a_user(name: str, password: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        make_user(name, password)
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[alice", 'alice = "hunter2"', "[alice]\n", '[alice]\nscram_sha_256 = "hunter2"', '[alice]\npass = "hunter2"'],
)
def test_a_file_that_is_none(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_users(text)
    assert "hunter2" not in str(caught.value)
