"""Every kind of argument that is carried has, compiled, the text that it has eagerly."""

from __future__ import annotations

import collections
import enum
import logging
from typing import Any, NamedTuple

import pytest
import torch

from graphmend_lint.runtime import deferred, formatted, percent
from tests.runtime.hearing import Ear

logger = logging.getLogger("tests.runtime.arguments")


class Colour(enum.Enum):
    RED = 1


class Size(enum.IntEnum):
    LARGE = 3


class Flag(enum.IntFlag):
    A = 1
    B = 2


class Point(NamedTuple):
    x: Any
    y: Any


Pair = collections.namedtuple("Pair", "left right")
PARAMETER = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
FROZEN = torch.nn.Parameter(torch.tensor([1.0, 2.0]), requires_grad=False)
LEAF = torch.ones(2, requires_grad=True)
X = torch.tensor([[1.5, -2.0, float("nan")], [0.0, 3.25, 1e9]])

VALUES: dict[str, Any] = {
    "str": "text with 'quotes', \"more\", \\ %s %d {} \n and \u00fc \U0001f525",
    "empty": "",
    "true": True,
    "none": None,
    "int": 7,
    "big": 2**80,
    "least": -(2**63),
    "float": 0.1,
    "inf": float("inf"),
    "nan": float("nan"),
    "minus-zero": -0.0,
    "complex": 1 - 2.5j,
    "bytes": b"\x00\xffa",
    "ellipsis": ...,
    "dtype": torch.float16,
    "device": torch.device("cpu"),
    "device-index": torch.device("cuda", 1),
    "layout": torch.strided,
    "memory-format": torch.channels_last,
    "class": torch.nn.Linear,
    "builtin-class": int,
    "enum": Colour.RED,
    "int-enum": Size.LARGE,
    "flag": Flag.A,
    "tuple": (1, "a", (2.5, None)),
    "one-tuple": (1,),
    "list": [1, [True, []], "x"],
    "dict": {"a": 1, 2: [3], None: {"b": torch.int8}},
    "range": range(1, 9, 2),
    "size": torch.Size([2, 3]),
    "named-tuple": Point(1, "b"),
    "old-named-tuple": Pair((1, 2), None),
    "tensor": torch.arange(3),
    "bool-tensor": torch.tensor([True, False]),
    "complex-tensor": torch.tensor([1 + 2j]),
    "half-tensor": torch.ones(2, dtype=torch.bfloat16),
    "empty-tensor": torch.empty(0, 3),
    "scalar-tensor": torch.tensor(2.5),
    "large-tensor": torch.zeros(2000),
    "meta-tensor": torch.empty(2, 3, device="meta"),
    "parameter": PARAMETER,
    "frozen-parameter": FROZEN,
    "leaf": LEAF,
    "tensors": {"a": [torch.ones(1), torch.zeros(1)], "b": (torch.tensor(1),)},
    "return-type": torch.return_types.max((torch.tensor([3.0]), torch.tensor([0]))),
}


NAMES = [list(VALUES)[start : start + 6] for start in range(0, len(VALUES), 6)]


@pytest.mark.parametrize("names", NAMES, ids=",".join)
def test_values_from_outside(ear: Ear, names: list[str]) -> None:
    values = [VALUES[name] for name in names]

    def speak(x: torch.Tensor) -> torch.Tensor:
        for value in values:
            deferred(print)("value", value)
            deferred(logger).warning("as %s or %r", value, value)
        return x + 1

    assert len(ear.same(speak, (X,), (X,))) == 2 * 5 * len(values)


@pytest.mark.parametrize("names", NAMES, ids=",".join)
def test_values_as_inputs(ear: Ear, names: list[str]) -> None:
    def speak(x: torch.Tensor, *values: Any) -> torch.Tensor:
        deferred(print)("values", *values, [values])
        return x + 1

    ear.same(speak, (X, *[VALUES[name] for name in names]))


def made_here(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[0]
    say = deferred(print)
    say(n, n > 1, x.shape, x.size(), x.dtype, x.device, x.shape[-1:], x.dim(), x.numel())
    say(x, x.sum(), x.T, x[0], x[:, None], x.to(torch.int8), x.isnan(), x.shape[0] * 2.5)
    say(
        {"shape": x.shape, n: [x.stride(), Point(n, x.mean())]},
        list(range(n)),
        (n,),
        Pair(n, Colour.RED),
    )
    say(x.max(0), x.max(0).values, str(x.device), f"{x.dtype}", type(x), x.shape == x.shape)
    return x + 1


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_values_made_in_the_graph(ear: Ear, dynamic: bool | None) -> None:
    ear.same(made_here, (X,), (torch.ones(4, 5),), (torch.ones(6, 7),), dynamic=dynamic)


def texts(x: torch.Tensor) -> torch.Tensor:
    say, n = deferred(print), x.shape[0]
    say(formatted("sum {:.3f} of {!r}", x[1].sum(), n))
    say(formatted("{0} {1:>8} {0!s} {name:5d}|{shape[0]}", x, "a", name=n, shape=x.shape))
    say(formatted("{{}} {} {x.dtype}", {"a": x.sum()}, x=x))
    say(
        percent("%d of %s %%", (n, x.shape)),
        percent("%s", x[0]),
        percent("%(a)s", {"a": n}),
        percent("%5.1f", x[0, 0]),
    )
    say([formatted("{}", n), (percent("%s", n), n)], {"k": formatted("{}", x[0, 1])}, sep=formatted("{}", n))
    deferred(logger).error(formatted("{} 100%", n))
    deferred(logger).error("%s and %s", formatted("{}", n), x.shape)
    deferred(logger).error("%d %5.2f %r %s", n, x[0, 0], x.dtype, x[:1])
    deferred(logger).error("%(n)d", {"n": n})
    return x + 1


@pytest.mark.parametrize("dynamic", [None, True])
def test_formatted_texts(ear: Ear, dynamic: bool | None) -> None:
    ear.same(texts, (X,), (torch.ones(4, 5),), (torch.ones(6, 7),), dynamic=dynamic)


def test_autograd_shows_as_eagerly(ear: Ear) -> None:
    linear = torch.nn.Linear(2, 1)

    def speak(x: torch.Tensor) -> Any:
        y = linear(x)
        deferred(print)(linear.weight, linear.bias, y, x, y.detach(), linear.weight[0])
        return y

    for backend in ("eager", "aot_eager"):
        ear.same(speak, (torch.ones(3, 2, requires_grad=True),), backend=backend)
        ear.same(speak, (torch.ones(3, 2),), backend=backend)
    linear.bias.requires_grad_(False)
    ear.same(speak, (torch.ones(3, 2),))


def test_many_ints_and_floats_cost_no_recompiles(ear: Ear) -> None:
    def fixed(x: torch.Tensor, value: Any) -> torch.Tensor:
        deferred(print)(value, x.shape, x.shape[0] > 3)
        return x + 1

    def plain(x: torch.Tensor, value: Any) -> torch.Tensor:
        print(value, x.shape, x.shape[0] > 3)
        return x + 1

    for values in ((12, 13, 14, 15, 16), (0.5, 0.25, 0.75, 1.5, 2.5)):
        calls = [(torch.ones(n + 2, 7), value) for n, value in enumerate(values)]
        ear.same(fixed, *calls)
        ear.same(fixed, *calls, dynamic=True)
        assert ear.frames(fixed, *calls) <= ear.frames(plain, *calls)
        assert ear.frames(fixed, *calls, dynamic=True) == 1 <= ear.frames(plain, *calls, dynamic=True)
