"""Findings as JUnit XML, which most CI systems show as failed tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from graphmend_lint.report.place import Texts, relative
from graphmend_lint.report.text import message

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult
    from graphmend_lint.findings import Finding

#: What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def lines(findings: Sequence[Finding], errors: Sequence[FileResult], root: Path, texts: Texts) -> list[str]:
    """A suite for each file: a failure for a finding, an error where the file could not be linted.

    Where there is nothing to tell, one test that passed: many readers take a report without tests for a failure.
    """
    suites = {relative(result.path, root): [_error(result)] for result in errors}
    for finding in findings:
        suites.setdefault(relative(finding.path, root), []).append(_finding(finding))
    if not suites:
        suites["graphmend"] = [ET.Element("testcase", name="no graph breaks")]
    everything = [case for cases in suites.values() for case in cases]
    document = ET.Element("testsuites", {"name": "graphmend", **_counts(everything)})
    for name, cases in suites.items():
        suite = ET.SubElement(document, "testsuite", {"name": _clean(name), **_counts(cases)})
        for case in cases:
            case.set("classname", _clean(name))
            suite.append(case)
    ET.indent(document)
    text = ET.tostring(document, encoding="unicode")
    return ['<?xml version="1.0" encoding="utf-8"?>', *text.split("\n")]


def _counts(cases: Sequence[ET.Element]) -> dict[str, str]:
    failures = sum(case.find("failure") is not None for case in cases)
    errors = sum(case.find("error") is not None for case in cases)
    return {"tests": str(len(cases)), "failures": str(failures), "errors": str(errors)}


def _error(result: FileResult) -> ET.Element:
    case = ET.Element("testcase", name="not linted")
    ET.SubElement(case, "error", type="not-linted", message=_clean(result.error or ""))
    return case


def _finding(finding: Finding) -> ET.Element:
    line, column = finding.span.line, finding.span.column + 1
    case = ET.Element("testcase", name=f"{finding.code} {finding.rule} {line}:{column}", line=str(line))
    failure = ET.SubElement(case, "failure", type=finding.code, message=_clean(message(finding)))
    failure.text = _clean(f"line {line}, column {column}: {message(finding)}")
    return case


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
