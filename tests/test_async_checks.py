"""`trap-style = "async"`: torch's own assertion in the place of an exception."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_lint.config import Settings
from tests import fixtures_runner

SETTINGS = Settings(select=("GM3",), trap_style="async", unsafe_fixes=True)
PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
{check}
        return x * 2


def build():
    return Net(), [(torch.ones(3),), (torch.tensor([1.0, -1.0]),), (torch.ones(3),)]
"""


def fixed(check: str, folder: Path) -> str:
    """What becomes of the lines of a check; the file must be as it was around them."""
    before, after = PROGRAM.split("{check}")
    text = fixtures_runner.fix({"before.py": before + check + after}, folder, SETTINGS)["before.py"]
    assert text.startswith(before)
    assert text.endswith(after)
    return text[len(before) : -len(after)]


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (
            """\
        # no negative ones
        if (x == -1).any():  # by any chance
            # tell them
            raise ValueError("negative")  # so""",
            """\
        # no negative ones
        # by any chance
        # tell them
        # so
        torch._assert_async(~(x == -1).any(), "negative")""",
        ),
        (
            """\
        if not (x != -1).all():
            raise ValueError""",
            """\
        torch._assert_async((x != -1).all())""",
        ),
        (
            """\
        assert not (x == -1).any(), "negative"  # by any chance""",
            """\
        torch._assert_async(~(x == -1).any(), "negative")  # by any chance""",
        ),
        (
            """\
        assert (x != -1).all() and (x != 4).all()""",
            """\
        torch._assert_async((x != -1).all() & (x != 4).all())""",
        ),
    ],
    ids=["guard", "not", "assert", "and"],
)
def test_the_whole_check_becomes_one_call(check: str, expected: str, tmp_path: Path) -> None:
    assert fixed(check, tmp_path) == expected


RAISE = '            raise ValueError("negative")'
LEFT = {
    "text": ("if (x == -1).any():", '            raise ValueError(f"sum {x.sum()}")', "exception-not-carried"),
    "print": ("if (x == -1).any():", f"            print(x)\n{RAISE}", "branch-does-more"),
    "else": ("if (x == -1).any():", f"{RAISE}\n        else:\n            x = -x", "guard-has-else"),
    "shape": ("if x[0] > 1:", RAISE, "predicate-not-one-element"),
    "message": ("assert not (x == -1).any(), x.sum()", "", "exception-not-carried"),
}


@pytest.mark.parametrize(("head", "body", "reason"), LEFT.values(), ids=LEFT)
def test_what_the_assertion_cannot_say_is_left(head: str, body: str, reason: str, tmp_path: Path) -> None:
    source = PROGRAM.format(check=f"        {head}  # {reason}\n{body}")
    found = fixtures_runner.lint({"before.py": source}, tmp_path, SETTINGS)
    assert [finding.verdict for finding in found] == [f"none {reason}"]


def test_it_does_not_break_and_raises_another_error(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.fixtures_executed import Program, run

    before = {"before.py": PROGRAM.format(check='        assert not (x == -1).any(), "negative"')}
    after = fixtures_runner.fix(before, tmp_path / "fix", SETTINGS)
    fixtures_runner.write(before, tmp_path / "before")
    fixtures_runner.write(after, tmp_path / "after")
    original = Program(tmp_path / "before", "before.py", before, before)
    result = Program(tmp_path / "after", "before.py", after, before)
    assert len(run(original, compiled=True).breaks) == 1
    for compiled in (False, True):
        seen = run(result, compiled=compiled)
        assert not seen.breaks
        assert [call.error and call.error[:1] for call in seen.seen] == [None, ("RuntimeError",), None]
