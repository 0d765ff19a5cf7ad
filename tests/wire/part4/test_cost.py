"""What large and many transactions may cost (issue 4, speed). The figures themselves are the bench's affair."""

from __future__ import annotations

import pytest

from tests.bench.transactions import measure, weigh

SLACK = 10
"""The bench finds a tenth of the bound; a busy machine is given the rest."""


def test_an_open_transaction_without_work_is_under_two_kilobytes() -> None:
    assert weigh(2_000) < 2_000


@pytest.mark.parametrize("kind", ["posts", "retirements"])
@pytest.mark.parametrize("fail", [False, True], ids=["commit", "rollback"])
def test_a_discharge_of_ten_thousand_holds_the_broker_for_a_bounded_time(kind: str, fail: bool) -> None:
    """50 ms is the bound below which a discharge may stay one step; it takes about 5."""
    assert measure(kind, 10_000, fail, 1) < 0.050 * SLACK


@pytest.mark.parametrize("kind", ["posts", "retirements"])
def test_it_grows_with_the_size_and_no_faster(kind: str) -> None:
    small, large = (min(measure(kind, size, False, 1) for _ in range(3)) for size in (2_000, 16_000))
    assert large < small * 8 * 4
