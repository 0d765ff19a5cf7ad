"""Bodies of messages as files: what `message.open()` gives."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from jmsish.client.arriving import ArrivingBody
from jmsish.message import BytesMessage

if TYPE_CHECKING:
    from jmsish.sync.session import Session


class BodyFile(io.RawIOBase):
    """The body of a message that may still be arriving, to be read once from its beginning.

    `read` waits until something has arrived, and gives what there is. To close it before the end skips the rest. A
    connection that is lost meanwhile raises its error from `read`.
    """

    def __init__(self, session: Session, body: ArrivingBody) -> None:
        super().__init__()
        self._session = session
        self._body = body

    def __del__(self) -> None:
        """Nothing: `close` takes a lock, and this may be called in the middle of anything."""

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with what is there, waiting until something is; 0 at the end."""
        if self.closed:
            raise ValueError("the file is closed")
        view = memoryview(buffer).cast("B")
        session = self._session
        with session._exclusive:
            driver, piece = session._driver, b""
            while view and not piece:
                taken = driver.step(self._body.take, len(view))
                if taken is None:
                    driver.run(self._body.wait())
                else:
                    piece = taken
                    driver.nudge()
                    break
        view[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Be done with it; what was not read is skipped.  Twice is silent."""
        if not self.closed:
            super().close()
            self._session._driver.leave(self._body.leave)  # a finalizer of what reads this file may have called it


def open_body(session: Session, message: BytesMessage) -> io.RawIOBase | io.BytesIO:
    """The body of a received message as a file."""
    body = getattr(message._source, "arriving", None)
    if body is None:
        return io.BytesIO(message._octets())
    body.open()
    return BodyFile(session, body)
