"""How an attach is answered: which node it means, and what of its wishes is granted (Part 3, 3.5)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.coordinator import ControlLink
from jmsish.broker.dynamic import NodeWishes
from jmsish.broker.exchanges import DIRECT, DISCARD, HEADERS, REJECT, TOPIC, Exchange
from jmsish.broker.filters import Filters, Wanted
from jmsish.broker.gates import GateClosed
from jmsish.broker.groups import Selects
from jmsish.broker.incoming import IncomingLink
from jmsish.broker.link_policy import (
    LinkDenied,
    check_bindings,
    check_count,
    check_source,
    check_target,
    check_wishes,
    note_denied,
)
from jmsish.broker.notes import check_default_notes
from jmsish.broker.outgoing import AnswerLink, OutgoingLink
from jmsish.broker.pending import Pending
from jmsish.broker.queues import Queue
from jmsish.broker.refusals import (
    INVALID_FIELD,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    RESOURCE_LOCKED,
    UNAUTHORIZED_ACCESS,
    Refusal,
)
from jmsish.broker.router import KINDS, QUEUE, Topic, kind_of
from jmsish.broker.selectors import check_room
from jmsish.broker.subscriptions import Content, Lookup, Subscription
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

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.management_links import ManagementNode
    from jmsish.engine.link import Link

OUTCOMES: Final = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
LINK_CAPABILITIES: Final = frozenset({"SHARED-SUBS", "DELAYED_DELIVERY"})
"""What some ask of a link where they did not find it at the connection (M47, M65)."""
PRIORITY_PROPERTIES: Final = ("priority", "rabbitmq:priority")
SHARED: Final = "shared"
SOURCE_CAPABILITIES: Final = frozenset({SHARED, "global"})
UNROUTABLE: Final = {"DISCARD_UNROUTABLE": DISCARD, "REJECT_UNROUTABLE": REJECT}
"""What the capabilities of a target say that is to become of messages that go nowhere (exchanges and policy, 1.8)."""
CREATE: Final = "create-on-demand"
DURABLE: Final = "durable"
BINDING_FILTERS: Final = {f"legacy-amqp-{type}-binding": type for type in (DIRECT, TOPIC, HEADERS)}
"""Capabilities by which some ask whether a filter would fit the exchange."""

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

Node = Queue | Exchange
Terminal = OutgoingLink | IncomingLink | ControlLink | Lookup | Pending


def answer(connection: ServerConnection, link: Link) -> Terminal | None:
    """Answer the peer's attach; None where it was refused."""
    try:
        if not isinstance(link.context, Pending):  # else it was counted when it came, and has waited since
            check_count(connection, link)
        if link.is_sender:
            return _send_on(connection, link)
        if isinstance(link.remote_target, Coordinator):
            return _control(connection, link)
        return _receive_on(connection, link)
    except Refusal as refusal:
        if refusal.error.condition == UNAUTHORIZED_ACCESS or isinstance(refusal, LinkDenied):
            note_denied(connection, link, refusal)
        connection.refuse(link, refusal.error)
        return None
    except GateClosed as closed:
        waiting: Terminal | None = Pending(connection, link, answer).wait(closed.gate)
        return waiting


def _control(connection: ServerConnection, link: Link) -> ControlLink:
    if link.remote_unsettled:
        # "the control link cannot be resumed" (4.1): there is nothing left that its deliveries could mean (T15).
        raise Refusal(NOT_IMPLEMENTED, "a link to the coordinator cannot be resumed", {"field": "unsettled"})
    control = connection.control_kind(connection, link)
    control.attach()
    return control


# --- the peer receives


def _send_on(connection: ServerConnection, link: Link) -> OutgoingLink | Lookup:
    source = link.remote_source
    if source is None:
        return _look_up(connection, link)
    if not isinstance(source, Source):
        raise Refusal(INVALID_FIELD, "the source is of no kind known here", {"field": "source"})
    check_default_outcome(source.default_outcome)
    own = None if source.dynamic else connection.own_node(source.address)
    if own is not None:
        own.check(connection, receives=True)
        return _answer_on(connection, link, source, own)
    check_source(connection, source)
    filters = connection.read_filters(source.filter)
    asked = _node(connection, link, source, "source")
    node, made = asked.node, asked.made
    if node is None:
        raise Refusal(INVALID_FIELD, "the source has no address", {"field": "source"})
    if not isinstance(node, Topic) or SHARED in source.capabilities:
        filters = filters.without_no_local()
    wanted: tuple[Wanted, ...] = ()
    if isinstance(node, Topic):
        filters, wanted = filters.at_exchange(node.exchange.type, node.key)
        check_bindings(connection, node, wanted)
    else:
        filters = filters.at_queue()
    check_room(connection, filters.size)
    granted = _granted_source(connection, source, filters, asked)
    link.snd_settle_mode = link.remote_snd_settle_mode
    link.rcv_settle_mode = link.remote_rcv_settle_mode
    if isinstance(node, Topic):
        content = Content(node.exchange, wanted, filters.selector, filters.no_local)
        joined = _subscribe(connection, link, granted, content, filters)
        consumer = _consume(connection, link, joined.queue)
        consumer.subscription = joined
    else:
        consumer = _read(connection, link, node, source.distribution_mode == "copy", filters)
    consumer.made = made
    consumer.bear(filters.size)
    link.attach(source=granted, offered_capabilities=_offered(link))
    return consumer


def _read(connection: ServerConnection, link: Link, queue: Queue, copies: bool, filters: Filters) -> OutgoingLink:
    """A consumer of a queue by its name, or a browser."""
    subscription = _check_reader(connection, queue, copies)
    consumer = _consume(connection, link, queue, copies=copies, selects=filters.selects)
    consumer.subscription, consumer.by_name = None if copies else subscription, True
    return consumer


def _answer_on(connection: ServerConnection, link: Link, source: Source, own: ManagementNode) -> OutgoingLink:
    """The answers of a node of the broker's own, by a queue of the link's own: none of those that are counted, for who
    manages a broker that has all the queues it may have has to be heard."""
    before = connection.made_by(link)
    if before is not None:
        connection.delete_temporary(before[0])  # the link comes again for something else
    queue = connection.broker.router.make_unlisted(connection)
    own.receives(connection, link, queue)
    link.snd_settle_mode = link.remote_snd_settle_mode
    link.rcv_settle_mode = link.remote_rcv_settle_mode
    consumer = AnswerLink(connection, link, queue, copies=False, number=connection.broker.next_number())
    link.attach(source=replace(source, filter=None, distribution_mode="move", outcomes=source.outcomes or OUTCOMES))
    return consumer


def _consume(
    connection: ServerConnection, link: Link, queue: Queue, *, copies: bool = False, selects: Selects | None = None
) -> OutgoingLink:
    return OutgoingLink(
        connection, link, queue, copies=copies, number=connection.broker.next_number(), selects=selects,
        priority=_priority_of(link),
    )  # fmt: skip


def _check_reader(connection: ServerConnection, queue: Queue, copies: bool) -> Subscription | None:
    """A temporary queue is its connection's, and a subscription that is not shared has one consumer, by any name.

    The subscription whose queue it is, if it is one of any.
    """
    if queue.owner is not None and queue.owner is not connection:
        raise Refusal(RESOURCE_LOCKED, f"only the connection that created {queue.name!r} receives from it")
    subscription = connection.broker.router.subscriptions.of(queue)
    if subscription is not None and subscription.is_active and not (subscription.shared or copies):
        raise Refusal(RESOURCE_LOCKED, f"the subscription {subscription.name!r} has a consumer, and is not shared")
    return subscription


def _priority_of(link: Link) -> int:
    """The priority of a consumer, by a property of its link: higher ones are served first, 0 is usual."""
    properties = link.remote_properties or {}
    for name in PRIORITY_PROPERTIES:
        value = properties.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
    return 0


def _subscribe(
    connection: ServerConnection, link: Link, source: Source, content: Content, filters: Filters
) -> Subscription:
    exchange = content.exchange
    if exchange.owner is not None and exchange.owner is not connection:
        raise Refusal(RESOURCE_LOCKED, f"only the connection that created {exchange.name!r} subscribes to it")
    return connection.broker.router.subscriptions.subscribe(connection, link, source, content, filters.selects)


def _granted_source(connection: ServerConnection, source: Source, filters: Filters, asked: Asked) -> Source:
    """What is in force of a source's wishes."""
    # A subscription has a copy of its own, whatever is said of it (D14); a queue's messages move, unless it is browsed.
    usual = "copy" if isinstance(asked.node, Topic) else "move"
    return replace(
        source,
        address=source.address if asked.made is None else asked.made.name,
        filter=filters.granted or None,
        distribution_mode="copy" if source.distribution_mode == "copy" else usual,
        outcomes=source.outcomes or OUTCOMES,
        dynamic_node_properties=asked.properties,
        capabilities=_granted_capabilities(connection, source.capabilities, asked.node, SOURCE_CAPABILITIES),
    )


def _look_up(connection: ServerConnection, link: Link) -> Lookup:
    """No source: the peer asks what the subscription of this name is, and may end it by closing the link (M68, M69)."""
    subscriptions = connection.broker.router.subscriptions
    subscription = subscriptions.find(link.name, connection.container_id, link.remote_desired_capabilities)
    if subscription is None:
        raise Refusal(NOT_FOUND, f"there is no subscription {link.name.partition('|')[0]!r}")
    check_source(connection, subscription.source)
    link.attach(source=subscription.source, offered_capabilities=_offered(link))
    return Lookup(link, subscription)


def check_default_outcome(outcome: DeliveryState | None) -> None:
    """Only the four outcomes a message can have can be the default (3.5.3; W4 says which error the others are)."""
    if outcome is None or isinstance(outcome, (Accepted, Rejected, Released, Modified)):
        check_default_notes(outcome)
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
    own = None if target.dynamic else connection.own_node(target.address)
    if own is not None:
        own.check(connection, receives=False)
    else:
        check_target(connection, target)
    asked = Asked() if own is not None else _node(connection, link, target, "target")
    node, made = asked.node, asked.made
    link.snd_settle_mode = link.remote_snd_settle_mode
    link.rcv_settle_mode = link.remote_rcv_settle_mode
    queue, topic = (None, node) if isinstance(node, Topic) else (node, None)
    incoming = IncomingLink(connection, link, queue, topic)
    incoming.made = made
    incoming.unroutable = None if queue is not None else _unroutable(target)
    if own is not None:
        incoming.sink = own.requests(connection)
    granted = replace(
        target,
        address=target.address if made is None else made.name,
        dynamic_node_properties=asked.properties,
        capabilities=_granted_capabilities(connection, target.capabilities, node, _unroutable_said(incoming)),
    )
    link.attach(source=link.remote_source, target=granted, offered_capabilities=_offered(link))
    incoming.top_up()
    return incoming


# --- both


@dataclass(frozen=True, slots=True)
class Asked:
    """What a terminus names or wants made; nothing for an anonymous target."""

    node: Queue | Topic | None = None
    made: Node | None = None
    """What was made for this link."""
    properties: Mapping[Any, Any] | None = None
    """What is true of it, of that which was asked."""


def _node(connection: ServerConnection, link: Link, terminus: Source | Target, role: str) -> Asked:
    kind = kind_of(terminus.capabilities)
    router = connection.broker.router
    if terminus.dynamic:
        if terminus.address is not None:
            # Who asks for a node does not name it: then "the address of the source MUST NOT be set" (3.5.3, 3.5.4).
            raise Refusal(INVALID_FIELD, f"a dynamic {role} cannot have an address", {"field": role})
        # A temporary destination of JMS is read by its connection alone (10.2.2); a dynamic node by who knows its name.
        exclusive = any(name.startswith("temporary-") for name in terminus.capabilities)
        wishes = NodeWishes.read(
            terminus.dynamic_node_properties, topic=kind == TOPIC, exclusive=exclusive, exchanges=router.exchanges
        )
        check_wishes(connection, wishes)
        made = connection.make_temporary(link, wishes)
        return Asked(made if isinstance(made, Queue) else Topic(made), made, _said_of(connection, link))
    if terminus.address is None:
        return Asked()
    node = router.resolve(terminus.address, kind, connection.grant)
    # A link that made the node, was detached without a close, and comes again is still the one that made it.
    named = node.exchange if isinstance(node, Topic) else node
    if connection.temporaries.get(named) == (link.name, link.is_sender):
        return Asked(node, named, _said_of(connection, link))
    return Asked(node)


def _said_of(connection: ServerConnection, link: Link) -> Mapping[Any, Any] | None:
    """What was granted when the node was made, whatever its link asks when it comes again."""
    made = connection.made_by(link)
    return None if made is None else made[1].properties


def _granted_capabilities(
    connection: ServerConnection, asked: tuple[str, ...], node: Queue | Topic | None, more: Container[str]
) -> tuple[str, ...]:
    """Those that say what it is, what is kept of it, and of a subscription who shares it."""
    named = node.exchange if isinstance(node, Topic) else node
    kind = TOPIC if isinstance(node, Topic) else QUEUE

    def is_granted(name: str) -> bool:
        if name in BINDING_FILTERS:
            return isinstance(node, Topic) and node.exchange.type == BINDING_FILTERS[name]
        if name == DURABLE:
            return named is not None and named.settings.durable
        if name == CREATE:
            return named is not None and connection.broker.config.auto_create
        return KINDS.get(name) == kind or (not isinstance(node, Queue) and name in more)

    return tuple(filter(is_granted, asked))


def _unroutable(target: Target) -> str | None:
    """What a sender wants done with messages that go nowhere; both is neither."""
    wishes = {UNROUTABLE[name] for name in target.capabilities if name in UNROUTABLE}
    return wishes.pop() if len(wishes) == 1 else None


def _unroutable_said(link: IncomingLink) -> Container[str]:
    return [name for name, outcome in UNROUTABLE.items() if outcome == link.unroutable]


def _offered(link: Link) -> tuple[str, ...]:
    return tuple(name for name in link.remote_desired_capabilities if name in LINK_CAPABILITIES)
