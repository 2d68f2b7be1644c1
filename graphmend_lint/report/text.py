"""Findings as lines of text, and the closing summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend_lint import unused_suppression

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult
    from graphmend_lint.findings import Finding


_MARKS = {"safe": "[*] ", "unsafe": "[-] ", "none": ""}


def shown_path(path: str | Path, base: Path) -> str:
    """A path as a person types it: relative to `base` where it lies below."""
    try:
        return str(Path(path).relative_to(base))
    except ValueError:
        return str(path)


def line(finding: Finding, base: Path) -> str:
    """`path:line:column: GM202 [*] message`; `[*]` has a safe fix, `[-]` an unsafe one."""
    place = f"{shown_path(finding.path, base)}:{finding.span.line}:{finding.span.column + 1}"
    return f"{place}: {finding.code} {_MARKS[finding.fix]}{message(finding)}"


def message(finding: Finding) -> str:
    """What a finding says, and how sure it is."""
    likely = " (likely: no known entry reaches this function)" if finding.confidence == "likely" else ""
    return f"{finding.message}{likely}"


def error_line(result: FileResult, base: Path) -> str:
    """`path: error: why`."""
    return f"{shown_path(result.path, base)}: error: {result.error}"


def summary(findings: Sequence[Finding], files: int, errors: int) -> str:
    """One or two lines that close a run."""
    unread = f"{errors} {_plural(errors, 'file')} could not be linted. " if errors else ""
    if not findings:
        checked = files - errors
        return f"{unread}No graph breaks found in {checked} {_plural(checked, 'file')}."
    safe = sum(f.fix == "safe" for f in findings)
    unsafe = sum(f.fix == "unsafe" for f in findings)
    idle = sum(f.code == unused_suppression.CODE for f in findings)
    breaks = len(findings) - idle
    found = [f"{breaks} graph {_plural(breaks, 'break')}"] if breaks else []
    found += [f"{idle} unused {_plural(idle, 'suppression')}"] if idle else []
    text = f"{unread}Found {' and '.join(found)}."
    if safe:
        text += f" {safe} fixable with `graphmend fix`."
    if unsafe:
        text += f" {unsafe} more with `--unsafe-fixes`."
    return text


def statistics(findings: Iterable[Finding]) -> list[str]:
    """Counts by rule, confidence, and fix or reason for none."""
    return [
        f"{row['count']:6} {row['code']} {row['rule']:14} {row['confidence']:8} {row['outcome']}"
        for row in counts(findings)
    ]


def counts(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The rows of `statistics`, the highest count first."""
    found = Counter((f.code, f.rule, f.confidence, f.decline.reason if f.decline else f"{f.fix} fix") for f in findings)
    return [
        {"count": number, "code": code, "rule": rule, "confidence": confidence, "outcome": outcome}
        for (code, rule, confidence, outcome), number in sorted(found.items(), key=lambda i: (-i[1], i[0]))
    ]


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {_plural(number, noun)}"


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"
