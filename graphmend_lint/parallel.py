"""Work spread over cores, with results in the order of the work."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Starting a process costs more than this many files.
WORTH_A_POOL = 24


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(
    work: Callable[[Sequence[Item]], list[Result]],
    items: Sequence[Item],
    jobs: int,
    tick: Callable[[int], None] = lambda _: None,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[Any, ...] = (),
) -> Iterator[Result]:
    """`work` over chunks of `items`, in `jobs` processes where that pays; `tick` hears how many are done.

    Linux forks: what `initargs` hold is shared, not copied. Elsewhere they could not be sent to another process, and
    the work stays in this one.
    """
    forks = sys.platform == "linux"
    if jobs <= 1 or len(items) < WORTH_A_POOL or not (forks or initializer is None):
        if initializer is not None:
            initializer(*initargs)
        for start in range(0, len(items), WORTH_A_POOL):
            chunk = items[start : start + WORTH_A_POOL]
            yield from work(chunk)
            tick(len(chunk))
        return
    size = max(1, min(16, len(items) // (jobs * 4)))
    chunks = [items[start : start + size] for start in range(0, len(items), size)]
    context = multiprocessing.get_context("fork" if forks else "spawn")
    with ProcessPoolExecutor(jobs, context, initializer, initargs) as pool:
        for chunk, results in zip(chunks, pool.map(work, chunks), strict=True):
            yield from results
            tick(len(chunk))
