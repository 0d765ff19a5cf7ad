"""Publishers and subscribers as JMS clients attach them (M45, M53 to M58)."""

from __future__ import annotations

from typing import Any

from jmsish.broker import SubscriptionView
from jmsish.engine.outcomes import Source, Target
from jmsish.types import Described, Symbol, ULong
from tests.broker.world import ALL_OUTCOMES, End, Peer, Receiver, Sender, World

SELECTOR_CODE, NO_LOCAL_CODE = ULong(0x0000468C00000004), ULong(0x0000468C00000003)


def selector(text: Any, descriptor: Any = SELECTOR_CODE) -> dict[Any, Any]:
    return {Symbol("jms-selector"): Described(descriptor, text)}


def no_local(value: Any = "NoLocalFilter{}", descriptor: Any = NO_LOCAL_CODE) -> dict[Any, Any]:
    return {Symbol("no-local"): Described(descriptor, value)}


class Named(Receiver):
    """A receiver whose link has the name that the test says."""

    def __init__(self, peer: Peer, session: Any, name: str, options: dict[str, Any]) -> None:
        self._name = name
        super().__init__(peer, session, None, options)

    def name(self) -> str:
        return self._name


def attach(
    peer: Peer, name: str | None = None, *, session: Any = None, credit: int = 100, link: Any = None, **source: Any
) -> Receiver:
    """A receiver with this source; other options of the link are in ``link``."""
    source.setdefault("outcomes", ALL_OUTCOMES)
    options = {"source": Source(**source), **(link or {})}
    if name is None:
        receiver = Receiver(peer, session or peer.session, None, options)
    else:
        receiver = Named(peer, session or peer.session, name, options)
    peer.world.run()
    if credit and not receiver.detached:
        receiver.flow(credit)
    return receiver


def subscriber(peer: Peer, topic: str = "news", **options: Any) -> Receiver:
    """An unshared non-durable subscription."""
    options.setdefault("expiry_policy", "link-detach")
    options.setdefault("capabilities", ("topic",))
    return attach(peer, address=topic, **options)


def durable(peer: Peer, name: str = "sub", topic: str = "news", **options: Any) -> Receiver:
    """An unshared durable subscription (M55, M62)."""
    options.setdefault("capabilities", ("topic",))
    options.setdefault("distribution_mode", "copy")
    return attach(peer, name, address=topic, durable=2, expiry_policy="never", **options)


def shared(
    peer: Peer, name: str = "sub|volatile1", topic: str = "news", *, to_all: bool = False, **options: Any
) -> Receiver:
    """A shared non-durable subscription (M56, M62); ``to_all``: of a client without a client id."""
    return subscriber(peer, topic, name=name, capabilities=_shared_by(to_all), **options)


def shared_durable(
    peer: Peer, name: str = "sub", topic: str = "news", *, to_all: bool = False, **options: Any
) -> Receiver:
    return durable(peer, name, topic, capabilities=_shared_by(to_all), **options)


def _shared_by(to_all: bool) -> tuple[str, ...]:
    return ("topic", "shared", "global") if to_all else ("topic", "shared")


class Question(Receiver):
    """A link that asks for a subscription by its name: there is no source, and the answer is the broker's (M68)."""

    def __init__(self, peer: Peer, session: Any, name: str, desired: tuple[str, ...]) -> None:
        End.__init__(self, peer)
        self.session = session
        self.link = session.receiver(name, source=None, target=Target(), context=self, desired_capabilities=desired)


def look_up(peer: Peer, name: str = "sub", *, to_all: bool = False, session: Any = None) -> Question:
    question = Question(peer, session or peer.session, name, ("shared", "global") if to_all else ())
    peer.world.run()
    return question


def publisher(peer: Peer, topic: str = "news", **options: Any) -> Sender:
    return peer.sender(target=Target(address=topic, capabilities=("topic",)), **options)


def only(world: World) -> SubscriptionView:
    """The one subscription there is."""
    (view,) = world.broker.subscriptions()
    return view


def condition(end: Any) -> str | None:
    """What the peer was refused with."""
    return end.error.condition if end.detached and end.error is not None else None
