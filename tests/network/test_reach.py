"""What can be reached over whom: told once whole, then by its changes (R3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jmsish.broker.network.reach import Reach, RingError
from jmsish.broker.network.updates import Update, decode_update, encode_update
from jmsish.engine.values import DecodeError, encode
from tests.effort import examples


def joined(*pairs: tuple[Reach[str], Reach[str]]) -> None:
    for one, other in pairs:
        one.welcome(other.router)
        other.welcome(one.router)
    tell(*pairs)


def tell(*pairs: tuple[Reach[str], Reach[str]]) -> None:
    """Carry what is new to and fro until nothing is."""
    moved = True
    while moved:
        moved = False
        for pair in pairs:
            for speaker, listener in (pair, pair[::-1]):
                add, remove = speaker.take_news(listener.router, 100)
                if add or remove:
                    moved = True
                    listener.learn(speaker.router, add, remove)


def test_hops_are_counted() -> None:
    a, b, c = Reach[str]("a"), Reach[str]("b"), Reach[str]("c")
    joined((a, b), (b, c))
    c.begin("Ax")
    tell((a, b), (b, c))
    assert (a.distance("Ax"), b.distance("Ax"), c.distance("Ax")) == (2, 1, 0)


def test_what_lies_behind_a_neighbour_is_not_reached_over_itself() -> None:
    a, b = Reach[str]("a"), Reach[str]("b")
    joined((a, b))
    b.begin("Ax")
    tell((a, b))
    assert a.distance("Ax", "b") is None
    assert not a.has_news("b") or a.take_news("b", 100) == ({}, [])


def test_only_the_first_and_the_last_are_told() -> None:
    a, b = Reach[str]("a"), Reach[str]("b")
    joined((a, b))
    assert a.begin("Ax") and not a.begin("Ax")
    assert a.take_news("b", 100) == ({"Ax": 0}, [])
    assert not a.end("Ax") and not a.has_news("b")
    assert a.end("Ax")
    assert a.take_news("b", 100) == ({}, ["Ax"])


def test_what_comes_and_goes_between_two_tellings_is_not_told() -> None:
    a, b = Reach[str]("a"), Reach[str]("b")
    joined((a, b))
    a.begin("Ax")
    a.end("Ax")
    assert a.take_news("b", 100) == ({}, [])


def test_a_ring_is_found_before_anything_is_believed() -> None:
    a = Reach[str]("a")
    a.learn("b", {"Rc": 1}, ())
    with pytest.raises(RingError, match="c"):
        a.learn("d", {"Ax": 0, "Rc": 1}, ())
    with pytest.raises(RingError, match="a"):
        a.learn("d", {"Ra": 1}, ())
    assert a.distance("Ax") is None


class Tree:
    """Routers in a random tree, and a model of what each should reach."""

    def __init__(self, parents: list[int]) -> None:
        self.reaches = [Reach[str](str(number)) for number in range(len(parents) + 1)]
        self.edges = [(child + 1, parent % (child + 1)) for child, parent in enumerate(parents)]
        joined(*self.pairs())

    def pairs(self) -> list[tuple[Reach[str], Reach[str]]]:
        return [(self.reaches[one], self.reaches[other]) for one, other in self.edges]

    def far(self, start: int, wanted: set[int]) -> int | None:
        seen, level, hops = {start}, {start}, 0
        while level:
            if level & wanted:
                return hops
            level = {b if a in level else a for a, b in self.edges if (a in level) != (b in level)} - seen
            seen |= level
            hops += 1
        return None


@settings(max_examples=examples(60))
@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.sampled_from("xy"), st.booleans()), max_size=30),
)
def test_every_router_of_a_tree_reaches_what_there_is(
    parents: list[int], steps: list[tuple[bool, int, str, bool]]
) -> None:
    tree = Tree(parents)
    here: dict[str, list[int]] = {"x": [], "y": []}
    for begins, where, name, tells in steps:
        where %= len(tree.reaches)
        if begins:
            here[name].append(where)
            tree.reaches[where].begin("A" + name)
        elif where in here[name]:
            here[name].remove(where)
            tree.reaches[where].end("A" + name)
        if tells:
            tell(*tree.pairs())
    tell(*tree.pairs())
    for number, reach in enumerate(tree.reaches):
        for name, places in here.items():
            assert reach.distance("A" + name) == tree.far(number, set(places))
        assert reach.keys("R") == {str(other): tree.far(number, {other}) for other in range(len(tree.reaches))}


def test_an_update_comes_back_as_it_was() -> None:
    update = Update(7, {"Aorders": 0, "RINT.A": 3}, ["Agone"])
    assert decode_update(encode_update(update)) == update


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"number": "1", "add": {}, "remove": []},
        {"number": 1, "add": [], "remove": []},
        {"number": 1, "add": {"Ax": -1}, "remove": []},
        {"number": 1, "add": {"Ax": 10**6}, "remove": []},
        {"number": 1, "add": {"A": 1}, "remove": []},
        {"number": 1, "add": {}, "remove": [3]},
    ],
)
def test_nonsense_is_no_update(body: object) -> None:
    with pytest.raises(DecodeError):
        decode_update(b"\x00\x53\x77" + encode(body))
