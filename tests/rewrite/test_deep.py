"""Files that nest deeper than Python's stack allows by default."""

from __future__ import annotations

import sys

import libcst as cst
import pytest

from graphmend_lint import rewrite
from graphmend_lint.rewrite.deep import MAX_BRACKETS, bracket_depth, with_deep_stack
from tests.rewrite.conftest import Planner

DEEP = {
    "concatenated strings": "x = (\n" + "    'a'\n" * 1500 + ")\n",
    "sum": "x = " + " + ".join(["a"] * 1500) + "\n",
    "elif": "if a:\n    pass\n" + "elif b:\n    pass\n" * 400,
    "chain": "x = a" + ".b()" * 600 + "\n",
    "brackets": "x = " + "[" * 80 + "]" * 80 + "\n",
}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP.keys())
def test_deep_file(deep: str) -> None:
    source = deep + "print(x)\n"

    def run() -> str:
        fixes = Planner().plan("\n" * deep.count("\n") + "print(x)\n")
        return rewrite.apply(cst.parse_module(source), fixes, "r").text

    assert with_deep_stack(run).endswith(deep + "deferred(print)(x)\n")


def test_the_limit_is_restored() -> None:
    before = sys.getrecursionlimit()
    assert with_deep_stack(sys.getrecursionlimit) > before
    assert sys.getrecursionlimit() == before


def test_errors_come_through() -> None:
    with pytest.raises(ZeroDivisionError):
        with_deep_stack(lambda: 1 // 0)


def test_bracket_depth() -> None:
    assert bracket_depth("f(a[{1: (2,)}], [])") == 4
    assert bracket_depth(")))((") == 2
    assert bracket_depth("(" * 5000) > MAX_BRACKETS
