"""Tensors: what is known of an expression's shape, dtype, device, memory and gradient, and what evaluating it can do.

Shapes, dtypes and devices are symbols, not values: two expressions with equal symbols agree in every run. `x * 2.0`
and `x - 1.0` have the symbols of "`x` with a float", whatever `x` holds. What is not known gets a symbol of its own,
which is equal to no other.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from graphmend_lint.analysis import tensor_ops, torch_facts
from graphmend_lint.analysis.bindings import Bindings, Scope
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.tensor_ops import ANY, BOOL, FLOAT, HALF_MAX, INEXACT, INT, OPS, DtypeClass
from graphmend_lint.analysis.values import UNKNOWN, Env, Value, Values

Key = Hashable

#: The shape of a tensor of no dimensions.
SCALAR: Key = ("scalar",)
#: Modules whose functions are known by their last names.
_FUNCTIONS_OF = ("torch", "torch.nn.functional", "torch.special", "torch.Tensor")
_CONTRACTIONS = frozenset(
    {
        "addmm",
        "addbmm",
        "addmv",
        "baddbmm",
        "bmm",
        "cdist",
        "chain_matmul",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "dot",
        "einsum",
        "linear",
        "matmul",
        "mm",
        "mv",
        "scaled_dot_product_attention",
        "tensordot",
    }
)
#: Functions that give a new tensor, besides the elementwise ones.
_ALLOCATING = frozenset({"linear", "layer_norm", "softmax", "log_softmax", "matmul", "bmm", "mm", "cat", "stack"})
_INEXACT_RESULTS = frozenset({"linear", "layer_norm", "softmax", "log_softmax", "group_norm", "rms_norm"})
#: Functions that make a tensor of the shape that is their first argument.
_FILLED = frozenset({"empty", "full", "ones", "rand", "randn", "zeros"})
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OWN_SCOPE = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_LIMITS = frozenset({"max", "min"})


@dataclass(frozen=True, slots=True)
class Dtype:
    """The symbol of a dtype (its name where it is known) and the classes that it may be of."""

    key: Key
    classes: frozenset[DtypeClass] = ANY


@dataclass(frozen=True, slots=True)
class Hazard:
    """Something that evaluating an expression does besides giving a value.

    `unless` is the condition under which it does not happen, "" where there is no such condition.
    """

    kind: Literal["call", "raise", "random", "change", "cost", "read"]
    text: str
    unless: str = ""


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known of an expression that gives a tensor.

    layout: how its elements lie in memory; elementwise operations on one tensor all give its dense form.
    value: the symbol of the object; names with one symbol hold the same tensor.
    fresh: its memory was allocated by this expression, and nothing else refers to it.
    roots: the tensors that a gradient flows to, as they are where the expression stands.
    culprit: the operation whose derivative can be infinite or nan, "" where a zero gradient always stays zero.
    """

    shape: Key
    dtype: Dtype
    device: Key
    layout: Key
    value: Key
    fresh: bool = False
    roots: frozenset[Key] = frozenset()
    culprit: str = ""
    hazards: tuple[Hazard, ...] = ()


@dataclass(frozen=True, slots=True)
class Number:
    """What is known of an expression that gives a Python number.

    `within`: the dtype whose range holds it, whatever that dtype is. `end`: which end of that range it is, if it is
    one. `type` is "" where it is not known to be a number.
    """

    type: str
    constant: float | None = None
    within: Key = None
    end: Literal["max", "min", ""] = ""
    hazards: tuple[Hazard, ...] = ()


@dataclass(frozen=True, slots=True)
class Other:
    """An expression that gives something else, or of which nothing is known."""

    hazards: tuple[Hazard, ...] = ()


Fact = Tensor | Number | Other


class Tensors(Values):
    """The values of one function, with facts about its tensors; see `Values`."""

    def __init__(self, bindings: Bindings, scope: Scope, text: Callable[[ast.expr], str]) -> None:
        super().__init__(bindings, scope)
        self.text = text
        self._numbers = itertools.count()
        #: What operations that ran on every path so far imply, by the symbol of the dtype.
        self.implied: dict[Key, frozenset[DtypeClass]] = {}
        #: Whether what is evaluated now runs on every path.
        self.certain = False
        #: Where the gradient of a tensor goes on to, and the operation on the way whose derivative can be infinite.
        self.origins: dict[Key, tuple[frozenset[Key], str]] = {}
        self._attributes: dict[str, Tensor] = {}

    # -- the environment ---------------------------------------------------------------------------------------

    def supposed(self) -> list[str]:
        """The parameters that are tensors only by the way in which they are indexed: arrays of numpy are too."""
        arguments = self.scope.node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        known = super().parameters()
        bare = [a.arg for a in every if a.annotation is None and known.get(a.arg, UNKNOWN).kind == "tensor"]
        return [name for name in bare if not self._used_as_tensor(name)]

    def parameters(self) -> Env:
        return {name: self._labelled(value) for name, value in super().parameters().items()}

    def assigned(self, node: ast.expr, env: Env) -> Value:
        self.still()
        value = self.of(node, env)
        fact = self.fact(node, env)
        if isinstance(fact, Tensor):
            return replace(value, fact=self.settled(fact)) if value.kind == "tensor" else value
        if not isinstance(fact, Number) or not fact.type:
            return value
        known = Value("static", fact.type) if value.kind == "unknown" else value
        return replace(known, fact=replace(fact, hazards=()))

    def augmented(self, statement: ast.AugAssign, name: str, env: Env) -> Value:
        """A tensor that is changed in place stays the one that it is."""
        known = env.get(name)
        if known is not None and isinstance(known.fact, Tensor):
            return known
        return super().augmented(statement, name, env)

    def settled(self, fact: Tensor) -> Tensor:
        """What is known of a tensor once it is computed: it is then a root of gradients itself."""
        own = frozenset({fact.value}) if fact.dtype.classes & INEXACT else frozenset[Key]()
        if fact.roots and own and fact.roots != own:
            self.origins[fact.value] = (fact.roots, fact.culprit)
        return replace(fact, hazards=(), culprit="", roots=own)

    def merged(self, value: Value, parts: list[Value]) -> Value:
        if all(part.fact == parts[0].fact for part in parts):
            return replace(value, fact=parts[0].fact)
        facts = [part.fact for part in parts if isinstance(part.fact, Tensor)]
        if len(facts) < len(parts) or value.kind != "tensor":
            return self._labelled(replace(value, fact=None))
        return replace(value, fact=self._joined(facts))

    def _joined(self, facts: list[Tensor]) -> Tensor:
        """One of several tensors: what they agree in is known."""
        first, made = facts[0], self.unknown()
        classes = frozenset[DtypeClass]().union(*(fact.dtype.classes for fact in facts))
        made = replace(made, dtype=Dtype(made.dtype.key, classes))
        for field in ("shape", "device", "layout"):
            if all(getattr(fact, field) == getattr(first, field) for fact in facts):
                made = replace(made, **{field: getattr(first, field)})
        if all(fact.dtype == first.dtype for fact in facts):
            made = replace(made, dtype=first.dtype)
        return made if made.dtype.classes & INEXACT else replace(made, roots=frozenset())

    def forget(self, env: Env, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            for part in ast.walk(node):
                if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load) and part.id in env:
                    env[part.id] = self._labelled(replace(env[part.id], fact=None))

    def _labelled(self, value: Value) -> Value:
        """A tensor of which nothing is known but that it is the same one wherever its name is read."""
        if value.kind != "tensor" or value.type == "tuple" or value.fact is not None:
            return value
        return replace(value, fact=self.unknown())

    def unknown(self, *, fresh: bool = False, classes: frozenset[DtypeClass] = ANY) -> Tensor:
        """A tensor with symbols of its own."""
        key = ("of", next(self._numbers))
        roots: frozenset[Key] = frozenset({key}) if classes & INEXACT else frozenset()
        return Tensor(key, Dtype(key, classes), key, _dense(key) if fresh else key, key, fresh, roots)

    def still(self) -> None:
        """Until the next call, attributes are taken to hold the same tensor at each reading."""
        self._attributes = {}

    def narrow_dtype(self, env: Env, test: ast.expr) -> None:
        """Note what a test such as `x.dtype == torch.float16` tells where it is true."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                self.narrow_dtype(env, part)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            return
        left, right = test.left, test.comparators[0]
        if isinstance(left, ast.Attribute) and left.attr == "dtype" and isinstance(left.value, ast.Name):
            known, value = self._dtype_named(right), env.get(left.value.id)
            if known is not None and value is not None and isinstance(value.fact, Tensor):
                env[left.value.id] = replace(value, fact=replace(value.fact, dtype=known))

    # -- facts -------------------------------------------------------------------------------------------------

    def fact(self, node: ast.expr, env: Env) -> Fact:
        """What is known of an expression. Names of tensors without facts get them in `env`."""
        method = getattr(self, f"_fact_{type(node).__name__.lower()}", None)
        if method is None:
            return self._not_followed(node, env)
        fact: Fact = method(node, env)
        return fact

    def _not_followed(self, node: ast.expr, env: Env) -> Fact:
        hazard = Hazard("raise", f"`{self.text(node)}` may raise, or do more than give a value")
        parts = (
            [] if isinstance(node, _OWN_SCOPE) else [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        )
        return self._blank(node, env, *(h for part in parts for h in self.fact(part, dict(env)).hazards), hazard)

    def _blank(self, node: ast.expr, env: Env, *hazards: Hazard, fresh: bool = False) -> Fact:
        value = self.of(node, env)
        if value.kind == "tensor" and value.type != "tuple":
            return replace(self.unknown(fresh=fresh), hazards=hazards)
        return Number(value.type, hazards=hazards) if value.type in ("int", "float", "bool") else Other(hazards)

    def _fact_constant(self, node: ast.Constant, env: Env) -> Fact:
        if isinstance(node.value, (bool, int, float)):
            return Number(type(node.value).__name__, _as_float(node.value))
        return Other()

    def _fact_name(self, node: ast.Name, env: Env) -> Fact:
        value = self.of(node, env)
        hazards: tuple[Hazard, ...] = ()
        if value.unbound:
            hazards = (Hazard("raise", f"`{node.id}` may not be bound"),)
        elif value.optional:
            hazards = (Hazard("raise", f"`{node.id}` may be None"),)
        if value.kind == "tensor" and value.type != "tuple":
            if node.id not in env:
                return replace(self.unknown(), hazards=hazards)
            env[node.id] = value = self._labelled(value)
            assert isinstance(value.fact, Tensor)
            return replace(value.fact, hazards=hazards, fresh=False)
        if value.kind != "static":
            return Other((*hazards, Hazard("read", f"what `{node.id}` holds is not known")))
        if isinstance(value.fact, Number):
            return replace(value.fact, hazards=hazards)
        return Number(value.type, hazards=hazards) if value.type in ("int", "float", "bool", "") else Other(hazards)

    def _fact_attribute(self, node: ast.Attribute, env: Env) -> Fact:
        limits = self._limits(node, env)
        if limits is not None:
            return limits
        value = self.of(node, env)
        base = self.fact(node.value, env)
        name = dotted(node)
        if value.kind == "tensor" and value.type != "tuple":
            if name is None or isinstance(base, Tensor):
                return replace(self.unknown(), hazards=(*base.hazards, self._may_raise(node)))
            known = self._attributes.setdefault(name, self.unknown())
            return replace(known, hazards=(Hazard("raise", f"`{name}` may be None"),) if value.optional else ())
        if value.kind != "static":
            return Other((*base.hazards, Hazard("read", f"what `{self.text(node)}` holds is not known")))
        hazards = base.hazards if isinstance(base, Tensor) else ()
        return Number(value.type, hazards=hazards) if value.type in ("int", "float", "bool", "") else Other(hazards)

    def _limits(self, node: ast.Attribute, env: Env) -> Number | None:
        """`torch.finfo(dtype).max`: a number that the dtype holds."""
        call = node.value
        if not isinstance(call, ast.Call) or node.attr not in _LIMITS or len(call.args) != 1 or call.keywords:
            return None
        if self.bindings.qualified(call.func, self.scope) != "torch.finfo":
            return None
        dtype = self._dtype_of(call.args[0], env)
        if dtype is None:
            return None
        hazards = () if dtype.classes <= FLOAT else (self._refused(node, call.args[0], FLOAT),)
        return Number("float", within=dtype.key, end="max" if node.attr == "max" else "min", hazards=hazards)

    def _dtype_of(self, node: ast.expr, env: Env) -> Dtype | None:
        """The dtype that an expression names: `torch.float16` or `x.dtype`."""
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            fact = self.fact(node.value, env)
            return fact.dtype if isinstance(fact, Tensor) and not fact.hazards else None
        return self._dtype_named(node)

    def _dtype_named(self, node: ast.expr) -> Dtype | None:
        name = self.bindings.qualified(node, self.scope) or ""
        last = name.removeprefix("torch.")
        kind = tensor_ops.DTYPES.get(last) if name.startswith("torch.") else None
        return None if kind is None else Dtype(tensor_ops.SYNONYMS.get(last, last), frozenset({kind}))

    def _fact_unaryop(self, node: ast.UnaryOp, env: Env) -> Fact:
        operand = self.fact(node.operand, env)
        if isinstance(node.op, (ast.USub, ast.UAdd)):
            if isinstance(operand, Number):
                sign = -1 if isinstance(node.op, ast.USub) else 1
                constant = None if operand.constant is None else sign * operand.constant
                end = _other_end(operand.end) if sign < 0 else operand.end
                return replace(
                    operand, constant=constant, end=end, hazards=(*operand.hazards, *self._number_doubt(node, operand))
                )
            if isinstance(operand, Tensor):
                return self._elementwise(node, operand, OPS["neg" if isinstance(node.op, ast.USub) else "positive"])
        if isinstance(node.op, ast.Not) and self.of(node.operand, env).kind == "static":
            return Number("bool", hazards=operand.hazards)
        if isinstance(node.op, ast.Invert) and isinstance(operand, Tensor):
            accepts = frozenset[DtypeClass]({"bool", "int"})
            return self._result(node, operand, operand.dtype, accepts, "none")
        return self._not_followed(node, env)

    def _fact_binop(self, node: ast.BinOp, env: Env) -> Fact:
        left, right = self.fact(node.left, env), self.fact(node.right, env)
        if isinstance(left, Number) and isinstance(right, Number):
            return self._arithmetic(node, left, right)
        if not isinstance(left, (Tensor, Number)) or not isinstance(right, (Tensor, Number)):
            return self._blank(node, env, *left.hazards, *right.hazards, self._may_raise(node), fresh=True)
        return self._binary(node, _OPERATORS.get(type(node.op), type(node.op).__name__.lower()), left, right)

    def _arithmetic(self, node: ast.BinOp, left: Number, right: Number) -> Number:
        """Python's own arithmetic; what it gives stays in a dtype's range if it moves towards zero."""
        hazards = [*left.hazards, *right.hazards]
        hazards += [*self._number_doubt(node.left, left), *self._number_doubt(node.right, right)]
        if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            divides = isinstance(node.op, ast.Div) and right.constant not in (None, 0)
            hazards += [] if divides else [self._may_raise(node)]
        kinds = {left.type, right.type}
        kind = (
            "float" if "float" in kinds or isinstance(node.op, ast.Div) else "int" if kinds <= {"int", "bool"} else ""
        )
        within = _still_within(node.op, left, right)
        return Number(kind, _folded(node.op, left, right), within, hazards=tuple(hazards))

    def _number_doubt(self, node: ast.expr, number: Number) -> tuple[Hazard, ...]:
        if number.type:
            return ()
        text = self.text(node)
        return (Hazard("raise", f"`{text}` may not be a number", f"`{text}` is a number"),)

    def _fact_compare(self, node: ast.Compare, env: Env) -> Fact:
        if len(node.ops) != 1:
            return self._not_followed(node, env)
        left, right = self.fact(node.left, env), self.fact(node.comparators[0], env)
        order = isinstance(node.ops[0], _ORDER)
        if not isinstance(node.ops[0], (*_ORDER, ast.Eq, ast.NotEq)):
            is_identity = isinstance(node.ops[0], (ast.Is, ast.IsNot))
            hazards = (*left.hazards, *right.hazards)
            return Number("bool", hazards=hazards) if is_identity else self._not_followed(node, env)
        if not isinstance(left, Tensor) and not isinstance(right, Tensor):
            numbers = isinstance(left, Number) and isinstance(right, Number)
            doubt = () if numbers or not order else (self._may_raise(node),)
            return self._blank(node, env, *left.hazards, *right.hazards, *doubt)
        if isinstance(left, Other) or isinstance(right, Other):
            return self._not_followed(node, env)
        return self._compared(node, left, right, order=order)

    def _compared(self, node: ast.expr, left: Tensor | Number, right: Tensor | Number, *, order: bool) -> Tensor:
        both = self._binary(node, "compare", left, right)
        hazards = list(both.hazards)
        for side in (left, right):
            if isinstance(side, Tensor) and order:
                hazards += self._needs(node, side.dtype, tensor_ops.REAL)
        return replace(both, dtype=Dtype("bool", BOOL), roots=frozenset(), culprit="", hazards=tuple(hazards))

    def _fact_call(self, node: ast.Call, env: Env) -> Fact:
        name = self.bindings.qualified(node.func, self.scope)
        if (
            name in ("builtins.float", "builtins.int")
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Constant)
        ):
            return _converted(node.args[0].value)
        if (
            name is not None
            and name.startswith("builtins.")
            and any(isinstance(self.fact(argument, env), Tensor) for argument in node.args)
        ):
            return self._blank(node, env, Hazard("read", f"`{self.text(node)}` reads tensor data in Python"))
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            return self._blank(node, env, Hazard("call", f"`{self.text(node)}` hides its arguments"))
        if name is not None:
            module, _, last = name.rpartition(".")
            if module in _FUNCTIONS_OF:
                return self._operation(node, last, node.args, env)
            fact = torch_facts.function(name)
            return self._blank(node, env, self._call_hazard(node, fact))
        if isinstance(node.func, ast.Attribute):
            receiver = self.fact(node.func.value, env)
            if isinstance(receiver, Tensor):
                return self._operation(node, node.func.attr, [node.func.value, *node.args], env)
        return self._module_call(node, env)

    def _module_call(self, node: ast.Call, env: Env) -> Fact:
        kind = self.of(node.func, env).type
        fact = self._blank(node, env, Hazard("cost", f"`{self.text(node.func)}(...)` runs a module or a function"))
        last = kind.rpartition(".")[2]
        known = kind.startswith("submodule torch.nn.") and last in tensor_ops.ALLOCATING_MODULES
        if isinstance(fact, Tensor) and known and not self._is_replaced_below(node.func, kind):
            if self.certain and node.args and last != "Embedding":
                argument = self.fact(node.args[0], env)
                if isinstance(argument, Tensor):
                    self._note(argument.dtype, INEXACT)
            return replace(self.unknown(fresh=True, classes=tensor_ops.ALLOCATING_MODULES[last]), hazards=fact.hazards)
        return fact

    def _is_replaced_below(self, node: ast.expr, kind: str) -> bool:
        """Whether a class in the project that derives from this one makes the attribute from something else."""
        if not isinstance(node, ast.Attribute) or self.scope.class_name is None:
            return True
        for below in self.project.subclasses.get((self.bindings.path, self.scope.class_name), ()):
            summary = self.project.class_(below)
            if summary is None or below.path is None:
                continue
            made = summary.attributes.get(node.attr)
            other = made is not None and self.project.resolve(below.path, made).name != kind.partition(" ")[2]
            if other or node.attr in summary.plain:
                return True
        return False

    def _call_hazard(self, node: ast.Call, fact: torch_facts.OpFact | None) -> Hazard:
        text = self.text(node)
        if fact is None:
            return Hazard("call", f"what `{text}` does is not known")
        if fact.rng:
            return Hazard("random", f"`{text}` draws random numbers")
        if fact.in_place or any(keyword.arg in ("out", "inplace") for keyword in node.keywords):
            return Hazard("change", f"`{text}` changes a tensor in place")
        if fact.reads_data:
            return Hazard("read", f"`{text}` reads tensor data in Python")
        if fact.dynamic_shape and len(node.args) + len(node.keywords) < 2:
            return Hazard("read", f"the shape of `{text}` depends on the data")
        return Hazard("raise", f"`{text}` may raise")

    # -- operations of torch -----------------------------------------------------------------------------------

    def _operation(self, node: ast.Call, name: str, args: list[ast.expr], env: Env) -> Fact:
        """A function or method of torch by its last name; the tensor is the first of `args`."""
        first = args[0] if args else next((k.value for k in node.keywords if k.arg in ("input", "self")), None)
        keywords = {k.arg: k.value for k in node.keywords if k.arg not in ("input", "self")}
        if first is None or {"out", "inplace"} & keywords.keys():
            return self._other_operation(node, name, args, env)
        if name in ("dim", "numel", "ndimension", "is_floating_point") and len(args) == 1 and not keywords:
            return Number(self.of(node, env).type, hazards=self.fact(first, env).hazards)
        rest = args[1:]
        operand = self.fact(first, env)
        takes_tensors = name in OPS or name in tensor_ops.TOTAL_REDUCTIONS or name in tensor_ops.PARTIAL_REDUCTIONS
        if isinstance(operand, Other) and takes_tensors and self.of(node, env).kind == "tensor":
            operand = replace(self.unknown(), hazards=operand.hazards)  # only a tensor goes there
            if isinstance(first, ast.Name) and first.id in env:
                env[first.id] = Value("tensor", fact=replace(operand, hazards=()))
        if isinstance(operand, Tensor):
            if name in OPS:
                return self._table_operation(node, OPS[name], operand, rest, keywords, env)
            if name in tensor_ops.TOTAL_REDUCTIONS or name in tensor_ops.PARTIAL_REDUCTIONS:
                return self._reduction(node, name, operand, rest, keywords, env)
            if name == "masked_fill" and len(rest) == 2 and not keywords:
                return self._masked_fill(node, operand, rest, env)
            if name in ("to", "type_as", "type"):
                return self._cast(node, name, operand, rest, keywords, env)
        if name == "where" and len(rest) == 2 and not keywords:
            return self._where(node, [operand, *(self.fact(r, env) for r in rest)], env)
        if name in ("add", "sub", "mul", "div", *_COMPARISONS) and len(rest) == 1 and not keywords:
            other = self.fact(rest[0], env)
            if isinstance(operand, (Tensor, Number)) and isinstance(other, (Tensor, Number)):
                if name in _COMPARISONS:
                    return self._compared(node, operand, other, order=name not in ("eq", "ne"))
                return self._binary(node, name, operand, other)
        if name in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor") and len(rest) == 1:
            other = self.fact(rest[0], env)
            if isinstance(operand, Tensor) and isinstance(other, Tensor) and not keywords:
                both = self._binary(node, name, operand, other)
                if name in ("maximum", "minimum"):
                    needs = [h for side in (operand, other) for h in self._needs(node, side.dtype, tensor_ops.REAL)]
                    both = replace(both, hazards=(*both.hazards, *needs))
                logical = name.startswith("logical")
                return replace(both, dtype=Dtype("bool", BOOL), roots=frozenset()) if logical else both
        return self._other_operation(node, name, args, env)

    def _other_operation(self, node: ast.Call, name: str, args: list[ast.expr], env: Env) -> Fact:
        """An operation whose rules are not followed: what it gives is new where that is known, and nothing more."""
        qualified = self.bindings.qualified(node.func, self.scope)
        known = torch_facts.function(qualified) if qualified else torch_facts.method(name)
        hazards = [h for a in args for h in self.fact(a, env).hazards]
        if name in _CONTRACTIONS:
            hazards.append(Hazard("cost", f"`{self.text(node)}` is a contraction"))
        hazards.append(self._call_hazard(node, known))
        changes = known is None or known.in_place or bool(known.in_place_with)
        fresh = not changes and known is not None and not known.view and (known.elementwise or name in _ALLOCATING)
        fact = self._blank(node, env, *hazards, fresh=fresh)
        if isinstance(fact, Tensor) and qualified and name in _FILLED and _is_empty(args):
            return replace(fact, shape=SCALAR)
        if isinstance(fact, Tensor) and name in _INEXACT_RESULTS:
            return replace(self.unknown(fresh=fresh, classes=INEXACT), hazards=fact.hazards)
        return fact

    def _table_operation(
        self,
        node: ast.Call,
        op: tensor_ops.Op,
        operand: Tensor,
        rest: list[ast.expr],
        keywords: dict[str | None, ast.expr],
        env: Env,
    ) -> Fact:
        given = dict(zip(op.numbers, rest, strict=False)) | {str(name): value for name, value in keywords.items()}
        if len(rest) > len(op.numbers) or not given.keys() <= set(op.numbers):
            return replace(self.unknown(), hazards=(*operand.hazards, self._may_raise(node)))
        made = self._elementwise(node, operand, op)
        hazards = list(made.hazards)
        present = 0
        for value in given.values():
            if isinstance(value, ast.Constant) and value.value is None:
                continue
            present += 1
            hazards += self._fits(node, value, self.fact(value, env), operand.dtype)
        if op.numbers and not present:
            hazards.append(self._may_raise(node))
        return replace(made, hazards=tuple(hazards))

    def _elementwise(self, node: ast.expr, operand: Tensor, op: tensor_ops.Op) -> Tensor:
        dtype = operand.dtype
        if op.result == "inexact":
            dtype = self._inexact(dtype)
        elif op.result != "same":
            dtype = Dtype(op.result, frozenset({tensor_ops.DTYPES[op.result]}))
        return self._result(node, operand, dtype, op.accepts, op.gradient, view=op.view, contiguous=op.contiguous)

    def _result(
        self,
        node: ast.expr,
        operand: Tensor,
        dtype: Dtype,
        accepts: frozenset[DtypeClass],
        gradient: Literal["finite", "none", "unbounded"],
        *,
        view: bool = False,
        contiguous: bool = False,
    ) -> Tensor:
        """The result of an elementwise operation on one tensor."""
        hazards = (*operand.hazards, *self._needs(node, operand.dtype, accepts))
        none = gradient == "none" or not dtype.classes & INEXACT
        culprit = self.text(node) if gradient == "unbounded" and not operand.culprit else operand.culprit
        layout = _dense(operand.layout)
        if contiguous:
            layout = ("contiguous", operand.shape)
        elif view and layout != operand.layout:
            layout = ("viewed", next(self._numbers))
        return Tensor(
            operand.shape,
            dtype,
            operand.device,
            layout,
            ("made", next(self._numbers)),
            not view,
            frozenset() if none else operand.roots,
            "" if none else culprit,
            hazards,
        )

    def _reduction(
        self,
        node: ast.Call,
        name: str,
        operand: Tensor,
        rest: list[ast.expr],
        keywords: dict[str | None, ast.expr],
        env: Env,
    ) -> Fact:
        total = name in tensor_ops.TOTAL_REDUCTIONS
        classes = tensor_ops.TOTAL_REDUCTIONS[name] if total else tensor_ops.PARTIAL_REDUCTIONS[name]
        shape: Key = SCALAR
        if rest or keywords:
            kept = _kept_dimension(rest, keywords) if name in ("any", "all", "sum") else None
            if kept is None:
                return replace(self.unknown(), hazards=(*operand.hazards, self._may_raise(node)))
            shape = ("kept", operand.shape, kept)
        dtype = self._reduced(name, operand.dtype, classes)
        flows = bool(dtype.classes & INEXACT) and name not in ("any", "all", "count_nonzero")
        hazards = operand.hazards if total else (*operand.hazards, self._may_raise(node))
        if not total and name in ("mean", "norm", "std", "var") and self.certain:
            self._note(operand.dtype, INEXACT)
        culprit = operand.culprit or ("" if name == "sum" else self.text(node))
        made = ("made", next(self._numbers))
        roots = operand.roots if flows else frozenset[Key]()
        layout: Key = ("dense", SCALAR) if shape == SCALAR else ("reduced", next(self._numbers))
        return Tensor(shape, dtype, operand.device, layout, made, True, roots, culprit if flows else "", hazards)

    def _reduced(self, name: str, dtype: Dtype, classes: frozenset[DtypeClass] | None) -> Dtype:
        if name in ("any", "all"):
            # a uint8 tensor gives uint8
            unsigned = "int" in self._classes(dtype)
            return Dtype(("truth", dtype.key), BOOL | INT) if unsigned else Dtype("bool", BOOL)
        if classes is not None:
            return Dtype(("reduced", name, dtype.key), classes)
        if name == "sum" and not dtype.classes <= INEXACT:
            return Dtype(("sum", dtype.key), (dtype.classes - BOOL) | (INT if dtype.classes & BOOL else frozenset()))
        return dtype

    def _masked_fill(self, node: ast.Call, operand: Tensor, rest: list[ast.expr], env: Env) -> Fact:
        mask, number = self.fact(rest[0], env), self.fact(rest[1], env)
        if not isinstance(mask, Tensor) or not isinstance(number, Number):
            return replace(self.unknown(), hazards=(*operand.hazards, self._may_raise(node)))
        hazards = [*operand.hazards, *mask.hazards, *self._fits(node, rest[1], number, operand.dtype)]
        hazards += self._needs(node, mask.dtype, BOOL)
        shape = _broadcast(operand.shape, mask.shape)
        if shape != operand.shape:
            hazards.append(self._may_raise(node))
        hazards += self._together(node, operand.device, mask.device)
        made = ("made", next(self._numbers))
        return replace(operand, layout=("contiguous", operand.shape), value=made, fresh=True, hazards=tuple(hazards))

    def _cast(
        self,
        node: ast.Call,
        name: str,
        operand: Tensor,
        rest: list[ast.expr],
        keywords: dict[str | None, ast.expr],
        env: Env,
    ) -> Fact:
        unknown = replace(self.unknown(), hazards=(*operand.hazards, self._may_raise(node)))
        target = rest[0] if rest else keywords.get("dtype")
        if len(rest) + len(keywords) != 1 or target is None:
            return unknown
        if name == "type_as":
            other = self.fact(target, env)
            dtype = other.dtype if isinstance(other, Tensor) and other.device == operand.device else None
        else:
            dtype = self._dtype_of(target, env)
        if dtype is None:
            return unknown
        gradient: Literal["finite", "none"] = "finite" if dtype.classes <= INEXACT else "none"
        accepts = ANY if dtype.classes <= frozenset({"complex"}) else tensor_ops.REAL
        return self._result(node, operand, dtype, accepts, gradient, view=True)

    def _where(self, node: ast.Call, parts: list[Fact], env: Env) -> Fact:
        condition, first, second = parts
        hazards = [h for part in parts for h in part.hazards]
        tensors = [part for part in parts if isinstance(part, Tensor)]
        if len(tensors) != 3 or not isinstance(first, Tensor) or not isinstance(second, Tensor):
            return replace(self.unknown(fresh=True), hazards=(*hazards, self._may_raise(node)))
        assert isinstance(condition, Tensor)
        both = self._binary(node, "where", first, second)
        hazards = [*hazards, *both.hazards, *self._needs(node, condition.dtype, BOOL)]
        hazards += self._together(node, both.device, condition.device)
        shape = _broadcast(both.shape, condition.shape)
        if isinstance(shape, tuple) and shape[0] == "broadcast":
            hazards.append(self._may_raise(node))
        return replace(both, shape=shape, hazards=tuple(dict.fromkeys(hazards)))

    def _binary(self, node: ast.expr, name: str, left: Tensor | Number, right: Tensor | Number) -> Tensor:
        """An elementwise operation on two operands, one of them a tensor at least."""
        hazards = [*left.hazards, *right.hazards]
        tensors = [side for side in (left, right) if isinstance(side, Tensor)]
        shape, device, layout = tensors[0].shape, tensors[0].device, _dense(tensors[0].layout)
        if len(tensors) == 2:
            layout = _laid_out(tensors[0], tensors[1])
            shape = _broadcast(shape, tensors[1].shape)
            if isinstance(shape, tuple) and shape[0] == "broadcast":
                hazards.append(Hazard("raise", f"the shapes in `{self.text(node)}` may not go together"))
            hazards += self._together(node, device, tensors[1].device)
            device = device if device == tensors[1].device else ("either", frozenset({device, tensors[1].device}))
            dtype = _promoted(tensors[0], tensors[1])
        else:
            number = left if isinstance(left, Number) else right
            assert isinstance(number, Number)
            hazards += self._number_doubt(node, number)
            too_large = number.type == "int" and number.constant is not None and abs(number.constant) >= 2.0**63
            if too_large or (name == "sub" and number.type == "bool"):
                hazards.append(self._may_raise(node))
            dtype = self._with_number(tensors[0].dtype, number)
        if name == "div":
            dtype = self._inexact(dtype)
        if name == "sub" and any("bool" in self._classes(side.dtype) for side in tensors):
            hazards.append(self._refused(node, node, ANY - BOOL))
        if name in ("pow", "floordiv", "mod", "matmult", "lshift", "rshift"):
            hazards.append(self._may_raise(node))
        if name in ("bitand", "bitor", "bitxor"):
            hazards += [h for side in tensors for h in self._needs(node, side.dtype, BOOL | INT)]
        flows = bool(dtype.classes & INEXACT) and name != "compare"
        culprit = next((side.culprit for side in tensors if side.culprit), "") or self._culprit(node, name, left, right)
        roots = frozenset[Key]().union(*(side.roots for side in tensors)) if flows else frozenset[Key]()
        made = ("made", next(self._numbers))
        return Tensor(shape, dtype, device, layout, made, True, roots, culprit if flows else "", tuple(hazards))

    def _culprit(self, node: ast.expr, name: str, left: Tensor | Number, right: Tensor | Number) -> str:
        """The operation if its derivative may be infinite: a product has the other factor as its derivative."""
        if name in ("add", "sub", "maximum", "minimum", "where", "compare"):
            return ""
        number = right if isinstance(right, Number) else left if isinstance(left, Number) and name == "mul" else None
        if number is not None and number.constant is not None and name in ("mul", "div"):
            size = abs(number.constant)
            if (name == "mul" and size <= HALF_MAX) or (name == "div" and 1 / HALF_MAX <= size <= HALF_MAX):
                return ""
        return self.text(node)

    # -- conditions --------------------------------------------------------------------------------------------

    def _classes(self, dtype: Dtype) -> frozenset[DtypeClass]:
        return dtype.classes & self.implied.get(dtype.key, ANY)

    def _note(self, dtype: Dtype, classes: frozenset[DtypeClass]) -> None:
        self.implied[dtype.key] = self.implied.get(dtype.key, ANY) & classes
        derived = isinstance(dtype.key, tuple) and dtype.key[0] in ("inexact", "int", "sum")
        if derived and "complex" not in classes:  # only complex numbers make complex ones
            self._note(Dtype(dtype.key[1]), tensor_ops.REAL)  # type: ignore[index]

    def _inexact(self, dtype: Dtype) -> Dtype:
        """Integers and bools become the default dtype."""
        if self._classes(dtype) <= INEXACT:
            return dtype
        base = dtype.key[1] if isinstance(dtype.key, tuple) and dtype.key[0] == "int" else dtype.key
        return Dtype(("inexact", base), (dtype.classes & INEXACT) | FLOAT)

    def _with_number(self, dtype: Dtype, number: Number) -> Dtype:
        """The dtype of a tensor with a Python number.

        Where a float is expected, Python takes an int as well, and a bool where an int is.
        """
        classes = self._classes(dtype)
        if classes <= INEXACT or (number.type in ("int", "bool") and "bool" not in classes):
            return dtype
        exact = number.constant is not None or number.within is not None
        if number.type == "float" and exact:
            return self._inexact(dtype)
        if number.type == "int" and exact:
            return Dtype(("int", dtype.key), classes - BOOL | INT)
        return Dtype(("of", next(self._numbers)))

    def _needs(self, node: ast.expr, dtype: Dtype, accepts: frozenset[DtypeClass]) -> list[Hazard]:
        if self._classes(dtype) <= accepts:
            return []
        if self.certain:
            self._note(dtype, accepts)
        return [self._refused(node, node, accepts)]

    def _refused(self, node: ast.expr, about: ast.expr, accepts: frozenset[DtypeClass]) -> Hazard:
        """An operation that raises unless the tensors in `about` hold what it accepts."""
        kinds = "booleans" if accepts <= BOOL | INT else "real numbers"
        if accepts <= FLOAT:
            kinds = "floating-point numbers"
        elif accepts == ANY - BOOL:
            kinds = "numbers"
        names = dict.fromkeys(n.id for n in ast.walk(about) if isinstance(n, ast.Name) and not self._is_module(n))
        subject = " and ".join(f"`{name}`" for name in names) or f"`{self.text(about)}`"
        return Hazard(
            "raise", f"`{self.text(node)}` may raise", f"{subject} {'hold' if len(names) > 1 else 'holds'} {kinds}"
        )

    def _is_module(self, node: ast.Name) -> bool:
        return self.bindings.qualified(node, self.scope) is not None

    def _fits(self, node: ast.expr, value: ast.expr, fact: Fact, dtype: Dtype) -> list[Hazard]:
        """What a number does that has to be turned into a dtype."""
        if not isinstance(fact, Number):
            return [*fact.hazards, self._may_raise(node)]
        constant = fact.constant
        everywhere = constant is not None and 0 <= constant <= tensor_ops.INT8_MAX and constant == int(constant)
        in_half = constant is not None and (abs(constant) <= HALF_MAX or abs(constant) == float("inf"))
        if fact.within == dtype.key or everywhere or (in_half and self._classes(dtype) <= FLOAT):
            return list(fact.hazards)
        text = self.text(value)
        return [
            *fact.hazards,
            Hazard("raise", f"`{self.text(node)}` may raise", f"the tensor's dtype can hold `{text}`"),
        ]

    def _together(self, node: ast.expr, first: Key, second: Key) -> list[Hazard]:
        if first == second:
            return []
        return [Hazard("raise", f"`{self.text(node)}` may raise", f"all in `{self.text(node)}` is on one device")]

    def _may_raise(self, node: ast.expr) -> Hazard:
        return Hazard("raise", f"`{self.text(node)}` may raise")


def _is_empty(args: list[ast.expr]) -> bool:
    """Whether the first argument is `[]` or `()`: no dimensions."""
    return bool(args) and isinstance(args[0], (ast.List, ast.Tuple)) and not args[0].elts


def _as_float(value: float) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _converted(value: object) -> Fact:
    """`float("inf")` and the like."""
    try:
        return Number("float", float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return Other((Hazard("raise", "a conversion may raise"),))


def _folded(operator: ast.operator, left: Number, right: Number) -> float | None:
    if left.constant is None or right.constant is None:
        return None
    if isinstance(operator, ast.Add):
        return left.constant + right.constant
    if isinstance(operator, ast.Sub):
        return left.constant - right.constant
    if isinstance(operator, ast.Mult):
        return left.constant * right.constant
    return left.constant / right.constant if isinstance(operator, ast.Div) and right.constant else None


def _other_end(end: Literal["max", "min", ""]) -> Literal["max", "min", ""]:
    return "min" if end == "max" else "max" if end == "min" else ""


def _still_within(operator: ast.operator, left: Number, right: Number) -> Key:
    """The dtype that holds the result: an end of its range moved inwards, or a number in it made smaller in size."""
    if left.within is not None and right.constant is not None:
        step = right.constant
        from_max, from_min = left.end == "max", left.end == "min"
        inwards = (from_max and isinstance(operator, ast.Sub)) or (from_min and isinstance(operator, ast.Add))
        if inwards and 0 <= step <= HALF_MAX:
            return left.within
        if isinstance(operator, ast.Mult) and abs(step) <= 1:
            return left.within
        return left.within if isinstance(operator, ast.Div) and abs(step) >= 1 else None
    scaled = isinstance(operator, ast.Mult) and left.constant is not None and abs(left.constant) <= 1
    return right.within if scaled else None


def _dense(layout: Key) -> Key:
    """How the result of an elementwise operation lies in memory: as its operand, without gaps and repetitions."""
    return layout if isinstance(layout, tuple) and layout[0] in ("dense", "contiguous") else ("dense", layout)


def _laid_out(left: Tensor, right: Tensor) -> Key:
    if right.shape == SCALAR or left.layout == right.layout:
        return _dense(left.layout)
    if left.shape == SCALAR:
        return _dense(right.layout)
    first, second = _dense(left.layout), _dense(right.layout)
    return first if first == second and left.shape == right.shape else ("dense", ("mixed", left.layout, right.layout))


def _promoted(left: Tensor, right: Tensor) -> Dtype:
    if left.dtype.key == right.dtype.key:
        return left.dtype
    classes = INEXACT if left.dtype.classes <= INEXACT or right.dtype.classes <= INEXACT else ANY
    if left.dtype.classes <= FLOAT and right.dtype.classes <= FLOAT:
        classes = FLOAT
    return Dtype(("promoted", frozenset({(t.dtype.key, t.shape) for t in (left, right)})), classes)


def _broadcast(left: Key, right: Key) -> Key:
    if left == right or right == SCALAR:
        return left
    if left == SCALAR or (isinstance(left, tuple) and left[0] == "kept" and left[1] == right):
        return right
    if isinstance(right, tuple) and right[0] == "kept" and right[1] == left:
        return left
    return ("broadcast", frozenset({left, right}))


def _kept_dimension(rest: list[ast.expr], keywords: dict[str | None, ast.expr]) -> int | None:
    """The dimension that a reduction keeps with size one, where it is the first or the last: those any tensor has."""
    given = dict(zip(("dim", "keepdim"), rest, strict=False)) | {str(name): value for name, value in keywords.items()}
    if given.keys() != {"dim", "keepdim"} or len(rest) > 2:
        return None
    try:
        dim, keep = ast.literal_eval(given["dim"]), ast.literal_eval(given["keepdim"])
    except ValueError:
        return None
    return dim if keep is True and dim in (0, -1) and not isinstance(dim, bool) else None
