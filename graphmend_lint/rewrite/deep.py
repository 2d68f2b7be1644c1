"""Room for deep trees: LibCST recurses in Python and in native code, and real files nest deeper than the
defaults allow.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_STACK = 512 * 1024 * 1024
_RECURSION = 60_000
_BRACKET = re.compile(r"[\[\](){}]")

# CPython's own tokenizer refuses more than 200 open brackets; brackets in strings are counted here too,
# hence the slack.
MAX_BRACKETS = 400


def bracket_depth(text: str) -> int:
    """A cheap upper bound of how deep brackets nest in `text`; LibCST's parser dies of some thousands."""
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        if match.group() in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest


def with_deep_stack(work: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The result of `work(*args, **kwargs)`, on a stack that fits any file that CPython compiles."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work(*args, **kwargs))
        except BaseException as error:  # handed to the caller below, whatever it is
            failure.append(error)

    limit = sys.getrecursionlimit()
    stack = threading.stack_size(_STACK)
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        thread = threading.Thread(target=run, name="graphmend-rewrite")
        thread.start()
        thread.join()
    finally:
        threading.stack_size(stack)
        sys.setrecursionlimit(limit)
    if failure:
        raise failure[0]
    return outcome[0]
