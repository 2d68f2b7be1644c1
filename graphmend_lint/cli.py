"""The command `graphmend`.

Exit codes of every command: 0 nothing found (or proven), 1 findings (or not proven), 2 something could not be done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmend_lint import __version__
from graphmend_lint.config import KEYS, ConfigError, Settings, load_file, load_settings
from graphmend_lint.report import text

if TYPE_CHECKING:
    from graphmend_lint.engine import FileResult, Report
    from graphmend_lint.findings import Finding
    from graphmend_lint.fixing import FixResult, Lint
    from graphmend_lint.verify.command import Request

STDIN = Path("-")


class Failure(click.ClickException):
    """An error of one line; exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"error: {self.message}", err=True)


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="graphmend")
def main() -> None:
    """Find, fix and verify PyTorch 2 graph breaks.

    \b
    Examples:
      graphmend lint src/                        what breaks the graph, and why
      graphmend fix --diff src/                  what would change
      graphmend fix src/                         change it
      graphmend verify mymodels.bert:build       prove it, on this machine
      graphmend rule GM202                       what a rule is about
    """


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
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


# -- lint ------------------------------------------------------------------------------------------------------------


@main.command(context_settings=CONTEXT)
@_common
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
    settings_of = _settings_of(common)
    if show_settings:
        with _errors():
            _show_settings(settings_of(paths[0]))
        return
    if show_files:
        _show_files(paths, settings_of)
        return
    report = _lint(paths, settings_of, common)
    findings = report.findings
    if statistics:
        lines = text.statistics(findings)
    elif output_format == "json":
        lines = [json.dumps([f.to_json() for f in findings], indent=2)]
    else:
        lines = [text.line(f, Path.cwd()) for f in findings]
    _write(lines, output_file)
    _say_errors(report.errors)
    if not common["quiet"] and (output_format == "text" or output_file):
        click.echo(text.summary(findings, len(report.results), len(report.errors)), err=output_format == "json")
    sys.exit(2 if report.errors else 1 if findings and not exit_zero else 0)


def _lint(paths: Sequence[Path], settings_of: Callable[[Path], Settings], common: dict[str, Any]) -> Report:
    from graphmend_lint import engine

    with _errors():
        if _is_stdin(paths):
            return engine.Report([_lint_stdin(settings_of, common)])
        with _progress(common["quiet"]) as start:
            return engine.lint_paths(
                paths,
                settings_of=settings_of,
                jobs=common["jobs"],
                cache_folder=_cache_folder(common),
                start=start,
            )


def _lint_stdin(settings_of: Callable[[Path], Settings], common: dict[str, Any]) -> FileResult:
    from graphmend_lint import engine
    from graphmend_lint.analysis.source import SourceError

    path = common["stdin_filename"] or Path("<stdin>")
    lint = _linter_of(path, settings_of, common)
    try:
        found = lint(sys.stdin.buffer.read(), path, settings_of(path))
    except SourceError as error:
        return engine.FileResult(path, error=error.message)
    return engine.FileResult(path, tuple(found))


def _linter_of(path: Path, settings_of: Callable[[Path], Settings], common: dict[str, Any]) -> Lint:
    """Lints sources in the context of the project around `path`."""
    from graphmend_lint import engine

    engine.check_rules(settings_of(path))
    project = engine.project_around(path, settings_of, _cache_folder(common))

    def lint(source: bytes, path: Path, settings: Settings) -> list[Finding]:
        return engine.lint_source(source, path, settings=settings, project=project)

    return lint


def _is_stdin(paths: Sequence[Path]) -> bool:
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("`-` stands alone: other paths would not be read")
    return STDIN in paths


def _show_settings(settings: Settings) -> None:
    click.echo(f"# {settings.source or 'no configuration file'}")
    for key in KEYS:
        click.echo(f"{key.name} = {getattr(settings, key.attribute)!r}")


def _show_files(paths: Sequence[Path], settings_of: Callable[[Path], Settings]) -> None:
    from graphmend_lint import engine

    with _errors():
        files, missing = engine.collect(paths, settings_of)
    for path in files:
        click.echo(text.shown_path(path, Path.cwd()))
    _say_errors(missing)
    if missing:
        sys.exit(2)


# -- fix -------------------------------------------------------------------------------------------------------------


@main.command(context_settings=CONTEXT)
@_common
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
    base_settings = _settings_of(common)

    def settings_of(path: Path) -> Settings:
        found = base_settings(path)
        return replace(found, unsafe_fixes=True) if unsafe_fixes else found

    if _is_stdin(paths):
        sys.exit(_fix_stdin(settings_of, common, diff))
    report = _lint(paths or (Path(),), settings_of, common)
    outcomes, failed = _fix_files(report, settings_of, common, write=not diff)
    changed = [path for path, outcome in outcomes.items() if outcome.changed]
    left = [f for f in report.findings if Path(f.path) not in outcomes]
    left += [f for outcome in outcomes.values() for f in outcome.remaining]
    applied = [f for outcome in outcomes.values() for f in outcome.applied]
    if not diff:
        _write([text.line(f, Path.cwd()) for f in sorted(left, key=lambda f: f.sort_key)], None)
    errors = [*report.errors, *failed]
    _say_errors(errors)
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
    with _errors():
        for path, outcome in engine.fix_paths(sorted(wanted), settings_of, common["jobs"], _cache_folder(common)):
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
    with _errors():
        try:
            lint = _linter_of(path, settings_of, common)
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


# -- verify ----------------------------------------------------------------------------------------------------------


@main.command(context_settings=CONTEXT)
@click.argument("target", required=False)
@click.option(
    "--fix-path",
    "fix_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Fix these files. Default: those that the target's calls execute.",
)
@click.option("--backend", help="Backend of torch.compile. Default: eager, where outputs must agree bit for bit.")
@click.option("--mode", help="Mode of torch.compile, such as reduce-overhead.")
@click.option("--dynamic/--static", default=None, help="Compile for dynamic shapes, or for each shape.")
@click.option("--device", help="cpu, cuda or auto (the GPU where torch sees one).")
@click.option("--dtype", help="Convert the model and its floating inputs, for example float16.")
@click.option("--calls", type=click.IntRange(1), help="How often the sequence of input sets is run.")
@click.option("--train", is_flag=True, help="Leave the model in training mode.")
@click.option("--grad", is_flag=True, help="Compare gradients too.")
@click.option("--tolerance", type=float, help="Absolute and relative, for compiled outputs.")
@click.option("--timeout", type=float, help="Seconds for each arm.")
@click.option("--seed", type=int, help="Seed of every call.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that rest on something not proven.")
@click.option("--passes", type=click.IntRange(0), help="Timed passes over the input sets; 0: no timing. Default: 10.")
@click.option("--require-both-sides", is_flag=True, help="Not proven where a side of a rewritten test was never taken.")
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the report as a page."
)
def verify(
    target: str | None, fix_paths: tuple[Path, ...], as_json: bool, html: Path | None, unsafe_fixes: bool, **given: Any
) -> None:
    """Prove that the fixes change nothing but the breaks: run TARGET as it is and fixed, and compare.

    TARGET is `module:callable` or `file.py:callable`, or the name of a [[tool.graphmend.verify]] entry. The
    callable takes no arguments and returns a model (or function) and a list of input sets: `(model, [(x,),
    {"x": x}, ...])`. Without TARGET, all entries are run.

    This runs your code, in subprocesses. Your files are not changed. Needs torch (`pip install
    "graphmend-lint[verify]"`). Exit code 0: proven; 1: a difference, or no fewer breaks; 2: could not run.

    \b
    Examples:
      graphmend verify mymodels.bert:build
      graphmend verify examples/demo.py:build --backend inductor --grad
      graphmend verify long-inputs --html report.html
    """
    from graphmend_lint.verify import command

    # A flag that was not given is False; `--static` is False too, and means it.
    options = {name: v for name, v in given.items() if v is not None and (v is not False or name == "dynamic")}
    with _errors():
        settings = load_settings(Path.cwd())
    entries = _verify_entries(target, settings)
    requests = [_verify_request(entry, fix_paths, unsafe_fixes, options) for entry in entries]
    with _errors():
        code = command.run_all(requests, json_output=as_json, html=html)
    sys.exit(code)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A table of the configuration, and the folder that it counts from."""

    table: dict[str, Any]
    folder: Path


def _verify_entries(target: str | None, settings: Settings) -> list[_Entry]:
    """The tables of the configuration that are asked for; for a target that none of them names, one of its own."""
    entries = [_Entry(table, settings.root or Path.cwd()) for table in settings.verify]
    if target is None:
        if not entries:
            raise click.UsageError("no TARGET given, and no [[tool.graphmend.verify]] in pyproject.toml")
        return entries
    named = [entry for entry in entries if entry.table.get("name") == target]
    if not named and ":" not in target and entries:
        names = ", ".join(entry.table["name"] for entry in entries if "name" in entry.table) or "none has a name"
        raise click.UsageError(f"TARGET {target!r} is no module:callable and no name of an entry ({names})")
    return named or [_Entry({"target": target}, Path.cwd())]


def _verify_request(entry: _Entry, fix_paths: tuple[Path, ...], unsafe_fixes: bool, options: dict[str, Any]) -> Request:
    from graphmend_lint.verify import Options
    from graphmend_lint.verify.command import Request
    from graphmend_lint.verify.linter import LinterFixes

    table = entry.table
    others = ("target", "name", "fix-path", "unsafe-fixes")
    own = {name.replace("-", "_"): value for name, value in table.items() if name not in others}
    return Request(
        table["target"],
        LinterFixes(unsafe_fixes=unsafe_fixes or table.get("unsafe-fixes", False)),
        entry.folder,
        fix_paths or tuple(entry.folder / path for path in table.get("fix-path", ())),
        Options(**{**own, **options}),
    )


# -- rules -----------------------------------------------------------------------------------------------------------


@main.command(context_settings=CONTEXT)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def rules(as_json: bool) -> None:
    """List the rules."""
    from graphmend_lint import registry

    with _errors():
        cards = registry.all_rules()
    if as_json:
        click.echo(json.dumps([_card(card) for card in cards], indent=2))
        return
    for card in cards:
        click.echo(f"{card.code}  {card.name:16} {card.fix:7} {', '.join(card.breaks):16} {card.title}")


@main.command(context_settings=CONTEXT)
@click.argument("name", metavar="RULE")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def rule(name: str, as_json: bool) -> None:
    """Explain a rule, given by code or name."""
    from graphmend_lint import registry

    with _errors():
        card = registry.find(name)
    click.echo(json.dumps(_card(card), indent=2) if as_json else registry.document(card))


def _card(card: Any) -> dict[str, Any]:
    from graphmend_lint import registry

    return {
        "code": card.code,
        "name": card.name,
        "title": card.title,
        "category": card.category,
        "gb": list(card.breaks),
        "fix": card.fix,
        "torch": card.torch,
        "since": card.since,
        "tags": sorted(card.tags),
        "options": [{"name": o.name, "type": o.type, "default": o.default, "doc": o.doc} for o in card.options],
        "doc": registry.document(card),
    }


# -- vendor ----------------------------------------------------------------------------------------------------------


@main.command(context_settings=CONTEXT)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite a file that is not an older copy.")
def vendor(path: Path, force: bool) -> None:
    """Copy the runtime module into your package, so that fixed code needs only torch.

    PATH is a package folder or a .py file. Set `runtime-module` in [tool.graphmend] to the copy's module name, and
    fixes import from it.

    \b
    Example:
      graphmend vendor src/mypackage
    """
    from graphmend_lint.vendor import vendor as copy

    try:
        click.echo(f"wrote {copy(path, force=force)}")
    except (OSError, ValueError) as error:
        raise Failure(str(error)) from error


# -- shared ----------------------------------------------------------------------------------------------------------


def _settings_of(common: dict[str, Any]) -> Callable[[Path], Settings]:
    """How a path gets its settings, with what the command line changes in them."""
    from graphmend_lint import engine

    with _errors():
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
        if common["confidence"]:
            changes["confidence"] = common["confidence"]
        return replace(found, **changes) if changes else found

    return settings_of


def _split(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _cache_folder(common: dict[str, Any]) -> Path | None:
    from graphmend_lint.cache import default_folder

    return None if common["no_cache"] else common["cache_dir"] or default_folder()


@contextmanager
def _errors() -> Iterator[None]:
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


def _say_errors(errors: Sequence[FileResult]) -> None:
    for result in errors:
        click.echo(text.error_line(result, Path.cwd()), err=True)


def _write(lines: Sequence[str], output_file: Path | None) -> None:
    content = "".join(f"{line}\n" for line in lines)
    if output_file is None:
        click.echo(content, nl=False)
        return
    try:
        output_file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{output_file}: {error.strerror}") from error
