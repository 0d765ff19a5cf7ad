"""What is granted of links: how many there may be, which addresses they may have, and what each message may say.

Nearly all is decided once, when a link is attached. Two things have to be asked of each message, and are asked only on
links whose grant demands it: where a message goes that says so itself, and whose user-id it has.

Which address is checked: the one that the peer wrote, as it is (``orders``, ``prices``, ``prices/eu.fr``, a JMS topic
by its name). A link to the coordinator has none: it is always allowed, and not counted. The management node has rights
of its own (``may_manage``). A temporary node may always be used by the connection that made it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.access import Decision
from jmsish.broker.bindings import FANOUT, HEADERS
from jmsish.broker.exchanges import AMQ_TOPIC, Exchange
from jmsish.broker.intake import Intake
from jmsish.broker.names import MANAGEMENT, TEMPORARY
from jmsish.broker.queues import Arrival
from jmsish.broker.refusals import INVALID_FIELD, RESOURCE_LIMIT_EXCEEDED, UNAUTHORIZED_ACCESS, Refusal
from jmsish.engine.codec import USER_ID, bare_offset, property_at
from jmsish.engine.outcomes import AmqpError, Coordinator, Source, Target
from jmsish.engine.sections import check_order

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.dynamic import NodeWishes
    from jmsish.broker.filters import Wanted
    from jmsish.broker.grants import Grant
    from jmsish.broker.guests import Guest
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.router import Topic
    from jmsish.broker.subscriptions import Content
    from jmsish.engine.link import Link

LINK_DISALLOWED: Final = "link disallowed by local policy"
SESSION_DISALLOWED: Final = AmqpError(RESOURCE_LIMIT_EXCEEDED, "session disallowed by local policy")
TOLD_EACH: Final = 10
"""So many refused links of a connection have a line each in the log."""
LONGEST_TOLD: Final = 300
"""Characters of what a peer has written, in a line of the log."""
_log = logging.getLogger("jmsish.broker")


def shortened(text: str) -> str:
    """As much of what a peer may have written as a log should have."""
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}…"


class LinkDenied(Refusal):
    """A link that policy refuses. The peer is told the sentence, the log why."""

    def __init__(self, why: str, condition: str = UNAUTHORIZED_ACCESS, description: str = LINK_DISALLOWED) -> None:
        super().__init__(condition, description)
        self.why = why


def is_told(times: int) -> bool:
    """Whether the log has a line for what happened so many times: the first ten, then the 100th, the 1,000th…."""
    return times <= TOLD_EACH or 10 ** (len(str(times)) - 1) == times


def note_denied(connection: ServerConnection | RouterConnection, link: Link, denied: Refusal) -> None:
    """Count a refused link, and tell the log: of the first of a connection each, then of the 100th, the 1,000th….

    Who is refused chooses the names and how often, and shall not fill the disk with either.
    """
    grant = connection.grant
    connection.broker.denials.link_denied(grant.vhost, sender=not link.is_sender)
    connection.links_denied = times = connection.links_denied + 1
    if not is_told(times):
        return
    what = "receiver" if link.is_sender else "sender"
    why = denied.why if isinstance(denied, LinkDenied) else denied
    _log.warning(
        "the %s %r of %s is denied to %s: %s%s",
        what, shortened(link.name), connection.peer, _who(grant), shortened(str(why)), _more("links", times),
    )  # fmt: skip


def note_session_denied(connection: Guest, there: int) -> None:
    """The same of a session that is one too many, where ``there`` are."""
    grant = connection.grant
    connection.broker.denials.session_denied(grant.vhost)
    connection.sessions_denied = times = connection.sessions_denied + 1
    if is_told(times):
        _log.warning(
            "a session of %s is denied to %s: it has %d, and at most %d%s",
            connection.peer, _who(grant), there, grant.max_sessions, _more("sessions", times),
        )  # fmt: skip


def _who(grant: Grant) -> str:
    return f"the user {shortened(grant.user)!r}, in the group {grant.group!r} of {grant.vhost!r}"


def _more(what: str, times: int) -> str:
    if times < TOLD_EACH:
        return ""
    return f" ({times} {what} of this connection; further ones are counted, and told now and then)"


def check_count(connection: ServerConnection | RouterConnection, link: Link) -> None:
    """There may be one link more."""
    caps = connection.broker.config.caps
    if caps.max_links and connection.engine.remote_link_count > caps.max_links:
        # Nobody's policy, and not a line in the log for each frame of a flood.
        connection.broker.denials.link_denied(connection.grant.vhost, sender=not link.is_sender)
        raise Refusal(RESOURCE_LIMIT_EXCEEDED, f"a connection has at most {caps.max_links} links")
    length = len(link.name.encode())
    if length > caps.max_name_length:
        text = f"the name of a link has {length} octets, and at most {caps.max_name_length}"
        raise Refusal(INVALID_FIELD, text, {"field": "name"})
    grant = connection.grant
    most = grant.max_receivers if link.is_sender else grant.max_senders
    if most is None or isinstance(link.remote_target, Coordinator):
        return
    if connection.engine.remote_link_count <= most:
        return  # they are not even looked at, which for thousands would take as long as all the rest
    there = connection.count_links(receivers=link.is_sender)
    if there >= most:
        what = "receivers" if link.is_sender else "senders"
        raise LinkDenied(f"it has {there} {what}, and at most {most}", RESOURCE_LIMIT_EXCEEDED)


def check_source(connection: ServerConnection, source: Source) -> None:
    """The peer may receive from there."""
    grant = connection.grant
    if source.dynamic:
        _check_dynamic(grant)
    elif source.address is not None and not grant.sources(source.address):
        if not _is_own(connection, source.address):
            raise LinkDenied(f"it may not receive from {source.address!r}")


def check_bindings(connection: ServerConnection, topic: Topic, wanted: Sequence[Wanted]) -> None:
    """What a subscription binds beside the key of its address may be received, too.

    Whoever may receive from a whole exchange may bind what they like. In fanout and headers exchanges a key divides
    nothing, so that an address with one means the whole.
    """
    exchange, sources = topic.exchange, connection.grant.sources
    if topic.key is None or sources(exchange.name) or _is_own(connection, exchange.name):
        return
    if exchange.type in (FANOUT, HEADERS):
        raise LinkDenied(f"it may not receive from {exchange.name!r}, of which a key is no part")
    for each in wanted[1:]:  # the first is the address itself
        if not _may_have_key(sources, exchange, each.key):
            raise LinkDenied(f"it may not receive from {exchange.name}/{each.key}, which its filter asks for")


def check_superseded(connection: ServerConnection, name: str, content: Content) -> None:
    """A subscription may give way to another of its name, and with it what it has collected.

    Names are told apart by the container-id, which a client chooses: so it takes whoever may receive what is lost.
    """
    if not all(may_receive_key(connection, content.exchange, each.key) for each in content.wanted):
        raise LinkDenied(f"it may not end the subscription {name!r}, which is for {content}")


def may_receive_key(connection: ServerConnection, exchange: Exchange, key: str) -> bool:
    """Whether a connection may have a binding of an exchange with this key."""
    sources = connection.grant.sources
    if sources(exchange.name) or _is_own(connection, exchange.name):
        return True
    return exchange.type not in (FANOUT, HEADERS) and _may_have_key(sources, exchange, key)


def _may_have_key(sources: Decision, exchange: Exchange, key: str) -> bool:
    return sources(f"{exchange.name}/{key}") or (exchange.name == AMQ_TOPIC and sources(key))


def check_wishes(connection: ServerConnection, wishes: NodeWishes) -> None:
    """What goes nowhere at a dynamic node goes no further than its maker may send."""
    if wishes.alternate is not None and not may_send(connection, wishes.alternate):
        raise LinkDenied(f"it may not send to {wishes.alternate!r}, as an alternate exchange")


def check_target(connection: ServerConnection, target: Target) -> None:
    """The peer may send there."""
    grant = connection.grant
    if target.dynamic:
        _check_dynamic(grant)
    elif target.address is None:
        if not grant.allow_anonymous_sender:
            raise LinkDenied("it may not send without a target (allow_anonymous_sender)")
    elif not may_send(connection, target.address):
        raise LinkDenied(f"it may not send to {target.address!r}")


def check_management(connection: ServerConnection, *, receives: bool) -> None:
    """The peer may use the management node."""
    grant = connection.grant
    if not grant.may_ask_management(grant.sources if receives else grant.targets):
        raise LinkDenied("it may not manage (may_manage)")


def may_send(connection: ServerConnection, address: str) -> bool:
    """Whether messages of this connection may go there."""
    grant = connection.grant
    if address == MANAGEMENT:
        return grant.may_ask_management(grant.targets)
    return grant.targets(address) or _is_own(connection, address)


def _check_dynamic(grant: Grant) -> None:
    if not grant.allow_dynamic_source:
        raise LinkDenied("it may not have dynamic nodes (allow_dynamic_source)")
    if not grant.may_create:
        raise LinkDenied("it may not create queues (may_create)")


def _is_own(connection: ServerConnection, address: str) -> bool:
    """Whether a temporary node of this name was made by this very connection; of a topic any key may be said."""
    if not address.startswith(TEMPORARY):
        return False
    name = address.partition("/")[0]
    return any(node.name == name for node in connection.temporaries)


class ScreenedIntake(Intake):
    """Reads what comes on a link whose messages may have no other user-id than that of who is connected."""

    __slots__ = ("_user",)

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection.broker.now)
        self._user = connection.grant.user.encode()

    def read(self, payload: bytes) -> int | Arrival:
        """As of any message; Refusal where it says to be another's."""
        bare = bare_offset(payload)
        user: Any = property_at(payload, bare, USER_ID)
        if user is not None and user != self._user:
            raise Refusal(UNAUTHORIZED_ACCESS, "the user-id of the message is not that of its connection")
        check_order(payload, bare)
        return super().read(payload)


def intake_of(connection: ServerConnection) -> Intake:
    """What reads the messages of a link."""
    if connection.grant.allow_user_id_proxy:
        return Intake(connection.broker.now)
    return ScreenedIntake(connection)
