"""A few mutated conversations over TCP, beside a client of the public API."""

from __future__ import annotations

from tests.fuzz.sockets import campaign


def test_mutated_conversations_over_tcp_do_no_harm() -> None:
    assert campaign(60) == []
