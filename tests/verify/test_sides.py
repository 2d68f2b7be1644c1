"""Both sides of a rewritten predicate are exercised, in the run or by replays with other values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_lint.verify import Options, TargetSpec, Verdict
from graphmend_lint.verify.driver import Verification
from graphmend_lint.verify.launcher import Launcher
from tests.verify.fixers import Fix, Fixes

GUARD = """        if torch.isnan(x).any():
            raise ValueError("nan")
"""
CUT = """            if (x.abs() > limit).any():
                x = x.clamp(max=limit)
"""
WARN = """        if self.strict and (x.abs() < 0).any():
            logger.warning("impossible")
"""
IMPORT = (("import torch\n", "import torch\nfrom graphmend_lint.runtime import fail, when\n"),)


def guard(exception: str) -> Fix:
    new = f"        if alarm := when(torch.isnan(x).any()):\n            alarm(fail)({exception})\n"
    return Fix("GM301", GUARD, new, "when", "torch.isnan(x).any()")


def cut(value: str) -> Fix:
    new = f"            x = torch.where((x.abs() > limit).any(), {value}, x)\n"
    return Fix("GM101", CUT, new, "select", CUT.strip())


def warn(text: str) -> Fix:
    test = "self.strict and (x.abs() < 0).any()"
    new = f'        if alarm := when({test}):\n            alarm(logger).warning("{text}")\n'
    return Fix("GM202", WARN, new, "when", test)


RIGHT = (guard('ValueError, "nan"'), cut("x.clamp(max=limit)"), warn("impossible"))


@pytest.fixture(scope="module")
def original(targets: Path, scratch: Path, launcher: Launcher) -> Iterator[Verification]:
    target = TargetSpec.parse(f"{targets}/sides.py:build")
    with Verification(target, Options(timeout=300, passes=0, calls=1), launcher) as verification:
        yield verification
    assert not list(scratch.iterdir()), "temporary files were left"


@pytest.fixture(scope="module")
def right(original: Verification) -> Verdict:
    return original.judge(Fixes(*RIGHT, always=IMPORT))


def test_a_right_fix_is_proven_and_says_what_was_not_exercised(right: Verdict) -> None:
    assert right.status == "proven", right.reason
    assert right.reason.endswith(
        "; not exercised: sides.py:37 `self.strict and (x.abs() < 0).any()` being true, "
        "sides.py:37 `(x.abs() < 0).any()` being true"
    )


def test_replays_reach_the_other_sides(right: Verdict) -> None:
    seen = {one.code: one for one in right.predicates}
    assert seen["torch.isnan(x).any()"].run == (0, 1)
    assert seen["torch.isnan(x).any()"].replay[0] > 0
    assert seen["(x.abs() > limit).any()"].run == (0, 1)
    assert seen["(x.abs() > limit).any()"].replay[0] > 0
    # The static part is no side of its own.
    assert "self.strict" not in seen
    assert {one.note for one in right.predicates} == {""}
    (report,) = (entry for entry in right.to_json()["predicates"] if entry["code"] == "(x.abs() < 0).any()")
    assert report["missing"] == ["true"]
    assert json.dumps(report)


def test_the_user_may_require_both_sides(original: Verification, right: Verdict) -> None:
    from graphmend_lint.verify.judge import with_sides

    found = with_sides(replace(right, status="proven", checks=()), right.predicates, (), required=True)
    assert found.exit_code == 1
    assert found.reason.startswith("both sides: not exercised: sides.py:37 `self.strict and")


@pytest.mark.parametrize(
    ("wrong", "line", "words"),
    [
        (
            cut("x.clamp(max=limit / 2)"),
            18,
            "shorten with floating tensors scaled by 1e4: outputs: values differ by up to",
        ),
        (cut("x.clamp_(max=limit)"), 18, "shorten with floating tensors scaled by 1e4: arguments['x']: values"),
        (guard('ValueError, "not a number"'), 35, "ValueError('nan'), and ValueError('not a number')"),
    ],
)
def test_a_fix_that_is_wrong_on_the_other_side_only(original: Verification, wrong: Fix, line: int, words: str) -> None:
    # A fix that is alone needs no search for the one to blame.
    others = [fix for fix in RIGHT if fix.code != wrong.code] if wrong.code == "GM301" else []
    verdict = original.judge(Fixes(*others, wrong, always=IMPORT))
    assert verdict.exit_code == 1
    assert [check.name for check in verdict.checks if not check.passed] == ["both sides"]
    assert verdict.reason.startswith(f"both sides: sides.py:{line}: ")
    assert words in verdict.reason
    assert [(cause.code, cause.line) for cause in verdict.causes] == [(wrong.code, line)]
