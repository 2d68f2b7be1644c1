"""Findings as workflow commands of GitHub Actions, which shows them as annotations on the changed lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_lint.report.place import Texts, relative
from graphmend_lint.report.text import message

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult
    from graphmend_lint.findings import Finding


def lines(findings: Sequence[Finding], errors: Sequence[FileResult], root: Path, texts: Texts) -> list[str]:
    """An error for each file that could not be linted, a warning for a definite finding, a notice for a likely one."""
    return [*(_error(error, root) for error in errors), *(_finding(finding, root) for finding in findings)]


def _error(result: FileResult, root: Path) -> str:
    return _command("error", [("file", relative(result.path, root)), ("title", "not linted")], result.error or "")


def _finding(finding: Finding, root: Path) -> str:
    span = finding.span
    place: list[tuple[str, object]] = [
        ("file", relative(finding.path, root)),
        ("line", span.line),
        ("endLine", span.end_line),
    ]
    if span.line == span.end_line:  # columns of a range of lines are refused
        place += [("col", span.column + 1), ("endColumn", span.end_column + 1)]
    place.append(("title", f"{finding.code} {finding.rule}"))
    return _command("warning" if finding.confidence == "definite" else "notice", place, message(finding))


def _command(level: str, properties: Iterable[tuple[str, object]], text: str) -> str:
    shown = ",".join(f"{name}={_property(str(value))}" for name, value in properties)
    return f"::{level} {shown}::{_data(text)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
