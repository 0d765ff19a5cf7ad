"""What each broker does: the frame-level tests of tests/wire/protocol, run over TCP against several brokers.

`python -m tests.interop.compare` starts Apache Artemis and Qpid Broker-J, runs the tests against each of them and
against the broker of this package, and writes the tables into docs/brokers.md, between the two comments that it finds
there. Only a failure at our own broker makes the run fail: what others do is what the page tells.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from jmsish import EmbeddedBroker
from tests.interop import brokers, fetch
from tests.interop.behaviours import EXPECTED, INSTEAD

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests/wire/protocol"
PAGE = ROOT / "docs/brokers.md"
BEGIN, END = "<!-- begin: tables of tests/interop/compare.py -->", "<!-- end -->"

OURS = "jmsish"
AREAS = {
    "transactions": "Transactions",
    "receiving": "Receiving and outcomes",
    "posting": "Sending",
    "pieces": "Messages of several frames",
    "anonymous": "The anonymous relay",
    "flow": "Credit, drain and windows",
    "nodes": "Temporary destinations",
    "attach": "Links",
    "connection": "Connections and sessions",
    "habits": "Other ways to say the same",
}
YES, NOT_TRIED = "yes", "–"


@contextmanager
def _jmsish(folder: Path) -> Iterator[str]:
    with EmbeddedBroker() as broker:
        listener = broker.listen()
        yield f"{listener.host}:{listener.port}"


BROKERS: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    OURS: _jmsish,
    f"Artemis {fetch.ARTEMIS}": brokers.artemis,
    f"Broker-J {fetch.BROKER_J}": brokers.broker_j,
}


@dataclass(frozen=True)
class Case:
    """What became of one run of a test: `words` is `yes`, or what the broker does or lacks instead."""

    area: str
    test: str
    parameters: str
    words: str
    failed: bool


# -- running -----------------------------------------------------------------------------------------------------------


def run(target: str, folder: Path) -> list[Case]:
    """All tests against the broker at `target`."""
    report = folder / "report.xml"
    files = [str(TESTS / f"test_{area}.py") for area in AREAS]
    # Twice verbose: what was got and what was wanted are written out, not cut.
    command = [sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", "--tb=no", f"--junitxml={report}"]
    environment = {**os.environ, "JMSISH_WIRE_TARGET": target}
    subprocess.run([*command, *files], cwd=ROOT, env=environment, timeout=1800, stdout=subprocess.DEVNULL)
    return [_case(element) for element in ElementTree.parse(report).iter("testcase")]


def _case(element: ElementTree.Element) -> Case:
    area = element.attrib["classname"].rpartition(".test_")[2]
    test, _, parameters = element.attrib["name"].removeprefix("test_").removesuffix("]").partition("[")
    parameters = re.sub(r"^socket-?", "", parameters)
    words, failed = YES, False
    for child in element:
        if child.tag == "skipped":
            words = _skipped(child.attrib.get("message", ""))
        elif child.tag in ("failure", "error"):
            words, failed = INSTEAD.get(test) or instead(child.attrib.get("message", "")), True
    return Case(area, test, parameters, words, failed)


def _skipped(reason: str) -> str:
    missing = re.search(r"this broker has (no .*)", reason)
    return missing[1] if missing else NOT_TRIED


# -- words -------------------------------------------------------------------------------------------------------------

FRAME = r"(?:\[\d+\] )?(?P<frame>[a-z-]+)\((?P<fields>.*)"
WORDS: list[tuple[str, Callable[[re.Match[str]], str]]] = [
    (r".* expected, and nothing came", lambda found: "says nothing"),
    (r".* expected, and the line ended", lambda found: "ends the line without a word"),
    (r".* expected, not silence", lambda found: "keeps the line open"),
    (r"(?:source|target) of \[\d+\] attach.* should be Ellipsis", lambda found: "refuses the attach"),
    (rf"(?P<field>\w+) of {FRAME} should be .*", lambda found: _frame(found, f", another `{found['field']}`")),
    (rf".* expected, not {FRAME}", lambda found: _frame(found)),
    (r".* expected, not (?P<condition>amqp:[\w:-]+): .*", lambda found: f"`{found['condition']}`"),
    (r".* expected, not header.*", lambda found: "answers the header only"),
    (r".*answered \[\d+\] (?P<frame>[a-z-]+)\((?P<fields>.*)", lambda found: _frame(found)),
    (r"no answer to the control message .*", lambda found: "settles the message before it answers the discharge"),
    (r"(?:TimeoutError|.*[Tt]imeout).*", lambda found: "reads no further"),
    (r"assert \(*'(?P<outcome>\w+)', (?P<condition>[^)]*)\).* == .*", lambda found: _outcome(found)),
    (r"assert \(*'(?P<outcome>accepted|rejected)' == .*", lambda found: f"*{found['outcome']}*"),
    (r"assert \[(?P<got>.*)\] == \[(?P<wanted>.*)\]", lambda found: _left(found)),
]
STATES = ("accepted", "rejected", "released", "modified", "declared")


def instead(message: str) -> str:
    """A few words for what a broker did in place of what was expected."""
    line = re.sub(r"^(AssertionError: |Failed: )?(wire\.\w+-\d+: )?", "", message.split("\n")[0])
    for pattern, words in WORDS:
        if found := re.fullmatch(pattern, line):
            return words(found).replace("|", "\\|")
    return "does otherwise"


def _outcome(found: re.Match[str]) -> str:
    condition = found["condition"].strip("'")
    return f"*{found['outcome']}*" + (f" with `{condition}`" if condition != "None" else "")


def _left(found: re.Match[str]) -> str:
    """What is on the queue in the end."""
    got, wanted = (", ".join(name[:8] for name in re.findall(r"'(\w+)'", found[side])) for side in ("got", "wanted"))
    return f"{got or 'nothing'} on the queue, not {wanted or 'nothing'}"


def _frame(found: re.Match[str], detail: str = "") -> str:
    frame, fields = found["frame"], found["fields"]
    if condition := re.search(r"condition='([^']+)'", fields):
        return f"`{frame}` with `{condition[1]}`"
    if frame == "disposition":
        state = next((state for state in STATES if f"{state}(" in fields), None)
        return f"outcome *{state}*" if state else f"a `disposition` without an outcome{detail}"
    return f"`{frame}`{detail}"


# -- the page ----------------------------------------------------------------------------------------------------------


def tables(seen: dict[str, list[Case]]) -> str:
    """Markdown of everything: an area at a time, what differs first."""
    return "\n".join(line for area in AREAS for line in _area(area, seen))


def _area(area: str, seen: dict[str, list[Case]]) -> Iterator[str]:
    rows = {test: [_cell(seen[name], area, test) for name in seen] for test in _tests(area)}
    # What is tried nowhere, or nowhere else, says nothing of a difference.
    tried = {test: cells for test, cells in rows.items() if YES in cells and set(cells[1:]) != {NOT_TRIED}}
    alike = [label for test, label in _tests(area).items() if set(tried.get(test, [])) == {YES}]
    yield f"### {AREAS[area]}\n"
    differing = {test: cells for test, cells in tried.items() if set(cells) != {YES}}
    if differing:
        yield f"| what | {' | '.join(seen)} |"
        yield "|---" * (len(seen) + 1) + "|"
        for test, cells in differing.items():
            yield f"| {_tests(area)[test]} | {' | '.join(cells)} |"
        yield ""
    if alike:
        yield f"Alike: {'; '.join(alike)}.\n"


def _cell(cases: list[Case], area: str, test: str) -> str:
    """One cell for all runs of a test with different parameters."""
    words: dict[str, list[str]] = {}
    for case in cases:
        if (case.area, case.test) == (area, test):
            words.setdefault(case.words, []).append(case.parameters)
    if len(words) > 1:
        words.pop(NOT_TRIED, None)
    if len(words) <= 1:
        return next(iter(words), NOT_TRIED)
    good = [YES] if words.pop(YES, None) else []
    return "; but ".join([*good, "; ".join(said + _which(names) for said, names in words.items())])


def _which(parameters: list[str]) -> str:
    """The cases meant, where their names are words."""
    named = ", ".join(parameters)
    return f" ({named})" if re.fullmatch(r"[a-z-]+(, [a-z-]+)*", named) else ""


def _tests(area: str) -> dict[str, str]:
    """The tests of an area and what a yes means."""
    found = {}
    for node in ast.parse((TESTS / f"test_{area}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            name = node.name.removeprefix("test_")
            found[name] = EXPECTED.get(name, name.replace("_", " "))
    return found


def main() -> int:
    seen = {}
    for name, start in BROKERS.items():
        print(f"== {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="jmsish-compare-", ignore_cleanup_errors=True) as folder:
            with start(Path(folder)) as target:
                seen[name] = run(target, Path(folder))
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables(seen)}\n{END}{after}", encoding="utf-8")
    wrong = [case for case in seen[OURS] if case.failed]
    print(*(f"{OURS}: {case}" for case in wrong), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except fetch.Missing as missing:
        sys.exit(str(missing))
