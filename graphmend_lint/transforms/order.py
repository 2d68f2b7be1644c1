"""Order: what may happen before a check in a graph, and what may not wait for it.

A check that becomes an operator of the graph raises when the graph runs. A graph writes changes back at its end, which
an exception in it does not reach: nothing may have been changed before the check. And a compiler may run what follows
first: nothing that follows may be undefined on the data that the check excludes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from graphmend_lint.analysis.effects import is_text, is_text_format
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.uses import consumes
from graphmend_lint.analysis.values import Env, Point, Walk
from graphmend_lint.findings import Reason
from graphmend_lint.transforms.carry import Carrier, Obstacle, is_reading
from graphmend_lint.transforms.predicate import read_names

#: Operations that are undefined, or crash on a GPU, for some elements of their arguments.
_PARTIAL = frozenset(
    {
        "bincount",
        "cholesky",
        "divmod",
        "embedding",
        "ctc_loss",
        "embedding_bag",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "cross_entropy",
        "nll_loss",
        "floor_divide",
        "fmod",
        "gather",
        "index_add",
        "index_add_",
        "index_copy",
        "index_copy_",
        "index_fill",
        "index_fill_",
        "index_put",
        "index_put_",
        "index_select",
        "inv",
        "inverse",
        "item",
        "masked_scatter",
        "masked_scatter_",
        "multinomial",
        "bernoulli",
        "one_hot",
        "remainder",
        "repeat_interleave",
        "scatter",
        "scatter_",
        "scatter_add",
        "scatter_add_",
        "scatter_reduce",
        "scatter_reduce_",
        "solve",
        "take",
        "take_along_dim",
        "tolist",
    }
)


#: Methods of Python's containers that change them.
_CONTAINER_CHANGES = frozenset(
    {
        "append",
        "appendleft",
        "clear",
        "difference_update",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "intersection_update",
        "move_to_end",
        "pop",
        "popitem",
        "popleft",
        "put",
        "register_buffer",
        "register_parameter",
        "remove",
        "reverse",
        "rotate",
        "setdefault",
        "sort",
        "symmetric_difference_update",
        "update",
    }
)
_DISPLAYS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp)

#: Methods that change the object that they belong to, whatever that is.
_MODES = frozenset({"__delattr__", "__setattr__", "__setitem__", "eval", "requires_grad_", "train"})
#: Functions of Python that change their first argument.
_SETTERS = frozenset({"builtins.delattr", "builtins.next", "builtins.setattr"})

#: Classes of torch.nn whose call changes their buffers in training.
_NORMS = ("BatchNorm", "SyncBatchNorm", "InstanceNorm", "LazyBatchNorm", "LazyInstanceNorm")


class Ordered(Carrier):
    """Answers for the checks of one function."""

    @cached_property
    def parameters(self) -> Env:
        return self.values.parameters()

    def check_order(self, check: ast.stmt, tests: Sequence[ast.expr], point: Point) -> None:
        """Raise `Obstacle` if `check`, which raises depending on `tests`, must keep its place in Python.

        An `else` of an `if` counts as what follows it.
        """
        self._check_what_precedes(tests, point)
        self._check_what_follows(check, tests, point)

    def _check_what_follows(self, check: ast.stmt, tests: Sequence[ast.expr], point: Point) -> None:
        tested = self._related({name for test in tests for name in _read(test)})
        for part in self._after(check, point):
            if self._is_partial(part) and tested.intersection(_read(part)):
                raise Obstacle(Reason.GUARD_PROTECTS, f"line {part.lineno} relies on the guard")

    def _related(self, names: set[str]) -> set[str]:
        """The names whose values depend on those of `names`, or the other way round, by the function's assignments."""
        binders = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.withitem)
        nodes = (node for node in ast.walk(self.scope.node) if isinstance(node, binders))
        ties = [{name for part in _header_parts(node) for name in _read(part)} for node in nodes]
        related, size = set(names), 0
        while size != len(related):
            size = len(related)
            for tie in ties:
                if tie & related:
                    related |= tie
        return related

    def _check_what_precedes(self, tests: Sequence[ast.expr], point: Point) -> None:
        loop = _outer_loop(point)
        last = loop.end_lineno if loop else max((test.end_lineno or test.lineno for test in tests), default=0)
        for node in ast.walk(self.scope.node):
            if isinstance(node, (ast.stmt, ast.expr)) and node.lineno <= (last or 0) and self._changes(node):
                raise Obstacle(Reason.GUARD_AFTER_CHANGE, f"line {node.lineno} changes something before the guard")

    def _changes(self, node: ast.AST) -> bool:
        """Whether a node changes what is seen outside of the function: not what the function made itself."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return not isinstance(node.ctx, ast.Load) and not self._is_own(node.value)
        if isinstance(node, ast.AugAssign):
            return isinstance(node.target, ast.Name) and not self._is_own(node.target)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return True
        if not isinstance(node, ast.Call):
            return False
        name = self.facts.bindings.qualified(node.func, self.scope)
        changed = self._changed(node)
        in_place = changed is not None and not self._is_own(changed)
        if name in _SETTERS or (isinstance(node.func, ast.Attribute) and node.func.attr in _MODES):
            return True
        into = any(keyword.arg == "out" and not self._is_own(keyword.value) for keyword in node.keywords)
        if any(keyword.arg == "inplace" and not _is_false(keyword.value) for keyword in node.keywords):
            return not node.args or not self._is_own(node.args[0])
        return in_place or into or self._changes_container(node.func) or self._counts_batches(node.func, name or "")

    def _changed(self, call: ast.Call) -> ast.expr | None:
        """The tensor that an in-place operation changes."""
        fact = self.torch_fact(call)
        if fact is None or not fact.in_place:
            return None
        method = self.facts.bindings.qualified(call.func, self.scope) is None
        if method and isinstance(call.func, ast.Attribute):
            return call.func.value
        return call.args[0] if call.args else call

    def _is_own(self, node: ast.expr) -> bool:
        """Whether a name holds what this function made: a new tensor, a number."""
        if not isinstance(node, ast.Name) or node.id in {
            n.arg for n in ast.walk(self.scope.node) if isinstance(n, ast.arg)
        }:
            return False
        stores = sum(
            isinstance(n, ast.Name) and n.id == node.id and not isinstance(n.ctx, ast.Load)
            for n in ast.walk(self.scope.node)
        )
        made = [n for n in ast.walk(self.scope.node) if isinstance(n, ast.Assign) and _is_name(n.targets, node.id)]
        grown = [n for n in ast.walk(self.scope.node) if isinstance(n, ast.AugAssign) and _is_name([n.target], node.id)]
        return bool(made) and stores == len(made) + len(grown) and all(self._is_new(n.value) for n in made)

    def _is_new(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            out = any(keyword.arg == "out" for keyword in node.keywords)
            return not out and consumes(self.torch_fact(node))
        return isinstance(node, (ast.BinOp, ast.Compare, ast.Constant))

    def _changes_container(self, func: ast.expr) -> bool:
        """Whether a method changes a list, dict or set that this function did not make itself."""
        if not isinstance(func, ast.Attribute):
            return False
        if func.attr == "add":  # a set's, unless a tensor's
            return isinstance(func.value, (ast.Attribute, ast.Name)) and self._is_set(func.value)
        if func.attr not in _CONTAINER_CHANGES:
            return False
        if not isinstance(func.value, ast.Name):
            return True
        targets = (n for n in ast.walk(self.scope.node) if isinstance(n, ast.Assign) and _binds(n, func.value.id))
        made = [isinstance(n.value, _DISPLAYS) for n in targets]
        arguments = {n.arg for n in ast.walk(self.scope.node.args) if isinstance(n, ast.arg)}
        return func.value.id in arguments or not made or not all(made)

    def _is_set(self, node: ast.expr) -> bool:
        """Whether an attribute, or a name that is not the function's own, is not known to hold a tensor."""
        local = isinstance(node, ast.Name) and node.id in self.scope.local
        return not local and self.values.of(node, dict(self.parameters)).kind != "tensor"

    def _counts_batches(self, func: ast.expr, name: str) -> bool:
        """Whether a call keeps running statistics."""
        held = self.values.of(func, dict(self.parameters)).type.rpartition(".")[2]
        return held.startswith(_NORMS) or name.rpartition(".")[2] in ("batch_norm", "instance_norm")

    def _after(self, check: ast.stmt, point: Point) -> Iterator[ast.expr]:
        """Expressions that may be computed after the check: the later ones of the function, all of a loop around it."""
        loop = _outer_loop(point)
        own = check.body if isinstance(check, ast.If) else [check]
        first = loop.lineno if loop else (own[-1].end_lineno or check.lineno) + 1
        inside = {node for statement in own for node in ast.walk(statement)}
        # A number that is only compared, or shown where something fails, sizes or indexes nothing.
        comparisons = (node for node in ast.walk(self.scope.node) if isinstance(node, ast.Compare))
        inside.update(side for comparison in comparisons for side in _sides(comparison))
        inside.update(node for message in _messages(self.scope.node) for node in ast.walk(message) if _reads(node))
        for node in ast.walk(self.scope.node):
            if isinstance(node, ast.expr) and node.lineno >= first and node not in inside:
                yield node

    def _is_partial(self, part: ast.expr) -> bool:
        if isinstance(part, ast.Call):
            last = (dotted(part.func) or "").rpartition(".")[2]
            method = part.func.attr if isinstance(part.func, ast.Attribute) else last
            rounds = any(keyword.arg == "rounding_mode" for keyword in part.keywords)
            return (method in _PARTIAL or rounds) and not is_text_format(part)
        if isinstance(part, ast.BinOp):
            return part in self._divisions
        return isinstance(part, ast.Subscript) and not _is_plain_index(part.slice)

    @cached_property
    def _divisions(self) -> set[ast.BinOp]:
        """The divisions of tensors that raise for a zero where these hold integers."""
        found: set[ast.BinOp] = set()
        for point in Walk(self.values).points():
            headers = (part for part in ast.iter_child_nodes(point.statement) if isinstance(part, ast.expr))
            nodes = (node for header in headers for node in ast.walk(header))
            divisions = (node for node in nodes if isinstance(node, ast.BinOp) and _divides(node))
            found.update(node for node in divisions if self.values.of(node, dict(point.env)).kind != "static")
        return found


def _header_parts(node: ast.AST) -> Iterator[ast.expr]:
    """The names and attributes in an assignment, or in the head of a `for` or `with`, without functions called."""
    parts = [node.target, node.iter] if isinstance(node, ast.For) else [node]
    stack: list[ast.AST] = list(parts)
    while stack:
        part = stack.pop()
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield part
        elif isinstance(part, ast.Call) and dotted(part.func) and "." not in (dotted(part.func) or ""):
            stack.extend([*part.args, *part.keywords])
        else:
            stack.extend(ast.iter_child_nodes(part))


def _read(node: ast.AST) -> Iterator[str]:
    """The names that a node reads; of `self`, its attributes (`self.x`)."""
    return (name for name in read_names(node) if name != "self" and ("." not in name or name.startswith("self.")))


def _messages(function: ast.AST) -> Iterator[ast.AST]:
    """What is computed only when an exception is raised."""
    for node in ast.walk(function):
        if isinstance(node, ast.Raise):
            yield node
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield node.msg


def _reads(node: ast.AST) -> bool:
    return isinstance(node, ast.expr) and is_reading(node)


def _divides(node: ast.BinOp) -> bool:
    return isinstance(node.op, (ast.FloorDiv, ast.Mod)) and not is_text(node.left)


def _sides(node: ast.Compare) -> Iterator[ast.expr]:
    """The sides of a comparison that are `t.item()`."""
    for side in (node.left, *node.comparators):
        if isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr == "item":
            yield side


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for target in node.targets for part in ast.walk(target))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _is_name(targets: Sequence[ast.expr], name: str) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name


def _outer_loop(point: Point) -> ast.stmt | None:
    """The outermost loop around a statement."""
    return next((a for a in point.around if isinstance(a, (ast.For, ast.AsyncFor, ast.While))), None)


def _is_plain_index(node: ast.expr) -> bool:
    """Whether a subscript is made of literals, slices, `None` and `...`: it cannot depend on tensor data."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(part, (ast.Constant, ast.Slice, ast.UnaryOp)) for part in parts)
