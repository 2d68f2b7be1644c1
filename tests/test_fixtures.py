"""Every fixture is linted, fixed and run: see `tests.fixtures_runner` for their form."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from graphmend_lint import registry
from graphmend_lint.findings import Reason
from graphmend_lint.transforms import asserts, defer, trap, where
from tests import fixtures_runner
from tests.fixtures_runner import Fixture

if TYPE_CHECKING:
    from tests.fixtures_executed import Program, Run

ALL = fixtures_runner.fixtures()
every_fixture = pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
FIXED = [case for case in ALL if case.after != case.before]


@pytest.fixture
def fixed(case: Fixture, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """What fixing makes of a case; with --update-fixtures, this becomes what the case expects."""
    files = fixtures_runner.fix(case.before, tmp_path / "fix", case.settings)
    if request.config.getoption("--update-fixtures"):
        case.write_after(files)
        vars(case).pop("after", None)
    return files


class TestText:
    """Needs no torch."""

    @every_fixture
    def test_findings_are_those_of_the_comments(self, case: Fixture, tmp_path: Path) -> None:
        assert fixtures_runner.lint(case.before, tmp_path, case.settings) == case.expected()

    @every_fixture
    def test_the_fix_is_exactly_the_expected_one(self, case: Fixture, fixed: dict[str, str]) -> None:
        assert fixed == case.after

    @every_fixture
    def test_what_was_fixed_is_not_reported_again(self, case: Fixture, tmp_path: Path) -> None:
        assert fixtures_runner.lint(case.after, tmp_path, case.settings) == case.left()

    @every_fixture
    def test_a_second_fix_changes_nothing(self, case: Fixture, tmp_path: Path) -> None:
        assert fixtures_runner.fix(case.after, tmp_path, case.settings) == case.after

    @every_fixture
    def test_all_comments_survive(self, case: Fixture) -> None:
        for name, text in case.before.items():
            kept = [c for _, c in fixtures_runner.comments(case.after[name])]
            assert kept == [c for _, c in fixtures_runner.comments(text)]

    @pytest.mark.parametrize("case", [c for c in FIXED if c.group == "where"], ids=lambda case: case.id)
    def test_only_branches_that_are_reported_differ(self, case: Fixture) -> None:
        for name, text in case.before.items():
            reported = {e.line for e in case.expected() if e.file == name and "safe" in e.verdict}
            touched = set(_lines_of_branches(ast.parse(text).body, reported))
            outside = [line for number, line in enumerate(text.splitlines(), 1) if number not in touched]
            assert not Counter(outside) - Counter(case.after[name].splitlines())

    @pytest.mark.parametrize("case", [c for c in ALL if c.group != "where"], ids=lambda case: case.id)
    def test_only_lines_with_an_edit_differ(self, case: Fixture) -> None:
        marked = {
            (e.file, case.before[e.file].splitlines()[e.line - 1]) for e in case.expected() if "safe" in e.verdict
        }
        for name, text in case.before.items():
            gone = Counter(text.splitlines()) - Counter(case.after[name].splitlines())
            assert len(gone) <= 6 * len([m for m in marked if m[0] == name])


def _lines_of_branches(block: list[ast.stmt], reported: set[int]) -> Iterator[int]:
    """The lines of the statements at the lines in `reported`, and of what follows an early return there."""
    for statement in block:
        blocks = [getattr(statement, field, []) for field in ("body", "orelse", "handlers", "finalbody")]
        inner = [part for part in blocks if isinstance(part, list)]
        head = min((part[0].lineno for part in inner if part), default=(statement.end_lineno or 0) + 1)
        if reported.isdisjoint(range(statement.lineno, max(head, statement.lineno + 1))):
            for part in inner:
                yield from _lines_of_branches(part, reported)
            continue
        leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return)
        last = block[-1] if leaves else statement
        yield from range(statement.lineno, (last.end_lineno or 0) + 1)


def test_twins_name_each_other() -> None:
    named = {(case.group, case.name): case.twins for case in ALL}
    for (group, name), twins in named.items():
        for twin in twins:
            assert name in named.get((group, twin), ()), f"{twin} does not name {name}"


def test_every_declining_case_has_an_accepting_twin() -> None:
    accepting = {(case.group, case.name) for case in FIXED}
    for case in ALL:
        declined = ("none", "likely none", "unsafe") if case.group == "where" else ("none", "likely none")
        if any(e.verdict.startswith(declined) for e in case.expected()) and case not in FIXED:
            assert accepting.intersection((case.group, twin) for twin in case.twins), f"{case.id} has no accepting twin"


#: Reasons that no program shows: they depend on the configuration.
BY_CONFIGURATION = {
    "defer": {Reason.TARGET_TORCH_TOO_OLD},
    "trap": {Reason.TARGET_TORCH_TOO_OLD, Reason.TORCH_NOT_IMPORTED},
    "asserts": {Reason.TARGET_TORCH_TOO_OLD, Reason.TORCH_NOT_IMPORTED},
    "where": set(),
}


@pytest.mark.parametrize(
    ("transform", "reasons"),
    [("defer", defer.REASONS), ("trap", trap.REASONS), ("asserts", asserts.REASONS), ("where", where.REASONS)],
)
def test_every_reason_of_the_transformation_is_shown(transform: str, reasons: tuple[Reason, ...]) -> None:
    codes = {card.code for card in registry.all_rules() if card.transform == transform}
    expected = (e for case in ALL for e in case.expected() if e.code in codes and "none" in e.verdict)
    shown = {e.verdict.rpartition(" ")[2] for e in expected}
    assert shown == {reason.value for reason in reasons if reason not in BY_CONFIGURATION[transform]}


@every_fixture
@pytest.mark.filterwarnings("ignore")
class TestExecuted:
    """Runs the programs. The same things are seen before and after, eagerly and compiled, with fewer breaks."""

    @pytest.fixture
    def original(self, case: Fixture, tmp_path: Path) -> Program:
        return self._program(case, case.before, tmp_path / "original")

    @pytest.fixture
    def result(self, case: Fixture, tmp_path: Path) -> Program:
        return self._program(case, case.after, tmp_path / "result")

    @staticmethod
    def _program(case: Fixture, files: dict[str, str], folder: Path) -> Program:
        pytest.importorskip("torch")
        from tests.fixtures_executed import Program

        fixtures_runner.write(files, folder)
        return Program(folder, case.main, files, case.before)

    def test_it_does_the_same(self, case: Fixture, original: Program, result: Program) -> None:
        from tests.fixtures_executed import run

        eager = run(original, compiled=False)
        assert not eager.breaks
        options = frozenset(case.options)
        before = run(original, compiled=True, options=options)
        assert len(before.breaks) == case.breaks[0], before.breaks
        if case not in FIXED:
            assert case.breaks[0] == case.breaks[1]
            return
        differs = case.header.get("differs", "")
        same(eager, run(result, compiled=False), differs)
        after = run(result, compiled=True, options=options)
        same(eager, after, differs)
        assert len(after.breaks) == case.breaks[1], after.breaks
        if case.group == "where":
            assert len(after.recompiled) <= len(before.recompiled), (before.recompiled, after.recompiled)
        assert case.breaks[1] < case.breaks[0]
        if "inductor" in case.options:
            inductor = run(result, compiled=True, backend="inductor", options=options)
            said_the_same(eager, inductor)
            assert len(inductor.breaks) == case.breaks[1], inductor.breaks

    def test_its_gradients_are_the_same(self, case: Fixture, original: Program, result: Program) -> None:
        """With gradients of the arguments, too."""
        from tests.fixtures_executed import run

        if case.group != "where" or case not in FIXED or case.settings.unsafe_fixes:
            return
        eager = run(original, compiled=False, graded=True)
        same(eager, run(result, compiled=False, graded=True))
        if not any(seen.error for seen in eager.seen):
            same(eager, run(result, compiled=True, options=frozenset(case.options), graded=True))

    def test_what_an_unsafe_fix_changes_is_seen(self, case: Fixture, original: Program, tmp_path: Path) -> None:
        """A fix that is not applied unless asked for does change what the case says."""
        from tests.fixtures_executed import run

        if "differs" not in case.header:
            return
        unsafe = replace(case.settings, unsafe_fixes=True)
        files = fixtures_runner.fix(case.before, tmp_path / "unsafe_fix", unsafe)
        assert files != case.before
        changed = self._program(case, files, tmp_path / "unsafe")
        differences = [
            run(original, compiled=False, graded=graded).difference(run(changed, compiled=False, graded=graded))
            for graded in (False, True)
        ]
        assert any(difference.startswith(case.header["differs"]) for difference in differences), differences


def same(first: Run, second: Run, besides: str = "") -> None:
    difference = first.difference(second, besides)
    assert not difference, difference


def said_the_same(first: Run, second: Run) -> None:
    """For a backend that may round differently."""
    assert [(s.said, s.error, s.random) for s in first.seen] == [(s.said, s.error, s.random) for s in second.seen]
