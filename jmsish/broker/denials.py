"""What was counted of connections and of refusals: for the whole broker, and for each virtual host."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace


@dataclass(slots=True)
class VhostDenials:
    """The counters of one virtual host. They belong to it, not to its connections, so no update is ever lost."""

    connections_approved: int = 0
    connections_denied: int = 0
    connections_current: int = 0
    sessions_denied: int = 0
    senders_denied: int = 0
    receivers_denied: int = 0
    max_message_size_denied: int = 0


@dataclass(slots=True)
class Denials:
    """The counters of the broker, and in ``vhosts`` those of each virtual host by its name."""

    connections_processed: int = 0
    connections_denied: int = 0
    connections_current: int = 0
    links_denied: int = 0
    max_message_size_denied: int = 0
    total_denials: int = 0
    vhosts: dict[str, VhostDenials] = field(default_factory=dict)

    def vhost(self, name: str) -> VhostDenials:
        """The counters of the virtual host of that name."""
        counters = self.vhosts.get(name)
        if counters is None:
            counters = self.vhosts[name] = VhostDenials()
        return counters

    # --- counted

    def connection_denied(self, vhost: str | None) -> None:
        """A connection was turned away; by this virtual host, if it had come so far."""
        self.connections_denied += 1
        self.total_denials += 1
        if vhost is not None:
            self.vhost(vhost).connections_denied += 1

    def session_denied(self, vhost: str) -> None:
        """A session was one too many."""
        self.total_denials += 1
        self.vhost(vhost).sessions_denied += 1

    def link_denied(self, vhost: str, *, sender: bool) -> None:
        """A link was refused; ``sender`` where the peer would have sent on it."""
        self.links_denied += 1
        self.total_denials += 1
        counters = self.vhost(vhost)
        if sender:
            counters.senders_denied += 1
        else:
            counters.receivers_denied += 1

    def message_size_denied(self, vhost: str) -> None:
        """A message was larger than allowed."""
        self.max_message_size_denied += 1
        self.total_denials += 1
        self.vhost(vhost).max_message_size_denied += 1

    def snapshot(self) -> Denials:
        """A copy, which stays as it is."""
        return replace(self, vhosts={name: replace(each) for name, each in self.vhosts.items()})

    def reset(self) -> None:
        """All counters go to zero, but those of what is there now."""
        every: list[Denials | VhostDenials] = [self, *self.vhosts.values()]
        for counters in every:
            for each in fields(counters):
                if each.name not in ("connections_current", "vhosts"):
                    setattr(counters, each.name, 0)
