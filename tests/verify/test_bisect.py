"""The search for the fix that makes a difference."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphmend_lint.verify.bisect import smallest


class Trials:
    def __init__(self, *guilty: int) -> None:
        self.guilty, self.count = set(guilty), 0

    def __call__(self, items: Sequence[int]) -> bool:
        self.count += 1
        return self.guilty <= set(items)


@pytest.mark.parametrize(("size", "guilty"), [(2, 1), (7, 0), (7, 6), (64, 33)])
def test_one_item_is_found_by_halving(size: int, guilty: int) -> None:
    differs = Trials(guilty)
    assert smallest(range(size), differs, 100) == [guilty]
    assert differs.count <= 2 * size.bit_length()


@pytest.mark.parametrize("guilty", [(0, 1), (0, 15), (3, 8, 12)])
def test_items_that_differ_together_are_found(guilty: tuple[int, ...]) -> None:
    assert smallest(range(16), Trials(*guilty), 200) == list(guilty)


def test_one_item_needs_no_trial() -> None:
    differs = Trials()
    assert smallest([5], differs, 100) == [5]
    assert differs.count == 0


def test_after_the_last_trial_the_set_found_so_far_is_given() -> None:
    differs = Trials(0, 15)
    found = smallest(range(16), differs, 3)
    assert differs.count == 3
    assert {0, 15} <= set(found)
