"""A mobile address: it is wherever somebody receives from it, and messages go to the nearest (R6, R9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.broker.network.reach import ADDRESS

if TYPE_CHECKING:
    from jmsish.broker.network.connection import RouterConnection
    from jmsish.broker.network.egress import Egress
    from jmsish.broker.network.ingress import Branch, Ingress
    from jmsish.broker.network.node import RouterNode
    from jmsish.broker.network.passage import Passage
    from jmsish.engine.outcomes import AmqpError


class Address:
    """One address as this router knows it: who receives from it here, and who sends to it."""

    __slots__ = (
        "_turn", "_woken", "branches", "deliveries_in", "deliveries_out", "is_multicast", "key", "name", "node",
        "owner", "receivers",
    )  # fmt: skip

    def __init__(self, node: RouterNode, name: str, *, is_multicast: bool) -> None:
        self.node = node
        self.name = name
        self.key = ADDRESS + name
        self.is_multicast = is_multicast
        self.receivers: list[Egress] = []
        self.branches: dict[Branch, None] = {}
        self.deliveries_in = self.deliveries_out = 0
        self.owner: RouterConnection | None = None
        """Who has asked for it, as a dynamic node, and may use it whatever policy says of addresses."""
        self._turn = 0
        self._woken = False

    def __repr__(self) -> str:
        return f"<Address {self.name!r}{' multicast' if self.is_multicast else ''}>"

    # --- who is there

    def is_reachable(self, but: RouterConnection | None = None) -> bool:
        """Whether somebody receives from it, here or over a neighbour other than ``but``."""
        return self.node.reach.distance(self.key, but) is not None

    def add_receiver(self, egress: Egress) -> None:
        self.receivers.append(egress)
        if self.node.reach.begin(self.key):
            self.reach_changed()
        self.wake()

    def remove_receiver(self, egress: Egress) -> None:
        if egress in self.receivers:
            self.receivers.remove(egress)
            if self.node.reach.end(self.key):
                self.reach_changed()
            self.wake()
        self.node.perhaps_unused(self)

    def remove_branch(self, branch: Branch) -> None:
        self.branches.pop(branch, None)
        self.node.perhaps_unused(self)

    def turn_out(self, error: AmqpError) -> None:
        """It is no address of the routers any more: what clients have here of it ends."""
        links: list[Egress | Ingress] = [branch.ingress for branch in self.branches if not branch.ingress.is_anonymous]
        for terminal in [*links, *self.receivers]:
            if not terminal.connection.is_neighbour:
                terminal.turn_out(error)

    def reach_changed(self, *, torn: bool = False) -> None:
        """There is a way, none, or another one; ``torn`` if that is so because a connection was lost."""
        for branch in list(self.branches):
            branch.reach_changed(torn=torn)
        self.wake()

    # --- messages

    def wake(self) -> None:
        """Something may be able to move: it is looked at in the next step."""
        if not self._woken:
            self._woken = True
            self.node.wake(self)

    # hot: what each small message costs.
    def way_at_once(self, branch: Branch) -> Egress | None:
        """Where one goes that came whole, unless others of it wait, or are about to be served: they have their turn."""
        if self._woken or self.is_multicast:
            return None
        nearest = self.receivers or branch.nearest or branch.nearest_ways()
        if len(nearest) == 1:
            return nearest[0] if nearest[0].can_take else None  # one that is gone cannot
        targets = self._closest(branch)
        return targets[0] if targets else None

    def serve(self) -> None:
        """Move what can move, a message of each sender in turn."""
        self._woken = False
        for egress in list(self.receivers):
            if egress.queue:
                egress.flush()
        moving = [branch for branch in self.branches if branch.waiting]
        while moving:
            moving = [branch for branch in moving if branch.waiting and self._send_next(branch)]

    def _send_next(self, branch: Branch) -> bool:
        passage = branch.waiting[0]
        targets = self._all(branch, passage) if self.is_multicast else self._closest(branch)
        if not targets:
            return False
        branch.waiting.popleft()
        self.deliveries_out += len(targets)
        passage.start(targets)
        return True

    def _closest(self, branch: Branch) -> list[Egress]:
        """The one it goes to, of those that are nearest, if one of them can take it now: each in turn."""
        nearest = self.receivers or branch.nearest_ways()
        self._turn += 1
        for index in range(len(nearest)):
            egress = nearest[(self._turn + index) % len(nearest)]
            if egress.can_take:
                return [egress]
        return []

    def _all(self, branch: Branch, passage: Passage) -> list[Egress]:
        """All it goes to, if each can take it; a large one leaves everywhere at once, and does not wait anywhere."""
        targets = [*self.receivers, *branch.links(nearest=False)]
        if passage.incoming is None:
            ready = all(egress.can_queue for egress in targets)
        else:
            ready = all(egress.can_take for egress in targets)
        return targets if ready else []
