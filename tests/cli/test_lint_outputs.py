"""What `graphmend lint` can write besides findings, and where to."""

from __future__ import annotations

import json
from pathlib import Path

from graphmend_lint.config import KEYS
from tests.cli.project import CLEAN, DECLINED, MODEL, Project


def test_output_file(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("lint", "--output-file", "found.txt")
    assert outcome.code == 1
    assert outcome.lines == ["Found 1 graph break. 1 fixable with `graphmend fix`."]
    (line,) = project.read("found.txt").splitlines()
    assert line.startswith("model.py:7:9: GM201 [*] ")


def test_output_file_with_json(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("lint", "-o", "found.json", "--output-format", "json")
    assert (outcome.code, outcome.out) == (1, "")
    assert [f["code"] for f in json.loads(project.read("found.json"))] == ["GM201"]


def test_output_file_that_cannot_be_written(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("lint", "-o", "no/such/folder.txt")
    assert outcome.code == 2
    assert outcome.errors == ["error: no/such/folder.txt: No such file or directory"]


def test_statistics(project: Project) -> None:
    project.write("a.py")
    project.write("b.py")
    project.write("c.py", DECLINED)
    project.write("d.py", MODEL.replace("nn.Module", "object"))
    outcome = project.run("lint", "--statistics", "-q")
    assert outcome.code == 1
    rows = [line.split() for line in outcome.lines]
    assert rows[0] == ["2", "GM201", "print-call", "definite", "safe", "fix"]
    assert ["1", "GM201", "print-call", "likely", "safe", "fix"] in rows
    assert len(rows) == 3
    assert sum(int(row[0]) for row in rows) == len(project.findings())


def test_statistics_of_nothing(project: Project) -> None:
    project.write("clean.py", CLEAN)
    assert project.run("lint", "--statistics", "-q").out == ""


def test_show_files(project: Project) -> None:
    for name in ("b.py", "a/x.py", "a/y.pyi", "a/readme.md", ".hidden/z.py", "skipped/w.py"):
        project.write(name, CLEAN)
    project.configure('exclude = ["skipped"]')
    outcome = project.run("lint", "--show-files")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines == ["a/x.py", "a/y.pyi", "b.py"]


def test_show_files_that_are_missing(project: Project) -> None:
    outcome = project.run("lint", "--show-files", "missing.py")
    assert outcome.code == 2
    assert outcome.errors == ["missing.py: error: no such file or directory"]


def test_show_settings(project: Project) -> None:
    source = project.configure('select = ["GM2"]\nconfidence = "definite"')
    outcome = project.run("lint", "--show-settings", "--ignore", "GM203")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[0] == f"# {source}"
    shown = dict(line.split(" = ", 1) for line in outcome.lines[1:])
    assert list(shown) == [key.name for key in KEYS]
    assert shown["select"] == "('GM2',)"
    assert shown["ignore"] == "('GM203',)"
    assert shown["confidence"] == "'definite'"


def test_show_settings_without_a_file(project: Project) -> None:
    outcome = project.run("lint", "--show-settings", "--isolated")
    assert outcome.lines[0] == "# no configuration file"


def test_show_settings_that_are_wrong(project: Project) -> None:
    source = project.configure("select = 1")
    outcome = project.run("lint", "--show-settings")
    assert outcome.code == 2
    assert outcome.errors == [f"error: {source}: [tool.graphmend] select must be a list of strings"]


def test_linting_changes_no_file(project: Project) -> None:
    project.write("model.py")
    project.write("broken.py", "def f(:\n")
    before = project.files()
    project.run("lint")
    assert project.files() == before
    assert not list(Path(project.folder).rglob("*.pyc"))
