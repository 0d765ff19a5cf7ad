"""What a session does with the frames of its peer, other than the transfers that the engine's loop reads by itself.

Each function takes one frame whose descriptor has been read: ``data`` from ``pos`` to ``end`` is the list of fields
and, for a transfer, the payload. What is wrong is raised as a fault, which ends as much as it must: a
:class:`LinkFault` the link, a :class:`SessionFault` the session (W14), a plain fault or a DecodeError the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Any

from .conditions import (
    FRAMING_ERROR,
    HANDLE_IN_USE,
    INVALID_FIELD,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT_EXCEEDED,
    STOLEN,
    TRANSFER_LIMIT_EXCEEDED,
    UNATTACHED_HANDLE,
    WINDOW_VIOLATION,
    Fault,
    LinkFault,
    SessionFault,
)
from .delivery import Delivery
from .endpoint import REMOTE_CLOSE, REMOTE_OPEN
from .events import ABORTED, ARRIVED, ATTACHED, DELIVERED, DETACHED, FLOWED, MISSED, PARTIAL
from .frames import read_fields
from .link import Link
from .outgoing import resume_held
from .oversize import drop
from .performatives import ATTACH, DETACH, DISPOSITION, FLOW, TRANSFER, Attach, decode_list, read_attach, read_detach
from .ranges import deliveries_in
from .rest import Rest, report_disposed
from .serial import serial_difference
from .session import HANDLE_MAX
from .states import AmqpError, DeliveryState, TransactionalState, decode_state
from .streaming import keep, whole
from .unfinished import weigh_unfinished
from .values import DecodeError

if TYPE_CHECKING:
    from .session import EngineSession
    from .sharing import Share

__all__ = ["TAKERS"]

_MASK = 0xFFFFFFFF
_TAG_LIMIT = 32


def _checked(fields: list[Any], kinds: tuple[tuple[str, type, bool], ...], name: str) -> list[Any]:
    """The fields, padded to their full number, each of its kind."""
    if len(fields) > len(kinds):
        raise DecodeError(f"{name} has {len(kinds)} fields, not {len(fields)}", 0)
    fields.extend([None] * (len(kinds) - len(fields)))
    for value, (field, kind, mandatory) in zip(fields, kinds):  # noqa: B905 - equal by the line above
        if value is None:
            if mandatory:
                raise DecodeError(f"the mandatory field {name}.{field} is missing", 0)
        elif type(value) is not kind and not (kind is DeliveryState and isinstance(value, DeliveryState)):
            raise DecodeError(f"the field {name}.{field} cannot be a {type(value).__name__}", 0)
    return fields


# -- attach and detach -------------------------------------------------------------------------------------------------


def take_attach(session: EngineSession, data: bytes, pos: int, end: int) -> None:
    """Part 2, 2.6.3: an answer to our attach, or a link the peer makes."""
    attach = read_attach(decode_list(data, pos, end, "attach"))
    if attach.handle > HANDLE_MAX:
        # Part 2, 2.7.2: "a peer that receives a handle outside the supported range MUST close the connection".
        raise Fault(FRAMING_ERROR, f"handle {attach.handle} is beyond the handle-max of {HANDLE_MAX}")
    if attach.handle in session.remote_links:
        name = session.remote_links[attach.handle].name
        raise SessionFault(HANDLE_IN_USE, f"handle {attach.handle} is in use by the link {name!r}")
    if not attach.is_receiver and attach.initial_delivery_count is None:
        # Part 2, 2.7.3: "This MUST NOT be null if role is sender".
        raise SessionFault(INVALID_FIELD, f"the attach of {attach.name!r} as sender has no initial-delivery-count")
    engine = session.engine
    if engine.remote_link_count >= engine.limits.max_links:
        raise Fault(RESOURCE_LIMIT_EXCEEDED, f"more than {engine.limits.max_links} links are attached")
    link = session.take_awaiting(attach.name, attach.is_receiver)
    if link is None:
        link = _new_link(session, attach)
    _record(link, attach)
    link.advance(REMOTE_OPEN)
    session.remote_links[attach.handle] = link
    engine.remote_link_count += 1
    if not link.local_closed:
        link.arm()
        session.engine.report((ATTACHED, link))


def _new_link(session: EngineSession, attach: Attach) -> Link:
    names = session.engine.link_names
    key = (attach.name, attach.is_receiver)
    other = names.get(key)
    if other is not None:
        # Part 2, 2.6.1: a link has one pair of termini; attached anew, it is taken from where it was.
        other.fail(AmqpError(STOLEN, f"the link {attach.name!r} was attached anew"))
    link = Link(session, attach.name, attach.is_receiver)
    link.snd_settle_mode = attach.snd_settle_mode
    link.rcv_settle_mode = attach.rcv_settle_mode
    if not attach.is_receiver:
        link.max_message_size = session.engine.max_message_size
    names[key] = link
    return link


def _record(link: Link, attach: Attach) -> None:
    link.remote_handle = attach.handle
    link.remote_source = attach.source
    link.remote_target = attach.target
    link.remote_snd_settle_mode = attach.snd_settle_mode
    link.remote_rcv_settle_mode = attach.rcv_settle_mode
    link.remote_max_message_size = attach.max_message_size
    link.remote_properties = attach.properties
    link.remote_offered_capabilities = attach.offered_capabilities
    link.remote_desired_capabilities = attach.desired_capabilities
    link.remote_unsettled = attach.unsettled
    link.incomplete_unsettled = attach.incomplete_unsettled
    if not link.is_sender:
        # Credit may have been granted before the count was known; it counts from here.
        start = attach.initial_delivery_count or 0
        link.limit = (start + link.credit) & _MASK
        link.granted = (start + link.granted) & _MASK


def take_detach(session: EngineSession, data: bytes, pos: int, end: int) -> None:
    """The peer detaches a link; what is unsettled of it stays with the session (W16)."""
    handle, closed, error = read_detach(decode_list(data, pos, end, "detach"))
    link = _link_at(session, handle, "detach")
    del session.remote_links[handle]
    session.engine.remote_link_count -= 1
    reported = link.fault is not None
    partial, link.current = link.current, None
    if partial is not None:
        # Its last frame cannot come any more, so there is nothing to be settled.
        session.forget(partial)
    link.advance(REMOTE_CLOSE)
    link.silence()
    session.link_closed(link)
    if not reported:
        session.engine.report((DETACHED, link, closed, error))


def _link_at(session: EngineSession, handle: int, frame: str) -> Link:
    link = session.remote_links.get(handle)
    if link is None:
        raise SessionFault(UNATTACHED_HANDLE, f"{frame} for handle {handle}, where no link is attached")
    return link


# -- flow --------------------------------------------------------------------------------------------------------------

_FLOW_FIELDS = (
    ("next-incoming-id", int, False),
    ("incoming-window", int, True),
    ("next-outgoing-id", int, True),
    ("outgoing-window", int, True),
    ("handle", int, False),
    ("delivery-count", int, False),
    ("link-credit", int, False),
    ("available", int, False),
    ("drain", bool, False),
    ("echo", bool, False),
    ("properties", dict, False),
)


def take_flow(session: EngineSession, data: bytes, pos: int, end: int) -> None:
    """Part 2, 2.5.6 and 2.6.7: windows, then credit; then whatever waited for either leaves."""
    fields, pos = read_fields(data, pos, end)
    if pos != end:
        raise DecodeError("octets behind the fields of flow", pos)
    following, window, going, _, handle, count, credit, available, drain, echo, properties = _checked(
        fields, _FLOW_FIELDS, "flow"
    )
    # Over an ordered connection our own count of the peer's frames is right. Where the flow is about a link, peers are
    # careless with their own, and it is not looked at; a flow of the session is about nothing else (2.5.6).
    if handle is None and serial_difference(going, session.next_incoming_id) < 0:
        text = f"flow.next-outgoing-id {going} is behind the {session.next_incoming_id} that came already"
        raise SessionFault(WINDOW_VIOLATION, text)
    link = None if handle is None else _link_at(session, handle, "flow")
    sent = session.next_outgoing_id
    if following is None:
        # 2.5.6: the peer has not seen our begin, so its window counts from our first id.
        following = session.initial_outgoing_id
    if serial_difference(following, sent) > 0:
        raise SessionFault(INVALID_FIELD, f"flow.next-incoming-id {following} is beyond the {sent} frames sent")
    session.set_remote_window(following, window)
    if link is not None and not link.discarding:
        link.flow_properties = properties
        link.echo_asked = bool(echo)
        if link.is_sender:
            _credit(link, count, credit, bool(drain))
        else:
            link.available, link.credit_heard = available, credit
            _progress(link, count)
        session.engine.report((FLOWED, link, properties))
    if session.backlog:
        session.pump()
    if echo:
        if link is None:
            session.write_flow(echo=False)
        elif not link.relays_echo:
            session.write_link_flow(link, echo=False)


def _credit(link: Link, count: int | None, credit: int | None, drain: bool) -> None:
    """At a sender: link-credit_snd := delivery-count_rcv + link-credit_rcv - delivery-count_snd (2.6.7)."""
    link.drain = drain
    link.awaiting_drain = link.awaiting_drain and drain
    if credit is None:
        return
    sent = link.delivery_count
    # Without a delivery-count the peer has not seen our attach: it counts from the first one.
    base = link.initial_delivery_count if count is None else count
    left = serial_difference(base, sent) + credit
    # `sent` is what counts: the credit may go below what waits here, and what waits then waits for more.
    link.credit = left - link.queued
    link.limit = (sent + left) & _MASK
    if link.held and left > 0:
        resume_held(link)


def _progress(link: Link, count: int | None) -> None:
    """At a receiver: the sender's delivery-count goes forward when it drains, and never back."""
    if count is None:
        return
    advance = serial_difference(count, link.delivery_count)
    if advance <= 0:
        return
    if advance > link.credit:
        link.limit = count  # More than was granted; the count is the sender's word, the credit is gone.
    link.credit = max(link.credit - advance, 0)


# -- transfer ----------------------------------------------------------------------------------------------------------

_TRANSFER_FIELDS = (
    ("handle", int, True),
    ("delivery-id", int, False),
    ("delivery-tag", bytes, False),
    ("message-format", int, False),
    ("settled", bool, False),
    ("more", bool, False),
    ("rcv-settle-mode", int, False),
    ("state", DeliveryState, False),
    ("resume", bool, False),
    ("aborted", bool, False),
    ("batchable", bool, False),
)


def take_transfer(session: EngineSession, data: bytes, pos: int, end: int) -> None:
    """A transfer in any layout, whole or part of a delivery."""
    # The window comes first: it counts every transfer, whatever else is wrong with it (2.5.6).
    left = session.incoming_left - 1
    if left < 0:
        raise SessionFault(WINDOW_VIOLATION, f"a transfer beyond the incoming window of {session.incoming_window}")
    session.incoming_left = left
    if left <= session.low_mark:
        session.low_mark = -1
        session.engine.unflushed.append(session)
    fields, pos = read_fields(data, pos, end)
    fields = _checked(fields, _TRANSFER_FIELDS, "transfer")
    link = _link_at(session, fields[0], "transfer")
    if session.share is not None and (fields[5] or link.current is not None):
        _count_share(session, session.share)
    if link.is_sender:
        raise SessionFault(NOT_ALLOWED, f"a transfer on handle {fields[0]}, where the peer receives")
    if link.discarding:
        _report_missed(session, f"the link {link.name!r}", fields)
        _discard(link, end - pos)
        return
    delivery = link.current
    try:
        if fields[8]:
            raise LinkFault(NOT_IMPLEMENTED, "deliveries cannot be resumed here", link)
        if delivery is None:
            delivery = _first_frame(session, link, fields)
        else:
            _further_frame(delivery, fields)
    except (LinkFault, SessionFault):
        if delivery is not None and fields[7] is None:
            fields[7] = delivery.remote_state
        _report_missed(session, f"the link {link.name!r}", fields)
        raise
    _add(link, delivery, fields, data[pos:end])


def miss(session: EngineSession, code: int, data: bytes, pos: int, end: int) -> None:
    """A frame for a session that we have ended: nothing is said to that, be it right or wrong."""
    try:
        fields = read_fields(data, pos, end)[0] + [None] * len(_TRANSFER_FIELDS)
    except (IndexError, ValueError, StructError):
        return
    if code == DISPOSITION and fields[0]:
        fields[7] = fields[4]
    _report_missed(session, f"the session on channel {session.remote_channel}", fields)


def _report_missed(session: EngineSession, where: str, fields: list[Any]) -> None:
    """A transfer, or an outcome, is dropped: its transaction cannot be whole without. What aborts never was."""
    if isinstance(fields[7], TransactionalState) and not fields[9]:
        session.engine.report((MISSED, session, where, fields[7]))


def _count_share(session: EngineSession, share: Share) -> None:
    """A frame of a large message: the peer hears of the window after each half of its share, unless it is held back."""
    share.came += 1
    if share.wants_flow and not session.held_back and session.low_mark >= 0:
        session.low_mark = -1
        session.engine.unflushed.append(session)


def _discard(link: Link, size: int) -> None:
    link.discarded += size
    limit = link.session.engine.discard_limit
    if link.discarded > limit:
        raise Fault(
            RESOURCE_LIMIT_EXCEEDED, f"more than {limit} octets came for the link {link.name!r} after it was detached"
        )


def _first_frame(session: EngineSession, link: Link, fields: list[Any]) -> Delivery:
    _, number, tag, message_format, settled, _, mode, state, _, _, _ = fields
    if number is None or tag is None:
        missing = "delivery-id" if number is None else "delivery-tag"
        raise SessionFault(INVALID_FIELD, f"the first transfer of a delivery has no {missing}")
    if len(tag) > _TAG_LIMIT:
        raise SessionFault(INVALID_FIELD, f"a delivery-tag of {len(tag)} octets, where {_TAG_LIMIT} are the most")
    if number in session.incoming:
        raise SessionFault(INVALID_FIELD, f"delivery-id {number} is that of a delivery still unsettled")
    if mode is not None and mode > link.rcv_settle_mode:
        # Part 2, 2.7.5: "if the negotiated link value is first, then it is illegal to set this field to second".
        raise LinkFault(INVALID_FIELD, f"transfer.rcv-settle-mode {mode} on a link where it is first", link)
    if link.credit > 0:
        link.credit -= 1
    elif not link.attached or serial_difference(link.granted, link.delivery_count) > 0:
        # Pipelined before our attach, or sent before the sender knew that we took credit back: both are within its
        # rights, and the delivery-count goes on alone.
        link.limit = (link.limit + 1) & _MASK
    else:
        raise LinkFault(TRANSFER_LIMIT_EXCEEDED, f"delivery {number} is beyond the credit granted", link)
    if not session.has_received:
        # The first of the session goes the general way, so that the short ones need not ask.
        session.has_received, session.first_incoming_id = True, number
        for other in session.remote_links.values():
            other.arm()
    delivery = Delivery(link, number, tag, b"", bool(settled), bool(settled))
    delivery.complete = False
    delivery.remote_state = state
    if message_format:
        delivery.message_format = message_format
    if mode is not None:
        delivery.rcv_settle_mode = mode
    if not settled:
        session.incoming[number] = delivery
    return delivery


def _further_frame(delivery: Delivery, fields: list[Any]) -> None:
    """Part 2, 2.7.5: what a further frame says again must be what the first one said."""
    _, number, tag, message_format, settled, _, _, state, _, _, _ = fields
    link = delivery.link
    if number is not None and number != delivery.id:
        raise SessionFault(
            INVALID_FIELD, f"delivery-id {number} in the middle of delivery {delivery.id} on the link {link.name!r}"
        )
    if tag is not None and tag != delivery.tag:
        raise SessionFault(INVALID_FIELD, f"the delivery-tag changed in the middle of delivery {delivery.id}")
    if message_format is not None and message_format != delivery.message_format:
        raise LinkFault(INVALID_FIELD, f"the message-format changed in the middle of delivery {delivery.id}", link)
    if state != delivery.remote_state:
        delivery.mixed_states = True
        if delivery.remote_state is None:
            delivery.remote_state = state
    if settled and not delivery.remote_settled:
        # 2.7.5: a delivery is settled when any of its frames said so.
        delivery.settled = delivery.remote_settled = True
        link.session.incoming.pop(delivery.id, None)


# hot: each frame that is not in the fast layout passes here.
def _add(link: Link, delivery: Delivery, fields: list[Any], payload: bytes) -> None:
    """Take the payload of one frame, and report the delivery where that was its last."""
    more, aborted = fields[5], fields[9]
    report = link.session.engine.report
    if aborted:
        # 2.6.14: aborted deliveries are settled, and their content is nothing; `more` means nothing here.
        delivery.aborted = delivery.complete = True
        delivery.settled = delivery.remote_settled = True
        delivery.parts = delivery.gathered = None
        link.session.forget(delivery)
        link.current = None
        link.arm()
        report((ABORTED, link, delivery))
        return
    delivery.size += len(payload)
    if link.max_message_size and delivery.size > link.max_message_size:
        drop(link, delivery, len(payload), more)
        return
    if delivery.stream is not None:
        delivery.stream.add(payload)
        if not more:
            link.current = None
            link.arm()
            delivery.complete = True
            report((ARRIVED, link, delivery))
        return
    keep(delivery, payload)
    if more:
        weigh_unfinished(link.session.engine, len(payload))
        if link.current is None:
            link.current = delivery
            link.disarm()
        if link.stream_from and delivery.size > link.stream_from and not delivery.announced:
            delivery.announced = True
            report((PARTIAL, link, delivery))
        return
    link.current = None
    link.arm()
    delivery.payload = whole(delivery)
    delivery.complete = True
    report((DELIVERED, link, delivery))


# -- disposition -------------------------------------------------------------------------------------------------------

_DISPOSITION_FIELDS = (
    ("role", bool, True),
    ("first", int, True),
    ("last", int, False),
    ("settled", bool, False),
    ("state", DeliveryState, False),
    ("batchable", bool, False),
)


# Count of fields, role, and the code of `first`.
_ROLES = {b"\x05\x41\x70": True, b"\x05\x42\x70": False}
_unpack_disposition = Struct(">IBIBB").unpack_from
_NOT_OURS = (0, 0, 0, 0, 0)


def take_disposition(session: EngineSession, data: bytes, pos: int, end: int) -> None:
    """Part 2, 2.7.6: a range over all links of the session, detached ones included."""
    role = _ROLES.get(data[pos + 2 : pos + 5]) if data[pos] == 0xC0 and end - pos > 18 else None
    first, code, last, how, described = _unpack_disposition(data, pos + 5) if role is not None else _NOT_OURS
    if code == 0x70 and described == 0 and (how == 0x41 or how == 0x42) and pos + 2 + data[pos + 1] == end:
        # The layout that we write ourselves: five fields, the ids in full width, a state.
        is_receiver, settled = bool(role), how == 0x41
        state, stop = decode_state(data, pos + 15)
    else:
        fields, stop = read_fields(data, pos, end)
        is_receiver, first, last, settled, state, _ = _checked(fields, _DISPOSITION_FIELDS, "disposition")
    if stop != end:
        raise DecodeError("octets behind the fields of disposition", stop)
    ledger = session.outgoing if is_receiver else session.incoming
    if last is None or last == first:
        delivery = ledger.get(first)
        deliveries = [] if delivery is None else [delivery]
    else:
        deliveries = deliveries_in(session, ledger, first, last, bool(settled))
        engine = session.engine
        if len(deliveries) > engine.limits.most_disposed:
            engine.rest = Rest(session, deliveries, state, bool(settled))
            engine.rest.report(engine.limits.most_disposed)
            return
    if deliveries:
        report_disposed(session, deliveries, state, bool(settled))


Taker = Callable[["EngineSession", bytes, int, int], None]

TAKERS: dict[int, Taker] = {
    ATTACH: take_attach,
    FLOW: take_flow,
    TRANSFER: take_transfer,
    DISPOSITION: take_disposition,
    DETACH: take_detach,
}

TAKEN_AFTER_END = frozenset({DISPOSITION})
"""What still counts between our end and the peer's (Part 2, 2.5.5: END SENT)."""
