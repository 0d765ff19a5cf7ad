"""From which hosts a group may connect: addresses, ranges of them, networks, or from everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

EVERYWHERE: Final = "*"
LOCALHOST: Final = "localhost"
INSIDE: Final = "127.0.0.1"
"""The host of who connects inside the process (``vm://``)."""

Address = IPv4Address | IPv6Address
Range = tuple[int, int, int]
"""IP version, first and last address."""


@dataclass(frozen=True, slots=True)
class RemoteHosts:
    """The hosts as they are written, and what they mean. None at all is nobody."""

    texts: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    everywhere: bool = False

    @classmethod
    def read(cls, texts: Iterable[str]) -> RemoteHosts:
        """``ValueError`` names the one that is wrong."""
        every = tuple(texts)
        ranges = [each for text in every if text != EVERYWHERE for each in ranges_of(text)]
        return cls(every, tuple(ranges), EVERYWHERE in every)

    def __contains__(self, host: str) -> bool:
        """Whether it is one of them; what is no address is only where everybody is."""
        if self.everywhere:
            return True
        address = address_of(host)
        if address is None:
            return False
        version, number = address.version, int(address)
        return any(version == each and low <= number <= high for each, low, high in self.ranges)


def ranges_of(text: str) -> list[Range]:
    """What one entry means; ``ValueError`` where it means nothing."""
    if text.strip().lower() == LOCALHOST:
        return [*ranges_of("127.0.0.0/8"), *ranges_of("::1")]
    low, dash, high = (part.strip() for part in text.partition("-"))
    if dash:
        first, last = _parsed(low, text), _parsed(high, text)
        if first.version != last.version:
            raise ValueError(f"{text!r}: a range is of IPv4 or of IPv6, not from one to the other")
        if int(first) > int(last):
            raise ValueError(f"{text!r}: a range begins with the lower address")
        return [(first.version, int(first), int(last))]
    if "/" in low:
        try:
            network = ip_network(low)
        except ValueError as error:
            raise ValueError(f"{text!r} is no network: {error}") from None
        # An address of IPv4 that is written as one of IPv6 (::ffff:10.0.0.0/104) is one of IPv4 here.
        lowest, highest = address_of(str(network[0])), address_of(str(network[-1]))
        assert lowest is not None and highest is not None
        if lowest.version == highest.version:
            return [(lowest.version, int(lowest), int(highest))]
        return [(network.version, int(network[0]), int(network[-1]))]
    address = _parsed(low, text)
    return [(address.version, int(address), int(address))]


def _parsed(text: str, whole: str) -> Address:
    address = address_of(text)
    if address is None:
        raise ValueError(
            f"{whole!r} is no remote host: that is an address (10.0.0.1, ::1), a range of them (10.0.0.1-10.0.0.9), "
            f"a network (10.0.0.0/8), {LOCALHOST!r} or {EVERYWHERE!r}"
        )
    return address


def address_of(host: str) -> Address | None:
    """The address that a host is; an IPv4 address that came as an IPv6 one is that of IPv4."""
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def host_said(text: str) -> str:
    """The host that is named by who asks what would be granted there; ``ValueError`` for one that is not looked up."""
    if text.strip().lower() == LOCALHOST:
        return INSIDE
    address = address_of(text.strip())
    if address is None:
        raise ValueError(f"{text!r} is no address (10.0.0.1, ::1) and not {LOCALHOST!r}: names are not looked up")
    return str(address)


def is_this_machine(host: str) -> bool:
    """Whether what goes to a host, by its address or the name ``localhost``, passes no wire."""
    address = address_of(host)
    return host.lower() == LOCALHOST if address is None else address.is_loopback


def host_of(peer: str) -> str:
    """The host of a peer that is named as ``host:port``; who is inside the process is at home."""
    if peer.startswith("vm://") or not peer:
        return INSIDE
    host = peer if peer.endswith("]") or ":" not in peer else peer.rpartition(":")[0]
    address = address_of(host)
    return host if address is None else str(address)
