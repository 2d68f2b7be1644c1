"""Facts about tensors: what is said of an expression holds for every tensor, as torch computes it."""

from __future__ import annotations

import ast
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pytest

from graphmend_lint.analysis.bindings import Bindings
from graphmend_lint.analysis.tensor_ops import ANY, DTYPES, FLOAT, INEXACT, OPS, SYNONYMS, DtypeClass
from graphmend_lint.analysis.tensors import SCALAR, Dtype, Fact, Number, Other, Tensor, Tensors
from graphmend_lint.analysis.values import Env, Walk
from tests.analysis.conftest import Code, expression

Make = Callable[..., Code]

FUNCTION = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(4, 4)
            self.norm = nn.LayerNorm(4)
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor | None, n: int, s: float, u, b: bool):
            here
"""


@dataclass(frozen=True)
class Facts:
    """What is known at the statement `here` of a method."""

    tensors: Tensors
    env: Env

    @classmethod
    def at(cls, code: Code, function: str = "Net.forward") -> Facts:
        bindings = Bindings(code.project, code.folder / "m.py")
        tensors = Tensors(bindings, code.scope(function), ast.unparse)
        for point in Walk(tensors).points():
            tensors.certain = not point.around
            if ast.unparse(point.statement) == "here":
                tensors.certain = False
                return cls(tensors, dict(point.env))
        raise AssertionError("there is no statement `here`")

    def __call__(self, text: str) -> Fact:
        return self.tensors.fact(expression(text), self.env)

    def tensor(self, text: str) -> Tensor:
        fact = self(text)
        assert isinstance(fact, Tensor), fact
        return fact

    def number(self, text: str) -> Number:
        fact = self(text)
        assert isinstance(fact, Number), fact
        return fact

    def hazards(self, text: str) -> list[str]:
        """The kinds of hazards; those that a condition excludes are in brackets."""
        return [f"({h.kind})" if h.unless else h.kind for h in self(text).hazards]


@pytest.fixture
def facts(code: Make) -> Facts:
    return Facts.at(code(FUNCTION))


class TestSymbols:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("x * 2.0", "x + 1.0"),
            ("x", "torch.nan_to_num(x)"),
            ("x", "-x"),
            ("x.clamp(min=0.5)", "F.relu(x)"),
            ("torch.clamp(x, -1.0, 1.0)", "x"),
            ("x.to(y.dtype)", "x.to(y.dtype) * 2"),
            ("x.sum()", "(x * 2).sum()"),
            ("torch.where(x > 0, x, -x)", "x.neg()"),
        ],
    )
    def test_two_expressions_of_one_shape_and_device(self, facts: Facts, first: str, second: str) -> None:
        one, other = facts.tensor(first), facts.tensor(second)
        assert (one.shape, one.device) == (other.shape, other.device)

    @pytest.mark.parametrize(
        ("first", "second"),
        [("x", "y"), ("x", "x.sum()"), ("x", "x[:1]"), ("x", "x + y"), ("x", "torch.cat([x, x])"), ("x.sum(0)", "x")],
    )
    def test_two_expressions_that_may_differ_in_shape(self, facts: Facts, first: str, second: str) -> None:
        assert facts.tensor(first).shape != facts.tensor(second).shape

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("x", "x.abs()"),
            ("x * 2.0", "x.exp()"),
            ("x / 2.0", "x * 1.0"),
            ("x.half()", "y.to(torch.float16)"),
            ("x > 0", "torch.isnan(y)"),
            ("x.to(y.dtype)", "y"),
        ],
    )
    def test_two_expressions_of_one_dtype(self, facts: Facts, first: str, second: str) -> None:
        assert facts.tensor(first).dtype.key == facts.tensor(second).dtype.key

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("x", "y"),
            ("x", "x * 2.0"),
            ("x", "x / 2"),
            ("x", "x + n"),
            ("x", "x.sum()"),
            ("x", "x.float()"),
            ("x", "x * s"),
        ],
    )
    def test_two_expressions_that_may_differ_in_dtype(self, facts: Facts, first: str, second: str) -> None:
        assert facts.tensor(first).dtype.key != facts.tensor(second).dtype.key

    def test_modules_of_torch_give_new_tensors_of_a_class(self, facts: Facts) -> None:
        assert facts.tensor("self.norm(x)").dtype.classes == FLOAT
        assert facts.tensor("self.up(x)").dtype.classes == INEXACT
        assert facts.tensor("self.up(x)").fresh
        assert facts.tensor("self.up(x)").shape != facts.tensor("self.up(x)").shape

    def test_an_attribute_is_the_same_until_the_next_statement(self, facts: Facts) -> None:
        first = facts.tensor("self.scale")
        assert facts.tensor("self.scale").value == first.value
        facts.tensors.still()
        assert facts.tensor("self.scale").value != first.value


class TestNames:
    def at(self, code: Make, body: str) -> Facts:
        lines = "\n".join(f"            {line}" for line in body.splitlines())
        return Facts.at(code(FUNCTION.replace("            here", f"{lines}\n            here")))

    def test_a_second_name_holds_the_same_tensor(self, code: Make) -> None:
        facts = self.at(code, "a = x + 1\nb = a")
        assert facts.tensor("a").value == facts.tensor("b").value != facts.tensor("x").value

    def test_a_name_is_a_root_of_its_own(self, code: Make) -> None:
        facts = self.at(code, "a = torch.sqrt(x)")
        assert facts.tensor("a * 2").roots == facts.tensor("a").roots
        assert not facts.tensor("a * 2").culprit
        assert facts.tensor("torch.sqrt(x) * 2").culprit == "torch.sqrt(x)"

    def test_after_two_paths_what_they_agree_in_is_known(self, code: Make) -> None:
        facts = self.at(code, "a = x * 2.0\nif b:\n    a = x + 1.0")
        assert facts.tensor("a").shape == facts.tensor("x").shape
        assert facts.tensor("a").dtype.key == facts.tensor("x * 2.0").dtype.key
        facts = self.at(code, "a = x * 2.0\nif b:\n    a = y")
        assert facts.tensor("a").shape != facts.tensor("x").shape
        assert facts.tensor("a").dtype.key != facts.tensor("x * 2.0").dtype.key

    def test_after_a_loop_nothing_is_known(self, code: Make) -> None:
        facts = self.at(code, "a = x * 2.0\nfor _ in range(n):\n    a = torch.cat([a, a])")
        assert facts.tensor("a").shape != facts.tensor("x").shape

    def test_a_test_of_the_dtype_is_heeded(self, facts: Facts) -> None:
        facts.tensors.narrow_dtype(facts.env, expression("b and x.dtype == torch.half"))
        assert facts.tensor("x").dtype.key == "float16"
        assert facts.tensor("x").dtype.classes == FLOAT
        facts.tensors.narrow_dtype(facts.env, expression("b or y.dtype == torch.half"))
        assert facts.tensor("y").dtype.key != "float16"

    def test_what_ran_before_tells_of_the_dtype(self, code: Make) -> None:
        assert self.at(code, "m = F.elu(x)").hazards("x.clamp(0.0, 1.0)") == []
        assert self.at(code, "if b:\n    m = F.elu(x)").hazards("x.clamp(0.0, 1.0)") != []

    def test_a_name_that_may_be_none_or_unbound(self, code: Make) -> None:
        assert self.at(code, "pass").hazards("z") == ["raise"]
        assert self.at(code, "if b:\n    a = x").hazards("a") == ["raise"]


class TestHazards:
    @pytest.mark.parametrize(
        ("text", "kinds"),
        [
            ("x + 1", []),
            ("x - 1", ["(raise)"]),
            ("x + y", ["raise", "(raise)"]),
            ("x[0]", ["raise"]),
            ("x.view(-1)", ["raise"]),
            ("torch.rand_like(x)", ["random"]),
            ("F.dropout(x)", ["random"]),
            ("torch.add(x, 1, out=y)", ["change"]),
            ("x.add_(1)", ["change"]),
            ("F.relu(x, inplace=True)", ["change"]),
            ("x.item()", ["read"]),
            ("x.tolist()", ["read"]),
            ("self.up(x)", ["cost"]),
            ("u(x)", ["cost"]),
            ("self.forward(x, x)", ["cost"]),
            ("torch.add(*u)", ["call"]),
            ("x + u", ["read", "raise"]),
            ("x * s", []),
            ("x.clamp()", ["(raise)", "raise"]),
            ("x.clamp(min=1e30)", ["(raise)", "(raise)"]),
            ("x.half().clamp(max=65504.0)", ["(raise)"]),
            ("x.half().clamp(max=65505.0)", ["(raise)", "(raise)"]),
            ("x.masked_fill(x == 0, 1.0)", []),
            ("x.masked_fill(y == 0, 1.0)", ["raise", "(raise)"]),
            ("x ** 2", ["raise"]),
            ("x // 2", ["raise"]),
            ("x @ x", ["raise"]),
        ],
    )
    def test_kinds(self, facts: Facts, text: str, kinds: list[str]) -> None:
        assert facts.hazards(text) == kinds

    def test_a_contraction_is_named_as_costly(self, facts: Facts) -> None:
        assert "cost" in facts.hazards("torch.matmul(x, x)")
        assert "cost" in facts.hazards("F.linear(x, y)")


class TestNumbers:
    @pytest.mark.parametrize(
        "text",
        [
            "torch.finfo(x.dtype).max",
            "torch.finfo(x.dtype).min",
            "torch.finfo(x.dtype).max - 1000",
            "torch.finfo(x.dtype).max * 0.5",
            "-0.5 * torch.finfo(x.dtype).max",
            "torch.finfo(x.dtype).min / 2",
            "-(torch.finfo(x.dtype).max - 1000)",
        ],
    )
    def test_within_the_dtype(self, facts: Facts, text: str) -> None:
        assert facts.number(text).within == facts.tensor("x").dtype.key

    @pytest.mark.parametrize(
        "text",
        [
            "torch.finfo(x.dtype).max + 1000",
            "torch.finfo(x.dtype).min - 1000",
            "-torch.finfo(x.dtype).max - 1000",
            "torch.finfo(x.dtype).max - 60000 - 60000 - 60000",
            "torch.finfo(x.dtype).max * 2",
            "torch.finfo(x.dtype).max / 0.5",
            "torch.finfo(x.dtype).max - s",
            "s - torch.finfo(x.dtype).max",
            "torch.finfo(y.dtype).max",
            "torch.finfo(torch.float32).max",
        ],
    )
    def test_not_within_the_dtype(self, facts: Facts, text: str) -> None:
        assert facts.number(text).within != facts.tensor("x").dtype.key

    def test_constants_are_folded(self, facts: Facts) -> None:
        assert facts.number("2 * 3.5 - 1").constant == 6.0
        assert facts.number('float("inf")').constant == float("inf")
        assert facts.number("1 / 0").hazards
        assert isinstance(facts('float("one")'), Other)

    def test_a_parameter_is_a_number_by_its_annotation(self, facts: Facts) -> None:
        assert (facts.number("n").type, facts.number("s").type, facts.number("b").type) == ("int", "float", "bool")
        assert isinstance(facts("u"), Other)


# -- what is said, against torch -------------------------------------------------------------------------------------

NAMES = [name for name in DTYPES if name not in SYNONYMS]
ROUNDS = 300
ROWS = [name for name, op in OPS.items() if not op.numbers]
#: Rows that are no methods of tensors.
METHOD = {
    **{name: f"F.{name}(@)" for name in ("relu6", "leaky_relu", "elu", "hardtanh", "hardswish", "hardsigmoid")},
    **{name: f"F.{name}(@)" for name in ("gelu", "silu", "softplus")},
    **{name: f"torch.{name}(@)" for name in ("zeros_like", "ones_like")},
}


def leaves() -> list[str]:
    """Expressions of one operation on the tensor `@`."""
    table = [METHOD.get(name, f"@.{name}()") for name in ROWS]
    functions = ["torch.abs(@)", "F.relu(@)", "torch.nan_to_num(@)", "torch.where(@ > 0, @, -@)", "-@", "+@", "~@"]
    limits = ["@.clamp(-1.0, 2.0)", "@.clamp(min=0.5)", "torch.clamp(@, max=torch.finfo(@.dtype).max - 1000)"]
    limits += ["torch.full_like(@, 3)", "@.clamp(-torch.finfo(@.dtype).max, 0.0)"]
    numbers = [f"@ {op} {n}" for op in "+-*/" for n in ("2", "0.5", "True", "300", "-1", "1e30", "10**9")]
    numbers += [f"{n} {op} @" for op in "+-*/" for n in ("2", "0.5")]
    compared = [f"@ {op} {n}" for op in ("<", ">=", "==", "!=") for n in ("0", "1.5", "300")]
    logic = ["torch.logical_not(@)", "(@ > 0) & (@ < 9)", "(@ > 0) | @.isnan()", "torch.logical_and(@, @ == 1)"]
    casts = ["@.to(torch.float32)", "@.to(torch.int64)", "@.to(dtype=torch.bool)", "@.type_as(@ > 0)", "@.to(@.dtype)"]
    reductions = ["@.sum()", "@.any()", "@.all()", "torch.count_nonzero(@)", "@.sum(-1, keepdim=True)", "@.mean()"]
    reductions += ["@.any(0, keepdim=True)", "@.max()", "@.amax()", "@.norm()", "@.std()", "torch.prod(@)"]
    filled = [
        "@.masked_fill(@ == 0, 1.0)",
        "@.masked_fill(@.isnan(), 0)",
        "torch.maximum(@, @)",
        "torch.minimum(@, -@)",
    ]
    pairs = ["@ + @", "@ * @.sum()", "@ - @.abs()", "@ / @.sum(-1, keepdim=True)", "@ + (@ > 0)", "@ + @.float()"]
    return [*table, *functions, *limits, *numbers, *compared, *logic, *casts, *reductions, *filled, *pairs]


def programs() -> list[str]:
    """Expressions over `x`: all of one operation, and some of two and three."""
    chosen, single = random.Random(0), leaves()
    deeper = [
        chosen.choice(single).replace("@", f"({chosen.choice(single).replace('@', inner)})")
        for _ in range(ROUNDS)
        for inner in ("x", f"({chosen.choice(single).replace('@', 'x')})")
    ]
    return [*(leaf.replace("@", "x") for leaf in single), *deeper]


class Measured:
    """Each program on tensors of every dtype and of several shapes."""

    def __init__(self, facts: Facts, kinds: frozenset[DtypeClass]) -> None:
        self.torch = pytest.importorskip("torch")
        self.names = [name for name in NAMES if DTYPES[name] in kinds]
        held, known = facts.env["x"], facts.tensor("x")
        facts.env["x"] = replace(held, fact=replace(known, dtype=Dtype(known.dtype.key, kinds)))
        self.facts = {text: facts.tensors.fact(expression(text), facts.env) for text in dict.fromkeys(programs())}
        self.root = facts.tensor("x").value

    @cached_property
    def known(self) -> dict[str, Tensor]:
        """The programs that are said to give a tensor and to do nothing else, for any tensor."""
        return {text: fact for text, fact in self.facts.items() if isinstance(fact, Tensor) and not fact.hazards}

    def inputs(self) -> Iterator[Any]:
        for name in self.names:
            dtype = getattr(self.torch, name)
            values = [0, 1, 3, 2] if DTYPES[name] in ("int", "bool") else [0.0, float("inf"), float("nan"), -2.5]
            flat = self.torch.tensor(values).to(dtype)
            yield from (flat, flat[:0], flat[1], flat.reshape(2, 2).t(), flat.reshape(1, 4)[:, ::2], flat.expand(3, 4))

    def run(self, text: str, x: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, {"torch": self.torch, "F": self.torch.nn.functional, "x": x})

    @cached_property
    def results(self) -> list[tuple[Any, dict[str, Any]]]:
        """Each input with what the programs make of it; the exception where one raises."""
        return [(x, {text: self.outcome(text, x) for text in self.known}) for x in self.inputs()]

    def outcome(self, text: str, x: Any) -> Any:
        try:
            return self.run(text, x)
        except Exception as error:
            return error

    def each(self) -> Iterator[tuple[str, Tensor, Any, Any]]:
        """Each program with its fact, an input and the result."""
        for x, results in self.results:
            for text, result in results.items():
                if not isinstance(result, Exception):
                    yield text, self.known[text], x, result


@pytest.fixture(scope="module", params=["any", "floating-point"])
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    facts = Facts.at(Code(tmp_path_factory.mktemp("measured"), {"m.py": FUNCTION}))
    return Measured(facts, ANY if request.param == "any" else FLOAT)


class TestMeasured:
    def test_much_is_known(self, measured: Measured) -> None:
        assert len(measured.known) > 150

    def test_what_has_no_hazards_never_raises(self, measured: Measured) -> None:
        raised = {
            text: f"{text} on {x!r}: {error}"
            for x, results in measured.results
            for text, error in results.items()
            if isinstance(error, Exception)
        }
        assert not raised, "\n".join(f"{text}: {error[:300]}" for text, error in raised.items())

    @pytest.mark.parametrize("kind", ["shape", "dtype", "layout"])
    def test_equal_symbols_mean_equal_things(self, measured: Measured, kind: str) -> None:
        groups: dict[Any, tuple[Any, str]] = {}
        for text, fact, x, result in measured.each():
            key, value = {
                "shape": (fact.shape, result.shape),
                "dtype": (fact.dtype.key, result.dtype),
                "layout": ((fact.shape, fact.layout), significant(result)),
            }[kind]
            first = groups.setdefault((id(x), key), (value, text))
            assert value == first[0], f"{text} and {first[1]} on {x!r}"

    def test_a_shape_without_dimensions_has_none(self, measured: Measured) -> None:
        for text, fact, _, result in measured.each():
            assert fact.shape != SCALAR or result.shape == (), text

    def test_the_dtype_is_of_a_class_that_is_named(self, measured: Measured) -> None:
        kinds = {getattr(measured.torch, name): DTYPES[name] for name in NAMES}
        for text, fact, x, result in measured.each():
            assert kinds[result.dtype] in fact.dtype.classes, f"{text} on {x!r}"

    def test_what_is_called_fresh_shares_no_memory(self, measured: Measured) -> None:
        for text, fact, x, result in measured.each():
            if fact.fresh and x.numel():
                assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr(), f"{text} on {x!r}"

    def test_gradients_flow_to_the_roots_and_zero_stays_zero(self, measured: Measured) -> None:
        for x in (t for t in measured.inputs() if t.is_floating_point()):
            leaf = x.detach().clone().requires_grad_()
            for text, fact in measured.known.items():
                result = measured.outcome(text, leaf)
                if isinstance(result, Exception):
                    continue
                if result.is_floating_point():
                    assert result.requires_grad == (measured.root in fact.roots), f"{text} on {x!r}"
                if result.requires_grad and not fact.culprit:
                    (gradient,) = measured.torch.autograd.grad(
                        result, leaf, measured.torch.zeros_like(result), allow_unused=True
                    )
                    assert gradient is None or bool((gradient == 0).all()), f"{text} on {x!r}"


def significant(tensor: Any) -> Any:
    """The strides that matter: those of dimensions with more than one element."""
    if not tensor.numel():
        return ()
    return tuple(stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1)
