"""`graphmend explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from graphmend_lint.commands.common import CONTEXT, Failure, cache_folder, one_line_errors, settings_for

#: What `lint` and `fix` can be told besides.
_DEFAULTS: dict[str, Any] = {
    "select": (),
    "ignore": (),
    "exclude": (),
    "confidence": None,
    "report_unused_suppressions": False,
}


@click.command(context_settings=CONTEXT)
@click.argument("place", metavar="FILE:LINE")
@click.option("--config", type=click.Path(path_type=Path), help="Read [tool.graphmend] from this file.")
@click.option("--isolated", is_flag=True, help="Ignore all configuration files.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option("--cache-dir", type=click.Path(path_type=Path), help="Where the cache is.")
def explain(place: str, **common: Any) -> None:
    """Tell why the line at FILE:LINE is flagged, or why it is not.

    Which entry reaches it and over which calls, what its operands hold, what the rules say, and why a fix is offered or
    not. A column, as `graphmend lint` prints one, may follow. Exit code 2: there is no such line, or the file cannot be
    read.

    \b
    Examples:
      graphmend explain src/model.py:42
    """
    from graphmend_lint import explain as logic
    from graphmend_lint.analysis.source import SourceError
    from graphmend_lint.report import explanation

    path, line = _parsed(place)
    settings_of = settings_for({**_DEFAULTS, **common})
    with one_line_errors():
        try:
            known = logic.explain(path, line, settings_of, cache_folder(common))
        except (SourceError, logic.NoSuchLine) as error:
            raise Failure(str(error)) from error
    for text in explanation.lines(known, Path.cwd()):
        click.echo(text)


def _parsed(place: str) -> tuple[Path, int]:
    """The file and the line of `FILE:LINE` or `FILE:LINE:COLUMN`."""
    rest, _, last = place.rstrip(":").rpartition(":")
    before, _, line = rest.rpartition(":")
    if before and line.isdecimal() and last.isdecimal():
        rest, last = before, line
    if not rest or not last.isdecimal():
        raise click.UsageError(f"not of the form FILE:LINE: {place}")
    return Path(rest), int(last)
