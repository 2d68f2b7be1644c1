"""`-`: a source from stdin, in the context of the project that it would be a file of."""

from __future__ import annotations

import pytest

from tests.cli.project import DECLINED, FIXED, MODEL, Project, compiled


def test_lint(project: Project) -> None:
    outcome = project.run("lint", "-", stdin=MODEL)
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.lines[0].startswith("<stdin>:7:9: GM201 [*] ")


def test_lint_clean(project: Project) -> None:
    assert project.run("lint", "-", "-q", stdin="x = 1\n").code == 0
    assert project.run("lint", "-", "-q", stdin="").code == 0


def test_lint_of_a_broken_source(project: Project) -> None:
    outcome = project.run("lint", "-", "-q", stdin="def f(:\n")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.errors == ["<stdin>: error: line 1: invalid syntax"]


def test_filename(project: Project) -> None:
    outcome = project.run("lint", "-", "--stdin-filename", "package/model.py", stdin=MODEL)
    assert outcome.lines[0].startswith("package/model.py:7:9: GM201 [*] ")


def test_filename_decides_the_configuration(project: Project) -> None:
    project.configure('[tool.graphmend.per-file-ignores]\n"quiet/*" = ["GM201"]')
    assert project.run("lint", "-", "--stdin-filename", "quiet/model.py", stdin=MODEL).code == 0
    assert project.run("lint", "-", "--stdin-filename", "loud/model.py", stdin=MODEL).code == 1
    assert project.run("lint", "-", stdin=MODEL).code == 1


LIBRARY = "import torch\n\ndef helper(x: torch.Tensor) -> torch.Tensor:\n    print('x')\n    return x\n"
CALLER = "import torch\nfrom library import helper\n\n@torch.compile\ndef step(x):\n    return helper(x)\n"


@pytest.mark.parametrize("stored", [True, False])
def test_the_project_around_it_is_known(project: Project, stored: bool) -> None:
    project.write("caller.py", CALLER)
    if stored:
        project.write("library.py", LIBRARY)
    args = ["lint", "-", "--stdin-filename", "library.py", "--output-format", "json"]
    (finding,) = project.run(*args, stdin=LIBRARY).json
    assert finding["confidence"] == "definite"
    assert "`step`" in finding["entry"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@torch.compile", "@torch.compiler.disable"),
        ("@torch.compile\n", ""),
        ("def step(x: torch.Tensor, flag: bool) -> torch.Tensor:", "def step(x, flag):"),
    ],
)
def test_what_differs_from_the_file_counts(project: Project, before: str, after: str) -> None:
    stored = compiled('print("x")')
    changed = stored.replace(before, after)
    assert changed != stored
    project.write("model.py", stored)
    shown = project.run("lint", "-", "--stdin-filename", "model.py", stdin=changed).out
    project.write("model.py", changed)
    assert project.run("lint", "model.py").out == shown


def test_a_base_that_is_gone_counts(project: Project) -> None:
    project.write("model.py")
    changed = MODEL.replace("nn.Module", "object")
    args = ["lint", "-", "--stdin-filename", "model.py", "--confidence", "definite"]
    assert project.run(*args, stdin=changed).code == 0
    assert project.run(*args, stdin=MODEL).code == 1


def test_other_paths_beside_it_are_refused(project: Project) -> None:
    project.write("model.py")
    for command in ("lint", "fix"):
        outcome = project.run(command, "-", "model.py", stdin="x = 1\n")
        assert (outcome.code, outcome.out) == (2, "")
        assert "other paths would not be read" in outcome.err


# --- fix


def test_fix(project: Project) -> None:
    outcome = project.run("fix", "-", stdin=MODEL)
    assert (outcome.code, outcome.out, outcome.err) == (0, FIXED, "")


def test_fix_keeps_the_bytes(project: Project) -> None:
    source = b"\xef\xbb\xbf" + MODEL.replace("\n", "\r\n").encode()
    assert project.run("fix", "-", stdin=source).raw == b"\xef\xbb\xbf" + FIXED.replace("\n", "\r\n").encode()


def test_fix_writes_no_file(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("fix", "-", "--stdin-filename", "model.py", stdin=MODEL)
    assert outcome.out == FIXED
    assert project.read("model.py") == MODEL


def test_fix_says_what_is_left(project: Project) -> None:
    outcome = project.run("fix", "-", stdin=DECLINED)
    assert (outcome.code, outcome.out) == (1, DECLINED)
    (line,) = outcome.errors
    assert line.startswith("<stdin>:7:9: GM201 ")


def test_fix_of_a_broken_source_gives_it_back(project: Project) -> None:
    outcome = project.run("fix", "-", stdin="def f(:\n")
    assert (outcome.code, outcome.out) == (2, "def f(:\n")
    assert outcome.errors == ["error: <stdin>: line 1: invalid syntax"]


def test_fix_says_what_went_wrong(project: Project) -> None:
    source = compiled('print("a")', "y = " + " ".join(['"a"'] * 9000))
    outcome = project.run("fix", "-", stdin=source)
    assert (outcome.code, outcome.out) == (2, source)
    assert outcome.errors[0].startswith("error: <stdin>: LibCST cannot parse it: ")


def test_diff(project: Project) -> None:
    outcome = project.run("fix", "-", "--diff", "--stdin-filename", "model.py", stdin=MODEL)
    assert outcome.code == 1
    assert outcome.lines[:2] == ["--- model.py", "+++ model.py"]
    assert project.run("fix", "-", "--diff", stdin=FIXED).code == 0


# --- the cache


def test_the_cache_is_the_one_that_was_asked_for(project: Project) -> None:
    project.write("other.py")
    for command in ("lint", "fix"):
        project.run(command, "-", "--no-cache", stdin=MODEL)
        assert not project.cache.exists()
        project.run(command, "-", "--cache-dir", "here", stdin=MODEL)
        assert not project.cache.exists()
    assert (project.folder / "here").is_dir()
