"""Writes graphmend_lint/analysis/torch_facts.json: what torch's functions and tensor methods do.

    python scripts/generate_torch_facts.py [--check]

Four sources. All add to what a call does; what it returns comes from the first that knows.

1. torch's own stubs and annotations: class TensorBase of `torch/_C/__init__.pyi`, `_VariableFunctions.pyi`
   beside it, `torch/nn/functional.pyi`, and the annotations of functions written in Python;
2. the operator schemas of the dispatcher: aliases, mutation, and tags (`pointwise`, `dynamic_output_shape`,
   `data_dependent_output`, `nondeterministic_seeded`);
3. a probe: the call is made on small CPU tensors while a dispatch mode notes the operators that run. It
   tells what tags leave out, as operators made of others carry none: `square` is elementwise, `sum()` 0-d;
4. the tables below, for the little that none of these can say.

`graphmend_lint/analysis/torch_facts.py` reads the file and says what each word in it means.
"""

from __future__ import annotations

import argparse
import ast
import functools
import inspect
import json
import sys
import textwrap
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TARGET = Path(__file__).resolve().parents[1] / "graphmend_lint" / "analysis" / "torch_facts.json"
TORCH = Path(torch.__file__).parent

# Order of the words in the file.
FLAGS = (
    "elementwise",
    "whole_reduction",
    "view",
    "in_place",
    "rng",
    "reads_data",
    "dynamic_shape",
)

# Namespaces whose functions work on tensors, with the prefix that their operators have in the dispatcher.
TENSOR_NAMESPACES = {
    "torch": "",
    "torch.nn.functional": "",
    "torch.linalg": "linalg_",
    "torch.fft": "fft_",
    "torch.special": "special_",
    "torch.nn.init": "",
}

# Namespaces of questions about the process: only functions that are annotated with a plain Python type count.
STATE_NAMESPACES = ("torch.amp", "torch.compiler", "torch.cuda", "torch.distributed", "torch.jit")

# Operators of one backend, of quantised tensors or of the tracer, exported by the way: no model calls them.
BACKENDS = ("cudnn_", "fbgemm_", "miopen_", "mkldnn_", "quantized_", "q_", "sym_constrain_")

# Calls that change the process (shared memory, hooks, devices) rather than a tensor.
UNPROBED = {"share_memory_", "pin_memory", "from_file", "get_rng_state", "cartesian_prod", "lobpcg"}

IN_PLACE_OPERATORS = {
    "__setitem__",
    "__iadd__",
    "__iand__",
    "__ifloordiv__",
    "__ilshift__",
    "__imod__",
    "__imul__",
    "__ior__",
    "__ipow__",
    "__irshift__",
    "__isub__",
    "__itruediv__",
    "__ixor__",
}

# Methods that the language or a library calls, but no expression of a model.
NOT_OPERATORS = {
    "__array_wrap__",
    "__class__",
    "__deepcopy__",
    "__dir__",
    "__div__",
    "__dlpack__",
    "__dlpack_device__",
    "__idiv__",
    "__init__",
    "__long__",
    "__module__",
    "__new__",
    "__nonzero__",
    "__rdiv__",
    "__reduce_ex__",
    "__setstate__",
    "__torch_dispatch__",
    "__torch_function__",
}

# Casts: the result is the tensor itself where it has the dtype already.
CASTS = (
    "bfloat16",
    "bool",
    "byte",
    "cdouble",
    "cfloat",
    "chalf",
    "char",
    "double",
    "float",
    "half",
    "int",
    "long",
    "short",
    "type",
)

# Overloads of the operators of the dispatcher, by name.
Operators = dict[str, list[Any]]

# Annotation, as the stubs spell it, to (kind, Python type).
KINDS: dict[str, tuple[str, str]] = {
    "Tensor": ("tensor", ""),
    "torch.Tensor": ("tensor", ""),
    "Self": ("tensor", ""),
    "S": ("tensor", ""),
    "bool": ("python", "bool"),
    "int": ("python", "int"),
    "SymInt": ("python", "int"),
    "float": ("python", "float"),
    "complex": ("python", "complex"),
    "str": ("python", "str"),
    "Number": ("python", "number"),
    "Size": ("python", "size"),
    "torch.Size": ("python", "size"),
    "tuple[int, ...]": ("python", "size"),
    "tuple[int, int]": ("python", "size"),
    "dtype": ("python", "dtype"),
    "torch.dtype": ("python", "dtype"),
    "device": ("python", "device"),
    "torch.device": ("python", "device"),
    "layout": ("python", "layout"),
    "list": ("python", "list"),
    "list[str]": ("python", "list"),
    "None": ("python", "none"),
}

# What neither stubs nor schemas say a call returns, or say wrongly. Kind, or "python:type".
RETURNS: dict[str, str] = {
    # `torch/_tensor.py` does not annotate these.
    "Tensor.__array__": "python:object",
    "Tensor.__format__": "python:str",
    "Tensor.__hash__": "python:int",
    "Tensor.__iter__": "tensors",
    "Tensor.__len__": "python:int",
    "Tensor.__repr__": "python:str",
    "Tensor.__reversed__": "tensor",
    "Tensor.__str__": "python:str",
    # Aliases of methods, without stubs of their own.
    "Tensor.__ipow__": "tensor",
    "Tensor.__itruediv__": "tensor",
    "Tensor.__pos__": "tensor",
    "Tensor.cdouble": "tensor",
    "Tensor.cfloat": "tensor",
    "Tensor.is_xla": "python:bool",
    "Tensor.lu": "mixed",
    "Tensor.register_post_accumulate_grad_hook": "python:object",
    "Tensor.stft": "tensor",
    "Tensor.backward": "python:none",
    "Tensor.dim_order": "python:size",
    "Tensor.is_shared": "python:bool",
    "Tensor.norm": "tensor",
    "Tensor.register_hook": "python:object",
    "Tensor.share_memory_": "tensor",
    "Tensor.storage": "python:object",
    "Tensor.to_sparse_coo": "tensor",
    # The stub follows `object`, which promises bool; the method compares element by element.
    "Tensor.__eq__": "tensor",
    "Tensor.__ne__": "tensor",
    # The stub has the variant that writes to `out` only.
    "torch.split_copy": "tensors",
    "torch.split_with_sizes_copy": "tensors",
    "torch.unbind_copy": "tensors",
    # Its operator goes by another name.
    "torch.nn.functional.logsigmoid": "tensor",
    # Functions written in Python without annotations.
    "torch.broadcast_shapes": "python:size",
    "torch.is_storage": "python:bool",
    "torch.is_tensor": "python:bool",
    "torch.sym_float": "python:float",
    "torch.sym_int": "python:int",
    "torch.sym_max": "python:number",
    "torch.sym_min": "python:number",
    "torch.sym_not": "python:bool",
    "torch.sym_sqrt": "python:float",
    "torch.sym_sum": "python:int",
    "torch.cuda.is_bf16_supported": "python:bool",
    "torch.cuda.is_initialized": "python:bool",
    "torch.jit.is_tracing": "python:bool",
    # With and without `return_inverse` or `return_counts`.
    "Tensor.unique": "mixed",
    "Tensor.unique_consecutive": "mixed",
    "torch.unique_consecutive": "mixed",
    # Classes that are called like functions.
    "torch.Size": "python:size",
    "torch.device": "python:device",
    "torch.finfo": "python:object",
    "torch.iinfo": "python:object",
}

# What no source says, or says wrongly, with the reason. "+word" adds, "-word" takes away.
CORRECTIONS: dict[str, str] = {
    # The copy to the host happens below the dispatcher, where the probe sees nothing.
    "Tensor.__array__": "+reads_data",
    "Tensor.__format__": "+reads_data",
    "Tensor.__repr__": "+reads_data",
    "Tensor.__str__": "+reads_data",
    "Tensor.numpy": "+reads_data",
    "Tensor.tolist": "+reads_data",
    # Dispatched functions of two forms, whose source does not show the operator.
    "Tensor.unique": "+dynamic_shape",
    "torch.unique": "+dynamic_shape",
    # Dynamic for some arguments only.
    "torch.nn.functional.one_hot": "+static_with=num_classes",
    "torch.repeat_interleave": "+dynamic_shape +static_with=output_size",
    "Tensor.repeat_interleave": "+dynamic_shape +static_with=output_size",
    # With the condition alone it is `nonzero`; with two more arguments it selects element by element.
    "torch.where": "+elementwise +dynamic_shape +static_with=other",
    # Element by element, but not tagged.
    "Tensor.__floordiv__": "+elementwise",
    "Tensor.__pos__": "+elementwise +view",
    "Tensor.__rfloordiv__": "+elementwise",
    "Tensor.__rsub__": "+elementwise",
    "Tensor.floor_divide": "+elementwise",
    "Tensor.isclose": "+elementwise",
    "Tensor.isreal": "+elementwise",
    "Tensor.masked_fill": "+elementwise",
    "Tensor.where": "+elementwise",
    "torch.floor_divide": "+elementwise",
    "torch.isclose": "+elementwise",
    "torch.isreal": "+elementwise",
    "torch.masked_fill": "+elementwise",
    "torch.nn.functional.hardswish": "+elementwise",
    "torch.nn.functional.logsigmoid": "+elementwise",
    "torch.rsub": "+elementwise",
    # Tagged, but it reduces by default.
    "torch.kl_div": "-elementwise",
    # The result may be the tensor itself, or share its memory, for arguments that the probe does not try.
    "Tensor.__getitem__": "+view",
    "Tensor.as_subclass": "+view",
    "Tensor.cuda": "+view",
    "Tensor.sum_to_size": "+view",
    "Tensor.xpu": "+view",
    "torch.Tensor": "+view",
    "torch.einsum": "+view",
    "torch.nn.Buffer": "+view",
    "torch.nn.Parameter": "+view",
    "torch.nn.functional.dropout1d": "+view",
    "torch.nn.functional.dropout2d": "+view",
    "torch.nn.functional.dropout3d": "+view",
    # An operator of the same name is something else.
    "torch.nn.functional.unfold": "-view",
    # It writes the gradients of the leaves.
    "Tensor.backward": "+in_place",
    # Running statistics are arguments and are written to while training.
    "torch.batch_norm": "+in_place_with=running_mean",
    "torch.instance_norm": "+in_place_with=running_mean",
    "torch.nn.functional.batch_norm": "+in_place_with=running_mean",
    "torch.nn.functional.instance_norm": "+in_place_with=running_mean",
    # Renormalises rows of the weight.
    "torch.nn.functional.embedding": "+in_place_with=max_norm",
    "torch.nn.functional.embedding_bag": "+in_place_with=max_norm",
    # They draw, or set what is drawn next, out of sight: compiled, dispatched, or by the generator's state.
    "torch.get_rng_state": "+rng",
    "torch.lobpcg": "+rng",
    "torch.manual_seed": "+rng",
    "torch.nn.functional.fractional_max_pool2d": "+rng",
    "torch.nn.functional.fractional_max_pool3d": "+rng",
    "torch.seed": "+rng",
    "torch.set_rng_state": "+rng",
}


@dataclass
class Entry:
    """What is known about one name so far."""

    kinds: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    flags: set[str] = field(default_factory=set)

    def annotate(self, annotations: Iterable[str]) -> None:
        """Adds what the annotations of all overloads say; an empty one says nothing."""
        self.add_returns(join(returned(text) for text in annotations if text))

    def add_returns(self, answer: tuple[str, str] | None) -> None:
        if answer is not None:
            self.kinds.add(answer[0])
            self.types |= {answer[1]} - {""}

    def render(self) -> str:
        """The entry as the file has it: what it returns, then its flags in a fixed order."""
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else "mixed"
        words = [f"{kind}:{'|'.join(sorted(self.types))}" if self.types else kind]
        words += [flag for flag in FLAGS if flag in self.flags]
        words += sorted(flag for flag in self.flags if "=" in flag)
        return " ".join(words)


# Annotations


def returned(annotation: str) -> tuple[str, str]:
    """Kind and Python type of an annotation; unions and unknown ones are "mixed" or "object"."""
    text = annotation.replace("_", "") if annotation.startswith("_") else annotation
    text = text.removeprefix("<class '").removesuffix("'>")
    if text in KINDS:
        return KINDS[text]
    if text.startswith("torch.return_types."):
        return ("tensors", "")
    if text.startswith(("tuple[", "list[", "Sequence[")):
        inner = text.split("[", 1)[1].removesuffix("]")
        if all(part.strip() in ("Tensor", "torch.Tensor", "...") for part in inner.split(",")):
            return ("tensors", "")
        return ("mixed", "") if "Tensor" in inner else returned_tuple(inner)
    if "|" in text:
        return join(returned(part.strip()) for part in text.split("|")) or ("mixed", "")
    return ("mixed", "") if "Tensor" in text or text in ("Any", "typing.Any") else ("python", "object")


def returned_tuple(inner: str) -> tuple[str, str]:
    parts = {part.strip().lstrip("_") for part in inner.split(",")} - {"..."}
    return ("python", "size") if parts == {"int"} else ("python", "object")


def join(parts: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """One answer for several overloads, None for none."""
    found = list(parts)
    if not found:
        return None
    kinds = {kind for kind, _ in found}
    types = "|".join(sorted({name for _, names in found for name in names.split("|") if name}))
    return (kinds.pop() if len(kinds) == 1 else "mixed", types)


def annotation(function: Callable[..., Any]) -> str:
    """The return annotation of a function written in Python, "" where there is none."""
    try:
        found = inspect.signature(function).return_annotation
    except (TypeError, ValueError):  # written in C++, or a wrapper of that
        return ""
    return "" if found is inspect.Signature.empty else str(found)


def stub_returns(body: Iterable[ast.stmt]) -> dict[str, list[str]]:
    """The return annotations of every overload of every function defined in `body`."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            found[node.name].append(ast.unparse(node.returns).strip("'"))
    return found


def class_body(module: ast.Module, name: str) -> list[ast.stmt]:
    return next(node.body for node in module.body if isinstance(node, ast.ClassDef) and node.name == name)


def parse(relative: str) -> ast.Module:
    return ast.parse((TORCH / relative).read_text(encoding="utf-8"))


def public(name: str) -> bool:
    return not name.startswith("_")


def special(name: str) -> bool:
    """Whether the name is that of an operator of the language: what `a + b` or `for row in t` calls."""
    return name.startswith("__") and name.endswith("__") and name not in NOT_OPERATORS


# Schemas


def overloads() -> Operators:
    """Overloads of each operator of the dispatcher, without those that write to `out=` arguments."""
    # The schema list also holds TorchScript's operators on lists and numbers under the same names.
    known = set(torch._C._dispatch_get_all_op_names())
    found: dict[str, list[Any]] = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        if not schema.name.startswith("aten::") or full not in known:
            continue
        name = schema.name.removeprefix("aten::")
        packet = getattr(torch.ops.aten, name)
        overload = getattr(packet, schema.overload_name or "default")
        if not any(argument.is_out for argument in schema.arguments):
            found[name].append(overload)
    return found


def describe(entry: Entry, found: list[Any]) -> None:
    """Adds what the schemas of the overloads say."""
    for overload in found:
        if any(result.alias_info is not None and not result.alias_info.is_write for result in overload._schema.returns):
            entry.flags.add("view")
        if any(
            argument.alias_info is not None and argument.alias_info.is_write for argument in overload._schema.arguments
        ):
            entry.flags.add("in_place")
        if torch.Tag.maybe_aliasing_or_mutating in overload.tags:
            entry.flags.add("view")
        if torch.Tag.nondeterministic_seeded in overload.tags:
            entry.flags.add("rng")
        if torch.Tag.data_dependent_output in overload.tags:
            entry.flags.add("reads_data")
        if torch.Tag.dynamic_output_shape in overload.tags:
            entry.flags.add("dynamic_shape")
    if found and all(torch.Tag.pointwise in overload.tags for overload in found):
        entry.flags.add("elementwise")


def schema_returns(found: list[Any]) -> tuple[str, str] | None:
    answers = []
    for overload in found:
        types = [str(result.type) for result in overload._schema.returns]
        if types == ["Tensor"]:
            answers.append(("tensor", ""))
        elif types and all(name in ("Tensor", "List[Tensor]") for name in types):
            answers.append(("tensors", ""))
        else:
            answers.append(returned(types[0]) if types else ("python", "none"))
    return join(answers)


# Probes


class Record(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ran: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ran.append(func)
        return func(*args, **(kwargs or {}))


SHAPES = {
    torch.float32: ((2, 3), (3, 3), (2, 3, 3), (2, 2, 3, 3), (4,), ()),
    torch.int64: ((2, 3), ()),
    torch.bool: ((2, 3), ()),
}


def samples() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Pairs of tensors to call things on, of several ranks and dtypes; floats lie between 0 and 1."""
    for dtype, shapes in SHAPES.items():
        for shape in shapes:
            count = torch.Size(shape).numel()
            first = (torch.arange(count) % 7 + 1).div(9).reshape(shape)
            second = (torch.arange(count) % 5 + 1).div(7).reshape(shape)
            if dtype is torch.float32:
                yield first, second
            else:
                yield (first * 9).to(dtype), (second * 7).to(dtype)


@dataclass
class Trial:
    """One call that worked."""

    arguments: tuple[Any, ...]
    result: Any
    ran: list[Any]

    @property
    def bare(self) -> bool:
        return len(self.arguments) == 1

    @property
    def pointwise(self) -> bool:
        return (
            isinstance(self.result, torch.Tensor)
            and self.result.shape == self.arguments[0].shape
            and bool(self.ran)
            and all(torch.Tag.pointwise in op.tags for op in self.ran)
        )

    @property
    def shares_memory(self) -> bool:
        results = self.result if isinstance(self.result, (tuple, list)) else (self.result,)
        address = self.arguments[0].untyped_storage().data_ptr()
        tensors = (r for r in results if isinstance(r, torch.Tensor) and r.layout is torch.strided)
        return any(r.untyped_storage().data_ptr() == address for r in tensors)

    @property
    def reads_data(self) -> bool:
        made = isinstance(self.result, (torch.Tensor, tuple, list))
        return not made and any(torch.Tag.data_dependent_output in op.tags for op in self.ran)

    @property
    def draws(self) -> bool:
        return any(torch.Tag.nondeterministic_seeded in op.tags for op in self.ran)


def attempt(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Trial | None:
    """The call on copies of the arguments, None where it does not fit them."""
    copies = tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments)
    with Record() as record:
        try:
            result = call(*copies)
        except Exception:  # a sample that does not fit the call is no evidence
            return None
    return None if result is NotImplemented else Trial(copies, result, record.ran)


def trials(call: Callable[..., Any]) -> list[Trial]:
    """Calls with a tensor alone, with a second tensor, and with one and two numbers."""
    if "inplace" in parameters(call):
        call = functools.partial(call, inplace=False)
    tried = (
        attempt(call, arguments)
        for first, second in samples()
        for arguments in ((first,), (first, second), (first, 0.5), (first, 0.25, 0.75))
    )
    return [trial for trial in tried if trial is not None]


def parameters(call: Callable[..., Any]) -> Iterable[str]:
    try:
        return inspect.signature(call).parameters
    except (TypeError, ValueError):  # written in C++
        return ()


def probe(entry: Entry, call: Callable[..., Any]) -> None:
    """Adds what calls on small tensors show.

    elementwise: every call that works runs pointwise operators alone and keeps the shape.
    whole_reduction: every call with the tensor alone that works gives one 0-d tensor, also of many elements.
    view: a result is the tensor, or shares its memory.
    reads_data: a call that gives a Python value read an element.
    """
    made = trials(call)
    bare = [trial for trial in made if trial.bare]
    if made and all(trial.pointwise for trial in made):
        entry.flags.add("elementwise")
    zero_d = all(isinstance(trial.result, torch.Tensor) and trial.result.dim() == 0 for trial in bare)
    if zero_d and any(trial.arguments[0].numel() > 1 for trial in bare):
        entry.flags.add("whole_reduction")
    if any(trial.shares_memory for trial in made):
        entry.flags.add("view")
    if any(trial.reads_data for trial in made):
        entry.flags.add("reads_data")
    if any(trial.draws for trial in made):
        entry.flags.add("rng")


# Python sources


def called_names(function: Callable[..., Any]) -> set[str]:
    """Last parts of the names that a function written in Python calls."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return set()
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    attributes = {node.attr for node in called if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in called if isinstance(node, ast.Name)}


def callers(owner: Any, sources: set[str]) -> set[str]:
    """Names of the Python functions of a module or class that call one of `sources`, at any depth in it."""
    calls = {name: called_names(value) for name, value in vars(owner).items() if inspect.isfunction(value)}
    found: set[str] = set()
    while new := {name for name, names in calls.items() if name not in found and names & (sources | found)}:
        found |= new
    return found


@dataclass(frozen=True)
class Hazards:
    """Names of operators that draw random numbers, and of those whose output shape depends on data."""

    rng: set[str]
    dynamic_shape: set[str]

    @classmethod
    def of(cls, operators: Operators) -> Hazards:
        def tagged(tag: torch.Tag) -> set[str]:
            return {name for name, found in operators.items() if any(tag in overload.tags for overload in found)}

        # Indexing is dynamic only with a mask, and that is not seen from the name.
        return cls(tagged(torch.Tag.nondeterministic_seeded), tagged(torch.Tag.dynamic_output_shape) - {"index"})

    def spread(self, owner: Any) -> dict[str, set[str]]:
        """Which Python functions of `owner` have which flag since something that they call has it."""
        return {"rng": callers(owner, self.rng), "dynamic_shape": callers(owner, self.dynamic_shape)}


# Putting it together


def in_place_name(name: str) -> bool:
    """Whether torch's naming convention says that the call changes its first argument."""
    return name in IN_PLACE_OPERATORS if special(name) else name.endswith("_")


def render(name: str, entry: Entry) -> str:
    """The entry as the file has it, with the convention and the tables applied."""
    if name in RETURNS:
        kind, _, types = RETURNS[name].partition(":")
        entry.kinds, entry.types = {kind}, {types} - {""}
    short = name.rpartition(".")[2]
    if in_place_name(short):
        entry.flags |= {"in_place"} | ({"view"} if entry.kinds == {"tensor"} else set())
    if name.startswith("Tensor.") and short in CASTS:
        entry.flags.add("view")
    if entry.kinds == {"python"}:
        entry.flags.discard("elementwise")
    for change in CORRECTIONS.get(name, "").split():
        (entry.flags.add if change[0] == "+" else entry.flags.discard)(change[1:])
    return entry.render()


def methods(operators: Operators, hazards: Hazards) -> dict[str, str]:
    """Public methods and operators of torch.Tensor."""
    stubs = stub_returns(class_body(parse("_C/__init__.pyi"), "TensorBase"))
    spread = hazards.spread(torch.Tensor)
    facts = {}
    for short in sorted(dir(torch.Tensor)):
        call = getattr(torch.Tensor, short, None)
        if not callable(call) or isinstance(call, type) or not (public(short) or special(short)):
            continue
        name, entry = f"Tensor.{short}", Entry()
        entry.annotate(stubs.get(short) or [annotation(call)])
        describe(entry, [o for o in operators.get(short, []) if o._schema.arguments[0].name == "self"])
        entry.flags |= {flag for flag, names in spread.items() if short in names}
        if short not in UNPROBED:
            probe(entry, call)
        if entry.kinds or name in RETURNS:
            facts[short] = render(name, entry)
    return facts


def attributes() -> dict[str, str]:
    """Public attributes of torch.Tensor that are not called."""
    annotated = {
        node.target.id: ast.unparse(node.annotation)
        for node in class_body(parse("_C/__init__.pyi"), "TensorBase")
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    tensor = torch.ones(2, 3, dtype=torch.complex64)
    facts = {}
    for short in sorted(dir(torch.Tensor)):
        name, entry = f"Tensor.{short}", Entry()
        if not public(short) or callable(getattr(tensor, short, None)):
            continue
        if short in annotated or name in RETURNS:
            entry.annotate([annotated.get(short, "")])
            if Trial((tensor,), getattr(tensor, short), []).shares_memory:
                entry.flags.add("view")
            facts[short] = render(name, entry)
    return facts


def functions(operators: Operators, hazards: Hazards) -> dict[str, str]:
    """Public functions that work on tensors, by qualified name."""
    core = parse("_C/__init__.pyi").body + parse("_C/_VariableFunctions.pyi").body
    stubs = {
        "torch": stub_returns(core),
        "torch.nn.functional": stub_returns(parse("nn/functional.pyi").body),
    }
    facts = {}
    for namespace, prefix in TENSOR_NAMESPACES.items():
        module = import_module(namespace)
        spread = hazards.spread(module)
        for short, call in sorted(vars(module).items()):
            if not public(short) or short.startswith(BACKENDS) or not inspect.isroutine(call):
                continue
            name, entry = f"{namespace}.{short}", Entry()
            found = operators.get(prefix + short, [])
            entry.annotate(stubs.get(namespace, {}).get(short) or [annotation(call)])
            if not entry.kinds:
                entry.add_returns(schema_returns(found))
            describe(entry, found)
            entry.flags |= {flag for flag, names in spread.items() if short in names}
            if namespace != "torch.nn.init" and short not in UNPROBED and (found or entry.kinds - {"python"}):
                probe(entry, call)
            if "inplace" in parameters(call):
                entry.flags.add("in_place_with=inplace")
            if name in RETURNS or name in CORRECTIONS or (entry.kinds and entry.types != {"object"}):
                facts[name] = render(name, entry)
    return facts


def state_functions() -> dict[str, str]:
    """Public functions that ask for the state of the process, by qualified name."""
    facts = {}
    for namespace in STATE_NAMESPACES:
        for short, call in sorted(vars(import_module(namespace)).items()):
            name, entry = f"{namespace}.{short}", Entry()
            if public(short) and inspect.isfunction(call):
                entry.annotate([annotation(call)])
                if name in RETURNS or (entry.kinds == {"python"} and not entry.types & {"none", "object"}):
                    facts[name] = render(name, entry)
    return facts


def constructors() -> dict[str, str]:
    """Classes that are called like functions, by qualified name."""
    facts = {}
    for namespace in ("torch", "torch.nn"):
        for short, value in sorted(vars(import_module(namespace)).items()):
            name = f"{namespace}.{short}"
            is_tensor = isinstance(value, type(torch.FloatTensor)) or (
                isinstance(value, type) and issubclass(value, torch.Tensor)
            )
            if public(short) and (is_tensor or (isinstance(value, type) and name in RETURNS)):
                facts[name] = render(name, Entry(kinds={"tensor"}))
    return facts


def collect() -> dict[str, Any]:
    """The content of the file."""
    operators = overloads()
    hazards = Hazards.of(operators)
    named = functions(operators, hazards) | state_functions() | constructors()
    return {
        "torch": torch.__version__.partition("+")[0],
        "attributes": attributes(),
        "functions": dict(sorted(named.items())),
        "methods": methods(operators, hazards),
    }


def serialise(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=0) + "\n"


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--check", action="store_true", help="exit with 1 where the file is not what torch says")
    check = options.parse_args().check
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the probe calls deprecated functions too
        text = serialise(collect())
    if check:
        return int(TARGET.read_text(encoding="utf-8") != text)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
