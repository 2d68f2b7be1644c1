"""Each way in which a fix can be wrong is found, and the verdict names the difference and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend_lint.verify import Options, TargetSpec
from graphmend_lint.verify.driver import Verification
from graphmend_lint.verify.launcher import Launcher
from tests.verify.fixers import Fix, Fixes

DEFER = Fix("GM202", "logger.info(", "deferred(logger).info(")
SCALE = """        if (x > 10).any():
            self.scale = self.long
        else:
            self.scale = self.short
"""
ROOT = """        if (y > 0).all():
            z = torch.sqrt(y)
        else:
            z = y
"""


def scale(text: str) -> Fix:
    return Fix("GM101", SCALE, f"        {text}\n")


@pytest.fixture(scope="module")
def original(targets: Path, scratch: Path, launcher: Launcher) -> Iterator[Verification]:
    target = TargetSpec.parse(f"{targets}/stateful.py:build")
    with Verification(target, Options(timeout=300, passes=0, grad=True, calls=1), launcher) as verification:
        yield verification
    assert not list(scratch.iterdir()), "temporary files were left"


def test_a_right_fix_is_proven(original: Verification) -> None:
    verdict = original.judge(Fixes(DEFER))
    assert verdict.status == "proven", verdict.reason
    assert verdict.causes == ()


def test_state_that_no_longer_shares_its_memory_is_a_note(original: Verification) -> None:
    verdict = original.judge(Fixes(DEFER, scale("self.scale = torch.where((x > 10).any(), self.long, self.short)")))
    assert verdict.status == "proven", verdict.reason
    assert "the memory of state scale was that of state short, and is its own" in verdict.notes


@pytest.mark.parametrize(
    ("wrong", "check", "words"),
    [
        pytest.param(
            scale("self.scale = torch.where((x > 10).any(), self.short, self.long)"),
            "eager values",
            "call 1, outputs['y']: values differ by up to",
            id="wrong-arm",
        ),
        pytest.param(
            scale("self.scale.copy_(torch.where((x > 10).any(), self.long, self.short))"),
            "eager values",
            "call 2, state short: values differ by up to 1",
            id="buffer-destroyed-for-the-third-call",
        ),
        pytest.param(
            Fix("GM101", ROOT, "        z = torch.where((y > 0).all(), torch.sqrt(y), y)\n"),
            "eager values",
            "call 1, gradients['linear.weight']: values differ",
            id="nan-gradient",
        ),
        pytest.param(
            Fix("GM101", "y * 2", "y * torch.tensor([2.0], dtype=torch.float64)"),
            "eager values",
            "Tensor torch.float32 [1, 4] on cpu, and Tensor torch.float64 [1, 4] on cpu",
            id="promoted-dtype",
        ),
        pytest.param(
            Fix("GM101", "x.view(-1)", "x.clone().view(-1)"),
            "eager values",
            "call 1, memory of output['x']: that of input[0][0], and its own",
            id="lost-alias",
        ),
        pytest.param(
            Fix("GM101", "x.view(-1)", "x.detach().requires_grad_(True).view(-1)"),
            "eager values",
            "call 1, autograd of output['x']: requires no grad, and requires grad",
            id="history-of-gradients",
        ),
        pytest.param(
            Fix("GM101", "        noise =", "        torch.rand(1)\n        noise ="),
            "eager values",
            "call 1, outputs['z']: values differ",
            id="consumed-random-numbers",
        ),
        pytest.param(
            Fix("GM101", "        noise =", "        history.append(1)\n        noise ="),
            "recompiles",
            "len(",
            id="extra-recompile",
        ),
    ],
)
def test_a_wrong_fix_is_named(original: Verification, wrong: Fix, check: str, words: str) -> None:
    verdict = original.judge(Fixes(DEFER, wrong))
    assert verdict.exit_code == 1
    failed = {check.name: check.detail for check in verdict.checks if not check.passed}
    assert words in failed[check]
    (cause,) = verdict.causes
    assert cause.code == "GM101"
    assert verdict.reason.endswith(f"; caused by GM101 at {cause.path}:{cause.line}")
    source = Path(cause.path).read_text().splitlines()
    assert source[cause.line - 1].strip() in wrong.old.strip().splitlines()[0] or wrong.old in source[cause.line - 1]


def test_fixes_that_are_wrong_together_are_named_together(original: Verification) -> None:
    verdict = original.judge(
        Fixes(
            DEFER,
            Fix("GM101", "self.count += 1", "self.count += 1; two = 2"),
            Fix("GM102", "y * 2", "y * 2 * globals().get('factor', 1)"),
            Fix("GM103", "history: list[int] = []", "history: list[int] = []\nfactor = 3"),
        )
    )
    assert [cause.code for cause in verdict.causes] == ["GM102", "GM103"]
    assert "caused by 2 fixes together: GM102 at" in verdict.reason
