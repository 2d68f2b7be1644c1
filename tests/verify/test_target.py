"""How a target is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_lint.verify import BadTarget, TargetSpec

ROOT = Path(__file__).parents[2]


def test_a_module_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    spec = TargetSpec.parse("package.models:Builders.small", tmp_path)
    assert (spec.module, spec.attribute, spec.root) == ("package.models", "Builders.small", tmp_path)


@pytest.mark.parametrize("package", [True, False])
def test_a_file_is_imported_as_part_of_its_package(tmp_path: Path, package: bool) -> None:
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)
    (folder / "model.py").touch()
    if package:
        (folder / "__init__.py").touch()
        (folder.parent / "__init__.py").touch()
    spec = TargetSpec.parse("outer/inner/model.py:build", tmp_path)
    expected = ("outer.inner.model", tmp_path) if package else ("model", folder)
    assert (spec.module, spec.root) == expected


@pytest.mark.parametrize("text", ["module", "module:", ":build", "a-b:build", "absent.py:build", "module:1"])
def test_what_is_no_target(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadTarget, match="target"):
        TargetSpec.parse(text, tmp_path)


def test_the_command_imports_no_torch() -> None:
    program = "import sys, graphmend_lint.verify.command as c; assert 'torch' not in sys.modules; print(c.run)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
