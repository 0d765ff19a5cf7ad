"""Peers that ask for more than they take themselves: answered at the smallest scope, and nothing of ours raises.

Found by `tests.fuzz`, and here one by one.
"""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import Broker
from jmsish.engine.codec import AMQP_VALUE, encode_message
from jmsish.engine.values import encode
from jmsish.types import Described, Long, ULong
from tests.wire.frames import AMQP_HEADER, RECEIVER, SENDER, Frame, Raw, composite, read, write

BEGIN = {"next_outgoing_id": 0, "incoming_window": 100, "outgoing_window": 100}
FLOW: dict[str, Any] = {"incoming_window": 10, "next_outgoing_id": 0, "outgoing_window": 10}


class Odd:
    """A connection whose frames are made by hand; all of one call arrive at once."""

    def __init__(self, broker: Broker | None = None, **opening: Any) -> None:
        self.broker = broker or Broker("odd", clock=lambda: 1.0)
        self.connection = self.broker.accept(trusted=True)
        self.opening = AMQP_HEADER + write("open", **{"container_id": "odd", **opening})

    def say(self, *frames: bytes) -> list[Frame]:
        opening, self.opening = self.opening, b""
        self.connection.receive(opening + b"".join(frames))
        self.broker.step()
        return [frame for frame in read(self.connection.take_output()) if frame.name not in ("header", "open")]


def names(frames: list[Frame]) -> list[str]:
    return [frame.name for frame in frames]


def attach(number: int = 0, channel: int = 0, **fields: Any) -> bytes:
    source = {"source": composite("source", address="q")}
    return write("attach", channel, **{"name": f"link{number}", "handle": number, "role": RECEIVER, **source, **fields})


def test_more_sessions_than_the_peer_has_channels_for_close_the_connection() -> None:
    odd = Odd(channel_max=0)
    said = odd.say(write("begin", **BEGIN), write("begin", 1, **BEGIN), attach(channel=1))
    assert names(said) == ["begin", "close"]
    assert said[-1].condition == "amqp:resource-limit-exceeded" and "no channel is free" in said[-1].description
    assert odd.connection.closed and not odd.broker.connections() and not odd.broker.queues()


def test_the_same_with_a_close_behind_it() -> None:
    odd = Odd(channel_max=0)
    odd.say(write("begin", **BEGIN), write("begin", 1, **BEGIN), attach(channel=1), write("end", 1), write("close"))
    assert odd.connection.closed and not odd.broker.connections()


def test_more_links_than_the_peer_has_handles_for_end_the_session() -> None:
    odd = Odd()
    said = odd.say(write("begin", handle_max=0, **BEGIN), attach(0), attach(1))
    assert names(said) == ["begin", "attach", "end"]
    assert said[-1].condition == "amqp:resource-limit-exceeded" and "allows 1 links" in said[-1].description
    assert odd.broker.queue("q").consumer_count == 0
    assert names(odd.say(write("end"), write("begin", **BEGIN))) == ["begin"], "the connection goes on"


def test_an_answer_too_large_for_the_peers_frames_refuses_the_link() -> None:
    odd = Odd(max_frame_size=512)
    said = odd.say(write("begin", **BEGIN), attach(source=composite("source", address="q" * 500)))
    assert names(said) == ["begin", "attach", "detach"]
    assert said[1].source is None and said[2].condition == "amqp:frame-size-too-small"
    assert odd.broker.queue("q" * 500).consumer_count == 0
    assert names(odd.say(attach(1))) == ["attach"], "the session goes on"


def test_a_name_too_large_for_the_peers_frames_ends_the_session() -> None:
    odd = Odd(max_frame_size=512)
    said = odd.say(write("begin", **BEGIN), attach(name="n" * 600))
    assert names(said) == ["begin", "end"] and said[1].condition == "amqp:frame-size-too-small"
    assert odd.broker.queue("q").consumer_count == 0


def test_a_target_too_large_for_the_peers_frames_leaves_no_producer() -> None:
    odd = Odd(max_frame_size=512)
    target = composite("target", address="t" * 500)
    said = odd.say(write("begin", **BEGIN), attach(role=SENDER, target=target, initial_delivery_count=0))
    assert names(said) == ["begin", "attach", "detach"] and said[2].condition == "amqp:frame-size-too-small"
    assert not odd.broker.router.queues["t" * 500].producers


def test_a_link_refused_in_a_session_that_has_ended_on_a_connection_that_closed() -> None:
    broker = Broker("odd", clock=lambda: 1.0)
    sole = {"desired_capabilities": ["sole-connection-for-container"]}
    first = Odd(broker, **sole)
    first.say(write("begin", **BEGIN))
    second = Odd(broker, **sole)
    said = second.say(write("begin", **BEGIN), attach(), write("detach", handle=0, closed=True), write("end"))
    assert names(said) == ["close"] and said[0].condition == "amqp:invalid-field"


def test_a_link_that_does_not_exist_before_a_frame_that_closes() -> None:
    odd = Odd()
    lookup = attach(source=None)
    said = odd.say(write("begin", **BEGIN), lookup, write("end"), attach(1))
    assert names(said)[-1] == "close" and odd.connection.closed


@pytest.mark.parametrize("field", ["timeout", "durable"])
@pytest.mark.parametrize("value", [2**32, -1])
def test_a_number_of_a_terminus_is_one_that_fits(field: str, value: Any) -> None:
    said = Odd().say(
        write("begin", **BEGIN), attach(source=composite("source", address="q", **{field: Raw(encode(Long(value)))}))
    )
    assert names(said) == ["close"] and said[0].condition == "amqp:decode-error"
    assert f"source.{field} cannot be {value}" in said[0].description


def test_a_number_of_a_flow_is_one_that_fits() -> None:
    large = write("flow", handle=0, delivery_count=0, link_credit=ULong(2**40), **FLOW)
    said = Odd().say(write("begin", **BEGIN), attach(), large)
    assert names(said) == ["close"] and said[0].condition == "amqp:decode-error"
    assert "flow.link-credit cannot be a ULong" in said[0].description


def test_a_message_whose_subject_cannot_be_read_harms_nobody_who_looks_at_subjects() -> None:
    odd = Odd()
    filters = {"filter": {"by-key": Described(ULong(0x0000468C00000000), "k")}}
    odd.say(write("begin", **BEGIN), attach(source=composite("source", address="q", **filters)))
    odd.say(write("flow", handle=0, delivery_count=0, link_credit=10, **FLOW))
    odd.say(attach(1, role=SENDER, target=composite("target", address="q"), initial_delivery_count=0))
    unreadable = b"\x00\x53\x73\xc0\x06\x04\x40\x40\x40\x65" + b"\x00\x53\x77\xa1\x01m"
    readable = encode_message(properties=[None, None, None, "k"], body=(AMQP_VALUE, "m"))
    said = odd.say(*(
        write("transfer", 0, payload, handle=1, delivery_id=number, delivery_tag=b"t", settled=True)
        for number, payload in enumerate([unreadable, readable])
    ))  # fmt: skip
    assert [frame.payload for frame in said if frame.name == "transfer"] == [readable]
    assert odd.broker.queue("q").available == 1, "it waits for who does not look"


def test_what_is_settled_behind_a_message_that_closes_the_connection_goes_back() -> None:
    odd = Odd(Broker("odd", {"policy": {"max_message_size": 100}}, clock=lambda: 1.0))
    odd.say(write("begin", **BEGIN), attach(0, role=SENDER, target=composite("target", address="q"),
                                            initial_delivery_count=0), attach(1))  # fmt: skip
    small = encode_message(body=(AMQP_VALUE, "m"))
    odd.say(write("transfer", 0, small, handle=0, delivery_id=0, delivery_tag=b"t", settled=True))
    said = odd.say(write("flow", handle=1, delivery_count=0, link_credit=10, **FLOW))
    assert names(said) == ["transfer"] and odd.broker.queue("q").acquired == 1
    large = write("transfer", 0, small + bytes(100), handle=0, delivery_id=1, delivery_tag=b"u")
    said = odd.say(large, write("disposition", role=RECEIVER, first=0, settled=True, state=composite("accepted")))
    assert names(said)[-1] == "close" and said[-1].description == "Message size exceeded"
    assert odd.broker.queue("q").available == 1 and odd.broker.queue("q").acquired == 0


def test_a_link_that_comes_again_for_a_queue_where_it_had_a_topic_gets_a_queue() -> None:
    odd = Odd()
    topic = composite("source", dynamic=True, capabilities=["temporary-topic"])
    made = odd.say(write("begin", **BEGIN), attach(source=topic))[1].source.address
    odd.say(write("detach", handle=0))
    said = odd.say(attach(source=composite("source", address="$management")))
    assert names(said) == ["attach"]
    assert made not in [view.name for view in odd.broker.exchanges()], "nobody can come again for that"
    odd.say(write("detach", handle=0))
    (said_again,) = odd.say(attach(source=topic))
    assert odd.broker.exchange(said_again.source.address).type == "topic"


@pytest.mark.parametrize("ending", ["close", "end", "oversize", "lost"])
@pytest.mark.parametrize("mode", [0, 1])
def test_what_waits_for_the_window_of_a_peer_that_goes_is_there_again(ending: str, mode: int) -> None:
    odd = Odd(Broker("odd", {"policy": {"max_message_size": 100}}, clock=lambda: 1.0))
    target = composite("target", address="q")
    begin = write("begin", next_outgoing_id=0, incoming_window=0, outgoing_window=9)
    odd.say(begin, attach(0, role=SENDER, target=target, initial_delivery_count=0), attach(1, snd_settle_mode=mode))
    small = encode_message(body=(AMQP_VALUE, "m"))
    odd.say(write("transfer", 0, small, handle=0, delivery_id=0, delivery_tag=b"t", settled=True))
    window = {**FLOW, "next_incoming_id": 0, "incoming_window": 0}
    assert names(odd.say(write("flow", handle=1, delivery_count=0, link_credit=10, **window))) == []
    assert odd.broker.queue("q").acquired == 1, "on its way"
    if ending == "lost":
        odd.connection.receive_eof()
    elif ending == "oversize":
        odd.say(write("transfer", 0, bytes(200), handle=0, delivery_id=1, delivery_tag=b"u"))
    else:
        odd.say(write(ending))
    assert (odd.broker.queue("q").available, odd.broker.queue("q").acquired) == (1, 0)
