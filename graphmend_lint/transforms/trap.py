"""Trap: a guard becomes a check in the graph that raises the original exception.

    if not mask.all():                              if alarm := unless(mask.all()):
        raise ValueError(f"{mask.sum()} left")   ->     alarm(fail)(ValueError, formatted("{} left", mask.sum()))

What makes that safe. Eagerly `unless(p)` is true where `not p` was, and `fail` raises the same exception with the
same arguments. Compiled, the predicate and what the message needs go into one ordered operator, which raises when the
graph runs. Compiled code computes the arguments of the exception in any case, so they must be total. It also goes on
tracing after the guard, and a compiler may run what follows first, so nothing that follows may be undefined on the
data that the guard excludes; and a graph writes changes back at its end, which an exception does not reach, so
nothing may have been changed before. In the function itself both are looked at. Other functions share the graph and
are not looked at: for that reason the fix is unsafe.

Messages in front of the `raise` are given the alarm as well. An `else` is moved out of the guard, an `elif` becomes an
`if`: compiled code goes through the body of the guard in any case, and what follows it must not depend on that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_lint.analysis.facts import FileFacts, FunctionFacts
from graphmend_lint.analysis.values import Env, Point, Walk
from graphmend_lint.findings import Decline, Edit, Finding, Fix, Plan, Reason
from graphmend_lint.transforms import checks
from graphmend_lint.transforms import disguise as disguises
from graphmend_lint.transforms.carry import Card, Obstacle, imports_of
from graphmend_lint.transforms.checks import Checks, Options, interest
from graphmend_lint.transforms.disguise import Disguise
from graphmend_lint.transforms.messages import CHECKS, Messages

#: Reasons that this transformation gives; the rules' pages list them.
REASONS = (
    *checks.REASONS,
    Reason.KEYWORD_NOT_CARRIED,
    Reason.LOGGER_NOT_RESOLVED,
    Reason.LOGGER_MADE_HERE,
    Reason.BRANCH_DOES_MORE,
    Reason.GUARD_HAS_ELSE,
)


def find(facts: FileFacts, cards: Sequence[Card], messages: Sequence[Card], options: Options) -> Iterator[Finding]:
    """The findings of the rule in `cards`: guards on tensor data that raise. `messages`: the rules about messages."""
    for function in facts.functions(interest(cards)):
        if not any(map(_is_guard, ast.walk(function.node))):
            continue
        for card in cards:
            yield from _Function(facts, function, card, messages, options).findings()


class _Function(Checks):
    """The guards of one function."""

    def __init__(
        self, facts: FileFacts, function: FunctionFacts, card: Card, messages: Sequence[Card], options: Options
    ) -> None:
        super().__init__(facts, function, options)
        self.card = card
        self.messages = Messages(facts, function, messages)
        self.messages.values = self.values

    def findings(self) -> Iterator[Finding]:
        for point in Walk(self.tensors).points():
            guard = point.statement
            if not isinstance(guard, ast.If) or not _is_guard(guard):
                continue
            if self.values.of(guard.test, dict(point.env)).kind in ("tensor", "data"):
                yield self._finding(guard, Point(guard, dict(point.env), point.around, point.block))

    def _finding(self, guard: ast.If, point: Point) -> Finding:
        disguise = disguises.find(self, guard.test, point)
        if disguise is not None and disguise.edit is not None:
            return self._report_disguise(guard, disguise.edit, disguise.line)
        self.doubts = {}
        try:
            self.check_place(point)
            plan = self._plan(guard, point)
        except Obstacle as obstacle:
            return self._report(guard, None, obstacle, disguise)
        return self._report(guard, plan, None, disguise)

    # -- legality ----------------------------------------------------------------------------------------------

    def _plan(self, guard: ast.If, point: Point) -> Plan:
        if not self.options.carried:
            raise Obstacle(Reason.TARGET_TORCH_TOO_OLD, "target-torch is older than 2.11")
        *before, raised = guard.body
        assert isinstance(raised, ast.Raise)
        self._check_else(guard)
        if self.options.style == "async":
            return self._async_plan(guard, raised, point)
        test = self.read_test(guard.test, point.env, prefix=True)
        edits = [edit for statement in before for edit in self._message(statement, guard, point.env)]
        edits += self.exception_edits(raised, guard.test, point.env)
        self.check_order(guard, [guard.test], point)
        if guard.orelse:
            edits.append(Edit("unnest", self.facts.source.span(guard)))
        names = imports_of(edits)
        test_edits, test_names = self.test_edits(test)
        return Plan(
            self.facts.source.span(raised),
            (*edits, *test_edits),
            tuple(sorted(names | test_names)),
            "Raise when the graph runs",
        )

    def _async_plan(self, guard: ast.If, raised: ast.Raise, point: Point) -> Plan:
        if len(guard.body) > 1:
            raise Obstacle(Reason.BRANCH_DOES_MORE, f"line {guard.body[0].lineno} runs before the exception is raised")
        if guard.orelse or self.facts.source.is_elif(guard):
            raise Obstacle(Reason.GUARD_HAS_ELSE, "the guard is one of several sides")
        arguments = raised.exc.args if isinstance(raised.exc, ast.Call) else []
        edit = self.async_edit(guard, guard.test, arguments[0] if arguments else None, point.env, fails=True)
        self.check_order(guard, [guard.test], point)
        return Plan(self.facts.source.span(raised), (edit,), (), "Assert when the graph runs")

    def _check_else(self, guard: ast.If) -> None:
        """Raise `Obstacle` if what follows an `elif` would have to be moved: it depends on the tests before as well."""
        if guard.orelse and self.facts.source.is_elif(guard):
            raise Obstacle(Reason.GUARD_HAS_ELSE, f"the `elif` goes on at line {guard.orelse[0].lineno}")

    def _message(self, statement: ast.stmt, guard: ast.If, env: Env) -> list[Edit]:
        """The edits of a message in front of the exception."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        site = self.messages.site(call) if isinstance(call, ast.Call) else None
        if site is None or site.family in CHECKS:
            raise Obstacle(Reason.BRANCH_DOES_MORE, f"line {statement.lineno} runs before the exception is raised")
        if site.obstacle is not None:
            raise site.obstacle
        edits = self.messages.arguments(site, env)
        for argument in site.arguments:
            self.argument_edits(argument, guard.test, env)
        return [*edits, Edit("wrap", self.facts.source.span(site.target), self.alarm)]

    # -- reporting ---------------------------------------------------------------------------------------------

    def _report_disguise(self, guard: ast.If, edit: Edit, line: int) -> Finding:
        plan = Plan(self.facts.source.span(guard.body[-1]), (edit,), (), "Test Python's own numbers")
        how = f"it is made of Python's numbers at line {line}: test those, which costs nothing"
        return self._finding_of(guard, how, "safe", None, plan)

    def _report(
        self, guard: ast.If, plan: Plan | None, obstacle: Obstacle | None, disguise: Disguise | None
    ) -> Finding:
        decline = None if obstacle is None else self.decline(obstacle)
        if decline is not None:
            how = f"not fixed: {decline.text}"
        elif self.options.style == "async":
            how = f"assert when the graph runs ({self.not_proven(checks.LOST)})"
        else:
            how = f"raise when the graph runs ({self.not_proven()})"
        if disguise is not None:
            how += f"; it is made of Python's numbers at line {disguise.line}: a test of those would cost nothing"
        return self._finding_of(guard, how, "unsafe" if plan else "none", decline, plan)

    def _finding_of(self, guard: ast.If, how: str, fix: Fix, decline: Decline | None, plan: Plan | None) -> Finding:
        breaks = self.card.breaks[:1]
        region = self.function.region
        return Finding(
            self.card.code,
            self.card.name,
            str(self.facts.source.path),
            self.facts.source.span(guard.test),
            f"the guard on `{self.text(guard.test)}` ends the graph ({breaks[0]}); {how}",
            region.confidence,
            fix,
            decline,
            breaks,
            region.entry,
            plan,
        )


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)
