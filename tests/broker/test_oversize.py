"""Messages beyond the maximum size: what is refused, what becomes of the rest, and what is counted (DISPATCH-975)."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.choosing import SLICE
from jmsish.broker.guests import FAREWELL
from jmsish.engine.outcomes import ACCEPTED, AmqpError, Declare, Modified, Rejected, Source, Target, TransactionalState
from jmsish.engine.values import NULL, encode_described, encode_string
from tests.broker.pubsub import subscriber
from tests.broker.test_management import request
from tests.broker.world import Peer, Sender, World, in_transaction, properties
from tests.wire.frames import composite, write
from tests.wire.raw import MemoryLine, RawPeer, error

LIMIT = 1000
EXCEEDED = "amqp:link:message-size-exceeded"
MODES = ["connection", "link"]
TAKEN_WITH_TEN = 10


def limited(limit: int = LIMIT, on_oversize: str = "connection", **more: Any) -> World:
    return World({"policy": {"max_message_size": limit, "on_oversize": on_oversize}, **more})


def sized(size: int, to: str | None = None) -> bytes:
    """A message of so many octets."""
    head = b"" if to is None else encode_described(0x73, b"\xc0" + bytes([len(to) + 5, 3]) + b"\x40\x40" + _text(to))
    rest = size - len(head) - 8
    body = b"\x00\x53\x77\xb1" + rest.to_bytes(4, "big") + b"x" * rest
    assert len(head + body) == size
    return head + body


def _text(value: str) -> bytes:
    return b"\xa1" + bytes([len(value)]) + value.encode()


def post(sender: Sender, size: int, **options: Any) -> list[Any]:
    answers = sender.transfer(sized(size), **options)
    sender.world.run()
    return answers


def closed_for_size(peer: Peer) -> bool:
    [error] = peer.closed
    assert error is not None
    return (error.condition, error.description) == ("amqp:connection:forced", "Message size exceeded")


def rejected_for_size(answers: list[Any]) -> bool:
    [outcome] = answers
    if isinstance(outcome, TransactionalState):
        outcome = outcome.outcome
    assert isinstance(outcome, Rejected) and outcome.error is not None
    return (outcome.error.condition, outcome.error.description) == (EXCEEDED, "Message size exceeded")


def ended_for_size(sender: Any) -> bool:
    assert sender.detached and sender.error is not None
    assert sender.error.info == {"max-message-size": sender.world.broker.config.max_message_size}
    return (sender.error.condition, sender.error.description) == (EXCEEDED, "Message size exceeded")


# -- what is too large -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize(("size", "taken"), [(LIMIT - 1, True), (LIMIT, True), (LIMIT + 1, False)])
def test_exactly_the_limit_passes_and_one_octet_more_does_not(size: int, taken: bool, settled: bool, mode: str) -> None:
    world = limited(on_oversize=mode)
    peer = world.connect()
    sender = peer.sender()
    answers = post(sender, size, settled=settled)
    assert world.queue().depth == (1 if taken else 0)
    if taken:
        assert answers == ([] if settled else [ACCEPTED]) and not sender.detached and not peer.closed
        return
    # Of a message sent settled only the link and the connection can tell (exchanges and policy, 3.4).
    assert answers == [] if settled else rejected_for_size(answers)
    assert ended_for_size(sender)
    assert peer.closed == [] if mode == "link" else closed_for_size(peer)


@pytest.mark.parametrize("section", ["annotations", "properties", "footer"])
def test_all_sections_count(section: str) -> None:
    """Header, annotations, properties, body and footer: a body of one octet may be too much around it."""
    code, filling = {"annotations": 0x72, "properties": 0x74, "footer": 0x78}[section], LIMIT - 100
    entry = (b"\xa3\x01k" if section != "properties" else b"\xa1\x01k") + encode_string("v" * filling)
    around = encode_described(code, b"\xd1" + (len(entry) + 4).to_bytes(4, "big") + b"\0\0\0\x02" + entry)
    body = encode_described(0x77, encode_string("b"))
    payload = body + around if section == "footer" else around + body
    for limit, taken in ((len(payload), True), (len(payload) - 1, False)):
        world = limited(limit)
        sender = world.connect().sender()
        sender.transfer(payload)
        world.run()
        assert sender.detached is not taken and world.queue().depth == taken


@pytest.mark.parametrize("limit", [2**31, 2**32, 2**63 - 1, 2**64 - 1])
def test_limits_of_more_than_31_bits_let_small_messages_pass(limit: int) -> None:
    """DISPATCH-1645: a signed count of 32 bits refused everything."""
    world = limited(limit)
    sender = world.connect().sender()
    assert sender.link.remote_max_message_size == limit
    assert post(sender, 200) == [ACCEPTED] and post(sender, 200_000) == [ACCEPTED]


@pytest.mark.parametrize("wrong", [-1, -(2**31), 2**64, True, "1000", 1.5, None])
def test_what_is_no_size_is_refused_at_load(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="max_message_size"):
        limited(wrong)


def test_what_is_no_mode_is_refused_at_load() -> None:
    with pytest.raises(ValueError, match="on_oversize"):
        limited(on_oversize="session")


def test_without_a_limit_nothing_is_too_large_and_nothing_is_announced() -> None:
    world = limited(0)
    sender = world.connect().sender()
    assert sender.link.remote_max_message_size == 0
    assert post(sender, 3_000_000) == [ACCEPTED]


def test_the_peer_s_own_field_says_nothing_of_what_it_may_send() -> None:
    """A sender that announces 10 octets, or 2^40, is measured by the broker's limit."""
    world = limited()
    for own in (10, 1 << 40):
        sender = world.connect().sender(max_message_size=own)
        assert post(sender, LIMIT) == [ACCEPTED]
        post(sender, LIMIT + 1)
        assert ended_for_size(sender)


def test_what_a_receiver_announces_is_obeyed_when_sending_to_it() -> None:
    """It limits what goes out on its link and nothing else (2.7.3)."""
    world = limited()
    peer = world.connect()
    small, sender = peer.receiver(credit=5, max_message_size=300), peer.sender()
    assert post(sender, LIMIT) == [ACCEPTED] and post(sender, 300) == [ACCEPTED]
    assert [len(delivery.payload) for delivery in small.take()] == [300]


def test_a_browser_is_not_shown_what_is_more_than_it_takes() -> None:
    """It would have to end the link for it, and would never see what is behind."""
    world = limited()
    peer = world.connect()
    sender = peer.sender()
    for size in (100, LIMIT, 300, 301, 200):
        assert post(sender, size) == [ACCEPTED]
    browser = peer.receiver(distribution_mode="copy", max_message_size=300)
    browser.flow(4, drain=True)
    assert [len(delivery.payload) for delivery in browser.take()] == [100, 300, 200]
    assert browser.link.credit == 0 and world.depth() == (5, 0)


@pytest.mark.parametrize("mode", ["copy", "move"])
def test_what_is_more_than_a_receiver_takes_holds_nobody_up_and_leaves_no_trace(mode: str) -> None:
    """A slice of a deep queue at a time, as where it selects; and nothing is kept of it for each message, or those that
    come and go again and again would fill the memory."""
    world = limited()
    peer = world.connect()
    sender = peer.sender()
    for _ in range(SLICE + 1):
        if not sender.link.credit:
            world.run()
        sender.transfer(sized(LIMIT))
    post(sender, 300)
    receiver = peer.receiver(distribution_mode=mode, max_message_size=300)
    receiver.flow(5, run=False)
    peer.speak()
    world.broker.step()
    assert world.broker.unfinished
    peer.hear()
    assert receiver.arrived == []
    world.run()
    assert [len(delivery.payload) for delivery in receiver.take()] == [300]
    queue = world.broker.router.queues["q"]
    assert queue.barred == 0 and all(history is None for _, history in queue.places(False))


def test_a_header_that_a_message_got_here_counts_for_its_receiver() -> None:
    """Of exactly the size at first; given back as failed it has a count, and is for others."""
    world = limited()
    peer = world.connect()
    post(peer.sender(), 300)
    receiver = peer.receiver(credit=1, max_message_size=300)
    receiver.dispose(receiver.take(), Modified(delivery_failed=True))
    assert receiver.drain() == [] and world.depth() == (1, 0)
    browser = peer.receiver(distribution_mode="copy", max_message_size=300)
    assert browser.drain() == []
    other = peer.receiver(credit=1, max_message_size=320)
    (delivery,) = other.take()
    assert 300 < len(delivery.payload) <= 320


def test_of_a_group_what_is_more_than_its_owner_takes_is_passed_over() -> None:
    """As what it does not select."""
    world = limited()
    peer = world.connect()
    sender = peer.sender()
    for number, size in enumerate((LIMIT, 10, LIMIT, 10)):
        group = properties(*[NULL] * 10, encode_string("g"))
        sender.send("x" * (size // 10) + str(number), properties=group)
    small = peer.receiver(credit=9, max_message_size=60)
    assert [body[-1] for body in small.receive()] == ["1", "3"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("size", "counted"), [(LIMIT, 0), (LIMIT + 1, 1)])
def test_what_comes_with_the_open_and_is_taken_back_is_measured(mode: str, size: int, counted: int) -> None:
    """Before the limit of this connection was known: "an abort beyond the limit is still oversize" (W10)."""
    world = limited(on_oversize=mode)
    peer = RawPeer(MemoryLine(world.broker, trusted=True))
    target = composite("target", address="q")
    peer.send(
        b"AMQP\x00\x01\x00\x00",
        write("open", container_id="c"),
        write("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100),
        write("attach", name="l", handle=0, role=False, target=target, initial_delivery_count=0),
        write("transfer", payload=sized(size), handle=0, delivery_id=0, delivery_tag=b"a", more=True),
        write("transfer", handle=0, aborted=True),
    )
    passed = ("header", "open", "begin", "attach", "flow")
    if counted:
        peer.expect("detach", but=passed, error=error(EXCEEDED))
        if mode == "connection":
            peer.expect("close", error=error("amqp:connection:forced"))
    assert world.broker.denials.max_message_size_denied == counted
    assert world.depth() == (0, 0)


# -- where it is announced ---------------------------------------------------------------------------------------------


def test_every_link_on_which_the_peer_sends_says_so_and_no_other() -> None:
    """The relay, the management node and the coordinator make no exception: Part 4 names none for its link."""
    world = limited()
    peer = world.connect()
    for sender in (peer.sender("q"), peer.sender(None), peer.sender("$management"), peer.sender("amq.topic/a"),
                   peer.controller()):  # fmt: skip
        assert sender.link.remote_max_message_size == LIMIT, sender.link
    for receiver in (peer.receiver("q"), subscriber(peer), peer.receiver("$management")):
        assert receiver.link.remote_max_message_size == 0


# -- what ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_other_links_and_sessions_of_the_connection(mode: str) -> None:
    """With the connection they all go; in link mode they go on as if nothing had been."""
    world = limited(on_oversize=mode)
    peer = world.connect()
    second = peer.begin()
    here, there, guilty = peer.sender("a"), peer.sender("b", session=second), peer.sender("c")
    reader = peer.receiver("a", credit=10)
    post(guilty, LIMIT + 1)
    if mode == "connection":
        assert closed_for_size(peer) and world.broker.connections() == []
        return
    assert guilty.detached and not here.detached and not there.detached
    assert post(here, LIMIT) == [ACCEPTED] and post(there, LIMIT) == [ACCEPTED]
    assert len(reader.take()) == 1
    assert post(peer.sender("c"), LIMIT) == [ACCEPTED]


@pytest.mark.parametrize("mode", MODES)
def test_what_was_sent_before_keeps_its_outcome_and_what_came_after_is_nowhere(mode: str) -> None:
    """All in one write. A link that is closed takes nothing, nor a connection."""
    world = limited(on_oversize=mode)
    peer = world.connect()
    sender, other = peer.sender(), peer.sender("other")
    before = [sender.transfer(sized(100)) for _ in range(3)]
    guilty = sender.transfer(sized(LIMIT + 1))
    after = [sender.transfer(sized(100)) for _ in range(3)]
    beside = other.transfer(sized(100))
    world.run()
    assert before == [[ACCEPTED]] * 3 and after == [[]] * 3 and rejected_for_size(guilty)
    assert world.queue().depth == 3
    assert (beside, world.queue("other").depth) == (([ACCEPTED], 1) if mode == "link" else ([], 0))


def test_nothing_dropped_is_kept_with_its_session() -> None:
    """What was read behind a refused message and dropped with its link does not stay until the session ends."""
    world = limited(on_oversize="link")
    peer = world.connect()
    for _ in range(5):
        sender = peer.sender()
        sender.transfer(sized(LIMIT + 1))
        for _ in range(10):
            sender.transfer(sized(LIMIT))
        world.run()
        assert sender.detached
    [session] = peer.connection._sessions
    assert session.incoming == {}


@pytest.mark.parametrize("mode", MODES)
def test_a_new_connection_or_link_sends_the_next_message(mode: str) -> None:
    world = limited(on_oversize=mode)
    peer = world.connect("same")
    post(peer.sender(), LIMIT + 1)
    if mode == "connection":
        peer = world.connect("same")
    assert post(peer.sender(), LIMIT) == [ACCEPTED] and world.queue().depth == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_source_without_rejected_hears_of_it_by_the_link_alone(mode: str) -> None:
    world = limited(on_oversize=mode)
    sender = world.connect().sender(source=Source(address="here", outcomes=("amqp:accepted:list",)))
    assert post(sender, LIMIT + 1) == [] and ended_for_size(sender)


def test_what_the_connection_had_received_goes_back() -> None:
    """To be closed for a message too large is a loss like others: what was unsettled is there again."""
    world = limited()
    peer = world.connect()
    sender = peer.sender()
    post(sender, 100)
    receiver = peer.receiver(credit=5)
    assert len(receiver.take()) == 1 and world.depth() == (0, 1)
    post(sender, LIMIT + 1)
    assert world.depth() == (1, 0)


# -- the end of the connection -----------------------------------------------------------------------------------------


def test_who_does_not_answer_the_close_is_waited_for_no_longer_than_a_second() -> None:
    """What it still sends is read and dropped meanwhile (W10)."""
    world = limited()
    peer = world.connect()
    sender = peer.sender()
    sender.transfer(sized(LIMIT + 1))
    connection = peer.connection
    world.peers.remove(peer)
    peer.speak()
    world.broker.step()
    assert connection.take_output() and not connection.closed
    due = connection.tick(world.monotonic)
    assert due == world.monotonic + FAREWELL
    sender.transfer(sized(LIMIT))
    peer.speak()
    assert connection.tick(world.monotonic + 0.9) == due and not connection.closed
    connection.tick(due)
    assert connection.closed and "q" not in [queue.name for queue in world.broker.queues() if queue.depth]


def test_who_answers_the_close_is_not_waited_for() -> None:
    world = limited()
    peer = world.connect()
    post(peer.sender(), LIMIT + 1)
    assert peer.connection.closed and peer.connection.tick(world.monotonic) is None


# -- transactions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [False, True])
def test_a_transaction_ends_with_its_connection(settled: bool) -> None:
    world = limited()
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    post(sender, 100, state=in_transaction(txn), settled=settled)
    answers = post(sender, LIMIT + 1, state=in_transaction(txn), settled=settled)
    assert answers == [] if settled else rejected_for_size(answers)
    assert closed_for_size(peer) and world.broker.transactions() == [] and world.queue().depth == 0


def test_t57_a_settled_message_that_is_too_large_lets_its_transaction_no_longer_commit() -> None:
    """In link mode the connection stays, and with it the transaction: its other message must not go alone."""
    world = limited(on_oversize="link")
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    post(sender, 100, state=in_transaction(txn), settled=True)
    post(sender, LIMIT + 1, state=in_transaction(txn), settled=True)
    assert ended_for_size(sender)
    assert controller.commit(txn) == "amqp:transaction:rollback" and world.queue().depth == 0


def test_t58_who_is_told_that_it_is_rejected_may_commit_the_rest() -> None:
    world = limited(on_oversize="link")
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    post(sender, 100, state=in_transaction(txn))
    answers = post(sender, LIMIT + 1, state=in_transaction(txn))
    assert isinstance(answers[0], TransactionalState) and answers[0].txn_id == txn and rejected_for_size(answers)
    assert ended_for_size(sender)
    assert controller.commit(txn) is None and world.queue().depth == 1


@pytest.mark.parametrize("mode", MODES)
def test_one_in_an_unknown_transaction_is_too_large_first(mode: str) -> None:
    world = limited(on_oversize=mode)
    sender = world.connect().sender()
    assert rejected_for_size(post(sender, LIMIT + 1, state=in_transaction(b"none"))) and ended_for_size(sender)


@pytest.mark.parametrize("mode", MODES)
def test_a_control_message_that_is_too_large_ends_its_link_and_what_was_declared(mode: str) -> None:
    world = limited(on_oversize=mode)
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    post(sender, 100, state=in_transaction(txn), settled=True)
    answers: list[Any] = []
    controller.link.send(sized(LIMIT + 1), context=answers)
    world.run()
    assert rejected_for_size(answers) and ended_for_size(controller)
    assert world.broker.transactions() == [] and world.queue().depth == 0
    assert peer.closed == [] if mode == "link" else closed_for_size(peer)


@pytest.mark.parametrize("limit", [64, 100])
def test_declare_and_discharge_are_small(limit: int) -> None:
    """No limit under which messages are of any use stands in the way of transactions."""
    world = limited(limit)
    peer = world.connect()
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    sender.send("m1", state=in_transaction(txn))
    assert controller.commit(txn) is None and world.bodies() == ["m1"]
    assert controller.command(Declare()) != []


# -- relay, management, topics -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_anonymous_relay(mode: str) -> None:
    world = limited(on_oversize=mode)
    sender = world.connect().sender(None)
    answers = [sender.transfer(sized(size, to="q")) for size in (LIMIT, LIMIT + 1)]
    world.run()
    assert answers[0] == [ACCEPTED] and rejected_for_size(answers[1]) and ended_for_size(sender)
    assert world.queue().depth == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_request_to_the_management_node(mode: str) -> None:
    world = limited(on_oversize=mode)
    peer = world.connect()
    answers = peer.receiver("$management", credit=5, target=Target(address="back"))
    sender = peer.sender("$management")
    small = request("CREATE", "queue", {}, name="made")
    large = request("CREATE", "queue", {"dead_letter": "x" * LIMIT}, name="not-made")
    assert len(small) <= LIMIT < len(large)
    told = [sender.transfer(payload) for payload in (small, large)]
    world.run()
    assert told[0] == [ACCEPTED] and rejected_for_size(told[1]) and ended_for_size(sender)
    assert [queue.name for queue in world.broker.queues() if "made" in queue.name] == ["made"]
    assert len(answers.take()) == (1 if mode == "link" else 0)


@pytest.mark.parametrize("mode", MODES)
def test_of_three_subscribers_none_gets_a_part_and_one_amid_a_message_is_unhurt(mode: str) -> None:
    """Nothing is forwarded before it is whole, so there is no copy to be aborted; the third has no credit at all."""
    world = limited(200_000, on_oversize=mode)
    publisher = world.connect().sender("news", target=Target(address="news", capabilities=("topic",)))
    slow_peer = world.connect(max_frame_size=512, incoming_window=20)
    slow, fast, blocked = subscriber(slow_peer), subscriber(world.connect()), subscriber(world.connect(), credit=0)
    publisher.transfer(sized(150_000))
    world.peers.remove(slow_peer)
    world.run()
    slow_peer.speak()
    world.broker.step()
    slow_peer.hear()
    assert slow.link.current is not None, "it has begun to receive"
    publisher.transfer(sized(200_001))
    world.run()
    assert ended_for_size(publisher)
    world.peers.append(slow_peer)
    world.run()
    assert [len(each.payload) for each in slow.take()] == [len(each.payload) for each in fast.take()] == [150_000]
    assert blocked.take() == [] and slow.link.current is None
    blocked.flow(10)
    assert [len(each.payload) for each in blocked.take()] == [150_000]
    again = world.connect().sender("news", target=Target(address="news", capabilities=("topic",)))
    assert post(again, 200_000) == [ACCEPTED]
    assert [len(each.payload) for each in slow.take()] == [len(each.payload) for each in fast.take()] == [200_000]


def test_a_blocked_receiver_changes_nothing() -> None:
    """The count moves with what comes in, whoever takes it out."""
    world = limited()
    peer = world.connect()
    peer.receiver(credit=0)
    sender = world.connect().sender()
    for _ in range(TAKEN_WITH_TEN):
        assert post(sender, LIMIT) == [ACCEPTED]
    post(sender, LIMIT + 1)
    assert ended_for_size(sender) and world.queue().depth == TAKEN_WITH_TEN and peer.closed == []


# -- counted -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_each_refusal_counts_once(mode: str) -> None:
    world = limited(on_oversize=mode)
    denials = world.broker.denials
    for number in range(1, 4):
        peer = world.connect()
        post(peer.sender(), LIMIT)
        post(peer.sender(), LIMIT + 1)
        vhost = denials.vhost(peer.connection.grant.vhost)
        assert (denials.max_message_size_denied, denials.total_denials, vhost.max_message_size_denied) == (number,) * 3
    denials.reset()
    assert (denials.max_message_size_denied, denials.total_denials, vhost.max_message_size_denied) == (0, 0, 0)


def test_no_error_shows_what_was_in_the_message() -> None:
    world = limited(on_oversize="link")
    sender = world.connect().sender()
    post(sender, LIMIT + 1)
    assert isinstance(sender.error, AmqpError) and "xxx" not in repr(sender.error)
