"""Files are written whole or not at all, and keep what a file has besides its content."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from graphmend_lint import engine, fixing
from tests.cli.privileges import as_anyone
from tests.cli.project import FIXED, MODEL, Project


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755])
def test_mode(project: Project, mode: int) -> None:
    path = project.write("model.py")
    path.chmod(mode)
    project.run("fix")
    assert project.read("model.py") == FIXED
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_stays_and_its_target_is_written(project: Project) -> None:
    target = project.write("real/model.py")
    link = project.folder / "model.py"
    link.symlink_to(target)
    assert project.run("fix", "model.py").code == 0
    assert link.is_symlink()
    assert target.read_text() == FIXED


def test_a_file_and_a_link_to_it(project: Project) -> None:
    project.write("a.py")
    (project.folder / "b.py").symlink_to("a.py")
    outcome = project.run("fix")
    assert (outcome.code, outcome.err) == (0, "")
    assert project.read("a.py") == FIXED
    assert (project.folder / "b.py").is_symlink()
    assert project.run("fix").lines == ["Fixed 0 in 0 files, 0 left."]


def test_nothing_else_is_left_behind(project: Project) -> None:
    project.write("model.py")
    before = set(project.files())
    project.run("fix")
    assert set(project.files()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no write permission there")
def test_a_folder_that_cannot_be_written(project: Project) -> None:
    path = project.write("locked/model.py")
    project.write("model.py")
    path.parent.chmod(0o555)
    try:
        outcome = project.process("fix", preexec_fn=as_anyone())
    finally:
        path.parent.chmod(0o755)
    assert outcome.code == 2
    assert outcome.errors == ["locked/model.py: error: not written: permission denied"]
    assert outcome.lines[0].startswith("locked/model.py:7:9: GM201 ")
    assert outcome.lines[1] == "Fixed 1 in 1 files, 1 left."
    assert list(path.parent.iterdir()) == [path]
    assert path.read_text() == MODEL
    assert project.read("model.py") == FIXED


def test_a_failing_write_leaves_the_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.write("model.py")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    outcome = project.run("fix")
    assert outcome.code == 2
    assert outcome.errors == ["model.py: error: not written: no space left on device"]
    assert path.read_text() == MODEL
    assert set(project.files()) == {"model.py", "pyproject.toml"}


def test_a_file_that_another_program_writes_meanwhile(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.write("model.py")
    fix_paths = engine.fix_paths

    def slow(*args: Any) -> Any:
        for result in fix_paths(*args):
            path.write_text("# mine\n")
            yield result

    monkeypatch.setattr(engine, "fix_paths", slow)
    outcome = project.run("fix")
    assert outcome.code == 2
    assert outcome.errors == ["model.py: error: not written: changed on disk while it was being fixed"]
    assert path.read_text() == "# mine\n"


def test_a_result_that_does_not_parse_is_not_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphmend_lint import rewrite

    def fail(*args: object) -> None:
        raise SyntaxError("the result does not parse")

    monkeypatch.setattr(rewrite, "apply", fail)
    project.write("model.py")
    outcome = project.run("fix")
    assert outcome.code == 2
    assert outcome.errors == ["model.py: error: fixes given up: the result does not parse"]
    assert project.read("model.py") == MODEL


def test_fixes_that_never_rest_are_not_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixing, "MAX_ROUNDS", 0)
    project.write("model.py")
    outcome = project.run("fix")
    assert outcome.code == 2
    assert outcome.errors == ["model.py: error: still not at rest after 0 rounds of fixes"]
    assert project.read("model.py") == MODEL
