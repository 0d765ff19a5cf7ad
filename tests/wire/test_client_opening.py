"""What a client says when it opens a connection, and what it bears of the answer (M31 to M42, M92)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish._facade import make_core
from jmsish.engine.engine import Engine
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.performatives import Open
from jmsish.engine.sasl import SaslServer
from jmsish.errors import ConnectionLostError, InvalidClientIDError
from jmsish.modes import AcknowledgeMode
from jmsish.options import parse_url
from jmsish.types import Symbol

from .peer import Peer, message

ELSEWHERE = {Symbol("network-host"): "b.example", Symbol("port"): 5671, Symbol("hostname"): "b"}


def said_in_open(url: str) -> Open:
    """The open that a broker gets for a URL."""
    core = make_core(parse_url(url), None)
    broker = Engine(server=True, container_id="b", sasl=SaslServer(["ANONYMOUS"], lambda *credentials: "anybody"))
    next(core.open())
    for _ in range(4):
        broker.receive(core.take_output())
        core.receive(broker.take_output())
    assert broker.remote is not None
    return broker.remote


def test_m42_frames_of_a_mebibyte_and_half_of_a_minute() -> None:
    """The half is what the standard wants to be advertised (Part 2, 2.4.5); Broker-J refuses less than 1000 ms."""
    opened = said_in_open("amqp://broker.example")
    assert (opened.max_frame_size, opened.idle_time_out) == (1 << 20, 30_000)


@pytest.mark.parametrize(("seconds", "milliseconds"), [(0, None), (2, 1000), (0.5, 250)])
def test_m42_the_idle_time_out_that_was_chosen(seconds: float, milliseconds: int | None) -> None:
    """As it was chosen, also where some broker wants more: that one says so itself."""
    opened = said_in_open(f"amqp://broker.example?amqp.idleTimeout={round(seconds * 1000)}")
    assert opened.idle_time_out == milliseconds


def test_m42_the_largest_frame_of_the_broker_is_kept_to() -> None:
    """Artemis takes 128 KiB; one message makes as many frames as it needs."""
    peer = Peer()
    peer.core.engine.max_frame_out = 512
    producer = peer.producer(peer.session(AcknowledgeMode.AUTO))
    peer.run(producer.send(b"\x00\x53\x75\xb0\x00\x00\x04\x00" + bytes(1024), None))
    sizes = [len(frame.octets) for frame in peer.frames if frame.name == "transfer"]
    assert len(sizes) == 3 and max(sizes) <= 512


def test_m39_a_list_of_other_brokers_is_borne() -> None:
    """Artemis names its backup so: a list of maps among the properties of its open."""
    properties: dict[str, Any] = {"product": "other", "failover-server-list": [ELSEWHERE, ELSEWHERE]}
    peer = Peer(properties=properties)
    remote = peer.core.engine.remote
    assert remote is not None and remote.properties == properties
    consumer = peer.consumer(peer.session(AcknowledgeMode.AUTO))
    peer.give(1)
    assert peer.receive(consumer, 1) == [message(1)]


def test_m37_m40_a_redirect_is_not_followed() -> None:
    """Neither from TLS to plain nor otherwise: the connection is lost, and the error says where the broker is."""
    peer = Peer()
    told: list[Any] = []
    peer.core.exception_listener = told.append
    peer.engine.close(AmqpError("amqp:connection:redirect", "I am over there", ELSEWHERE))
    peer.pump()
    (call, (error,)) = peer.core.calls[-1]
    assert call == told.append and isinstance(error, ConnectionLostError)
    assert (error.condition, error.info) == ("amqp:connection:redirect", ELSEWHERE)


def test_m46_m92_every_link_asks_for_settling_first() -> None:
    """So a broker that always answers `first` (Artemis) takes nothing away."""
    peer = Peer()
    session = peer.session()
    peer.consumer(session)
    peer.producer(session)
    attached = [frame for frame in peer.frames if frame.name == "attach"]
    assert len(attached) == 3 and {frame.rcv_settle_mode or 0 for frame in attached} == {0}


def test_m31_what_jms_asks_of_a_broker() -> None:
    """In this spelling, hyphens and underscore."""
    desired = {str(each) for each in said_in_open("amqp://broker.example").desired_capabilities}
    assert desired == {"sole-connection-for-container", "DELAYED_DELIVERY", "ANONYMOUS-RELAY", "SHARED-SUBS"}


@pytest.mark.parametrize(
    ("query", "hostname"),
    [("", "broker.example"), ("?amqp.vhost=orders", "orders"), ("?amqp.vhost=", None)],
)
def test_m32_the_virtual_host_is_the_host_unless_another_is_named(query: str, hostname: str | None) -> None:
    """An empty one is none at all."""
    assert said_in_open("amqp://broker.example" + query).hostname == hostname


def test_m32_the_container_is_the_client_id_and_else_one_of_its_own() -> None:
    """So that two connections without a client id are never one container."""
    target = parse_url("vm://b")
    assert make_core(target, "ann").engine.container_id == "ann"
    names = {make_core(target, None).engine.container_id for _ in range(2)}
    assert len(names) == 2 and all(names)


def test_m33_product_version_and_platform() -> None:
    """What a broker may show of its connections."""
    properties = said_in_open("amqp://broker.example").properties
    assert properties is not None and set(properties) == {"product", "version", "platform", "shared-windows"}
    assert properties["product"] == "jmsish" and str(properties["platform"]).startswith("Python ")


@pytest.mark.parametrize("marker", [True, "true"])
def test_m35_m36_a_close_that_was_announced_is_waited_for(marker: bool | str) -> None:
    """An open that says so is no success yet, and the reason comes behind it; Artemis says it as a text."""
    core = make_core(parse_url("vm://b"), "ann")
    broker = Engine(server=True, container_id="b", properties={"amqp:connection-establishment-failed": marker})
    opened, _ = next(core.open())
    broker.receive(core.take_output())
    broker.open()
    core.receive(broker.take_output())
    assert not opened.done()
    broker.close(AmqpError("amqp:invalid-field", "it is in use", {Symbol("invalid-field"): Symbol("container-id")}))
    core.receive(broker.take_output())
    assert isinstance(opened.exception(), InvalidClientIDError)
