"""Carrying a call into the graph: what the runtime can take along, and from where.

Shared by the transformations that turn a statement of Python into a call of the runtime's operator (Defer, Trap).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from graphmend_lint.analysis import torch_facts
from graphmend_lint.analysis.bindings import Scope
from graphmend_lint.analysis.effects import is_text, is_text_format, is_total, text_fields
from graphmend_lint.analysis.facts import FileFacts, FunctionFacts
from graphmend_lint.analysis.values import TRY_STATEMENTS, Env, Point, Value
from graphmend_lint.findings import ADVICE, Decline, Edit, Reason

#: What the fix of a check rests on without proof.
NOT_PROVEN = "unsafe: other functions in the graph may change state before it, or index with what it guards"

#: Methods of a tensor that give Python its data, which the runtime reads when the graph runs.
_READINGS = frozenset({"item", "tolist"})
#: What edits need from the runtime.
_NEEDS = {"format": "formatted", "percent": "percent", "fail": "fail", "fail-from": "fail_from"}


def imports_of(edits: Iterable[Edit]) -> set[str]:
    """The names of the runtime that the edits of arguments, and of `raise`, need."""
    names: set[str] = set()
    for edit in edits:
        if edit.kind in _NEEDS:
            names.add(_NEEDS[edit.kind])
        if edit.kind in ("format", "percent", "read"):
            names.update(edit.detail.split())
    return names


class Card(Protocol):
    """The part of a rule's declarations that this transformation reads."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def breaks(self) -> tuple[str, ...]: ...
    @property
    def calls(self) -> tuple[str, ...]: ...
    @property
    def methods(self) -> tuple[str, ...]: ...


#: Types of values that Dynamo knows and the runtime does not carry.
_OBJECTS = frozenset({"self", "config", "function", "module", "callable"})


class Obstacle(Exception):
    """Why a call cannot be carried. Raised and caught inside `transforms`."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class Carrier:
    """Answers for one function."""

    def __init__(self, facts: FileFacts, function: FunctionFacts) -> None:
        self.facts = facts
        self.function = function
        self.values = function.values
        self.scope: Scope = function.scope

    def check_place(self, point: Point) -> None:
        """Raise `Obstacle` where a call must not leave the Python around it."""
        function = self.function.summary
        if function.is_generator:
            raise Obstacle(Reason.GENERATOR, "the function is a generator")
        if function.is_async:
            raise Obstacle(Reason.ASYNC_FUNCTION, "the function is a coroutine")
        if self.function.is_scripted:
            raise Obstacle(Reason.TORCHSCRIPT, "the function is scripted with torch.jit")
        for around in point.around:
            if isinstance(around, TRY_STATEMENTS):
                raise Obstacle(Reason.INSIDE_TRY, f"the call stands in the `try` of line {around.lineno}")
            if isinstance(around, (ast.With, ast.AsyncWith)) and not all(map(self._lets_through, around.items)):
                raise Obstacle(
                    Reason.INSIDE_TRY, f"the `with` of line {around.lineno} may handle exceptions like a `try`"
                )
        if self.function.in_try:
            raise Obstacle(Reason.INSIDE_TRY, f"`{self.function.in_try}` calls this inside a `try`")

    def _lets_through(self, item: ast.withitem) -> bool:
        """Whether a context manager is known to let exceptions through, and messages as well."""
        made = item.context_expr
        name = self.facts.bindings.qualified(made.func if isinstance(made, ast.Call) else made, self.scope) or ""
        return name.startswith("torch.") or name == "contextlib.nullcontext"

    def carry(self, node: ast.expr, env: Env) -> list[Edit]:
        """The edits that make one argument one that the runtime carries; none where it is so already.

        Raises:
            Obstacle: it is something else.
        """
        if isinstance(node, ast.Starred):
            raise Obstacle(Reason.STAR_ARGUMENTS, f"`*{self.text(node.value)}` hides the arguments")
        if isinstance(node, ast.JoinedStr):
            fields = [field for part in node.values for field in text_fields(part)]
            edits = self._text_of(fields, "format", node, env)
            if edits:
                self._check_order(fields)
            return edits
        if isinstance(node, ast.Call) and is_text_format(node):
            parts = [*node.args, *(k.value for k in node.keywords)]
            if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
                raise Obstacle(Reason.STAR_ARGUMENTS, f"`{self.text(node)}` hides its arguments")
            return self._text_of(parts, "format", node, env)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_text(node.left):
            parts = list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
            return self._text_of(parts, "percent", node, env)
        if (reading := self._reading(node, env)) is not None:
            return [Edit("read", self.facts.source.span(node), reading)]
        value = self.carried_value(node, env)
        if value.type == "str" and (value.symbolic or value.kind == "tensor"):
            raise Obstacle(
                Reason.ARGUMENT_CALLS_UNKNOWN,
                f"`{self.text(node)}` is a text made of values that change from call to call",
            )
        return []

    def _text_of(self, parts: list[ast.expr], kind: str, node: ast.expr, env: Env) -> list[Edit]:
        """A text with fields: left as it is where each field is a constant of the trace, formatted later otherwise."""
        late = False
        readings = set()
        for part in parts:
            if (reading := self._reading(part, env)) is not None:
                readings.add(reading)
                continue
            value = self.carried_value(part, env)
            late = late or value.symbolic or value.kind == "tensor"
        return [Edit(kind, self.facts.source.span(node), " ".join(sorted(readings)))] if late or readings else []

    def _reading(self, node: ast.expr, env: Env) -> str | None:
        """The method of `t.item()` or `t.tolist()`, where that is the whole expression and `t` is carried."""
        if not is_reading(node) or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        return node.func.attr if self.carried_value(node.func.value, env).kind == "tensor" else None

    def _check_order(self, fields: list[ast.expr]) -> None:
        """An f-string turns each field into text before it computes the next; `formatted` computes all first."""
        for field in fields[1:]:
            for part in ast.walk(field):
                if isinstance(part, ast.NamedExpr) or (isinstance(part, ast.Call) and not self._leaves_alone(part)):
                    raise Obstacle(
                        Reason.ARGUMENT_CALLS_UNKNOWN,
                        f"`{self.text(part)}` may change what stands before it in the text",
                    )

    def _leaves_alone(self, call: ast.Call) -> bool:
        """Whether a call is known not to change anything that a text may show."""
        if any(keyword.arg == "out" for keyword in call.keywords):
            return False
        fact = self.torch_fact(call)
        if fact is not None:
            return not fact.in_place
        return (self.facts.bindings.qualified(call.func, self.scope) or "").startswith("builtins.")

    def torch_fact(self, call: ast.Call) -> torch_facts.OpFact | None:
        """What is known of a call of a torch function, or of a method if its receiver is a tensor."""
        name = self.facts.bindings.qualified(call.func, self.scope)
        if name is not None:
            return torch_facts.function(name)
        return torch_facts.method(call.func.attr) if isinstance(call.func, ast.Attribute) else None

    def spelling(self, module: str, name: str) -> str:
        """How this file spells `module.name`.

        Raises:
            Obstacle: it has no name for it.
        """
        for own, target in (*self.scope.imports.items(), *self.facts.summary.imports.items()):
            spelled = {module: f"{own}.{name}", f"{module}.{name}": own}.get(target)
            node = None if spelled is None else ast.parse(spelled, mode="eval").body
            if node is not None and spelled and self.facts.bindings.qualified(node, self.scope) == f"{module}.{name}":
                return spelled
        raise Obstacle(Reason.TORCH_NOT_IMPORTED, f"the file has no name for `{module}.{name}`")

    def decline(self, obstacle: Obstacle) -> Decline:
        """What a finding says where there is no fix: the obstacle, and what a person can do."""
        return Decline(obstacle.reason.value, f"{obstacle.text}; {ADVICE[obstacle.reason]}")

    def carried_value(self, node: ast.expr, env: Env) -> Value:
        value = self.values.of(node, dict(env))
        if value.type.startswith("submodule") or value.type in _OBJECTS:
            raise Obstacle(
                Reason.ARGUMENT_UNKNOWN,
                f"`{self.text(node)}` is an object, not a constant, a shape or a tensor",
            )
        if value.kind in ("static", "tensor"):
            return value
        if value.kind == "data":
            raise Obstacle(Reason.ARGUMENT_READS_DATA, f"`{self.text(node)}` reads tensor data")
        call = next((n for n in ast.walk(node) if isinstance(n, ast.Call)), None)
        if call is not None:
            raise Obstacle(Reason.ARGUMENT_CALLS_UNKNOWN, f"what `{self.text(call)}` gives is not known")
        raise Obstacle(Reason.ARGUMENT_UNKNOWN, f"what `{self.text(node)}` holds is not known")

    def are_total(self, arguments: Iterable[ast.expr], test: ast.expr, env: Env) -> bool:
        """Whether arguments can be computed although `test`, the test of the `if` around them, is false."""
        nodes = list(_surely_evaluated(test))
        read = {n.value.id for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
        present = {name: replace(env[name], optional=False, unbound=False) for name in read if name in env}
        known = {ast.dump(n) for n in nodes if isinstance(n, ast.Call) and self._leaves_alone(n)}
        arguments = [_carried_part(argument) for argument in arguments]
        return all(
            is_total(argument, self.values, {**env, **present})
            or is_total(_without(argument, known), self.values, {**env, **present})
            for argument in arguments
        )

    def text(self, node: ast.expr) -> str:
        """The source of an expression, short enough for a message."""
        text = self.facts.source.segment(node)
        return text if len(text) <= 60 else text[:57] + "..."

    def fresh_name(self, wish: str) -> str:
        """`wish`, or with a number where the function, one around it or the module uses that name."""
        taken = {n.id for n in ast.walk(self.scope.node) if isinstance(n, ast.Name)}
        scope: Scope | None = self.scope
        while scope is not None:
            taken |= scope.local
            scope = scope.outer
        name, number = wish, 2
        while name in taken or name in self.facts.summary.assigned or name in self.facts.summary.imports:
            name, number = f"{wish}_{number}", number + 1
        return name


def is_reading(node: ast.expr) -> bool:
    """Whether an expression is `x.item()` or `x.tolist()`."""
    plain = isinstance(node, ast.Call) and not node.args and not node.keywords
    return plain and isinstance(node.func, ast.Attribute) and node.func.attr in _READINGS  # type: ignore[attr-defined]


def _carried_part(argument: ast.expr) -> ast.expr:
    """What is computed of an argument in any case: of `x.item()`, alone or as a field of a text, only `x`."""
    made = _Receivers().visit(copy.deepcopy(argument))
    assert isinstance(made, ast.expr)
    return made


class _Receivers(ast.NodeTransformer):
    """Puts the tensor in the place of each reading of its data."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if is_reading(node) and isinstance(node.func, ast.Attribute):
            return node.func.value
        self.generic_visit(node)
        return node


def _without(node: ast.expr, known: set[str]) -> ast.expr:
    """An expression with a constant in the place of each part that is in `known`."""
    if not known:
        return node
    made = _Known(known).visit(copy.deepcopy(node))
    assert isinstance(made, ast.expr)
    return made


class _Known(ast.NodeTransformer):
    """Puts constants in the place of what has been computed already."""

    def __init__(self, known: set[str]) -> None:
        self.known = known

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if ast.dump(node) in self.known:
            return ast.copy_location(ast.Constant(0), node)
        self.generic_visit(node)
        return node


def _surely_evaluated(test: ast.expr) -> Iterator[ast.expr]:
    """The parts of a test that have been computed whenever it gives a tensor."""
    every = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    stack: list[ast.AST] = list(test.values) if every and isinstance(test, ast.BoolOp) else [test]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.expr):
            yield node
        if isinstance(node, ast.BoolOp):
            stack.append(node.values[0])
        elif isinstance(node, ast.Compare):
            stack += [node.left, node.comparators[0]]
        elif isinstance(node, ast.IfExp):
            stack.append(node.test)
        elif isinstance(node, (ast.Call, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Subscript)):
            stack.extend(ast.iter_child_nodes(node))
