"""Edits of suppression comments: `# noqa` for findings that are to be silent, and directives that go."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphmend_lint.analysis import source as sources
from graphmend_lint.findings import Edit, Finding
from graphmend_lint.suppressions import Layout, Suppressions, layout_of

#: A `noqa` with a list: the codes in it, and what follows on them.
_LIST = re.compile(r"#\s*noqa\s*[:\[][ \t]*(?P<codes>(?:[A-Za-z]+\d+\b[ \t,]*)*)(?=(?P<more>[^\s#]))?", re.IGNORECASE)


class NotEdited(Exception):
    """A file whose comments cannot be edited without changing more. The text is one line and says why."""


def silenced(source: bytes, path: Path, findings: Sequence[Finding]) -> bytes:
    """The source with `# noqa` for each of its findings, which are silent afterwards.

    Raises:
        NotEdited: that would change more than comments, or not silence them all.
        SourceError: the source cannot be read as text.
    """
    text = sources.decode(source, path)
    layout = layout_of(text)
    wanted: dict[int, set[str]] = defaultdict(set)
    for finding in findings:
        wanted[_line_for(finding, layout)].add(finding.code)
    lines = sources.split_lines(text)
    for line, codes in wanted.items():
        lines[line - 1] = _with_codes(lines[line - 1], layout.comments.get(line), codes)
    edited = "".join(lines)
    comments = Suppressions(edited)
    if not all(any(comments.silencing(finding)) for finding in findings):
        raise NotEdited("no place for a comment that would silence every finding")
    return _checked(source, text, edited)


def removed(source: bytes, path: Path, edits: Iterable[Edit]) -> bytes:
    """The source with parts of comments replaced, as the edits of kind "comment" say. An empty comment goes.

    Raises:
        NotEdited: that would change more than comments.
        SourceError: the source cannot be read as text.
    """
    text = sources.decode(source, path)
    lines = sources.split_lines(text)
    comments = layout_of(text).comments
    for edit in sorted(edits, key=lambda edit: (edit.span.line, -edit.span.column)):
        index = edit.span.line - 1
        lines[index] = lines[index][: edit.span.column] + edit.detail + lines[index][edit.span.end_column :]
        lines[index] = _tidied(lines[index], comments[edit.span.line].start[1])
    return _checked(source, text, "".join(lines))


def silence_file(path: Path, findings: Sequence[Finding]) -> str | None:
    """Add `# noqa` to a file, which is written whole; why not, where that cannot be."""
    from graphmend_lint.fixing import write_whole

    try:
        before = sources.read(path)
        after = silenced(before, path, findings)
        if path.read_bytes() != before:
            return "it changed on disk meanwhile"
        write_whole(path, after)
    except sources.SourceError as error:
        return error.message
    except NotEdited as error:
        return str(error)
    except OSError as error:
        return sources.reason(error)
    return None


# --- where to, and how


def _line_for(finding: Finding, layout: Layout) -> int:
    """The line whose comment silences a finding: one with a list already, else the first that can end in a comment."""
    span = finding.span
    last = layout.statements.get(span.line, (span.line, span.end_line))[1]
    lines = [*range(span.line, span.end_line + 1), last]
    listed = (line for line in lines if line in layout.comments and _LIST.search(layout.comments[line].string))
    free = (line for line in lines if line in layout.open_ends)
    return next(listed, None) or next(free, last)


def _with_codes(line: str, comment: tokenize.TokenInfo | None, codes: Iterable[str]) -> str:
    content = line.rstrip("\r\n")
    ending = line[len(content) :]
    added = ", ".join(sorted(codes))
    match = _LIST.search(content, comment.start[1]) if comment else None
    if match is None:
        return f"{content.rstrip()}  # noqa: {added}{ending}"
    known = match["codes"].rstrip(" \t,")
    at = match.start("codes") + len(known)
    before = f", {added}" if known else f" {added}" if content[at - 1] == ":" else added
    after = ", " if not known and match["more"] not in (None, "]") else ""
    return f"{content[:at]}{before}{after}{content[at:]}{ending}"


def _tidied(line: str, start: int) -> str:
    """A line whose comment, at column `start`, lost a part: without the comment if nothing is left of it."""
    content = line.rstrip("\r\n")
    ending = line[len(content) :]
    comment = content[start:].strip()
    if comment.strip("# \t"):
        return f"{content[:start]}{comment}{ending}"
    code = content[:start].rstrip()
    return f"{code}{ending}" if code else ""


def _checked(source: bytes, before: str, after: str) -> bytes:
    if _encoded(before, source) != source:
        raise NotEdited("the file would not be written as it is")
    try:
        if ast.dump(ast.parse(before)) != ast.dump(ast.parse(after)):
            raise NotEdited("the comments would change the program")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotEdited("the file cannot be parsed") from error
    return _encoded(after, source)


def _encoded(text: str, source: bytes) -> bytes:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    if encoding == "utf-8-sig":
        return codecs.BOM_UTF8 + text.encode()
    return text.encode(encoding)
