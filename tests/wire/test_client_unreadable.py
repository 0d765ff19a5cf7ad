"""What cannot be read is given back and reported, never dropped and never looped."""

from __future__ import annotations

from jmsish.modes import AcknowledgeMode

from .peer import Peer, message


def test_an_unreadable_message_goes_back_for_others_and_is_reported() -> None:
    peer = Peer()
    heard: list[object] = []
    peer.core.exception_listener = heard.append
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    peer.messages = [b"\x00\x53\x73\xd0\xff\xff\xff\xff", message(2)]
    peer.told()
    assert peer.receive(consumer, 1) == [message(2)]
    assert peer.told()[:2] == ["failed 0", "accepted 1"]
    given_back = next(frame for frame in peer.frames if frame.name == "disposition")
    assert str(given_back.fields["state"]).count("True") == 2, "failed, and undeliverable here"
    ((function, (error,)),) = peer.core.calls
    assert function == peer.core.exception_listener and "cannot be read" in str(error)
