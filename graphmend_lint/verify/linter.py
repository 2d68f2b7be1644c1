"""The linter's fixes as the verification applies them: all of them, or chosen ones."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from graphmend_lint.config import Settings, load_settings
from graphmend_lint.findings import Finding
from graphmend_lint.fixing import FixResult
from graphmend_lint.verify.verdict import Cause

#: A fix is known by its rule and the line of its finding in the original source.
_Key = tuple[str, int]


class LinterFixes:
    """What the linter's fixes make of files. The settings are those of each file, or `settings` for all."""

    def __init__(self, *, unsafe_fixes: bool = False, settings: Settings | None = None) -> None:
        self._unsafe, self._settings = unsafe_fixes, settings

    def __call__(self, paths: list[Path]) -> dict[Path, FixResult]:
        from graphmend_lint import engine
        from graphmend_lint.cache import default_folder

        found = engine.fix_paths(paths, self._settings_of, cache_folder=default_folder())
        return {path: outcome for path, outcome in found if not isinstance(outcome, str)}

    def parts(self, path: Path) -> list[Cause]:
        """The fixes that a file gets, each of which can be chosen by itself."""
        chosen = _Chosen(path.read_bytes(), None)
        self._fixed(path, chosen)
        return [Cause(str(path), line, code, text) for (code, line), text in sorted(chosen.seen.items(), key=_by_line)]

    def only(self, path: Path, parts: Collection[Cause]) -> FixResult:
        """The file with the chosen fixes, and none of the others."""
        return self._fixed(path, _Chosen(path.read_bytes(), {(part.code or "", part.line) for part in parts}))

    def _fixed(self, path: Path, chosen: _Chosen) -> FixResult:
        from graphmend_lint import fixing

        return fixing.fix_source(chosen.original, path, settings=self._settings_of(path), lint=chosen.lint)

    def _settings_of(self, path: Path) -> Settings:
        found = self._settings or load_settings(path)
        return replace(found, unsafe_fixes=True) if self._unsafe else found


class _Chosen:
    """Lints as ever, but leaves out findings that are not wanted. `seen` are those with a fix."""

    def __init__(self, original: bytes, wanted: Collection[_Key] | None) -> None:
        self.original, self._wanted = original, wanted
        self.seen: dict[_Key, str] = {}

    def lint(self, source: bytes, path: Path, settings: Settings) -> list[Finding]:
        from graphmend_lint import engine

        place = _lines_before(self.original, source)
        kept = []
        for finding in engine.lint_source(source, path, settings=settings):
            key = finding.code, place(finding.span.line)
            if finding.plan is not None and (finding.fix == "safe" or settings.unsafe_fixes):
                self.seen.setdefault(key, finding.message)
            if self._wanted is None or key in self._wanted:
                kept.append(finding)
        return kept


def _by_line(entry: tuple[_Key, Any]) -> tuple[int, str]:
    (code, line), _ = entry
    return line, code


def _lines_before(original: bytes, current: bytes) -> Callable[[int], int]:
    """Where a line of a half-fixed source was in the original."""
    if original == current:
        return lambda line: line
    matcher = SequenceMatcher(None, original.splitlines(), current.splitlines(), autojunk=False)
    places: dict[int, int] = {}
    for _, start, end, now, until in matcher.get_opcodes():
        for line in range(now, until):
            places[line] = min(start + line - now, max(start, end - 1))
    return lambda line: places.get(line - 1, line - 1) + 1
