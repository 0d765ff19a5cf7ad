"""What cannot be read is given back and reported, never dropped and never looped."""

from __future__ import annotations

import pytest

from jmsish.modes import AcknowledgeMode

from .peer import Peer, message

UNREADABLE = [
    b"\x00\x53\x73\xd0\xff\xff\xff\xff",
    b"hello",
    b"\x00\x53\x79\x40",
    b"\x00\x53\x70\xc0\x02\x01\x54",
    b"\x00\x53\x70\x45\x00\x53\x70\x45",
    b"\x00\x53\x72\x45",
    b"\x00\x53\x72\xc1\x01\x00\x00\x53\x70\x45",
    b"\x00",
]


@pytest.mark.parametrize("octets", UNREADABLE, ids=bytes.hex)
def test_an_unreadable_message_goes_back_for_others_and_is_reported(octets: bytes) -> None:
    peer = Peer()
    heard: list[object] = []
    peer.core.exception_listener = heard.append
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    peer.messages = [octets, message(2)]
    peer.told()
    assert peer.receive(consumer, 1) == [message(2)]
    assert peer.told()[:2] == ["failed 0", "accepted 1"]
    given_back = next(frame for frame in peer.frames if frame.name == "disposition")
    assert str(given_back.fields["state"]).count("True") == 2, "failed, and undeliverable here"
    ((function, (error,)),) = peer.core.calls
    assert function == peer.core.exception_listener and "cannot be read" in str(error)
