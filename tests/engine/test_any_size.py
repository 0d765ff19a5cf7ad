"""A model of the maximum message size: deliveries in any frames, interleaved on two links, some of them aborted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jmsish.engine import events
from jmsish.engine.oversize import limit_messages
from tests.engine.pair import Wire
from tests.wire.frames import SENDER

FRAME = st.integers(0, 12)
DELIVERY = st.tuples(st.lists(FRAME, min_size=1, max_size=5), st.booleans(), st.booleans())
"""The octets of its frames, whether it is aborted at its end, whether it is sent settled."""


def held(delivery: Any) -> int:
    gathered = 0 if delivery.gathered is None else len(delivery.gathered.getvalue())
    return sum(map(len, delivery.parts or ())) + gathered


@given(
    limit=st.integers(1, 20),
    early=st.booleans(),
    plans=st.tuples(st.lists(DELIVERY, max_size=4), st.lists(DELIVERY, max_size=4)),
    turns=st.lists(st.integers(0, 1), max_size=40),
)
def test_a_delivery_passes_exactly_if_its_octets_do(
    limit: int, early: bool, plans: tuple[list[Any], list[Any]], turns: list[int]
) -> None:
    """Each is reported once, at the frame that passes the limit, and never is more of it kept than the limit."""
    wire = Wire().open()
    if early:
        limit_messages(wire.engine, limit, [])
    wire.begin()
    links = [wire.attach(role=SENDER, handle=handle, name=f"l{handle}") for handle in (0, 1)]
    if not early:
        limit_messages(wire.engine, limit, [])
    for link in links:
        link.flow(100)
    wire.events()
    steps = [frames_of(handle, plan) for handle, plan in enumerate(plans)]
    numbers, following = {}, 0
    for turn in [*turns, *[0] * 40, *[1] * 40]:
        if not steps[turn]:
            continue
        index, size, so_far, fields = steps[turn].pop(0)
        key = (turn, index)
        if key not in numbers:
            numbers[key], following = following, following + 1
            fields |= {"delivery_id": numbers[key], "delivery_tag": b"t%d" % numbers[key]}
        wire.send("transfer", payload=b"x" * size, handle=turn, **fields)
        found = [(events.NAMES[kind], delivery) for kind, _, delivery in wire.events()]
        assert [name for name, _ in found] == expected(size, so_far, limit, fields)
        for _, delivery in found:
            assert delivery.id == numbers[key] and delivery.oversize == (so_far > limit)
            assert len(delivery.payload) == (so_far if delivery.complete and so_far <= limit else 0) or delivery.aborted
        assert all(link.current is None or held(link.current) <= limit for link in links)
    assert wire.engine.error is None


def frames_of(handle: int, plan: list[Any]) -> list[Any]:
    """The frames of a link: which delivery, its octets, those of the delivery up to here, and its fields."""
    frames: list[Any] = []
    for index, (sizes, aborted, settled) in enumerate(plan):
        so_far = 0
        for at, size in enumerate(sizes):
            so_far += size
            more = aborted or at < len(sizes) - 1
            frames.append((index, size, so_far, {"more": more, "settled": settled}))
        if aborted:
            frames.append((index, 0, so_far, {"aborted": True}))
    return frames


def expected(size: int, so_far: int, limit: int, fields: dict[str, Any]) -> list[str]:
    if fields.get("aborted"):
        return ["ABORTED"]
    if so_far <= limit:
        return [] if fields["more"] else ["DELIVERED"]
    if so_far - size <= limit:
        return ["OVERSIZE"]
    return [] if fields["more"] else ["OVERSIZE_ENDED"]
