"""Words, sizes and the version: small rules that keep the house readable."""

from __future__ import annotations

import ast
import re

from jmsish._version import VERSION
from tests.house.source import PACKAGE, ROOT, Definition, Module, modules, none, sleeps

# Each of these says that nobody knew what the thing is.
FORBIDDEN_WORDS = {"manager", "handler", "helper", "helpers", "util", "utils", "service", "provider", "wrapper"}
# Somebody else's word: JMS and OpenTelemetry name providers, and the signal and asyncio modules have handlers.
ALLOWED_NAMES = {
    "jms_provider_name",
    "provider_version",
    "tracer_provider",
    "meter_provider",
    "provider_major_version",
    "provider_minor_version",
    "exception_handler",
    "set_exception_handler",
    "call_exception_handler",
}
FILE_LIMIT = 500
FUNCTION_LIMIT = 40
EVERY = modules()
TESTS = [module for module in modules(ROOT / "tests") if "bench" not in module.path.parts]


def test_words() -> None:
    none(
        f"{module.place}:{line}: {name}"
        for module in EVERY
        for name, line in module.names()
        if name not in ALLOWED_NAMES and FORBIDDEN_WORDS & words_of(name)
    )


def words_of(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_files_stay_small() -> None:
    none(f"{module.place}: {module.lines} lines" for module in EVERY if module.lines > FILE_LIMIT)


def test_functions_stay_small() -> None:
    """About thirty lines. A hot loop may be longer, and says so in a comment at its head (`# hot: why`)."""
    none(
        f"{module.place}:{node.lineno}: {name} has {without_docstring(node, length)} lines"
        for module in EVERY
        for name, node, length in module.functions()
        if without_docstring(node, length) > FUNCTION_LIMIT and not says_hot(module, node)
    )


def without_docstring(node: Definition, length: int) -> int:
    docstring = ast.get_docstring(node)
    return length - (docstring.count("\n") + 1 if docstring else 0)


def says_hot(module: Module, node: Definition) -> bool:
    head = module.text.splitlines()[max(0, node.lineno - 3) : node.body[min(1, len(node.body) - 1)].lineno]
    return any(re.search(r"#.*\bhot\b", line, re.IGNORECASE) for line in head)


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    none(module.place for module in EVERY if marks.search(module.text))


def test_annotations_are_not_evaluated() -> None:
    """Import time: no annotation is computed before somebody asks for it."""
    defining = [m for m in EVERY if any(isinstance(node, ast.ClassDef | Definition) for node in m.tree.body)]
    none(m.place for m in defining if "from __future__ import annotations" not in m.text)


def test_tests_wait_for_events_and_never_sleep() -> None:
    none(f"{module.place}:{line}" for module in TESTS for line in sleeps(module))


def test_the_version_is_static_and_one() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    static = re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)
    assert static is not None
    assert "dynamic" not in text
    assert VERSION == static.group(1)


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
