"""`graphmend fix`: what it changes, what it says, and how it ends."""

from __future__ import annotations

import pytest

from tests.cli.project import CLEAN, DECLINED, FIXED, MODEL, Project, compiled


def test_fix(project: Project) -> None:
    project.write("model.py")
    outcome = project.run("fix", "model.py")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines == ["Fixed 1 in 1 files, 0 left."]
    assert project.read("model.py") == FIXED


def test_nothing_to_fix(project: Project) -> None:
    path = project.write("clean.py", CLEAN)
    before = path.stat()
    outcome = project.run("fix", "-q")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_what_is_left(project: Project) -> None:
    project.write("model.py", MODEL)
    project.write("left.py", DECLINED)
    outcome = project.run("fix")
    assert outcome.code == 1
    assert len(outcome.lines) == 2
    assert outcome.lines[0].startswith("left.py:7:9: GM201 `print(...)` ends the graph (GB0059); not fixed: ")
    assert outcome.lines[1] == "Fixed 1 in 1 files, 1 left."
    assert project.read("left.py") == DECLINED


def test_what_is_left_is_placed_in_the_fixed_file(project: Project) -> None:
    project.write("model.py", compiled('print("fixed")', 'print("left", x.sum().item() * 2)'))
    outcome = project.run("fix")
    assert outcome.lines[0].startswith("model.py:11:5: GM201 ")
    assert project.read("model.py").split("\n")[10].strip().startswith('print("left"')


def test_exit_codes(project: Project) -> None:
    project.write("model.py")
    project.write("left.py", DECLINED)
    assert project.run("fix", "--exit-zero").code == 0
    assert project.run("fix", "--exit-zero").code == 0
    project.write("model.py")
    assert project.run("fix", "model.py", "--exit-non-zero-on-fix").code == 1
    assert project.run("fix", "model.py", "--exit-non-zero-on-fix").code == 0


EVERYTHING = compiled(
    'print("shape", x.shape)',
    'print(f"sum {x.sum():.3f}")',
    'logger.info("n %d", x.numel())',
    'warnings.warn("old", FutureWarning)',
    "if torch.isnan(x).any():",
    '    logger.warning("nan")',
    "if flag:",
    '    print("a %s" % x.mean())',
)


def test_a_second_fix_has_nothing_to_do(project: Project) -> None:
    project.write("model.py", EVERYTHING)
    assert project.run("fix").lines == ["Fixed 6 in 1 files, 0 left."]
    fixed = project.read("model.py")
    assert "from graphmend_lint.runtime import deferred, formatted, percent, when\n" in fixed
    outcome = project.run("fix")
    assert (outcome.code, outcome.lines) == (0, ["Fixed 0 in 0 files, 0 left."])
    assert project.read("model.py") == fixed
    assert project.run("lint").code == 0


def test_files_with_errors_are_left_and_others_go_on(project: Project) -> None:
    project.write("model.py")
    project.write("broken.py", MODEL + "def f(:\n")
    outcome = project.run("fix", ".", "missing.py")
    assert outcome.code == 2
    assert outcome.errors == [
        "broken.py: error: line 9: invalid syntax",
        "missing.py: error: no such file or directory",
    ]
    assert project.read("model.py") == FIXED
    assert project.read("broken.py") == MODEL + "def f(:\n"


def test_many_files(project: Project) -> None:
    """Enough of them for several processes."""
    for number in range(30):
        project.write(f"m{number}.py")
    outcome = project.run("fix", "-j", "2")
    assert outcome.lines == ["Fixed 30 in 30 files, 0 left."]
    assert {project.read(f"m{number}.py") for number in range(30)} == {FIXED}


def test_a_file_that_libcst_cannot_print_is_left_with_the_reason(project: Project) -> None:
    source = MODEL.replace("\n", "\r").encode()
    project.write("model.py", source)
    outcome = project.run("fix")
    assert outcome.code == 1
    assert "not fixed: " in outcome.lines[0] or outcome.lines[0].startswith("model.py:7:9: GM201 ")
    assert project.raw("model.py") == source


def test_a_problem_of_ours_names_the_file_once(project: Project) -> None:
    source = compiled('print("a")', "y = " + " ".join(['"a"'] * 9000))
    project.write("model.py", source)
    outcome = project.run("fix")
    assert outcome.code == 2
    (line,) = outcome.errors
    assert line.startswith("model.py: error: LibCST cannot parse it: ")
    assert project.read("model.py") == source


# --- unsafe fixes

GUARDED = "if not torch.compiler.is_compiling():"


def test_unsafe_fixes_are_offered_not_made(project: Project) -> None:
    project.configure('defer-style = "guard"')
    project.write("model.py")
    assert [f["fix"] for f in project.findings()] == ["unsafe"]
    outcome = project.run("lint")
    assert outcome.lines[0].startswith("model.py:7:9: GM201 [-] ")
    assert outcome.lines[1] == "Found 1 graph break. 1 more with `--unsafe-fixes`."
    assert project.run("fix").code == 1
    assert project.read("model.py") == MODEL


@pytest.mark.parametrize(("table", "args"), [("", ["--unsafe-fixes"]), ("unsafe-fixes = true\n", [])])
def test_unsafe_fixes_by_word(project: Project, table: str, args: list[str]) -> None:
    project.configure(f'{table}defer-style = "guard"')
    project.write("model.py")
    outcome = project.run("fix", *args)
    assert (outcome.code, outcome.lines) == (0, ["Fixed 1 in 1 files, 0 left."])
    fixed = project.read("model.py")
    assert f'        {GUARDED}\n            print("shape", x.shape)\n' in fixed
    assert "graphmend" not in fixed
    assert project.run("fix", *args).lines == ["Fixed 0 in 0 files, 0 left."]
