"""`vendor` writes a copy that works, and overwrites nothing but its own older copies."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import graphmend_lint
from graphmend_lint import vendor as module
from graphmend_lint.vendor import vendor

ROOT = Path(__file__).parents[2]


def test_into_a_folder_or_to_a_file(tmp_path: Path) -> None:
    assert vendor(tmp_path) == tmp_path / "graphmend_runtime.py"
    assert vendor(tmp_path / "_messages.py") == tmp_path / "_messages.py"
    text = (tmp_path / "_messages.py").read_text()
    header, rest = text.split("\n", 1)
    assert graphmend_lint.__version__ in header
    assert "graphmend vendor" in header
    assert rest == (ROOT / "graphmend_lint" / "runtime.py").read_text()
    assert ast.get_docstring(ast.parse(text))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_messages.py", "graphmend_runtime.py"]


def test_the_runtime_imports_torch_and_the_standard_library_alone() -> None:
    tree = ast.parse((ROOT / "graphmend_lint" / "runtime.py").read_text())
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "torch"}


def test_an_unedited_copy_is_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "__version__", "0.0.1")
    old = vendor(tmp_path).read_text()
    monkeypatch.undo()
    new = vendor(tmp_path).read_text()
    assert old != new
    before = (tmp_path / module.NAME).stat().st_mtime_ns
    vendor(tmp_path)
    assert (tmp_path / module.NAME).stat().st_mtime_ns == before


def test_line_ends_changed_by_version_control_are_no_edit(tmp_path: Path) -> None:
    path = vendor(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert b"\r\n" not in vendor(tmp_path).read_bytes()


@pytest.mark.parametrize("kind", ["foreign", "edited", "newer", "empty"])
def test_anything_else_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = tmp_path / module.NAME
    if kind == "foreign":
        path.write_text("print('mine')\n")
    elif kind == "empty":
        path.touch()
    else:
        monkeypatch.setattr(module, "__version__", "99.0" if kind == "newer" else "0.0.1")
        vendor(tmp_path)
        monkeypatch.undo()
        if kind == "edited":
            path.write_text(path.read_text() + "# mine\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="left alone") as error:
        vendor(tmp_path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    assert path.read_bytes() == before
    assert vendor(tmp_path, force=True).read_bytes() != before


def test_bad_targets(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"neither a folder nor a \.py file"):
        vendor(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        vendor(tmp_path / "missing" / "x.py")
    (tmp_path / "folder.py").mkdir()
    assert vendor(tmp_path / "folder.py") == tmp_path / "folder.py" / module.NAME


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_mode_and_link_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "__version__", "0.0.1")
    real = vendor(tmp_path / "real.py")
    monkeypatch.undo()
    real.chmod(0o640)
    link = tmp_path / "link.py"
    link.symlink_to(real)
    vendor(link)
    assert link.is_symlink()
    assert graphmend_lint.__version__ in real.read_text().split("\n")[0]
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        vendor(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_vendoring_needs_no_torch() -> None:
    code = "import sys, graphmend_lint.vendor; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
