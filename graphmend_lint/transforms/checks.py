"""Checks: the test of a guard, and the exception that it raises, as the runtime takes them.

    if not mask.all():                              if alarm := unless(mask.all()):
        raise ValueError(f"{mask.sum()} left")   ->     alarm(fail)(ValueError, formatted("{} left", mask.sum()))

Eagerly `unless(p)` is true where `not p` was, and `fail` raises the same exception with the same arguments. Compiled,
the predicate and what the message needs go into one ordered operator, which raises when the graph runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from graphmend_lint.analysis.facts import FileFacts, FunctionFacts, Interest
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.tensors import Tensors
from graphmend_lint.analysis.values import Env
from graphmend_lint.findings import Built, Edit, Piece, Reason
from graphmend_lint.transforms.carry import NOT_PROVEN, Card, Obstacle
from graphmend_lint.transforms.order import Ordered
from graphmend_lint.transforms.predicate import Predicates

#: Functions of torch that read tensor data and that `late` asks when the graph runs.
_QUESTIONS = frozenset({"torch.equal", "torch.allclose", "torch.is_nonzero"})

#: What is lost where torch's own assertion takes the place of an exception.
LOST = "unsafe: RuntimeError takes the place of the exception, and on a GPU the process cannot go on after it"

#: Reasons that reading a test or an exception gives.
REASONS = (
    Reason.ARGUMENT_UNKNOWN,
    Reason.ARGUMENT_READS_DATA,
    Reason.ARGUMENT_CALLS_UNKNOWN,
    Reason.ARGUMENT_MAY_RAISE,
    Reason.STAR_ARGUMENTS,
    Reason.PREDICATE_NOT_CARRIED,
    Reason.PREDICATE_READS_DATA,
    Reason.PREDICATE_NOT_ONE_ELEMENT,
    Reason.PREDICATE_MIXED,
    Reason.PREDICATE_MAY_RAISE,
    Reason.EXCEPTION_NOT_CARRIED,
    Reason.GUARD_AFTER_CHANGE,
    Reason.GUARD_PROTECTS,
    Reason.INSIDE_TRY,
    Reason.GENERATOR,
    Reason.ASYNC_FUNCTION,
    Reason.TORCHSCRIPT,
    Reason.TORCH_NOT_IMPORTED,
    Reason.TARGET_TORCH_TOO_OLD,
)


@dataclass(frozen=True, slots=True)
class Options:
    """What the configuration says about checks.

    `style` is "exact" (the original exception) or "async" (`torch._assert_async`); `carried` is False where the oldest
    torch to support lacks effectful operators.
    """

    style: str = "exact"
    carried: bool = True


@dataclass(frozen=True, slots=True)
class Test:
    """A test as the runtime takes it: the expression at `place` goes into `when`, or into `unless`, as `kind` says.

    `value` is what is handed over where that is not the expression itself (without its `not`); `question` is the
    function of torch in it that is to be asked late.
    """

    place: ast.expr
    kind: str
    value: Piece | None = None
    question: ast.expr | None = None


def interest(cards: Iterable[Card]) -> Interest:
    """What the rules in `cards` look for: guards and assertions."""
    return Interest(guards=any(True for _ in cards))


class Checks(Ordered):
    """Reads the checks of one function."""

    def __init__(self, facts: FileFacts, function: FunctionFacts, options: Options) -> None:
        super().__init__(facts, function)
        self.options = options
        self.tensors = Tensors(facts.bindings, function.scope, self.text)
        self.values = self.tensors
        self.doubts: dict[str, None] = {}
        self.predicates = Predicates(self.tensors, facts.source, self.text, self._doubt)
        self.alarm = self.fresh_name("alarm")

    def text(self, node: ast.expr) -> str:
        return super().text(node) if hasattr(node, "lineno") else ast.unparse(node)

    def _doubt(self, text: str) -> None:
        self.doubts[text] = None

    def not_proven(self, text: str = NOT_PROVEN) -> str:
        """What the last test that was read, and the fix, rest on without proof."""
        return "; ".join([text, *(f"it takes for granted that {doubt}" for doubt in self.doubts)])

    # -- tests -------------------------------------------------------------------------------------------------

    def read_test(self, test: ast.expr, env: Env, *, prefix: bool) -> Test:
        """A test on tensor data. With `prefix`, static parts joined by `and` that come first may stay in front.

        Raises:
            Obstacle: the runtime cannot be given the test.
        """
        self.doubts = {}
        self.tensors.still()
        split = self.predicates.split(test, env) if prefix else None
        rest = split.rest if split is not None else (test,)
        if len(rest) == 1:
            single = self._single(rest[0], env) or self._after_static(rest[0], env)
            if single is not None:
                return single
        self.tensors.certain = True
        try:
            predicate = self.predicates.read(rest, env)
        finally:
            self.tensors.certain = False
        kind = "unless" if predicate.negated else "when"
        if split is None or split.static is None or len(rest) == 1:
            return Test(rest[0] if len(rest) == 1 else test, kind, predicate.piece)
        return Test(test, kind, Built("then", (split.static, predicate.piece)))

    def _single(self, node: ast.expr, env: Env) -> Test | None:
        """A test of one tensor, or one question that `late` can ask."""
        negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        inner = node.operand if isinstance(node, ast.UnaryOp) and negated else node
        if any(isinstance(part, (ast.NamedExpr, ast.Await)) for part in ast.walk(inner)):
            raise Obstacle(Reason.PREDICATE_NOT_CARRIED, f"`{self.text(inner)}` is not a single test")
        if any(isinstance(part, (ast.BoolOp, ast.IfExp)) or is_not(part) for part in ast.walk(inner)):
            return None
        kind = "unless" if negated else "when"
        if isinstance(inner, ast.Call) and self.facts.bindings.qualified(inner.func, self.scope) in _QUESTIONS:
            for argument in (*inner.args, *(keyword.value for keyword in inner.keywords)):
                self.carry(argument, env)
            return Test(node, kind, question=inner.func)
        if isinstance(inner, ast.Compare) and len(inner.ops) > 1:
            return None
        return Test(node, kind) if self.values.of(inner, dict(env)).kind == "tensor" else None

    def _after_static(self, node: ast.expr, env: Env) -> Test | None:
        """Static parts before one tensor, joined by `and` or `or`: Python's own value is one that `when` takes."""
        if not isinstance(node, ast.BoolOp):
            return None
        if any(self.values.of(part, dict(env)).kind != "static" for part in node.values[:-1]):
            return None
        last = self._single(node.values[-1], env)
        return Test(node, "when") if last is not None and last.kind == "when" and last.question is None else None

    def test_edits(self, test: Test) -> tuple[list[Edit], set[str]]:
        """The edits of an `if` with that test, and the names that they need of the runtime."""
        questions = self.question_edits(test)
        edit = Edit(test.kind, self.facts.source.span(test.place), self.alarm, value=test.value)
        return [*questions, edit], {test.kind, *(question.detail for question in questions)}

    def question_edits(self, test: Test) -> list[Edit]:
        """The edit that has the question of a test asked late, if it is one."""
        if test.question is None:
            return []
        return [Edit("wrap", self.facts.source.span(test.question), "late")]

    # -- exceptions --------------------------------------------------------------------------------------------

    def exception_edits(self, raised: ast.Raise, test: ast.expr, env: Env) -> list[Edit]:
        """The edits of a `raise`: what its arguments need, and itself.

        Raises:
            Obstacle: the exception is not a class called with what the runtime carries.
        """
        if raised.exc is None:
            raise Obstacle(Reason.EXCEPTION_NOT_CARRIED, "the exception is the one being handled")
        call = raised.exc if isinstance(raised.exc, ast.Call) else None
        self._check_class(call.func if call else raised.exc)
        if raised.cause is not None and not (isinstance(raised.cause, ast.Constant) and raised.cause.value is None):
            self._check_class(raised.cause)
        if call is not None and any(keyword.arg is None for keyword in call.keywords):
            raise Obstacle(Reason.STAR_ARGUMENTS, f"`{self.text(call)}` hides its arguments")
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)] if call else []
        edits = [edit for argument in arguments for edit in self.argument_edits(argument, test, env)]
        kind = "fail" if raised.cause is None else "fail-from"
        return [*edits, Edit(kind, self.facts.source.span(raised), self.alarm)]

    def argument_edits(self, argument: ast.expr, test: ast.expr, env: Env) -> list[Edit]:
        """The edits of what is computed in any case once it is compiled.

        Raises:
            Obstacle: the runtime does not carry it, or computing it may raise.
        """
        edits = self.carry(argument, env)
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

    # -- torch's own assertion ---------------------------------------------------------------------------------

    def async_edit(self, check: ast.stmt, test: ast.expr, message: ast.expr | None, env: Env, *, fails: bool) -> Edit:
        """The edit that puts `torch._assert_async` in the place of a check that fails where `test` is `fails`.

        Raises:
            Obstacle: the test is not one boolean in a tensor, or the message is no constant text.
        """
        if message is not None and not (isinstance(message, ast.Constant) and isinstance(message.value, str)):
            raise Obstacle(Reason.EXCEPTION_NOT_CARRIED, f"`{self.text(message)}` is not a constant text")
        self.doubts = {}
        self.tensors.still()
        predicate = self.predicates.read((test,), env)
        piece = predicate.piece if predicate.negated is fails else Built("not", (predicate.piece,))
        parts = (piece,) if message is None else (piece, self.facts.source.span(message))
        return Edit(
            "async", self.facts.source.span(check), self.spelling("torch", "_assert_async"), value=Built("call", parts)
        )


def is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
