"""Effects: what evaluating an expression can do besides giving a value."""

from __future__ import annotations

import ast

from graphmend_lint.analysis.values import Env, Value, Values

#: Tensor methods and torch functions that give a value for every tensor: no shape, dtype or element makes them raise.
TOTAL_TENSOR_OPERATIONS = frozenset(
    {"all", "any", "detach", "dim", "isfinite", "isinf", "isnan", "numel", "size", "sum"}
)
#: Attributes that every tensor gives without a word (`.mT` and `.imag` raise for some, `.T` warns).
TOTAL_TENSOR_ATTRIBUTES = frozenset(
    {"device", "dtype", "is_cuda", "itemsize", "layout", "nbytes", "ndim", "requires_grad", "shape"}
)
_TOTAL_OPERATORS = (ast.Add, ast.Sub, ast.Mult)


def is_total(node: ast.expr, values: Values, env: Env) -> bool:
    """Whether evaluating an expression cannot raise, change anything or draw random numbers.

    Asked of what moves from "sometimes evaluated" to "always evaluated". Attributes are total where the object is
    known not to be None, arithmetic where at most one side is a tensor (two tensors may not broadcast).
    """
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Name):
        value = values.of(node, dict(env))
        return value.kind in ("static", "tensor") and not value.unbound
    if isinstance(node, ast.Attribute):
        owner = values.of(node.value, dict(env))
        given = owner.kind != "tensor" or node.attr in TOTAL_TENSOR_ATTRIBUTES
        return given and _is_present(owner) and is_total(node.value, values, env)
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(is_total(element, values, env) for element in node.elts)
    if isinstance(node, ast.JoinedStr):
        return all(is_total(field, values, env) for part in node.values for field in text_fields(part))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, (int, float, complex))
    if isinstance(node, ast.BinOp):
        return _is_total_operation(node, values, env)
    return isinstance(node, ast.Call) and _is_total_call(node, values, env)


def _is_present(value: Value) -> bool:
    """Whether reading an attribute of the value that its type has cannot fail."""
    known = value.kind == "tensor" and value.type != "tuple"
    return not value.optional and (known or value.type in ("self", "config", "size", "class", "dtype", "device"))


def _is_total_operation(node: ast.BinOp, values: Values, env: Env) -> bool:
    if isinstance(node.op, ast.Mod) and is_text(node.left):
        return is_total(node.right, values, env)
    sides = [values.of(side, dict(env)) for side in (node.left, node.right)]
    numbers = [side.type in ("int", "float") for side in sides]
    one_tensor = [side.kind == "tensor" and side.type != "tuple" and not side.optional for side in sides]
    simple = all(numbers) or (any(numbers) and any(one_tensor))
    return (
        simple
        and isinstance(node.op, _TOTAL_OPERATORS)
        and all(is_total(side, values, env) for side in (node.left, node.right))
    )


def _is_total_call(node: ast.Call, values: Values, env: Env) -> bool:
    if is_text_format(node):
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        return all(is_total(part, values, env) for part in parts)
    if node.keywords:
        return False
    name = values.bindings.qualified(node.func, values.scope)
    if name == "builtins.tuple" and len(node.args) == 1:
        size = values.of(node.args[0], dict(env))
        return size.type == "size" and not size.optional and is_total(node.args[0], values, env)
    if name is not None:
        module, _, last = name.rpartition(".")
        if module != "torch" or last not in TOTAL_TENSOR_OPERATIONS or len(node.args) != 1:
            return False
        receiver = node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr in TOTAL_TENSOR_OPERATIONS and not node.args:
        receiver = node.func.value
    else:
        return False
    value = values.of(receiver, dict(env))
    return value.kind == "tensor" and _is_present(value) and is_total(receiver, values, env)


def text_fields(part: ast.expr) -> list[ast.expr]:
    """The expressions in a piece of an f-string, those in format specs included."""
    if not isinstance(part, ast.FormattedValue):
        return []
    spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
    return [part.value, *(field for inner in spec for field in text_fields(inner))]


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a string literal."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_text_format(node: ast.Call) -> bool:
    """Whether a call is `"...".format(...)` of a string literal."""
    return isinstance(node.func, ast.Attribute) and node.func.attr == "format" and is_text(node.func.value)
