"""How a stream becomes the parts of a message: sections of data, frames of the peer's size."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsish._streams import EMPTY_BODY, LONGEST_PIECE, Parts, pieces_of, size_of_stream
from jmsish.engine.codec import ReceivedMessage
from jmsish.engine.sections import section_at, skip
from jmsish.message.fields import DATA

HEAD = b"\x00Sp\xc0\x02\x01A"
"""A header that says durable."""


def parts_of(pieces: list[bytes], size: int | None, room: int) -> list[bytes]:
    cutter = Parts(HEAD, size, room)
    return [part for piece in pieces for part in cutter.add(piece)] + [cutter.end()]


def sections(octets: bytes) -> list[int]:
    found, pos = [], 0
    while pos < len(octets):
        code, value = section_at(octets, pos)
        found.append(code)
        pos = skip(octets, value)
    return found


@given(pieces=st.lists(st.binary(max_size=300), max_size=8), room=st.integers(16, 700), known=st.booleans())
def test_parts_are_the_message_cut_into_frames(pieces: list[bytes], room: int, known: bool) -> None:
    """None is larger than a frame, all but the last are full, and together they are head and body."""
    body = b"".join(pieces)
    parts = parts_of(pieces, len(body) if known else None, room)
    assert all(len(part) == room for part in parts[:-1]) and len(parts[-1]) <= room
    message = ReceivedMessage(b"".join(parts))
    assert message.prefix.header.durable and message.body() == (DATA, body)


def test_a_known_size_is_one_section_and_an_unknown_one_is_a_section_for_each_piece() -> None:
    """M12: Qpid JMS keeps the last section only; so one is what a file becomes."""
    pieces = [b"one", b"", b"two"]
    assert sections(b"".join(parts_of(pieces, 6, 100))[len(HEAD) :]) == [DATA]
    assert sections(b"".join(parts_of(pieces, None, 100))[len(HEAD) :]) == [DATA, DATA]
    assert parts_of([], None, 100) == [HEAD + EMPTY_BODY]


@pytest.mark.parametrize(("size", "text"), [(5, "more than the 5"), (7, "after 6 of 7")])
def test_a_size_that_does_not_come_true(size: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parts_of([b"one", b"two"], size, 100)


def test_sizes_of_sources() -> None:
    """From where a file stands; unknown where it cannot seek, or says nonsense."""
    file = io.BytesIO(b"0123456789")
    file.seek(4)
    assert size_of_stream(file) == 6 and file.tell() == 4
    assert size_of_stream(memoryview(b"abc")) == 3

    class Pipe(io.RawIOBase):
        def seekable(self) -> bool:
            return False

    broken: Any = type("Broken", (), {"seekable": lambda self: True, "tell": lambda self: None})()
    sizeless: list[Any] = [io.BytesIO(), Pipe(), [b"a"], broken]
    assert [size_of_stream(each) for each in sizeless] == [None] * 4


def test_pieces_of_sources() -> None:
    """Files are read, octets are cut, iterables give what they give."""
    assert list(pieces_of(io.BytesIO(b"abcde"), 2)) == [b"ab", b"cd", b"e"]
    assert [bytes(piece) for piece in pieces_of(b"abcde", 2)] == [b"ab", b"cd", b"e"]
    assert list(pieces_of(iter([b"a", b"b"]), 1)) == [b"a", b"b"]
    assert Parts(HEAD, None, 1 << 20).piece == LONGEST_PIECE and Parts(HEAD, None, 500).piece < 500


def test_a_file_that_has_nothing_just_now_is_not_at_its_end() -> None:
    """A non-blocking file says so by None; to take that for the end would send the half as the whole."""

    class Pipe(io.RawIOBase):
        gives = [b"one", None, b"two"]

        def read(self, size: int = -1) -> Any:
            return self.gives.pop(0)

    with pytest.raises(BlockingIOError, match="read blocks"):
        list(pieces_of(Pipe(), 10))
