"""Checks many programs: in chunks, each with a seed of its own, so that a find in one does not end the others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import FlakyFailure

from tests.fuzz.checking import Checked, Wrong, check
from tests.fuzz.programs import Program, programs


@dataclass
class Chunk:
    """What came of a chunk: how many programs, how many of them with a fix, and the smallest finds by their kind."""

    programs: int = 0
    fixed: int = 0
    selected: int = 0
    compiled: int = 0
    finds: dict[str, str] = field(default_factory=dict)

    def add(self, other: Chunk) -> None:
        self.programs += other.programs
        self.fixed += other.fixed
        self.selected += other.selected
        self.compiled += other.compiled
        for kind, text in other.finds.items():
            self.finds.setdefault(kind, text)

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {self.fixed} with a fix ({self.selected} of branches), "
            f"{self.compiled} compiled, {len(self.finds)} kinds of finds"
        )


def run_chunk(number: int, examples: int, compiled: int = 0) -> Chunk:
    """Checks `examples` programs; one in `compiled` of those with a fixed branch is compiled as well (0: none)."""
    chunk = Chunk()

    def count(program: Program) -> None:
        checked = _checked(program)
        chunk.programs += 1
        chunk.fixed += checked.fixed != program.source
        chunk.selected += checked.selections > 0
        if compiled and checked.selections and program.seed % compiled == 0:
            chunk.compiled += 1
            _compile(checked)

    try:
        for_all(count, number, examples)()
    except Wrong as wrong:
        chunk.finds[kind(str(wrong))] = f"seed {number}: {wrong}"
    except FlakyFailure as flaky:
        chunk.finds["depends on what ran before"] = f"seed {number}: {flaky.exceptions[0]}"
    return chunk


def _checked(program: Program) -> Checked:
    try:
        return check(program)
    except Wrong:
        raise
    except Exception as error:
        raise Wrong(f"{type(error).__name__}: {error}\n\n{program!r}") from error


def for_all(test: Callable[[Program], None], number: int, examples: int) -> Callable[[], None]:
    """The test over generated programs, the same for the same number; a failure comes as its smallest program."""
    options = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
    )
    found: Callable[[], None] = seed(number)(options(given(programs())(test)))
    return found


def kind(text: str) -> str:
    """What a find is, without its program and its numbers."""
    return re.sub(r"-?\d[\d.e+-]*", "0", text.partition("\n\n")[0])[:200]


def _compile(checked: Checked) -> None:
    from tests.fuzz.compiling import check_compiled

    check_compiled(checked)
