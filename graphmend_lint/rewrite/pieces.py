"""New expressions over old ones, laid out: `torch.where(p, a, b)`, `p | q`, `~p`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst

from graphmend_lint.findings import Built, Piece, Span
from graphmend_lint.rewrite import layout, reflow
from graphmend_lint.rewrite.locate import Located, parentheses_around
from graphmend_lint.rewrite.precedence import BIT_OR, LAMBDA, SIGN, fenced, parenthesised, wanted
from graphmend_lint.rewrite.refusal import Refused

_LINE_END = re.compile(r"\r\n?|\n")
_OPERATORS = {"and": "&", "or": "|", "then": "and"}
_OPERATIONS = (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison)


@dataclass(frozen=True, slots=True)
class Room:
    """Where an expression goes: its column, how many characters follow it, the indentation of its line.

    `enclosed` says that brackets are open there, so that it may break anywhere.
    """

    column: int
    tail: int
    indent: str
    enclosed: bool = False


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes expressions of pieces. `function` is how the file spells the function that they call.

    With `plain`, comments inside of the pieces are left out.
    """

    found: Located
    page: layout.Page
    function: str
    plain: bool = False

    def flat(self, piece: Piece) -> cst.BaseExpression:
        """The expression on one line, or on as few as it can be."""
        if isinstance(piece, str):
            return spelled(piece)
        if isinstance(piece, Span):
            return self._source(piece)
        parts = [self.flat(part) for part in piece.parts]
        if piece.op in ("where", "call"):
            args = [cst.Arg(fenced(part, LAMBDA)) for part in parts]
            return cst.Call(func=spelled(self.function), args=args)
        if piece.op == "tuple":
            return cst.Tuple([cst.Element(fenced(part, LAMBDA)) for part in parts], lpar=(), rpar=())
        return _operation(piece.op, parts)

    def build(self, piece: Piece, room: Room) -> cst.BaseExpression:
        """The expression as a formatter would lay it out in `room`."""
        node = self.flat(piece)
        if self.fits(node, room):
            return node
        if isinstance(piece, Built):
            return self._built(piece, node, room)
        if isinstance(piece, str):
            return self._broken(node, room)
        return self._moved(piece, node, room)

    def fits(self, node: cst.BaseExpression, room: Room) -> bool:
        return not layout.spans_lines(node) and room.column + len(layout.code(node)) + room.tail <= self.page.width

    def _moved(self, span: Span, node: cst.BaseExpression, room: Room) -> cst.BaseExpression:
        """An expression of the source, broken anew if its lines fit then, else as it was broken."""
        if not layout.spans_lines(node):
            broken = self._broken(node, room)
            lines = _LINE_END.split(" " * room.column + layout.code(broken) + " " * room.tail)
            node = self._loosened(span)
            if max(map(len, lines)) <= self.page.width or not layout.spans_lines(node) or self.plain:
                return broken
        node = reflow.settled(node, room.indent)
        return node if room.enclosed or reflow.closed(node) else parenthesised(node)

    def _source(self, span: Span) -> cst.BaseExpression:
        if span not in self.found.expressions:
            raise Refused(f"no expression at line {span.line}, column {span.column + 1}")
        node = layout.bare(self.found.expressions[span])
        if not layout.spans_lines(node):
            return node.deep_clone()
        line = reflow.joined(node, drop_comments=self.plain)
        if line is None and self.plain:
            raise Refused("a comment stands in an expression that is needed more than once", defect=False)
        return self._loosened(span) if line is None else layout.bare(line)

    def _loosened(self, span: Span) -> cst.BaseExpression:
        node = self.found.expressions[span]
        bare = layout.bare(node)
        first = span.line - sum(map(layout.line_breaks, parentheses_around(bare)[0]))
        return reflow.loosened(bare.deep_clone(), self.found.indents[node], self.page.indent_at(first))

    def _built(self, piece: Built, node: cst.BaseExpression, room: Room) -> cst.BaseExpression:
        if isinstance(node, cst.Call):
            return self._where(piece, node, room)
        if isinstance(node, cst.Tuple):
            return self._tuple(piece, node, room)
        if layout.spans_lines(node):
            node = reflow.settled(node, room.indent)
            return node if room.enclosed or reflow.closed(node) else parenthesised(node)
        return self._broken(node, room)

    def _where(self, piece: Built, node: cst.Call, room: Room) -> cst.BaseExpression:
        inner = room.indent + self.page.unit
        if not layout.spans_lines(node):
            on_one = layout.fit(node, room.column, room.indent, self.page, room.tail)
            if not _has_trailing_comma(on_one):
                return on_one
        parts = [self.build(part, Room(len(inner), 1, inner, enclosed=True)) for part in piece.parts]
        args = [cst.Arg(fenced(part, LAMBDA)) for part in parts]
        return layout.exploded(node.with_changes(args=args), room.indent, self.page.unit)

    def _tuple(self, piece: Built, node: cst.Tuple, room: Room) -> cst.BaseExpression:
        inner = room.indent + self.page.unit
        parts = [self.build(part, Room(len(inner), 1, inner, enclosed=True)) for part in piece.parts]
        gaps = [*[layout.new_line(inner)] * (len(parts) - 1), layout.new_line(room.indent)]
        elements = [
            cst.Element(fenced(part, LAMBDA), comma=cst.Comma(whitespace_after=gap))
            for part, gap in zip(parts, gaps, strict=True)
        ]
        return _bracketed(node.with_changes(elements=elements), layout.new_line(inner), cst.SimpleWhitespace(""))

    def _broken(self, node: cst.BaseExpression, room: Room) -> cst.BaseExpression:
        """An expression on one line that is too long for it."""
        if isinstance(node, cst.Call):
            return layout.fit(node, room.column, room.indent, self.page, room.tail)
        if room.enclosed:
            return reflow.at_operators(node, room.indent)
        inner = room.indent + self.page.unit
        split = node if self.fits(node, Room(len(inner), 0, inner)) else reflow.at_operators(node, inner)
        if isinstance(node, _OPERATIONS):
            return _bracketed(split, layout.new_line(inner), layout.new_line(room.indent))
        return node


def spelled(text: str) -> cst.BaseExpression:
    """The expression that a plan spells out."""
    try:
        return cst.parse_expression(text)
    except cst.ParserSyntaxError:
        raise Refused(f"`{text}` is no expression") from None


def _operation(op: str, parts: list[cst.BaseExpression]) -> cst.BaseExpression:
    if op == "not":
        return cst.UnaryOperation(operator=cst.BitInvert(), expression=fenced(parts[0], SIGN))
    if op == "nonzero":
        target = cst.ComparisonTarget(cst.NotEqual(), cst.Integer("0"))
        return cst.Comparison(left=fenced(parts[0], BIT_OR), comparisons=[target])
    whole = parts[0]
    for part in parts[1:]:
        form = spelled(f"a {_OPERATORS.get(op, op)} b")
        whole = _with_operands(form, whole, part)
    return whole


def _with_operands(form: cst.BaseExpression, left: cst.BaseExpression, right: cst.BaseExpression) -> cst.BaseExpression:
    """The operation `form` on other operands."""
    if isinstance(form, cst.Comparison):
        (target,) = form.comparisons
        changed = target.with_changes(comparator=fenced(right, wanted(target, target.comparator)))
        return form.with_changes(left=fenced(left, wanted(form, form.left)), comparisons=[changed])
    assert isinstance(form, (cst.BinaryOperation, cst.BooleanOperation))
    return form.with_changes(left=fenced(left, wanted(form, form.left)), right=fenced(right, wanted(form, form.right)))


def _bracketed(
    node: cst.BaseExpression, after: cst.BaseParenthesizableWhitespace, before: cst.BaseParenthesizableWhitespace
) -> cst.BaseExpression:
    return node.with_changes(
        lpar=[cst.LeftParen(whitespace_after=after)], rpar=[cst.RightParen(whitespace_before=before)]
    )


def _has_trailing_comma(node: cst.Call) -> bool:
    return isinstance(node.args[-1].comma, cst.Comma)
