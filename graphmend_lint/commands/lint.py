"""`graphmend lint`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from graphmend_lint.commands.common import (
    CONTEXT,
    common_options,
    lint_all,
    one_line_errors,
    say_errors,
    settings_for,
    write_lines,
)
from graphmend_lint.config import KEYS, Settings
from graphmend_lint.report import text


@click.command(context_settings=CONTEXT)
@common_options
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write the findings here.")
@click.option("--statistics", is_flag=True, help="Counts by rule and outcome in place of findings.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are findings.")
@click.option("--show-files", is_flag=True, help="List the files that would be linted, and stop.")
@click.option("--show-settings", is_flag=True, help="Print the settings for the first path, and stop.")
def lint(
    paths: tuple[Path, ...],
    output_format: str,
    output_file: Path | None,
    statistics: bool,
    exit_zero: bool,
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
      git show HEAD:model.py | graphmend lint - --stdin-filename model.py
    """
    paths = paths or (Path(),)
    settings_of = settings_for(common)
    if show_settings:
        with one_line_errors():
            _show_settings(settings_of(paths[0]))
        return
    if show_files:
        _show_files(paths, settings_of)
        return
    report = lint_all(paths, settings_of, common)
    findings = report.findings
    if statistics:
        lines = text.statistics(findings)
    elif output_format == "json":
        lines = [json.dumps([f.to_json() for f in findings], indent=2)]
    else:
        lines = [text.line(f, Path.cwd()) for f in findings]
    write_lines(lines, output_file)
    say_errors(report.errors)
    if not common["quiet"] and (output_format == "text" or output_file):
        click.echo(text.summary(findings, len(report.results), len(report.errors)), err=output_format == "json")
    sys.exit(2 if report.errors else 1 if findings and not exit_zero else 0)


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
