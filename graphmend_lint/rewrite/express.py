"""The new expressions: `deferred(f)`, `formatted(template, ...)`, `percent(template, values)`, `name :=
when(test)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import libcst as cst

from graphmend_lint.findings import Span
from graphmend_lint.rewrite import layout, template

_SPACE = cst.SimpleWhitespace(" ")


def wrapped(name: str, callee: cst.BaseExpression) -> cst.Call:
    """`name(callee)`."""
    return layout.call(name, [layout.bare(callee)])


def method_read(node: cst.BaseExpression) -> str | None:
    """The method of an expression such as `t.item()`."""
    if isinstance(node, cst.Call) and not node.args and isinstance(node.func, cst.Attribute):
        return node.func.attr.value
    return None


def read(name: str, node: cst.BaseExpression) -> cst.BaseExpression:
    """`t.item()` as `name(t)`."""
    assert isinstance(node, cst.Call)
    assert isinstance(node.func, cst.Attribute)
    return node.with_changes(func=cst.Name(name), args=[cst.Arg(layout.bare(node.func.value))])


def with_readings(node: cst.BaseExpression, names: Mapping[str, str]) -> cst.BaseExpression:
    """`formatted(template, t.item())`, or `percent(template, (t.item(),))`, with the readings of data in `names`."""
    if not names or not isinstance(node, cst.Call):
        return node
    return node.with_changes(args=[node.args[0], *(_with_reading(arg, names) for arg in node.args[1:])])


_Part = TypeVar("_Part", cst.Arg, cst.BaseElement)


def _with_reading(part: _Part, names: Mapping[str, str]) -> _Part:
    value = part.value
    if isinstance(value, cst.Tuple) and isinstance(part, cst.Arg):
        value = value.with_changes(elements=[_with_reading(element, names) for element in value.elements])
    elif (method := method_read(value)) in names and method is not None:
        value = read(names[method], value)
    return part.with_changes(value=value)


def formatted(
    name: str, node: cst.BaseExpression, span: Span, page: layout.Page, *, refit: bool, indent: str | None = None
) -> cst.BaseExpression:
    """The f-string or `.format` call as `name(template, ...)`.

    `indent` is the indentation of the line that it will start on, where that is not the one that it starts on.
    """
    if isinstance(node, cst.Call):
        return _from_format_call(name, node, span, page, refit=refit, indent=indent)
    made = template.from_fstring(node)
    values = [cst.Arg(value) for value in made.values]
    return _text_call(name, node, made.text, values, span, page, refit=refit, indent=indent)


def percent(
    name: str, node: cst.BaseExpression, span: Span, page: layout.Page, *, refit: bool, indent: str | None = None
) -> cst.BaseExpression:
    """`template % values` as `name(template, values)`; `indent` as for `formatted`."""
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Modulo):
        raise template.NotATemplate("no `%` here")
    gap = node.operator.whitespace_after
    comma = cst.Comma(whitespace_after=gap if isinstance(gap, cst.ParenthesizedWhitespace) else _SPACE)
    values = cst.Arg(layout.bare(node.right))
    return _text_call(name, node, node.left, [values], span, page, refit=refit, comma=comma, indent=indent)


def _from_format_call(
    name: str, node: cst.Call, span: Span, page: layout.Page, *, refit: bool, indent: str | None
) -> cst.BaseExpression:
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "format":
        raise template.NotATemplate("no call of `format` here")
    args = [_with_own_parentheses(arg) for arg in node.args]
    before = node.whitespace_before_args
    gap = layout.without_comments(before) if isinstance(before, cst.ParenthesizedWhitespace) else _SPACE
    comma = cst.Comma(whitespace_after=gap)
    return _text_call(name, node, func.value, args, span, page, refit=refit, comma=comma, indent=indent)


def _with_own_parentheses(arg: cst.Arg) -> cst.Arg:
    """A generator as the only argument borrows the call's parentheses; beside another it needs its own."""
    if isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar:
        return arg.with_changes(value=arg.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
    return arg


def _text_call(
    name: str,
    node: cst.BaseExpression,
    text: cst.BaseExpression,
    values: Sequence[cst.Arg],
    span: Span,
    page: layout.Page,
    *,
    refit: bool,
    comma: cst.Comma | None = None,
    indent: str | None = None,
) -> cst.BaseExpression:
    """`name(text, *values)` in the place of `node`; beside a text of several lines each value has a line."""
    kept = layout.bare(node)
    text = layout.bare(text)
    first = cst.Arg(text, comma=comma or cst.Comma(whitespace_after=_SPACE))
    made = cst.Call(func=cst.Name(name), args=[first, *values], lpar=kept.lpar, rpar=kept.rpar)
    if indent is None:
        opening = sum(layout.line_breaks(paren) for paren in node.lpar) if not kept.lpar else 0
        indent = page.indent_at(span.line - opening)
    if isinstance(text, cst.ConcatenatedString):
        pieces, gaps = template.pieces_of(text)
        if any(isinstance(gap, cst.ParenthesizedWhitespace) for gap in gaps):
            inner = indent + page.unit
            whole = template.concatenated(pieces, [layout.deepened(gap, inner) for gap in gaps])
            kept_parens = whole.with_changes(lpar=text.lpar, rpar=text.rpar)
            made = made.with_changes(args=[first.with_changes(value=kept_parens), *values])
            return layout.exploded(made, indent, page.unit)
    if isinstance(node, cst.Call) and isinstance(node.whitespace_before_args, cst.ParenthesizedWhitespace):
        return made.with_changes(whitespace_before_args=node.whitespace_before_args)
    return layout.fit(made, span.column, indent, page) if refit else made


def alarm(name: str, when: str, test: cst.BaseExpression) -> cst.NamedExpr:
    """`name := when(test)`; parentheses and line breaks around the test go to the call."""
    parts = layout.bare(test)
    made = cst.Call(func=cst.Name(when), args=[cst.Arg(parts)])
    if test.lpar and not parts.lpar and layout.spans_lines(test.lpar[-1]):
        made = made.with_changes(
            whitespace_before_args=test.lpar[-1].whitespace_after,
            args=[cst.Arg(parts, whitespace_after_arg=test.rpar[0].whitespace_before)],
        )
    return cst.NamedExpr(target=cst.Name(name), value=made)


def failing(name: str, fail: str, statement: cst.Raise) -> cst.Expr:
    """`raise E(...)` as `name(fail)(E, ...)`; the arguments keep their layout. A cause goes in front of `E`."""
    raised = statement.exc
    assert raised is not None
    call = raised if isinstance(raised, cst.Call) else None
    func = layout.call(name, [cst.Name(fail)])
    front = [] if statement.cause is None else [layout.bare(statement.cause.item)]
    front.append(layout.bare(call.func if call else raised))
    first = [cst.Arg(part, comma=cst.Comma(whitespace_after=_SPACE)) for part in front]
    if call is None or not call.args:
        first[-1] = cst.Arg(front[-1])
        return cst.Expr(layout.bare(cst.Call(func=func, args=first)))
    gap = call.whitespace_before_args
    if isinstance(gap, cst.ParenthesizedWhitespace):
        comma = cst.Comma(whitespace_after=layout.without_comments(gap))
        first = [arg.with_changes(comma=comma) for arg in first]
    return cst.Expr(layout.bare(call.with_changes(func=func, args=[*first, *call.args])))


def guarded(predicate: str, statement: cst.SimpleStatementLine | cst.SimpleStatementSuite) -> cst.If:
    """`if not predicate:` around the statement; comments above it go above the `if`."""
    test = cst.parse_expression(predicate if predicate.startswith("not ") else f"not {predicate}")
    leading: Sequence[cst.EmptyLine] = ()
    if isinstance(statement, cst.SimpleStatementLine):
        leading = statement.leading_lines
        line = statement.with_changes(leading_lines=())
    else:
        line = cst.SimpleStatementLine(body=statement.body, trailing_whitespace=statement.trailing_whitespace)
    return cst.If(test=test, body=cst.IndentedBlock([line]), leading_lines=leading)
