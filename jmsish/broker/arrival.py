"""What is known of a message on its way into a queue."""

from __future__ import annotations

from jmsish.broker.order import History


class Arrival:
    """A message about to become visible, with what its header and annotations ask of the queue."""

    __slots__ = ("due", "group", "history", "payload", "priority")

    def __init__(
        self,
        payload: bytes,
        priority: int,
        history: History | None = None,
        due: float = 0.0,
        group: tuple[str, bool] | None = None,
    ) -> None:
        self.payload = payload
        self.priority = priority
        self.history = history
        self.due = due
        self.group = group
        """The name of its group, and whether it is the last of it."""

    def copy(self) -> Arrival:
        """The same message for one more queue: what happens to it there is another story."""
        past = self.history
        history = None if past is None else History(past.count, past.expires)
        return Arrival(self.payload, self.priority, history, self.due, self.group)
