"""File descriptors: a socket takes one, and most systems give a program a thousand unless it asks for more."""

from __future__ import annotations

import sys

__all__ = ["raise_limit"]

ENOUGH = 1 << 16
"""More than a broker lets in; some systems call their hard limit infinite and then give no more than a few ten
thousand."""


def raise_limit(wanted: int = ENOUGH) -> int:
    """Have the system allow this process as many descriptors as it may; how many that are, 0 where nobody knows.

    For a program that is a broker. One that only has a broker inside keeps its limit: it may be in its interest, as
    ``select`` cannot look at descriptors above 1023.
    """
    if sys.platform == "win32":
        return 0
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return int(soft)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ValueError, OSError):
        return int(soft)
    return int(most)
