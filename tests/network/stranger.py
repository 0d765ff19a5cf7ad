"""A router that is none: an engine that comes in by a door for routers, and says and does what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jmsish.broker.network.doors import CAPABILITIES, introduce
from jmsish.broker.network.updates import CONTROL, Update, encode_update
from jmsish.engine import events
from jmsish.engine.outcomes import AmqpError, Source, Target
from tests.broker.world import Peer
from tests.network.world import Network, Site


class Stranger(Peer):
    """Comes as a neighbour of a router; ``answers`` is what it does with each link that the router attaches."""

    def __init__(
        self,
        network: Network,
        at: str,
        *,
        router: str = "INT.X",
        mode: str | None = None,
        answers: Callable[[Any], None] | None = None,
        speaks: bool = True,
    ) -> None:
        mode = mode or ("edge" if router.startswith("E") else "interior")
        role = "edge" if mode == "edge" else "inter-router"
        self.answers = answers or (lambda link: link.attach())
        self.attached: list[Any] = []
        """The links that the router has attached to send on."""
        self.told: list[bytes] = []
        """The updates of the router."""
        self.arrived: list[Any] = []
        """The messages of the router."""
        super().__init__(
            Site(network, network[at]),  # type: ignore[arg-type]
            router,
            offered_capabilities=(CAPABILITIES[role],),
            properties=introduce(router, mode),
        )
        network.peers.append(self)
        self.network = network
        self.control: Any = None
        self.number = 0
        network.run()
        if speaks:
            self.attach_control()

    def attach_control(self, name: str = "control") -> Any:
        self.control = self.session.sender(
            name, source=Source(address=CONTROL), target=Target(address=CONTROL), context=self
        )
        self.network.run()
        return self.control

    def tell(
        self, add: Mapping[str, int] | None = None, remove: Sequence[str] = (), *, number: int | None = None
    ) -> None:
        """An update, the next one unless a number is given."""
        self.say(encode_update(Update(self.number if number is None else number, dict(add or {}), list(remove))))
        self.number += 1

    def say(self, octets: bytes) -> None:
        """Whatever, on the control link."""
        self.control.send(octets, settled=True)
        self.network.run()

    @property
    def is_let_go(self) -> bool:
        return bool(self.closed)

    @property
    def why(self) -> str:
        """What the router said when it let us go."""
        (error,) = self.closed
        return str(error)

    def _note(self, event: tuple[Any, ...]) -> None:
        kind = event[0]
        if kind == events.BEGUN and not event[1].local_open:
            event[1].accept_begin()
        elif kind == events.ATTACHED and event[1].context is None:
            link = event[1]
            link.context = self
            if link.remote_target is not None and getattr(link.remote_target, "address", None) == CONTROL:
                link.attach()
                link.flow(1000)
            else:
                self.attached.append(link)
                self.answers(link)
        elif kind == events.DELIVERED and event[1].context is self:
            event[2].context = []
            address = getattr(event[1].remote_target, "address", None)
            (self.told if address == CONTROL else self.arrived).append(event[2])
        elif kind == events.DETACHED and event[1].context is self:
            event[1].detach()
        elif kind == events.DETACHED:
            event[1].context.error = event[3]
            event[1].detach()
        elif kind == events.DISPOSED:
            pass
        else:
            super()._note(event)


def refusing(condition: str = "test:no", text: str = "not here") -> Callable[[Any], None]:
    """Each link is refused."""
    return lambda link: link.refuse(AmqpError(condition, text))


def taking(credit: int = 100) -> Callable[[Any], None]:
    """Each link is attached, and given credit."""

    def answer(link: Any) -> None:
        link.attach()
        link.flow(credit)

    return answer
