"""Where things go on the page: calls that grew too long for their line, and texts that span several lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

_NEWLINE = re.compile(r"\r\n?|\n")
_INDENT = re.compile(r"[ \t\f]*")
_WIDTHS = (79, 80, 88, 99, 100, 119, 120)
_CODE = cst.Module([])
_NO_SPACE = cst.SimpleWhitespace("")


@dataclass(frozen=True, slots=True)
class Page:
    """The layout of a file: its lines, its unit of indentation, and the width that the lines keep."""

    lines: tuple[str, ...]
    unit: str
    width: int

    @classmethod
    def of(cls, text: str, unit: str) -> Page:
        lines = tuple(_NEWLINE.split(text))
        return cls(lines, unit, _width(lines))

    def indent_at(self, line: int) -> str:
        match = _INDENT.match(self.lines[line - 1])
        return match.group() if match else ""


def _width(lines: Sequence[str]) -> int:
    """The narrowest usual limit that nearly all lines keep; 88 for a file too short to tell."""
    lengths = sorted(map(len, lines))
    if len(lengths) < 100:
        return max(88, min(120, lengths[-1]))
    nearly_all = lengths[-1 - len(lengths) // 200]
    return next((width for width in _WIDTHS if nearly_all <= width), _WIDTHS[-1])


def code(node: cst.CSTNode) -> str:
    return _CODE.code_for_node(node)


def has_comment(node: cst.CSTNode) -> bool:
    """Whether a comment may stand anywhere in `node`: a `#` in a text counts too."""
    return "#" in code(node)


def spans_lines(node: cst.CSTNode) -> bool:
    return bool(_NEWLINE.search(code(node)))


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without its parentheses, unless a comment stands in them or the syntax wants them."""
    if isinstance(node, (cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp)) or not node.lpar:
        return node
    if any(has_comment(paren) for paren in (*node.lpar, *node.rpar)):
        return node
    return node.with_changes(lpar=[], rpar=[])


def new_line(indent: str) -> cst.ParenthesizedWhitespace:
    """A line break inside brackets; the next line starts with exactly `indent`."""
    return cst.ParenthesizedWhitespace(indent=False, last_line=cst.SimpleWhitespace(indent))


def call(name: str, args: Sequence[cst.BaseExpression]) -> cst.Call:
    return cst.Call(func=cst.Name(name), args=[cst.Arg(value) for value in args])


def exploded(node: cst.Call, indent: str, unit: str) -> cst.Call:
    """The call with each argument on a line of its own, a step deeper than `indent`, comments kept."""
    inner = indent + unit
    if any(isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar for arg in node.args):
        return node  # a bare generator takes no comma after it
    *front, last = node.args
    if front:
        close = _gap_after(last)
        last = last.with_changes(
            comma=cst.Comma(whitespace_after=deepened(close, indent)), whitespace_after_arg=_NO_SPACE
        )
    else:
        last = last.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=new_line(indent))
    args = [
        *(arg.with_changes(comma=cst.Comma(whitespace_after=deepened(_gap_after(arg), inner))) for arg in front),
        last,
    ]
    return node.with_changes(
        whitespace_before_args=deepened(node.whitespace_before_args, inner, breaks=True), args=args
    )


def _gap_after(arg: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    """The line break after an argument, with the comment that stands in it."""
    if isinstance(arg.comma, cst.Comma) and isinstance(arg.comma.whitespace_after, cst.ParenthesizedWhitespace):
        return arg.comma.whitespace_after
    if isinstance(arg.whitespace_after_arg, cst.ParenthesizedWhitespace):
        return arg.whitespace_after_arg
    return new_line("")


def fit(node: cst.Call, column: int, indent: str, page: Page, tail: int = 0) -> cst.Call:
    """The one-line call as it is if it fits from `column`, else broken as a formatter would break it.

    `tail` is the number of characters that follow it on its line.
    """
    if not node.args or spans_lines(node) or column + len(code(node)) + tail <= page.width:
        return node
    inner = indent + page.unit
    *front, last = node.args
    length = len(code(node)) - len(code(node.func)) - 2
    if len(inner) + length <= page.width:
        args = [
            *front,
            last.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=new_line(indent)),
        ]
        return node.with_changes(whitespace_before_args=new_line(inner), args=args)
    return exploded(node.with_changes(args=[_fit_arg(arg, inner, page) for arg in node.args]), indent, page.unit)


def _fit_arg(arg: cst.Arg, indent: str, page: Page) -> cst.Arg:
    """The argument on a line of its own, a comma behind it."""
    if not isinstance(arg.value, cst.Call):
        return arg
    start = len(code(arg)) - len(code(arg.value))
    return arg.with_changes(value=fit(arg.value, len(indent) + start, indent, page, 1))


def deepened(
    gap: cst.BaseParenthesizableWhitespace, indent: str, *, breaks: bool = False
) -> cst.BaseParenthesizableWhitespace:
    """The gap, comments kept, with what follows at `indent`; `breaks` turns a space into a line break."""
    if not isinstance(gap, cst.ParenthesizedWhitespace):
        return new_line(indent) if breaks else gap
    lines = [
        line.with_changes(indent=False, whitespace=cst.SimpleWhitespace(indent)) if line.comment else line
        for line in gap.empty_lines
    ]
    return gap.with_changes(indent=False, empty_lines=lines, last_line=cst.SimpleWhitespace(indent))


def without_comments(gap: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    """The gap for another place: its comments stay where they are."""
    first = gap.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return gap.with_changes(first_line=first, empty_lines=[])


def line_breaks(node: cst.CSTNode) -> int:
    return len(_NEWLINE.findall(code(node)))
