"""Trap: a guard becomes a check in the graph that raises the original exception.

    if not mask.all():                              if alarm := unless(mask.all()):
        raise ValueError(f"{mask.sum()} left")   ->     alarm(fail)(ValueError, formatted("{} left", mask.sum()))

What makes that safe. Eagerly `unless(p)` is true where `not p` was, and `fail` raises the same exception with the
same arguments. Compiled, the predicate and what the message needs go into one ordered operator, which raises when the
graph runs. Compiled code computes the arguments of the exception in any case, so they must be total. It also goes on
tracing after the guard, and a compiler may run what follows first, so nothing that follows may be undefined on the
data that the guard excludes; and a graph writes changes back at its end, which an exception does not reach, so
nothing may have been changed before. In the function itself both are looked at. Callers and submodules share the
graph and are not looked at yet: for that reason the fix is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphmend_lint.analysis.effects import is_text_format
from graphmend_lint.analysis.facts import FileFacts, FunctionFacts, Interest
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.values import Env, Point
from graphmend_lint.findings import Edit, Finding, Plan, Reason
from graphmend_lint.transforms.carry import IMPORTS, NOT_PROVEN, Card, Carrier, Obstacle

#: Reasons that this transformation gives; the rules' pages list them.
REASONS = (
    Reason.ARGUMENT_UNKNOWN,
    Reason.ARGUMENT_READS_DATA,
    Reason.ARGUMENT_CALLS_UNKNOWN,
    Reason.ARGUMENT_MAY_RAISE,
    Reason.STAR_ARGUMENTS,
    Reason.PREDICATE_NOT_CARRIED,
    Reason.BRANCH_DOES_MORE,
    Reason.GUARD_HAS_ELSE,
    Reason.EXCEPTION_NOT_CARRIED,
    Reason.GUARD_AFTER_CHANGE,
    Reason.GUARD_PROTECTS,
    Reason.INSIDE_TRY,
    Reason.GENERATOR,
    Reason.ASYNC_FUNCTION,
    Reason.TORCHSCRIPT,
    Reason.TARGET_TORCH_TOO_OLD,
)

#: Functions of torch that read tensor data and that `late` asks when the graph runs.
_QUESTIONS = frozenset({"torch.equal", "torch.allclose", "torch.is_nonzero"})

#: Operations that are undefined, or crash on a GPU, for some elements of their arguments.
_PARTIAL = frozenset(
    {
        "bincount",
        "cholesky",
        "embedding",
        "ctc_loss",
        "embedding_bag",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "cross_entropy",
        "nll_loss",
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
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
    }
)
_DISPLAYS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp)

#: Classes of torch.nn whose call changes their buffers in training.
_NORMS = ("BatchNorm", "SyncBatchNorm", "InstanceNorm", "LazyBatchNorm", "LazyInstanceNorm")


@dataclass(frozen=True, slots=True)
class Options:
    """`carried` is False where the oldest torch to support lacks effectful operators."""

    carried: bool = True


@dataclass(frozen=True, slots=True)
class _Predicate:
    """The tensor part of a guard's test: the node to hand over, how, and the question to ask late, if it is one."""

    node: ast.expr
    kind: str
    question: ast.expr | None


def interest(cards: Iterable[Card]) -> Interest:
    """What the rules in `cards` look for."""
    return Interest(guards=any(True for _ in cards))


def find(facts: FileFacts, cards: Sequence[Card], options: Options) -> Iterator[Finding]:
    """The findings of the rule in `cards`: guards on tensor data that raise."""
    for function in facts.functions(interest(cards)):
        for card in cards:
            yield from _Function(facts, function, card, options).findings()


class _Function(Carrier):
    """The guards of one function."""

    def __init__(self, facts: FileFacts, function: FunctionFacts, card: Card, options: Options) -> None:
        super().__init__(facts, function)
        self.card = card
        self.options = options
        self.alarm = self.fresh_name("alarm")
        self.parameters = function.values.parameters()

    def findings(self) -> Iterator[Finding]:
        for point in self.function.walk().points():
            guard = point.statement
            if not isinstance(guard, ast.If) or not isinstance(guard.body[-1], ast.Raise):
                continue
            if self.values.of(guard.test, dict(point.env)).kind in ("tensor", "data"):
                yield self._finding(guard, Point(guard, dict(point.env), point.around, point.block))

    def _finding(self, guard: ast.If, point: Point) -> Finding:
        try:
            self.check_place(point)
            plan = self._plan(guard, point)
        except Obstacle as obstacle:
            return self._report(guard, None, obstacle)
        return self._report(guard, plan, None)

    # -- legality ----------------------------------------------------------------------------------------------

    def _plan(self, guard: ast.If, point: Point) -> Plan:
        if not self.options.carried:
            raise Obstacle(Reason.TARGET_TORCH_TOO_OLD, "target-torch is older than 2.11")
        if guard.orelse:
            raise Obstacle(Reason.GUARD_HAS_ELSE, f"the guard goes on with `else` at line {guard.orelse[0].lineno}")
        if len(guard.body) > 1:
            raise Obstacle(Reason.BRANCH_DOES_MORE, f"line {guard.body[0].lineno} runs before the exception is raised")
        raised = guard.body[0]
        assert isinstance(raised, ast.Raise)
        predicate = self._predicate(guard.test, point.env)
        edits = self._exception(raised, guard.test, point.env)
        self._check_what_precedes(guard, point)
        self._check_what_follows(guard, point)
        source = self.facts.source
        names = {"fail", predicate.kind, *(IMPORTS[edit.kind] for edit in edits)}
        if predicate.question is not None:
            edits.append(Edit("wrap", source.span(predicate.question), "late"))
            names.add("late")
        edits.append(Edit(predicate.kind, source.span(predicate.node), self.alarm))
        edits.append(Edit("fail", source.span(raised), self.alarm))
        return Plan(source.span(raised), tuple(edits), tuple(sorted(names)), "Raise when the graph runs")

    def _predicate(self, test: ast.expr, env: Env) -> _Predicate:
        """The tensor part of a test whose static parts come first.

        Raises:
            Obstacle: there is more than one, or one that the runtime cannot be given.
        """
        node = test
        if isinstance(test, ast.BoolOp):
            static = all(self.values.of(part, dict(env)).kind == "static" for part in test.values[:-1])
            if isinstance(test.op, ast.Or) or not static:
                raise Obstacle(Reason.PREDICATE_NOT_CARRIED, f"`{self.text(test)}` tests more than one tensor")
            node = test.values[-1]
        inner, kind = (node.operand, "unless") if _is_not(node) and isinstance(node, ast.UnaryOp) else (node, "when")
        if any(isinstance(part, (ast.NamedExpr, ast.Await, ast.BoolOp)) or _is_not(part) for part in ast.walk(inner)):
            raise Obstacle(Reason.PREDICATE_NOT_CARRIED, f"`{self.text(inner)}` is not a single test")
        if isinstance(inner, ast.Call) and self.facts.bindings.qualified(inner.func, self.scope) in _QUESTIONS:
            for argument in (*inner.args, *(keyword.value for keyword in inner.keywords)):
                self.carry(argument, env)
            return _Predicate(node, kind, inner.func)
        if self.values.of(inner, dict(env)).kind != "tensor":
            raise Obstacle(Reason.PREDICATE_NOT_CARRIED, f"`{self.text(inner)}` reads tensor data in Python")
        return _Predicate(node, kind, None)

    def _exception(self, raised: ast.Raise, test: ast.expr, env: Env) -> list[Edit]:
        """The edits of the exception's arguments.

        Raises:
            Obstacle: the exception is not a class called with what the runtime carries.
        """
        if raised.exc is None or raised.cause is not None:
            raise Obstacle(Reason.EXCEPTION_NOT_CARRIED, "the exception has a cause, or is the one being handled")
        call = raised.exc if isinstance(raised.exc, ast.Call) else None
        self._check_class(call.func if call else raised.exc)
        if call is None:
            return []
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(keyword.arg is None for keyword in call.keywords):
            raise Obstacle(Reason.STAR_ARGUMENTS, f"`{self.text(call)}` hides its arguments")
        edits = [edit for argument in arguments for edit in self.carry(argument, env)]
        for argument in arguments:
            if not self.are_total([argument], test, env):
                raise Obstacle(
                    Reason.ARGUMENT_MAY_RAISE, f"`{self.text(argument)}` is computed in any case once it is compiled"
                )
        return edits

    def _check_class(self, node: ast.expr) -> None:
        name = self.facts.bindings.qualified(node, self.scope)
        symbol = self.facts.bindings.symbol(node, self.scope)
        known = symbol is not None and symbol.kind in ("class", "external")
        if name is None or not known or not (dotted(node) or "").rpartition(".")[2][:1].isupper():
            raise Obstacle(Reason.EXCEPTION_NOT_CARRIED, f"`{self.text(node)}` is not known to be an exception class")

    def _check_what_follows(self, guard: ast.If, point: Point) -> None:
        """Raise `Obstacle` if something after the guard, or around it, may be undefined on what the guard excludes."""
        tested = self._related({part.id for part in ast.walk(guard.test) if isinstance(part, ast.Name)})
        for statement in self._after(guard, point):
            for part in ast.walk(statement):
                used = {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
                if used & tested and self._is_partial(part):
                    raise Obstacle(Reason.GUARD_PROTECTS, f"line {part.lineno} relies on the guard")  # type: ignore[attr-defined]

    def _related(self, names: set[str]) -> set[str]:
        """The names whose values depend on those of `names`, or the other way round, by the function's assignments."""
        binders = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.For, ast.withitem)
        nodes = (node for node in ast.walk(self.scope.node) if isinstance(node, binders))
        ties = [{part.id for part in _header_names(node)} for node in nodes]
        related, size = set(names), 0
        while size != len(related):
            size = len(related)
            for tie in ties:
                if tie & related - {"self"}:
                    related |= tie
        return related - {"self"}

    def _check_what_precedes(self, guard: ast.If, point: Point) -> None:
        """Raise `Obstacle` if the function changes something before the guard.

        A graph writes such changes back at its end, which an exception in it does not reach.
        """
        loop = _outer_loop(point)
        last = loop.end_lineno if loop else guard.test.end_lineno
        for node in ast.walk(self.scope.node):
            if isinstance(node, (ast.stmt, ast.expr)) and node.lineno <= (last or 0) and self._changes(node):
                raise Obstacle(Reason.GUARD_AFTER_CHANGE, f"line {node.lineno} changes something before the guard")

    def _changes(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return not isinstance(node.ctx, ast.Load)
        if isinstance(node, (ast.AugAssign, ast.Global, ast.Nonlocal)):
            return True
        if not isinstance(node, ast.Call):
            return False
        name = self.facts.bindings.qualified(node.func, self.scope)
        fact = self.torch_fact(node)
        in_place = (fact is not None and fact.in_place) or any(keyword.arg == "out" for keyword in node.keywords)
        return in_place or self._changes_container(node.func) or self._counts_batches(node.func, name or "")

    def _changes_container(self, func: ast.expr) -> bool:
        """Whether a method changes a list, dict or set that this function did not make itself."""
        if not isinstance(func, ast.Attribute) or func.attr not in _CONTAINER_CHANGES:
            return False
        if not isinstance(func.value, ast.Name):
            return True
        targets = (n for n in ast.walk(self.scope.node) if isinstance(n, ast.Assign) and _binds(n, func.value.id))
        made = [isinstance(n.value, _DISPLAYS) for n in targets]
        arguments = {n.arg for n in ast.walk(self.scope.node.args) if isinstance(n, ast.arg)}
        return func.value.id in arguments or not made or not all(made)

    def _counts_batches(self, func: ast.expr, name: str) -> bool:
        """Whether a call keeps running statistics."""
        held = self.values.of(func, dict(self.parameters)).type.rpartition(".")[2]
        return held.startswith(_NORMS) or name.rpartition(".")[2] in ("batch_norm", "instance_norm")

    def _after(self, guard: ast.If, point: Point) -> Iterator[ast.stmt]:
        """Statements that may run after the guard: the later ones of the function, and all of a loop around it."""
        loop = _outer_loop(point)
        first = loop.lineno if loop else (guard.end_lineno or guard.lineno) + 1
        inside = set(ast.walk(guard))
        for statement in ast.walk(self.scope.node):
            if isinstance(statement, ast.stmt) and statement.lineno >= first and statement not in inside:
                yield statement

    def _is_partial(self, part: ast.AST) -> bool:
        if isinstance(part, ast.Call):
            last = (dotted(part.func) or "").rpartition(".")[2]
            method = part.func.attr if isinstance(part.func, ast.Attribute) else last
            return method in _PARTIAL and not is_text_format(part)
        return isinstance(part, ast.Subscript) and not _is_plain_index(part.slice)

    # -- reporting ---------------------------------------------------------------------------------------------

    def _report(self, guard: ast.If, plan: Plan | None, obstacle: Obstacle | None) -> Finding:
        breaks = self.card.breaks[:1]
        message = f"the guard on `{self.text(guard.test)}` ends the graph ({breaks[0]})"
        decline = None
        if obstacle is None:
            message += f"; raise when the graph runs ({NOT_PROVEN})"
        else:
            decline = self.decline(obstacle)
            message += f"; not fixed: {decline.text}"
        region = self.function.region
        return Finding(
            self.card.code,
            self.card.name,
            str(self.facts.source.path),
            self.facts.source.span(guard.test),
            message,
            region.confidence,
            "unsafe" if plan else "none",
            decline,
            breaks,
            region.entry,
            plan,
        )


def _header_names(node: ast.AST) -> Iterator[ast.Name]:
    """The names in an assignment, or in the head of a `for` or `with`, without those of functions that are called."""
    parts = [node.target, node.iter] if isinstance(node, ast.For) else [node]
    stack: list[ast.AST] = list(parts)
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Name):
            yield part
        elif isinstance(part, ast.Call) and dotted(part.func) and "." not in (dotted(part.func) or ""):
            stack.extend([*part.args, *part.keywords])
        else:
            stack.extend(ast.iter_child_nodes(part))


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for target in node.targets for part in ast.walk(target))


def _outer_loop(point: Point) -> ast.stmt | None:
    """The outermost loop around a statement."""
    return next((a for a in point.around if isinstance(a, (ast.For, ast.AsyncFor, ast.While))), None)


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_plain_index(node: ast.expr) -> bool:
    """Whether a subscript is made of literals, slices, `None` and `...`: it cannot depend on tensor data."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(part, (ast.Constant, ast.Slice, ast.UnaryOp)) for part in parts)
