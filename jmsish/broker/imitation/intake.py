"""What an imitated broker sees in an arriving message: some take no notice of a delay, or of a priority."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jmsish.broker.arrival import Arrival
from jmsish.broker.intake import DEFAULT_PRIORITY, Intake
from jmsish.engine.codec import message_annotations_at, split_header

if TYPE_CHECKING:
    from jmsish.broker.imitation.table import Imitation


class ImitatingIntake(Intake):
    """Reads what comes on one link."""

    __slots__ = ("_imitation",)

    def __init__(self, now: Callable[[], float], imitation: Imitation) -> None:
        super().__init__(now)
        self._imitation = imitation

    def read(self, payload: bytes) -> int | Arrival:
        imitation = self._imitation
        arrival = super().read(payload)
        if imitation.schedules is not None:
            annotations, _ = message_annotations_at(payload, split_header(payload)[1])
            at = annotations.get(imitation.schedules)
            if isinstance(at, int):
                if isinstance(arrival, int):
                    arrival = Arrival(payload, arrival)
                arrival.due = at / 1000
                return self._flat(arrival)
        if not isinstance(arrival, int) and not imitation.delays:
            arrival.due = 0.0
        return self._flat(arrival)

    def _flat(self, arrival: int | Arrival) -> int | Arrival:
        """Without priorities the order is that of arrival."""
        if self._imitation.priorities:
            return arrival
        if isinstance(arrival, int):
            return DEFAULT_PRIORITY
        arrival.priority = DEFAULT_PRIORITY
        return arrival
