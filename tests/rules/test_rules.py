"""Each rule: its file, its cases, and its documentation, which shows what the rule does."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import fixit.testing
import pytest

from graphmend_lint import config, engine, fixing, registry

CARDS = registry.all_rules()
IDS = [card.code for card in CARDS]
SETTINGS = config.Settings()


def settings_for(card: registry.RuleCard) -> config.Settings:
    """Settings under which the rule's fix is applied."""
    return config.Settings(unsafe_fixes=card.fix == "unsafe")


ORDER = (
    ["CODE", "SINCE", "FIX", "TITLE", "CATEGORY", "TAGS", "BREAKS", "TORCH", "TRANSFORM"],
    ["CALLS", "METHODS", "OPTIONS"],
    ["VALID", "INVALID", "MATCHER"],
)

# `fixit test graphmend`, case by case.
fixit.testing.add_lint_rule_tests_to_module(globals(), [registry.load(card)() for card in CARDS])


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_file_keeps_the_house_order(card: registry.RuleCard) -> None:
    tree = ast.parse(card.path.read_text())
    assert (ast.get_docstring(tree) or "").startswith(f"{card.code}: ")
    (rule,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    names: list[str] = []
    for statement in rule.body:
        if isinstance(statement, ast.Assign):
            names += [node.id for node in ast.walk(statement.targets[0]) if isinstance(node, ast.Name)]
    known = [name for group in ORDER for name in group]
    assert names == [name for name in known if name in names]
    assert isinstance(rule.body[-1], ast.FunctionDef)
    assert rule.body[-1].name == "replacement"


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_file_is_short(card: registry.RuleCard) -> None:
    tree = ast.parse(card.path.read_text())
    (rule,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    cases = sum(
        (statement.end_lineno or 0) - statement.lineno + 1
        for statement in rule.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in ("VALID", "INVALID")
    )
    assert len(card.path.read_text().splitlines()) - cases <= 100


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_use_instead_is_the_fix_of_the_example(card: registry.RuleCard) -> None:
    head = textwrap.dedent("""\
        import logging
        import warnings

        import torch
        from torch import nn

        logger = logging.getLogger(__name__)
        """)
    example, instead = (snippet(card.section(heading)) for heading in ("Example", "Use instead"))
    result = fixing.fix_source((head + example).encode(), Path("example.py"), settings=settings_for(card))
    assert [finding.code for finding in result.applied] == [card.code]
    assert not result.remaining
    assert result.source.decode().endswith(instead)


def snippet(section: str) -> str:
    match = re.fullmatch(r"```python\n(.*)```", section, re.DOTALL)
    assert match is not None
    return textwrap.dedent(match.group(1))


@pytest.mark.parametrize(
    ("card", "case"),
    [(card, case) for card in CARDS for case in card.invalid],
    ids=lambda value: getattr(value, "code", "")[:5],
)
def test_fixed_cases_are_silent(card: registry.RuleCard, case: registry.Case) -> None:
    path = Path("case.py")
    assert engine.lint_source(case.code.encode(), path, settings=SETTINGS)
    result = fixing.fix_source(case.code.encode(), path, settings=SETTINGS)
    assert result.changed == (case.expected_replacement is not None)
    assert not result.problems
    if case.expected_replacement is not None:
        assert result.source.decode() == case.expected_replacement
        assert not engine.lint_source(result.source, path, settings=SETTINGS)
    else:
        assert all(finding.fix != "safe" for finding in result.remaining)
