"""A mobile address: it is wherever somebody receives from it, and messages go to the nearest (R6, R9)."""

from __future__ import annotations

from collections import deque
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
        "_busy", "_ready", "_turn", "_wakes_all", "_woken", "branches", "deliveries_in", "deliveries_out",
        "is_multicast", "key", "name", "node", "owner", "receivers",
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
        self._busy: dict[Branch, None] = {}
        """Those with messages that wait."""
        self._ready: deque[Branch] = deque()
        """Those that are to be looked at, each in turn."""
        self._wakes_all = False
        """All of the busy ones are."""

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
        self._busy.pop(branch, None)
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
        """Something may be able to move, whoever sent it: it is looked at in the next step."""
        self._wakes_all = True
        self._wake()

    def wake_for(self, branch: Branch) -> None:
        """The same, of one that sends."""
        if not branch.is_ready:
            branch.is_ready = True
            self._ready.append(branch)
        self._wake()

    def interrupted(self) -> None:
        """All are looked at, whatever was noted of that: the program was interrupted in the middle of it."""
        for branch in self._busy:
            branch.is_ready = False
        self._ready.clear()
        self._woken = False
        self.wake()

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self.node.wake(self)

    @property
    def is_served(self) -> bool:
        """Whether all that can move has moved."""
        return not self._woken

    def queue(self, branch: Branch, passage: Passage) -> None:
        """A message waits."""
        branch.waiting.append(passage)
        self._busy[branch] = None
        self.wake_for(branch)

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

    def serve(self, most: int) -> int:
        """Move what can move, a message of each sender in turn; how many, which is not more than ``most``.

        What could have moved besides is looked at in the next step, behind other addresses.
        """
        self._woken = False
        if self._wakes_all:
            self._look_at_all()
        ready, moved = self._ready, 0
        while ready:
            if moved >= most:
                self._wake()
                break
            branch = ready.popleft()
            branch.is_ready = False
            if branch.waiting and self._send_next(branch):
                moved += 1
                if branch.waiting:
                    branch.is_ready = True
                    ready.append(branch)
                    continue
            elif branch.waiting and self.receivers and not self.is_multicast:
                self._look_at_none()  # who has no receiver that takes one has that in common with all others
                break
            if not branch.waiting:
                self._busy.pop(branch, None)
        return moved

    def _look_at_all(self) -> None:
        self._wakes_all = False
        for egress in list(self.receivers):
            if egress.queue:
                egress.flush()
        for branch in self._busy:
            if not branch.is_ready:
                branch.is_ready = True
                self._ready.append(branch)

    def _look_at_none(self) -> None:
        for branch in self._ready:
            branch.is_ready = False
        self._ready.clear()

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
