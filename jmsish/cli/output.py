"""Writing received messages: a line each, a JSON object each, or their octets to a file; flushed at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import jmsish
from jmsish.cli import bodies

Write = Callable[[jmsish.Message], None]


def write_line(message: jmsish.Message) -> None:
    """Standard output is written as octets: a body may hold characters that the terminal's encoding has not."""
    emit(bodies.text_line(message.body))


def write_json(message: jmsish.Message) -> None:
    emit(json.dumps(bodies.envelope(message), ensure_ascii=False))


def emit(text: str) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass") + b"\n")
    sys.stdout.buffer.flush()


def octets(message: jmsish.Message) -> bytes:
    body = message.body
    return bytes(body) if isinstance(body, (bytes, bytearray)) else bodies.text_line(body).encode("utf-8")


class FileWriter:
    """The body of each message as a file: `photo.jpg`, then `photo-2.jpg`, `photo-3.jpg`; none that exists is
    overwritten.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.written = 0

    def __call__(self, message: jmsish.Message) -> None:
        self.written += 1
        path = self.path
        if self.written > 1:
            path = path.with_name(f"{path.stem}-{self.written}{path.suffix}")
        with open(path, "xb") as stream:
            stream.write(octets(message))
        emit(str(path))


def writer(*, as_json: bool, file: str | None) -> Write:
    if file is not None:
        return FileWriter(file)
    return write_json if as_json else write_line
