"""Mutated conversations with one router of a network: as a client, an edge, an interior, and a broker that it dials.

``python -m tests.network.fuzzing SECONDS [SEED]`` plays until the time is over. A fault is an exception out of the
router, a neighbour or a client beside that is not served, or something that stays when the attacker is gone.
"""

from __future__ import annotations

import logging
import sys
from random import Random
from time import monotonic
from typing import Any

from jmsish.broker.network.doors import CAPABILITIES, introduce
from jmsish.broker.network.linkroutes import ROUTE
from jmsish.broker.network.updates import CONTROL, Update, encode_update
from jmsish.engine.outcomes import ACCEPTED
from jmsish.types import Symbol
from tests.fuzz.conversations import Speaker
from tests.fuzz.mutation import Mutator, chunks, spoiled
from tests.fuzz.said import Known, Part, Said, frame_octets, say
from tests.network.world import Network
from tests.wire.frames import AMQP_HEADER

LINE = "EA1-INT.A-INT.B"
ROLES = ("client", "edge", "interior", "broker")
HOMES = ("INT.B/broker", "INT.A/broker", "EX/c", "nowhere", "")
KEYS = ("Aq0", "Aq1", "REX", "RINT.X", "RINT.B", "REA1", "Lq\nEX/c", "Lorders\nINT.B/broker", "CEX/c",
        "Jedge\nEX\nINT.A", "Z", "Zfuture", "A" + "x" * 3000, "A\n", "A$management", "L\n\n\n")  # fmt: skip


class Neighbour(Speaker):
    """What a neighbour might say: updates, links with an address, links by a route."""

    def __init__(self, rng: Random, mode: str) -> None:
        super().__init__(rng)
        self.mode = mode

    def greet(self) -> None:
        role = "edge" if self.mode == "edge" else "inter-router"
        router = self.rng.choice(("EX", "EX", "INT.X", "EA1", "INT.A", "", "a/b"))
        self.frames.append(Said(None, octets=AMQP_HEADER))
        self.frames.append(
            say(
                "open", container_id=router, max_frame_size=self.rng.choice((None, 512, 4096)),
                channel_max=self.rng.choice((None, None, 0, 1)), offered_capabilities=[CAPABILITIES[role]],
                properties=dict(introduce(router, self.mode)),
            )
        )  # fmt: skip

    def converse(self) -> list[Said]:
        self.greet()
        self.begin()
        self.say(
            "attach", self.sessions[0], name="control", handle=77, role=False, source=Part("source"),
            target=Part("target", {"address": CONTROL}), initial_delivery_count=0,
        )  # fmt: skip
        number = 0
        for _ in range(self.rng.randint(1, 12)):
            if self.chance(0.3):
                add = {key: self.rng.choice((0, 0, 1, 5, 999)) for key in self.rng.sample(KEYS, self.rng.randint(0, 4))}
                remove = self.rng.sample(KEYS, self.rng.randint(0, 2))
                self.say(
                    "transfer", self.sessions[0], encode_update(Update(number, add, remove)), handle=77,
                    delivery_id=1000 + number, delivery_tag=b"u%d" % number, settled=True,
                )  # fmt: skip
                number += self.chance(0.9)
            else:
                self.act()
        self.part()
        for frame in self.frames:
            if frame.name == "attach" and frame.body is not None and self.chance(0.4):
                route = [self.rng.choice(HOMES), self.rng.choice(("EX/1", "EA1/1", "x")), "link", "container"]
                frame.body.fields["properties"] = {Symbol(ROUTE): route}
        return self.frames


class Arena:
    """A network whose INT.A is attacked, and clients beside who go on."""

    def __init__(self) -> None:
        routes = {"q1": ("INT.B", "broker"), "evil": ("INT.A", "evil")}
        self.network = Network(LINE, routes=routes, multicast=("news",))
        self.network.brokers.pop("evil")
        self.take_dials = self.network["INT.A"].take_dials
        self.network["INT.A"].take_dials = self.dial  # type: ignore[method-assign]
        self.rng = Random(0)
        self.is_evil = False
        """The broker that INT.A dials speaks; else it is away."""
        self.receiver = self.network.connect("INT.B").receiver("others", credit=1)
        self.sender = self.network.connect("EA1").sender("others")
        self.post = self.network.connect("EA1").sender("q1.x")

    def dial(self) -> list[Any]:
        """What INT.A wants dialled, but for the broker that is not one."""
        others = []
        for dial in self.take_dials():
            if dial.url != "vm://evil":
                others.append(dial)
            elif not self.is_evil:
                dial.connector.failed("away")
            else:
                connection = dial.connector.dialled("evil")
                if connection is not None:
                    self.talk(connection, self.said("client"))
        return others

    def said(self, role: str) -> list[bytes]:
        """The pieces of a conversation."""
        rng = self.rng
        frames = (Speaker(rng) if role == "client" else Neighbour(rng, role)).converse()
        mutator = Mutator(rng)
        if rng.random() < 0.85:
            for _ in range(rng.randint(1, 4)):
                frames = mutator.mutate(frames)
        octets = [frame_octets(frame, Known()) for frame in frames]
        if rng.random() < 0.3:
            octets = [spoiled(rng, each) if rng.random() < 0.2 else each for each in octets]
        return chunks(rng, octets)

    def talk(self, connection: Any, pieces: list[bytes]) -> None:
        """Say it, whatever is answered, and go."""
        for piece in pieces:
            if connection.closed:
                break
            connection.take_output()
            connection.receive(piece)
            self.network.named.update(self.network["INT.A"].step())
        connection.receive_eof()

    def check(self) -> None:
        """Others are served as ever."""
        (told,) = self.sender.send("on")
        assert len(self.receiver.arrived) == 1, "a message did not come through"
        self.receiver.accept(self.receiver.take())
        self.receiver.flow(1)
        assert told == [ACCEPTED]
        assert self.post.send("at the broker") == [[ACCEPTED]]

    def play(self, rng: Random, role: str) -> None:
        """One conversation, and that nothing of it stays."""
        self.rng = rng
        if role == "broker":
            self.is_evil = True
            peer = self.network.connect(rng.choice(["EA1", "INT.A"]))
            for _ in range(3):
                self.network.advance(1.1)
                ends = [peer.sender("evil.q", session=peer.begin()), peer.receiver("evil.q", session=peer.begin())]
                assert all(end.link.remote_attached or end.detached for end in ends), "an attach was not answered"
            self.is_evil = False
            peer.close()
            connection = None
        else:
            connection = self.network["INT.A"].accept(trusted=True, peer="fuzz")
            for piece in self.said(role):
                if connection.closed:
                    break
                connection.receive(piece)
                self.network.run()
                connection.take_output()
                self.network.named.discard(connection)
            if rng.random() < 0.3:
                self.check()
            connection.receive_eof()
        self.network.run()
        self.network.advance(0.5)
        self.check()
        self.check_nothing_stays(connection)

    def check_nothing_stays(self, connection: Any) -> None:
        for _ in range(2):
            self.network.advance(1.5)
        for node in self.network.nodes.values():
            assert connection not in node._connections and connection not in node.neighbours
            kept = set(node._addresses) - {"others"}
            assert not kept, f"{node.name} keeps {kept}"
            assert set(node.reach.keys("R")) == {"EA1", "INT.A", "INT.B"}, node.reach.keys("R")
            assert {way.origin.partition("/")[0] for way in node.link_routes._ways.values()} == {"EA1"}
            for neighbour in node.neighbours:
                # those of the control links, that of the mobile link, and that of the link route
                assert len(neighbour.sessions) <= 4, f"{node.name}: {len(neighbour.sessions)} sessions"
        assert len(self.network["INT.A"].neighbours) == 2


def campaign(seed: int, conversations: int) -> None:
    """So many, in one network after the other."""
    arena = Arena()
    for number in range(conversations):
        rng = Random(f"{seed} {number}")
        if number % 50 == 49:
            arena = Arena()
        try:
            arena.play(rng, ROLES[number % len(ROLES)])
        except BaseException:
            print(f"seed {seed}, conversation {number}, as {ROLES[number % len(ROLES)]}", file=sys.stderr)
            raise


def main(seconds: float, seed: int) -> None:
    logging.disable(logging.CRITICAL)
    end, played = monotonic() + seconds, 0
    while monotonic() < end:
        campaign(seed, 150)
        played += 150
        seed += 1
    print(f"{played} conversations, the next seed is {seed}")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
