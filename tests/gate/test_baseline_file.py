"""Baselines that are damaged, foreign, merged or of another version: one line that names the file, and exit code 2."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from graphmend_lint import registry
from graphmend_lint.gate.baseline import Baseline, BaselineError, Entry, read, write
from tests.cli.project import MODEL, Project

BASELINE = "graphmend-baseline.json"
LINE = '        print("shape", x.shape)\n'


@pytest.fixture
def known(project: Project) -> Project:
    project.write("model.py")
    assert project.run("check", "--update-baseline").code == 0
    return project


def change(project: Project, **values: Any) -> None:
    """Change the only entry of the baseline."""
    data = json.loads(project.read(BASELINE))
    data["findings"][0].update(values)
    project.write(BASELINE, json.dumps(data))


def entry_without(name: str) -> str:
    entry = {"path": "a.py", "scope": "f", "code": "GM201", "content": "00", "count": 1, "text": "f()"}
    del entry[name]
    return json.dumps({"tool": "graphmend", "version": 1, "findings": [entry]})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty, so no baseline; remove it, and --update-baseline writes a new one"),
        (" \r\n", "empty, so no baseline"),
        ("{", "not a baseline: not JSON (Expecting property name"),
        (b"\xff\xfe\x00", "not a baseline: not JSON ('utf-8' codec"),
        ("[" * 100_000, "not a baseline: not JSON ("),
        ("<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n", "not a baseline: it has conflict markers"),
        ("[]", 'not a baseline of graphmend: it has no "tool": "graphmend"'),
        ("null", "not a baseline of graphmend"),
        ('{"name": "package", "version": "1.0.0"}', "not a baseline of graphmend"),
        ('{"tool": "eslint", "version": 1}', "not a baseline of graphmend"),
        ('{"tool": "graphmend"}', "not a baseline: its version is null"),
        ('{"tool": "graphmend", "version": "1"}', 'not a baseline: its version is "1"'),
        ('{"tool": "graphmend", "version": true}', "not a baseline: its version is true"),
        ('{"tool": "graphmend", "version": 0}', "not a baseline: its version is 0"),
        (
            '{"tool": "graphmend", "version": 2, "entries": "of another kind"}',
            "written by a newer graphmend (version 2; this one reads 1)",
        ),
        ('{"tool": "graphmend", "version": 1}', "not a baseline: `findings` is no list"),
        ('{"tool": "graphmend", "version": 1, "findings": {}}', "not a baseline: `findings` is no list"),
        ('{"tool": "graphmend", "version": 1, "findings": ["a.py"]}', "findings, entry 1: no object"),
        ('{"tool": "graphmend", "version": 1, "findings": [], "breaks": []}', "not a baseline: `breaks` is no object"),
        (
            '{"tool": "graphmend", "version": 1, "findings": [], "breaks": {"a:b": 1}}',
            "not a baseline: `breaks of a:b` is no list",
        ),
        *[
            (entry_without(name), f"findings, entry 1: `{name}` is no ")
            for name in ("path", "scope", "code", "content", "count", "text")
        ],
    ],
)
def test_what_is_no_baseline(project: Project, content: str | bytes, says: str) -> None:
    project.write("model.py")
    project.write(BASELINE, content)
    before = project.files()
    for option in ((), ("--update-baseline",), ("--prune-baseline",)):
        outcome = project.run("check", *option)
        assert (outcome.code, outcome.out) == (2, "")
        (line,) = outcome.errors
        assert line.startswith(f"error: {BASELINE}: {says}")
    assert project.files() == before, "what is not ours is not overwritten"


@pytest.mark.parametrize("count", [0, -1, 1.0, "1", True, None])
def test_a_count_that_is_none(known: Project, count: object) -> None:
    change(known, count=count)
    assert known.run("check").errors == [f"error: {BASELINE}: findings, entry 1: `count` is no number of findings"]


def test_a_flag_that_is_none(known: Project) -> None:
    change(known, likely="yes")
    assert known.run("check").errors == [f"error: {BASELINE}: findings, entry 1: `likely` is neither true nor false"]


def test_an_unknown_rule(known: Project) -> None:
    change(known, code="GM998")
    outcome = known.run("check")
    assert outcome.code == 2
    assert outcome.errors[0].startswith(f"error: {BASELINE}: findings, entry 1: unknown rule `GM998`")


def test_a_renamed_rule(known: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    change(known, code="GM298")
    monkeypatch.setattr(registry, "RETIRED", {"GM298": "GM299", "GM299": "GM201"})
    assert known.run("check").lines == ["No new graph breaks in 1 file (1 known)."]
    known.run("check", "--update-baseline")
    assert '"GM201"' in known.read(BASELINE)
    assert "GM298" not in known.read(BASELINE)


def test_a_rule_that_is_gone(known: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    change(known, code="GM298")
    monkeypatch.setattr(registry, "RETIRED", {"GM298": ""})
    outcome = known.run("check", "--select", "GM3")
    assert outcome.lines[1].startswith("1 entry of the baseline is fixed (model.py)")
    assert known.run("check").code == 1, "it explains no finding of another rule"


def test_codes_of_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RETIRED", {"GM298": "GM299", "GM299": "GM201", "GM297": ""})
    assert [registry.current_code(code) for code in ("GM201", "GM298", "GM299", "GM297")] == [
        "GM201",
        "GM201",
        "GM201",
        None,
    ]
    with pytest.raises(registry.UnknownRule):
        registry.current_code("GM298x")


def test_entries_twice(known: Project) -> None:
    """What a merge of two branches may leave: two lines for one finding are no leave to have two."""
    data = json.loads(known.read(BASELINE))
    data["findings"] *= 2
    known.write(BASELINE, json.dumps(data))
    assert known.run("check").lines == ["No new graph breaks in 1 file (1 known)."]
    known.write("model.py", MODEL.replace(LINE, LINE * 2))
    assert known.run("check").code == 1


def test_any_order_and_form(known: Project) -> None:
    data = json.loads(known.read(BASELINE))
    other = {**data["findings"][0], "path": "a.py", "later": ["versions", "may add keys"]}
    known.write(BASELINE, "\ufeff" + json.dumps({**data, "findings": [*data["findings"], other]}, indent=4))
    outcome = known.run("check")
    assert outcome.lines == [
        "No new graph breaks in 1 file (1 known).",
        "1 entry of the baseline is fixed (a.py); run --update-baseline.",
    ]


def test_a_folder_in_its_place(known: Project) -> None:
    (known.folder / BASELINE).unlink()
    (known.folder / BASELINE).mkdir()
    for option in ((), ("--update-baseline",)):
        outcome = known.run("check", *option)
        assert (outcome.code, outcome.errors) == (2, [f"error: {BASELINE}: is a directory"])


def test_strange_names_of_files(project: Project) -> None:
    names = ["with space.py", "größe.py", 'quo"te.py', "日本/モデル.py", os.fsdecode(b"bytes\xff.py")]
    for name in names:
        project.write(name)
    project.run("check", "--update-baseline")
    entries = json.loads(project.read(BASELINE))["findings"]
    assert sorted(entry["path"] for entry in entries) == sorted(names)
    assert "größe.py" in project.read(BASELINE)
    assert project.run("check").lines == [f"No new graph breaks in {len(names)} files ({len(names)} known)."]


# -- writing -----------------------------------------------------------------------------------------------------------

ENTRY = Entry("a.py", "f", "GM201", "00", "print()")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    place = tmp_path / "known.json"
    likely = Entry("b.py", "g", "GM201", "01", 'x"\\\u2028', count=3, likely=True)
    measured = Entry("c.py", "h", "GB0059, frame given up", "02", "y")
    whole = Baseline((ENTRY, likely), {"a:b": (measured,), "c:d": ()})
    write(place, whole, "known.json")
    assert read(place, "known.json") == whole
    assert stat.S_IMODE(place.stat().st_mode) == stat.S_IMODE(_fresh(tmp_path).stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh", "known.json"]


def _fresh(folder: Path) -> Path:
    place = folder / "fresh"
    place.write_text("")
    return place


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    place, link = tmp_path / "known.json", tmp_path / "link.json"
    place.write_text("{}")
    place.chmod(0o640)
    link.symlink_to(place)
    write(link, Baseline((ENTRY,)), "link.json")
    assert link.is_symlink()
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert read(place, "known.json") == Baseline((ENTRY,))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "known.json"
    write(place, Baseline((ENTRY,)), "known.json")
    before = place.read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BaselineError, match=r"^known\.json: not written: no space left on device$"):
        write(place, Baseline(), "known.json")
    assert place.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["known.json"]
