"""Runs a program and notes all that can be seen of it.

The calls of a program go to one module, one after the other: values of either sign, then nan, inf, -0.0, an empty and a
0-d tensor, with and without gradients, in training and in evaluation. What is noted compares with `==`.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import types
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, fields
from typing import Any

import torch

from tests.fuzz.programs import WIDTH, Program

_GRAD_FN = re.compile(r",\s*grad_fn=<\w+>")


@dataclass(frozen=True)
class Call:
    """The arguments of one call: tensors, and whether they have gradients."""

    x: torch.Tensor
    y: torch.Tensor
    n: int
    flag: bool
    training: bool
    grad: bool


@dataclass(frozen=True)
class Seen:
    """What one call did: pictures that compare with `==`.

    `shared` says of each tensor of the result what it is, or shares memory with, and `after` what its change in place
    changes elsewhere.
    """

    error: tuple[str, str] | None
    result: Any
    shared: Any
    said: str
    arguments: Any
    state: Any
    random: bytes
    gradients: Any
    after: Any


FIELDS = tuple(field.name for field in fields(Seen))


def difference(first: list[Seen], second: list[Seen], names: tuple[str, ...] = FIELDS) -> str:
    """The first thing that differs, with the number of the call; "" if nothing does.

    A backward pass that fails in the first is not compared: it fails where a value that it needs was changed in place.
    """
    for number, (one, two) in enumerate(zip(first, second, strict=True)):
        for name in names:
            mine, theirs = getattr(one, name), getattr(two, name)
            if mine != theirs and not (name == "gradients" and isinstance(mine, str)):
                return f"call {number}, {name}:\n  {mine}\n  {theirs}"
    return ""


def calls(program: Program) -> list[Call]:
    """What a program is called with; the same for the same seed."""
    random = torch.Generator().manual_seed(program.seed)
    special = torch.tensor([float("nan"), float("inf"), -0.0])
    values = [
        (torch.rand(2, WIDTH, generator=random) + 0.5, torch.randn(2, WIDTH, generator=random)),
        (-torch.rand(2, WIDTH, generator=random), torch.randn(2, WIDTH, generator=random)),
        (torch.randn(WIDTH, generator=random) * 4, torch.randn(WIDTH, generator=random)),
        (special, torch.ones(WIDTH)),
        (torch.tensor([1.0, -0.0, -float("inf")]), special),
        (torch.zeros(WIDTH), -torch.zeros(WIDTH)),
        (torch.tensor([3.0, -0.0, 0.0]), torch.tensor([0.0, -0.0, 2.0])),
        (torch.rand(0, WIDTH, generator=random), torch.rand(0, WIDTH, generator=random)),
        (torch.randn((), generator=random) * 3, torch.randn((), generator=random)),
        (torch.randn(1, generator=random) * 3, torch.randn(1, generator=random)),
        (torch.rand(2, WIDTH, generator=random) * 3, torch.randn(WIDTH, generator=random)),
    ]
    return [
        Call(
            _cast(x, program.dtypes[0]),
            _cast(y, program.dtypes[1]),
            number % 3,
            flag=number % 2 == 0,
            training=number % 4 == 3,
            grad=number % 3 != 2,
        )
        for number, (x, y) in enumerate(values)
    ]


def _cast(value: torch.Tensor, dtype: str) -> torch.Tensor:
    found: torch.Tensor = value.to(getattr(torch, dtype))
    return found


def module_of(source: str, name: str = "program") -> types.ModuleType:
    """The program as a module, with its source where tracebacks and Dynamo look for it."""
    file = f"<{name}>"
    module = types.ModuleType(name)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), vars(module))
    return module


def observe(
    source: str, program: Program, numbers: Collection[int] | None = None, *, compiled: bool = False
) -> list[Seen]:
    """What the calls of a program do, or only those with the given numbers, of the given version of its source."""
    torch.manual_seed(0)
    model = module_of(source).Model(lambda value: value + 1)
    run = torch.compile(model, backend="eager") if compiled else model
    return [_observe(model, run, call) for n, call in enumerate(calls(program)) if numbers is None or n in numbers]


def _observe(model: Any, run: Callable[..., Any], call: Call) -> Seen:
    torch.manual_seed(1)
    leaves = [t.clone().requires_grad_(call.grad and t.is_floating_point()) for t in (call.x, call.y)]
    # Not leaves: those must not be changed in place.
    x, y = (t.clone() if t.requires_grad else t for t in leaves)
    model.train(call.training)
    error, result, shared, gradients = None, None, None, None
    picture, after = None, None
    with _quiet() as said:
        try:
            result = run(x, y, call.n, call.flag)
        except Exception as exception:
            error = (type(exception).__name__, str(exception))
        else:
            picture, shared = plain(result), _shared(model, result, (x, y))
    drawn = bytes(torch.get_rng_state().tolist())
    state, arguments = _state(model), plain((x, y))
    if error is None:
        gradients = _gradients(model, result, leaves)
        after = _changed(model, result, (x, y))
    # What a call keeps must not keep its graph: the next call's gradients are its own.
    for tensor in held(model).values():
        if tensor.grad_fn is not None:
            tensor.detach_()
    # A printed tensor names the last operation on it, which is not the same compiled.
    text = _GRAD_FN.sub("", said.getvalue())
    return Seen(error, picture, shared, text, arguments, state, drawn, gradients, after)


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield said


def plain(value: Any) -> Any:
    """A picture that compares exactly: type, dtype, shape and bits; one nan is like another."""
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, _bits(value))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(item) for item in value])
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return (type(value).__name__, repr(value))


def _bits(value: torch.Tensor) -> list[str]:
    """Text tells -0.0 from 0.0, and makes all nan the same."""
    return [repr(item) for item in value.detach().reshape(-1).tolist()]


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def held(model: Any) -> dict[str, torch.Tensor]:
    """The tensors that a module holds: parameters, buffers and plain attributes."""
    own = {**dict(model.named_parameters()), **dict(model.named_buffers()), **vars(model)}
    return {name: value for name, value in own.items() if isinstance(value, torch.Tensor)}


def _state(model: Any) -> Any:
    values = held(model)
    names = sorted(values)
    same = [(a, b, _relation(values[a], values[b])) for a in names for b in names if a < b]
    return {
        **{name: plain(values[name]) for name in names},
        "same": same,
        "count": plain(model.count),
        "last": plain(model.last),
        "saved": sorted(model.state_dict()),
    }


def _shared(model: Any, result: Any, arguments: tuple[torch.Tensor, ...]) -> Any:
    made = list(tensors(result))
    others = {"x": arguments[0], "y": arguments[1], **held(model)}
    found = []
    for number, tensor in enumerate(made):
        known = {**others, **{f"result {n}": t for n, t in enumerate(made[:number])}}
        found.append({name: relation for name, t in known.items() if (relation := _relation(tensor, t))})
    return found


def _relation(first: torch.Tensor, second: torch.Tensor) -> str:
    if first is second:
        return "is"
    place = first.untyped_storage().data_ptr()
    return "shares memory with" if place and place == second.untyped_storage().data_ptr() else ""


def _gradients(model: Any, result: Any, leaves: list[torch.Tensor]) -> Any:
    """The gradients of all leaves and parameters; the sign of a zero is not looked at, None is not zero."""
    ends = [t for t in tensors(result) if t.requires_grad and t.is_floating_point()]
    watched = [*leaves, *model.parameters()]
    if not ends:
        return None
    seeds = [torch.arange(1.0, t.numel() + 1).reshape(t.shape).to(t.dtype) for t in ends]
    try:
        torch.autograd.backward(ends, seeds)
    except RuntimeError as error:
        return str(error).split(":")[0]
    found = [None if t.grad is None else [repr(item + 0.0) for item in t.grad.reshape(-1).tolist()] for t in watched]
    for tensor in watched:
        tensor.grad = None
    return found


def _changed(model: Any, result: Any, arguments: tuple[torch.Tensor, ...]) -> Any:
    """What is seen elsewhere once the tensors of the result are changed in place."""
    with torch.no_grad():
        for tensor in tensors(result):
            if tensor.is_floating_point() and not isinstance(tensor, torch.nn.Parameter):
                with contextlib.suppress(RuntimeError):
                    tensor.add_(1)
    return plain(arguments), _state(model), plain(result)
