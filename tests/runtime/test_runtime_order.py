"""Order, values of the moment, loops, nested frames, tensor tests, and how often."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest
import torch

from graphmend_lint.runtime import deferred, formatted, when
from tests.runtime.hearing import Ear, listening

logger = logging.getLogger("tests.runtime.order")
X = torch.tensor([1.0, 2.0])
BAD = torch.tensor([float("nan"), float("inf"), 1.0])
BACKENDS = ["eager", "aot_eager"]


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    view = y[:1]
    deferred(print)("before", y, view)
    y.mul_(2)
    deferred(logger).warning("between %s", y)
    deferred(print)(formatted("{} {!r}", y.sum(), view))
    view.zero_()
    deferred(print)("after", y, view)
    x.add_(1)
    deferred(print)("input", x)
    return y


class Inner(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.count: torch.Tensor
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor, depth: int = 0) -> torch.Tensor:
        self.count += 1
        deferred(logger).info("%s at %d, call %s", self.name, depth, self.count)
        if depth < 2:
            x = self(x, depth + 1)
        deferred(warnings.warn)(f"leaving {self.name}")
        return x * 2


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Inner("a"), Inner("b")])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        deferred(print)("start")
        for index, layer in enumerate(self.layers):
            deferred(print)("layer", index)
            x = layer(x)
        [deferred(print)("item", k) for k in range(2)]
        (lambda value: deferred(print)("lambda", value))(x)
        return x


def nested_tests(x: torch.Tensor, verbose: bool = True) -> torch.Tensor:
    if alarm := when(x.isnan().any()):
        alarm(logger).warning("nan in %s", x)
        alarm(print)("nan", x.shape)
        if verbose:
            alarm(warnings.warn)("verbose")
        if inner := when(x.isinf().any(), alarm):
            inner(print)("both")
        if inner := when(x.shape[0] > 2, alarm):
            inner(print)("long")
    if alarm := when(x.isinf().any() & (x.sum() == x.sum())):
        alarm(print)("only inf")
    if alarm := when(verbose):
        alarm(print)("static")
    if alarm := when(x.shape[0] > 2):
        alarm(print)("shape")
    if alarm := when(x.sum()):
        alarm(print)("not a bool")
    if alarm := when(x.sum().reshape(1, 1)):
        alarm(print)("of one element")
    return x + 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_are_those_of_the_call(ear: Ear, backend: str) -> None:
    eager = ear.eager(in_place, (X.clone(),), (X.clone(),))
    assert ear.compiled(in_place, (X.clone(),), (X.clone(),), backend=backend) == eager


@pytest.mark.parametrize("backend", BACKENDS)
def test_nested_frames_loops_and_two_models(ear: Ear, backend: str) -> None:
    def both(first: Outer, second: Outer) -> Any:
        return lambda x: second(first(x))

    eager = ear.eager(both(Outer(), Outer()), (X,), (X,))
    torch._dynamo.reset()
    first, second = (torch.compile(Outer(), backend=backend, fullgraph=True) for _ in range(2))
    with listening() as events:
        second(first(X))
        second(first(X))
    assert events == eager
    assert sum(event[0] == "log" for event in events) == 2 * 2 * 2 * 3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_tensor_tests(ear: Ear, backend: str, dynamic: bool | None) -> None:
    inputs = [X, BAD, torch.zeros(3), torch.tensor([float("inf")] * 4), BAD[:1], BAD]
    heard = ear.same(nested_tests, *[(x,) for x in inputs], backend=backend, dynamic=dynamic)
    assert sum(event[1] == "both" for event in heard) == 2
    assert ear.breaks(nested_tests, X) == 0


def test_test_of_several_elements_raises_as_eagerly(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        if alarm := when(x > 1):
            alarm(print)("never")
        return x + 1

    fast = torch.compile(speak, backend="eager")
    for function in (speak, fast):
        for x in (X, X[:0]):
            with pytest.raises(RuntimeError, match=r"Boolean value of Tensor with .* is ambiguous"):
                function(x)
        function(X[:1])


def test_plain_meaning_of_when() -> None:
    class Once:
        count = 0

        def __bool__(self) -> bool:
            self.count += 1
            return True

    test = Once()
    assert when(test) is deferred
    assert test.count == 1
    assert when(torch.tensor(True)) is deferred
    assert when(torch.tensor(0)) is False
    assert when([]) is False
    assert when(True, when(True)) is deferred


def test_order_against_an_exception(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(print)("before")
        deferred(warnings.warn)("raises", FutureWarning)
        deferred(print)("after")
        return x + 1

    for backend in BACKENDS:
        torch._dynamo.reset()
        fast = torch.compile(speak, backend=backend, fullgraph=True)
        for _ in range(2):
            with listening("error") as events, pytest.raises(FutureWarning):
                fast(X)
            assert events == [("out", "before"), ("out", "\n")]
        with listening() as events:
            fast(X)
        assert len(events) == 5


def test_training(ear: Ear) -> None:
    def step(model: Any) -> Any:
        def run(x: torch.Tensor) -> Any:
            with listening() as events:
                y = model(x)
                y.sum().backward()
            assert x.grad is not None
            return events, x.grad.clone(), y.detach()

        return run

    for backend in BACKENDS:
        torch._dynamo.reset()
        results = [step(m)(X.clone().requires_grad_()) for m in (Outer(), torch.compile(Outer(), backend=backend))]
        assert results[0][0] == results[1][0]
        assert torch.equal(results[0][1], results[1][1])
        assert torch.equal(results[0][2], results[1][2])
        with torch.no_grad():
            ear.same(nested_tests, (BAD,), backend=backend)


def test_graph_breaks_elsewhere(ear: Ear) -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(print)("one", x)
        print("plain", x)
        deferred(print)("two", x)
        for k in range(2):
            deferred(logger).warning("three %s", k)
            torch._dynamo.graph_break()
        if x.sum() > 0:
            deferred(logger).warning("four %s", x)
        if alarm := when(x.sum() > 0):
            torch._dynamo.graph_break()
            alarm(logger).warning("five %s", x)
        return x + 1

    def helper(x: torch.Tensor) -> torch.Tensor:
        return speak(x) + speak(-x)

    heard = []
    for compiled in (False, True):
        torch._dynamo.reset()
        function = torch.compile(helper, backend="eager") if compiled else helper
        with listening() as events:
            function(X)
            function(X)
        # A frame that Dynamo gave up runs as it is, under the name that Dynamo gave to the rest of the
        # function.
        heard.append([event[:4] for event in events])
    assert heard[0] == heard[1]
