"""Which rule reports the line of a break, in the original files and in the fixed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, unified_diff
from pathlib import Path
from typing import Any

from graphmend_lint.verify.verdict import Break, Capture, ChangedFile

# Kinds of edits that rewrite a predicate.
_PREDICATES = ("select", "choose", "when", "unless")


@dataclass(frozen=True, slots=True)
class Fixes:
    """What the fixing made of each file: `applied` was found in `before`, `remaining` in `after`."""

    before: Mapping[Path, bytes]
    after: Mapping[Path, bytes]
    applied: Mapping[Path, tuple[Any, ...]]
    remaining: Mapping[Path, tuple[Any, ...]]
    problems: tuple[str, ...] = ()

    @property
    def changed(self) -> dict[Path, bytes]:
        return {path: source for path, source in self.after.items() if source != self.before[path]}

    @property
    def fixed_rules(self) -> dict[Path, dict[int, str]]:
        """For each file, the code of the rule that reports each line."""
        return {path: _lines_of(found) for path, found in self.remaining.items()}

    @property
    def original_rules(self) -> dict[Path, dict[int, str]]:
        """The same for the original text, whose lines may have been elsewhere."""
        return {
            path: _moved(lines, self.after[path], self.before[path]) | _lines_of(self.applied[path])
            for path, lines in self.fixed_rules.items()
        }

    def changed_files(self) -> tuple[ChangedFile, ...]:
        return tuple(
            ChangedFile(
                str(path),
                len(self.applied[path]),
                tuple(sorted({fix.code for fix in self.applied[path]})),
                _diff(self.before[path], self.after[path]),
            )
            for path in self.changed
        )

    @property
    def watched(self) -> dict[str, list[dict[str, Any]]]:
        """For each file with rewritten predicates: the edits that rewrite them."""
        found = {path: _predicate_edits(findings) for path, findings in self.applied.items() if path in self.changed}
        return {str(path): edits for path, edits in found.items() if edits}

    def not_watched(self, seen: list[dict[str, Any]]) -> list[str]:
        """Rewritten predicates that are not among those seen: a fix of fixed code has no place in the original."""
        known = {(entry["path"], entry["line"]) for entry in seen}
        return [
            f"{path.name}:{edit['span'][0]}: a rewritten predicate was not watched"
            for path, findings in self.applied.items()
            for edit in _predicate_edits(findings)
            if not any((str(path), line) in known for line in range(edit["span"][0], edit["span"][2] + 1))
        ]


def _predicate_edits(findings: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The edits that rewrite a test, each once."""
    edits = [edit for finding in findings if finding.plan is not None for edit in finding.plan.edits]
    spans = dict.fromkeys(
        (edit.kind, (edit.span.line, edit.span.column, edit.span.end_line, edit.span.end_column))
        for edit in edits
        if edit.kind in _PREDICATES
    )
    return [{"kind": kind, "span": list(span)} for kind, span in spans]


def _diff(before: bytes, after: bytes) -> str:
    one, two = (source.decode("utf-8", "replace").splitlines() for source in (before, after))
    return "\n".join(unified_diff(one, two, "original", "fixed", lineterm=""))


def cover(capture: Capture, rules: Mapping[Path, Mapping[int, str]]) -> Capture:
    """The capture with each break's rule filled in."""
    return replace(capture, sites=tuple(_covered(site, rules) for site in capture.sites))


def _covered(site: Break, rules: Mapping[Path, Mapping[int, str]]) -> Break:
    return replace(site, rule=rules.get(Path(site.file).resolve(), {}).get(site.line))


def _lines_of(findings: tuple[Any, ...]) -> dict[int, str]:
    """The lines of findings, and those that their fixes edit elsewhere: the test around a message."""
    edited = [(edit.span, finding.code) for finding in findings if finding.plan for edit in finding.plan.edits]
    spans = (*edited, *((finding.span, finding.code) for finding in findings))
    return {line: code for span, code in spans for line in range(span.line, span.end_line + 1)}


def _moved(lines: dict[int, str], before: bytes, after: bytes) -> dict[int, str]:
    """The lines where the edits have moved them to; those that an edit changed are left out."""
    if not lines or before == after:
        return lines
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return {
        block.b + offset + 1: lines[block.a + offset + 1]
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
        if block.a + offset + 1 in lines
    }
