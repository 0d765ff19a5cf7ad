"""Which hosts are this machine: what goes to them passes no wire that others can read."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

__all__ = ["is_loopback"]


def is_loopback(host: str) -> bool:
    """Whether a host, by its address or name, is this machine without asking anybody.

    These are 127.0.0.0/8, ``::1`` and the name ``localhost``, which the machine itself knows. Names that end in it, or
    in a dot, should lead nowhere else either (RFC 6761, 6.3), but many resolvers ask a name server for them, and who
    answers there is not known. So it is with any other name that leads here.
    """
    host = host.strip("[]").partition("%")[0].lower()
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
