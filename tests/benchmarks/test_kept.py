"""Results that are kept, and what documents show of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import modern, table2
from benchmarks.kept import Block, Kept, markdown
from benchmarks.measure import Fixed, Measurement, portable
from benchmarks.run import Table

PROVEN = Fixed("proven", "graph breaks 3 -> 0", 0, (0, 0), True, rules=("GM202",))
VERSIONS = {"python": "3.11.7", "torch": "2.13.0", "transformers": "4.52.4"}


def measured(row: str, before: int, safe: Fixed | None = None, unsafe: Fixed | None = None) -> Measurement:
    return Measurement(row, "2026-01-31", VERSIONS, 1.0, before, ("model.py:3 if x.any():",), safe, unsafe)


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "results" / "some.json")
    first, second = measured("t5", 3, PROVEN), measured("gdino", 16, None, PROVEN)
    kept.add(first)
    kept.add(second)
    kept.add(measured("t5", 4, PROVEN))

    assert kept.read() == {"t5": measured("t5", 4, PROVEN), "gdino": second}


def test_a_block_of_a_document_is_replaced(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- one:start -->\nold\n<!-- one:end -->\nafter\n", encoding="utf-8")

    Block(document, "one").write("new \\1\n")

    assert Block(document, "one").read() == "new \\1\n"
    assert document.read_text(encoding="utf-8").startswith("before\n")
    assert document.read_text(encoding="utf-8").endswith("after\n")
    with pytest.raises(LookupError, match="other"):
        Block(document, "other").write("")


def test_a_cell_cannot_end_its_column() -> None:
    assert markdown(("a",), [("x | y",)]).splitlines()[-1] == "| x \\| y |"


def test_a_row_counts_once_for_each_of_its_models() -> None:
    found = {"t5": measured("t5", 3, PROVEN), "longformer": measured("longformer", 5, Fixed("proven", "", 2))}

    lines = table2.scores(found).splitlines()

    assert lines[0] == "- The paper: 17 of 20 breaks removed (85%), 5 of 6 models without any."
    assert lines[1] == "- Here, safe fixes: 18 of 20 breaks removed (90%), 5 of 6 models without any."


def test_only_proven_fixes_count() -> None:
    wrong = Fixed("not proven", "eager values: differ", 0)
    found = {"gdino": measured("gdino", 16, PROVEN, wrong), "phi": measured("phi", 5, wrong)}

    lines = table2.scores(found).splitlines()

    assert lines[2] == "- Here, unsafe fixes too: 32 of 37 breaks removed (86%), 2 of 3 models without any."
    assert lines[3].endswith("`phi`.")


def test_safe_and_unsafe_fixes_are_told_apart() -> None:
    found = {"gdino": measured("gdino", 16, None, PROVEN)}

    assert table2.scores(found).splitlines()[1:3] == [
        "- Here, safe fixes: 0 of 32 breaks removed (0%), 0 of 2 models without any.",
        "- Here, unsafe fixes too: 32 of 32 breaks removed (100%), 2 of 2 models without any.",
    ]
    assert "| gdino | 2 | DC 11, DS 3, DO 3 | 17 -> 7 | 16 | 16 | 0 | proven |" in table2.table(found)


def test_the_table_is_the_papers() -> None:
    rows = table2.PAPER.values()
    assert sum(len(row.models) for row in rows) == 27
    assert sum(len(row.models) * row.before for row in rows) == 147
    assert sum(len(row.models) * (row.before - row.after) for row in rows) == 107


def test_places_on_this_machine_are_left_out() -> None:
    text = "GM101 at /some/where/lib/python3.11/site-packages/transformers/models/t5/modeling_t5.py:3"
    assert portable(text) == "GM101 at transformers/models/t5/modeling_t5.py:3"


@pytest.mark.parametrize("bench", [table2.BENCH, modern.BENCH], ids=["table2", "modern"])
def test_documents_show_the_kept_results(bench: Table) -> None:
    found = Kept(bench.results).read()

    assert set(found) <= set(bench.rows)
    for block, text in bench.blocks(found).items():
        assert block.read() == text, f"python -m {bench.program} --render"
