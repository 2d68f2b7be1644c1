"""The cache: the same findings as without it, whatever changed meanwhile, and whatever became of it."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graphmend_lint import engine, index
from graphmend_lint.cache import Cache, default_folder
from tests.cli.privileges import as_anyone
from tests.cli.project import CLEAN, FIXED, MODEL, Project

LIBRARY = "import torch\n\ndef helper(x: torch.Tensor) -> torch.Tensor:\n    print('x')\n    return x\n"
CALLER = "import torch\nfrom library import helper\n\n@torch.compile\ndef step(x):\n    return helper(x)\n"


def database(project: Project) -> Path:
    (path,) = project.cache.glob("*.sqlite")
    return path


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[Any]:
    """The first arguments of the calls of a function from now on."""
    calls: list[Any] = []
    function: Callable[..., Any] = getattr(module, name)

    def count(*args: Any) -> Any:
        calls.append(args[0])
        return function(*args)

    monkeypatch.setattr(module, name, count)
    return calls


def test_a_second_run_reads_no_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("a.py")
    project.write("b.py", CLEAN)
    first = project.findings()
    scans = counted(monkeypatch, index, "scan")
    analyses = counted(monkeypatch, engine, "analyse")
    assert project.findings() == first
    assert len(first) == 1
    assert scans == analyses == []


def test_only_a_changed_file_is_read_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.py", "b.py", "c.py"):
        project.write(name)
    project.findings()
    changed = project.write("b.py", CLEAN)
    scans = counted(monkeypatch, index, "scan")
    assert [Path(f["path"]).name for f in project.findings()] == ["a.py", "c.py"]
    assert scans == [changed]


def test_a_touched_file_keeps_its_findings(project: Project) -> None:
    path = project.write("a.py")
    first = project.findings()
    os.utime(path, ns=(1, 1))
    assert project.findings() == first


def test_another_file_that_changes_a_region(project: Project) -> None:
    project.write("library.py", LIBRARY)
    caller = project.write("caller.py", CALLER)
    (reached,) = project.findings("library.py")
    assert reached["confidence"] == "definite"
    caller.write_text(CALLER.replace("@torch.compile\n", ""))
    (likely,) = project.findings("library.py")
    assert likely["confidence"] == "likely"
    caller.write_text(CALLER)
    assert project.findings("library.py") == [reached]
    caller.unlink()
    assert project.findings("library.py") == [likely]


def test_a_new_file_that_changes_a_region(project: Project) -> None:
    project.write("library.py", LIBRARY)
    assert project.findings("library.py")[0]["confidence"] == "likely"
    project.write("caller.py", CALLER)
    assert project.findings("library.py")[0]["confidence"] == "definite"


@pytest.mark.parametrize(
    ("table", "finds"),
    [
        ('ignore = ["GM201"]', []),
        ('per-file-ignores = {"model.py" = ["GM201"]}', []),
        ('target-torch = "2.9"', ["none"]),
        ('defer-style = "guard"', ["unsafe"]),
        ('exclude = ["model.py"]', []),
    ],
)
def test_changed_settings(project: Project, table: str, finds: list[str]) -> None:
    project.write("model.py")
    assert [f["fix"] for f in project.findings()] == ["safe"]
    project.configure(table)
    assert [f["fix"] for f in project.findings()] == finds
    project.configure()
    assert [f["fix"] for f in project.findings()] == ["safe"]


def test_changed_options(project: Project) -> None:
    project.write("model.py", LIBRARY)
    assert len(project.findings()) == 1
    assert project.findings("--confidence", "definite") == []
    assert project.findings("--select", "GM202") == []
    assert len(project.findings()) == 1


def test_changed_entries(project: Project) -> None:
    project.write("model.py", LIBRARY)
    assert project.findings()[0]["confidence"] == "likely"
    project.configure('entries = ["model:helper"]')
    assert project.findings()[0]["confidence"] == "definite"


def test_a_changed_linter(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("model.py")
    project.findings()
    monkeypatch.setattr(engine, "rules_digest", lambda: b"other")
    analyses = counted(monkeypatch, engine, "analyse")
    assert len(project.findings()) == 1
    assert len(analyses) == 1


def test_a_removed_file(project: Project) -> None:
    path = project.write("model.py")
    project.findings()
    path.unlink()
    assert project.findings() == []
    assert project.run("lint", "model.py").code == 2


def test_a_file_that_breaks_and_heals(project: Project) -> None:
    path = project.write("model.py")
    first = project.findings()
    path.write_text("def f(:\n")
    for _ in range(2):
        assert project.run("lint").code == 2
    path.write_text(MODEL)
    assert project.findings() == first


def test_fix_after_a_cached_run(project: Project) -> None:
    project.write("model.py")
    project.findings()
    assert project.run("fix").code == 0
    assert project.read("model.py") == FIXED
    assert project.findings() == []


# --- damage


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file(project: Project, content: bytes) -> None:
    project.write("model.py")
    first = project.findings()
    path = database(project)
    for sibling in project.cache.iterdir():
        sibling.unlink()
    path.write_bytes(content)
    assert project.findings() == first
    assert project.findings() == first


@pytest.mark.parametrize(
    "blob", [None, b"", b"junk", b"\x80\x05cnosuch\nname\n."], ids=["null", "empty", "junk", "unknown"]
)
@pytest.mark.parametrize("settings", ["", 'target-torch = "2.9"'], ids=["same", "changed"])
def test_damaged_rows(project: Project, blob: bytes | None, settings: str) -> None:
    """With changed settings the findings are made again, from summaries that are damaged too."""
    project.write("library.py", LIBRARY)
    project.write("caller.py", CALLER)
    project.findings()
    project.configure(settings)
    with closing(sqlite3.connect(database(project))) as connection, connection:
        connection.execute("UPDATE files SET summary = ?", (blob,))
        connection.execute("UPDATE findings SET payload = ?", (blob,))
    found = project.findings()
    assert [f["confidence"] for f in found] == ["definite"]
    assert found == project.findings("--no-cache")


def test_a_missing_table(project: Project) -> None:
    project.write("model.py")
    first = project.findings()
    with closing(sqlite3.connect(database(project))) as connection, connection:
        connection.execute("DROP TABLE findings")
        connection.execute("DROP TABLE files")
    assert project.findings() == first


def test_another_process_holds_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that does not go away costs the cache, not the run."""
    project.write("model.py")
    first = project.findings()
    connect = sqlite3.connect

    def impatient(path: Path, timeout: float) -> sqlite3.Connection:
        return connect(path, timeout=0)

    monkeypatch.setattr(sqlite3, "connect", impatient)
    with closing(connect(database(project))) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        project.write("other.py", CLEAN)
        assert project.findings() == first


# --- where it is


def test_no_cache_writes_nothing(project: Project) -> None:
    project.write("model.py")
    before = project.files()
    assert len(project.findings("--no-cache")) == 1
    assert not project.cache.exists()
    project.run("fix", "--no-cache", "--diff")
    assert not project.cache.exists()
    assert project.files() == before


def test_no_cache_reads_nothing(project: Project) -> None:
    project.write("model.py")
    project.findings()
    with closing(sqlite3.connect(database(project))) as connection, connection:
        connection.execute("UPDATE findings SET payload = ?", (b"\x80\x05).",))  # an empty tuple
    assert project.findings() == []
    assert len(project.findings("--no-cache")) == 1


def test_nothing_is_written_into_the_project(project: Project) -> None:
    project.write("model.py")
    before = project.files()
    project.findings()
    assert project.files() == before
    assert database(project).is_file()


def test_given_folder(project: Project) -> None:
    project.write("model.py")
    project.findings("--cache-dir", "kept/here")
    assert list((project.folder / "kept" / "here").glob("*.sqlite"))
    assert not project.cache.exists()


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path / "given"))
    assert default_folder() == tmp_path / "given"
    monkeypatch.delenv("GRAPHMEND_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "graphmend"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "graphmend"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert default_folder() == tmp_path / "graphmend"


def test_a_folder_that_cannot_be_made(project: Project) -> None:
    project.write("model.py")
    project.write("file", "")
    assert len(project.findings("--cache-dir", "file/cache")) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no write permission there")
def test_a_folder_that_cannot_be_written(project: Project) -> None:
    project.write("model.py")
    project.cache.mkdir(mode=0o555)
    outcome = project.process("lint", preexec_fn=as_anyone())
    assert (outcome.code, outcome.err) == (1, "")
    assert list(project.cache.iterdir()) == []


def test_several_runs_at_once_share_it(tmp_path: Path) -> None:
    first, second = Cache(tmp_path), Cache(tmp_path)
    path = tmp_path / "model.py"
    first.store_findings([(path, b"key", ("one",))])
    second.store_findings([(path, b"key", ("two",))])
    assert first.findings({path: b"key"}) == {path: ("two",)}
    assert first.findings({path: b"other"}) == {}
    first.close()
    second.close()
    assert first.findings({path: b"key"}) == {}
