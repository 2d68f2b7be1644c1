"""Defer: a message leaves the Python of the region.

`print`, logger methods, `warnings.warn` as statements of their own. The plan wraps the callee, so that eager code makes the
same call from the same line and compiled code makes it when the graph runs:

    logger.warning("nan in %s", name)   ->   deferred(logger).warning("nan in %s", name)

What makes that safe. Eagerly `deferred(f)` is `f`: nothing changes. Compiled, every argument must be something that the
runtime carries into the graph: constants, shapes, tensors, and texts formatted from those. Texts are formatted when the graph
runs, from the values of the moment of the call. A call inside `try` is left alone: without the break the whole `try` would be
compiled, and a failing tensor operation in it would no longer meet its handler. A message under a tensor test is given the
test (`if alarm := when(test): alarm(logger).warning(...)`), provided that its arguments can be computed in any case: compiled
code computes them always.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from graphmend_lint.analysis import torch_facts
from graphmend_lint.analysis.bindings import Scope
from graphmend_lint.analysis.effects import is_text, is_text_format, is_total, text_fields
from graphmend_lint.analysis.facts import FileFacts, FunctionFacts
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.values import TRY_STATEMENTS, Env, Point, Value
from graphmend_lint.findings import ADVICE, Confidence, Decline, Edit, Finding, Fix, Plan, Reason


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
    Reason.INSIDE_TRY,
    Reason.GENERATOR,
    Reason.ASYNC_FUNCTION,
    Reason.TORCHSCRIPT,
    Reason.TARGET_TORCH_TOO_OLD,
)

#: How Dynamo numbers the break of a call, where that is not the first number that its rule declares.
_BREAKS = {"write": "GB0007"}
_PRINT_KEYWORDS = frozenset({"sep", "end", "flush", "file"})
_WARN_KEYWORDS = frozenset({"message", "category", "stacklevel"})
_STREAMS = frozenset({"sys.stdout", "sys.stderr"})
#: Types of values that Dynamo knows and the runtime does not carry.
_OBJECTS = frozenset({"self", "config", "function", "module", "callable"})


class Obstacle(Exception):
    """Why a message cannot be deferred. Raised and caught inside this file."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


@dataclass(slots=True)
class _Site:
    """A call that matched a rule."""

    card: Card
    call: ast.Call
    target: ast.expr
    callee: str
    family: str
    confidence: Confidence
    obstacle: Obstacle | None = None


def called_names(cards: Iterable[Card]) -> frozenset[str]:
    """The last names of everything that the rules in `cards` are about."""
    return frozenset(name.rpartition(".")[2] for card in cards for name in (*card.calls, *card.methods))


def find(facts: FileFacts, cards: Sequence[Card], options: Options) -> Iterator[Finding]:
    """The findings of every rule in `cards` that builds on this transformation."""
    calls = {name: card for card in cards for name in card.calls}
    methods = {name: card for card in cards for name in card.methods}
    for function in facts.functions(called_names(cards)):
        yield from _Function(facts, function, calls, methods, options).findings()


class _Function:
    """The messages of one function."""

    def __init__(
        self,
        facts: FileFacts,
        function: FunctionFacts,
        calls: dict[str, Card],
        methods: dict[str, Card],
        options: Options,
    ) -> None:
        self.facts = facts
        self.function = function
        self.calls = calls
        self.methods = methods
        self.options = options
        self.values = function.values
        self.scope: Scope = function.scope
        self.alarm = self._fresh_name("alarm")
        self.tests: dict[ast.If, Value] = {}
        self.sites: dict[ast.Expr, tuple[_Site, Env]] = {}

    def findings(self) -> Iterator[Finding]:
        points = list(self._scan())
        alarms = {node for node in self.tests if self._carries_test(node)}
        for point, site in points:
            yield self._finding(point, site, alarms)

    def _scan(self) -> Iterator[tuple[Point, _Site]]:
        for point in self.function.walk().points():
            statement = point.statement
            if isinstance(statement, ast.If):
                self.tests[statement] = self.values.of(statement.test, dict(point.env))
            direct = None
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                direct = self._site(statement.value)
                if direct is not None:
                    env = dict(point.env)
                    self.sites[statement] = (direct, env)
                    yield Point(statement, env, point.around, point.block), direct
            for call in _header_calls(statement):
                if (direct is None or call is not direct.call) and (site := self._site(call)):
                    site.obstacle = Obstacle(
                        Reason.VALUE_IS_USED, f"the value of `{site.callee}(...)` is used"
                    )
                    yield point, site

    def _site(self, call: ast.Call) -> _Site | None:
        """The rule that a call falls under."""
        func = call.func
        name = self.facts.bindings.qualified(func, self.scope) or ""
        module, _, last = name.rpartition(".")
        card = self.calls.get(name)
        if card is None and module == "logging":
            card, last = self.methods.get(last), "logger"
        if card is not None:
            return _Site(card, call, func, dotted(func) or name, last, self.function.region.confidence)
        if not isinstance(func, ast.Attribute) or func.attr not in self.methods:
            return None
        kind = self.facts.loggers.kind(func.value, self.scope)
        if kind is None:
            return None
        site = _Site(
            self.methods[func.attr],
            call,
            func.value,
            self.facts.source.segment(func),
            "logger",
            "likely" if kind == "maybe" else self.function.region.confidence,
        )
        if kind == "maybe":
            site.obstacle = Obstacle(
                Reason.LOGGER_NOT_RESOLVED,
                f"`{self.facts.source.segment(func.value)}` is not known to be a logging.Logger",
            )
        elif kind == "local":
            site.obstacle = Obstacle(
                Reason.LOGGER_MADE_HERE,
                f"`{self.facts.source.segment(func.value)}` is made inside the function",
            )
        return site

    # -- legality ----------------------------------------------------------------------------------------------

    def _finding(self, point: Point, site: _Site, alarms: set[ast.If]) -> Finding:
        branch = next((a for a in reversed(point.around) if isinstance(a, ast.If) and a in alarms), None)
        try:
            if site.obstacle is not None:
                raise site.obstacle
            self._check_place(point)
            if self.options.style == "guard":
                return self._report(site, "unsafe", plan=self._guard(point, site))
            plan = self._plan(point, site, branch)
        except Obstacle as obstacle:
            return self._report(site, "none", obstacle=obstacle)
        return self._report(site, "safe", plan=plan, in_branch=branch is not None)

    def _check_place(self, point: Point) -> None:
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

    def _plan(self, point: Point, site: _Site, branch: ast.If | None) -> Plan:
        if not self.options.carried:
            raise Obstacle(Reason.TARGET_TORCH_TOO_OLD, "target-torch is older than 2.11")
        edits = self._arguments(site, point.env)
        source = self.facts.source
        imports = {"format": "formatted", "percent": "percent"}
        names = {imports[edit.kind] for edit in edits}
        if branch is not None:
            edits = [Edit("when", source.span(branch.test), self.alarm), *edits]
            edits.append(Edit("wrap", source.span(site.target), self.alarm))
            names.add("when")
        else:
            edits.append(Edit("wrap", source.span(site.target), "deferred"))
            names.add("deferred")
        return Plan(source.span(site.call), tuple(edits), tuple(sorted(names)), "Defer until the graph runs")

    def _guard(self, point: Point, site: _Site) -> Plan:
        summary = self.facts.summary
        torch = next((name for name, target in summary.imports.items() if target == "torch"), None)
        spelling = f"{torch}.compiler.is_compiling()" if torch else "torch.compiler.is_compiling()"
        source = self.facts.source
        edit = Edit("guard", source.span(point.statement), spelling)
        return Plan(source.span(site.call), (edit,), () if torch else ("torch",), "Skip while compiling")

    def _arguments(self, site: _Site, env: Env) -> list[Edit]:
        """The edits that make every argument one that the runtime carries.

        Raises:
            Obstacle: an argument is something else.
        """
        edits: list[Edit] = []
        for argument in site.call.args:
            edits += self._carry(argument, env)
        for keyword in site.call.keywords:
            edits += self._keyword(site, keyword, env)
        if site.callee.rpartition(".")[2] == "exception":
            raise Obstacle(Reason.KEYWORD_NOT_CARRIED, "`exception` prints the exception being handled")
        return edits

    def _keyword(self, site: _Site, keyword: ast.keyword, env: Env) -> list[Edit]:
        name = keyword.arg
        if name is None:
            raise Obstacle(Reason.STAR_ARGUMENTS, f"`**{self._text(keyword.value)}` hides the keywords")
        if site.family == "print" and name in _PRINT_KEYWORDS:
            if name == "file" and self.facts.bindings.qualified(keyword.value, self.scope) not in _STREAMS:
                if not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None):
                    raise Obstacle(
                        Reason.KEYWORD_NOT_CARRIED,
                        f"`file={self._text(keyword.value)}` is not sys.stdout or sys.stderr",
                    )
                return []
            return [] if name == "file" else self._carry(keyword.value, env)
        if site.family == "warn" and name in _WARN_KEYWORDS:
            return self._carry(keyword.value, env)
        if site.family == "logger":
            if name == "stacklevel" and isinstance(keyword.value, ast.Constant):
                return []
            if (
                name in ("exc_info", "stack_info")
                and isinstance(keyword.value, ast.Constant)
                and not keyword.value.value
            ):
                return []
        raise Obstacle(
            Reason.KEYWORD_NOT_CARRIED, f"the keyword `{name}` of `{site.callee}` cannot be carried"
        )

    def _carry(self, node: ast.expr, env: Env) -> list[Edit]:
        """The edits for one argument."""
        if isinstance(node, ast.Starred):
            raise Obstacle(Reason.STAR_ARGUMENTS, f"`*{self._text(node.value)}` hides the arguments")
        if isinstance(node, ast.JoinedStr):
            fields = [field for part in node.values for field in text_fields(part)]
            edits = self._text_of(fields, "format", node, env)
            if edits:
                self._check_order(fields)
            return edits
        if isinstance(node, ast.Call) and is_text_format(node):
            parts = [*node.args, *(k.value for k in node.keywords)]
            if any(isinstance(a, ast.Starred) for a in node.args) or any(
                k.arg is None for k in node.keywords
            ):
                raise Obstacle(Reason.STAR_ARGUMENTS, f"`{self._text(node)}` hides its arguments")
            return self._text_of(parts, "format", node, env)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_text(node.left):
            parts = list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
            return self._text_of(parts, "percent", node, env)
        value = self._carried_value(node, env)
        if value.type == "str" and (value.symbolic or value.kind == "tensor"):
            raise Obstacle(
                Reason.ARGUMENT_CALLS_UNKNOWN,
                f"`{self._text(node)}` is a text made of values that change from call to call",
            )
        return []

    def _text_of(self, parts: list[ast.expr], kind: str, node: ast.expr, env: Env) -> list[Edit]:
        """A text with fields: left as it is where each field is a constant of the trace, formatted later otherwise."""
        late = False
        for part in parts:
            value = self._carried_value(part, env)
            late = late or value.symbolic or value.kind == "tensor"
        return [Edit(kind, self.facts.source.span(node))] if late else []

    def _check_order(self, fields: list[ast.expr]) -> None:
        """An f-string turns each field into text before it computes the next; `formatted` computes all of them first."""
        for field in fields[1:]:
            for part in ast.walk(field):
                if isinstance(part, ast.NamedExpr) or (isinstance(part, ast.Call) and not self._leaves_alone(part)):
                    raise Obstacle(
                        Reason.ARGUMENT_CALLS_UNKNOWN,
                        f"`{self._text(part)}` may change what stands before it in the text",
                    )

    def _leaves_alone(self, call: ast.Call) -> bool:
        """Whether a call is known not to change anything that a text may show."""
        name = self.facts.bindings.qualified(call.func, self.scope)
        if any(keyword.arg == "out" for keyword in call.keywords):
            return False
        if name is not None:
            fact = torch_facts.function(name)
            return name.startswith("builtins.") if fact is None else not fact.in_place
        fact = torch_facts.method(call.func.attr) if isinstance(call.func, ast.Attribute) else None
        return fact is not None and not fact.in_place

    def _carried_value(self, node: ast.expr, env: Env) -> Value:
        value = self.values.of(node, dict(env))
        if value.type.startswith("submodule") or value.type in _OBJECTS:
            raise Obstacle(
                Reason.ARGUMENT_UNKNOWN,
                f"`{self._text(node)}` is an object, not a constant, a shape or a tensor",
            )
        if value.kind in ("static", "tensor"):
            return value
        if value.kind == "data":
            raise Obstacle(Reason.ARGUMENT_READS_DATA, f"`{self._text(node)}` reads tensor data")
        call = next((n for n in ast.walk(node) if isinstance(n, ast.Call)), None)
        if call is not None:
            raise Obstacle(Reason.ARGUMENT_CALLS_UNKNOWN, f"what `{self._text(call)}` gives is not known")
        raise Obstacle(Reason.ARGUMENT_UNKNOWN, f"what `{self._text(node)}` holds is not known")

    # -- messages under a tensor test --------------------------------------------------------------------------

    def _carries_test(self, node: ast.If) -> bool:
        """Whether `if test:` holds messages only, under a tensor test that the runtime can be given."""
        if self.options.style == "guard" or node.orelse or self.tests[node].kind != "tensor":
            return False
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield)) for n in ast.walk(node.test)):
            return False
        read = frozenset(_surely_read(node.test))
        for statement in node.body:
            found = self.sites.get(statement) if isinstance(statement, ast.Expr) else None
            if found is None or found[0].obstacle is not None:
                return False
            site, env = found
            try:
                self._arguments(site, env)
            except Obstacle:
                return False
            arguments = [*site.call.args, *(k.value for k in site.call.keywords)]
            present = {name: replace(env[name], optional=False, unbound=False) for name in read if name in env}
            if not all(is_total(argument, self.values, {**env, **present}) for argument in arguments):
                return False
        return True

    # -- reporting ---------------------------------------------------------------------------------------------

    def _report(
        self,
        site: _Site,
        fix: Fix,
        plan: Plan | None = None,
        obstacle: Obstacle | None = None,
        in_branch: bool = False,
    ) -> Finding:
        breaks = (_BREAKS.get(site.family, site.card.breaks[0]), *(("GB0170",) if in_branch else ()))
        message = f"`{site.callee}(...)` ends the graph ({', '.join(breaks)})"
        decline = None
        if obstacle is not None:
            decline = Decline(obstacle.reason.value, f"{obstacle.text}; {ADVICE[obstacle.reason]}")
            message += f"; not fixed: {decline.text}"
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

    def _text(self, node: ast.expr) -> str:
        text = self.facts.source.segment(node)
        return text if len(text) <= 60 else text[:57] + "..."

    def _fresh_name(self, wish: str) -> str:
        taken = {n.id for n in ast.walk(self.scope.node) if isinstance(n, ast.Name)}
        scope: Scope | None = self.scope
        while scope is not None:
            taken |= scope.local
            scope = scope.outer
        name, number = wish, 2
        while name in taken or name in self.facts.summary.assigned or name in self.facts.summary.imports:
            name, number = f"{wish}_{number}", number + 1
        return name


def _surely_read(test: ast.expr) -> Iterator[str]:
    """Names that an attribute is read of whenever the test gives a tensor: they are not None then."""
    every = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    stack: list[ast.AST] = list(test.values) if every and isinstance(test, ast.BoolOp) else [test]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id
        if isinstance(node, ast.BoolOp):
            stack.append(node.values[0])
        elif isinstance(node, ast.Compare):
            stack += [node.left, node.comparators[0]]
        elif isinstance(node, ast.IfExp):
            stack.append(node.test)
        elif isinstance(node, (ast.Call, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Subscript)):
            stack.extend(ast.iter_child_nodes(node))


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
