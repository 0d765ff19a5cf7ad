"""What policy grants a client of a router: frames, sessions, windows and links, as at a broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jmsish.engine.outcomes import ACCEPTED
from tests.broker.policies import config
from tests.network.world import Network


class Granting(Network):
    """Routers whose policy has one group for everybody."""

    group: dict[str, Any]

    def _config(self, name: str, mode: str | None) -> dict[str, Any]:
        return {**super()._config(name, mode), **config(**self.group)}


def network(line: str = "EA1-INT.A", **group: Any) -> Network:
    made = type("Granted", (Granting,), {"group": group})
    return made(line)  # type: ignore[no-any-return]


def test_so_many_links_and_no_more() -> None:
    net = network(max_senders=1, max_receivers=2)
    peer = net.connect("EA1")
    first, second = peer.sender("a"), peer.sender("b")
    assert first.error is None and second.error is not None
    assert second.error.condition == "amqp:resource-limit-exceeded"
    receivers = [peer.receiver("c") for _ in range(3)]
    assert [receiver.error is None for receiver in receivers] == [True, True, False]
    assert net["EA1"].denials.links_denied == 2


def test_so_many_sessions_and_no_more() -> None:
    net = network(max_sessions=2)
    peer = net.connect("EA1")
    assert peer.engine.remote is not None and peer.engine.remote.channel_max == 1
    peer.begin()
    assert peer.ended == []
    peer.engine.remote = replace(peer.engine.remote, channel_max=7)  # a client that does not look
    peer.begin()
    (error,) = peer.ended
    assert error is not None and error.condition == "amqp:resource-limit-exceeded"
    assert not net["INT.A"].denials.total_denials  # an edge has as many as its clients need


def test_frames_are_as_small_as_was_granted() -> None:
    net = network(max_frame_size=1024)
    receiver = net.connect("INT.A").receiver("a", credit=5)
    peer = net.connect("EA1")
    assert peer.engine.remote is not None and peer.engine.remote.max_frame_size == 1024
    (told,) = peer.sender("a").send("x" * 50_000)
    receiver.accept(receiver.take())
    assert told == [ACCEPTED]


def test_a_window_is_as_narrow_as_was_granted() -> None:
    net = network(max_session_window=4096, max_frame_size=1024)
    peer = net.connect("EA1")
    receiver = net.connect("INT.A").receiver("a", credit=5)
    sender = peer.sender("a")
    (session,) = peer.connection.sessions
    assert session.incoming_window == 4
    (told,) = sender.send("x" * 50_000)
    receiver.accept(receiver.take())
    assert told == [ACCEPTED]


def test_addresses_are_decided_at_the_door_of_the_client_and_not_again() -> None:
    """What an edge has let in its interior does not refuse: its messages would have nowhere to go."""
    net = network("EA1-INT.A")
    door = net["INT.A"]
    (uplink,) = door.neighbours
    uplink.grant = replace(uplink.grant, targets=lambda address: False)
    receiver = net.connect("INT.A").receiver("a", credit=5)
    (told,) = net.connect("EA1").sender("a").send("x")
    receiver.accept(receiver.take())
    assert told == [ACCEPTED]


def test_an_address_that_is_not_granted_is_refused_and_counted() -> None:
    net = network(targets=["b"])
    refused = net.connect("EA1").sender("a")
    assert refused.error is not None and refused.error.condition == "amqp:unauthorized-access"
    assert net["EA1"].denials.links_denied == 1
