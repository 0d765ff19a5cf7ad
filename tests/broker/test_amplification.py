"""A few octets that ask for much: what each costs is bounded by what came, and one step by what the others may wait."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import choosing, management_links, selectors, tables
from jmsish.broker.broker import BURIALS_A_STEP, SEARCHES_A_STEP
from jmsish.broker.consumers import Turns
from jmsish.broker.deadletters import ERROR, LONGEST_ERROR
from jmsish.broker.headers import reader
from jmsish.broker.intake import LONGEST_BEGINNING
from jmsish.broker.management import LARGEST_REQUEST, MOST_COLUMNS
from jmsish.broker.notes import LEAST_WEIGHT, MOST_ADDED, MOST_DEFAULT_NOTES, MOST_WITH_DEFAULT_NOTES
from jmsish.broker.selectors import MOST_OF_A_CONNECTION, MOST_STRUCTURE, structure_of
from jmsish.engine.codec import message_annotations_at, split_header
from jmsish.engine.outcomes import ACCEPTED, CONTROL_LIMIT, AmqpError, Modified, Rejected, Target
from jmsish.engine.selecting import MOST_PROPERTIES
from jmsish.engine.values import encode, encode_described, encode_map, encode_string, encode_symbol
from jmsish.types import Described, Int, Symbol, ULong
from tests.broker.test_management import ask, request
from tests.broker.world import Peer, Receiver, Sender, World, in_transaction, message

LIMIT = "amqp:resource-limit-exceeded"
SELECTOR = Symbol("jms-selector")


def selector(text: str) -> dict[Any, Any]:
    return {SELECTOR: Described(ULong(0x468C00000004), text)}


def fill(world: World, count: int, payload: bytes, queue: str = "q") -> None:
    sender = world.connect().sender(queue)
    for _ in range(count):
        if not sender.link.credit:
            world.run()
        sender.transfer(payload)
    world.run()


def filled(world: World, count: int, **options: Any) -> tuple[Peer, Receiver]:
    """A receiver that holds so many messages of a queue."""
    fill(world, count, message("m"))
    peer = world.connect()
    return peer, peer.receiver(credit=count, **options)


def notes(size: int) -> Modified:
    return Modified(delivery_failed=True, message_annotations={Symbol("x-note"): "n" * size})


# --- annotations by the outcome modified (3.4.5)


def test_annotations_for_all_messages_of_a_session_at_once_end_it() -> None:
    """What is written anew for each of them would be a gigabyte for one frame; and none of them is lost."""
    world = World()
    count = MOST_ADDED // LEAST_WEIGHT + 1
    peer, receiver = filled(world, count)
    receiver.dispose(receiver.take(), notes(10))
    (error,) = peer.ended
    assert error is not None and error.condition == LIMIT and f"to {count} messages at once" in str(error)
    assert world.depth() == (count, 0)
    assert all(b"x-note" not in payload for payload in world.queue().payloads())


@pytest.mark.parametrize("size", [10, 5_000])
def test_as_many_as_may_be_get_theirs(size: int) -> None:
    world = World()
    peer, receiver = filled(world, MOST_ADDED // max(LEAST_WEIGHT, size + 100))
    receiver.dispose(receiver.take(), notes(size))
    assert not peer.ended and all(b"x-note" in payload for payload in world.queue().payloads())


def test_one_message_may_have_any() -> None:
    world = World()
    peer, receiver = filled(world, 1)
    receiver.dispose(receiver.take(), notes(60_000))
    assert not peer.ended and len(next(iter(world.queue().payloads()))) > 60_000


def test_in_a_transaction_it_is_the_same() -> None:
    world = World()
    count = MOST_ADDED // LEAST_WEIGHT + 1
    peer, receiver = filled(world, count)
    txn_id = peer.controller(session=peer.begin()).declare()
    receiver.dispose(receiver.take(), in_transaction(txn_id, notes(10)))
    assert [error.condition for error in peer.ended if error] == [LIMIT]
    assert world.depth() == (count, 0)


def test_a_default_outcome_adds_little_or_is_refused() -> None:
    peer = World().connect()
    for size, refused in ((10, False), (MOST_DEFAULT_NOTES, True)):
        receiver = peer.receiver(default_outcome=notes(size))
        assert receiver.detached is refused
        if refused:
            assert receiver.error is not None and receiver.error.condition == "amqp:invalid-field"


def test_with_such_a_default_outcome_a_link_gets_few_messages_at_a_time() -> None:
    world = World()
    peer, receiver = filled(world, MOST_WITH_DEFAULT_NOTES + 10, default_outcome=notes(10))
    assert world.depth() == (10, MOST_WITH_DEFAULT_NOTES)
    peer.cut()
    assert world.depth() == (MOST_WITH_DEFAULT_NOTES + 10, 0)


# --- rejections


def test_of_an_error_the_dead_letters_keep_the_beginning() -> None:
    world = World()
    _, receiver = filled(world, 3)
    receiver.dispose(receiver.take(), Rejected(AmqpError("x:y", "z" * 50_000)))
    letters = list(world.queue("DLQ").payloads())
    assert len(letters) == 3
    for letter in letters:
        said = message_annotations_at(letter, split_header(letter)[1])[0][ERROR]
        assert said.startswith("x:y: zzz") and len(said) == LONGEST_ERROR


def test_a_rejected_range_becomes_dead_letters_step_by_step() -> None:
    world = World()
    count = 2 * BURIALS_A_STEP + 5
    peer, receiver = filled(world, count)
    deliveries = receiver.take()
    for delivery in deliveries:
        receiver.session.disposition(delivery, Rejected(None), True)
    peer.speak()
    depths = []
    while not depths or world.broker.unfinished:
        world.broker.step()
        depths.append(world.queue("DLQ").depth)
    assert depths == [BURIALS_A_STEP, 2 * BURIALS_A_STEP, count]
    assert world.queue().depth == 0


def test_who_is_not_buried_yet_is_when_the_broker_stops() -> None:
    world = World()
    count = BURIALS_A_STEP + 5
    peer, receiver = filled(world, count)
    for delivery in receiver.take():
        receiver.session.disposition(delivery, Rejected(None), True)
    peer.speak()
    world.broker.step()
    world.broker.close()
    assert world.queue("DLQ").depth == count


# --- selectors


@pytest.mark.parametrize(
    "text",
    [" OR ".join(["a=1"] * 2000), "a IN (" + ",".join(["1"] * 9000) + ")"],
    ids=["chain", "numbers"],
)
def test_a_selector_of_many_words_is_refused(text: str) -> None:
    peer = World().connect()
    receiver = peer.receiver(filter=selector(text))
    assert receiver.error is not None and receiver.error.condition == "amqp:invalid-field"
    assert f"the limit is {MOST_STRUCTURE}" in str(receiver.error)


def test_a_long_list_of_texts_is_taken() -> None:
    world = World()
    text = "a IN (" + ", ".join(f"'text {number}'" for number in range(4000)) + ")"
    assert structure_of(text) < MOST_STRUCTURE < len(text)
    assert not world.connect(max_frame_size=1 << 20).receiver(filter=selector(text)).detached


def test_a_binding_by_such_a_selector_is_refused() -> None:
    world = World()
    world.broker.declare_queue("q")
    arguments = {"x-filter-jms-selector": " OR ".join(["a=1"] * 2000)}
    status, description, _ = ask(
        world, "CREATE", "binding", {"exchange": "amq.topic", "queue": "q", "key": "k", "arguments": arguments}
    )
    assert status == 400 and f"the limit is {MOST_STRUCTURE}" in description


def test_the_selectors_of_a_connection_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_OF_A_CONNECTION >= 1 << 19  # here less will do
    monkeypatch.setattr(selectors, "MOST_OF_A_CONNECTION", 50_000)
    world = World()
    peer = world.connect()
    text = " OR ".join(["a=1"] * 1000)
    most = 50_000 // structure_of(text)
    receivers = [peer.receiver(filter=selector(text)) for _ in range(most)]
    late = peer.receiver(filter=selector(text))
    assert late.error is not None and late.error.condition == LIMIT and "selectors of a connection" in str(late.error)
    assert not any(receiver.detached for receiver in receivers) and not peer.receiver().detached
    receivers[0].detach()
    assert not peer.receiver(filter=selector(text)).detached
    for receiver in receivers[1:]:
        receiver.detach()
    assert peer.connection.selecting == structure_of(text)


def looking(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each message that is looked at from now on, whether it is what was looked for."""
    looked: list[bool] = []
    asked = choosing.matches

    def matches(*arguments: Any) -> bool:
        looked.append(asked(*arguments))
        return looked[-1]

    monkeypatch.setattr(choosing, "matches", matches)
    return looked


def looks_a_step(world: World, text: str, body: bytes, monkeypatch: pytest.MonkeyPatch, messages: int = 3000) -> int:
    """How many messages are looked at in the first step for a consumer that selects none of them."""
    fill(world, messages, body)
    peer = world.connect()
    receiver = peer.receiver(filter=selector(text))
    looked = looking(monkeypatch)
    receiver.flow(1, run=False)
    peer.speak()
    world.broker.step()
    assert world.broker.unfinished
    return len(looked)


def test_a_step_looks_at_so_many_messages_as_are_quickly_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks_a_step(World(), "a=1", message("m"), monkeypatch) == choosing.SLICE


def test_by_a_long_selector_a_step_looks_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = looks_a_step(World(), " AND ".join(["a+1=a+1"] * 600), message("m"), monkeypatch)
    assert 1 <= looked <= 4


def test_of_large_messages_a_step_looks_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = looks_a_step(World(), "a=1", message("m" * 100_000), monkeypatch, 200)
    assert 1 <= looked <= 50


def test_many_queues_share_what_a_step_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    peer = world.connect()
    queues = 3 * SEARCHES_A_STEP
    receivers = []
    for number in range(queues):
        fill(world, choosing.SLICE, message("m"), f"q{number}")
        receivers.append(peer.receiver(f"q{number}", filter=selector("a=1")))
    looked = looking(monkeypatch)
    for receiver in receivers:
        receiver.flow(1, run=False)
    peer.speak()
    world.broker.step()
    assert len(looked) == SEARCHES_A_STEP * choosing.SLICE
    world.run()
    assert len(looked) == queues * choosing.SLICE


def properties_of(octets: int) -> bytes:
    pairs = b"".join(encode_string(f"{number:07}") + b"\x40" for number in range(octets // 10))
    count = (2 * (octets // 10)).to_bytes(4, "big")
    return b"\x00\x53\x74\xd1" + (len(pairs) + 4).to_bytes(4, "big") + count + pairs


def test_a_message_with_too_many_properties_is_selected_by_nobody() -> None:
    world = World()
    sender = world.connect().sender()
    sender.send_octets(properties_of(MOST_PROPERTIES + 1000) + message("large"))
    sender.send_octets(properties_of(MOST_PROPERTIES - 1000) + message("small"))
    receiver = world.connect().receiver(filter=selector("zzz IS NULL"), credit=10)
    assert [delivery.payload[-5:] for delivery in receiver.take()] == [b"small"]
    assert world.queue().available == 1


# --- what is decoded in one piece


def annotations_of(octets: int) -> bytes:
    pairs = [part for number in range(octets // 10) for part in (encode_symbol(f"x-{number:05}"), b"\x40")]
    return encode_described(0x72, encode_map(pairs))


@pytest.mark.parametrize("address", ["q", None])
def test_annotations_that_are_long_to_read_are_refused(address: str | None) -> None:
    world = World()
    peer = world.connect()
    sender = peer.sender(address)
    bare = encode_described(0x73, encode(["m", None, "q"])) + message("m")
    assert sender.send_octets(annotations_of(LONGEST_BEGINNING - 1000) + bare) == [ACCEPTED]
    (answer,) = sender.send_octets(annotations_of(LONGEST_BEGINNING + 1000) + bare)
    assert isinstance(answer, Rejected) and answer.error is not None
    assert answer.error.condition == "amqp:decode-error" and f"where {LONGEST_BEGINNING} are" in str(answer.error)
    assert not sender.detached and world.queue().depth == 1


@pytest.mark.parametrize("section", [b"\x00\x53\x70\x45", b"\x00\x53\x71\xc1\x01\x00", b"\x00\x53\x72\xc1\x01\x00"])
def test_a_section_that_comes_twice_is_none(section: bytes) -> None:
    """Of a message of ten megabytes it could be a million times, each of which is looked at."""
    sender = World().connect().sender()
    assert sender.send_octets(section + message("m")) == [ACCEPTED]
    (answer,) = sender.send_octets(section * 2 + message("m"))
    assert isinstance(answer, Rejected) and answer.error is not None
    assert answer.error.condition == "amqp:decode-error"


def test_a_large_request_is_not_done() -> None:
    world = World()
    items = [{"queue": "q", "key": f"{number}"} for number in range(LARGEST_REQUEST // 20)]
    status, description, _ = ask(world, "REBIND", "exchange", {"add": items}, name="amq.topic")
    assert status == 400 and f"where {LARGEST_REQUEST} are the most" in description


def test_a_large_control_message_is_not_read() -> None:
    peer = World().connect()
    controller = peer.controller()
    controller.link.send(b"\x00\x53\x77" + encode(["x"] * CONTROL_LIMIT), context=[])
    peer.world.run()
    assert controller.error is not None and controller.error.condition == "amqp:decode-error"
    assert f"where {CONTROL_LIMIT} are the most" in str(controller.error)


def test_a_query_for_a_hundred_thousand_attributes_is_not_done() -> None:
    """Each of them is a cell in the row of each entity."""
    world = World()
    for names, expected in ((["x"] * MOST_COLUMNS, 200), (["x"] * (MOST_COLUMNS + 1), 400)):
        status, description, _ = ask(world, "QUERY", "org.amqp.management", {"attributeNames": names})
        assert status == expected
    assert f"where {MOST_COLUMNS} are the most" in description


def test_answers_that_nobody_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred octets ask for a megabyte: who asks on and on, and takes nothing, is given no more."""
    monkeypatch.setattr(management_links, "MOST_UNREAD", 10_000)
    world = World()
    peer = world.connect()
    answers = peer.receiver("$management", target=Target(address="back"))
    sender = peer.sender("$management")
    for _ in range(100):
        sender.send_octets(request("QUERY", "org.amqp.management", {"attributeNames": []}), settled=True)
    queue = peer.connection.answers["back"]
    assert 10_000 < queue.octets < 20_000
    answers.flow(1000)
    answers.accept(answers.take())
    assert queue.octets == 0
    sender.send_octets(request("QUERY", "org.amqp.management", {"attributeNames": []}), settled=True)
    assert answers.take()


# --- what stays


def test_priorities_that_nobody_has_any_more_are_not_kept() -> None:
    """Any number is a priority: a flood of consumers, each of another, leaves nothing behind."""
    world = World()
    peer = world.connect()
    peer.receiver(credit=1)
    for number in range(200):
        receiver = peer.receiver(credit=1, properties={Symbol("priority"): Int(number)})
        receiver.detach()
    turns = world.broker.router.queues["q"].turns
    assert isinstance(turns, Turns) and len(turns.ranks) < 50


def test_priorities_are_served_by_rank_however_many_there_were() -> None:
    world = World()
    peer = world.connect()
    receivers = {}
    for number in (*range(0, 100, 2), *range(99, 0, -2)):
        receivers[number] = peer.receiver(credit=1, properties={Symbol("priority"): Int(number)})
    for number in range(90):
        receivers.pop(number).detach()
    sender = world.connect().sender()
    for number in range(99, 89, -1):
        sender.send(f"for {number}")
        assert receivers[number].receive() == [f"for {number}"]


def test_a_closed_link_looks_at_its_own_deliveries_only() -> None:
    """A hundred thousand of another link in its session are not its affair; and its own are found."""
    world = World()
    sender = world.connect().sender()
    sender.send(*map(str, range(20)))
    peer = world.connect()
    older = peer.receiver(credit=5)
    newer = peer.receiver(credit=5)
    assert [older.receive(), newer.receive()] == [list("01234"), list("56789")]
    newer.detach()
    older.flow(3)
    assert world.depth() == (7, 13)
    world.advance(0)
    world.advance(2)
    assert world.depth() == (12, 8)
    older.detach()
    world.advance(0)
    world.advance(2)
    assert world.depth() == (20, 0)


def test_messages_that_a_sender_never_settles_end_its_session() -> None:
    """Where the receiver settles first nothing stays; where the sender is to settle, each is kept until it does."""
    world = World({"limits": {"max_unsettled": 10}})
    peer = world.connect()
    sender: Sender = peer.sender(rcv_settle_mode=1)
    for number in range(10):
        assert sender.send(f"m{number}") == [[ACCEPTED]]
    assert not peer.ended
    sender.send("one too many")
    (error,) = peer.ended
    assert error is not None and error.condition == LIMIT
    assert "has sent 11 messages and not settled them, where 10 may be" in str(error)


def test_names_of_headers_bindings_are_gathered_for_a_message_and_not_for_each_binding(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty thousand names gathered anew for each of two thousand bindings took six milliseconds a binding."""
    made: list[int] = []
    monkeypatch.setattr(tables, "reader", lambda names: made.append(len(names)) or reader(names))
    world.broker.declare_queue("q")
    for number in range(50):
        binding = {"exchange": "amq.match", "queue": "q", "key": f"{number}",
                   "arguments": {"x-match": "any", f"h{number}": 1}}  # fmt: skip
        assert ask(world, "CREATE", "binding", binding)[0] == 201
    assert not made
    sender = world.connect().sender("amq.match")
    properties = encode_described(0x74, encode({"h7": 1}))
    for _ in range(3):
        assert sender.send_octets(properties + message("m")) == [ACCEPTED]
    assert made == [50] and world.queue().depth == 3
