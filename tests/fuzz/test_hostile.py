"""A bounded piece of ``python -m tests.fuzz brokers``: our client, and a broker whose answers are changed."""

from __future__ import annotations

from tests.fuzz.hostile import meet


def test_a_client_hears_nothing_but_errors_of_jms() -> None:
    ended = meet(150)
    assert ended["done"] > 500 and len(ended) > 3, "some works, and what does not fails in several ways"
