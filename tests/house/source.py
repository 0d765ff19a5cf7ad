"""The package as text: its modules, what each imports, where each stands."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "jmsish"
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One name that a module imports: `target` is absolute, `line` is where, `late` says it is inside a function."""

    target: str
    line: int
    late: bool
    typing_only: bool


@dataclass(frozen=True)
class Function:
    """One function, by its dotted name; lines are counted with decorators and docstring."""

    name: str
    line: int
    lines: int
    docstring_lines: int
    first_statement: int
    """The line of what comes after the docstring."""


@dataclass(frozen=True)
class Facts:
    """What the rules ask of a file."""

    imports: list[Import]
    functions: list[Function]
    names: list[tuple[str, int]]
    """Every name that it makes, with its line: classes, functions, parameters, variables, attributes of self."""
    sleeps: list[int]
    loggers: list[str]
    defines: bool
    """Whether there is a class or a function in it."""


class Module:
    """One file."""

    def __init__(self, path: Path, root: Path = ROOT) -> None:
        self.path = path
        parts = path.relative_to(root).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)

    def __repr__(self) -> str:
        return self.name

    @property
    def place(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def room(self) -> str:
        """The first name below the package: `engine` of jmsish.engine.frames, `errors` of jmsish.errors."""
        return self.name.split(".")[1] if "." in self.name else "__init__"

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def facts(self) -> Facts:
        """All from one look at the tree, which is not kept: those of the whole house are half a gigabyte."""
        tree = ast.parse(self.text, str(self.path))
        nodes = list(ast.walk(tree))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        return Facts(
            list(self._imports(tree, late=False, typing_only=False)),
            list(_functions(tree, "")),
            [made for node in nodes for made in _made_by(node)],
            [call.lineno for call in calls if _sleeps(call)],
            [name for call in calls for name in _logger_of(call)],
            any(isinstance(node, ast.ClassDef | Definition) for node in tree.body),
        )

    @property
    def imports(self) -> list[Import]:
        return self.facts.imports

    def names(self) -> Iterator[tuple[str, int]]:
        """Every name that this module makes, its own included."""
        for part in self.path.relative_to(ROOT).with_suffix("").parts:
            yield part, 1
        yield from self.facts.names

    def _imports(self, node: ast.AST, late: bool, typing_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, late, typing_only) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                # `from jmsish import aio` may name a module or something in one: both are given, and the caller looks.
                yield from (Import(f"{base}.{alias.name}", child.lineno, late, typing_only) for alias in child.names)
            elif isinstance(child, ast.If) and _is_type_checking(child.test):
                yield from self._imports(ast.Module(child.body, []), late, True)
                yield from self._imports(ast.Module(child.orelse, []), late, typing_only)
            else:
                inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from self._imports(child, late or inside, typing_only)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        parts = parts[: len(parts) - node.level + 1]
        return ".".join(parts + ([node.module] if node.module else []))


@cache
def modules(folder: Path = PACKAGE) -> list[Module]:
    return [Module(path) for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts]


def edges(every: list[Module]) -> dict[str, dict[str, Import]]:
    """Who imports whom inside the package when it runs; what is only for the type checker does not count."""
    known = {module.name for module in every}
    graph: dict[str, dict[str, Import]] = {}
    for module in every:
        graph[module.name] = {}
        for item in module.imports:
            target = item.target if item.target in known else item.target.rpartition(".")[0]
            if target in known and target != module.name and not item.typing_only:
                graph[module.name].setdefault(target, item)
    return graph


def cycles(graph: dict[str, dict[str, Import]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    found: list[list[str]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for neighbour in graph[node]:
            if neighbour not in index:
                visit(neighbour)
                low[node] = min(low[node], low[neighbour])
            elif neighbour in stack:
                low[node] = min(low[node], index[neighbour])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def sleeps(module: Module) -> list[int]:
    """Lines that call time.sleep, asyncio.sleep or a bare sleep; asyncio.sleep(0) only yields and is none."""
    return module.facts.sleeps if "sleep" in module.text else []


def none(offences: Iterable[str]) -> None:
    """Fails with all of them, one a line."""
    found = list(offences)
    assert not found, "\n".join(["", *found])


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _functions(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            docstring = ast.get_docstring(child)
            after = child.body[min(1, len(child.body) - 1)].lineno
            lines = (child.end_lineno or first) - first + 1
            yield Function(
                prefix + child.name, child.lineno, lines, docstring.count("\n") + 1 if docstring else 0, after
            )
        name = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef | Definition) else prefix
        yield from _functions(child, name)


def _made_by(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr, node.lineno


def _sleeps(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    zero = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    return name == "sleep" and not zero


def _logger_of(call: ast.Call) -> Iterator[str]:
    """The name that a call of logging.getLogger gives."""
    gets = isinstance(call.func, ast.Attribute) and call.func.attr == "getLogger"
    if gets and isinstance(call.args[0], ast.Constant):
        yield call.args[0].value
