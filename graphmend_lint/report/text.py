"""Findings as lines of text, and the closing summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

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
    likely = " (likely: no known entry reaches this function)" if finding.entry is None else ""
    place = f"{shown_path(finding.path, base)}:{finding.span.line}:{finding.span.column + 1}"
    return f"{place}: {finding.code} {_MARKS[finding.fix]}{finding.message}{likely}"


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
    text = f"{unread}Found {len(findings)} graph {_plural(len(findings), 'break')}."
    if safe:
        text += f" {safe} fixable with `graphmend fix`."
    if unsafe:
        text += f" {unsafe} more with `--unsafe-fixes`."
    return text


def statistics(findings: Iterable[Finding]) -> list[str]:
    """Counts by rule, confidence, and fix or reason for none."""
    counts = Counter(
        (f.code, f.rule, f.confidence, f.decline.reason if f.decline else f"{f.fix} fix") for f in findings
    )
    return [
        f"{number:6} {code} {rule:14} {confidence:8} {outcome}"
        for (code, rule, confidence, outcome), number in sorted(counts.items(), key=lambda i: (-i[1], i[0]))
    ]


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"
