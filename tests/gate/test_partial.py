"""A run that looks at a part: what it does not look at is neither fixed nor lost."""

from __future__ import annotations

import json

import pytest

from tests.cli.project import DECLINED, FIXED, MODEL, Project

BASELINE = "graphmend-baseline.json"
#: A finding that no known entry reaches.
LIKELY = MODEL.replace("nn.Module", "object")


@pytest.fixture
def known(project: Project) -> Project:
    """Three files with a finding each, in the baseline."""
    project.write("a.py")
    project.write("b/b.py", DECLINED)
    project.write("c.py", LIKELY)
    assert project.run("check", "--update-baseline").code == 0
    return project


def names(project: Project) -> list[str]:
    return [entry["path"] for entry in json.loads(project.read(BASELINE))["findings"]]


@pytest.mark.parametrize(
    "args", [["a.py"], ["b"], ["--select", "GM3"], ["--confidence", "definite"], ["a.py", "b/b.py"]]
)
def test_nothing_else_is_fixed_or_lost(known: Project, args: list[str]) -> None:
    before = known.read(BASELINE)
    outcome = known.run("check", *args)
    assert outcome.code == 0
    assert "fixed" not in outcome.out
    for option in ("--update-baseline", "--prune-baseline"):
        assert known.run("check", option, *args).code == 0
        assert known.read(BASELINE) == before


def test_what_was_looked_at_is_dropped(known: Project) -> None:
    for name in ("a.py", "b/b.py"):
        known.write(name, FIXED)
    assert known.run("check", "a.py").lines[1].startswith("1 entry of the baseline is fixed (a.py)")
    known.run("check", "a.py", "--update-baseline")
    assert names(known) == ["b/b.py", "c.py"]
    assert known.run("check").lines[1].startswith("1 entry of the baseline is fixed (b/b.py)")


@pytest.mark.parametrize(
    "configuration",
    ['exclude = ["b"]', 'ignore = ["GM201"]', 'select = ["GM3"]', '[tool.graphmend.per-file-ignores]\n"b/*" = ["GM2"]'],
)
def test_what_the_configuration_leaves_out_is_kept(known: Project, configuration: str) -> None:
    known.configure(configuration)
    outcome = known.run("check", "--update-baseline")
    assert outcome.code == 0
    assert "b/b.py" in names(known)


def test_a_likely_entry_that_was_looked_for(known: Project) -> None:
    known.write("c.py", FIXED)
    assert "fixed" not in known.run("check", "--confidence", "definite").out
    assert known.run("check").lines[1].startswith("1 entry of the baseline is fixed (c.py)")


def test_a_finding_that_becomes_definite_is_the_same(known: Project) -> None:
    known.write("c.py", LIKELY.replace("object", "nn.Module"))
    assert known.run("check").lines == ["No new graph breaks in 3 files (3 known)."]
    known.run("check", "--update-baseline")
    assert '"likely"' not in known.read(BASELINE)


def test_a_file_that_is_gone_needs_no_look(known: Project) -> None:
    (known.folder / "b/b.py").unlink()
    assert known.run("check", "a.py").lines[1].startswith("1 entry of the baseline is fixed (b/b.py)")


def test_a_renamed_file_alone(known: Project) -> None:
    """What a hook does: it is given the new name only."""
    (known.folder / "a.py").rename(known.folder / "d.py")
    assert known.run("check", "d.py").lines == ["No new graph breaks in 1 file (1 known)."]


def test_a_copied_file_alone(known: Project) -> None:
    """The original is not linted in this run, but it is there."""
    known.write("d.py")
    assert known.run("check", "d.py").code == 1


def test_a_function_that_went_elsewhere(known: Project) -> None:
    known.write("a.py", "import torch\n")
    known.write("d.py")
    assert known.run("check", "d.py").lines == ["No new graph breaks in 1 file (1 known)."]
    known.run("check", "d.py", "--update-baseline")
    assert names(known) == ["b/b.py", "c.py", "d.py"]


def test_adding_a_part(known: Project) -> None:
    known.write("d.py")
    known.write("e.py")
    known.run("check", "d.py", "--update-baseline")
    assert names(known) == ["a.py", "b/b.py", "c.py", "d.py"]
    assert known.run("check").code == 1
