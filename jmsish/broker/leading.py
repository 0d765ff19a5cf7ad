"""Requests that lead messages from one place to another: whose lists of addresses have to allow it.

A binding, a redirect, an alternate exchange and an address for dead letters move messages without a link on which they
could be checked. So what a group may receive from and send to holds for the two ends of what it asks for, or the
lists of :mod:`jmsish.broker.access` would be no more than a detour. Who may change the policy (``may_manage = true``)
may do that anyway, and is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jmsish.broker.entities import FORBIDDEN, Refused
from jmsish.broker.link_policy import may_receive_key, may_send

if TYPE_CHECKING:
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.exchanges import Exchange


def check_led_to(connection: ServerConnection | None, addresses: Iterable[str]) -> None:
    """Messages may be led to these, as to where dead letters go; Refused where the user may not send there."""
    if connection is None or connection.grant.may_administer:
        return
    for address in addresses:
        if not may_send(connection, address):
            raise _refused(connection, f"to lead messages to {address!r}", "send there")


def check_binding(connection: ServerConnection | None, exchange: Exchange, key: str, target: str) -> None:
    """A binding is a way to receive with this key, and to send to its target."""
    if connection is None or connection.grant.may_administer:
        return
    if not may_receive_key(connection, exchange, key):
        raise _refused(connection, f"to bind {exchange.name!r} with the key {key!r}", "receive from it")
    check_led_to(connection, (target,))


def check_pair(connection: ServerConnection | None, *queues: str) -> None:
    """Each of two queues that are redirected to each other gets what was sent to the other."""
    if connection is None or connection.grant.may_administer:
        return
    for queue in queues:
        if not connection.grant.sources(queue):
            raise _refused(connection, f"to redirect {queue!r}", "receive from it")
    check_led_to(connection, queues)


def _refused(connection: ServerConnection, what: str, missing: str) -> Refused:
    grant = connection.grant
    return Refused(
        FORBIDDEN, f"{what} is not allowed to the user {grant.user!r}, who may not {missing} (group {grant.group!r})"
    )
