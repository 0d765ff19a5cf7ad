"""The queues and exchanges that were made for links of one connection, and go with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.broker.exchanges import Exchange
from jmsish.broker.queues import Queue

if TYPE_CHECKING:
    from jmsish.broker.broker import Broker
    from jmsish.broker.dynamic import NodeWishes
    from jmsish.engine.link import Link

Node = Queue | Exchange


class Temporaries:
    """What of a connection makes and deletes temporary nodes."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.ended = False
        self.temporaries: dict[Node, tuple[str, bool]] = {}
        """Its temporary queues and topics, and the links that made them: name, and whether we send on it."""
        self._made: dict[tuple[str, bool], tuple[Node, NodeWishes]] = {}

    def make_temporary(self, link: Link, wishes: NodeWishes) -> Node:
        """A queue or exchange that goes with the link that made it, and with this connection at the latest.

        A link that was detached without a close and comes again has it still (2.6.3). By another lifetime policy it
        may stay, unless only this connection may receive from it.
        """
        key = (link.name, link.is_sender)
        known = self._made.get(key)
        if known is not None:
            node = known[0]
            if node.deleted:
                self.temporaries.pop(node, None)
            elif isinstance(node, Queue) is not wishes.topic:
                return node
            else:
                self.delete_temporary(node)  # the link comes again for something else
        node = self.broker.router.make_temporary(wishes, self if wishes.exclusive else None)
        self._made[key] = node, wishes
        self.temporaries[node] = key
        return node

    def made_by(self, link: Link) -> tuple[Node, NodeWishes] | None:
        """The node that was made for a link, here or before it was detached without a close, and what it is."""
        return self._made.get((link.name, link.is_sender))

    def delete_temporary(self, node: Node) -> None:
        """The link that made it was closed."""
        key = self.temporaries.pop(node, None)
        if key is not None:
            self._made.pop(key, None)
        if self._orphan(node) and key is not None and node.owner is self:
            living = {each: mark for each, mark in self.temporaries.items() if not each.deleted}
            self.temporaries = {**living, node: key}

    def _orphan(self, node: Node) -> bool:
        """Nobody is left who made it; whether it stays all the same."""
        router = self.broker.router
        stays = router.lifetimes.orphaned(node) and not (self.ended and node.owner is self)
        if stays or node.deleted:
            return stays
        if isinstance(node, Queue):
            router.delete(node)
        else:
            router.delete_exchange(node)
        return False

    def orphan_temporaries(self) -> None:
        """The connection is over: so are they, unless they were to stay."""
        for node in self.temporaries:
            self._orphan(node)
        self.temporaries.clear()
        self._made.clear()
