"""`check --measure`: a model that breaks more often than it may fails the run, and the lines that do it are named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from graphmend_lint.gate import measured
from graphmend_lint.verify.launcher import Launcher
from tests.cli.project import Outcome, Project

pytest.importorskip("torch")

BASELINE = "graphmend-baseline.json"
HELPER = """\
import torch


def remark(x: torch.Tensor) -> torch.Tensor:
    print("helper", x.shape)
    return x * 2
"""
MODEL = """\
import torch
from torch import nn

from helper import remark


class Head(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = remark(x + 1)
        # HERE
        return torch.relu(y)


def build():
    return Head(), [(torch.ones(2),)]


def fails():
    raise OSError("no weights\\nhere")


def raises():
    return lambda x: [][1], [(torch.ones(2),)]
"""


def configure(project: Project, limit: int, target: str = "model:build", **more: str) -> None:
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    table = f'[[tool.graphmend.verify]]\ntarget = "{target}"\nmax-breaks = {limit}\ndevice = "cpu"\n{lines}'
    project.configure(table)


def with_code(*lines: str) -> str:
    return MODEL.replace("        # HERE\n", "".join(f"        {line}\n" for line in lines))


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    """Torch is imported once for all the runs."""
    with Launcher() as started:
        yield started


@pytest.fixture
def measure(project: Project, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose model breaks twice, which it may: in a helper, and in the frame that called it.

    Nothing is known of it yet.
    """
    monkeypatch.setattr("graphmend_lint.verify.launcher.Launcher", lambda: nullcontext(launcher))
    project.write("helper.py", HELPER)
    project.write("model.py", MODEL)
    configure(project, 2)
    return project


NOTHING = "No new graph breaks in 0 files."


def run(project: Project, *args: str) -> Outcome:
    return project.run("check", "--measure", "--exclude", "*", *args)


def test_a_count_that_grows_fails_and_names_the_line(measure: Project) -> None:
    assert run(measure, "--update-baseline").code == 0
    (entry,) = json.loads(measure.read(BASELINE))["breaks"]["model:build"]
    assert (entry["path"], entry["scope"], entry["code"]) == ("helper.py", "remark", "GB0059")
    assert str(measure.folder) not in measure.read(BASELINE)

    # Lines move and are laid out in another way.
    measure.write("helper.py", "\n\n" + HELPER.replace('print("helper", x.shape)', "print('helper', (x.shape))"))
    outcome = run(measure)
    assert (outcome.code, outcome.lines) == (0, ["model:build: 2 graph breaks, as max-breaks says.", NOTHING])
    assert run(measure, "-q").out == ""

    # A statement that breaks comes in, of two lines.
    measure.write("model.py", with_code("y = y + 2", "print(", '    "model", y.shape)', "y = y + 1"))
    outcome = run(measure)
    assert outcome.code == 1
    assert outcome.lines[:2] == [
        "model:build: 3 graph breaks, more than max-breaks = 2.",
        "The lines that break and did not before:",
    ]
    line, _ = outcome.lines[2:]
    assert line.startswith("  model.py:11 GB0059 ")
    assert "(GM201)" in line


def test_a_line_that_ends_no_graph_of_its_own(measure: Project) -> None:
    """It stands right behind another one: there is no graph between them."""
    run(measure, "--update-baseline")
    measure.write("model.py", with_code('print("model", y.shape)'))
    outcome = run(measure)
    assert outcome.code == 1
    assert outcome.lines[0] == "model:build: 1 line more than in the baseline breaks."
    assert outcome.lines[2].startswith("  model.py:10 GB0059 ")


def test_without_known_lines_all_are_named(measure: Project) -> None:
    configure(measure, 0)
    outcome = run(measure, "--exit-zero")
    assert outcome.code == 0
    assert outcome.lines[0] == "model:build: 2 graph breaks, more than max-breaks = 0."
    assert "--measure --update-baseline keeps them" in outcome.lines[1]
    assert outcome.lines[2].startswith("  helper.py:5 GB0059 ")


@pytest.mark.slow
def test_an_update_tells_the_number_to_set(project: Project) -> None:
    """In a process of its own, as users run it."""
    project.write("helper.py", HELPER)
    project.write("model.py", MODEL)
    configure(project, 0, name="head")
    outcome = project.process("check", "--measure", "--update-baseline", timeout=200)
    assert outcome.code == 0, outcome.err
    assert outcome.errors == ["measuring head"]
    first, second = outcome.lines
    assert first == f"{BASELINE}: 1 known finding (1 added, 0 dropped)."
    assert second == (
        "head: 2 graph breaks, its lines are known now. "
        "The count is above max-breaks = 0: --measure fails until that is 2."
    )


def test_a_count_that_falls_is_told(measure: Project) -> None:
    run(measure, "--update-baseline")
    measure.write("helper.py", HELPER.replace('    print("helper", x.shape)\n', ""))
    outcome = run(measure, "--prune-baseline", "--output-format", "json")
    assert (outcome.code, outcome.json) == (0, [])
    assert outcome.errors[-1:] == ["model:build: 0 graph breaks, fewer than max-breaks = 2; lower max-breaks to 0."]
    assert json.loads(measure.read(BASELINE))["breaks"] == {"model:build": []}


def test_a_frame_that_is_given_up_is_no_progress(measure: Project) -> None:
    """The count falls, since the frame is not compiled at all."""
    head = MODEL.replace("remark(x + 1)", "x + 1").replace("        # HERE\n", '        print("model")\n')
    measure.write("model.py", head)
    run(measure, "--update-baseline")
    given_up = head.replace('        print("model")\n', "").replace(
        "        y = x + 1\n", '        try:\n            print("model")\n        finally:\n            y = x + 1\n'
    )
    measure.write("model.py", given_up)
    outcome = run(measure)
    assert outcome.code == 1
    assert outcome.lines[0].startswith("model:build: 1 frame given up that the baseline does not have")
    line, _ = outcome.lines[2:]
    assert line.startswith("  model.py:10 GB0059 ")
    assert "frame given up" in line
    run(measure, "--update-baseline")
    assert run(measure).code == 0, "it can be accepted"


def test_a_break_that_leaves_no_graph_counts(measure: Project) -> None:
    """Here Dynamo does not say that it gave the frame up; there is one graph, that of the helper."""
    measure.write("helper.py", HELPER.replace('    print("helper", x.shape)\n', ""))
    measure.write("model.py", with_code("try:", '    print("model")', "finally:", "    y = y + 1"))
    configure(measure, 0)
    outcome = run(measure)
    assert (outcome.code, outcome.lines[0]) == (1, "model:build: 1 graph break, more than max-breaks = 0.")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("model:fails", "OSError: no weights"),
        ("model:raises", "every call raised an exception (IndexError: list index out of range)"),
        ("no_module:build", "no_module"),
        ("model.build", "is not of the form module:callable"),
    ],
)
def test_what_cannot_be_measured_is_an_error_of_one_line(measure: Project, target: str, says: str) -> None:
    configure(measure, 1, target)
    outcome = run(measure, "--update-baseline")
    assert outcome.code == 2
    _, first, second = outcome.errors
    assert first.startswith(f"error: {target}: not measured: ")
    assert says in first
    assert second == f"error: {BASELINE}: not written, since not everything could be measured"
    assert BASELINE not in measure.files()


def test_findings_are_told_although_something_could_not_be_measured(measure: Project) -> None:
    configure(measure, 1, "model.build")
    outcome = measure.run("check", "--measure", "-q")
    assert outcome.code == 2
    assert outcome.lines[0].startswith("helper.py:5:5: GM201 ")


def test_two_targets_of_one_name(measure: Project) -> None:
    tables = '[[tool.graphmend.verify]]\ntarget = "model:build"\nmax-breaks = 1\n' * 2
    measure.configure(tables)
    outcome = run(measure)
    assert outcome.code == 2
    assert outcome.errors == ["error: model:build: two entries with `max-breaks` are called so; give each a `name`"]


def test_only_targets_with_a_limit_are_run() -> None:
    tables: list[dict[str, Any]] = [
        {"target": "a:b"},
        {"target": "c:d", "max-breaks": 0},
        {"target": "e:f", "name": "g", "max-breaks": 1},
    ]
    assert [measured.name_of_target(table) for table in measured.targets(tables)] == ["c:d", "g"]


def test_the_options_of_the_entry_count(measure: Project, launcher: Launcher) -> None:
    """In training mode the model takes another way."""
    measure.write("model.py", with_code("y = y * 3", "if self.training:", '    print("training")', "    y = y + 1"))
    table = {"target": "model:build", "max-breaks": 1, "train": True, "device": "cpu"}
    assert measured.capture(table, measure.folder, launcher).total == 3
    assert measured.capture({**table, "train": False}, measure.folder, launcher).total == 2


def test_names_of_files_are_those_of_every_machine(tmp_path: Path) -> None:
    import contextlib
    import json as library

    import torch

    def name(module: object) -> str:
        return measured._name(Path(str(getattr(module, "__file__", ""))), tmp_path)

    assert name(torch) == "<site-packages>/torch/__init__.py"
    assert name(library) == "<stdlib>/json/__init__.py"
    assert name(contextlib) == "<stdlib>/contextlib.py"
    assert measured._name(tmp_path / "src" / "a.py", tmp_path) == "src/a.py"
