"""Graph breaks in today's models, before and after: `python -m benchmarks.modern`, on transformers 5.24.

Each row is a small random-weight model (see `benchmarks.modern_models`). It is verified like any target: breaks are
counted as it is and with the fixes that the linter makes in the files of transformers that the model executes, in an
overlay. `--write` keeps the results and writes the table into docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.kept import RESULTS, Block, markdown, measured_on, why
from benchmarks.measure import ROOT, Measurement
from benchmarks.run import Table
from graphmend_lint.verify import TargetSpec

_HEADERS = ("model", "dtype", "sweep", "before", "safe fixes", "unsafe too", "verdict", "why, or what is left")


@dataclass(frozen=True, slots=True)
class Row:
    """A model, and the breaks that a sweep over all of transformers 5.24.0 counted on a small model of its class."""

    name: str
    sweep: int

    @property
    def target(self) -> TargetSpec:
        return TargetSpec.parse(f"benchmarks.modern_models:{self.name}", ROOT)


#: Models with a guard against overflow in half precision.
GUARDS = {
    "longt516": 10,
    "nllb_moe16": 8,
    "informer16": 6,
    "led16": 6,
    "bart16": 5,
    "bigbird_pegasus16": 5,
    "blenderbot_small16": 4,
    "marian16": 4,
    "mvp16": 4,
    "time_series_transformer16": 4,
}
#: Models that check their inputs with `torch_compilable_check`.
CHECKS = {
    "aria": 3,
    "aya_vision": 3,
    "cohere2_vision": 3,
    "d_fine": 13,
    "florence2": 3,
    "gemma3": 3,
    "got_ocr2": 3,
    "grounding_dino": 14,
    "idefics2": 8,
    "idefics3": 8,
    "internvl": 3,
    "llava": 3,
    "llava_next": 7,
    "llava_next_video": 8,
    "llava_onevision": 8,
    "mistral3": 16,
    "mm_grounding_dino": 14,
    "oneformer": 14,
    "paligemma": 3,
    "qwen2_5_vl": 26,
    "qwen2_vl": 24,
    "qwen3_5": 29,
    "qwen3_vl": 29,
    "rt_detr_v2": 8,
    "siglip2": 6,
    "smolvlm": 7,
    "ultravbert": 6,
    "video_llava": 4,
    "vipllava": 3,
    "vits": 22,
}
ROWS = {name: Row(name, sweep) for name, sweep in (GUARDS | CHECKS).items()}


def table(found: Mapping[str, Measurement]) -> str:
    """The rows that were measured, in the order of `ROWS`, and their sums."""
    shown = {name: found[name] for name in ROWS if name in found}
    sums = _sums([ROWS[name].sweep for name in shown], list(shown.values()))
    rows = [_cells(ROWS[name], one) for name, one in shown.items()]
    return markdown(_HEADERS, [*rows, ("total", "", *sums, _count_proven(list(shown.values())), "")])


def _cells(row: Row, one: Measurement) -> tuple[str, ...]:
    return (
        row.name.removesuffix("16"),
        "float16" if row.name.endswith("16") else "float32",
        str(row.sweep),
        _text(one.before),
        _text(one.after_safe) if one.safe or one.before is None else f"{one.before} (not run)",
        _text(one.unsafe.after) if one.unsafe else "",
        one.verdict,
        why(one),
    )


def _sums(sweep: list[int], found: list[Measurement]) -> list[str]:
    columns = [one.before for one in found], [one.after_safe for one in found], [one.after for one in found]
    return [str(sum(sweep)), *(str(sum(number or 0 for number in column)) for column in columns)]


def _count_proven(found: list[Measurement]) -> str:
    return f"{sum(one.verdict == 'proven' for one in found)} of {len(found)} proven"


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


def blocks(found: Mapping[str, Measurement]) -> dict[Block, str]:
    """The table for docs/benchmarks.md."""
    missing = ", ".join(name for name in ROWS if name not in found)
    more = f"Not measured yet: {missing}.\n\n" if missing else ""
    text = f"\n{measured_on(found.values())}\n{table(found)}\n{more}"
    return {Block(ROOT / "docs" / "benchmarks.md", "modern"): text}


BENCH = Table(
    "benchmarks.modern",
    (__doc__ or "").splitlines()[0],
    ROWS,
    tuple(ROWS),
    ("torch", "transformers"),
    RESULTS / "modern.json",
    table,
    blocks,
)


if __name__ == "__main__":
    raise SystemExit(BENCH.main())
