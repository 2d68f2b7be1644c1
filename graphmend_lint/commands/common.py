"""What the commands share: their options, settings, errors and output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmend_lint.config import ConfigError, Settings, load_file, load_settings
from graphmend_lint.discovery import is_excluded
from graphmend_lint.report import text

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult, Report
    from graphmend_lint.findings import Finding
    from graphmend_lint.fixing import Lint

STDIN = Path("-")
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Failure(click.ClickException):
    """An error of one line; exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"error: {self.message}", err=True)


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that `lint` and `fix` share."""
    options = [
        click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
        click.option("--select", multiple=True, metavar="RULES", help="Rules to run: codes, prefixes or names."),
        click.option("--ignore", multiple=True, metavar="RULES", help="Rules to leave out."),
        click.option(
            "--confidence",
            type=click.Choice(["definite", "likely"]),
            help="Lowest confidence to report. Default: likely, or what the configuration says.",
        ),
        click.option("--exclude", multiple=True, metavar="PATTERN", help="More files to skip, in gitignore syntax."),
        click.option("--force-exclude", is_flag=True, help="Skip excluded files also where they are named."),
        click.option(
            "--report-unused-suppressions",
            is_flag=True,
            help="Report comments that silence rules which have nothing to say (GM001).",
        ),
        click.option("--config", type=click.Path(path_type=Path), help="Read [tool.graphmend] from this file."),
        click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
        click.option("--stdin-filename", type=click.Path(path_type=Path), help="Path to assume for `-`."),
        click.option("-j", "--jobs", type=click.IntRange(1), help="Processes to use. Default: one per core."),
        click.option("--no-cache", is_flag=True, help="Neither read nor write the cache."),
        click.option(
            "--cache-dir",
            type=click.Path(path_type=Path),
            help="Where the cache is. Default: GRAPHMEND_CACHE_DIR, or the user's cache folder.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="No summary and no progress bar."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def lint_all(paths: Sequence[Path], settings_of: Callable[[Path], Settings], common: dict[str, Any]) -> Report:
    from graphmend_lint import engine

    with one_line_errors():
        if is_stdin(paths):
            return _lint_stdin(settings_of, common)
        with _progress(common["quiet"]) as start:
            return engine.lint_paths(
                wanted_paths(paths, settings_of, common),
                settings_of=settings_of,
                jobs=common["jobs"],
                cache_folder=cache_folder(common),
                start=start,
            )


def _lint_stdin(settings_of: Callable[[Path], Settings], common: dict[str, Any]) -> Report:
    from graphmend_lint import engine
    from graphmend_lint.analysis.source import SourceError

    path = common["stdin_filename"] or Path("<stdin>")
    lint = linter_of(path, settings_of, common)
    source = sys.stdin.buffer.read()
    try:
        result = engine.FileResult(path, tuple(lint(source, path, settings_of(path))))
    except SourceError as error:
        result = engine.FileResult(path, error=error.message)
    return engine.Report([result], {str(path): source})


def linter_of(path: Path, settings_of: Callable[[Path], Settings], common: dict[str, Any]) -> Lint:
    """Lints sources in the context of the project around `path`."""
    from graphmend_lint import engine

    engine.check_rules(settings_of(path))
    project = engine.project_around(path, settings_of, cache_folder(common))

    def lint(source: bytes, path: Path, settings: Settings) -> list[Finding]:
        return engine.lint_source(source, path, settings=settings, project=project)

    return lint


def wanted_paths(
    paths: Sequence[Path], settings_of: Callable[[Path], Settings], common: dict[str, Any]
) -> Sequence[Path]:
    """The paths without the excluded files among them, where that was asked for."""
    if not common["force_exclude"]:
        return paths
    return [path for path in paths if path.is_dir() or not is_excluded(path, settings_of(path))]


def is_stdin(paths: Sequence[Path]) -> bool:
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("`-` stands alone: other paths would not be read")
    return STDIN in paths


def settings_for(common: dict[str, Any]) -> Callable[[Path], Settings]:
    """How a path gets its settings, with what the command line changes in them."""
    from graphmend_lint import engine

    with one_line_errors():
        given = load_file(common["config"]) if common["config"] else None
        for option in ("select", "ignore"):
            engine.check_names(f"--{option}", _split(common[option]))

    def settings_of(path: Path) -> Settings:
        found = given or (Settings() if common["isolated"] else load_settings(path))
        changes: dict[str, Any] = {}
        if common["select"]:
            changes["select"] = _split(common["select"])
        if common["ignore"]:
            changes["ignore"] = (*found.ignore, *_split(common["ignore"]))
        if common["exclude"]:
            changes["exclude"] = (*found.exclude, *common["exclude"])
            changes["root"] = found.root or Path.cwd()
        if common["report_unused_suppressions"]:
            changes["report_unused_suppressions"] = True
        if common["confidence"]:
            changes["confidence"] = common["confidence"]
        return replace(found, **changes) if changes else found

    return settings_of


def _split(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def cache_folder(common: dict[str, Any]) -> Path | None:
    from graphmend_lint.cache import default_folder

    return None if common["no_cache"] else common["cache_dir"] or default_folder()


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of the user's making into one line and exit code 2."""
    from graphmend_lint import registry

    try:
        yield
    except (ConfigError, registry.UnknownRule, registry.RulesMissing) as error:
        raise Failure(str(error)) from error


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int], Callable[[int], None]]]:
    """A bar on stderr, on a terminal only, for trees that take more than a moment."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("linting"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def start(total: int) -> Callable[[int], None]:
            task = bar.add_task("lint", total=total, visible=total > 200)
            return lambda done: bar.advance(task, done)

        yield start


def say_errors(errors: Sequence[FileResult]) -> None:
    for result in errors:
        click.echo(text.error_line(result, Path.cwd()), err=True)


def write_lines(lines: Sequence[str], output_file: Path | None) -> None:
    content = "".join(f"{line}\n" for line in lines)
    if output_file is None:
        click.echo(content, nl=False)
        return
    try:
        output_file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{output_file}: {error.strerror}") from error
