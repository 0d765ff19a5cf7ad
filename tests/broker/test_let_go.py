"""Nothing that the broker is done with waits for the collector of garbage: the last reference goes, and it is free."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable

import pytest

from jmsish.broker import Broker
from jmsish.broker.connection import ServerConnection
from jmsish.broker.management import answer
from jmsish.engine.outcomes import Declare, Discharge, encode_control
from tests.bench.herd import CLOSE, HUGE, opening
from tests.broker.policies import config
from tests.broker.test_management import request
from tests.broker.world import Clock
from tests.wire.frames import RECEIVER, SENDER, composite, wrap, write

pytestmark = pytest.mark.usefixtures("uncollected")

TIMES = 3
ROOMS = ("jmsish.broker", "jmsish.engine")
REMEMBERED = {"TransactionalState"}
"""What the engine keeps the last ones of, so as not to read them again."""
BODY = b"\x00\x53\x77\xa1\x04body"
EXPIRING = b"\x00\x53\x70\xc0\x09\x03\x41\x50\x05\x70\x7f\x0f\x42\x40" + BODY
GROUPED = b"\x00\x53\x73\xc0\x10\x0b\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\xa1\x01g" + BODY


def living() -> Counter[str]:
    """What there is of the broker's own, by kind."""
    kinds = (type(each) for each in gc.get_objects())
    names = (kind.__qualname__ for kind in kinds if kind.__module__.startswith(ROOMS))
    return Counter(name for name in names if name not in REMEMBERED)


def leaves_nothing(happen: Callable[[], object]) -> None:
    """After each time there is what there was before, though nothing was collected, and nothing to be collected."""
    happen()  # what is made once stays
    gc.collect()
    before = living()
    for _ in range(TIMES):
        happen()
    assert living() - before == Counter()
    assert gc.collect() == 0


# -- what a peer says --------------------------------------------------------------------------------------------------


def sender(address: str | None, handle: int = 0, **target: object) -> bytes:
    node = composite("target", address=address, **target) if address else composite("target", **target)
    return write("attach", name=f"s{handle}", handle=handle, role=SENDER, initial_delivery_count=0,
                 source=composite("source"), target=node)  # fmt: skip


def receiver(address: str | None, handle: int = 0, credit: int = 10, **source: object) -> bytes:
    node = composite("source", address=address, **source) if address else composite("source", **source)
    attach = write("attach", name=f"r{handle}", handle=handle, role=RECEIVER, source=node, target=composite("target"))
    return attach + write("flow", next_incoming_id=0, incoming_window=HUGE, next_outgoing_id=0, outgoing_window=HUGE,
                          handle=handle, delivery_count=0, link_credit=credit)  # fmt: skip


def transfer(number: int, payload: bytes = BODY, handle: int = 0, **fields: object) -> bytes:
    tag = number.to_bytes(4, "big")
    return write("transfer", 0, payload, handle=handle, delivery_id=number, delivery_tag=tag, **fields)


def detach(handle: int, closed: bool = True) -> bytes:
    return write("detach", handle=handle, closed=closed)


CONTROL = write("attach", name="c", handle=5, role=SENDER, initial_delivery_count=0, source=composite("source"),
                target=composite("coordinator"))  # fmt: skip
DECLARE = transfer(100, encode_control(Declare()), 5)
ACCEPT = write("disposition", role=RECEIVER, first=0, last=9, settled=True, state=composite("accepted"))
LINKS = sender("q") + receiver("q", 1)
SAID = {
    "nothing": [],
    "another protocol": [b"GET / HTTP/1.1\r\n\r\n"],
    "its header alone": [b"AMQP\0\1\0\0"],
    "half a frame": [opening("c")[:40]],
    "its open": [opening("c")],
    "links": [opening("c") + LINKS],
    "links that it detaches": [opening("c") + LINKS, detach(0) + detach(1)],
    "links that it leaves": [opening("c") + LINKS, detach(0, closed=False) + detach(1, closed=False)],
    "a session that it ends": [opening("c") + LINKS, write("end")],
    "messages": [opening("c") + LINKS, transfer(0) + transfer(1, settled=True)],
    "messages that it accepts": [opening("c") + LINKS, transfer(0) + transfer(1), ACCEPT],
    "messages, and leaves": [opening("c") + LINKS, transfer(0) + transfer(1), detach(1, closed=False)],
    "messages, and closes the link": [opening("c") + LINKS, transfer(0) + transfer(1), detach(1) + ACCEPT],
    "half a message": [opening("c") + LINKS, transfer(0, more=True)],
    "messages for no window": [
        opening("c") + LINKS + write("flow", next_incoming_id=0, incoming_window=0, next_outgoing_id=0,
                                     outgoing_window=0, handle=1, delivery_count=0, link_credit=9),
        transfer(0) + transfer(1), detach(1),
    ],  # fmt: skip
    "work in a transaction": [opening("c") + LINKS + CONTROL, DECLARE, transfer(0)],
    "a transaction without a link": [opening("c") + CONTROL, DECLARE, detach(5)],
    "a discharge of nothing": [opening("c") + CONTROL, transfer(0, encode_control(Discharge(b"x", False)), 5)],
    "a temporary queue": [opening("c") + receiver(None, dynamic=True)],
    "a temporary topic": [opening("c") + sender(None, dynamic=True, capabilities=["temporary-topic"])],
    "a subscription": [opening("c") + receiver("amq.topic/a.*", 0)],
    "a durable subscription": [opening("c") + receiver("amq.topic/a.*", 0, expiry_policy="never")],
    "an anonymous sender": [opening("c") + sender(None)],
    "links to the management": [opening("c") + receiver("$management", 0) + sender("$management", 1)],
    "an illegal link": [opening("c") + receiver("amq.topic", 0, dynamic=True) + detach(0)],
    "a link twice": [opening("c") + sender("q") + sender("q", 1)],
    "a handle that is none": [opening("c") + LINKS + detach(77)],
    "a frame that is none": [opening("c") + LINKS + b"\0\0\0\7\2\0\0\0"],
    "a frame that cannot be read": [opening("c") + LINKS + wrap(b"\0\x53\x12\xc0\xff")],
}  # fmt: skip


class Room:
    """A broker, and connections that come and go."""

    def __init__(self, config: dict[str, object] | None = None) -> None:
        self.clock = Clock()
        self.broker = Broker("test", config, clock=self.clock)
        self._monotonic = 1000.0

    def connect(self, trusted: bool = True) -> ServerConnection:
        connection = self.broker.accept(trusted=trusted, peer="10.0.0.7:1234")
        connection.tick(self._monotonic)
        return connection

    def say(self, connection: ServerConnection, *octets: bytes) -> bytes:
        heard = b""
        for each in octets:
            if not connection.closed:
                connection.receive(each)
            self.broker.step()
            for asked, question in self.broker.questions:
                asked.login.answered(question())
            self.broker.questions.clear()
            heard += connection.take_output()
        return heard

    def wait(self, connection: ServerConnection, seconds: float) -> None:
        self._monotonic += seconds
        self.clock.now += seconds
        self.broker.tick(self.clock.now)
        connection.tick(self._monotonic)
        self.say(connection, b"")


def closes(room: Room, connection: ServerConnection) -> None:
    room.say(connection, CLOSE)


def is_cut_off(room: Room, connection: ServerConnection) -> None:
    connection.receive_eof()
    room.say(connection, b"")


def is_let_go(room: Room, connection: ServerConnection) -> None:
    connection.close(None)
    room.say(connection, CLOSE)


def is_let_go_and_says_nothing(room: Room, connection: ServerConnection) -> None:
    connection.close(None)
    room.say(connection, b"")
    room.wait(connection, 1)
    room.wait(connection, 2)


def is_silent(room: Room, connection: ServerConnection) -> None:
    room.wait(connection, 100)
    room.wait(connection, 100)
    room.wait(connection, 2)


ENDS = [closes, is_cut_off, is_let_go, is_let_go_and_says_nothing, is_silent]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
@pytest.mark.parametrize("said", SAID)
def test_a_connection_with_all_it_had(said: str, end: Callable[[Room, ServerConnection], None]) -> None:
    room = Room()

    def happen() -> None:
        connection = room.connect()
        room.say(connection, *SAID[said])
        end(room, connection)
        connection.receive_eof()
        room.say(connection, b"")
        if "q" in room.broker.router.queues:
            room.broker.queue("q").purge()
        assert connection.closed and connection.ended

    leaves_nothing(happen)


@pytest.mark.parametrize("attach", [sender("q"), receiver("q"), receiver("amq.fanout"), CONTROL, sender(None)])
@pytest.mark.parametrize("closed", [True, False])
def test_a_link_of_a_connection_that_goes_on(attach: bytes, closed: bool) -> None:
    room = Room()
    connection = room.connect()
    room.say(connection, opening("c"))
    handle = 5 if attach is CONTROL else 0
    leaves_nothing(lambda: room.say(connection, attach, detach(handle, closed=closed)))


def test_links_that_are_left_with_messages_unsettled_stay_until_these_are_settled() -> None:
    """And no more of them than a few, though their session goes on."""
    room = Room()
    connection = room.connect()
    room.say(connection, opening("c") + sender("q", 9))
    number = 0

    def happen() -> None:
        nonlocal number
        for _ in range(20):
            room.say(connection, transfer(number, handle=9), receiver("q", 0), detach(0, closed=False))
            settled = write("disposition", role=RECEIVER, first=number, settled=True, state=composite("accepted"))
            room.say(connection, settled)
            number += 1

    happen()
    gc.collect()
    before = living()
    happen()
    more = living() - before
    assert more["Link"] <= 2 and more["OutgoingLink"] <= 2


def test_a_session_of_a_connection_that_goes_on() -> None:
    room = Room()
    connection = room.connect()
    room.say(connection, opening("c"), write("end"))
    begin = write("begin", next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    leaves_nothing(lambda: room.say(connection, begin + LINKS, transfer(0), ACCEPT, write("end")))
    leaves_nothing(lambda: room.say(connection, begin + LINKS + detach(77), write("end")))  # which we have ended


def test_a_session_too_many() -> None:
    room = Room(config(max_sessions=1))
    connection = room.connect()
    room.say(connection, opening("c"))
    begin = write("begin", 1, next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    leaves_nothing(lambda: room.say(connection, begin, write("end", 1)))
    assert connection.census()[0] == 1 and not connection.ended


def test_a_transaction_that_is_discharged() -> None:
    room = Room({"policy": {"transaction_timeout": 60}})
    connection = room.connect()
    room.say(connection, opening("c") + LINKS + CONTROL)
    number = 0

    def happen() -> None:
        nonlocal number
        for fail in (False, True):
            room.say(connection, transfer(number, encode_control(Declare()), 5))
            (transaction,) = connection.transactions.values()
            state = composite("transactional-state", txn_id=transaction.id)
            room.say(connection, transfer(number + 1, state=state))
            discharge = transfer(number + 2, encode_control(Discharge(transaction.id, fail)), 5)
            del transaction
            room.say(connection, discharge)
            number += 3
        outcome = composite("accepted")
        for delivery in list(connection.engine.sessions[0].outgoing):
            room.say(connection, write("disposition", role=RECEIVER, first=delivery, settled=True, state=outcome))

    leaves_nothing(happen)


@pytest.mark.parametrize(("mechanism", "response"), [
    ("PLAIN", b"\0alice\0wrong"), ("PLAIN", b"\0alice\0secret"), ("SCRAM-SHA-256", b"n,,n=alice,r=abc"),
    ("SCRAM-SHA-512", b"what"), ("NONSENSE", b""),
])  # fmt: skip
def test_a_login_that_is_refused_left_or_ends_without_an_open(mechanism: str, response: bytes) -> None:
    room = Room({"users": {"alice": {"password": "secret"}}, "authentication": {"allow_cleartext": True}})

    def happen() -> None:
        connection = room.connect(trusted=False)
        init = write("sasl-init", mechanism=mechanism, initial_response=response)
        heard = room.say(connection, b"AMQP\3\1\0\0" + init[:5] + b"\1" + init[6:])
        assert heard.startswith(b"AMQP\3\1\0\0")
        room.wait(connection, 100)
        connection.receive_eof()
        room.say(connection, b"")

    happen()  # its host is slowed down from now on, which is remembered
    leaves_nothing(happen)


@pytest.mark.parametrize("policy", [{"policy": {"max_connections": 1}}, {"vhosts": {"shop": {}}}])
def test_a_connection_that_policy_refuses(policy: dict[str, object]) -> None:
    room = Room(policy)
    kept = room.connect()

    def happen() -> None:
        connection = room.connect()
        room.say(connection, opening("c") + LINKS)
        assert connection.ended and not connection.admitted
        connection.receive_eof()
        room.say(connection, b"")

    leaves_nothing(happen)
    assert not kept.ended


@pytest.mark.parametrize("payload", [BODY, EXPIRING, GROUPED])
@pytest.mark.parametrize("held", [True, False])
def test_a_queue_that_is_deleted_with_all_it_holds(payload: bytes, held: bool) -> None:
    """What somebody had in hand then is with the session until that is over."""
    room = Room()

    def happen() -> None:
        room.broker.declare_queue("q", message_groups=True)
        connection = room.connect()
        room.say(connection, opening("c") + sender("q") + transfer(0, payload) + transfer(1, payload))
        room.say(connection, receiver("q", 1, 1) if held else b"")
        assert room.broker.queue("q").acquired == held
        room.broker.delete_queue("q")
        room.say(connection, CLOSE)

    leaves_nothing(happen)


def test_exchanges_and_bindings_that_go() -> None:
    room = Room()
    connection = room.connect()
    room.say(connection, opening("c"))
    room.broker.declare_queue("q")
    number = 0

    def happen() -> None:
        nonlocal number
        exchange = room.broker.declare_exchange("x", "topic").exchange
        for key in ("a.*", "b.*"):
            exchange.bind(room.broker.router.queues["q"], key)
        for key in ("a.b", "b.a"):  # which lead to one binding each
            room.say(connection, sender(f"x/{key}") + transfer(number, settled=True) + detach(0))
            number += 1
        exchange.unbind(room.broker.router.queues["q"], "a.*")
        del exchange
        room.broker.delete_exchange("x")
        room.broker.queue("q").purge()

    leaves_nothing(happen)


REFUSED = [
    ("CREATE", {"exchange": "orders", "queue": "nowhere"}),
    ("CREATE", {"exchange": "orders", "queue": "q", "arguments": {"x-match": "all"}}),
    ("CREATE", {"exchange": "orders", "queue": "q", "arguments": {"x-filter-jms-selector": "a ="}}),
    ("CREATE", {"exchange": "orders", "queue": "q", "arguments": 5}),
    ("DELETE", {"exchange": "orders", "queue": "q", "key": "none"}),
]


@pytest.mark.parametrize(("operation", "body"), REFUSED)
def test_a_request_that_is_refused(operation: str, body: dict[str, object]) -> None:
    room = Room()
    room.broker.declare_exchange("orders", "direct")
    room.broker.declare_queue("q")
    leaves_nothing(lambda: answer(room.broker, request(operation, "binding", body)))


def test_the_kinds_that_are_counted_are_there() -> None:
    room = Room()
    connection = room.connect()
    room.say(connection, *SAID["work in a transaction"])
    assert living().keys() >= {"ServerConnection", "Engine", "EngineSession", "Link", "OutgoingLink", "Transaction"}
