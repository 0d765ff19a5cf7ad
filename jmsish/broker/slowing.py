"""Failed attempts to log in make their host wait: longer from failure to failure, never longer than a few seconds.

Theory of operation.  The first failures of a host cost nothing, for people mistype. From then on each answer to an
attempt from that host is held back, a yes like a no: were only a no slow, who hears nothing at once could hang up and
try the next. So many answers may be held back at a time; further attempts are sent away undecided, or a hundred
connections at once would be a hundred times as fast. A success wipes the slate of its host clean, and so does time.

Nobody waits here: the time of the answer is a result. Hosts are forgotten oldest first where there are too many, which
an attacker who owns so many can bring about, but such a one had as many first failures anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final

FREE: Final = 3
"""So many failures cost nothing."""
FIRST_DELAY: Final = 0.25
LONGEST_DELAY: Final = 4.0
"""Well within the time that a peer has to open."""
MEMORY: Final = 600.0
"""Seconds after its last failure in which a host is remembered."""
MOST_HOSTS: Final = 10_000
MOST_HELD: Final = 16
"""Answers to one host that are held back at a time."""


def crowd_of(peer: str) -> str:
    """The host of a peer's address (``1.2.3.4:5``, ``[::1]:5``). Of IPv6 it is the network of 64 bits: whoever has one
    address there has them all."""
    text = peer.rpartition(":")[0].strip("[]").partition("%")[0] or peer
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return f"{IPv6Address(int(address) >> 64 << 64)}/64"
    return str(address)


class _Record:
    """What is remembered of one host."""

    __slots__ = ("failures", "held", "last")

    def __init__(self) -> None:
        self.failures = 0
        self.held: list[float] = []
        """When the answers that are held back go out."""
        self.last = 0.0


class Slowing:
    """The failures of all hosts."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def is_crowded(self, host: str, now: float) -> bool:
        """Whether so many answers to this host are held back that no further attempt is looked at."""
        record = self._records.get(host)
        if record is None:
            return False
        record.held = [due for due in record.held if due > now]
        return len(record.held) >= MOST_HELD

    def judged(self, host: str, passed: bool, now: float) -> float:
        """An attempt has passed, or failed; the time at which to say so, ``now`` or later."""
        record = self._records.get(host)
        if record is not None and record.last + MEMORY < now and not self._holds(record, now):
            del self._records[host]
            record = None
        if record is None:
            if passed:
                return now
            record = self._records[host] = _Record()
            while len(self._records) > MOST_HOSTS:
                self._records.popitem(last=False)
        due = now + _delay(record.failures)
        if due > now:
            record.held.append(due)
        if passed:
            record.failures = 0
        else:
            record.failures += 1
            record.last = now
            self._records.move_to_end(host)
        if not record.failures and not self._holds(record, now):
            del self._records[host]
        return due

    @staticmethod
    def _holds(record: _Record, now: float) -> bool:
        return any(due > now for due in record.held)


def _delay(failures: int) -> float:
    """Seconds before the next answer to a host that has failed so often."""
    if failures < FREE:
        return 0.0
    return min(FIRST_DELAY * 2.0 ** min(failures - FREE, 30), LONGEST_DELAY)
