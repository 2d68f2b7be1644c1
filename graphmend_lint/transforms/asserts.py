"""Assert: an assertion on tensor data becomes a check in the graph that raises AssertionError.

    assert x.min() >= 0, f"{x.min()} in x"     ->     if __debug__ and (alarm := unless(x.min() >= 0)):
                                                          alarm(fail)(AssertionError, formatted("{} in x", x.min()))

Dynamo (2.13, measured) has an answer of its own where the last thing that the assertion asks is one tensor and the
message is a constant text: it compiles `torch._assert_async`, which does not break the graph, and raises RuntimeError
in place of AssertionError. All other assertions on tensors break. Those are found here; what makes the fix safe or not
is what does so for guards (see `trap`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_lint.analysis.facts import FileFacts
from graphmend_lint.analysis.values import Env, Point, Walk
from graphmend_lint.findings import Edit, Finding, Plan, Reason
from graphmend_lint.transforms import checks
from graphmend_lint.transforms.carry import Card, Obstacle, imports_of
from graphmend_lint.transforms.checks import Checks, Options, Test, interest, is_not

#: Reasons that this transformation gives; the rules' pages list them.
REASONS = tuple(reason for reason in checks.REASONS if reason is not Reason.STAR_ARGUMENTS)

_TITLE = "Raise when the graph runs"


def find(facts: FileFacts, cards: Sequence[Card], options: Options) -> Iterator[Finding]:
    """The findings of the rule in `cards`: assertions on tensor data that break."""
    for function in facts.functions(interest(cards)):
        if not any(isinstance(node, ast.Assert) for node in ast.walk(function.node)):
            continue
        for card in cards:
            yield from _Function(facts, function, options).findings(card)


class _Function(Checks):
    """The assertions of one function."""

    def findings(self, card: Card) -> Iterator[Finding]:
        for point in Walk(self.tensors).points():
            statement = point.statement
            if not isinstance(statement, ast.Assert) or not self._breaks(statement, dict(point.env)):
                continue
            here = Point(statement, dict(point.env), point.around, point.block)
            try:
                self.check_place(here)
                plan = self._plan(statement, here)
            except Obstacle as obstacle:
                yield self._report(card, statement, here.env, None, obstacle)
            else:
                yield self._report(card, statement, here.env, plan, None)

    # -- what Dynamo does --------------------------------------------------------------------------------------

    def _breaks(self, statement: ast.Assert, env: Env) -> bool:
        kind = self.values.of(statement.test, dict(env)).kind
        if kind not in ("tensor", "data"):
            return False
        silent = self._asks_one_tensor(statement.test, env) and _is_constant_text(statement.msg)
        return not silent

    def _asks_one_tensor(self, test: ast.expr, env: Env) -> bool:
        """Whether the last jump of the test is on one tensor, and all before it are static."""
        if isinstance(test, ast.BoolOp):
            static = all(self.values.of(part, dict(env)).kind == "static" for part in test.values[:-1])
            return static and self._asks_one_tensor(test.values[-1], env)
        if is_not(test) or isinstance(test, ast.IfExp) or (isinstance(test, ast.Compare) and len(test.ops) > 1):
            return False
        return self.values.of(test, dict(env)).kind == "tensor"

    # -- legality ----------------------------------------------------------------------------------------------

    def _plan(self, statement: ast.Assert, point: Point) -> Plan:
        if not self.options.carried:
            raise Obstacle(Reason.TARGET_TORCH_TOO_OLD, "target-torch is older than 2.11")
        site = self.facts.source.span(statement)
        if self.options.style == "async":
            edit = self.async_edit(statement, statement.test, statement.msg, point.env, fails=False)
            self.check_order(statement, [statement.test], point)
            return Plan(site, (edit,), (), "Assert when the graph runs")
        if self.facts.bindings.qualified(ast.Name("AssertionError"), self.scope) != "builtins.AssertionError":
            raise Obstacle(Reason.EXCEPTION_NOT_CARRIED, "`AssertionError` is another name here")
        test = self.read_test(statement.test, point.env, prefix=False)
        edits = [] if statement.msg is None else self.argument_edits(statement.msg, statement.test, point.env)
        self.check_order(statement, [statement.test], point)
        names = imports_of(edits) | {"fail", "unless" if _passes(test) else "when"}
        questions = self.question_edits(test)
        names.update(edit.detail for edit in questions)
        edits += questions
        kind = "assert" if _passes(test) else "assert-not"
        edits.append(Edit(kind, site, self.alarm, value=test.value))
        return Plan(site, tuple(edits), tuple(sorted(names)), _TITLE)

    # -- reporting ---------------------------------------------------------------------------------------------

    def _report(
        self, card: Card, statement: ast.Assert, env: Env, plan: Plan | None, obstacle: Obstacle | None
    ) -> Finding:
        breaks = card.breaks[:1]
        message = f"the assertion on `{self.text(statement.test)}` ends the graph ({breaks[0]})"
        if isinstance(statement.msg, ast.Constant) and self._asks_one_tensor(statement.test, env):
            # Dynamo hands the message to `torch._assert_async`, which takes a text only (2.13).
            test = self.text(statement.test)
            message = f"compiled code raises TypeError at the assertion on `{test}`: its message is no text"
            breaks = ()
        decline = None
        if obstacle is not None:
            decline = self.decline(obstacle)
            message += f"; not fixed: {decline.text}"
        elif self.options.style == "async":
            message += f"; assert when the graph runs ({self.not_proven(checks.LOST)})"
        else:
            message += f"; raise when the graph runs ({self.not_proven()})"
        region = self.function.region
        return Finding(
            card.code,
            card.name,
            str(self.facts.source.path),
            self.facts.source.span(statement.test),
            message,
            region.confidence,
            "unsafe" if plan else "none",
            decline,
            breaks,
            region.entry,
            plan,
        )


def _passes(test: Test) -> bool:
    """Whether the assertion holds where the expression at the test's place, without its `not`, is true."""
    return test.kind == "when"


def _is_constant_text(message: ast.expr | None) -> bool:
    """Whether Python makes a constant text of a message when it compiles the source."""
    if message is None:
        return True
    if isinstance(message, ast.BinOp) and isinstance(message.op, ast.Add):
        return _is_constant_text(message.left) and _is_constant_text(message.right)
    if isinstance(message, ast.JoinedStr):
        return all(isinstance(part, ast.Constant) for part in message.values)
    return isinstance(message, ast.Constant) and isinstance(message.value, str)
