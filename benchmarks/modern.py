"""Graph breaks in today's models, before and after: `python -m benchmarks.modern`, on transformers 5.24.

Each row is a small random-weight model (see `benchmarks.modern_models`). It is verified like any target: breaks are
counted as it is and with the fixes that the linter makes in the files of transformers that the model executes, in an
overlay. The table is Markdown.

`sweep` is what a sweep over all of transformers 5.24.0 counted on small models of the same classes. Rows in float16 are
models with a guard against overflow in half precision; the others check their inputs with `torch_compilable_check`.
NLLB-MoE has two more breaks here than there, whose config is not known.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_lint.config import Settings
from graphmend_lint.fixing import FixResult, fix_files
from graphmend_lint.verify import Options, TargetSpec, Verdict, verify

_ROOT = Path(__file__).resolve().parents[1]
_HEADERS = ("model", "dtype", "fixes", "sweep", "before", "after", "verdict", "reason")


@dataclass(frozen=True, slots=True)
class Row:
    """A model, the breaks that the sweep counted, and whether its fixes are unsafe ones."""

    name: str
    sweep: int
    unsafe: bool = False

    @property
    def target(self) -> TargetSpec:
        return TargetSpec.parse(f"benchmarks.modern_models:{self.name}", _ROOT)

    def fixes(self, paths: list[Path]) -> dict[Path, FixResult]:
        """What the linter makes of files: with its safe fixes, and with the unsafe ones where the row says so."""
        return fix_files(paths, Settings(unsafe_fixes=self.unsafe))


GUARDS = (
    Row("longt516", 10),
    Row("nllb_moe16", 8),
    Row("informer16", 6),
    Row("led16", 6),
    Row("bart16", 5),
    Row("bigbird_pegasus16", 5),
    Row("blenderbot_small16", 4),
    Row("marian16", 4),
    Row("mvp16", 4),
    Row("time_series_transformer16", 4),
)
CHECKS = tuple(
    Row(name, sweep, unsafe=True)
    for name, sweep in {
        "aria": 3,
        "aya_vision": 3,
        "cohere2_vision": 3,
        "gemma3": 3,
        "got_ocr2": 3,
        "idefics2": 8,
        "idefics3": 8,
        "internvl": 3,
        "llava": 3,
        "llava_next": 7,
        "mistral3": 16,
        "mm_grounding_dino": 14,
        "oneformer": 14,
        "paligemma": 3,
        "qwen2_vl": 24,
        "rt_detr_v2": 8,
        "siglip2": 6,
        "smolvlm": 7,
        "video_llava": 4,
        "vipllava": 3,
        "vits": 22,
    }.items()
)
ROWS = {row.name: row for row in (*GUARDS, *CHECKS)}


@dataclass(frozen=True, slots=True)
class Result:
    """A row and what came of it."""

    row: Row
    verdict: Verdict

    def cells(self) -> tuple[str, ...]:
        """The texts of the table's columns."""
        row = self.row
        half = row.name.endswith("16")
        return (
            row.name.removesuffix("16"),
            "float16" if half else "float32",
            "unsafe" if row.unsafe else "safe",
            str(row.sweep),
            _text(self.verdict.before),
            _text(self.verdict.after),
            self.verdict.status,
            self.verdict.reason.replace("|", "\\|"),
        )


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, a row when it is there; 0 if every row could be run."""
    options = _parser().parse_args(arguments)
    # What is timed here says little about models of this size.
    run = Options(backend=options.backend, device=options.device, timeout=options.timeout, passes=0)
    results = []
    for line in (_HEADERS, tuple("---" for _ in _HEADERS)):
        _print(line)
    for row in options.rows:
        results.append(Result(row, verify(row.target, row.fixes, options=run)))
        _print(results[-1].cells())
    total = [sum(number or 0 for number in numbers) for numbers in zip(*map(_numbers, results), strict=True)]
    _print(("total", "", "", *map(str, total), "", ""))
    return 1 if any(result.verdict.before is None for result in results) else 0


def _numbers(result: Result) -> tuple[int | None, ...]:
    return result.row.sweep, result.verdict.before, result.verdict.after


def _print(cells: tuple[str, ...]) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    title = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.modern", description=title)
    parser.add_argument("--rows", type=_rows, default=list(ROWS.values()), help="names, comma separated")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each arm of a row")
    return parser


def _rows(text: str) -> list[Row]:
    unknown = [name for name in text.split(",") if name not in ROWS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    return [ROWS[name] for name in text.split(",")]


if __name__ == "__main__":
    raise SystemExit(main())
