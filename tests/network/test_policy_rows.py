"""The table of policy (exchanges and policy, 4), row by row, at the door of a router where clients come in."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.engine.outcomes import ACCEPTED, RELEASED, Rejected, TransactionalState
from jmsish.engine.values import encode_binary, encode_described, encode_list, encode_string
from jmsish.testing import RouterNetwork
from tests.broker.policies import CONNECTION, LINK, as_user, config, group, is_let_in, told
from tests.broker.world import Peer, in_transaction, message
from tests.network.raw import RawClient, text
from tests.network.test_management import request
from tests.network.test_mobile import bodies
from tests.network.test_partial import in_pieces
from tests.network.world import Network, Site


class Policed(Network):
    """Routers of one configuration of policy each, whose clients say who they are."""

    settings: dict[str, Any]

    def _config(self, name: str, mode: str | None) -> dict[str, Any]:
        return {**super()._config(name, mode), **self.settings}

    def user(self, at: str, name: str = "joe", **options: Any) -> Peer:
        site: Any = Site(self, self[at])
        site.connect = lambda **more: self.connect(at, **more)
        return as_user(site, name, **options)


def network(line: str = "EA1-INT.A", *, settings: dict[str, Any] | None = None, **granted: Any) -> Policed:
    """All routers have this policy; ``granted`` is what the one group of everybody has of it."""
    routes = granted.pop("routes", None)
    made = type("Made", (Policed,), {"settings": settings or config(**granted)})
    return made(line, routes=routes)  # type: ignore[no-any-return]


def condition(end: Any) -> str | None:
    return None if end.error is None else str(end.error.condition)


def send(net: Network, sender: Any, body: str, properties: bytes) -> list[Any]:
    """Send one message, whose first 40,000 octets come before the others; what was answered."""
    answers: list[Any] = sender.transfer(message(body, properties=properties))
    in_pieces(net, sender, 40_000)
    net.run()
    return answers


# --- who is let in


def test_max_connections_of_the_router_closes_the_socket_without_a_word() -> None:
    net = network(settings={"policy": {"max_connections": 2}})
    first = net.connect("EA1")  # the other one is the uplink
    second = net.connect("EA1")
    assert second.connection.closed and second.engine.remote is None and not first.closed
    assert net["EA1"].denials.connections_denied == 1
    first.close()
    assert is_let_in(net.connect("EA1"))


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_user", "max_connections_per_host"])
def test_connections_of_a_virtual_host_a_user_and_a_host(limit: str) -> None:
    net = network(settings=config({limit: 2}))
    first, second, third = (net.user("EA1", peer="10.0.0.1:1") for _ in range(3))
    assert is_let_in(first) and is_let_in(second) and not is_let_in(third)
    assert net["EA1"].denials.vhosts["$default"].connections_denied == 1
    assert is_let_in(net.user("EA1", "ann", peer="10.0.0.2:1")) is (limit != "max_connections")
    first.close()
    assert is_let_in(net.user("EA1", peer="10.0.0.1:1"))


def test_an_unknown_user_is_not_let_in_where_that_is_not_allowed() -> None:
    groups = {"staff": group(users=["joe"])}
    net = network(settings={"vhosts": {"$default": {"allow_unknown_user": False, "groups": groups}}}, line="INT.A")
    assert is_let_in(net.user("INT.A", "joe"))
    (error,) = (peer := net.user("INT.A", "eve")).closed
    assert told(error) == CONNECTION and not is_let_in(peer)


def test_who_comes_from_elsewhere_is_not_let_in() -> None:
    net = network(remote_hosts=["10.0.0.1"], line="INT.A")
    assert is_let_in(net.user("INT.A", peer="10.0.0.1:1")) and not is_let_in(net.user("INT.A", peer="10.0.0.2:1"))


def test_the_virtual_host_is_that_of_the_hostname_or_its_alias() -> None:
    vhosts = {"shop": {"aliases": ["shop.example"], "max_message_size": 10, "groups": {"all": group()}}}
    net = network(settings={"vhosts": vhosts}, line="INT.A")
    assert net.user("INT.A", hostname="shop.example").sender("a").link.remote_max_message_size == 10
    assert not is_let_in(net.user("INT.A", hostname="other"))


# --- addresses


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("route", [None, {"orders": ("EA1", "broker")}])
def test_sources_and_targets_with_the_name_of_the_user(listed: bool, route: Any) -> None:
    form = "{}" if listed else "{}_pattern"
    given: Any = {form.format("source" + "s" * listed): ["orders.${user}", "news"]}
    given[form.format("target" + "s" * listed)] = ["orders.${user}"]
    net = network(routes=route, **given)
    peer = net.user("EA1")
    assert [condition(end) for end in (peer.receiver("orders.joe"), peer.receiver("news"))] == [None, None]
    assert told(peer.receiver("orders.ann").error) == LINK
    assert peer.sender("orders.joe").error is None
    assert told(peer.sender("news").error) == LINK
    counted = net["EA1"].denials
    assert counted.links_denied == 2 and counted.vhosts["$default"].receivers_denied == 1
    assert not net["INT.A"].denials.total_denials


@pytest.mark.parametrize("allowed", [True, False])
def test_allow_anonymous_sender(allowed: bool) -> None:
    net = network(allow_anonymous_sender=allowed)
    end = net.user("EA1").sender(None)
    assert (end.error is None) is allowed
    assert allowed or told(end.error) == LINK
    assert net["EA1"].denials.links_denied == (not allowed)


def to(address: str | None, user: str | None = None) -> bytes:
    """A properties section with a `to` and a user-id."""
    fields = [b"\x40", b"\x40" if user is None else encode_binary(user.encode())]
    if address is not None:
        fields.append(encode_string(address))
    return encode_described(0x73, encode_list(tuple(fields)))


def test_each_message_of_an_anonymous_sender_is_checked() -> None:
    net = network(targets=["a", "orders.*", "$management"], routes={"orders": ("INT.A", "broker")})
    receiver = net.connect("INT.A").receiver("a", credit=10)
    sender = net.user("EA1").sender(None)
    outcomes = [sender.send("x", properties=to(name))[0] for name in ("a", "b", "orders.1", "$cbs", None)]
    receiver.accept(receiver.take())
    assert outcomes[0] == [ACCEPTED]
    conditions = [outcome[0].error.condition for outcome in outcomes[1:]]
    assert conditions == [
        "amqp:unauthorized-access", "amqp:not-implemented", "amqp:not-found", "amqp:precondition-failed",
    ]  # fmt: skip
    assert not sender.detached


@pytest.mark.parametrize("allowed", [True, False])
def test_allow_dynamic_source_is_for_sources_and_targets(allowed: bool) -> None:
    peer = network(allow_dynamic_source=allowed).user("EA1")
    receiver = peer.receiver(None, dynamic=True)
    assert (receiver.error is None) is allowed
    assert allowed or told(receiver.error) == LINK


def test_who_made_a_dynamic_address_may_use_it_and_others_as_the_lists_say() -> None:
    net = network(sources=[], targets=[])
    owner, other = net.user("EA1"), net.user("EA1")
    made = owner.receiver(None, dynamic=True, credit=5)
    address = made.link.remote_source.address
    assert told(other.sender(address).error) == LINK
    assert owner.sender(address).error is None
    anonymous = other.sender(None).send("x", properties=to(address))
    assert anonymous[0][0].error.condition == "amqp:unauthorized-access"
    owner.sender(None).send("y", properties=to(address))
    assert bodies(made.arrived) == ["y"]


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_an_empty_address_that_is_not_dynamic_is_always_refused(end: str) -> None:
    made = getattr(network().user("EA1"), end)("")
    assert condition(made) == "amqp:invalid-field"


# --- user-id


@pytest.mark.parametrize("address", ["a", None])
@pytest.mark.parametrize("receiving", ["EA1", "INT.A"])
@pytest.mark.parametrize("size", [1, 100_000])
def test_a_message_with_the_user_id_of_another_is_rejected(address: str | None, receiving: str, size: int) -> None:
    net = network(allow_user_id_proxy=False)
    receiver = net.connect(receiving).receiver("a", credit=10)
    sender = net.user("EA1").sender(address)
    sent = [(str(number) * size, user) for number, user in enumerate((None, "joe", "ann", "", "joe"))]
    outcomes = [send(net, sender, body, to("a", user)) for body, user in sent]
    receiver.accept(receiver.take())
    for (outcome,), allowed in zip(outcomes, (True, True, False, False, True), strict=True):
        assert (outcome == ACCEPTED) is allowed
        assert allowed or outcome.error.condition == "amqp:unauthorized-access"
    assert not sender.detached and not net["EA1"].denials.total_denials


@pytest.mark.parametrize("address", ["a", None, "orders.1"])
@pytest.mark.parametrize("size", [1, 100_000])
def test_a_message_in_disorder_has_no_second_user_id_for_other_readers(address: str | None, size: int) -> None:
    """Behind the body, where a large one has left in parts when it comes: its copies are aborted, and its link ends."""
    net = network(allow_user_id_proxy=False, routes={"orders": ("INT.A", "broker")})
    net.brokers["broker"].declare_queue("orders.1")
    receiver = net.connect("INT.A").receiver("a", credit=10)
    peer = net.user("EA1")
    sender = peer.sender(address)
    answers = sender.transfer(message("x" * size, properties=to("a", "joe")) + to("a", "ann"))
    in_pieces(net, sender, 40_000)
    net.run()
    (outcome,) = answers
    assert isinstance(outcome, Rejected) and outcome.error is not None
    assert outcome.error.condition == "amqp:decode-error" and receiver.arrived == []
    assert bool(sender.detached) is (size > 1) and not peer.closed
    assert net.brokers["broker"].queue("orders.1").depth == 0
    again = peer.sender(address)
    told_of = send(net, again, "y" * size, to("a", "joe"))
    receiver.accept(receiver.take())
    assert told_of == [ACCEPTED]


def test_with_allow_user_id_proxy_a_message_may_say_to_be_anothers() -> None:
    net = network()
    receiver = net.connect("INT.A").receiver("a", credit=10)
    (told_of,) = net.user("EA1").sender("a").send("x", properties=to(None, "ann"))
    receiver.accept(receiver.take())
    assert told_of == [ACCEPTED]


def test_between_routers_nobody_asks_whose_a_message_is() -> None:
    """The edge lets it in, its interior would not let in clients' of the kind, and does not ask."""
    net = network("EA1-INT.A-INT.B", allow_user_id_proxy=False)
    receiver = net.connect("INT.B").receiver("a", credit=10)
    (told_of,) = net.user("EA1").sender("a").send("x", properties=to(None, "joe"))
    receiver.accept(receiver.take())
    assert told_of == [ACCEPTED]


def test_a_user_id_behind_sixteen_kibioctets_of_annotations_gets_nobody_through() -> None:
    """A large message goes on while it comes in: what is asked of it has to stand in the beginning."""
    net = network(allow_user_id_proxy=False)
    receiver = net.connect("INT.A").receiver("a", credit=10)
    section = encode_described(0x72, b"\xd1" + (60_015).to_bytes(4, "big") + (2).to_bytes(4, "big")
                               + b"\xa3\x01x" + b"\xb0" + (60_003).to_bytes(4, "big") + bytes(60_003))  # fmt: skip
    sender = net.user("EA1").sender("a")
    told_of = send(net, sender, "y", section + to(None, "ann"))
    assert told_of[0].error.condition == "amqp:decode-error" and receiver.arrived == []
    assert len(sender.send("z", properties=to(None, "joe"))) == 1
    assert bodies(receiver.arrived) == ["z"]


@pytest.mark.parametrize("transport", ["vm", "tcp"])
def test_a_user_id_behind_annotations_that_fill_the_first_frames_gets_nobody_through(transport: str) -> None:
    """Nothing of the properties has come, and what has come ends where they begin."""
    filled = b"\xa3\x01x" + b"\xb0" + (20_000).to_bytes(4, "big") + bytes(20_000)
    section = b"\x00\x53\x72\xd1" + (len(filled) + 4).to_bytes(4, "big") + (2).to_bytes(4, "big") + filled
    configs = {"INT.A": config(allow_user_id_proxy=False)}
    with RouterNetwork("INT.A", configs=configs, transport=transport) as network:
        receiver, sender = RawClient(network["INT.A"].url), RawClient(network["INT.A"].url)
        receiver.receiver("a", 10)
        sender.sender("a")
        number = sender.begin_message(*(section[start : start + 4000] for start in range(0, len(section), 4000)))
        assert sender.outcome_of(number) == "rejected"
        sender.go_on(to(None, "ann") + text("x"), last=True)
        sender.post(to(None, "anonymous") + text("y"))
        assert receiver.hear_message().endswith(text("y"))
        sender.line.drop()
        receiver.line.drop()


@pytest.mark.parametrize("address", ["a", "orders.1", None])
def test_who_cannot_hear_of_a_rejection_loses_the_link_rather_than_the_message_unnoticed(address: str | None) -> None:
    net = network(allow_user_id_proxy=False, routes={"orders": ("INT.A", "broker")})
    net.connect("INT.A").receiver("a", credit=10)
    sender = net.user("EA1").sender(address)
    sender.send("m1", properties=to("a", "ann"), settled=True)
    assert condition(sender) == "amqp:unauthorized-access" and not sender.peer.closed


@pytest.mark.parametrize("home", ["EA1", "INT.A"])
@pytest.mark.parametrize("size", [1, 100_000])
def test_a_link_route_does_not_carry_the_user_id_of_another(home: str, size: int) -> None:
    net = network(allow_user_id_proxy=False, routes={"orders": (home, "broker")})
    net.brokers["broker"].declare_queue("orders.1")
    sender = net.user("EA1").sender("orders.1")
    credit = sender.link.credit
    sent = [(str(number) * size, user) for number, user in enumerate((None, "joe", "ann", "", "joe"))]
    outcomes = [send(net, sender, body, to(None, user)) for body, user in sent]
    for (outcome,), allowed in zip(outcomes, (True, True, False, False, True), strict=True):
        assert (outcome == ACCEPTED) is allowed
        assert allowed or outcome.error.condition == "amqp:unauthorized-access"
    assert net.brokers["broker"].queue("orders.1").depth == 3
    for _ in range(2 * credit):  # the refused ones cost the link no credit for ever
        assert sender.send("x", properties=to(None, "ann"))[0][0].error is not None
    assert sender.send("last")[0] == [ACCEPTED]


def test_in_a_transaction_of_a_link_route_the_sender_is_told_in_it() -> None:
    net = network(allow_user_id_proxy=False, routes={"orders": ("INT.A", "broker")})
    peer = net.user("EA1")
    sender = peer.sender("orders.1")
    controller = peer.controller()
    txn = controller.declare()
    ((state,),) = sender.send("m1", properties=to(None, "ann"), state=in_transaction(txn))
    assert isinstance(state, TransactionalState) and isinstance(state.outcome, Rejected)
    assert sender.send("m2", properties=to(None, "joe"), state=in_transaction(txn)) != [[]]
    assert controller.commit(txn) is None and net.brokers["broker"].queue("orders.1").depth == 1


def test_a_settled_one_of_a_transaction_leaves_nothing_that_could_be_committed() -> None:
    net = network(allow_user_id_proxy=False, routes={"orders": ("INT.A", "broker")})
    peer = net.user("EA1")
    sender = peer.sender("orders.1")
    controller = peer.controller()
    txn = controller.declare()
    sender.send("m1", state=in_transaction(txn), settled=True)
    sender.send("m2", properties=to(None, "ann"), state=in_transaction(txn), settled=True)
    (error,) = peer.closed
    assert error is not None and error.condition == "amqp:unauthorized-access"
    assert net.brokers["broker"].queue("orders.1").depth == 0 and not net.brokers["broker"].transactions()


def test_a_request_to_the_management_node_has_no_user_id_of_another() -> None:
    net = network(allow_user_id_proxy=False, may_manage=True)
    sender = net.user("EA1").sender("$management")
    assert sender.send_octets(request("READ", "router", name="self")) == [ACCEPTED]
    (outcome,) = sender.send_octets(to(None, "ann") + request("READ", "router", name="self")[3:])
    assert outcome.error.condition == "amqp:unauthorized-access"


# --- transactions have no mobile address


@pytest.mark.parametrize("address", ["a", None])
@pytest.mark.parametrize("settled", [True, False])
def test_a_post_in_a_transaction_to_a_mobile_address_is_refused_by_name(address: str | None, settled: bool) -> None:
    net = network(routes={"orders": ("INT.A", "broker")})
    receiver = net.connect("INT.A").receiver("a", credit=5)
    peer = net.user("EA1")
    peer.sender("orders.1")
    controller = peer.controller()
    txn = controller.declare()
    sender = peer.sender(address)
    (answers,) = sender.send("x", properties=to("a"), state=in_transaction(txn), settled=settled)
    error = sender.error if settled else answers[0].error
    assert error is not None and error.condition == "amqp:not-implemented" and "link routes" in str(error)
    assert receiver.arrived == [] and not peer.closed


# --- in office


def test_a_change_holds_for_connections_to_come_and_not_for_those_that_are_there() -> None:
    net = network("INT.A", max_senders=1)
    node = net["INT.A"]
    before = net.user("INT.A")
    node.change_policy({"max_message_size": 10})
    settings = config(max_senders=2)["vhosts"]["$default"]
    node.admission.put_vhost("$default", settings)
    after = net.user("INT.A")
    assert before.sender("a").link.remote_max_message_size == 0 and before.sender("a").error is not None
    assert after.sender("a").link.remote_max_message_size == 10 and after.sender("a").error is None


def test_released_is_no_refusal() -> None:
    sender = network("INT.A").user("INT.A").sender(None)
    assert sender.send("x", properties=to("nowhere")) == [[RELEASED]]
