"""Watches predicates while the original code runs: which sides they take, and with what arguments the functions
around them are called.

The code that runs is compiled from the user's source with calls of ours around the tests. Lines, names and
everything else stay as they are, and no file is written.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

_SIDE, _ENTER = "__graphmend_side__", "__graphmend_enter__"
_MOST_CALLS = 4
_get_code = SourceFileLoader.get_code

Steps = tuple[tuple[str, int], ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Test:
    """A predicate, or a part of one; `times` counts how often it was true and false."""

    code: str
    line: int
    times: list[int] = field(default_factory=lambda: [0, 0])
    # A part that never was a tensor is static, and is no side of its own.
    tensor: bool = False


@dataclass(slots=True)
class Call:
    """A call of a watched function, from inside of it."""

    code: CodeType
    namespace: dict[str, Any]
    values: dict[str, Any] | None


@dataclass(slots=True)
class Around:
    """A function that holds predicates. `steps` lead to its code from that of the module; `note` says why it
    was not replayed.
    """

    path: str
    name: str
    steps: Steps
    replays: bool
    tests: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    note: str = ""


class Watch:
    """What is watched, and what was seen."""

    def __init__(self, manifest: Path) -> None:
        record: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
        self.files = {os.path.realpath(path): entry for path, entry in record["files"].items()}
        self.tests: list[Test] = []
        self.functions: list[Around] = []
        #: For each test that is a whole predicate: its file.
        self.whole: dict[int, str] = {}
        #: Copies the values at the entry of a function; None while no calls are kept.
        self.keep: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None
        #: Sides seen since it was last cleared.
        self.seen: set[tuple[int, bool]] = set()

    def install(self) -> None:
        """From here on, the modules of the watched files are made from watched code."""

        def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            path = os.path.realpath(loader.get_filename(fullname))
            if path not in self.files:
                return _get_code(loader, fullname)
            return self._watched(loader, path)

        owner: Any = SourceFileLoader
        owner.get_code = get_code
        setattr(builtins, _SIDE, self._side)
        setattr(builtins, _ENTER, self._enter)

    def _watched(self, loader: SourceFileLoader, path: str) -> CodeType:
        source = Path(path).read_bytes()
        tree = ast.parse(source, path)
        spans = [(entry["kind"], tuple(entry["span"])) for entry in self.files[path]["edits"]]
        _Instrument(self, path, source.decode("utf-8", "replace").splitlines(), spans).visit(tree)
        ast.fix_missing_locations(tree)
        code: CodeType = loader.source_to_code(tree, loader.path)
        return code

    def _side(self, number: int, value: Any) -> Any:
        test = self.tests[number]
        try:
            taken = bool(value)
        except Exception:
            # The test itself raises it, in its own place.
            return value
        # By the name of its class: this module knows no torch.
        test.tensor = test.tensor or any(base.__name__ == "Tensor" for base in type(value).__mro__)
        test.times[not taken] += 1
        self.seen.add((number, taken))
        return value

    def _enter(self, number: int) -> None:
        around = self.functions[number]
        if self.keep is None or len(around.calls) >= _MOST_CALLS:
            return
        frame = sys._getframe(1)
        keep, self.keep = self.keep, None
        try:
            around.calls.append(Call(frame.f_code, frame.f_globals, keep(dict(frame.f_locals))))
        finally:
            self.keep = keep


class _Instrument(ast.NodeTransformer):
    """Puts the calls of a watch into a module."""

    def __init__(self, watch: Watch, path: str, lines: list[str], spans: list[tuple[str, tuple[int, ...]]]) -> None:
        self._watch, self._path, self._lines = watch, path, lines
        self._tests = {span for kind, span in spans if kind in ("when", "unless")}
        self._blocks = {span for kind, span in spans if kind in ("select", "choose")}
        # Inside a block, the tests of all branches are selections.
        self._inside = 0
        self._steps: list[tuple[str, int]] = []
        self._counts: list[dict[str, int]] = [{}]
        self._functions: list[int | None] = [None]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._scope(node, None)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._branch(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._branch(node)

    def visit(self, node: ast.AST) -> Any:
        span = self._span(node) if isinstance(node, ast.expr) else None
        if span in self._tests:
            return self._predicate(_as_expression(self.generic_visit(node)))
        if span in self._blocks and isinstance(node, ast.BoolOp):
            return self._predicate(_as_expression(self.generic_visit(node)))
        return super().visit(node)

    def _branch(self, node: ast.If | ast.IfExp) -> ast.AST:
        here = self._span(node) in self._blocks
        self._inside += here
        self.generic_visit(node)
        if self._inside:
            node.test = self._predicate(node.test)
        self._inside -= here
        return node

    def _function(self, node: Function) -> ast.AST:
        yields = any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in _own_nodes(node))
        steps = (*self._steps, self._step(node.name))
        around = Around(self._path, node.name, steps, isinstance(node, ast.FunctionDef) and not yields)
        number = len(self._watch.functions)
        self._watch.functions.append(around)
        self._scope(node, number)
        if around.tests and around.replays:
            first = 1 if ast.get_docstring(node, clean=False) is not None else 0
            enter = ast.Expr(_call(_ENTER, ast.Constant(number)))
            node.body.insert(first, ast.copy_location(enter, node.body[first] if node.body[first:] else node))
        return node

    def _step(self, name: str) -> tuple[str, int]:
        return name, self._counts[-1].get(name, 0)

    def _scope(self, node: ast.ClassDef | Function, function: int | None) -> ast.AST:
        step = self._step(node.name)
        self._counts[-1][node.name] = step[1] + 1
        self._steps.append(step)
        self._counts.append({})
        self._functions.append(function)
        inside, self._inside = self._inside, 0
        self.generic_visit(node)
        self._inside = inside
        self._functions.pop()
        self._counts.pop()
        self._steps.pop()
        return node

    def _predicate(self, node: ast.expr) -> ast.expr:
        whole = self._test(node)
        self._watch.whole[whole] = self._path
        parts = self._parts(node)
        return ast.copy_location(_call(_SIDE, ast.Constant(whole), parts), node)

    def _parts(self, node: ast.expr) -> ast.expr:
        """The predicate with each operand of `and`, `or` and `not` watched as well."""
        if isinstance(node, ast.BoolOp):
            node.values = [self._operand(value) for value in node.values]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.BoolOp):
            node.operand = self._parts(node.operand)
        return node

    def _operand(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return self._parts(node)
        return ast.copy_location(_call(_SIDE, ast.Constant(self._test(node)), node), node)

    def _test(self, node: ast.expr) -> int:
        number = len(self._watch.tests)
        self._watch.tests.append(Test(_text(self._lines, node), node.lineno))
        function = self._functions[-1]
        if function is not None:
            self._watch.functions[function].tests.append(number)
        return number

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, ...]:
        """As findings give it: columns count characters, those of `ast` count bytes."""
        end, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return node.lineno, self._column(node.lineno, node.col_offset), end, self._column(end, end_column)

    def _column(self, line: int, column: int) -> int:
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return column if text.isascii() else len(text.encode()[:column].decode("utf-8", "replace"))


def _own_nodes(node: Function) -> Iterator[ast.AST]:
    """What belongs to a function itself, not to functions in it."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        part = waiting.pop()
        yield part
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(part))


def _as_expression(node: ast.AST) -> ast.expr:
    assert isinstance(node, ast.expr)
    return node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _text(lines: list[str], node: ast.expr) -> str:
    """The source of an expression, in one line."""
    try:
        return " ".join(ast.unparse(node).split())
    except RecursionError:
        return lines[node.lineno - 1].strip()
