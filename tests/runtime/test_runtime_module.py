"""The module itself: what its import costs, copies of it, torch without the mechanism, eager calls."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from graphmend_lint import runtime
from graphmend_lint.vendor import vendor
from tests.runtime.hearing import Ear, listening

ROOT = Path(__file__).parents[2]
X = torch.tensor([1.0, 2.0])


def run(code: str) -> list[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_import_adds_nothing_to_the_import_of_torch() -> None:
    code = (
        "import sys, torch; before = set(sys.modules); import graphmend_lint.runtime; "
        "print(*sorted(set(sys.modules) - before))"
    )
    (added,) = run(code)
    assert "torch._dynamo" not in added
    assert {name.split(".")[0] for name in added.split()} <= {"graphmend_lint", *sys.stdlib_module_names}


def test_two_copies_in_one_process(tmp_path: Path, ear: Ear) -> None:
    first = load(vendor(tmp_path / "first.py"), "tests_first_copy")
    second = load(vendor(tmp_path / "second.py"), "tests_second_copy")

    def speak(x: torch.Tensor) -> torch.Tensor:
        first.deferred(print)("first", x)
        second.deferred(print)(second.formatted("second {}", x.shape))
        if alarm := second.when(x.sum() > 0):
            alarm(print)("positive")
        runtime.deferred(print)("third")
        return x + 1

    assert ear.same(speak, (X,), (X,))
    with listening() as events:
        load(tmp_path / "first.py", "tests_first_copy").deferred(print)("again")
    assert events[0] == ("out", "again")


def test_without_the_mechanism_all_is_as_it_was() -> None:
    code = """
import sys, torch
sys.modules["torch._library.effects"] = None
from graphmend_lint.runtime import deferred, formatted, percent, when
def speak(x):
    deferred(print)(formatted("a {}", x.shape), percent("b %s", (x.shape,)))
    if alarm := when(x.sum() > 0):
        alarm(print)("positive")
    if alarm := when(x.shape[0] > 5):
        alarm(print)("long")
    return x + 1
for function in (speak, torch.compile(speak, backend="eager")):
    for x in (torch.ones(2), -torch.ones(2)):
        function(x)
from torch._dynamo.utils import counters
print(bool(counters["graph_break"]))
"""
    said = ["a torch.Size([2]) b torch.Size([2])", "positive", "a torch.Size([2]) b torch.Size([2])"]
    assert run(code) == [*said, *said, "True"]


def test_eager_calls_are_the_calls_themselves() -> None:
    def target() -> None: ...

    for value in (print, target, sys.stdout.write, logging.getLogger("a"), 3):
        assert runtime.deferred(value) is value
    values: list[Any] = [X, X.sum(), "a"]
    assert runtime.formatted("{} {:.1f} {!r} {k}", *values, k=1) == "{} {:.1f} {!r} {k}".format(*values, k=1)
    assert runtime.percent("%s %d", (1, 2)) == "1 2"
    assert runtime.percent("%s", X) == str(X)
    assert runtime.__all__ == [
        *("deferred", "fail", "fail_from", "formatted", "item", "late"),
        *("percent", "tolist", "unless", "when"),
    ]


def test_eager_cost_is_negligible() -> None:
    start = time.perf_counter()
    for _ in range(10_000):
        runtime.deferred(print)
    assert time.perf_counter() - start < 0.5


def test_payload_does_not_depend_on_the_process() -> None:
    code = """
import logging, torch
from graphmend_lint.runtime import deferred
from torch._dynamo.testing import EagerAndRecordGraphs
backend = EagerAndRecordGraphs()
class Layer(torch.nn.Module):
    def forward(self, x):
        deferred(logging.root).warning("%s", x.shape, extra={"b": 1, "a": torch.float32})
        return x
torch.compile(Layer(), backend=backend)(torch.ones(2))
print([node.args[0] for node in backend.graphs[0].graph.nodes if "graphmend" in str(node.target)])
"""
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec("import os\n" + code, {"__name__": "__main__"})
    (elsewhere,) = run("padding = [object() for _ in range(1000)]\n" + code)
    assert here.getvalue().splitlines() == [elsewhere]
    assert "warning" in elsewhere


def test_messages_of_compiled_and_eager_code_share_a_registry() -> None:
    def speak(x: torch.Tensor) -> torch.Tensor:
        runtime.deferred(warnings.warn)("shared", FutureWarning)
        return x + 1

    torch._dynamo.reset()
    fast = torch.compile(speak, backend="eager", fullgraph=True)
    with listening("default") as events:
        for function in (fast, speak, fast):
            function(X)
    assert len(events) == 1
