"""Stand-ins for the linter's fixes: a test says which text becomes which."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from graphmend_lint.findings import Edit, Finding, Plan, Span
from graphmend_lint.verify.verdict import Cause

IMPORT = ("import torch\n", "import torch\nfrom graphmend_lint.runtime import deferred\n")


@dataclass(frozen=True)
class Fixed:
    source: bytes
    applied: tuple[Finding, ...] = ()
    remaining: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass
class Replace:
    """Replaces texts in every file that has them, and remembers which files it was asked to fix."""

    pairs: tuple[tuple[str, str], ...]

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs
        self.asked: list[Path] = []

    def __call__(self, paths: list[Path]) -> dict[Path, Fixed]:
        self.asked = list(paths)
        return {path: Fixed(self._fixed(path.read_text()).encode()) for path in paths}

    def _fixed(self, text: str) -> str:
        for old, new in self.pairs:
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class Fix:
    """One fix of a file: the text that it replaces; `test` is the predicate that it rewrites, with the kind of edit."""

    code: str
    old: str
    new: str
    kind: str = ""
    test: str = ""

    def finding(self, path: Path) -> Finding:
        source = path.read_text()
        span = _span(source, self.old)
        edits = (Edit(self.kind, _span(source, self.test or self.old)),) if self.kind else ()
        plan = Plan(span, edits)
        return Finding(self.code, "test", str(path), span, "a message", "definite", "safe", None, (), None, plan)


class Fixes:
    """Fixes that can be told apart, for files that have their texts."""

    def __init__(self, *fixes: Fix, always: tuple[tuple[str, str], ...] = (IMPORT,)) -> None:
        self._fixes, self._always = fixes, always

    def __call__(self, paths: list[Path]) -> dict[Path, Fixed]:
        return {path: self.only(path, self.parts(path)) for path in paths}

    def parts(self, path: Path) -> list[Cause]:
        source = path.read_text()
        return [Cause(str(path), fix.finding(path).span.line, fix.code) for fix in self._fixes if fix.old in source]

    def only(self, path: Path, parts: Collection[Cause]) -> Fixed:
        codes = {part.code for part in parts}
        chosen = [fix for fix in self._fixes if fix.code in codes]
        text = path.read_text()
        for old, new in (*((fix.old, fix.new) for fix in chosen), *(self._always if chosen else ())):
            text = text.replace(old, new)
        return Fixed(text.encode(), tuple(fix.finding(path) for fix in chosen))


def _span(source: str, text: str) -> Span:
    start = source.index(text)
    end = start + len(text)
    return Span(*_place(source, start), *_place(source, end))


def _place(source: str, offset: int) -> tuple[int, int]:
    before = source[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1)


def processes_that_write_below(folder: Path) -> list[str]:
    """The output files of running processes that are below a folder: those of arms are in their verification."""
    processes = Path("/proc")
    numbers = [place for place in processes.iterdir() if place.name.isdigit()] if processes.exists() else []
    return [place for place in map(_output_of, numbers) if place.startswith(str(folder))]


def _output_of(process: Path) -> str:
    try:
        return str((process / "fd" / "1").readlink())
    except OSError:
        return os.devnull
