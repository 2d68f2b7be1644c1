"""The output formats, read by the programs and the rules of those they are made for."""

from __future__ import annotations

import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml

from graphmend_lint import registry
from graphmend_lint.report.formats import FORMATS
from tests.cli.project import CLEAN, MODEL, Outcome, Project

DATA = Path(__file__).parent / "data"
#: What the readers of these formats show at the lines of a change, wherever the command was run.
HOSTED = ("sarif", "github", "gitlab", "junit")
LIKELY = MODEL.replace("nn.Module", "object")


@cache
def sarif_schema() -> Any:
    return json.loads((DATA / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def sarif(outcome: Outcome) -> Any:
    """The run of a log that the official schema accepts."""
    log = outcome.json
    jsonschema.Draft4Validator(sarif_schema(), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(log)
    assert len(log["runs"]) == 1
    return log["runs"][0]


def junit(outcome: Outcome) -> list[Any]:
    return list(JUnitXml.fromstring(outcome.raw))


def lint(project: Project, name: str, *args: str) -> Outcome:
    return project.run("lint", "--output-format", name, *args)


def region(result: Any) -> dict[str, int]:
    found: dict[str, int] = result["locations"][0]["physicalLocation"]["region"]
    return found


def uri(result: Any) -> Any:
    return result["locations"][0]["physicalLocation"]["artifactLocation"]


# --- all formats


@pytest.mark.parametrize("name", FORMATS)
def test_a_finding_and_a_file_that_is_not_read(project: Project, name: str) -> None:
    project.write("model.py")
    project.write("broken.py", "def f(:\n")
    outcome = lint(project, name)
    assert outcome.code == 2
    assert "GM201" in outcome.out
    assert outcome.errors[0] == "broken.py: error: line 1: invalid syntax"
    assert ("invalid syntax" in outcome.out) == (name in HOSTED)


@pytest.mark.parametrize("name", FORMATS)
def test_output_file_holds_what_would_be_printed(project: Project, name: str) -> None:
    project.write("model.py")
    printed = lint(project, name, "-q")
    written = lint(project, name, "-q", "--output-file", "found")
    assert (printed.code, written.code, written.out) == (1, 1, "")
    assert project.read("found") == printed.out


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_found(project: Project, name: str) -> None:
    project.write("clean.py", CLEAN)
    outcome = lint(project, name, "-q")
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize("name", FORMATS)
def test_stdin(project: Project, name: str) -> None:
    outcome = project.run("lint", "-q", "--output-format", name, "-", "--stdin-filename", "new.py", stdin=MODEL)
    assert (outcome.code, outcome.err) == (1, "")
    assert "new.py" in outcome.out


@pytest.mark.parametrize("name", HOSTED)
def test_paths_are_seen_from_the_top_of_the_repository(
    project: Project, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    project.write("src/pkg/model.py")
    monkeypatch.chdir(project.folder / "src")
    outcome = lint(project, name, "pkg")
    assert "src/pkg/model.py" in outcome.out
    assert "../" not in outcome.out


@pytest.mark.parametrize("name", [n for n in FORMATS if n not in ("text", "json")])
def test_statistics_of_other_formats(project: Project, name: str) -> None:
    outcome = lint(project, name, "--statistics")
    assert outcome.code == 2
    assert "--statistics goes with the formats text and json" in outcome.err


def test_statistics_as_json(project: Project) -> None:
    project.write("a.py")
    project.write("b.py")
    project.write("c.py", LIKELY)
    outcome = lint(project, "json", "--statistics")
    assert outcome.code == 1
    first = {"count": 2, "code": "GM201", "rule": "print-call", "confidence": "definite", "outcome": "safe fix"}
    assert outcome.json == [first, {**first, "count": 1, "confidence": "likely"}]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "json"])
def test_likely_findings_say_so(project: Project, name: str) -> None:
    project.write("model.py", LIKELY)
    assert "(likely: no known entry reaches this function)" in lint(project, name).out
    project.write("model.py", MODEL)
    assert "(likely" not in lint(project, name).out


# --- SARIF


def test_the_sarif_schema_is_the_published_one() -> None:
    content = (DATA / "sarif-schema-2.1.0.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() in (DATA / "README.md").read_text(encoding="utf-8")


def test_the_sarif_schema_refuses() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": "2.1.0", "runs": [{"tool": {}}]}, sarif_schema(), jsonschema.Draft4Validator)


def test_sarif(project: Project) -> None:
    project.write("a b/model.py")
    project.write("other.py", LIKELY)
    run = sarif(lint(project, "sarif"))
    definite, likely = run["results"]
    assert (definite["level"], likely["level"]) == ("warning", "note")
    assert definite["ruleId"] == "GM201"
    assert run["tool"]["driver"]["rules"][definite["ruleIndex"]]["id"] == "GM201"
    assert region(definite) == {"startLine": 7, "startColumn": 9, "endLine": 7, "endColumn": 32}
    assert uri(definite) == {"uri": "a%20b/model.py", "uriBaseId": "%SRCROOT%"}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{project.folder.as_uri()}/"
    assert definite["properties"]["graphBreaks"] == ["GB0059"]
    assert definite["properties"]["entry"] == "`Head.forward`"
    assert run["invocations"][0] == {"executionSuccessful": True, "toolExecutionNotifications": []}


def test_sarif_describes_every_rule(project: Project) -> None:
    project.write("clean.py", CLEAN)
    run = sarif(lint(project, "sarif"))
    described = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert run["results"] == []
    assert list(described) == [card.code for card in registry.described()]
    for card in registry.described():
        rule = described[card.code]
        assert rule["help"]["markdown"] == registry.document(card)
        assert set(card.breaks) <= set(rule["properties"]["tags"])
        assert rule["properties"]["graphBreaks"] == list(card.breaks)
        if card.breaks:
            assert rule["helpUri"].endswith(f"/{card.breaks[0].lower()}.html")


def test_sarif_of_a_file_that_is_not_read(project: Project) -> None:
    project.write("broken.py", "def f(:\n")
    (invocation,) = sarif(lint(project, "sarif"))["invocations"]
    assert not invocation["executionSuccessful"]
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "line 1: invalid syntax"
    assert uri(notification)["uri"] == "broken.py"


def test_sarif_of_a_file_outside(project: Project) -> None:
    outside = project.write("../outside/model.py").resolve()
    (result,) = sarif(lint(project, "sarif", str(outside)))["results"]
    assert uri(result) == {"uri": outside.as_uri()}


@pytest.mark.parametrize(("text", "width"), [("ab", 2), ("\N{GREEK SMALL LETTER ALPHA}b", 2), ("\N{FIRE}b", 3)])
def test_sarif_columns_are_utf_16(project: Project, text: str, width: int) -> None:
    source = MODEL.replace('print("shape", x.shape)', f'y = "{text}"; print("{text}", x.shape)')
    project.write("model.py", source)
    from_disk = sarif(lint(project, "sarif"))
    given = project.run("lint", "--output-format", "sarif", "-", "--stdin-filename", "gone.py", stdin=source.encode())
    for run in (from_disk, sarif(given)):
        assert run["columnKind"] == "utf16CodeUnits"
        found = region(run["results"][0])
        assert found["startColumn"] == 9 + len('y = ""; ') + width
        assert found["endColumn"] == found["startColumn"] + len('print("", x.shape)') + width


# --- fingerprints


def sarif_ids(project: Project) -> list[str]:
    return [r["partialFingerprints"]["graphmendFinding/v1"] for r in sarif(lint(project, "sarif"))["results"]]


def gitlab_ids(project: Project) -> list[str]:
    return [entry["fingerprint"] for entry in lint(project, "gitlab").json]


@pytest.mark.parametrize("ids", [sarif_ids, gitlab_ids])
def test_fingerprints(project: Project, ids: Any) -> None:
    twice = MODEL.replace("        print", '        print("shape", x.shape)\n        print')
    project.write("model.py", twice)
    project.write("other.py", twice)
    before = ids(project)
    assert len(set(before)) == 4, "the same text twice, in two files"
    project.write("model.py", "# a line\n" + twice.replace("x.shape", "x.shape  ").replace('"', "'"))
    assert ids(project) == before, "other lines, spaces and quotes"
    project.write("model.py", twice.replace("shape", "size"))
    assert not set(ids(project)) & set(before[:2])
    assert ids(project)[2:] == before[2:]


# --- GitHub


def test_github(project: Project) -> None:
    project.write("model.py")
    project.write("other.py", LIKELY)
    definite, likely = lint(project, "github").lines
    assert definite.startswith("::warning file=model.py,line=7,endLine=7,col=9,endColumn=32,title=GM201 print-call::`")
    assert likely.startswith("::notice file=other.py,line=7,")


def test_github_omits_columns_of_several_lines(project: Project) -> None:
    project.write("model.py", MODEL.replace('"shape", ', '\n            "shape", '))
    (line,) = lint(project, "github").lines
    assert line.startswith("::warning file=model.py,line=7,endLine=8,title=")


def test_github_escapes(project: Project) -> None:
    name = "a,b:c%d\n::error::e.py"
    project.write(name, MODEL.replace("x.shape", "x.shape % 100"))
    project.write(f"not {name}", "def f(:\n")
    error, finding = lint(project, "github").lines
    assert finding.startswith("::warning file=a%2Cb%3Ac%25d%0A%3A%3Aerror%3A%3Ae.py,line=7,")
    assert error == "::error file=not a%2Cb%3Ac%25d%0A%3A%3Aerror%3A%3Ae.py,title=not linted::line 1: invalid syntax"


# --- GitLab


def test_gitlab(project: Project) -> None:
    project.write("model.py")
    project.write("other.py", LIKELY)
    project.write("broken.py", "def f(:\n")
    broken, definite, likely = lint(project, "gitlab").json
    assert [entry["severity"] for entry in (broken, definite, likely)] == ["blocker", "major", "minor"]
    assert definite["check_name"] == "GM201"
    assert definite["location"] == {"path": "model.py", "lines": {"begin": 7, "end": 7}}
    assert broken["description"] == "not linted: line 1: invalid syntax"
    for entry in (broken, definite, likely):
        assert {"description", "check_name", "fingerprint", "severity", "location"} <= set(entry)


# --- JUnit


def test_junit(project: Project) -> None:
    project.write("model.py", MODEL.replace("        print", '        print("<&>")\n        print'))
    project.write("broken.py", "def f(:\n")
    broken, model = junit(lint(project, "junit"))
    assert (broken.name, broken.tests, broken.errors, broken.failures) == ("broken.py", 1, 1, 0)
    assert (model.name, model.tests, model.errors, model.failures) == ("model.py", 2, 0, 2)
    ((error,),) = (case.result for case in broken)
    assert isinstance(error, Error)
    assert error.message == "line 1: invalid syntax"
    first, second = model
    assert (first.name, second.name) == ("GM201 print-call 7:9", "GM201 print-call 8:9")
    assert isinstance(first.result[0], Failure)
    assert first.result[0].type == "GM201"
    assert first.classname == "model.py"


def test_junit_without_findings_has_a_test_that_passed(project: Project) -> None:
    project.write("clean.py", CLEAN)
    (suite,) = junit(lint(project, "junit"))
    ((case),) = suite
    assert case.is_passed
    assert (suite.tests, suite.failures, suite.errors) == (1, 0, 0)


def test_junit_of_names_that_xml_cannot_hold(project: Project) -> None:
    project.write("a\x0cb.py", "def f(:\n")
    (suite,) = junit(lint(project, "junit"))
    assert suite.name == "a\ufffdb.py"
