"""The safety net under every fix: what was not to be touched is byte for byte there, comments too, and the
text parses.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Collection, Sequence

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")


class NotFaithful(Exception):
    """A rewritten text that failed a check: a defect of the linter, never of the user's file."""


def lines_of(text: str) -> list[str]:
    """The lines, ends included; form feeds and Unicode separators end none, unlike with `str.splitlines`."""
    return [line for line in _LINE.findall(text) if line]


def check_edits(before: str, after: str, touched: Collection[tuple[int, int]]) -> None:
    """`after` is `before` but for the lines `touched` (from 1, both ends included), comments included."""
    old = lines_of(before)
    position = line = start = 0
    for first, last in merged(touched):
        kept = "".join(old[line : first - 1])
        at = _find_line(after, kept, position) if line else 0
        if at < 0 or not after.startswith(kept, at):
            raise NotFaithful(f"text before line {first} changed")
        if line:
            _check_comments("".join(old[start - 1 : line]), after[position:at], before, after)
        position, line, start = at + len(kept), last, first
    rest = "".join(old[line:])
    if not after.endswith(rest) or len(after) - len(rest) < position:
        raise NotFaithful(f"text after line {line} changed")
    if line:
        _check_comments("".join(old[start - 1 : line]), after[position : len(after) - len(rest)], before, after)


def _find_line(text: str, lines: str, position: int) -> int:
    """Where `lines` stand in `text` from `position` on, at the start of a line; -1 if nowhere."""
    at = text.find(lines, position)
    while at > 0 and text[at - 1] not in "\r\n":
        at = text.find(lines, at + 1)
    return at


def merged(ranges: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order; those that touch or overlap are one."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def _check_comments(old_part: str, new_part: str, old: str, new: str) -> None:
    before = _comments(old_part)
    if before is not None and before == _comments(new_part):
        return
    # The part may be no sequence of tokens by itself: ask the whole.
    if _comments(old) != _comments(new):
        raise NotFaithful("a comment would be lost")


def _comments(text: str) -> Counter[str] | None:
    try:
        tokens = tokenize.generate_tokens(io.StringIO(textwrap.dedent(text)).readline)
        return Counter(token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT)
    except (tokenize.TokenError, SyntaxError):
        return None


def check_import(before: str, after: str) -> None:
    """`after` is `before` with imports and blank lines added, or with one import statement changed."""
    old, new = lines_of(before), lines_of(after)
    front = _common(old, new)
    back = _common(old[front:][::-1], new[front:][::-1])
    for text, lines in ((before, old), (after, new)):
        changed = {number + 1 for number in range(front, len(lines) - back) if lines[number].strip()}
        if changed and not changed <= _import_lines(text):
            raise NotFaithful("more than an import changed")


def _import_lines(text: str) -> set[int]:
    statements = [s for s in check_syntax(text).body if isinstance(s, (ast.Import, ast.ImportFrom))]
    return {line for s in statements for line in range(s.lineno, (s.end_lineno or s.lineno) + 1)}


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def check_syntax(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotFaithful(f"the result does not parse: {error}") from None
