"""Predicates: the test of a branch as a tensor of one boolean.

A test is a tree of `and`, `or` and `not` over static and tensor parts. Static parts that come first stay Python; the
others become `&`, `|` and `~`. A part that was short-circuited is computed in any case then, so it must be harmless.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from graphmend_lint.analysis.source import Source
from graphmend_lint.analysis.tensor_ops import BOOL, EXACT_LIMIT, FLOAT, INT8_MAX
from graphmend_lint.analysis.tensors import SCALAR, Hazard, Key, Number, Tensor, Tensors
from graphmend_lint.analysis.values import Env
from graphmend_lint.findings import Built, Piece, Reason, Span
from graphmend_lint.transforms.carry import Obstacle


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test in tensor form. `negated`: the branch is taken where the piece is false. `devices` of its parts."""

    piece: Piece
    negated: bool
    reads: frozenset[str]
    devices: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Split:
    """A test: the static parts that come first and are joined by `and` to the rest, and that rest."""

    static: Span | None
    static_parts: tuple[ast.expr, ...]
    rest: tuple[ast.expr, ...]


class Predicates:
    """Reads the tests of one function. What a part rests on without proof is handed to `doubt`."""

    def __init__(
        self, tensors: Tensors, source: Source, text: Callable[[ast.expr], str], doubt: Callable[[str], None]
    ) -> None:
        self.tensors, self.source, self.text, self.doubt = tensors, source, text, doubt

    def split(self, test: ast.expr, env: Env) -> Split:
        if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
            return Split(None, (), (test,))
        count = 0
        while count < len(test.values) - 1 and self._is_static(test.values[count], env):
            count += 1
        if not count:
            return Split(None, (), (test,))
        first, last = self.source.span(test.values[0]), self.source.span(test.values[count - 1])
        span = Span(first.line, first.column, last.end_line, last.end_column)
        return Split(span, tuple(test.values[:count]), tuple(test.values[count:]))

    def _is_static(self, node: ast.expr, env: Env) -> bool:
        return self.tensors.of(node, dict(env)).kind == "static"

    def read(self, parts: tuple[ast.expr, ...], env: Env) -> Predicate:
        """The predicate that `parts`, joined by `and`, stand for.

        Raises:
            Obstacle: it is not one boolean in a tensor, or a part cannot be computed in any case.
        """
        if len(parts) == 1 and isinstance(parts[0], ast.UnaryOp) and isinstance(parts[0].op, ast.Not):
            inner = self.read((parts[0].operand,), env)
            return replace(inner, negated=not inner.negated)
        if len(parts) == 1:
            return self._part(parts[0], env, always=True)
        read = [self._part(part, env, always=number == 0) for number, part in enumerate(parts)]
        return self._joined("and", read)

    def _part(self, node: ast.expr, env: Env, *, always: bool) -> Predicate:
        """A part of the test; `always` says that it is computed whenever the test is asked."""
        certain = self.tensors.certain
        self.tensors.certain = certain and always
        try:
            return self._read_part(node, env, always=always)
        finally:
            self.tensors.certain = certain

    def _read_part(self, node: ast.expr, env: Env, *, always: bool) -> Predicate:
        if self._is_static(node, env):
            return self._static_part(node, env, always=always)
        if isinstance(node, ast.BoolOp):
            parts = [self._part(value, env, always=always and number == 0) for number, value in enumerate(node.values)]
            return self._joined("and" if isinstance(node.op, ast.And) else "or", parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._part(node.operand, env, always=always)
            return replace(inner, negated=not inner.negated)
        return self._tensor_part(node, env, always=always)

    def _joined(self, op: str, parts: Iterable[Predicate]) -> Predicate:
        parts = list(parts)
        pieces = tuple(Built("not", (part.piece,)) if part.negated else part.piece for part in parts)
        reads = frozenset[str]().union(*(part.reads for part in parts))
        return Predicate(Built(op, pieces), False, reads, frozenset[Key]().union(*(part.devices for part in parts)))

    def _static_part(self, node: ast.expr, env: Env, *, always: bool) -> Predicate:
        """A static part that does not come first: it joins as the boolean that it is."""
        fact = self.tensors.fact(node, dict(env))
        if not self._gives_bool(node) and (not isinstance(fact, Number) or fact.type != "bool"):
            raise Obstacle(Reason.PREDICATE_MIXED, f"`{self.text(node)}` is static and stands between tensor tests")
        if not always:
            self._check_harmless(fact.hazards)
        if not self._gives_bool(node):
            self.doubt(f"`{self.text(node)}` is True or False, and no other value")
        return Predicate(self.source.span(node), False, _names(node), frozenset())

    def _gives_bool(self, node: ast.expr) -> bool:
        """Whether a static expression gives a bool whatever its names hold: an annotation alone binds nobody."""
        if isinstance(node, ast.BoolOp):
            return all(map(self._gives_bool, node.values))
        if isinstance(node, ast.Constant):
            return isinstance(node.value, bool)
        if isinstance(node, ast.Call):
            name = self.tensors.bindings.qualified(node.func, self.tensors.scope) or ""
            return name in ("builtins.isinstance", "builtins.hasattr", "builtins.bool", "builtins.callable")
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        return negated or isinstance(node, ast.Compare) or (isinstance(node, ast.Attribute) and node.attr == "training")

    def _tensor_part(self, node: ast.expr, env: Env, *, always: bool) -> Predicate:
        piece, inner = self._without_reading(node, env)
        fact = self.tensors.fact(inner, env)
        if not isinstance(fact, Tensor):
            raise Obstacle(Reason.PREDICATE_READS_DATA, f"`{self.text(node)}` gives a Python value")
        if fact.shape != SCALAR:
            raise Obstacle(
                Reason.PREDICATE_NOT_ONE_ELEMENT, f"`{self.text(node)}` is not known to be a tensor of no dimensions"
            )
        if not always:
            self._check_harmless(fact.hazards)
        self._check_calm(fact.hazards)
        if not fact.dtype.classes <= BOOL:
            piece = Built("nonzero", (piece,))
        return Predicate(piece, False, _names(node), frozenset({fact.device}))

    def _without_reading(self, node: ast.expr, env: Env) -> tuple[Piece, ast.expr]:
        """A test without the `.item()` or `bool()` in it: the piece, and the expression that has its facts.

        A tensor that is compared with a number takes the number into its dtype; the number that is read compares with
        it as it is. Both agree where every dtype holds the number exactly.
        """
        if (inner := self._read_of(node)) is not None:
            return self.source.span(inner), inner
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = node.left, node.comparators[0]
            if (inner := self._read_of(left)) is not None and self._is_exact(inner, right, env):
                made = ast.copy_location(ast.Compare(inner, node.ops, [right]), node)
                return Built(_SIGNS[type(node.ops[0])], (self.source.span(inner), self.source.span(right))), made
        return self.source.span(node), node

    def _read_of(self, node: ast.expr) -> ast.expr | None:
        """The tensor that `t.item()` or `bool(t)` reads; `float(t)` may warn, so it stays."""
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            return node.func.value
        name = self.tensors.bindings.qualified(node.func, self.tensors.scope)
        return node.args[0] if name == "builtins.bool" and len(node.args) == 1 else None

    def _is_exact(self, tensor: ast.expr, node: ast.expr, env: Env) -> bool:
        """Whether a number is one that each dtype that the tensor may have holds exactly."""
        known, fact = self.tensors.fact(tensor, dict(env)), self.tensors.fact(node, dict(env))
        if not isinstance(known, Tensor) or not isinstance(fact, Number) or fact.constant is None:
            return False
        lowest = -EXACT_LIMIT if known.dtype.classes <= FLOAT else 0
        if not lowest <= fact.constant <= INT8_MAX:
            return False
        return fact.constant * 2 == int(fact.constant * 2)

    def _check_harmless(self, hazards: Iterable[Hazard]) -> None:
        for hazard in hazards:
            if not hazard.unless:
                raise Obstacle(Reason.PREDICATE_MAY_RAISE, f"{hazard.text}, and would be computed in any case")
            self.doubt(hazard.unless)

    def _check_calm(self, hazards: Iterable[Hazard]) -> None:
        """Raise `Obstacle` if a part of the test changes something or draws: its place must not move."""
        for hazard in hazards:
            if hazard.kind in ("change", "random"):
                raise Obstacle(Reason.PREDICATE_MAY_RAISE, hazard.text)


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(read_names(node))


def read_names(node: ast.AST) -> Iterator[str]:
    """The names and the attributes of `self` (`self.x`) that a node reads."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            yield f"{part.value.id}.{part.attr}"
