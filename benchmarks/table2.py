"""The paper's Table 2, measured here: `python -m benchmarks.table2`.

Each row is a small random-weight model (see `benchmarks.models`). It is verified like any target: breaks are counted as
it is and with the fixes that the linter makes in the files that the model executes, in an overlay; outputs, messages,
recompiles and the `fullgraph=True` capture of both are compared. `--write` keeps the results and writes the table into
README.md, and the details into docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.kept import RESULTS, Block, markdown, measured_on, why
from benchmarks.measure import ROOT, Fixed, Measurement
from benchmarks.run import Table
from graphmend_lint.verify import TargetSpec

_HEADERS = ("row", "models", "mix", "paper", "before", "safe fixes", "unsafe too", "verdict", "fullgraph", "recompiles")
_DETAILS = ("row", "rules", "why, or what is left")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the paper: its models, and the breaks of each of them before and after.

    `twin`: the models are code from the hub, and the row is a model of our own with their pattern.
    """

    name: str
    models: tuple[str, ...]
    mix: str
    before: int
    after: int
    twin: bool = False

    @property
    def target(self) -> TargetSpec:
        return TargetSpec.parse(f"benchmarks.models:{self.name}", ROOT)


_T5_MODELS = ("t5-small", "t5-base", "t5-3b", "flan-t5-large", "inclusively-reformulation-it5")
_BARTS = ("bart-large-cnn", "bart-base", "rebel-large")

PAPER = {
    row.name: row
    for row in (
        Row("t5", _T5_MODELS, "LC 3", 3, 0),
        Row("whisper", ("whisper-large-v3", "whisper-small", "whisper-base"), "LC 3", 3, 0),
        Row("bart16", _BARTS, "DC 4, LC 3", 7, 0),
        Row("marian16", ("opus-mt-fr-en",), "DC 3, LC 3", 6, 0),
        Row("blenderbot", ("blenderbot-400M-distill",), "LC 3", 3, 0),
        Row("pegasus", ("PegasusForCausalLM",), "LC 2", 2, 0),
        Row("biogpt", ("biogpt",), "LC 2", 2, 0),
        Row("layoutlmv3", ("layoutlmv3-base",), "LC 2", 2, 0),
        Row("chronos", ("chronos-bolt-small",), "LC 6", 6, 0),
        Row("phi", ("Phi-4-mini-instruct",), "DC 5", 5, 0),
        Row("longformer", ("longformer-base-4096",), "LC 3, TI 2", 5, 3),
        Row("gdino", ("grounding-dino-tiny", "grounding-dino-base"), "DC 11, DS 3, DO 3", 17, 7),
        Row("clap", ("clap-htsat-fused",), "DS 4", 4, 4),
        Row("molformer", ("MoLFormer-XL-both10pct",), "VG 5", 5, 0, twin=True),
        Row("florence", ("Florence-2",), "DC 7", 7, 0, twin=True),
        Row("qwen_audio", ("Qwen-Audio-Chat",), "DC 2", 2, 0, twin=True),
        Row("minicpm_moe", ("moe-minicpm-x4-base",), "DS 15", 15, 15, twin=True),
        Row("stella", ("stella-en-400M-v5",), "DO, DS 4", 4, 4, twin=True),
    )
}
#: In fp32 the overflow guards of BART and Marian are dead code: the rest of what the paper counted is left.
IN_FP32 = {
    "bart": Row("bart", _BARTS, "LC 3 of 7", 3, 0),
    "marian": Row("marian", ("opus-mt-fr-en",), "LC 3 of 6", 3, 0),
}
ROWS = PAPER | IN_FP32


def table(found: Mapping[str, Measurement]) -> str:
    """The rows that were measured in the order of `ROWS`, and the sums of those of the paper."""
    shown = {name: found[name] for name in ROWS if name in found}
    return markdown(_HEADERS, [*(_cells(ROWS[name], one) for name, one in shown.items()), _sums(shown)])


def _cells(row: Row, one: Measurement) -> tuple[str, ...]:
    best = one.best or Fixed(one.verdict, one.reason)
    return (
        f"{row.name} (twin)" if row.twin else row.name,
        str(len(row.models)),
        row.mix,
        f"{row.before} -> {row.after}",
        _text(one.before),
        _text(one.after_safe),
        _text(one.unsafe.after) if one.unsafe else "",
        one.verdict,
        {True: "yes", False: "no", None: "-"}[best.fullgraph],
        f"{best.recompiles[0]} -> {best.recompiles[1]}" if best.recompiles else "-",
    )


def _sums(shown: Mapping[str, Measurement]) -> tuple[str, ...]:
    paper = _Score.of(shown, lambda row, _: (row.before, row.after))
    safe, best = _Score.of(shown, _safe), _Score.of(shown, _all)
    proven = sum(len(ROWS[name].models) for name, one in shown.items() if name in PAPER and one.verdict == "proven")
    return (
        "all models",
        str(paper.models),
        "",
        f"{paper.before} -> {paper.after}",
        str(best.before),
        str(safe.after),
        str(best.after),
        f"{proven} of {paper.models} proven",
        "",
        "",
    )


@dataclass(frozen=True, slots=True)
class _Score:
    """Sums over the models of the paper's rows: a row counts as often as it has models."""

    models: int
    whole: int
    before: int
    after: int

    @classmethod
    def of(cls, found: Mapping[str, Measurement], counts: Callable[[Row, Measurement], tuple[int, int]]) -> _Score:
        rows = [(len(PAPER[name].models), *counts(PAPER[name], one)) for name, one in found.items() if name in PAPER]
        return cls(
            sum(models for models, _, _ in rows),
            sum(models for models, before, after in rows if before and not after),
            sum(models * before for models, before, _ in rows),
            sum(models * after for models, _, after in rows),
        )

    def in_words(self) -> str:
        removed = self.before - self.after
        share = round(100 * removed / self.before) if self.before else 0
        return f"{removed} of {self.before} breaks removed ({share}%), {self.whole} of {self.models} models without any"


def _safe(_: Row, one: Measurement) -> tuple[int, int]:
    """Only what is proven counts: breaks that other fixes remove are still there."""
    before = one.before or 0
    proven = one.safe is not None and one.safe.status == "proven"
    return before, (one.after_safe or 0) if proven else before


def _all(row: Row, one: Measurement) -> tuple[int, int]:
    before, after = _safe(row, one)
    if one.unsafe is not None and one.unsafe.status == "proven":
        return before, one.unsafe.after or 0
    return before, after


def scores(found: Mapping[str, Measurement]) -> str:
    """The shares of breaks that are gone, beside the paper's."""
    paper = _Score.of(found, lambda row, _: (row.before, row.after)).in_words()
    safe, best = (_Score.of(found, counts).in_words() for counts in (_safe, _all))
    below = ", ".join(f"`{name}`" for name in found if name in PAPER and not _reaches(PAPER[name], found[name]))
    return "".join(
        f"- {line}\n"
        for line in (
            f"The paper: {paper}.",
            f"Here, safe fixes: {safe}.",
            f"Here, unsafe fixes too: {best}.",
            f"Rows that do not reach the paper's share with a proof: {below or 'none'}.",
        )
    )


def _reaches(row: Row, one: Measurement) -> bool:
    """No more breaks are left than in the paper, or no greater share."""
    before, after = _all(row, one)
    return bool(before) and (after <= row.after or after * row.before <= before * row.after)


def details(found: Mapping[str, Measurement]) -> str:
    """For each row the rules that fixed something, and what is to be said of its verdict."""
    return markdown(_DETAILS, [(name, _rules(found[name]), why(found[name])) for name in ROWS if name in found])


def _rules(one: Measurement) -> str:
    return ", ".join(one.best.rules) if one.best else ""


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


_NOTES = (
    "Breaks are those of one call. `bart16` and `marian16` are in half precision, where their guard against overflow "
    "is live. A twin is a model of our own with the pattern of one whose code is on the hub; its number of breaks need "
    "not be that of the paper. `phi` is called with a short and a long input in turn, `qwen_audio` with and without an "
    "audio. [More](docs/benchmarks.md#table-2).\n"
)


def blocks(found: Mapping[str, Measurement]) -> dict[Block, str]:
    """The table for README.md, and the details for docs/benchmarks.md."""
    of_paper = {name: found[name] for name in PAPER if name in found}
    when = measured_on(of_paper.values())
    return {
        Block(ROOT / "README.md", "table2"): f"{table(of_paper)}\n{scores(of_paper)}\n{when}{_NOTES}",
        Block(ROOT / "docs" / "benchmarks.md", "table2"): f"\n{when}\n{scores(of_paper)}\n{details(found)}\n",
    }


BENCH = Table(
    "benchmarks.table2",
    (__doc__ or "").splitlines()[0],
    ROWS,
    tuple(PAPER),
    ("torch", "transformers", "chronos-forecasting"),
    RESULTS / "table2.json",
    lambda found: f"{table(found)}\n{scores(found)}",
    blocks,
)


if __name__ == "__main__":
    raise SystemExit(BENCH.main())
