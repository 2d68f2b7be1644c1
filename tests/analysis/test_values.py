"""What is known of an expression while tracing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphmend_lint.analysis.effects import is_total
from tests.analysis.conftest import Code, expression

Make = Callable[..., Code]

MODULE = """
    import math
    import logging
    from typing import Optional, Union, Literal
    import torch
    from torch import Tensor, nn
    from torch.nn import functional as F

    LIMIT = 3
    NAMES = ("a", "b")
    TABLE = torch.zeros(3)
    COUNT = int("3")
    MADE = make()
    logger = logging.getLogger(__name__)

    class Tensorish: ...
    class SomeConfig: ...

    def given(x) -> Tensor: ...
    def sized(x) -> int: ...
    def silent(x): ...

    class Part(nn.Module):
        def forward(self, x) -> Tensor: ...

    class Untold(nn.Module):
        def forward(self, x): ...

    class Net(nn.Module):
        def __init__(self, config):
            self.config = config
            self.width = 3
            self.lin = nn.Linear(2, 2)
            self.lstm = nn.LSTM(2, 2)
            self.part = Part()
            self.untold = Untold()
            self.scale = nn.Parameter(torch.ones(1))
            self.made = make()
            self.register_buffer("steps", torch.zeros(1))

        def helper(self, x) -> Tensor: ...

        @property
        def prop(self): ...

        def f(
            self, x: Tensor, u, o: Optional[Tensor] = None, n: int = 2, s: str = "a", b: bool = False, r: float = 1.0,
            q: "Tensor | None" = None, either: Union[int, str] = 1, d=0, text="t", none=None, config=None,
            t2: torch.Tensor = None, odd: Tensorish = None, mode: Literal["a"] = "a", c: SomeConfig = None,
            tensors: list[Tensor] = None, *rest, **more,
        ):
            y = x * 2
            item = x.sum().item()
            h, w = x.shape
            values, indices = x.max(dim=1)
            implied = u.unsqueeze(0)
            z = None
            if n:
                z = x
            for i in range(3):
                looped = x
            k = x if n else 1
            here
"""


@pytest.mark.parametrize(
    ("text", "kind", "type_"),
    [
        # constants and names
        ("1", "static", "int"),
        ("'a'", "static", "str"),
        ("None", "static", "none"),
        ("LIMIT", "static", ""),
        ("NAMES", "static", ""),
        ("TABLE", "tensor", ""),
        ("COUNT", "static", ""),
        ("MADE", "unknown", ""),
        ("logger", "unknown", ""),
        ("silent", "static", "function"),
        ("Tensorish", "static", "class"),
        ("math.pi", "static", ""),
        ("torch.float32", "static", "dtype"),
        ("nowhere", "unknown", ""),
        # parameters
        ("x", "tensor", ""),
        ("u", "tensor", ""),
        ("o", "tensor", ""),
        ("q", "tensor", ""),
        ("t2", "tensor", ""),
        ("n", "static", "int"),
        ("s", "static", "str"),
        ("b", "static", "bool"),
        ("r", "static", "float"),
        ("d", "static", "int"),
        ("text", "static", "str"),
        ("none", "unknown", ""),
        ("config", "unknown", ""),
        ("odd", "unknown", ""),
        ("either", "static", ""),
        ("mode", "static", "literal"),
        ("c", "static", "config"),
        ("tensors", "unknown", ""),
        ("rest", "unknown", ""),
        ("more", "unknown", ""),
        # assignments
        ("y", "tensor", ""),
        ("item", "data", "number"),
        ("h", "static", "int"),
        ("w", "static", "int"),
        ("values", "unknown", ""),
        ("implied", "tensor", ""),
        ("z", "tensor", ""),
        ("looped", "tensor", ""),
        ("i", "static", "int"),
        ("k", "unknown", ""),
        # attributes
        ("x.shape", "static", "size"),
        ("x.shape[0]", "static", "int"),
        ("x.shape[1:]", "static", "size"),
        ("x.dtype", "static", "dtype"),
        ("x.device", "static", "device"),
        ("x.ndim", "static", "int"),
        ("x.requires_grad", "static", "bool"),
        ("x.T", "tensor", ""),
        ("x.grad", "tensor", ""),
        ("x.missing", "unknown", ""),
        ("none.shape", "static", "size"),
        ("self.training", "static", "bool"),
        ("self.config", "static", "config"),
        ("self.config.hidden_size", "static", ""),
        ("self.width", "static", ""),
        ("self.lin", "static", "submodule torch.nn.Linear"),
        ("self.lin.weight", "tensor", ""),
        ("self.lin.in_features", "static", ""),
        ("self.part", "static", "submodule"),
        ("self.part.weight", "unknown", ""),
        ("self.scale", "tensor", ""),
        ("self.steps", "tensor", ""),
        ("self.made", "unknown", ""),
        ("self.prop", "unknown", ""),
        ("self.missing", "unknown", ""),
        ("self", "static", "self"),
        # calls
        ("x.size(0)", "static", "int"),
        ("x.size()", "static", "size"),
        ("x.dim()", "static", "int"),
        ("x.sum()", "tensor", ""),
        ("x.max()", "tensor", ""),
        ("x.any()", "tensor", ""),
        ("x.item()", "data", "number"),
        ("x.tolist()", "data", "list"),
        ("x.unbind(0)", "tensor", "tuple"),
        ("x.is_floating_point()", "static", "bool"),
        ("x.unknown_method()", "unknown", ""),
        ("torch.isnan(x)", "tensor", ""),
        ("torch.equal(x, y)", "data", "bool"),
        ("torch.allclose(x, y)", "data", "bool"),
        ("torch.is_tensor(x)", "static", "bool"),
        ("torch.nowhere(x)", "unknown", ""),
        ("F.relu(x)", "tensor", ""),
        ("math.sqrt(n)", "unknown", ""),
        ("given(x)", "tensor", ""),
        ("sized(x)", "static", "int"),
        ("silent(x)", "unknown", ""),
        ("self.helper(x)", "tensor", ""),
        ("self.lin(x)", "tensor", ""),
        ("self.lstm(x)", "unknown", ""),
        ("self.part(x)", "tensor", ""),
        ("self.untold(x)", "unknown", ""),
        ("self.made(x)", "unknown", ""),
        ("none.size(0)", "static", "int"),
        ("none.any()", "unknown", ""),
        # builtins
        ("len(x)", "static", "int"),
        ("isinstance(x, Tensor)", "static", "bool"),
        ("type(x)", "static", "class"),
        ("int(x)", "data", "int"),
        ("float(x.sum())", "data", "float"),
        ("bool(x.any())", "data", "bool"),
        ("int(n)", "static", "int"),
        ("str(x.dtype)", "static", "str"),
        ("max(n, 3)", "static", ""),
        ("max(x, y)", "tensor", ""),
        ("range(n)", "static", "range"),
        ("open('a')", "unknown", ""),
        # operators
        ("x + 1", "tensor", ""),
        ("1 + x", "tensor", ""),
        ("n + 1", "static", "int"),
        ("n + item", "data", ""),
        ("none + 1", "unknown", ""),
        ("'a %d' % n", "static", "str"),
        ("'a %s' % x", "tensor", "str"),
        ("'a {}'.format(n)", "static", "str"),
        ("f'{n}'", "static", "str"),
        ("f'{x}'", "tensor", "str"),
        ("f'{item}'", "data", "str"),
        ("-x", "tensor", ""),
        ("not n", "static", "bool"),
        ("not x.any()", "data", ""),
        ("not none", "unknown", ""),
        ("x > 0", "tensor", ""),
        ("0 < x < 1", "data", ""),
        ("n > 0", "static", "bool"),
        ("item > 0", "data", ""),
        ("none > 0", "unknown", ""),
        ("none is None", "static", "bool"),
        ("x is not None", "static", "bool"),
        ("n in (1, 2)", "static", "bool"),
        ("n in x", "data", ""),
        ("n and x.any()", "tensor", ""),
        ("n or x.any()", "tensor", ""),
        ("x.any() and n", "data", ""),
        ("x.any() or y.any()", "data", ""),
        ("none and x.any()", "unknown", ""),
        ("n and b", "static", ""),
        ("x if n else y", "tensor", ""),
        ("x if n else 1", "unknown", ""),
        ("x if n else None", "tensor", ""),
        ("(v := x)", "tensor", ""),
        # containers
        ("(n, s)", "static", "tuple"),
        ("[x, n]", "tensor", "tuple"),
        ("[x, none]", "unknown", "tuple"),
        ("{'a': n}", "static", "dict"),
        ("{'a': x}", "tensor", "dict"),
        ("x[0]", "tensor", ""),
        ("x[n]", "tensor", ""),
        ("NAMES[0]", "static", ""),
        ("none[0]", "unknown", ""),
        ("[v for v in x.shape]", "static", "tuple"),
        ("[v * 2 for v in x]", "tensor", "tuple"),
        ("[v for v in none]", "unknown", ""),
        ("lambda: x", "static", "function"),
        ("await none", "unknown", ""),
    ],
)
def test_kinds_and_types(code: Make, text: str, kind: str, type_: str) -> None:
    value = code(MODULE).value(text, "Net.f")
    assert (value.kind, value.type) == (kind, type_)


@pytest.mark.parametrize(
    ("text", "symbolic"),
    [
        ("x.shape", True),
        ("x.shape[0]", True),
        ("x.size(0) * 2", True),
        ("n", True),
        ("len(x)", True),
        ("f'{x.shape[0]}'", True),
        ("str(x.shape[0])", True),
        ("(1, x.shape)", True),
        ("x.dtype", False),
        ("f'{x.dtype}'", False),
        ("1", False),
        ("LIMIT", False),
        ("s", False),
    ],
)
def test_numbers_that_may_come_from_shapes(code: Make, text: str, symbolic: bool) -> None:
    assert code(MODULE).value(text, "Net.f").symbolic == symbolic


@pytest.mark.parametrize(
    ("text", "optional", "unbound"),
    [
        ("x", False, False),
        ("o", True, False),
        ("q", True, False),
        ("t2", True, False),
        ("z", True, False),
        ("looped", False, True),
        ("y", False, False),
    ],
)
def test_what_may_be_missing(code: Make, text: str, optional: bool, unbound: bool) -> None:
    value = code(MODULE).value(text, "Net.f")
    assert (value.optional, value.unbound) == (optional, unbound)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("a = x", "tensor"),
        ("a = 1\n    a = x", "tensor"),
        ("a = 1\n    if u:\n        a = x", "unknown"),
        ("a = x\n    if u:\n        a = x + 1", "tensor"),
        ("a = 1\n    if u:\n        a = x\n        return a", "static"),
        ("a = 1\n    if torch.compiler.is_compiling():\n        a = x", "tensor"),
        ("a = 1\n    if not torch.compiler.is_compiling():\n        a = x", "static"),
        ("a = 1\n    for i in u:\n        a = x", "unknown"),
        ("a = 1\n    while u:\n        a = x", "unknown"),
        ("for a in x: ...", "tensor"),
        ("for a in x.shape: ...", "static"),
        ("for i, a in enumerate(x): ...", "tensor"),
        ("with u as a: ...", "unknown"),
        ("a = 1\n    try:\n        a = x\n    except E: ...", "unknown"),
        ("a = x\n    try:\n        a = x + 1\n    except E: ...", "tensor"),
        ("a = x\n    try: ...\n    except E as a: ...", "unknown"),
        ("a = 1\n    match u:\n        case 1:\n            a = x", "unknown"),
        ("a = 1\n    match u:\n        case a: ...", "unknown"),
        ("a = 1\n    match u:\n        case {**a}: ...", "unknown"),
        ("a, b = x, 1", "tensor"),
        ("b, a = x, 1", "static"),
        ("a, b = u", "unknown"),
        ("a, *b = x", "tensor"),
        ("[a, b] = x.shape", "static"),
        ("a: int = x", "tensor"),
        ("a = 1\n    a += x", "tensor"),
        ("a = 1\n    a += 1", "static"),
        ("a = x\n    del a", "unknown"),
        ("(a := x)", "tensor"),
        ("if (a := x) is None: ...", "tensor"),
        ("u((a := x))", "tensor"),
        ("a = 1\n    u((a := x))", "unknown"),
        ("a = 1\n    for i in u:\n        if i:\n            a = x\n            break", "unknown"),
        ("a = 1\n    while u:\n        if u:\n            a = x\n            continue\n        a = 1", "unknown"),
        ("a = 1\n    for i in u: ...\n    else:\n        a = x", "tensor"),
        ("def a(): ...", "static"),
        ("import a", "static"),
        ("a = b = x", "tensor"),
        ("a = x.item()", "data"),
        ("a = x\n    a = a.item()", "data"),
        ("a = x\n    def inner():\n        a = 1", "tensor"),
    ],
)
def test_the_flow_of_a_function(code: Make, body: str, kind: str) -> None:
    project = code(f"import torch\ndef f(x: torch.Tensor, u):\n    {body}\n    here\n")
    assert project.value("a").kind == kind


def test_a_loop_is_seen_with_what_it_leaves_behind(code: Make) -> None:
    project = code("import torch\ndef f(x: torch.Tensor):\n    a = 1\n    for i in x:\n        here\n        a = x\n")
    assert project.value("a").kind == "unknown"


def test_a_closure_variable_is_not_followed(code: Make) -> None:
    project = code("import torch\ndef g(x: torch.Tensor):\n    a = 1\n    def f():\n        here\n    a = x\n")
    assert project.value("a", "g.<locals>.f").kind == "unknown"


def test_shadowed_torch_is_not_torch(code: Make) -> None:
    project = code("import torch\ndef f(torch, len):\n    here\n")
    assert project.value("torch.zeros(1)").kind == "unknown"
    assert project.value("len(1)").kind == "unknown"


def test_a_foreign_tensor_is_unknown(code: Make) -> None:
    project = code("from other import Tensor\ndef f(x: Tensor):\n    here\n")
    assert project.value("x").kind == "unknown"
    assert project.value("x.any()").kind == "unknown"


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("1", True),
        ("x", True),
        ("o", True),
        ("x.shape", True),
        ("x.sum()", True),
        ("torch.isnan(x)", True),
        ("x * 2", True),
        ("n + 1", True),
        ("f'{x} {n:{n}}'", True),
        ("'{} {}'.format(x, n)", True),
        ("'%s' % x", True),
        ("(x, n)", True),
        ("self.training", True),
        ("looped", False),
        ("none", False),
        ("o.sum()", False),
        ("o.shape", False),
        ("x.mean()", False),
        ("x.abs()", False),
        ("x.sum(7)", False),
        ("x.sum(dim=7)", False),
        ("torch.sum(x, 7)", False),
        ("x + y", False),
        ("x / 2", False),
        ("n / n", False),
        ("n % n", False),
        ("x[0]", False),
        ("x.add_(1)", False),
        ("x.item()", False),
        ("torch.rand(1)", False),
        ("given(x)", False),
        ("self.helper(x)", False),
        ("(v := x)", False),
        ("[v for v in x]", False),
        ("lambda: x", False),
        ("x if n else y", False),
        ("f'{o.sum()}'", False),
    ],
)
def test_what_may_always_be_computed(code: Make, text: str, total: bool) -> None:
    project = code(MODULE)
    assert is_total(expression(text), project.values("Net.f"), project.env("Net.f")) == total
