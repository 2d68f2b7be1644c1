"""Fixes together: shared edits, refusals, nesting, and the same text when the result is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import libcst as cst
import pytest

from graphmend_lint import rewrite
from graphmend_lint.findings import Edit, Span
from tests.rewrite.conftest import Function, Method, Planner


class Tensor(list[float]):
    """As much of a tensor as the snippets ask for."""

    def any(self) -> bool:
        return any(self)


PROGRAM = """\
import logging

def f(x, n, logger):
    print("a", x, f"{n:{n}d}|{x!r:>30}", sep="; ")
    print(
        f"b {n} {{}} "
        'c {brace} %d '  # comment
        rf"\\d {n=}"
    )
    logger.info("n %d" % n)
    logger.info("%s and %s" % (n, x))
    print("{} {k} {0}".format(n, k=x) if n < 0 else "{} {k}".format(n, k=x))
    print("{} {k}".format(n, k=x))
    if x.any():
        print("any")
        logger.info(f"any of {x}")
    if (
        x.any()
        and n > 100
    ):
        print("never")

class Log:
    def info(self, text, *args):
        print("log:", text, *args)

for n in (1, 12):
    f(X([0.0]), n, Log())
    f(X([0.0, 2.5]), n, Log())
"""


def test_the_same_text_is_heard(apply: Any, heard: Callable[[str, dict[str, Any]], str]) -> None:
    result = apply(PROGRAM)
    assert not result.refused
    assert "alarm(logger).info(formatted(" in result.text
    before, after = heard(PROGRAM, {"X": Tensor}), heard(result.text, {"X": Tensor})
    assert before == after
    assert before.count("\n") > 20


def test_untouched_statements_are_the_same_objects() -> None:
    source = "import torch\nx = 1\n\ndef f():\n    y = 2\n    print(1)\n"
    module = cst.parse_module(source)
    result = rewrite.apply(module, Planner().plan(source), "r")
    before, after = module.body, result.module.body
    assert after[2] is before[1]
    old, new = (cst.ensure_type(f, cst.FunctionDef).body for f in (before[2], after[3]))
    assert new.body[0] is old.body[0]
    assert new.body[1] is not old.body[1]


def test_a_text_nested_in_another() -> None:
    source = """print(f"{f'{x:{w}}'}", "a".join(str(i) for i in y) % x)\n"""
    plan = Planner().plan(source)[0].plan
    inner = Edit("format", Span(1, 9, 1, 19))
    plan = replace(plan, edits=(inner, *plan.edits))
    fixes = [rewrite.Fix(plan, Function)]
    text = rewrite.apply(cst.parse_module(source), fixes, "r").text
    assert text.endswith("""formatted("{}", formatted("{:{}}", x, w)), percent("a".join(str(i) for i in y), x)\n)\n""")


def fix_of(source: str, **changes: Any) -> rewrite.Fix:
    fix = Planner().plan(source)[0]
    return replace(fix, plan=replace(fix.plan, **changes))


BROKEN = {
    "no call at the site": {"site": Span(1, 0, 1, 5)},
    "nothing at the edit": {"edits": (Edit("wrap", Span(1, 1, 1, 4), "deferred"),)},
    "another callee": {"edits": (Edit("wrap", Span(1, 6, 1, 7), "deferred"),)},
    "unknown kind": {"edits": (Edit("where", Span(1, 0, 1, 5)),)},
    "no test": {"edits": (Edit("when", Span(1, 0, 1, 5), "alarm"),)},
    "no statement": {"edits": (Edit("guard", Span(1, 0, 1, 5), "g()"),)},
}


@pytest.mark.parametrize("changes", BROKEN.values(), ids=BROKEN.keys())
def test_a_wrong_plan_is_refused_as_a_defect(changes: dict[str, Any]) -> None:
    source = "print(x)\n"
    result = rewrite.apply(cst.parse_module(source), [fix_of(source, **changes)], "r")
    assert result.text == source
    assert not result.applied
    assert [refusal.defect for _, refusal in result.refused] == [True]


def test_a_node_that_the_rule_does_not_match() -> None:
    source = "print(x)\n"
    fix = replace(fix_of(source), form=Method)
    result = rewrite.apply(cst.parse_module(source), [fix], "r")
    assert [str(refusal) for _, refusal in result.refused] == [
        "the rule's matcher does not match the node at the finding"
    ]


def test_two_plans_for_one_place() -> None:
    source = "print(x)\n"
    other = fix_of(source, edits=(Edit("wrap", Span(1, 0, 1, 5), "alarm"),))
    result = rewrite.apply(cst.parse_module(source), [fix_of(source), other], "r")
    assert len(result.applied) == len(result.refused) == 1


BRANCHES = {
    "another statement": "if x.any():\n    print(x)\n    y = 1\n",
    "another call": "if x.any():\n    print(x)\n    f(x)\n",
    "an else": "if x.any():\n    print(x)\nelse:\n    y = 1\n",
    "a loop": "if x.any():\n    for i in y:\n        print(x)\n",
    "a nested else": "if x.any():\n    if y:\n        print(x)\n    else:\n        f()\n",
}


@pytest.mark.parametrize("source", BRANCHES.values(), ids=BRANCHES.keys())
def test_a_branch_that_does_more_is_left_alone(apply: Any, source: str) -> None:
    result = apply(source)
    assert result.text == source
    assert [refusal.defect for _, refusal in result.refused] == [False]


def test_a_branch_with_a_static_branch_of_messages(apply: Any) -> None:
    source = "if x.any():\n    if y:\n        print(x)\n    else:\n        print(y)\n    pass\n"
    assert "if alarm := when(x.any()):\n    if y:\n        alarm(print)(x)\n" in apply(source).text


def test_messages_of_one_branch_go_together() -> None:
    """A message that stays while the test becomes a handle would be given in any case."""
    source = "if x.any():\n    print(x)\n    logger.info(x)\nprint(y)\n"
    fixes = Planner().plan(source)
    assert len(fixes) == 3
    result = rewrite.apply(cst.parse_module(source), [fixes[0], fixes[2]], "r")
    assert [fix.plan.site.line for fix, _ in result.refused] == [2]
    assert result.text.endswith("if x.any():\n    print(x)\n    logger.info(x)\ndeferred(print)(y)\n")


def test_nothing_to_do() -> None:
    module = cst.parse_module("x = 1\n")
    assert rewrite.apply(module, [], "r").module is module
