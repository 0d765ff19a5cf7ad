"""Bodies that are read while they arrive, from a broker that does as the test says."""

from __future__ import annotations

import pytest

from jmsish.engine.streaming import OutgoingStream
from jmsish.errors import IllegalStateError, JMSError, MessageFormatError
from jmsish.modes import AcknowledgeMode

from .peer import Peer, message


def test_a_session_that_closes_wakes_who_waits_for_more_of_a_body() -> None:
    """Nothing more comes, and nobody has to wait for that."""
    peer = Peer(stream_threshold=100)
    session = peer.session(AcknowledgeMode.AUTO)
    consumer = peer.consumer(session)
    (link,) = peer.links
    out = OutgoingStream(link, state=None, settled=False, context=None)
    out.put(b"\x00Su\xb0\x00\x01\x00\x00" + bytes(1000), last=False)
    delivery = peer.run(consumer.receive(None))
    reading = session.reading
    assert reading is not None and reading.delivery is delivery
    assert reading.take(2000) == bytes(1000) and reading.take(1) is None
    waiting = peer.begin(reading.wait())
    session.begin_close()
    peer.run(waiting)
    with pytest.raises(IllegalStateError, match="closed"):
        peer.run(reading.wait())


def test_a_body_that_the_broker_takes_back() -> None:
    """Who reads hears of it, and the session goes on."""
    peer = Peer(stream_threshold=100)
    session = peer.session(AcknowledgeMode.AUTO)
    consumer = peer.consumer(session)
    (link,) = peer.links
    out = OutgoingStream(link, state=None, settled=False, context=None)
    out.put(b"\x00Su\xb0\x00\x01\x00\x00" + bytes(1000), last=False)
    peer.run(consumer.receive(None))
    reading = session.reading
    assert reading is not None and len(reading.take(5) or b"") == 5
    out.abort()
    peer.pump()
    with pytest.raises(JMSError, match="took the message back"):
        reading.take(1)
    peer.give(1)
    assert peer.receive(consumer, 1) == [message(1)]


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"\x00Su\xb0\x00\x00\x08\x00" + bytes(2000), "ends inside its body"),
        (b"\x00Su\xb0\x00\x00\x01\x00" + bytes(256) + b"\x00Sw\x40" + bytes(1000), "inside a body of data"),
        (b"\x00Su\xb0\x00\x00\x01\x00" + bytes(256) + b"\xff" * 1000, "inside"),
    ],
)
def test_a_body_that_is_no_body_raises_where_it_ends(octets: bytes, text: str) -> None:
    """What is there before is read; what cannot be understood is a MessageFormatError."""
    peer = Peer(stream_threshold=100)
    session = peer.session(AcknowledgeMode.AUTO)
    consumer = peer.consumer(session)
    (link,) = peer.links
    out = OutgoingStream(link, state=None, settled=False, context=None)
    out.put(octets[:600], last=False)
    delivery = peer.run(consumer.receive(None))
    reading = session.reading
    assert reading is not None and reading.delivery is delivery
    out.put(octets[600:], last=True)
    peer.pump()
    with pytest.raises(MessageFormatError, match=text):
        while reading.take(100):
            pass


def test_a_footer_ends_a_body() -> None:
    """It is no part of it (Part 3, 3.2)."""
    peer = Peer(stream_threshold=10)
    session = peer.session(AcknowledgeMode.AUTO)
    consumer = peer.consumer(session)
    (link,) = peer.links
    out = OutgoingStream(link, state=None, settled=False, context=None)
    out.put(b"\x00Su\xa0\x05hello\x00Su\xa0\x06 world", last=False)
    peer.run(consumer.receive(None))
    reading = session.reading
    assert reading is not None
    out.put(b"\x00Sx\xc1\x01\x00", last=True)
    peer.pump()
    pieces = []
    while piece := reading.take(100):
        pieces.append(piece)
    assert b"".join(pieces) == b"hello world" and session.reading is None
    assert peer.told()[-1] == "accepted 0"
