"""Which rules run: --select, --ignore and their like in the configuration."""

from __future__ import annotations

import pytest

from tests.cli.project import Project, compiled

ALL = ["GM201", "GM202", "GM203"]
SOURCE = compiled('print("x")', 'logger.info("x")', 'warnings.warn("x")')


@pytest.fixture
def three(project: Project) -> Project:
    """A file with one finding of each rule."""
    project.write("model.py", SOURCE)
    return project


def codes(project: Project, *args: str) -> list[str]:
    return [finding["code"] for finding in project.findings(*args)]


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ([], ALL),
        (["--select", "ALL"], ALL),
        (["--select", "GM2"], ALL),
        (["--select", "GM201"], ["GM201"]),
        (["--select", "gm202"], ["GM202"]),
        (["--select", "warnings-warn"], ["GM203"]),
        (["--select", "GM201,GM203"], ["GM201", "GM203"]),
        (["--select", "GM201", "--select", "logger-call"], ["GM201", "GM202"]),
        (["--ignore", "GM201"], ["GM202", "GM203"]),
        (["--ignore", "print-call,logger-call"], ["GM203"]),
        (["--select", "GM2", "--ignore", "GM202"], ["GM201", "GM203"]),
    ],
)
def test_options(three: Project, args: list[str], wanted: list[str]) -> None:
    assert codes(three, *args) == wanted


@pytest.mark.parametrize(
    ("table", "args", "wanted"),
    [
        ('select = ["GM201"]', [], ["GM201"]),
        ('select = ["GM201"]', ["--select", "GM202"], ["GM202"]),
        ('select = ["GM201"]', ["--isolated"], ALL),
        ('ignore = ["print-call"]', [], ["GM202", "GM203"]),
        ('ignore = ["GM201"]', ["--ignore", "GM202"], ["GM203"]),
        ('per-file-ignores = {"model.py" = ["GM2"]}', [], []),
        ('per-file-ignores = {"*.py" = ["GM201"], "mod*" = ["logger-call"]}', [], ["GM203"]),
        ('per-file-ignores = {"other/" = ["GM2"]}', [], ALL),
    ],
)
def test_configuration(three: Project, table: str, args: list[str], wanted: list[str]) -> None:
    three.configure(table)
    assert codes(three, *args) == wanted


def test_fix_applies_the_chosen_rules_only(three: Project) -> None:
    outcome = three.run("fix", "--select", "GM202")
    assert outcome.lines == ["Fixed 1 in 1 files, 0 left."]
    assert 'deferred(logger).info("x")' in three.read("model.py")
    assert '    print("x")' in three.read("model.py")


# --- rules that do not exist


@pytest.mark.parametrize(
    ("name", "hint"),
    [("GM209", "; did you mean `GM20"), ("print-cal", "; did you mean `print-call`?"), ("E501", ""), ("quux", "")],
)
@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("command", ["lint", "fix"])
def test_unknown_rule(three: Project, name: str, hint: str, option: str, command: str) -> None:
    outcome = three.run(command, option, f"GM201,{name}")
    assert (outcome.code, outcome.out) == (2, "")
    (line,) = outcome.errors
    assert line.startswith(f"error: {option}: unknown rule `{name}`{hint}")
    assert three.read("model.py") == SOURCE


def test_unknown_rule_is_noticed_where_there_is_nothing_to_lint(project: Project) -> None:
    assert project.run("lint", "--select", "GM999").code == 2


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ('select = ["GM201", "print-cal"]', "select"),
        ('ignore = ["print-cal"]', "ignore"),
        ('per-file-ignores = {"nothing.py" = ["print-cal"]}', 'per-file-ignores "nothing.py"'),
    ],
)
@pytest.mark.parametrize("content", [SOURCE, "x = 1\n", None])
def test_unknown_rule_in_the_configuration(project: Project, table: str, key: str, content: str | None) -> None:
    source = project.configure(table)
    if content is not None:
        project.write("model.py", content)
    for stdin in (["."], ["-"]):
        outcome = project.run("lint", *stdin)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.errors == [
            f"error: {source}: [tool.graphmend] {key}: unknown rule `print-cal`; did you mean `print-call`?"
        ]


@pytest.mark.parametrize("args", [["--select", ""], ["--ignore", "ALL"], ["--select", "GM201", "--ignore", "GM2"]])
def test_no_rule_left(three: Project, args: list[str]) -> None:
    outcome = three.run("lint", *args)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.errors[0].endswith("select: no rule is left to run")


def test_no_rule_selected_in_the_configuration(three: Project) -> None:
    three.configure("select = []")
    assert three.run("lint").code == 2
    assert codes(three, "--select", "GM201") == ["GM201"]


# --- rules and rule


def test_rules(project: Project) -> None:
    outcome = project.run("rules")
    assert outcome.code == 0
    every = ["GM001", "GM101", "GM102", "GM104", *ALL, "GM301", "GM302", "GM303"]
    assert [line.split()[0] for line in outcome.lines] == every
    listed = project.run("rules", "--json").json
    assert [card["code"] for card in listed] == every
    assert all(card["doc"].startswith(f"# {card['code']} {card['name']}") for card in listed)


def test_rule(project: Project) -> None:
    outcome = project.run("rule", "GM201")
    assert outcome.out.startswith("# GM201 print-call\n")
    assert project.run("rule", "print-call").out == outcome.out
    assert project.run("rule", "gm201", "--json").json["name"] == "print-call"


def test_rule_that_does_not_exist(project: Project) -> None:
    outcome = project.run("rule", "GM209")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.errors[0].startswith("error: unknown rule `GM209`; did you mean `GM20")
