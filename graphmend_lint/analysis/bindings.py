"""Bindings: what a name refers to at a place in a function, by binding and never by spelling."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.project import Project, Symbol
from graphmend_lint.analysis.summary import blocks

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_BUILTINS = frozenset(dir(builtins))


class Scope:
    """One function: its own names, found when first asked for, and the functions around it (innermost first)."""

    def __init__(self, node: FunctionNode, qualname: str, class_name: str | None, outer: Scope | None = None) -> None:
        self.node = node
        self.qualname = qualname
        self.class_name = class_name
        self.outer = outer
        self._local: set[str] | None = None
        self._imports: dict[str, str] = {}

    @property
    def local(self) -> set[str]:
        """Names that the function binds: parameters, assignments, imports, definitions."""
        if self._local is None:
            arguments = self.node.args
            every = (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            )
            self._local = {a.arg for a in every if a is not None}
            shared: set[str] = set()
            self._collect(self.node.body, shared)
            self._local -= shared
        return self._local

    @property
    def imports(self) -> dict[str, str]:
        """What the function's own imports bind, as in `ModuleSummary.imports`."""
        _ = self.local
        return self._imports

    @property
    def _names(self) -> set[str]:
        assert self._local is not None
        return self._local

    def _collect(self, body: list[ast.stmt], shared: set[str]) -> None:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._names.add(statement.name)
                continue
            if isinstance(statement, (ast.Global, ast.Nonlocal)):
                shared.update(statement.names)
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    self._bind_import(alias.asname or alias.name.partition(".")[0], alias.asname and alias.name)
            elif isinstance(statement, ast.ImportFrom):
                base = "." * statement.level + (statement.module or "")
                for alias in statement.names:
                    joint = "" if not base or base.endswith(".") else "."
                    self._bind_import(alias.asname or alias.name, f"{base}{joint}{alias.name}")
            else:
                self._collect_targets(statement)
            for handler in getattr(statement, "handlers", ()):
                if handler.name:
                    self._names.add(handler.name)
            for block in blocks(statement):
                self._collect(block, shared)

    def _bind_import(self, name: str, target: str | None) -> None:
        self._names.add(name)
        self._imports[name] = target or name

    def _collect_targets(self, statement: ast.stmt) -> None:
        stack: list[ast.AST] = [
            child
            for child in ast.iter_child_nodes(statement)
            if isinstance(child, (ast.expr, ast.withitem, ast.pattern))
        ]
        if isinstance(statement, ast.Match):
            stack.extend(case.pattern for case in statement.cases)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                self._names.add(node.id)
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                self._names.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self._names.add(node.rest)
            elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                stack.extend(n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
                continue
            stack.extend(ast.iter_child_nodes(node))

    def owner(self, name: str) -> Scope | None:
        """The innermost function that binds `name`, None where it is a module-level or builtin name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.local:
                return scope
            scope = scope.outer
        return None


class Bindings:
    """Resolves expressions of one file."""

    def __init__(self, project: Project, path: Path) -> None:
        self.project = project
        self.path = path

    def qualified(self, node: ast.AST, scope: Scope | None) -> str | None:
        """The dotted name that an expression stands for (`warnings.warn`, `builtins.print`), None if it is a value."""
        name = dotted(node)
        if name is None or name.startswith("super."):
            return None
        first, _, rest = name.partition(".")
        owner = scope.owner(first) if scope else None
        if owner is not None:
            if first not in owner.imports:
                return None
            target = self.project.absolute(self.path, owner.imports[first])
            return self._name_of(self.project.resolve_absolute(self.path, f"{target}.{rest}" if rest else target))
        summary = self.project.summary(self.path)
        symbol = self.project.resolve(self.path, name)
        if symbol.kind == "external" and summary and not self._is_bound(first):
            return f"builtins.{name}" if first in _BUILTINS and not summary.star_imports else None
        return self._name_of(symbol)

    def symbol(self, node: ast.AST, scope: Scope | None) -> Symbol | None:
        """The module-level symbol that an expression stands for, None where a function's own name hides it."""
        name = dotted(node)
        if name is None or (scope and scope.owner(name.partition(".")[0])):
            return None
        return self.project.resolve(self.path, name)

    def _is_bound(self, first: str) -> bool:
        summary = self.project.summary(self.path)
        return summary is not None and (
            first in summary.imports
            or first in summary.assigned
            or first in summary.functions
            or first in summary.classes
        )

    def _name_of(self, symbol: Symbol) -> str:
        return self.project.qualified(symbol)
