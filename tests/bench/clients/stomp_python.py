"""stomp.py: a send that waits for its receipt."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import urlsplit

import stomp  # type: ignore[import-untyped]

from tests.bench.clients.protocol import PATIENCE, TEXT, Watch, arguments, serve


class Receipts(stomp.ConnectionListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.came = threading.Semaphore(0)

    def on_receipt(self, frame: Any) -> None:
        self.came.release()

    def on_error(self, frame: Any) -> None:
        raise SystemExit(f"stomp: {frame.body}")


class Program:
    def __init__(self, url: str, profiling: bool) -> None:
        self.profiling = profiling
        self.watch = Watch()
        parts = urlsplit(url)
        self.place = (parts.hostname, parts.port)

    def sync_send(self, count: int, queue: str) -> None:
        connection = stomp.Connection12([self.place], auto_content_length=False)  # else Artemis takes it for octets
        receipts = Receipts()
        connection.set_listener("", receipts)
        connection.connect(wait=True)
        headers = {"destination-type": "ANYCAST", "persistent": "true"}
        with self.watch:
            for number in range(count):
                connection.send(queue, TEXT, headers=headers, receipt=str(number))
                if not receipts.came.acquire(timeout=PATIENCE):
                    raise SystemExit("stomp: no receipt")
        connection.disconnect()


if __name__ == "__main__":
    serve(Program(*arguments()))
