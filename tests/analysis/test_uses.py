"""Uses of a name: what may read its value later, and what keeps its tensor. `here` is where it is asked."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

import pytest

from graphmend_lint.analysis.bindings import Bindings
from graphmend_lint.analysis.uses import (
    Place,
    binding_before,
    changes_in_place,
    is_live_after,
    is_retained,
    statements_until_rebound,
)
from graphmend_lint.analysis.values import Values, Walk
from tests.analysis.conftest import Code

Make = Callable[..., Code]


def place(code: Make, body: str) -> Place:
    """The place of the statement `here` in a function with that body."""
    text = "import torch\n\ndef f(x, y, n, c):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    made = code(text)
    scope = made.scope("f")
    for point in Walk(Values(Bindings(made.project, made.folder / "m.py"), scope)).points():
        if ast.unparse(point.statement) == "here":
            return Place(point.statement, point.block, point.around, scope.node.body)
    raise AssertionError("there is no statement `here`")


def statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


class TestLiveness:
    @pytest.mark.parametrize(
        "body",
        [
            "here\nreturn t",
            "here\nx = x + t",
            "here\nt += 1",
            "here\nt.add_(1)",
            "here\nt[0] = 1",
            "here\nif c:\n    t = x\nreturn t",
            "here\nif t.any():\n    t = x",
            "here\nfor i in range(n):\n    t = x\nreturn t",
            "here\nwhile c:\n    t = x\nreturn t",
            "here\nfor t in y:\n    pass\nreturn t",
            "if c:\n    here\nreturn t",
            "if c:\n    t = x\nelse:\n    here\nreturn t",
            "for i in range(n):\n    x = x + t\n    here\n    y = x",
            "for i in range(n):\n    here\n    y = x\nreturn t",
            "while t.any():\n    here",
            "try:\n    here\n    g()\nfinally:\n    g(t)",
            "try:\n    here\nexcept E:\n    g(t)",
            "with g():\n    here\nreturn t",
            "here\nwith g(t):\n    pass",
            "here\ntry:\n    t = g()\nexcept E:\n    pass\nreturn t",
            "here\ndef g():\n    return t\nreturn g()",
            "here\nreturn [t * i for i in range(n)]",
            "here\nreturn [i for i in t]",
            "here\ndel t",
            "here\nmatch x:\n    case t:\n        return t",
            # a function that was defined before
            "def g():\n    return t\nhere\nreturn g()",
            "g = lambda: t\nhere\nreturn g()",
            "g = (t * i for i in range(n))\nhere\nreturn g",
            # a loop that is left, or begun again, before the name is bound anew
            "for i in range(n):\n    here\n    if c:\n        break\n    t = x\nreturn t",
            "for i in range(n):\n    x = x + t\n    here\n    if c:\n        continue\n    t = x",
            "for i in range(n):\n    here\n    if c:\n        continue\n    t = x\nreturn t",
            # an exception that is let off before the name is bound anew
            "here\nwith suppress(E):\n    t = g()\nreturn t",
            "here\nwith suppress(E):\n    raise E\nreturn t",
        ],
    )
    def test_read(self, code: Make, body: str) -> None:
        assert is_live_after("t", place(code, body))

    @pytest.mark.parametrize(
        "body",
        [
            "here\nreturn x",
            "here\nt = x\nreturn t",
            "here\nt: int = x\nreturn t",
            "here\nt, y = x, x\nreturn t",
            "here\nif c:\n    t = x\nelse:\n    t = y\nreturn t",
            "if c:\n    here\nelse:\n    x = t\nreturn x",
            "if c:\n    here\n    return x\nreturn t",
            "if c:\n    here\n    raise E\nreturn t",
            "for i in range(n):\n    t = x\n    here",
            "for i in range(n):\n    here\n    t = x\nreturn x",
            "here\nreturn x.t",
            "here\nx.t = y",
        ],
    )
    def test_not_read(self, code: Make, body: str) -> None:
        assert not is_live_after("t", place(code, body))


def keeps_nothing(call: ast.Call) -> bool:
    """Whether a call is one of torch's functions, in these tests."""
    return ast.unparse(call.func).startswith("torch.")


class TestRetention:
    @pytest.mark.parametrize(
        "text",
        [
            "z = t",
            "z = [t]",
            "z = {'a': t}",
            "z = (t, x)",
            "self.t = t",
            "d['a'] = t",
            "z = t[0]",
            "z = t.T",
            "z = t.data",
            "z = t.view(-1)",
            "z = t.detach()",
            "t.add_(1)",
            "t.whatever()",
            "z = +t",
            "z = t if c else x",
            "z = t or x",
            "z = (w := t)",
            "z = t is x",
            "g(t)",
            "g(a=t)",
            "g(*t)",
            "x.append(t)",
            "return t",
            "yield_(t)",
            "def g():\n    return t",
            "z = lambda: t",
            "a, b = t",
            "for row in t:\n    pass",
            "z = f'{t}'",
            "t += 1",
            "z = t @ (w := t)",
        ],
    )
    def test_kept(self, text: str) -> None:
        assert is_retained(statement(text), "t", keeps_nothing)

    @pytest.mark.parametrize(
        "text",
        [
            "z = t + 1",
            "z = x * t",
            "z = -t",
            "z = t > 0",
            "z = t.sum()",
            "z = t.clone()",
            "z = t.shape[0]",
            "z = t.dtype == torch.float16",
            "z = torch.isnan(t).any()",
            "z = torch.add(x, other=t)",
            "if t.any():\n    pass",
            "if t:\n    pass",
            "assert t",
            "z = x if t else y",
            "t = x",
            "z = x.t",
        ],
    )
    def test_not_kept(self, text: str) -> None:
        assert not is_retained(statement(text), "t", keeps_nothing)

    @pytest.mark.parametrize(
        "text", ["t += 1", "t[0] = 1", "del t[0]", "t.add_(1)", "torch.add(t, 1, out=x)", "F.relu(t, inplace=True)"]
    )
    def test_changes(self, text: str) -> None:
        assert changes_in_place(statement(text))

    @pytest.mark.parametrize("text", ["t = x", "t = x[0]", "t = x.add(1)", "x.__len__()", "t = F.relu(x)"])
    def test_no_changes(self, text: str) -> None:
        assert not changes_in_place(statement(text))


class TestStatements:
    @staticmethod
    def texts(statements: object) -> list[str]:
        return [ast.unparse(s) for s in statements]  # type: ignore[attr-defined]

    def test_until_the_name_is_bound_again(self, code: Make) -> None:
        at = place(code, "here\na = t\nt = x\nb = t")
        assert self.texts(statements_until_rebound("t", at)) == ["a = t", "t = x"]

    def test_to_the_end_of_all_that_is_around(self, code: Make) -> None:
        at = place(code, "if c:\n    here\n    a = 1\nelse:\n    b = 1\nd = 1")
        assert self.texts(statements_until_rebound("t", at)) == ["a = 1", "d = 1"]

    def test_a_loop_is_seen_as_a_whole(self, code: Make) -> None:
        at = place(code, "for i in y:\n    a = 1\n    here\n    t = x\n    b = 1\nd = 1")
        found = self.texts(statements_until_rebound("t", at))
        assert {"a = 1", "t = x", "b = 1", "d = 1"} <= set(found)

    @pytest.mark.parametrize(
        ("body", "binding", "between"),
        [
            ("t = x + 1\na = t\nhere", "t = x + 1", ["a = t"]),
            ("t = x\nif c:\n    a = 1\n    here", "t = x", ["a = 1"]),
            ("t = x\nif c:\n    t = y\nhere", None, []),
            ("t = x\nfor i in y:\n    a = 1\n    here", None, ["a = 1"]),
            ("t = x\nt += 1\nhere", None, []),
            ("t, a = x\nhere", None, []),
            ("t = a = x\nhere", None, []),
            ("a = 1\nhere", None, ["a = 1"]),
        ],
    )
    def test_binding_before(self, code: Make, body: str, binding: str | None, between: list[str]) -> None:
        found, statements = binding_before("t", place(code, body))
        assert (None if found is None else ast.unparse(found)) == binding
        assert self.texts(statements) == between
