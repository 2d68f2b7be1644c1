"""Findings as SARIF 2.1.0, which code scanning services and editors read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend_lint import __version__, registry
from graphmend_lint.report.place import Texts, address, fingerprints, relative
from graphmend_lint.report.text import message

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult
    from graphmend_lint.findings import Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_ROOT = "%SRCROOT%"
_LEVEL = {"definite": "warning", "likely": "note"}


def lines(findings: Sequence[Finding], errors: Sequence[FileResult], root: Path, texts: Texts) -> list[str]:
    """One log with one run. Every rule is described in it, whether it found something or not."""
    cards = registry.described()
    place = {card.code: index for index, card in enumerate(cards)}
    ids = fingerprints(findings, root, texts)
    run = {
        "tool": {
            "driver": {
                "name": "graphmend-lint",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(card) for card in cards],
            }
        },
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_ROOT: {"uri": f"{address(root.as_posix()).rstrip('/')}/"}},
        "invocations": [_invocation(errors, root)],
        "results": [
            _result(finding, place[finding.code], known, root, texts)
            for finding, known in zip(findings, ids, strict=True)
        ],
    }
    return [json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)]


def _rule(card: registry.RuleCard) -> dict[str, Any]:
    page = registry.document(card)
    described: dict[str, Any] = {
        "id": card.code,
        "name": card.class_name,
        "shortDescription": {"text": card.title},
        "fullDescription": {"text": card.section("What it does")},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": "warning"},
        "properties": {
            "tags": sorted({*card.tags, *card.breaks}),
            "category": card.category,
            "fix": card.fix,
            "graphBreaks": list(card.breaks),
            "precision": "high",
            "problem.severity": "warning",
        },
    }
    if card.breaks:
        described["helpUri"] = registry.break_page(card.breaks[0])
    return described


def _invocation(errors: Sequence[FileResult], root: Path) -> dict[str, Any]:
    return {
        "executionSuccessful": not errors,
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": result.error},
                "locations": [{"physicalLocation": {"artifactLocation": _artifact(result.path, root)}}],
            }
            for result in errors
        ],
    }


def _result(finding: Finding, index: int, fingerprint: str, root: Path, texts: Texts) -> dict[str, Any]:
    span = finding.span
    known = {
        "confidence": finding.confidence,
        "fix": finding.fix,
        "graphBreaks": list(finding.gb),
        "entry": finding.entry,
        "decline": finding.decline.reason if finding.decline else None,
    }
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.confidence],
        "message": {"text": message(finding)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(finding.path, root),
                    "region": {
                        "startLine": span.line,
                        "startColumn": texts.utf16(finding.path, span.line, span.column) + 1,
                        "endLine": span.end_line,
                        "endColumn": texts.utf16(finding.path, span.end_line, span.end_column) + 1,
                    },
                }
            }
        ],
        "partialFingerprints": {"graphmendFinding/v1": fingerprint},
        "properties": {name: value for name, value in known.items() if value is not None},
    }


def _artifact(path: str | Path, root: Path) -> dict[str, str]:
    shown = relative(path, root)
    return {"uri": address(shown)} if Path(shown).is_absolute() else {"uri": address(shown), "uriBaseId": _ROOT}
