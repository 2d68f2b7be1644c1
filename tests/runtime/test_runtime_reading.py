"""Data of tensors in messages: `item` and `tolist`."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from graphmend_lint.runtime import deferred, fail, formatted, item, percent, tolist, when

X = torch.tensor([1.5, -1.0])
logger = logging.getLogger(__name__)


def spoken(x: torch.Tensor) -> torch.Tensor:
    deferred(print)("sum", item(x.sum()), tolist(x), formatted("{:.2f} {!r}", item(x.sum()), item(x[0] > 1)))
    deferred(logger).warning("%.1f of %s, %s", item(x.sum()), tolist(x), percent("%g", item(x.sum())))
    x.add_(1)
    return x * 2


def guarded(x: torch.Tensor) -> torch.Tensor:
    if alarm := when((x == -1).any()):
        alarm(fail)(ValueError, item(x.sum()), tolist(x))
    return x * 2


def test_eagerly_they_are_the_methods() -> None:
    assert item(X.sum()) == 0.5
    assert tolist(X) == [1.5, -1.0]
    assert item(np.float32(2)) == 2.0
    with pytest.raises(RuntimeError):
        item(X)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
class TestCompiled:
    def test_what_is_said_is_what_eager_code_says(
        self, backend: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        torch._dynamo.reset()
        compiled = torch.compile(spoken, backend=backend, fullgraph=True)
        for function in (spoken, compiled):
            for x in (X, torch.tensor([float("nan"), 3.0])):
                function(x.clone())
        lines = capsys.readouterr().out.splitlines()
        assert lines[:2] == lines[2:]
        assert lines[0] == "sum 0.5 [1.5, -1.0] 0.50 True"
        records = [(record.getMessage(), record.args) for record in caplog.records]
        # With nan, a number is not equal to itself: the second call is compared by its text alone.
        assert records[0] == records[2]
        assert records[1][0] == records[3][0]
        assert records[0] == ("0.5 of [1.5, -1.0], 0.5", (0.5, [1.5, -1.0], "0.5"))

    def test_an_exception_has_the_numbers(self, backend: str) -> None:
        torch._dynamo.reset()
        compiled = torch.compile(guarded, backend=backend, fullgraph=True)
        with pytest.raises(ValueError, match=r"0\.5") as caught:
            compiled(X)
        assert caught.value.args == (0.5, [1.5, -1.0])
        assert torch.equal(compiled(X.abs()), X.abs() * 2)
