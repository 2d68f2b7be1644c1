"""Which rule reports the line of a break, in the original files and in the fixed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from graphmend_lint.verify.verdict import Break, Capture, ChangedFile


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
            ChangedFile(str(path), len(self.applied[path]), tuple(sorted({fix.code for fix in self.applied[path]})))
            for path in self.changed
        )


def cover(capture: Capture, rules: Mapping[Path, Mapping[int, str]]) -> Capture:
    """The capture with each break's rule filled in."""
    return replace(capture, sites=tuple(_covered(site, rules) for site in capture.sites))


def _covered(site: Break, rules: Mapping[Path, Mapping[int, str]]) -> Break:
    return replace(site, rule=rules.get(Path(site.file).resolve(), {}).get(site.line))


def _lines_of(findings: tuple[Any, ...]) -> dict[int, str]:
    return {line: finding.code for finding in findings for line in range(finding.span.line, finding.span.end_line + 1)}


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
