"""What Dynamo makes of the model: graphs, the places where they end, and whether one graph would do."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.convert_frame

from graphmend_lint.verify.verdict import Break
from graphmend_lint.verify.worker.executed import user_files

_LOGS = [f"torch._dynamo.{module}.__graph_breaks" for module in ("symbolic_convert", "convert_frame", "exc")]
_FRAME = re.compile(
    r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)\n *(?P<code>.*)$', re.MULTILINE
)
_PLACE = re.compile(r"in user code at (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_REASON = re.compile(r"^(?:Graph Break Reason: )?(?P<reason>.+)\n +Explanation:", re.MULTILINE)
_PAGE = re.compile(r"/gb/gb(\d{4})\.html")
_SKIPS = ("Skipping the function", "skip tracing the frame")


class GraphCounter:
    """A backend that compiles nothing and counts what it is given."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, module: torch.fx.GraphModule, example: list[torch.Tensor]) -> Callable[..., Any]:
        self.graphs += 1
        return module.forward


@contextmanager
def break_log() -> Iterator[list[str]]:
    """Collects the entries of Dynamo's graph-break log."""
    entries: list[str] = []
    torch_logging: Any = torch._logging
    torch_logging.set_logs(graph_breaks=True)
    handler = _Collector(entries)
    for name in _LOGS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
    yield entries


class _Collector(logging.Handler):
    def __init__(self, entries: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._entries = entries

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}\n{record.exc_info[1]}"
        self._entries.append(text)


def sites_of(entries: list[str]) -> list[Break]:
    """The distinct places of the log; an entry that repeats a place is counted, not listed."""
    found: dict[tuple[str, str, int, str], Break] = {}
    seen: dict[str, Break] = {}
    for entry in entries:
        place = _PLACE.search(entry)
        where = place.group(0) if place else entry
        # Only the first entry of a place has its stack; the user's frame may be further out than the place.
        site = _site_of(entry, seen.get(where))
        seen.setdefault(where, site)
        key = (site.type, site.file, site.line, site.function)
        if known := found.get(key):
            site = Break(**{**asdict(known), "times": known.times + 1, "skipped": known.skipped or site.skipped})
        found[key] = site
    return list(found.values())


def _site_of(entry: str, known: Break | None) -> Break:
    kind = reason_of(entry)
    file, line, function, code = _frame_of(entry, known)
    return Break(
        gb=_number_of(entry, kind),
        type=kind,
        file=file,
        line=line,
        function=function,
        code=code,
        skipped=any(words in entry for words in _SKIPS),
    )


def reason_of(entry: str) -> str:
    """The type of break, in one line.

    Where several are named it is the first: a break met while another is handled (`graph break in loop`)
    follows from that one.
    """
    if reason := _REASON.search(entry):
        return reason.group("reason").strip()
    return (entry.strip().splitlines() or ["unknown"])[-1].strip()[:120]


def _number_of(entry: str, kind: str) -> str | None:
    if number := _registry().get(kind):
        return number
    page = _PAGE.search(entry)
    return f"GB{page.group(1)}" if page else None


@cache
def _registry() -> dict[str, str]:
    """PyTorch's number for each type of break, from the list that it ships."""
    file = Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json"
    if not file.exists():
        return {}
    entries = json.loads(file.read_text(encoding="utf-8"))
    return {versions[0]["Gb_type"]: number for number, versions in entries.items() if versions}


def _frame_of(entry: str, known: Break | None) -> tuple[str, int, str, str]:
    """The innermost frame of the user's code; of any code where there is none."""
    frames = list(_FRAME.finditer(entry.rpartition("ser code traceback:")[2]))
    if known is None and frames:
        mine = set(user_files({frame.group("file") for frame in frames}))
        inner = next((frame for frame in reversed(frames) if str(Path(frame["file"]).resolve()) in mine), frames[-1])
        return inner["file"], int(inner["line"]), inner["function"], inner["code"].strip()
    if known is not None:
        return known.file, known.line, known.function, known.code
    place = _PLACE.search(entry)
    return (place["file"], int(place["line"]), "", "") if place else ("", 0, "", "")
