"""A profile by samples of the main thread, taken by the CPU that the process has used.

Unlike a tracing profile it does not make small functions look dear, and what else the machine does at the time does not
show. It needs many samples: run for some seconds.
"""

from __future__ import annotations

import signal
from collections import Counter
from types import FrameType

INTERVAL = 0.001
Place = tuple[str, str, int]


class Sampler:
    """Counts where the thread is; `only` counts what happens in a function of that name."""

    def __init__(self, only: str | None = None) -> None:
        self.only = only
        self.samples = 0
        self.own: Counter[Place] = Counter()
        self.within: Counter[Place] = Counter()
        self.lines: Counter[Place] = Counter()

    def enable(self) -> None:
        signal.signal(signal.SIGPROF, self.sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def disable(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def sample(self, number: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        if not stack or (self.only and not any(each.f_code.co_name == self.only for each in stack)):
            return
        self.samples += 1
        top = stack[0]
        self.own[place(top)] += 1
        self.lines[(top.f_code.co_filename, top.f_code.co_name, top.f_lineno)] += 1
        self.within.update({place(each) for each in stack})

    def summary(self, microseconds: float, rows: int = 30) -> str:
        """Where the CPU went, given how much of it a unit took."""
        share = microseconds / max(self.samples, 1)
        lines = [f"{self.samples} samples, {microseconds:.2f} µs a unit", "     own   within  function (µs a unit)"]
        for key, count in self.own.most_common(rows):
            lines.append(f"{count * share:8.2f} {self.within[key] * share:8.2f}  {named(key)}")
        lines.append("     own  line")
        lines += [f"{count * share:8.2f}  {named(key)}" for key, count in self.lines.most_common(rows)]
        return "\n".join(lines)


def place(frame: FrameType) -> Place:
    code = frame.f_code
    return code.co_filename, code.co_name, code.co_firstlineno


def named(key: Place) -> str:
    path, function, line = key
    return f"{'/'.join(path.split('/')[-3:])}:{line} {function}"
