"""`graphmend lint --add-noqa`: what is found is silent afterwards, and nothing but comments has changed."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from tests.cli.project import CLEAN, DECLINED, MODEL, ROOT, Project, compiled

#: Lines of a compiled function, and what they become.
CASES = [
    (['print("x")'], ['print("x")  # noqa: GM201']),
    (['print("x")  '], ['print("x")  # noqa: GM201']),
    (['print("x")  # why'], ['print("x")  # why  # noqa: GM201']),
    (['print("x")  # type: ignore'], ['print("x")  # type: ignore  # noqa: GM201']),
    (['print("x"); logger.info("y")'], ['print("x"); logger.info("y")  # noqa: GM201, GM202']),
    (["if x.sum() > 0:", "    x = x + 1"], ["if x.sum() > 0:  # noqa: GM101", "    x = x + 1"]),
    # into the list that is there
    (['print("x")  # noqa: E501'], ['print("x")  # noqa: E501, GM201']),
    (['print("x")  # noqa:E501,'], ['print("x")  # noqa:E501, GM201,']),
    (['print("x")  # noqa: E501 F401'], ['print("x")  # noqa: E501 F401, GM201']),
    (['print("x")  # noqa: E501 because'], ['print("x")  # noqa: E501, GM201 because']),
    (['print("x")  # noqa: some-rule'], ['print("x")  # noqa: GM201, some-rule']),
    (['print("x")  # noqa[E501]'], ['print("x")  # noqa[E501, GM201]']),
    (['print("x")  # noqa:'], ['print("x")  # noqa:']),  # silences everything as it is
    (['print("x")  # lint-ignore: Foo'], ['print("x")  # lint-ignore: Foo  # noqa: GM201']),
    (['print("x")  # noqa: E501  # why'], ['print("x")  # noqa: E501, GM201  # why']),
    # calls of several lines
    (["print(", '    "x",', ")"], ["print(  # noqa: GM201", '    "x",', ")"]),
    (["print(", '    "x",  # noqa: E501', ")"], ["print(", '    "x",  # noqa: E501, GM201', ")"]),
    (['print("""', 'x""")'], ['print("""', 'x""")  # noqa: GM201']),
    (['print("""', '# noqa: E501', 'x""")'], ['print("""', '# noqa: E501', 'x""")  # noqa: GM201']),
    (['print("""', 'x""",', "x.shape)"], ['print("""', 'x""",  # noqa: GM201', "x.shape)"]),
    (['print("x" \\', '    "y")'], ['print("x" \\', '    "y")  # noqa: GM201']),
    (
        ["y = 1 + \\", '    len([print("x")]) + \\', "    2"],
        ["y = 1 + \\", '    len([print("x")]) + \\', "    2  # noqa: GM201"],
    ),
    (['print("""', '"""); print("x")'], ['print("""', '"""); print("x")  # noqa: GM201']),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CASES)
def test_added(project: Project, before: list[str], after: list[str]) -> None:
    project.write("model.py", compiled(*before))
    outcome = project.run("lint", "--add-noqa")
    assert (outcome.code, outcome.err) == (0, "")
    assert project.read("model.py") == compiled(*after)
    assert project.findings() == []
    again = project.run("lint", "--add-noqa")
    assert again.lines == ["Silenced 0 findings in 0 files."]
    assert project.read("model.py") == compiled(*after)


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").rglob("before.py")), ids=lambda path: path.parent.name)
def test_every_fixture(project: Project, path: Path) -> None:
    source = path.read_bytes()
    project.write("model.py", source)
    outcome = project.run("lint", "--add-noqa")
    assert (outcome.code, outcome.err) == (0, "")
    after = project.raw("model.py")
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(source))
    assert project.run("lint", "-q", "--report-unused-suppressions").lines == []
    project.run("lint", "--add-noqa")
    assert project.raw("model.py") == after


@pytest.mark.parametrize(
    ("encoding", "newline"),
    # Python finds no coding line where a carriage return ends lines.
    [(e, n) for e in ("utf-8", "utf-8-sig", "latin-1") for n in ("\n", "\r\n", "\r") if (e, n) != ("latin-1", "\r")],
)
@pytest.mark.parametrize("end", ["", "\n"])
def test_bytes_stay(project: Project, newline: str, encoding: str, end: str) -> None:
    head = f"# coding: {encoding.removesuffix('-sig')}\n# é\n"
    source = (head + compiled('print("x")')).rstrip("\n") + end
    project.write("model.py", source.replace("\n", newline).encode(encoding))
    assert project.run("lint", "--add-noqa").code == 0
    expected = source.replace('print("x")', 'print("x")  # noqa: GM201').replace("\n", newline).encode(encoding)
    assert project.raw("model.py") == expected


def test_only_what_is_selected(project: Project) -> None:
    project.write("model.py", compiled('print("x")', 'logger.info("y")'))
    project.run("lint", "--add-noqa", "--select", "GM202")
    assert project.lines_of() == [9]


def test_several_files_and_one_that_is_not_read(project: Project) -> None:
    project.write("a.py")
    project.write("b.py", DECLINED)
    project.write("clean.py", CLEAN)
    project.write("broken.py", "def f(:\n")
    outcome = project.run("lint", "--add-noqa")
    assert outcome.code == 2
    assert outcome.errors == ["broken.py: error: line 1: invalid syntax"]
    assert outcome.lines == ["Silenced 2 findings in 2 files."]
    assert (project.read("clean.py"), project.read("broken.py")) == (CLEAN, "def f(:\n")
    assert project.run("lint", "-q", "a.py", "b.py").out == ""


def test_a_link_stays_a_link(project: Project) -> None:
    target = project.write("target.py")
    link = project.folder / "sub" / "link.py"
    link.parent.mkdir()
    link.symlink_to(target)
    assert project.run("lint", "--add-noqa", "sub").code == 0
    assert link.is_symlink()
    assert target.read_text() == MODEL.replace("x.shape)", "x.shape)  # noqa: GM201")


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_stay(project: Project) -> None:
    path = project.write("model.py")
    path.chmod(0o750)
    project.run("lint", "--add-noqa")
    assert path.stat().st_mode & 0o777 == 0o750


def test_stdin_cannot_be_changed(project: Project) -> None:
    outcome = project.run("lint", "--add-noqa", "-", stdin=MODEL)
    assert outcome.code == 2
    assert "--add-noqa changes files, not stdin" in outcome.err
