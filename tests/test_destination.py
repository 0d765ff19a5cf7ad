"""Destinations: equality, kinds, texts and names on the wire."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from jmsish.destination import (
    Destination,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    destination_of_kind,
    parse_destination,
    wire_name,
)
from jmsish.errors import IllegalStateError

KINDS = [
    (Queue, 0, "queue", "queue://x", False, False),
    (Topic, 1, "topic", "topic://x", True, False),
    (TemporaryQueue, 2, "temporary-queue", "temp-queue://x", False, True),
    (TemporaryTopic, 3, "temporary-topic", "temp-topic://x", True, True),
]


@pytest.mark.parametrize(("kind", "number", "capability", "text", "is_topic", "is_temporary"), KINDS)
def test_m23_m45_each_kind_has_its_number_capability_and_text(
    kind: Any, number: int, capability: str, text: str, is_topic: bool, is_temporary: bool
) -> None:
    place = kind("x")
    assert (place.kind_byte, place.capability, str(place)) == (number, capability, text)
    assert (place.is_topic, place.is_temporary) == (is_topic, is_temporary)
    assert destination_of_kind(number, "x") == place == parse_destination(text)
    assert type(parse_destination(text)) is kind and repr(place) == f"{kind.__name__}('x')"


def test_destinations_are_equal_by_kind_and_name() -> None:
    places = [Queue("x"), Topic("x"), TemporaryQueue("x"), TemporaryTopic("x"), Queue("y")]
    assert len({*places, *places, Queue("x"), TemporaryQueue("x", owner=object())}) == 5
    assert Queue("x") != "x" and TemporaryQueue("x", owner=1) == TemporaryQueue("x", owner=2)


def test_temporary_destinations_are_destinations_of_their_sort() -> None:
    assert isinstance(TemporaryQueue("x"), Queue) and isinstance(TemporaryTopic("x"), Topic)
    assert all(isinstance(kind[0]("x"), Destination) for kind in KINDS)


@pytest.mark.parametrize("kind", [Queue, TemporaryTopic])
def test_a_destination_cannot_be_changed(kind: Any) -> None:
    place = kind("x")
    with pytest.raises(AttributeError):
        place.name = "y"
    with pytest.raises(AttributeError):
        del place.name


def test_a_pickled_destination_is_equal_and_has_no_owner() -> None:
    place = pickle.loads(pickle.dumps(TemporaryQueue("x", owner=1)))
    assert place == TemporaryQueue("x")
    with pytest.raises(IllegalStateError):
        place.delete()


@pytest.mark.parametrize("kind", [TemporaryQueue, TemporaryTopic])
def test_delete_asks_the_owner_and_passes_its_answer_on(kind: Any) -> None:
    class Owner:
        def delete_temporary(self, destination: Destination) -> Any:
            return ["deleted", destination]

    assert kind("x", Owner()).delete() == ["deleted", kind("x")]
    with pytest.raises(IllegalStateError, match="another connection"):
        kind("x").delete()


@pytest.mark.parametrize(("name", "error"), [("", ValueError), (None, TypeError), (5, TypeError), (b"x", TypeError)])
def test_a_name_is_a_text_that_is_not_empty(name: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Queue(name)


def test_a_bare_name_is_a_queue_whatever_is_in_it() -> None:
    for name in ("orders", "a/b?c=d", "exchange/key.#", "http://example.org", "ä ö"):
        assert parse_destination(name) == Queue(name)


@pytest.mark.parametrize("text", ["queues://x", "Queue://x", "topc://x", "temp_queue://x"])
def test_a_kind_that_is_nearly_one_is_refused_with_the_near_one(text: str) -> None:
    with pytest.raises(ValueError, match="did you mean"):
        parse_destination(text)


@pytest.mark.parametrize(("text", "error"), [("queue://", ValueError), ("", ValueError), (None, TypeError)])
def test_a_text_without_name_is_refused(text: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_destination(text)


@pytest.mark.parametrize("number", [-1, 4])
def test_there_are_four_kinds(number: int) -> None:
    with pytest.raises(ValueError, match="no kind of destination"):
        destination_of_kind(number, "x")


def test_m25_prefixes_are_added_on_the_wire_unless_there_already() -> None:
    prefixes = ("q.", "t.")
    assert [wire_name(kind[0]("x"), prefixes) for kind in KINDS] == ["q.x", "t.x", "x", "x"]
    assert wire_name(Queue("q.x"), prefixes) == "q.x" and wire_name(Queue("t.x"), prefixes) == "q.t.x"
    assert wire_name(Topic("x"), ("", "")) == "x"
