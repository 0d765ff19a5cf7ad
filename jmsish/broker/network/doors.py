"""Who may come in by which door, and who it is: the roles of connections between routers (R2).

A connection between routers is an ordinary AMQP connection whose open names both in its capabilities and properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jmsish.broker.config.network import id_fault
from jmsish.engine.outcomes import AmqpError
from jmsish.engine.sharing import SHARED_WINDOWS
from jmsish.types import Symbol

if TYPE_CHECKING:
    from jmsish.engine.performatives import Open

INTERIOR: Final = "interior"
EDGE: Final = "edge"
STANDALONE: Final = "standalone"
MODES: Final = (INTERIOR, EDGE, STANDALONE)

NORMAL: Final = "normal"
INTER_ROUTER: Final = "inter-router"
ROLES: Final = (NORMAL, INTER_ROUTER, EDGE)
"""``edge`` is the door of an interior router for edges, and the role of an edge's connector to it: its uplink."""

CAPABILITIES: Final = {INTER_ROUTER: "jmsish:inter-router", EDGE: "jmsish:edge"}
ID_PROPERTY: Final = Symbol("router-id")
MODE_PROPERTY: Final = Symbol("router-mode")

NOT_ALLOWED: Final = "amqp:not-allowed"


@dataclass(frozen=True, slots=True)
class Hello:
    """What the open of a router says."""

    router: str
    mode: str
    role: str


def introduce(router: str, mode: str) -> dict[Symbol, str | bool]:
    """The properties of the open of a router."""
    return {ID_PROPERTY: router, MODE_PROPERTY: mode, SHARED_WINDOWS: True}


def hello_of(opened: Open) -> Hello | None:
    """What the peer says it is; None where it is no router. ValueError where it says so and does not say which."""
    offered = opened.offered_capabilities
    roles = [role for role, capability in CAPABILITIES.items() if capability in offered]
    if not roles:
        return None
    properties: Mapping[Any, Any] = opened.properties or {}
    router, mode = properties.get(ID_PROPERTY), properties.get(MODE_PROPERTY)
    if len(roles) > 1:
        raise ValueError("a connection between routers has one role")
    if not isinstance(router, str) or not router:
        raise ValueError("a router names itself by the property router-id")
    fault = id_fault(router)
    if fault is not None:
        raise ValueError(f"the id of a router is {fault}")
    if mode not in (INTERIOR, EDGE):
        raise ValueError(f"the router {router!r} has a mode that is not known here: {mode!r}")
    return Hello(str(router), str(mode), roles[0])


def refusal(hello: Hello, *, router: str, mode: str, role: str, dialled: bool, has_uplink: bool) -> str | None:
    """Why a router is not let in by the door of ``role``; or None. Whether its id is known is asked elsewhere."""
    if hello.router == router:
        return f"the router {router!r} cannot be its own neighbour"
    if hello.role != role:
        return f"the router {hello.router!r} comes in the role {hello.role!r}, and this is the door for {role!r}"
    if role == INTER_ROUTER:
        edges = [each for each, its in ((router, mode), (hello.router, hello.mode)) if its != INTERIOR]
        return (
            f"the router {edges[0]!r} is no interior: it cannot have a neighbour in the role inter-router"
            if edges
            else None
        )
    up, down = ((router, mode), (hello.router, hello.mode)) if dialled else ((hello.router, hello.mode), (router, mode))
    if up[1] != EDGE:
        return f"the router {up[0]!r} is no edge: its connection cannot be in the role edge"
    if down[1] != INTERIOR:
        return f"the router {down[0]!r} is no interior: no edge can hang from it"
    if dialled and has_uplink:
        return f"the edge {router!r} has an uplink already"
    return None


def not_allowed(text: str) -> AmqpError:
    """The error that ends a connection which is not let in."""
    return AmqpError(NOT_ALLOWED, text)
