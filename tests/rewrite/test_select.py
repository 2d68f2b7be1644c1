"""An `if` replaced by the lines that select between its arms, and expressions by calls of `torch.where`.

The plans come from a planner that proves nothing: names that start with p, q or r are tensors where they are tested,
all others are static. The cases stand in select_cases.txt.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import libcst as cst
import libcst.matchers as m
import pytest
from fixit.api import fixit_bytes
from fixit.ftypes import Config, QualifiedRule
from fixit.util import capture

from graphmend_lint import config, engine, fixing, rewrite
from graphmend_lint.findings import Built, Edit, Finding, Line, Piece, Plan, Selection, Span
from tests.rewrite.conftest import Planner as Messages

WHERE = "torch.where"
RUNTIME = "stub_runtime"


class Anything:
    MATCHER = ~m.Pass()

    @staticmethod
    def replacement(node: cst.Call, wrap: rewrite.Wrap) -> cst.Call:
        raise NotImplementedError


# --- the planner


@dataclass
class Store:
    """What the arms do with one name: the value in each arm, by the number of the arm."""

    statement: Span
    place: Span | None
    target: str
    values: dict[int, Piece] = field(default_factory=dict)
    merged: list[Span] = field(default_factory=list)
    old: Piece = ""


class Planner:
    """Plans for all conditionals of a source that test tensors, the outermost first."""

    def __init__(self, source: str) -> None:
        self.rows = re.split(r"\r\n?|\n", source)
        self.fixes: list[rewrite.Fix] = []
        self.block(ast.parse(source).body)

    def block(self, body: Sequence[ast.stmt]) -> None:
        for at, statement in enumerate(body):
            if isinstance(statement, ast.If) and self.is_dynamic(statement.test):
                self.select(statement, body[at + 1 :])
                continue
            for value in ast.iter_child_nodes(statement):
                if isinstance(value, ast.expr):
                    self.choices(value)
            for name in ("body", "orelse"):
                self.block(getattr(statement, name, []))

    def choices(self, node: ast.AST) -> None:
        value: Piece | None = None
        if isinstance(node, ast.IfExp) and self.is_dynamic(node.test):
            value = self.value(node)
        elif isinstance(node, (ast.BoolOp, ast.UnaryOp)) and isinstance(node.op, (ast.And, ast.Or, ast.Not)):
            value = self.predicate(node) if self.is_dynamic(node) else None
        if value is not None:
            self.add(self.span(node), Edit("choose", self.span(node), WHERE, value=value))
            return
        for part in ast.iter_child_nodes(node):
            self.choices(part)

    def add(self, site: Span, edit: Edit) -> None:
        self.fixes.append(rewrite.Fix(Plan(site, (edit,)), Anything))

    def select(self, node: ast.If, following: Sequence[ast.stmt]) -> None:
        test, rest = self.split(node.test)
        arms: list[tuple[Piece, list[ast.stmt]]] = [(rest, node.body)]
        orelse = node.orelse
        while len(orelse) == 1 and isinstance(orelse[0], ast.If) and self.is_dynamic(orelse[0].test):
            arms.append((self.predicate(orelse[0].test), orelse[0].body))
            orelse = orelse[0].orelse
        stores, kept, absorbed = self.stores([body for _, body in arms], orelse, following)
        lines = [self.line(store, [p for p, _ in arms]) for store in stores]
        selection = Selection(test, (*kept, *lines), tuple(absorbed))
        self.add(self.span(node.test), Edit("select", self.span(node), WHERE, selection))

    def split(self, test: ast.expr) -> tuple[Span | None, Piece]:
        """The static parts in front, and the predicate."""
        if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
            return None, self.predicate(test)
        count = next((i for i, value in enumerate(test.values) if self.is_dynamic(value)), 0)
        static, rest = test.values[:count], test.values[count:]
        pieces = [self.predicate(value) for value in rest]
        predicate = pieces[0] if len(pieces) == 1 else Built("and", tuple(pieces))
        if not static:
            return None, predicate
        return self.between(static[0], static[-1]), predicate

    def between(self, first: ast.expr, last: ast.expr) -> Span:
        """The span of the first parts of an operation; parentheses of its ends are in it."""
        start, end = self.span(first), self.span(last)
        if first is last:
            return start
        assert not isinstance(first, ast.BoolOp), "a test that opens with a parenthesis"
        closing = self.rows[end.end_line - 1][end.end_column :]
        width = 1 if self.rows[end.line - 1][: end.column].endswith("(") and closing.startswith(")") else 0
        return Span(start.line, start.column, end.end_line, end.end_column + width)

    def predicate(self, node: ast.expr) -> Piece:
        if isinstance(node, ast.BoolOp):
            op = "and" if isinstance(node.op, ast.And) else "or"
            return Built(op, tuple(self.predicate(value) for value in node.values))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Built("not", (self.predicate(node.operand),))
        if isinstance(node, ast.Name) and node.id.endswith("_number"):
            return Built("nonzero", (self.span(node),))
        return self.span(node)

    def stores(
        self, arms: Sequence[list[ast.stmt]], orelse: list[ast.stmt], following: Sequence[ast.stmt]
    ) -> tuple[list[Store], list[Line], list[Span]]:
        found: dict[str, Store] = {}
        kept: list[Line] = []
        for number, body in enumerate([*arms, orelse]):
            for statement in body:
                if not self.store(found, statement, number if number < len(arms) else -1):
                    kept += [] if isinstance(statement, ast.Pass) else [Line(self.span(statement))]
        absorbed: list[Span] = []
        if "return" in found and -1 not in found["return"].values:
            last = next(i for i, statement in enumerate(following) if isinstance(statement, ast.Return))
            for statement in following[: last + 1]:
                assert self.store(found, statement, -1)
                absorbed.append(self.span(statement))
        stores = sorted(found.values(), key=lambda store: store.old == "return")
        return stores, kept, absorbed

    def store(self, found: dict[str, Store], statement: ast.stmt, number: int) -> bool:
        value: ast.expr | None = None
        target = ""
        new: Piece | None = None
        if isinstance(statement, ast.Assign):
            key, value = ast.unparse(statement.targets[0]), statement.value
        elif isinstance(statement, ast.AnnAssign):
            key, value = ast.unparse(statement.target), statement.value
        elif isinstance(statement, ast.AugAssign):
            key = target = ast.unparse(statement.target)
            operator = {ast.Add: "+", ast.Mult: "*", ast.Pow: "**"}[type(statement.op)]
            new = Built(operator, (target, self.span(statement.value)))
        elif isinstance(statement, ast.Return):
            key, value = "return", statement.value
        elif isinstance(statement, ast.Expr) and "register_buffer" in ast.unparse(statement):
            assert isinstance(statement.value, ast.Call)
            key, value = ast.unparse(statement.value.args[0]), statement.value.args[1]
        else:
            return False
        if key.startswith("s_"):
            return False
        place = None if value is None else self.span(value)
        store = found.setdefault(key, Store(self.span(statement), place, target, old=key))
        if store.statement != self.span(statement):
            store.merged.append(self.span(statement))
        store.values[number] = new if value is None else self.value(value)  # type: ignore[assignment]
        return True

    def value(self, node: ast.expr) -> Piece:
        if isinstance(node, ast.IfExp) and self.is_dynamic(node.test):
            return Built("where", (self.predicate(node.test), self.value(node.body), self.value(node.orelse)))
        return self.span(node)

    def line(self, store: Store, predicates: Sequence[Piece]) -> Line:
        value: Piece = store.values.get(-1, store.old)
        for number in reversed(range(len(predicates))):
            value = Built("where", (predicates[number], store.values.get(number, store.old), value))
        return Line(store.statement, store.place, value, store.target, tuple(store.merged))

    def is_dynamic(self, node: ast.expr) -> bool:
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        return any(name[0] in "pqr" for name in names)

    def span(self, node: ast.AST) -> Span:
        place: Any = node

        def column(line: int, offset: int) -> int:
            return len(self.rows[line - 1].encode()[:offset].decode())

        return Span(
            place.lineno,
            column(place.lineno, place.col_offset),
            place.end_lineno,
            column(place.end_lineno, place.end_col_offset),
        )


def fixed(source: str) -> rewrite.Applied:
    return rewrite.apply(cst.parse_module(source), Planner(source).fixes, RUNTIME)


# --- what it looks like


def _cases() -> Iterator[tuple[str, str, str]]:
    text = (Path(__file__).parent / "select_cases.txt").read_text(encoding="utf-8")
    for part in text.split("\n=== ")[1:]:
        name, _, case = part.partition("\n")
        before, _, after = case.partition("--- becomes\n")
        yield name, before, after.rstrip("\n") + "\n"


CASES = {name: (before, after) for name, before, after in _cases()}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES.keys())
def test_form(before: str, after: str) -> None:
    result = fixed(before)
    assert not result.refused
    assert result.text == after


@pytest.mark.parametrize("change", [("    ", "\t"), ("    ", "  "), ("\n", "\r\n")], ids=["tabs", "two spaces", "crlf"])
@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES.keys())
def test_form_in_another_file(before: str, after: str, change: tuple[str, str]) -> None:
    """Tabs make the lines shorter, so the lines may break elsewhere; the rest is the same."""
    result = fixed(before.replace(*change))
    wanted = after.replace(*change)
    assert not result.refused
    assert "".join(result.text.split()) == "".join(wanted.split()) or change[0] != "\n"
    if change[0] == "\n":
        assert result.text == wanted
    assert comments(result.text) == comments(before)


def comments(text: str) -> Counter[str]:
    return Counter(re.findall(r"# \w+", text))


# --- what it means


PROGRAM = """\
def main(a, b, p, q, r, s, p_number):
    x = y = z = 1
    if s and (p or not q):  # head
        s_base = f(a, 2)
        x = f(
            s_base,  # base
            key=b,
        )
        y += 2 * a
    if s:
        y += 1
    elif r:
        y: int = a if q else b
    z = f"{a if p and r else b:>{y}}"
    if p_number:
        x = x + 1; y = f(y)
    elif (
        q
        # or
        or r
    ):
        x = (
            a - b  # less
            + f(a)
        )
        # the end
    else:
        pass
    w = (not p or q) and r
    if not p and q:
        return x, y, z, w
    y = -y
    return (y, x,
            z, w)
"""


class Truth:
    """As much of a boolean tensor as the program asks for."""

    def __init__(self, value: object) -> None:
        self.value = bool(value)

    def __bool__(self) -> bool:
        return self.value

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.value and other.value)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.value or other.value)

    def __invert__(self) -> Truth:
        return Truth(not self.value)

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return self

    __hash__ = None  # type: ignore[assignment]


def outcome(source: str, bits: Sequence[bool]) -> list[object]:
    p, q, r, s, number = bits
    names: dict[str, Any] = {
        "torch": SimpleNamespace(where=lambda test, left, right: left if test else right),
        "f": lambda value, other=1, key=0: 3 * value + 2 * other - key,
    }
    exec(compile(source, "program.py", "exec"), names)
    result = names["main"](5, 7, Truth(p), Truth(q), Truth(r), s, Truth(number))
    return [bool(value) if isinstance(value, Truth) else value for value in result]


@pytest.mark.parametrize("bits", list(itertools.product([False, True], repeat=5)))
def test_the_same_values_come_out(bits: Sequence[bool]) -> None:
    assert outcome(at_rest(PROGRAM), bits) == outcome(PROGRAM, bits)


@cache
def at_rest(source: str) -> str:
    """The source with round after round of fixes, as `fixing` applies them."""
    while fixes := Planner(source).fixes:
        result = rewrite.apply(cst.parse_module(source), fixes, RUNTIME)
        assert result.applied
        assert not any(refusal.defect for _, refusal in result.refused)
        source = result.text
    return source


def test_all_comments_are_there_at_the_end() -> None:
    assert comments(at_rest(PROGRAM)) == comments(PROGRAM)
    assert " if " not in at_rest(PROGRAM).replace("    if s:", "").replace("    elif s:", "")


# --- fixes together


def both(source: str) -> rewrite.Applied:
    """The messages and the conditionals of a source fixed, the messages first."""
    fixes = [*Messages().plan(source), *Planner(source).fixes]
    return rewrite.apply(cst.parse_module(source), fixes, RUNTIME)


def test_fixes_beside_each_other() -> None:
    source = "if s:\n    print(x)\nelif p:\n    x = a\nelse:\n    x = b\nprint(f'{a if p else b}', a if p else b)\n"
    result = both(source)
    assert not result.refused
    assert result.text == (
        "from stub_runtime import deferred, formatted\n\n"
        "if s:\n    deferred(print)(x)\nelse:\n    x = torch.where(p, a, b)\n"
        "deferred(print)(formatted('{}', torch.where(p, a, b)), torch.where(p, a, b))\n"
    )


def test_a_fix_in_a_statement_that_stays_comes_first() -> None:
    source = "if p:\n    print(x)\n    x = a\n"
    result = both(source)
    assert [(str(refusal), refusal.defect) for _, refusal in result.refused] == [
        ("another fix changes a part of the same code", False)
    ]
    assert result.text.endswith("if p:\n    deferred(print)(x)\n    x = a\n")
    assert fixed(result.text).text.endswith("\ndeferred(print)(x)\nx = torch.where(p, a, x)\n")


def test_a_fix_in_a_statement_that_stays_comes_later() -> None:
    source = "if p:\n    print(x)\n    x = a\n"
    fixes = [*Planner(source).fixes, *Messages().plan(source)]
    result = rewrite.apply(cst.parse_module(source), fixes, RUNTIME)
    assert [refusal.defect for _, refusal in result.refused] == [False]
    assert result.text == "print(x)\nx = torch.where(p, a, x)\n"


def test_plans_that_share_an_if() -> None:
    source = "if p:\n    x = a\nelif q:\n    x = b\n"
    (fix,) = Planner(source).fixes
    other = replace(fix, plan=replace(fix.plan, site=Span(3, 5, 3, 6)))
    result = rewrite.apply(cst.parse_module(source), [fix, other], RUNTIME)
    assert len(result.applied) == 2
    assert result.text == "x = torch.where(p, a, torch.where(q, b, x))\n"


def test_two_plans_for_one_if() -> None:
    source = "if p:\n    x = a\n"
    (fix,) = Planner(source).fixes
    other = replace(fix, plan=replace(fix.plan, edits=(replace(fix.plan.edits[0], detail="where"),)))
    result = rewrite.apply(cst.parse_module(source), [fix, other], RUNTIME)
    assert len(result.applied) == len(result.refused) == 1


@pytest.mark.parametrize(
    "source", ["x = a if p else b if q else c\n", "x = f(a if p else b)\nif r:\n    y = x if p else a\n"]
)
def test_nested_choices_are_made_in_rounds(source: str) -> None:
    """The planner puts an inner one into the outer one; here each has a plan of its own."""
    fixes = list(_apart(source))
    result = rewrite.apply(cst.parse_module(source), fixes, RUNTIME)
    assert {refusal.defect for _, refusal in result.refused} <= {False}
    assert " if " not in rewrite.apply(result.module, list(_apart(result.text)), RUNTIME).text


def _apart(source: str) -> Iterator[rewrite.Fix]:
    planner = Planner(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.IfExp):
            parts = (planner.span(node.test), planner.span(node.body), planner.span(node.orelse))
            edit = Edit("choose", planner.span(node), WHERE, value=Built("where", parts))
            yield rewrite.Fix(Plan(edit.span, (edit,)), Anything)
    yield from (fix for fix in planner.fixes if fix.plan.edits[0].kind == "select")


def test_imports_are_added() -> None:
    source = '"""A module."""\n\nif p:\n    x = a\n'
    (fix,) = Planner(source).fixes
    fix = replace(fix, plan=replace(fix.plan, imports=("torch",)))
    text = rewrite.apply(cst.parse_module(source), [fix], RUNTIME).text
    assert text == '"""A module."""\n\nimport torch\n\nx = torch.where(p, a, x)\n'


def test_untouched_statements_are_the_same_objects() -> None:
    module = cst.parse_module("y = 2\nif p:\n    x = a\nz = 3\n")
    result = rewrite.apply(module, Planner(module.code).fixes, RUNTIME)
    assert result.module.body[0] is module.body[0]
    assert result.module.body[2] is module.body[2]


# --- what is refused


REFUSED = {
    "the text of a field": 'x = f"{a if p else b=}"\n',
    "a comment in the header of a block": "while (\n    a  # a\n    if p\n    else b\n):\n    pass\n",
}


@pytest.mark.parametrize("source", REFUSED.values(), ids=REFUSED.keys())
def test_what_has_no_form_is_left_alone(source: str) -> None:
    result = fixed(source)
    assert result.text == source
    assert [refusal.defect for _, refusal in result.refused] == [False]


SOURCE = "if s and p:\n    x = a\nelif q:\n    x += b\nelse:\n    for i in s:\n        y = c\ny = d; z = e\n"
IF = Span(1, 0, 7, 13)
ASSIGNMENT = Span(2, 4, 2, 9)
LINE = Line(ASSIGNMENT, Span(2, 8, 2, 9), "b")
BROKEN = {
    "no `if`": (Span(1, 0, 2, 9), Selection(None, (LINE,))),
    "another statement": (Span(6, 4, 7, 13), Selection(None, (LINE,))),
    "no lines": (IF, Selection(None, ())),
    "no statement": (IF, Selection(None, (Line(Span(2, 4, 2, 8)),))),
    "a statement from elsewhere": (IF, Selection(None, (Line(Span(8, 0, 8, 5)),))),
    "no place": (IF, Selection(None, (Line(ASSIGNMENT, Span(2, 7, 2, 9), "b"),))),
    "a place in another statement": (IF, Selection(None, (Line(ASSIGNMENT, Span(4, 9, 4, 10), "b"),))),
    "no value": (IF, Selection(None, (Line(ASSIGNMENT, Span(2, 8, 2, 9)),))),
    "no target": (IF, Selection(None, (Line(None, value="b"),))),
    "a place in a block": (IF, Selection(None, (Line(Span(6, 4, 7, 13), Span(6, 13, 6, 14), "b"),))),
    "a statement in two lines": (IF, Selection(None, (LINE, Line(None, target="y", value="a", merged=(ASSIGNMENT,))))),
    "nothing at a piece": (IF, Selection(None, (Line(None, target="y", value=Span(2, 7, 2, 9)),))),
    "a test from elsewhere": (IF, Selection(Span(3, 5, 3, 6), (LINE,))),
    "no test": (IF, Selection(Span(1, 3, 1, 5), (LINE,))),
    "what does not follow": (IF, Selection(None, (LINE,), (Span(8, 7, 8, 12),))),
    "after an elif": (Span(3, 0, 7, 13), Selection(None, (Line(Span(4, 4, 4, 10)),), (Span(8, 0, 8, 5),))),
    "an operator that is none": (IF, Selection(None, (Line(None, target="y", value=Built("nand", ("a", "b"))),))),
    "a target that is none": (IF, Selection(None, (Line(None, target="f()", value="a"),))),
}


@pytest.mark.parametrize(("span", "selection"), BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_plan_is_refused_as_a_defect(span: Span, selection: Selection) -> None:
    fix = rewrite.Fix(Plan(Span(1, 9, 1, 10), (Edit("select", span, WHERE, selection),)), Anything)
    result = rewrite.apply(cst.parse_module(SOURCE), [fix], RUNTIME)
    assert result.text == SOURCE
    assert [refusal.defect for _, refusal in result.refused] == [True]


@pytest.mark.parametrize(
    "edit",
    [
        Edit("select", IF, WHERE),
        Edit("choose", Span(2, 8, 2, 9), WHERE),
        Edit("choose", Span(2, 7, 2, 9), WHERE, value="b"),
        Edit("choose", Span(2, 8, 2, 9), WHERE, value=Span(2, 7, 2, 9)),
        Edit("choose", Span(2, 8, 2, 9), WHERE, value="b +"),
    ],
)
def test_a_wrong_edit_is_refused_as_a_defect(edit: Edit) -> None:
    fix = rewrite.Fix(Plan(Span(1, 9, 1, 10), (edit,)), Anything)
    result = rewrite.apply(cst.parse_module(SOURCE), [fix], RUNTIME)
    assert result.text == SOURCE
    assert [refusal.defect for _, refusal in result.refused] == [True]


def test_an_if_that_is_no_else_of_another_may_become_any_lines() -> None:
    lines = (Line(None, target="self.y[0]", value=Built("+", ("a", "b", Built("*", ("c", "d"))))), LINE)
    fix = rewrite.Fix(Plan(Span(1, 9, 1, 10), (Edit("select", IF, WHERE, Selection(None, lines)),)), Anything)
    result = rewrite.apply(cst.parse_module(SOURCE), [fix], RUNTIME)
    assert result.text == "self.y[0] = a + b + c * d\nx = b\ny = d; z = e\n"


def test_an_if_that_is_absorbed() -> None:
    source = """def f():
    if p:
        return a
        # no more

    # second
    elif_ = 1; b = c  # b
    if q:  # q
        return b
        # foot

    # third
    return c

# end
"""
    first, second, third = Span(3, 8, 3, 16), Span(9, 8, 9, 16), Span(13, 4, 13, 12)
    value = Built("where", ("p", Span(3, 15, 3, 16), Built("where", ("q", Span(9, 15, 9, 16), "c"))))
    lines = (
        Line(Span(7, 4, 7, 13)),
        Line(Span(7, 15, 7, 20)),
        Line(first, Span(3, 15, 3, 16), value, merged=(second, third)),
    )
    absorbed = (Span(7, 4, 7, 13), Span(7, 15, 7, 20), Span(8, 4, 9, 16), third)
    edit = Edit("select", Span(2, 4, 3, 16), WHERE, Selection(None, lines, absorbed))
    result = rewrite.apply(cst.parse_module(source), [rewrite.Fix(Plan(Span(2, 7, 2, 8), (edit,)), Anything)], RUNTIME)
    assert not result.refused
    assert (
        result.text
        == """def f():
    # second
    elif_ = 1
    b = c  # b
    # no more
    # q
    # foot
    # third
    return torch.where(p, a, torch.where(q, b, c))

# end
"""
    )


# --- rounds, and Fixit's door


def findings(source: bytes, path: Path, settings: config.Settings) -> list[Finding]:
    """A finding for each conditional and for each print, the messages first."""
    text = source.decode()
    fixes = [*Messages().plan(text), *Planner(text).fixes]
    return [
        Finding("GM201", "x", str(path), fix.plan.site, "x", "definite", "safe", None, (), None, fix.plan)
        for fix in fixes
        if "deferred(print)" not in text.split("\n")[fix.plan.site.line - 1]
    ]


BEFORE = "if p:\n    print(a)\n    x = a if q else b\nelse:\n    x = b\n    if s:\n        s_y = a\n"


def test_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Form:
        MATCHER = ~m.Pass()

        @staticmethod
        def replacement(node: cst.Call, wrap: rewrite.Wrap) -> cst.Call:
            return node.with_changes(func=wrap(node.func))

    monkeypatch.setattr(fixing, "_form", lambda code: Form)
    result = fixing.fix_source(BEFORE.encode(), Path("x.py"), settings=config.Settings(), lint=findings)
    assert not result.problems
    assert result.rounds == 2
    assert result.source.decode().endswith("""
deferred(print)(a)
if s:
    s_y = a
x = torch.where(p, torch.where(q, a, b), b)
""")


DOOR = b"""\
import torch
from graphmend_lint.runtime import deferred


class Model(torch.nn.Module):
    def forward(self, x, p):
        print(x)
        if p:  # why
            print(p)
            x = x + 1
        return x
"""


def test_the_door_has_the_same_fixes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Form:
        MATCHER = ~m.Pass()

        @staticmethod
        def replacement(node: cst.Call, wrap: rewrite.Wrap) -> cst.Call:
            return node.with_changes(func=wrap(node.func))

    path = tmp_path / "model.py"
    monkeypatch.setattr(fixing, "_form", lambda code: Form)
    monkeypatch.setattr(engine, "lint_source", lambda source, path, *, settings: findings(source, path, settings))
    rules = [QualifiedRule("graphmend")]
    settings = Config(path=path, root=tmp_path, enable=rules, disable=[QualifiedRule("fixit.rules")])
    captured = capture(fixit_bytes(path, DOOR, config=settings, autofix=True))
    results = list(captured)
    assert [result.error for result in results] == [None] * 3
    assert sorted(r.violation.range.start.line for r in results if r.violation is not None) == [7, 8, 9]
    assert sum(r.violation.replacement is not None for r in results if r.violation is not None) == 1
    assert captured.result == fixing.fix_source(DOOR, path, settings=config.Settings(), lint=findings).source
    assert captured.result is not None
    assert captured.result.decode().endswith("""
        deferred(print)(x)
        # why
        deferred(print)(p)
        x = torch.where(p, x + 1, x)
        return x
""")
