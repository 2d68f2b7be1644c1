"""Which findings a baseline explains, and which of its entries nothing explains any more.

In this order: the same content in the same function; the same in a function that has moved. A function has moved if it
is gone from where it was and is now in another file (a renamed file, a function or class that went elsewhere) or goes
by another name in its own. So a break that is fixed here and written anew in a function there is a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from graphmend_lint.gate.baseline import Entry

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Found(Generic[Thing]):
    """Something that was found now, and what it is known by: an entry with the count 1."""

    thing: Thing
    entry: Entry


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Thing]):
    """`new` has what the baseline does not explain, `left` the entries, or counts of them, that nothing used up."""

    new: tuple[Found[Thing], ...]
    known: tuple[Found[Thing], ...]
    left: tuple[Entry, ...]


_Key = Callable[[Entry], tuple[str, ...]]

_IN_PLACE: _Key = lambda entry: entry.key  # noqa: E731 (read as a table with those below)
#: How a function may have moved, the likelier ways first.
_MOVES: tuple[_Key, ...] = (
    lambda entry: (entry.code, entry.content, entry.scope),
    lambda entry: (entry.code, entry.content, entry.path),
    lambda entry: (entry.code, entry.content, entry.scope.rpartition(".")[2]),
)


def compare(
    entries: Iterable[Entry], found: Sequence[Found[Thing]], is_gone: Callable[[Entry], bool]
) -> Comparison[Thing]:
    """Use up entries for what was found. Of several that are alike, the first ones in `found` are known.

    `is_gone` says whether the function of an entry is no longer where it was.
    """
    left = {entry: entry.count for entry in entries}
    rest, known = list(found), []
    for key in (_IN_PLACE, *_MOVES):
        pool: dict[tuple[str, ...], list[Entry]] = {}
        for entry, count in left.items():
            if count:
                pool.setdefault(key(entry), []).append(entry)
        unexplained = []
        for one in rest:
            candidates = pool.get(key(one.entry), [])
            taken = next((e for e in candidates if left[e] and (key is _IN_PLACE or is_gone(e))), None)
            if taken is None:
                unexplained.append(one)
            else:
                left[taken] -= 1
                known.append(one)
        rest = unexplained
    remaining = tuple(replace(entry, count=count) for entry, count in left.items() if count)
    return Comparison(tuple(rest), tuple(known), remaining)
