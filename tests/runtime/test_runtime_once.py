"""Methods named `*_once` with constant arguments speak while tracing, and leave no op in the graph."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo.testing

from graphmend_lint.runtime import deferred, when
from tests.runtime.hearing import Ear, listening


class OnceLogger(logging.Logger):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.warning_once: Callable[..., None] = functools.lru_cache(None)(self.warning)
        self.fail_once: Callable[..., None] = self._fail

    def _fail(self, text: str) -> None:
        raise ValueError(text)


def once_logger() -> OnceLogger:
    logging.setLoggerClass(OnceLogger)
    logger = logging.getLogger("tests.runtime.once")
    logging.setLoggerClass(logging.Logger)
    assert isinstance(logger, OnceLogger)
    return logger


logger = once_logger()
X = torch.ones(3)


@pytest.fixture(autouse=True)
def _forget() -> None:
    logger.warning_once = functools.lru_cache(None)(logger.warning)


def ops(function: Any, *calls: tuple[Any, ...], **options: Any) -> tuple[int, list[Any]]:
    """The number of our ops in the graphs, and what is heard."""
    torch._dynamo.reset()
    backend: Any = torch._dynamo.testing.EagerAndRecordGraphs()
    with listening() as events:
        for call in calls:
            fast: Any = torch.compile(function, backend=backend, fullgraph=True, **options)
            fast(*call)
    nodes = [node for graph in backend.graphs for node in graph.graph.nodes]
    return sum("graphmend" in str(node.target) for node in nodes), [event[3] for event in events if event[0] == "log"]


def test_constants_speak_while_tracing() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).warning_once("dtype %s", x.dtype)
        deferred(logger).warning_once("text")
        deferred(logger).warning_once("text")
        return x + 1

    assert ops(speak, (X,), (X,)) == (0, ["dtype torch.float32", "text"])


def test_values_speak_when_the_graph_runs(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).warning_once("shape %s", x.shape)
        deferred(logger).warning_once("text")
        return x + 1

    assert ops(speak, (X,), (X,)) == (2, ["shape torch.Size([3])", "text"])
    logger.warning_once.cache_clear()  # type: ignore[attr-defined]
    calls = [(torch.ones(n),) for n in (2, 3, 4, 3, 2)]
    eager = ear.eager(speak, *calls)
    logger.warning_once.cache_clear()  # type: ignore[attr-defined]
    assert ear.compiled(speak, *calls) == eager
    assert len(eager) == 4


def test_order_with_other_calls_is_kept(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).warning_once("first")
        deferred(logger).warning("second")
        deferred(logger).warning_once("third")
        return x + 1

    assert ops(speak, (X,)) == (2, ["first", "second", "third"])
    for _ in range(2):
        logger.warning_once.cache_clear()  # type: ignore[attr-defined]
        assert ops(speak, (X,)) == (2, ["first", "second", "third"])


def test_under_a_tensor_test_it_is_an_op() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        if alarm := when(x.sum() > 0):
            alarm(logger).warning_once("positive")
        return x + 1

    assert ops(speak, (-X,)) == (1, [])
    assert ops(speak, (X,)) == (1, ["positive"])


def test_in_one_arm_of_cond_it_is_not_spoken_for_the_other() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        def positive(x: torch.Tensor) -> torch.Tensor:
            deferred(logger).warning_once("positive")
            return x + 1

        result: torch.Tensor = torch.cond(x.sum() > 0, positive, lambda x: x - 1, (x,))
        return result

    torch._dynamo.reset()
    # What torch says of an effect inside of cond is torch's business.
    with listening() as events, contextlib.suppress(torch._dynamo.exc.TorchDynamoException):
        torch.compile(speak, backend="eager", fullgraph=True)(-X)
    assert not events


def test_one_that_raises_does_so_when_the_graph_runs() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).fail_once("broken")
        return x + 1

    torch._dynamo.reset()
    fast = torch.compile(speak, backend="eager", fullgraph=True)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            fast(X)


def test_after_a_graph_break(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).warning("one")
        torch._dynamo.graph_break()
        deferred(logger).warning_once("two")
        return x + 1

    eager = ear.eager(speak, (X,), (X,))
    logger.warning_once.cache_clear()  # type: ignore[attr-defined]
    assert ear.compiled(speak, (X,), (X,), fullgraph=False) == eager


def test_export_speaks_while_exporting() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).warning_once("exported")
        return x + 1

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return speak(x)

    for strict in (True, False):
        logger.warning_once.cache_clear()  # type: ignore[attr-defined]
        with listening() as events:
            program = torch.export.export(Model(), (X,), strict=strict)
            program.module()(X)
        assert [event[3] for event in events if event[0] == "log"] == ["exported"]
