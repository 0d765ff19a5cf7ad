"""The order of the sections of a message, looked at whole and part by part."""

from __future__ import annotations

import itertools

import pytest

from jmsish.engine.decoding import DecodeError
from jmsish.engine.section_walk import SectionWalk
from jmsish.engine.sections import FOLLOWERS, check_order, check_sections
from jmsish.engine.values import encode_described

SECTIONS = {
    0x70: encode_described(0x70, b"\x45"),
    0x71: encode_described(0x71, b"\xc1\x01\x00"),
    0x72: b"\x00\xa3\x1camqp:message-annotations:map\xd1\x00\x00\x00\x04\x00\x00\x00\x00",
    0x73: encode_described(0x73, b"\xc0\x06\x02\x40\xa0\x02me"),
    0x74: b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x74\xc1\x01\x00",
    0x75: encode_described(0x75, b"\xb0\x00\x00\x00\x28" + bytes(40)),
    0x76: encode_described(0x76, b"\x45"),
    0x77: encode_described(0x77, b"\x00\xa1\x03abc\xa1\x03xyz"),
    0x78: encode_described(0x78, b"\xc1\x01\x00"),
}  # fmt: skip


def walks(octets: bytes, size: int) -> bool:
    walk = SectionWalk()
    try:
        for start in range(0, len(octets), size):
            walk.feed(octets[start : start + size])
    except DecodeError:
        return False
    return True


def is_in_order(octets: bytes) -> bool:
    try:
        check_sections(octets)
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1 << 16])
def test_part_by_part_it_is_as_of_the_whole(size: int) -> None:
    for codes in itertools.product(SECTIONS, repeat=3):
        octets = b"".join(SECTIONS[code] for code in codes)
        assert walks(octets, size) is is_in_order(octets), codes


def test_every_section_has_its_followers() -> None:
    allowed = {(last, code) for last in SECTIONS for code in SECTIONS if is_in_order(SECTIONS[last] + SECTIONS[code])}
    body = {0x75, 0x76, 0x77}
    in_order = {(last, code) for last in SECTIONS for code in SECTIONS if last < code and not {last, code} <= body}
    assert allowed == in_order | {(0x75, 0x75), (0x76, 0x76)}
    assert FOLLOWERS[0] == set(SECTIONS)


@pytest.mark.parametrize("size", [1, 1000, 1 << 16])
def test_a_section_of_another_form_or_of_no_kind_is_refused(size: int) -> None:
    assert not walks(SECTIONS[0x73] + encode_described(0x75, b"\xa1\x01x"), size)
    assert not walks(SECTIONS[0x73] + encode_described(0x79, b"\xa1\x01x") + bytes(2000), size)
    assert not walks(bytes(2000), size)


def test_what_ends_too_soon_may_go_on() -> None:
    octets = b"".join(SECTIONS[code] for code in (0x72, 0x73, 0x74, 0x77, 0x78))
    assert all(walks(octets[:end], 5) for end in range(len(octets)))


def test_more_sections_than_anybody_has_are_refused() -> None:
    assert walks(SECTIONS[0x75] * 1000, 4096) and not walks(SECTIONS[0x75] * 5000, 4096)
    with pytest.raises(DecodeError, match="sections in"):
        check_order(SECTIONS[0x75] * 5000, 0)


def test_the_order_of_a_bare_message() -> None:
    octets = SECTIONS[0x73] + SECTIONS[0x77]
    text = encode_described(0x77, b"\xa1\x02hi")
    for right in (octets, text, SECTIONS[0x73] + text, b""):
        check_order(right, 0)
    for wrong in (SECTIONS[0x73] * 2, octets + SECTIONS[0x73], text + octets, octets + b"\x00", octets[:-1], text[:4]):
        with pytest.raises(DecodeError):
            check_order(wrong, 0)
