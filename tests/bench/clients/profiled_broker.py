"""The bundled broker on a TCP port with a profile of each of its threads, printed when standard input ends."""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import threading
from typing import Any

import jmsish


def summary(profile: cProfile.Profile, lines: int = 35) -> str:
    """The functions that took most, without what they called."""
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(lines)
    return text.getvalue()


def main() -> None:
    profiles: list[tuple[str, cProfile.Profile]] = []

    def begin(*event: Any) -> None:
        """Called in each new thread at its first step: from then on its profile takes over."""
        profile = cProfile.Profile()
        profiles.append((threading.current_thread().name, profile))
        profile.enable()

    threading.setprofile(begin)
    with jmsish.EmbeddedBroker() as broker:
        print(f"listening on {broker.listen().url}", flush=True)
        sys.stdin.read()
    threading.setprofile(None)
    for name, profile in profiles:
        print(f"\nthread {name}\n{summary(profile)}", flush=True)


if __name__ == "__main__":
    main()
