"""Finds which fix makes a difference, by trying some of the fixes at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

Item = TypeVar("Item")


def smallest(items: Sequence[Item], differs: Callable[[Sequence[Item]], bool], tries: int) -> list[Item]:
    """The smallest set found that still differs, given that all of `items` do.

    One item that is to blame by itself is found by halving. Where several make the difference together, it
    is looked for in smaller and smaller parts. After `tries` trials, the set found so far is the result.
    """
    suspects, parts = list(items), 2
    trials = _Trials(differs, tries)
    while len(suspects) > 1:
        pieces = _pieces(suspects, parts)
        guilty = next((piece for piece in pieces if trials.differ(piece)), None)
        if guilty is not None:
            suspects, parts = guilty, 2
            continue
        without = (_without(pieces, index) for index in range(len(pieces) if len(pieces) > 2 else 0))
        rest = next((some for some in without if trials.differ(some)), None)
        if rest is not None:
            suspects, parts = rest, max(parts - 1, 2)
        elif parts >= len(suspects):
            break
        else:
            parts = min(2 * parts, len(suspects))
    return suspects


class _Trials(Generic[Item]):
    def __init__(self, differs: Callable[[Sequence[Item]], bool], left: int) -> None:
        self._differs, self._left = differs, left

    def differ(self, items: Sequence[Item]) -> bool:
        """False, too, once there are no trials left."""
        if self._left <= 0:
            return False
        self._left -= 1
        return self._differs(items)


def _pieces(items: list[Item], count: int) -> list[list[Item]]:
    edges = [len(items) * index // count for index in range(count + 1)]
    return [items[start:end] for start, end in pairwise(edges) if end > start]


def _without(pieces: list[list[Item]], index: int) -> list[Item]:
    return [item for piece in (*pieces[:index], *pieces[index + 1 :]) for item in piece]
