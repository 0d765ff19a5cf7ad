"""Two brokers of the lab, with their stores on disk: restarted, killed, and asked what applications need.

All four, and all rows, are for `tox -e lab`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.conftest import need
from tests.interop.lab import rows
from tests.interop.lab.load import Account
from tests.interop.lab.servers import SERVERS, Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["artemis", "classic"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    kind = SERVERS[request.param]
    need(kind.fetch)
    with kind(tmp_path_factory.mktemp(request.param)) as running:
        yield running


def test_the_demo_loses_and_doubles_nothing(server: Server) -> None:
    """At Classic what is given back stays with the link that gave it back, so that it comes in another order."""
    words = rows.demo(server)
    assert words == rows.YES or words.startswith("nothing lost or doubled"), words


NOT_AT = {
    "artemis": "",
    "classic": "redelivery-001, redelivery-008, redelivery-010, redelivery-011, rollback-034, rollback-049",
}
"""By its own choice, which docs/brokers.md explains."""


def test_redelivery(server: Server, request: pytest.FixtureRequest) -> None:
    known = NOT_AT[request.node.callspec.params["server"]]
    rows.redelivery(server)
    rows.ask_again(server, rows.REDELIVERY, known)
    words = rows.redelivery(server)
    assert words.partition("; not: ")[2] == known, words


def test_subscriptions(server: Server) -> None:
    rows.subscriptions(server)
    rows.ask_again(server, rows.SUBSCRIPTIONS)
    assert "; not: " not in rows.subscriptions(server)


def test_persistent_messages_survive_a_restart(server: Server) -> None:
    assert rows.restart(server) == rows.YES


def test_a_durable_subscription_survives_a_restart(server: Server) -> None:
    assert rows.durable_restart(server) == rows.YES


def test_killed_ten_times_under_load_nothing_is_lost_or_doubled(server: Server) -> None:
    assert rows.killed(server) == rows.YES


def test_the_account_finds_what_is_wrong() -> None:
    """The books themselves: each promise, broken."""
    account = Account(sent={1, 2, 3}, not_sent={7}, sent_in_doubt=[frozenset({4, 5})])
    account.taken.update([1, 2, 2, 7, 4])
    assert account.faults() == [
        "3 was sent, and did not arrive",
        "7 was never sent, and arrived",
        "2 was taken 2 times",
        "of a commit in doubt a part arrived: [4] of [4, 5]",
    ]


def test_the_account_takes_either_end_of_a_doubt() -> None:
    account = Account(sent={1, 2}, sent_in_doubt=[frozenset({4, 5}), frozenset({6, 7})])
    account.taken.update([1, 4, 5])
    account.taken_in_doubt.append(frozenset({2}))
    assert account.faults() == []
