"""What goes wrong in a demo, decided beforehand: which orders fail, where a consumer is closed, where the
connection is cut.

Pure. The plan knows the numbers of the orders and nothing of messages, so a run can be foretold: `expected_dead`
orders end on the dead-letter queue, all others are processed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """`fail_every`: every k-th order fails each time it comes (0: none does). `max_attempts`: then it is dead-
    lettered.
    """

    total: int
    fail_every: int = 7
    max_attempts: int = 3
    incidents: bool = True

    def __post_init__(self) -> None:
        if self.fail_every < 0:
            raise ValueError("fail_every must be 0 (no order fails) or more")
        if self.max_attempts < 1:
            raise ValueError("max_attempts must be 1 or more")

    def fails(self, number: int) -> bool:
        return self.fail_every > 0 and number % self.fail_every == 0

    @property
    def expected_dead(self) -> int:
        return self.total // self.fail_every if self.fail_every else 0

    @property
    def close_at(self) -> int | None:
        """The order whose consumer is closed while its transaction is open: about a third of the way."""
        return self._sound_order(self.total // 3 or 1)

    @property
    def cut_at(self) -> int | None:
        """The order in whose transaction the connection is cut: about two thirds of the way."""
        return self._sound_order(self.total * 2 // 3 or 1)

    def _sound_order(self, wanted: int) -> int | None:
        """The first order from `wanted` on that does not fail by itself; the order itself where all do."""
        if not self.incidents or self.total < 1:
            return None
        ahead = (number for number in range(wanted, self.total + 1) if not self.fails(number))
        behind = (number for number in range(wanted, 0, -1) if not self.fails(number))
        return next(ahead, next(behind, wanted))
