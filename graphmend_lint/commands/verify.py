"""`graphmend verify`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from graphmend_lint.commands.common import CONTEXT, one_line_errors
from graphmend_lint.config import Settings, load_settings

if TYPE_CHECKING:
    from graphmend_lint.verify.command import Request


@click.command(context_settings=CONTEXT)
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
    with one_line_errors():
        settings = load_settings(Path.cwd())
    entries = _verify_entries(target, settings)
    requests = [_verify_request(entry, fix_paths, unsafe_fixes, options) for entry in entries]
    with one_line_errors():
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
    others = ("target", "name", "fix-path", "unsafe-fixes", "max-breaks")
    own = {name.replace("-", "_"): value for name, value in table.items() if name not in others}
    return Request(
        table["target"],
        LinterFixes(unsafe_fixes=unsafe_fixes or table.get("unsafe-fixes", False)),
        entry.folder,
        fix_paths or tuple(entry.folder / path for path in table.get("fix-path", ())),
        Options(**{**own, **options}),
    )
