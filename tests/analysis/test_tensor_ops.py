"""The table of operations, measured: every row is run on every dtype, on empty tensors, infinities, nans and zeros."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from graphmend_lint.analysis import tensor_ops
from graphmend_lint.analysis.tensor_ops import (
    ALLOCATING_MODULES,
    DTYPES,
    OPS,
    PARTIAL_REDUCTIONS,
    SYNONYMS,
    TOTAL_REDUCTIONS,
    Op,
)

torch = pytest.importorskip("torch")
nn = torch.nn

#: The dtypes by their proper names.
NAMES = [name for name in DTYPES if name not in SYNONYMS]
FLOATS = [name for name in NAMES if DTYPES[name] == "float"]
#: Numbers for the parameters of an operation; those in the table take any that the dtype holds.
NUMBERS = (-1.0, 0.0, 2.0, float("inf"), -float("inf"))

every_op = pytest.mark.parametrize("name", OPS)


def spellings(name: str) -> Iterator[Callable[..., Any]]:
    """The functions and the method of that name."""
    for owner in (torch, nn.functional, torch.special, torch.Tensor):
        found = getattr(owner, name, None)
        if callable(found) and not isinstance(found, (type, torch.dtype)):
            yield found


def special(dtype: str) -> Any:
    """A tensor with the numbers that are treated in a way of their own."""
    if DTYPES[dtype] in ("bool", "int"):
        limits = [1] if dtype == "bool" else [torch.iinfo(getattr(torch, dtype)).min]
        return torch.tensor([0, 1, 0, *limits], dtype=getattr(torch, dtype))
    info = torch.finfo(getattr(torch, dtype))
    infinities = [float("inf"), -float("inf"), float("nan")]
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -3.0, 3.0, 6.0, info.max, info.min, info.tiny, info.eps, *infinities]
    return torch.tensor(values, dtype=torch.float64).to(getattr(torch, dtype))


def tensors(dtype: str) -> list[Any]:
    """Tensors of one dtype: several shapes, with none, one and more elements."""
    flat = special(dtype)
    return [flat, flat[:0], flat[0], flat[:4].reshape(2, 2).t(), flat[:4].reshape(1, 2, 2), flat[:0].reshape(0, 3)]


def numbers(op: Op) -> list[dict[str, float]]:
    """Arguments for the parameters of an operation besides the tensor."""
    if not op.numbers:
        return [{}]
    given = [
        dict(zip(op.numbers, values, strict=True)) for values in itertools.product(NUMBERS, repeat=len(op.numbers))
    ]
    single = [{name: value} for name in op.numbers for value in NUMBERS]
    return given + single


def calls(name: str, tensor: Any) -> Iterator[Any]:
    """The results of an operation of the table, by each spelling and with each set of numbers."""
    op = OPS[name]
    for function in spellings(name):
        for given in numbers(op):
            yield function(tensor, **given)


def accepted(op: Op) -> list[str]:
    return [name for name in NAMES if DTYPES[name] in op.accepts]


def expected_dtype(result: str, dtype: str) -> Any:
    if result == "same":
        return getattr(torch, dtype)
    if result == "inexact":
        return getattr(torch, dtype) if DTYPES[dtype] in ("float", "complex") else torch.get_default_dtype()
    return getattr(torch, result)


class TestOps:
    @every_op
    def test_each_row_names_something(self, name: str) -> None:
        assert list(spellings(name))

    @every_op
    def test_what_is_accepted_never_raises_and_gives_the_dtype_and_the_shape(self, name: str) -> None:
        op = OPS[name]
        for dtype in accepted(op):
            for tensor in tensors(dtype):
                for result in calls(name, tensor):
                    assert result.dtype == expected_dtype(op.result, dtype), dtype
                    assert result.shape == tensor.shape, dtype

    @every_op
    def test_the_argument_stays_what_it_is(self, name: str) -> None:
        for dtype in accepted(OPS[name]):
            tensor = special(dtype)
            for _ in calls(name, tensor):
                assert repr(tensor.tolist()) == repr(special(dtype).tolist())

    @every_op
    def test_only_views_share_memory(self, name: str) -> None:
        op = OPS[name]
        shared = [
            dtype
            for dtype in accepted(op)
            for tensor in tensors(dtype)
            if tensor.numel()
            for result in calls(name, tensor)
            if result is tensor or result.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr()
        ]
        assert op.view or not shared, shared
        assert shared or not op.view

    @every_op
    def test_the_layout_in_memory_is_kept_where_it_is_not_made_anew(self, name: str) -> None:
        op = OPS[name]
        tensor = special(accepted(op)[-1])[:3].repeat(2).reshape(2, 3).t()
        for result in calls(name, tensor):
            assert op.contiguous or result.stride() == tensor.stride()

    @pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.gradient == "finite"])
    def test_a_gradient_of_zero_stays_zero(self, name: str) -> None:
        """Whatever the value: infinities, nans, zeros and the largest and smallest numbers.

        In tensors that are long enough for vector instructions, which compute some derivatives in another way.
        """
        for dtype in set(FLOATS).intersection(accepted(OPS[name])):
            for function, given in itertools.product(spellings(name), numbers(OPS[name])):
                tensor = special(dtype).repeat(16).requires_grad_()
                result = function(tensor, **given)
                result.backward(torch.zeros_like(result))
                assert tensor.grad is not None
                assert (tensor.grad == 0).all(), (dtype, given, tensor.grad)

    @pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.gradient == "none"])
    def test_no_gradient_flows(self, name: str) -> None:
        for dtype in set(FLOATS).intersection(accepted(OPS[name])):
            tensor = special(dtype).requires_grad_()
            assert not any(result.requires_grad for result in calls(name, tensor))

    @pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.gradient == "unbounded"])
    def test_what_is_called_unbounded_is_so_somewhere(self, name: str) -> None:
        """Or differs from zero by rounding: a row that is stricter than it has to be costs fixes."""
        if name in ("elu", "hardswish", "gelu", "silu", "softplus", "sigmoid", "tanh"):
            return  # they are for some number of some dtype, or on some device
        found = False
        for dtype in set(FLOATS).intersection(accepted(OPS[name])):
            tensor = special(dtype).requires_grad_()
            for result in calls(name, tensor):
                tensor.grad = None
                result.backward(torch.zeros_like(result))
                found = found or bool((tensor.grad != 0).any())
        assert found

    @pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
    def test_the_factors_of_a_product_that_are_called_finite_are_so(self, name: str) -> None:
        for factor in (tensor_ops.HALF_MAX, -tensor_ops.HALF_MAX, 1 / tensor_ops.HALF_MAX, 0.0):
            tensor = special(name).requires_grad_()
            (tensor * factor).backward(torch.zeros_like(tensor))
            assert (tensor.grad == 0).all()
        for divisor in (tensor_ops.HALF_MAX, 1 / tensor_ops.HALF_MAX):
            tensor = special(name).requires_grad_()
            (tensor / divisor).backward(torch.zeros_like(tensor))
            assert (tensor.grad == 0).all()


class TestNumbers:
    def test_the_numbers_that_every_dtype_holds_exactly(self) -> None:
        for dtype in FLOATS:
            for half in range(-2 * tensor_ops.EXACT_LIMIT, 2 * tensor_ops.EXACT_LIMIT + 1):
                assert torch.tensor(half / 2, dtype=getattr(torch, dtype)).item() == half / 2

    def test_the_largest_numbers(self) -> None:
        integers = [name for name in NAMES if DTYPES[name] == "int"]
        assert min(torch.iinfo(getattr(torch, name)).max for name in integers) == tensor_ops.INT8_MAX
        assert min(torch.finfo(getattr(torch, name)).max for name in FLOATS) == tensor_ops.HALF_MAX

    def test_every_dtype_is_in_its_class(self) -> None:
        for name, kind in DTYPES.items():
            dtype = getattr(torch, name)
            assert dtype.is_complex == (kind == "complex")
            assert dtype.is_floating_point == (kind == "float")
            assert (dtype == torch.bool) == (kind == "bool")

    @pytest.mark.parametrize("name", SYNONYMS)
    def test_synonyms(self, name: str) -> None:
        assert getattr(torch, name) == getattr(torch, SYNONYMS[name])


def kind_of(dtype: Any) -> str:
    return next(DTYPES[name] for name in NAMES if getattr(torch, name) == dtype)


class TestReductions:
    @pytest.mark.parametrize("name", TOTAL_REDUCTIONS)
    def test_total_ones_never_raise(self, name: str) -> None:
        classes = TOTAL_REDUCTIONS[name]
        for dtype in NAMES:
            for tensor, function in itertools.product(tensors(dtype), spellings(name)):
                result = function(tensor)
                assert result.shape == ()
                if name in ("any", "all"):
                    assert result.dtype == (torch.uint8 if dtype == "uint8" else torch.bool)
                elif classes is not None:
                    assert kind_of(result.dtype) in classes
                else:
                    assert kind_of(result.dtype) == ("int" if dtype == "bool" else DTYPES[dtype])

    @pytest.mark.parametrize("name", ["any", "all", "sum"])
    def test_those_that_keep_the_first_or_the_last_dimension_never_raise(self, name: str) -> None:
        for dtype, dimension in itertools.product(NAMES, (0, -1)):
            for tensor in tensors(dtype):
                kept = list(tensor.shape)
                kept[dimension : dimension + 1 or None] = [1] * bool(kept)
                assert getattr(tensor, name)(dimension, keepdim=True).shape == tuple(kept)
                assert getattr(torch, name)(tensor, dim=dimension, keepdim=True).shape == tuple(kept)

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_a_gradient_of_zero_stays_zero_through_a_sum(self, dtype: str) -> None:
        tensor = special(dtype).requires_grad_()
        tensor.sum().backward(torch.zeros((), dtype=tensor.dtype))
        assert (tensor.grad == 0).all()

    @pytest.mark.parametrize("name", PARTIAL_REDUCTIONS)
    def test_the_others_give_the_class_that_is_stated_where_they_do_not_raise(self, name: str) -> None:
        classes = PARTIAL_REDUCTIONS[name]
        for dtype in NAMES:
            for tensor, function in itertools.product(tensors(dtype), spellings(name)):
                try:
                    result = function(tensor)
                except (RuntimeError, IndexError):
                    continue
                assert result.shape == ()
                allowed = classes or {DTYPES[dtype], "int"} if DTYPES[dtype] == "bool" else classes or {DTYPES[dtype]}
                assert kind_of(result.dtype) in allowed


MODULES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(4, 4), (2, 4)),
    "Embedding": (lambda: nn.Embedding(4, 4), (2, 4)),
    "Tanh": (nn.Tanh, (2, 4)),
    "Sigmoid": (nn.Sigmoid, (2, 4)),
    "Softmax": (lambda: nn.Softmax(-1), (2, 4)),
    "GELU": (nn.GELU, (2, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (2, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4)),
    **{f"BatchNorm{n}d": (partial(getattr(nn, f"BatchNorm{n}d"), 4), (2, 4, *[3] * n)) for n in (1, 2, 3)},
    **{f"Conv{n}d": (partial(getattr(nn, f"Conv{n}d"), 4, 4, 1), (2, 4, *[3] * n)) for n in (1, 2, 3)},
    **{
        f"ConvTranspose{n}d": (partial(getattr(nn, f"ConvTranspose{n}d"), 4, 4, 1), (2, 4, *[3] * n)) for n in (1, 2, 3)
    },
}


class TestModules:
    @pytest.mark.parametrize("name", ALLOCATING_MODULES)
    def test_the_result_is_new_and_of_the_class_that_is_stated(self, name: str) -> None:
        if name == "Bilinear":
            module, inputs = nn.Bilinear(4, 4, 4), [torch.randn(2, 4), torch.randn(2, 4)]
        else:
            make, shape = MODULES[name]
            module, inputs = make(), [torch.zeros(shape, dtype=torch.int64 if name == "Embedding" else None)]
        for training in (True, False):
            module.train(training)
            result = module(*inputs)
            held = [*inputs, *module.parameters(), *module.buffers()]
            own = result.untyped_storage().data_ptr()
            assert all(tensor.untyped_storage().data_ptr() != own for tensor in held)
            assert kind_of(result.dtype) in ALLOCATING_MODULES[name]
