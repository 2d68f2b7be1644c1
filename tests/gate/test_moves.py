"""A finding that has moved is known, and one that only looks like it is new.

Each case has a twin that differs in one thing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.cli.project import FIXED, MODEL, Project

LINE = '        print("shape", x.shape)\n'
TAIL = MODEL.replace("class Head", "class Tail").partition("\n\n\n")[2]


@pytest.fixture
def known(project: Project) -> Project:
    project.write("model.py")
    assert project.run("check", "--update-baseline").code == 0
    return project


def check(project: Project) -> tuple[int, int, int]:
    """New, known and fixed ones of a run; the exit code says whether there are new ones."""
    outcome = project.run("check", "--output-format", "json", "-q")
    assert not outcome.err
    assert outcome.code == (1 if outcome.json else 0)
    text = project.run("check", "--exit-zero").out
    known = int(match[1]) if (match := re.search(r"\((\d+) known[,)]", text)) else 0
    fixed = next((int(line.split()[0]) for line in text.splitlines() if " of the baseline " in line), 0)
    return len(outcome.json), known, fixed


NOTHING_NEW = (0, 1, 0)
ONE_NEW_ONE_FIXED = (1, 0, 1)
ONE_NEW_ONE_KNOWN = (1, 1, 0)


# -- in the same place -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"# a\n# comment\n\n{MODEL}",
        MODEL.replace(LINE, f"        x = x + 1\n\n{LINE}"),
        MODEL.replace(LINE, '        print(  # as seen\n            "shape",\n            x.shape,\n        )\n'),
        MODEL.replace('"shape"', "'shape'"),
        MODEL.replace('"shape"', "'sh' 'ape'"),
        MODEL.replace(LINE, f"        if x.shape[0]:\n    {LINE}"),
        MODEL.replace("\n", "\r\n"),
        "\ufeff" + MODEL,
        MODEL + "\n\ndef more() -> None:\n    pass\n",
    ],
    ids=["comment", "moved", "wrapped", "quotes", "adjacent", "nested", "crlf", "bom", "more code"],
)
def test_layout_and_lines_do_not_count(known: Project, text: str) -> None:
    known.write("model.py", text)
    assert check(known) == NOTHING_NEW


def test_reformatting_does_not_count(project: Project) -> None:
    ugly = MODEL.replace(LINE, "        print ( 'shape' ,  x . shape ) ; y = ( x )\n")
    ugly = ugly.replace("torch.relu(x)", "torch . relu ( y )")
    project.write("model.py", ugly)
    project.run("check", "--update-baseline")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", "model.py"], check=True)
    assert project.read("model.py") != ugly
    assert check(project) == NOTHING_NEW


def test_line_ends_of_the_baseline_do_not_count(known: Project) -> None:
    """Git may check it out with other ones; an update that changes nothing leaves it as it is."""
    crlf = known.raw("graphmend-baseline.json").replace(b"\n", b"\r\n")
    known.write("graphmend-baseline.json", crlf)
    assert check(known) == NOTHING_NEW
    known.run("check", "--update-baseline")
    assert known.raw("graphmend-baseline.json") == crlf


# -- files -------------------------------------------------------------------------------------------------------------


def test_renamed_file(known: Project) -> None:
    (known.folder / "model.py").rename(known.folder / "renamed.py")
    assert check(known) == NOTHING_NEW


def test_renamed_folder_and_reformatted(project: Project) -> None:
    project.write("old/model.py")
    project.run("check", "--update-baseline")
    (project.folder / "old").rename(project.folder / "new")
    project.write("new/model.py", "\n\n" + MODEL.replace('"shape"', "'shape'"))
    assert check(project) == NOTHING_NEW


def test_copied_file(known: Project) -> None:
    known.write("copied.py")
    assert check(known) == ONE_NEW_ONE_KNOWN
    assert "copied.py:7:9" in known.run("check").lines[0]


def test_an_update_follows_a_rename(known: Project) -> None:
    (known.folder / "model.py").rename(known.folder / "renamed.py")
    for option in ("--prune-baseline", "--update-baseline"):
        known.run("check", option)
        (entry,) = json.loads(known.read("graphmend-baseline.json"))["findings"]
        assert entry["path"] == "renamed.py"


def test_swapped_files(project: Project) -> None:
    """Each name still has a file, with the other's class in it."""
    project.write("a.py")
    project.write("b.py", MODEL.replace("class Head", "class Tail").replace("x.shape", "x.dtype"))
    project.run("check", "--update-baseline")
    a, b = project.raw("a.py"), project.raw("b.py")
    project.write("a.py", b)
    project.write("b.py", a)
    assert check(project) == (0, 2, 0)


# -- functions ---------------------------------------------------------------------------------------------------------


def test_function_moved_to_another_file(known: Project) -> None:
    known.write("model.py", "import torch\n")
    known.write("other.py")
    assert check(known) == NOTHING_NEW


def test_break_moved_to_another_file_alone(known: Project) -> None:
    """Fixed here and written anew there: the function here still exists."""
    known.write("model.py", FIXED)
    known.write("other.py")
    assert check(known) == ONE_NEW_ONE_FIXED


def test_class_renamed(known: Project) -> None:
    known.write("model.py", MODEL.replace("class Head", "class Tail"))
    assert check(known) == NOTHING_NEW


def test_break_moved_to_another_class(known: Project) -> None:
    known.write("model.py", f"{FIXED}\n\n{TAIL}")
    assert check(known) == ONE_NEW_ONE_FIXED


def test_class_renamed_and_moved(known: Project) -> None:
    known.write("model.py", "import torch\n")
    known.write("other.py", MODEL.replace("class Head", "class Tail"))
    assert check(known) == NOTHING_NEW


def test_another_function_in_another_file(known: Project) -> None:
    """Neither the file nor the class nor the function is the same: nothing says that it is the old one."""
    known.write("model.py", "import torch\n")
    other = "import torch\n\n\n@torch.compile\ndef step(x: torch.Tensor) -> torch.Tensor:\n"
    known.write("other.py", f"{other}{LINE[4:]}    return x\n")
    assert check(known) == ONE_NEW_ONE_FIXED


def test_method_made_a_function(known: Project) -> None:
    known.write("model.py", "import torch\n")
    other = "import torch\n\n\n@torch.compile\ndef forward(x: torch.Tensor) -> torch.Tensor:\n"
    known.write("other.py", f"{other}{LINE[4:]}    return x\n")
    assert check(known) == NOTHING_NEW


def test_moved_function_with_one_more(known: Project) -> None:
    known.write("model.py", "import torch\n")
    known.write("other.py", MODEL.replace(LINE, LINE * 2))
    assert check(known) == ONE_NEW_ONE_KNOWN


def test_one_moved_function_explains_one(known: Project) -> None:
    known.write("model.py", "import torch\n")
    known.write("a.py")
    known.write("b.py")
    assert check(known) == ONE_NEW_ONE_KNOWN


def test_what_stays_is_matched_first(project: Project) -> None:
    """An entry in its place is not spent on a function that has moved."""
    project.write("a.py")
    project.write("b.py")
    project.run("check", "--update-baseline")
    (project.folder / "a.py").unlink()
    project.write("c.py")
    assert check(project) == (0, 2, 0)


def test_a_file_that_cannot_be_parsed_has_lost_nothing(known: Project) -> None:
    known.write("other.py")
    known.write("model.py", MODEL + "def f(:\n")
    outcome = known.run("check")
    assert outcome.code == 2
    assert outcome.lines[0].startswith("other.py:7:9")
    assert "fixed" not in outcome.lines[-1]


def test_suppressed_findings_are_fixed(known: Project) -> None:
    known.write("model.py", MODEL.replace(LINE, f"{LINE.rstrip()}  # noqa: GM201\n"))
    assert check(known) == (0, 0, 1)


# -- comments ----------------------------------------------------------------------------------------------------------


def test_unused_suppressions_are_known_by_their_comment(project: Project) -> None:
    """They are no expressions: the comment and the function around it are what they are known by."""
    project.configure("report-unused-suppressions = true")
    unused = MODEL.replace(LINE, "        # noqa: GM202\n        x = x + 1\n")
    project.write("model.py", unused)
    project.run("check", "--update-baseline")
    project.write("model.py", unused.replace("        # noqa", "        x = x + 2\n\n        # noqa"))
    assert check(project) == NOTHING_NEW
    project.write("model.py", unused.replace("x = x + 1\n", "x = x + 1  # noqa: GM203\n"))
    assert check(project) == ONE_NEW_ONE_KNOWN
