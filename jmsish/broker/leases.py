"""Leases: freezes that are held by request, each by the connection that asked for it and no longer than that is there.

FREEZE answers when the exchanges are held. What is staged meanwhile comes in force at THAW, and is forgotten at CANCEL,
at the end of the connection and when the limit of the hold has passed; whoever comes too late hears why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from jmsish.broker.asked import NO_CONTENT, OK, Answer, Asked, unpacked
from jmsish.broker.entities import BAD_REQUEST, CONFLICT, GONE, NOT_FOUND, Refused
from jmsish.broker.holds import HOLDING, OVER

if TYPE_CHECKING:
    from jmsish.broker.changes import Changes
    from jmsish.broker.connection import ServerConnection
    from jmsish.broker.holds import Freeze

REMEMBERED: Final = 100
"""So many leases of a connection that are over are kept in mind, to say so to who comes late."""
_T = TypeVar("_T")
_U = TypeVar("_U")


class Lease(NamedTuple):
    """A freeze, and what its holder calls it."""

    id: str
    freeze: Freeze


class Leases:
    """The leases of one connection."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}

    def add(self, lease: Lease) -> None:
        """One that is wished for, held or not yet."""
        over = [each.id for each in self._leases.values() if each.freeze.state == OVER]
        for id in over[:-REMEMBERED]:
            del self._leases[id]
        self._leases[lease.id] = lease

    def forget(self, id: str) -> None:
        """It was never held."""
        self._leases.pop(id, None)

    def frozen(self, names: Sequence[str]) -> Lease | None:
        """One that is not over and has one of these exchanges."""
        for lease in self._leases.values():
            if lease.freeze.state != OVER and not set(names).isdisjoint(lease.freeze.names):
                return lease
        return None

    def held(self, id: str) -> Lease:
        """One that is held; Refused says why it is not."""
        lease = self._leases.get(id)
        if lease is None:
            raise Refused(NOT_FOUND, f"there is no lease {id!r} of this connection")
        if lease.freeze.why:
            raise Refused(GONE, str(lease.freeze.lifted()))
        if lease.freeze.state != HOLDING:
            raise Refused(GONE, f"the lease {id!r} is over: it was thawed or cancelled")
        return lease


def after(done: Future[_T], then: Callable[[_T], _U]) -> Future[_U]:
    """What becomes of a result when it is there; an error stays one."""
    following: Future[_U] = Future()

    def pass_on(done: Future[_T]) -> None:
        error = done.exception()
        if error is not None:
            following.set_exception(error)
        else:
            following.set_result(then(done.result()))

    done.add_done_callback(pass_on)
    return following


def freeze(asked: Asked) -> Future[Answer]:
    """FREEZE: hold exchanges; the answer, when they are held, names the lease."""
    asked.check("exchanges", "timeout", "max_hold")
    connection, names = _connection(asked), _names(asked)
    timeout, max_hold = asked.seconds("timeout"), asked.seconds("max_hold")
    if max_hold == 0:
        raise Refused(BAD_REQUEST, "max_hold must be a number of seconds, more than 0")
    mine = connection.leases.frozen(names)
    if mine is not None:
        frozen = ", ".join(map(repr, mine.freeze.names))
        raise Refused(CONFLICT, f"this connection has the lease {mine.id!r} of {frozen} already: thaw it first")
    broker = asked.broker
    freeze = broker.freezes.acquire(names, connection, timeout=timeout, max_hold=max_hold)
    id = f"lease-{broker.next_number()}"
    connection.leases.add(Lease(id, freeze))
    said = {"lease": id, "exchanges": list(freeze.names), "max_hold": float(freeze.max_hold)}

    def held(_: None) -> Answer:
        return Answer(OK, "OK", said)

    # Who is told does not refer to the freeze, by which it is kept.
    freeze.granted.add_done_callback(lambda done: connection.leases.forget(id) if done.exception() else None)
    return after(freeze.granted, held)


def _connection(asked: Asked) -> ServerConnection:
    if asked.connection is None:
        raise Refused(BAD_REQUEST, "a freeze belongs to a connection, and this request has none")
    return asked.connection


def _names(asked: Asked) -> tuple[str, ...]:
    named = unpacked(asked.argument("exchanges"), "exchanges")
    if named is None:
        named = [asked.name]
    if not isinstance(named, (list, tuple)) or not named or not all(isinstance(each, str) for each in named):
        raise Refused(BAD_REQUEST, f"exchanges must be a list of names, not {named!r}")
    return tuple(named)


def lease_of(asked: Asked, id: str | None) -> Lease:
    """The lease that a request names."""
    if not id:
        raise Refused(BAD_REQUEST, "the lease is missing: FREEZE has answered with it")
    return _connection(asked).leases.held(id)


@contextmanager
def staging_of(asked: Asked, id: str | None, names: Sequence[str] = ()) -> Iterator[list[Changes]]:
    """What is collected in a lease, for some of its exchanges or for all; after an error it is as it was before."""
    freeze = lease_of(asked, id).freeze
    # An exchange that was deleted meanwhile is not among what is held any more.
    holds = [freeze.hold_of(name) for name in names] if names else list(freeze.holds)
    marks = [(hold, hold.changes.mark()) for hold in holds]
    try:
        yield [hold.changes for hold in holds]
    except BaseException:
        for hold, mark in marks:
            hold.back_to(mark)
        raise


def cancel(asked: Asked) -> Answer:
    """CANCEL: the hold is over, and nothing of what was staged comes to be."""
    asked.check("lease")
    asked.broker.freezes.cancel(lease_of(asked, asked.text("lease")).freeze)
    return Answer(NO_CONTENT, "No Content", {})


def thaw(asked: Asked, stage: Callable[[Sequence[Changes], Asked], Any]) -> Answer:
    """THAW: what was staged, and what the request brings with it, is in force in one step, and the hold is over.

    Where something in the request is wrong the lease is held on as it was.
    """
    id = asked.text("lease")
    lease = lease_of(asked, id)
    with staging_of(asked, id) as changes:
        stage(changes, asked)
    bindings = {each.exchange.name: each.table.size for each in changes}
    asked.broker.freezes.release(lease.freeze)
    return Answer(OK, "OK", {"lease": lease.id, "bindings": bindings})


__all__ = ["Lease", "Leases", "after", "cancel", "freeze", "staging_of", "thaw"]
