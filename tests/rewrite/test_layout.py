"""What a fix looks like. The cases stand in layout_cases.txt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def _cases() -> Iterator[tuple[str, str, str]]:
    text = (Path(__file__).parent / "layout_cases.txt").read_text(encoding="utf-8")
    for part in text.split("\n=== ")[1:]:
        name, _, case = part.partition("\n")
        before, _, after = case.partition("--- becomes\n")
        yield name, before, after.rstrip("\n") + "\n"


CASES = {name: (before, after) for name, before, after in _cases()}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES.keys())
def test_form(apply: Any, before: str, after: str) -> None:
    result = apply(before)
    assert not result.refused
    line, _, text = result.text.partition("\n")
    assert line.startswith("from stub_runtime import ")
    assert text.lstrip("\n") == after


GUARD = "torch.compiler.is_compiling()"
GUARDED = {
    "statement": (
        "def f():\n    # above\n    print(\n        1\n    )  # beside\n    g()\n",
        (f"def f():\n    # above\n    if not {GUARD}:\n        print(\n            1\n        )  # beside\n    g()\n"),
    ),
    "suite": (
        "if n: print(1)  # c\n",
        f"if n:\n    if not {GUARD}:\n        print(1)  # c\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), GUARDED.values(), ids=GUARDED.keys())
def test_guard(apply: Any, before: str, after: str) -> None:
    assert apply(before, guard=GUARD).text == after


def test_guard_beside_another_statement(apply: Any) -> None:
    result = apply("a = 1; print(a)\n", guard=GUARD)
    assert result.text == "a = 1; print(a)\n"
    assert [str(refusal) for _, refusal in result.refused] == ["another statement stands on the line"]
    assert not result.refused[0][1].defect


def test_width_is_that_of_the_file(apply: Any) -> None:
    call = "    logger.info('" + "a" * 70 + "')\n"
    filler = "".join(f"    x{i} = {'1' * 90}\n" for i in range(100))
    result = apply(f"def f(logger):\n{call}{filler}")
    assert f"    deferred(logger).info('{'a' * 70}')\n" in result.text
