"""From places to nodes: which LibCST node stands at a span.

LibCST's PositionProvider costs more than the parse, since it notes the place of every node. One code
generation is needed anyway, to see that the module prints as the file it came from; this one notes the few
places asked for on the way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from graphmend_lint.findings import Span

_NEWLINE = re.compile(r"\r\n?|\n")
_NOTHING = nullcontext()
_OWN_PARENTHESES = (cst.Tuple, cst.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Located:
    """What stands at the spans asked for, and the module's own text.

    `parents` and `path` speak of the nodes found: the node around each, and all nodes above any of them; `above` has
    the node around each of all these. `indents` has the indentation of the block that a node found stands in, and
    `lines` the line on which its statement starts.
    """

    text: str
    expressions: dict[Span, cst.BaseExpression]
    statements: dict[Span, cst.BaseSmallStatement]
    compounds: dict[Span, cst.BaseCompoundStatement]
    parents: dict[cst.CSTNode, cst.CSTNode]
    path: frozenset[cst.CSTNode]
    above: dict[cst.CSTNode, cst.CSTNode]
    indents: dict[cst.CSTNode, str]
    lines: dict[cst.CSTNode, int]


@dataclass(frozen=True, slots=True)
class _Place:
    """A node that stands at a wanted span."""

    span: Span
    node: cst.CSTNode
    above: tuple[cst.CSTNode, ...]
    indent: str
    line: int


class _Recorder(CodegenState):
    """Prints the module, and notes the nodes that start and end where a wanted span does."""

    def __init__(self, module: cst.Module, spans: Collection[Span]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.line = 1
        self.column = 0
        self.spans = frozenset(spans)
        self.starts = {(span.line, span.column): span for span in spans}
        self.lines = frozenset(span.line for span in spans)
        self.stack: list[cst.CSTNode] = []
        self.found: list[_Place] = []
        self.statement = 1
        self.end = (1, 0)
        self.open = 0
        self.parenthesis = (1, 0)
        self.closing: dict[cst.CSTNode, tuple[tuple[int, int], tuple[cst.CSTNode, ...]]] = {}

    def add_indent_tokens(self) -> None:
        self.tokens.extend(self.indent_tokens)
        self.column += sum(map(len, self.indent_tokens))

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        if "\n" in value or "\r" in value:
            segments = _NEWLINE.split(value)
            self.line += len(segments) - 1
            self.column = len(segments[-1])
        else:
            self.column += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.stack.append(node)
        if node.__class__ is cst.LeftParen:
            self.parenthesis = (self.line, self.column)

    def after_codegen(self, node: cst.CSTNode) -> None:
        self.stack.pop()
        if self.closing and node in self.closing:
            start, above = self.closing.pop(node)
            self.note(Span(*start, self.line, self.column), above)

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Any:
        if end_node is not None:  # statements and their suites have one
            self.statement = self.line
        if self.open or self.line in self.lines or node.__class__ in _OWN_PARENTHESES:
            return _Recording(self, node)
        return _NOTHING

    def note(self, span: Span, above: tuple[cst.CSTNode, ...]) -> None:
        """Keep the last node of `above` if its span is wanted."""
        if span in self.spans:
            self.found.append(_Place(span, above[-1], above, "".join(self.indent_tokens), self.statement))


class _Recording:
    """One node being printed on a line where a wanted span starts, or in a statement that is wanted whole.

    A statement with a block is known by its start: what LibCST prints of it goes on to the end of its last line.
    """

    __slots__ = ("compound", "node", "parenthesis", "recorder", "start")

    def __init__(self, recorder: _Recorder, node: cst.CSTNode) -> None:
        self.recorder, self.node = recorder, node
        self.start = (recorder.line, recorder.column)
        self.parenthesis = recorder.parenthesis
        self.compound = isinstance(node, cst.BaseCompoundStatement) and self.start in recorder.starts
        recorder.open += self.compound

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder, node = self.recorder, self.node
        above = tuple(recorder.stack)
        if self.compound:
            recorder.open -= 1
            wanted = recorder.starts[self.start]
            # Beyond the last statement, `ast` counts a semicolon in.
            if recorder.end[0] == wanted.end_line and recorder.end[1] <= wanted.end_column:
                recorder.note(wanted, above)
            return
        if isinstance(node, cst.BaseSmallStatement):
            recorder.end = (recorder.line, recorder.column)
        elif isinstance(node, _OWN_PARENTHESES) and node.lpar:
            # The parentheses of a tuple are part of it for `ast`, around it for LibCST.
            recorder.closing[node.rpar[0]] = (self.parenthesis, above)
        recorder.note(Span(*self.start, recorder.line, recorder.column), above)


def parentheses_around(node: cst.BaseExpression) -> tuple[Sequence[cst.LeftParen], Sequence[cst.RightParen]]:
    """The parentheses around an expression that its span leaves out."""
    if isinstance(node, _OWN_PARENTHESES) and node.lpar:
        return node.lpar[:-1], node.rpar[1:]
    return node.lpar, node.rpar


def locate(module: cst.Module, spans: Collection[Span]) -> Located:
    """The nodes of `module` at `spans`. Spans leave out parentheses around an expression, as `ast` does."""
    recorder = _Recorder(module, spans)
    module._codegen(recorder)
    found = Located("".join(recorder.tokens), {}, {}, {}, {}, frozenset(), {}, {}, {})
    path: set[cst.CSTNode] = set()
    for place in recorder.found:
        node = place.node
        if isinstance(node, cst.BaseExpression):
            found.expressions[place.span] = node
        elif isinstance(node, cst.BaseSmallStatement):
            found.statements[place.span] = node
        elif isinstance(node, cst.BaseCompoundStatement):
            found.compounds[place.span] = node
        else:
            continue
        path.update(place.above)
        found.parents[node] = place.above[-2]
        found.above.update(zip(place.above[1:], place.above, strict=False))
        found.indents[node], found.lines[node] = place.indent, place.line
    return replace(found, path=frozenset(path))
