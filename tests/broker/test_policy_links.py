"""What is granted of frames, sessions and links, row by row, with what is refused, how, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, Rejected, Source, Target
from jmsish.engine.values import NULL, encode_binary, encode_described, encode_string
from jmsish.types import Described, Symbol
from tests.broker.policies import LINK, SESSION, TOO_MANY_LINKS, as_user, told, world
from tests.broker.test_management import request
from tests.broker.world import Peer, World, in_transaction, message, properties


def counted(world: World) -> tuple[int, int, int, int]:
    """Links denied in all; then of the virtual host: sessions, senders and receivers."""
    found = world.broker.denials.vhosts["$default"]
    assert world.broker.denials.total_denials == world.broker.denials.links_denied + found.sessions_denied
    return world.broker.denials.links_denied, found.sessions_denied, found.senders_denied, found.receivers_denied


# --- frames and sessions


@pytest.mark.parametrize(("size", "announced"), [(0, 1 << 17), (512, 512), (4096, 4096), (1 << 20, 1 << 20)])
def test_max_frame_size_overrides_the_listeners_only_if_it_is_set(size: int, announced: int) -> None:
    """DISPATCH-2305."""
    peer = world(max_frame_size=size).connect()
    assert peer.engine.remote is not None and peer.engine.remote.max_frame_size == announced
    assert peer.sender().send("m1") == [[ACCEPTED]]


def test_a_frame_over_the_granted_size_is_a_framing_error() -> None:
    peer = world(max_frame_size=512).connect()
    sender = peer.sender()
    peer.engine.max_frame_out = 4096
    sender.send("x" * 200, annotations=b"")
    sender.transfer(message("x" * 200, properties=properties(NULL, NULL, NULL, encode_string("s" * 600))))
    peer.world.run()
    (error,) = peer.closed
    assert error is not None and error.condition == "amqp:connection:framing-error"


@pytest.mark.parametrize(("most", "announced"), [(0, 4095), (1, 0), (3, 2), (65536, 65535)])
def test_max_sessions_is_announced_as_channel_max(most: int, announced: int) -> None:
    peer = world(max_sessions=most).connect()
    assert peer.engine.remote is not None and peer.engine.remote.channel_max == announced


def test_a_session_too_many_is_ended_and_the_others_go_on() -> None:
    made = world(max_sessions=2)
    peer = made.connect()
    peer.begin()
    assert peer.engine.remote is not None
    peer.engine.remote = replace(peer.engine.remote, channel_max=9)  # a peer that does not look at it
    peer.begin()
    (error,) = peer.ended
    assert told(error) == SESSION and not peer.closed
    assert counted(made) == (0, 1, 0, 0)
    assert peer.sender().send("m1") == [[ACCEPTED]]


def test_a_session_that_ended_makes_room_for_another() -> None:
    made = world(max_sessions=2)
    peer = made.connect()
    peer.begin().end()
    made.run()
    peer.begin()
    assert not peer.ended or peer.ended == [None]
    assert counted(made) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("settings", "frames", "frame_size"),
    [
        ({"max_session_window": 10_240, "max_frame_size": 1024}, 10, 1024),
        ({"max_session_window": 1000, "max_frame_size": 1024}, 1, 1000),
        ({"max_session_window": 100}, 1, 512),
        ({"max_session_window": 1 << 40}, 2048, 1 << 17),
    ],
)
def test_max_session_window_is_flow_control(settings: dict[str, int], frames: int, frame_size: int) -> None:
    """In octets: so many frames of the largest size, and no frame larger than the window."""
    made = world(**settings)
    peer = made.connect()
    assert peer.engine.remote is not None and peer.engine.remote.max_frame_size == frame_size
    assert peer.session.remote_left == frames
    sender = peer.sender()
    answers = sender.send(*(f"m{number}" for number in range(30)))
    assert answers == [[ACCEPTED]] * 30 and made.queue().depth == 30
    assert sender.send("x" * 250)[0] == [ACCEPTED]


# --- how many links


@pytest.mark.parametrize("most", [0, 1, 3])
def test_max_senders(most: int) -> None:
    """The n-th is allowed, the next refused; one that is detached makes room. Zero forbids (a fault of others)."""
    made = world(max_senders=most)
    peer = made.connect()
    senders = [peer.sender(f"q{number}") for number in range(most)]
    assert not any(sender.detached for sender in senders)
    late = peer.sender("late", session=peer.begin())
    assert late.error is not None and told(late.error) == TOO_MANY_LINKS
    assert counted(made) == (1, 0, 1, 0) and {view.name for view in made.broker.queues()} == {
        f"q{number}" for number in range(most)
    }
    assert not peer.receiver("q0").detached
    if senders:
        senders[0].detach()
        assert not peer.sender("late").detached
        assert peer.sender("later").detached
        assert not made.connect().sender("q0").detached  # counted for each connection


@pytest.mark.parametrize("most", [0, 1, 3])
def test_max_receivers(most: int) -> None:
    made = world(max_receivers=most)
    peer = made.connect()
    receivers = [peer.receiver(f"q{number}") for number in range(most)]
    late = peer.receiver("late")
    assert late.error is not None and told(late.error) == TOO_MANY_LINKS
    assert counted(made) == (1, 0, 0, 1) and not peer.sender("q0").detached
    if receivers:
        receivers[0].detach(closed=False)
        assert not peer.receiver("late").detached


def test_links_that_the_broker_ended_and_those_of_a_session_that_ended_make_room() -> None:
    made = world(max_senders=1, max_receivers=1)
    peer = made.connect()
    peer.sender("q"), peer.receiver("q")
    made.broker.delete_queue("q")
    made.run()
    other = peer.begin()
    assert not peer.sender("r", session=other).detached and not peer.receiver("r", session=other).detached
    other.end()
    made.run()
    assert not peer.sender("s").detached and not peer.receiver("s").detached


def test_the_coordinator_is_not_counted_and_always_allowed() -> None:
    peer = world(max_senders=1, targets=["q"]).connect()
    controller = peer.controller()
    txn = controller.declare()
    sender = peer.sender()
    assert not sender.detached and sender.send("m1", state=in_transaction(txn))
    assert controller.commit(txn) is None and peer.world.queue().depth == 1


# --- which addresses


@pytest.mark.parametrize(
    ("settings", "address", "allowed"),
    [
        ({"targets": ["orders", "${user}.*"]}, "orders", True),
        ({"targets": ["orders", "${user}.*"]}, "joe.in", True),
        ({"targets": ["orders", "${user}.*"]}, "ann.in", False),
        ({"targets": []}, "orders", False),
        ({"target_pattern": ["a.*"]}, "a.b", True),
        ({"target_pattern": ["a.*"]}, "a.b.c", False),
        ({"targets": ["amq.topic/eu.*"]}, "amq.topic/eu.fr", True),
        ({"targets": ["amq.topic/eu.*"]}, "amq.topic", False),
    ],
)
def test_targets(settings: dict[str, Any], address: str, allowed: bool) -> None:
    made = world(**settings)
    sender = as_user(made).sender(address)
    assert sender.detached is not allowed
    if not allowed:
        assert told(sender.error) == LINK and counted(made) == (1, 0, 1, 0) and made.broker.queues() == []


@pytest.mark.parametrize(
    ("settings", "address", "allowed"),
    [
        ({"sources": ["orders", "${user}.*"]}, "joe.in", True),
        ({"sources": ["orders", "${user}.*"]}, "ann.in", False),
        ({"sources": []}, "orders", False),
        ({"source_pattern": ["a.#"]}, "a.b.c", True),
        ({"source_pattern": ["a.#"]}, "b", False),
        ({"sources": ["amq.topic"]}, "amq.topic", True),
        ({"sources": ["amq.topic/a.*"]}, "amq.topic/a.#", False),
        ({"sources": ["amq.topic/a*"]}, "amq.topic/a.#", True),
    ],
)
def test_sources(settings: dict[str, Any], address: str, allowed: bool) -> None:
    made = world(**settings)
    receiver = as_user(made).receiver(address)
    assert receiver.detached is not allowed
    if not allowed:
        assert told(receiver.error) == LINK and counted(made) == (1, 0, 0, 1) and made.broker.queues() == []


@pytest.mark.parametrize(("topic", "allowed"), [("a.b", True), ("a.*", True), ("a.#", False), ("#", False)])
def test_a_subscription_binds_no_more_than_may_be_received(topic: str, allowed: bool) -> None:
    made = world(source_pattern=["a.*"])
    receiver = made.connect().receiver(topic, capabilities=("topic",))
    assert receiver.detached is not allowed


@pytest.mark.parametrize(
    ("sources", "address", "key", "allowed"),
    [
        (["amq.topic/a"], "amq.topic/a", "b", False),
        (["amq.topic/a"], "amq.topic/a", "#", False),
        (["amq.topic/a", "amq.topic/b"], "amq.topic/a", "b", True),
        (["amq.topic/a", "b"], "amq.topic/a", "b", True),
        (["amq.topic"], "amq.topic", "#", True),
        (["amq.topic*"], "amq.topic/a", "#", True),
        (["news"], "news", "#", False),
        (["amq.direct/a"], "amq.direct/a", "b", False),
        (["amq.direct/a", "amq.direct/b"], "amq.direct/a", "b", True),
        (["amq.fanout/a"], "amq.fanout/a", None, False),
        (["amq.match/a"], "amq.match/a", None, False),
        (["amq.fanout", "amq.fanout/a"], "amq.fanout/a", None, True),
    ],
)
def test_a_filter_binds_no_more_than_may_be_received(
    sources: list[str], address: str, key: str | None, allowed: bool
) -> None:
    """The key of the address and that of a filter are two bindings: both are asked."""
    made = world(sources=sources)
    descriptor = Symbol("apache.org:legacy-amqp-topic-binding:string")
    filter = {} if key is None else {Symbol("wanted"): Described(descriptor, key)}
    receiver = made.connect().receiver(address, filter=filter, capabilities=("topic",))
    assert receiver.detached is not allowed
    if not allowed:
        assert told(receiver.error) == LINK and counted(made) == (1, 0, 0, 1) and made.broker.queues() == []


@pytest.mark.parametrize("targets", [[], ["amq.fanout"]])
def test_what_goes_nowhere_at_a_dynamic_exchange_goes_no_further_than_its_maker_may_send(targets: list[str]) -> None:
    made = world(targets=targets)
    wishes = {Symbol("alternate-exchange"): "amq.fanout"}
    target = Target(dynamic=True, capabilities=("topic",), dynamic_node_properties=wishes)
    sender = made.connect().sender(target=target)
    assert sender.detached is (not targets)


def test_the_node_answers_into_no_queue_that_its_client_may_not_send_to() -> None:
    made = world(may_manage=True, targets=["mine"])
    for name in ("mine", "others"):
        made.broker.declare_queue(name)
    sender = made.connect().sender("$management")
    for name in ("mine", "others"):
        sender.send_octets(request("READ", "queue", name="mine", reply_to=name))
    assert (made.queue("mine").depth, made.queue("others").depth) == (1, 0)


def test_a_subscription_is_looked_up_by_name_only_by_who_may_receive_from_its_topic() -> None:
    """W12: a null source may look up a link by name."""
    made = World({"vhosts": {"$default": {"groups": {
        "staff": {"users": ["alice"], "remote_hosts": ["*"], "sources": ["news"]},
        "others": {"users": ["*"], "remote_hosts": ["*"], "sources": ["sport"]},
    }}}})  # fmt: skip
    alice = as_user(made, "alice", container_id="desk")
    source = Source(address="news", durable=2, expiry_policy="never", capabilities=("topic",))
    link = alice.session.receiver("mine", source=source, target=Target(address="x"), context=_End())
    made.run()
    link.detach(closed=False)
    made.run()
    alice.close()
    ends = [_End(), _End()]
    for name, end in zip(("eve", "alice"), ends, strict=True):
        peer = as_user(made, name, container_id="desk")
        peer.session.receiver("mine", source=None, target=Target(address="x"), context=end)
        made.run()
    assert told(ends[0].error) == LINK and not ends[1].detached


def subscribed(made: World, user: str, topic: str, end: _End, **options: Any) -> Peer:
    """A user who subscribes under the name and by the container that all of them use."""
    peer = as_user(made, user, container_id="desk")
    source = Source(address=topic, durable=2, expiry_policy="never", capabilities=("topic",), **options)
    peer.session.receiver("mine", source=source, target=Target(address="x"), context=end)
    made.run()
    return peer


@pytest.mark.parametrize(
    ("sources", "gives_way"), [(["sport"], False), (["sport", "news"], True), (["sport", "amq.topic/news"], True)]
)
def test_a_subscription_gives_way_to_another_only_for_who_may_receive_from_its_topic(
    sources: list[str], gives_way: bool
) -> None:
    """The container-id is what a client says: by it nobody ends the subscription of somebody else with what it has."""
    made = World({"vhosts": {"$default": {"groups": {
        "staff": {"users": ["alice"], "remote_hosts": ["*"], "sources": ["news"], "targets": ["*"]},
        "others": {"users": ["*"], "remote_hosts": ["*"], "sources": sources},
    }}}})  # fmt: skip
    alice = subscribed(made, "alice", "news", _End())
    alice.sender(target=Target(address="news", capabilities=("topic",))).send("m1")
    alice.close()
    (queue,) = made.broker.queues()
    end = _End()
    subscribed(made, "eve", "sport", end)
    assert end.detached is not gives_way and (gives_way or told(end.error) == LINK)
    assert [each.depth for each in made.broker.queues()] == [0 if gives_way else 1]


def test_refused_links_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """All are counted; ten are told, then the 100th, the 1,000th, each in a short line."""
    made = world(targets=[])
    peer = made.connect()
    for number in range(120):
        assert peer.sender("q" * 20_000 + str(number)).detached
    assert counted(made) == (120, 0, 120, 0)
    lines = [record.getMessage() for record in caplog.records if "denied" in record.getMessage()]
    assert len(lines) == 11 and all(len(line) < 900 for line in lines) and "(100 links" in lines[-1]


class _End:
    error: Any = None
    detached = False
    arrived: list[Any] = []


# --- dynamic and anonymous


def test_refused_sessions_are_told_in_the_log_and_do_not_fill_it(caplog: pytest.LogCaptureFixture) -> None:
    """The peer hears that policy refuses one, the log why."""
    made = world(max_sessions=1)
    peer = as_user(made)
    assert peer.engine.remote is not None
    peer.engine.remote = replace(peer.engine.remote, channel_max=9)  # a peer that does not look at it
    for _ in range(120):
        peer.begin()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 11 and counted(made)[1] == 120
    who = "the user 'joe', in the group 'all' of '$default'"
    assert told[0] == f"a session of memory is denied to {who}: it has 1, and at most 1"
    assert "100 sessions of this connection" in told[-1]


@pytest.mark.parametrize("allowed", [True, False])
def test_allow_dynamic_source_is_for_sources_and_targets(allowed: bool) -> None:
    """W12."""
    made = world(allow_dynamic_source=allowed)
    peer = made.connect()
    receiver = peer.receiver(None, dynamic=True)
    sender = peer.sender(target=Target(dynamic=True))
    for end in (receiver, sender):
        assert end.detached is not allowed
        assert allowed or told(end.error) == LINK
    assert counted(made) == ((0, 0, 0, 0) if allowed else (2, 0, 1, 1))
    assert len(made.broker.queues()) == (2 if allowed else 0)


def test_who_made_a_temporary_queue_may_use_it_by_name_and_others_as_the_lists_say() -> None:
    made = world(sources=[], targets=["jmsish.temporary.*"], allow_dynamic_source=True)
    peer = made.connect()
    receiver = peer.receiver(None, dynamic=True)
    name = receiver.link.remote_source.address
    assert not peer.receiver(name).detached and not peer.sender(name).detached
    assert not made.connect().sender(name).detached and made.connect().receiver(name).detached


def test_who_made_a_temporary_topic_may_use_it_with_any_key_and_others_with_none() -> None:
    made = world(sources=[], targets=[])
    peer, other = made.connect(), made.connect()
    name = peer.receiver(None, dynamic=True, capabilities=("topic",)).link.remote_source.address
    for address in (name, f"{name}/eu", f"{name}/eu/fr"):
        assert not peer.receiver(address).detached and not peer.sender(address).detached
        assert peer.sender(None).send("m1", properties=to(address)) == [[ACCEPTED]]
        for end in (other.receiver(address), other.sender(address)):
            assert end.error is not None and told(end.error) == LINK


def test_a_null_source_that_is_not_dynamic_is_always_refused() -> None:
    assert world().connect().receiver(None).detached


@pytest.mark.parametrize("allowed", [True, False])
def test_allow_anonymous_sender(allowed: bool) -> None:
    made = world(allow_anonymous_sender=allowed)
    sender = made.connect().sender(None)
    assert sender.detached is not allowed
    if not allowed:
        assert told(sender.error) == LINK and counted(made) == (1, 0, 1, 0)


def to(address: str | None, user: str | None = None) -> bytes:
    said = NULL if user is None else encode_binary(user.encode())
    return properties(NULL, said, NULL if address is None else encode_string(address))


@pytest.mark.parametrize(
    "settings", [{"targets": ["orders", "${user}.*"]}, {"target_pattern": ["orders", "${user}.#"]}]
)
def test_each_message_of_an_anonymous_sender_is_checked(settings: dict[str, Any]) -> None:
    made = world(**settings)
    sender = as_user(made).sender(None)
    addresses = ("orders", "ann.in", "joe.in", "$management", "orders")
    answers = [sender.send(str(number), properties=to(address))[0] for number, address in enumerate(addresses)]
    for (outcome,), allowed in zip(answers, (True, False, True, False, True), strict=True):
        assert (outcome == ACCEPTED) is allowed
        if not allowed:
            assert isinstance(outcome, Rejected) and outcome.error is not None
            assert outcome.error.condition == "amqp:unauthorized-access"
    assert not sender.detached and made.bodies("orders") == ["0", "4"] and made.bodies("joe.in") == ["2"]
    assert {view.name for view in made.broker.queues()} == {"orders", "joe.in"}


# --- user-id


@pytest.mark.parametrize("address", ["q", None, "amq.fanout"])
def test_without_allow_user_id_proxy_a_message_with_the_user_id_of_another_is_rejected(address: str | None) -> None:
    made = world(allow_user_id_proxy=False)
    made.broker.declare_queue("q")
    made.broker.exchange("amq.fanout").bind("q")
    sender = as_user(made).sender(address)
    answers = [sender.send(str(number), properties=to("q", user))[0] for number, user in
               enumerate((None, "joe", "ann", "", "joe"))]  # fmt: skip
    for (outcome,), allowed in zip(answers, (True, True, False, False, True), strict=True):
        assert (outcome == ACCEPTED) is allowed
        if not allowed:
            assert isinstance(outcome, Rejected) and outcome.error is not None
            assert outcome.error.condition == "amqp:unauthorized-access"
    assert not sender.detached and made.bodies() == ["0", "1", "4"]


@pytest.mark.parametrize(
    "disorder",
    [
        to(None, "joe") + to(None, "ann") + message("m1"),
        to(None) + to(None, "ann") + message("m1"),
        message("m1") + to(None, "ann"),
        encode_described(0x74, b"\xc1\x01\x00") + to(None, "ann") + message("m1"),
        message("m1") + encode_described(0x78, b"\xc1\x01\x00") + to(None, "ann"),
        encode_described(0x75, b"\xa0\x01m") + to(None, "ann"),
        encode_described(0x75, b"\xa0\x01m") * 2000,
        b"\x00Sw\xa1",
    ],
    ids=["twice", "behind-none", "behind-the-body", "behind-others", "at-the-end", "behind-data", "very-many", "cut"],
)
def test_a_message_in_disorder_has_no_second_user_id_for_other_readers(disorder: bytes) -> None:
    """Proton takes the last of two properties sections, wherever it stands."""
    made = world(allow_user_id_proxy=False)
    sender = as_user(made).sender()
    (outcome,) = sender.send_octets(disorder)
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:decode-error"
    assert sender.send_octets(encode_described(0x75, b"\xa0\x01m") * 900) == [ACCEPTED]
    assert not sender.detached and made.queue().depth == 1


def test_with_allow_user_id_proxy_a_message_may_say_to_be_anothers() -> None:
    made = world(allow_user_id_proxy=True)
    assert as_user(made).sender().send("m1", properties=to(None, "ann")) == [[ACCEPTED]]


def test_who_cannot_hear_of_a_rejection_loses_the_link_rather_than_the_message_unnoticed() -> None:
    made = world(allow_user_id_proxy=False)
    sender = as_user(made).sender()
    sender.send("m1", properties=to(None, "ann"), settled=True)
    assert sender.error is not None and sender.error.condition == "amqp:unauthorized-access"


def test_a_message_of_a_transaction_with_the_user_id_of_another_is_told_so_in_it() -> None:
    made = world(allow_user_id_proxy=False)
    peer = as_user(made)
    controller, sender = peer.controller(), peer.sender()
    txn = controller.declare()
    ((state,),) = sender.send("m1", properties=to(None, "ann"), state=in_transaction(txn))
    assert isinstance(state.outcome, Rejected)
    assert controller.commit(txn) is None and made.queue().depth == 0
