"""Names by binding, not by spelling."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.analysis.conftest import Code

Make = Callable[..., Code]


@pytest.mark.parametrize(
    ("imports", "name", "expected"),
    [
        ("import warnings", "warnings.warn", "warnings.warn"),
        ("import warnings as w", "w.warn", "warnings.warn"),
        ("from warnings import warn", "warn", "warnings.warn"),
        ("from warnings import warn as tell", "tell", "warnings.warn"),
        ("import torch.nn.functional", "torch.nn.functional.relu", "torch.nn.functional.relu"),
        ("import torch.nn.functional as F", "F.relu", "torch.nn.functional.relu"),
        ("import os, sys", "sys.stdout.write", "sys.stdout.write"),
        ("", "print", "builtins.print"),
        ("import builtins", "builtins.print", "builtins.print"),
        ("from builtins import print as say", "say", "builtins.print"),
        ("import warnings\ntell = warnings.warn", "tell", "warnings.warn"),
        ("from .x import print", "print", "x.print"),
        ("def print(): ...", "print", "m.print"),
        ("class print: ...", "print", "m.print"),
        ("print = object()", "print", "m.print"),
        ("from x import *", "print", None),
        ("for print in (): ...", "print", "m.print"),
        ("for a in b:\n    print = a()", "print", "m.print"),
        ("with open('f') as print: ...", "print", "m.print"),
        ("try: import x as print\nexcept E: pass", "print", "x"),
        ("unknown = 1", "other", None),
    ],
)
def test_module_level_names(code: Make, imports: str, name: str, expected: str | None) -> None:
    assert code(f"{imports}\ndef f(): ...\n").qualified(name, "f") == expected


@pytest.mark.parametrize(
    "body",
    [
        "print = 1",
        "print: int",
        "print += 1",
        "for print in (): ...",
        "with a as print: ...",
        "with a as (print, b): ...",
        "(b, [print, *c]) = a",
        "if (print := 1): ...",
        "[print := 1 for b in a]",
        "try: ...\nexcept E as print: ...",
        "def print(): ...",
        "class print: ...",
        "import os as print",
        "from os import path as print",
        "del print",
        "match a:\n    case [print]: ...",
        "match a:\n    case [*print]: ...",
        "match a:\n    case {'k': print}: ...",
        "match a:\n    case {**print}: ...",
        "match a:\n    case 1 as print: ...",
        "if a:\n    while b:\n        print = 1",
        "try: ...\nfinally:\n    print = 1",
    ],
)
def test_a_name_bound_anywhere_in_a_function_is_its_own(code: Make, body: str) -> None:
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    project = code(f"def f(a, b):\n{indented}\n    def inner():\n        ...\n")
    assert project.qualified("print", "f") != "builtins.print"
    assert project.qualified("print", "f.<locals>.inner") != "builtins.print"


@pytest.mark.parametrize("parameters", ["print", "*print", "**print", "*, print", "print, /", "print=1"])
def test_a_parameter_is_a_value(code: Make, parameters: str) -> None:
    assert code(f"def f({parameters}): ...").qualified("print", "f") is None


@pytest.mark.parametrize(
    "body",
    [
        "[print for print in a]",
        "{print: 1 for print in a}",
        "lambda print: print",
        "class C:\n        print = 1",
        "pass",
    ],
)
def test_scopes_inside_a_function_keep_their_names(code: Make, body: str) -> None:
    assert code(f"def f(a):\n    {body}\n").qualified("print", "f") == "builtins.print"


def test_a_function_inside_a_function_sees_its_imports(code: Make) -> None:
    project = code("def f():\n    from warnings import warn as w\n    def inner(): ...\n")
    assert project.qualified("w", "f.<locals>.inner") == "warnings.warn"
    assert project.qualified("w", "f") == "warnings.warn"


def test_global_and_nonlocal_names_are_those_of_outside(code: Make) -> None:
    project = code(
        """
        import warnings
        def f():
            global warnings
            warnings = warnings
            x = 1
            def inner():
                nonlocal x
                x = 2
        """
    )
    assert project.qualified("warnings.warn", "f") == "warnings.warn"
    inner = project.scope("f.<locals>.inner")
    assert "x" not in inner.local
    assert inner.owner("x") is inner.outer


def test_calls_and_subscripts_are_values(code: Make) -> None:
    project = code("import sys\ndef f(): ...")
    assert project.qualified("sys.modules['a'].print", "f") is None
    assert project.qualified("get().print", "f") is None


def test_methods_of_a_class_do_not_see_its_body(code: Make) -> None:
    assert code("class C:\n    print = 1\n    def f(self): ...").qualified("print", "C.f") == "builtins.print"
