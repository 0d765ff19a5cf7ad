"""Imports go down, never across or up; what does input or output stays at the top."""

from __future__ import annotations

from functools import cache

from tests.house.source import Import, cycles, edges, modules, none

# The storeys, lowest first (docs/design.md). A room imports from lower storeys and from itself.
VALUES = [
    "_version", "errors", "destination", "types", "message", "moments", "options", "profiles", "events",
    "failover_options",
]  # fmt: skip
STOREYS = {
    **dict.fromkeys(VALUES, 1),
    "engine": 2,
    "client": 3,
    "broker": 3,
    "drivers": 3,
    "_consuming": 4,
    "_attributes": 4,
    "_creators": 4,
    "_credentials": 4,
    "_facade": 4,
    "_holding": 4,
    "_life": 4,
    "_network": 4,
    "_router_network": 4,
    "_policy": 4,
    "_listening": 4,
    "_metadata": 4,
    "_simplified": 4,
    "_streams": 4,
    "_users_file": 4,
    "_views": 4,
    "sync": 4,
    "aio": 4,
    "embedded": 4,
    "otel": 4,
    "freezing": 4,
    "testing": 4,
    "pytest_plugin": 4,
    "cli": 4,
    "conformance": 4,
    "__init__": 4,
    "__main__": 4,
}
# Values that one of the five grew out of stand on the same storey.
FIRST_STOREY_PREFIXES = ("option_", "message_", "modes", "conversion", "selector")
# What a driver may know of the storeys below it is less than all.
DRIVERS_MAY_IMPORT = {"drivers", "engine", "errors", "moments", "options"}
# Below the drivers there is no socket, no thread, no clock: bytes, events and deadlines are arguments and results.
FORBIDDEN_BELOW = {
    "asyncio", "select", "selectors", "socket", "socketserver", "ssl", "subprocess", "threading", "time",
    "_thread", "multiprocessing", "queue", "signal",
}  # fmt: skip
EVERY = modules()


@cache
def graph() -> dict[str, dict[str, Import]]:
    return edges(EVERY)


def room(module_name: str) -> str:
    return module_name.split(".")[1] if "." in module_name else "__init__"


def storey(module_name: str) -> int | None:
    name = room(module_name)
    return 1 if name.startswith(FIRST_STOREY_PREFIXES) else STOREYS.get(name)


def runtime_imports() -> list[tuple[str, str, str]]:
    """(importing module, imported module, where) of every import inside the package."""
    places = {module.name: module.place for module in EVERY}
    return [
        (source, target, f"{places[source]}:{item.line} imports {target}")
        for source, targets in graph().items()
        for target, item in targets.items()
    ]


def test_every_room_stands_on_a_storey() -> None:
    none(sorted({module.room for module in EVERY if storey(module.name) is None}))


def test_imports_go_down() -> None:
    none(where for source, target, where in runtime_imports() if storey(target) > storey(source))


def test_client_broker_and_drivers_are_strangers() -> None:
    third = [(s, t, where) for s, t, where in runtime_imports() if storey(s) == storey(t) == 3]
    none(where for source, target, where in third if room(source) != room(target))


def test_drivers_know_little() -> None:
    known = [(target, where) for source, target, where in runtime_imports() if room(source) == "drivers"]
    none(where for target, where in known if room(target) not in DRIVERS_MAY_IMPORT | {"__init__"})


def test_no_input_no_output_no_clock_below_the_drivers() -> None:
    below = [module for module in EVERY if storey(module.name) in (1, 2, 3) and module.room != "drivers"]
    none(
        f"{module.place}:{item.line} imports {item.target}"
        for module in below
        for item in module.imports
        if item.target.split(".")[0] in FORBIDDEN_BELOW
    )


def test_no_import_cycles() -> None:
    none(" -> ".join(cycle) for cycle in cycles(graph()))


def test_late_imports_are_for_optional_extras_only() -> None:
    """An import of our own inside a function hides a cycle; one of `rich` is for who has not installed it."""
    none(
        f"{module.place}:{item.line} imports {item.target}"
        for module in EVERY
        for item in module.imports
        if item.late and item.target.split(".")[0] == "jmsish"
    )


def test_the_engine_is_python_alone() -> None:
    """Nothing to compile at install: proton is a peer in the tests, never a part."""
    native = {"proton", "cproton", "cproton_ffi", "cffi"}
    none(m.place for m in EVERY for item in m.imports if item.target.split(".")[0] in native)
