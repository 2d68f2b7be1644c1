"""The whole of it on Inductor, and where torch traces, repeats or transforms a function in other ways."""

from __future__ import annotations

import copy
import logging
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from graphmend_lint.runtime import deferred, formatted, percent, when
from tests.runtime.hearing import Ear, listening

logger = logging.getLogger("tests.runtime.backends")
X = torch.tensor([1.0, -2.0, 3.0])


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        deferred(print)("shape", x.shape, self.weight)
        y = (x * self.weight).clone()
        deferred(logger).warning("%d values: %s", n, y)
        y = y.mul_(2)
        deferred(warnings.warn)(formatted("sum {:.2f} of {} {!r}", y.sum(), n, "quote ' and \" and \\ and \u00fc"))
        if alarm := when((x > 3).any()):
            alarm(logger).error(percent("large: %s", x.max()))
        return y


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x) + 1
        return x


INPUTS = [(X,), (torch.ones(4) * 4,), (torch.zeros(5),), (X,)]


@pytest.mark.parametrize(
    "options",
    [
        {"backend": "inductor"},
        {"backend": "inductor", "dynamic": True},
        {"mode": "reduce-overhead", "backend": "inductor"},
    ],
    ids=["automatic", "dynamic", "reduce-overhead"],
)
def test_inductor(ear: Ear, options: dict[str, Any]) -> None:
    model = Model()
    with torch.no_grad():
        assert ear.same(model, *INPUTS, **options)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_training_and_its_gradients(backend: str) -> None:
    torch._dynamo.reset()
    results = []
    for compiled in (False, True):
        model = Model()
        function = torch.compile(model, backend=backend, fullgraph=True) if compiled else model
        x = X.clone().requires_grad_()
        with listening() as events:
            function(x).sum().backward()
        results.append((events, x.grad, [p.grad for p in model.parameters()]))
    assert results[0][0] == results[1][0]
    assert str(results[0][1:]) == str(results[1][1:])


def alternating(x: torch.Tensor) -> torch.Tensor:
    for k in range(3):
        deferred(print)("constant", k)
        x = x.sin()
        deferred(print)("value", k, x)
        x = x + 1
    return x


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_inductor_does_not_reorder(ear: Ear, mode: str) -> None:
    """Inductor 2.13 moves operations without inputs to the front where it means to use CUDA graphs."""
    ear.same(alternating, (X,), (X,), mode=mode, backend="inductor")


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_checkpoint(backend: str) -> None:
    """The forward part says the same; what recomputation repeats is exempt."""
    torch._dynamo.reset()
    model = Layer()

    def run(x: torch.Tensor) -> Any:
        return checkpoint(model, x, use_reentrant=False).sum()

    heard = []
    for function in (run, torch.compile(run, backend=backend, fullgraph=True)):
        with listening() as events:
            loss = function(X.clone().requires_grad_())
        with listening():
            loss.backward()
        heard.append([event for event in events if event[0] != "log" or event[1] == logger.name])
    assert [event[:4] for event in heard[0]] == [event[:4] for event in heard[1]]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("dynamic", [True, False])
def test_export(strict: bool, dynamic: bool) -> None:
    model = Model().requires_grad_(False)
    shapes = {"x": {0: torch.export.Dim("n", min=2, max=100)}} if dynamic else None
    calls = INPUTS if dynamic else [INPUTS[0], (X + 2,)]
    with listening() as exporting:
        program = torch.export.export(model, INPUTS[0], strict=strict, dynamic_shapes=shapes)
    assert [event for event in exporting if event[0] != "warning" or "sum" in event[2]] == []
    for call in calls:
        with listening() as eager:
            expected = model(*call)
        with listening() as events:
            result = program.module()(*call)
        assert torch.equal(result, expected)
        assert [event[:3] for event in events] == [event[:3] for event in eager]
        places = [(event[4][:2], other[4][:2]) for event, other in zip(eager, events, strict=True) if event[0] == "log"]
        assert all(place == other for place, other in places)


def test_export_round_trip(tmp_path: Path) -> None:
    program = torch.export.export(Model().requires_grad_(False), (X,))
    torch.export.save(program, tmp_path / "model.pt2")
    with listening() as events:
        torch.export.load(tmp_path / "model.pt2").module()(X)
    with listening() as eager:
        Model()(X)
    assert [event[:2] for event in events if event[0] == "log"] == [event[:2] for event in eager if event[0] == "log"]


def plain_messages(x: torch.Tensor) -> torch.Tensor:
    deferred(print)("once for the batch", x.shape, x)
    deferred(logger).warning("and %s", (x * 2).sum())
    return x.sin()


def test_vmap(ear: Ear) -> None:
    batch = torch.arange(6.0).reshape(3, 2)
    for dims in (0, 1):
        function = torch.vmap(plain_messages, in_dims=dims)
        for backend in ("eager", "aot_eager"):
            heard = [ear.eager(function, (batch,)), ear.compiled(function, (batch,), backend=backend)]
            assert [event[:4] for event in heard[0]] == [event[:4] for event in heard[1]]
        assert any("BatchedTensor(lvl=1" in str(event) for event in heard[1])
    twice = torch.vmap(torch.vmap(plain_messages))
    heard = [ear.eager(twice, (batch[None],)), ear.compiled(twice, (batch[None],))]
    assert [event[:4] for event in heard[0]] == [event[:4] for event in heard[1]]


def test_batched_predicate_raises_as_eagerly() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        if alarm := when(x.sum() > 0):
            alarm(print)("positive")
        return x + 1

    torch._dynamo.reset()
    for function in (torch.vmap(speak), torch.compile(torch.vmap(speak), backend="eager")):
        with pytest.raises(RuntimeError, match="data-dependent control flow"):
            function(torch.ones(3, 2))


def test_functional_transforms(ear: Ear) -> None:
    model = Layer()
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def call(parameters: Any, x: torch.Tensor) -> Any:
        return torch.func.functional_call(model, parameters, (x,)).sum()

    ear.same(call, (parameters, X))
    gradient = torch.func.grad(call)
    for backend in ("eager", "aot_eager"):
        events = ear.compiled(gradient, (parameters, X), backend=backend)
        eager = ear.eager(gradient, (parameters, X))
        assert [event[0] for event in events if event[0] != "out"] == [event[0] for event in eager if event[0] != "out"]
    torch._dynamo.reset()
    with listening():
        fast = torch.compile(gradient, backend="eager", fullgraph=True)(parameters, X)
        assert torch.equal(fast["weight"], gradient(parameters, X)["weight"])


def test_threads() -> None:
    torch._dynamo.reset()
    fast = torch.compile(Model(), backend="eager")
    with listening() as events:
        fast(X)
        once = len(events)
        events.clear()
        threads = [threading.Thread(target=fast, args=(X,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(events) == 4 * once


def test_copies_of_a_model(ear: Ear) -> None:
    model = Model()
    heard = []
    for candidate in (
        model,
        copy.deepcopy(model),
        torch.compile(copy.deepcopy(model), backend="eager", fullgraph=True),
    ):
        with listening() as events:
            candidate(X)
        heard.append(events)
    assert heard[0] == heard[1] == heard[2]
    with listening() as events:
        copy.deepcopy(candidate)(X)
    assert events == heard[0]


SCRIPT = """
import logging, sys, torch
from graphmend_lint.runtime import deferred, when
logging.basicConfig(stream=sys.stdout, format="%(filename)s:%(lineno)d %(message)s")
logger = logging.getLogger("script")
def speak(x):
    deferred(print)("x is", x, x.shape)
    if alarm := when(x.sum() > 1):
        alarm(logger).warning("large %s", x.sum())
    return x.sin() + 1
fast = torch.compile(speak, fullgraph=True)
fast(torch.ones(2))
fast(torch.zeros(2))
"""


@pytest.mark.slow
def test_second_process_with_a_shared_cache_still_speaks(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": root}
    environment["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "1"
    out = [
        subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    line = SCRIPT.split("\n").index('        alarm(logger).warning("large %s", x.sum())') + 1
    said = [
        "x is tensor([1., 1.]) torch.Size([2])",
        f"script.py:{line} large tensor(2.)",
        "x is tensor([0., 0.]) torch.Size([2])",
    ]
    assert out == [said, said]
