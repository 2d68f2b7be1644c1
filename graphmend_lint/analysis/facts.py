"""Facts about one file: its functions, the region that each is in, and what its expressions hold.

Built once per file and shared by all rules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from graphmend_lint.analysis.bindings import Bindings, FunctionNode, Scope
from graphmend_lint.analysis.loggers import Loggers
from graphmend_lint.analysis.project import Project, package_root
from graphmend_lint.analysis.regions import FileRegions, Region, is_host_function
from graphmend_lint.analysis.source import Source
from graphmend_lint.analysis.summary import FunctionSummary, ModuleSummary
from graphmend_lint.analysis.values import Values, Walk


@dataclass(slots=True)
class FunctionFacts:
    """One function in a region. `in_try` names the caller whose `try` it may run in."""

    node: FunctionNode
    scope: Scope
    summary: FunctionSummary
    region: Region
    values: Values
    is_scripted: bool
    in_try: str | None

    def walk(self) -> Walk:
        return Walk(self.values)


#: Libraries whose functions share names with logger methods (`math.log`) and are never those.
_MATHS = frozenset({"torch", "math", "cmath", "numpy", "jax", "tensorflow"})


@dataclass(frozen=True, slots=True)
class Interest:
    """What rules look for in a function: calls by their last names or in full, guards (an `if` that ends in
    `raise`, an `assert`), and branches on what may be tensor data.
    """

    calls: frozenset[str] = frozenset()
    guards: bool = False
    branches: bool = False


def may_interest(summary: ModuleSummary, function: FunctionSummary, regions: FileRegions, interest: Interest) -> bool:
    """A cheap test, on summaries alone: may the function be in a region and hold something of interest?"""
    if function.qualname not in regions.reached and is_host_function(function):
        return False
    if (interest.guards and function.has_guard) or (interest.branches and function.has_branch):
        return True
    wanted = interest.calls
    for call in function.calls:
        first, _, rest = call.partition(".")
        target = summary.imports.get(first, "")
        if f"{target}.{rest}" in wanted:
            return True
        named = call.rpartition(".")[2] in wanted or target.rpartition(".")[2] in wanted
        if named and target.partition(".")[0] not in _MATHS:
            return True
    return False


class FileFacts:
    """The facts of one file. `regions` come from the project's call graph."""

    def __init__(self, source: Source, summary: ModuleSummary, project: Project, regions: FileRegions) -> None:
        self.source = source
        self.summary = summary
        self.project = project
        self.regions = regions
        self.bindings = Bindings(project, source.path)
        self.loggers = Loggers(self.bindings)

    def functions(self, interest: Interest) -> Iterator[FunctionFacts]:
        """The functions in a region that hold something of interest."""
        for scope in self.scopes():
            summary = self.summary.functions.get(scope.qualname)
            if summary is None or not may_interest(self.summary, summary, self.regions, interest):
                continue
            values = Values(self.bindings, scope)
            region = self.region(summary, values)
            if region is not None:
                scripted = scope.qualname in self.regions.scripted
                in_try = self.regions.in_try.get(scope.qualname)
                yield FunctionFacts(scope.node, scope, summary, region, values, scripted, in_try)

    def scopes(self) -> Iterator[Scope]:
        """Every function in the file, those inside others right after them."""
        yield from self._scopes(self.source.tree.body, "", None, None)

    def _scopes(
        self, body: list[ast.stmt], prefix: str, class_name: str | None, outer: Scope | None
    ) -> Iterator[Scope]:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                scope = Scope(statement, prefix + statement.name, class_name, outer)
                yield scope
                yield from self._scopes(statement.body, f"{scope.qualname}.<locals>.", class_name, scope)
            elif isinstance(statement, ast.ClassDef):
                qualname = prefix + statement.name
                yield from self._scopes(statement.body, f"{qualname}.", qualname, outer)
            else:
                for name in ("body", "orelse", "finalbody"):
                    yield from self._scopes(getattr(statement, name, []), prefix, class_name, outer)
                for handler in getattr(statement, "handlers", ()):
                    yield from self._scopes(handler.body, prefix, class_name, outer)

    def region(self, function: FunctionSummary, values: Values) -> Region | None:
        """The region that a function is in, a likely one where it computes on tensors and no entry is known."""
        name = function.qualname
        outer = name
        while outer:
            if outer in self.regions.opaque:
                return None
            outer = outer.rpartition(".<locals>.")[0]
        if name in self.regions.reached:
            return self.regions.reached[name]
        if self.is_script or not self.imports_torch or is_host_function(function):
            return None
        if any(value.kind == "tensor" for value in values.parameters().values()):
            return Region("likely", None)
        return None

    @cached_property
    def imports_torch(self) -> bool:
        return any(target.partition(".")[0] == "torch" for target in self.summary.imports.values())

    @cached_property
    def is_script(self) -> bool:
        """Whether the file is a test, a converter or the like: it calls models, nobody compiles it."""
        path = self.source.path
        root = package_root(path)
        name = path.name
        parts = (root.name, *path.relative_to(root).parts)
        return (
            name.startswith(("test_", "convert_", "conftest", "setup."))
            or name.endswith("_test.py")
            or "tests" in parts
        )
