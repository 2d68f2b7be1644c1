"""Targets, keywords and the place that a message says it comes from."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import pytest
import torch

from graphmend_lint.runtime import deferred
from tests.runtime.hearing import Ear, listening

logger = logging.getLogger("tests.runtime.targets")
root = logging.getLogger()
X = torch.tensor([1.0, 2.0])


class Chatty(logging.Logger):
    pass


logging.setLoggerClass(Chatty)
special = logging.getLogger("tests.runtime.special")
logging.setLoggerClass(logging.Logger)


class Special(UserWarning):
    pass


class Odd(UserWarning):
    def __init__(self, a: str, b: str) -> None:
        super().__init__(a + b)


def prints(x: torch.Tensor) -> torch.Tensor:
    deferred(print)()
    deferred(print)("a", x, 3, sep="-", end="!\n", flush=True)
    deferred(print)("to stderr", file=sys.stderr)
    deferred(print)("to stdout", file=sys.stdout)
    deferred(print)("to none", file=None, sep=None, end=None)
    deferred(print)(*x.shape, *[1, "b"], sep="|")
    return x + 1


def streams(x: torch.Tensor) -> torch.Tensor:
    deferred(sys.stdout.write)("text\n")
    deferred(sys.stderr.write)(f"{x.dtype}\n")
    return x + 1


def logs(x: torch.Tensor) -> torch.Tensor:
    deferred(logger).debug("debug %s", x)
    deferred(logger).info("info")
    deferred(logger).warning("%s %s", "a", x.shape)
    deferred(logger).error("error", exc_info=False)
    deferred(logger).critical("critical", exc_info=True)
    deferred(logger).exception("exception")
    deferred(logger).log(logging.ERROR, "log %d", 3)
    deferred(logger).log(level=logging.ERROR, msg="by name")
    deferred(logger).warning("extra", extra={"shape": x.shape, "value": x.sum()})
    deferred(logging.warning)("a function of %s", "logging")
    deferred(logging.log)(logging.ERROR, "its log")
    deferred(root).warning("root")
    deferred(special).warning("a subclass of Logger")
    return x + 1


def warns(x: torch.Tensor) -> torch.Tensor:
    deferred(warnings.warn)("plain")
    deferred(warnings.warn)("positional", FutureWarning)
    deferred(warnings.warn)("keyword", category=DeprecationWarning, stacklevel=1)
    deferred(warnings.warn)(
        "on several lines",
        Special,
    )
    deferred(warnings.warn)(Special("an instance", 2))
    deferred(warnings.warn)(RuntimeWarning(f"another, {x.shape[0]}"))
    return x + 1


@pytest.mark.parametrize("function", [prints, streams, logs, warns])
def test_targets_and_keywords(ear: Ear, function: Any) -> None:
    assert ear.same(function, (X,), (X,))
    assert ear.breaks(function, X) == 0


class Layer(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        helper(x)
        for level in range(1, 9):
            deferred(warnings.warn)(f"level {level}", FutureWarning, stacklevel=level)
            deferred(logger).warning("level %d", level, stacklevel=level)
        return x * 2


def helper(x: torch.Tensor) -> None:
    deferred(warnings.warn)("by position", FutureWarning, 2)
    deferred(logger).warning(
        "log of a helper",
        stacklevel=2,
    )


class Derived(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + 1


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.derived = Layer(), Derived()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.derived(self.layer(x))
        return result


def broken(x: torch.Tensor) -> torch.Tensor:
    helper(x)
    torch._dynamo.graph_break()
    helper(x)
    deferred(logger).warning("level 2", stacklevel=2)
    deferred(warnings.warn)("level 2", stacklevel=2)
    return x + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_place_is_the_line_of_the_source(ear: Ear, backend: str) -> None:
    """Compare what calls from one and the same line see: eagerly and compiled, in traced frames and beyond
    them."""
    model = Model()
    heard = []
    for compiled in (False, True):
        torch._dynamo.reset()
        function = torch.compile(model, backend=backend, fullgraph=True) if compiled else model
        with listening() as events:
            function(X)
        heard.append(events)
    assert heard[0] == heard[1]


def test_place_after_a_graph_break(ear: Ear) -> None:
    heard = []
    for compiled in (False, True):
        torch._dynamo.reset()
        function = torch.compile(broken, backend="eager") if compiled else broken
        with listening() as events:
            function(X)
        heard.append(events)
    assert heard[0] == heard[1]


def often(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        deferred(warnings.warn)("again", FutureWarning)
        deferred(warnings.warn)("again", FutureWarning, stacklevel=2)
    deferred(warnings.warn)("again", FutureWarning)
    return x + 1


def user(function: Any) -> None:
    for _ in range(2):
        function(X)
    function(X)


@pytest.mark.parametrize("filters", ["default", "once", "always", "ignore", "module"])
def test_filters_decide_how_often(filters: str) -> None:
    heard = []
    for compiled in (False, True):
        torch._dynamo.reset()
        function = torch.compile(often, backend="eager", fullgraph=True) if compiled else often
        globals().pop("__warningregistry__", None)
        warnings.onceregistry.clear()  # type: ignore[attr-defined]
        with listening(filters) as events:
            user(function)
        heard.append(events)
    assert heard[0] == heard[1]
    assert bool(heard[0]) == (filters != "ignore")


def test_filter_by_module_and_registry_are_those_of_the_user() -> None:
    fast = torch.compile(often, backend="eager", fullgraph=True)
    with listening("ignore") as events:
        warnings.filterwarnings("always", module=__name__.replace(".", r"\."))
        fast(X)
    assert len(events) == 5


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_filter_error_raises_out_of_the_compiled_call(backend: str) -> None:
    torch._dynamo.reset()
    fast = torch.compile(warns, backend=backend, fullgraph=True)
    for _ in range(2):
        with listening() as events, warnings.catch_warnings():
            warnings.simplefilter("error", Special)
            with pytest.raises(Special, match="on several lines"):
                fast(X)
        assert [event[2] for event in events] == ["plain", "positional", "keyword"]
        with listening() as events:
            assert torch.equal(fast(X), X + 1)
        assert len(events) == 6


def test_pytest_sees_the_messages(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    torch._dynamo.reset()

    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(print)("printed", x.sum())
        deferred(sys.stdout.write)("written\n")
        deferred(logger).warning("logged %s", x)
        deferred(warnings.warn)("warned", Special)
        x.add_(1)
        return x

    fast = torch.compile(speak, backend="eager", fullgraph=True)
    fast(X.clone())
    assert capsys.readouterr().out == "printed tensor(3.)\nwritten\n"
    records = [record for record in caplog.records if record.name == logger.name]
    assert [record.getMessage() for record in records] == ["logged tensor([1., 2.])"]
    assert records[0].pathname == __file__
    warning = recwarn.pop(Special)
    assert (str(warning.message), warning.filename) == ("warned", __file__)


def test_replaced_targets_are_found_when_the_graph_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    heard: list[Any] = []

    def speak(x: torch.Tensor) -> torch.Tensor:
        deferred(logger).warning("a")
        deferred(warnings.warn)("b")
        return x + 1

    fast = torch.compile(speak, backend="eager", fullgraph=True)
    with listening() as events:
        fast(X)
    assert len(events) == 2
    monkeypatch.setattr(logger, "warning", lambda *a: heard.append(a))
    with listening() as events:
        fast(X)
    assert heard == [("a",)]
    assert [event[2] for event in events] == ["b"]
    monkeypatch.undo()
    logger.setLevel(logging.CRITICAL)
    with listening() as events:
        fast(X)
    logger.setLevel(logging.NOTSET)
    assert len(events) == 1


def test_stream_of_the_moment(ear: Ear) -> None:
    """A redirected stdout gets the text, and costs no more compilations than with plain calls."""

    def fixed(x: torch.Tensor) -> torch.Tensor:
        deferred(print)("a")
        x = x + 1
        deferred(print)("b", file=sys.stdout)
        x = x + 1
        deferred(sys.stdout.write)("c\n")
        return x + 1

    def plain(x: torch.Tensor) -> torch.Tensor:
        print("a")
        x = x + 1
        print("b", file=sys.stdout)
        x = x + 1
        sys.stdout.write("c\n")
        return x + 1

    frames = []
    for function in (fixed, plain):
        torch._dynamo.reset()
        counter = torch._dynamo.testing.CompileCounter()
        fast = torch.compile(function, backend=counter)
        for _ in range(3):
            with listening() as events:
                fast(X)
            assert "".join(event[1] for event in events) == "a\nb\nc\n"
        frames.append(counter.frame_count)
    assert frames[0] <= frames[1]
