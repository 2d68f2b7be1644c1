"""Expressions that move: written on one line, given another indentation, broken at their operators."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable

import libcst as cst

from graphmend_lint.rewrite import layout
from graphmend_lint.rewrite.precedence import tightness

_NO_TOKENS = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_CLOSING = frozenset(")]}")
_NO_SPACE_AFTER = frozenset("([{.")
_NO_SPACE_BEFORE = _CLOSING | frozenset(".,")


def parsed(text: str) -> cst.BaseExpression:
    """The expression that `text` spells, whatever line breaks are in it."""
    node = cst.parse_expression(f"({text})")
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


def closed(node: cst.BaseExpression) -> bool:
    """Whether the expression needs no brackets around it: each of its line breaks is inside some of its own."""
    if not layout.spans_lines(node):
        return True
    try:
        ast.parse(layout.code(node), mode="eval")
    except SyntaxError:
        return False
    return True


def joined(node: cst.BaseExpression, *, drop_comments: bool = False) -> cst.BaseExpression | None:
    """The expression without the line breaks between its tokens.

    None where a comment, or a comma before a closing bracket, wants them; with `drop_comments`, neither does.
    """
    text = layout.code(node)
    line = _joined(text, drop_comments=drop_comments)
    if line is None or _tree(line) != _tree(text):
        return None
    return parsed(line)


def _tree(text: str) -> str:
    try:
        return ast.dump(ast.parse(f"({text}\n)", mode="eval"))
    except SyntaxError:
        return ""


def _joined(text: str, *, drop_comments: bool) -> str | None:
    source = f"({text}\n)"
    rows = io.StringIO(source).readlines()
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type not in _NO_TOKENS]
    except (tokenize.TokenError, SyntaxError):
        return None
    if not drop_comments and any(token.type == tokenize.COMMENT for token in tokens):
        return None
    tokens = [token for token in tokens if token.type != tokenize.COMMENT][1:-1]
    pieces: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is None:
            pass
        elif before.end[0] == token.start[0]:
            pieces.append(rows[token.start[0] - 1][before.end[1] : token.start[1]])
        elif before.string == "," and token.string in _CLOSING and not drop_comments:
            return None
        elif before.string not in _NO_SPACE_AFTER and token.string not in _NO_SPACE_BEFORE:
            pieces.append(" ")
        pieces.append(_slice(rows, token.start, token.end))
    return "".join(pieces)


def _slice(rows: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The source between two places: a token of an f-string may spell its text otherwise."""
    if start[0] == end[0]:
        return rows[start[0] - 1][start[1] : end[1]]
    return "".join([rows[start[0] - 1][start[1] :], *rows[start[0] : end[0] - 1], rows[end[0] - 1][: end[1]]])


# --- indentation


def loosened(node: cst.BaseExpression, block: str, line: str) -> cst.BaseExpression:
    """The expression with its further lines indented against its first one, ready for `settled`.

    `block` is the indentation of the block that it stood in, `line` that of its first line.
    """
    return _indented(node, lambda regular, own: ((block if regular else "") + own).removeprefix(line))


def settled(node: cst.BaseExpression, indent: str) -> cst.BaseExpression:
    """A loosened expression that starts on a line with the given indentation."""
    return _indented(node, lambda _, own: indent + own)


def _indented(node: cst.BaseExpression, indent: Callable[[bool, str], str]) -> cst.BaseExpression:
    changed = node.visit(_Indenter(indent))
    assert isinstance(changed, cst.BaseExpression)
    return changed


class _Indenter(cst.CSTTransformer):
    """Gives each line inside brackets the indentation that a function makes of its old one."""

    def __init__(self, indent: Callable[[bool, str], str]) -> None:
        super().__init__()
        self.indent = indent

    def leave_ParenthesizedWhitespace(
        self, original_node: cst.ParenthesizedWhitespace, updated_node: cst.ParenthesizedWhitespace
    ) -> cst.ParenthesizedWhitespace:
        space = self.indent(updated_node.indent, updated_node.last_line.value)
        return updated_node.with_changes(indent=False, last_line=cst.SimpleWhitespace(space))

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:
        if updated_node.comment is None:
            return updated_node.with_changes(indent=False, whitespace=cst.SimpleWhitespace(""))
        space = self.indent(updated_node.indent, updated_node.whitespace.value)
        return updated_node.with_changes(indent=False, whitespace=cst.SimpleWhitespace(space))


# --- operators


def at_operators(node: cst.BaseExpression, indent: str) -> cst.BaseExpression:
    """A chain of operators with a line for each operand, as it may stand inside brackets; else the node as it is."""
    gap = layout.new_line(indent)
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        left = node.left
        if type(left) is type(node) and tightness(left) == tightness(node):
            left = at_operators(left, indent)
        return node.with_changes(left=left, operator=node.operator.with_changes(whitespace_before=gap))
    if isinstance(node, cst.Comparison):
        targets = [
            target.with_changes(operator=target.operator.with_changes(whitespace_before=gap))
            for target in node.comparisons
        ]
        return node.with_changes(comparisons=targets)
    return node
