"""Formatted text as a template and its values: `f"{x:.3f}"` becomes `"{:.3f}"` and `x`.

The pieces of an implicit concatenation are turned one by one and stay where they are, with their prefixes,
quotes and comments; text is kept as it is spelled, so escapes need no second thought, except those that
spell a brace.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

import libcst as cst

_ESCAPE = re.compile(r"\\(?:N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPE_OR_BRACE = re.compile(_ESCAPE.pattern + r"|[{}]", re.DOTALL)
_NEEDS_PARENTHESES = (cst.Tuple, cst.Yield, cst.NamedExpr, cst.StarredElement)
_CODE = cst.Module([])

Gap = cst.BaseParenthesizableWhitespace


class NotATemplate(Exception):
    """The text has no equal in `str.format`; the message says what stands in the way."""


@dataclass(slots=True)
class Template:
    """A string expression for `str.format`, and its values in the order in which the fields ask for them."""

    text: cst.BaseExpression
    values: list[cst.BaseExpression] = field(default_factory=list)


def from_fstring(node: cst.BaseExpression) -> Template:
    """The template of an f-string, or of an implicit concatenation with one or more f-strings in it."""
    values: list[cst.BaseExpression] = []
    return Template(_piece(node, values), values)


def _piece(node: cst.BaseExpression, values: list[cst.BaseExpression]) -> cst.BaseExpression:
    if isinstance(node, cst.ConcatenatedString):
        pieces, gaps = pieces_of(node)
        whole = concatenated([_piece(piece, values) for piece in pieces], gaps)
        return whole.with_changes(lpar=node.lpar, rpar=node.rpar)
    if isinstance(node, cst.SimpleString):
        return node.with_changes(value=_plain_to_template(node))
    if isinstance(node, cst.FormattedString):
        prefix = node.prefix
        body = "".join(_part(part, values, raw="r" in prefix, quote=node.quote) for part in node.parts)
        kept = "".join(letter for letter in node.start[: len(prefix)] if letter not in "fF")
        return cst.SimpleString(f"{kept}{node.quote}{body}{node.quote}", lpar=node.lpar, rpar=node.rpar)
    raise NotATemplate(f"a {type(node).__name__} is no text")


def pieces_of(node: cst.ConcatenatedString) -> tuple[list[cst.BaseExpression], list[Gap]]:
    """The strings of an implicit concatenation, and the gaps between them."""
    pieces: list[cst.BaseExpression] = [node.left]
    gaps: list[Gap] = [node.whitespace_between]
    rest: cst.BaseExpression = node.right
    while isinstance(rest, cst.ConcatenatedString):
        pieces.append(rest.left)
        gaps.append(rest.whitespace_between)
        rest = rest.right
    return [*pieces, rest], gaps


def concatenated(pieces: list[cst.BaseExpression], gaps: list[Gap]) -> cst.BaseExpression:
    """The opposite of `pieces_of`."""
    whole = pieces[-1]
    for piece, gap in zip(reversed(pieces[:-1]), reversed(gaps), strict=True):
        whole = cst.ConcatenatedString(left=piece, right=whole, whitespace_between=gap)  # type: ignore[arg-type]
    return whole


def _plain_to_template(node: cst.SimpleString) -> str:
    """The spelling of a plain string that stands beside an f-string: its braces are text."""
    prefix, quote = node.prefix, node.quote
    if "b" in prefix:
        raise NotATemplate("bytes are no text")
    body = node.raw_value
    if "r" in prefix:
        body = body.replace("{", "{{").replace("}", "}}")
    else:
        body = _ESCAPE_OR_BRACE.sub(lambda match: _doubled(match.group()), body)
    return f"{node.value[: len(prefix)]}{quote}{body}{quote}"


def _doubled(spelling: str) -> str:
    """A brace, spelled in whatever way, twice; any other character or escape as it is."""
    if spelling in "{}":
        return spelling * 2
    # Such an escape is always one character: with `\N{...}` the braces belong to the name.
    if spelling[1] in "NxuU01234567" and ast.literal_eval(f'"{spelling}"') in ("{", "}"):
        return spelling * 2
    return spelling


def _part(
    part: cst.BaseFormattedStringContent,
    values: list[cst.BaseExpression],
    *,
    raw: bool,
    quote: str,
    depth: int = 0,
) -> str:
    if isinstance(part, cst.FormattedStringText):
        # Braces are doubled here already, as `str.format` wants them.
        return part.value if raw else _ESCAPE.sub(lambda match: _doubled(match.group()), part.value)
    if not isinstance(part, cst.FormattedStringExpression):
        raise NotATemplate(f"a {type(part).__name__} in the text")
    if depth > 1:
        raise NotATemplate("a format specification inside a format specification")
    values.append(_as_value(part.expression, quote))
    conversion = part.conversion
    label = ""
    if part.equal is not None:
        label = _label(part, quote)
        if conversion is None and part.format_spec is None:
            conversion = "r"
    field_text = "" if conversion is None else f"!{conversion}"
    if part.format_spec is not None:
        field_text += ":" + "".join(
            _part(inner, values, raw=raw, quote=quote, depth=depth + 1) for inner in part.format_spec
        )
    return f"{label}{{{field_text}}}"


def _label(part: cst.FormattedStringExpression, quote: str) -> str:
    """The text that `{x = }` shows before the value: the field's own source."""
    assert part.equal is not None
    text = "".join(
        _CODE.code_for_node(piece) for piece in (part.whitespace_before_expression, part.expression, part.equal)
    )
    if quote in text or "\\" in text or "\n" in text or "\r" in text:
        raise NotATemplate("a `=` field whose source does not fit the quotes")
    return text.replace("{", "{{").replace("}", "}}")


def _as_value(expression: cst.BaseExpression, quote: str) -> cst.BaseExpression:
    """The expression as an argument; a field takes some forms without parentheses that a call does not."""
    changed = expression.visit(_Requoted(quote[0]))
    assert isinstance(changed, cst.BaseExpression)
    if isinstance(changed, _NEEDS_PARENTHESES) and not changed.lpar:
        return changed.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return changed


class _Requoted(cst.CSTTransformer):
    """Gives strings the quotes of the text they stood in, which had forced other ones upon them."""

    def __init__(self, quote: str) -> None:
        super().__init__()
        self.quote = quote

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        return False

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        body = updated_node.raw_value
        if len(updated_node.quote) != 1 or self.quote in body or "\\" in body:
            return updated_node
        return updated_node.with_changes(value=f"{updated_node.prefix}{self.quote}{body}{self.quote}")
