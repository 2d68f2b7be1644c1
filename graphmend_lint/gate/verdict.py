"""The findings of a run against a baseline: which are new, which entries are fixed, and what the next baseline is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphmend_lint import engine
from graphmend_lint.config import Settings
from graphmend_lint.findings import Finding
from graphmend_lint.gate.baseline import Entry, collected, name_of
from graphmend_lint.gate.compare import Found, compare
from graphmend_lint.gate.identity import Identity
from graphmend_lint.gate.moves import Scopes

Touched = Callable[[Finding], bool]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`new` fails the run. `elsewhere` counts findings that are not known either, on lines that have not changed.

    `fixed` are entries, with counts, that the run looked for and did not find. `present` is the baseline that says
    what is there now, `pruned` the old one without what is fixed; both keep what the run did not look for.
    """

    new: tuple[Finding, ...]
    known: int
    elsewhere: int
    fixed: tuple[Entry, ...]
    present: tuple[Entry, ...]
    pruned: tuple[Entry, ...]


def judge(
    report: engine.Report,
    identities: Sequence[Identity],
    entries: Sequence[Entry],
    folder: Path,
    settings_of: Callable[[Path], Settings],
    touched: Touched = lambda _: True,
) -> Verdict:
    """Compare what was found with the entries of the baseline in `folder`.

    `touched` says whether a finding is on a line that has changed: of several that are alike, those are the new ones.
    """
    found = [_found(finding, one, folder) for finding, one in zip(report.findings, identities, strict=True)]
    found.sort(key=lambda one: (touched(one.thing), one.thing.sort_key))
    scopes = Scopes(folder)
    result = compare(entries, found, scopes.is_gone)
    looked_for = _looked_for(report, folder, settings_of, scopes)
    kept = [entry for entry in result.left if not looked_for(entry)]
    alike = Counter(one.entry.key for one in result.known)
    new = sorted((_explained(one, alike) for one in result.new), key=lambda finding: finding.sort_key)
    failing = tuple(finding for finding in new if touched(finding))
    return Verdict(
        new=failing,
        known=len(result.known),
        elsewhere=len(new) - len(failing),
        fixed=tuple(entry for entry in result.left if looked_for(entry)),
        present=collected([*(one.entry for one in found), *kept]),
        pruned=collected([*(one.entry for one in result.known), *kept]),
    )


def _found(finding: Finding, known_by: Identity, folder: Path) -> Found[Finding]:
    name = name_of(Path(finding.path), folder)
    entry = Entry(name, known_by.scope, finding.code, known_by.content, known_by.text)
    return Found(finding, replace(entry, likely=finding.confidence == "likely"))


def _looked_for(
    report: engine.Report, folder: Path, settings_of: Callable[[Path], Settings], scopes: Scopes
) -> Callable[[Entry], bool]:
    """Whether this run would have found what an entry says, if it were still there."""
    linted = {name_of(result.path, folder): result.path for result in report.results if result.error is None}

    def looked_for(entry: Entry) -> bool:
        if not entry.code:  # the rule is gone
            return True
        path = linted.get(entry.path)
        if path is None:
            return not scopes.has_file(entry.path)
        settings = settings_of(path)
        rules = {card.code for card in engine.enabled_cards(settings, path)}
        return entry.code in rules and not (entry.likely and settings.confidence == "definite")

    return looked_for


def _explained(one: Found[Finding], alike: Counter[tuple[str, str, str, str]]) -> Finding:
    """The finding, whose message says so where others like it in the same function are known."""
    count = alike[one.entry.key]
    if not count:
        return one.thing
    scope = one.entry.scope
    return replace(one.thing, message=f"{one.thing.message} (`{scope}` may have {count} like it, by the baseline)")
