"""A verdict as a terminal shows it."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from graphmend_lint.verify.verdict import Break, Verdict

_COLOURS = {"proven": "green", "not proven": "red", "could not run": "yellow"}


def print_verdict(verdict: Verdict, console: Console) -> None:
    """The checks as a table, what differs, the breaks that remain, the files that the fixed arm saw."""
    if verdict.checks:
        console.print(_checks(verdict))
    for check in verdict.checks:
        if not check.passed:
            console.print(f"[red]{escape(check.name)}[/]: {escape(check.detail)}", highlight=False)
    _print_breaks(verdict, console)
    for file in verdict.files:
        rules = f" ({', '.join(file.rules)})" if file.rules else ""
        fixes = f"{file.fixes} fix{'' if file.fixes == 1 else 'es'}"
        console.print(f"fixed in the overlay: {escape(file.path)}, {fixes}{rules}", highlight=False, soft_wrap=True)
    for note in verdict.notes:
        console.print(f"note: {escape(note)}", highlight=False)
    if verdict.environment:
        console.print(_environment(verdict), style="dim", highlight=False)
    colour = _COLOURS[verdict.status]
    console.print(f"[bold {colour}]{verdict.status}[/]: {escape(verdict.reason)}", highlight=False)


def _checks(verdict: Verdict) -> Table:
    table = Table(title=escape(verdict.target), title_justify="left")
    table.add_column("what")
    table.add_column("original")
    table.add_column("fixed")
    table.add_column("verdict")
    for check in verdict.checks:
        mark = "[green]ok[/]" if check.passed else "[red]fails[/]"
        table.add_row(check.name, escape(check.original), escape(check.fixed), mark)
    return table


def _print_breaks(verdict: Verdict, console: Console) -> None:
    arm = verdict.fixed or verdict.original
    if arm is None or not arm.capture.sites:
        return
    console.print("breaks that remain:" if verdict.fixed else "breaks of the original:")
    for site in arm.capture.sites:
        console.print(f"  {escape(_site(site))}", highlight=False, soft_wrap=True)


def _site(site: Break) -> str:
    number = site.gb or "no number"
    rule = site.rule or "no rule"
    skipped = ", frame given up" if site.skipped else ""
    return f"{site.file}:{site.line} {number} {site.type}{skipped} ({rule}): {site.code}"


def _environment(verdict: Verdict) -> str:
    found = verdict.environment
    parts = (
        f"torch {found['torch']}",
        found["device"],
        " ".join(filter(None, ("backend", found["backend"], found["mode"]))),
        f"dtype {found['dtype'] or 'as built'}",
        "train" if found["train"] else "eval",
        "gradients" if found["grad"] else "no_grad",
        f"sequence run {found['calls']} times",
    )
    return ", ".join(parts)
