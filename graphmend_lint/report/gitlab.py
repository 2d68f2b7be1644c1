"""Findings as a Code Quality report of GitLab."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend_lint.report.place import Texts, fingerprints, relative
from graphmend_lint.report.text import message

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult
    from graphmend_lint.findings import Finding

_SEVERITY = {"definite": "major", "likely": "minor"}


def lines(findings: Sequence[Finding], errors: Sequence[FileResult], root: Path, texts: Texts) -> list[str]:
    """One JSON list. GitLab compares it by fingerprint with that of the target branch."""
    entries = [_error(error, root) for error in errors]
    ids = fingerprints(findings, root, texts)
    entries += [_finding(finding, root, known) for finding, known in zip(findings, ids, strict=True)]
    return [json.dumps(entries, indent=2)]


def _error(result: FileResult, root: Path) -> dict[str, Any]:
    path = relative(result.path, root)
    fingerprint = hashlib.sha256(f"{path}\0not-linted".encode(errors="surrogateescape")).hexdigest()[:32]
    return _entry("not-linted", f"not linted: {result.error}", "blocker", fingerprint, path, 1, 1)


def _finding(finding: Finding, root: Path, fingerprint: str) -> dict[str, Any]:
    path, span = relative(finding.path, root), finding.span
    severity = _SEVERITY[finding.confidence]
    return _entry(
        finding.code, f"{finding.code}: {message(finding)}", severity, fingerprint, path, span.line, span.end_line
    )


def _entry(
    check: str, description: str, severity: str, fingerprint: str, path: str, first: int, last: int
) -> dict[str, Any]:
    return {
        "type": "issue",
        "check_name": check,
        "description": description,
        "severity": severity,
        "categories": ["Performance"],
        "fingerprint": fingerprint,
        "location": {"path": path, "lines": {"begin": first, "end": last}},
    }
