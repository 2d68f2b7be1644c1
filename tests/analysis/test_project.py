"""What a dotted name stands for, across files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.analysis.conftest import Code

Make = Callable[..., Code]

PACKAGE = {
    "pkg/__init__.py": """
        from .inner import helper as exported
        from .inner.deep import *
        from . import other
    """,
    "pkg/other.py": "def other_function(): ...\nVALUE = 1\n",
    "pkg/inner/__init__.py": "from ..other import other_function\nfrom .deep import Deep, helper\n",
    "pkg/inner/deep.py": """
        import typing
        from .. import other
        if typing.TYPE_CHECKING:
            from .types import Only
        def helper(): ...
        class Deep:
            def method(self): ...
            alias = method
            class Nested:
                def inner(self): ...
    """,
    "pkg/inner/types.py": "class Only: ...\n",
    "use.py": """
        import pkg
        import pkg.inner.deep
        import pkg.inner as short
        from pkg import exported, other, Deep
        from pkg.inner import other_function
        from pkg.other import VALUE
        alias = exported
        chained = pkg.inner.deep.helper
    """,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exported", ("function", "pkg.inner.deep.helper")),
        ("alias", ("function", "pkg.inner.deep.helper")),
        ("chained", ("function", "pkg.inner.deep.helper")),
        ("pkg.exported", ("function", "pkg.inner.deep.helper")),
        ("pkg.inner.deep.helper", ("function", "pkg.inner.deep.helper")),
        ("short.helper", ("function", "pkg.inner.deep.helper")),
        ("other_function", ("function", "pkg.other.other_function")),
        ("pkg.other.other_function", ("function", "pkg.other.other_function")),
        ("other", ("module", "pkg.other")),
        ("Deep", ("class", "pkg.inner.deep.Deep")),
        ("Deep.method", ("function", "pkg.inner.deep.Deep.method")),
        ("pkg.Deep.method", ("function", "pkg.inner.deep.Deep.method")),
        ("Deep.missing", ("value", "pkg.inner.deep.Deep.missing")),
        ("VALUE", ("value", "pkg.other.VALUE")),
        ("nowhere", ("external", "nowhere")),
        ("pkg.nowhere", ("external", "pkg.nowhere")),
    ],
)
def test_names_are_followed_through_a_package(code: Make, name: str, expected: tuple[str, str]) -> None:
    assert code(PACKAGE).resolve(name, "use.py") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("other.VALUE", ("value", "pkg.other.VALUE")),
        ("Only", ("class", "pkg.inner.types.Only")),
        ("Deep.alias", ("function", "pkg.inner.deep.Deep.method")),
        ("Deep.Nested.inner", ("function", "pkg.inner.deep.Deep.Nested.inner")),
    ],
)
def test_relative_imports(code: Make, name: str, expected: tuple[str, str]) -> None:
    assert code(PACKAGE).resolve(name, "pkg/inner/deep.py") == expected


def test_imports_in_a_circle_end(code: Make) -> None:
    project = code({"a.py": "from b import x\nfrom b import *\n", "b.py": "from a import x\nfrom a import *\n"})
    assert project.resolve("x", "a.py")[0] == "external"
    assert project.resolve("y", "a.py")[0] == "external"


def test_classes_in_a_circle_end(code: Make) -> None:
    project = code({"a.py": "from b import B\nclass A(B): ...\n", "b.py": "from a import A\nclass B(A): ...\n"})
    assert project.project.method(project.symbol("class", "A", "a.py"), "f") is None


def test_a_package_hides_no_installed_module_of_another_name(code: Make) -> None:
    project = code({"pkg/__init__.py": "", "pkg/logging.py": "def warn(): ...\n", "pkg/m.py": "import logging\n"})
    assert project.resolve("logging.warn", "pkg/m.py") == ("external", "logging.warn")


def test_a_relative_import_may_be_called_like_the_standard_library(code: Make) -> None:
    project = code(
        {"pkg/__init__.py": "", "pkg/warnings.py": "def warn(): ...\n", "pkg/m.py": "from . import warnings\n"}
    )
    assert project.resolve("warnings.warn", "pkg/m.py") == ("function", "pkg.warnings.warn")


def test_star_imports_give_what_the_module_has(code: Make) -> None:
    project = code({"a.py": "def f(): ...\n", "m.py": "from a import *\nfrom torch import *\n"})
    assert project.resolve("f") == ("function", "a.f")
    assert project.resolve("relu") == ("external", "relu")


def test_an_own_definition_comes_before_an_import(code: Make) -> None:
    project = code({"a.py": "def f(): ...\n", "m.py": "from a import f\ndef f(): ...\n"})
    assert project.resolve("f") == ("function", "m.f")


def test_definitions_in_blocks_are_module_level(code: Make) -> None:
    project = code("try:\n    import x\nexcept ImportError:\n    def f(): ...\nif x:\n    class C: ...\n")
    assert project.resolve("f") == ("function", "m.f")
    assert project.resolve("C") == ("class", "m.C")


def test_methods_are_found_in_the_order_of_the_bases(code: Make) -> None:
    project = code(
        """
        class Root:
            def a(self): ...
            def b(self): ...
        class Left(Root):
            def a(self): ...
        class Right(Root):
            def b(self): ...
        class Both(Left, Right):
            def c(self): ...
        """
    )
    both = project.symbol("class", "Both")
    found = {name: project.project.method(both, name) for name in ("a", "c", "missing")}
    assert {name: symbol and symbol.name for name, symbol in found.items()} == {
        "a": "Left.a",
        "c": "Both.c",
        "missing": None,
    }
    above = project.project.method(both, "c", above=True)
    assert above is None


def test_the_class_of_an_attribute(code: Make) -> None:
    project = code(
        """
        class Part: ...
        class Base:
            def __init__(self):
                self.part = Part()
                self.plain = 1
        class Net(Base): ...
        """
    )
    found = project.project.attribute_class(project.symbol("class", "Net"), "part")
    assert found is not None
    assert found.name == "Part"
    assert project.project.attribute_class(project.symbol("class", "Net"), "plain") is None


def test_subclasses_are_known_across_files(code: Make) -> None:
    project = code(
        {
            "a.py": "class A: ...\n",
            "b.py": "from a import A\nclass B(A): ...\n",
            "c.py": "import b\nclass C(b.B): ...\n",
        }
    )
    below = project.project.subclasses[project.folder / "a.py", "A"]
    assert sorted(symbol.name for symbol in below) == ["B", "C"]
