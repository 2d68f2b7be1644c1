"""Exceptions that a graph raises: `unless`, `late`, `fail`, and the checks of torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from graphmend_lint.runtime import deferred, fail, fail_from, formatted, late, unless, when

GOOD, BAD = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
BACKENDS = ["eager", "aot_eager"]


class WrongValues(Exception):
    def __init__(self, text: str, count: int, *, place: Any = None) -> None:
        super().__init__(text, count)
        self.place = place


def guarded(x: torch.Tensor) -> torch.Tensor:
    if alarm := unless((x > 0).all()):
        alarm(fail)(WrongValues, formatted("sum {}", x.sum()), x.shape[0], place=(x.dtype, "x"))
    if alarm := when((x == 2).all()):
        alarm(fail)(KeyError)
    return x * 2


def caused(x: torch.Tensor) -> torch.Tensor:
    if alarm := when((x == -1).any()):
        alarm(fail_from)(None, ValueError, formatted("sum {}", x.sum()))
    if alarm := when((x == 2).all()):
        alarm(fail_from)(OverflowError, KeyError)
    return x * 2


def compared(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if alarm := unless(late(torch.equal)(x, y)):
        alarm(fail)(ValueError, "differ")
    return x + y


def close(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if alarm := when(late(torch.allclose)(x, y, atol=0.5)):
        alarm(fail)(ValueError, formatted("close to {}", y))
    return x - y


def checked(x: torch.Tensor) -> torch.Tensor:
    deferred(print)("before")
    deferred(torch._check_tensor_all)(x > -1)
    deferred(print)("between")
    deferred(torch._assert)((x != 0).all(), "a zero")
    deferred(print)("after")
    return x * 2


def whole(function: Callable[..., Any], backend: str = "eager") -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, fullgraph=True)


def error(function: Callable[..., Any], *args: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011, the caller compares it
        function(*args)
    return caught.value


@pytest.mark.parametrize("backend", BACKENDS)
class TestWhole:
    """In one graph, what is raised is what eager code raises, and the function works afterwards."""

    def test_class_arguments_and_attributes(self, backend: str) -> None:
        compiled = whole(guarded, backend)
        assert torch.equal(compiled(GOOD), GOOD * 2)
        for bad in (BAD, torch.tensor([2.0, 2.0])):
            eager, raised = error(guarded, bad), error(compiled, bad)
            assert (type(raised), raised.args, vars(raised)) == (type(eager), eager.args, vars(eager))
        assert torch.equal(compiled(GOOD), GOOD * 2)

    def test_causes(self, backend: str) -> None:
        compiled = whole(caused, backend)
        for bad in (BAD, torch.tensor([2.0, 2.0])):
            eager, raised = error(caused, bad), error(compiled, bad)
            assert (type(raised), raised.args) == (type(eager), eager.args)
            assert (type(raised.__cause__), raised.__suppress_context__) == (type(eager.__cause__), True)
        assert torch.equal(compiled(GOOD), GOOD * 2)

    def test_with_gradients(self, backend: str) -> None:
        compiled = whole(guarded, backend)
        assert type(error(compiled, BAD.clone().requires_grad_())) is WrongValues
        x = GOOD.clone().requires_grad_()
        compiled(x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2.0, 2.0]

    @pytest.mark.parametrize(
        ("function", "y", "fails"),
        [
            (compared, GOOD, False),
            (compared, GOOD + 1, True),
            (compared, GOOD * float("nan"), True),
            (close, GOOD, True),
            (close, GOOD + 1, False),
        ],
    )
    def test_questions(self, backend: str, function: Callable[..., Any], y: torch.Tensor, fails: bool) -> None:
        compiled = whole(function, backend)
        if fails:
            eager, raised = error(function, GOOD, y), error(compiled, GOOD, y)
            assert (type(raised), raised.args) == (type(eager), eager.args) == (ValueError, eager.args)
        else:
            assert torch.equal(compiled(GOOD, y), function(GOOD, y))

    def test_checks(self, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
        compiled = whole(checked, backend)
        assert torch.equal(compiled(GOOD), GOOD * 2)
        assert capsys.readouterr().out == "before\nbetween\nafter\n"
        for bad in (torch.tensor([-1.0, 0.0]), torch.tensor([0.0, 1.0])):
            eager, said = error(checked, bad), capsys.readouterr().out
            raised = error(compiled, bad)
            assert (type(raised), raised.args, capsys.readouterr().out) == (type(eager), eager.args, said)
        assert torch.equal(compiled(GOOD), GOOD * 2)


def test_predicate_is_read_as_python_does() -> None:
    def several(x: torch.Tensor) -> torch.Tensor:
        if alarm := unless(x):
            alarm(fail)(ValueError, "zero")
        return x * 2

    compiled = whole(several)
    for x in (torch.zeros(1), torch.zeros(1, 1, dtype=torch.uint8)):
        assert (type(error(compiled, x)), type(error(several, x))) == (ValueError, ValueError)
    assert compiled(torch.tensor([float("nan")])).isnan().all()


def test_shapes_that_differ_are_known_while_tracing() -> None:
    """The sum of such tensors cannot be traced: the guard before it has to be what fails."""
    torch._dynamo.reset()
    compiled = torch.compile(compared, backend="eager")
    for size in (3, 4, 5):
        assert error(compiled, GOOD, torch.ones(size)).args == ("differ",)
    assert torch.equal(compiled(GOOD, GOOD), GOOD * 2)


def test_eagerly_they_are_plain_calls() -> None:
    assert late(torch.equal) is torch.equal
    assert unless(torch.tensor(True)) is False
    assert unless(torch.tensor(False)) is deferred
    assert unless(False, when) is when
    with pytest.raises(KeyError) as caught:
        fail(KeyError)
    assert caught.value.args == ()


def test_a_class_that_no_name_leads_to_ends_the_graph_and_is_raised() -> None:
    class Local(Exception):
        pass

    def guards(x: torch.Tensor) -> torch.Tensor:
        if alarm := unless((x > 0).all()):
            alarm(fail)(Local, "local")
        return x * 2

    torch._dynamo.reset()
    compiled = torch.compile(guards, backend="eager")
    assert torch.equal(compiled(GOOD), GOOD * 2)
    assert type(error(compiled, BAD)) is Local


def test_a_question_about_what_is_not_carried_is_asked_at_once() -> None:
    sparse = GOOD.to_sparse()
    torch._dynamo.reset()
    compiled = torch.compile(compared, backend="eager")
    assert type(error(compiled, sparse, BAD)) is type(error(compared, sparse, BAD))
