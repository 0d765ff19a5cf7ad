"""How a router answers an attach: a mobile address is granted to everybody who may, wherever it is (R1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from jmsish.broker.link_policy import LinkDenied, check_count
from jmsish.broker.names import MANAGEMENT
from jmsish.broker.network.control import Listener
from jmsish.broker.network.egress import Egress
from jmsish.broker.network.ingress import STREAM_FROM, Ingress
from jmsish.broker.network.management import Requests, answers
from jmsish.broker.network.relay_ends import RelayIn
from jmsish.broker.network.screening import check_length
from jmsish.broker.network.updates import CONTROL
from jmsish.broker.refusals import INVALID_FIELD, NOT_FOUND, NOT_IMPLEMENTED, Refusal
from jmsish.engine.outcomes import Coordinator, Source, Target

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.engine.link import Link

TOPIC = "topic"
OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


def answer(connection: RouterConnection, link: Link) -> Egress | Ingress | Listener | RelayIn:
    """The end of the link on this side; Refusal where there is to be none."""
    if connection.is_broker:
        raise Refusal(NOT_IMPLEMENTED, "a broker at the end of a link route is connected to, and attaches nothing")
    if not connection.is_neighbour:
        check_count(connection, link)
    relay = _relay(connection, link)
    if relay is not None:
        return relay
    if link.is_sender:
        return _send_on(connection, link)
    return _receive_on(connection, link)


def _relay(connection: RouterConnection, link: Link) -> Egress | RelayIn | None:
    """The end of a link that is not for us: that of a link route."""
    routes = connection.node.link_routes
    terminus = link.remote_source if link.is_sender else link.remote_target
    if isinstance(terminus, Coordinator):
        return routes.relay(connection, link, None)
    if not isinstance(terminus, (Source, Target)):
        return routes.relay(connection, link, "") if connection.is_neighbour else _look_up(connection, link)
    address = terminus.address or ""
    if terminus.dynamic and not connection.is_neighbour:
        return None
    if not connection.is_neighbour and routes.home_of(address) is not None:
        may = connection.grant.may_receive_from if link.is_sender else connection.grant.may_send_to
        if not may(address):
            verb = "receive from" if link.is_sender else "send to"
            raise LinkDenied(f"it may not {verb} {address!r}")
    return routes.relay(connection, link, address)


def _look_up(connection: RouterConnection, link: Link) -> Egress | RelayIn | None:
    """An attach without a source asks for a subscription by the name of its link, of the session's broker."""
    home = connection.node.link_routes.only_home(connection, link)
    return None if home is None else connection.node.link_routes.relay(connection, link, "", home)


def _send_on(connection: RouterConnection, link: Link) -> Egress:
    source = link.remote_source
    if not isinstance(source, Source):
        raise Refusal(INVALID_FIELD, "a receiver at a router needs a source", {"field": "source"})
    if connection.is_neighbour:
        raise Refusal(NOT_IMPLEMENTED, "a neighbour sends, and does not receive")
    if _is_management(connection, source, connection.grant.sources):
        return answers(connection, link)
    name = _name(connection, source, "receive from", connection.grant.may_receive_from)
    if source.distribution_mode == "copy":
        # Granted as a move it would take the messages of those who receive.
        text = f"{name!r} cannot be browsed here, nor subscribed to durably: a router keeps no messages, only a broker"
        raise Refusal(NOT_IMPLEMENTED, text)
    granted = replace(source, address=name, filter=None, outcomes=OUTCOMES, distribution_mode="move")
    link.snd_settle_mode = link.remote_snd_settle_mode
    address = connection.node.address(name, is_multicast=TOPIC in source.capabilities)
    link.attach(source=granted)
    egress = Egress(connection, link, address, is_local=True)
    address.add_receiver(egress)
    return egress


def _receive_on(connection: RouterConnection, link: Link) -> Ingress | Listener:
    target = link.remote_target
    if isinstance(target, Coordinator):
        raise Refusal(NOT_IMPLEMENTED, "there are no transactions here: no link route leads to a broker that has them")
    if not isinstance(target, Target):
        raise Refusal(INVALID_FIELD, "a sender at a router needs a target", {"field": "target"})
    if connection.is_neighbour and target.address == CONTROL:
        if connection.listener is not None:
            raise Refusal(NOT_IMPLEMENTED, "a neighbour has one control link")
        connection.listener = Listener(connection, link)
        return connection.listener
    link.snd_settle_mode = link.remote_snd_settle_mode
    if _is_management(connection, target, connection.grant.targets):
        return Requests(connection, link)
    link.stream_from = STREAM_FROM
    if target.address is None and not target.dynamic:
        if connection.is_neighbour:
            raise Refusal(INVALID_FIELD, "a neighbour names an address for each of its links", {"field": "target"})
        if not connection.grant.allow_anonymous_sender:
            raise LinkDenied("it may not send without a target (allow_anonymous_sender)")
        address = None
        link.attach()
    else:
        name = _name(connection, target, "send to", connection.grant.may_send_to)
        address = connection.node.address(name, is_multicast=TOPIC in target.capabilities)
        link.attach(target=replace(target, address=name))
    ingress = Ingress(connection, link, address)
    ingress.reach_changed()
    return ingress


def _is_management(
    connection: RouterConnection, terminus: Source | Target, decision: Callable[[str], bool]
) -> bool:
    """Whether a link is for the management node, which has rights of its own."""
    if terminus.address != MANAGEMENT or terminus.dynamic or connection.is_neighbour:
        return False
    if not connection.grant.may_ask_management(decision):
        raise LinkDenied("it may not manage (may_manage)")
    return True


def _name(connection: RouterConnection, terminus: Source | Target, verb: str, may: object) -> str:
    """The address that is meant: of a dynamic terminus a new one, which nobody else has."""
    if terminus.dynamic:
        if not connection.grant.allow_dynamic_source:
            raise LinkDenied("it may not have dynamic nodes (allow_dynamic_source)")
        made = connection.node.address(connection.node.new_address())
        made.owner = connection
        return made.name
    name = terminus.address
    if not name:
        raise Refusal(INVALID_FIELD, "the address is empty")
    check_length(name)
    if name.startswith("$"):
        raise Refusal(NOT_FOUND, f"there is no {name!r} here")
    if connection.is_neighbour:
        return name  # an edge has asked at its client's door, and what it has let in cannot go anywhere else
    known = connection.node.known_address(name)
    is_own = known is not None and known.owner is connection
    if callable(may) and not may(name) and not is_own:
        raise LinkDenied(f"it may not {verb} {name!r}")
    return name
