"""Tokens at the node $cbs, before links are attached and before they run out (Azure Service Bus)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from jmsish._facade import engine_maker
from jmsish.client.cbs import LIFETIME, TokenNode, authorised_again
from jmsish.client.consumer import ClientConsumer
from jmsish.client.producer import ClientProducer
from jmsish.destination import Queue
from jmsish.engine.outcomes import ACCEPTED, AmqpError
from jmsish.engine.received import ReceivedMessage
from jmsish.engine.values import NULL, encode, encode_described, encode_list, encode_map, encode_string
from jmsish.errors import ConnectionLostError, JMSSecurityError
from jmsish.modes import AcknowledgeMode
from jmsish.options import parse_url
from jmsish.profiles.shared_access import AccessKey

from .peer import Peer

AUTO = AcknowledgeMode.AUTO


class Azure(Peer):
    """A peer that has a node $cbs."""

    def __init__(self, **options: Any) -> None:
        self.put: list[dict[str, Any]] = []
        self.status = 202
        super().__init__(**options)
        self.core.engine.hostname = "ns.servicebus.windows.net"

    def with_key(self) -> Azure:
        self.core.cbs = TokenNode(self.core, AccessKey("root", "secret").token)
        return self

    def _delivered(self, link: Any, delivery: Any) -> None:
        if getattr(link.remote_target, "address", None) != "$cbs":
            link.session.disposition(delivery, ACCEPTED, True)
            return
        request = ReceivedMessage(delivery.payload)
        self.put.append({**request.application_properties(), "token": request.body()[1]})
        properties = encode_list([NULL] * 5 + [encode_string(str(request.property(0)))])
        said = [encode_string("status-code"), encode(self.status)]
        said += [encode_string("status-description"), encode_string("as I like it")]
        answers = next(each for each in self.links if each.remote_source.address == "$cbs")
        answers.send(
            encode_described(0x73, properties) + encode_described(0x74, encode_map(said))
            + encode_described(0x77, NULL)
        )  # fmt: skip


def consumer_of(peer: Azure, name: str) -> ClientConsumer:
    consumer = ClientConsumer(peer.session(AUTO), Queue(name), prefetch=1)
    peer.run(consumer.session.add_consumer(consumer))
    return consumer


def test_a_token_is_put_before_the_link_is_attached() -> None:
    peer = Azure().with_key()
    session = peer.session(AUTO)
    peer.frames.clear()
    peer.run(ClientProducer(session, Queue("orders")).attach())
    (put,) = peer.put
    assert (put["operation"], put["type"]) == ("put-token", "servicebus.windows.net:sastoken")
    assert put["name"] == "amqp://ns.servicebus.windows.net/orders"
    assert put["token"].startswith("SharedAccessSignature sr=amqp%3A%2F%2Fns.servicebus.windows.net%2Forders&sig=")
    targets = [str(f.fields["target"].address) for f in peer.frames if f.name == "attach" and f.fields.get("target")]
    assert targets[0] == "$cbs" and targets[-1] == "orders"


def test_one_token_for_each_address_and_one_pair_of_links() -> None:
    peer = Azure().with_key()
    for name in ("a", "a", "b"):
        consumer_of(peer, name)
    assert [put["name"].rpartition("/")[2] for put in peer.put] == ["a", "b"]
    assert len([each for each in peer.links if each.remote_source.address == "$cbs"]) == 1


def test_a_refused_token_is_an_error_of_the_link_and_is_put_again_next_time() -> None:
    peer = Azure().with_key()
    peer.status = 401
    with pytest.raises(JMSSecurityError, match="takes no token of ours: as I like it"):
        consumer_of(peer, "a")
    peer.status = 200
    consumer_of(peer, "a")
    assert len(peer.put) == 2


def test_a_token_is_renewed_before_it_runs_out() -> None:
    peer = Azure().with_key()
    consumer_of(peer, "a")
    due = peer.core.tick(1.0)
    assert due is not None and due == pytest.approx(0.8 * LIFETIME)
    peer.core.tick(due)
    peer.pump()
    assert len(peer.put) == 2 and peer.core.failure is None
    following = peer.core.tick(due + 1)
    assert following is not None and following > due


def test_a_renewal_that_is_refused_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    peer = Azure().with_key()
    consumer_of(peer, "a")
    peer.status = 401
    with caplog.at_level(logging.WARNING, "jmsish.client"):
        peer.core.tick(LIFETIME)
        peer.pump()
    assert "a token was not renewed" in caplog.text and "secret" not in caplog.text


def test_the_application_is_asked_for_another_token_outside_of_the_ownership() -> None:
    peer = Azure()
    peer.core.cbs = TokenNode(peer.core, lambda audience, expiry: "first", lambda: "second")
    consumer_of(peer, "a")
    assert peer.put[0]["type"] == "jwt" and peer.put[0]["token"] == "first"
    peer.core.calls.clear()
    assert peer.core.tick(LIFETIME) is not None
    ((ask, arguments),) = peer.core.calls
    peer.core.tick(LIFETIME + 0.5)
    assert len(peer.core.calls) == 1 and len(peer.put) == 1, "asked once"
    ask(*arguments)
    peer.core.tick(LIFETIME + 1)
    peer.pump()
    assert peer.put[-1]["token"] == "second"


def test_an_application_without_another_token_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    def none() -> str:
        raise JMSSecurityError("none today")

    peer = Azure()
    peer.core.cbs = TokenNode(peer.core, lambda audience, expiry: "first", none)
    consumer_of(peer, "a")
    peer.core.calls.clear()
    peer.core.tick(LIFETIME)
    with caplog.at_level(logging.WARNING, "jmsish.client"):
        for number in range(1, 4):
            assert len(peer.core.calls) == number
            peer.core.calls[-1][0]()
            peer.core.tick(LIFETIME + number * 60)
            assert len(peer.core.calls) == number, "not at once"
            peer.core.tick(LIFETIME + number * 60 + 30)
    assert caplog.text.count("no token to renew the old one with") == 1, "told once"


@pytest.mark.parametrize("wrong", [JMSSecurityError("none today"), TypeError("None"), ValueError("empty")], ids=repr)
def test_whatever_is_given_in_place_of_a_token_it_is_asked_for_again(wrong: Exception) -> None:
    given: list[Any] = [wrong, "second"]

    def fetch() -> str:
        found = given.pop(0)
        if isinstance(found, Exception):
            raise found
        return str(found)

    peer = Azure()
    peer.core.cbs = TokenNode(peer.core, lambda audience, expiry: "first", fetch)
    consumer_of(peer, "a")
    peer.core.calls.clear()
    for later in (0, 60, 120, 180):
        peer.core.tick(LIFETIME + later)
        for ask, arguments in peer.core.calls:
            ask(*arguments)
        peer.core.calls.clear()
    peer.pump()
    assert peer.put[-1]["token"] == "second"


def test_a_coroutine_function_is_awaited_where_listeners_are() -> None:
    async def fetch() -> str:
        return "second"

    peer = Azure()
    peer.core.cbs = TokenNode(peer.core, lambda audience, expiry: "first", fetch)
    consumer_of(peer, "a")
    peer.core.calls.clear()
    peer.core.tick(LIFETIME)
    asyncio.run(peer.core.calls[0][0]())
    peer.core.tick(LIFETIME + 1)
    peer.pump()
    assert peer.put[-1]["token"] == "second"


def test_what_the_broker_has_taken_outlives_the_links_it_came_by() -> None:
    """They are idle, and it closes them; the token is put anew when its time comes, by new ones."""
    peer = Azure().with_key()
    consumer_of(peer, "a")
    for link in [each for each in peer.links if "$cbs" in (each.remote_source.address, each.remote_target.address)]:
        link.detach(closed=True, error=AmqpError("amqp:link:detach-forced", "idle"))
    peer.pump()
    consumer_of(peer, "a")
    assert len(peer.put) == 1, "it holds on"
    peer.core.tick(LIFETIME)
    peer.pump()
    assert len(peer.put) == 2 and peer.core.failure is None


def test_a_connection_that_is_made_again_brings_a_new_token() -> None:
    """That of the last one may have run out while it was away."""
    place = parse_url("failover:(amqps://ns.servicebus.windows.net)", cbs=True, token=lambda: "asked").targets[0]
    peer = Azure()
    peer.core.cbs = TokenNode(peer.core, lambda audience, expiry: "old")
    engine_maker(peer.core, place, "new", None)("container")
    consumer_of(peer, "a")
    assert peer.put[0]["token"] == "new"


def test_who_waits_for_a_token_hears_of_the_loss() -> None:
    peer = Azure().with_key()
    session = peer.session(AUTO)
    steps = ClientProducer(session, Queue("a")).attach()
    peer.begin(steps)
    peer.core.fail(ConnectionLostError("cut"))
    with pytest.raises(ConnectionLostError):
        peer.run(steps)


def test_without_the_option_nothing_is_put() -> None:
    peer = Azure()
    consumer_of(peer, "a")
    assert peer.put == []


def test_on_a_new_connection_all_tokens_are_put_again() -> None:
    peer = Azure().with_key()
    consumer_of(peer, "a")
    consumer_of(peer, "b")
    peer.run(authorised_again(peer.core, ["a", "b"]))
    assert [put["name"].rpartition("/")[2] for put in peer.put] == ["a", "b", "a", "b"]
