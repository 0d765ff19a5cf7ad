"""Valid conversations with a broker, made up at random: what a mutation begins with.

Each is what some client might say from its protocol header to its close: links of all kinds, messages in one frame and
in several, outcomes, credit, transactions, management, freezes. The names are few, so that conversations meet.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from jmsish.engine.codec import AMQP_VALUE, Header, encode_message
from jmsish.engine.sections import DATA
from jmsish.types import Described, Symbol, UInt, ULong
from tests.fuzz.said import Asking, Command, Lease, Part, Payload, Said, Txn, say
from tests.wire.frames import AMQP_HEADER, RECEIVER, SASL_HEADER, SENDER

QUEUES = ("q0", "q1", "q2", "small", "drops", "blocks", "groups")
EXCHANGES = ("direct", "topic", "fanout", "headers", "amq.topic", "chain")
TYPES = ("direct", "topic", "fanout", "headers")
KEYS = ("", "k", "a.b", "a.*", "#", "a.b.c")
ADDRESSES = (
    *QUEUES,
    *EXCHANGES,
    "direct/k",
    "topic/a.b",
    "headers/",
    "nowhere/k",
    "new0",
    "new1",
    "DLQ",
    "$management",
)
SELECTORS = (
    "a > 3", "JMSPriority > 4 AND b LIKE 'x%'", "c IN ('u', 'v') OR d IS NULL", "NOT (a = 1)", "x BETWEEN 1 AND 2",
    "a = 'it''s'", "JMSType = 't' AND JMSCorrelationID LIKE '_%' ESCAPE '!'", "1 = 1", "(((a)))",
)  # fmt: skip
OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
CAPABILITIES = ("queue", "topic", "temporary-queue", "temporary-topic", "shared", "global", "create-on-demand",
                "durable",
                "SHARED-SUBS", "DELAYED_DELIVERY", "REJECT_UNROUTABLE", "DISCARD_UNROUTABLE")  # fmt: skip
SELECTOR_CODE = ULong(0x0000468C00000004)
NO_LOCAL_CODE = ULong(0x0000468C00000003)
DIRECT_CODE, TOPIC_CODE, HEADERS_CODE = (ULong(0x0000468C00000000 + number) for number in range(3))
USER, PASSWORD = "alice", "secret"


class Link:
    """One link of the speaker, as it knows it."""

    def __init__(self, handle: int, sends: bool, kind: str, name: str) -> None:
        self.handle = handle
        self.sends = sends
        self.kind = kind
        self.name = name


class Session:
    """A session of the speaker."""

    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.links: list[Link] = []
        self.handles = 0
        self.delivery = 0


class Speaker:
    """Makes one conversation: ``frames`` grows by what is said."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.frames: list[Said] = []
        self.sessions: list[Session] = []
        self.home = rng.choice(QUEUES)
        """Where much of it goes, and comes from, so that there is something to receive and to settle."""

    def address(self) -> str:
        return self.home if self.chance(0.5) else self.rng.choice(ADDRESSES)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def say(self, name: str, session: Session, payload: Payload = b"", /, **fields: Any) -> None:
        self.frames.append(say(name, session.channel, payload, **fields))

    def converse(self) -> list[Said]:
        """A whole conversation."""
        self.greet()
        self.begin()
        for _ in range(self.rng.randint(1, 12)):
            self.act()
        self.part()
        return self.frames

    # --- opening and closing

    def greet(self) -> None:
        rng = self.rng
        if self.chance(0.4):
            self.frames.append(Said(None, octets=SASL_HEADER))
            if self.chance(0.05):
                self.frames.append(say("sasl-init", mechanism="SCRAM-SHA-256", initial_response=b"n,,n=alice,r=abcd"))
                self.frames.append(say("sasl-response", response=b"c=biws,r=abcd,p=AAAA"))
            elif self.chance(0.5):
                self.frames.append(say("sasl-init", mechanism="ANONYMOUS", initial_response=b"anybody"))
            else:
                password = rng.choice((PASSWORD, PASSWORD, "wrong"))
                response = f"\0{USER}\0{password}".encode()
                self.frames.append(say("sasl-init", mechanism="PLAIN", initial_response=response, hostname="h"))
        self.frames.append(Said(None, octets=AMQP_HEADER))
        self.frames.append(
            say(
                "open",
                container_id=rng.choice(("one", "two", "three")),
                hostname=rng.choice((None, "localhost", "vhost")),
                max_frame_size=rng.choice((None, None, 512, 1000, 65536)),
                channel_max=rng.choice((None, 0, 5, 65535)),
                idle_time_out=rng.choice((None, None, 1000, 60000)),
                desired_capabilities=rng.choice((None, None, ["ANONYMOUS-RELAY"], ["sole-connection-for-container"])),
                properties=rng.choice((None, {"product": "fuzz"})),
            )
        )

    def begin(self) -> None:
        session = Session(len(self.sessions))
        self.sessions.append(session)
        self.say(
            "begin",
            session,
            next_outgoing_id=0,
            incoming_window=self.rng.choice((0, 1, 5, 2048, 2048)),
            outgoing_window=2048,
            handle_max=self.rng.choice((None, None, 10, 0xFFFFFFFF)),
        )

    def part(self) -> None:
        if self.chance(0.3):
            for session in self.sessions:
                self.say("end", session)
        if self.chance(0.5):
            self.frames.append(say("close"))

    # --- acts

    def act(self) -> None:
        session = self.rng.choice(self.sessions)
        acts: list[tuple[int, Callable[[Session], None]]] = [
            (6, self.send), (6, self.receive), (2, self.transact), (2, self.manage), (1, self.freeze),
            (2, self.take_in_transaction), (2, self.detach), (1, self.end),
            (3, self.flow), (3, self.dispose), (1, self.attach_again),
        ]  # fmt: skip
        (act,) = self.rng.choices([each for _, each in acts], [weight for weight, _ in acts])
        act(session)

    def end(self, session: Session) -> None:
        if self.chance(0.3):
            self.say("end", session)
            self.sessions.remove(session)
        if len(self.sessions) < 3:
            self.begin()

    def attach(self, session: Session, sends: bool, kind: str, **fields: Any) -> Link:
        name = self.rng.choice((f"{kind}{session.handles}", f"{kind}{session.handles}", "same", "subscription"))
        link = Link(session.handles, sends, kind, name)
        session.handles += 1
        session.links.append(link)
        self.say(
            "attach",
            session,
            name=link.name,
            handle=link.handle,
            role=SENDER if sends else RECEIVER,
            initial_delivery_count=self.rng.choice((0, 0, 0xFFFFFFFE)) if sends else None,
            snd_settle_mode=self.rng.choice((None, 0, 1, 2)),
            rcv_settle_mode=self.rng.choice((None, None, 0, 1)),
            max_message_size=self.rng.choice((None, None, 0, 10_000)),
            **fields,
        )
        return link

    def capabilities(self) -> list[str] | None:
        return self.rng.sample(CAPABILITIES, self.rng.randint(1, 2)) if self.chance(0.3) else None

    def outcome(self, plain: bool = False) -> Part | None:
        rng = self.rng
        made: list[Callable[[], Part | None]] = [
            lambda: Part("accepted"),
            lambda: Part("accepted"),
            lambda: Part("rejected", {"error": Part("error", {"condition": "amqp:not-found", "description": "no"})}),
            lambda: Part("released"),
            lambda: Part("modified", {"delivery_failed": True, "undeliverable_here": rng.choice((None, True))}),
            lambda: Part("modified", {"message_annotations": {"x-opt-note": "n"}}),
        ]
        if not plain:
            made += [
                lambda: None,
                lambda: Part("received", {"section_number": 0, "section_offset": 0}),
                lambda: Part("transactional-state", {"txn_id": Txn(), "outcome": self.outcome(True)}),
            ]
        return rng.choice(made)()

    def attach_again(self, session: Session) -> None:
        """A link by a name that is known, here or in another session."""
        links = [link for each in self.sessions for link in each.links]
        if links:
            link = self.rng.choice(links)
            terminus = Part("target" if link.sends else "source", {"address": self.rng.choice(ADDRESSES)})
            known = self.attach(session, link.sends, link.kind, **{terminus.name: terminus})
            known.name = link.name
            body = self.frames[-1].body
            assert body is not None
            body.fields["name"] = link.name

    def detach(self, session: Session) -> None:
        if session.links:
            link = self.rng.choice(session.links)
            if self.chance(0.9):
                session.links.remove(link)
            self.say("detach", session, handle=link.handle, closed=self.rng.choice((None, True, True)))

    # --- sending

    def send(self, session: Session) -> None:
        senders = [link for link in session.links if link.sends and link.kind == "sender"]
        if senders and self.chance(0.6):
            link = self.rng.choice(senders)
        else:
            link = self.attach(session, True, "sender", source=Part("source"), target=self.target())
        for _ in range(self.rng.choice((1, 1, 2, 5))):
            self.transfer(session, link, self.message())

    def target(self) -> Part:
        if self.chance(0.15):
            return Part("target", {"dynamic": True, "dynamic_node_properties": self.node_properties(),
                                   "capabilities": self.capabilities()})  # fmt: skip
        address = None if self.chance(0.15) else self.address()
        return Part("target", {"address": address, "durable": self.rng.choice((None, 2)),
                               "capabilities": self.capabilities()})  # fmt: skip

    def node_properties(self) -> dict[str, Any] | None:
        rng = self.rng
        if self.chance(0.5):
            return None
        found: dict[str, Any] = {}
        if self.chance(0.5):
            found["lifetime-policy"] = Described(ULong(rng.choice((0x2B, 0x2C, 0x2D, 0x2E))), [])
        for name in ("durable", "exclusive", "auto-delete"):
            if self.chance(0.2):
                found[name] = self.chance(0.5)
        if self.chance(0.3):
            found["supported-dist-modes"] = Symbol("copy")
        if self.chance(0.2):
            found["exchange-type"] = rng.choice(TYPES)
        if self.chance(0.2):
            found["alternate-exchange"] = rng.choice(EXCHANGES)
        return found

    def message(self) -> bytes:
        rng = self.rng
        header = None
        if self.chance(0.5):
            header = Header(
                self.chance(0.5), rng.randint(0, 10), rng.choice((None, 0, 1, 5000)), False, rng.randint(0, 2)
            )
        annotations = {}
        if self.chance(0.1):
            annotations["x-opt-delivery-delay"] = rng.choice((1, 1000))
        if self.chance(0.1):
            annotations["x-opt-jms-dest"] = 0
        properties: list[Any] = []
        if self.chance(0.6):
            properties = [
                "id",
                rng.choice((None, b"alice", b"eve")),
                rng.choice(ADDRESSES),
                rng.choice(KEYS),
                "q0",
                "c",
            ]
            if self.chance(0.2):
                properties += [None, None, None, None, rng.choice(("g", "h")), UInt(rng.randint(0, 2))]
        application = {"a": rng.randint(0, 5), "b": "xyz", "c": "u"} if self.chance(0.4) else None
        text = "m" * rng.choice((0, 1, 1, 10, 10, 300, 300, 3000, 3000, 70_000 if self.chance(0.1) else 6000))
        body = (AMQP_VALUE, text) if self.chance(0.7) else (DATA, text.encode())
        return encode_message(header=header, annotations=annotations, properties=properties,
                              application_properties=application, body=body)  # fmt: skip

    def transfer(self, session: Session, link: Link, payload: Payload, **fields: Any) -> None:
        rng = self.rng
        number, session.delivery = session.delivery, session.delivery + 1
        first = {
            "delivery_id": number,
            "delivery_tag": number.to_bytes(4, "big"),
            "message_format": rng.choice((None, 0)),
            "settled": rng.choice((None, False, True)),
            "state": Part("transactional-state", {"txn_id": Txn()}) if self.chance(0.2) else None,
        } | fields
        cuts = rng.choice((1, 1, 1, 2, 4)) if isinstance(payload, bytes) and payload else 1
        size = len(payload) // cuts + 1 if isinstance(payload, bytes) else 0
        for cut in range(cuts):
            part = payload[cut * size : cut * size + size] if isinstance(payload, bytes) else payload
            more = cut + 1 < cuts
            aborted = True if more and self.chance(0.05) else None
            again = first if cut == 0 else ({"state": first["state"]} if self.chance(0.3) else {})
            self.say("transfer", session, part, handle=link.handle, more=more or None, aborted=aborted, **again)
            if aborted:
                return

    # --- receiving

    def receive(self, session: Session) -> None:
        receivers = [link for link in session.links if not link.sends]
        if receivers and self.chance(0.5):
            link = self.rng.choice(receivers)
        else:
            source = None if self.chance(0.05) else self.source()
            link = self.attach(session, False, "receiver", source=source, target=Part("target", {"address": "answers"}))
        self.credit(session, link)
        if self.chance(0.5):
            self.dispose(session)

    def source(self) -> Part:
        rng = self.rng
        if self.chance(0.15):
            return Part("source", {"dynamic": True, "dynamic_node_properties": self.node_properties(),
                                   "capabilities": self.capabilities()})  # fmt: skip
        return Part("source", {
            "address": self.address(),
            "durable": rng.choice((None, None, 0, 2)),
            "expiry_policy": rng.choice((None, None, "never", "session-end", "connection-close", "link-detach")),
            "timeout": rng.choice((None, None, 0, 5)),
            "distribution_mode": rng.choice((None, None, "copy", "move")),
            "filter": self.filters() if self.chance(0.4) else None,
            "default_outcome": self.outcome() if self.chance(0.3) else None,
            "outcomes": rng.choice((None, OUTCOMES, OUTCOMES[:1])),
            "capabilities": self.capabilities(),
        })  # fmt: skip

    def filters(self) -> dict[str, Any]:
        rng = self.rng
        found: dict[str, Any] = {}
        if self.chance(0.6):
            found["jms-selector"] = Described(SELECTOR_CODE, rng.choice(SELECTORS))
        if self.chance(0.2):
            found["no-local"] = Described(NO_LOCAL_CODE, [])
        if self.chance(0.3):
            found["binding"] = Described(rng.choice((DIRECT_CODE, TOPIC_CODE)), rng.choice(KEYS))
        if self.chance(0.2):
            arguments = {"x-match": rng.choice(("all", "any")), "a": rng.randint(0, 5), "b": None}
            found["headers"] = Described(HEADERS_CODE, arguments)
        if self.chance(0.1):
            found["plain"] = rng.choice(KEYS)
        return found

    def credit(self, session: Session, link: Link) -> None:
        self.say(
            "flow", session, next_incoming_id=0, incoming_window=2048, next_outgoing_id=session.delivery,
            outgoing_window=2048, handle=link.handle, delivery_count=self.rng.choice((None, 0, 0, 1)),
            link_credit=self.rng.choice((0, 1, 10, 100)), drain=self.rng.choice((None, None, True)),
            echo=self.rng.choice((None, None, True)),
            properties={"txn-id": Txn()} if self.chance(0.05) else None,
        )  # fmt: skip

    def flow(self, session: Session) -> None:
        if session.links and self.chance(0.6):
            self.credit(session, self.rng.choice(session.links))
        else:
            self.say("flow", session, next_incoming_id=0, incoming_window=self.rng.choice((0, 3, 2048)),
                     next_outgoing_id=session.delivery, outgoing_window=2048, echo=True)  # fmt: skip

    def dispose(self, session: Session) -> None:
        first = self.rng.randint(0, 3)
        self.say("disposition", session, role=RECEIVER, first=first,
                 last=self.rng.choice((None, first, first + self.rng.randint(0, 5))),
                 settled=self.rng.choice((None, True, True)), state=self.outcome())  # fmt: skip

    # --- transactions

    def transact(self, session: Session) -> None:
        controls = [link for link in session.links if link.kind == "control"]
        link = self.rng.choice(controls) if controls else None
        if link is None:
            capabilities = self.rng.choice((None, ["amqp:local-transactions"]))
            source = Part("source", {"outcomes": self.rng.choice((None, OUTCOMES))})
            target = Part("coordinator", {"capabilities": capabilities})
            link = self.attach(session, True, "control", source=source, target=target)
        if link is not None:
            command = (
                Part("declare") if self.chance(0.6) else Part("discharge", {"txn_id": Txn(), "fail": self.chance(0.4)})
            )
            self.command(session, link, command)

    def command(self, session: Session, link: Link, command: Part) -> None:
        number, session.delivery = session.delivery, session.delivery + 1
        self.say("transfer", session, Command(command), handle=link.handle, delivery_id=number,
                 delivery_tag=number.to_bytes(4, "big"), settled=self.rng.choice((None, None, True)))  # fmt: skip

    def take_in_transaction(self, session: Session) -> None:
        """A transaction as it is meant: work of both kinds, and its end."""
        self.transact(session)
        controls = [link for link in session.links if link.kind == "control"]
        link = self.attach(
            session, True, "sender", source=Part("source"), target=Part("target", {"address": self.home})
        )
        for settled in (True, None):
            self.transfer(session, link, self.message(), settled=settled, state=None)
            self.transfer(session, link, self.message(), state=Part("transactional-state", {"txn_id": Txn()}))
        source = Part("source", {"address": self.home, "outcomes": OUTCOMES, "default_outcome": self.outcome(True)})
        reader = self.attach(session, False, "receiver", source=source, target=Part("target", {"address": "answers"}))
        properties = {"txn-id": Txn()} if self.chance(0.2) else None
        self.say("flow", session, next_incoming_id=0, incoming_window=2048, next_outgoing_id=session.delivery,
                 outgoing_window=2048, handle=reader.handle, delivery_count=0, link_credit=5,
                 properties=properties)  # fmt: skip
        for first in range(3):
            state = Part("transactional-state", {"txn_id": Txn(), "outcome": self.outcome(True)})
            self.say("disposition", session, role=RECEIVER, first=first, settled=self.rng.choice((None, True)),
                     state=state)  # fmt: skip
        if self.chance(0.3):
            self.detach(session)
        if controls:
            self.command(session, controls[0], Part("discharge", {"txn_id": Txn(), "fail": self.chance(0.4)}))

    # --- management

    def freeze(self, session: Session) -> None:
        """A freeze by request, what it holds up, and its end."""
        self.manage(session)
        asks = next(link for link in session.links if link.kind == "management")
        name, key = self.rng.choice((("direct", "k"), ("topic", "a.b"), ("fanout", "")))
        item = {"queue": self.home, "key": key}
        limits = {"timeout": 1, "max_hold": self.rng.choice((1, 5, 30))}
        self.transfer(session, asks, Asking("FREEZE", "exchange", {"exchanges": [name], **limits}))
        target = Part("target", {"address": f"{name}/{key}", "capabilities": self.capabilities()})
        sender = self.attach(session, True, "sender", source=Part("source"), target=target)
        for _ in range(self.rng.randint(0, 3)):
            self.transfer(session, sender, self.message())
        if self.chance(0.5):
            source = Part("source", {"address": name, "filter": self.filters() if self.chance(0.3) else None})
            self.attach(session, False, "receiver", source=source, target=Part("target", {"address": "answers"}))
        for operation in ("BIND", "UNBIND", "REBIND"):
            if self.chance(0.3):
                body = {"add": [item], "remove": [item]} if operation == "REBIND" else {"exchange": name, **item}
                body = {**body, "lease": Lease()} if self.chance(0.7) else body
                self.transfer(session, asks, Asking(operation, "exchange", body, {"name": name}))
        if self.chance(0.7):
            end = Asking(self.rng.choice(("THAW", "CANCEL")), "exchange", {"lease": Lease()})
            self.transfer(session, asks, end)

    def manage(self, session: Session) -> None:
        known = [link for link in session.links if link.kind == "management"]
        if not known:
            self.attach(session, False, "answers", source=Part("source", {"address": "$management"}),
                        target=Part("target", {"address": "answers"}))  # fmt: skip
            self.credit(session, session.links[-1])
            target = Part("target", {"address": "$management"})
            known = [self.attach(session, True, "management", source=Part("source"), target=target)]
        for _ in range(self.rng.randint(1, 3)):
            self.transfer(session, known[0], self.request())

    def request(self) -> Asking:
        rng = self.rng
        queue, exchange, key = rng.choice((*QUEUES[:3], "new0", "new1")), rng.choice(EXCHANGES), rng.choice(KEYS)
        settings = rng.choice(({}, {"max_messages": 3}, {"overflow": "drop-head", "max_messages": 1},
                               {"exclusive_consumer": True}, {"redelivery_delay": 1.5}, {"durable": True}))  # fmt: skip
        item = {"queue": queue, "key": key}
        if exchange == "headers":
            item["arguments"] = {"x-match": "all", "a": rng.randint(0, 3)}
        bind = {"exchange": exchange, **item}
        return rng.choice((
            Asking("CREATE", "queue", settings, {"name": queue}), Asking("UPDATE", "queue", settings, {"name": queue}),
            Asking("READ", "queue", None, {"name": queue}), Asking("DELETE", "queue", None, {"name": "new0"}),
            Asking("PURGE", "queue", None, {"name": queue}), Asking("QUERY", rng.choice((None, "queue", "binding")),
                                                                    {"attributeNames": []}, {"count": 5, "offset": 0}),
            Asking("REDIRECT", "queue", {"target": rng.choice(("new1", "q2"))}, {"name": "new0"}),
            Asking("CREATE", "exchange", {"type": rng.choice(TYPES)}, {"name": "made"}),
            Asking("DELETE", "exchange", None, {"name": "made"}), Asking("CREATE", "topic", None, {"name": "made"}),
            Asking("BIND", "exchange", bind, {"name": exchange}),
            Asking("UNBIND", "exchange", bind, {"name": exchange}),
            Asking("BIND", "exchange", {**bind, "lease": Lease()}, {"name": exchange}),
            Asking("REBIND", "exchange", {"add": [item], "remove": [item]}, {"name": exchange}),
            Asking("FREEZE", "exchange", {"exchanges": [exchange], "timeout": 1, "max_hold": rng.choice((1, 5))}),
            Asking("FREEZE", "exchange", {"exchanges": ["direct", "topic"], "max_hold": 2}),
            Asking("THAW", "exchange", {"lease": Lease()}), Asking("CANCEL", "exchange", {"lease": Lease()}),
            Asking(rng.choice(("GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS")), "self"),
            Asking("READ", "subscription", None, {"name": "s"}), Asking("READ", "broker"),
        ))  # fmt: skip
