"""The package as text: its modules, what each imports, where each stands."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
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


class Module:
    """One file."""

    def __init__(self, path: Path, root: Path = ROOT) -> None:
        self.path = path
        parts = path.relative_to(root).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.text = path.read_text(encoding="utf-8")

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
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def imports(self) -> list[Import]:
        return list(self._imports(self.tree, late=False, typing_only=False))

    def functions(self) -> Iterator[tuple[str, Definition, int]]:
        """Every function with its dotted name and its length in lines, decorators and docstring included."""
        yield from self._functions(self.tree, "")

    def names(self) -> Iterator[tuple[str, int]]:
        """Every name that this module makes: itself, classes, functions, parameters, variables, attributes of self."""
        for part in self.path.relative_to(ROOT).with_suffix("").parts:
            yield part, 1
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, node.lineno
            elif isinstance(node, ast.arg):
                yield node.arg, node.lineno
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, node.lineno
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr, node.lineno

    def _functions(self, node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                yield prefix + child.name, child, (child.end_lineno or first) - first + 1
            name = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef | Definition) else prefix
            yield from self._functions(child, name)

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


def sleeps(module: Module) -> Iterator[int]:
    """Lines that call time.sleep, asyncio.sleep or a bare sleep; asyncio.sleep(0) only yields and is none."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        zero = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        if name == "sleep" and not zero:
            yield node.lineno


def none(offences: Iterable[str]) -> None:
    """Fails with all of them, one a line."""
    found = list(offences)
    assert not found, "\n".join(["", *found])


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
