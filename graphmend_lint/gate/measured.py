"""The gate on measured breaks: a target of `graphmend verify` may break no more often than its `max-breaks` says.

This runs the user's code, in a subprocess.
"""

from __future__ import annotations

import hashlib
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from graphmend_lint.analysis import source as sources
from graphmend_lint.gate.baseline import Entry, collected, name_of
from graphmend_lint.gate.compare import Comparison, Found, compare
from graphmend_lint.gate.identity import Identity, at_line
from graphmend_lint.gate.moves import Scopes
from graphmend_lint.verify.arm import ArmJob, ArmsDiffer, CouldNotRun, run_arm
from graphmend_lint.verify.launcher import Launcher
from graphmend_lint.verify.options import Options
from graphmend_lint.verify.target import BadTarget, TargetSpec
from graphmend_lint.verify.verdict import Break, Capture, Run

LIMIT = "max-breaks"

#: How the code of a break ends at which Dynamo gave up the whole frame: a line that did not before is a new one.
_GIVEN_UP = ", frame given up"

#: How a file that is not the project's own begins.
_INSTALLED = ("<site-packages>", "<dist-packages>", "<stdlib>")


class NotMeasured(Exception):
    """A target that gave no count. The text is one line."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a target was measured to do, and what is known of it: `known` is None where the baseline has no lines of it.

    The number of graphs alone does not tell. A frame that Dynamo gives up hides the breaks in it, and two lines that
    break one after the other end one graph. So no more frames may be given up than before, and no more lines break.
    """

    name: str
    limit: int
    capture: Capture
    comparison: Comparison[Break]
    known: tuple[Entry, ...] | None

    @property
    def count(self) -> int:
        """How often a graph ends, at least once for each line that breaks."""
        return max(self.capture.total, len(self.capture.sites))

    @property
    def given_up(self) -> int:
        """How many more frames are given up than by the baseline."""
        known = sum(entry.count for entry in self.known or () if entry.code.endswith(_GIVEN_UP))
        return self.capture.skipped - known

    @property
    def more_lines(self) -> int:
        """How many more lines break than by the baseline; none where that does not say."""
        return 0 if self.known is None else len(self.capture.sites) - sum(entry.count for entry in self.known)

    @property
    def grew(self) -> bool:
        return self.count > self.limit or self.given_up > 0 or self.more_lines > 0

    @property
    def new(self) -> tuple[Break, ...]:
        """The lines that break and did not before; all of them where nothing is known."""
        return tuple(one.thing for one in self.comparison.new)

    @property
    def present(self) -> tuple[Entry, ...]:
        """The lines that break now."""
        return collected(one.entry for one in (*self.comparison.known, *self.comparison.new))

    @property
    def pruned(self) -> tuple[Entry, ...]:
        """Those of them that are known."""
        return collected(one.entry for one in self.comparison.known)


def targets(tables: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries of the configuration that have a limit.

    Raises:
        NotMeasured: two of them go by one name.
    """
    found = [table for table in tables if LIMIT in table]
    names = [name_of_target(table) for table in found]
    for name in names:
        if names.count(name) > 1:
            raise NotMeasured(f"{name}: two entries with `{LIMIT}` are called so; give each a `name`")
    return found


def name_of_target(table: Mapping[str, Any]) -> str:
    return str(table.get("name", table["target"]))


def measurement(table: Mapping[str, Any], capture: Capture, known: Sequence[Entry] | None, folder: Path) -> Measurement:
    """What was measured of a target, against the lines that are `known` to the baseline in `folder`."""
    found = [Found(site, _entry(site, folder)) for site in capture.sites]
    scopes = Scopes(folder)

    def is_gone(entry: Entry) -> bool:
        return not entry.path.startswith(_INSTALLED) and scopes.is_gone(entry)

    result = compare(known or (), found, is_gone)
    return Measurement(name_of_target(table), table[LIMIT], capture, result, None if known is None else tuple(known))


def capture(table: Mapping[str, Any], root: Path, launcher: Launcher) -> Capture:
    """What Dynamo makes of a target as it is; module names and paths count from `root`.

    Raises:
        NotMeasured: it could not be run, or gave nothing to count.
    """
    own = {field.name.replace("_", "-"): field.name for field in fields(Options)}
    given = {own[name]: value for name, value in table.items() if name in own}
    options = replace(Options(**given), calls=1, passes=0)
    name = name_of_target(table)
    with tempfile.TemporaryDirectory(prefix="graphmend-measure-") as scratch:
        place = Path(scratch)
        try:
            spec = TargetSpec.parse(table["target"], root)
            job = ArmJob("original", spec, options, place, place / "original", ("prepare", "eager", "capture"))
            records = run_arm(job, launcher)
        except (BadTarget, CouldNotRun, ArmsDiffer) as error:
            raise NotMeasured(f"{name}: not measured: {error}") from error
    raised = [call for call in Run.from_json(records["eager"]).raised if call is not None]
    found = Capture.from_json(records["capture"])
    if len(raised) == len(found.graphs):
        why = " ".join(f"{raised[0].type.removeprefix('builtins.')}: {raised[0].text}".split())
        raise NotMeasured(f"{name}: not measured: every call raised an exception ({why})")
    return found


def _entry(site: Break, folder: Path) -> Entry:
    place = Path(site.file)
    known_by = _identity(site, place)
    return Entry(
        path=_name(place, folder) if site.file else "",
        scope=known_by.scope,
        code=f"{site.gb or site.type}{_GIVEN_UP if site.skipped else ''}",
        content=known_by.content,
        text=known_by.text,
    )


def _identity(site: Break, place: Path) -> Identity:
    try:
        return at_line(sources.parse(sources.read(place), place), site.line)
    except sources.SourceError:  # made while the program ran, say
        digest = hashlib.blake2b(" ".join(site.code.split()).encode(), digest_size=8)
        return Identity(site.function, digest.hexdigest(), site.code)


def _name(place: Path, folder: Path) -> str:
    """A file as every machine calls it."""
    for parent in place.parents:
        if parent.name in ("site-packages", "dist-packages"):
            return f"<{parent.name}>/{place.relative_to(parent).as_posix()}"
    library = Path(sysconfig.get_paths()["stdlib"])
    if place.is_relative_to(library):
        return f"<stdlib>/{place.relative_to(library).as_posix()}"
    return name_of(place, folder)
