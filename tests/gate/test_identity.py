"""What a finding is known by: its function and the tree of what is flagged, however that is laid out."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_lint.analysis import source as sources
from graphmend_lint.findings import Span
from graphmend_lint.gate.identity import Identity, at_line, content_of, in_source, scopes_of


def content(expression: str) -> str:
    return content_of(ast.parse(expression, mode="eval").body)


def parsed(text: str) -> sources.Source:
    return sources.parse(text.encode(), Path("model.py"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f('a', x)", 'f("a",\n  x,  # why\n)'),
        ("f('ab')", "f('a' 'b')"),
        ("f(f'a{x}b{y!r:>3}')", 'f(f"a{x}" "b" f"{y!r:>3}")'),
        ("f(u'a')", "f('a')"),
        ("f(0XFF, 1_000, 1E3)", "f(255, 1000, 1e3)"),
        ("(x.sum()) > (0)", "x.sum() > 0"),
        ("f(x[1:2, None])", "f(x[(1 ):2,\n None])"),
        ("f('é')", r"f('\u00e9')"),
        ("f('a\\nb')", "f('''a\nb''')"),
    ],
)
def test_layout_is_not_seen(one: str, other: str) -> None:
    assert content(one) == content(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(1)", "f(True)"),
        ("f(1)", "f(1.0)"),
        ("f(1)", "f('1')"),
        ("f('a')", "f(b'a')"),
        ("f(None)", "f()"),
        ("f('None')", "f(None)"),
        ("f(a=1)", "f(b=1)"),
        ("f(x, y)", "f((x, y))"),
        ("f(*x)", "f(x)"),
        ("f([x], y)", "f([x, y])"),
        ("f(a, b)", "f(a)(b)"),
        ("x > 0", "x >= 0"),
        ("x[1:]", "x[:1]"),
        ("{**x}", "{None: x}"),
        ("f(f'{x}')", "f(f'{x!r}')"),
        ("lambda: x", "lambda x: x"),
    ],
)
def test_what_a_program_can_tell_is_seen(one: str, other: str) -> None:
    assert content(one) != content(other)


def test_values_that_are_hard_to_write_down() -> None:
    assert content("f(10 ** 5000)") != content("f(0)")
    assert content("f(" + "9" * 4000 + ")") != content("f(" + "9" * 3999 + ")")
    assert content(f"f({hex(10**5000)})") != content(f"f({hex(10**5000 + 1)})")
    assert content("f('\\ud800')") != content("f('\\ud801')")


def test_hashes_are_the_same_in_every_version() -> None:
    """They are committed: what they are may only change together with the version of the baseline."""
    assert content("print('shape', x.shape)") == "1ac6912814bfd6cb"
    assert (
        content("f(x[1:, None], *a, k=-1.5, **b) if not c else f'{d!r:>{e}}' + b'\\0'.hex(...)") == "155d1c40c2a651ab"
    )


def test_deep_trees_need_no_stack() -> None:
    tree: ast.expr = ast.Name("x")
    for _ in range(20_000):
        tree = ast.UnaryOp(ast.USub(), tree)
    assert len(content_of(tree)) == 16


def test_scope_is_the_qualified_name() -> None:
    source = parsed(
        "class Outer:\n"
        "    class Inner:\n"
        "        @decorate(flag=f(1))\n"
        "        def method(self):\n"
        "            def nested():\n"
        "                return [f(2) for _ in x]\n"
        "            return lambda: f(3)\n"
        "f(4)\n"
    )
    at = {Span(3, 23, 3, 27), Span(6, 24, 6, 28), Span(7, 27, 7, 31), Span(8, 0, 8, 4)}
    found = {one.text: one.scope for one in in_source(source, at).values()}
    assert found == {
        "f(1)": "Outer.Inner.method",
        "f(2)": "Outer.Inner.method.nested",
        "f(3)": "Outer.Inner.method",
        "f(4)": "<module>",
    }
    assert scopes_of(source.tree) == {
        "<module>",
        "Outer",
        "Outer.Inner",
        "Outer.Inner.method",
        "Outer.Inner.method.nested",
    }


def test_columns_are_characters() -> None:
    source = parsed('f("é"); g(1)\n')
    (found,) = in_source(source, [Span(1, 8, 1, 12)]).values()
    assert found.text == "g(1)"


def test_comments_are_known_by_their_text() -> None:
    source = parsed("def f():\n    x = 1  # noqa: GM201\n    # noqa: GM202\n    y = 2\n")
    one, two = Span(2, 11, 2, 24), Span(3, 4, 3, 17)
    found = in_source(source, [one, two])
    assert [(found[span].scope, found[span].text) for span in (one, two)] == [
        ("f", "# noqa: GM201"),
        ("f", "# noqa: GM202"),
    ]
    assert found[one].content != found[two].content


def test_statement_on_a_line() -> None:
    source = parsed("def f(x):\n    if g(\n        x\n    ):\n        h(\n            x\n        )\n    return x\n")
    assert at_line(source, 3).text == "if g("
    assert at_line(source, 6) == Identity("f", at_line(source, 5).content, "h( x )")
    assert at_line(source, 8).text == "return x"
    assert at_line(source, 99) == Identity("<module>", "", "")


def test_a_compound_statement_stays_the_same_when_its_block_changes() -> None:
    one, other = parsed("while x > 0:\n    f()\n"), parsed("while (x > 0):\n    g()\nelse:\n    h()\n")
    assert at_line(one, 1).content == at_line(other, 1).content
    assert at_line(one, 1).content != at_line(parsed("while x > 1:\n    f()\n"), 1).content


@pytest.mark.parametrize("module", ["argparse", "logging", "typing", "textwrap"])
def test_real_code_written_anew_from_its_tree(module: str) -> None:
    """Whatever `ast.unparse` does with quotes, brackets and lines: every statement and expression stays the same."""
    source = Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8")
    tree = ast.parse(source)
    again = ast.parse(ast.unparse(tree))
    pairs = list(zip(ast.walk(tree), ast.walk(again), strict=True))
    assert len(pairs) > 1000
    assert all(content_of(one) == content_of(other) for one, other in pairs if isinstance(one, ast.expr))


def test_long_texts_are_shortened() -> None:
    text = at_line(parsed(f"f({', '.join(['argument'] * 50)})\n"), 1).text
    assert len(text) == 100
    assert text.endswith("...")


def test_a_formatter_changes_no_identity(tmp_path: Path) -> None:
    """Fixtures of the rules, reformatted by the real `ruff format` for another width and other quotes."""
    from graphmend_lint import engine

    config = tmp_path / "ruff.toml"
    config.write_text('line-length = 40\n[format]\nquote-style = "single"\n')
    fixtures = sorted(Path(__file__).parents[2].glob("fixtures/*/*/before.py"))[::4]
    assert len(fixtures) > 20
    for number, fixture in enumerate(fixtures):
        place = tmp_path / f"case{number}.py"
        place.write_bytes(fixture.read_bytes())
    before = _identities(engine.lint_paths([tmp_path]))
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--quiet", "--config", str(config), str(tmp_path)], check=True
    )
    changed = sum(
        (tmp_path / f"case{number}.py").read_bytes() != fixture.read_bytes() for number, fixture in enumerate(fixtures)
    )
    assert changed > 20
    after = _identities(engine.lint_paths([tmp_path]))
    assert before == after
    assert len(before) > 20


def _identities(report: object) -> list[tuple[str, str, str, str]]:
    from graphmend_lint.engine import Report
    from graphmend_lint.gate.identity import identify

    assert isinstance(report, Report)
    known = identify(report.findings, report.given, None, 1)
    found = [(f.path, f.code, one.scope, one.content) for f, one in zip(report.findings, known, strict=True)]
    return sorted(found)
