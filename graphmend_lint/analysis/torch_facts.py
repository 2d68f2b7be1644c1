"""What torch's functions, tensor methods and tensor attributes do, read from `torch_facts.json`.

The data is written by `scripts/generate_torch_facts.py` from torch's own stubs and operator schemas. Nothing
here imports torch: linting works where it is not installed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Returns = Literal["tensor", "tensors", "python", "mixed"]

_DATA = Path(__file__).with_name("torch_facts.json")
_METHODS_OF = ("torch.Tensor.", "torch._C.TensorBase.")


@dataclass(frozen=True, slots=True)
class OpFact:
    """What one call does, whatever its arguments, or what one attribute holds.

    returns: "tensor"; "tensors" (a tuple, list or named tuple of them); "python"; "mixed", where arguments
        decide between these (`t.max()` gives a tensor, `t.max(dim)` a pair).
    python: types of the Python value, where it can be one and they are known: "bool", "int", "float", "str",
        "size" (a torch.Size or a tuple of ints), "dtype", "device", "list", "none", "number", "object".
    reads_data: the Python value depends on the elements of a tensor.
    dynamic_shape: the shape of the result depends on the elements of a tensor...
    static_with: ...unless the argument of this name is given ("" where there is none such). That of
        `repeat_interleave` is also static where `repeats` is an int.
    in_place: it changes its first argument. A call with `out=` does so too and is not marked here.
    in_place_with: it changes an argument where the argument of this name is given and not None or False.
    view: the result may share memory with an argument, or be that argument. In-place calls return theirs.
    rng: it draws random numbers, or reads or sets the state that they are drawn from.
    whole_reduction: called with the tensor alone, or besides with no more than the keywords `dtype`, `p`,
        `unbiased` and `correction`, it gives a tensor of no dimensions.
    elementwise: an element of the result comes from the elements at its place in the broadcast arguments.

    Subscripts are not calls: `t[mask]` is dynamic, `t[0]` is not, and `__getitem__` says neither.
    """

    returns: Returns
    python: tuple[str, ...] = ()
    reads_data: bool = False
    dynamic_shape: bool = False
    static_with: str = ""
    in_place: bool = False
    in_place_with: str = ""
    view: bool = False
    rng: bool = False
    whole_reduction: bool = False
    elementwise: bool = False


def method(name: str) -> OpFact | None:
    """The fact about `tensor.name(...)`; operators go by their special name (`__add__`)."""
    return _fact("methods", name)


def function(qualified_name: str) -> OpFact | None:
    """The fact about a function by its qualified name, `torch.nn.functional.relu` or `torch.Tensor.add`."""
    for prefix in _METHODS_OF:
        if qualified_name.startswith(prefix):
            return method(qualified_name.removeprefix(prefix))
    return _fact("functions", qualified_name)


def attribute(name: str) -> OpFact | None:
    """The fact about `tensor.name` where that is not a method."""
    return _fact("attributes", name)


def torch_version() -> str:
    """The version of torch that the facts were generated from."""
    version: str = _data()["torch"]
    return version


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_DATA.read_text(encoding="utf-8"))
    return data


@cache
def _fact(section: str, name: str) -> OpFact | None:
    words: str | None = _data()[section].get(name)
    return None if words is None else _parse(words)


def _parse(words: str) -> OpFact:
    """The fact that a line such as "python:int|size reads_data static_with=other" stands for."""
    head, *flags = words.split()
    returns, _, types = head.partition(":")
    values: dict[str, Any] = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        values[name] = value if equals else True
    return OpFact(returns, tuple(types.split("|")) if types else (), **values)  # type: ignore[arg-type]
