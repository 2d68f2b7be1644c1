"""Small projects as source text, and questions about them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import pytest

from graphmend_lint.analysis import source as sources
from graphmend_lint.analysis.bindings import Bindings, Scope
from graphmend_lint.analysis.facts import FileFacts
from graphmend_lint.analysis.loggers import Loggers
from graphmend_lint.analysis.project import Project, Symbol
from graphmend_lint.analysis.regions import FileRegions, Region
from graphmend_lint.analysis.summary import ModuleSummary, summarize
from graphmend_lint.analysis.values import Env, Value, Values, Walk
from graphmend_lint.index import find_regions


class Code:
    """A project of a few files. The file is `m.py` wherever a question names none."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        self.project = Project(self._summary, {folder / name: self._summary(folder / name) for name in files})

    @staticmethod
    def _summary(path: Path) -> ModuleSummary | None:
        return summarize(sources.parse(path.read_bytes(), path).tree) if path.exists() else None

    # -- names -----------------------------------------------------------------------------------------------------

    def resolve(self, name: str, file: str = "m.py") -> tuple[str, str]:
        """What a dotted name stands for at module level: its kind and its full name."""
        symbol = self.project.resolve(self.folder / file, name)
        return symbol.kind, self.project.qualified(symbol)

    def symbol(self, kind: str, name: str, file: str = "m.py") -> Symbol:
        return Symbol(kind, self.folder / file, name)  # type: ignore[arg-type]

    def scope(self, function: str, file: str = "m.py") -> Scope:
        """The scope of a function, by its qualname."""
        facts = self.facts(file)
        scopes = facts._scopes(facts.source.tree.body, "", None, None)
        return next(scope for scope in scopes if scope.qualname == function)

    def qualified(self, name: str, function: str, file: str = "m.py") -> str | None:
        """The full name that a name or attribute stands for inside a function, None if it is a value."""
        return Bindings(self.project, self.folder / file).qualified(expression(name), self.scope(function, file))

    def logger(self, name: str, function: str, file: str = "m.py") -> str | None:
        loggers = Loggers(Bindings(self.project, self.folder / file))
        return loggers.kind(expression(name), self.scope(function, file))

    # -- regions ---------------------------------------------------------------------------------------------------

    @cached_property
    def regions(self) -> dict[Path, FileRegions]:
        return find_regions(self.project, ())

    def reached(self, file: str = "m.py") -> set[str]:
        """The functions that a known entry reaches."""
        return set(self.regions[self.folder / file].reached) if self.folder / file in self.regions else set()

    def facts(self, file: str = "m.py") -> FileFacts:
        path = self.folder / file
        summary = self.project.summary(path)
        assert summary is not None
        regions = self.regions.get(path, FileRegions({}))
        return FileFacts(sources.parse(path.read_bytes(), path), summary, self.project, regions)

    def region(self, function: str, file: str = "m.py") -> Region | None:
        """The region of a function, likely ones included."""
        facts = self.facts(file)
        return facts.region(facts.summary.functions[function], self.values(function, file))

    def confidence(self, function: str, file: str = "m.py") -> str | None:
        region = self.region(function, file)
        return region.confidence if region else None

    # -- values ----------------------------------------------------------------------------------------------------

    def values(self, function: str, file: str = "m.py") -> Values:
        return Values(Bindings(self.project, self.folder / file), self.scope(function, file))

    def value(self, text: str, function: str = "f", file: str = "m.py") -> Value:
        """The value of an expression at the statement `here` of a function."""
        return self.values(function, file).of(expression(text), self.env(function, file))

    def env(self, function: str = "f", file: str = "m.py") -> Env:
        """What is known before the statement `here`, or at the start where there is none."""
        values = self.values(function, file)
        for point in Walk(values).points():
            statement = point.statement
            if isinstance(statement, ast.Expr) and ast.unparse(statement) == "here":
                return dict(point.env)
        return values.parameters()


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.fixture
def code(tmp_path: Path) -> Callable[..., Code]:
    """`code(text)` is a project of one file; `code({"name.py": text})` one of several."""

    def make(files: str | dict[str, str]) -> Code:
        return Code(tmp_path, {"m.py": files} if isinstance(files, str) else files)

    return make
