"""A verdict as a terminal shows it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from graphmend_lint.verify.verdict import Break, Predicate, Verdict

_COLOURS = {"proven": "green", "not proven": "red", "could not run": "yellow"}


def print_verdict(verdict: Verdict, console: Console) -> None:
    """The checks as a table, what differs, the breaks that remain, the files that the fixed arm saw."""
    if verdict.checks:
        console.print(_checks(verdict))
    for check in verdict.checks:
        if not check.passed:
            console.print(f"[red]{escape(check.name)}[/]: {escape(check.detail)}", highlight=False)
    for cause in verdict.causes:
        place = f"{cause.path}:{cause.line} {cause.code}" if cause.code else f"the fixes in {cause.path}"
        console.print(f"[red]caused by[/] {escape(place)} {escape(cause.message)}", highlight=False, soft_wrap=True)
    if times := timing_rows(verdict):
        console.print(_times(times))
    for predicate in verdict.predicates:
        if predicate.missing:
            console.print(f"not exercised: {escape(_side(predicate))}", highlight=False, soft_wrap=True)
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


def timing_rows(verdict: Verdict) -> list[tuple[str, str, str]]:
    """What was timed: its name, and the figures of the original and of the fixed arm."""
    before, after = (arm.timing if arm else None for arm in (verdict.original, verdict.fixed))
    if before is None or after is None:
        return []
    return [
        ("cold start (first pass, with compilation)", seconds(before.cold), seconds(after.cold)),
        ("steady state (one pass)", spread(before.steady), spread(after.steady)),
        ("uncompiled (one pass)", spread(before.eager), spread(after.eager)),
        ("peak memory", _mebibytes(before.memory), _mebibytes(after.memory)),
    ]


def spread(times: Sequence[float]) -> str:
    """The median, and the quartiles around it."""
    low, middle, high = quartiles(times)
    return f"{seconds(middle)} ({seconds(low)} to {seconds(high)})"


def quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    """The first quartile, the median and the third quartile."""
    if len(times) < 2:
        return (times[0],) * 3 if times else (0.0,) * 3
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return low, middle, high


def seconds(time: float) -> str:
    """A time with three digits and a unit that suits it."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if time * factor >= 1:
            return f"{time * factor:.3g} {unit}"
    return f"{time * 1e6:.3g} us"


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB" if size else "not known"


def _times(rows: list[tuple[str, str, str]]) -> Table:
    table = Table()
    for name in ("", "original", "fixed"):
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    return table


def _side(predicate: Predicate) -> str:
    note = f" ({predicate.note})" if predicate.note else ""
    sides = " and ".join(predicate.missing)
    return f"{predicate.path}:{predicate.line} `{predicate.code}` being {sides}{note}"


def _print_breaks(verdict: Verdict, console: Console) -> None:
    arm = verdict.fixed or verdict.original
    if arm is None or not arm.capture.sites:
        return
    console.print("breaks that remain:" if verdict.fixed else "breaks of the original:")
    for site in arm.capture.sites:
        console.print(f"  {escape(site_in_words(site))}", highlight=False, soft_wrap=True)


def site_in_words(site: Break) -> str:
    """A break in one line."""
    number = site.gb or "no number"
    rule = site.rule or "no rule"
    skipped = ", frame given up" if site.skipped else ""
    return f"{site.file}:{site.line} {number} {site.type}{skipped} ({rule}): {site.code}"


def _environment(verdict: Verdict) -> str:
    found = verdict.environment
    parts = environment_in_words(found)
    return ", ".join(parts)


def environment_in_words(found: dict[str, Any]) -> tuple[str, ...]:
    """What a verdict was reached on."""
    return (
        f"torch {found['torch']}",
        found["device"],
        " ".join(filter(None, ("backend", found["backend"], found["mode"]))),
        f"dtype {found['dtype'] or 'as built'}",
        "train" if found["train"] else "eval",
        "gradients" if found["grad"] else "no_grad",
        f"sequence run {found['calls']} times",
    )
