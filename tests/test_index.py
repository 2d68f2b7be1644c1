"""Regions are taken over from one round of a fix to the next only where they are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_lint import index
from graphmend_lint.analysis import source
from graphmend_lint.analysis.project import Project
from graphmend_lint.analysis.regions import FileRegions
from graphmend_lint.analysis.summary import ModuleSummary, summarize
from tests import fixtures_runner
from tests.fixtures_runner import Fixture

FIXED = [case for case in fixtures_runner.fixtures() if case.main == "before.py" and case.after != case.before]
#: A fix that drops a local name, say, has them found again.
SAME = 0.75


def summary_of(text: str) -> ModuleSummary:
    return summarize(source.parse(text.encode(), Path("program.py")).tree)


def regions_of(path: Path, summary: ModuleSummary) -> tuple[object, ...]:
    """What is in a region and how; the text of an entry may name a line, which a fix moves."""
    found = index.find_regions(Project(lambda _: None, {path: summary}), ()).get(path, FileRegions({}))
    reached = {name: region.confidence for name, region in found.reached.items()}
    return reached, found.opaque, found.scripted, found.in_try


@pytest.mark.parametrize("case", FIXED, ids=lambda case: case.id)
def test_regions_that_are_taken_over_are_those_that_would_be_found(case: Fixture, tmp_path: Path) -> None:
    before, after = (summary_of(text) for text in (case.before["before.py"], case.after["before.py"]))
    if index._same_regions(before, after):
        path = tmp_path / "program.py"
        assert regions_of(path, before) == regions_of(path, after)


def test_most_fixes_leave_them_as_they_are() -> None:
    pairs = [(summary_of(case.before["before.py"]), summary_of(case.after["before.py"])) for case in FIXED]
    same = sum(index._same_regions(before, after) for before, after in pairs)
    assert same >= SAME * len(pairs)


def test_a_new_call_is_looked_at() -> None:
    before, after = "def f(x):\n    return g(x)\n", "def f(x):\n    return h(g(x))\n"
    assert not index._same_regions(summary_of(before), summary_of(after))
