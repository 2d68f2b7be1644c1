"""`graphmend check`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
    one_line_errors,
    say_errors,
    settings_for,
    write_lines,
)
from graphmend_lint.config import Settings
from graphmend_lint.report import formats, text

if TYPE_CHECKING:
    from graphmend_lint.engine import Report
    from graphmend_lint.gate.baseline import Baseline, Entry
    from graphmend_lint.gate.measured import Measurement
    from graphmend_lint.gate.verdict import Verdict
    from graphmend_lint.verify.verdict import Capture

_SettingsOf = Callable[[Path], Settings]


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the command: its baseline, where that stands, and whose configuration counts."""

    place: Path
    old: Baseline | None
    start: Path
    settings_of: _SettingsOf
    common: dict[str, Any]

    @property
    def shown(self) -> str:
        return text.shown_path(self.place, Path.cwd())

    @property
    def known(self) -> tuple[Entry, ...]:
        return self.old.findings if self.old else ()


@click.command(context_settings=CONTEXT)
@common_options
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The findings that are known. Default: graphmend-baseline.json beside pyproject.toml, or what that says.",
)
@click.option("--update-baseline", is_flag=True, help="Write down what is there now, new findings too; exit with 0.")
@click.option("--prune-baseline", is_flag=True, help="Drop entries that are fixed, and add nothing.")
@click.option(
    "--diff-base", metavar="REV", help="Fail only on lines that have changed since the branch left REV (git)."
)
@click.option(
    "--measure", is_flag=True, help="Also run the [[tool.graphmend.verify]] targets with `max-breaks`. Runs your code."
)
@click.option("--output-format", type=click.Choice(formats.FORMATS), default="text", show_default=True)
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write the new findings here.")
@click.option("--statistics", is_flag=True, help="Counts by rule and outcome in place of findings.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are new findings.")
def check(
    paths: tuple[Path, ...],
    baseline: Path | None,
    update_baseline: bool,
    prune_baseline: bool,
    diff_base: str | None,
    measure: bool,
    output_format: str,
    output_file: Path | None,
    statistics: bool,
    exit_zero: bool,
    **common: Any,
) -> None:
    """Report the NEW findings in PATHS: those that the committed baseline does not know.

    A finding is known by its function and by what stands there, not by its line: moved lines, a formatter and renamed
    files change nothing. Without --measure, your code is read, never run. Exit code 0: nothing new; 1: something new;
    2: an error, or a file that could not be read.

    \b
    Examples:
      graphmend check --update-baseline          once, then commit graphmend-baseline.json
      graphmend check                            fails on what is not in it
      graphmend check --diff-base origin/main    fails on changed lines only
      graphmend check --measure                  fails if a model breaks more often than allowed
    """
    writes = update_baseline or prune_baseline
    _refuse_what_makes_no_sense(paths, update_baseline, prune_baseline, diff_base, statistics, output_format)
    paths = paths or (Path(),)
    needed = prune_baseline or (baseline is not None and not update_baseline)
    run = _begin(paths, baseline, settings_for(common), common, must_be_there=needed)
    with _gate_errors():
        touched = _changes(run, paths, diff_base)
        report = lint_all(paths, run.settings_of, common)
        verdict = _judged(run, report, touched(report))
        measured, problems = _measured(run) if measure else ([], [])
        complete = not report.errors and not problems
        if writes and complete:
            _write(run, verdict, measured, adds=update_baseline)
    say_errors(report.errors)
    _say([f"error: {problem}" for problem in problems], quiet=False, err=True)
    if writes and not complete:
        raise Failure(f"{run.shown}: not written, since not everything could be {'measured' if problems else 'linted'}")
    if update_baseline:
        return
    if statistics:
        lines = _statistics(verdict, output_format)
    else:
        lines = formats.render(output_format, verdict.new, report.errors, Path.cwd(), report.given)
    write_lines(lines, output_file)
    prose = output_format == "text"
    for one in measured:
        _say(_in_words(one), quiet=common["quiet"] and not one.grew, err=not prose)
    if prose or output_file:
        _close(run, verdict, report, asked=diff_base is None and not writes)
    failed = bool(verdict.new) or any(one.grew for one in measured)
    sys.exit(int(failed and not exit_zero) if complete else 2)


def _refuse_what_makes_no_sense(
    paths: Sequence[Path], update: bool, prune: bool, diff_base: str | None, statistics: bool, output_format: str
) -> None:
    if statistics and output_format not in ("text", "json"):
        raise click.UsageError("--statistics goes with the formats text and json")
    if update and prune:
        raise click.UsageError("--update-baseline drops what is fixed as well: --prune-baseline is for doing only that")
    if diff_base is not None and update:
        raise click.UsageError("--update-baseline writes down everything, --diff-base looks at changed lines only")
    if is_stdin(paths) and (update or prune or diff_base is not None):
        raise click.UsageError("`-` is no file: a baseline and git know files")


def _begin(
    paths: Sequence[Path],
    given: Path | None,
    settings_of: _SettingsOf,
    common: dict[str, Any],
    *,
    must_be_there: bool,
) -> _Run:
    from graphmend_lint.gate.baseline import read
    from graphmend_lint.gate.place import baseline_place, start_folder

    with one_line_errors(), _gate_errors():
        start = Path.cwd() if is_stdin(paths) else start_folder(paths, settings_of)
        place = baseline_place(given, start, settings_of)
        old = read(place, text.shown_path(place, Path.cwd()))
    run = _Run(place, old, start, settings_of, common)
    if old is None and must_be_there:
        raise Failure(f"{run.shown}: no such file; --update-baseline makes one")
    return run


@contextmanager
def _gate_errors() -> Iterator[None]:
    """Turn what the gate cannot do into one line and exit code 2."""
    from graphmend_lint.analysis.source import SourceError
    from graphmend_lint.gate.baseline import BaselineError
    from graphmend_lint.gate.changed_lines import GitError
    from graphmend_lint.gate.measured import NotMeasured

    try:
        yield
    except GitError as error:
        raise Failure(f"--diff-base: {error}") from error
    except (BaselineError, NotMeasured, SourceError) as error:
        raise Failure(str(error)) from error


def _changes(run: _Run, paths: Sequence[Path], revision: str | None) -> Callable[[Report], Callable[[Any], bool]]:
    """What tells, for a report, which of its findings are on lines that have changed."""
    if revision is None:
        return lambda _: lambda _: True
    from graphmend_lint.gate.changed_lines import Repository

    repository = Repository.since(revision, run.start)

    def of_report(report: Report) -> Callable[[Any], bool]:
        changed = repository.changed_lines({Path(finding.path) for finding in report.findings})
        return lambda finding: changed.touch(Path(finding.path), finding.span)

    return of_report


def _judged(run: _Run, report: Report, touched: Callable[[Any], bool]) -> Verdict:
    from graphmend_lint.gate.identity import identify
    from graphmend_lint.gate.verdict import judge
    from graphmend_lint.parallel import cores

    jobs = run.common["jobs"] or cores()
    identities = identify(report.findings, report.given, cache_folder(run.common), jobs)
    return judge(report, identities, run.known, run.place.parent, run.settings_of, touched)


def _measured(run: _Run) -> tuple[list[Measurement], list[str]]:
    """What the targets with a limit were measured to do, and why others could not be."""
    from graphmend_lint.gate import measured
    from graphmend_lint.verify.launcher import Launcher

    with one_line_errors():
        settings = run.settings_of(run.start)
    tables = measured.targets(settings.verify)
    if not tables:
        raise click.UsageError("--measure: no [[tool.graphmend.verify]] entry in pyproject.toml has `max-breaks`")
    breaks = run.old.breaks if run.old else {}
    root = settings.root or run.start
    found, problems = [], []
    with Launcher() as launcher:
        for table in tables:
            name = measured.name_of_target(table)
            _say([f"measuring {name}"], quiet=run.common["quiet"], err=True)
            try:
                capture = measured.capture(table, root, launcher)
                one = measured.measurement(table, capture, breaks.get(name), run.place.parent)
                if one.grew:  # only then are lines named, and their rules: that may take linting an installed package
                    one = measured.measurement(table, _covered(run, capture), breaks.get(name), run.place.parent)
                found.append(one)
            except measured.NotMeasured as error:
                problems.append(str(error))
    return found, problems


def _covered(run: _Run, capture: Capture) -> Capture:
    """The capture with the rules that report its breaks."""
    from graphmend_lint.engine import lint_paths
    from graphmend_lint.verify.rules import Fixes, cover

    files = {place for site in capture.sites if (place := Path(site.file)).is_file()}
    report = lint_paths(
        sorted(files),
        settings_of=run.settings_of,
        jobs=run.common["jobs"],
        cache_folder=cache_folder(run.common),
    )
    remaining = {result.path.resolve(): result.findings for result in report.results}
    return cover(capture, Fixes({}, {}, {}, remaining).fixed_rules)


def _write(run: _Run, verdict: Verdict, measured: Sequence[Measurement], *, adds: bool) -> None:
    """Write the baseline; with `adds`, what is new goes into it."""
    from graphmend_lint.gate.baseline import Baseline, write
    from graphmend_lint.gate.report import accepted, written

    entries = verdict.present if adds else verdict.pruned
    breaks = dict(run.old.breaks if run.old else {})
    breaks |= {one.name: one.present if adds else one.pruned for one in measured if adds or one.known is not None}
    write(run.place, Baseline(entries, breaks), run.shown)
    lines = [written(run.shown, run.known, entries), *(accepted(one) for one in measured if adds)]
    _say(lines, quiet=run.common["quiet"], err=not adds)


def _in_words(measurement: Measurement) -> list[str]:
    from graphmend_lint.gate.report import measurement as in_words

    return in_words(measurement, Path.cwd())


def _statistics(verdict: Verdict, output_format: str) -> list[str]:
    if output_format == "json":
        return [json.dumps(text.counts(verdict.new), indent=2)]
    return text.statistics(verdict.new)


def _close(run: _Run, verdict: Verdict, report: Report, *, asked: bool) -> None:
    """The summary, and how to make a baseline where there is none and one was needed."""
    from graphmend_lint.gate.report import summary

    lines = summary(verdict, len(report.results), len(report.errors))
    if run.old is None and verdict.new and asked:
        lines.append(
            f"There is no baseline, so all of them count as new. To accept what is there and fail on what comes, run "
            f"`graphmend check --update-baseline` and commit {run.shown}."
        )
    _say(lines, quiet=run.common["quiet"], err=False)


def _say(lines: Sequence[str], *, quiet: bool, err: bool) -> None:
    if not quiet:
        for line in lines:
            click.echo(line, err=err)
