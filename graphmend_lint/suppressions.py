"""Suppression comments: `# lint-ignore: GM201`, `# lint-fixme: print-call`, `# noqa: GM201`, `# graphmend: noqa`."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from graphmend_lint import unused_suppression
from graphmend_lint.analysis import source as sources
from graphmend_lint.findings import Finding, Span

_DIRECTIVE = re.compile(
    r"#\s*(?P<file>graphmend\s*:\s*(?=noqa))?(?P<kind>lint-ignore|lint-fixme|noqa)\b"
    r"(?P<rest>(?:\s*:\s*|\s*\[\s*|\s+)[^#]*)?",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_BLANK = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True, slots=True)
class Name:
    """A rule as a directive names it, and where it stands in its line."""

    text: str
    start: int
    end: int

    def means(self, code: str, rule: str) -> bool:
        """Whether it names a rule: by code, the first characters of codes, name, or class as Fixit's users write it."""
        wanted = self.text.lower()
        return wanted in (rule, rule.replace("-", "")) or (wanted.startswith("gm") and code.lower().startswith(wanted))


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive in a comment. `start` and `end` are columns; without `names` it silences every rule.

    `whole_file`: it counts for the file. `alone`: its comment has its line to itself.
    """

    kind: str
    line: int
    start: int
    end: int
    names: tuple[Name, ...]
    whole_file: bool
    alone: bool

    def silences(self, finding: Finding) -> bool:
        """Whether it names the finding's rule, or none. That a comment is of no use has to be named in full."""
        if finding.code == unused_suppression.CODE:
            return any(name.text.lower() in (finding.code.lower(), finding.rule) for name in self.names)
        return not self.names or any(name.means(finding.code, finding.rule) for name in self.names)


@dataclass(slots=True)
class Layout:
    """Which lines belong together, and which may end in a comment.

    `statements` gives for each line the first and the last one of its logical line. `open_ends` are the lines behind
    which a comment can stand: those that neither end within a string nor go on after a backslash. `comments` are the
    comments by line, `alone` the lines of those that have their line to themselves.
    """

    statements: dict[int, tuple[int, int]] = field(default_factory=dict)
    open_ends: set[int] = field(default_factory=set)
    comments: dict[int, tokenize.TokenInfo] = field(default_factory=dict)
    alone: set[int] = field(default_factory=set)


class Suppressions:
    """The directives of one source, and what they silence."""

    def __init__(self, text: str) -> None:
        self.directives: list[Directive] = []
        self.layout = Layout()
        if _DIRECTIVE.search(text):
            self._read(text)

    def _read(self, text: str) -> None:
        self.layout = layout_of(text)
        for line, token in self.layout.comments.items():
            self.directives += directives_of(token.string, line, token.start[1], alone=line in self.layout.alone)

    @cached_property
    def _by_line(self) -> dict[int, list[Directive]]:
        found: dict[int, list[Directive]] = {}
        for directive in self.directives:
            if not directive.whole_file:
                found.setdefault(directive.line, []).append(directive)
        return found

    @cached_property
    def _whole_file(self) -> list[Directive]:
        return [directive for directive in self.directives if directive.whole_file]

    def silencing(self, finding: Finding) -> Iterator[Directive]:
        """The directives that silence a finding.

        A comment counts on any line of what is reported, at the end of its statement, and on comment lines right above
        either; a directive for the file counts everywhere.
        """
        if self.directives:
            yield from (directive for directive in self._around(finding.span) if directive.silences(finding))

    def _around(self, span: Span) -> Iterator[Directive]:
        yield from self._whole_file
        first, last = self.layout.statements.get(span.line, (span.line, span.end_line))
        for line in sorted({*range(span.line, span.end_line + 1), last}):
            yield from self._by_line.get(line, ())
        for line in sorted({first, span.line}):
            yield from self._above(line)

    def _above(self, line: int) -> Iterator[Directive]:
        while (line := line - 1) in self.layout.alone:
            yield from self._by_line.get(line, ())


def apply(findings: Iterable[Finding], text: str) -> list[Finding]:
    """The findings that no comment silences."""
    found = Suppressions(text)
    return [finding for finding in findings if not any(found.silencing(finding))]


def mentioned(path: Path) -> bool:
    """Whether a file looks as if it had a directive. False where it cannot be read."""
    try:
        return _DIRECTIVE.search(sources.read(path).decode("latin-1")) is not None
    except sources.SourceError:
        return False


# --- reading


def layout_of(text: str) -> Layout:
    """The layout of a source, up to the first place where it is none."""
    found = Layout()
    start = busy = 0  # the first line of the logical line, and the last one with code on it
    strings = 0  # how many f-strings are open
    for token in _tokens(text):
        line = token.start[0]
        name = tokenize.tok_name[token.type]
        strings += name.endswith("STRING_START") - name.endswith("STRING_END")
        if token.type == tokenize.COMMENT:
            found.comments[line] = token
            if busy < line:
                found.alone.add(line)
        elif token.type == tokenize.NEWLINE:
            found.statements.update(dict.fromkeys(range(start or line, line + 1), (start or line, line)))
            start = 0
        elif token.type not in _BLANK:
            start, busy = start or line, token.end[0]
        if token.type in (tokenize.NL, tokenize.NEWLINE) and not strings:
            found.open_ends.add(line)
    return found


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    lines = iter(sources.split_lines(text))

    def readline() -> str:  # the tokenizer takes a carriage return for no line end
        line = next(lines, "")
        return f"{line[:-1]}\n" if line.endswith("\r") else line

    try:
        yield from tokenize.generate_tokens(readline)
    except (tokenize.TokenError, IndentationError):
        return


def directives_of(comment: str, line: int, column: int, *, alone: bool) -> Iterator[Directive]:
    """The directives in a comment that starts at `column`."""
    for match in _DIRECTIVE.finditer(comment):
        whole_file = match["file"] is not None
        if not whole_file or alone:
            kind = match["kind"].lower()
            end = column + len(comment[: match.end()].rstrip())
            yield Directive(kind, line, column + match.start(), end, tuple(_names(match, column)), whole_file, alone)


def _names(match: re.Match[str], column: int) -> Iterator[Name]:
    """What a directive lists. `# noqa` has a list only after a colon or in brackets; other words are a reason."""
    rest = match["rest"]
    if rest and (rest.lstrip()[:1] in ":[" or match["kind"].lower() != "noqa"):
        first = column + match.start("rest")
        for name in _NAME.finditer(rest):
            yield Name(name[0], first + name.start(), first + name.end())
