"""What JMS allows, in plain Python: the model that the real client and broker are compared with.

A message is `queued` (wherever: ready, or unread in somebody's buffer), `held` by a session that received it and has
not settled it, `pending` in a transaction that sent it, or at an end: `gone` (consumed), `dead` (in the dead-letter
queue), `never` (its send was rolled back). How often it came back is exact (`low == high`) as long as everybody says
goodbye; a cut wire makes it an interval, since nobody knows what lay unread in which buffer (D5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LIMITED = "limited"
LIMIT = 3
DEAD = "DLQ"


@dataclass(eq=False)
class Sent:
    """One message that was ever sent."""

    body: str
    queue: str
    priority: int
    expires: float | None
    group: str | None = None
    colour: str = "red"
    state: str = "pending"
    order: int = -1
    low: int = 0
    high: int = 0
    known_low: int = 0
    known_high: int = 0

    def comes_back(self, *, count: tuple[int, int] = (1, 1), known: tuple[int, int] = (1, 1)) -> None:
        """Put back: so many more failed deliveries, and so many more that the limit of the queue knows of."""
        self.low += count[0]
        self.high += count[1]
        self.known_low += known[0]
        self.known_high += known[1]
        self.state = "dead" if self.queue == LIMITED and self.known_low >= LIMIT else "queued"

    @property
    def may_be_dead(self) -> bool:
        return self.queue == LIMITED and self.known_low < LIMIT <= self.known_high


@dataclass(eq=False)
class Reader:
    """A consumer, and the last place in the queue that it was handed, by group and priority.

    What it has in its buffer when something goes back to the queue comes first, in order, and then what went back, in
    order: so each put-back may make it step back once.
    """

    real: Any
    seat: Seat
    queue: str
    colour: str | None = None
    """What its selector wants; None wants all."""
    last: dict[tuple[str | None, int], int] = field(default_factory=dict)
    put_backs: int = 0
    steps_back: dict[tuple[str | None, int], int] = field(default_factory=dict)

    def wants(self, message: Sent) -> bool:
        return self.colour in (None, message.colour)

    def sees(self, message: Sent) -> None:
        level = (message.group, message.priority)
        if message.order <= self.last.get(level, 0):
            self.steps_back[level] = self.steps_back.get(level, 0) + 1
        assert self.steps_back.get(level, 0) <= self.put_backs, f"{message} was overtaken"
        self.last[level] = message.order


@dataclass(eq=False)
class Seat:
    """A session: what it holds, what it has sent, what it acknowledged without hearing more of it."""

    real: Any
    line: Line
    mode: str
    readers: list[Reader] = field(default_factory=list)
    held: list[tuple[Sent, Any]] = field(default_factory=list)
    pending: list[Sent] = field(default_factory=list)
    unsure: list[Sent] = field(default_factory=list)

    @property
    def lazy(self) -> bool:
        return self.mode == "dups_ok"


@dataclass(eq=False)
class Line:
    """A connection."""

    real: Any
    seats: list[Seat] = field(default_factory=list)
    started: bool = True


class Model:
    def __init__(self) -> None:
        self.messages: dict[str, Sent] = {}
        self.lines: list[Line] = []
        self._orders = 0

    # -- the living

    @property
    def seats(self) -> list[Seat]:
        return [seat for line in self.lines for seat in line.seats]

    @property
    def readers(self) -> list[Reader]:
        return [reader for seat in self.seats for reader in seat.readers]

    # -- sending

    def sends(
        self, seat: Seat, queue: str, priority: int, expires: float | None, group: str | None, colour: str
    ) -> Sent:
        message = Sent(f"m{len(self.messages) + 1}", queue, priority, expires, group, colour)
        self.messages[message.body] = message
        if seat.mode == "transacted":
            seat.pending.append(message)
        else:
            self._appears(message)
        return message

    def _appears(self, message: Sent) -> None:
        self._orders += 1
        message.order = self._orders
        message.state = "queued"

    # -- receiving

    def receives(self, reader: Reader, delivered: Any, now: float) -> None:
        """Checks a delivery against everything that JMS says, and takes it over."""
        message = self.messages[delivered.body]
        assert message.queue == reader.queue, f"{message} came out of {reader.queue}"
        assert reader.wants(message), f"{message} came to one that wants {reader.colour}"
        self._one_hand_holds(message, reader.seat)
        assert message.state == "queued", f"{message} was delivered"
        assert message.expires is None or message.expires > now, f"{message} had expired"
        failures = delivered.delivery_count - 1
        assert message.low <= failures <= message.high, f"{message} came with count {delivered.delivery_count}"
        assert delivered.jms_redelivered == (failures > 0), f"{message}: {delivered.jms_redelivered}"
        message.low = message.high = failures
        reader.sees(message)
        seat = reader.seat
        if seat.mode in ("auto", "dups_ok"):
            message.state = "gone"
            seat.unsure.append(message)
        else:
            message.state = "held"
            seat.held.append((message, delivered))

    def _one_hand_holds(self, message: Sent, seat: Seat) -> None:
        """Nobody gets a message of a group while others of it are in other hands."""
        for other in self.seats:
            if message.group is not None and other is not seat:
                held = [each for each, _ in other.held if each.group == message.group and each.queue == message.queue]
                assert not held, f"{message} was given while another session holds {held}"

    # -- settling

    def acknowledges(self, seat: Seat, index: int) -> Any:
        """The message to call `acknowledge` on; afterwards it, or all that the session holds, is consumed."""
        message, delivered = seat.held[index]
        settled = [(message, delivered)] if seat.mode == "individual" else list(seat.held)
        for entry in settled:
            entry[0].state = "gone"
            seat.held.remove(entry)
        return delivered

    def commits(self, seat: Seat) -> None:
        for message, _ in seat.held:
            message.state = "gone"
        for message in seat.pending:
            self._appears(message)
        seat.held, seat.pending = [], []
        self.put_back()

    def gives_back(self, seat: Seat) -> None:
        """Rollback, recover, or the end of the session."""
        for message, _ in seat.held:
            message.comes_back()
        for message in seat.pending:
            message.state = "never"
        seat.held, seat.pending, seat.unsure = [], [], []
        self.put_back()

    def put_back(self) -> None:
        """Something went back: whoever reads on may see what stands before the last that it saw."""
        for reader in self.readers:
            reader.put_backs += 1

    def cut(self, line: Line) -> list[Sent]:
        """The wire broke. Returns those of which only the broker knows whether it heard of their acknowledgement."""
        self.lines.remove(line)
        queues = {reader.queue for seat in line.seats for reader in seat.readers}
        doubtful: list[Sent] = []
        for message in self.messages.values():
            if message.state == "queued" and message.queue in queues:
                message.high += 1
        for seat in line.seats:
            for message, _ in seat.held:
                # A retirement that the transaction had is a known attempt; whether it arrived, only the broker knows.
                message.comes_back(known=(0, 1) if seat.mode == "transacted" else (0, 0))
            for message in seat.pending:
                message.state = "never"
            doubtful += seat.unsure
        self.put_back()
        return doubtful

    # -- what the queues must look like

    def owned(self, queue: str, now: float) -> list[str]:
        """What a queue must own, in its order."""
        present = [
            message
            for message in self.messages.values()
            if message.queue == queue
            and message.state in ("queued", "held")
            and (message.state == "held" or message.expires is None or message.expires > now)
            and not message.may_be_dead
        ]
        return [message.body for message in sorted(present, key=lambda each: (-each.priority, each.order))]

    def tolerated(self, queue: str) -> set[str]:
        """What may still be in a queue: late acknowledgements, expired ones that nobody has met yet."""
        late = {message.body for seat in self.seats for message in seat.unsure if message.queue == queue}
        return late | {
            message.body
            for message in self.messages.values()
            if message.queue == queue
            and message.state == "queued"
            and (message.expires is not None or message.may_be_dead)
        }

    def dead(self) -> set[str]:
        return {message.body for message in self.messages.values() if message.state == "dead"}
