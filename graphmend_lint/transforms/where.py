"""Where: a data-dependent branch becomes a selection.

    if torch.isinf(x).any():                          x = torch.where(torch.isinf(x).any(), x.clamp(-c, c), x)
        x = x.clamp(-c, c)                      ->

What makes that safe. A selection computes the test and both values in any case, so each of them must be harmless: it
cannot raise, changes nothing, draws no random numbers and costs little (`analysis.tensors`). The two values agree in
shape, dtype and device. A zero gradient stays zero through the value that is not taken, and both values depend on
the same tensors. `torch.where` makes a new tensor, so nobody may hold the one that used to be passed on. What cannot
be shown, but is likely, makes the fix unsafe, and the message names it; what is not likely leaves the branch alone.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from graphmend_lint.analysis import torch_facts
from graphmend_lint.analysis.facts import FileFacts, FunctionFacts, Interest
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.tensor_ops import ALLOCATING_MODULES
from graphmend_lint.analysis.tensors import Tensor, Tensors
from graphmend_lint.analysis.uses import (
    Place,
    binding_before,
    changes_in_place,
    consumes,
    is_live_after,
    is_retained,
    may_change,
    statements_until_rebound,
)
from graphmend_lint.analysis.values import UNKNOWN, Env, Point, Walk, element_of
from graphmend_lint.findings import Built, Edit, Finding, Line, Piece, Plan, Reason, Selection, Span
from graphmend_lint.transforms.arms import SIGNS, Arm, Arms, Augmented, Choice, Old, Store, Tree
from graphmend_lint.transforms.carry import Card, Carrier, Obstacle
from graphmend_lint.transforms.merge import Merger, WithoutGradients
from graphmend_lint.transforms.predicate import Predicate, Predicates

#: Reasons that this transformation gives; the rules' pages list them.
REASONS = (
    Reason.PREDICATE_NOT_ONE_ELEMENT,
    Reason.PREDICATE_READS_DATA,
    Reason.PREDICATE_MIXED,
    Reason.PREDICATE_MAY_RAISE,
    Reason.ARM_MAY_RAISE,
    Reason.ARM_CALLS_UNKNOWN,
    Reason.ARM_IS_COSTLY,
    Reason.ARM_DRAWS_RANDOM,
    Reason.ARM_CHANGES_STATE,
    Reason.ARM_LEAVES,
    Reason.ARM_NOT_FOLLOWED,
    Reason.ARM_READS_DATA,
    Reason.SHAPES_DIFFER,
    Reason.DTYPES_DIFFER,
    Reason.VALUES_NOT_TENSORS,
    Reason.NAME_MAY_BE_UNBOUND,
    Reason.NAMES_INTERTWINED,
    Reason.DATA_DEPENDENT_LOOP,
    Reason.TORCH_NOT_IMPORTED,
    Reason.NOT_A_PREDICATE,
    Reason.INSIDE_TRY,
    Reason.GENERATOR,
    Reason.ASYNC_FUNCTION,
    Reason.TORCHSCRIPT,
)

#: Calls after which a tensor's shape or dtype may be another one under the same name.
_RESHAPING = frozenset(
    {"resize_", "resize_as_", "set_", "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_"}
)
#: Functions of Python that keep none of their arguments, and change none.
_HARMLESS = frozenset(f"builtins.{name}" for name in ("bool", "float", "int", "isinstance", "len", "range", "type"))
#: Calls that may read a name that is not in their arguments.
_NAME_READERS = frozenset({"builtins.locals", "builtins.vars", "builtins.eval", "builtins.exec", "builtins.dir"})
_WITHOUT_GRADIENTS = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"})
_WITH_GRADIENTS = frozenset({"torch.enable_grad", "torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def interest(cards: Iterable[Card]) -> Interest:
    """What the rules in `cards` look for."""
    return Interest(branches=any(True for _ in cards))


def find(facts: FileFacts, cards: Sequence[Card], handled: Collection[Span]) -> Iterator[Finding]:
    """The findings of the rules in `cards`; tests at the spans in `handled` are other rules' business."""
    by_code = {card.code: card for card in cards}
    for function in facts.functions(interest(cards)):
        yield from _Function(facts, function, by_code, handled).findings()


@dataclass(slots=True)
class _Attempt:
    """What trying to fix one place gave."""

    edits: tuple[Edit, ...] = ()
    obstacle: Obstacle | None = None
    doubts: tuple[str, ...] = ()
    inner: tuple[ast.If, ...] = ()


class _Function(Carrier):
    """The branches of one function."""

    def __init__(
        self, facts: FileFacts, function: FunctionFacts, cards: dict[str, Card], handled: Collection[Span]
    ) -> None:
        super().__init__(facts, function)
        self.cards, self.handled = cards, handled
        self.tensors = Tensors(facts.bindings, function.scope, self.text)
        self.values = self.tensors
        self.doubts: dict[str, None] = {}
        self.predicates = Predicates(self.tensors, facts.source, self.text, self._doubt)
        self.consumed: set[ast.AST] = set()
        self.body = function.scope.node.body
        self.traceable = not any(map(changes_in_place, self.body))

    def text(self, node: ast.expr) -> str:
        return super().text(node) if hasattr(node, "lineno") else ast.unparse(node)

    def _doubt(self, text: str) -> None:
        self.doubts[text] = None

    def findings(self) -> Iterator[Finding]:
        for point in Walk(self.tensors).points():
            statement = point.statement
            self.tensors.certain = not point.around and isinstance(
                statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
            )
            here = Point(statement, dict(point.env), point.around, point.block)
            if isinstance(statement, ast.If) and "GM101" in self.cards:
                yield from self._branch(statement, here)
            elif isinstance(statement, ast.While) and "GM101" in self.cards:
                yield from self._loop(statement, here)
            yield from self._expressions(here)

    # -- branches ----------------------------------------------------------------------------------------------

    def _branch(self, statement: ast.If, point: Point) -> Iterator[Finding]:
        if statement in self.consumed or not self._reads_tensor(statement.test, point.env):
            return
        if isinstance(statement.body[-1], ast.Raise) or self._is_handled(statement.test):
            return
        attempt = self._try(lambda: self._select(statement, point), point)
        yield self._report("GM101", statement.test, f"the branch on `{self.text(statement.test)}`", attempt)
        if attempt.obstacle is None:
            for inner in attempt.inner:
                self.consumed.add(inner)
                yield self._report("GM101", inner.test, f"the branch on `{self.text(inner.test)}`", attempt)

    def _loop(self, statement: ast.While, point: Point) -> Iterator[Finding]:
        if self._reads_tensor(statement.test, point.env):
            obstacle = Obstacle(Reason.DATA_DEPENDENT_LOOP, "the number of rounds depends on the data")
            text = f"the loop on `{self.text(statement.test)}`"
            yield self._report("GM101", statement.test, text, _Attempt(obstacle=obstacle))

    def _reads_tensor(self, test: ast.expr, env: Env) -> bool:
        return self.tensors.of(test, dict(env)).kind in ("tensor", "data")

    def _is_handled(self, test: ast.expr) -> bool:
        """Whether another rule edits the test, or a part of it."""
        own = self.facts.source.span(test)
        start, end = (own.line, own.column), (own.end_line, own.end_column)
        return any(start <= (s.line, s.column) and (s.end_line, s.end_column) <= end for s in self.handled)

    def _try(self, attempt: object, point: Point) -> _Attempt:
        """Run `attempt`, which gives edits, and note what it rests on or what stands against it."""
        assert callable(attempt)
        self.doubts = {}
        implied = dict(self.tensors.implied)
        self.tensors.still()
        try:
            self.check_place(point)
            self._check_function()
            for name in self.tensors.supposed():
                self._doubt(f"`{name}` is a tensor, not an array of numpy")
            edits, inner = attempt()
        except Obstacle as obstacle:
            return _Attempt(obstacle=obstacle)
        finally:
            self.tensors.implied = implied
            self.tensors.certain = False
        return _Attempt(edits, None, tuple(self.doubts), inner)

    def _check_function(self) -> None:
        for node in ast.walk(self.scope.node):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                raise Obstacle(
                    Reason.NAMES_INTERTWINED, f"line {node.lineno} shares `{node.names[0]}` with other functions"
                )
            if isinstance(node, ast.Call) and self.facts.bindings.qualified(node.func, self.scope) in _NAME_READERS:
                raise Obstacle(Reason.NAMES_INTERTWINED, f"line {node.lineno} may read any name")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RESHAPING:
                raise Obstacle(Reason.SHAPES_DIFFER, f"line {node.lineno} changes the form of a tensor in place")

    def _select(self, statement: ast.If, point: Point) -> tuple[tuple[Edit, ...], tuple[ast.If, ...]]:
        where = self.spelling("torch", "where")
        place = Place(statement, point.block, point.around, self.body)
        env = dict(point.env)
        split = self.predicates.split(statement.test, env)
        rest = self._rest_of_returns(statement, point) if isinstance(statement.body[-1], ast.Return) else []
        whole = _completed(statement, rest)
        keep_static = split.static is not None and not whole.orelse
        if keep_static:
            for part in split.static_parts:
                self.tensors.narrow(env, part, True)
                self.tensors.narrow_dtype(env, part)
        self.tensors.certain = True
        parts = split.rest if keep_static else (*split.static_parts, *split.rest)
        predicate = self.predicates.read(parts, env)
        self.tensors.certain = False
        if keep_static:
            for part in split.static_parts:
                self.tensors.narrow_dtype(env, part)
        arms, merger = self._arms(point, place)
        then, otherwise = arms.run(whole.body, dict(env)), arms.run(whole.orelse, dict(env))
        merged = merger.merge(predicate, then, otherwise, env)
        self._check_memory(merged, place)
        lines = self._lines(merged, predicate)
        absorbed = tuple(self.facts.source.span(s) for s in rest)
        selection = Selection(split.static if keep_static else None, lines, absorbed)
        edit = Edit("select", self.facts.source.span(statement), where, selection)
        return (edit,), tuple(self._inner_tests([*statement.body, *statement.orelse, *rest], point.env))

    def _arms(self, point: Point, place: Place | None) -> tuple[Arms, Merger]:
        """What runs the two sides and merges them; `place`: where they store names, None for an expression."""
        without_gradients = self._without_gradients(point)

        def is_exclusive(name: str) -> bool:
            return place is not None and self._is_exclusive(name, place, point.env)

        merger = Merger(
            self.tensors,
            self.text,
            self._doubt,
            is_exclusive,
            without_gradients=without_gradients,
            traceable=self.traceable,
        )
        arms = Arms(
            self.tensors,
            self.predicates,
            self.text,
            self._doubt,
            lambda name: place is None or is_live_after(name, place),
            is_exclusive,
            merger.merge,
            graded=without_gradients == "nowhere",
        )
        return arms, merger

    def _inner_tests(self, statements: Sequence[ast.stmt], env: Env) -> Iterator[ast.If]:
        nodes = (node for statement in statements for node in ast.walk(statement))
        yield from (node for node in nodes if isinstance(node, ast.If) and self._reads_tensor(node.test, env))

    def _rest_of_returns(self, statement: ast.If, point: Point) -> list[ast.stmt]:
        """What follows an early return in its block, which is the other side of it."""
        index = next(i for i, other in enumerate(point.block) if other is statement)
        rest = list(point.block[index + 1 :])
        if _always_returns(statement):
            return []
        if not rest or not _returns([statement, *rest]):
            raise Obstacle(
                Reason.ARM_LEAVES, f"line {statement.body[-1].lineno} returns, and what follows is more than that"
            )
        return rest

    def _without_gradients(self, point: Point) -> WithoutGradients:
        """Where around the branch autograd is known to be off."""
        for call in (n for n in ast.walk(self.scope.node) if isinstance(n, ast.Call)):
            name = self.facts.bindings.qualified(call.func, self.scope)
            if name in _WITH_GRADIENTS or (name == "torch.inference_mode" and call.args):
                return "nowhere"
        if any(map(self._turns_gradients_off, self.scope.node.decorator_list)):
            return "function"
        managers = [item.context_expr for a in point.around if isinstance(a, ast.With) for item in a.items]
        return "block" if any(map(self._turns_gradients_off, managers)) else "nowhere"

    def _turns_gradients_off(self, node: ast.expr) -> bool:
        called = node.func if isinstance(node, ast.Call) else node
        no_argument = not isinstance(node, ast.Call) or not node.args
        return no_argument and self.facts.bindings.qualified(called, self.scope) in _WITHOUT_GRADIENTS

    # -- memory ------------------------------------------------------------------------------------------------

    def _is_exclusive(self, name: str, place: Place, env: Env) -> bool:
        """Whether nothing but the name refers to the tensor that it holds before the branch."""
        fact = env[name].fact if name in env else None
        if not isinstance(fact, Tensor) or not fact.fresh:
            return False
        binding, between = binding_before(name, place)
        return binding is not None and not any(is_retained(other, name, self._keeps_nothing) for other in between)

    def _keeps_nothing(self, call: ast.Call) -> bool:
        """Whether a call neither changes its arguments nor keeps them, nor gives one of them back."""
        if any(keyword.arg in ("out", "inplace") for keyword in call.keywords):
            return False
        name = self.facts.bindings.qualified(call.func, self.scope)
        if name is not None:
            return name in _HARMLESS or consumes(torch_facts.function(name))
        if isinstance(call.func, ast.Attribute) and (dotted(call.func) or "").startswith("self."):
            kind = self.tensors.of(call.func, self.tensors.parameters()).type
            return kind.startswith("submodule torch.nn.") and kind.rpartition(".")[2] in ALLOCATING_MODULES
        if (
            not isinstance(call.func, ast.Attribute)
            or self.tensors.of(call.func.value, dict(self._names)).kind != "tensor"
        ):
            return False
        return consumes(torch_facts.method(call.func.attr))

    @cached_property
    def _names(self) -> Env:
        """The names of the function; those that do not hold a tensor everywhere are unknown."""
        names: Env = {}
        for point in self.function.walk().points():
            for name, value in point.env.items():
                always = value.kind == "tensor" and names.get(name, value).kind == "tensor"
                names[name] = value if always or value.type == "self" else UNKNOWN
        return names

    def _check_memory(self, merged: Arm, place: Place) -> None:
        """Doubt a selection where a side that is not a new tensor may be seen to be one later."""
        for store in (*merged.steps, *(merged.returned or ())):
            if not isinstance(store, Store) or not isinstance(store.tree, Choice):
                continue
            if not isinstance(store.fact, Tensor) or store.fact.fresh:
                continue
            name = store.key
            if not name.isidentifier():
                self._doubt("nothing is changed in place later that both sides used to share with other names")
                continue
            if self._may_be_seen(name, place):
                self._doubt(f"`{name}` is not changed in place later, nor what it was before the branch")

    # -- lines -------------------------------------------------------------------------------------------------

    def _lines(self, merged: Arm, predicate: Predicate) -> tuple[Line, ...]:
        """The statements of the result."""
        trees = [store.tree for store in (*merged.steps, *(merged.returned or ())) if isinstance(store, Store)]
        choices = [tree for tree in trees if isinstance(tree, Choice) and tree.predicate is predicate]
        if not choices:
            raise Obstacle(Reason.ARM_NOT_FOLLOWED, "both sides give the same to what is read later")
        changed: set[str] = set()
        late = False
        for step in merged.steps:
            late = late or (
                isinstance(step, Store) and isinstance(step.tree, Choice) and bool(predicate.reads & changed)
            )
            changed |= {step.key} if isinstance(step, Store) else _names_bound(step)
        late = late or (merged.returned is not None and bool(predicate.reads & changed))
        lines: list[Line] = []
        named: str | None = None
        if (late or len(choices) > 1) and not isinstance(predicate.piece, str):
            named = self.fresh_name("predicate")
            lines.append(Line(None, value=predicate.piece, target=named))
        self._named = (predicate, named)
        lines += self._step_lines(merged.steps)
        if merged.returned is not None:
            lines.append(self._return_line(merged.returned))
        return tuple(lines)

    def _step_lines(self, steps: Sequence[ast.stmt | Store]) -> Iterator[Line]:
        span = self.facts.source.span
        position = 0
        while position < len(steps):
            step = steps[position]
            position += 1
            if not isinstance(step, Store):
                yield Line(span(step))
                continue
            group = [step]
            while position < len(steps):
                other = steps[position]
                if not isinstance(other, Store) or other.statement is not step.statement:
                    break
                group.append(other)
                position += 1
            yield self._store_line(group)

    def _store_line(self, group: list[Store]) -> Line:
        span = self.facts.source.span
        first = group[0]
        statement = first.statement
        merged = tuple(span(s) for s in dict.fromkeys(s for store in group for s in store.merged))
        if isinstance(statement, ast.AugAssign):
            return Line(span(statement), None, self._piece(first), first.key, merged)
        assert isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr))
        targets = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(targets, (ast.Tuple, ast.List)):
            if len(group) != len(targets.elts):
                raise Obstacle(
                    Reason.NAMES_INTERTWINED, f"line {statement.lineno} assigns more than the other side does"
                )
            assert isinstance(statement, ast.Assign)
            return Line(
                span(statement), span(statement.value), Built("tuple", tuple(map(self._piece, group))), "", merged
            )
        if not isinstance(first.tree, Choice):
            return Line(span(statement), None, None, "", merged)
        return Line(span(statement), span(first.place), self._piece(first), "", merged)

    def _return_line(self, stores: tuple[Store, ...]) -> Line:
        span = self.facts.source.span
        statement = stores[0].statement
        assert isinstance(statement, ast.Return)
        assert statement.value is not None
        merged = tuple(span(s) for s in dict.fromkeys(s for store in stores for s in store.merged))
        value: Piece = Built("tuple", tuple(map(self._piece, stores)))
        if not isinstance(statement.value, ast.Tuple):
            value = self._piece(stores[0])
        return Line(span(statement), span(statement.value), value, "", merged)

    def _piece(self, store: Store) -> Piece:
        return self._tree_piece(store.tree)

    def _tree_piece(self, tree: Tree) -> Piece:
        if isinstance(tree, Old):
            return tree.text
        if isinstance(tree, Choice):
            known, named = self._named
            test: Piece = named if named is not None and tree.predicate is known else tree.predicate.piece
            then, otherwise = self._tree_piece(tree.then), self._tree_piece(tree.otherwise)
            if tree.predicate.negated:
                then, otherwise = otherwise, then
            return Built("where", (test, then, otherwise))
        if isinstance(tree, Augmented):
            sign = SIGNS[type(tree.op)]
            return Built(sign, (ast.unparse(tree.left), self.facts.source.span(tree.right)))
        return self.facts.source.span(tree)

    # -- expressions -------------------------------------------------------------------------------------------

    def _expressions(self, point: Point) -> Iterator[Finding]:
        """Conditional expressions, and `and`, `or` and `not` that give a value, in a statement's own expressions."""
        statement = point.statement
        test = getattr(statement, "test", None)
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, (ast.expr, ast.withitem)):
                yield from self._parts(child, point, is_test=child is test)

    def _parts(self, node: ast.AST, point: Point, *, is_test: bool) -> Iterator[Finding]:
        """The findings in one expression; `is_test`: Python asks for its truth."""
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, _COMPREHENSIONS):
            yield from self._comprehension(node, point)
            return
        if isinstance(node, ast.IfExp):
            yield from self._conditional(node, point)
        elif isinstance(node, (ast.BoolOp, ast.UnaryOp)) and not is_test:
            yield from self._logical(node, point)
        inside_test = is_test and isinstance(node, (ast.BoolOp, ast.UnaryOp))
        own_test = node.test if isinstance(node, ast.IfExp) else None
        for child in ast.iter_child_nodes(node):
            yield from self._parts(child, point, is_test=inside_test or child is own_test)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, point: Point
    ) -> Iterator[Finding]:
        env = dict(point.env)
        inner = Point(point.statement, env, point.around, point.block)
        for generator in node.generators:
            yield from self._parts(generator.iter, inner, is_test=False)
            self.tensors.bind(env, generator.target, element_of(self.tensors.of(generator.iter, dict(env))))
            for test in generator.ifs:
                if "GM101" in self.cards and self._reads_tensor(test, env):
                    obstacle = Obstacle(Reason.DATA_DEPENDENT_LOOP, "the data decides which elements there are")
                    text = f"the filter on `{self.text(test)}`"
                    yield self._report("GM101", test, text, _Attempt(obstacle=obstacle))
                yield from self._parts(test, inner, is_test=True)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for element in elements:
            yield from self._parts(element, inner, is_test=False)

    def _conditional(self, node: ast.IfExp, point: Point) -> Iterator[Finding]:
        if "GM102" not in self.cards or not self._reads_tensor(node.test, point.env):
            return
        attempt = self._try(lambda: self._choose(node, point), point)
        yield self._report("GM102", node, f"the choice by `{self.text(node.test)}`", attempt)

    def _choose(self, node: ast.IfExp, point: Point) -> tuple[tuple[Edit, ...], tuple[ast.If, ...]]:
        where, env = self.spelling("torch", "where"), dict(point.env)
        self.tensors.certain = not point.around
        predicate = self.predicates.read((node.test,), env)
        self.tensors.certain = False
        place = Place(point.statement, point.block, point.around, self.body)
        arms, merger = self._arms(point, None)
        then, otherwise = (arms.given(side, point.statement, env) for side in (node.body, node.orelse))
        self._named = (predicate, None)
        merged = merger.merge(predicate, then, otherwise, env)
        assert merged.returned is not None
        chosen = merged.returned[0]
        if not isinstance(chosen.tree, Choice):
            raise Obstacle(Reason.ARM_NOT_FOLLOWED, "both sides give the same")
        self._check_value(node, chosen, place)
        return (Edit("choose", self.facts.source.span(node), where, None, self._piece(chosen)),), ()

    def _check_value(self, node: ast.IfExp, chosen: Store, place: Place) -> None:
        """As `_check_memory`, for an expression."""
        is_shared = isinstance(chosen.fact, Tensor) and not chosen.fact.fresh
        if is_shared and not self._is_only_read(node, place):
            self._doubt("what the choice gives is not changed in place later, nor what it is chosen from")

    def _is_only_read(self, node: ast.expr, place: Place) -> bool:
        """Whether what an expression gives gets a name, and neither that nor anything else is changed in place."""
        statement = place.statement
        targets = statement.targets if isinstance(statement, ast.Assign) and statement.value is node else []
        if len(targets) != 1 or not isinstance(targets[0], ast.Name):
            return False
        return not self._may_be_seen(targets[0].id, place)

    def _may_be_seen(self, name: str, place: Place) -> bool:
        """Whether it can be told later if the tensor in a name is one that others hold too."""
        return any(
            is_retained(other, name, self._keeps_nothing) or may_change(other, self._keeps_nothing)
            for other in statements_until_rebound(name, place)
        )

    def _logical(self, node: ast.BoolOp | ast.UnaryOp, point: Point) -> Iterator[Finding]:
        if "GM104" not in self.cards:
            return
        parts = node.values[:-1] if isinstance(node, ast.BoolOp) else [node.operand]
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return
        if not any(self._reads_tensor(part, point.env) for part in parts):
            return
        attempt = self._try(lambda: self._combine(node, point), point)
        yield self._report("GM104", node, f"`{self.text(node)}`", attempt)

    def _combine(self, node: ast.BoolOp | ast.UnaryOp, point: Point) -> tuple[tuple[Edit, ...], tuple[ast.If, ...]]:
        """`a and b` of two booleans in tensors is `a & b`: the same value, whichever of them Python gives."""
        env = dict(point.env)
        if not isinstance(node, ast.BoolOp):
            raise Obstacle(Reason.NOT_A_PREDICATE, f"`{self.text(node)}` is a Python bool, which is used as a value")
        for part in node.values:
            fact = self.tensors.fact(part, env)
            if not isinstance(fact, Tensor) or fact.dtype.key != "bool":
                raise Obstacle(
                    Reason.NOT_A_PREDICATE, f"`{self.text(part)}` is not known to be one boolean in a tensor"
                )
        predicate = self.predicates.read((node,), env)
        held = any(isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) for part in node.values)
        place = Place(point.statement, point.block, point.around, self.body)
        if held and not self._is_only_read(node, place):
            self._doubt(f"what `{self.text(node)}` gives is not changed in place later")
        if len(predicate.devices) > 1:
            self._doubt(f"all in `{self.text(node)}` is on one device")
        return (Edit("choose", self.facts.source.span(node), "", None, predicate.piece),), ()

    # -- reporting ---------------------------------------------------------------------------------------------

    def _report(self, code: str, node: ast.expr, what: str, attempt: _Attempt) -> Finding:
        card = self.cards[code]
        span = self.facts.source.span(node)
        message = f"{what} ends the graph ({card.breaks[0]})"
        decline, plan = None, None
        if attempt.obstacle is not None:
            decline = self.decline(attempt.obstacle)
            message += f"; not fixed: {decline.text}"
        else:
            plan = Plan(span, attempt.edits, (), "Select with torch.where")
            message += "; select with torch.where"
            if attempt.doubts:
                message += f" (unsafe: it takes for granted that {'; that '.join(attempt.doubts)})"
        region = self.function.region
        return Finding(
            code,
            card.name,
            str(self.facts.source.path),
            span,
            message,
            region.confidence,
            "none" if plan is None else "unsafe" if attempt.doubts else "safe",
            decline,
            card.breaks[:1],
            region.entry,
            plan,
        )


def _completed(statement: ast.If, rest: list[ast.stmt]) -> ast.If:
    """The `if` with what follows an early return as its `else`; tests that follow one another are nested."""
    if not rest:
        return statement
    if statement.orelse and isinstance(statement.orelse[0], ast.If) and len(statement.orelse) == 1:
        orelse: list[ast.stmt] = [_completed(statement.orelse[0], rest)]
    elif statement.orelse:
        return statement
    else:
        first = rest[0]
        orelse = [_completed(first, rest[1:])] if isinstance(first, ast.If) else rest
    return ast.copy_location(ast.If(statement.test, statement.body, orelse), statement)


def _returns(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements are early returns and a last one."""
    *front, last = statements
    return isinstance(last, ast.Return) and all(isinstance(s, ast.If) and _only_returns(s) for s in front)


def _only_returns(statement: ast.If) -> bool:
    """Whether each arm of an `if` that there is ends in a return."""
    if not isinstance(statement.body[-1], ast.Return):
        return False
    if len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        return _only_returns(statement.orelse[0])
    return not statement.orelse or isinstance(statement.orelse[-1], ast.Return)


def _always_returns(statement: ast.If) -> bool:
    if not statement.orelse or not isinstance(statement.body[-1], ast.Return):
        return False
    last = statement.orelse[-1]
    return isinstance(last, ast.Return) or (isinstance(last, ast.If) and _always_returns(last))


def _names_bound(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
