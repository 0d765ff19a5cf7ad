"""The order of the sections of a message that comes in parts, looked at as they come.

Where something was read in the beginning of a message, a section that comes again, or out of its place, could say
something else to who reads it later: libraries differ in which of two they take.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import Final

from jmsish.engine.decoding import DecodeError
from jmsish.engine.sections import FOLLOWERS, FORMS, most_sections, section_at, skip

_LONGEST_HEAD: Final = 1024
"""Octets in which a section has said what it is and how long; only a described value with a descriptor of half of that
could not."""


class SectionWalk:
    """Where in its sections a message is that comes in parts."""

    __slots__ = ("_count", "_held", "_last", "_rest", "_size")

    def __init__(self) -> None:
        self._last = 0
        self._rest = 0
        """Octets of the section that has begun which are still to come."""
        self._held = b""
        """The beginning of a section that does not say yet how long it is."""
        self._count = 0
        self._size = 0

    def feed(self, part: bytes) -> None:
        """Look at one part. ``DecodeError`` where a section is not what Part 3, 3.2 says comes next, or where there
        are more than anybody looks through."""
        size = len(part)
        self._size += size
        if self._rest > size:
            self._rest -= size
            return
        octets, pos = self._held + part[self._rest :], 0
        self._rest = 0
        while pos < len(octets):
            try:
                code, value = section_at(octets, pos)
                form, behind = octets[value], skip(octets, value)
            except (DecodeError, IndexError, struct_error):
                if len(octets) - pos >= _LONGEST_HEAD:
                    raise DecodeError("a section that does not say what it is", pos) from None
                break  # it may be that more has to come
            if code not in FOLLOWERS[self._last] or form not in FORMS[code]:
                raise DecodeError(f"section {code:#x} of format code {form:#04x} after section {self._last:#x}", pos)
            self._last = code
            self._count += 1
            if self._count > most_sections(self._size):
                raise DecodeError(f"{self._count} sections in {self._size} octets", pos)
            pos = behind
        self._held = octets[pos:]
        self._rest = max(pos - len(octets), 0)
