"""The statements that checks become: a guard without its `else`, an `if` for an `assert`, torch's own assertion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import libcst as cst

from graphmend_lint.rewrite import layout
from graphmend_lint.rewrite.comments import comment_lines, comments_of
from graphmend_lint.rewrite.refusal import Refused

_Line: TypeAlias = "cst.SimpleStatementLine | cst.SimpleStatementSuite"


def check_unnested(node: cst.If) -> None:
    """Raise `Refused` where what follows under `else` cannot be moved behind the `if` with all its comments."""
    block = node.orelse.body if isinstance(node.orelse, cst.Else) else None
    if node.orelse is None:
        raise Refused("the guard has no `else`")
    if isinstance(block, cst.IndentedBlock) and any(line.comment is not None for line in block.footer):
        raise Refused("a comment has no place in the result", defect=False)


def unnested(node: cst.If) -> cst.FlattenSentinel[cst.BaseStatement]:
    """The `if` alone, and behind it what it had under `else`; an `elif` becomes an `if`."""
    rest, alone = node.orelse, node.with_changes(orelse=None)
    if isinstance(rest, cst.If):
        return cst.FlattenSentinel([alone, rest])
    assert rest is not None
    above = [*rest.leading_lines]
    if isinstance(rest.body, cst.SimpleStatementSuite):
        suite = rest.body
        line = cst.SimpleStatementLine(suite.body, trailing_whitespace=suite.trailing_whitespace)
        return cst.FlattenSentinel([alone, line.with_changes(leading_lines=above)])
    assert isinstance(rest.body, cst.IndentedBlock)
    above += comment_lines(comments_of(rest.body.header))
    first, *more = rest.body.body
    first = first.with_changes(leading_lines=[*above, *getattr(first, "leading_lines", ())])
    return cst.FlattenSentinel([alone, first, *more])


def check_asserted(node: cst.Assert) -> None:
    """Raise `Refused` where a comment stands at a parenthesis around the message."""
    around: list[cst.CSTNode] = [] if node.msg is None else [*node.msg.lpar, *node.msg.rpar]
    if isinstance(node.comma, cst.Comma):
        around.append(node.comma)
    if any(True for _ in comments_of(*around)):
        raise Refused("a comment has no place in the result", defect=False)


def asserted(node: cst.Assert, line: _Line, test: cst.NamedExpr, fail: str, indent: str, page: layout.Page) -> cst.If:
    """`assert P, message` as an `if` that fails with AssertionError; `test` is `alarm := unless(P)`.

    Python drops the `assert` under `-O`, and the `if`, since `__debug__` is False then. `indent` is that of its body.
    """
    assert isinstance(test.target, cst.Name)
    call = cst.Call(layout.call(test.target.value, [cst.Name(fail)]), _arguments(node.msg))
    if node.msg is not None and node.msg.lpar and layout.spans_lines(node.msg.lpar[-1]):
        call = _opened(call, node.msg, indent + page.unit)
    elif layout.spans_lines(call):
        call = layout.exploded(call, indent, page.unit)
    else:
        call = layout.fit(call, len(indent), indent, page)
    whole = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    both = cst.BooleanOperation(left=cst.Name("__debug__"), operator=cst.And(), right=whole)
    body = cst.IndentedBlock([cst.SimpleStatementLine([cst.Expr(call)])], header=line.trailing_whitespace)
    leading = line.leading_lines if isinstance(line, cst.SimpleStatementLine) else ()
    return cst.If(test=both, body=body, leading_lines=leading)


def _arguments(message: cst.BaseExpression | None) -> list[cst.Arg]:
    first = cst.Arg(cst.Name("AssertionError"))
    if message is None:
        return [first]
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [first.with_changes(comma=comma), cst.Arg(layout.bare(message))]


def _opened(call: cst.Call, message: cst.BaseExpression, inner: str) -> cst.Call:
    """The call with the line breaks, and the comments, of the parentheses around its message."""
    first, last = call.args
    first = first.with_changes(comma=cst.Comma(whitespace_after=message.lpar[-1].whitespace_after))
    last = last.with_changes(whitespace_after_arg=message.rpar[0].whitespace_before)
    return call.with_changes(whitespace_before_args=layout.new_line(inner), args=[first, last])


def called(node: cst.If | cst.Assert, line: cst.CSTNode, call: cst.Call) -> cst.SimpleStatementLine:
    """The call in the place of a check; the comments in the check go above it."""
    leading: Sequence[cst.EmptyLine] = getattr(line, "leading_lines", ())
    inside = comments_of(node) if isinstance(node, cst.Assert) else comments_of(node.test, node.body)
    kept = set(comments_of(call))
    moved = comment_lines(comment for comment in inside if comment not in kept)
    space = getattr(line, "trailing_whitespace", None) if isinstance(node, cst.Assert) else None
    made = cst.SimpleStatementLine([cst.Expr(call)], leading_lines=[*leading, *moved])
    return made if space is None else made.with_changes(trailing_whitespace=space)
