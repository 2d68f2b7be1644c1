"""The registry: rules are read without being run, asked for by code, prefix and name, and checked for
completeness.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_lint import registry
from graphmend_lint.findings import ADVICE


def codes(*patterns: str) -> list[str]:
    return [card.code for card in registry.select(patterns)]


def test_the_rules_are_complete() -> None:
    assert registry.check() == []


def test_every_rule_file_is_a_rule() -> None:
    folder = registry.all_rules()[0].path.parent
    files = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    assert files == {card.path.stem for card in registry.all_rules()}


def test_rules_are_ordered_by_code() -> None:
    listed = [card.code for card in registry.all_rules()]
    assert listed == sorted(listed)
    assert {"GM201", "GM202", "GM203"} <= set(listed)


def test_reading_rules_imports_neither_them_nor_what_they_need() -> None:
    script = (
        "import sys; from graphmend_lint import registry; registry.all_rules(); registry.check();"
        "print([m for m in ('libcst', 'fixit', 'torch', 'graphmend') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


@pytest.mark.parametrize(
    ("class_name", "name"),
    [("PrintCall", "print-call"), ("ODERStep", "oder-step"), ("Item", "item"), ("Use2DMask", "use2-d-mask")],
)
def test_name(class_name: str, name: str) -> None:
    assert registry.kebab_case(class_name) == name


def test_find() -> None:
    assert registry.find("GM201").name == "print-call"
    assert registry.find("gm202").code == "GM202"
    assert registry.find("warnings-warn").code == "GM203"


def test_select() -> None:
    assert codes("ALL") == codes("GM") == [card.code for card in registry.all_rules()]
    assert codes("GM201", "print-call", "gm201") == ["GM201"]
    assert codes("logger-call", "GM201") == ["GM201", "GM202"]
    assert set(codes("GM2")) >= {"GM201", "GM202", "GM203"}
    assert codes() == []


def test_what_the_linter_itself_reports_has_to_be_named() -> None:
    everything = [card.code for card in registry.described()]
    assert everything == ["GM001", *codes("ALL")]
    assert codes("GM0") == codes("gm001") == codes("unused-suppression") == ["GM001"]
    assert codes("GM001", "GM201") == ["GM001", "GM201"]
    assert registry.find("unused-suppression").code == "GM001"


@pytest.mark.parametrize(
    ("asked", "suggested"), [("GM209", "GM20"), ("print-cal", "print-call"), ("LoggerCall", "logger-call")]
)
@pytest.mark.parametrize("ask", [registry.find, lambda name: registry.select([name])])
def test_unknown_rule(ask: Callable[[str], object], asked: str, suggested: str) -> None:
    with pytest.raises(registry.UnknownRule, match=f"unknown rule `{asked}`; did you mean `{suggested}") as caught:
        ask(asked)
    assert caught.value.name == asked


def test_unknown_rule_that_is_near_to_none() -> None:
    with pytest.raises(registry.UnknownRule, match=r"unknown rule `quux`$") as caught:
        registry.find("quux")
    assert caught.value.suggestion is None


def test_retired_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RETIRED", {"GM299": "GM201"})
    with pytest.raises(registry.UnknownRule, match="retired, use `GM201`"):
        registry.find("GM299")


def test_declarations_are_read_as_the_class_has_them() -> None:
    for card in registry.all_rules():
        rule = registry.load(card)
        assert (card.code, card.since, card.fix, card.title) == (rule.CODE, rule.SINCE, rule.FIX, rule.TITLE)
        assert set(rule.TAGS) == card.tags
        assert tuple(rule.BREAKS) == card.breaks
        assert tuple(getattr(rule, "CALLS", ())) == card.calls
        assert tuple(getattr(rule, "METHODS", ())) == card.methods
        assert [case.code.strip().split("\n")[0].strip() for case in rule.INVALID] == [
            case.code.split("\n")[0] for case in card.invalid
        ]


def test_document_lists_what_the_transformation_declines() -> None:
    for card in registry.all_rules():
        text = registry.document(card)
        assert [line[3:] for line in text.split("\n") if line.startswith("## ")] == list(registry.HEADINGS)
        for reason in registry.reasons_of(card):
            assert f"| `{reason.value}` | {ADVICE[reason]} |" in text
        for option in card.options:
            assert f"| `{option.name}` |" in text


def test_options_are_keys_of_the_configuration(tmp_path: Path) -> None:
    assert [key.name for key in registry.find("GM201").options] == ["defer-style"]
    (tmp_path / "some_call.py").write_text(RULE.format(more='OPTIONS = ("defer-stile",)'))
    with pytest.raises(registry.RulesMissing, match=r"the option defer-stile in some_call\.py is no key"):
        registry.read_rules(tmp_path)


def test_json() -> None:
    shown = json.loads(json.dumps(registry.find("GM201").to_json()))
    assert shown["code"] == "GM201"
    assert shown["documentation"].startswith("# GM201 print-call\n")


def test_breaks_are_in_torch_own_list() -> None:
    torch = pytest.importorskip("torch")
    listed = json.loads((Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json").read_text())
    for card in registry.all_rules():
        assert set(card.breaks) <= set(listed)


# --- checks


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"code": "GM20"}, "GM20: the code is not of the form GM201"),
        ({"fix": "maybe"}, "GM201: FIX is none of safe, unsafe, none"),
        ({"tags": frozenset({"effects"})}, "GM201: the tags lack the code"),
        ({"tags": frozenset({"gm201", "Effects"})}, "GM201: a tag is not lower case"),
        ({"breaks": ("GB59",)}, "GM201: GB59 is not of the form GB0291"),
        ({"doc": "## What it does\nx"}, "GM201: the documentation has the headings ['What it does']"),
        ({"valid": ()}, "GM201: no VALID or no INVALID case"),
        ({"name": "printed"}, "GM201: the file is not called printed.py"),
    ],
)
def test_a_problem_is_named(changes: dict[str, object], problem: str) -> None:
    card = replace(registry.find("GM201"), **changes)  # type: ignore[arg-type]
    assert problem in registry.check([card])


def test_a_retired_code_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RETIRED", {"GM201": ""})
    assert "GM201: the code is retired" in registry.check()


def test_duplicates_are_named() -> None:
    card = registry.find("GM201")
    assert registry.check([card, card]) == ["GM201: code used twice", "print-call: name used twice"]


RULE = '''
class SomeCall(rule.GraphRule):
    """Doc."""
    CODE, SINCE, FIX = "GM299", "0.1", "none"
    TITLE: str = "title"
    {more}
    CATEGORY, TAGS, BREAKS, TORCH = "c", {{"gm299"}}, ("GB0001",), ">=2.11"
    TRANSFORM = "defer"
    MATCHER = m.Call()
    VALID = ["x = 1\\n", Valid(code="""
        y = 1
          z
        """)]
    INVALID = [Invalid("a", expected_replacement="b", expected_message="m")]
'''


def test_reading_a_file(tmp_path: Path) -> None:
    (tmp_path / "_private.py").write_text("syntax error")
    (tmp_path / "some_call.py").write_text(RULE.format(more="OPTIONS = ()"))
    (card,) = registry.read_rules(tmp_path)
    assert (card.code, card.name, card.title, card.module) == (
        "GM299",
        "some-call",
        "title",
        "graphmend.some_call",
    )
    assert [case.code for case in card.valid] == ["x = 1\n", "y = 1\n  z\n"]
    assert card.invalid == (registry.Case("a\n", "b\n", "m"),)
    assert registry.read_rules(tmp_path) == [card]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class X:\n    CODE = 'GM299'\n", r"the rule X in x\.py does not declare SINCE, FIX,"),
        ("class X(\n", r"the rule file x\.py cannot be read"),
    ],
)
def test_a_file_that_is_no_rule(source: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(source)
    with pytest.raises(registry.RulesMissing, match=message):
        registry.read_rules(tmp_path)
