"""A post that is dropped with the end of its link or session: what was posted beside it is not committed alone.

What the broker ends, the peer has often sent more for. Nobody hears what became of that, and a post may have been sent
settled; so its transaction can only be rolled back, whether it came in the same octets, later, or in half.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jmsish.broker import Broker
from jmsish.broker.connection import ServerConnection
from jmsish.engine.outcomes import Declare, Discharge, encode_control
from tests.bench.herd import HUGE, opening
from tests.broker.world import Clock
from tests.wire.frames import RECEIVER, SENDER, composite, write

LIMIT = 1000
BODY = b"\x00\x53\x77\xa1\x04body"
LARGE = b"\x00\x53\x75\xb0" + LIMIT.to_bytes(4, "big") + bytes(LIMIT)
CONTROL, OTHER, LINK = 0, 1, 2
CHANNEL = 1
"""Of the session with the link that ends; the coordinator and what else is posted are in another one."""


def attach(handle: int, channel: int, target: object) -> bytes:
    source = composite("source")
    return write("attach", channel, name=f"link {handle}", handle=handle, role=SENDER, initial_delivery_count=0,
                 source=source, target=target)  # fmt: skip


class Post:
    """A transaction with one message posted on one session, and a link on another one."""

    def __init__(self, *, address: str | None = "q") -> None:
        policy = {"max_message_size": LIMIT, "on_oversize": "link"}
        self.broker = Broker("test", {"policy": policy, "queues": {"q": {}, "other": {}}}, clock=Clock())
        self.connection: ServerConnection = self.broker.accept(trusted=True, peer="10.0.0.7:1234")
        self.number = 0
        begin = write("begin", CHANNEL, next_outgoing_id=0, incoming_window=HUGE, outgoing_window=HUGE)
        target = composite("target", address=address) if address else composite("target")
        self.say(
            opening("c") + begin + attach(CONTROL, 0, composite("coordinator"))
            + attach(OTHER, 0, composite("target", address="other")) + attach(LINK, CHANNEL, target)
        )  # fmt: skip
        self.say(self.control(Declare()))
        self.txn = next(iter(self.connection.transactions))
        self.say(self.post(OTHER, 0))

    def say(self, octets: bytes) -> None:
        self.connection.receive(octets)
        self.broker.step()
        self.connection.take_output()

    def control(self, what: Declare | Discharge) -> bytes:
        return self.transfer(CONTROL, 0, encode_control(what))

    def transfer(self, handle: int, channel: int, payload: bytes, **fields: object) -> bytes:
        self.number += 1
        tag = self.number.to_bytes(4, "big")
        return write("transfer", channel, payload, handle=handle, delivery_id=self.number, delivery_tag=tag, **fields)

    def post(self, handle: int = LINK, channel: int = CHANNEL, payload: bytes = BODY, **fields: object) -> bytes:
        state = composite("transactional-state", txn_id=self.txn)
        return self.transfer(handle, channel, payload, state=state, **fields)

    def commit(self, of_q: int = 0) -> bool:
        """Whether what was posted beside it is there then."""
        (transaction,) = self.broker.transactions()
        lost = transaction.rollback_only
        self.say(self.control(Discharge(self.txn, False)))
        assert not self.broker.transactions() and not self.connection.ended
        assert self.broker.queue("q").depth == of_q
        committed = self.broker.queue("other").depth == 1
        assert committed is not lost
        return committed


def delete(post: Post) -> None:
    post.broker.delete_queue("q")


ENDINGS: dict[str, Callable[[Post], bytes]] = {
    "a message too large": lambda post: post.post(payload=LARGE),
    "a transaction that is none": lambda post: post.transfer(
        LINK, CHANNEL, BODY, state=composite("transactional-state", txn_id=b"made up")
    ),
    "a mode that the link has not": lambda post: post.transfer(LINK, CHANNEL, BODY, rcv_settle_mode=1),
    "no message at all": lambda post: post.transfer(LINK, CHANNEL, b"", settled=True),
    "a handle that is none": lambda post: post.transfer(77, CHANNEL, BODY),
}
"""What the broker answers by the end of the link, or of the session."""


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@pytest.mark.parametrize("together", [True, False], ids=["in the same octets", "later"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_post_behind_what_ends_its_link(ending: str, together: bool, settled: bool) -> None:
    post = Post()
    octets = ENDINGS[ending](post)
    if not together:
        post.say(octets)
        octets = b""
    post.say(octets + post.post(settled=settled))
    assert not post.commit()


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_one_the_others_go(ending: str) -> None:
    post = Post()
    post.say(ENDINGS[ending](post))
    assert post.commit()


def test_a_post_too_large_behind_one_too_large() -> None:
    post = Post()
    post.say(post.post(payload=LARGE) + post.post(payload=LARGE))
    assert not post.commit()


def test_a_post_behind_an_attach_that_is_refused() -> None:
    post = Post()
    refused = attach(9, CHANNEL, composite("target", address="jmsish.temporary.gone"))
    post.say(refused + post.post(9, settled=True))
    assert not post.commit()


@pytest.mark.parametrize("fault", [{"rcv_settle_mode": 1}, {"resume": True}], ids=["its mode", "resume"])
def test_the_post_itself_ends_its_link(fault: dict[str, object]) -> None:
    post = Post()
    post.say(post.post(settled=True, **fault))
    assert not post.commit()


def test_a_further_frame_of_it_ends_its_link() -> None:
    post = Post()
    first = post.post(payload=BODY[:5], settled=True, more=True)
    post.say(first + write("transfer", CHANNEL, BODY[5:], handle=LINK, message_format=7))
    assert not post.commit()


def test_a_further_frame_of_it_ends_its_session() -> None:
    post = Post()
    first = post.post(payload=BODY[:5], settled=True, more=True)
    post.say(first + write("transfer", CHANNEL, BODY[5:], handle=LINK, delivery_id=4_000_000))
    assert not post.commit()


@pytest.mark.parametrize("rest", [b"", "rest", "abort"], ids=["no more of it", "the rest", "an abort"])
@pytest.mark.parametrize("ending", ["link", "session"])
def test_half_a_post_when_its_link_ends(ending: str, rest: str | bytes) -> None:
    """The discharge is refused in the usual way: nobody waits for an end of it that would not be heard."""
    post = Post()
    post.say(post.post(payload=BODY[:5], settled=True, more=True))
    if ending == "link":
        delete(post)
        post.broker.declare_queue("q")
    else:
        post.say(post.transfer(77, CHANNEL, BODY))
    if rest == "rest":
        post.say(write("transfer", CHANNEL, BODY[5:], handle=LINK))
    elif rest == "abort":
        post.say(write("transfer", CHANNEL, handle=LINK, aborted=True))
    assert not post.commit()


def test_an_abort_in_one_frame_behind_it_was_never_part_of_it() -> None:
    post = Post()
    post.say(ENDINGS["a message too large"](post) + post.post(aborted=True))
    assert post.commit()


def test_half_a_post_whose_own_peer_ends_its_link() -> None:
    """It has taken it back by that (2.7.5), and knows."""
    post = Post()
    post.say(post.post(payload=BODY[:5], more=True) + write("detach", CHANNEL, handle=LINK, closed=True))
    assert post.commit()


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@pytest.mark.parametrize("together", [True, False], ids=["in the same octets", "later"])
def test_an_outcome_behind_what_ends_its_session(together: bool, settled: bool) -> None:
    """What the transaction has taken is taken with all that it has posted, or not at all."""
    post, outcome = taken()
    octets = ENDINGS["a handle that is none"](post)
    if not together:
        post.say(octets)
        octets = b""
    state = composite("transactional-state", txn_id=post.txn, outcome=composite("accepted"))
    post.say(octets + outcome(state, settled))
    assert not post.commit(of_q=1)


def test_an_outcome_of_no_transaction_behind_it_is_passed_over() -> None:
    post, outcome = taken()
    post.say(ENDINGS["a handle that is none"](post) + outcome(composite("accepted"), True))
    assert post.commit(of_q=1)


def taken() -> tuple[Post, Callable[[object, bool], bytes]]:
    """A message of the queue is out to a consumer in the session that will end; and what that may say of it."""
    post = Post()
    source = composite("source", address="q")
    post.say(post.transfer(LINK, CHANNEL, BODY, settled=True))
    post.say(
        write("attach", CHANNEL, name="r", handle=9, role=RECEIVER, source=source, target=composite("target"))
        + write("flow", CHANNEL, next_incoming_id=0, incoming_window=HUGE, next_outgoing_id=0, outgoing_window=HUGE,
                handle=9, delivery_count=0, link_credit=10)
    )  # fmt: skip
    assert post.broker.queue("q").acquired == 1
    return post, lambda state, settled: write(
        "disposition", CHANNEL, role=RECEIVER, first=0, settled=settled, state=state
    )


def test_what_cannot_be_read_for_an_ended_session_is_passed_over() -> None:
    post = Post()
    post.say(post.transfer(77, CHANNEL, BODY))
    post.say(write("transfer", CHANNEL, BODY))  # without a handle
    assert post.commit()
