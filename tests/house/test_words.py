"""Words, sizes and the version: small rules that keep the house readable."""

from __future__ import annotations

import re

from jmsish._version import VERSION
from tests.house.source import PACKAGE, ROOT, Function, Module, modules, none, sleeps

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
        f"{module.place}:{function.line}: {function.name} has {without_docstring(function)} lines"
        for module in EVERY
        for function in module.facts.functions
        if without_docstring(function) > FUNCTION_LIMIT and not says_hot(module, function)
    )


def without_docstring(function: Function) -> int:
    return function.lines - function.docstring_lines


def says_hot(module: Module, function: Function) -> bool:
    head = module.text.splitlines()[max(0, function.line - 3) : function.first_statement]
    return any(re.search(r"#.*\bhot\b", line, re.IGNORECASE) for line in head)


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    none(module.place for module in EVERY if marks.search(module.text))


def test_annotations_are_not_evaluated() -> None:
    """Import time: no annotation is computed before somebody asks for it."""
    none(m.place for m in EVERY if m.facts.defines and "from __future__ import annotations" not in m.text)


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
