"""Uses of a name: whether it is read later, and whether something else gets hold of the tensor in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from graphmend_lint.analysis import torch_facts
from graphmend_lint.analysis.summary import blocks
from graphmend_lint.analysis.values import TRY_STATEMENTS

Seen = Literal["read", "written", "neither"]

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: What reads names at another time than where it stands.
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)
_METADATA = frozenset({"shape", "dtype", "device", "ndim", "is_cuda", "requires_grad"})

#: Calls of torch's own: `known(call)` says that a call keeps neither its arguments nor what its method belongs to.
Known = Callable[[ast.Call], bool]


def loads(node: ast.AST, name: str) -> bool:
    """Whether a name is read in a node, functions in it included."""
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(node))


def stores(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in ast.walk(node))


@dataclass(frozen=True, slots=True)
class Place:
    """A statement in a function: the list that it stands in, what is around it (innermost last), and the body."""

    statement: ast.stmt
    block: Sequence[ast.stmt]
    around: tuple[ast.stmt, ...]
    body: Sequence[ast.stmt]

    def following(self) -> Iterator[tuple[ast.stmt | None, Sequence[ast.stmt]]]:
        """What runs after the statement, from the inside out: a statement around it that is left, and what follows."""
        yield None, _rest(self.block, self.statement)
        for around in reversed(self.around):
            yield around, _rest(self._block_of(around), around)

    def up_to_here(self) -> Iterator[tuple[ast.stmt, Sequence[ast.stmt]]]:
        """The statement and its list, then the `if` that this list is an arm of with its own list, and so on."""
        yield self.statement, self.block
        for around in reversed(self.around):
            if not isinstance(around, ast.If):
                return
            yield around, self._block_of(around)

    def _block_of(self, statement: ast.stmt) -> Sequence[ast.stmt]:
        holders = [*self.around]
        blocks_of = [self.body, *(block for holder in holders for block in blocks(holder))]
        return next(block for block in blocks_of if any(other is statement for other in block))


def is_live_after(name: str, place: Place) -> bool:
    """Whether the value that a name has after the statement may be read, by a function in this one too."""
    if any(isinstance(n, _DEFINITIONS) and loads(n, name) for statement in place.body for n in ast.walk(statement)):
        return True
    for left, following in place.following():
        if isinstance(left, TRY_STATEMENTS) and loads(left, name):
            return True
        if isinstance(left, _LOOPS):
            head = left.test if isinstance(left, ast.While) else left.iter
            if loads(head, name) or "read" in (_first_use(left.body, name), _first_use(left.orelse, name)):
                return True
        seen = _first_use(following, name)
        if seen != "neither":
            return seen == "read"
    return False


def _rest(block: Sequence[ast.stmt], statement: ast.stmt) -> Sequence[ast.stmt]:
    index = next(i for i, other in enumerate(block) if other is statement)
    return block[index + 1 :]


def _first_use(statements: Sequence[ast.stmt], name: str) -> Seen:
    """What happens to a name first when the statements run; "read" where that is possible."""
    for statement in statements:
        seen = _use(statement, name)
        if seen != "neither":
            return seen
    return "neither"


def _use(statement: ast.stmt, name: str) -> Seen:
    if isinstance(statement, ast.If):
        if loads(statement.test, name):
            return "read"
        arms = (_first_use(statement.body, name), _first_use(statement.orelse, name))
        return "read" if "read" in arms else "written" if set(arms) == {"written"} else "neither"
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        # an exception in it may end here
        inside = any(loads(item, name) for item in statement.items) or _first_use(statement.body, name) == "read"
        return "read" if inside or _leaves(statement) else "neither"
    if isinstance(statement, _LOOPS):
        head = statement.test if isinstance(statement, ast.While) else statement.iter
        blocks = (_first_use(statement.body, name), _first_use(statement.orelse, name))
        return "read" if loads(head, name) or "read" in blocks else "neither"
    if isinstance(statement, (*TRY_STATEMENTS, ast.Match, *_DEFINITIONS)):
        return "read" if loads(statement, name) else "neither"
    if loads(statement, name) or isinstance(statement, ast.Delete):
        return "read" if loads(statement, name) or stores(statement, name) else "neither"
    if isinstance(statement, ast.AugAssign):
        return "read" if isinstance(statement.target, ast.Name) and statement.target.id == name else "neither"
    if isinstance(statement, (ast.Break, ast.Continue)):
        return "read"  # what follows elsewhere is not looked for
    if isinstance(statement, (ast.Return, ast.Raise)):
        return "written"  # the path ends
    bound = isinstance(statement, (ast.Assign, ast.AnnAssign)) and stores(statement, name)
    return "written" if bound else "neither"


def _leaves(statement: ast.stmt) -> bool:
    """Whether a statement may go on at another place than behind itself."""
    return any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(statement))


# -- who else holds the tensor ---------------------------------------------------------------------------------------


def statements_until_rebound(name: str, place: Place) -> Iterator[ast.stmt]:
    """The statements after the place that may see the tensor that the name holds there; loops around it whole."""
    in_loop = any(isinstance(around, _LOOPS) for around in place.around)
    for left, following in place.following():
        if isinstance(left, _LOOPS):
            yield from left.body
        for other in following:
            yield other
            if isinstance(other, (ast.Assign, ast.AnnAssign)) and stores(other, name) and not in_loop:
                return


def binding_before(name: str, place: Place) -> tuple[ast.stmt | None, list[ast.stmt]]:
    """The assignment that gave a name its value on every way to the place, and the statements between the two.

    It is looked for in the list that the place is in, and in those around it as long as they are arms of an `if`.
    """
    between: list[ast.stmt] = []
    for statement, block in place.up_to_here():
        index = next(i for i, other in enumerate(block) if other is statement)
        for other in reversed(block[:index]):
            targets = other.targets if isinstance(other, ast.Assign) else []
            if len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name:
                return other, between
            if stores(other, name):
                return None, between
            between.append(other)
    return None, between


def is_retained(node: ast.AST, name: str, known: Known) -> bool:
    """Whether running `node` may leave something else that refers to the tensor in `name`, or change that tensor."""
    return any(_retains(parents, known) for parents in _places(node, name))


def _places(node: ast.AST, name: str, above: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """Each reading of the name, with the nodes above it, outermost first, itself last."""
    here = (*above, node)
    if isinstance(node, ast.Name) and node.id == name:
        if isinstance(node.ctx, ast.Load) or isinstance(above[-1] if above else None, ast.AugAssign):
            yield here
        return
    for child in ast.iter_child_nodes(node):
        yield from _places(child, name, here)


def _retains(path: tuple[ast.AST, ...], known: Known) -> bool:
    if any(isinstance(part, _DEFINITIONS) for part in path):
        return True
    node, parent = path[-1], path[-2] if len(path) > 1 else None
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.UAdd)  # that gives the tensor itself
    if isinstance(parent, (ast.BinOp, ast.Compare)):
        return isinstance(parent, ast.Compare) and any(isinstance(o, (ast.Is, ast.IsNot)) for o in parent.ops)
    if isinstance(parent, ast.keyword):
        parent = path[-3]
    if isinstance(parent, ast.Call):
        return not known(parent)
    if isinstance(parent, ast.Attribute) and parent.value is node:
        call = path[-3] if len(path) > 2 else None
        if isinstance(call, ast.Call) and call.func is parent:
            return not consumes(torch_facts.method(parent.attr))
        return parent.attr not in _METADATA
    return not (isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)) and parent.test is node)


def consumes(fact: torch_facts.OpFact | None) -> bool:
    """Whether a method only reads its tensor: what it gives does not share memory with it."""
    return fact is not None and not fact.view and not fact.in_place and not fact.in_place_with


def may_change(node: ast.AST, known: Known) -> bool:
    """Whether running `node` may change a tensor that something else refers to: it does so, or calls the unknown."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return changes_in_place(node) or not all(map(known, calls))


def changes_in_place(node: ast.AST) -> bool:
    """Whether running `node` changes a tensor in place, by its form."""
    for part in ast.walk(node):
        if isinstance(part, (ast.AugAssign, ast.Delete)):
            return True
        if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            return True
        if isinstance(part, ast.Call):
            last = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            if last.endswith("_") and not last.endswith("__"):
                return True
            if any(keyword.arg in ("out", "inplace") for keyword in part.keywords):
                return True
    return False
