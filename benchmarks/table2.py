"""The paper's Table 2, measured here: `python -m benchmarks.table2`.

Each row is a small random-weight model (see `benchmarks.models`). It is verified like any target: breaks
are counted as it is and with the fixes that the linter makes in the files of transformers that the model
executes, in an overlay; the outputs, messages, recompiles and the `fullgraph=True` capture of both are
compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from graphmend_lint.verify import FixFiles, Options, TargetSpec, Verdict, verify

_ROOT = Path(__file__).resolve().parents[1]
_HEADERS = (
    "row",
    "models",
    "mix",
    "paper",
    "here",
    "verdict",
    "values",
    "messages",
    "fullgraph",
    "recompiles",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the paper: its models, their breaks before and after, and the name of what builds one here.

    `unsafe`: its fixes are applied only with `--unsafe-fixes`, and its table row says so.
    """

    name: str
    models: tuple[str, ...]
    mix: str
    before: int
    after: int
    unsafe: bool = False

    @property
    def target(self) -> TargetSpec:
        return TargetSpec.parse(f"benchmarks.models:{self.name}", _ROOT)


_T5_MODELS = ("t5-small", "t5-base", "t5-3b", "flan-t5-large", "inclusively-reformulation-it5")

# In fp32 the overflow guards of BART and Marian are dead code: what the paper counted beside the logger
# calls is in the rows bart16 and marian16.
LOGGER_ROWS = (
    Row("t5", _T5_MODELS, "LC", 3, 0),
    Row("whisper", ("whisper-large-v3", "whisper-small", "whisper-base"), "LC", 3, 0),
    Row("bart", ("bart-large-cnn", "bart-base", "rebel-large"), "LC 3 of 7", 3, 0),
    Row("blenderbot", ("blenderbot-400M-distill",), "LC", 3, 0),
    Row("marian", ("opus-mt-fr-en",), "LC 3 of 6", 3, 0),
    Row("pegasus", ("PegasusForCausalLM",), "LC", 2, 0),
    Row("biogpt", ("biogpt",), "LC", 2, 0),
    Row("layoutlmv3", ("layoutlmv3-base",), "LC", 2, 0),
    Row("longformer", ("longformer-base-4096",), "LC 3, TI 2", 5, 3),
)
OTHER_ROWS = (
    Row("bart16", ("bart-large-cnn", "bart-base", "rebel-large"), "DC 4, LC 3", 7, 0),
    Row("marian16", ("opus-mt-fr-en",), "DC 3, LC 3", 6, 0),
    Row("phi", ("Phi-4-mini-instruct",), "DC", 5, 0, unsafe=True),
    Row("gdino", ("grounding-dino-tiny", "grounding-dino-base"), "DC 11, DS 3, DO 3", 17, 7, unsafe=True),
    Row("molformer", ("MoLFormer-XL-both10pct",), "VG", 5, 0, unsafe=True),
    Row("clap", ("clap-htsat-fused",), "DS", 4, 4),
)
ROWS = {row.name: row for row in (*LOGGER_ROWS, *OTHER_ROWS)}


@dataclass(frozen=True, slots=True)
class Result:
    """A row and what came of it here."""

    row: Row
    verdict: Verdict

    @property
    def holds(self) -> bool:
        """True if at least the paper's share of the breaks is gone, and nothing else with them."""
        if self.verdict.before is None or self.verdict.after is None:
            return False
        proven = self.verdict.status == "proven" or self.row.after == self.row.before
        return proven and self.verdict.after * self.row.before <= self.verdict.before * self.row.after

    def cells(self) -> tuple[str, ...]:
        """The texts of the table's columns."""
        row, checks = self.row, {check.name: check for check in self.verdict.checks}
        values = ("eager values", "compiled values", "compiled against eager")
        messages = ("eager messages", "compiled messages")
        fixed = self.verdict.fixed
        return (
            row.name,
            str(len(row.models)),
            f"{row.mix} (unsafe fixes)" if row.unsafe else row.mix,
            f"{row.before} -> {row.after}",
            "-" if self.verdict.before is None else f"{self.verdict.before} -> {self.verdict.after}",
            self.verdict.status,
            _together(checks, values, "identical"),
            _together(checks, messages, "same"),
            ("yes" if fixed.capture.whole else "no") if fixed else "-",
            f"{checks['recompiles'].original} -> {checks['recompiles'].fixed}" if "recompiles" in checks else "-",
        )

    def to_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "row": row.name,
            "models": list(row.models),
            "mix": row.mix,
            "paper": {"before": row.before, "after": row.after},
            "here": {"before": self.verdict.before, "after": self.verdict.after},
            "holds": self.holds,
            "verdict": self.verdict.to_json(),
        }


def _together(checks: dict[str, Any], names: tuple[str, ...], word: str) -> str:
    if not all(name in checks for name in names):
        return "-"
    return word if all(checks[name].passed for name in names) else "differ"


def measure(row: Row, fix_files: FixFiles, options: Options) -> Result:
    """Verifies a row with the given fixes."""
    return Result(row, verify(row.target, fix_files, options=options))


def no_fixes(_: list[Path]) -> dict[Path, Any]:
    """What `--unfixed` measures with: the models as they are."""
    return {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 0 if every row reaches the paper's share of breaks with nothing else changed."""
    options = _parser().parse_args(arguments)
    run = Options(backend=options.backend, device=options.device, timeout=options.timeout)
    results = []
    for row in options.rows:
        sys.stderr.write(f"{row.name}: ")
        sys.stderr.flush()
        results.append(measure(row, no_fixes if options.unfixed else _linter(row), run))
        sys.stderr.write(f"{results[-1].verdict.status}, {results[-1].verdict.reason}\n")
    if options.json:
        sys.stdout.write(json.dumps([result.to_json() for result in results], indent=2) + "\n")
    elif options.markdown:
        sys.stdout.write(_markdown(results))
    else:
        _print(results)
    return 0 if options.unfixed or all(result.holds for result in results) else 1


def _linter(row: Row) -> FixFiles:
    """The linter's fixes: the safe ones, and for a row that says so the unsafe ones too."""
    from graphmend_lint.config import Settings
    from graphmend_lint.fixing import fix_files

    return lambda paths: fix_files(paths, Settings(unsafe_fixes=row.unsafe))


def _parser() -> argparse.ArgumentParser:
    title = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table2", description=title)
    parser.add_argument(
        "--rows",
        type=_rows,
        default=list(LOGGER_ROWS),
        help="names, comma separated, or all; by default the LC rows",
    )
    parser.add_argument("--unfixed", action="store_true", help="count the breaks of the models as they are")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each arm of a row")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--markdown", action="store_true")
    return parser


def _rows(text: str) -> list[Row]:
    if text == "all":
        return list(ROWS.values())
    unknown = [name for name in text.split(",") if name not in ROWS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    return [ROWS[name] for name in text.split(",")]


def _markdown(results: list[Result]) -> str:
    lines = [
        _HEADERS,
        tuple("---" for _ in _HEADERS),
        *(result.cells() for result in results),
        _total(results),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _print(results: list[Result]) -> None:
    table = Table(*_HEADERS, title="Table 2", title_justify="left")
    for result in results:
        table.add_row(*result.cells(), style=None if result.holds else "red")
    table.add_section()
    table.add_row(*_total(results))
    # Where the output is no terminal, no width is known: wide enough for one line for each row.
    console = Console()
    Console(width=console.width if console.is_terminal else 140).print(table)


def _total(results: list[Result]) -> tuple[str, ...]:
    """The sums as the paper makes them: each of its models counts."""
    counts = [len(result.row.models) for result in results]

    def total(numbers: list[int | None]) -> int:
        return sum(count * (number or 0) for count, number in zip(counts, numbers, strict=True))

    paper = f"{total([r.row.before for r in results])} -> {total([r.row.after for r in results])}"
    here = f"{total([r.verdict.before for r in results])} -> {total([r.verdict.after for r in results])}"
    return ("total over models", str(sum(counts)), "", paper, here, *[""] * (len(_HEADERS) - 5))


if __name__ == "__main__":
    raise SystemExit(main())
