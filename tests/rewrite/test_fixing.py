"""Fixing a source to a fixpoint, and a file on disk."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_lint import config, fixing
from graphmend_lint.findings import Edit, Finding, Plan, Span

PATH = Path("model.py")
SETTINGS = config.Settings()


def finding(span: Span, edits: Sequence[Edit], path: Path = PATH) -> Finding:
    plan = Plan(span, tuple(edits), ("deferred",))
    return Finding("GM201", "print-call", str(path), span, "a print", "definite", "safe", None, (), None, plan)


def prints(source: bytes, path: Path, settings: config.Settings) -> list[Finding]:
    """One finding for each line that is `print(...)`."""
    found = []
    for number, line in enumerate(source.decode().split("\n"), 1):
        text = line.rstrip("\r")
        start = len(text) - len(text.lstrip())
        if text.lstrip().startswith("print("):
            edit = Edit("wrap", Span(number, start, number, start + 5), "deferred")
            found.append(finding(Span(number, start, number, len(text)), [edit], path=path))
    return found


def one_at_a_time(source: bytes, path: Path, settings: config.Settings) -> list[Finding]:
    """As `prints`, with a plan for the first of them only."""
    found = prints(source, path, settings)
    return [found[0], *(replace(f, plan=None) for f in found[1:])] if found else []


def fix(source: str, lint: fixing.Lint = prints, settings: config.Settings = SETTINGS) -> fixing.FixResult:
    return fixing.fix_source(source.encode(), PATH, settings=settings, lint=lint)


def test_to_a_fixpoint() -> None:
    result = fix("print(1)\nx = 1\nprint(2)\n")
    assert result.source.decode().endswith("\ndeferred(print)(1)\nx = 1\ndeferred(print)(2)\n")
    assert result.changed
    assert [f.span.line for f in result.applied] == [1, 3]
    assert not result.remaining
    assert not result.problems
    assert result.rounds == 1
    assert not fixing.fix_source(result.source, PATH, settings=SETTINGS, lint=prints).changed


def test_nothing_to_fix() -> None:
    result = fix("x = 1\n")
    assert result == fixing.FixResult(b"x = 1\n", False)


def test_findings_that_only_a_fix_brings_to_light_are_fixed_too() -> None:
    result = fix("print(1)\nprint(2)\nprint(3)\n", one_at_a_time)
    assert result.rounds == 3
    assert result.source.count(b"deferred(print)") == 3


def test_unsafe_fixes_need_a_word() -> None:
    def unsafe(source: bytes, path: Path, settings: config.Settings) -> list[Finding]:
        return [replace(f, fix="unsafe") for f in prints(source, path, settings)]

    left = fix("print(1)\n", unsafe)
    assert not left.changed
    assert len(left.remaining) == 1
    assert fix("print(1)\n", unsafe, replace(SETTINGS, unsafe_fixes=True)).changed


def test_a_fix_that_does_not_silence_its_finding_is_reverted() -> None:
    def deaf(source: bytes, path: Path, settings: config.Settings) -> list[Finding]:
        return prints(source.replace(b"deferred(print)", b"          print"), path, settings)

    result = fix("print(1)\n", deaf)
    assert result.source == b"print(1)\n"
    assert not result.changed
    assert not result.applied
    assert len(result.remaining) == 1
    assert result.problems == ("model.py: a fix of GM201 did not silence it",)


def test_fixes_that_never_rest_are_reverted() -> None:
    source = "print(1)\n" * (fixing.MAX_ROUNDS + 1)
    result = fix(source, one_at_a_time)
    assert result.source == source.encode()
    assert not result.applied
    assert result.problems == ("model.py: still not at rest after 10 rounds of fixes",)


def test_a_wrong_plan_is_a_problem_and_a_decline() -> None:
    def wrong(source: bytes, path: Path, settings: config.Settings) -> list[Finding]:
        return [finding(Span(1, 0, 1, 1), [Edit("wrap", Span(1, 0, 1, 1), "deferred")])]

    result = fix("x = 1\n", wrong)
    assert not result.changed
    assert result.problems == (
        ("model.py:1: the fix of GM201 was not applied: the rule's matcher does not match the node at the finding"),
    )
    assert [(f.fix, f.plan, f.decline and f.decline.reason) for f in result.remaining] == [
        ("none", None, "not-applied")
    ]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("try:\n    print(1)\nexcept E :\n    pass\n", "a space is lost"),
        ("print(1)\n# end\\\n", "the last line end is lost"),
        ("print(1)\r", "the last line end is lost"),
    ],
)
def test_a_source_that_libcst_prints_otherwise_is_left_alone(source: str, why: str) -> None:
    result = fix(source)
    assert not result.changed, why
    assert not result.problems
    assert [f.decline and f.decline.reason for f in result.remaining] == ["source-not-exact"]


def test_a_source_that_libcst_cannot_parse_is_a_problem() -> None:
    result = fix("(x): int = 1\nprint(1)\n")
    assert not result.changed
    assert result.problems[0].startswith("model.py: LibCST cannot parse it: ")


def test_brackets_that_would_end_the_process() -> None:
    result = fix("print(1)\nx = " + "(" * 5000 + ")" * 5000 + "\n")
    assert result.problems == ("model.py: nested too deeply to be fixed",)


def test_deep_source() -> None:
    deep = "x = " + " + ".join(["a"] * 1200) + "\n"
    assert fix(f"{deep}print(1)\n").source.decode().endswith(f"{deep}deferred(print)(1)\n")


def test_a_failed_check_leaves_the_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphmend_lint.rewrite import check

    def fail(*_: object) -> None:
        raise check.NotFaithful("a comment would be lost")

    monkeypatch.setattr(check, "check_edits", fail)
    result = fix("print(1)\n")
    assert result.source == b"print(1)\n"
    assert result.problems == ("model.py: fixes given up: a comment would be lost",)


# --- files


def test_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"print(1)\r\n")
    path.chmod(0o754)
    link = tmp_path / "link.py"
    link.symlink_to(path)
    result = fixing.fix_file(link, settings=SETTINGS, lint=prints)
    assert (
        path.read_bytes()
        == result.source
        == b"from graphmend_lint.runtime import deferred\r\n\r\ndeferred(print)(1)\r\n"
    )
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.py", "model.py"]


def test_file_is_not_written_without_need(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("x = 1\n")
    os.utime(path, (1, 1))
    assert not fixing.fix_file(path, settings=SETTINGS, lint=prints).changed
    assert path.stat().st_mtime == 1
    path.write_text("print(1)\n")
    assert fixing.fix_file(path, settings=SETTINGS, lint=prints, write=False).changed
    assert path.read_text() == "print(1)\n"


def test_file_that_changed_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("print(1)\n")

    def slow(source: bytes, at: Path, settings: config.Settings) -> list[Finding]:
        path.write_text("print(2)\n")
        return prints(source, at, settings)

    with pytest.raises(fixing.FileChanged):
        fixing.fix_file(path, settings=SETTINGS, lint=slow)
    assert path.read_text() == "print(2)\n"


def test_failed_write_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.py"
    path.write_text("print(1)\n")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        fixing.fix_file(path, settings=SETTINGS, lint=prints)
    assert [p.name for p in tmp_path.iterdir()] == ["model.py"]
    assert path.read_text() == "print(1)\n"


def test_many_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    paths[0].write_text("print(1)\n")
    paths[1].write_text("x = 1\n")
    results = fixing.fix_files(paths, SETTINGS, prints)
    assert [results[path].changed for path in paths] == [True, False]
    assert paths[0].read_text() == "print(1)\n"


# --- diffs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\n", b"a\nc\n"),
        (b"a\nb", b"a\nb\n"),
        (b"a\nb\n", b"a\nb"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        (b"a\x0cb\nc\n", b"a\x0cb\nd"),
        ("é\n".encode(), "è\n".encode()),
        (b"", b"a\n"),
    ],
)
def test_diff_is_one_that_patch_takes(before: bytes, after: bytes, tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_bytes(before)
    diff = fixing.unified_diff(before, after, "f.py")
    subprocess.run(["git", "apply", "-p0", "--unidiff-zero"], input=diff, cwd=tmp_path, check=True)
    assert path.read_bytes() == after


def test_diff_of_equal_files() -> None:
    assert fixing.unified_diff(b"a\n", b"a\n", "f.py") == b""
