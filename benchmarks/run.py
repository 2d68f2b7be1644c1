"""What the commands of the benchmarks share: their options, and running rows one after the other."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.kept import Block, Kept
from benchmarks.measure import Bench, Measurement
from graphmend_lint.verify import Options, TargetSpec


class Row(Protocol):
    """What a table has a line for."""

    @property
    def name(self) -> str: ...
    @property
    def target(self) -> TargetSpec: ...


@dataclass(frozen=True, slots=True)
class Table:
    """A benchmark: its rows, where its results are kept, and how they are written into the documents.

    `printed` makes the text that is printed for the measurements of a run, `blocks` what documents show of those that
    are kept.
    """

    program: str
    title: str
    rows: Mapping[str, Row]
    usual: tuple[str, ...]
    packages: tuple[str, ...]
    results: Path
    printed: Callable[[Mapping[str, Measurement]], str]
    blocks: Callable[[Mapping[str, Measurement]], Mapping[Block, str]]

    def main(self, arguments: Iterable[str] | None = None) -> int:
        """Runs rows and prints the table; 1 if a row could not be run."""
        given = self._parser().parse_args(None if arguments is None else list(arguments))
        kept = Kept(self.results)
        if given.render:
            self.write()
            return 0
        # What is timed here says little about models of this size.
        options = Options(backend=given.backend, device=given.device, timeout=given.timeout, passes=0)
        found: dict[str, Measurement] = {}
        bench = Bench(options, self.packages)
        with bench.launcher:
            for name in given.rows:
                found[name] = bench.measure(name, self.rows[name].target)
                _say(found[name])
                if given.write:
                    kept.add(found[name])
                    self.write()
        sys.stdout.write(self.printed(found))
        return int(any(one.before is None for one in found.values()))

    def write(self) -> None:
        """Makes the documents show the results that are kept."""
        for block, text in self.blocks(Kept(self.results).read()).items():
            block.write(text)

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog=f"python -m {self.program}", description=self.title)
        parser.add_argument(
            "--rows", type=self._names, default=list(self.usual), help="names, comma separated; by default the table's"
        )
        parser.add_argument("--backend", default="eager")
        parser.add_argument("--device", default="cpu")
        parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each arm of a row")
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--write", action="store_true", help="keep the results and write them into the documents")
        form.add_argument("--render", action="store_true", help="only write the table of the kept results")
        return parser

    def _names(self, text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in self.rows]:
            raise argparse.ArgumentTypeError(f"no row {unknown[0]!r}; there are {', '.join(self.rows)}")
        return names


def _say(found: Measurement) -> None:
    counts = "-" if found.before is None else f"{found.before} -> {found.after_safe} -> {found.after}"
    sys.stderr.write(f"{found.row}: {counts}, {found.verdict}: {found.reason} ({found.seconds:.0f} s)\n")
    sys.stderr.flush()
