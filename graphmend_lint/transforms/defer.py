"""Defer: a message leaves the Python of the region.

`print`, logger methods, `warnings.warn` as statements of their own. The plan wraps the callee, so that eager code
makes the same call from the same line and compiled code makes it when the graph runs:

    logger.warning("nan in %s", name)   ->   deferred(logger).warning("nan in %s", name)

What makes that safe. Eagerly `deferred(f)` is `f`: nothing changes. Compiled, every argument must be something that the
runtime carries into the graph: constants, shapes, tensors, and texts formatted from those. Texts are formatted when
the graph runs, from the values of the moment of the call. A call inside `try`, here or in a caller, is left alone:
without the break the whole `try` would be compiled, and a failing tensor operation in it would no longer meet its
handler. A message under a tensor test is given the test (`if alarm := when(test): alarm(logger).warning(...)`),
provided that its arguments can be computed in any case: compiled code computes them always.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphmend_lint.analysis.facts import FileFacts, FunctionFacts, Interest
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.values import Env, Point, Value
from graphmend_lint.findings import Edit, Finding, Fix, Plan, Reason
from graphmend_lint.transforms.carry import NOT_PROVEN, Card, Obstacle, imports_of
from graphmend_lint.transforms.messages import CHECKS, Messages, Site
from graphmend_lint.transforms.order import Ordered


@dataclass(frozen=True, slots=True)
class Options:
    """What the configuration says about this transformation.

    `style` is "runtime" or "guard"; `carried` is False where the oldest torch to support lacks effectful operators.
    """

    style: str = "runtime"
    carried: bool = True


#: Reasons that this transformation gives; the rules' pages list them.
REASONS = (
    Reason.ARGUMENT_UNKNOWN,
    Reason.ARGUMENT_READS_DATA,
    Reason.ARGUMENT_CALLS_UNKNOWN,
    Reason.STAR_ARGUMENTS,
    Reason.KEYWORD_NOT_CARRIED,
    Reason.VALUE_IS_USED,
    Reason.LOGGER_NOT_RESOLVED,
    Reason.LOGGER_MADE_HERE,
    Reason.IN_GUARD,
    Reason.GUARD_AFTER_CHANGE,
    Reason.GUARD_PROTECTS,
    Reason.INSIDE_TRY,
    Reason.GENERATOR,
    Reason.ASYNC_FUNCTION,
    Reason.TORCHSCRIPT,
    Reason.TARGET_TORCH_TOO_OLD,
)

#: How Dynamo numbers the break of a call, where that is not the first number that its rule declares.
_BREAKS = {"write": "GB0007", "_assert": "GB0170"}


def interest(cards: Iterable[Card]) -> Interest:
    """What the rules in `cards` look for."""
    names = [name for card in cards for name in (*card.calls, *card.methods)]
    return Interest(frozenset(part for name in names for part in (name, name.rpartition(".")[2])))


def find(facts: FileFacts, cards: Sequence[Card], options: Options) -> Iterator[Finding]:
    """The findings of every rule in `cards` that builds on this transformation."""
    for function in facts.functions(interest(cards)):
        yield from _Function(facts, function, cards, options).findings()


class _Function(Messages, Ordered):
    """The messages of one function."""

    def __init__(self, facts: FileFacts, function: FunctionFacts, cards: Sequence[Card], options: Options) -> None:
        super().__init__(facts, function, cards)
        self.options = options
        self.alarm = self.fresh_name("alarm")
        self.tests: dict[ast.If, Value] = {}
        self.sites: dict[ast.Expr, tuple[Site, Env]] = {}

    def findings(self) -> Iterator[Finding]:
        points = list(self._scan())
        alarms = {node for node in self.tests if self._carries_test(node)}
        for point, site in points:
            yield self._finding(point, site, alarms)

    def _scan(self) -> Iterator[tuple[Point, Site]]:
        for point in self.function.walk().points():
            statement = point.statement
            if isinstance(statement, ast.If):
                self.tests[statement] = self.values.of(statement.test, dict(point.env))
            whole = statement.value if isinstance(statement, ast.Expr) else None
            for call in _header_calls(statement):
                site = self.site(call)
                if site is None or self._checks_no_tensor(site, point.env):
                    continue
                env = dict(point.env)
                if call is whole and isinstance(statement, ast.Expr):
                    self.sites[statement] = (site, env)
                else:
                    site.obstacle = Obstacle(Reason.VALUE_IS_USED, f"the value of `{site.callee}(...)` is used")
                yield Point(statement, env, point.around, point.block), site

    def _checks_no_tensor(self, site: Site, env: Env) -> bool:
        """Whether a call is a check of what Python knows while tracing."""
        return site.family in CHECKS and all(self.values.of(a, dict(env)).kind == "static" for a in site.arguments)

    # -- legality ----------------------------------------------------------------------------------------------

    def _finding(self, point: Point, site: Site, alarms: set[ast.If]) -> Finding:
        branch = next((a for a in reversed(point.around) if isinstance(a, ast.If) and a in alarms), None)
        try:
            if site.obstacle is not None:
                raise site.obstacle
            self.check_place(point)
            if site.family in CHECKS:
                self.check_order(point.statement, site.arguments, point)
            else:
                self._check_not_in_guard(point)
            if self.options.style == "guard" and site.family not in CHECKS:
                return self._report(site, "unsafe", plan=self._guard(point, site))
            plan = self._plan(point, site, branch)
        except Obstacle as obstacle:
            return self._report(site, "none", obstacle=obstacle)
        fix: Fix = "unsafe" if site.family in CHECKS else "safe"
        return self._report(site, fix, plan=plan, in_branch=branch is not None)

    def _check_not_in_guard(self, point: Point) -> None:
        """Raise `Obstacle` if the message is heard only before an exception that ends the graph by itself."""
        guard = point.around[-1] if point.around else None
        if not isinstance(guard, ast.If) or not isinstance(guard.body[-1], ast.Raise):
            return
        if point.statement in guard.body and self.tests[guard].kind in ("tensor", "data"):
            raise Obstacle(Reason.IN_GUARD, f"it stands in the guard of line {guard.lineno}")

    def _plan(self, point: Point, site: Site, branch: ast.If | None) -> Plan:
        if not self.options.carried:
            raise Obstacle(Reason.TARGET_TORCH_TOO_OLD, "target-torch is older than 2.11")
        edits = self.arguments(site, point.env)
        source = self.facts.source
        names = imports_of(edits)
        if branch is not None:
            edits = [Edit("when", source.span(branch.test), self.alarm), *edits]
            edits.append(Edit("wrap", source.span(site.target), self.alarm))
            names.add("when")
        else:
            edits.append(Edit("wrap", source.span(site.target), "deferred"))
            names.add("deferred")
        return Plan(source.span(site.call), tuple(edits), tuple(sorted(names)), "Defer until the graph runs")

    def _guard(self, point: Point, site: Site) -> Plan:
        summary = self.facts.summary
        torch = next((name for name, target in summary.imports.items() if target == "torch"), None)
        spelling = f"{torch}.compiler.is_compiling()" if torch else "torch.compiler.is_compiling()"
        source = self.facts.source
        edit = Edit("guard", source.span(point.statement), spelling)
        return Plan(source.span(site.call), (edit,), () if torch else ("torch",), "Skip while compiling")

    # -- messages under a tensor test --------------------------------------------------------------------------

    def _carries_test(self, node: ast.If) -> bool:
        """Whether `if test:` holds messages only, under a tensor test that the runtime can be given."""
        if self.options.style == "guard" or node.orelse or self.tests[node].kind != "tensor":
            return False
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in ast.walk(node.test)):
            return False
        for statement in node.body:
            found = self.sites.get(statement) if isinstance(statement, ast.Expr) else None
            if found is None or found[0].obstacle is not None:
                return False
            site, env = found
            try:
                self.arguments(site, env)
            except Obstacle:
                return False
            if not self.are_total(site.arguments, node.test, env):
                return False
        return True

    # -- reporting ---------------------------------------------------------------------------------------------

    def _report(
        self,
        site: Site,
        fix: Fix,
        plan: Plan | None = None,
        obstacle: Obstacle | None = None,
        in_branch: bool = False,
    ) -> Finding:
        breaks = (_BREAKS.get(site.family, site.card.breaks[0]), *(("GB0170",) if in_branch else ()))
        message = f"`{site.callee}(...)` ends the graph ({', '.join(breaks)})"
        decline = None
        if obstacle is not None:
            decline = self.decline(obstacle)
            message += f"; not fixed: {decline.text}"
        elif site.family in CHECKS:
            message += f"; run it when the graph runs ({NOT_PROVEN})"
        elif fix == "unsafe":
            message += "; skip it while compiling (the message is then not heard from compiled code)"
        else:
            message += "; defer it until the graph runs"
        likely = site.confidence == "likely"
        return Finding(
            site.card.code,
            site.card.name,
            str(self.facts.source.path),
            self.facts.source.span(site.call),
            message,
            "likely" if likely else self.function.region.confidence,
            fix,
            decline,
            breaks,
            self.function.region.entry,
            plan,
        )


def _header_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Calls in the expressions that belong to a statement itself, not to its blocks or to lambdas.

    A call of a name that a comprehension binds is left out: the name is another one outside of it.
    """
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    stack: list[tuple[ast.AST, frozenset[str]]] = [
        (c, frozenset()) for c in ast.iter_child_nodes(statement) if isinstance(c, (ast.expr, ast.withitem))
    ]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            targets = (name for generator in node.generators for name in ast.walk(generator.target))
            bound |= {name.id for name in targets if isinstance(name, ast.Name)}
        if isinstance(node, ast.Call) and (dotted(node.func) or "").partition(".")[0] not in bound:
            yield node
        stack.extend((child, bound) for child in ast.iter_child_nodes(node))
