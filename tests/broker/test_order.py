"""The order of a queue by itself: places, blocks, put-back, and their cost at depth."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jmsish.broker.order import RETURNED, SPAN, BlockNumbers, Entry, History, Level


def _level(count: int) -> Level:
    level = Level(4)
    for number in range(count):
        level.append(b"%d" % number)
    return level


def _give_back(level: Level, entry: Entry) -> None:
    entry.state = RETURNED
    level.open(entry)


def test_first_in_first_out_over_many_blocks() -> None:
    level = _level(5 * SPAN + 3)
    assert [level.take().payload for _ in range(5 * SPAN + 3)] == [b"%d" % n for n in range(5 * SPAN + 3)]
    assert level.free == 0


def test_what_comes_back_stands_where_it_stood() -> None:
    level = _level(3 * SPAN)
    taken = [level.take() for _ in range(2 * SPAN)]
    for index in (2 * SPAN - 1, 0, SPAN, 1):
        _give_back(level, taken[index])
    assert [level.take().payload for _ in range(5)] == [
        b"%d" % number for number in (0, 1, SPAN, 2 * SPAN - 1, 2 * SPAN)
    ]


def test_emptied_blocks_are_let_go() -> None:
    level = _level(0)
    for _ in range(20 * SPAN):
        level.append(b"x")
        entry = level.take()
        level.remove(entry.block, entry.index)
        assert len(level.blocks) <= 2
    assert len(level.free_blocks.numbers) - level.free_blocks.start <= 2


def test_a_message_without_a_past_is_its_octets_alone() -> None:
    level = _level(1)
    entry = level.take()
    _give_back(level, entry)
    assert entry.block.slots[entry.index] == b"0"
    entry = level.take()
    entry.history = History(1)
    _give_back(level, entry)
    assert entry.block.slots[entry.index] is entry
    again = level.take()
    assert again is not entry and again.history is entry.history


numbers = st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=200)


@given(numbers)
def test_block_numbers_are_a_sorted_set(steps: list[tuple[bool, int]]) -> None:
    subject, model = BlockNumbers(), set()
    for add, number in steps:
        if add and number not in model:
            subject.add(number)
            model.add(number)
        elif model:
            at = subject.seek(number)
            if at < len(subject.numbers):
                model.discard(subject.numbers[at])
                following = subject.drop(at)
                assert subject.numbers[following:] == sorted(n for n in model if n > number)
        assert subject.numbers[subject.start :] == sorted(model)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 300)),
        st.tuples(st.just("take"), st.integers(1, 300)),
        st.tuples(st.sampled_from(("back", "bar", "gone")), st.integers(0, 10_000)),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(steps)
def test_a_level_against_a_sorted_list(script: list[tuple[str, int]]) -> None:
    level = Level(4)
    names = 0
    available: dict[tuple[int, int], bytes] = {}
    barred: set[tuple[int, int]] = set()
    held: list[Entry] = []
    for verb, amount in script:
        if verb == "append":
            for _ in range(amount):
                level.append(b"%d" % names)
                block = level.tail
                available[block.number, len(block.slots) - 1] = b"%d" % names
                names += 1
        elif verb == "take":
            for _ in range(min(amount, level.free)):
                entry = level.take()
                key = (entry.block.number, entry.index)
                assert key == min(place for place in available if place not in barred)
                assert available.pop(key) == entry.payload
                held.append(entry)
        elif held:
            entry = held.pop(amount % len(held))
            key = (entry.block.number, entry.index)
            if verb == "gone":
                level.remove(entry.block, entry.index)
                continue
            if verb == "bar":
                entry.history = History()
                entry.history.barred = {1}
                barred.add(key)
            elif entry.history is not None and entry.history.barred:
                barred.add(key)
            _give_back(level, entry)
            available[key] = entry.payload
        _check(level, available, barred)


def _check(level: Level, available: dict[tuple[int, int], bytes], barred: set[tuple[int, int]]) -> None:
    assert level.free == len(available) - len(barred) and level.barred == len(barred)
    walked = []
    at = (0, 0)
    while (found := level.first_available(*at)) is not None:
        walked.append((found[0].number, found[1]))
        at = (found[0].number, found[1] + 1)
    assert walked == sorted(available)
    first = level.first_barred(0, 0)
    assert (None if first is None else (first[0].number, first[1])) == min(barred, default=None)
    assert sum(block.live for block in level.blocks.values()) >= len(available)
