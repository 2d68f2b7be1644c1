"""Disguise: a test of a tensor that was made of sizes, which Python knows, a moment ago.

    height, width = x.shape                             height, width = x.shape
    sizes = torch.tensor([height * width, 1])           sizes = torch.tensor([height * width, 1])
    if sizes.sum() != y.numel():                  ->    if sum([height * width, 1]) != y.numel():
        raise ValueError("sizes")                           raise ValueError("sizes")

Python's own test costs neither a graph break nor a synchronisation. What makes the fix safe: the numbers are made of
sizes and small constants, so that int64 holds them and their sum; the tensor is made in front of the test, in the same
block; and between the two nothing is done with it, with the list that it is made of or with the names in that, but for
tests like this one.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphmend_lint.analysis.values import Env, Point
from graphmend_lint.findings import Built, Edit, Piece
from graphmend_lint.transforms.checks import Checks

_MAKERS = frozenset({"torch.tensor", "torch.as_tensor"})
#: Whole reductions of integers that Python has under the same name.
_REDUCTIONS = frozenset({"max", "min", "sum"})
#: Constants below it add up to less than int64 holds.
_LARGEST = 2**31
#: What a product may consist of: constants that make less than this, and so many sizes.
_LARGEST_FACTOR = 2**12
_MOST_SIZES = 2
#: Statements that do nothing but bind names, look at values and raise.
_PLAIN = (ast.Assign, ast.AnnAssign, ast.If, ast.Raise, ast.Expr, ast.Pass)


@dataclass(frozen=True, slots=True)
class Disguise:
    """A test is made of the numbers of line `line`; `edit` tests those, where that is shown to be the same."""

    line: int
    edit: Edit | None


def find(function: Checks, test: ast.expr, point: Point) -> Disguise | None:
    """What a test of tensor data is made of, if that is numbers that are known while tracing."""
    env = dict(point.env)
    makers = [_maker(function, node, env) for node in _tensors(function, test, env)]
    if not makers or makers[0] is None or None in makers:
        return None
    return Disguise(makers[0].lineno, _edit(function, test, point))


def _tensors(function: Checks, node: ast.expr, env: Env) -> Iterator[ast.expr]:
    """The names, attributes and new tensors that a test takes its tensors from."""
    if function.values.of(node, dict(env)).kind == "static":
        return
    if isinstance(node, (ast.Name, ast.Attribute)) or _makes(function, node):
        yield node
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.Attribute) and isinstance(node, ast.Call) and part is node.func:
            if function.facts.bindings.qualified(part, function.scope) is None:
                yield from _tensors(function, part.value, env)
        elif isinstance(part, ast.expr):
            yield from _tensors(function, part, env)


def _makes(function: Checks, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and function.facts.bindings.qualified(node.func, function.scope) in _MAKERS


def _maker(function: Checks, node: ast.expr, env: Env) -> ast.Call | None:
    """The call that made a tensor of numbers that are known while tracing."""
    if isinstance(node, ast.Name):
        binding = _only_binding(function, node.id)
        node = binding.value if binding is not None else node
    if not isinstance(node, ast.Call) or not _makes(function, node) or not node.args:
        return None
    return node if function.values.of(node.args[0], dict(env)).kind == "static" else None


def _only_binding(function: Checks, name: str) -> ast.Assign | None:
    """The assignment that alone, in all of the function, gives a name its value, or a part of that."""
    stores = [
        node
        for node in ast.walk(function.scope.node)
        if (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == name)
        or name in (getattr(node, "name", None), getattr(node, "asname", None), getattr(node, "rest", None))
    ]
    bindings = (
        [
            node
            for node in _own_nodes(function.scope.node)
            if isinstance(node, ast.Assign) and stores[0] in ast.walk(node)
        ]
        if len(stores) == 1
        else []
    )
    found = bindings[0] if len(bindings) == 1 and len(bindings[0].targets) == 1 else None
    return found if found is not None and stores[0] in _flat(found.targets[0]) else None


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, those of functions and classes in it left out."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
            yield from _own_nodes(child)


def _flat(target: ast.expr) -> Sequence[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]


# -- the fix -----------------------------------------------------------------------------------------------------------


def _edit(function: Checks, test: ast.expr, point: Point) -> Edit | None:
    """The reduction in a comparison with an int, as one of Python's own."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    for side, other in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        reduced = _reduced(function, side)
        if reduced is None or not _is_int(function, other, dict(point.env)):
            continue
        name, tensor = reduced
        numbers = _numbers(function, tensor, point)
        if numbers is None or function.facts.bindings.qualified(ast.Name(name), function.scope) != f"builtins.{name}":
            return None
        parts: tuple[Piece, ...] = (function.facts.source.span(numbers),)
        return Edit("choose", function.facts.source.span(side), name, value=Built("call", parts))
    return None


def _is_int(function: Checks, node: ast.expr, env: Env) -> bool:
    value = function.values.of(node, env)
    return value.kind == "static" and value.type == "int" and not value.optional and not value.unbound


def _reduced(function: Checks, node: ast.expr) -> tuple[str, ast.expr] | None:
    """The name of the reduction and the tensor of `t.sum()` or `torch.sum(t)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    name = function.facts.bindings.qualified(node.func, function.scope)
    if name is not None:
        module, _, last = name.rpartition(".")
        return (last, node.args[0]) if module == "torch" and last in _REDUCTIONS and len(node.args) == 1 else None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _REDUCTIONS and not node.args:
        return node.func.attr, node.func.value
    return None


def _numbers(function: Checks, tensor: ast.expr, point: Point) -> ast.expr | None:
    """The list of ints that a tensor is made of, as it can be written down once more at `point`."""
    made: ast.stmt = point.statement
    if isinstance(tensor, ast.Name):
        binding = _only_binding(function, tensor.id)
        if binding is None or binding.targets[0] not in _names_of(tensor.id, binding):
            return None
        made, maker = binding, binding.value
    else:
        maker = tensor
    if not isinstance(maker, ast.Call) or not _makes(function, maker) or len(maker.args) != 1:
        return None
    if not all(keyword.arg == "device" and _is_device(keyword.value) for keyword in maker.keywords):
        return None
    given = maker.args[0]
    listed, first = given, made
    if isinstance(given, ast.Name):
        filled = _only_binding(function, given.id)
        if filled is None or filled.targets[0] not in _names_of(given.id, filled) or _reads(function, given.id) > 1:
            return None
        listed, first = filled.value, filled
    if not isinstance(listed, (ast.List, ast.Tuple)) or not listed.elts:
        return None
    if not all(_is_size(function, element) for element in listed.elts):
        return None
    tensor_name = {tensor.id} if isinstance(tensor, ast.Name) else set()
    names = {n.id for n in ast.walk(listed) if isinstance(n, ast.Name)} if listed is given else set()
    return given if _is_calm_between(function, first, made, point, tensor_name, names) else None


def _is_device(node: ast.expr) -> bool:
    """Whether a device is spelled out, or is that of a tensor."""
    if isinstance(node, ast.Attribute):
        return node.attr == "device" and isinstance(node.value, ast.Name)
    return isinstance(node, ast.Constant)


def _names_of(name: str, binding: ast.Assign) -> list[ast.expr]:
    """The target of an assignment if that is the name alone."""
    return [target for target in binding.targets if isinstance(target, ast.Name) and target.id == name]


def _reads(function: Checks, name: str) -> int:
    nodes = (node for node in ast.walk(function.scope.node) if isinstance(node, ast.Name) and node.id == name)
    return sum(isinstance(node.ctx, ast.Load) for node in nodes)


def _is_size(function: Checks, node: ast.expr) -> bool:
    """Whether an expression is made of the sizes of tensors and of small constants, and cannot be large."""
    factors = list(_factors(node))
    if len(factors) > 1:
        values = [factor.value for factor in factors if isinstance(factor, ast.Constant)]
        constants = [value for value in values if type(value) is int]
        if len(constants) < len(values) or abs(math.prod(constants)) >= _LARGEST_FACTOR:
            return False
        if len(factors) - len(constants) > _MOST_SIZES:
            return False
        return all(_is_size(function, factor) for factor in factors)
    if isinstance(node, ast.Constant):
        return type(node.value) is int and abs(node.value) < _LARGEST
    if isinstance(node, ast.BinOp):
        both = _is_size(function, node.left) and _is_size(function, node.right)
        return both and isinstance(node.op, (ast.Add, ast.Sub))
    if isinstance(node, ast.Subscript):
        return (
            isinstance(node.slice, ast.Constant) and type(node.slice.value) is int and _is_shape(function, node.value)
        )
    binding = _only_binding(function, node.id) if isinstance(node, ast.Name) else None
    if binding is None:
        return False
    if isinstance(binding.targets[0], ast.Tuple):
        return _is_shape(function, binding.value)
    # A product in a name counts as one size here: it may not be a factor again.
    return _is_size(function, binding.value) and not isinstance(binding.value, ast.BinOp)


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """The factors of a product; the node itself where it is none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node


def _is_shape(function: Checks, node: ast.expr) -> bool:
    """Whether an expression is `x.shape` of a tensor."""
    if not isinstance(node, ast.Attribute) or node.attr != "shape" or not isinstance(node.value, ast.Name):
        return False
    return function.values.of(node, dict(function.parameters)).type == "size"


def _is_calm_between(
    function: Checks, first: ast.stmt, made: ast.stmt, point: Point, tensor: set[str], names: set[str]
) -> bool:
    """Whether from `first` to the test, all in one block, nothing happens to the tensor, and nothing to `names`.

    Sizes that are read once more, in a list that stands in the call itself, must not change either: then nothing may
    stand between but what binds other names.
    """
    places = {id(statement): index for index, statement in enumerate(point.block)}
    if any(id(statement) not in places for statement in (first, made, point.statement)):
        return False
    start, end = places[id(first)], places[id(point.statement)]
    if start > end:
        return False
    between = [statement for statement in point.block[start + 1 : end] if statement is not made]
    nodes = [node for statement in between for node in ast.walk(statement)]
    if any(isinstance(node, ast.stmt) and not isinstance(node, _PLAIN) for node in nodes):
        return False
    if any(isinstance(node, ast.Name) and node.id in names and not isinstance(node.ctx, ast.Load) for node in nodes):
        return False
    if any(isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) for node in nodes):
        return False
    if any(isinstance(node, ast.Call) and not _only_looks(function, node) for node in nodes):
        return False
    reduced = (_reduced(function, node) for node in nodes if isinstance(node, ast.Call))
    looked_at = [pair[1] for pair in reduced if pair is not None]
    uses = (node for node in nodes if isinstance(node, ast.Name) and node.id in tensor)
    return all(node in looked_at for node in uses)


def _only_looks(function: Checks, node: ast.Call) -> bool:
    """Whether a call makes a tensor, reduces one, or makes an exception: it runs nothing else, and changes nothing."""
    if _makes(function, node) or _reduced(function, node) is not None:
        return True
    name = function.facts.bindings.qualified(node.func, function.scope) or ""
    return name.startswith("builtins.") and name.endswith(("Error", "Exception"))
