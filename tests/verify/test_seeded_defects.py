"""A wrong fix is found out, and the verdict names what it changed: one original arm, many fixed ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend_lint.verify import Options, TargetSpec
from graphmend_lint.verify.arm import CouldNotRun
from graphmend_lint.verify.driver import Verification
from graphmend_lint.verify.launcher import Launcher
from tests.verify.fixers import IMPORT, Fix, Fixes, Replace, processes_that_write_below

WARNING, INFO = 'logger.warning("rows %s", x.shape)', 'logger.info("done")'
DEFER = (
    IMPORT,
    (WARNING, 'deferred(logger).warning("rows %s", x.shape)'),
    (INFO, 'deferred(logger).info("done")'),
)


@pytest.fixture(scope="module")
def original(targets: Path, scratch: Path, launcher: Launcher) -> Iterator[Verification]:
    target = TargetSpec.parse(f"{targets}/quiet.py:build")
    with Verification(target, Options(timeout=300, passes=0), launcher) as verification:
        yield verification
    assert not list(scratch.iterdir()), "temporary files were left"


def test_the_right_fix_is_proven(original: Verification) -> None:
    verdict = original.judge(Replace(*DEFER))
    assert (verdict.status, verdict.reason) == ("proven", "graph breaks 2 -> 0, nothing else changed")
    assert verdict.original is not None
    raised = [raised.text if raised else None for raised in verdict.original.eager.raised]
    assert raised == [None, "too long"] * 2


@pytest.mark.parametrize(
    ("pairs", "check", "words"),
    [
        pytest.param(
            [*DEFER, ("raise ValueError", "raise TypeError")],
            "eager exceptions",
            "TypeError",
            id="exception-type",
        ),
        pytest.param([*DEFER[:2], (INFO, "pass")], "eager messages", "lost: log quiet INFO", id="info-dropped"),
        pytest.param(
            [(WARNING, f"None if torch.compiler.is_compiling() else {WARNING}")],
            "compiled messages",
            "lost: log quiet WARNING",
            id="message-dropped-when-compiled",
        ),
    ],
)
def test_a_wrong_fix_is_not(original: Verification, pairs: list[tuple[str, str]], check: str, words: str) -> None:
    verdict = original.judge(Replace(*pairs))
    assert verdict.exit_code == 1
    failed = {check.name: check.detail for check in verdict.checks if not check.passed}
    assert words in failed[check]


def test_a_fix_that_removes_no_break_is_not_proven(original: Verification) -> None:
    verdict = original.judge(Replace(("import torch\n", "import torch\n# better now\n")))
    assert verdict.exit_code == 1
    assert [check.name for check in verdict.checks if not check.passed] == ["graph breaks"]
    assert verdict.reason.startswith("graph breaks: no fewer than before (2 (2 + 0), 1 frame given up, and 2 ")
    assert verdict.reason.endswith("; nothing else changed, so the fixes are of no use here")
    assert verdict.causes == ()


def test_fix_paths_choose_among_the_executed_files(original: Verification, targets: Path) -> None:
    pack, model = targets / "pack", targets / "pack" / "model.py"
    for given, asked in (([targets], [targets / "quiet.py"]), ([pack], []), ([pack, model], [model])):
        fixer = Replace()
        original.judge(fixer, given)
        assert fixer.asked == asked


def test_no_fix_at_all_is_not_proven(original: Verification) -> None:
    verdict = original.judge(Replace())
    assert verdict.exit_code == 1
    assert verdict.reason == "no fix applies to the 1 executed file; the original has 2 graph breaks"


def test_a_fix_that_adds_a_parameter_builds_something_else(original: Verification) -> None:
    extra = "self.extra = torch.nn.Parameter(torch.ones(1))\n        # Uninitialised"
    verdict = original.judge(Replace(("# Uninitialised", extra)))
    assert verdict.exit_code == 1
    assert verdict.reason == "the fixed arm builds something else: state extra is new"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("y = self.linear(x)", "__import__('os').abort()", "fixed arm: the eager run was ended by SIGABRT"),
        ("import torch\n", "import torchh\n", "fixed arm: cannot import quiet: ModuleNotFoundError"),
        ("y = self.linear(x)", "raise MemoryError", "fixed arm: out of memory (eager run)"),
    ],
    ids=["crash", "import", "out-of-memory"],
)
def test_an_arm_that_fails_is_named(original: Verification, old: str, new: str, reason: str) -> None:
    with pytest.raises(CouldNotRun) as caught:
        original.judge(Replace((old, new)))
    assert str(caught.value).startswith(reason)


def test_an_arm_that_fails_names_the_fix(original: Verification) -> None:
    crash = Fix("GM101", "y = self.linear(x)", "y = __import__('os').abort()")
    with pytest.raises(CouldNotRun) as caught:
        original.judge(Fixes(Fix("GM202", *DEFER[1]), crash))
    assert str(caught.value).startswith("fixed arm: the eager run was ended by SIGABRT; caused by GM101 at ")
    assert str(caught.value).endswith("quiet.py:25")


def test_a_fixed_arm_that_hangs_is_ended(original: Verification, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(original, "_options", Options(timeout=6.0, passes=0))
    with pytest.raises(CouldNotRun) as caught:
        original.judge(Replace(("y = self.linear(x)", "__import__('time').sleep(600)")))
    assert str(caught.value) == "fixed arm: no result within 6 s (eager run, call 1 of 4)"
    assert processes_that_write_below(original._folder) == []
