"""What watches connections from outside, for traces and metrics (see `jmsish.otel`).

Nobody pays who does not look: a connection asks once, when it is made, whether somebody watches it, and one that is
watched makes sessions of another class. The sessions of all others know nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.events import ConnectionEvent


class Telemetry(Protocol):
    """Watches connections."""

    def watch(self, connection: ClientConnection) -> None:
        """A connection is made."""

    def session_kind(self, plain: type[Any]) -> type[Any]:
        """The class of the sessions of a watched connection, an heir of the `plain` one."""

    def told(self, connection: ClientConnection, event: ConnectionEvent) -> None:
        """Something happened to a connection; called where the event listener is."""


_default: Telemetry | None = None


def watch_all(telemetry: Telemetry | None) -> None:
    """Who watches the connections that are made from now on and have no option that says otherwise; None for nobody."""
    global _default
    _default = telemetry


def telemetry_of(wanted: Any) -> Telemetry | None:
    """Who watches a connection with this value of the option `tracing`: None is the default, False nobody."""
    if wanted is None:
        return _default
    return None if wanted is False else wanted
