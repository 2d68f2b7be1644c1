"""Linting where torch is not installed: a real virtual environment that has everything but torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_LEFT_OUT = ("torch", "functorch", "transformers", "__editable__", "_editable_impl")
_COMMAND = "from graphmend_lint.cli import main; main()"


@pytest.fixture(scope="module")
def python_without_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that links to this one's packages, torch left out."""
    folder = tmp_path_factory.mktemp("without-torch")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    target = Path(subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip())
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(_LEFT_OUT) and not (target / entry.name).exists():
            (target / entry.name).symlink_to(entry)
    return python


def _run(python: Path | str, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "rules")])}
    return subprocess.run(
        [python, "-c", script, *arguments], capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )


def test_the_environment_has_no_torch(python_without_torch: Path) -> None:
    script = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is not None)"
    assert _run(python_without_torch, script).returncode == 0


def test_same_findings_and_fixes_as_with_torch(python_without_torch: Path) -> None:
    cases = str(ROOT / "fixtures" / "cases")
    for arguments in (("lint", "--no-cache", "--output-format", "json", cases), ("fix", "--no-cache", "--diff", cases)):
        without = _run(python_without_torch, _COMMAND, *arguments)
        assert without.returncode == 1, without.stderr
        assert without.stdout == _run(sys.executable, _COMMAND, *arguments).stdout
    assert len(json.loads(_run(python_without_torch, _COMMAND, "lint", "--output-format", "json", cases).stdout)) > 5
