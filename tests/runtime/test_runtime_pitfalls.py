"""What tools of this kind got wrong with deferred messages, one test for each, where no other file has it."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from graphmend_lint.runtime import deferred, formatted
from tests.runtime.hearing import Ear, listening

logger = logging.getLogger("tests.runtime.pitfalls")
X = torch.tensor([1.0, 2.0])


def test_try_and_finally_keep_the_graph(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        try:
            deferred(print)("in try", x)
            y = x.sin()
        finally:
            deferred(print)("finally")
        try:
            deferred(logger).warning("before the error")
            raise ValueError("static")
        except ValueError as error:
            deferred(print)("handled", str(error))
        return y

    ear.same(speak, (X,), (X,))


def test_inside_context_managers(ear: Ear) -> None:
    @contextlib.contextmanager
    def scope() -> Iterator[None]:
        deferred(print)("enter")
        yield
        deferred(print)("leave")

    def speak(x: torch.Tensor) -> torch.Tensor:
        with scope(), torch.no_grad():
            deferred(print)("inside", x)
            x = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            deferred(print)("product", (x[None] @ x[:, None]).dtype)
        return x

    ear.same(speak, (X,), (X.clone().requires_grad_(),))


def test_star_arguments(ear: Ear) -> None:
    def tell(*values: Any, **options: Any) -> None:
        deferred(print)(*values, **options)

    def speak(x: torch.Tensor) -> torch.Tensor:
        tell("a", *x.shape, *(k * 2 for k in range(2)), sep="-", end="!\n")
        return x + 1

    ear.same(speak, (X,), (torch.ones(3, 4),))


def test_a_logger_of_a_closure_and_one_made_later(ear: Ear) -> None:
    def make(name: str) -> Any:
        local = logging.getLogger(name)

        def speak(x: torch.Tensor) -> torch.Tensor:
            deferred(local).warning("from %s", name)
            return x + 1

        return speak

    for name in ("tests.runtime.made.later", "tests.runtime.made.even.later"):
        assert ear.same(make(name), (X,))[0][1] == name


def test_loggers_of_instances(ear: Ear) -> None:
    class Model(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.logger = logging.getLogger(name)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            deferred(self.logger).warning("called with %s", x)
            return x + 1

    models = [Model(f"tests.runtime.instance.{k}") for k in range(2)]
    heard = []
    for compiled in (False, True):
        torch._dynamo.reset()
        run = [torch.compile(m, backend="eager", fullgraph=True) if compiled else m for m in models]
        with listening() as events:
            for _ in range(2):
                for model in run:
                    model(X)
        heard.append(events)
    assert heard[0] == heard[1]
    assert [event[1][-1] for event in heard[0]] == ["0", "1", "0", "1"]


def test_values_in_texts_are_those_of_the_call(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        deferred(print)(formatted("before {} and {:.1f}", y, y[0]))
        y.add_(1)
        deferred(logger).info("after %s", y)
        y.zero_()
        return y

    for backend in ("eager", "aot_eager"):
        ear.same(speak, (X,), (X,), backend=backend)


def test_a_record_that_is_formatted_late_has_the_values_of_the_call() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        deferred(logger).warning("twice is %s", y)
        y.zero_()
        return y

    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[assignment,method-assign]
    torch._dynamo.reset()
    logger.addHandler(handler)
    try:
        torch.compile(speak, backend="eager", fullgraph=True)(X)
    finally:
        logger.removeHandler(handler)
    assert records[0].getMessage() == "twice is tensor([2., 4.])"


def test_order_of_all_channels_on_several_calls(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        for k in range(2):
            deferred(warnings.warn)("warned", RuntimeWarning)
            deferred(print)("printed", k)
            deferred(logger).error("logged %d", k)
        return x + 1

    events = ear.same(speak, *[(torch.ones(n),) for n in (2, 3, 4, 2)])
    assert [event[0] for event in events[:6]] == ["warning", "out", "out", "out", "out", "log"]


def test_disabled_levels_and_filters_of_the_moment() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).debug("debug %s", x)
        return x + 1

    torch._dynamo.reset()
    fast = torch.compile(speak, backend="eager", fullgraph=True)
    counts = []
    for level in (logging.INFO, logging.DEBUG, logging.ERROR):
        logger.setLevel(level)
        with listening() as events:
            fast(X)
        counts.append(len(events))
    logger.setLevel(logging.NOTSET)
    assert counts == [0, 1, 0]
