"""`graphmend lint`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmend_lint import unused_suppression
from graphmend_lint.commands.common import (
    CONTEXT,
    common_options,
    is_stdin,
    lint_all,
    one_line_errors,
    say_errors,
    settings_for,
    wanted_paths,
    write_lines,
)
from graphmend_lint.config import KEYS, Settings
from graphmend_lint.findings import Finding
from graphmend_lint.report import formats, text

if TYPE_CHECKING:
    from graphmend_lint.engine import Report


@click.command(context_settings=CONTEXT)
@common_options
@click.option("--output-format", type=click.Choice(formats.FORMATS), default="text", show_default=True)
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write the findings here.")
@click.option("--statistics", is_flag=True, help="Counts by rule and outcome in place of findings.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are findings.")
@click.option("--add-noqa", is_flag=True, help="Add `# noqa` comments that silence what is found, and stop.")
@click.option("--show-files", is_flag=True, help="List the files that would be linted, and stop.")
@click.option("--show-settings", is_flag=True, help="Print the settings for the first path, and stop.")
def lint(
    paths: tuple[Path, ...],
    output_format: str,
    output_file: Path | None,
    statistics: bool,
    exit_zero: bool,
    add_noqa: bool,
    show_files: bool,
    show_settings: bool,
    **common: Any,
) -> None:
    """Report what ends the graph in PATHS (files and folders; `-` is stdin; default: this folder).

    Reads code, never runs it. Exit code 0: nothing found; 1: findings; 2: an error, or a file that could not be read.

    \b
    Examples:
      graphmend lint
      graphmend lint --select GM2 --output-format json src/
      graphmend lint --output-format sarif --output-file graphmend.sarif src/
      git show HEAD:model.py | graphmend lint - --stdin-filename model.py
    """
    if statistics and output_format not in ("text", "json"):
        raise click.UsageError("--statistics goes with the formats text and json")
    paths = paths or (Path(),)
    settings_of = settings_for(common)
    if show_settings:
        with one_line_errors():
            _show_settings(settings_of(paths[0]))
        return
    if show_files:
        _show_files(wanted_paths(paths, settings_of, common), settings_of)
        return
    if add_noqa and is_stdin(paths):
        raise click.UsageError("--add-noqa changes files, not stdin")
    report = lint_all(paths, settings_of, common)
    findings = report.findings
    if add_noqa:
        sys.exit(_add_noqa(report, quiet=common["quiet"]))
    if statistics:
        lines = _statistics(findings, output_format)
    else:
        lines = formats.render(output_format, findings, report.errors, Path.cwd(), report.given)
    write_lines(lines, output_file)
    say_errors(report.errors)
    if not common["quiet"] and (output_format == "text" or output_file):
        click.echo(text.summary(findings, len(report.results), len(report.errors)), err=output_format != "text")
    sys.exit(2 if report.errors else 1 if findings and not exit_zero else 0)


def _statistics(findings: Sequence[Finding], output_format: str) -> list[str]:
    return [json.dumps(text.counts(findings), indent=2)] if output_format == "json" else text.statistics(findings)


def _add_noqa(report: Report, *, quiet: bool) -> int:
    """Silence what was found in the files themselves; the exit code."""
    from graphmend_lint import engine, noqa

    by_file: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.code != unused_suppression.CODE:
            by_file.setdefault(finding.path, []).append(finding)
    errors = list(report.errors)
    silenced = 0
    for path, findings in by_file.items():
        if problem := noqa.silence_file(Path(path), findings):
            errors.append(engine.FileResult(Path(path), error=f"not changed: {problem}"))
        else:
            silenced += len(findings)
    say_errors(errors)
    if not quiet:
        files = len(by_file) + len(report.errors) - len(errors)
        click.echo(f"Silenced {text.counted(silenced, 'finding')} in {text.counted(files, 'file')}.")
    return 2 if errors else 0


def _show_settings(settings: Settings) -> None:
    click.echo(f"# {settings.source or 'no configuration file'}")
    for key in KEYS:
        click.echo(f"{key.name} = {getattr(settings, key.attribute)!r}")


def _show_files(paths: Sequence[Path], settings_of: Callable[[Path], Settings]) -> None:
    from graphmend_lint import engine

    with one_line_errors():
        files, missing = engine.collect(paths, settings_of)
    for path in files:
        click.echo(text.shown_path(path, Path.cwd()))
    say_errors(missing)
    if missing:
        sys.exit(2)
