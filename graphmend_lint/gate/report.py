"""What `graphmend check` says besides the findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphmend_lint.gate.baseline import Entry
from graphmend_lint.gate.measured import LIMIT, Measurement
from graphmend_lint.gate.verdict import Verdict
from graphmend_lint.report.text import shown_path
from graphmend_lint.verify.report import site_in_words

#: How many files with fixed entries are named.
_NAMED = 3


def summary(verdict: Verdict, files: int, errors: int) -> list[str]:
    """The lines that close a run."""
    unread = f"{_count(errors, 'file')} could not be linted. " if errors else ""
    parts = [f"{verdict.known} known"] if verdict.known else []
    parts += [f"{verdict.elsewhere} on unchanged lines"] if verdict.elsewhere else []
    others = f" ({', '.join(parts)})" if parts else ""
    if verdict.new:
        text = f"{unread}Found {_count(len(verdict.new), 'new graph break')}{others}."
        if safe := sum(finding.fix == "safe" for finding in verdict.new):
            text += f" {safe} fixable with `graphmend fix`."
    else:
        text = f"{unread}No new graph breaks in {_count(files - errors, 'file')}{others}."
    return [text, *_fixed(verdict)]


def _fixed(verdict: Verdict) -> list[str]:
    if not verdict.fixed:
        return []
    number = total(verdict.fixed)
    files = sorted({entry.path for entry in verdict.fixed})
    named = ", ".join(files[:_NAMED]) + (f" and {_count(len(files) - _NAMED, 'more file')}" if files[_NAMED:] else "")
    verb, them = ("entry of the baseline is", "it") if number == 1 else ("entries of the baseline are", "them")
    # With new findings, --update-baseline would take these in as well.
    advice = f"--prune-baseline drops {them} and adds nothing" if verdict.new else "run --update-baseline"
    return [f"{number} {verb} fixed ({named}); {advice}."]


def written(shown: str, before: Sequence[Entry], after: Sequence[Entry]) -> str:
    """What an update did."""
    old, new = ({entry.key: entry.count for entry in entries} for entries in (before, after))
    added = sum(max(0, count - old.get(key, 0)) for key, count in new.items())
    dropped = sum(max(0, count - new.get(key, 0)) for key, count in old.items())
    return f"{shown}: {_count(total(after), 'known finding')} ({added} added, {dropped} dropped)."


def measurement(found: Measurement, root: Path) -> list[str]:
    """What measuring a target gave: the count and, where it grew, the lines that did it."""
    breaks = _count(found.count, "graph break")
    if not found.grew:
        if found.count < found.limit:
            return [f"{found.name}: {breaks}, fewer than {LIMIT} = {found.limit}; lower {LIMIT} to {found.count}."]
        return [f"{found.name}: {breaks}, as {LIMIT} says."]
    lines = []
    if found.count > found.limit:
        lines.append(f"{found.name}: {breaks}, more than {LIMIT} = {found.limit}.")
    if found.given_up > 0:
        lines.append(
            f"{found.name}: {_count(found.given_up, 'frame')} given up that the baseline does not have; the breaks in "
            f"such a frame are not counted."
        )
    if not lines:
        lines.append(f"{found.name}: {_count(found.more_lines, 'line')} more than in the baseline {_verb(found)}.")
    if found.known is None:
        lines.append("The lines that break (--measure --update-baseline keeps them, so that new ones can be told):")
    elif found.new:
        lines.append("The lines that break and did not before:")
    else:
        lines.append("No line is new; those that are known break more often.")
    return [*lines, *(f"  {site_in_words(replace(site, file=shown_path(site.file, root)))}" for site in found.new)]


def accepted(found: Measurement) -> str:
    """What is said of a measurement whose lines go into the baseline."""
    text = f"{found.name}: {_count(found.count, 'graph break')}, its lines are known now."
    if found.count > found.limit:
        return f"{text} The count is above {LIMIT} = {found.limit}: --measure fails until that is {found.count}."
    return f"{text} Lower {LIMIT} to {found.count}." if found.count < found.limit else text


def _verb(found: Measurement) -> str:
    return "breaks" if found.more_lines == 1 else "break"


def total(entries: Sequence[Entry]) -> int:
    """How many findings entries stand for."""
    return sum(entry.count for entry in entries)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
