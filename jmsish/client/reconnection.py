"""Where and when to connect again: the list of brokers, the turns through it, and the waits between them.

Theory of operation.  An outage begins with the loss of a connection, or with the wish for a first one.  An *attempt* is
one turn through all brokers, from the one behind the last that was tried on; the waits stand between attempts and grow
by the back-off.  The driver is told a place and a time (`next`), and tells what came of it (`failed`, `restored`).

              lost               due                 restored
    STANDING ──────► WAITING ◄────────► DIALLING ──────────────► STANDING
                        │      failed      │
                        └───── given up ───┴──► OVER

A broker that refuses the credentials is not asked again in the same outage: an account is locked by less.  When all
have refused so, or the attempts are used up, it is over, and `verdict` says why, broker by broker.

Hosts are learned in two ways: a broker names others in the properties of its open (``failover-server-list``), which
replace or join those of the URL; and one that closes with ``amqp:connection:redirect`` names the one to go to, at once.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from jmsish.errors import ConnectionLostError, InvalidClientIDError, JMSError, JMSSecurityError
from jmsish.option_kinds import NO_HOST
from jmsish.options import ConnectionTarget

_log = logging.getLogger("jmsish.client")

STANDING, WAITING, DIALLING, OVER = range(4)

_TABLE = {
    (STANDING, "lost"): WAITING,
    (WAITING, "due"): DIALLING,
    (DIALLING, "failed"): WAITING,
    (DIALLING, "restored"): STANDING,
    (WAITING, "given up"): OVER,
}
"""What follows upon what; anything else is a fault of ours."""

REDIRECT = "amqp:connection:redirect"
SERVER_LIST = "failover-server-list"

HOPS = 8
"""So many redirects are followed in a row: two brokers may name each other."""

FLAPPING = 1.0
"""A connection that stood for fewer seconds is made again with a wait, however short `initial_reconnect_delay` is."""


class Reconnection:
    """The plan of one connection.  Moments are monotonic seconds."""

    def __init__(self, target: ConnectionTarget, shuffle: Callable[[list[ConnectionTarget]], None] = random.shuffle):
        assert target.failover is not None
        self.options = target.failover
        self.places: list[ConnectionTarget] = list(target.targets)
        self.state = STANDING
        self.attempts = 0
        """Turns that have failed in this outage."""
        self.current: ConnectionTarget = self.places[0]
        """The broker last tried."""
        self.ever_stood = False
        self._shuffle = shuffle
        self._turn: deque[ConnectionTarget] = deque()
        self._causes: dict[str, JMSError] = {}
        self._refused: dict[str, JMSError] = {}
        self._due = 0.0
        self._hops = 0
        self._stood_from: float | None = None
        self._final: JMSError | None = None

    def _step(self, event: str) -> None:
        self.state = _TABLE[self.state, event]

    # -- inputs ----------------------------------------------------------------------------------------------------

    def lost(self, now: float, cause: JMSError | None = None) -> None:
        """An outage begins: the connection is lost for `cause`, or, without one, is to be made for the first time."""
        self._step("lost")
        self.attempts = self._hops = 0
        self._causes, self._refused = {}, {}
        self._due = now
        if cause is not None:
            flaps = self._stood_from is not None and now - self._stood_from < FLAPPING
            wait = self.options.initial_reconnect_delay
            self._due += max(wait, self.options.reconnect_delay) if flaps else wait
            if self._limit != 0:
                _log.warning("the connection to %s is interrupted, and is made again: %s", self.current.url, cause)
        self._begin_turn()
        if self._limit == 0:
            self._give_up(cause)
        elif cause is not None and self._follow(cause):
            self._due = now

    def due(self) -> None:
        """The place that `next` named is being dialled."""
        self._step("due")
        self.current = self._turn.popleft()

    def failed(self, now: float, error: JMSError) -> None:
        """What was being dialled did not come about."""
        self._step("failed")
        place = self.current.url
        if place not in self._causes:  # once an outage, not once an attempt
            _log.warning("%s is not reached: %s", place, error)
        else:
            _log.debug("%s is not reached: %s", place, error)
        self._causes[place] = error
        if isinstance(error, JMSSecurityError) and error.scope is not None:  # the broker's word, not a token's absence
            self._refused[place] = error
        if isinstance(error, InvalidClientIDError) and not self.ever_stood:
            self._give_up(error)
        elif self._follow(error):
            self._due = now
        elif not self._turn:
            self._turn_over(now)

    def restored(self, now: float) -> None:
        """The connection stands."""
        self._step("restored")
        if self.ever_stood:
            _log.warning("the connection is restored, to %s", self.current.url)
        self.ever_stood = True
        self._stood_from = now

    def learned(self, properties: Mapping[Any, Any]) -> None:
        """The properties of a broker's open, which may name other brokers."""
        listed = properties.get(SERVER_LIST)
        action = self.options.amqp_open_server_list_action
        if not isinstance(listed, (list, tuple)) or action == "IGNORE":
            return
        found = [place for entry in listed if (place := self._place_of(entry)) is not None]
        if found:
            kept = self.places if action == "ADD" else []
            self.places = list({place.url: place for place in [*found, *kept][::-1]}.values())[::-1]
            _log.debug("the brokers to connect to are now %s", ", ".join(place.url for place in self.places))

    # -- outputs ---------------------------------------------------------------------------------------------------

    def next(self) -> tuple[ConnectionTarget, float] | None:
        """Whom to dial and when; None when it is over."""
        return None if self.state == OVER else (self._turn[0], self._due)

    def verdict(self) -> JMSError:
        """Why no connection comes about."""
        if self._final is not None:
            return self._final
        causes = list(self._causes.items())
        if len(causes) == 1:
            return causes[0][1]
        listed = "; ".join(f"{place}: {cause}" for place, cause in causes)
        all_refused = bool(causes) and all(place in self._refused for place, _ in causes)
        kind = JMSSecurityError if all_refused else ConnectionLostError
        tries = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        verdict = kind(f"no broker could be reached in {tries}: {listed}", scope="connection")
        verdict.__cause__ = causes[-1][1] if causes else None
        return verdict

    # -- turns -----------------------------------------------------------------------------------------------------

    @property
    def _limit(self) -> int | None:
        limit = self.options.max_reconnect_attempts
        if not self.ever_stood:
            first = self.options.startup_max_reconnect_attempts
            limit = limit if first is None else first
            return None if limit is None else max(limit, 1)
        return limit

    def _begin_turn(self) -> None:
        """All that have not refused us, from the one behind the last that was tried."""
        places = [place for place in self.places if place.url not in self._refused]
        if self.options.randomize:
            self._shuffle(places)
        elif self.ever_stood or self.attempts:
            urls = [place.url for place in places]
            after = urls.index(self.current.url) + 1 if self.current.url in urls else 0
            places = places[after:] + places[:after]
        self._turn = deque(places)

    def _turn_over(self, now: float) -> None:
        self.attempts += 1
        self._begin_turn()
        limit = self._limit
        if not self._turn or (limit is not None and self.attempts >= limit):
            self._give_up(None)
            return
        options = self.options
        if options.warn_after_reconnect_attempts and self.attempts % options.warn_after_reconnect_attempts == 0:
            listed = "; ".join(f"{place}: {cause}" for place, cause in self._causes.items())
            _log.warning("%d attempts to connect have failed: %s", self.attempts, listed)
        wait = options.reconnect_delay
        if options.use_reconnect_back_off:
            # Capped before the power is taken: after some hundred attempts it would be too large for a float.
            steps = min(self.attempts - 1, 64)
            wait *= min(options.reconnect_back_off_multiplier**steps, 1e9)
        self._due = now + min(wait, options.max_reconnect_delay)

    def _give_up(self, final: JMSError | None) -> None:
        self._final = final
        self._step("given up")

    # -- other hosts -----------------------------------------------------------------------------------------------

    def _follow(self, error: JMSError) -> bool:
        """Whether the error is a redirect that is followed: its place is the next."""
        if error.condition != REDIRECT or self._hops >= HOPS:
            return False
        place = self._place_of(error.info)
        if place is None:
            return False
        self._hops += 1
        self._turn.appendleft(place)
        return True

    def _place_of(self, named: Any) -> ConnectionTarget | None:
        """The place that a map of a peer names (``network-host``, ``port``, ``hostname``, ``scheme``), if it does.

        One without TLS is not gone to from one with (`amqp.allowNonSecureRedirects` has no counterpart here).
        """
        if not isinstance(named, Mapping):
            return None
        said = {str(key): value for key, value in named.items()}
        host = said.get("network-host") or said.get("hostname")
        port, scheme = said.get("port"), said.get("scheme")
        if not isinstance(host, str) or NO_HOST.search(host):
            return None
        if port is not None and not (isinstance(port, int) and 0 < port <= 0xFFFF):
            return None
        if scheme is not None and str(scheme) not in ("amqp", "amqps"):
            return None
        if self.current.is_secure and str(scheme) == "amqp":
            _log.warning("%s names %s without TLS, where it is not followed", self.current.url, host)
            return None
        place = self.current.at(str(host), None if port is None else int(port), None if scheme is None else str(scheme))
        vhost = said.get("hostname")
        if isinstance(vhost, str) and vhost != host:
            place = replace(place, options=replace(place.options, vhost=str(vhost)))
        return place
