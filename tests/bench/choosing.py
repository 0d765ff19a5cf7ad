"""What a queue costs where not everybody may have each message: selectors, groups."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from jmsish.broker.broker import Broker
from jmsish.engine.outcomes import ACCEPTED, RELEASED
from jmsish.engine.sections import APPLICATION_PROPERTIES, PROPERTIES, offset_behind
from jmsish.engine.values import NULL, encode_described, encode_int, encode_list, encode_map, encode_string
from jmsish.message.fields import AMQP_VALUE, GROUP_ID
from tests.bench.inmemory import TEXT, Peer, payload

ONE_IN = 1000
"""Of so many messages the selector wants one."""
ROUND = 50
GROUPS = 10


def numbered(number: int) -> bytes:
    """A message of a JMS client with a property n."""
    octets = payload()
    at = offset_behind(octets, PROPERTIES)
    section = encode_described(APPLICATION_PROPERTIES, encode_map([encode_string("n"), encode_int(number)]))
    return octets[:at] + section + octets[at:]


def grouped(name: str) -> bytes:
    """A message of a group, with no more than that in its properties."""
    properties = encode_described(PROPERTIES, encode_list([*[NULL] * GROUP_ID, encode_string(name)]))
    return properties + encode_described(AMQP_VALUE, encode_string(TEXT))


def selected(depth: int) -> dict[str, float]:
    """Microseconds: to look at a message of a deep queue, to get one that is wanted, to be passed by a new one."""
    peer = Peer(Broker("choosing", clock=time.time))
    sender = peer.sender("deep")
    peer.receiver("deep", selector="n = -2").detach()  # what the first selector brings along is not counted
    one_in = min(ONE_IN, depth // 2)
    kinds = [numbered(number) for number in range(one_in)]
    for number in range(depth):
        if not sender.credit:
            peer.pump()
        sender.send(kinds[number % one_in])
    peer.pump()
    receiver = peer.receiver("deep", selector=f"n = {one_in - 1}")
    wanted = depth // one_in
    peer.longest = 0.0
    receiver.flow(wanted)
    _, seconds = peer.timed(peer.pump)
    figures = {"search": seconds / depth * 1e6, "longest turn, ms": peer.longest * 1e3}
    taken = [delivery for _, delivery in peer.received]
    peer.received.clear()
    assert len(taken) == wanted
    peer.settle(taken, RELEASED)
    some = min(wanted, ROUND)
    rounds = []
    for _ in range(ROUND):
        taken, seconds = peer.timed(peer.take, receiver, some)
        _, back = peer.timed(peer.settle, taken, RELEASED)
        rounds.append((seconds + back) / some * 1e6)
    figures["again and back"] = median(rounds)
    return figures | _waiting(peer, sender, kinds)


def _waiting(peer: Peer, sender: Any, kinds: list[bytes]) -> dict[str, float]:
    """A consumer that waits, while messages come that it does not want, and while those come that it wants."""
    receiver = peer.receiver("deep", selector="n = -1")
    receiver.flow(10 * ROUND)
    peer.pump()
    _, passing = peer.timed(peer.fill, sender, 10 * ROUND, kinds[0])
    _, taking = peer.timed(peer.fill, sender, 10 * ROUND, numbered(-1))
    assert len(peer.received) == 10 * ROUND
    peer.settle([delivery for _, delivery in peer.received], ACCEPTED)
    peer.received.clear()
    return {"unwanted, in": passing / 10 / ROUND * 1e6, "wanted, in and out": taking / 10 / ROUND * 1e6}


def in_groups(depth: int) -> float:
    """Microseconds, in and out, of a message of a group, beside so many that wait for a busy consumer."""
    peer = Peer(Broker("choosing", clock=time.time))
    sender = peer.sender("deep")
    busy = peer.receiver("deep")
    busy.flow(1)
    peer.fill(sender, depth, grouped("busy"))
    assert len(peer.received) == 1
    peer.received.clear()
    other = peer.receiver("deep")
    names = [grouped(f"group {number}") for number in range(GROUPS)]

    def pass_through() -> None:
        other.flow(10 * ROUND)
        for number in range(10 * ROUND):
            sender.send(names[number % GROUPS])
        peer.pump()

    _, seconds = peer.timed(pass_through)
    assert len(peer.received) == 10 * ROUND
    return seconds / 10 / ROUND * 1e6


def points(depths: tuple[int, ...]) -> list[dict[str, float]]:
    return [{"depth": depth, **selected(depth), "grouped, in and out": in_groups(depth)} for depth in depths]
