"""What one connection may do: decided once, when it opens, and fixed for its life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from jmsish.broker.names import MANAGEMENT


def anything(address: str) -> bool:
    """Every address is allowed."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a connection may do. The defaults allow everything, as where no policy is configured."""

    user: str = "anonymous"
    vhost: str = ""
    group: str = ""
    max_message_size: int = 0
    """Octets of a message; 0 for no limit."""
    on_oversize: str = "connection"
    """What a larger message closes: ``"connection"`` or ``"link"``."""
    max_frame_size: int = 0
    """Octets of a frame that the peer may send; 0 for the listener's own."""
    max_sessions: int = 0
    """Sessions at a time; 0 for the listener's own."""
    max_session_window: int = 0
    """Octets that a session may have in flight to the broker; 0 for the listener's own."""
    max_senders: int | None = None
    """Links on which the peer sends; None for no limit, and 0 forbids them."""
    max_receivers: int | None = None
    """Links on which the peer receives; None for no limit, and 0 forbids them."""
    allow_anonymous_sender: bool = True
    allow_dynamic_source: bool = True
    allow_user_id_proxy: bool = True
    may_create: bool = True
    may_delete: bool = True
    may_bind: bool = True
    may_freeze: bool = True
    may_purge: bool = True
    may_manage: bool = True
    may_administer: bool = True
    """The policy itself may be changed, and the management node used whatever the lists of addresses say."""
    sources: Callable[[str], bool] = anything
    """The decision about an address that the peer wants to receive from."""
    targets: Callable[[str], bool] = anything
    """The decision about an address that the peer wants to send to."""

    def may_send_to(self, address: str) -> bool:
        """Whether messages may be sent to this address."""
        return self.targets(address)

    def may_receive_from(self, address: str) -> bool:
        """Whether messages may be received from this address."""
        return self.sources(address)

    def may_ask_management(self, decision: Callable[[str], bool]) -> bool:
        """Whether the management node may be used; ``decision`` is that for sources or that for targets."""
        return self.may_administer or (self.may_manage and decision(MANAGEMENT))


PERMISSIVE: Final = Grant()
"""What holds before a connection is open, and where there is no policy."""
