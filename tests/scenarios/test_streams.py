"""Bodies that are sent and read piece by piece: `send(stream=…)` and `message.open()`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest

import jmsish

from .face import Face
from .steps import expect, outcome, stage

BODY = bytes(range(256)) * 12_000
"""Three megabytes: of more frames than a streaming session's window has."""

SMALL = 50_000
"""The threshold of these tests."""


async def read_all(body: Any) -> bytes:
    pieces = []
    async with body:
        while piece := await body.read(100_000):
            pieces.append(bytes(piece))
    return b"".join(pieces)


class Broken(io.RawIOBase):
    """A source that fails in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self.pieces += 1
        if self.pieces > 10:
            raise OSError("the disk is gone")
        return bytes(size)


@pytest.mark.parametrize("threshold", [None, SMALL])
@pytest.mark.parametrize("mode", ["auto", "client", "dups_ok", "individual", "transacted"])
@pytest.mark.usefixtures("hasty")
async def test_a_file_goes_out_and_comes_in(face: Face, mode: str, threshold: int | None) -> None:
    """With its headers and properties, whether it is handed over whole or while it arrives."""
    play = await stage(face, mode, stream_threshold=threshold)
    producer = await play.session.create_producer(play.destination)
    message: Any = play.session.create_bytes_message()
    message.jms_type = "film"
    await producer.send(message, stream=io.BytesIO(BODY), properties={"name": "clip"}, priority=6)
    await producer.send("m2")
    if mode == "transacted":
        await play.session.commit()
    await play.queue.holds(2)
    consumer = await play.consumer()
    got: Any = await consumer.receive(timeout=30)
    assert isinstance(getattr(got, "raw", got), jmsish.BytesMessage)
    assert (got.jms_type, got.properties["name"], got.jms_priority) == ("film", "clip", 6)
    assert got.jms_message_id == message.jms_message_id
    assert await read_all(got.open()) == BODY
    await expect(consumer, "m2 none")
    if mode in ("client", "individual", "transacted"):
        await play.settle(got)
    await play.queue.comes_to(1 if mode == "individual" else 0)


async def test_an_iterable_goes_out_piece_by_piece(face: Face) -> None:
    """Pieces of any size, empty ones among them; one whose length nobody knows beforehand."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)

    def pieces() -> Iterator[bytes]:
        yield BODY[:1]
        yield b""
        yield BODY[1:700_000]
        yield memoryview(BODY)[700_000:]  # type: ignore[misc]

    await producer.send(stream=pieces())
    await producer.send(stream=[])
    await producer.send(stream=io.BytesIO())
    consumer = await play.consumer()
    for body in (BODY, b"", b""):
        got: Any = await consumer.receive(timeout=30)
        assert got.data == body


async def test_asynchronous_sources(face: Face) -> None:
    """In `jmsish.aio` a source may be asynchronous: an iterable, or a file whose `read` is awaited."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    if face.here() == "MainThread":  # the blocking face has none
        return

    class Source:
        def __init__(self) -> None:
            self.file = io.BytesIO(BODY)

        async def read(self, size: int) -> bytes:
            return self.file.read(size)

    async def pieces() -> Any:
        yield BODY[:5]
        await face.yield_()
        yield BODY[5:]

    consumer = await play.consumer()
    for source in (Source(), pieces()):
        await producer.send(stream=source)
        got: Any = await consumer.receive(timeout=30)
        assert got.body == BODY


@pytest.mark.parametrize("mode", ["auto", "transacted"])
async def test_a_source_that_fails_leaves_nothing_behind(face: Face, mode: str) -> None:
    """What it raises comes out of `send`; nothing of the message is enqueued, and the producer stays usable."""
    play = await stage(face, mode)
    producer = await play.session.create_producer(play.destination)
    called: list[Any] = []
    with pytest.raises(OSError, match="the disk is gone"):
        await producer.send(stream=Broken(), on_completion=lambda *args: called.append(args))
    await producer.send("m2")
    if mode == "transacted":
        await play.session.commit()
    await expect(await play.consumer(), "m2 none")
    assert called == []


@pytest.mark.parametrize("ending", ["commit", "rollback"])
async def test_a_stream_in_a_transaction_is_all_or_nothing(face: Face, ending: str) -> None:
    """Seen after the commit, never after a rollback, together with the other messages of the transaction."""
    play = await stage(face, "transacted")
    producer = await play.session.create_producer(play.destination)
    await producer.send("m1")
    await producer.send(stream=io.BytesIO(BODY))
    await play.queue.holds(0)
    await (play.session.commit() if ending == "commit" else play.session.rollback())
    await play.queue.holds(2 if ending == "commit" else 0)


class Growing(io.BytesIO):
    """A file that is written to while it is sent, or cut off."""

    def __init__(self, change: int) -> None:
        super().__init__(BODY)
        self.change = change

    def read(self, size: int | None = -1) -> bytes:
        piece = super().read(size)
        if not piece and self.change > 0:
            self.change, piece = 0, bytes(self.change)
        if self.change < 0 and self.tell() >= len(BODY) + self.change:
            return b""
        return piece


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"stream": lambda: io.StringIO("text")}, TypeError, "binary mode"),
        ({"stream": lambda: 7}, TypeError, "iterable"),
        ({"stream": lambda: [1, 2]}, TypeError, "not int"),
        ({"stream": lambda: io.BytesIO(BODY), "message_or_body": "text"}, TypeError, "body of a BytesMessage"),
        ({"stream": lambda: io.BytesIO(BODY), "message_or_body": jmsish.TextMessage("a")}, TypeError, "TextMessage"),
        (
            {"stream": lambda: io.BytesIO(BODY), "message_or_body": jmsish.BytesMessage(b"a")},
            ValueError,
            "body already",
        ),
        ({"stream": lambda: Growing(+9)}, ValueError, "more than"),
        ({"stream": lambda: Growing(-9)}, ValueError, "ended after"),
    ],
    ids=["text file", "number", "ints", "str", "TextMessage", "body", "growing", "shrinking"],
)
async def test_what_cannot_be_streamed_sends_nothing(
    face: Face, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    """Wrong arguments are told as such, and a file that changes is not sent in part."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    with pytest.raises(error, match=text):
        await producer.send(**{**arguments, "stream": arguments["stream"]()})
    await producer.send("m1")
    await expect(await play.consumer(), "m1 none")


async def test_a_stream_with_a_completion(face: Face) -> None:
    """`send` returns when all is read; the completion comes when the broker has answered, in the order of the sends."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    log = face.log()
    await producer.send("m1", on_completion=lambda message, error: log.add(f"m1 {error}"))
    await producer.send(
        stream=io.BytesIO(BODY), on_completion=lambda message, error: log.add(f"{message.jms_priority} {error}")
    )
    await producer.send("m3", on_completion=lambda message, error: log.add(f"m3 {error}"))
    assert await log.reach(3) == ["m1 None", "4 None", "m3 None"]
    await play.queue.holds(3)


# -- reading while it arrives --------------------------------------------------------------------------------------


async def begun(face: Face, mode: str, octets: bytes = BODY, **options: Any) -> tuple[Any, Any, Any]:
    """A message of which a part was read, with `m2` behind it."""
    play = await stage(face, mode, stream_threshold=SMALL, **options)
    other = await play.beside("auto")
    producer = await other.session.create_producer(play.destination)
    await producer.send(stream=io.BytesIO(octets))
    await producer.send("m2")
    consumer = await play.consumer()
    message: Any = await consumer.receive(timeout=30)
    body = message.open()
    assert await body.read(100) == BODY[:100]
    return play, consumer, (message, body)


async def test_the_body_of_an_arriving_message_is_read_by_open_alone(face: Face) -> None:
    """Its other ways say so; and it is opened once."""
    play, consumer, (message, body) = await begun(face, "auto")
    for ask in (lambda: message.body, lambda: message.data, lambda: message.get_body(bytes), message.open):
        with pytest.raises(jmsish.IllegalStateError, match="open"):
            ask()
    assert await body.read(50) == BODY[100:150]
    with pytest.raises(jmsish.IllegalStateError):
        await (await play.session.create_producer(play.destination)).send(message)
    await body.close()
    with pytest.raises(ValueError, match="closed"):
        await body.read(1)
    await expect(consumer, "m2 none")


@pytest.mark.parametrize("mode", ["auto", "dups_ok"])
@pytest.mark.usefixtures("hasty")
async def test_auto_acknowledges_when_the_body_was_read(face: Face, mode: str) -> None:
    """Not before: what is lost in the middle comes again."""
    play, consumer, (_, body) = await begun(face, mode)
    await play.queue.comes_to(2, acquired=2)
    assert await read_all(body) == BODY[100:]
    await play.queue.comes_to(1)
    await expect(consumer, "m2 none")
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
async def test_closing_before_the_end_skips_the_rest(face: Face, mode: str) -> None:
    """The message counts as any other; the next one follows."""
    play, consumer, (message, body) = await begun(face, mode)
    await body.close()
    await expect(consumer, "m2 none")
    if mode != "auto":
        await play.settle(message)
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
async def test_the_next_message_ends_the_reading(face: Face, mode: str) -> None:
    """The session goes on: what is not read of the message before is skipped, and reading it is an error."""
    play, consumer, (message, body) = await begun(face, mode)
    await expect(consumer, "m2 none")
    with pytest.raises(jmsish.IllegalStateError, match="goes on"):
        await body.read(1)
    if mode != "auto":
        await play.settle(message)
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["client", "individual", "transacted"])
async def test_settling_before_the_end_skips_the_rest(face: Face, mode: str) -> None:
    """`acknowledge` or `commit` take the message as it is."""
    play, consumer, (message, body) = await begun(face, mode)
    await play.settle(message)
    with pytest.raises(jmsish.IllegalStateError, match="goes on"):
        await body.read(1)
    await play.queue.comes_to(1)
    (m2, _) = await expect(consumer, "m2 none")
    await play.settle(m2)
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["client", "transacted"])
async def test_giving_back_in_mid_body(face: Face, mode: str) -> None:
    """Recover and rollback: it comes again, counted, and whole."""
    play, consumer, (_, body) = await begun(face, mode)
    await play.give_back()
    with pytest.raises(jmsish.IllegalStateError, match="goes on"):
        await body.read(1)
    message: Any = await consumer.receive(timeout=30)
    assert message.jms_redelivered and message.delivery_count == 2
    assert await read_all(message.open()) == BODY
    await expect(consumer, "m2 none")
    await play.settle(message)
    await play.queue.comes_to(0)


@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
async def test_a_loss_in_mid_body(face: Face, mode: str) -> None:
    """`read` raises; the message comes again to somebody else."""
    play, _, (_, body) = await begun(face, mode, BODY * 4, cuttable=True)
    face.cut(play.connection)
    with pytest.raises(jmsish.ConnectionLostError):
        while await body.read(1000):
            pass
    await play.queue.comes_to(2, acquired=0)
    other = await play.beside("auto")
    got: Any = await (await other.consumer()).receive(timeout=30)
    assert got.jms_redelivered and got.body == BODY * 4


async def test_closing_the_session_in_mid_body(face: Face) -> None:
    """In AUTO the message was received; the body cannot be read any more."""
    play, _, (_, body) = await begun(face, "auto")
    await play.session.close()
    with pytest.raises(jmsish.IllegalStateError):
        await body.read(1)
    await play.queue.comes_to(1)


async def test_closing_the_consumer_leaves_the_body_readable(face: Face) -> None:
    """Close has no effect on what was delivered before (jms rule 38)."""
    play, consumer, (_, body) = await begun(face, "auto")
    await consumer.close()
    assert await read_all(body) == BODY[100:]
    await play.queue.comes_to(1)


async def test_two_streams_in_a_row(face: Face) -> None:
    """The second waits for its turn with the window; both come whole."""
    play = await stage(face, "client", stream_threshold=SMALL)
    producer = await play.session.create_producer(play.destination)
    for number in range(3):
        await producer.send(stream=[bytes([number]) * 1_500_000])
    consumer = await play.consumer()
    for number in range(3):
        message: Any = await consumer.receive(timeout=30)
        assert await read_all(message.open()) == bytes([number]) * 1_500_000
    await message.acknowledge()
    await play.queue.comes_to(0)


async def test_another_consumer_is_not_kept_away_by_an_unread_stream(face: Face) -> None:
    """A large message that nobody reads shuts the window only while nobody waits for anything else."""
    play = await stage(face, "auto", stream_threshold=SMALL)
    producer = await play.session.create_producer(play.destination)
    await producer.send(stream=[BODY] * 3)
    elsewhere = play.session.create_queue("elsewhere")
    await play.consumer()
    await play.queue.comes_to(1, acquired=1)
    consumer = await play.session.create_consumer(elsewhere)
    await (await play.session.create_producer(elsewhere)).send("m1")
    await expect(consumer, "m1 none")


async def test_only_octets_are_read_while_they_arrive(face: Face) -> None:
    """A text beyond the threshold is handed over whole, as ever."""
    text = "ä" * 400_000
    play = await stage(face, "auto", stream_threshold=SMALL)
    producer = await play.session.create_producer(play.destination)
    await producer.send(text)
    await expect(await play.consumer(), text)


async def test_a_listener_reads_a_stream(face: Face) -> None:
    """Inside the listener; the message is acknowledged when it returns."""
    play = await stage(face, "auto", stream_threshold=SMALL)
    producer = await play.session.create_producer(play.destination)
    await producer.send(stream=io.BytesIO(BODY))
    await producer.send("m2")
    log = face.log()

    async def listen(message: Any) -> None:
        if isinstance(getattr(message, "raw", message), jmsish.BytesMessage):
            log.add(str(len(await read_all(message.open()))))
        else:
            log.add(message.body)

    (await play.consumer()).listener = listen
    assert await log.reach(2) == [str(len(BODY)), "m2"]
    await play.queue.comes_to(0)


async def test_a_listener_that_fails_in_mid_body(face: Face) -> None:
    """The message comes again, counted."""
    play = await stage(face, "auto", stream_threshold=SMALL)
    producer = await play.session.create_producer(play.destination)
    await producer.send(stream=io.BytesIO(BODY))
    log = face.log()

    async def listen(message: Any) -> None:
        body = message.open()
        log.add(f"{message.delivery_count} {len(await body.read(10))}")
        if message.delivery_count == 1:
            raise ValueError("on purpose")
        log.add(str(len(await read_all(body))))

    (await play.consumer()).listener = listen
    assert await log.reach(3) == ["1 10", "2 10", str(len(BODY) - 10)]
    await play.queue.comes_to(0)


async def test_a_body_is_passed_on_as_it_arrives(face: Face) -> None:
    """From one queue to another, in one transaction, with what stands in the message."""
    play, _, (message, body) = await begun(face, "transacted")
    out = await play.beside("transacted", same_connection=True)
    target = await out.session.create_producer(out.session.create_queue("next"))
    message.clear_body()

    class Source:
        """What of the body is left, whichever face it has."""

        async def read(self, size: int) -> bytes:
            return bytes(await body.read(size))

    await target.send(message, stream=body.raw if hasattr(body, "raw") else Source())
    await out.session.commit()
    await play.session.commit()
    got: Any = await (await out.session.create_consumer(out.session.create_queue("next"))).receive(timeout=30)
    assert await read_all(got.open()) == BODY[100:]
    await play.queue.comes_to(1)


async def test_sending_goes_on_while_a_stream_is_read(face: Face) -> None:
    """Of the same session: answers to sends are not kept away by the window."""
    play, _, (_, body) = await begun(face, "client")
    producer = await play.session.create_producer(play.session.create_queue("elsewhere"))
    await producer.send("m1")
    assert await body.read(10) == BODY[100:110]
    await producer.send(stream=io.BytesIO(BODY))
    await body.close()
    await face.sight("elsewhere").holds(2)


async def test_a_browser_shows_large_messages_whole(face: Face) -> None:
    """Looking is not reading."""
    play = await stage(face, "auto", stream_threshold=SMALL)
    producer = await play.session.create_producer(play.destination)
    await producer.send(stream=io.BytesIO(BODY))
    async for message in await play.session.create_browser(play.destination):
        shown: Any = message
        assert shown.body == BODY
    await play.queue.holds(1)


async def test_a_stream_without_settlement(face: Face) -> None:
    """In a NONE session the message is gone from the queue; its body comes all the same."""
    play, consumer, (_, body) = await begun(face, "none")
    assert await read_all(body) == BODY[100:]
    await expect(consumer, "m2 none")
    await play.queue.comes_to(0)


async def test_a_stream_ends_with_its_session(face: Face) -> None:
    """A session closed from elsewhere in the middle of a send: nothing is enqueued."""
    play = await stage(face, "auto")
    producer = await play.session.create_producer(play.destination)
    closings: list[Any] = []

    class Closing:
        """A source that has its session closed from elsewhere, amid its octets."""

        def __init__(self, count: int) -> None:
            self.count = count

        def read(self, size: int) -> bytes:
            self.count -= 1
            if self.count == 3:
                play.session.raw._core.begin_close() if hasattr(play.session, "raw") else (
                    play.session._core.begin_close()
                )
            return bytes(size) if self.count else b""

    result = await outcome(producer.send(stream=Closing(9)))
    assert isinstance(result, jmsish.IllegalStateError) and "closed" in str(result)
    assert closings == []
    await play.session.close()
    await play.queue.holds(0)


async def test_contexts_stream_too(face: Face) -> None:
    """The simplified API is over the classic one: options and messages are the same."""
    play = await stage(face, "auto", stream_threshold=SMALL)
    await (await play.session.create_producer(play.destination)).send(stream=io.BytesIO(BODY))
    connecting: Any = jmsish.aio.create_context if face.here() != "MainThread" else jmsish.create_context
    made = connecting(face.url, stream_threshold=SMALL)
    if face.here() == "MainThread":
        with made as context:
            message: Any = context.create_consumer(play.destination).receive(timeout=30)
            with message.open() as body:
                assert b"".join(iter(lambda: body.read(100_000), b"")) == BODY
    else:
        async with made as context:
            message = await (await context.create_consumer(play.destination)).receive(timeout=30)
            assert await read_all(message.open()) == BODY
    await play.queue.comes_to(0)
