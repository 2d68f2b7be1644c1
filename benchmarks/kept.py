"""Results that are kept in the repository, and the tables that documents show of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import ROOT, Measurement

RESULTS = ROOT / "benchmarks" / "results"
Cells = Sequence[str]


@dataclass(frozen=True, slots=True)
class Kept:
    """The results of a benchmark in a JSON file, a measurement for each row."""

    file: Path

    def read(self) -> dict[str, Measurement]:
        if not self.file.exists():
            return {}
        records = json.loads(self.file.read_text(encoding="utf-8"))
        return {record["row"]: Measurement.from_json(record) for record in records}

    def add(self, measurement: Measurement) -> None:
        """Replaces what was kept of the row."""
        rows = self.read() | {measurement.row: measurement}
        text = json.dumps([row.to_json() for row in rows.values()], indent=1)
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(f"{text}\n", encoding="utf-8")


def markdown(headers: Cells, rows: Iterable[Cells]) -> str:
    """A table in Markdown."""
    return "".join(map(_line, [headers, ["---"] * len(headers), *rows]))


def _line(cells: Cells) -> str:
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"


def measured_on(measurements: Iterable[Measurement]) -> str:
    """One sentence with the versions and the dates of the rows."""
    found = list(measurements)
    dates = sorted({one.date for one in found})
    versions = dict.fromkeys(f"{name} {version}" for one in found for name, version in one.versions.items())
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Measured on {when} with {', '.join(versions)}.\n"


def why(one: Measurement) -> str:
    """The reason where there is no proof; the breaks that are left; what was not seen, and what else was noted."""
    best = one.best
    if best is None:
        return f"not run: {one.problem}"
    parts = (
        "" if best.status == "proven" else best.reason,
        f"left: {', '.join(f'`{site}`' for site in best.left)}" if best.left else "",
        f"not exercised: {', '.join(best.unseen)}" if best.unseen else "",
        *best.notes,
    )
    return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Block:
    """What a document has between `<!-- name:start -->` and `<!-- name:end -->`."""

    document: Path
    name: str

    def write(self, text: str) -> None:
        """Replaces it; LookupError where the document has no such block."""
        whole = self.document.read_text(encoding="utf-8")
        changed, count = self._pattern.subn(lambda match: match[1] + text + match[3], whole)
        if count != 1:
            raise LookupError(f"{self.document.name} has {count} blocks {self.name!r}")
        self.document.write_text(changed, encoding="utf-8")

    def read(self) -> str:
        """The text between the two; LookupError where the document has no such block."""
        found = self._pattern.search(self.document.read_text(encoding="utf-8"))
        if found is None:
            raise LookupError(f"{self.document.name} has no block {self.name!r}")
        return found[2]

    @property
    def _pattern(self) -> re.Pattern[str]:
        name = re.escape(self.name)
        return re.compile(rf"(<!-- {name}:start -->\n)(.*?)(<!-- {name}:end -->)", re.DOTALL)
