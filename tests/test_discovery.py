"""Which files are linted, and which project a file belongs to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmend_lint import discovery
from graphmend_lint.config import Settings
from graphmend_lint.discovery import index_root, project_root, python_files
from tests.cli.privileges import as_anyone
from tests.cli.project import CLEAN, MODEL, Project


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    project_root.cache_clear()
    index_root.cache_clear()


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def found(folder: Path, *exclude: str) -> list[str]:
    settings = Settings(root=folder, exclude=exclude)
    return [path.relative_to(folder).as_posix() for path in python_files(folder, lambda _: settings)]


def test_python_files(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a.pyi", "sub/c.py", "sub/d.txt", "e.pyc", "f.PY", "g.py.orig", ".h.py")
    assert found(tmp_path) == [".h.py", "a.pyi", "b.py", "sub/c.py"]


@pytest.mark.parametrize(
    "folder",
    [".git", ".venv", ".tox", "__pycache__", "build", "dist", "node_modules", "site-packages", "venv", "x.egg-info"],
)
def test_folders_that_never_hold_source(tmp_path: Path, folder: str) -> None:
    make(tmp_path, f"{folder}/a.py", f"sub/{folder}/b.py", "kept.py")
    assert found(tmp_path) == ["kept.py"]


def test_excluded_by_configuration(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "gen/b.py", "sub/gen/c.py", "d_pb2.py", "sub/e.py")
    assert found(tmp_path, "gen", "*_pb2.py") == ["a.py", "sub/e.py"]
    assert found(tmp_path, "/gen/") == ["a.py", "d_pb2.py", "sub/e.py", "sub/gen/c.py"]


def test_a_folder_named_like_a_file(tmp_path: Path) -> None:
    make(tmp_path, "x.py/inner.py")
    assert found(tmp_path) == ["x.py/inner.py"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "a/b.py")
    (tmp_path / "link").symlink_to("a", target_is_directory=True)
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    assert found(tmp_path) == ["a/b.py"]


# --- from the command line


def test_a_given_file_is_linted_although_it_is_excluded(project: Project) -> None:
    project.configure('exclude = ["model.py"]')
    project.write("model.py")
    assert project.run("lint", ".").code == 0
    assert project.run("lint", "model.py").code == 1


def test_exclude_on_the_command_line_adds(project: Project) -> None:
    project.configure('exclude = ["a.py"]')
    for name in ("a.py", "b.py", "c.py"):
        project.write(name, CLEAN)
    assert project.run("lint", "--show-files", "--exclude", "b.py").lines == ["c.py"]
    assert project.run("lint", "--show-files", "--isolated", "--exclude", "b.py").lines == ["a.py", "c.py"]


def test_a_given_folder_is_entered_whatever_its_name(project: Project) -> None:
    project.write("build/model.py")
    assert project.run("lint").code == 0
    assert project.run("lint", "build").code == 1


def test_a_given_file_needs_no_suffix(project: Project) -> None:
    project.write("script", MODEL)
    assert project.run("lint", ".").code == 0
    assert project.run("lint", "script").code == 1


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permissions there")
def test_a_folder_that_cannot_be_listed_is_not_clean(project: Project) -> None:
    project.write("model.py")
    locked = project.write("locked/model.py").parent
    locked.chmod(0)
    try:
        whole = project.process("lint", preexec_fn=as_anyone())
        file = project.process("lint", "locked/model.py", preexec_fn=as_anyone())
    finally:
        locked.chmod(0o755)
    assert whole.code == 2
    assert whole.errors == ["locked: error: permission denied"]
    assert whole.lines[0].startswith("model.py:7:9: GM201 ")
    assert file.code == 2
    assert file.errors == ["locked/model.py: error: permission denied"]


# --- projects


def test_project_root(tmp_path: Path) -> None:
    make(tmp_path, "outer/.git", "outer/inner/pyproject.toml", "outer/plain/a.py")
    assert project_root(tmp_path / "outer" / "inner") == tmp_path / "outer" / "inner"
    assert project_root(tmp_path / "outer" / "plain") == tmp_path / "outer"


def test_installed_packages_are_no_part_of_the_project_around_them(tmp_path: Path) -> None:
    make(tmp_path, "pyproject.toml", "venv/lib/site-packages/package/__init__.py")
    package = tmp_path / "venv" / "lib" / "site-packages" / "package"
    assert project_root(package) is None
    assert index_root(package) == (package, True)


def test_index_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_ROOT_MARKS", (".marked",))
    make(tmp_path, "top/__init__.py", "top/sub/__init__.py", "loose/a.py", "p/.marked", "p/src/a.py")
    assert index_root(tmp_path / "top" / "sub") == (tmp_path / "top", True)
    assert index_root(tmp_path / "loose") == (tmp_path / "loose", False)
    assert index_root(tmp_path / "p" / "src") == (tmp_path / "p", True)


def test_files_of_several_projects_in_one_run(project: Project) -> None:
    for name in ("one", "two"):
        project.configure(name=f"{name}/pyproject.toml")
        project.write(f"{name}/package/__init__.py", "")
        project.write(f"{name}/package/model.py")
    project.write("loose.py")
    assert [os.path.relpath(f["path"], project.folder) for f in project.findings()] == [
        "loose.py",
        "one/package/model.py",
        "two/package/model.py",
    ]


@pytest.mark.parametrize(
    ("name", "linted"),
    [
        ("model.py", True),
        ("src/model.py", True),
        ("skipped/model.py", False),
        ("skipped/deep/model.py", False),
        ("some_generated.py", False),
        ("build/model.py", False),
        (".hidden/model.py", False),
        ("src/venv/lib/model.py", False),
    ],
)
@pytest.mark.parametrize("command", ["lint", "fix"])
def test_excluded_files_that_are_named(project: Project, name: str, linted: bool, command: str) -> None:
    project.configure('exclude = ["skipped", "*_generated.py"]')
    project.write(name)
    assert project.lines_of(name) == [7]
    assert project.lines_of("--force-exclude", name) == ([7] if linted else [])
    assert project.lines_of("--force-exclude", project.folder / name) == ([7] if linted else [])
    shown = project.run("lint", "--show-files", "--force-exclude", name)
    assert shown.lines == ([name] if linted else [])
    outcome = project.run(command, "--force-exclude", name)
    assert outcome.code == (1 if linted and command == "lint" else 0)
    assert (project.read(name) == MODEL) == (not linted or command == "lint")


def test_excluded_folders_that_are_named(project: Project) -> None:
    project.configure('exclude = ["skipped"]')
    project.write("skipped/model.py")
    project.write("model.py")
    assert project.lines_of("--force-exclude", "skipped") == []
    assert len(project.lines_of("--force-exclude", ".", "model.py")) == 1
    missing = project.run("lint", "--force-exclude", "missing.py")
    assert (missing.code, missing.errors) == (2, ["missing.py: error: no such file or directory"])
