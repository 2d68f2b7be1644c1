"""What runs inside a compiled frame, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.analysis.conftest import Code

Make = Callable[..., Code]

HEAD = "import functools\nimport torch\nimport torch as th\nfrom torch import nn\nfrom torch import compile\n"


@pytest.mark.parametrize(
    "program",
    [
        "@torch.compile\ndef f(x): ...",
        "@th.compile\ndef f(x): ...",
        "@compile\ndef f(x): ...",
        "@torch.compile(dynamic=True)\ndef f(x): ...",
        "@functools.partial(torch.compile, dynamic=True)\ndef f(x): ...",
        "@torch._dynamo.optimize('eager')\ndef f(x): ...",
        "def f(x): ...\ng = torch.compile(f)",
        "def f(x): ...\nf = torch.compile(f)",
        "def f(x): ...\ng = torch.compile(model=f)",
        "def f(x): ...\ng = functools.partial(torch.compile, f)()",
        "def f(x): ...\ng = torch.compile(f) if 1 else f",
        "def f(x): ...\nif 1:\n    g = torch.compile(f)",
        "def f(x): ...\ndef main():\n    return torch.compile(f)",
        "def f(x): ...\ndef main():\n    torch.compile(f)(1)",
        "def f(x): ...\ntorch.export.export(f, ())",
        "@torch.compile\ndef g(x):\n    return f(x)\ndef f(x): ...",
        "@torch.compile\ndef g(x):\n    return map(f, x)\ndef f(x): ...",
        "@torch.compile\ndef g(x, call=lambda y: f(y)):\n    return call(x)\ndef f(x): ...",
        "def a(x):\n    return f(x)\n@torch.compile\ndef g(x):\n    return a(x)\ndef f(x): ...",
    ],
)
def test_functions_that_are_compiled(code: Make, program: str) -> None:
    assert code(HEAD + program).confidence("f") == "definite"


@pytest.mark.parametrize(
    ("program", "function"),
    [
        ("class N(nn.Module):\n    def forward(self, x): ...", "N.forward"),
        ("class N(th.nn.Module):\n    def forward(self, x): ...", "N.forward"),
        ("class N(nn.Sequential):\n    def forward(self, x): ...", "N.forward"),
        ("class B(nn.Module): ...\nclass N(B):\n    def forward(self, x): ...", "N.forward"),
        (
            ("class N(nn.Module):\n    def __call__(self, x): ...\n    __call__ = None\n    def forward(self): ..."),
            "N.forward",
        ),
        ("class N(nn.Module):\n    def forward(self, x):\n        return self.f(x)\n    def f(self, x): ...", "N.f"),
        (
            (
                "class N(nn.Module):\n"
                "    def forward(self, x):\n"
                "        return self.f\n"
                "    @property\n"
                "    def f(self): ..."
            ),
            "N.f",
        ),
        (
            (
                "class N(nn.Module):\n"
                "    def forward(self, x):\n"
                "        return N.f(x)\n"
                "    @staticmethod\n"
                "    def f(x): ..."
            ),
            "N.f",
        ),
        (
            (
                "class N(nn.Module):\n"
                "    def forward(self, x):\n"
                "        return self.f(x)\n"
                "    @classmethod\n"
                "    def f(cls, x): ..."
            ),
            "N.f",
        ),
        (
            ("class N(nn.Module):\n    def forward(self, x):\n        def f(): ...\n        return f()"),
            "N.forward.<locals>.f",
        ),
        ("@torch.compile\nclass N:\n    def __call__(self, x): ...", "N.__call__"),
        ("class N:\n    @torch.compile\n    def f(self, x): ...", "N.f"),
        ("class N:\n    def __init__(self):\n        self.g = torch.compile(self.f)\n    def f(self, x): ...", "N.f"),
        ("class N:\n    def f(self, x): ...\nn = N()\ng = torch.compile(n.f)", "N.f"),
        ("class N:\n    def __call__(self, x): ...\nn = N()\ng = torch.compile(n)", "N.__call__"),
        ("class N:\n    def __call__(self, x): ...\ng = torch.compile(N())", "N.__call__"),
        (
            (
                "class P:\n"
                "    def __call__(self, x): ...\n"
                "class N:\n"
                "    def __init__(self):\n"
                "        self.p = P()\n"
                "        self.g = torch.compile(self.p)"
            ),
            "P.__call__",
        ),
        (
            (
                "class P:\n"
                "    def __call__(self, x): ...\n"
                "class N(nn.Module):\n"
                "    def __init__(self):\n"
                "        self.p = P()\n"
                "    def forward(self, x):\n"
                "        return self.p(x)"
            ),
            "P.__call__",
        ),
        (
            (
                "class P:\n"
                "    def f(self, x): ...\n"
                "class N(nn.Module):\n"
                "    def __init__(self):\n"
                "        self.p = P()\n"
                "    def forward(self, x):\n"
                "        return self.p.f(x)"
            ),
            "P.f",
        ),
        ("class P:\n    def __init__(self): ...\n@torch.compile\ndef g(x):\n    return P()", "P.__init__"),
        ("class P:\n    def f(self): ...\n@torch.compile\ndef g(x, p: P):\n    return p.f()", "P.f"),
        ("class P:\n    def f(self): ...\n@torch.compile\ndef g(x, p: 'P | None' = None):\n    return p.f()", "P.f"),
        ("class P:\n    def f(self): ...\n@torch.compile\ndef g(x):\n    p = P()\n    return p.f()", "P.f"),
        (
            (
                "class P:\n"
                "    def f(self): ...\n"
                "class Q(P):\n"
                "    def f(self): ...\n"
                "@torch.compile\n"
                "def g(x, p: P):\n"
                "    return p.f()"
            ),
            "Q.f",
        ),
        (
            (
                "class B(nn.Module):\n"
                "    def forward(self, x):\n"
                "        return self.f(x)\n"
                "    def f(self, x): ...\n"
                "class N(B):\n"
                "    def f(self, x): ..."
            ),
            "N.f",
        ),
        (
            (
                "class B(nn.Module):\n"
                "    def f(self, x): ...\n"
                "class N(B):\n"
                "    def forward(self, x):\n"
                "        return super().f(x)"
            ),
            "B.f",
        ),
        (
            (
                "class Mixin:\n"
                "    def f(self, x): ...\n"
                "class N(Mixin, nn.Module):\n"
                "    def forward(self, x):\n"
                "        return self.f(x)"
            ),
            "Mixin.f",
        ),
        (
            (
                "def deco(g):\n"
                "    def wrapper(*a): ...\n"
                "    return wrapper\n"
                "class N(nn.Module):\n"
                "    @deco\n"
                "    def forward(self, x): ..."
            ),
            "deco.<locals>.wrapper",
        ),
        (
            (
                "def deco(n):\n"
                "    def outer(g):\n"
                "        @functools.wraps(g)\n"
                "        def wrapper(*a): ...\n"
                "        return wrapper\n"
                "    return outer\n"
                "@torch.compile\n"
                "@deco(1)\n"
                "def f(x): ..."
            ),
            "deco.<locals>.outer.<locals>.wrapper",
        ),
        (
            (
                "def deco(g=None):\n"
                "    def outer(g):\n"
                "        def wrapper(*a): ...\n"
                "        return wrapper\n"
                "    if g:\n"
                "        return outer(g)\n"
                "    return outer\n"
                "@torch.compile\n"
                "@deco\n"
                "def f(x): ..."
            ),
            "deco.<locals>.outer.<locals>.wrapper",
        ),
    ],
)
def test_methods_and_wrappers_that_are_reached(code: Make, program: str, function: str) -> None:
    assert code(HEAD + program).confidence(function) == "definite"


@pytest.mark.parametrize(
    ("program", "function"),
    [
        ("def f(x): ...", "f"),
        ("class N(nn.Module):\n    def __init__(self): ...\n    def forward(self, x): ...", "N.__init__"),
        ("class N(nn.Module):\n    def extra_repr(self): ...\n    def forward(self, x): ...", "N.extra_repr"),
        ("class N:\n    def forward(self, x): ...", "N.forward"),
        ("class N(nn.Parameter):\n    def forward(self, x): ...", "N.forward"),
        ("class nn:\n    class Module: ...\nclass N(nn.Module):\n    def forward(self, x): ...", "N.forward"),
        ("@torch.compiler.disable\ndef f(x: torch.Tensor): ...\n@torch.compile\ndef g(x):\n    return f(x)", "f"),
        ("@torch._dynamo.disable(recursive=False)\ndef f(x: torch.Tensor): ...", "f"),
        (
            ("def f(x: torch.Tensor): ...\nf2 = torch.compiler.disable(f)\n@torch.compile\ndef g(x):\n    return f(x)"),
            "f",
        ),
        ("@torch.compiler.allow_in_graph\ndef f(x: torch.Tensor): ...", "f"),
        ("@torch.compiler.assume_constant_result\ndef f(x: torch.Tensor): ...", "f"),
        ("@torch.library.custom_op('a::b', mutates_args=())\ndef f(x: torch.Tensor): ...", "f"),
        ("@torch.compiler.disable\ndef g(x: torch.Tensor):\n    def f(x: torch.Tensor): ...", "g.<locals>.f"),
        ("@torch.compile\ndef g(x):\n    if not torch.compiler.is_compiling():\n        f(x)\ndef f(x): ...", "f"),
        (
            (
                "@torch.compile\n"
                "def g(x):\n"
                "    if torch.compiler.is_compiling():\n"
                "        return x\n"
                "    f(x)\n"
                "def f(x): ..."
            ),
            "f",
        ),
        (
            (
                "@torch.compile\n"
                "def g(x):\n"
                "    if torch.compiler.is_compiling():\n"
                "        return x\n"
                "    else:\n"
                "        f(x)\n"
                "def f(x): ..."
            ),
            "f",
        ),
        ("@torch.compile\ndef g(x, f):\n    return f(x)\ndef f(x): ...", "f"),
        ("@torch.compile\ndef g(x):\n    f = 1\n    return f(x)\ndef f(x): ...", "f"),
        ("def f(x: torch.Tensor, model):\n    model(x).backward()", "f"),
        ("def f(x: torch.Tensor, model):\n    torch.compile(model)", "f"),
        ("def f(x: torch.Tensor):\n    torch.save(x, 'a')", "f"),
        ("def test_f(x: torch.Tensor): ...", "test_f"),
        ("class ImageProcessor:\n    def f(self, x: torch.Tensor): ...", "ImageProcessor.f"),
        ("def only_when_made(g):\n    return g\n@torch.compile\n@only_when_made\ndef f(x): ...", "only_when_made"),
    ],
)
def test_what_no_region_holds(code: Make, program: str, function: str) -> None:
    assert code(HEAD + program).confidence(function) is None


@pytest.mark.parametrize(
    "program",
    [
        "def f(x: torch.Tensor): ...",
        "def f(x: 'torch.Tensor'): ...",
        "def f(x: torch.Tensor | None = None): ...",
        "def f(x):\n    return x.unsqueeze(0)",
        "from torch import Tensor\ndef f(a, *, x: Tensor): ...",
    ],
)
def test_a_function_on_tensors_that_no_entry_reaches_is_likely(code: Make, program: str) -> None:
    assert code(HEAD + program).confidence("f") == "likely"


def test_a_file_that_does_not_import_torch_has_no_likely_regions(code: Make) -> None:
    assert code("def f(x):\n    return x.unsqueeze(0)").confidence("f") is None


@pytest.mark.parametrize("file", ["test_m.py", "m_test.py", "conftest.py", "convert_m.py", "tests/m.py"])
def test_files_that_nobody_compiles_have_no_likely_regions(code: Make, file: str) -> None:
    assert code({file: HEAD + "def f(x: torch.Tensor): ..."}).confidence("f", file) is None


def test_calls_are_followed_across_files(code: Make) -> None:
    project = code(
        {
            "pkg/__init__.py": "",
            "pkg/mixin.py": "from .deep import helper\nclass Mixin:\n    def f(self, x):\n        return helper(x)\n",
            "pkg/deep.py": "def helper(x): ...\ndef other(x): ...\n",
            "pkg/wrap.py": "def deco(g):\n    def wrapper(*a): ...\n    return wrapper\n",
            "pkg/m.py": "from torch import nn\nfrom .mixin import Mixin\nfrom . import wrap\n"
            "class N(Mixin, nn.Module):\n    @wrap.deco\n    def forward(self, x):\n        return self.f(x)\n",
        }
    )
    assert project.reached("pkg/mixin.py") == {"Mixin.f"}
    assert project.reached("pkg/deep.py") == {"helper"}
    assert project.reached("pkg/wrap.py") == {"deco.<locals>.wrapper"}


@pytest.mark.parametrize(
    ("program", "entry"),
    [
        ("@torch.compile\ndef f(x): ...", "`f` is compiled"),
        ("def f(x): ...\ng = torch.compile(f)", "`torch.compile(f)` at m.py:7"),
        ("class N(nn.Module):\n    def forward(self, x):\n        f(x)\ndef f(x): ...", "`N.forward`"),
    ],
)
def test_the_entry_says_why(code: Make, program: str, entry: str) -> None:
    region = code(HEAD + program).region("f")
    assert region is not None
    assert region.entry == entry


@pytest.mark.parametrize(
    ("program", "function"),
    [
        ("@torch.jit.script\ndef f(x): ...", "f"),
        ("@torch.jit.script_if_tracing\ndef f(x): ...", "f"),
        ("def f(x): ...\ng = torch.jit.script(f)", "f"),
        ("@torch.jit.script\ndef g(x):\n    return f(x)\ndef f(x): ...", "f"),
        ("class N(nn.Module):\n    def forward(self, x): ...\nn = torch.jit.script(N())", "N.forward"),
        ("class N(nn.Module):\n    def forward(self, x): ...\nn = N()\nm = torch.jit.script(n)", "N.forward"),
        (
            (
                "class P(nn.Module):\n"
                "    def forward(self, x): ...\n"
                "class N(nn.Module):\n"
                "    def __init__(self):\n"
                "        self.p = P()\n"
                "    def forward(self, x):\n"
                "        return self.p(x)\n"
                "n = torch.jit.script(N())"
            ),
            "P.forward",
        ),
    ],
)
def test_what_torchscript_compiles(code: Make, program: str, function: str) -> None:
    project = code(HEAD + program)
    assert function in project.regions[project.folder / "m.py"].scripted


def test_tracing_is_no_scripting(code: Make) -> None:
    project = code(HEAD + "class N(nn.Module):\n    def forward(self, x): ...\nn = torch.jit.trace(N(), 1)")
    assert not project.regions[project.folder / "m.py"].scripted


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ("try:\n        f(x)\n    except E: ...", True),
        ("try:\n        return g(x)\n    except E: ...", True),
        ("try: ...\n    except E:\n        f(x)", False),
        ("try: ...\n    except E: ...\n    else:\n        f(x)", False),
        ("try:\n        f(x)\n    finally: ...", False),
        ("with contextlib.suppress(E):\n        f(x)", True),
        ("with torch.no_grad():\n        f(x)", False),
        ("f(x)", False),
    ],
)
def test_what_runs_inside_a_try_of_a_caller(code: Make, body: str, marked: bool) -> None:
    program = f"import contextlib\ndef f(x): ...\ndef g(x):\n    f(x)\n@torch.compile\ndef step(x):\n    {body}\n"
    project = code(HEAD + program)
    assert (project.regions[project.folder / "m.py"].in_try.get("f") == "step") == marked


@pytest.mark.parametrize(("handler", "marked"), [("except E: ...", True), ("finally: ...", False)])
@pytest.mark.parametrize("decorator", ["deco", "made(1)"])
def test_what_a_decorator_tries(code: Make, decorator: str, handler: str, marked: bool) -> None:
    program = f"""
def deco(call):
    def wrapper(*a):
        try:
            return call(*a)
        {handler}
    return wrapper
def made(n):
    return deco
def inner(x): ...
@torch.compile
@{decorator}
def f(x):
    inner(x)
"""
    project = code(HEAD + program)
    in_try = project.regions[project.folder / "m.py"].in_try
    assert ("f" in in_try, "inner" in in_try) == (marked, marked)
