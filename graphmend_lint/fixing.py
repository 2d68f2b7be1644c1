"""Applying fixes: a file's source to a fixpoint, and a file on disk, written whole or not at all."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from graphmend_lint import noqa, registry, unused_suppression
from graphmend_lint.config import Settings
from graphmend_lint.findings import ADVICE, Decline, Finding, Reason

if TYPE_CHECKING:
    from graphmend_lint import rewrite

#: Rounds of lint and fix after which a file is given back as it was.
MAX_ROUNDS = 10

#: The reason of a decline that the rewrite makes: the plan does not go with the file as it is.
NOT_APPLIED = "not-applied"

#: `lint(source, path, settings)`: the findings in one file.
Lint = Callable[[bytes, Path, Settings], list[Finding]]


@dataclass(frozen=True, slots=True)
class FixResult:
    """What fixing made of a source.

    `applied` has the findings that were fixed, with the places they had in the round that fixed them;
    `remaining` those that the resulting source has; `problems` what went wrong on the linter's side, one
    line each; `before` is what was fixed.
    """

    source: bytes
    changed: bool
    applied: tuple[Finding, ...] = ()
    remaining: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()
    rounds: int = 0
    before: bytes = field(default=b"", compare=False, repr=False)


class FileChanged(OSError):
    """The file was written by another program while it was being fixed."""


def fix_source(source: bytes, path: Path, *, settings: Settings, lint: Lint | None = None) -> FixResult:
    """The source with all fixes that the settings allow, applied until there is nothing left to fix.

    If that takes more than `MAX_ROUNDS` rounds, or a check of a round fails, the source comes back
    unchanged and `problems` says so. Errors of `lint` (a file that does not parse) are the caller's.
    """
    return replace(_to_a_fixpoint(source, path, settings, lint or _lint), before=source)


def _to_a_fixpoint(source: bytes, path: Path, settings: Settings, lint: Lint) -> FixResult:
    findings = lint(source, path, settings)
    current = source
    applied: list[Finding] = []
    problems: list[str] = []
    left = findings
    for rounds in range(1, MAX_ROUNDS + 1):
        if not any(_is_wanted(finding, settings) for finding in left):
            return FixResult(current, current != source, tuple(applied), tuple(left), tuple(problems), rounds - 1)
        outcome = _fix_once(current, path, left, settings)
        problems += outcome.problems
        if outcome.failed:
            return _reverted(source, findings, problems, rounds)
        if not outcome.applied:
            return FixResult(
                current, current != source, tuple(applied), tuple(outcome.left), tuple(problems), rounds - 1
            )
        after = lint(outcome.source, path, settings)
        if loud := _still_reported(left, outcome.applied, after):
            return _reverted(source, findings, [*problems, f"{path}: a fix of {loud} did not silence it"], rounds)
        applied += outcome.applied
        current, left = outcome.source, after
    problems.append(f"{path}: still not at rest after {MAX_ROUNDS} rounds of fixes")
    return _reverted(source, findings, problems, MAX_ROUNDS)


def fix_file(path: Path, *, settings: Settings, lint: Lint | None = None, write: bool = True) -> FixResult:
    """The file fixed, and written if that changed it and `write` is true.

    Raises:
        OSError: it cannot be read or written, or changed on disk meanwhile (`FileChanged`).
    """
    result = fix_source(path.read_bytes(), path, settings=settings, lint=lint)
    if result.changed and write:
        write_result(path, result)
    return result


def write_result(path: Path, result: FixResult) -> None:
    """Write what fixing made of a file, if it is not there yet (by another link to the same file).

    Raises:
        OSError: it cannot be written, or changed on disk meanwhile (`FileChanged`).
    """
    current = path.read_bytes()
    if current == result.source:
        return
    if current != result.before:
        raise FileChanged(f"{path}: changed on disk while it was being fixed")
    write_whole(path, result.source)


def fix_files(paths: Iterable[Path], settings: Settings, lint: Lint | None = None) -> dict[Path, FixResult]:
    """The fixed source of each file; nothing is written."""
    return {path: fix_file(path, settings=settings, lint=lint, write=False) for path in paths}


def write_whole(path: Path, content: bytes) -> None:
    """Replace what a file (or the one it links to) holds: a reader sees the old or the new content."""
    target = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink()
        raise


def unified_diff(before: bytes, after: bytes, path: str) -> bytes:
    """A unified diff of two versions of a file for `patch -p0`, in the file's encoding; empty if equal."""
    # The tab tells `patch` where a name with spaces ends.
    name = os.fsencode(f"{path}\t" if " " in path else path)
    return b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        for line in difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), name, name)
    )


def _lines(source: bytes) -> list[bytes]:
    """The lines of a file, its own line ends included. Only a line feed ends one, as for `patch`."""
    parts = source.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


# --- one round


@dataclass(frozen=True, slots=True)
class _Round:
    """What one round made of a source; `left` are its findings, declined where the rewrite refused."""

    source: bytes
    applied: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()
    failed: bool = False


def _fix_once(source: bytes, path: Path, findings: list[Finding], settings: Settings) -> _Round:
    from graphmend_lint.rewrite.deep import with_deep_stack

    # First, in a round of their own: lines may go.
    removed = _remove(source, path, findings, settings)
    if removed.applied:
        return removed
    outcome = with_deep_stack(_rewrite, source, path, list(removed.left), settings)
    return replace(outcome, problems=(*removed.problems, *outcome.problems))


def _remove(source: bytes, path: Path, findings: list[Finding], settings: Settings) -> _Round:
    """Take the comments away that silence nothing."""
    idle = [f for f in findings if f.code == unused_suppression.CODE and _is_wanted(f, settings)]
    if not idle:
        return _Round(source, left=tuple(findings))
    edits = [edit for finding in idle if finding.plan for edit in finding.plan.edits]
    try:
        return _Round(noqa.removed(source, path, edits), tuple(idle), tuple(f for f in findings if f not in idle))
    except noqa.NotEdited as error:
        declines = dict.fromkeys(idle, Decline(NOT_APPLIED, str(error)))
        return _Round(source, (), tuple(_declined(findings, declines)), (f"{path}: comments left: {error}",))


def _rewrite(source: bytes, path: Path, findings: list[Finding], settings: Settings) -> _Round:
    # Imported here: reporting needs no LibCST.
    import libcst as cst

    from graphmend_lint import rewrite
    from graphmend_lint.rewrite.deep import MAX_BRACKETS, bracket_depth

    wanted = [finding for finding in findings if _is_wanted(finding, settings)]
    if bracket_depth(source.decode("latin-1")) > MAX_BRACKETS:
        return _Round(source, (), tuple(findings), (f"{path}: nested too deeply to be fixed",))
    try:
        module = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        return _Round(source, (), tuple(findings), (f"{path}: LibCST cannot parse it: {_first_line(error)}",))
    if module.bytes != source:
        advice = Decline(
            Reason.SOURCE_NOT_EXACT.value,
            f"the file would not print as it is; {ADVICE[Reason.SOURCE_NOT_EXACT]}",
        )
        return _Round(source, (), tuple(_declined(findings, dict.fromkeys(wanted, advice))))
    fixes = {finding: rewrite.Fix(finding.plan, _form(finding.code)) for finding in wanted if finding.plan}
    try:
        outcome = rewrite.apply(module, list(fixes.values()), settings.runtime_module, rewrite.Home.of(path))
    except Exception as error:  # a defect of ours must cost the fix, not the report
        return _Round(source, (), tuple(findings), (f"{path}: fixes given up: {_first_line(error)}",), failed=True)
    declines: dict[Finding, Decline] = {}
    problems: list[str] = []
    refusals = {id(fix): refusal for fix, refusal in outcome.refused}
    for finding, fix in fixes.items():
        if refusal := refusals.get(id(fix)):
            declines[finding] = Decline(NOT_APPLIED, str(refusal))
            if refusal.defect:
                place = f"{path}:{finding.span.line}"
                problems.append(f"{place}: the fix of {finding.code} was not applied: {refusal}")
    applied = tuple(finding for finding in fixes if finding not in declines)
    return _Round(outcome.module.bytes, applied, tuple(_declined(findings, declines)), tuple(problems))


def _lint(source: bytes, path: Path, settings: Settings) -> list[Finding]:
    from graphmend_lint import engine

    return engine.lint_source(source, path, settings=settings)


@cache
def _form(code: str) -> rewrite.Form:
    """The class of a rule, for its matcher and the form of its replacement."""
    return cast("rewrite.Form", registry.load(registry.find(code)))


def _is_wanted(finding: Finding, settings: Settings) -> bool:
    return finding.plan is not None and (finding.fix == "safe" or (finding.fix == "unsafe" and settings.unsafe_fixes))


def _declined(findings: Iterable[Finding], declines: dict[Finding, Decline]) -> Iterable[Finding]:
    for finding in findings:
        decline = declines.get(finding)
        yield finding if decline is None else replace(finding, plan=None, fix="none", decline=decline)


def _still_reported(before: Iterable[Finding], applied: Iterable[Finding], after: Iterable[Finding]) -> str | None:
    """The code of a rule that says of a place that was fixed what it said before.

    A fix may bring other findings of its rule to light: more is known of a selection than of two sides.
    """
    fixed = Counter(map(_subject, applied))
    known, left = Counter(map(_subject, before)), Counter(map(_subject, after))
    loud = [code for (code, what), count in fixed.items() if left[code, what] > known[code, what] - count]
    return min(loud, default=None)


def _subject(finding: Finding) -> tuple[str, str]:
    """What a finding is about: its rule, and its message up to what is said of the fix."""
    return finding.code, finding.message.partition(" ends the graph")[0]


def _reverted(source: bytes, findings: Iterable[Finding], problems: Iterable[str], rounds: int) -> FixResult:
    return FixResult(source, False, (), tuple(findings), tuple(problems), rounds)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
