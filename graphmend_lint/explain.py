"""What is known of one line: whether it is compiled and from where, what its operands hold, what was found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from graphmend_lint import engine, fixing, index, registry
from graphmend_lint.analysis import source as sources
from graphmend_lint.analysis.bindings import Scope
from graphmend_lint.analysis.facts import FileFacts, FunctionFacts
from graphmend_lint.analysis.names import dotted
from graphmend_lint.analysis.regions import FileRegions, Region, RegionFinder, is_host_function
from graphmend_lint.analysis.summary import FunctionSummary, ModuleSummary, summarize
from graphmend_lint.analysis.values import Value, Values
from graphmend_lint.config import Settings
from graphmend_lint.findings import Finding
from graphmend_lint.suppressions import Suppressions

#: Operands that are shown of one statement.
MAX_OPERANDS = 16

_NO_REGIONS = FileRegions({})

Status = Literal["compiled", "likely", "not compiled"]


@dataclass(frozen=True, slots=True)
class Step:
    """A function on the way from an entry to the line."""

    path: Path
    qualname: str
    line: int


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression of the line, and what it holds."""

    text: str
    value: Value


@dataclass(frozen=True, slots=True)
class Found:
    """A finding on the line, or one whose fix changes it.

    `unheard` is why it is not reported, "" if it is; `diff` is what its fix would change.
    """

    finding: Finding
    unheard: str
    diff: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known of one line.

    `reason` says why it is compiled or not. `steps` lead from the entry to the function of the line, both included.
    `operands` is empty where Dynamo does not reach the line.
    """

    path: Path
    line: int
    function: str | None
    status: Status
    reason: str
    steps: tuple[Step, ...] = ()
    operands: tuple[Operand, ...] = ()
    found: tuple[Found, ...] = ()


class NoSuchLine(ValueError):
    """The file has fewer lines."""


def explain(path: Path, line: int, settings_of: Callable[[Path], Settings], cache_folder: Path | None) -> Explanation:
    """What is known of a line.

    Raises:
        NoSuchLine: the file does not have it.
        SourceError: the file cannot be read as Python.
    """
    place = path.absolute()
    source = sources.parse(sources.read(place), place)
    if not 1 <= line <= len(source.lines):
        raise NoSuchLine(f"{path} has {len(source.lines)} lines")
    settings = settings_of(place)
    engine.check_rules(settings)
    try:
        summary = summarize(source.tree)
        project = engine.project_around(place, settings_of, cache_folder).with_source(place, summary)
        finder = index.finder_of(project.project, project.entries)
        regions = finder.run().get(place, _NO_REGIONS)
        facts = FileFacts(source, summary, project.project, regions)
        return _explained(facts, finder, path, line, settings)
    except RecursionError as error:
        raise sources.SourceError(path, "nested too deeply to analyse") from error


def _explained(facts: FileFacts, finder: RegionFinder, path: Path, line: int, settings: Settings) -> Explanation:
    scope = _scope_at(facts, line)
    function = facts.summary.functions.get(scope.qualname) if scope else None
    if scope is None or function is None:
        reason = "it is in no function and runs when the module is imported"
        return Explanation(path, line, None, "not compiled", reason)
    values = Values(facts.bindings, scope)
    region = facts.region(function, values)
    if region is None:
        return Explanation(path, line, scope.qualname, "not compiled", _why_not(facts, function))
    status: Status = "compiled" if region.confidence == "definite" else "likely"
    steps = tuple(_steps(finder, facts.source.path, scope.qualname)) if region.entry else ()
    operands = _operands(facts, scope, region, values, line)
    if operands is None:
        reason = "Dynamo does not reach this line, or there is no code on it"
        return Explanation(path, line, scope.qualname, "not compiled", reason, steps)
    found = tuple(_found(facts, line, settings))
    return Explanation(path, line, scope.qualname, status, _why(region), steps, operands, found)


# --- the region


def _scope_at(facts: FileFacts, line: int) -> Scope | None:
    """The innermost function around a line, its decorators not included."""
    around = [s for s in facts.scopes() if s.node.lineno <= line <= (s.node.end_lineno or s.node.lineno)]
    return max(around, key=lambda scope: scope.node.lineno, default=None)


def _why(region: Region) -> str:
    if region.entry is None:
        return "it computes on tensors, and no entry is known that reaches it: a library cannot know who compiles it"
    return f"an entry reaches it ({region.entry})"


def _why_not(facts: FileFacts, function: FunctionSummary) -> str:
    outer = function.qualname
    while outer:
        if outer in facts.regions.opaque:
            return f"Dynamo is kept out of `{outer}` (`torch.compiler.disable` or the like)"
        outer = outer.rpartition(".<locals>.")[0]
    unreached = "no known entry (a torch.compile site, or the forward of an nn.Module) reaches it, and "
    if facts.is_script:
        return unreached + "the file is a test or a script, which calls models"
    if not facts.imports_torch:
        return unreached + "the file does not import torch"
    if is_host_function(function):
        return unreached + "it is a function that a person or a script runs"
    return unreached + "none of its parameters is known to be a tensor"


def _steps(finder: RegionFinder, path: Path, qualname: str) -> list[Step]:
    steps: list[Step] = []
    key: tuple[Path, str] | None = (path, qualname)
    while key is not None and key not in {(step.path, step.qualname) for step in steps}:
        summary: ModuleSummary | None = finder.project.summary(key[0])
        function = summary.functions.get(key[1]) if summary else None
        steps.append(Step(*key, function.line if function else 1))
        caller = finder.callers.get(key)
        key = (caller.path, caller.name) if caller is not None and caller.path is not None else None
    return steps[::-1]


# --- the facts


def _operands(facts: FileFacts, scope: Scope, region: Region, values: Values, line: int) -> tuple[Operand, ...] | None:
    """What the operands of the statement at a line hold; None where Dynamo does not get there."""
    function = FunctionFacts(scope.node, scope, facts.summary.functions[scope.qualname], region, values, False, None)
    if line < scope.node.body[0].lineno:
        return ()
    found: tuple[Operand, ...] | None = None
    for point in function.walk().points():
        parts = list(_own_expressions(point.statement))
        last = max((part.end_lineno or part.lineno for part in parts), default=point.statement.lineno)
        if point.statement.lineno <= line <= last:
            texts: dict[str, Value] = {}
            for node in _all_shown(point.statement, {*scope.local, "self"}):
                texts.setdefault(facts.source.segment(node), values.of(node, point.env))
            found = tuple(Operand(text, value) for text, value in list(texts.items())[:MAX_OPERANDS])
    return found


def _all_shown(statement: ast.stmt, local: Collection[str]) -> Iterator[ast.expr]:
    for part in _own_expressions(statement):
        shown = _shown(part, local)
        yield from (node for node in shown if not (isinstance(statement, ast.Expr) and node is statement.value))


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement that are not in the blocks under it."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.withitem):
            yield child.context_expr


def _shown(node: ast.expr, local: Collection[str]) -> Iterator[ast.expr]:
    """The parts of an expression that are worth telling of: no constants, no stores, nothing from outside."""
    if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) or isinstance(node, ast.Lambda):
        return
    name = dotted(node)
    if name is not None:
        parts = name.split(".")
        if parts[0] in local:
            yield node
            if isinstance(node, ast.Attribute) and parts[0] != "self":
                yield from _shown(node.value, local)
        return
    if not isinstance(node, (ast.Constant, ast.JoinedStr, ast.FormattedValue, ast.Starred)):
        yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Call) and child is node.func:
            if isinstance(child, ast.Attribute):
                yield from _shown(child.value, local)
        elif isinstance(child, ast.keyword):
            yield from _shown(child.value, local)
        elif isinstance(child, ast.expr):
            yield from _shown(child, local)


# --- the findings


def _found(facts: FileFacts, line: int, settings: Settings) -> Iterator[Found]:
    """The findings at a line, of all rules, also those that are not reported."""
    cards = registry.all_rules()
    reported = {card.code for card in engine.enabled_cards(settings, facts.source.path)}
    comments = Suppressions(facts.source.text)
    for finding in sorted(engine.search(facts, cards, settings), key=lambda finding: finding.sort_key):
        edits = finding.plan.edits if finding.plan else ()
        if any(span.line <= line <= span.end_line for span in (finding.span, *(edit.span for edit in edits))):
            unheard = ""
            if silencing := next(comments.silencing(finding), None):
                unheard = f"the comment in line {silencing.line} silences it"
            elif finding.code not in reported:
                unheard = "the configuration leaves the rule out"
            elif finding.confidence == "likely" and settings.confidence == "definite":
                unheard = "only definite findings are wanted"
            yield Found(finding, unheard, _diff(facts, finding, settings))


def _diff(facts: FileFacts, finding: Finding, settings: Settings) -> str:
    """What the fix of one finding alone changes, as a diff without its head."""
    if finding.plan is None:
        return ""
    rounds = iter(([finding],))

    def lint(source: bytes, path: Path, settings: Settings) -> list[Finding]:
        return next(rounds, [])

    path = facts.source.path
    before = sources.read(path)
    after = fixing.fix_source(before, path, settings=replace(settings, unsafe_fixes=True), lint=lint).source
    lines = fixing.unified_diff(before, after, str(path)).decode(errors="replace").splitlines()
    return "\n".join(lines[2:])
