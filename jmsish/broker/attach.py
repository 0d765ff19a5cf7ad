"""How an attach is answered: which node it means, and what of its wishes is granted (Part 3, 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.coordinator import ControlLink
from jmsish.broker.incoming import IncomingLink
from jmsish.broker.outgoing import OutgoingLink
from jmsish.broker.queues import Queue
from jmsish.broker.router import NOT_FOUND, NOT_IMPLEMENTED, RESOURCE_LOCKED, Refusal
from jmsish.engine.outcomes import (
    Accepted,
    Coordinator,
    DeliveryState,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
    UnknownState,
)
from jmsish.types import Array, Described, Symbol, ULong

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.engine.link import Link

INVALID_FIELD: Final = "amqp:invalid-field"
OUTCOMES: Final = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
TOPIC_CAPABILITIES: Final = frozenset({"topic", "temporary-topic"})
LIFETIME_POLICIES: Final = frozenset(range(0x2B, 0x2F)) | {
    f"amqp:delete-on-{until}:list" for until in ("close", "no-links", "no-messages", "no-links-or-messages")
}
DELETE_ON_CLOSE: Final = {Symbol("lifetime-policy"): Described(ULong(0x2B), [])}

# Described types of the standard that are no outcomes: performatives, error, received, termini, lifetime policies,
# coordinator, declare, discharge, transactional-state, SASL frames, message sections (W4).
_NO_OUTCOMES: Final = (
    frozenset(range(0x10, 0x19)) | {0x1D, 0x23, 0x28, 0x29} | frozenset(range(0x2B, 0x35))
    | frozenset(range(0x40, 0x45)) | frozenset(range(0x70, 0x79))
)  # fmt: skip
_NO_OUTCOME_NAMES: Final = frozenset(
    "open begin attach flow transfer disposition detach end close error received source target delete-on-close "
    "delete-on-no-links delete-on-no-messages delete-on-no-links-or-messages coordinator declare discharge "
    "transactional-state sasl-mechanisms sasl-init sasl-challenge sasl-response sasl-outcome header "
    "delivery-annotations message-annotations properties application-properties data amqp-sequence amqp-value "
    "footer".split()
)

Terminal = OutgoingLink | IncomingLink | ControlLink


def answer(connection: ServerConnection, link: Link) -> Terminal | None:
    """Answer the peer's attach; None where it was refused."""
    try:
        if link.is_sender:
            return _send_on(connection, link)
        if isinstance(link.remote_target, Coordinator):
            return _control(connection, link)
        return _receive_on(connection, link)
    except Refusal as refusal:
        link.refuse(refusal.error)
        return None


def _control(connection: ServerConnection, link: Link) -> ControlLink:
    if link.remote_unsettled:
        # "the control link cannot be resumed" (4.1): there is nothing left that its deliveries could mean (T15).
        raise Refusal(NOT_IMPLEMENTED, "a link to the coordinator cannot be resumed", {"field": "unsettled"})
    control = ControlLink(connection, link)
    control.attach()
    return control


# --- the peer receives


def _send_on(connection: ServerConnection, link: Link) -> OutgoingLink:
    source = link.remote_source
    if source is None:
        raise Refusal(NOT_FOUND, f"there is no subscription {link.name!r}")
    if not isinstance(source, Source):
        raise Refusal(INVALID_FIELD, "the source is of no kind known here", {"field": "source"})
    check_default_outcome(source.default_outcome)
    queue, temporary = _node(connection, link, source, "source")
    if queue is None:
        raise Refusal(INVALID_FIELD, "the source has no address", {"field": "source"})
    if queue.owner is not None and queue.owner is not connection:
        raise Refusal(RESOURCE_LOCKED, f"only the connection that created {queue.name!r} receives from it")
    copies = source.distribution_mode == "copy"
    link.snd_settle_mode = link.remote_snd_settle_mode
    link.rcv_settle_mode = link.remote_rcv_settle_mode
    consumer = OutgoingLink(connection, link, queue, copies=copies, number=connection.broker.next_number())
    consumer.temporary = temporary
    granted = replace(
        source,
        address=queue.name,
        filter=None,  # none is implemented: "the sending endpoint sets the filter actually in place" (3.5.3)
        distribution_mode="copy" if copies else "move",
        outcomes=source.outcomes or OUTCOMES,
        dynamic_node_properties=DELETE_ON_CLOSE if temporary else None,
        capabilities=_granted_capabilities(source.capabilities),
    )
    link.attach(source=granted)
    return consumer


def check_default_outcome(outcome: DeliveryState | None) -> None:
    """Only the four outcomes a message can have can be the default (3.5.3; W4 says which error the others are)."""
    if outcome is None or isinstance(outcome, (Accepted, Rejected, Released, Modified)):
        return
    info = {"field": "default-outcome"}
    if isinstance(outcome, UnknownState) and outcome.descriptor is not None:
        if not _is_standard(outcome.descriptor):
            description = f"default-outcome: the outcome {outcome.descriptor!r} is not supported"
            raise Refusal(NOT_IMPLEMENTED, description, info)
    elif type(outcome).__name__ == "Declared":
        raise Refusal(NOT_IMPLEMENTED, "default-outcome: declared is not supported for messages", info)
    raise Refusal(INVALID_FIELD, "default-outcome: this is not an outcome of a message", info)


def _is_standard(descriptor: object) -> bool:
    if isinstance(descriptor, int):
        return int(descriptor) in _NO_OUTCOMES
    parts = str(descriptor).split(":")
    return len(parts) == 3 and parts[0] == "amqp" and parts[1] in _NO_OUTCOME_NAMES


# --- the peer sends


def _receive_on(connection: ServerConnection, link: Link) -> IncomingLink:
    target = link.remote_target
    if not isinstance(target, Target):
        raise Refusal(INVALID_FIELD, "a sender needs a target", {"field": "target"})
    queue, temporary = _node(connection, link, target, "target")
    link.snd_settle_mode = link.remote_snd_settle_mode
    link.rcv_settle_mode = link.remote_rcv_settle_mode
    incoming = IncomingLink(connection, link, queue)
    incoming.temporary = temporary
    granted = replace(
        target,
        address=None if queue is None else queue.name,
        dynamic_node_properties=DELETE_ON_CLOSE if temporary else None,
        capabilities=_granted_capabilities(target.capabilities),
    )
    link.attach(source=link.remote_source, target=granted)
    incoming.top_up()
    return incoming


# --- both


def _node(
    connection: ServerConnection, link: Link, terminus: Source | Target, role: str
) -> tuple[Queue | None, bool]:
    """The queue a terminus names or wants made; whether it was made for it alone; none for an anonymous target."""
    if TOPIC_CAPABILITIES.intersection(terminus.capabilities):
        raise Refusal(NOT_IMPLEMENTED, f"topics are not supported in this version: {terminus.address!r}")
    if terminus.dynamic:
        if terminus.address is not None:
            # Who asks for a node does not name it: then "the address of the source MUST NOT be set" (3.5.3, 3.5.4).
            raise Refusal(INVALID_FIELD, f"a dynamic {role} cannot have an address", {"field": role})
        check_node_properties(terminus.dynamic_node_properties or {})
        # A temporary destination of JMS is read by its connection alone (10.2.2); a dynamic node by who knows its name.
        return connection.make_temporary(link, exclusive="temporary-queue" in terminus.capabilities), True
    if terminus.address is None:
        return None, False
    queue = connection.broker.router.resolve(terminus.address)
    # A link that made the queue, was detached without a close, and comes again is still the one that made it.
    return queue, connection.temporaries.get(queue) == (link.name, link.is_sender)


def check_node_properties(properties: Mapping[Any, Any]) -> None:
    """3.5.9: "the value of this entry MUST be of a type which provides the lifetime-policy archetype", and alike."""
    policy = properties.get("lifetime-policy")
    if policy is not None and not (isinstance(policy, Described) and policy.descriptor in LIFETIME_POLICIES):
        raise Refusal(INVALID_FIELD, f"lifetime-policy: {policy!r} is none", {"field": "dynamic-node-properties"})
    modes = properties.get("supported-dist-modes")
    for mode in modes if isinstance(modes, (list, Array)) else () if modes is None else (modes,):
        if not isinstance(mode, Symbol):
            description = f"supported-dist-modes: {mode!r} is no symbol"
            raise Refusal(INVALID_FIELD, description, {"field": "dynamic-node-properties"})


def _granted_capabilities(asked: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in asked if name in ("queue", "temporary-queue"))
