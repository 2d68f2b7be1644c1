"""The import line: a name that collides with nothing, in the place where an import sorter wants it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from graphmend_lint import rewrite
from graphmend_lint.rewrite import imports

RUNTIME = "graphmend_lint.runtime"
LINE = f"from {RUNTIME} import deferred\n"
BODY = '\n\ndef f():\n    print("a")\n'
FIXED = '\n\ndef f():\n    deferred(print)("a")\n'

PLACES = {
    "no import": ("", f"{LINE}"),
    "licence": ("# licence\n", f"# licence\n\n{LINE}"),
    "docstring": ('"""D."""\n', f'"""D."""\n\n{LINE}'),
    "future": (
        "from __future__ import annotations\n",
        f"from __future__ import annotations\n\n{LINE}",
    ),
    "torch alone": ("import torch\n", f"import torch\n{LINE}"),
    "before a later name": (
        "import torch\nfrom torch import nn\n",
        f"import torch\n{LINE}from torch import nn\n",
    ),
    "after an earlier name": (
        "import torch\nfrom accelerate import a\nfrom torch import nn\n",
        f"import torch\nfrom accelerate import a\n{LINE}from torch import nn\n",
    ),
    "opens the paragraph": (
        "import os\n\nfrom torch import nn\n",
        f"import os\n\n{LINE}from torch import nn\n",
    ),
    "comment above an import": (
        "import os\n\n# nn\nfrom torch import nn\n",
        f"import os\n\n{LINE}\n# nn\nfrom torch import nn\n",
    ),
    "stdlib alone": ("import os\nimport sys\n", f"import os\nimport sys\n\n{LINE}"),
    "before relative imports": (
        "import os\n\nfrom . import a\nfrom .b import c\n",
        f"import os\n\n{LINE}\nfrom . import a\nfrom .b import c\n",
    ),
    "relative imports alone": (
        '"""D."""\n\nfrom . import a\n',
        f'"""D."""\n\n{LINE}\nfrom . import a\n',
    ),
    "licence above relative imports": (
        "# licence\n\nfrom . import a\n",
        f"# licence\n\n{LINE}\nfrom . import a\n",
    ),
    "all sections": (
        "from __future__ import annotations\n\nimport os\n\nimport torch\n\nfrom .a import b\n",
        f"from __future__ import annotations\n\nimport os\n\nimport torch\n{LINE}\nfrom .a import b\n",
    ),
    "sorted within the section": (
        "from einops import rearrange\nimport torch\nfrom torch import nn\nimport triton\n",
        f"from einops import rearrange\n{LINE}import torch\nfrom torch import nn\nimport triton\n",
    ),
    "numbers": (
        "import torch\nfrom graphmend_lint2 import z\nfrom graphmend_lint10 import z\n",
        f"import torch\n{LINE}from graphmend_lint2 import z\nfrom graphmend_lint10 import z\n",
    ),
    "not in a condition, a try or a later block": (
        "import os\n\nimport torch\n\ntry:\n    import apex\nexcept A:\n    pass\n\nimport zlib\n",
        f"import os\n\nimport torch\n{LINE}\ntry:\n    import apex\nexcept A:\n    pass\n\nimport zlib\n",
    ),
    "with torch, not before it is prepared": (
        'import os\n\nos.environ["A"] = "1"\n\nimport torch\nfrom torch import nn\n',
        f'import os\n\nos.environ["A"] = "1"\n\nimport torch\n{LINE}from torch import nn\n',
    ),
    "under TYPE_CHECKING does not count": (
        f"from typing import TYPE_CHECKING\n\nimport torch\n\nif TYPE_CHECKING:\n    {LINE}",
        (
            f"from typing import TYPE_CHECKING\n\nimport torch\n"
            f"from {RUNTIME} import deferred as graphmend_deferred\n\nif TYPE_CHECKING:\n    {LINE}"
        ),
    ),
}


@pytest.mark.parametrize(("before", "after"), PLACES.values(), ids=PLACES.keys())
def test_place(apply: Any, before: str, after: str) -> None:
    fixed = FIXED.replace("deferred", "graphmend_deferred") if "graphmend_deferred" in after else FIXED
    assert apply(before + BODY, runtime=RUNTIME).text == after + fixed


@pytest.mark.parametrize(("before", "after"), PLACES.values(), ids=PLACES.keys())
def test_a_sorted_file_stays_sorted(before: str, after: str, tmp_path: Path) -> None:
    def is_sorted(text: str) -> bool:
        path = tmp_path / "snippet.py"
        path.write_text(text + BODY)
        command = [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--no-cache",
            "--select",
            "I",
            str(path),
        ]
        return subprocess.run(command, capture_output=True, check=False, cwd=tmp_path).returncode == 0

    pytest.importorskip("ruff")
    if not is_sorted(before):
        pytest.skip("not in the order of ruff's defaults before")
    assert is_sorted(after)


def test_first_party_runtime(apply: Any, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").touch()
    home = rewrite.Home.of(package / "model.py")
    before = "import torch\n\nfrom .a import b\n"
    line = "from mine.runtime import deferred\n"
    assert apply(before + BODY, runtime="mine.runtime", home=home).text == (
        f"import torch\n\n{line}\nfrom .a import b\n{FIXED}"
    )
    before = "import torch\n\nfrom mine.a import b\nfrom mine.z import c\n"
    assert apply(before + BODY, runtime="mine.runtime", home=home).text == (
        f"import torch\n\nfrom mine.a import b\n{line}from mine.z import c\n{FIXED}"
    )


MERGED = {
    "same statement": (f"from {RUNTIME} import when\n", f"from {RUNTIME} import deferred, when\n"),
    "in parentheses": (
        f"from {RUNTIME} import (\n    percent,\n    when,\n)\n",
        f"from {RUNTIME} import (\n    deferred,\n    percent,\n    when,\n)\n",
    ),
    "at the end": (f"from {RUNTIME} import a  # c\n", f"from {RUNTIME} import a, deferred  # c\n"),
    "at the end, in parentheses": (
        f"from {RUNTIME} import (\n    a,  # c\n    b,\n)\n",
        f"from {RUNTIME} import (\n    a,  # c\n    b,\n    deferred,\n)\n",
    ),
    "beside a comment": (
        f"from {RUNTIME} import (\n    a,  # c\n    b,  # d\n)\n",
        f"from {RUNTIME} import (\n    a,  # c\n    b,  # d\n    deferred,\n)\n",
    ),
    "there already": (LINE, LINE),
    "under another name": (
        f"from {RUNTIME} import deferred as later\n",
        f"from {RUNTIME} import deferred as later\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), MERGED.values(), ids=MERGED.keys())
def test_existing_import(apply: Any, before: str, after: str) -> None:
    name = "later" if " as later" in after else "deferred"
    assert apply(before + BODY, runtime=RUNTIME).text == after + FIXED.replace("deferred", name)


def test_relative_import_of_the_runtime(apply: Any) -> None:
    home = rewrite.Home("mine.models")
    before = "import torch\n\nfrom ..runtime import when\n"
    after = apply(before + BODY, runtime="mine.runtime", home=home).text
    assert after == "import torch\n\nfrom ..runtime import deferred, when\n" + FIXED


def test_long_runtime_name(apply: Any) -> None:
    runtime = "package_with_a_name.subpackage_with_a_name.module_with_a_name"
    text = apply('print("%s" % x)\nif x.any():\n    print(f"{x}")\n', runtime=runtime).text
    assert text.startswith(f"from {runtime} import (\n    deferred,\n    formatted,\n    percent,\n    when,\n)\n\n")


COLLISIONS = {
    "function": "def deferred(): ...\n",
    "parameter": "def g(deferred): ...\n",
    "local name": "def g():\n    deferred = 1\n",
    "global statement": "def g():\n    global deferred\n",
    "class": "class deferred: ...\n",
    "import": "import deferred\n",
    "from import": "from other import deferred\n",
    "alias": "import other as deferred\n",
    "import in a function": "def g():\n    from other import x as deferred\n",
    "handler": "try:\n    pass\nexcept E as deferred:\n    pass\n",
    "comprehension": "[deferred for deferred in ()]\n",
    "match": "match x:\n    case [*deferred]: ...\n    case {**deferred}: ...\n    case a as deferred: ...\n",
    "use of a name from elsewhere": "def g():\n    return deferred\n",
    "star import": "from other import *\n",
}


@pytest.mark.parametrize("source", COLLISIONS.values(), ids=COLLISIONS.keys())
def test_taken_name(apply: Any, source: str) -> None:
    text = apply(f"import torch\n{source}\n\n{BODY}", runtime=RUNTIME).text
    assert f"from {RUNTIME} import deferred as graphmend_deferred\n" in text
    assert '    graphmend_deferred(print)("a")\n' in text


def test_attributes_and_keywords_are_no_names(apply: Any) -> None:
    text = apply(f"x.deferred = f(deferred=1)\n{BODY}", runtime=RUNTIME).text
    assert text.startswith(LINE)


def test_imported_name_that_a_function_shadows(apply: Any) -> None:
    text = apply(f"{LINE}\n\ndef g(deferred): ...\n{BODY}", runtime=RUNTIME).text
    assert text.startswith(f"from {RUNTIME} import deferred\nfrom {RUNTIME} import deferred as graphmend_deferred\n")


def test_taken_fresh_name(apply: Any) -> None:
    text = apply(f"deferred = graphmend_deferred = 1\n{BODY}", runtime=RUNTIME).text
    assert "import deferred as graphmend_deferred_2\n" in text


def test_torch_for_a_guard(apply: Any) -> None:
    module = imports.add(cst.parse_module("from torch import nn\n"), {"torch": "torch"}, RUNTIME, rewrite.Home())
    assert module.code == "import torch\nfrom torch import nn\n"
