"""Hear what a function says, on all channels and in order, eagerly and compiled."""

from __future__ import annotations

import io
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._dynamo.testing

Event = tuple[Any, ...]
GRAD_FN = re.compile(r",\s*grad_fn=<\w+>")


class Stream(io.StringIO):
    """A stream that notes each write."""

    def __init__(self, name: str, events: list[Event]) -> None:
        super().__init__()
        self.label, self.events = name, events

    def write(self, text: str) -> int:
        self.events.append((self.label, GRAD_FN.sub("", text)))
        return len(text)


class Recorder(logging.Handler):
    """A handler that notes the text of each record, and where it says that it comes from."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__(level=logging.DEBUG)
        self.events = events

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        place = (record.pathname, record.lineno, record.funcName)
        self.events.append(("log", record.name, record.levelname, GRAD_FN.sub("", text), place))


@contextmanager
def listening(filters: str = "always") -> Iterator[list[Event]]:
    """The list of all that is printed, logged and warned of inside."""
    events: list[Event] = []
    root, handler = logging.getLogger(), Recorder(events)
    out, err = sys.stdout, sys.stderr

    def show(message: Any, category: Any, filename: str, line: int, *_: Any) -> None:
        if "torch.jit" in str(message) or str(message).startswith("Dynamo does not know"):
            return  # torch speaks of its own affairs
        events.append(("warning", category.__name__, GRAD_FN.sub("", str(message)), (filename, line)))

    with warnings.catch_warnings():
        warnings.simplefilter(filters)  # type: ignore[arg-type]
        warnings.showwarning = show  # type: ignore[assignment]
        root.addHandler(handler)
        sys.stdout, sys.stderr = Stream("out", events), Stream("err", events)
        try:
            yield events
        finally:
            sys.stdout, sys.stderr = out, err
            root.removeHandler(handler)


class Ear:
    """Runs a function eagerly and compiled, and compares."""

    def eager(self, function: Callable[..., Any], *calls: tuple[Any, ...], filters: str = "always") -> list[Event]:
        with listening(filters) as events:
            for call in calls:
                function(*call)
        return events

    def compiled(
        self, function: Callable[..., Any], *calls: tuple[Any, ...], filters: str = "always", **options: Any
    ) -> list[Event]:
        options = {"backend": "eager", "fullgraph": True, **options}
        torch._dynamo.reset()
        fast = torch.compile(function, **options)
        with listening(filters) as events:
            for call in calls:
                fast(*call)
        return events

    def same(self, function: Callable[..., Any], *calls: tuple[Any, ...], **options: Any) -> list[Event]:
        """What is heard, eagerly and compiled, if it is the same; the test fails otherwise."""
        filters = options.get("filters", "always")
        expected = self.eager(function, *calls, filters=filters)
        assert self.compiled(function, *calls, **options) == expected
        return expected

    def measured(
        self, function: Callable[..., Any], *calls: tuple[Any, ...], backend: str = "eager", **options: Any
    ) -> tuple[list[Event], int, int]:
        """What is heard when compiled, how many graphs are compiled, and how many breaks Dynamo reports."""
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
        fast = torch.compile(function, backend=counter, **options)
        with listening() as events:
            for call in calls:
                fast(*call)
        breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
        return events, int(counter.frame_count), breaks

    def frames(self, function: Callable[..., Any], *calls: tuple[Any, ...], **options: Any) -> int:
        return self.measured(function, *calls, **options)[1]

    def breaks(self, function: Callable[..., Any], *call: Any) -> int:
        return self.measured(function, call)[2]
