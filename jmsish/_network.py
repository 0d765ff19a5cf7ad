"""An embedded router as a program sees it: what it reaches, who its neighbours are, and what it dials."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

from jmsish.broker.config.network import ROLES, RouterConfig, connector_fault, name_fault
from jmsish.broker.network import views
from jmsish.broker.network.connectors import Connector as CoreConnector
from jmsish.broker.network.doors import INTERIOR, NORMAL
from jmsish.broker.network.node import RouterNode
from jmsish.broker.network.reach import ADDRESS, ROUTER
from jmsish.broker.network.views import AddressView, Join, LinkView, NeighbourView
from jmsish.broker.policy import near_miss
from jmsish.drivers.serving import BrokerDriver
from jmsish.errors import OperationTimeoutError

_T = TypeVar("_T")


def check_role(router: RouterConfig, role: object) -> None:
    """What a listener may be; ``ValueError`` says what would be right."""
    if role not in ROLES:
        raise ValueError(f"unknown role {role!r}: {near_miss(str(role), ROLES)}")
    if role != NORMAL and router.mode != INTERIOR:
        raise ValueError(f"role={role!r} is a door of an interior router, and this is none")


class Connector:
    """A connection that a router makes: ``name``, ``url``, ``role``, ``is_up``, ``error``, ``close()``."""

    __slots__ = ("_connector", "_driver")

    def __init__(self, driver: BrokerDriver, connector: CoreConnector) -> None:
        self._driver = driver
        self._connector = connector

    @property
    def name(self) -> str:
        return self._connector.name

    @property
    def url(self) -> str:
        """Whom it dials, without a password."""
        return self._connector.shown

    @property
    def role(self) -> str:
        return self._connector.role

    @property
    def is_up(self) -> bool:
        """Whether the peer has let it in."""
        return self._connector.is_up

    @property
    def error(self) -> str:
        """Why it is not up; empty while it is, and before it was tried."""
        return self._connector.error

    def close(self) -> None:
        """End the connection, and dial no more. Twice is silent."""
        self._driver.call(self._connector.close)

    def __repr__(self) -> str:
        return f"<Connector {self.name!r} to {self.url}, {'up' if self.is_up else 'down'}>"


class Router:
    """One router of a network: ``id``, ``mode``, and what it knows of the others at this moment."""

    __slots__ = ("_driver", "_node")

    def __init__(self, driver: BrokerDriver, node: RouterNode) -> None:
        self._driver = driver
        self._node = node

    @property
    def id(self) -> str:
        return self._node.router

    @property
    def mode(self) -> str:
        """``"interior"`` or ``"edge"``."""
        return self._node.mode

    @property
    def neighbours(self) -> list[str]:
        """The ids of the routers that it is connected to."""
        return self._call(lambda: sorted(each.neighbour.router for each in self._node.neighbours if each.neighbour))

    @property
    def routers(self) -> dict[str, int]:
        """All routers of the network by their ids, and how many hops away each is."""
        return self._call(lambda: self._node.reach.keys(ROUTER))

    @property
    def addresses(self) -> dict[str, int]:
        """All addresses with a receiver, and how many hops away the nearest is."""
        return self._call(lambda: self._node.reach.keys(ADDRESS))

    @property
    def joins(self) -> list[Join]:
        """How all routers of the network are joined: of each two neighbours their role, and which dials which."""
        return self._call(lambda: views.joins(self._node))

    def neighbour(self, id: str) -> NeighbourView | None:
        """A neighbour, with the routers behind it; ``up`` is false for one that a connector has lost."""
        return self._call(lambda: next((each for each in views.neighbours(self._node) if each.router == id), None))

    def address(self, name: str) -> AddressView | None:
        """What is known here of an address: hops, who receives and sends here, and how many messages went by.

        None where nobody receives from it anywhere, and nobody sends to it here.
        """
        return self._call(lambda: views.address(self._node, name))

    @property
    def links(self) -> list[LinkView]:
        """The links of this router, those to its neighbours included, with credit and counters."""
        return self._call(lambda: list(views.links(self._node)))

    @property
    def link_routes(self) -> list[tuple[str, str, int]]:
        """The link routes whose brokers can be reached: prefix, router and connector, hops."""
        return self._call(lambda: sorted(self._node.link_routes.open_routes()))

    @property
    def connectors(self) -> list[Connector]:
        """What it dials."""
        return self._call(lambda: [Connector(self._driver, each) for each in self._node.connectors.values()])

    def reaches(self, address: str) -> bool:
        """Whether a sender that attached here to this address now would get credit."""
        return self._call(lambda: self._node.reaches(address))

    def wait_for_address(self, address: str, timeout: float | None = 10.0) -> None:
        """Wait until this router :meth:`reaches` an address; ``OperationTimeoutError`` after ``timeout`` seconds."""
        self._wait([ADDRESS + address], f"the address {address!r}", timeout)

    def wait_for_routers(self, *ids: str, timeout: float | None = 10.0) -> None:
        """Wait until this router knows these routers; ``OperationTimeoutError`` after ``timeout`` seconds."""
        self._wait([ROUTER + each for each in ids], f"the routers {', '.join(ids)}", timeout)

    def wait_for_link_route(self, address: str, timeout: float | None = 10.0) -> None:
        """Wait until an address leads to a broker that is up; ``OperationTimeoutError`` after ``timeout`` seconds."""
        self._wait_until(
            lambda: self._node.link_routes.is_open(self._node.link_routes.home_of(address)),
            f"a route for {address!r}",
            timeout,
        )

    def _wait(self, keys: list[str], what: str, timeout: float | None) -> None:
        self._wait_until(lambda: all(self._node.reach.distance(key) is not None for key in keys), what, timeout)

    def _wait_until(self, is_so: Callable[[], bool], what: str, timeout: float | None) -> None:
        done: Future[None] = self._call(lambda: self._node.expect(is_so))
        try:
            done.result(timeout)
        except (FutureTimeoutError, TimeoutError):
            done.cancel()
            raise OperationTimeoutError(f"the router {self.id!r} did not find {what} within {timeout:g} s") from None

    def connect(self, url: str, role: str = NORMAL, name: str | None = None) -> Connector:
        """See :meth:`EmbeddedBroker.connector`."""
        fault = connector_fault(url, role, self._node.config.router)
        if fault is None and name is not None:
            fault = name_fault(name)
        if fault is not None:
            raise ValueError(fault)
        connector = self._call(lambda: self._node.connector(name or self._node.free_name(), url, role))
        return Connector(self._driver, connector)

    def _call(self, function: Callable[[], _T]) -> _T:
        return self._driver.call(function)

    def __repr__(self) -> str:
        return f"<Router {self.id!r}, {self.mode}>"
