"""Suppression comments: which findings they silence, and from where."""

from __future__ import annotations

import pytest

from tests.cli.project import Project, compiled

SILENT = [
    "# lint-ignore: GM201",
    "# lint-ignore:GM201",
    "# lint-ignore : GM201",
    "# lint-ignore[GM201]",
    "# lint-ignore",
    "# lint-fixme: GM201",
    "# lint-fixme",
    "# noqa",
    "# noqa: GM201",
    "# noqa:GM201",
    "# noqa[GM201]",
    "#noqa: gm201",
    "# NOQA: GM201",
    "# noqa because it is fine",
    # by name and by prefix
    "# lint-ignore: print-call",
    "# noqa: print-call",
    "# lint-ignore: PrintCall",
    "# noqa: GM2",
    "# lint-ignore: GM",
    # among others
    "# noqa: E501, GM201",
    "# noqa: E501,GM201",
    "# noqa: E501 GM201",
    "# lint-ignore: SomeRule, print-call",
    "# lint-ignore[GM202, GM201]",
    "# lint-ignore: GM201 because it is fine",
    "# lint-ignore[GM201]: because it is fine",
    # after other comments
    "# type: ignore # noqa: GM201",
    "# noqa: E501 # lint-ignore: GM201",
    "# lint-ignore: SomeRule # noqa: GM201",
]
HEARD = [
    "",
    "# a comment",
    "# noqa: E501",
    "# noqa: GM202",
    "# noqa: GM1",
    "# noqa: GM2010",
    "# lint-ignore: logger-call",
    "# lint-ignore: SomeRule",
    "# lint-ignore[SomeRule]",
    "# lint-ignore: print",
    "# lint-ignored: GM201",
    "# nolint: GM201",
    "# see noqa",
    "# pylint: disable=GM201",
]


@pytest.mark.parametrize("comment", SILENT)
def test_silent(project: Project, comment: str) -> None:
    project.write("model.py", compiled(f'print("x")  {comment}', 'print("y")'))
    assert project.lines_of() == [10]


@pytest.mark.parametrize("comment", HEARD)
def test_heard(project: Project, comment: str) -> None:
    project.write("model.py", compiled(f'print("x")  {comment}'))
    assert project.lines_of() == [9]


@pytest.mark.parametrize("line", range(4))
def test_any_line_of_the_call(project: Project, line: int) -> None:
    call = ["print(", '    "x",', "    x.shape,", ")"]
    call[line] += "  # noqa: GM201"
    project.write("model.py", compiled(*call, 'print("y")'))
    assert project.lines_of() == [13]


@pytest.mark.parametrize(
    "above",
    [
        ["# lint-ignore: GM201"],
        ["# lint-ignore: GM201", "# and why"],
        ["# why", "# lint-ignore: GM201"],
        ["# noqa"],
    ],
)
def test_comments_right_above(project: Project, above: list[str]) -> None:
    project.write("model.py", compiled(*above, 'print("x")', 'print("y")'))
    assert project.lines_of() == [10 + len(above)]


@pytest.mark.parametrize(
    "above",
    [
        ["# lint-ignore: GM201", ""],
        ["# lint-ignore: GM201", "y = 1"],
        ["y = 1  # lint-ignore: GM201"],
        ["# lint-ignore: GM202"],
    ],
)
def test_comments_above_something_else(project: Project, above: list[str]) -> None:
    project.write("model.py", compiled(*above, 'print("x")'))
    assert project.lines_of() == [9 + len(above)]


@pytest.mark.parametrize("text", ['"# noqa"', 'r"# lint-ignore: GM201"', '"""\n# noqa: GM201\n"""', 'f"# noqa"'])
def test_strings_are_no_comments(project: Project, text: str) -> None:
    project.write("model.py", compiled(f"print({text})"))
    assert project.lines_of() == [9]


def test_a_string_above_is_no_comment(project: Project) -> None:
    project.write("model.py", compiled('"""', "# lint-ignore: GM201", '"""', 'print("x")'))
    assert project.lines_of() == [12]


def test_each_finding_of_a_line(project: Project) -> None:
    project.write(
        "model.py", compiled('print("x"); logger.info("y")  # noqa: GM202', 'print("x"); logger.info("y")  # noqa')
    )
    assert [f["code"] for f in project.findings()] == ["GM201"]


def test_a_comment_on_the_test_around_it_does_not_count(project: Project) -> None:
    project.write("model.py", compiled("if flag:  # noqa: GM201", '    print("x")'))
    assert project.lines_of() == [10]


def test_fix_leaves_what_is_suppressed(project: Project) -> None:
    source = compiled('print("x")  # lint-ignore: GM201', "# noqa", 'print("y")')
    project.write("model.py", source)
    assert project.run("fix").lines == ["Fixed 0 in 0 files, 0 left."]
    assert project.read("model.py") == source


def test_fix_beside_what_is_suppressed(project: Project) -> None:
    project.write("model.py", compiled('print("x")  # lint-ignore: GM201', 'print("y")'))
    assert project.run("fix").code == 0
    fixed = project.read("model.py")
    assert '    print("x")  # lint-ignore: GM201\n    deferred(print)("y")\n' in fixed


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_line_ends(project: Project, newline: str) -> None:
    source = compiled('print("x")  # noqa: GM201', "# noqa", 'print("y")', 'print("z")').replace("\n", newline)
    project.write("model.py", source.encode())
    assert project.lines_of() == [12]


def test_after_a_form_feed(project: Project) -> None:
    project.write("model.py", compiled("y = 'a\x0cb'  # \x0c", 'print("x")  # noqa: GM201', 'print("z")'))
    assert project.lines_of() == [11]


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        # at the end of the statement, below the call
        (["y = (", '    print("x"),', "    x,", ")  # noqa: GM201"], []),
        (["y = 1 + \\", '    len([print("x")]) + \\', "    2  # noqa: GM201"], []),
        # above the statement
        (["# noqa: GM201", "y = (", '    print("x"),', ")"], []),
        # on a line of the statement that is neither
        (["y = (  # noqa: GM201", '    print("x"),', "    x,  # noqa: GM201", ")"], [10]),
        # the next statement
        (['print("x")', "y = 1  # noqa: GM201"], [9]),
    ],
)
def test_statements_of_several_lines(project: Project, lines: list[str], heard: list[int]) -> None:
    project.write("model.py", compiled(*lines))
    assert project.lines_of() == heard


@pytest.mark.parametrize(
    ("comment", "heard"),
    [
        ("# graphmend: noqa", []),
        ("#graphmend:noqa", []),
        ("# GRAPHMEND: NOQA", []),
        ("# graphmend: noqa: GM201", ["GM202"]),
        ("# graphmend: noqa: GM201, logger-call", []),
        ("# graphmend: noqa: GM2", []),
        ("# graphmend: noqa: E501", ["GM201", "GM202"]),
        ("# graphmend: lint-ignore", ["GM201", "GM202"]),
        ("# flake8: noqa", ["GM201", "GM202"]),
        ("x = 1  # graphmend: noqa", ["GM201", "GM202"]),
        ('"""', ["GM201", "GM202"]),
    ],
)
@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_whole_file(project: Project, comment: str, heard: list[str], at_the_end: bool) -> None:
    source = compiled('print("x")', 'logger.info("y")')
    lines = '"""\n# graphmend: noqa\n"""' if comment == '"""' else comment
    project.write("model.py", f"{source}{lines}\n" if at_the_end else f"{lines}\n{source}")
    assert [f["code"] for f in project.findings()] == heard
