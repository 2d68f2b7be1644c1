"""What operations of torch do to dtype, shape and gradient, and for which tensors they raise.

The facts that torch's stubs do not tell, for the operations that may stand in a selection. Every row is measured:
`tests/analysis/test_tensor_ops.py` runs each operation on all dtypes and on infinities, nans and zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DtypeClass = Literal["bool", "int", "float", "complex"]

BOOL: frozenset[DtypeClass] = frozenset({"bool"})
INT: frozenset[DtypeClass] = frozenset({"int"})
FLOAT: frozenset[DtypeClass] = frozenset({"float"})
INEXACT: frozenset[DtypeClass] = frozenset({"float", "complex"})
ANY: frozenset[DtypeClass] = frozenset({"bool", "int", "float", "complex"})
REAL: frozenset[DtypeClass] = frozenset({"bool", "int", "float"})
NUMBERS: frozenset[DtypeClass] = frozenset({"int", "float"})

#: The dtypes of torch by class; names as they are attributes of `torch`.
DTYPES: dict[str, DtypeClass] = {
    "bool": "bool",
    **dict.fromkeys(("uint8", "int8", "int16", "short", "int32", "int", "int64", "long"), "int"),
    **dict.fromkeys(("float16", "half", "bfloat16", "float32", "float", "float64", "double"), "float"),
    **dict.fromkeys(("complex64", "cfloat", "complex128", "cdouble"), "complex"),
}
#: Two names of one dtype.
SYNONYMS = {
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


@dataclass(frozen=True, slots=True)
class Op:
    """An operation on one tensor that gives a tensor of the same shape.

    result: the dtype of the result: "same" as the argument's, "inexact" (integers and bools become the default dtype),
        "bool", or a dtype's name.
    accepts: the classes of dtype for which it never raises and `result` holds.
    gradient: "finite" where a zero gradient of the result is a zero gradient of the argument for every element, nan and
        infinities included; "none" where none flows; "unbounded" otherwise.
    numbers: the parameters besides the tensor, in order; each is a Python number that the dtype must be able to hold.
    view: the result may be the argument itself, or share its memory.
    contiguous: the result is laid out anew.
    """

    result: str = "same"
    accepts: frozenset[DtypeClass] = ANY
    gradient: Literal["finite", "none", "unbounded"] = "finite"
    numbers: tuple[str, ...] = ()
    view: bool = False
    contiguous: bool = False


#: By the last part of the name, for functions of torch and torch.nn.functional and for methods of tensors alike.
OPS: dict[str, Op] = {
    "abs": Op(accepts=NUMBERS),
    "neg": Op(accepts=frozenset({"int", "float", "complex"})),
    "negative": Op(accepts=frozenset({"int", "float", "complex"})),
    "positive": Op(accepts=frozenset({"int", "float", "complex"}), view=True),
    "relu": Op(accepts=NUMBERS),
    "relu6": Op(accepts=NUMBERS),
    "leaky_relu": Op(accepts=FLOAT),
    "elu": Op(accepts=FLOAT, gradient="unbounded"),
    "hardtanh": Op(accepts=FLOAT),
    "hardswish": Op(accepts=FLOAT, gradient="unbounded"),
    "hardsigmoid": Op(accepts=FLOAT),
    "gelu": Op(accepts=FLOAT, gradient="unbounded"),
    "silu": Op(accepts=FLOAT, gradient="unbounded"),
    "softplus": Op(accepts=FLOAT, gradient="unbounded"),
    "sigmoid": Op("inexact", gradient="unbounded"),
    "tanh": Op("inexact", gradient="unbounded"),
    "exp": Op("inexact", gradient="unbounded"),
    "log": Op("inexact", gradient="unbounded"),
    "log1p": Op("inexact", gradient="unbounded"),
    "log2": Op("inexact", gradient="unbounded"),
    "sqrt": Op("inexact", gradient="unbounded"),
    "rsqrt": Op("inexact", gradient="unbounded"),
    "reciprocal": Op("inexact", gradient="unbounded"),
    "square": Op(accepts=frozenset({"int", "float", "complex"}), gradient="unbounded"),
    "sin": Op("inexact", gradient="unbounded"),
    "cos": Op("inexact", gradient="unbounded"),
    "floor": Op(accepts=NUMBERS),
    "ceil": Op(accepts=NUMBERS),
    "round": Op(accepts=FLOAT),
    "trunc": Op(accepts=NUMBERS),
    "sign": Op(accepts=REAL),
    "nan_to_num": Op(),
    "isnan": Op("bool", gradient="none"),
    "isinf": Op("bool", gradient="none"),
    "isfinite": Op("bool", gradient="none"),
    "logical_not": Op("bool", gradient="none"),
    "clone": Op(),
    "zeros_like": Op(gradient="none"),
    "ones_like": Op(gradient="none"),
    "detach": Op(gradient="none", view=True),
    "contiguous": Op(view=True, contiguous=True),
    "float": Op("float32", accepts=REAL, view=True),
    "half": Op("float16", accepts=REAL, view=True),
    "bfloat16": Op("bfloat16", accepts=REAL, view=True),
    "double": Op("float64", accepts=REAL, view=True),
    "clamp": Op(accepts=FLOAT, numbers=("min", "max")),
    "clip": Op(accepts=FLOAT, numbers=("min", "max")),
    "clamp_min": Op(accepts=FLOAT, numbers=("min",)),
    "clamp_max": Op(accepts=FLOAT, numbers=("max",)),
    "full_like": Op(accepts=FLOAT, gradient="none", numbers=("fill_value",)),
}

#: Reductions of a whole tensor that give a value for every tensor, the empty one included: the class of the result's
#: dtype, None where it is that of the argument. `any` and `all` of a uint8 tensor give uint8.
TOTAL_REDUCTIONS: dict[str, frozenset[DtypeClass] | None] = {
    "any": BOOL,
    "all": BOOL,
    "sum": None,
    "count_nonzero": INT,
}
#: Those that raise for some tensor (an empty one, one of integers).
PARTIAL_REDUCTIONS: dict[str, frozenset[DtypeClass] | None] = {
    "mean": INEXACT,
    "max": None,
    "min": None,
    "amax": None,
    "amin": None,
    "norm": FLOAT,
    "std": FLOAT,
    "var": FLOAT,
    "nansum": None,
    "prod": None,
}
#: Results of these modules are new tensors, of the classes given.
ALLOCATING_MODULES: dict[str, frozenset[DtypeClass]] = {
    **dict.fromkeys(("Linear", "Bilinear", "Embedding", "Tanh", "Sigmoid"), INEXACT),
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), INEXACT),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"), INEXACT),
    **dict.fromkeys(("LayerNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), FLOAT),
    **dict.fromkeys(("Softmax", "GELU"), FLOAT),
}
#: Every floating-point dtype of torch holds the whole numbers up to this exactly, and the halves up to half of it.
EXACT_LIMIT = 128
#: The largest number that every dtype of torch but bool can hold.
INT8_MAX = 127
#: The largest number that every floating-point dtype of torch can hold.
HALF_MAX = 65504.0
