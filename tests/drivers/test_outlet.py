"""The broker's side of a socket: what is said last is written, whoever writes meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, cast

from jmsish.drivers.outlet import Reactor, SocketOutlet


class NoReactor:
    """An I/O thread that is this one, and does nothing by itself."""

    driver: Any = None

    def is_current(self) -> bool:
        return True

    def post(self, action: Callable[[], None]) -> None:
        pass


class Overtaken(SocketOutlet):
    """While a thread writes and finds nothing more, another says its last words."""

    def _next(self) -> bool:
        found = super()._next()
        if not found and not self._ended:
            self.deliver(b" and goodbye")
            self.end()
        return found


def test_last_words_that_come_while_another_thread_writes_are_written() -> None:
    """The thread that writes saw an end and nothing before it: it shut the socket, and the outcome of SASL was lost."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        outlet = Overtaken(cast(Reactor, NoReactor()), near, "peer", None)
        outlet.deliver(b"hello")
        outlet.wake()
        far.settimeout(30)
        said = b""
        while part := far.recv(100):
            said += part
    assert said == b"hello and goodbye"
