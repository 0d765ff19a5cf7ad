"""Which hosts are this machine: what goes to them passes no wire that others can read."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

__all__ = ["is_loopback"]


def is_loopback(host: str) -> bool:
    """Whether a host, by its address or name, is this machine without asking anybody.

    These are 127.0.0.0/8, ``::1`` and the name ``localhost`` with what ends in it (RFC 6761, 6.3), which no resolver
    may take elsewhere. Another name may well lead here too, but who answers for it is not known.
    """
    host = host.strip("[]").partition("%")[0].rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
