"""Over TCP, for threads and asyncio: a proxy that cuts before a chosen frame, in either direction, of a conversation.

The whole number of frames is played in memory (`tests/client/test_every_cut.py`); here a bounded number of them, spread
over the conversation, goes through sockets, drivers and faces. For each the outcome is what was promised, and the
queues of the broker agree with it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from typing import Any

import pytest

import jmsish
from tests.relay import DOWN, UP, Relay, reset

from .blocking import PATIENCE
from .face import Face
from .steps import outcome, send

tcp_only = pytest.mark.parametrize("face", ["sync-tcp", "aio-tcp"], indirect=True)
PLACES = 6
"""So many cuts in each direction."""


class FrameProxy(Relay):
    """Relays frame by frame, and cuts the wire before the one that was chosen, once."""

    def __init__(self, host: str, port: int, cut: tuple[str, int] | None) -> None:
        self.cut_before = cut
        self.passed: Counter[str] = Counter()
        self.cuts = 0
        self._counting = threading.Lock()
        super().__init__((host, port))

    def relay(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        try:
            self._relay_frames(source, sink, way)
        finally:
            reset((source, sink))

    def _relay_frames(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        rest = bytearray()
        while octets := source.recv(65536):
            rest += octets
            while frame := _frame(rest):
                with self._counting:
                    if self.cut_before == (way, self.passed[way]):
                        self.cut_before = None
                        self.cuts += 1
                        return
                    self.passed[way] += 1
                sink.sendall(frame)


def _frame(octets: bytearray) -> bytes:
    """Takes the first frame, or protocol header, off the beginning; empty where none is whole."""
    size = 8 if octets[:4] == b"AMQP" else int.from_bytes(octets[:4], "big")
    if len(octets) < max(size, 8):
        return b""
    frame = bytes(octets[:size])
    del octets[:size]
    return frame


async def sending(connection: Any, told: dict[str, Any]) -> None:
    session = await connection.create_session()
    producer = await session.create_producer(session.create_queue("made"))
    for number in range(4):
        told[f"m{number}"] = await outcome(producer.send(f"m{number}"))


async def moving(connection: Any, told: dict[str, Any]) -> None:
    """From one queue to another, a transaction a message; what was rolled back is done again."""
    session = await connection.create_session(transacted=True)
    consumer = await session.create_consumer(session.create_queue("orders"))
    producer = await session.create_producer(session.create_queue("made"))
    while len(told) < 3:
        message = await consumer.receive(timeout=PATIENCE)
        assert message is not None, told
        await producer.send(message.body)
        ended = await outcome(session.commit())
        if not isinstance(ended, jmsish.TransactionRolledBackError):
            told[message.body] = ended


CONVERSATIONS = {"sending": sending, "moving": moving}


async def play(face: Face, name: str, cut: tuple[str, int] | None) -> tuple[dict[str, Any], FrameProxy]:
    for queue in ("orders", "made"):
        with contextlib.suppress(jmsish.InvalidDestinationError):
            face.broker.queue(queue).purge()
    if name == "moving":
        other = await face.connect()
        await send(other, "orders", "m0 m1 m2")
        await other.close()
        face.connections.remove(other)
    proxy = FrameProxy(face.listener.host, face.listener.port, cut)
    told: dict[str, Any] = {}
    connection = await face.connect(f"failover:({proxy.url})", reconnect_delay=0)
    await CONVERSATIONS[name](connection, told)
    await connection.close()
    face.connections.remove(connection)
    proxy.close()
    return told, proxy


def check(face: Face, name: str, told: dict[str, Any]) -> None:
    made = Counter(face.sight("made").bodies)
    for body, ended in told.items():
        if ended is None:
            assert made[body] == 1, (told, made)
        elif name == "sending":
            assert isinstance(ended, jmsish.ConnectionLostError) and ended.outcome_unknown and made[body] <= 1
        else:
            assert isinstance(ended, jmsish.TransactionInDoubtError)
    if name == "moving":
        assert made + Counter(face.sight("orders").bodies) == Counter(["m0", "m1", "m2"]), (told, made)
    assert sum(ended is not None for ended in told.values()) <= 1


@tcp_only
@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_cuts_spread_over_a_conversation(face: Face, name: str) -> None:
    told, proxy = await play(face, name, None)
    check(face, name, told)
    for way in (UP, DOWN):
        count = proxy.passed[way] - 2  # not the last words, which nobody waits for
        for place in range(PLACES):
            cut = (way, place * count // PLACES)
            told, cutting = await play(face, name, cut)
            assert cutting.cuts == 1, cut
            await face.sight("orders").frees_all()
            check(face, name, told)
