"""What is found: one line a stage or trial."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

OK = "ok"
MISSING = "missing"
FAILED = "failed"
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a stage or trial."""

    what: str
    result: str
    """`OK`, `MISSING` (the broker does not do it, and says so), `FAILED`, or `SKIPPED`."""
    detail: str = ""
    advice: str = ""
    """What to try, where it failed."""


class Stop(Exception):  # noqa: N818  # it ends the examination; it is no error of ours
    """A stage failed, and those after it cannot be."""

    def __init__(self, detail: str, advice: str = "") -> None:
        super().__init__(detail)
        self.advice = advice


@dataclass(slots=True)
class Examination:
    """All that was found about one broker."""

    url: str
    findings: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding) -> Finding:
        self.findings.append(finding)
        return finding

    def of(self, result: str) -> list[Finding]:
        return [each for each in self.findings if each.result == result]

    @property
    def status(self) -> int:
        """The exit status: 0, 1 a trial failed, 3 not reached, 4 not let in."""
        failed = [each.what for each in self.of(FAILED)]
        if "open" in failed:
            return 4
        is_open = any(each.what == "open" for each in self.findings)
        return 1 if failed and is_open else 3 if failed else 0

    def summary(self) -> str:
        failed, missing = names(self.of(FAILED)), names(self.of(MISSING))
        if self.status >= 3:  # noqa: PLR2004
            return f"no connection: {failed} failed"
        said = f"{failed} failed" if failed else "all works that the broker has"
        return f"{said}; missing: {missing}" if missing else said


def names(findings: Iterable[Finding]) -> str:
    return ", ".join(each.what for each in findings)
