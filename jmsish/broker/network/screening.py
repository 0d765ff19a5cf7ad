"""What is asked of each message that a client sends: where it goes, if it says so itself, and whose it says to be.

It is asked at the door of the client and nowhere else, for routers trust each other, and only on links whose grant
demands it. A large message goes on while it comes in, so what is asked has to stand in the first octets of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.config.network import ADDRESS_LIMIT
from jmsish.broker.refusals import INVALID_FIELD, NOT_FOUND, NOT_IMPLEMENTED, UNAUTHORIZED_ACCESS, Refusal
from jmsish.engine.codec import USER_ID
from jmsish.engine.section_walk import SectionWalk
from jmsish.engine.sections import bare_offset, check_order, property_at

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.engine.delivery import Delivery

TO: Final = 2
"""The index of ``to`` in the properties."""
DECODE_ERROR: Final = "amqp:decode-error"


def asks_for_user(connection: RouterConnection) -> bool:
    """Whether the messages of a connection may have no other user-id than that of who is connected."""
    return not (connection.is_neighbour or connection.is_broker or connection.grant.allow_user_id_proxy)


def check_user(connection: RouterConnection, delivery: Delivery) -> None:
    """Refusal for a message that says to be another's, or might say so to others (of a large one: `walk_of`)."""
    user = field_of(delivery, USER_ID, "whose it is")
    if user is not None and user != connection.grant.user.encode():
        raise Refusal(UNAUTHORIZED_ACCESS, "the user-id of the message is not that of its connection")
    if delivery.complete:
        with _readable("whose it is"):
            check_order(delivery.payload, bare_offset(delivery.payload))


def field_of(delivery: Delivery, index: int, what: str) -> Any:
    """A field of the properties; Refusal where it cannot be read, or has not come with the beginning of a large one."""
    payload = delivery.payload if delivery.complete else b"".join(delivery.parts or ())
    with _readable(what):
        bare = bare_offset(payload)
        if not delivery.complete and bare >= len(payload):
            raise ValueError(f"the first {len(payload)} octets are annotations")
        return property_at(payload, bare, index)


@contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except (IndexError, ValueError) as error:
        raise Refusal(DECODE_ERROR, f"it cannot be read {what}: {error}") from None


def walk_of(connection: RouterConnection) -> SectionWalk | None:
    """What looks at the rest of a large message that a client sends; None where nothing is asked of it."""
    return SectionWalk() if asks_for_user(connection) else None


def check_length(address: str) -> None:
    """Refusal for an address that is too long to go from router to router: it travels twice in an attach."""
    if len(address) > ADDRESS_LIMIT or len(address.encode("utf-8", "replace")) > ADDRESS_LIMIT:
        raise Refusal(INVALID_FIELD, f"an address has at most {ADDRESS_LIMIT} octets in a network of routers")


def check_to(connection: RouterConnection, to: str, tag: bytes) -> None:
    """Refusal for an address that a message names, and may not go to.

    Links, not messages, go to brokers: without a link of its own there a message could not have their outcome.
    """
    check_length(to)
    if to.startswith("$"):
        raise Refusal(NOT_FOUND, f"there is no {to!r} here", {"delivery-tag": tag})
    if connection.is_neighbour:
        return
    if not may_send(connection, to):
        raise Refusal(UNAUTHORIZED_ACCESS, f"messages may not be sent to {to!r}", {"delivery-tag": tag})
    if connection.node.link_routes.home_of(to) is not None:
        text = f"{to!r} is reached by a link route, which takes a link to that address, and not one without a target"
        raise Refusal(NOT_IMPLEMENTED, text, {"delivery-tag": tag})


def may_send(connection: RouterConnection, address: str) -> bool:
    """Whether messages of a client may go there: where its grant says, and to addresses that it has had made."""
    known = connection.node.known_address(address)
    return (known is not None and known.owner is connection) or connection.grant.may_send_to(address)
