"""A blocking connection that is made again, and cut as soon as it has a wire."""

from __future__ import annotations

import threading
from typing import Any

import jmsish
from jmsish.testing import cut

PATIENCE = 30.0


def test_a_wire_that_is_cut_before_anybody_reads_it_is_made_anew_at_once() -> None:
    """That was taken for a pause between two attempts, in which nobody reads: for `connect_timeout`."""
    with jmsish.EmbeddedBroker() as broker:
        url = f"failover:({broker.url})"
        connection = jmsish.connect(url, connect_timeout=3600, initial_reconnect_delay=0, reconnect_delay=0.001)
        driver = connection._driver
        connect = driver._connect
        assert connect is not None
        attempts = threading.Semaphore(0)

        def cut_at_once(*to: Any) -> Any:
            made = connect(*to)
            made[0].close()
            attempts.release()
            return made

        driver._connect = cut_at_once
        cut(connection)
        for _ in range(3):
            assert attempts.acquire(timeout=PATIENCE), "no further attempt"
        driver._connect = connect
        connection.create_session().close()
        connection.close()
