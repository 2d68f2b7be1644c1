"""A planner for snippets: every `print` and logger call gets a plan, whatever the analysis would say."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import libcst as cst
import libcst.matchers as m
import pytest

from graphmend_lint import rewrite
from graphmend_lint.findings import Edit, Plan, Span

RUNTIME = "stub_runtime"


class Function:
    MATCHER = m.Call(func=m.Name() | m.Attribute())

    @staticmethod
    def replacement(node: cst.Call, wrap: rewrite.Wrap) -> cst.Call:
        return node.with_changes(func=wrap(node.func))


class Method:
    MATCHER = m.Call(func=m.Attribute())

    @staticmethod
    def replacement(node: cst.Call, wrap: rewrite.Wrap) -> cst.Call:
        func = cst.ensure_type(node.func, cst.Attribute)
        return node.with_changes(func=func.with_changes(value=wrap(func.value)))


@dataclass(frozen=True)
class Planner:
    """Plans for a snippet. `guard` is the predicate of the guard style, "" for the runtime style."""

    guard: str = ""

    def plan(self, source: str) -> list[rewrite.Fix]:
        tree = ast.parse(source)
        lines = re.split(r"\r\n?|\n", source)
        found: list[rewrite.Fix] = []
        self._statements(tree.body, None, lines, found)
        return found

    def _statements(self, body: list[ast.stmt], alarm: Edit | None, lines: list[str], found: list[rewrite.Fix]) -> None:
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                fix = self._fix(statement.value, alarm, lines)
                found.extend([fix] if fix else [])
            inner = alarm
            if isinstance(statement, ast.If) and ".any()" in ast.unparse(statement.test):
                inner = Edit("when", span_of(statement.test, lines), "alarm")
            self._statements(getattr(statement, "body", []), inner, lines, found)
            self._statements(getattr(statement, "orelse", []), alarm, lines, found)

    def _fix(self, call: ast.Call, alarm: Edit | None, lines: list[str]) -> rewrite.Fix | None:
        name = ast.unparse(call.func)
        if name in ("print", "warnings.warn"):
            form: Any = Function
            callee = call.func
        elif "logger" in name and isinstance(call.func, ast.Attribute):
            form, callee = Method, call.func.value
        else:
            return None
        if self.guard:
            edit = Edit("guard", span_of(call, lines), self.guard)
            return rewrite.Fix(Plan(span_of(call, lines), (edit,)), form)
        edits = [*([alarm] if alarm else [])]
        for argument in call.args:
            kind = _text_kind(argument)
            edits += [Edit(kind, span_of(argument, lines))] if kind else []
        edits.append(Edit("wrap", span_of(callee, lines), "alarm" if alarm else "deferred"))
        names = {"format": "formatted", "percent": "percent", "when": "when"}
        imports = {names[edit.kind] for edit in edits if edit.kind in names} | (set() if alarm else {"deferred"})
        return rewrite.Fix(Plan(span_of(call, lines), tuple(edits), tuple(sorted(imports))), form)


def _text_kind(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "format"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return "format"
    return "percent" if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) else ""


def span_of(node: ast.expr, lines: list[str]) -> Span:
    """The span in characters; `ast` counts bytes."""

    def column(line: int, offset: int) -> int:
        return len(lines[line - 1].encode()[:offset].decode())

    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Span(
        node.lineno,
        column(node.lineno, node.col_offset),
        node.end_lineno,
        column(node.end_lineno, node.end_col_offset),
    )


Fixer = Callable[..., rewrite.Applied]


@pytest.fixture
def apply() -> Fixer:
    """`apply(source, guard="", runtime=..., home=...)`: the snippet with all its messages fixed."""

    def run(
        source: str, *, guard: str = "", runtime: str = RUNTIME, home: rewrite.Home | None = None
    ) -> rewrite.Applied:
        return rewrite.apply(cst.parse_module(source), Planner(guard).plan(source), runtime, home)

    return run


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, dict[str, Any]], str]:
    """`heard(source, names)`: what the source prints when it is run, with an eager runtime."""
    module = types.ModuleType(RUNTIME)

    def deferred(target: Any) -> Any:
        return target

    vars(module).update(
        deferred=deferred,
        when=lambda test: deferred if test else False,
        formatted=lambda template, *args, **kwargs: template.format(*args, **kwargs),
        percent=lambda template, values: template % values,
    )
    monkeypatch.setitem(sys.modules, RUNTIME, module)

    def run(source: str, names: dict[str, Any]) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, "snippet.py", "exec"), dict(names))
        return out.getvalue()

    return run


@pytest.fixture
def sample() -> str:
    """A file with the usual ways of giving a message."""
    return SAMPLE


SAMPLE = '''\
# licence
"""A module."""

import os

import torch


def f(x, n, logger):
    print("a", x)  # said
    # above
    logger.info(
        f"text {x} {{}} "
        f"more {n!r:>{n}} {x=}"  # at the end
    )
    logger.info("n %d" % n, os.sep)
    if x.any():
        print("nan")
'''
