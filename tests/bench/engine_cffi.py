"""Proton's C functions called through cffi, the cheapest way there is: events popped unseen, tags prepared, no copies.

This skips what a real engine on it could not (errors, several links, multi-frame deliveries), so it is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cproton_ffi import ffi, lib  # type: ignore[import-not-found]

from tests.bench.inmemory import payload

BATCH = 100
CREDIT = 1000
CHUNK = 8192
"""The most that one push takes."""
ACCEPTED = 0x24
TAGS = 4 * CREDIT


class ForeignCycle:
    name = "proton, C functions by cffi"

    def __init__(self) -> None:
        self.octets = payload()
        self.buffer = ffi.new("char[]", 1 << 16)
        self.client, self.client_transport, self.client_events = self.end(b"client", server=False)
        self.server, self.server_transport, self.server_events = self.end(b"server", server=True)
        self.receiver: Any = None
        self.number = 0
        self.tags = self.make_tags()
        lib.pn_connection_open(self.client)
        session = lib.pn_session(self.client)
        lib.pn_session_open(session)
        self.sender = lib.pn_sender(session, b"link")
        lib.pn_link_open(self.sender)
        lib.pn_connection_open(self.server)
        for _ in range(5):
            self.carry(self.client_transport, self.server_transport)
            self.drain(self.server_events, self.answer)
            self.carry(self.server_transport, self.client_transport)
            self.drain(self.client_events)
        assert lib.pn_link_credit(self.sender) == CREDIT

    @staticmethod
    def end(name: bytes, *, server: bool) -> tuple[Any, Any, Any]:
        connection, transport, events = lib.pn_connection(), lib.pn_transport(), lib.pn_collector()
        lib.pn_connection_set_container(connection, name)
        if server:
            lib.pn_transport_set_server(transport)
        lib.pn_transport_set_max_frame(transport, 1 << 16)
        lib.pn_transport_bind(transport, connection)
        lib.pn_connection_collect(connection, events)
        return connection, transport, events

    def make_tags(self) -> list[Any]:
        self.kept = []  # what the structs point into
        tags = []
        for number in range(TAGS):
            octets = ffi.from_buffer(number.to_bytes(4, "big"))
            tag = ffi.new("pn_bytes_t*")
            tag.size, tag.start = 4, ffi.cast("char*", octets)
            self.kept.append((tag, octets))
            tags.append(tag[0])
        return tags

    @staticmethod
    def carry(source: Any, target: Any) -> None:
        while (size := lib.pn_transport_pending(source)) > 0:
            space = ffi.new("char[]", size)
            lib.pn_transport_peek(source, space, size)
            data = ffi.buffer(space, size)[:]
            done = 0
            while done < size:
                pushed = lib.pn_transport_push(target, data[done : done + CHUNK], min(CHUNK, size - done))
                if pushed <= 0:
                    raise RuntimeError("proton takes no more")
                done += pushed
            lib.pn_transport_pop(source, size)

    @staticmethod
    def drain(events: Any, look: Callable[[Any], None] | None = None) -> None:
        while (event := lib.pn_collector_peek(events)) != ffi.NULL:
            if look is not None:
                look(event)
            lib.pn_collector_pop(events)

    def answer(self, event: Any) -> None:
        kind = lib.pn_event_type(event)
        if kind == lib.PN_SESSION_REMOTE_OPEN:
            lib.pn_session_open(lib.pn_event_session(event))
        elif kind == lib.PN_LINK_REMOTE_OPEN:
            self.receiver = lib.pn_event_link(event)
            lib.pn_link_open(self.receiver)
            lib.pn_link_flow(self.receiver, CREDIT)

    def batch(self) -> None:
        octets, size, sender, receiver, tags = self.octets, len(self.octets), self.sender, self.receiver, self.tags
        delivery_of, send, advance = lib.pn_delivery, lib.pn_link_send, lib.pn_link_advance
        sent = []
        for _ in range(BATCH):
            delivery = delivery_of(sender, tags[self.number % TAGS])
            self.number += 1
            send(sender, octets, size)
            advance(sender)
            sent.append(delivery)
        self.carry(self.client_transport, self.server_transport)
        pop = lib.pn_collector_pop
        while pop(self.server_events):
            pass
        self.take(receiver)
        lib.pn_link_flow(receiver, BATCH)
        self.carry(self.server_transport, self.client_transport)
        while pop(self.client_events):
            pass
        state_of, settle = lib.pn_delivery_remote_state, lib.pn_delivery_settle
        for delivery in sent:
            if state_of(delivery):
                settle(delivery)

    def take(self, receiver: Any) -> None:
        current, receive, advance, unpack = lib.pn_link_current, lib.pn_link_recv, lib.pn_link_advance, ffi.unpack
        update, settle, none, buffer = lib.pn_delivery_update, lib.pn_delivery_settle, ffi.NULL, self.buffer
        while (delivery := current(receiver)) != none:
            unpack(buffer, receive(receiver, buffer, 1 << 16))
            advance(receiver)
            update(delivery, ACCEPTED)
            settle(delivery)
