"""`graphmend fix`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmend_lint.commands.common import (
    CONTEXT,
    Failure,
    cache_folder,
    common_options,
    is_stdin,
    lint_all,
    linter_of,
    one_line_errors,
    say_errors,
    settings_for,
    write_lines,
)
from graphmend_lint.config import Settings
from graphmend_lint.report import text

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult, Report
    from graphmend_lint.fixing import FixResult


@click.command(context_settings=CONTEXT)
@common_options
@click.option("--diff", is_flag=True, help="Print what would change; write nothing.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that rest on something not proven.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 although findings are left.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 if a file was changed.")
def fix(
    paths: tuple[Path, ...],
    diff: bool,
    unsafe_fixes: bool,
    exit_zero: bool,
    exit_non_zero_on_fix: bool,
    **common: Any,
) -> None:
    """Apply the safe fixes in PATHS (files and folders; `-`: stdin to stdout; default: this folder).

    Each file is written whole or not at all. Exit code 0: nothing is left (with --diff: nothing would change); 1:
    findings are left (with --diff: something would change); 2: an error.

    \b
    Examples:
      graphmend fix --diff src/
      graphmend fix src/model.py
      graphmend fix - < model.py > fixed.py
    """
    base_settings = settings_for(common)

    def settings_of(path: Path) -> Settings:
        found = base_settings(path)
        return replace(found, unsafe_fixes=True) if unsafe_fixes else found

    if is_stdin(paths):
        sys.exit(_fix_stdin(settings_of, common, diff))
    report = lint_all(paths or (Path(),), settings_of, common)
    outcomes, failed = _fix_files(report, settings_of, common, write=not diff)
    changed = [path for path, outcome in outcomes.items() if outcome.changed]
    left = [f for f in report.findings if Path(f.path) not in outcomes]
    left += [f for outcome in outcomes.values() for f in outcome.remaining]
    applied = [f for outcome in outcomes.values() for f in outcome.applied]
    if not diff:
        write_lines([text.line(f, Path.cwd()) for f in sorted(left, key=lambda f: f.sort_key)], None)
    errors = [*report.errors, *failed]
    say_errors(errors)
    if not common["quiet"]:
        verb = "Would fix" if diff else "Fixed"
        click.echo(f"{verb} {len(applied)} in {len(changed)} files, {len(left)} left.", err=diff)
    if errors:
        sys.exit(2)
    if diff:
        sys.exit(1 if changed and not exit_zero else 0)
    sys.exit(1 if (left and not exit_zero) or (changed and exit_non_zero_on_fix) else 0)


def _fix_files(
    report: Report, settings_of: Callable[[Path], Settings], common: dict[str, Any], *, write: bool
) -> tuple[dict[Path, FixResult], list[FileResult]]:
    """Fix every file that has a fix; with `write` false, print the diffs."""
    from graphmend_lint import engine, fixing
    from graphmend_lint.analysis.source import reason

    wanted = {
        Path(f.path)
        for f in report.findings
        if f.fix == "safe" or (f.fix == "unsafe" and settings_of(Path(f.path)).unsafe_fixes)
    }
    outcomes: dict[Path, FixResult] = {}
    failed: list[FileResult] = []
    with one_line_errors():
        for path, outcome in engine.fix_paths(sorted(wanted), settings_of, common["jobs"], cache_folder(common)):
            if isinstance(outcome, str):
                failed.append(engine.FileResult(path, error=outcome))
                continue
            failed += [engine.FileResult(path, error=problem.removeprefix(f"{path}: ")) for problem in outcome.problems]
            if outcome.changed and write:
                try:
                    fixing.write_result(path, outcome)
                except OSError as error:
                    why = str(error) if isinstance(error, fixing.FileChanged) else reason(error)
                    failed.append(engine.FileResult(path, error=f"not written: {why.removeprefix(f'{path}: ')}"))
                    continue
            elif outcome.changed:
                shown = text.shown_path(path, Path.cwd())
                click.echo(fixing.unified_diff(outcome.before, outcome.source, shown), nl=False)
            outcomes[path] = outcome
    return outcomes, failed


def _fix_stdin(settings_of: Callable[[Path], Settings], common: dict[str, Any], diff: bool) -> int:
    from graphmend_lint import fixing
    from graphmend_lint.analysis.source import SourceError

    path = common["stdin_filename"] or Path("<stdin>")
    source = sys.stdin.buffer.read()
    with one_line_errors():
        try:
            lint = linter_of(path, settings_of, common)
            outcome = fixing.fix_source(source, path, settings=settings_of(path), lint=lint)
        except SourceError as error:
            if not diff:
                sys.stdout.buffer.write(source)
            raise Failure(str(error)) from error
    for problem in outcome.problems:
        click.echo(f"error: {problem}", err=True)
    if diff:
        click.echo(fixing.unified_diff(source, outcome.source, str(path)), nl=False)
        return 2 if outcome.problems else int(outcome.changed)
    sys.stdout.buffer.write(outcome.source)
    for finding in outcome.remaining:
        click.echo(text.line(finding, Path.cwd()), err=True)
    return 2 if outcome.problems else int(bool(outcome.remaining))
