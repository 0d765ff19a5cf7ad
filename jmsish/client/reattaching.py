"""Links that a broker detaches and that come again at once: idle ones, and those under another address.

Some brokers detach a link that has been idle (Azure Service Bus after ten minutes, ``amqp:link:detach-forced``): the
node is there, and so is whoever reads or writes it, so the link is attached anew.  What was on the old one is treated
as at the loss of a connection: unread messages come again, and the outcome of a send in flight is not known.

A refusal with ``amqp:link:redirect`` (Part 2, 2.8.17) names another address; where that is at this very broker, it is
followed.  To another host no link can go alone, for it is part of a connection: the error says where it would have to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future

    from jmsish.client.session import ClientSession
    from jmsish.engine.outcomes import AmqpError

IDLE = "amqp:link:detach-forced"
REDIRECT = "amqp:link:redirect"

SOON = 1.0
"""A link that was attached anew, and is detached again within so many seconds, was hardly detached for being idle."""

IN_A_ROW = 8
"""So many times in a row it comes again all the same: where the clock of the broker is a test's, seconds are short."""

HOPS = 8
"""So many redirects of a link are followed in a row."""


class Reattaching:
    """The part of a consumer or producer that decides whether its link comes again."""

    session: ClientSession
    attached: Future[None]
    address: str | None = None
    """Where a redirect led to; None: where the destination is."""
    _hops = 0
    _again_at = float("-inf")
    _in_a_row = 0

    def comes_again(self, error: AmqpError | None) -> bool:
        """Whether a link that the broker has detached for this reason is to be attached again."""
        if error is None or self.session.closing or self.session.failure is not None:
            return False
        if error.condition == REDIRECT and not self.attached.done():
            return self._follows(dict(error.info or {}))
        return error.condition == IDLE and self.attached.done() and self._was_idle()

    def _was_idle(self) -> bool:
        connection = self.session.connection
        wished = connection.options.reattach_idle_links
        if wished is None:
            wished = connection.profile.idle_detach is not None
        now = connection.now
        self._in_a_row = self._in_a_row + 1 if now - self._again_at < SOON else 1
        self._again_at = now
        return wished and self._in_a_row <= IN_A_ROW

    def _follows(self, info: dict[Any, Any]) -> bool:
        said = {str(key): value for key, value in info.items()}
        address, host, port = said.get("address"), said.get("network-host"), said.get("port")
        own = self.session.connection.peer
        elsewhere = host is not None and own not in (f"{host}:{port}", f"{host}:{port or 5672}")
        if not isinstance(address, str) or not address or elsewhere or self._hops >= HOPS:
            return False
        self._hops += 1
        self.address = str(address)
        return True


def elsewhere(error: AmqpError) -> str:
    """Where a redirect that is not followed leads to, for an error text; empty for any other error."""
    if error.condition != REDIRECT:
        return ""
    said = {str(key): value for key, value in dict(error.info or {}).items()}
    port = f":{said['port']}" if said.get("port") else ""
    return f" (it is at {said.get('network-host') or said.get('hostname')}{port}, address {said.get('address')!r})"
