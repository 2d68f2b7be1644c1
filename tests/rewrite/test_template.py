"""F-strings as templates: the text is the same, whatever is in the fields."""

from __future__ import annotations

import ast
import sys
from typing import Any

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmend_lint.rewrite import template

NAMES: dict[str, Any] = {"x": 3.14159, "n": 12, "w": 20, "p": 3, "d": {"a": 1}, "s": "é\n'\"", "t": (1, 2)}


def turned(source: str) -> tuple[str, list[str]]:
    made = template.from_fstring(cst.parse_expression(source))
    code = cst.Module([])
    return code.code_for_node(made.text), [code.code_for_node(value) for value in made.values]


def same_text(source: str) -> tuple[str, list[str]]:
    """The template and values of `source`, after a check that they give its text."""
    text, values = turned(source)
    call = f"({text}).format({', '.join(values)})"
    assert eval(call, dict(NAMES)) == eval(f"({source})", dict(NAMES)), call
    return text, values


@pytest.mark.parametrize(
    ("source", "text", "values"),
    [
        ('f"a {x} b"', '"a {} b"', ["x"]),
        ('f"{x:.3f} of {n!r:>8}"', '"{:.3f} of {!r:>8}"', ["x", "n"]),
        ('f"{x:{w}.{p}f}{n}"', '"{:{}.{}f}{}"', ["x", "w", "p", "n"]),
        ('f"{x!r:{w}}{s!a}{s!s}"', '"{!r:{}}{!a}{!s}"', ["x", "w", "s", "s"]),
        ('f"{x:{w!s:>2}}"', '"{:{!s:>2}}"', ["x", "w"]),
        ('f"{{{n}}} {{}}"', '"{{{}}} {{}}"', ["n"]),
        ('f"{x=}"', '"x={!r}"', ["x"]),
        ('f"{ x = !s:>9}"', '" x = {!s:>9}"', ["x"]),
        ('f"{x=:.2f}"', '"x={:.2f}"', ["x"]),
        ("f\"{d['a']=}\"", "\"d['a']={!r}\"", ['d["a"]']),
        ("f\"{d['a']} {'b'!r} {len('é')}\"", '"{} {!r} {}"', ['d["a"]', '"b"', 'len("é")']),
        ("f\"{f'{n}'}\"", '"{}"', ["f'{n}'"]),
        ('f"{ {1: 2}[1] = }"', '" {{1: 2}}[1] = {!r}"', ["{1: 2}[1]"]),
        ('f"{n, x}"', '"{}"', ["(n, x)"]),
        ('f"{(lambda v: v)(n)} {n if x else w}"', '"{} {}"', ["(lambda v: v)(n)", "n if x else w"]),
        ('f"{(z := n)} {[i for i in t]}"', '"{} {}"', ["(z := n)", "[i for i in t]"]),
        ('f"{[*t]} {dict(**d)}"', '"{} {}"', ["[*t]", "dict(**d)"]),
        ("f'{s}'", "'{}'", ["s"]),
        ('rf"\\d {n}"', 'r"\\d {}"', ["n"]),
        ('Rf"\\N{n}"', 'R"\\N{}"', ["n"]),
        ('F"{n}"', '"{}"', ["n"]),
        ('f"\\N{DEGREE SIGN}{n}"', '"\\N{DEGREE SIGN}{}"', ["n"]),
        ('f"\\x7b{n}\\u007d\\175\\N{LEFT CURLY BRACKET}"', None, ["n"]),
        ('f"""a\n{n} "b" """', '"""a\n{} "b" """', ["n"]),
        ('f"{n}" "plain {brace}" \'q\'', '"{}" "plain {{brace}}" \'q\'', ["n"]),
        ('r"\\{" f"{n}" "\\N{DEGREE SIGN} \\\\N{x}"', 'r"\\{{" "{}" "\\N{DEGREE SIGN} \\\\N{{x}}"', ["n"]),
        ('"{" "\\x7b" f"{n}"', '"{{" "\\x7b\\x7b" "{}"', ["n"]),
        ('f"%d {n}%"', '"%d {}%"', ["n"]),
    ],
)
def test_field(source: str, text: str | None, values: list[str]) -> None:
    found, found_values = same_text(source)
    assert found_values == values
    if text is not None:
        assert found == text


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the grammar of PEP 701")
@pytest.mark.parametrize("source", ['f"{d["a"]}"', 'f"{"{}"}{n}"', 'f"{x:{"."}3}"'])
def test_field_with_the_quotes_of_its_string(source: str) -> None:
    same_text(source)


def test_nested_quotes_are_turned_on_any_python() -> None:
    assert turned('f"{d["a"]} {f"{n}"}"') == ('"{} {}"', ['d["a"]', 'f"{n}"'])


@pytest.mark.parametrize(
    "source",
    ['f"{d["a"]=}"', 'f"{x:{w:{p}}}"', 'f"{x:{w:{p:{n}}}}"', "name", 'b"x"'],
    ids=["label with the quotes", "spec in a spec", "deeper", "no text", "bytes"],
)
def test_what_no_template_says(source: str) -> None:
    with pytest.raises(template.NotATemplate):
        turned(source)


def test_yield_gets_parentheses() -> None:
    function = cst.ensure_type(cst.parse_statement('def g():\n    x = f"{yield 1}"\n'), cst.FunctionDef)
    line = cst.ensure_type(function.body.body[0], cst.SimpleStatementLine)
    made = template.from_fstring(cst.ensure_type(line.body[0], cst.Assign).value)
    assert cst.Module([]).code_for_node(made.values[0]) == "(yield 1)"


_TEXT = st.text(st.sampled_from("ab {}\\'\"\n%é"), max_size=6)
_FIELD = st.tuples(
    st.sampled_from(["x", "n", "s", "t[0]", "n + w", "d['a']"]),
    st.sampled_from(["", "!r", "!s", "!a"]),
    st.sampled_from(["", ":>{w}", ":{w}"]),
)


def _spell(parts: list[tuple[str, tuple[str, str, str]]], tail: str) -> str:
    pieces = []
    for text, (name, conversion, spec) in parts:
        quoted = text.encode("unicode_escape").decode().replace("{", "{{").replace("}", "}}").replace('"', '\\"')
        # A format specification such as `>20` only goes with text and numbers.
        pieces.append(f"{quoted}{{{name}{conversion or '!s'}{spec}}}")
    end = tail.encode("unicode_escape").decode().replace("{", "{{").replace("}", "}}").replace('"', '\\"')
    return 'f"' + "".join(pieces) + end + '"'


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_TEXT, _FIELD), max_size=4), _TEXT)
def test_any_text(parts: list[tuple[str, tuple[str, str, str]]], tail: str) -> None:
    source = _spell(parts, tail)
    ast.parse(source)
    same_text(source)
