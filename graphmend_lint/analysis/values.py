"""Values: what Dynamo knows of an expression, statement by statement.

An abstract interpretation of one function. Each expression is `static` (known to Python while tracing), `tensor`,
`data` (a Python value read from tensor data) or `unknown`; joins of different kinds are unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from graphmend_lint.analysis import torch_facts
from graphmend_lint.analysis.bindings import Bindings, Scope
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.project import Symbol
from graphmend_lint.analysis.regions import is_module_class
from graphmend_lint.analysis.summary import truth_while_tracing

Kind = Literal["static", "tensor", "data", "unknown"]

#: `except*` has a node of its own from Python 3.11 on, with the same fields.
TRY_STATEMENTS: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value. `type` is a Python type's name where known, "" where not.

    `symbolic`: an int (or something made of ints) that may come from a shape, so that its text must not be fixed while
    tracing. `optional`: it may be None instead. `unbound`: on some path the name holds nothing. `fact`: what
    `analysis.tensors` knows besides.
    """

    kind: Kind
    type: str = ""
    symbolic: bool = False
    optional: bool = False
    unbound: bool = False
    fact: object = None


UNKNOWN = Value("unknown")
TENSOR = Value("tensor")
DATA = Value("data")
STATIC = Value("static")
SIZE = Value("static", "size", symbolic=True)
INT = Value("static", "int", symbolic=True)
BOOL = Value("static", "bool")
STR = Value("static", "str")
MODULE = Value("static", "submodule")
SELF = Value("static", "self")

Env = dict[str, Value]

#: Attributes and methods that only tensors have: whoever reads one off a parameter holds a tensor.
_ONLY_TENSORS = frozenset(
    {
        "unsqueeze",
        "masked_fill",
        "masked_fill_",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_tensor",
        "detach",
        "contiguous",
        "requires_grad",
        "is_cuda",
        "isnan",
        "isfinite",
        "isinf",
        "softmax",
        "log_softmax",
        "sigmoid",
        "relu",
        "unbind",
        "expand_as",
        "view_as",
        "is_floating_point",
        "type_as",
        "index_select",
    }
)
_STATIC_BUILTINS = {
    "len": INT,
    "isinstance": BOOL,
    "issubclass": BOOL,
    "hasattr": BOOL,
    "callable": BOOL,
    "type": Value("static", "class"),
    "id": Value("static", "int"),
    "repr": STR,
    "range": Value("static", "range", symbolic=True),
}
_FOLDED_BUILTINS = frozenset(
    {
        "abs",
        "all",
        "any",
        "divmod",
        "max",
        "min",
        "pow",
        "round",
        "sum",
        "sorted",
        "tuple",
        "list",
        "set",
        "frozenset",
        "dict",
        "zip",
        "enumerate",
        "reversed",
        "map",
        "filter",
        "str",
        "format",
        "next",
        "iter",
        "getattr",
        "slice",
    }
)
_CONVERSIONS = frozenset({"int", "float", "bool", "complex"})
#: torch.nn modules whose call gives one tensor for one tensor.
_NOT_ONE_TENSOR = frozenset(
    {
        "LSTM",
        "GRU",
        "RNN",
        "MultiheadAttention",
        "LSTMCell",
        "Module",
        "ModuleList",
        "ModuleDict",
        "Sequential",
        "Identity",
        "AdaptiveLogSoftmaxWithLoss",
    }
)
#: What modules of torch.nn keep under these names are tensors, or None.
_TENSORS_OF_MODULES = frozenset(
    {
        "weight",
        "bias",
        "in_proj_weight",
        "in_proj_bias",
        "running_mean",
        "running_var",
        "num_batches_tracked",
    }
)
_TENSOR_TYPES = frozenset(
    {"Tensor", "FloatTensor", "LongTensor", "BoolTensor", "IntTensor", "HalfTensor", "ByteTensor"}
)


class Values:
    """The values of one function's expressions, given the environment before a statement."""

    def __init__(self, bindings: Bindings, scope: Scope) -> None:
        self.bindings = bindings
        self.project = bindings.project
        self.scope = scope

    # -- the environment ---------------------------------------------------------------------------------------

    def parameters(self) -> Env:
        """What the annotations, defaults and uses of the parameters tell."""
        arguments = self.scope.node.args
        env: Env = {}
        positional = (*arguments.posonlyargs, *arguments.args)
        defaults = dict(zip([a.arg for a in reversed(positional)], reversed(arguments.defaults), strict=False))
        defaults.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d})
        implied = self._implied_tensors()
        for index, argument in enumerate((*positional, *arguments.kwonlyargs)):
            name = argument.arg
            if index == 0 and self.scope.class_name and name in ("self", "cls"):
                env[name] = SELF
            elif argument.annotation is not None:
                promised = self.annotated(argument.annotation)
                default = defaults.get(name)
                absent = isinstance(default, ast.Constant) and default.value is None
                env[name] = replace(promised, optional=True) if absent else promised
                if isinstance(default, ast.Constant) and isinstance(default.value, bool) and promised.kind == "tensor":
                    env[name] = UNKNOWN  # a flag with the annotation of its neighbour
            elif name in implied:
                env[name] = TENSOR
            elif (default := defaults.get(name)) is not None:
                value = self.of(default, {})
                known = value.kind == "static" and value.type not in ("none", "")
                env[name] = replace(value, symbolic=value.type == "int") if known else UNKNOWN
            else:
                env[name] = STATIC if name == "config" else UNKNOWN
        return env

    def _implied_tensors(self) -> set[str]:
        """Names that are used as only tensors can be (and numpy arrays, which Dynamo traces as tensors)."""
        found = set()
        for node in ast.walk(self.scope.node):
            used = isinstance(node, ast.Attribute) and node.attr in _ONLY_TENSORS
            sliced = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and _slices(node.slice)
            if (used or sliced) and isinstance(node.value, ast.Name):  # type: ignore[attr-defined]
                found.add(node.value.id)  # type: ignore[attr-defined]
        return found

    def _used_as_tensor(self, name: str) -> bool:
        """Whether an attribute is read of a name that only tensors have."""
        attributes = (n for n in ast.walk(self.scope.node) if isinstance(n, ast.Attribute) and n.attr in _ONLY_TENSORS)
        return any(isinstance(n.value, ast.Name) and n.value.id == name for n in attributes)

    def annotated(self, annotation: ast.expr) -> Value:
        """The value that an annotation promises."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return UNKNOWN
        if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
            return self._union([annotation.left, annotation.right])
        if isinstance(annotation, ast.Subscript):
            outer = (dotted(annotation.value) or "").rpartition(".")[2]
            if outer in ("Optional", "Union"):
                inner = annotation.slice
                union = self._union(inner.elts if isinstance(inner, ast.Tuple) else [inner])
                return replace(union, optional=True) if outer == "Optional" else union
            return Value("static", outer.lower()) if outer in ("Literal", "Callable") else UNKNOWN
        return self._class_value(annotation)

    def _union(self, parts: list[ast.expr]) -> Value:
        values = [self.annotated(p) for p in parts if not (isinstance(p, ast.Constant) and p.value is None)]
        joined = values[0] if values else UNKNOWN
        for value in values[1:]:
            joined = join(joined, value)
        return replace(joined, optional=True) if len(values) < len(parts) else joined

    def _class_value(self, node: ast.expr) -> Value:
        name = self.bindings.qualified(node, None) or ""
        last = name.rpartition(".")[2]
        if name.startswith("torch.") and last in _TENSOR_TYPES:
            return TENSOR
        simple = {
            "builtins.int": INT,
            "builtins.str": STR,
            "builtins.bool": BOOL,
            "builtins.float": Value("static", "float"),
            "torch.Size": SIZE,
            "torch.dtype": Value("static", "dtype"),
            "torch.device": Value("static", "device"),
        }
        if name in simple:
            return simple[name]
        symbol = self.bindings.symbol(node, None)
        if symbol is not None and symbol.kind == "class" and last.endswith(("Config", "Configuration")):
            return Value("static", "config")
        return UNKNOWN

    def bind(self, env: Env, target: ast.expr, value: Value) -> None:
        """Record an assignment."""
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, ast.Starred):
            self.bind(env, target.value, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self.bind(env, element, element_of(value))

    def narrow(self, env: Env, test: ast.expr, truth: bool) -> None:
        """Note what a test that came out as `truth` tells of the names in it."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.narrow(env, test.operand, not truth)
        elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is truth:
            for part in test.values:
                self.narrow(env, part, truth)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
            against_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
            present = isinstance(test.ops[0], ast.IsNot) if truth else isinstance(test.ops[0], ast.Is)
            if against_none and present and test.left.id in env:
                env[test.left.id] = replace(env[test.left.id], optional=False)
        elif isinstance(test, ast.Call) and truth:
            self._narrow_to_class(env, test)

    def _narrow_to_class(self, env: Env, test: ast.Call) -> None:
        is_check = self.bindings.qualified(test.func, self.scope) == "builtins.isinstance" and len(test.args) == 2
        if is_check and isinstance(test.args[0], ast.Name) and isinstance(test.args[1], (ast.Name, ast.Attribute)):
            promised = self.annotated(test.args[1])
            if promised.kind == "tensor" and test.args[0].id in env:
                env[test.args[0].id] = promised

    def assigned(self, node: ast.expr, env: Env) -> Value:
        """The value that a name gets by an assignment of `node`."""
        return self.of(node, env)

    def augmented(self, statement: ast.AugAssign, name: str, env: Env) -> Value:
        """The value that `name` gets by `name += ...`."""
        operation = ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value)
        return self.assigned(ast.copy_location(operation, statement), env)

    def merged(self, value: Value, parts: list[Value]) -> Value:
        """`value`, the join of `parts`, as a name holds it where several paths meet."""
        return value

    def forget(self, env: Env, nodes: Iterable[ast.AST]) -> None:
        """Note that the names that `nodes` bind may have changed any number of times."""

    # -- expressions -------------------------------------------------------------------------------------------

    def of(self, node: ast.expr, env: Env) -> Value:
        """The value of an expression."""
        method = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        return method(node, env) if method is not None else UNKNOWN

    def _of_constant(self, node: ast.Constant, env: Env) -> Value:
        return Value("static", "none" if node.value is None else type(node.value).__name__)

    def _of_joinedstr(self, node: ast.JoinedStr, env: Env) -> Value:
        return replace(self._all([v.value for v in node.values if isinstance(v, ast.FormattedValue)], env), type="str")

    def _of_name(self, node: ast.Name, env: Env) -> Value:
        if node.id in env:
            return env[node.id]
        owner = self.scope.owner(node.id)
        if owner is not None:
            return STATIC if node.id in owner.imports else UNKNOWN
        symbol = self.bindings.symbol(node, self.scope)
        if symbol is None or symbol.kind == "external":
            return STATIC if self.bindings.qualified(node, self.scope) else UNKNOWN
        if symbol.kind == "value" and symbol.path is not None:
            return self._global(symbol)
        return Value("static", "class" if symbol.kind == "class" else symbol.kind)

    def _global(self, symbol: Symbol) -> Value:
        """A module-level variable: static, unless a call made it that may give anything."""
        summary = self.project.summary(symbol.path) if symbol.path else None
        callee = summary.assigned_calls.get(symbol.name, "") if summary else ""
        if not callee or symbol.path is None:
            return STATIC
        made = self.project.resolve(symbol.path, callee)
        if _result(torch_facts.function(made.name), 1).kind == "tensor":
            return TENSOR
        builtin = made.kind == "external" and callee in _STATIC_BUILTINS.keys() | _FOLDED_BUILTINS | _CONVERSIONS
        return STATIC if builtin else UNKNOWN

    def _of_attribute(self, node: ast.Attribute, env: Env) -> Value:
        base = self.of(node.value, env)
        if base.kind == "tensor":
            return self._tensor_attribute(node.attr)
        if base.type == "self":
            return self._self_attribute(node.attr)
        if base.type == "submodule":
            return UNKNOWN if node.attr != "training" else BOOL
        if base.type.startswith("submodule") and node.attr in _TENSORS_OF_MODULES:
            return replace(TENSOR, optional=True)
        if base.kind == "unknown" and node.attr == "config":
            return Value("static", "config")
        if base.kind == "static":
            if name := self.bindings.qualified(node, self.scope):
                return Value("static", "dtype") if name.startswith("torch.") and name.count(".") == 1 else STATIC
            return Value("static", "str") if node.attr in ("__name__", "__qualname__", "__module__") else STATIC
        if node.attr == "shape":
            return SIZE
        if node.attr in ("dtype", "device"):
            return Value("static", node.attr)
        if node.attr == "__class__":
            return Value("static", "class")
        return INT if node.attr == "ndim" else UNKNOWN

    def _tensor_attribute(self, name: str) -> Value:
        fact = torch_facts.attribute(name)
        return TENSOR if name == "grad" else _result(fact, arguments=0)

    def _self_attribute(self, name: str) -> Value:
        if name == "training":
            return BOOL
        if name == "config":
            return Value("static", "config")
        if name == "__class__":
            return Value("static", "class")
        if self.scope.class_name is None:
            return UNKNOWN
        owner = Symbol("class", self.bindings.path, self.scope.class_name)
        for ancestor in self.project.ancestors(owner):
            summary = self.project.class_(ancestor)
            if summary is None or ancestor.path is None:
                continue
            if name in summary.buffers:
                return TENSOR
            if name in summary.attributes:
                return self._made_attribute(ancestor, summary.attributes[name])
            if name in summary.plain:
                return STATIC
        return UNKNOWN

    def _made_attribute(self, owner: Symbol, callee: str) -> Value:
        symbol = self.project.resolve(owner.path, callee) if owner.path else owner
        if symbol.kind == "class":
            return MODULE if is_module_class(self.project, symbol) else UNKNOWN
        if symbol.name in ("torch.nn.Parameter", "torch.nn.Buffer"):
            return TENSOR
        if symbol.name.startswith("torch.nn."):
            return Value("static", f"submodule {symbol.name}")
        if _result(torch_facts.function(symbol.name), 1).kind == "tensor":
            return TENSOR
        if symbol.kind == "external" and (callee in _STATIC_BUILTINS or callee in _FOLDED_BUILTINS | _CONVERSIONS):
            return STATIC
        return UNKNOWN

    def _of_call(self, node: ast.Call, env: Env) -> Value:
        name = self.bindings.qualified(node.func, self.scope)
        if name is not None:
            if name.startswith("builtins."):
                return self._builtin(name.removeprefix("builtins."), node, env)
            if name.startswith("torch."):
                return self._torch_call(name, node)
            symbol = self.bindings.symbol(node.func, self.scope)
            function = self.project.function(symbol) if symbol else None
            return self._annotated_return(function.annotation) if function else UNKNOWN
        if isinstance(node.func, ast.Attribute):
            return self._method_call(node.func, node, env)
        return UNKNOWN

    def _annotated_return(self, annotation: str) -> Value:
        try:
            return self.annotated(ast.parse(annotation, mode="eval").body) if annotation else UNKNOWN
        except SyntaxError:
            return UNKNOWN

    def _builtin(self, name: str, node: ast.Call, env: Env) -> Value:
        if name in _STATIC_BUILTINS:
            return _STATIC_BUILTINS[name]
        arguments = self._all(node.args, env)
        if name in _CONVERSIONS:
            if arguments.kind == "tensor":
                return replace(DATA, type=name)
            return replace(arguments, type=name)
        if name in ("all", "any") and arguments.kind == "tensor":
            return replace(DATA, type="bool")
        if name == "str":
            return replace(arguments, type="str")
        return replace(arguments, type="") if name in _FOLDED_BUILTINS else UNKNOWN

    def _torch_call(self, name: str, node: ast.Call) -> Value:
        return _result(torch_facts.function(name), len(node.args) + len(node.keywords) - 1)

    def _method_call(self, func: ast.Attribute, node: ast.Call, env: Env) -> Value:
        base = self.of(func.value, env)
        if base.kind == "unknown" and func.attr in _ONLY_TENSORS:
            base = TENSOR
        if base.type.startswith("submodule torch.nn."):
            return UNKNOWN
        if base.kind == "tensor" and base.type != "tuple":
            if func.attr == "size" and node.args:
                return INT
            return _result(torch_facts.method(func.attr), len(node.args) + len(node.keywords))
        if base.type == "self":
            return self._self_call(func.attr)
        if base.kind == "static":
            if base.type == "str":
                return replace(join(base, self._all(node.args, env)), type="str") if node.args else STR
            return replace(self._all([func.value, *node.args], env), type="")
        if func.attr in ("size", "dim", "numel"):
            return SIZE if func.attr == "size" and not node.args else INT
        return UNKNOWN

    def _self_call(self, name: str) -> Value:
        """A call of `self.name(...)`: a method by its annotation, a submodule by its class."""
        if self.scope.class_name is None:
            return UNKNOWN
        owner = Symbol("class", self.bindings.path, self.scope.class_name)
        if method := self.project.method(owner, name):
            function = self.project.function(method)
            return self._annotated_return(function.annotation) if function else UNKNOWN
        if held_class := self.project.attribute_class(owner, name):
            forward = self.project.function(self.project.method(held_class, "forward") or held_class)
            is_module = is_module_class(self.project, held_class)
            return self._annotated_return(forward.annotation) if forward and is_module else UNKNOWN
        held = self._self_attribute(name)
        if held.type.startswith("submodule torch.nn.") and held.type.rpartition(".")[2] not in _NOT_ONE_TENSOR:
            return TENSOR
        return UNKNOWN

    def _of_binop(self, node: ast.BinOp, env: Env) -> Value:
        left, right = self.of(node.left, env), self.of(node.right, env)
        if isinstance(node.op, ast.Mod) and left.type == "str":
            return replace(self._all([node.left, node.right], env), type="str")
        if "tensor" in (left.kind, right.kind) and "tuple" not in (left.type, right.type):
            return TENSOR
        joined = self._all([node.left, node.right], env)
        return replace(joined, type=left.type if left.type == right.type else "")

    def _of_unaryop(self, node: ast.UnaryOp, env: Env) -> Value:
        value = self.of(node.operand, env)
        if isinstance(node.op, ast.Not):
            return BOOL if value.kind == "static" else DATA if value.kind in ("tensor", "data") else UNKNOWN
        return value

    def _of_compare(self, node: ast.Compare, env: Env) -> Value:
        values = [self.of(part, env) for part in (node.left, *node.comparators)]
        if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return BOOL
        kinds = {v.kind for v in values}
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            return BOOL if kinds == {"static"} else DATA if "tensor" in kinds else UNKNOWN
        if "tensor" in kinds:
            return TENSOR if len(node.ops) == 1 else DATA
        return BOOL if kinds == {"static"} else DATA if kinds <= {"static", "data"} else UNKNOWN

    def _of_boolop(self, node: ast.BoolOp, env: Env) -> Value:
        """`a and b` gives one of its parts; a tensor before the last part is read as a Python bool."""
        kinds = [self.of(value, env).kind for value in node.values]
        if set(kinds) == {"static"}:
            return STATIC
        if "tensor" in kinds[:-1] or "data" in kinds:
            return DATA
        return TENSOR if kinds[-1] == "tensor" and "unknown" not in kinds else UNKNOWN

    def _of_ifexp(self, node: ast.IfExp, env: Env) -> Value:
        return join(self.of(node.body, env), self.of(node.orelse, env))

    def _of_namedexpr(self, node: ast.NamedExpr, env: Env) -> Value:
        return self.of(node.value, env)

    def _of_tuple(self, node: ast.Tuple, env: Env) -> Value:
        return replace(self._all(node.elts, env), type="tuple")

    def _of_list(self, node: ast.List, env: Env) -> Value:
        return replace(self._all(node.elts, env), type="tuple")

    def _of_set(self, node: ast.Set, env: Env) -> Value:
        return replace(self._all(node.elts, env), type="")

    def _of_dict(self, node: ast.Dict, env: Env) -> Value:
        return replace(self._all([*(k for k in node.keys if k is not None), *node.values], env), type="dict")

    def _of_starred(self, node: ast.Starred, env: Env) -> Value:
        return self.of(node.value, env)

    def _of_lambda(self, node: ast.Lambda, env: Env) -> Value:
        return Value("static", "function")

    def _of_slice(self, node: ast.Slice, env: Env) -> Value:
        return self._all([p for p in (node.lower, node.upper, node.step) if p is not None], env)

    def _of_subscript(self, node: ast.Subscript, env: Env) -> Value:
        base = self.of(node.value, env)
        if base.type == "size":
            return SIZE if isinstance(node.slice, ast.Slice) else INT
        if base.type == "submodule":
            return UNKNOWN
        return element_of(base) if base.type == "tuple" or base.kind != "tensor" else TENSOR

    def _of_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, env: Env) -> Value:
        inner = dict(env)
        for generator in node.generators:
            self.bind(inner, generator.target, element_of(self.of(generator.iter, inner)))
        value = self.of(node.elt, inner)
        sources = self._all([g.iter for g in node.generators], env)
        return replace(value, type="tuple") if sources.kind != "unknown" else UNKNOWN

    _of_generatorexp = _of_listcomp
    _of_setcomp = _of_listcomp

    def _all(self, nodes: list[ast.expr], env: Env) -> Value:
        """The join of several parts of one value: static if all are, a tensor if some are and the rest is static."""
        values = [self.of(node, env) for node in nodes]
        symbolic = any(v.symbolic for v in values)
        for kind in ("unknown", "data", "tensor"):
            if any(v.kind == kind for v in values):
                return Value(kind, symbolic=symbolic)
        return Value("static", symbolic=symbolic)


def _slices(index: ast.Tuple) -> bool:
    """Whether an index such as `:, 0` or `..., 1` takes more than one dimension apart."""
    return any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis)
        for part in index.elts
    )


def _result(fact: torch_facts.OpFact | None, arguments: int) -> Value:
    """What a call of torch gives; `arguments` counts those besides the tensor."""
    if fact is None or (fact.in_place and fact.returns == "python"):
        return UNKNOWN
    if fact.reads_data:
        return replace(DATA, type=fact.python[0] if len(fact.python) == 1 else "")
    if fact.returns == "tensor":
        return TENSOR
    if fact.returns == "tensors":
        return Value("tensor", "tuple")
    if fact.returns == "mixed":
        whole = fact.whole_reduction and not arguments
        return TENSOR if whole or (fact.static_with == "other" and arguments == 2) else UNKNOWN
    if fact.python in ((), ("none",), ("object",)):
        return UNKNOWN
    kind = "size" if "size" in fact.python else fact.python[0]
    return Value("static", kind, symbolic=kind in ("size", "int", "number"))


def join(first: Value, second: Value) -> Value:
    """What is known where either value may be present."""
    if first == second:
        return first
    if first.kind != second.kind:
        if "none" in (first.type, second.type):
            other = second if first.type == "none" else first
            return replace(other, optional=True)
        return UNKNOWN
    return Value(
        first.kind,
        first.type if first.type == second.type else "",
        first.symbolic or second.symbolic,
        first.optional or second.optional,
        first.unbound or second.unbound,
        first.fact if first.fact == second.fact else None,
    )


def element_of(value: Value) -> Value:
    """What iterating over or indexing into a value gives."""
    if value.type in ("size", "range"):
        return INT
    if value.kind == "tensor":
        return TENSOR
    return replace(value, type="str" if value.type == "str" else "") if value.kind == "static" else UNKNOWN


@dataclass(slots=True)
class Point:
    """A statement in a function, with what is known before it and what stands around it (innermost last)."""

    statement: ast.stmt
    env: Env
    around: tuple[ast.stmt, ...]
    block: list[ast.stmt]


class Walk:
    """Runs through a function in source order, leaving out what Dynamo never reaches."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def points(self) -> Iterator[Point]:
        """Every live statement, each once; nested definitions are not entered."""
        yield from self._block(self.values.scope.node.body, self.values.parameters(), ())

    def _block(self, body: list[ast.stmt], env: Env, around: tuple[ast.stmt, ...]) -> Iterator[Point]:
        for statement in body:
            yield Point(statement, env, around, body)
            self._named_expressions(statement, env)
            if isinstance(statement, ast.If):
                ended = yield from self._if(statement, env, around)
                if ended:
                    return
            elif isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
                yield from self._loop(statement, env, around)
            elif isinstance(statement, TRY_STATEMENTS):
                yield from self._try(statement, env, around)
            elif isinstance(statement, (ast.With, ast.AsyncWith)):
                for item in statement.items:
                    if item.optional_vars is not None:
                        self.values.bind(env, item.optional_vars, UNKNOWN)
                yield from self._block(statement.body, env, (*around, statement))
            elif isinstance(statement, ast.Match):
                yield from self._match(statement, env, around)
            else:
                self._simple(statement, env)

    def _named_expressions(self, statement: ast.stmt, env: Env) -> None:
        """Bind the names that the statement's own expressions assign with `:=`, each possibly not."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        own = [c for c in ast.iter_child_nodes(statement) if isinstance(c, (ast.expr, ast.withitem))]
        for node in (n for expression in own for n in ast.walk(expression) if isinstance(n, ast.NamedExpr)):
            bound = dict(env)
            self.values.bind(bound, node.target, self.values.of(node.value, env))
            certain = node in own or (isinstance(statement, ast.If) and node is _first_evaluated(statement.test))
            self._merge(env, [bound] if certain else [env, bound])

    def _if(self, node: ast.If, env: Env, around: tuple[ast.stmt, ...]) -> Generator[Point, None, bool]:
        """The statements of both arms; returns whether nothing after the `if` is reached while tracing."""
        verdict = truth_while_tracing(node.test, self._resolve)
        before = dict(env)
        inside = (*around, node)
        then_env, else_env = env if verdict is True else dict(before), dict(before)
        self.values.narrow(then_env, node.test, True)
        self.values.narrow(else_env, node.test, False)
        if verdict is not False:
            yield from self._block(node.body, then_env, inside)
        if verdict is not True:
            yield from self._block(node.orelse, else_env, inside)
        taken = node.body if verdict else node.orelse
        if verdict is not None and taken and isinstance(taken[-1], (ast.Return, ast.Raise)):
            return True
        if verdict is None:
            left = [e for e, b in ((then_env, node.body), (else_env, node.orelse)) if not _leaves(b)]
            self._merge(env, left or [then_env])
        elif verdict is False:
            env.update(else_env)
        return False

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, env: Env, around: tuple[ast.stmt, ...]
    ) -> Iterator[Point]:
        inside = (*around, node)
        self.values.forget(env, [node])
        first = dict(env)
        self._bind_loop(node, first)
        jumps = [  # a first round only finds out what the loop changes
            dict(point.env)
            for point in self._block(node.body, first, inside)
            if isinstance(point.statement, (ast.Break, ast.Continue))
        ]
        self._merge(env, [env, first, *jumps])
        head = dict(env)
        self._bind_loop(node, env)
        yield from self._block(node.body, env, inside)
        self._merge(env, [head, env, *jumps])
        yield from self._block(node.orelse, env, inside)

    def _bind_loop(self, node: ast.For | ast.AsyncFor | ast.While, env: Env) -> None:
        if not isinstance(node, ast.While):
            self.values.bind(env, node.target, element_of(self.values.of(node.iter, env)))

    def _try(self, node: ast.Try, env: Env, around: tuple[ast.stmt, ...]) -> Iterator[Point]:
        inside = (*around, node)
        before = dict(env)
        yield from self._block(node.body, env, inside)
        ends = []
        for handler in node.handlers:
            start = dict(before)
            self._merge(start, [before, env])
            self.values.forget(start, node.body)
            if handler.name:
                start[handler.name] = UNKNOWN
            yield from self._block(handler.body, start, inside)
            if not _leaves(handler.body):
                ends.append(start)
        yield from self._block(node.orelse, env, inside)
        self._merge(env, [env, *ends])
        yield from self._block(node.finalbody, env, inside)

    def _match(self, node: ast.Match, env: Env, around: tuple[ast.stmt, ...]) -> Iterator[Point]:
        ends = [dict(env)]
        for case in node.cases:
            start = dict(env)
            for pattern in ast.walk(case.pattern):
                name = getattr(pattern, "rest" if isinstance(pattern, ast.MatchMapping) else "name", None)
                if isinstance(name, str):
                    start[name] = UNKNOWN
            yield from self._block(case.body, start, (*around, node))
            ends.append(start)
        self._merge(env, ends)

    def _simple(self, statement: ast.stmt, env: Env) -> None:
        if isinstance(statement, ast.Assign):
            value = self.values.assigned(statement.value, env)
            for target in statement.targets:
                elements = getattr(target, "elts", None)
                given = getattr(statement.value, "elts", None)
                if elements and given and len(elements) == len(given):
                    parts = [self.values.assigned(e, env) for e in given]
                    for element, part in zip(elements, parts, strict=True):
                        self.values.bind(env, element, part)
                    continue
                self.values.bind(env, target, value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self.values.bind(env, statement.target, self.values.assigned(statement.value, env))
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            env[statement.target.id] = self.values.augmented(statement, statement.target.id, env)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            env[statement.name] = Value("static", "function")
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    env.pop(target.id, None)
        elif isinstance(statement, ast.Expr):
            self.values.assigned(statement.value, env)

    def _resolve(self, name: str) -> str:
        try:
            node = ast.parse(name, mode="eval").body
        except SyntaxError:
            return name
        return self.values.bindings.qualified(node, self.values.scope) or name

    def _merge(self, env: Env, ends: list[Env]) -> None:
        """Make `env` what holds after any of `ends`; a name that some end lacks is what the others know, `unbound`."""
        merged: Env = {}
        for name in {name for end in ends for name in end}:
            known = [end[name] for end in ends if name in end]
            value = known[0]
            for other in known[1:]:
                value = join(value, other)
            value = value if len(known) == len(ends) else replace(value, unbound=True)
            merged[name] = self.values.merged(value, known)
        env.clear()
        env.update(merged)


def _first_evaluated(node: ast.expr) -> ast.expr:
    """The part of an expression that is evaluated in any case, and first."""
    while isinstance(node, (ast.BoolOp, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.BoolOp):
            node = node.values[0]
        elif isinstance(node, (ast.Compare, ast.BinOp)):
            node = node.left
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        else:
            node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
