"""For relays between a client and a broker, and peers of both, that are made of bare sockets."""

from __future__ import annotations

import socket


def undelayed(end: socket.socket) -> socket.socket:
    """Has small pieces sent at once, as clients and brokers do: else each may wait 40 ms for the peer to acknowledge
    the one before (the algorithm of Nagle against the delayed acknowledgement)."""
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def onward(near: socket.socket, target: tuple[str, int]) -> socket.socket:
    """The other end of what a relay passes on. Where there is none, the one that was accepted is closed: `OSError`."""
    try:
        undelayed(near)
        return undelayed(socket.create_connection(target))
    except OSError:
        near.close()
        raise
