"""Nodes at spans: the same places as LibCST's own provider gives, for a fraction of its price."""

from __future__ import annotations

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from graphmend_lint.findings import Span
from graphmend_lint.rewrite.locate import locate

SOURCES = {
    "plain": "import a\n\n\nclass C:\n    def f(self):\n        return g(self.x, (a + b).c[1:2])  # é\n",
    "unicode": 'é = "ü" + f("漢字", x)\n',
    "many lines": 'f(\n    a,\n    """text\n    more""", b.c,\n).d(e)\n',
    "crlf": "if a:\r\n    f(b)\r\n    c.d(e)\r\n",
    "tabs and form feed": "def f():\n\tg(x)\n\x0c\ndef h():\n\tg(y)\n",
    "no newline at the end": "f(x); g(y)",
    "continued line": "x = f(a) + \\\n    g(b)\n",
    "parentheses": "((f))((x))\n(\n    g\n    .h(y)\n)\n",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_same_places_as_the_position_provider(source: str) -> None:
    module = cst.parse_module(source)
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    expected = {
        Span(place.start.line, place.start.column, place.end.line, place.end.column): node
        for node, place in positions.items()
        if isinstance(node, (cst.Call, cst.Name, cst.Attribute))
    }
    found = locate(module, expected.keys())
    assert found.text == source
    assert found.expressions == expected


def test_parents_and_path() -> None:
    module = cst.parse_module("if a:\n    f(x)\nb\n")
    found = locate(module, [Span(2, 4, 2, 8)])
    call = found.expressions[Span(2, 4, 2, 8)]
    statement = found.statements[Span(2, 4, 2, 8)]
    assert found.parents[call] is statement
    assert isinstance(found.parents[statement], cst.SimpleStatementLine)
    assert module in found.path
    assert module.body[0] in found.path
    assert module.body[1] not in found.path


def test_a_span_with_nothing_there() -> None:
    found = locate(cst.parse_module("f(x)\n"), [Span(1, 1, 1, 3), Span(9, 0, 9, 1)])
    assert not found.expressions
    assert not found.statements
