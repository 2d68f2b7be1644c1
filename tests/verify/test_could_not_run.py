"""What cannot be run ends in exit 2 with one line that says why, and leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphmend_lint.verify import Options
from graphmend_lint.verify.command import run
from graphmend_lint.verify.launcher import Launcher
from tests.verify.fixers import Replace


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_import.py:build", "original arm: cannot import no_import: ModuleNotFoundError: No module named"),
        (
            "broken.py:raises",
            "original arm: target raises raised RuntimeError: no such weights (prepare run)",
        ),
        ("broken.py:not_a_pair", "original arm: the target must return (model, inputs) (prepare run)"),
        ("broken.py:hangs", "original arm: no result within 4 s"),
    ],
)
def test_the_arm_and_the_reason_are_named(
    targets: Path, scratch: Path, capsys: pytest.CaptureFixture[str], launcher: Launcher, target: str, reason: str
) -> None:
    status = run(
        f"{targets}/{target}",
        Replace(),
        options=Options(timeout=4 if target.endswith("hangs") else 300),
        json_output=True,
        launcher=launcher,
    )
    report = json.loads(capsys.readouterr().out)
    assert status == report["exit_code"] == 2
    assert report["reason"].startswith(reason)
    assert "\n" not in report["reason"]
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere", "is not of the form module:callable or file.py:callable"),
        ("nowhere.py:build", "no file"),
        ("no where:build", "is neither a module name nor a .py file"),
    ],
)
def test_a_target_that_names_nothing(capsys: pytest.CaptureFixture[str], target: str, reason: str) -> None:
    assert run(target, Replace()) == 2
    assert reason in " ".join(capsys.readouterr().err.split())


def test_a_missing_fix_path(targets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{targets}/quiet.py:build", Replace(), fix_paths=[targets / "absent"]) == 2
    assert "no such file or folder" in capsys.readouterr().err
