"""The bundled broker in the manner of others: each test is a cell of the tables of what those were seen to do."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.imitation import IMITATIONS
from jmsish.engine.codec import AMQP_VALUE, encode_message
from jmsish.engine.outcomes import (
    ACCEPTED,
    MODIFIED_FAILED,
    RELEASED,
    Coordinator,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
)
from jmsish.engine.received import ReceivedMessage
from jmsish.engine.values import (
    NULL,
    encode,
    encode_described,
    encode_map,
    encode_string,
    encode_symbol,
    encode_timestamp,
)
from jmsish.profiles import NAMES as PROFILE_NAMES
from jmsish.profiles import recognise
from jmsish.types import Described, Long, Symbol, ULong
from tests.broker.world import ALL_OUTCOMES, SETTLED, Peer, World, in_transaction, message, properties

UNDELIVERABLE = Modified(delivery_failed=True, undeliverable_here=True)
SELECTOR = {Symbol("jms-selector"): Described(ULong(0x0000468C00000004), "a = 1")}
BAD_SELECTOR = {Symbol("jms-selector"): Described(ULong(0x0000468C00000004), "a = = 1")}
QUEUES = {"artemis": "q", "activemq": "queue://q", "broker-j": "q", "rabbitmq": "/queues/q", "rabbitmq-3": "/queue/q"}
WITH_TRANSACTIONS = ["artemis", "activemq", "broker-j"]


def world_of(profile: str) -> World:
    world = World(profile=profile)
    if not world.broker.router.config.auto_create:
        world.broker.declare_queue("q")
    return world


def queue_of(profile: str) -> dict[str, Any]:
    """The address of the queue q, and the capability that says that it is one."""
    return {"address": QUEUES.get(profile, "q"), "capabilities": ("queue",)}


def reader(peer: Peer, profile: str, credit: int = 10, **options: Any) -> Any:
    source = Source(**queue_of(profile), **options)
    return peer.receiver(source=source, credit=credit)


def writer(peer: Peer, profile: str) -> Any:
    return peer.sender(target=Target(**queue_of(profile)))


def filled(profile: str, *bodies: str) -> tuple[World, Peer]:
    world = world_of(profile)
    peer = world.connect()
    writer(peer, profile).send(*(bodies or ("m1",)))
    return world, peer


# -- the open


@pytest.mark.parametrize("name", IMITATIONS)
def test_each_imitation_is_recognised_as_what_it_imitates(name: str) -> None:
    """By its open alone, also Azure Service Bus, of which the original says nothing and is known by its host."""
    remote = world_of(name).connect().engine.remote
    assert remote is not None
    assert recognise(remote.properties, remote.offered_capabilities).name == name
    assert name in PROFILE_NAMES


@pytest.mark.parametrize(
    ("name", "frame", "channels", "idle", "capabilities"),
    [
        ("artemis", 131072, 65535, 30000,
         {"sole-connection-for-container", "DELAYED_DELIVERY", "SHARED-SUBS", "ANONYMOUS-RELAY"}),
        ("broker-j", 32768, 255, None, {"ANONYMOUS-RELAY", "SHARED-SUBS", "sole-connection-for-container"}),
        ("activemq", 131072, 32767, 15000, {"ANONYMOUS-RELAY", "DELAYED_DELIVERY"}),
        ("rabbitmq-3", 32768, 32767, 60000, set()),
    ],
)  # fmt: skip
def test_the_open(name: str, frame: int, channels: int, idle: int | None, capabilities: set[str]) -> None:
    remote = world_of(name).connect().engine.remote
    assert remote is not None
    assert (remote.max_frame_size, remote.channel_max, remote.idle_time_out) == (frame, channels, idle)
    assert set(remote.offered_capabilities) == capabilities


def test_classic_announces_prefixes() -> None:
    remote = world_of("activemq").connect().engine.remote
    assert remote is not None and remote.properties is not None
    assert (remote.properties["queue-prefix"], remote.properties["topic-prefix"]) == ("queue://", "topic://")


@pytest.mark.parametrize(
    ("name", "refused"), [("artemis", True), ("broker-j", True), ("activemq", True), ("rabbitmq-3", False)]
)
def test_the_same_container_id_twice(name: str, refused: bool) -> None:
    world = world_of(name)
    options: dict[str, Any] = {"desired_capabilities": ("sole-connection-for-container",)}
    world.connect("c", **options)
    second = world.connect("c", **options)
    conditions = [error.condition for error in second.closed if error is not None]
    assert conditions == (["amqp:invalid-field"] if refused else [])


# -- transactions


@pytest.mark.parametrize("name", ["rabbitmq", "rabbitmq-3"])
def test_rabbitmq_ends_the_session_of_a_coordinator_link(name: str) -> None:
    peer = world_of(name).connect()
    peer.controller()
    (error,) = peer.ended
    assert error is not None
    assert (error.condition, error.description) == ("amqp:not-implemented", "Transactions not supported")


def test_solace_refuses_the_coordinator_link() -> None:
    peer = world_of("solace").connect()
    controller = peer.controller()
    assert controller.error is not None and controller.error.condition == "amqp:not-implemented"
    assert not peer.ended


@pytest.mark.parametrize(
    ("name", "capabilities"),
    [
        ("artemis", {"amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"}),
        ("broker-j", set()),
        ("activemq", {"amqp:local-transactions"}),
    ],
)
def test_capabilities_of_the_coordinator(name: str, capabilities: set[str]) -> None:
    target = world_of(name).connect().controller().link.remote_target
    assert isinstance(target, Coordinator) and set(target.capabilities) == capabilities


def test_the_coordinator_of_broker_j_gives_one_credit_anew_after_each_command() -> None:
    controller = world_of("broker-j").connect().controller()
    for _ in range(3):
        assert controller.link.credit == 1
        controller.commit(controller.declare())


@pytest.mark.parametrize("name", WITH_TRANSACTIONS)
def test_discharge_of_an_unknown_transaction(name: str) -> None:
    """Artemis: rejected with illegal-state; Broker-J: the link detached; Classic: the connection closed."""
    world = world_of(name)
    peer = world.connect()
    controller = peer.controller()
    if name == "activemq":
        with pytest.raises(AssertionError):
            controller.commit(b"nothing")
        (error,) = peer.closed
        assert error is not None and error.condition == "amqp:decode-error"
    else:
        said = controller.commit(b"nothing")
        assert said == {"artemis": "amqp:illegal-state", "broker-j": "amqp:transaction:unknown-id"}[name]
        assert controller.detached == (name == "broker-j")


@pytest.mark.parametrize("name", WITH_TRANSACTIONS)
def test_a_transaction_works(name: str) -> None:
    world, peer = filled(name)
    controller, receiver = peer.controller(), reader(peer, name)
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, ACCEPTED))
    assert controller.roll_back(txn) is None
    receiver.flow(10)
    deliveries = receiver.take()
    assert [delivery.payload for delivery in deliveries] and world.depth() == (0, 1)
    receiver.dispose(deliveries, in_transaction(txn2 := controller.declare(), ACCEPTED))
    assert controller.commit(txn2) is None and world.depth() == (0, 0)


@pytest.mark.parametrize("end", ["commit", "roll_back"])
@pytest.mark.parametrize(
    "outcome", [RELEASED, MODIFIED_FAILED, Rejected(None)], ids=["released", "modified", "rejected"]
)
@pytest.mark.parametrize(("name", "again"), [("artemis", "m1"), ("activemq", "m1+1")])
def test_an_outcome_other_than_accepted_in_a_transaction_is_stuck(
    name: str, again: str, outcome: Any, end: str
) -> None:
    """Whichever way the discharge goes, until the link closes: then dc 0 at Artemis, 1 at Classic."""
    world, peer = filled(name)
    controller, receiver = peer.controller(), reader(peer, name)
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, outcome))
    assert getattr(controller, end)(txn) is None
    assert world.depth() == (0, 1)
    assert receiver.receive(credit=10) == []
    receiver.detach()
    assert reader(world.connect(), name).receive() == [again]


@pytest.mark.parametrize(
    ("outcome", "end", "again"),
    [
        (RELEASED, "commit", ["m1"]),
        (MODIFIED_FAILED, "commit", ["m1+1"]),
        (Rejected(None), "commit", ["m1+1"]),
        (RELEASED, "roll_back", []),
        (MODIFIED_FAILED, "roll_back", ["m1+1"]),
        (Rejected(None), "roll_back", ["m1+1"]),
    ],
)
def test_outcomes_in_a_transaction_at_broker_j(outcome: Any, end: str, again: list[str]) -> None:
    """A commit does them; released and rolled back is given to nobody any more."""
    world, peer = filled("broker-j")
    controller, receiver = peer.controller(), reader(peer, "broker-j", credit=1, default_outcome=MODIFIED_FAILED)
    txn = controller.declare()
    receiver.dispose(receiver.take(), in_transaction(txn, outcome))
    getattr(controller, end)(txn)
    receiver.detach()
    assert reader(world.connect(), "broker-j").receive() == again


# -- outcomes


@pytest.mark.parametrize(
    ("name", "queue", "again", "dead"),
    [
        ("artemis", "q", [], "DLQ"),
        ("broker-j", "q", ["m1+1"], None),
        ("activemq", "q", [], "ActiveMQ.DLQ"),
        ("rabbitmq", "q", [], None),
        ("rabbitmq-3", "q", [], None),
        ("servicebus", "q", [], "q/$deadletterqueue"),
    ],
)
def test_rejected(name: str, queue: str, again: list[str], dead: str | None) -> None:
    """Dead letter; back on the queue, counted, to the same link; or dropped."""
    world, peer = filled(name)
    receiver = reader(peer, name, credit=1)
    receiver.dispose(receiver.take(), Rejected(None))
    assert receiver.receive(credit=10) == again
    names = [view.name for view in world.broker.queues() if view.depth and view.name != "q"]
    assert names == ([] if dead is None else [dead])


@pytest.mark.parametrize("name", ["artemis", "broker-j", "activemq", "rabbitmq-3"])
def test_released_comes_again_uncounted_to_the_same_link(name: str) -> None:
    _, peer = filled(name, "m1", "m2")
    receiver = reader(peer, name, credit=1)
    receiver.dispose(receiver.take(), RELEASED)
    assert receiver.receive(credit=10) == ["m1", "m2"]


@pytest.mark.parametrize("name", ["artemis", "broker-j", "activemq", "rabbitmq"])
def test_modified_delivery_failed_counts(name: str) -> None:
    _, peer = filled(name)
    receiver = reader(peer, name, credit=1)
    receiver.dispose(receiver.take(), MODIFIED_FAILED)
    assert receiver.receive(credit=10) == ["m1+1"]


def test_modified_ends_the_session_at_rabbitmq_3() -> None:
    world, peer = filled("rabbitmq-3")
    receiver = reader(peer, "rabbitmq-3")
    receiver.dispose(receiver.take(), MODIFIED_FAILED)
    (error,) = peer.ended
    assert error is not None
    assert (error.condition, error.description) == ("amqp:invalid-field", "Unrecognised state")
    assert world.depth() == (1, 0), "nothing is lost"


@pytest.mark.parametrize(
    ("name", "others", "dead"),
    [("artemis", ["m1+1"], None), ("broker-j", ["m1+1"], None), ("activemq", [], "ActiveMQ.DLQ")],
)
def test_undeliverable_here(name: str, others: list[str], dead: str | None) -> None:
    """Not again to that link, but to another; at Classic it goes to the dead letters."""
    world, peer = filled(name)
    receiver = reader(peer, name, credit=1)
    receiver.dispose(receiver.take(), UNDELIVERABLE)
    assert receiver.receive(credit=10) == []
    assert reader(world.connect(), name).receive() == others
    assert [view.name for view in world.broker.queues() if view.name != "q"] == ([] if dead is None else [dead])


@pytest.mark.parametrize(
    ("name", "how", "again"),
    [
        ("artemis", "detach", "m1"), ("artemis", "end", "m1"), ("artemis", "close", "m1"), ("artemis", "cut", "m1+1"),
        ("broker-j", "detach", "m1+1"), ("broker-j", "end", "m1+1"), ("broker-j", "close", "m1+1"),
        ("broker-j", "cut", "m1+1"),
        ("activemq", "detach", "m1"), ("activemq", "end", "m1+1"), ("activemq", "close", "m1+1"),
        ("activemq", "cut", "m1+1"),
        ("rabbitmq-3", "end", "m1"), ("rabbitmq-3", "close", "m1"), ("rabbitmq-3", "cut", "m1"),
    ],
)  # fmt: skip
def test_received_and_unsettled_when_the_line_ends(name: str, how: str, again: str) -> None:
    world, peer = filled(name)
    receiver = reader(peer, name, default_outcome=MODIFIED_FAILED, outcomes=ALL_OUTCOMES)
    assert receiver.receive() == ["m1"]
    if how == "detach":
        receiver.detach()
    elif how == "end":
        receiver.session.end()
        world.run()
    else:
        getattr(peer, how)()
    assert reader(world.connect(), name).receive() == [again]


@pytest.mark.parametrize(
    ("name", "limit"), [("artemis", 10), ("servicebus", 10), ("broker-j", None), ("activemq", None)]
)
def test_when_it_stops_redelivering(name: str, limit: int) -> None:
    world, peer = filled(name)
    receiver = reader(peer, name, credit=1)
    count = 0
    while count < 14 and (deliveries := receiver.take()):
        count += 1
        receiver.dispose(deliveries, MODIFIED_FAILED)
        receiver.flow(1)
    assert count == (limit or 14)


# -- nodes


@pytest.mark.parametrize("name", ["rabbitmq", "rabbitmq-3"])
@pytest.mark.parametrize("end", ["source", "target"])
def test_rabbitmq_has_no_dynamic_nodes(name: str, end: str) -> None:
    peer = world_of(name).connect()
    if end == "source":
        peer.receiver(source=Source(dynamic=True))
    else:
        peer.sender(target=Target(dynamic=True))
    (error,) = peer.ended
    assert error is not None
    assert (error.condition, error.description) == ("amqp:not-implemented", "Dynamic sources not supported")


@pytest.mark.parametrize("name", ["artemis", "broker-j", "activemq", "servicebus", "solace", "ibmmq", "qpidd"])
def test_others_have_dynamic_nodes(name: str) -> None:
    receiver = world_of(name).connect().receiver(source=Source(dynamic=True, capabilities=("temporary-queue",)))
    assert receiver.link.remote_source.address and not receiver.detached


@pytest.mark.parametrize(
    "address", ["q", "/queue/q", "/queues/", "/queues/a/b", "queues/q", "/exchanges/amq.topic/a", "/q"]
)
def test_rabbitmq_takes_addresses_of_version_2_only(address: str) -> None:
    peer = world_of("rabbitmq").connect()
    peer.receiver(address)
    (error,) = peer.ended
    assert error is not None and error.condition == "amqp:invalid-field"


def test_rabbitmq_decodes_the_names_in_addresses() -> None:
    world = World(profile="rabbitmq")
    world.broker.declare_queue("a b/ü")
    peer = world.connect()
    peer.sender("/queues/a%20b%2F%C3%BC").send("m1")
    assert world.bodies("a b/ü") == ["m1"]


def test_rabbitmq_has_no_queue_that_was_not_declared() -> None:
    peer = world_of("rabbitmq").connect()
    peer.receiver("/queues/other")
    (error,) = peer.ended
    assert error is not None and error.condition == "amqp:not-found"


@pytest.mark.parametrize("address", ["/queues/other", "/exchanges/amq.direct/nobody", "/exchanges/amq.topic/nobody"])
def test_rabbitmq_releases_what_is_unroutable(address: str) -> None:
    peer = world_of("rabbitmq").connect()
    ((answer,),) = peer.sender(address).send("m1")
    assert isinstance(answer, Released)


def test_rabbitmq_routes_by_exchange_and_key() -> None:
    world = world_of("rabbitmq")
    world.broker.exchange("amq.topic").bind("q", "eu.#")
    peer = world.connect()
    peer.sender("/exchanges/amq.topic/eu.orders").send("m1")
    assert world.bodies() == ["m1"]


def test_rabbitmq_relays_by_the_address_of_each_message() -> None:

    world = world_of("rabbitmq")
    sender = world.connect().sender(target=Target())
    sender.transfer(message("m1", properties=properties(NULL, NULL, encode_string("/queues/q"))))
    world.run()
    assert world.bodies() == ["m1"]


def test_rabbitmq_3_has_no_relay() -> None:
    peer = world_of("rabbitmq-3").connect()
    peer.sender(target=Target())
    (error,) = peer.ended
    assert error is not None and error.description == "address_not_utf8_string"


@pytest.mark.parametrize("address", ["q", "/queue/q", "/amq/queue/q", "/exchange/amq.direct/k"])
def test_rabbitmq_3_takes_addresses_of_version_1(address: str) -> None:
    world = world_of("rabbitmq-3")
    world.broker.declare_queue("q")
    world.broker.exchange("amq.direct").bind("q", "k")
    world.connect().sender(address).send("m1")
    assert world.bodies() == ["m1"]


@pytest.mark.parametrize("name", ["artemis", "ibmmq"])
def test_without_a_capability_an_address_is_a_topic(name: str) -> None:
    """IBM MQ: the capability belongs on every attach; Artemis: the default routing is multicast."""
    world = World(profile=name)
    peer = world.connect()
    if name == "artemis":
        peer.sender("t").send("lost")
        assert "t" not in [view.name for view in world.broker.queues()]
    else:
        sender = peer.sender("t")
        assert sender.error is not None and sender.error.condition == "amqp:not-found"


@pytest.mark.parametrize("name", ["servicebus", "ibmmq", "qpidd"])
def test_these_make_no_queues(name: str) -> None:
    peer = World(profile=name).connect()
    sender = peer.sender(target=Target(address="nobody", capabilities=("queue",)))
    assert sender.error is not None and sender.error.condition == "amqp:not-found"


# -- links


def test_drain_ends_the_session_at_rabbitmq_3() -> None:
    world, peer = filled("rabbitmq-3")
    reader(peer, "rabbitmq-3", credit=0).flow(10, drain=True)
    (error,) = peer.ended
    assert error is not None and error.condition == "amqp:internal-error"
    assert world.depth()[1] == 0


@pytest.mark.parametrize("name", ["artemis", "broker-j", "activemq", "rabbitmq", "servicebus"])
def test_drain_works_elsewhere(name: str) -> None:
    _, peer = filled(name)
    assert reader(peer, name, credit=0).drain() == ["m1"]


@pytest.mark.parametrize(
    ("name", "granted", "got"),
    [("artemis", True, []), ("activemq", True, []), ("rabbitmq-3", True, ["m1"]), ("rabbitmq", False, ["m1"])],
)
def test_selectors(name: str, granted: bool, got: list[str]) -> None:
    """In force; said to be and ignored; or not in force, and not said to be."""
    _, peer = filled(name)
    receiver = reader(peer, name, filter=SELECTOR)
    assert bool(receiver.link.remote_source.filter) == granted
    assert receiver.receive() == got


@pytest.mark.parametrize(("name", "refused"), [("artemis", True), ("activemq", True), ("rabbitmq-3", False)])
def test_a_bad_selector(name: str, refused: bool) -> None:
    _, peer = filled(name)
    receiver = reader(peer, name, credit=0, filter=BAD_SELECTOR)
    assert (receiver.error is not None and receiver.error.condition == "amqp:invalid-field") == refused


def test_a_browser_at_rabbitmq_is_a_consumer() -> None:
    world, peer = filled("rabbitmq")
    receiver = reader(peer, "rabbitmq", distribution_mode="copy")
    receiver.accept(receiver.take())
    assert world.depth() == (0, 0)


def test_each_link_of_a_shared_subscription_gets_all_at_classic() -> None:
    world = world_of("activemq")
    peer = world.connect()
    source = Source(address="topic://t", capabilities=("topic", "shared"))
    receivers = [peer.receiver(source=source, credit=10, desired_capabilities=("SHARED-SUBS",)) for _ in range(2)]
    assert all("SHARED-SUBS" not in each.link.remote_offered_capabilities for each in receivers)
    peer.sender(target=Target(address="topic://t")).send("m1")
    assert [each.receive() for each in receivers] == [["m1"], ["m1"]]


# -- time


def delayed(annotation: str, value: bytes) -> bytes:
    return message("m1", annotations=encode_described(0x72, encode_map([encode_symbol(annotation), value])))


def send_delayed(name: str, annotation: str = "x-opt-delivery-delay", value: bytes = b"") -> tuple[World, Any]:
    world = world_of(name)
    sender = writer(world.connect(), name)
    sender.transfer(delayed(annotation, value or encode(Long(5000))))
    world.run()
    return world, sender


@pytest.mark.parametrize("name", ["artemis", "activemq"])
def test_a_delay_is_honoured(name: str) -> None:
    world, _ = send_delayed(name)
    assert world.depth() == (0, 0)
    world.advance(5)
    assert world.bodies() == ["m1"]


@pytest.mark.parametrize("name", ["rabbitmq", "rabbitmq-3", "solace", "qpidd", "ibmmq"])
def test_a_delay_is_ignored(name: str) -> None:
    assert send_delayed(name)[0].bodies() == ["m1"]


def test_a_plain_queue_of_broker_j_takes_no_delay() -> None:
    world = world_of("broker-j")
    sender = writer(world.connect(), "broker-j")
    answers = sender.transfer(delayed("x-opt-delivery-delay", encode(Long(5000))))
    world.run()
    assert world.bodies() == []
    condition = sender.error.condition if sender.error else answers[0].error.condition
    assert condition == "amqp:precondition-failed"


def test_azure_has_its_own_annotation_for_later() -> None:
    world = World(profile="servicebus")
    world.broker.declare_queue("q")
    sender = world.connect().sender(target=Target(address="q"))
    at = int((world.clock.now + 5) * 1000)
    sender.transfer(delayed("x-opt-scheduled-enqueue-time", encode_timestamp(at)))
    world.run()
    assert world.depth() == (0, 0)
    world.advance(5)
    assert world.bodies() == ["m1"]


@pytest.mark.parametrize(
    ("name", "order"),
    [("artemis", ["9", "4", "1"]), ("broker-j", ["1", "9", "4"]), ("activemq", ["1", "9", "4"]),
     ("rabbitmq-3", ["1", "9", "4"])],
)  # fmt: skip
def test_priorities(name: str, order: list[str]) -> None:
    world = world_of(name)
    peer = world.connect()
    sender = writer(peer, name)
    for priority in (1, 9, 4):
        sender.send(str(priority), priority=priority)
    assert reader(peer, name).receive() == order


@pytest.mark.parametrize("name", ["artemis", "broker-j", "activemq", "rabbitmq-3"])
def test_time_to_live(name: str) -> None:
    world = world_of(name)
    peer = world.connect()
    writer(peer, name).send("m1", ttl=500)
    world.advance(1.2)
    assert reader(peer, name).receive() == []


# -- tokens of Azure Service Bus


@pytest.mark.parametrize(
    ("said", "token", "status"),
    [
        ({}, "any", 202),
        ({"type": "servicebus.windows.net:sastoken"}, "SharedAccessSignature sr=a&sig=b&se=9999999999&skn=n", 202),
        ({"type": "servicebus.windows.net:sastoken"}, "SharedAccessSignature sr=a&sig=b&se=1&skn=n", 401),
        ({"type": "password"}, "any", 400),
        ({"operation": "get-token"}, "any", 400),
        ({"name": 7}, "any", 400),
        ({}, 7, 400),
    ],
)
def test_the_token_node(said: dict[str, Any], token: Any, status: int) -> None:
    peer = World(profile="servicebus").connect()
    sender = peer.sender("$cbs")
    answers = peer.receiver("$cbs", credit=10, target=Target(address="here"))
    request = encode_message(
        properties=["request-1", None, None, None, "here"],
        application_properties={"operation": "put-token", "type": "jwt", "name": "amqp://h/q", **said},
        body=(AMQP_VALUE, token),
    )
    assert sender.send_octets(request) == [ACCEPTED]
    (delivery,) = answers.take()
    answer = ReceivedMessage(bytes(delivery.payload))
    assert answer.property(5) == "request-1" and answer.application_properties()["status-code"] == status


def test_others_have_no_token_node() -> None:
    sender = World(profile="ibmmq").connect().sender("$cbs")
    assert sender.detached and sender.error is not None


# -- idle links of Azure Service Bus


def test_an_idle_link_is_detached_after_ten_minutes() -> None:
    world = World(profile="servicebus")
    world.broker.declare_queue("q")
    peer = world.connect()
    sender, receiver = peer.sender("q"), peer.receiver("q", credit=1)
    world.advance(599)
    assert not sender.detached and not receiver.detached
    world.advance(60)
    for end in (sender, receiver):
        assert end.detached and end.error is not None and end.error.condition == "amqp:link:detach-forced"
        assert "Idle timeout: 00:10:00" in end.error.description
    assert not peer.ended and not peer.closed
    assert not peer.sender("q").detached, "and may be attached again"


def test_a_link_with_traffic_stays() -> None:
    world = World(profile="servicebus")
    world.broker.declare_queue("q")
    sender = world.connect().sender("q")
    for _ in range(20):
        world.advance(300)
        sender.send("m")
    assert not sender.detached


def test_an_idle_link_of_a_connection_that_is_gone() -> None:
    world = World(profile="servicebus")
    world.broker.declare_queue("q")
    peer = world.connect()
    peer.receiver("q", credit=1)
    peer.cut()
    world.advance(700)
    assert world.queue("q").consumer_count == 0


@pytest.mark.parametrize("name", ["artemis", "rabbitmq", "broker-j"])
def test_others_let_a_link_be_idle(name: str) -> None:
    world = world_of(name)
    receiver = reader(world.connect(), name)
    for _ in range(20):
        world.advance(60)
    assert not receiver.detached


# -- none


def test_without_a_profile_there_is_nothing_of_it() -> None:
    world = World()
    assert world.broker.imitation is None and type(world.connect().connection).__name__ == "ServerConnection"


@pytest.mark.parametrize("name", ["jmsish", None])
def test_jmsish_imitates_nobody(name: str | None) -> None:
    assert World(profile=name).broker.imitation is None


def test_an_unknown_profile_names_what_was_meant() -> None:
    with pytest.raises(ValueError, match="unknown profile 'rabitmq': did you mean 'rabbitmq'"):
        World(profile="rabitmq")


def test_presettled_from_rabbitmq_3_is_gone() -> None:
    world, peer = filled("rabbitmq-3")
    receiver = peer.receiver(source=Source(**queue_of("rabbitmq-3")), snd_settle_mode=SETTLED, credit=10)
    assert receiver.receive() == ["m1"] and world.depth() == (0, 0)
