"""A source file as bytes, as text and as a syntax tree, with columns in characters."""

from __future__ import annotations

import ast
import io
import stat
import tokenize
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from graphmend_lint.findings import Span

#: Larger files are generated data, not code a person compiles; reading them would stall the run.
MAX_BYTES = 10_000_000


class SourceError(Exception):
    """A file that cannot be linted. The text is one line and says why; `path` names the file."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


@dataclass(slots=True)
class Source:
    """A parsed file. `lines` keep their line ends; `tree` is the stdlib syntax tree."""

    path: Path
    text: str
    tree: ast.Module
    lines: list[str] = field(default_factory=list)

    def column(self, line: int, byte_offset: int) -> int:
        """The character column (0-based) of a UTF-8 byte offset, which is what `ast` counts in."""
        text = self.lines[line - 1]
        if text.isascii():
            return byte_offset
        return len(text.encode()[:byte_offset].decode(errors="replace"))

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Where `node` stands."""
        end_line, end_offset = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        return Span(
            node.lineno,
            self.column(node.lineno, node.col_offset),
            end_line,
            self.column(end_line, end_offset),
        )

    def is_elif(self, node: ast.If) -> bool:
        """Whether an `if` is spelled `elif`."""
        return self.lines[node.lineno - 1].encode()[node.col_offset :].startswith(b"elif")

    def segment(self, node: ast.expr) -> str:
        """The text of an expression on one line, for messages."""
        span = self.span(node)
        lines = self.lines[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return " ".join(" ".join(lines).split())


def reason(error: OSError) -> str:
    """What the system says, as a part of a sentence."""
    return (error.strerror or str(error)).lower()


def read(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        SourceError: it is missing, unreadable, no file (reading a pipe would wait for ever) or larger than `MAX_BYTES`.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(path, "not a regular file")
        if status.st_size > MAX_BYTES:
            raise SourceError(path, f"larger than {MAX_BYTES // 1_000_000} MB, not linted")
        return path.read_bytes()
    except OSError as error:
        raise SourceError(path, reason(error)) from error


def decode(source: bytes, path: Path) -> str:
    """The text of a file by its byte-order mark or coding line, UTF-8 otherwise; line ends are kept.

    Raises:
        SourceError: the bytes are not text in that encoding.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise SourceError(path, f"not readable as text: {reason}") from error
    if "\0" in text:
        raise SourceError(path, "not readable as text: it holds a NUL byte")
    return text


def parse(source: bytes, path: Path) -> Source:
    """Parse the bytes of a file.

    Raises:
        SourceError: not text, not Python, or nested deeper than the parser can follow.
    """
    text = decode(source, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the linted code are not ours to report
            tree = ast.parse(text)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise SourceError(path, f"{place}{error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise SourceError(path, "nested too deeply to parse") from error
    except ValueError as error:
        raise SourceError(path, str(error)) from error
    return Source(path, text, tree, split_lines(text))


def split_lines(text: str) -> list[str]:
    """Lines as the tokenizer counts them: only LF, CR and CRLF end one, unlike in `str.splitlines`."""
    return io.StringIO(text, newline="").readlines()
