"""Generated programs with branches do the same once they are fixed. `make fuzz` runs many more."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.fuzz.campaign import run_chunk


@pytest.mark.parametrize("number", range(4))
def test_fixed_programs_do_the_same(number: int) -> None:
    chunk = run_chunk(number, 60)
    assert not chunk.finds, "\n".join(chunk.finds.values())
    assert chunk.programs >= 50
