"""GM001: comments that silence nothing, and what is left of them when they are fixed."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from graphmend_lint import config, fixing, registry
from tests.cli.project import CLEAN, Project, compiled

ON = "--report-unused-suppressions"
CARD = registry.find("GM001")

#: A comment behind `x = 1`, the names in it that silence nothing, and what is left of it.
CASES = [
    ("# noqa: GM201", ["GM201"], ""),
    ("# noqa:GM201", ["GM201"], ""),
    ("# NOQA: gm201", ["gm201"], ""),
    ("# lint-ignore: print-call", ["print-call"], ""),
    ("# lint-ignore: PrintCall", ["PrintCall"], ""),
    ("# lint-fixme[GM201]", ["GM201"], ""),
    ("# noqa: GM2", ["GM2"], ""),
    ("# noqa: GM", ["GM"], ""),
    ("# noqa: GM201, GM202", ["GM201", "GM202"], ""),
    # codes that do not exist
    ("# noqa: GM999", ["GM999"], ""),
    ("# noqa: GM999, E501", ["GM999"], "# noqa: E501"),
    # what belongs to others stays
    ("# noqa: E501, GM201", ["GM201"], "# noqa: E501"),
    ("# noqa: GM201, E501", ["GM201"], "# noqa: E501"),
    ("# noqa: E501,GM201,F401", ["GM201"], "# noqa: E501,F401"),
    ("# noqa: E501 GM201", ["GM201"], "# noqa: E501"),
    ("# noqa: GM201 E501", ["GM201"], "# noqa: E501"),
    ("# noqa[E501, GM201]", ["GM201"], "# noqa[E501]"),
    ("# lint-ignore: print-call, Foo", ["print-call"], "# lint-ignore: Foo"),
    ("# type: ignore  # noqa: GM201", ["GM201"], "# type: ignore"),
    ("# noqa: GM201  # type: ignore", ["GM201"], "# type: ignore"),
    ("# why # noqa: E501", [], "# why # noqa: E501"),
    # a reason goes with what it was for, and never stays as a list
    ("# noqa: GM201 because it is fine", ["GM201"], ""),
    ("# noqa: GM201, as it is fine", ["GM201"], ""),
    ("# noqa: E501, GM201 because it is fine", ["GM201"], "# noqa: E501, because it is fine"),
    # not ours
    ("# noqa", [], "# noqa"),
    ("# noqa: E501", [], "# noqa: E501"),
    ("# lint-ignore", [], "# lint-ignore"),
    ("# lint-ignore: SomeRule", [], "# lint-ignore: SomeRule"),
    # said on purpose
    ("# noqa: GM201, GM001", [], "# noqa: GM201, GM001"),
    ("# noqa: GM201, unused-suppression", [], "# noqa: GM201, unused-suppression"),
]


@pytest.mark.parametrize(("comment", "idle", "left"), CASES)
def test_reported_and_removed(project: Project, comment: str, idle: list[str], left: str) -> None:
    project.write("model.py", compiled(f"x = 1  {comment}"))
    found = project.findings(ON)
    assert [f["code"] for f in found] == (["GM001"] if idle else [])
    for name in idle:
        assert f"`{name}`" in found[0]["message"]
    assert project.run("fix", "-q", ON).code == 0
    assert project.read("model.py") == compiled(f"x = 1  {left}".rstrip())
    assert project.findings(ON) == []


def test_off_unless_asked_for(project: Project) -> None:
    project.write("model.py", compiled("x = 1  # noqa: GM201"))
    assert project.findings() == []
    assert [f["code"] for f in project.findings("--select", "GM001,GM2")] == ["GM001"]
    project.configure("report-unused-suppressions = true")
    assert [f["code"] for f in project.findings()] == ["GM001"]
    assert project.findings("--ignore", "GM001") == []
    project.configure('report-unused-suppressions = true\nper-file-ignores = { "model.py" = ["unused-suppression"] }')
    assert project.findings() == []


def test_one_that_is_in_use(project: Project) -> None:
    project.write("model.py", compiled('print("x")  # noqa: GM201', "# lint-ignore: logger-call", 'logger.info("x")'))
    assert project.findings(ON) == []


def test_each_name_for_itself(project: Project) -> None:
    project.write("model.py", compiled('print("x")  # noqa: GM201, GM202'))
    (finding,) = project.findings(ON)
    assert finding["message"] == "`GM202` has nothing to silence here; remove it"
    assert (finding["line"], finding["column"]) == (9, 17)


def test_only_rules_that_were_run(project: Project) -> None:
    project.write("model.py", compiled("x = 1  # noqa: GM202", "y = 2  # noqa: GM2"))
    assert project.lines_of(ON, "--select", "GM201") == []
    assert project.lines_of(ON, "--ignore", "GM202") == []
    assert project.lines_of(ON, "--select", "GM202") == [9]
    assert project.lines_of(ON) == [9, 10]


def test_what_is_only_likely_is_in_use(project: Project) -> None:
    source = compiled('print("x")  # noqa: GM201').replace("@torch.compile\n", "\n")
    project.write("model.py", source)
    assert project.findings(ON, "--confidence", "definite") == []


@pytest.mark.parametrize("content", [CLEAN, compiled()])
def test_files_without_anything_to_report(project: Project, content: str) -> None:
    project.write("clean.py", f"{content}x = 1  # noqa: GM201\n")
    assert len(project.findings(ON)) == 1
    assert len(project.findings(ON)) == 1, "from the cache"
    stdin = project.run("lint", "-q", ON, "-", stdin=project.raw("clean.py"))
    assert stdin.out.count("GM001") == 1


def test_a_whole_file(project: Project) -> None:
    project.write("a.py", "# graphmend: noqa\n" + compiled("x = 1"))
    project.write("b.py", "# graphmend: noqa\n" + compiled('print("x")'))
    project.write("c.py", "# graphmend: noqa: GM201\n" + compiled('logger.info("x")'))
    found = project.findings(ON)
    assert [(Path(f["path"]).name, f["code"]) for f in found] == [
        ("a.py", "GM001"),
        ("c.py", "GM001"),
        ("c.py", "GM202"),
    ]
    named = [Path(f["path"]).name for f in project.findings(ON, "--select", "GM2")]
    assert named == ["c.py", "c.py"], "rules that were not run may need the one in a.py"
    project.run("fix", ON)
    assert project.read("a.py") == compiled("x = 1")
    assert "noqa" not in project.read("c.py")


def test_a_line_of_its_own_goes(project: Project) -> None:
    project.write("model.py", compiled("# lint-ignore: GM201", "x = 1", "# why", "    # noqa: GM201", 'print("x")'))
    assert project.run("fix", ON).code == 0
    fixed = project.read("model.py")
    assert (
        "def step(x: torch.Tensor, flag: bool) -> torch.Tensor:\n    x = 1\n    # why\n        # noqa: GM201\n" in fixed
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_bytes_stay(project: Project, newline: str, encoding: str) -> None:
    head = f"# coding: {encoding.removesuffix('-sig')}\nx = 'é'"
    source = f"{head}  # noqa: GM201\nlast = 1  # noqa: GM201"
    project.write("model.py", source.replace("\n", newline).encode(encoding))
    assert project.run("fix", ON).code == 0
    assert project.raw("model.py") == f"{head}\nlast = 1".replace("\n", newline).encode(encoding)


def test_beside_other_fixes(project: Project) -> None:
    project.write("model.py", compiled("# noqa: GM202", 'print("x")', "x = 1  # noqa: GM203"))
    outcome = project.run("fix", ON)
    assert outcome.lines == ["Fixed 3 in 1 files, 0 left."]
    assert project.read("model.py").endswith('    deferred(print)("x")\n    x = 1\n    return x\n')


def test_the_summary_does_not_call_it_a_break(project: Project) -> None:
    project.write("model.py", compiled("x = 1  # noqa: GM201"))
    assert project.run("lint", ON).lines[-1] == "Found 1 unused suppression. 1 fixable with `graphmend fix`."
    project.write("other.py", compiled('print("x")', "x = 1  # noqa: GM201"))
    last = project.run("lint", ON).lines[-1]
    assert last == "Found 1 graph break and 2 unused suppressions. 3 fixable with `graphmend fix`."


def test_its_page(project: Project) -> None:
    assert tuple(registry._sections(CARD.doc)) == registry.HEADINGS
    assert CARD.code not in {card.code for card in registry.all_rules()}
    head = "import torch\n\n"
    example, instead = (
        textwrap.dedent(CARD.section(heading)).removeprefix("```python\n").removesuffix("```")
        for heading in ("Example", "Use instead")
    )
    settings = config.Settings(report_unused_suppressions=True)
    result = fixing.fix_source((head + example).encode(), Path("example.py"), settings=settings)
    assert [finding.code for finding in result.applied] == ["GM001"]
    assert result.source.decode() == head + instead
    shown = project.run("rule", "unused-suppression")
    assert shown.out.rstrip("\n") == registry.document(CARD).rstrip("\n")
