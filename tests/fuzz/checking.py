"""Lints and fixes a program, and compares what both versions do."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graphmend_lint.config import Settings
from graphmend_lint.findings import Finding
from graphmend_lint.fixing import FixResult, fix_source
from tests.fuzz.observing import difference, observe
from tests.fuzz.programs import Program

SAFE, UNSAFE = Settings(), Settings(unsafe_fixes=True)


class Wrong(AssertionError):
    """The fix of a program is wrong; the text says how."""


@dataclass(frozen=True)
class Checked:
    """A program with what fixing makes of it."""

    program: Program
    fixed: str
    applied: tuple[Finding, ...]

    @property
    def selections(self) -> int:
        """How many branches, conditional expressions and predicates were fixed."""
        return sum(finding.code.startswith("GM1") for finding in self.applied)


@cache
def _project() -> tempfile.TemporaryDirectory[str]:
    """A project of its own, whatever lies around; it goes when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="graphmend-fuzz-")
    Path(folder.name, "pyproject.toml").touch()
    return folder


def fix(source: str, settings: Settings = SAFE) -> FixResult:
    """What fixing makes of a source."""
    return fix_source(source.encode(), Path(_project().name, "program.py"), settings=settings)


def check(program: Program) -> Checked:
    """Fixes a program and runs both versions.

    Raises:
        Wrong: the fix has a problem, is not safe, or changes what the program does.
    """
    safe = fix(program.source)
    _sound(program, safe, SAFE)
    if program.seed % 4 == 0:
        _sound(program, fix(program.source, UNSAFE), UNSAFE)
    fixed = safe.source.decode()
    if fixed != program.source:
        found = difference(observe(program.source, program), observe(fixed, program))
        if found:
            raise Wrong(f"{found}\n\n{program!r}\n\nfixed:\n{fixed}")
    return Checked(program, fixed, safe.applied)


def _sound(program: Program, result: FixResult, settings: Settings) -> None:
    """Nothing went wrong, only what was asked for is fixed, and nothing is left to fix."""
    if result.problems:
        raise Wrong(f"problems: {result.problems}\n\n{program!r}")
    if not settings.unsafe_fixes and any(finding.fix != "safe" for finding in result.applied):
        raise Wrong(f"applied {[(f.code, f.fix) for f in result.applied]}\n\n{program!r}")
    again = fix(result.source.decode(), settings) if result.changed else result
    if again.source != result.source:
        raise Wrong(f"a second fix changes it again\n\n{program!r}\n\n{again.source.decode()}")
