"""Named subscriptions to topics: their link names, what of them is refused here, and how one is ended (M62 to M68).

A broker knows a subscription by the name of the link up to the first ``|`` and by the container id, or, for a shared
subscription of a connection whose application set no client id, by the name alone.  What stands behind the ``|`` only
tells the links of one connection apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jmsish.client.links import attaching
from jmsish.client.own_session import OwnLink
from jmsish.client.procedures import Interrupted, Procedure
from jmsish.engine.outcomes import Target
from jmsish.errors import IllegalStateError, InvalidDestinationError

if TYPE_CHECKING:
    from jmsish.client.connection import ClientConnection
    from jmsish.client.consumer import ClientConsumer


@dataclass(frozen=True)
class Subscription:
    """Which subscription of its topic a consumer reads."""

    name: str
    durable: bool
    shared: bool

    def __post_init__(self) -> None:
        """M63; any other character and any length may be part of a name (jms rule 139 asks for less)."""
        if not isinstance(self.name, str):
            raise TypeError(f"the name of a subscription is a str, not {type(self.name).__name__}")
        if not self.name or "|" in self.name:
            raise ValueError(f"the name of a subscription is one character or more without '|', not {self.name!r}")

    def __str__(self) -> str:
        kind = ("shared " if self.shared else "") + ("durable " if self.durable else "")
        return f"{kind}subscription {self.name!r}"


@dataclass
class _Sharers:
    """The consumers of one shared subscription whose links are there."""

    consumers: list[ClientConsumer] = field(default_factory=list)
    opened: int = 0
    """How many there ever were while at least one was there: so no link name is used twice (M62)."""


class Subscriptions:
    """What one connection has open of named subscriptions."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._unshared: dict[str, ClientConsumer] = {}
        self._shared: dict[Subscription, _Sharers] = {}

    # -- names -----------------------------------------------------------------------------------------------------

    def link_name(self, subscription: Subscription, number: int) -> str:
        """The name of the `number`-th link of a subscription, from 1 (M62)."""
        name, is_global = subscription.name, not self.connection.client_id_given
        if not subscription.shared:
            return name
        if not subscription.durable:
            return f"{name}|{'global-' if is_global else ''}volatile{number}"
        counted = "" if number == 1 else str(number)
        if is_global:
            return f"{name}|global{counted}"
        return f"{name}|{counted}" if counted else name

    def capabilities(self, subscription: Subscription | None) -> tuple[str, ...]:
        """What the source says besides the kind of its node (M56)."""
        if subscription is None or not subscription.shared:
            return ()
        return ("shared",) if self.connection.client_id_given else ("shared", "global")

    # -- consumers -------------------------------------------------------------------------------------------------

    def enter(self, consumer: ClientConsumer) -> str:
        """Admit a consumer; the name of its link.

        Raises `IllegalStateError` where an unshared durable subscription has no client id to belong to (jms rule 127),
        is read by another consumer (jms rule 130), is shared where it was unshared or the reverse (jms rule 134), or is
        shared with a consumer of another topic or selector (jms rule 133).
        """
        subscription = consumer.subscription
        assert subscription is not None
        if subscription.shared:
            return self._share(consumer, subscription)
        if not self.connection.client_id_given:
            raise IllegalStateError(
                f"a {subscription} belongs to a client id, and none was set: connect(…, client_id=…), "
                "or create_shared_durable_consumer"
            )
        self._refuse_other_kind(subscription)
        holder = self._unshared.get(subscription.name)
        if holder is not None:
            if not holder.closed:
                raise IllegalStateError(f"the {subscription} has a consumer already; only one at a time may read it")
            holder.detach()  # closed, and attached only for what it handed over: the name goes to the next
        self._unshared[subscription.name] = consumer
        return self.link_name(subscription, 1)

    def _share(self, consumer: ClientConsumer, subscription: Subscription) -> str:
        if subscription.durable:
            self._refuse_other_kind(subscription)
        sharers = self._shared.setdefault(subscription, _Sharers())
        for other in sharers.consumers:
            if not other.closed and (other.destination, other.selector) != (consumer.destination, consumer.selector):
                raise IllegalStateError(
                    f"the {subscription} has consumers of {other.destination} with the selector {other.selector!r}; "
                    f"one of {consumer.destination} with {consumer.selector!r} cannot share it"
                )
        sharers.consumers.append(consumer)
        sharers.opened += 1
        return self.link_name(subscription, sharers.opened)

    def _refuse_other_kind(self, subscription: Subscription) -> None:
        """M64: a durable subscription in use is shared or it is not."""
        for other in self._durable_consumers(subscription.name):
            assert other.subscription is not None
            if other.subscription.shared != subscription.shared:
                if not other.closed:
                    raise IllegalStateError(
                        f"the {other.subscription} has a consumer: no {subscription} can be had beside it"
                    )
                other.detach()  # the first names of both kinds are alike

    def _durable_consumers(self, name: str) -> list[ClientConsumer]:
        sharers = self._shared.get(Subscription(name, durable=True, shared=True), _Sharers())
        unshared = self._unshared.get(name)
        return [*sharers.consumers, *([] if unshared is None else [unshared])]

    def leave(self, consumer: ClientConsumer) -> None:
        """The link of a consumer is gone."""
        subscription = consumer.subscription
        if subscription is None:
            return
        if self._unshared.get(subscription.name) is consumer:
            del self._unshared[subscription.name]
        sharers = self._shared.get(subscription)
        if sharers is not None and consumer in sharers.consumers:
            sharers.consumers.remove(consumer)
            if not sharers.consumers:
                del self._shared[subscription]

    # -- the end of a subscription ---------------------------------------------------------------------------------

    def unsubscribe(self, name: str) -> Procedure[None]:
        """End a durable subscription: look its link up by name alone, and close it (M68).

        Raises `InvalidDestinationError` when there is no such subscription, `IllegalStateError` while a consumer of
        this connection reads it or has not settled what it took from it (jms rule 137), and what the broker refuses
        with.
        """
        closing = False
        while True:
            try:
                yield from self.connection.until_online()
                lookup = yield from self.connection.subscriptions.look_up(name)
                closing = True
                yield from lookup.close()
            except Interrupted:
                continue
            except InvalidDestinationError:
                if not closing:
                    raise  # else it is gone: by the close whose answer was lost
            return

    def look_up(self, name: str) -> Procedure[OwnLink]:
        """The link of a durable subscription, attached by name alone."""
        connection = self.connection
        connection.check()
        wanted = Subscription(name, durable=True, shared=True)
        if self._durable_consumers(name):
            raise IllegalStateError(
                f"the durable subscription {name!r} cannot end: a consumer reads it, or has messages of it that are "
                "not acknowledged or not committed"
            )
        yield from connection.open()
        given = connection.client_id_given
        with attaching(f"nothing that asks for the subscription {name[:80]!r}"):
            link = connection.own_session.begin().receiver(
                self.link_name(wanted, 1),
                source=None,
                target=Target(),
                desired_capabilities=() if given else ("shared", "global"),
            )
        lookup = OwnLink(connection.own_session, link, f"durable subscription {name!r}")
        yield from lookup.until_attached()
        return lookup
