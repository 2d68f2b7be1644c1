"""Compiles fixed programs: the same results, and no break where a branch was."""

from __future__ import annotations

import contextlib
import difflib
import logging
import re
from collections.abc import Iterator

import torch
import torch._dynamo

from tests.fuzz.checking import Checked, Wrong
from tests.fuzz.observing import difference, observe

_PLACE = re.compile(r'<program>(?:", line |:)(\d+)')
#: What compiled code promises to do as eager code does.
_PROMISED = ("error", "result", "said", "arguments", "state")


def check_compiled(checked: Checked) -> None:
    """Runs the fixed program compiled, on the calls that raise nothing.

    Raises:
        Wrong: it does something else than eagerly, and the original does not, or Dynamo ends the graph at a fixed line.
    """
    program, fixed = checked.program, checked.fixed
    calls = [number for number, seen in enumerate(observe(fixed, program)) if seen.error is None]
    with _breaks() as breaks:
        found = _differs_compiled(fixed, checked, calls)
    if found and not _differs_compiled(program.source, checked, calls):
        raise Wrong(f"compiled: {found}\n\n{program!r}\n\nfixed:\n{fixed}")
    left = sorted(breaks & _fixed_lines(program.source, fixed))
    if left:
        raise Wrong(f"compiled: breaks at lines {left}\n\n{program!r}\n\nfixed:\n{fixed}")


def _differs_compiled(source: str, checked: Checked, calls: list[int]) -> str:
    torch._dynamo.reset()
    compiled = observe(source, checked.program, calls, compiled=True)
    return difference(observe(source, checked.program, calls), compiled, _PROMISED)


def _fixed_lines(before: str, after: str) -> set[int]:
    """The numbers of the lines that `before` does not have."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    changes = (code[3:] for code in matcher.get_opcodes() if code[0] in ("replace", "insert"))
    return {line + 1 for start, stop in changes for line in range(start, stop)}


class _Events(logging.Handler):
    """Notes the innermost line of the program that a break is at."""

    def __init__(self, lines: set[int]) -> None:
        super().__init__(logging.DEBUG)
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.update(int(line) for line in _PLACE.findall(record.getMessage())[-1:])


@contextlib.contextmanager
def _breaks() -> Iterator[set[int]]:
    """The lines at which Dynamo ends a graph, in a set that fills meanwhile."""
    lines: set[int] = set()
    logs = [logging.getLogger(f"torch._dynamo.{name}.__graph_breaks") for name in ("symbolic_convert", "convert_frame")]
    kept = [(log.handlers, log.propagate, log.level) for log in logs]
    for log in logs:
        log.handlers, log.propagate = [_Events(lines)], False
        log.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        for log, (handlers, propagate, level) in zip(logs, kept, strict=True):
            log.handlers, log.propagate = handlers, propagate
            log.setLevel(level)
