"""What makes a finding the same one after edits elsewhere: the function that it is in, and what is flagged there.

    class Head(nn.Module):
        def forward(self, x):
            print("shape", x.shape)    ->    scope "Head.forward", content: a hash of the tree of `print(...)`

The tree has no positions, quotes, brackets or comments, so that moved lines and a formatter change nothing.
"""

from __future__ import annotations

import ast
import gc
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_lint import engine
from graphmend_lint.analysis import source as sources
from graphmend_lint.cache import Cache
from graphmend_lint.findings import Finding, Span
from graphmend_lint.parallel import in_order

#: The scope of what stands in no function and no class.
MODULE = "<module>"

#: How much of the source a person is shown to know an entry by.
_SHOWN = 100

#: Blocks of a compound statement: the statement stays the same one when they change.
_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
#: What the parser notes down and no program can tell, or what only some versions of Python have.
_UNSEEN = frozenset({"ctx", "kind", "type_comment", "type_params"})

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Identity:
    """`scope` is the qualified name of the function or class around, `content` the hash, `text` the source in short."""

    scope: str
    content: str
    text: str


def identify(
    findings: Sequence[Finding], given: Mapping[str, bytes], cache_folder: Path | None, jobs: int
) -> list[Identity]:
    """The identity of each finding. `given` has sources that do not come from the disk, by path.

    Only files with findings are read, and parsed only where the cache does not know the answer.

    Raises:
        SourceError: a file cannot be read any more.
    """
    spans: dict[str, list[Span]] = {}
    for finding in findings:
        spans.setdefault(finding.path, []).append(finding.span)
    work = [(Path(path), wanted, given.get(path)) for path, wanted in spans.items()]
    # A file of its own: rows are by path there, as those of the findings are in theirs.
    cache = Cache(cache_folder / "identities" if cache_folder else None)
    try:
        known = _known(work, cache, jobs)
    finally:
        cache.close()
    by_place = {(str(path), span): one for path, found in known.items() for span, one in found.items()}
    return [by_place[finding.path, finding.span] for finding in findings]


_Work = tuple[Path, list[Span], "bytes | None"]


def _known(work: Sequence[_Work], cache: Cache, jobs: int) -> dict[Path, dict[Span, Identity]]:
    contents = {path: sources.read(path) if given is None else given for path, _, given in work}
    keys = {path: _key(contents[path], wanted) for path, wanted, _ in work}
    known: dict[Path, dict[Span, Identity]] = cache.findings(keys)
    todo = [(path, wanted, contents[path]) for path, wanted, _ in work if path not in known]
    fresh = dict(in_order(_identify_files, todo, jobs))
    cache.store_findings((path, keys[path], found) for path, found in fresh.items())
    return {**known, **fresh}


def _key(content: bytes, wanted: Sequence[Span]) -> bytes:
    whole = hashlib.blake2b(engine.rules_digest(), digest_size=16)
    whole.update(repr(wanted).encode())
    whole.update(content)
    return whole.digest()


def _identify_files(work: Sequence[tuple[Path, list[Span], bytes]]) -> list[tuple[Path, dict[Span, Identity]]]:
    gc.disable()  # it only costs time while trees are built and dropped
    try:
        return [(path, in_source(sources.parse(content, path), wanted)) for path, wanted, content in work]
    finally:
        gc.enable()


def in_source(source: sources.Source, spans: Iterable[Span]) -> dict[Span, Identity]:
    """The identity of what stands at each span."""
    found: dict[Span, Identity] = {}
    wanted = set(spans)
    for scope, node in _around(source.tree, {span.line for span in wanted}):
        span = source.span(node)
        # `print(x)` is a statement and a call: the call, which stays the same where its value is used one day.
        if span in wanted and isinstance(node, ast.expr):
            found.setdefault(span, _identity(source, scope, node))
    for span in wanted - found.keys():
        found[span] = _of_text(source, span)
    return found


def at_line(source: sources.Source, line: int) -> Identity:
    """The identity of the innermost statement on a line."""
    scope, node = _statement(source.tree, line)
    return Identity(MODULE, "", "") if node is None else _identity(source, scope, node)


def _of_text(source: sources.Source, span: Span) -> Identity:
    """The identity of what is no expression: a comment."""
    scope, node = _statement(source.tree, span.line)
    text = _cut(source, span)
    digest = hashlib.blake2b("".join(text.split()).encode(), digest_size=8)
    return Identity(scope if node is None else _inner(scope, node), digest.hexdigest(), _shortened(text))


def _statement(tree: ast.Module, line: int) -> tuple[str, ast.stmt | None]:
    """The innermost statement on a line, and its scope."""
    scope, node = MODULE, None
    for inner, candidate in _around(tree, {line}):
        if isinstance(candidate, ast.stmt):
            scope, node = inner, candidate
    return scope, node


def scopes_of(tree: ast.Module) -> frozenset[str]:
    """The qualified names of all functions and classes of a file."""
    found = {MODULE}
    todo: list[tuple[str, ast.AST]] = [(MODULE, tree)]
    while todo:
        scope, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            inner = _inner(scope, child)
            found.add(inner)
            todo.append((inner, child))
    return frozenset(found)


def _around(tree: ast.Module, lines: set[int]) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """Every expression and statement that has one of the lines, with its scope; outer ones come first."""
    todo: list[tuple[str, ast.AST]] = [(MODULE, tree)]
    while todo:
        scope, node = todo.pop()
        if isinstance(node, (ast.expr, ast.stmt)):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            if not any(first <= line <= (node.end_lineno or first) for line in lines):
                continue
            yield scope, node
        todo += [(_inner(scope, node), child) for child in ast.iter_child_nodes(node)]


def _inner(scope: str, node: ast.AST) -> str:
    """The scope of what stands inside a node."""
    if not isinstance(node, _SCOPES):
        return scope
    return node.name if scope == MODULE else f"{scope}.{node.name}"


def _identity(source: sources.Source, scope: str, node: ast.expr | ast.stmt) -> Identity:
    span = source.span(node)
    if isinstance(node, ast.stmt) and not _BLOCKS.isdisjoint(node._fields):
        text = source.lines[span.line - 1][span.column :]  # its first line
    else:
        text = _cut(source, span)
    return Identity(scope, content_of(node), _shortened(text))


def _cut(source: sources.Source, span: Span) -> str:
    lines = source.lines[span.line - 1 : span.end_line] or [""]  # the file may have changed since it was linted
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return "".join(lines)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


def content_of(node: ast.AST) -> str:
    """A hash of the tree of a node, the same for every layout and every version of Python."""
    digest = hashlib.blake2b(digest_size=8)
    for token in _tokens(node):
        digest.update(token.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _tokens(node: ast.AST) -> Iterator[str]:
    """The tree written down, in an order that gives different trees different texts."""
    todo: list[tuple[bool, object]] = [(False, node)]
    while todo:
        is_mark, item = todo.pop()
        if is_mark:
            yield str(item)
        elif isinstance(item, ast.AST):
            yield f"{type(item).__name__}("
            todo.append((True, ")"))
            for name, value in reversed(list(_fields(item))):
                todo += [(False, value), (True, f"{name}=")]
        elif isinstance(item, list):
            yield "["
            todo.append((True, "]"))
            todo += [(False, one) for one in reversed(item)]
        else:
            yield _constant(item)


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What a node consists of, without what is not there, not seen, or a block of its own."""
    for name, value in ast.iter_fields(node):
        if value is None and not isinstance(node, ast.Constant):
            continue
        if name in _UNSEEN or value == [] or (name in _BLOCKS and isinstance(node, ast.stmt)):
            continue
        yield name, _merged(node.values) if isinstance(node, ast.JoinedStr) else value


def _merged(parts: Sequence[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string, texts that follow each other as one: where they are cut is the parser's business."""
    merged: list[ast.expr] = []
    for part in parts:
        last = merged[-1] if merged else None
        if not isinstance(part, ast.Constant):
            merged.append(part)
        elif isinstance(last, ast.Constant):
            merged[-1] = ast.Constant(str(last.value) + str(part.value))
        elif part.value:
            merged.append(part)
    return merged


def _constant(value: object) -> str:
    # What `repr` escapes depends on the version of Python, and it refuses numbers with thousands of digits.
    return hex(value) if type(value) is int else ascii(value)
