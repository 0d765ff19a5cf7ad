"""Connections as there is to manage them: who is there, and to end one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jmsish.broker.entities import NOT_FOUND, Kind, Refused
from jmsish.broker.views import ConnectionView
from jmsish.engine.outcomes import AmqpError

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.connection import ServerConnection


class ConnectionKind(Kind["Broker"]):
    """Connections that are open, each called by its number. To end one takes ``may_manage = true``."""

    name = "connection"
    aliases = ()
    operations = ("READ", "DELETE")
    attributes = (
        "name", "identity", "type", "container_id", "peer", "user", "vhost", "group", "sessions", "senders",
        "receivers", "transactions",
    )  # fmt: skip
    rights = {"DELETE": "may_administer"}

    def read(self, broker: Broker, name: str) -> dict[str, Any]:
        return self.describe(self._find(broker, name))

    def delete(self, broker: Broker, name: str) -> None:
        self._find(broker, name).close(AmqpError("amqp:connection:forced", "closed by management"))

    def entities(self, broker: Broker) -> Iterable[ServerConnection]:
        return broker.opened_connections()

    def describe(self, entity: ServerConnection) -> dict[str, Any]:
        grant, name = entity.grant, str(entity.number)
        found = asdict(ConnectionView(entity))
        named = {"name": name, "identity": name, "type": self.name}
        policy = {"user": grant.user, "vhost": grant.vhost, "group": grant.group}
        return {**{key: found[key] for key in self.attributes if key in found}, **policy, **named}

    def _find(self, broker: Broker, name: str) -> ServerConnection:
        for connection in broker.opened_connections():
            if str(connection.number) == name:
                return connection
        raise Refused(NOT_FOUND, f"there is no connection {name!r}")
