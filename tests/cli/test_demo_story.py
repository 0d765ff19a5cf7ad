"""The demo's story on a toy broker: that it proves what holds, and finds each fault it is there to find."""

from __future__ import annotations

import pytest

from jmsish.cli.demo.conservation import Conservation, Found, compare, inversions, plain_table, table_rows
from jmsish.cli.demo.ledger import Ledger
from jmsish.cli.demo.orders import Order
from jmsish.cli.demo.plan import Plan
from jmsish.cli.demo.story import Queues, StoryError, Worker, collect, produce

from .toy import ToyBroker, ToyStage

QUEUES = Queues.named("toy")


def run_demo(
    total: int, *, every: int = 7, attempts: int = 3, broker_limit: bool = True, **faults: tuple[int, ...]
) -> Conservation:
    orders = [Order(number, f"line {number}") for number in range(1, total + 1)]
    plan = Plan(total, every, attempts)
    ledger = Ledger(total, attempts, broker_limit)
    broker = ToyBroker(QUEUES.orders, QUEUES.dead, limit=attempts if broker_limit else 0)
    ToyStage(broker).play(produce(orders, QUEUES.orders, 10, ledger))
    ToyStage(broker, **faults).play(Worker(plan, ledger, QUEUES, lambda empty: empty < 3).story())
    found: dict[str, list[Found]] = {}
    ToyStage(broker).play(collect(QUEUES, ledger, found))
    return compare(orders, plan, ledger, found[QUEUES.results], found[QUEUES.dead], found[QUEUES.orders])


@pytest.mark.parametrize("broker_limit", [True, False])
@pytest.mark.parametrize("attempts", [1, 2, 3, 5])
@pytest.mark.parametrize("every", [0, 1, 2, 7])
@pytest.mark.parametrize("total", [0, 1, 2, 3, 10, 101])
def test_every_order_is_conserved(total: int, every: int, attempts: int, broker_limit: bool) -> None:
    proof = run_demo(total, every=every, attempts=attempts, broker_limit=broker_limit)
    assert proof.holds, (proof, proof.notes)
    assert (proof.lost, proof.doubled, proof.out_of_order, proof.wrong_count) == (0, 0, 0, 0)
    assert proof.connections_cut == proof.consumers_closed == min(total, 1) or total < 3 or attempts == 1


def test_the_figures_of_an_ordinary_run() -> None:
    proof = run_demo(100)
    assert (proof.sent, proof.processed, proof.dead_lettered) == (100, 86, 14)
    assert proof.redelivered == 14 * 2 + 1
    assert proof.rollbacks == 14 * 3 + 1


def test_a_lost_result_is_found() -> None:
    proof = run_demo(20, vanish=(5,))
    assert proof.lost == 1 and not proof.holds


def test_a_doubled_order_is_found() -> None:
    proof = run_demo(20, keep=(5,))
    assert proof.doubled == 1 and not proof.holds


def test_a_commit_over_a_dead_connection_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyStage, "cut", lambda self: None)
    with pytest.raises(StoryError, match="went through"):
        run_demo(20)


def figures(
    results: list[Found], dead: list[Found], ledger: Ledger | None = None, *, bind: bool = True
) -> Conservation:
    orders = [Order(number, str(number)) for number in (1, 2, 3)]
    if ledger is None:
        ledger = Ledger(3, 3)
    ledger.sent = 3
    return compare(orders, Plan(3, 3, 3), ledger, results, dead, counts_bind=bind)


def found(*numbers: int) -> list[Found]:
    return [Found(number, Order(number, str(number)).digest) for number in numbers]


def spent() -> Ledger:
    ledger = Ledger(3, 3, attempts={3: 3})
    ledger.processed, ledger.dead_lettered = 2, 1
    return ledger


def test_the_verdict() -> None:
    assert figures(found(1, 2), found(3), spent()).holds
    assert figures(found(1), found(3), spent()).lost == 1
    assert figures(found(1, 2, 2), found(3), spent()).doubled == 1
    assert figures(found(2, 1), found(3), spent()).out_of_order == 1
    assert figures([*found(1), Found(2, "other")], found(3), spent()).altered == 1
    assert figures(found(1, 2, 3), [], spent()).misjudged == 1
    assert figures(found(1), found(2, 3), spent()).misjudged == 1


def test_counts_of_another_broker_are_a_remark() -> None:
    ledger = spent()
    ledger.wrong_count = 2
    assert not figures(found(1, 2), found(3), ledger).holds
    proof = figures(found(1, 2), found(3), ledger, bind=False)
    assert proof.holds and ("wrong delivery count", "2", "that broker's choice") in table_rows(proof)


def test_inversions() -> None:
    assert inversions([1, 2, 2, 5]) == 0
    assert inversions([1, 5, 2, 3, 6]) == 2


def test_the_ledger_sees_overtaking_and_wrong_counts() -> None:
    ledger = Ledger(5, 3)
    ledger.handed_over(2, 1, False)
    assert ledger.out_of_order == 1
    ledger.handed_over(1, 2, True)
    assert ledger.wrong_count == 1
    ledger.given_back(1)
    ledger.handed_over(1, 2, False)
    assert ledger.wrong_count == 2
    ledger.connection_cut(1)
    ledger.handed_over(2, 2, True)
    assert ledger.wrong_count == 2


def test_plan_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        Plan(3, 7, 0)
    with pytest.raises(ValueError, match="fail_every"):
        Plan(3, -1)


def test_the_plain_table_lines_up() -> None:
    table = plain_table([("sent", "1,000", "ok"), ("lost", "0", "")])
    assert table.splitlines() == [
        "+------+-------+----+",
        "| sent | 1,000 | ok |",
        "| lost |     0 |    |",
        "+------+-------+----+",
    ]
