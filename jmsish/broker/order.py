"""Who stands where in a queue: places by (priority, sequence), and which of them are free.

A level (one priority) is a row of *blocks* of ``SPAN`` places each. A place is given once, to the message that becomes
visible next, and never moves: a message that was taken and comes back finds its place where it left it. So put-back is
positional by construction, and costs the same at any depth. A block knows which of its places are free by one octet a
place (found by ``bytearray.find``, at the speed of C); the level keeps the numbers of the blocks that have any, sorted.

What waits without a past is kept as its octets alone: a million messages deep, the garbage collector finds nothing to
walk through. An :class:`Entry` is made when somebody takes the message, a new one each time it is taken: so a late
answer about an earlier delivery can never touch the present one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jmsish.broker.groups import Group

SPAN: Final = 128

# What a place is, as the octet in Block.flags.
CLOSED: Final = 0
"""Empty, or taken by somebody, or waiting for its time: not to be had."""
FREE: Final = 1
"""To be had by anybody."""
BARRED: Final = 2
"""To be had by all but some (undeliverable here)."""
GROUPED: Final = 3
"""To be had by who owns the group of the message, or by the first who asks where nobody does."""

# The states of an entry: AVAILABLE -> ACQUIRED -> ARCHIVED of the standard (3.3), and back. An entry is made ACQUIRED.
ACQUIRED: Final = 1
RETURNED: Final = 2
ARCHIVED: Final = 3
DYING: Final = 4
"""Rejected, or out of attempts: counted as acquired until it is buried, but nobody's any more."""

Place = tuple[int, int, int]
"""(minus priority, number of the block, index in it): compares in the order of delivery."""
FRONT: Final[Place] = (-256, 0, 0)
_NOTHING: Final = bytes((CLOSED,))
_MARKS: Final = 8
"""With so many more than there are consumers it is looked whose are still of use."""


class History:
    """What is known of a message beyond its octets: attempts, expiry, who cannot have it, its group."""

    __slots__ = ("attempts", "barred", "count", "due", "expires", "group", "last")

    def __init__(self, count: int = 0, expires: float = 0.0) -> None:
        self.count = count
        self.attempts = 0
        self.expires = expires
        self.due = 0.0
        self.barred: set[int] | None = None
        self.group: Group | None = None
        self.last = False
        """It ends its group: who comes after it begins anew."""


class Entry:
    """A message in somebody's hands: its place in the queue, its octets, its history."""

    __slots__ = ("block", "history", "index", "payload", "state", "work")

    def __init__(self, payload: bytes, history: History | None, block: Block, index: int) -> None:
        self.payload = payload
        self.history = history
        self.block = block
        self.index = index
        self.state = ACQUIRED
        self.work: object = None
        """The transaction that holds it, if one does."""

    def past(self) -> History:
        """Its history, begun now if it had none."""
        if self.history is None:
            self.history = History()
        return self.history

    def bar(self, consumer: int, living: Collection[int]) -> None:
        """Keep it from a consumer, once it is put back. Of what was kept from others those marks go, now and then,
        whose consumers are no more: there may be any number that come and go."""
        history = self.past()
        if history.barred is None:
            history.barred = set()
        elif len(history.barred) > len(living) + _MARKS:
            history.barred.intersection_update(living)
        history.barred.add(consumer)

    @property
    def place(self) -> Place:
        return (-self.block.level.priority, self.block.number, self.index)


class Block:
    """``SPAN`` neighbouring places of one level."""

    __slots__ = (
        "barred", "first", "flags", "free", "grouped", "in_barred", "in_free", "in_grouped", "level", "live", "number",
        "slots",
    )  # fmt: skip

    def __init__(self, level: Level, number: int) -> None:
        self.level = level
        self.number = number
        self.slots: list[bytes | Entry | None] = []
        self.flags = bytearray()
        self.live = 0
        self.free = 0
        self.barred = 0
        self.grouped = 0
        self.first = 0
        """No free place lies before it."""
        self.in_free = False
        self.in_barred = False
        self.in_grouped = False


class BlockNumbers:
    """Sorted numbers of blocks. A superset of what it stands for: whoever looks and finds a block bare drops it."""

    __slots__ = ("numbers", "start")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.start = 0

    def add(self, number: int) -> None:
        numbers = self.numbers
        if not numbers or number > numbers[-1]:
            numbers.append(number)
        elif self.start and number < numbers[self.start]:
            self.start -= 1
            numbers[self.start] = number
        else:
            insort(numbers, number, self.start)

    def drop(self, at: int) -> int:
        """Take out the number at a position (the first, the usual case, without moving the others): where to go on."""
        if at != self.start:
            del self.numbers[at]
            return at
        self.start += 1
        if self.start == len(self.numbers):
            self.numbers.clear()
            self.start = 0
        elif self.start > 64 and self.start * 2 > len(self.numbers):
            del self.numbers[: self.start]
            self.start = 0
        return self.start

    def seek(self, number: int) -> int:
        """The position of the first number that is not less."""
        return bisect_left(self.numbers, number, self.start)


class Level:
    """All places of one priority, in rising sequence."""

    __slots__ = (
        "barred", "barred_blocks", "blocks", "free", "free_blocks", "grouped", "grouped_blocks", "priority", "tail"
    )  # fmt: skip

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.free = 0
        self.barred = 0
        self.grouped = 0
        self.tail = Block(self, 0)
        self.blocks: dict[int, Block] = {0: self.tail}
        self.free_blocks = BlockNumbers()
        self.barred_blocks: BlockNumbers | None = None
        self.grouped_blocks: BlockNumbers | None = None
        """Made for the first that is barred, or grouped."""

    def let_go(self) -> None:
        """Its queue is deleted: what somebody has in hand still knows its place, and nothing is found by it here."""
        for block in self.blocks.values():
            block.slots = []
        self.blocks.clear()
        del self.tail

    @property
    def available(self) -> int:
        return self.free + self.barred + self.grouped

    def append(self, item: bytes) -> None:
        """Give the next place to a message without a past, free for all."""
        block = self.tail
        slots = block.slots
        if len(slots) == SPAN:
            block = self._next_block()
            slots = block.slots
        slots.append(item)
        block.flags.append(FREE)
        block.live += 1
        block.free += 1
        self.free += 1
        if not block.in_free:
            block.in_free = True
            self.free_blocks.add(block.number)

    def append_entry(self, payload: bytes, history: History) -> Entry:
        """Give the next place to a message with a past; its flag is the caller's to set (:meth:`open`)."""
        block = self.tail
        if len(block.slots) == SPAN:
            block = self._next_block()
        entry = Entry(payload, history, block, len(block.slots))
        block.slots.append(entry)
        block.flags.append(CLOSED)
        block.live += 1
        return entry

    def take(self) -> Entry:
        """The first free entry, now taken; there must be one."""
        numbers = self.free_blocks
        while True:
            block = self.blocks.get(numbers.numbers[numbers.start])
            if block is not None and block.free:
                break
            if block is not None:
                block.in_free = False
            numbers.drop(numbers.start)
        index = block.flags.find(FREE, block.first)
        block.first = index + 1
        block.flags[index] = CLOSED
        block.free -= 1
        self.free -= 1
        item = block.slots[index]
        if type(item) is bytes:
            entry = Entry(item, None, block, index)
        else:
            assert isinstance(item, Entry)
            entry = Entry(item.payload, item.history, block, index)
        block.slots[index] = entry
        return entry

    def entry_at(self, block: Block, index: int) -> Entry:
        """The entry of a place that was just closed because somebody takes it."""
        item = block.slots[index]
        if isinstance(item, Entry):
            entry = Entry(item.payload, item.history, block, index)
        else:
            assert item is not None
            entry = Entry(item, None, block, index)
        block.slots[index] = entry
        return entry

    def close(self, block: Block, index: int) -> None:
        """An available place is no longer to be had."""
        flag = block.flags[index]
        if flag == FREE:
            block.free -= 1
            self.free -= 1
        elif flag == BARRED:
            block.barred -= 1
            self.barred -= 1
        else:
            block.grouped -= 1
            self.grouped -= 1
        block.flags[index] = CLOSED

    def open(self, entry: Entry) -> None:
        """The entry is to be had again, where it stands."""
        block, index, history = entry.block, entry.index, entry.history
        if history is not None:
            if history.barred:
                self._open_barred(block, index, entry)
                return
            if history.group is not None:
                self._open_grouped(block, index, entry)
                return
        block.slots[index] = entry.payload if history is None else entry
        block.flags[index] = FREE
        block.free += 1
        self.free += 1
        if index < block.first:
            block.first = index
        if not block.in_free:
            block.in_free = True
            self.free_blocks.add(block.number)

    def _open_barred(self, block: Block, index: int, entry: Entry) -> None:
        block.slots[index] = entry
        block.flags[index] = BARRED
        block.barred += 1
        self.barred += 1
        if not block.in_barred:
            block.in_barred = True
            if self.barred_blocks is None:
                self.barred_blocks = BlockNumbers()
            self.barred_blocks.add(block.number)

    def _open_grouped(self, block: Block, index: int, entry: Entry) -> None:
        block.slots[index] = entry
        block.flags[index] = GROUPED
        block.grouped += 1
        self.grouped += 1
        if not block.in_grouped:
            block.in_grouped = True
            if self.grouped_blocks is None:
                self.grouped_blocks = BlockNumbers()
            self.grouped_blocks.add(block.number)

    def sweep(self) -> tuple[int, int]:
        """All that waits here without a past goes, a block at a time: so many messages, so many octets."""
        messages = octets = 0
        for block in list(self.blocks.values()):
            waiting = [item for item in block.slots if type(item) is bytes]
            if not waiting:
                continue
            messages += len(waiting)
            octets += sum(map(len, waiting))
            for index, item in enumerate(block.slots):
                if type(item) is bytes:
                    block.slots[index] = None
                    block.flags[index] = CLOSED
            self.free -= len(waiting)
            block.free -= len(waiting)
            block.live -= len(waiting)
            self._drop_if_bare(block)
        return messages, octets

    def remove(self, block: Block, index: int) -> None:
        """A closed place becomes empty for ever; a block without a message left goes too."""
        block.slots[index] = None
        block.live -= 1
        self._drop_if_bare(block)

    def _drop_if_bare(self, block: Block) -> None:
        if block.live:
            return
        if block is not self.tail:
            del self.blocks[block.number]
        elif len(block.slots) > 16:
            self._next_block()

    def _next_block(self) -> Block:
        old = self.tail
        if not old.live:
            del self.blocks[old.number]
        self.tail = block = Block(self, old.number + 1)
        self.blocks[block.number] = block
        return block

    def first_barred(self, number: int, index: int) -> tuple[Block, int] | None:
        """The first barred place at or after (number, index)."""
        numbers = self.barred_blocks
        if numbers is None:
            return None
        at = numbers.seek(number)
        while at < len(numbers.numbers):
            block = self.blocks.get(numbers.numbers[at])
            if block is None or not block.barred:
                if block is not None:
                    block.in_barred = False
                at = numbers.drop(at)
                continue
            found = block.flags.find(BARRED, index if block.number == number else 0)
            if found >= 0:
                return block, found
            at += 1
        return None

    def first_grouped(self, number: int, index: int) -> tuple[Block, int] | None:
        """The first grouped place at or after (number, index)."""
        numbers = self.grouped_blocks
        if numbers is None:
            return None
        at = numbers.seek(number)
        while at < len(numbers.numbers):
            block = self.blocks.get(numbers.numbers[at])
            if block is None or not block.grouped:
                if block is not None:
                    block.in_grouped = False
                at = numbers.drop(at)
                continue
            found = block.flags.find(GROUPED, index if block.number == number else 0)
            if found >= 0:
                return block, found
            at += 1
        return None

    def first_free(self, number: int, index: int) -> tuple[Block, int] | None:
        """The first free place at or after (number, index)."""
        numbers = self.free_blocks
        at = numbers.seek(number)
        while at < len(numbers.numbers):
            block = self.blocks.get(numbers.numbers[at])
            if block is None or not block.free:
                if block is not None:
                    block.in_free = False
                at = numbers.drop(at)
                continue
            found = block.flags.find(FREE, max(index, block.first) if block.number == number else block.first)
            if found >= 0:
                return block, found
            at += 1
        return None

    def first_available(self, number: int, index: int) -> tuple[Block, int] | None:
        """The first place at or after (number, index) that is anybody's to have."""
        block = self.blocks.get(number)
        if block is not None:
            # The octets of a block with the closed places in front taken off: what is left begins with the first.
            rest = block.flags[index:].lstrip(_NOTHING)
            if rest:
                return block, len(block.flags) - len(rest)
            number += 1
        found = self.first_free(number, 0) if self.free else None
        if self.barred:
            found = _nearer(found, self.first_barred(number, 0))
        if self.grouped:
            found = _nearer(found, self.first_grouped(number, 0))
        return found


def _nearer(one: tuple[Block, int] | None, other: tuple[Block, int] | None) -> tuple[Block, int] | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda place: (place[0].number, place[1]))
