"""An `if` as the lines that select between its arms, and a conditional expression as a call of `torch.where`.

Everything is built of nodes of the source as it was: what lies inside is changed by no other fix of the round.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import libcst as cst

from graphmend_lint.findings import Edit, Line, Piece, Selection, Span
from graphmend_lint.rewrite import layout, reflow
from graphmend_lint.rewrite.comments import Gatherer, comment_lines, comments_of
from graphmend_lint.rewrite.locate import Located
from graphmend_lint.rewrite.pieces import Builder, Room, spelled
from graphmend_lint.rewrite.precedence import TUPLE, fenced, parenthesised, tightness, wanted
from graphmend_lint.rewrite.refusal import Refused

_Node = TypeVar("_Node", bound=cst.CSTNode)

_LINE_END = re.compile(r"\r\n?|\n")
_BRACKETS = (cst.Arg, cst.SubscriptElement, cst.BaseList, cst.BaseSet, cst.BaseDict)
_MARKER = "graphmend_place"
_NOTHING = cst.SimpleWhitespace("")


@dataclass(frozen=True, slots=True)
class Replacement:
    """What an `if` becomes, and the statements after it that go: small ones, or whole ones with a block."""

    nodes: tuple[cst.BaseStatement | cst.Else, ...]
    absorbed: frozenset[cst.CSTNode] = frozenset()


@dataclass(frozen=True, slots=True)
class Choice:
    """What an expression becomes, the comments that found no place in it, and the call around it to lay out anew."""

    node: cst.BaseExpression
    comments: tuple[str, ...] = ()
    outer: Outer | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    """A call that is the whole value of a statement and can be written on one line, and where it stands."""

    node: cst.Call
    room: Room


# --- statements


def selected(edit: Edit, found: Located, page: layout.Page) -> Replacement:
    """What becomes of the `if` at a "select" edit.

    Raises:
        Refused: the plan and the file do not fit, or a comment has no place.
    """
    node = found.compounds.get(edit.span)
    if not isinstance(node, cst.If):
        raise Refused(f"no `if` at line {edit.span.line}, column {edit.span.column + 1}")
    if edit.selection is None or not edit.selection.lines:
        raise Refused("nothing to put in the place of the `if`")
    for plain in (False, True):
        made = _Selector(node, edit.selection, Builder(found, page, edit.detail, plain)).replacement()
        if made is not None:
            return made
    raise Refused("a comment has no place in the result", defect=False)


class _Selector:
    """Puts lines in the place of one `if`."""

    def __init__(self, node: cst.If, selection: Selection, builder: Builder) -> None:
        self.node, self.selection, self.builder = node, selection, builder
        self.found, self.page = builder.found, builder.page
        self.block = self.found.indents[node]
        parent = self.found.parents[node]
        self.is_elif = isinstance(parent, cst.If)
        #: Whether the lines stand in a block of their own: under the test that stays, or under `else`.
        self.nested = self.is_elif or selection.test is not None
        own = node.body.indent if isinstance(node.body, cst.IndentedBlock) else None
        self.indent = self.block + (own or self.page.unit) if self.nested else self.block
        self.absorbed = [self._statement(span) for span in selection.absorbed]
        self._check_absorbed()
        self.index: dict[cst.CSTNode, int] = {}
        self.own: set[cst.CSTNode] = set()
        for at, line in enumerate(selection.lines):
            self._enter(at, line)

    def replacement(self) -> Replacement | None:
        """The statements; None where a comment would be lost or doubled."""
        above = self._gathered()
        known = Counter(line.comment.value for lines in above for line in lines if line.comment is not None)
        made = [self._made(line, above[at]) for at, line in enumerate(self.selection.lines)]
        placed = Counter(comments_of(*made))
        if placed - known:
            return None
        lines = [self._led(statement, _left(above[at], placed), first=at == 0) for at, statement in enumerate(made)]
        return Replacement(self._placed(lines), frozenset(self.absorbed))

    # the statements that are meant

    def _statement(self, span: Span) -> cst.CSTNode:
        node = self.found.statements.get(span) or self.found.compounds.get(span)
        if node is None:
            raise Refused(f"no statement at line {span.line}, column {span.column + 1}")
        return node

    def _enter(self, at: int, line: Line) -> None:
        if line.statement is not None:
            self.own.add(self._statement(line.statement))
        for span in (*([line.statement] if line.statement is not None else []), *line.merged):
            statement = self._statement(span)
            above = {statement, *around(statement, self.found)}
            if self.node not in above and above.isdisjoint(self.absorbed):
                raise Refused(f"the statement at line {span.line} is not part of the `if`")
            if self.index.setdefault(statement, at) != at:
                raise Refused(f"two lines stand for the statement at line {span.line}")

    def _check_absorbed(self) -> None:
        """They must be what follows in the block of the `if`."""
        if not self.absorbed:
            return
        following: list[cst.CSTNode] = []
        if not self.is_elif:
            block = getattr(self.found.parents[self.node], "body", ())
            for statement in block[_position(block, self.node) + 1 :]:
                following += statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]
        if following[: len(self.absorbed)] != self.absorbed:
            raise Refused("what is to go with the `if` does not follow it")

    # comments

    def _gathered(self) -> list[list[cst.EmptyLine]]:
        gatherer = Gatherer(len(self.selection.lines), self.index, self.own)
        gatherer.branch(self.node, header=not self.nested, footer=not self.nested or self.node.orelse is not None)
        lines: list[cst.CSTNode] = []
        for statement in self.absorbed:
            line = self.found.parents[statement]
            if not isinstance(line, cst.SimpleStatementLine):
                gatherer.statement(statement)
            elif line.body[-1] not in self.absorbed:
                gatherer.small([statement])
            elif line not in lines:
                gatherer.statement(line)
            lines.append(line)
        return gatherer.finish()

    def _led(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, lines: list[cst.EmptyLine], *, first: bool
    ) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
        if first:
            start = next((i for i, line in enumerate(lines) if line.comment is not None), len(lines))
            lines = lines[start:]
        if not self.nested:
            lines = [
                line if line.comment is None else line.with_changes(indent=True, whitespace=_NOTHING) for line in lines
            ]
            if first:
                lines = [*self.node.leading_lines, *lines]
        return statement.with_changes(leading_lines=lines)

    # the lines

    def _made(self, line: Line, above: Sequence[cst.EmptyLine]) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
        """The statement of a line, with the comment behind it if it can stay there, and nothing above it."""
        if line.statement is None:
            return cst.SimpleStatementLine([self._assignment(line)])
        old = self._statement(line.statement)
        if isinstance(old, cst.BaseCompoundStatement):
            if line.place is not None or line.target:
                raise Refused(f"the statement at line {line.statement.line} has a block")
            return old.with_changes(leading_lines=())
        assert isinstance(old, cst.BaseSmallStatement)
        changed = line.place is not None or bool(line.target)
        if line.target:
            new: cst.BaseSmallStatement = self._assignment(line)
        elif line.place is None:
            new = old
        else:
            new = self._with_place(old, line.place, line.value)
        source = self.found.parents[old]
        assert isinstance(source, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
        space = source.trailing_whitespace
        statement = cst.SimpleStatementLine([new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
        if space.comment is not None and (
            source.body[-1] is not old
            or (changed and not self._may_trail(statement, space.comment, above, line.statement))
        ):
            space = space.with_changes(whitespace=_NOTHING, comment=None)
        elif space.comment is not None and space.whitespace.empty:
            space = space.with_changes(whitespace=cst.SimpleWhitespace("  "))  # it was behind a semicolon
        return statement.with_changes(trailing_whitespace=space)

    def _may_trail(
        self, statement: cst.SimpleStatementLine, comment: cst.Comment, above: Sequence[cst.EmptyLine], span: Span
    ) -> bool:
        """Whether a comment stays behind a changed statement: it fits, and it is the last that the line has."""
        text = layout.code(statement).rstrip()
        last = above[-1].comment if above else None
        width = max(self.page.width, len(self.page.lines[span.end_line - 1]))
        return (
            not layout.spans_lines(statement.body[0])
            and last is not None
            and last.value == comment.value
            and len(self.indent) + len(text) + 2 + len(comment.value) <= width
        )

    def _assignment(self, line: Line) -> cst.Assign:
        if not line.target or line.value is None:
            raise Refused("a line without a statement, or without a target and a value")
        room = Room(len(self.indent) + len(line.target) + len(" = "), 0, self.indent)
        value = self.builder.build(line.value, room)
        return cst.Assign([_target(line.target)], fenced(value, TUPLE))

    def _with_place(self, old: cst.BaseSmallStatement, span: Span, value: Piece | None) -> cst.BaseSmallStatement:
        place = self.found.expressions.get(span)
        if place is None or value is None or old not in around(place, self.found):
            raise Refused(f"no place at line {span.line}, column {span.column + 1}")
        return _with_new(old, place, value, self.indent, self.builder)

    # the whole

    def _placed(
        self, lines: list[cst.SimpleStatementLine | cst.BaseCompoundStatement]
    ) -> tuple[cst.BaseStatement | cst.Else, ...]:
        if not self.nested:
            return tuple(lines)
        node = self.node
        if isinstance(node.body, cst.IndentedBlock):
            footer = () if node.orelse is not None else node.body.footer
            body = node.body.with_changes(body=lines, footer=footer)
        else:
            assert isinstance(node.body, cst.SimpleStatementSuite)
            newline = node.body.trailing_whitespace.newline
            body = cst.IndentedBlock(lines, header=cst.TrailingWhitespace(newline=newline))
        test = self._kept_test()
        lost = Counter(comments_of(node.test)) - Counter(comments_of(test) if test is not None else ())
        moved = [comment for comment in comments_of(node.test) if _taken(lost, comment)]
        leading = [*node.leading_lines, *comment_lines(moved)]
        if test is None:
            return (cst.Else(body, leading_lines=leading),)
        space = node.whitespace_before_test
        if space.empty and not test.lpar:
            space = cst.SimpleWhitespace(" ")
        return (
            node.with_changes(test=test, whitespace_before_test=space, body=body, orelse=None, leading_lines=leading),
        )

    def _kept_test(self) -> cst.BaseExpression | None:
        """The part of the test that stays, in parentheses only where its line breaks want them."""
        if self.selection.test is None:
            return None
        span = self.selection.test
        part = self.found.expressions.get(span)
        whole = self.node.test
        if part is None or (part is not whole and whole not in around(part, self.found)):
            raise Refused(f"no part of the test at line {span.line}, column {span.column + 1}")
        if part is whole:
            return whole
        bare = layout.bare(part)
        room = Room(len(self.block) + len("elif " if self.is_elif else "if "), len(":"), self.block)
        line = reflow.joined(bare)
        if line is not None and self.builder.fits(line, room):
            return line
        if reflow.closed(bare):
            return bare
        if whole.lpar:
            return bare.with_changes(lpar=whole.lpar, rpar=whole.rpar)
        return parenthesised(bare)


def _target(text: str) -> cst.AssignTarget:
    target = spelled(text)
    if not isinstance(target, (cst.Name, cst.Attribute, cst.Subscript, cst.Tuple, cst.List)):
        raise Refused(f"nothing can be assigned to `{text}`")
    return cst.AssignTarget(target)


def _position(block: Sequence[cst.CSTNode], node: cst.CSTNode) -> int:
    return next(i for i, statement in enumerate(block) if statement is node)


def _left(lines: Sequence[cst.EmptyLine], placed: Counter[str]) -> list[cst.EmptyLine]:
    """The lines without comments that stand elsewhere, which are struck from `placed`."""
    return [line for line in lines if line.comment is None or not _taken(placed, line.comment.value)]


def _taken(counter: Counter[str], comment: str) -> bool:
    """Whether the comment is in the counter; it is one fewer then."""
    if counter[comment] <= 0:
        return False
    counter[comment] -= 1
    return True


# --- expressions


def chosen(edit: Edit, found: Located, page: layout.Page) -> Choice:
    """What becomes of the expression at a "choose" edit.

    Raises:
        Refused: the plan and the file do not fit, or a comment has no place.
    """
    node = found.expressions.get(edit.span)
    if node is None or edit.value is None:
        raise Refused(f"no expression at line {edit.span.line}, column {edit.span.column + 1}")
    path = list(around(node, found))
    if any(isinstance(part, cst.FormattedStringExpression) and part.equal is not None for part in path):
        raise Refused("the text shows the source of the expression", defect=False)
    for plain in (False, True):
        made = _choice(node, edit, path, Builder(found, page, edit.detail, plain))
        surplus = Counter(comments_of(made.node)) - Counter(comments_of(node))
        if not surplus:
            break
    else:
        raise Refused("a comment has no place in the result", defect=False)
    lost = Counter(comments_of(node)) - Counter(comments_of(made.node))
    moved = tuple(comment for comment in comments_of(node) if _taken(lost, comment))
    if moved and not any(isinstance(part, cst.SimpleStatementLine) for part in path):
        raise Refused("a comment has no place in the result", defect=False)
    return replace(made, comments=moved)


def _choice(node: cst.BaseExpression, edit: Edit, path: Sequence[cst.CSTNode], builder: Builder) -> Choice:
    assert edit.value is not None
    statement = next(
        part for part in path if isinstance(part, (cst.BaseSmallStatement, cst.BaseCompoundStatement, cst.Decorator))
    )
    level = wanted(path[0], node)
    outer: Outer | None = None
    line = builder.found.above[statement]
    if any(isinstance(part, (cst.FormattedString, cst.TemplatedString)) for part in path):
        new = builder.flat(edit.value)
    elif isinstance(line, cst.SimpleStatementLine) and line.body[0] is statement:
        assert isinstance(statement, cst.BaseSmallStatement)
        new, outer = _fitted(statement, node, edit.value, builder.found.indents[node], builder)
    else:
        new = builder.build(edit.value, _room_at(edit.span, path, builder.page))
    new = fenced(new, level)
    try:
        _swapped(statement, node, new, builder.found)
    except cst.CSTValidationError:
        new = parenthesised(new)
    return Choice(new, outer=outer)


def _room_at(span: Span, path: Sequence[cst.CSTNode], page: layout.Page) -> Room:
    rest = page.lines[span.end_line - 1][span.end_column :].partition("#")[0].rstrip()
    return Room(span.column, len(rest), page.indent_at(span.line), _enclosed(path))


def _with_new(
    statement: cst.BaseSmallStatement, place: cst.BaseExpression, value: Piece, indent: str, builder: Builder
) -> cst.BaseSmallStatement:
    """The statement, in a block with the given indentation, with `value` at `place`."""
    new, outer = _fitted(statement, place, value, indent, builder)
    parent = builder.found.parents[place]
    new = fenced(new, wanted(parent, place))
    if outer is None:
        return _replaced(statement, place, new, builder.found)
    call = _replaced(outer.node, place, new, builder.found)
    assert isinstance(call, cst.Call)
    return _replaced(statement, outer.node, laid_out(call, outer.room, builder.page), builder.found)


def _fitted(
    statement: cst.BaseSmallStatement, place: cst.BaseExpression, value: Piece, indent: str, builder: Builder
) -> tuple[cst.BaseExpression, Outer | None]:
    """The new expression for `place`, laid out unless a call around it is to be laid out as a whole."""
    found = builder.found
    path = list(around(place, found))
    room = _room(statement, place, indent, found)
    flat = builder.flat(value)
    if tightness(flat) < wanted(path[0], place):
        room = replace(room, column=room.column + 1, tail=room.tail + 1, enclosed=True)
    outer = getattr(statement, "value", None)
    marker = cst.Name(_MARKER)
    if (
        isinstance(outer, cst.Call)
        and any(above is outer for arg, above in pairwise(path) if isinstance(arg, cst.Arg))
        and not layout.spans_lines(flat)
        and (
            not layout.spans_lines(_replaced(statement, place, marker, found))
            or (not builder.fits(flat, room) and reflow.joined(_replaced(outer, place, marker, found)) is not None)
        )
    ):
        return flat, Outer(outer, _room(statement, outer, indent, found))
    return builder.build(value, replace(room, enclosed=room.enclosed or _enclosed(path))), None


def laid_out(call: cst.Call, room: Room, page: layout.Page) -> cst.Call:
    """A call that is the value of a statement, after a change inside of it."""
    line = reflow.joined(call) if layout.spans_lines(call) else call
    return layout.fit(line, room.column, room.indent, page, room.tail) if isinstance(line, cst.Call) else call


def _enclosed(path: Sequence[cst.CSTNode]) -> bool:
    """Whether brackets are open around an expression with these nodes above it."""
    return any(isinstance(part, _BRACKETS) or (isinstance(part, cst.BaseExpression) and part.lpar) for part in path)


def _room(statement: cst.BaseSmallStatement, place: cst.BaseExpression, indent: str, found: Located) -> Room:
    """The room at `place`, with the statement in a block of the given indentation."""
    marked = _replaced(statement, place, cst.Name(_MARKER), found)
    text = layout.code(marked.with_changes(semicolon=cst.MaybeSentinel.DEFAULT))
    before, _, after = text.partition(_MARKER)
    line = _LINE_END.split(before)[-1]
    tail = len(_LINE_END.split(after)[0].partition("#")[0].rstrip())
    broken = len(line) < len(before)
    own = line[: len(line) - len(line.lstrip())] if broken else ""
    return Room(len(indent) + len(line), tail, indent + own)


def around(node: cst.CSTNode, found: Located) -> Iterator[cst.CSTNode]:
    """The nodes around one that was found, the nearest first."""
    while node in found.above:
        node = found.above[node]
        yield node


def _replaced(root: _Node, old: cst.BaseExpression, new: cst.BaseExpression, found: Located) -> _Node:
    """`root` with `new` for `old`, in parentheses if a keyword stands right beside it."""
    try:
        return _swapped(root, old, new, found)
    except cst.CSTValidationError:
        return _swapped(root, old, parenthesised(new), found)


def _swapped(root: _Node, old: cst.BaseExpression, new: cst.BaseExpression, found: Located) -> _Node:
    changed = root.visit(_Swap(old, new, frozenset(around(old, found))))
    assert isinstance(changed, type(root))
    return changed


class _Swap(cst.CSTTransformer):
    """Puts one node in the place of another; what does not lead there stays the same object."""

    def __init__(self, old: cst.CSTNode, new: cst.CSTNode, path: Collection[cst.CSTNode]) -> None:
        super().__init__()
        self.old, self.new, self.path = old, new, path

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.path

    def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> Any:
        return self.new if original is self.old else updated
