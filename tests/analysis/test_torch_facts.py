"""The facts about torch: fresh, right where a reader can tell, and there without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_lint.analysis import torch_facts
from graphmend_lint.analysis.torch_facts import OpFact

ROOT = Path(__file__).resolve().parents[2]

TENSOR = OpFact("tensor")
ELEMENTWISE = OpFact("tensor", elementwise=True)
WHOLE = OpFact("tensor", whole_reduction=True)
VIEW = OpFact("tensor", view=True)
IN_PLACE = OpFact("tensor", in_place=True, view=True)
DYNAMIC = OpFact("tensor", dynamic_shape=True)
DRAWN = OpFact("tensor", rng=True)


def reading(*types: str) -> OpFact:
    return OpFact("python", types, reads_data=True)


METHODS = {
    "item": reading("number"),
    "tolist": reading("list"),
    "equal": reading("bool"),
    "allclose": reading("bool"),
    "is_nonzero": reading("bool"),
    "__bool__": reading("bool"),
    "__int__": reading("int"),
    "__float__": reading("float"),
    "__contains__": reading("bool"),
    "__format__": reading("str"),
    "size": OpFact("python", ("int", "size")),
    "dim": OpFact("python", ("int",)),
    "numel": OpFact("python", ("int",)),
    "__len__": OpFact("python", ("int",)),
    "is_floating_point": OpFact("python", ("bool",)),
    "any": WHOLE,
    "all": WHOLE,
    "sum": WHOLE,
    "mean": WHOLE,
    "norm": WHOLE,
    "argmax": WHOLE,
    "max": OpFact("mixed", whole_reduction=True),
    "logsumexp": TENSOR,
    "softmax": TENSOR,
    "cumsum": TENSOR,
    "matmul": TENSOR,
    "det": TENSOR,
    "add": ELEMENTWISE,
    "__add__": ELEMENTWISE,
    "__rsub__": ELEMENTWISE,
    "__eq__": ELEMENTWISE,
    "isnan": ELEMENTWISE,
    "square": ELEMENTWISE,
    "masked_fill": ELEMENTWISE,
    "where": ELEMENTWISE,
    "add_": OpFact("tensor", in_place=True, view=True, elementwise=True),
    "__iadd__": OpFact("tensor", in_place=True, view=True, elementwise=True),
    "zero_": IN_PLACE,
    "copy_": IN_PLACE,
    "resize_": IN_PLACE,
    "__setitem__": OpFact("python", ("none",), in_place=True),
    "view": VIEW,
    "reshape": VIEW,
    "contiguous": VIEW,
    "to": VIEW,
    "float": VIEW,
    "half": VIEW,
    "cuda": VIEW,
    "detach": VIEW,
    "__getitem__": VIEW,
    "sort": OpFact("tensors"),
    "topk": OpFact("tensors"),
    "chunk": OpFact("tensors", view=True),
    "split": OpFact("tensors", view=True),
    "nonzero": OpFact("mixed", dynamic_shape=True),
    "unique": OpFact("mixed", dynamic_shape=True),
    "masked_select": DYNAMIC,
    "bincount": DYNAMIC,
    "repeat_interleave": OpFact("tensor", dynamic_shape=True, static_with="output_size"),
    "bernoulli": DRAWN,
    "multinomial": DRAWN,
    "normal_": OpFact("tensor", in_place=True, view=True, rng=True),
}

FUNCTIONS = {
    "torch.any": WHOLE,
    "torch.sum": WHOLE,
    "torch.linalg.vector_norm": WHOLE,
    "torch.isnan": ELEMENTWISE,
    "torch.special.expit": ELEMENTWISE,
    "torch.kl_div": TENSOR,
    "torch.zeros": TENSOR,
    "torch.tensor": TENSOR,
    "torch.cat": TENSOR,
    "torch.fft.rfft": TENSOR,
    "torch.as_tensor": VIEW,
    "torch.bincount": DYNAMIC,
    "torch.rand": DRAWN,
    "torch.randint": DRAWN,
    "torch.normal": DRAWN,
    "torch.where": OpFact("mixed", dynamic_shape=True, static_with="other", elementwise=True),
    "torch.equal": reading("bool"),
    "torch.sort": OpFact("tensors"),
    "torch.chunk": OpFact("tensors", view=True),
    "torch.meshgrid": OpFact("tensors", view=True),
    "torch.is_tensor": OpFact("python", ("bool",)),
    "torch.is_grad_enabled": OpFact("python", ("bool",)),
    "torch.cuda.is_available": OpFact("python", ("bool",)),
    "torch.compiler.is_compiling": OpFact("python", ("bool",)),
    "torch.get_default_dtype": OpFact("python", ("dtype",)),
    "torch.nn.functional.gelu": ELEMENTWISE,
    "torch.nn.functional.relu": OpFact("tensor", elementwise=True, in_place_with="inplace"),
    "torch.nn.functional.softmax": TENSOR,
    "torch.nn.functional.normalize": TENSOR,
    "torch.nn.functional.cross_entropy": TENSOR,
    "torch.nn.functional.unfold": TENSOR,
    "torch.nn.functional.embedding": OpFact("tensor", in_place_with="max_norm"),
    "torch.nn.functional.one_hot": OpFact("tensor", dynamic_shape=True, static_with="num_classes"),
    "torch.nn.functional.dropout": OpFact("tensor", rng=True, view=True, in_place_with="inplace"),
    "torch.nn.functional.gumbel_softmax": DRAWN,
    "torch.nn.functional.scaled_dot_product_attention": DRAWN,
    "torch.nn.init.normal_": OpFact("tensor", in_place=True, view=True, rng=True),
    "torch.Tensor.add": ELEMENTWISE,
}

ATTRIBUTES = {
    "shape": OpFact("python", ("size",)),
    "dtype": OpFact("python", ("dtype",)),
    "device": OpFact("python", ("device",)),
    "ndim": OpFact("python", ("int",)),
    "requires_grad": OpFact("python", ("bool",)),
    "is_cuda": OpFact("python", ("bool",)),
    "T": VIEW,
    "mT": VIEW,
    "data": VIEW,
    "grad": OpFact("mixed", ("none",)),
}


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    assert torch_facts.method(name) == METHODS[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    assert torch_facts.function(name) == FUNCTIONS[name]


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attribute(name: str) -> None:
    assert torch_facts.attribute(name) == ATTRIBUTES[name]


def test_what_torch_has_not_is_unknown() -> None:
    assert torch_facts.method("frobnicate") is None
    assert torch_facts.function("torch.frobnicate") is None
    assert torch_facts.function("numpy.where") is None
    assert torch_facts.attribute("add") is None
    assert torch_facts.method("shape") is None


def test_every_word_of_the_file_is_known() -> None:
    data = torch_facts._data()
    for lookup, section in (
        (torch_facts.method, "methods"),
        (torch_facts.function, "functions"),
        (torch_facts.attribute, "attributes"),
    ):
        for name in data[section]:
            fact = lookup(name)
            assert fact is not None
            assert fact.returns in ("tensor", "tensors", "python", "mixed"), name
            assert fact.returns != "python" or fact.python, name


def test_loads_without_torch() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('torch', 'libcst', 'fixit')))  # None: importing them raises\n"
        "from graphmend_lint.analysis import torch_facts\n"
        "assert torch_facts.method('item').reads_data\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_file_is_what_the_installed_torch_says() -> None:
    torch = pytest.importorskip("torch")
    if torch.__version__.partition("+")[0] != torch_facts.torch_version():
        pytest.skip(f"the facts are those of torch {torch_facts.torch_version()}")
    script = ROOT / "scripts" / "generate_torch_facts.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, cwd=ROOT)
