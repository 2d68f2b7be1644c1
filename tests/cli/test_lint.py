"""`graphmend lint`: exit codes, what is printed where, and the fields of a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphmend_lint.findings import Reason
from tests.cli.project import CLEAN, DECLINED, MODEL, Project, compiled


def test_clean(project: Project) -> None:
    project.write("clean.py", CLEAN)
    outcome = project.run("lint")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines == ["No graph breaks found in 1 file."]


def test_findings(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("lint", ".")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.lines == [
        "model.py:7:9: GM201 [*] `print(...)` ends the graph (GB0059); defer it until the graph runs",
        "Found 1 graph break. 1 fixable with `graphmend fix`.",
    ]


def test_a_finding_without_a_fix_says_why(project: Project) -> None:
    project.write("model.py", DECLINED)
    outcome = project.run("lint")
    assert outcome.code == 1
    assert outcome.lines[0].startswith("model.py:7:9: GM201 `print(...)` ends the graph (GB0059); not fixed: ")
    assert outcome.lines[1] == "Found 1 graph break."


def test_a_file_that_cannot_be_read_is_not_clean(project: Project) -> None:
    project.write("clean.py", CLEAN)
    project.write("broken.py", "def f(:\n")
    outcome = project.run("lint")
    assert outcome.code == 2
    assert outcome.errors == ["broken.py: error: line 1: invalid syntax"]
    assert outcome.lines == ["1 file could not be linted. No graph breaks found in 1 file."]


def test_an_error_outweighs_findings(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("lint", "model.py", "missing.py", "--exit-zero")
    assert outcome.code == 2
    assert outcome.errors == ["missing.py: error: no such file or directory"]
    assert outcome.lines[0].startswith("model.py:7:9: GM201 ")


def test_quiet(project: Project) -> None:
    project.write("model.py")
    project.write("clean.py", CLEAN)
    assert len(project.run("lint", "-q").lines) == 1
    assert project.run("lint", "-q", "clean.py").out == ""


def test_exit_zero(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("lint", "--exit-zero")
    assert outcome.code == 0
    assert outcome.lines[0].startswith("model.py:7:9: GM201 ")


@pytest.mark.parametrize(
    "args", [["--no-such-option"], ["--jobs", "0"], ["--output-format", "xml"], ["--confidence", "sure"]]
)
def test_wrong_usage(project: Project, args: list[str]) -> None:
    outcome = project.run("lint", *args)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Error: " in outcome.err


def test_unknown_command(project: Project) -> None:
    assert project.run("lnt").code == 2


def test_paths_are_shown_from_here_where_they_are_below(project: Project) -> None:
    project.write("package/model.py")
    outside = project.folder.parent / "outside.py"
    outside.write_text(MODEL)
    lines = project.run("lint", project.folder / "package", "../outside.py").lines
    assert [line.partition(":7:9: ")[0] for line in lines[:2]] == [str(outside), "package/model.py"]


def test_each_file_once(project: Project) -> None:
    project.write("package/model.py")
    paths: list[str | Path] = [
        "package/model.py",
        "package",
        "./package/../package/model.py",
        project.folder / "package" / "model.py",
    ]
    assert project.lines_of(*paths) == [7]


# --- the fields of a finding


def test_json(project: Project) -> None:
    path = project.write("model.py")
    outcome = project.run("lint", "--output-format", "json")
    assert outcome.code == 1
    assert outcome.err == ""
    assert outcome.json == [
        {
            "code": "GM201",
            "rule": "print-call",
            "path": str(path),
            "line": 7,
            "column": 9,
            "end_line": 7,
            "end_column": 32,
            "message": "`print(...)` ends the graph (GB0059); defer it until the graph runs",
            "confidence": "definite",
            "fix": "safe",
            "decline": None,
            "gb": ["GB0059"],
            "entry": "`Head.forward`",
        }
    ]


def test_json_of_nothing(project: Project) -> None:
    project.write("clean.py", CLEAN)
    outcome = project.run("lint", "--output-format", "json")
    assert (outcome.code, outcome.json) == (0, [])


def test_json_beside_errors(project: Project) -> None:
    project.write("model.py")
    project.write("broken.py", "def f(:\n")
    outcome = project.run("lint", "--output-format", "json", "-q")
    assert outcome.code == 2
    assert len(outcome.json) == 1
    assert outcome.errors == ["broken.py: error: line 1: invalid syntax"]


TYPES: dict[str, Any] = {
    "code": str,
    "rule": str,
    "path": str,
    "line": int,
    "column": int,
    "end_line": int,
    "end_column": int,
    "message": str,
    "confidence": str,
    "fix": str,
    "decline": (dict, type(None)),
    "gb": list,
    "entry": (str, type(None)),
}


def test_every_finding_has_every_field(project: Project) -> None:
    project.write(
        "mixed.py",
        compiled(
            'print("safe", x.shape)',
            'logger.info("declined %s", x.sum().item() * 2)',
            'warnings.warn("safe")',
            "if torch.isnan(x).any():",
            '    logger.warning("alarm")',
        )
        + '\n\ndef helper(x: torch.Tensor) -> torch.Tensor:\n    print("likely")\n    return x.relu()\n',
    )
    found = project.findings()
    assert [f["code"] for f in found] == ["GM201", "GM202", "GM203", "GM202", "GM201"]
    for finding in found:
        assert list(finding) == list(TYPES)
        for field, wanted in TYPES.items():
            assert isinstance(finding[field], wanted), (field, finding[field])
        assert (finding["decline"] is None) == (finding["fix"] != "none")
        assert finding["confidence"] in ("definite", "likely")
        assert all(number.startswith("GB") for number in finding["gb"])
        assert "\n" not in finding["message"]
    declined = found[1]["decline"]
    assert set(declined) == {"reason", "text"}
    assert declined["reason"] in {reason.value for reason in Reason}
    assert found[3]["gb"] == ["GB0291", "GB0170"]
    assert [f["entry"] is None for f in found] == [False, False, False, False, True]
    assert [f["confidence"] for f in found] == ["definite"] * 4 + ["likely"]


def test_columns_count_characters(project: Project) -> None:
    project.write("model.py", compiled('s = "né 漢字 🙂"; print("ü", s)'))
    (finding,) = project.findings()
    text = '    s = "né 漢字 🙂"; print("ü", s)'
    assert (finding["line"], finding["column"]) == (9, text.index("print") + 1)
    assert (finding["end_line"], finding["end_column"]) == (9, len(text) + 1)


def test_columns_of_a_call_over_several_lines(project: Project) -> None:
    project.write("model.py", compiled("print(", '    "é",', "  )"))
    (finding,) = project.findings()
    assert [finding[k] for k in ("line", "column", "end_line", "end_column")] == [9, 5, 11, 8]


def test_lines_after_odd_line_ends(project: Project) -> None:
    """A form feed or a Unicode separator ends no line."""
    project.write("model.py", compiled('s = "a\x0cb\x1cc\u2028d\x85e"', 'print("x")'))
    assert project.lines_of() == [10]


# --- order


def test_order_is_by_path_line_and_column(project: Project) -> None:
    project.write("b.py", compiled('print("2"); print("1")', 'logger.info("x")'))
    project.write("a/z.py")
    project.write("a.py")
    places = [(f["path"], f["line"], f["column"]) for f in project.findings("b.py", "a.py", "a")]
    assert places == sorted(places)
    assert len(places) == 5
