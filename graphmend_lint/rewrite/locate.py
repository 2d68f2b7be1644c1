"""From places to nodes: which LibCST node stands at a span.

LibCST's PositionProvider costs more than the parse, since it notes the place of every node. One code
generation is needed anyway, to see that the module prints as the file it came from; this one notes the few
places asked for on the way.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from graphmend_lint.findings import Span

_NEWLINE = re.compile(r"\r\n?|\n")
_NOTHING = nullcontext()


@dataclass(frozen=True, slots=True)
class Located:
    """What stands at the spans asked for, and the module's own text.

    `parents` and `path` speak of the nodes found: the node around each, and all nodes above any of them; `above` has
    the node around each of all these.
    """

    text: str
    expressions: dict[Span, cst.BaseExpression]
    statements: dict[Span, cst.BaseSmallStatement]
    parents: dict[cst.CSTNode, cst.CSTNode]
    path: frozenset[cst.CSTNode]
    above: dict[cst.CSTNode, cst.CSTNode]


class _Recorder(CodegenState):
    """Prints the module, and notes the nodes that start and end where a wanted span does."""

    def __init__(self, module: cst.Module, spans: Collection[Span]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.line = 1
        self.column = 0
        self.spans = frozenset(spans)
        self.lines = frozenset(span.line for span in spans)
        self.stack: list[cst.CSTNode] = []
        self.found: list[tuple[Span, cst.CSTNode, tuple[cst.CSTNode, ...]]] = []

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

    def after_codegen(self, node: cst.CSTNode) -> None:
        self.stack.pop()

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Any:
        return _Recording(self, node) if self.line in self.lines else _NOTHING


class _Recording:
    """One node being printed on a line where a wanted span starts."""

    __slots__ = ("column", "line", "node", "recorder")

    def __init__(self, recorder: _Recorder, node: cst.CSTNode) -> None:
        self.recorder, self.node = recorder, node
        self.line, self.column = recorder.line, recorder.column

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder = self.recorder
        span = Span(self.line, self.column, recorder.line, recorder.column)
        if span in recorder.spans:
            recorder.found.append((span, self.node, tuple(recorder.stack)))


def locate(module: cst.Module, spans: Collection[Span]) -> Located:
    """The nodes of `module` at `spans`. Spans leave out parentheses around an expression, as `ast` does."""
    recorder = _Recorder(module, spans)
    module._codegen(recorder)
    expressions: dict[Span, cst.BaseExpression] = {}
    statements: dict[Span, cst.BaseSmallStatement] = {}
    parents: dict[cst.CSTNode, cst.CSTNode] = {}
    path: set[cst.CSTNode] = set()
    around: dict[cst.CSTNode, cst.CSTNode] = {}
    for span, node, above in recorder.found:
        if isinstance(node, cst.BaseExpression):
            expressions[span] = node
        elif isinstance(node, cst.BaseSmallStatement):
            statements[span] = node
        else:
            continue
        path.update(above)
        parents[node] = above[-2]
        around.update(zip(above[1:], above, strict=False))
    return Located("".join(recorder.tokens), expressions, statements, parents, frozenset(path), around)
