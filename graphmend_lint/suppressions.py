"""Suppression comments: `# lint-ignore: GM201`, `# lint-fixme: print-call`, `# noqa: GM201`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable

from graphmend_lint.findings import Finding

_DIRECTIVE = re.compile(
    r"#\s*(?P<kind>lint-ignore|lint-fixme|noqa)\b(?P<rest>(?:\s*:\s*|\s*\[\s*|\s+)[^#]*)?", re.IGNORECASE
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def comments_by_line(text: str) -> dict[int, tuple[str, bool]]:
    """Comments by line: the comment, and whether it stands alone on its line. Empty where none has a directive."""
    if not _DIRECTIVE.search(text):
        return {}
    found: dict[int, tuple[str, bool]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = (token.string, not token.line[: token.start[1]].strip())
    except (tokenize.TokenError, IndentationError):
        return found
    return found


def silences(comment: str, finding: Finding) -> bool:
    """Whether a comment silences a finding: a bare directive does, a list does if it names the rule.

    Rules go by code, by the first characters of codes, by name, or by class as Fixit's users write it (`PrintCall`).
    """
    for match in _DIRECTIVE.finditer(comment):
        rest = match["rest"]
        listed = rest is not None and (rest.lstrip()[:1] in ":[" or match["kind"].lower() != "noqa")
        names = [n.lower() for n in _NAME.findall(rest)] if listed and rest else []
        if not names:
            return True
        code, spellings = finding.code.lower(), (finding.rule, finding.rule.replace("-", ""))
        if any(n in spellings or (n.startswith("gm") and code.startswith(n)) for n in names):
            return True
    return False


def apply(findings: Iterable[Finding], text: str) -> list[Finding]:
    """The findings that no comment silences.

    A comment counts on any line of the reported call, and on comment lines right above it.
    """
    comments = comments_by_line(text)
    return (
        [f for f in findings if not any(silences(c, f) for c in _around(f, comments))] if comments else list(findings)
    )


def _around(finding: Finding, comments: dict[int, tuple[str, bool]]) -> Iterable[str]:
    for line in range(finding.span.line, finding.span.end_line + 1):
        if line in comments:
            yield comments[line][0]
    line = finding.span.line - 1
    while line in comments and comments[line][1]:
        yield comments[line][0]
        line -= 1
