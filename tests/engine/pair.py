"""Two engines joined in memory, and one engine against frames made by hand."""

from __future__ import annotations

from typing import Any

from jmsish.engine import events
from jmsish.engine.engine import Engine
from jmsish.engine.link import Link
from jmsish.engine.outcomes import Source, Target
from jmsish.engine.session import EngineSession
from tests.wire.frames import AMQP_HEADER, Frame, read, trace, write

SOURCE = Source(address="q")
TARGET = Target(address="q")


class Pair:
    """A client and a server; ``pump`` carries octets both ways until both are silent."""

    def __init__(self, client: dict[str, Any] | None = None, server: dict[str, Any] | None = None) -> None:
        self.client = Engine(server=False, **{"container_id": "client", **(client or {})})
        self.server = Engine(server=True, **{"container_id": "server", **(server or {})})
        self.frames: list[tuple[str, Frame]] = []

    def pump(self) -> None:
        for _ in range(10_000):
            up = self.client.take_output()
            self._note(">", up)
            self.server.receive(up)
            down = self.server.take_output()
            self._note("<", down)
            self.client.receive(down)
            if not up and not down:
                return
        raise AssertionError("the engines never fall silent")

    def _note(self, arrow: str, octets: bytes) -> None:
        self.frames.extend((arrow, frame) for frame in read(octets))

    def sent(self, arrow: str, name: str) -> list[Frame]:
        """The frames of that name that went up (``>``) or down (``<``)."""
        return [frame for way, frame in self.frames if way == arrow and frame.name == name]

    def trace(self) -> str:
        return "\n".join(f"{arrow} {frame}" for arrow, frame in self.frames)

    def open(self) -> Pair:
        self.client.open()
        self.pump()
        self.server.open()
        self.pump()
        assert kinds(self.client) == ["OPENED"] and kinds(self.server) == ["OPENED"]
        return self

    def begin(self, **kwargs: Any) -> tuple[EngineSession, EngineSession]:
        """A session, both ends."""
        session = self.client.begin(**kwargs)
        self.pump()
        [(_, other)] = expect(self.server, events.BEGUN)
        other.accept_begin()
        self.pump()
        expect(self.client, events.BEGUN)
        return session, other

    def link(
        self, session: EngineSession, name: str = "link", *, sender: bool = True, credit: int = 100, **kwargs: Any
    ) -> tuple[Link, Link]:
        """A link attached by the client, both ends; the receiving one grants credit."""
        attach = session.sender if sender else session.receiver
        link = attach(name, source=SOURCE, target=TARGET, **kwargs)
        self.pump()
        [(_, other)] = expect(self.server, events.ATTACHED)
        other.attach()
        if credit:
            if sender:
                other.flow(credit)
            self.pump()
            if not sender:
                link.flow(credit)
                self.pump()
        self.pump()
        self.client.take_events()
        self.server.take_events()
        return link, other

    def close(self) -> None:
        self.client.close()
        self.pump()
        self.server.close()
        self.pump()
        assert self.client.closed and self.server.closed
        assert self.client.error is None and self.server.error is None


class Wire:
    """One engine, and a peer that writes its frames by hand."""

    def __init__(self, server: bool = True, **kwargs: Any) -> None:
        self.engine = Engine(server=server, **{"container_id": "engine", **kwargs})
        self.frames: list[Frame] = []

    def send(self, name: str, /, channel: int = 0, payload: bytes = b"", **fields: Any) -> list[Frame]:
        """Write a frame, and read what comes back at once."""
        return self.raw(write(name, channel, payload, **fields))

    def raw(self, octets: bytes) -> list[Frame]:
        self.engine.receive(octets)
        return self.read()

    def read(self) -> list[Frame]:
        frames = read(self.engine.take_output())
        self.frames.extend(frames)
        return frames

    def events(self) -> list[tuple[Any, ...]]:
        return self.engine.take_events()

    def trace(self) -> str:
        return trace(b"".join(frame.octets for frame in self.frames))

    def open(self, **fields: Any) -> Wire:
        self.raw(AMQP_HEADER)
        self.send("open", **{"container_id": "peer", **fields})
        self.engine.open()
        self.read()
        expect(self.engine, events.OPENED)
        return self

    def begin(self, channel: int = 0, incoming_window: int = 1000, next_outgoing_id: int = 0) -> EngineSession:
        """A session that the peer begins, accepted."""
        self.send(
            "begin",
            channel,
            next_outgoing_id=next_outgoing_id,
            incoming_window=incoming_window,
            outgoing_window=1000,
        )
        [(_, session)] = expect(self.engine, events.BEGUN)
        session.accept_begin()
        self.read()
        assert isinstance(session, EngineSession)
        return session

    def attach(self, channel: int = 0, *, role: bool, handle: int = 0, name: str = "link", **fields: Any) -> Link:
        """A link that the peer attaches, accepted."""
        if not role:
            fields.setdefault("initial_delivery_count", 0)
        self.send("attach", channel, name=name, handle=handle, role=role, **fields)
        [(_, link)] = expect(self.engine, events.ATTACHED)
        link.attach()
        self.read()
        assert isinstance(link, Link)
        return link


def kinds(engine: Engine) -> list[str]:
    """The names of the events, which are taken."""
    return [events.NAMES[event[0]] for event in engine.take_events()]


def expect(engine: Engine, *wanted: int) -> list[tuple[Any, ...]]:
    """The events, which must be exactly of these kinds."""
    found = engine.take_events()
    assert [event[0] for event in found] == list(wanted), [(events.NAMES[event[0]], *event[1:]) for event in found]
    return found
