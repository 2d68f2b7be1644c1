"""All fixes of a file, applied together: nested ones, several in one statement, and the import that they
need.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import libcst as cst
import libcst.matchers as m

from graphmend_lint.findings import Built, Edit, Piece, Plan, Selection, Span
from graphmend_lint.rewrite import check, checks, express, imports, layout, names, select
from graphmend_lint.rewrite.comments import comment_lines, comments_of
from graphmend_lint.rewrite.home import Home
from graphmend_lint.rewrite.locate import Located, locate, parentheses_around
from graphmend_lint.rewrite.pieces import Builder, Room
from graphmend_lint.rewrite.refusal import Refused
from graphmend_lint.rewrite.template import NotATemplate


@dataclass(frozen=True, slots=True)
class Wrap:
    """Puts an expression into the call of the runtime that a plan asks for: `wrap(print)` is
    `deferred(print)`.

    `whole` says that the plan wraps all of what is called (`deferred(logging.info)(...)`), not the object
    that a method is called on (`deferred(logger).info(...)`).
    """

    make: Callable[[cst.BaseExpression], cst.BaseExpression]
    whole: bool

    def __call__(self, expression: cst.BaseExpression) -> cst.BaseExpression:
        return self.make(expression)


class Form(Protocol):
    """What a rule says about its own fix: the node that a finding must stand on, and what becomes of it."""

    MATCHER: Any

    @staticmethod
    def replacement(node: cst.Call, wrap: Wrap) -> cst.Call: ...


@dataclass(frozen=True, slots=True)
class Fix:
    """A plan and the form of the rule that made it."""

    plan: Plan
    form: Form


@dataclass(frozen=True, slots=True)
class Applied:
    """The new module, the fixes that are in it, and those that are not, with the reason."""

    module: cst.Module
    text: str
    applied: tuple[Fix, ...] = ()
    refused: tuple[tuple[Fix, Refused], ...] = ()


def apply(module: cst.Module, fixes: Sequence[Fix], runtime: str, home: Home | None = None) -> Applied:
    """`module` with `fixes` applied. Plans that share an edit are applied together or not at all.

    Raises `check.NotFaithful` if the result fails a check; the module is to be left alone then.
    """
    home = home or Home()
    found = locate(module, {span for fix in fixes for span in _spans(fix.plan)})
    tree = ast.parse(found.text)
    page = layout.Page.of(found.text, module.default_indent)
    accepted, refused = _sort_out(fixes, found, page)
    if not accepted:
        return Applied(module, found.text, (), tuple(refused))
    chosen = names.choose(tree, {name for fix in accepted for name in fix.plan.imports}, runtime, home)
    composer = _Composer(found, accepted, chosen.local, page)
    edited = module.visit(composer)
    text = edited.code
    check.check_edits(found.text, text, [lines for fix in accepted for lines in _touched(fix.plan, found)])
    if chosen.missing:
        before = text
        edited = imports.add(edited, chosen.missing, runtime, home)
        text = edited.code
        check.check_import(before, text)
    check.check_syntax(text)
    return Applied(edited, text, tuple(accepted), tuple(refused))


def _spans(plan: Plan) -> list[Span]:
    """All places that a plan speaks of."""
    return [plan.site, *(span for edit in plan.edits for span in _spans_of(edit))]


def _spans_of(edit: Edit) -> Iterator[Span]:
    yield edit.span
    if edit.value is not None:
        yield from _read(edit.value)
    if edit.selection is not None:
        yield from _selected(edit.selection)


def _selected(selection: Selection) -> Iterator[Span]:
    yield from filter(None, [selection.test])
    yield from selection.absorbed
    for line in selection.lines:
        yield from filter(None, [line.statement, line.place, *line.merged])
        yield from () if line.value is None else _read(line.value)


def _read(piece: Piece) -> Iterator[Span]:
    if isinstance(piece, Span):
        yield piece
    elif isinstance(piece, Built):
        for part in piece.parts:
            yield from _read(part)


def _touched(plan: Plan, found: Located) -> Iterator[tuple[int, int]]:
    """The lines that a plan may change."""
    yield _lines(plan.site, found)
    for edit in plan.edits:
        first, last = _lines(edit.span, found)
        if edit.selection is not None:
            last = max(_last_line(span, found) for span in (edit.span, *edit.selection.absorbed))
        elif edit.kind == "unnest":
            last = _last_line(edit.span, found)
        elif edit.kind == "choose":
            # A comment in the expression may go above the statement.
            first = min(first, found.lines[found.expressions[edit.span]])
        yield first, last


def _last_line(span: Span, found: Located) -> int:
    """The last line of a statement; comments below its block, and deeper than what follows, are part of it."""
    block = found.compounds.get(span)
    if block is None:
        return span.end_line
    return max(span.end_line, span.line + layout.line_breaks(block.with_changes(leading_lines=())) - 1)


def _lines(span: Span, found: Located) -> tuple[int, int]:
    """The lines of an edit at `span`: its own, and those of parentheses around it."""
    node = found.expressions.get(span)
    opening, closing = ((), ()) if node is None else parentheses_around(node)
    return span.line - sum(map(layout.line_breaks, opening)), span.end_line + sum(map(layout.line_breaks, closing))


# --- which fixes go together


def _sort_out(fixes: Sequence[Fix], found: Located, page: layout.Page) -> tuple[list[Fix], list[tuple[Fix, Refused]]]:
    """The fixes that fit the module, and those refused; what shares an edit with these is refused too."""
    accepted: list[Fix] = []
    refused: list[tuple[Fix, Refused]] = []
    for group in _groups(fixes):
        refusal = _refusal(group, accepted, found, page)
        if refusal is None:
            accepted.extend(group)
        else:
            refused.extend((fix, refusal) for fix in group)
    return accepted, refused


def _refusal(group: Sequence[Fix], accepted: Sequence[Fix], found: Located, page: layout.Page) -> Refused | None:
    """Why a group of fixes cannot be applied, None if it can."""
    try:
        for fix in group:
            _check_fix(fix, found, page)
        _check_branches(group, found)
        _check_conflicts([*accepted, *group])
        _check_claims(group, accepted)
    except Refused as refusal:
        return refusal
    return None


def _groups(fixes: Sequence[Fix]) -> list[list[Fix]]:
    """The fixes, those that share an edit together."""
    groups: list[list[Fix]] = []
    for fix in fixes:
        edits = set(fix.plan.edits)
        joined = [group for group in groups if any(not edits.isdisjoint(other.plan.edits) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(other for group in joined for other in group), fix])
    return groups


def _check_fix(fix: Fix, found: Located, page: layout.Page) -> None:
    """Each span must hold a node of the right kind, and the rule and the plan must mean the same node."""
    site: cst.CSTNode | None = found.expressions.get(fix.plan.site) or found.statements.get(fix.plan.site)
    if site is None or not m.matches(site, fix.form.MATCHER):
        raise Refused("the rule's matcher does not match the node at the finding")
    for edit in fix.plan.edits:
        if edit.kind in ("fail", "fail-from"):
            if not isinstance(found.statements.get(edit.span), cst.Raise):
                raise Refused(f"no exception is raised at line {edit.span.line}")
        elif edit.kind == "unnest":
            _check_unnested(edit, found)
        elif edit.kind in ("assert", "assert-not"):
            _check_asserted(edit, found, page)
        elif edit.kind == "async":
            _check_async(edit, found, page)
        elif edit.kind == "guard":
            _check_alone(edit, found)
        elif edit.kind in ("select", "choose"):
            _check_selection(edit, found, page)
        elif edit.span not in found.expressions:
            raise Refused(f"nothing to edit at line {edit.span.line}, column {edit.span.column + 1}")
        elif edit.kind == "wrap" and isinstance(site, cst.Call):
            _check_wrap(fix, site, found.expressions[edit.span])
        elif edit.kind == "wrap":
            _called(found.expressions[edit.span], found)
        elif edit.kind in ("when", "unless"):
            _check_test(edit, found)
            _check_value(edit, found.expressions[edit.span], found, page)
        elif edit.kind == "read":
            if express.method_read(found.expressions[edit.span]) != edit.detail:
                raise Refused(f"no data is read at line {edit.span.line}")
        elif edit.kind in ("format", "percent"):
            _check_text(edit, found.expressions[edit.span], page)
        else:
            raise Refused(f"no such edit: {edit.kind}")


def _called(node: cst.BaseExpression, found: Located) -> cst.Call:
    """The call of an expression, or of a method of it."""
    parent = found.parents[node]
    if isinstance(parent, cst.Attribute) and parent.value is node:
        node, parent = parent, found.above[parent]
    if not isinstance(parent, cst.Call) or parent.func is not node:
        raise Refused("what is to be wrapped is not called")
    return parent


def _check_unnested(edit: Edit, found: Located) -> None:
    node = found.compounds.get(edit.span)
    if not isinstance(node, cst.If) or isinstance(found.parents[node], cst.If):
        raise Refused(f"no `if` at line {edit.span.line}")
    checks.check_unnested(node)


def _check_value(edit: Edit, node: cst.BaseExpression, found: Located, page: layout.Page) -> None:
    """What is handed over in the place of a test keeps the comments in that."""
    if edit.value is not None:
        made = Builder(found, page, "").flat(edit.value)
        if Counter(comments_of(node)) != Counter(comments_of(made)):
            raise Refused("a comment has no place in the result", defect=False)


def _check_asserted(edit: Edit, found: Located, page: layout.Page) -> None:
    node = found.statements.get(edit.span)
    if not isinstance(node, cst.Assert):
        raise Refused(f"no `assert` at line {edit.span.line}")
    if edit.value is None and edit.kind == "assert-not" and not _is_not(node.test):
        raise Refused("the predicate is not negated")
    checks.check_asserted(node)
    _check_value(edit, node.test, found, page)
    _check_alone(edit, found)


def _check_async(edit: Edit, found: Located, page: layout.Page) -> None:
    node = found.statements.get(edit.span) or found.compounds.get(edit.span)
    if edit.value is None or not isinstance(node, (cst.Assert, cst.If)):
        raise Refused(f"no check at line {edit.span.line}")
    if isinstance(node, cst.Assert):
        _check_alone(edit, found)
    elif node.orelse is not None or isinstance(found.parents[node], cst.If):
        raise Refused(f"the check at line {edit.span.line} does not stand alone")
    Builder(found, page, edit.detail).flat(edit.value)


def _is_not(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)


def _check_test(edit: Edit, found: Located) -> None:
    """The predicate must be the test of an `if`, or the last part of one that is joined by `and`."""
    node: cst.CSTNode = found.expressions[edit.span]
    if edit.kind == "unless" and edit.value is None and not _is_not(found.expressions[edit.span]):
        raise Refused("the predicate is not negated")
    parent = found.parents[node]
    if isinstance(parent, cst.BooleanOperation) and isinstance(parent.operator, cst.And) and parent.right is node:
        node, parent = parent, found.above[parent]
    if not isinstance(parent, cst.If) or parent.test is not node:
        raise Refused("the predicate is not the test of an `if`")


def _check_text(edit: Edit, node: cst.BaseExpression, page: layout.Page) -> None:
    make = express.formatted if edit.kind == "format" else express.percent
    try:
        make(edit.kind, node, edit.span, page, refit=False)
    except NotATemplate as obstacle:
        raise Refused(f"the text cannot be formatted later: {obstacle}", defect=False) from obstacle


def _check_selection(edit: Edit, found: Located, page: layout.Page) -> None:
    make = select.selected if edit.kind == "select" else select.chosen
    try:
        make(edit, found, page)
    except cst.CSTValidationError as error:
        raise Refused(f"the selection is no valid code: {error}") from None


def _check_wrap(fix: Fix, site: cst.Call, callee: cst.BaseExpression) -> None:
    wrapped: list[cst.BaseExpression] = []

    def note(expression: cst.BaseExpression) -> cst.BaseExpression:
        wrapped.append(expression)
        return expression

    fix.form.replacement(site, Wrap(note, site.func is callee))
    if len(wrapped) != 1 or wrapped[0] is not callee:
        raise Refused("the rule's replacement and the plan differ about what to wrap")


def _check_alone(edit: Edit, found: Located) -> None:
    statement = found.statements.get(edit.span)
    if statement is None:
        raise Refused(f"no statement at line {edit.span.line}, column {edit.span.column + 1}")
    line = found.parents[statement]
    if not isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) or len(line.body) != 1:
        raise Refused("another statement stands on the line", defect=False)


def _check_branches(group: Sequence[Fix], found: Located) -> None:
    """Dynamo always enters a branch under `when`: messages of the group must be all that it has."""
    deferred: dict[cst.CSTNode, str] = {
        _called(found.expressions[edit.span], found): edit.detail
        for fix in group
        for edit in fix.plan.edits
        if edit.kind == "wrap"
    }
    for edit in (edit for fix in group for edit in fix.plan.edits if edit.kind in ("fail", "fail-from")):
        deferred[found.statements[edit.span]] = edit.detail
    moved = {found.compounds[e.span] for fix in group for e in fix.plan.edits if e.kind == "unnest"}
    for edit in {edit for fix in group for edit in fix.plan.edits if edit.kind in ("when", "unless")}:
        branch: cst.CSTNode = found.expressions[edit.span]
        while not isinstance(branch, cst.If):
            branch = found.above[branch]
        stays = branch.orelse is not None and branch not in moved
        if stays or not _only_messages(branch.body, deferred, edit.detail):
            raise Refused("the branch does more than give messages that are fixed with it", defect=False)


def _only_messages(suite: cst.BaseSuite, deferred: dict[cst.CSTNode, str], name: str) -> bool:
    for statement in suite.body:
        if isinstance(statement, cst.If):
            branch: cst.If | cst.Else | None = statement
            while branch is not None:
                if not _only_messages(branch.body, deferred, name):
                    return False
                branch = branch.orelse if isinstance(branch, cst.If) else None
            continue
        small = statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
        for part in small:
            given = part.value if isinstance(part, cst.Expr) else part
            if not isinstance(part, cst.Pass) and deferred.get(given) != name:
                return False
    return True


def _check_conflicts(fixes: Sequence[Fix]) -> None:
    """Two plans may ask for the same edit, not for different ones of the same node."""
    known: dict[tuple[Span, bool], Edit] = {}
    for fix in fixes:
        for edit in fix.plan.edits:
            if known.setdefault((edit.span, edit.kind == "guard"), edit) != edit:
                raise Refused("another fix changes the same place")


def _check_claims(group: Sequence[Fix], accepted: Sequence[Fix]) -> None:
    """What one edit builds from, no other may change in the same round: it would see it as it was."""
    fresh = [edit for fix in group for edit in fix.plan.edits]
    known = [edit for fix in accepted for edit in fix.plan.edits]
    for edit in fresh:
        for other in (*fresh, *known):
            if other != edit and _meet(edit, other):
                raise Refused("another fix changes a part of the same code", defect=False)


def _meet(left: Edit, right: Edit) -> bool:
    """Whether one edit changes something that the other claims, or both claim the same."""
    mine, theirs = _claims(left), _claims(right)
    return (
        any(_within(right.span, claim) for claim in mine)
        or any(_within(left.span, claim) for claim in theirs)
        or any(_overlap(one, other) for one in mine for other in theirs)
    )


def _claims(edit: Edit) -> Sequence[Span]:
    return tuple(_spans_of(edit)) if edit.kind in ("select", "choose", "async") else tuple(_read(edit.value or ""))


def _within(inner: Span, outer: Span) -> bool:
    return _start(outer) <= _start(inner) and _end(inner) <= _end(outer)


def _overlap(left: Span, right: Span) -> bool:
    return _start(left) < _end(right) and _start(right) < _end(left)


def _start(span: Span) -> tuple[int, int]:
    return span.line, span.column


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column


# --- the edits themselves


def _wrap(site: cst.BaseExpression, callee: cst.BaseExpression, name: str) -> Wrap:
    whole = isinstance(site, cst.Call) and site.func is callee
    return Wrap(lambda expression: express.wrapped(name, expression), whole)


class _Composer(cst.CSTTransformer):
    """Makes all edits in one pass, from the inside out; what holds none of them is not even looked at."""

    def __init__(self, found: Located, fixes: Sequence[Fix], local: Mapping[str, str], page: layout.Page) -> None:
        super().__init__()
        self.path, self.page, self.names, self.found = found.path, page, local, found
        self.sites: dict[cst.CSTNode, tuple[Fix, Wrap]] = {}
        self.texts: dict[cst.CSTNode, tuple[Edit, bool]] = {}
        self.tests: dict[cst.CSTNode, Edit] = {}
        self.questions: dict[cst.CSTNode, str] = {}
        self.readings: dict[cst.CSTNode, str] = {}
        self.raises: dict[cst.CSTNode, Edit] = {}
        self.guards: dict[cst.CSTNode, str] = {}
        self.unnested: set[cst.CSTNode] = set()
        self.asserts: dict[cst.CSTNode, Edit] = {}
        self.messages: set[cst.CSTNode] = set()
        self.calls: dict[cst.CSTNode, cst.Call] = {}
        self.selected: dict[cst.CSTNode, select.Replacement] = {}
        self.absorbed: set[cst.CSTNode] = set()
        self.chosen: dict[cst.CSTNode, cst.BaseExpression] = {}
        self.comments: dict[cst.CSTNode, list[str]] = {}
        self.outer: dict[cst.CSTNode, Room] = {}
        for fix in fixes:
            one_line = fix.plan.site.line == fix.plan.site.end_line
            for edit in fix.plan.edits:
                if edit.kind == "guard":
                    self.guards[found.statements[edit.span]] = edit.detail
                elif edit.kind == "select":
                    made = select.selected(edit, found, page)
                    self.selected[found.compounds[edit.span]] = made
                    self.absorbed |= made.absorbed
                elif edit.kind == "choose":
                    self._choose(found.expressions[edit.span], select.chosen(edit, found, page), found)
                elif edit.kind == "read":
                    self.readings[found.expressions[edit.span]] = self.local(edit.detail)
                elif edit.kind in ("fail", "fail-from"):
                    self.raises[found.statements[edit.span]] = edit
                elif edit.kind == "unnest":
                    self.unnested.add(found.compounds[edit.span])
                elif edit.kind in ("assert", "assert-not"):
                    self._assert(found.statements[edit.span], edit)
                elif edit.kind == "async":
                    self._call(edit, found)
                elif edit.kind in ("when", "unless"):
                    self.tests[found.expressions[edit.span]] = edit
                elif edit.kind == "wrap" and fix.plan.site not in found.expressions:
                    self.questions[found.expressions[edit.span]] = self.local(edit.detail)
                elif edit.kind == "wrap":
                    site = found.expressions[fix.plan.site]
                    self.sites[site] = (
                        fix,
                        _wrap(site, found.expressions[edit.span], self.local(edit.detail)),
                    )
                else:
                    self.texts[found.expressions[edit.span]] = (edit, one_line)

    def _assert(self, node: cst.CSTNode, edit: Edit) -> None:
        self.asserts[node] = edit
        if isinstance(node, cst.Assert) and node.msg is not None:
            self.messages.add(node.msg)

    def _call(self, edit: Edit, found: Located) -> None:
        node = found.statements.get(edit.span) or found.compounds[edit.span]
        assert edit.value is not None
        indent = self.page.indent_at(edit.span.line)
        made = Builder(found, self.page, edit.detail).build(edit.value, Room(edit.span.column, 0, indent))
        assert isinstance(made, cst.Call)
        self.calls[node] = made

    def _choose(self, node: cst.BaseExpression, made: select.Choice, found: Located) -> None:
        if node in self.chosen:
            return
        self.chosen[node] = made.node
        if made.outer is not None:
            self.outer[made.outer.node] = made.outer.room
        if made.comments:
            line = next(part for part in select.around(node, found) if isinstance(part, cst.SimpleStatementLine))
            self.comments.setdefault(line, []).extend(made.comments)

    def local(self, name: str) -> str:
        return self.names.get(name, name)

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.path

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> Any:
        if isinstance(original, cst.BaseExpression):
            if original in self.chosen:
                return self.chosen[original]
            if original in self.outer and isinstance(updated, cst.Call):
                updated = select.laid_out(updated, self.outer[original], self.page)
            if original in self.texts and original not in self.messages and isinstance(updated, cst.BaseExpression):
                updated = self._text(updated, *self.texts[original])
            if original in self.sites and isinstance(updated, cst.Call):
                updated = self._site(updated, *self.sites[original])
            if original in self.readings and isinstance(updated, cst.BaseExpression):
                return express.read(self.readings[original], updated)
            if original in self.questions and isinstance(updated, cst.BaseExpression):
                return express.wrapped(self.questions[original], updated)
            if original in self.tests and isinstance(updated, cst.BaseExpression):
                return self._alarm(updated, self.tests[original])
        elif original in self.selected:
            made = self.selected[original].nodes
            return made[0] if isinstance(made[0], cst.Else) or len(made) == 1 else cst.FlattenSentinel(made)
        elif original in self.absorbed:
            return cst.RemoveFromParent()
        elif isinstance(original, cst.Raise) and isinstance(updated, cst.Raise) and original in self.raises:
            return self._failing(updated, self.raises[original])
        elif isinstance(updated, cst.If) and isinstance(original, cst.If):
            return self._if(original, updated)
        elif isinstance(updated, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            return self._statement(original, updated)
        return updated

    def _site(self, node: cst.Call, fix: Fix, wrap: Wrap) -> cst.Call:
        made = fix.form.replacement(node, wrap)
        site = fix.plan.site
        if site.line != site.end_line:
            return made
        return layout.fit(made, site.column, self.page.indent_at(site.line), self.page)

    def _failing(self, node: cst.Raise, edit: Edit) -> cst.Expr:
        made = express.failing(edit.detail, self.local(edit.kind.replace("-", "_")), node)
        if edit.span.line != edit.span.end_line or not isinstance(made.value, cst.Call):
            return made
        indent = self.page.indent_at(edit.span.line)
        return made.with_changes(value=layout.fit(made.value, edit.span.column, indent, self.page))

    def _text(
        self, node: cst.BaseExpression, edit: Edit, one_line: bool, indent: str | None = None
    ) -> cst.BaseExpression:
        make = express.formatted if edit.kind == "format" else express.percent
        name = "formatted" if edit.kind == "format" else "percent"
        made = make(self.local(name), node, edit.span, self.page, refit=not one_line, indent=indent)
        return express.with_readings(made, {method: self.local(method) for method in edit.detail.split()})

    def _alarm(self, node: cst.BaseExpression, edit: Edit) -> cst.NamedExpr:
        made = self._named(node, edit, edit.kind, len("if "))
        return made.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def _named(self, node: cst.BaseExpression, edit: Edit, kind: str, lead: int) -> cst.NamedExpr:
        """`alarm := when(node)`, or of what the edit hands over; `lead`: what stands before it on a line of its own."""
        if edit.value is not None:
            indent = self.page.indent_at(edit.span.line)
            column = len(indent) + lead + len(f"{edit.detail} := ")
            room = Room(column + len(f"{kind}("), len("):"), indent, enclosed=True)
            value = Builder(self.found, self.page, "").build(edit.value, room)
            made = express.alarm(edit.detail, self.local(kind), value)
            call = made.value
            assert isinstance(call, cst.Call)
            return made.with_changes(value=layout.fit(call, column, indent, self.page, len(":")))
        if isinstance(node, cst.UnaryOperation) and edit.kind in ("unless", "assert-not"):
            node = layout.bare(node.expression).with_changes(lpar=node.lpar, rpar=node.rpar)
        return express.alarm(edit.detail, self.local(kind), node)

    def _asserted(
        self, node: cst.Assert, line: cst.SimpleStatementLine | cst.SimpleStatementSuite, edit: Edit
    ) -> cst.If:
        kind = "unless" if edit.kind == "assert" else "when"
        test = self._named(node.test, edit, kind, len("if __debug__ and ("))
        indent = self.page.indent_at(edit.span.line) + self.page.unit
        original = self.found.statements[edit.span]
        assert isinstance(original, cst.Assert)
        text = self.texts.get(original.msg) if original.msg is not None else None
        if text is not None and node.msg is not None:
            message = self._text(node.msg, *text, indent=indent + self.page.unit)
            node = node.with_changes(msg=layout.bare(message))
        return checks.asserted(node, line, test, self.local("fail"), indent, self.page)

    def _if(self, original: cst.If, updated: cst.If) -> Any:
        if original in self.calls:
            return checks.called(original, updated, self.calls[original])
        if original.test in self.tests:
            updated = self._test(updated)
        return checks.unnested(updated) if original in self.unnested else updated

    def _test(self, node: cst.If) -> cst.If:
        """The whole test needs no parentheses around its `:=`."""
        space = node.whitespace_before_test if node.whitespace_before_test.value else cst.SimpleWhitespace(" ")
        return node.with_changes(test=node.test.with_changes(lpar=[], rpar=[]), whitespace_before_test=space)

    def _statement(
        self, original: cst.CSTNode, updated: cst.SimpleStatementLine | cst.SimpleStatementSuite
    ) -> cst.CSTNode:
        assert isinstance(original, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
        if original in self.comments and isinstance(updated, cst.SimpleStatementLine):
            lines = [*updated.leading_lines, *comment_lines(self.comments[original])]
            updated = updated.with_changes(leading_lines=lines)
        if original.body[0] in self.calls:
            node = updated.body[0]
            assert isinstance(node, cst.Assert)
            call = self.calls[original.body[0]]
            if isinstance(updated, cst.SimpleStatementSuite):
                return updated.with_changes(body=[cst.Expr(call)])
            return checks.called(node, updated, call)
        if original.body[0] in self.asserts:
            node = updated.body[0]
            assert isinstance(node, cst.Assert)
            made = self._asserted(node, updated, self.asserts[original.body[0]])
            return made if isinstance(updated, cst.SimpleStatementLine) else cst.IndentedBlock([made])
        predicate = self.guards.get(original.body[0])
        if predicate is None:
            return updated
        guarded = express.guarded(predicate, updated)
        return guarded if isinstance(updated, cst.SimpleStatementLine) else cst.IndentedBlock([guarded])
