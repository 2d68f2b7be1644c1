"""The cases of `fixtures/cases`: what torch does to them was measured, and what tempting rewrites change in them.

`expected.json` says of each case whether a tool should speak, where, and which rewrite is faithful. The rules for side
effects answer for the groups `print` and `log`; of every other case they stay silent.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from graphmend_lint import engine
from graphmend_lint.config import Settings
from graphmend_lint.findings import Finding

ROOT = Path(__file__).parent.parent
CASES = ROOT / "fixtures" / "cases"
#: The rules for side effects.
SETTINGS = Settings(select=("GM2",))
EXPECTED: dict[str, dict[str, Any]] = {
    name: case
    for name, case in json.loads((CASES / "expected.json").read_text(encoding="utf-8")).items()
    if not name.startswith("_")
}
OURS = sorted(name for name, case in EXPECTED.items() if case["group"] in ("print", "log"))
DEFER = sorted(name for name, case in EXPECTED.items() if case["fix"] == "defer")


@cache
def findings() -> dict[str, list[Finding]]:
    """What one run over all cases finds, by case."""
    report = engine.lint_paths([CASES / name for name in EXPECTED], settings_of=lambda _: SETTINGS, jobs=1)
    assert not report.errors
    found: dict[str, list[Finding]] = {name: [] for name in EXPECTED}
    for finding in report.findings:
        found[Path(finding.path).name].append(finding)
    return found


@cache
def fixed() -> dict[str, bytes]:
    """The cases that the fixes change, with what they become."""
    paths = [CASES / name for name in EXPECTED]
    sources = {}
    for path, outcome in engine.fix_paths(paths, lambda _: SETTINGS, jobs=1):
        assert not isinstance(outcome, str), outcome
        assert not outcome.problems
        if outcome.changed:
            sources[path.name] = outcome.source
    return sources


def statement_lines(name: str, line: int) -> tuple[int, int]:
    """The first and the last line of the smallest statement that `line` belongs to."""
    tree = ast.parse((CASES / name).read_text(encoding="utf-8"))
    around = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return min(around, key=lambda lines: lines[1] - lines[0])


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - set(OURS)))
def test_cases_of_other_groups_are_silent(name: str) -> None:
    assert findings()[name] == []


@pytest.mark.parametrize("name", [n for n in EXPECTED if EXPECTED[n]["kind"] == "negative"])
def test_negatives_are_silent(name: str) -> None:
    assert findings()[name] == []


@pytest.mark.parametrize("name", DEFER)
def test_deferrable_cases_are_fixed_where_they_break(name: str) -> None:
    found = findings()[name]
    assert all(finding.fix == "safe" and finding.confidence == "definite" for finding in found)
    places = {statement_lines(name, finding.span.line) for finding in found}
    assert places == {statement_lines(name, line) for line in EXPECTED[name]["break_lines"]}


@pytest.mark.parametrize("name", [n for n in OURS if EXPECTED[n]["kind"] == "trap"])
def test_traps_are_declined_or_fixed_entirely(name: str) -> None:
    assert findings()[name]
    if any(finding.fix != "none" for finding in findings()[name]):
        assert name in fixed()


def test_only_deferrable_cases_are_changed() -> None:
    assert set(fixed()) == set(DEFER)


#: Runs in a process of its own, for all cases: what the originals do, and what the fixed ones do eagerly and compiled.
_WORKER = """
import json, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import run_cases as runner

answers = {}
for fixed in sorted(Path(sys.argv[2]).glob("*.py")):
    original = runner.observe(Path(sys.argv[1]) / fixed.name, False)
    eager, compiled = runner.observe(fixed, False), runner.observe(fixed, True)
    answers[fixed.name] = {
        "eager": runner.differences(original, eager),
        "compiled": runner.differences(original, compiled),
        "measured": runner.measure(fixed),
    }
print(runner.MARK + json.dumps(answers))
"""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `run_cases.py --compare` would say of each case that the fixes change."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("fixed")
    for name, source in fixed().items():
        (folder / name).write_bytes(source)
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", _WORKER, str(CASES), str(folder)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.rpartition("@@CASE-RESULT@@")[2])
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFER)
def test_the_fix_is_faithful_and_ends_the_breaks(name: str, comparison: dict[str, Any]) -> None:
    answer = comparison[name]
    assert answer["eager"] == []
    assert answer["compiled"] == []
    assert EXPECTED[name]["gb_types"]
    measured = answer["measured"]
    assert (measured["gb_types"], measured["error"], measured["fullgraph"]) == ([], None, True)
