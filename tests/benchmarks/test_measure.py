"""Rows are measured: the fixes of files are made once, and a twin is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measure import Bench, Indices, KeptFixes, UnsafeToo
from benchmarks.table2 import PAPER
from graphmend_lint.verify import Options

PRINTS = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("called")
        return x + 1
"""


def test_a_file_is_fixed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "project" / "model.py"
    path.parent.mkdir()
    path.write_text(PRINTS, encoding="utf-8")
    safe = KeptFixes(Indices())

    first, again = safe([path]), safe([path])

    assert first[path].changed
    assert again[path] is first[path]
    assert UnsafeToo(safe)([path])[path] is first[path]


@pytest.mark.slow
def test_a_twin_is_measured() -> None:
    bench = Bench(Options(device="cpu", passes=0), ("torch",))
    with bench.launcher:
        found = bench.measure("florence", PAPER["florence"].target)

    assert found.before is not None
    assert found.before > 1
    assert (found.after_safe, found.unsafe, found.verdict) == (0, None, "proven")
    assert found.best is not None
    assert found.best.rules == ("GM101",)
    assert "benchmarks/twins/florence.py" in found.breaks[0]
    assert not any(str(Path.cwd()) in text for text in (*found.breaks, found.reason, *found.best.notes))
