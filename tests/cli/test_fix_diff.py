"""`graphmend fix --diff`: a patch, and nothing written."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.project import CLEAN, FIXED, MODEL, Project, compiled


def test_diff(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("fix", "--diff")
    assert outcome.code == 1
    assert outcome.lines[:2] == ["--- model.py", "+++ model.py"]
    assert [line for line in outcome.lines[2:] if line[0] in "+-"] == [
        "+from graphmend_lint.runtime import deferred",
        '-        print("shape", x.shape)',
        '+        deferred(print)("shape", x.shape)',
    ]
    assert outcome.errors == ["Would fix 1 in 1 files, 0 left."]
    assert project.read("model.py") == MODEL


def test_no_diff(project: Project) -> None:
    project.write("clean.py", CLEAN)
    outcome = project.run("fix", "--diff")
    assert (outcome.code, outcome.out) == (0, "")
    assert project.run("fix", "--diff", "-q").err == ""


def test_exit_zero(project: Project) -> None:
    project.write("model.py")
    assert project.run("fix", "--diff", "--exit-zero").code == 0


def test_diff_with_an_error(project: Project) -> None:
    project.write("model.py")
    project.write("broken.py", "def f(:\n")
    outcome = project.run("fix", "--diff")
    assert outcome.code == 2
    assert outcome.lines[0] == "--- model.py"
    assert outcome.errors[0] == "broken.py: error: line 1: invalid syntax"


LATIN = "# coding: latin-1\n" + compiled("# café", 'print("é")')


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("model.py", MODEL.encode()),
        ("package/deep/model.py", MODEL.encode()),
        ("with space.py", MODEL.encode()),
        ("crlf.py", MODEL.replace("\n", "\r\n").encode()),
        ("bom.py", b"\xef\xbb\xbf" + MODEL.encode()),
        ("utf8.py", compiled("# 漢字", 'print("🙂")').encode()),
        ("latin.py", LATIN.encode("latin-1")),
        ("no_final_newline.py", compiled('print("a")').rstrip("\n").encode()),
        ("form_feed.py", MODEL.replace("\n\nclass", "\n\x0c\nclass").encode()),
        ("tabs.py", MODEL.replace("    ", "\t").encode()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("tool", ["patch", "git"])
def test_patch_makes_what_fix_makes(project: Project, name: str, source: bytes, tool: str) -> None:
    command = {"patch": ["patch", "-p0", "--binary", "--fuzz=0"], "git": ["git", "apply", "-p0"]}[tool]
    path = project.write(name, source)
    patch = project.run("fix", "--diff", "-q", ".").raw
    assert project.raw(name) == source
    done = subprocess.run(command, input=patch, capture_output=True, cwd=project.folder, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    patched = path.read_bytes()
    assert patched != source
    path.write_bytes(source)
    project.run("fix", ".")
    assert path.read_bytes() == patched


def test_several_files_make_one_patch(project: Project) -> None:
    for name in ("a.py", "b/c.py"):
        project.write(name)
    patch = project.run("fix", "--diff", "-q").raw
    subprocess.run(["git", "apply", "-p0"], input=patch, cwd=project.folder, check=True)
    assert project.read("a.py") == project.read("b/c.py") == FIXED
