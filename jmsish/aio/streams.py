"""Bodies of messages as files: what `message.open()` gives, and what `send(stream=…)` reads."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from io import BytesIO
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jmsish._streams import LONGEST_PIECE, pieces_of, something
from jmsish.client.arriving import ArrivingBody
from jmsish.message import BytesMessage

if TYPE_CHECKING:
    from jmsish.aio.session import Session


class BodyFile:
    """The body of a message that may still be arriving, to be read once from its beginning.

    `read` waits until something has arrived, and gives what there is. To close it before the end skips the rest. A
    connection that is lost meanwhile raises its error from `read`.
    """

    def __init__(self, session: Session, body: ArrivingBody | BytesIO) -> None:
        self._session = session
        self._body = body
        self.closed = False
        """Whether it was closed."""

    def readable(self) -> bool:
        """True."""
        return True

    async def read(self, size: int = -1) -> bytes:
        """What is there, `size` octets at most, waiting until something is; empty at the end.  All without a size."""
        if self.closed:
            raise ValueError("the file is closed")
        if isinstance(self._body, BytesIO):
            return self._body.read(size)
        if size is None or size < 0:
            return b"".join([piece async for piece in self])
        return await self._take(self._body, size)

    async def _take(self, body: ArrivingBody, size: int) -> bytes:
        async with self._session._exclusive:
            driver = self._session._driver
            while size:
                piece = driver.call(body.take, size)
                driver.nudge()
                if piece is not None:
                    return piece
                await driver.run(body.wait(), cancellable=True)
        return b""

    async def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with what is there, waiting until something is; 0 at the end."""
        view = memoryview(buffer).cast("B")
        piece = await self.read(len(view))
        view[: len(piece)] = piece
        return len(piece)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.read(LONGEST_PIECE):
            yield piece

    async def __aenter__(self) -> BodyFile:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Be done with it; what was not read is skipped.  Twice is silent."""
        if not self.closed:
            self.closed = True
            if isinstance(self._body, ArrivingBody):
                self._session._driver.call(self._body.leave)
                self._session._driver.nudge()


def open_body(session: Session, message: BytesMessage) -> BodyFile:
    """The body of a received message as a file."""
    body = getattr(message._source, "arriving", None)
    if body is None:
        return BodyFile(session, BytesIO(message._octets()))
    body.open()
    return BodyFile(session, body)


async def awaited_pieces(stream: Any, size: int) -> AsyncIterator[Any]:
    """The octets of a file, or of what an iterable gives, asynchronous or not; what blocks is read in a thread."""
    read = getattr(stream, "read", None)
    if read is not None and inspect.iscoroutinefunction(read):
        while piece := something(await read(size)):
            yield piece
    elif read is None and hasattr(stream, "__aiter__"):
        async for piece in stream:
            yield piece
    else:
        pieces = pieces_of(stream, size)
        while (piece := await asyncio.to_thread(next, pieces, pieces)) is not pieces:
            yield piece
