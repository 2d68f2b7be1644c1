"""The comments of statements that are replaced: which of the new lines each of them goes above."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import libcst as cst

from graphmend_lint.rewrite import layout


def comments_of(*nodes: cst.CSTNode) -> Iterator[str]:
    """The comments in `nodes`, in the order of the source."""
    for node in nodes:
        if layout.has_comment(node):
            yield from _comments(node)


def _comments(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Comment):
        yield node.value
    for child in node.children:
        yield from _comments(child)


def comment_lines(comments: Iterable[str]) -> list[cst.EmptyLine]:
    return [cst.EmptyLine(comment=cst.Comment(comment)) for comment in comments]


class Gatherer:
    """Reads statements in the order of the source, and keeps in `above` what is to stand above each new line.

    A comment belongs to the statement that it stands at. One at a header, or at a statement that no line stands
    for, goes to the next statement that has a line, or to the last one.
    """

    def __init__(self, count: int, index: Mapping[cst.CSTNode, int], own: Collection[cst.CSTNode]) -> None:
        """`index` has the line that each statement goes into, `own` the statements that are the basis of theirs."""
        self.above: list[list[cst.EmptyLine]] = [[] for _ in range(count)]
        self.index, self.own = index, own
        self.waiting: list[str] = []
        self.last: int | None = None

    def branch(self, node: cst.If, *, header: bool = True, footer: bool = True) -> None:
        """All of an `if` but what stands above it. What stands at its first line, or below its body, may stay there."""
        if header:
            self.waiting += comments_of(node.test)
        self._suite(node.body, header=header, footer=footer)
        if isinstance(node.orelse, cst.If):
            self.waiting += comments_of(*node.orelse.leading_lines)
            self.branch(node.orelse)
        elif node.orelse is not None:
            self.waiting += comments_of(*node.orelse.leading_lines)
            self._suite(node.orelse.body)

    def statement(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.SimpleStatementLine):
            self._leading(node, node.body[0])
            self.small(node.body)
            self._trailing(node.trailing_whitespace, node.body[-1])
        elif isinstance(node, cst.BaseCompoundStatement) and node in self.index:
            self._leading(node, node)
            self._content(node, node.with_changes(leading_lines=()))
        elif isinstance(node, cst.If):
            self.waiting += comments_of(*node.leading_lines)
            self.branch(node)
        else:
            self.waiting += comments_of(node)

    def small(self, statements: Sequence[cst.CSTNode]) -> None:
        for statement in statements:
            self._content(statement, statement)

    def finish(self) -> list[list[cst.EmptyLine]]:
        """What stands above each line; what still waits goes to the last statement met."""
        self.above[-1 if self.last is None else self.last] += comment_lines(self.waiting)
        self.waiting = []
        return self.above

    def _suite(self, body: cst.BaseSuite, *, header: bool = True, footer: bool = True) -> None:
        if isinstance(body, cst.SimpleStatementSuite):
            self.small(body.body)
            self._trailing(body.trailing_whitespace, body.body[-1])
            return
        assert isinstance(body, cst.IndentedBlock)
        if header:
            self.waiting += comments_of(body.header)
        for statement in body.body:
            self.statement(statement)
        if footer:
            self._after(comments_of(*body.footer))

    def _leading(self, node: cst.SimpleStatementLine | cst.BaseCompoundStatement, first: cst.CSTNode) -> None:
        """What stands above a statement; if that is the basis of a line, blank lines too, with nothing above them."""
        if first not in self.own:
            self.waiting += comments_of(*node.leading_lines)
            return
        lines = list(node.leading_lines)
        blank = next((i for i, line in enumerate(lines) if line.comment is not None), len(lines))
        above = self.above[self.index[first]]
        above[:0] = lines[:blank]
        self._arrive(self.index[first])
        above += lines[blank:]

    def _content(self, statement: cst.CSTNode, node: cst.CSTNode) -> None:
        at = self.index.get(statement)
        if at is None:
            self.waiting += comments_of(node)
        else:
            self._arrive(at)
            self.above[at] += comment_lines(comments_of(node))

    def _trailing(self, space: cst.TrailingWhitespace, last: cst.CSTNode) -> None:
        if last in self.index:
            self._after(comments_of(space))
        else:
            self.waiting += comments_of(space)

    def _arrive(self, at: int) -> None:
        self.above[at] += comment_lines(self.waiting)
        self.waiting, self.last = [], at

    def _after(self, comments: Iterable[str]) -> None:
        """What stands behind or below a statement belongs to it."""
        if self.last is None:
            self.waiting += comments
        else:
            self.above[self.last] += comment_lines(comments)
