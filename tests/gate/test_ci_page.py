"""docs/ci.md: its commands run, its output is what they print, its YAML is what it says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphmend_lint.verify.launcher import Launcher
from tests.cli.project import ROOT, Project
from tests.gate.git import commit, git, repository

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)

HEAD = """\
import torch
from torch import nn


class Head(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        print("shape", x.shape)
        return torch.relu(y)


def build():
    return Head(), [(torch.ones(2),)]
"""
GROWN = HEAD.replace(
    "        return torch.relu(y)", '        y = y * 2\n        print("scaled", y.shape)\n        return torch.relu(y)'
)


def blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def commands(text: str) -> list[list[str]]:
    """The arguments of the `graphmend` commands in a text."""
    found = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("graphmend ")]
    return [args[1:] for args in found]


@pytest.fixture
def head(project: Project) -> Project:
    """The page's example, in a repository with a remote branch."""
    project.write("pyproject.toml", "[tool.graphmend]\n\n" + "".join(blocks("toml")))
    project.write("src/head.py", HEAD)
    repository(project)
    git(project.folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return project


def test_the_page_has_blocks_of_every_kind() -> None:
    assert {name for name, _ in BLOCKS} == {"console", "json", "", "toml", "yaml"}
    assert len(blocks("yaml")) == 4


def test_commands_run_in_the_order_of_the_page(head: Project) -> None:
    ran = 0
    for block in blocks("console"):
        for args in commands(block):
            if "--measure" not in args:
                outcome = head.run(*args)
                assert outcome.code == 0, (args, outcome.out, outcome.err)
                ran += 1
        for line in block.splitlines():
            if line.startswith("git "):
                commit(head)
                subprocess.run(shlex.split(line, comments=True), cwd=head.folder, check=True)
    assert ran == 6


def test_the_file_is_the_one_that_is_shown(head: Project) -> None:
    head.run("check", "--update-baseline")
    (shown,) = blocks("json")
    assert head.read("graphmend-baseline.json") == shown


def test_what_is_said_of_fixed_entries(head: Project) -> None:
    head.run("check", "--update-baseline")
    head.run("fix", "-q")
    assert head.run("check").out == blocks("")[0]


@pytest.mark.slow
def test_what_is_said_of_measured_breaks(head: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    update, measure = (args for block in blocks("console") for args in commands(block) if "--measure" in args)
    with Launcher() as launcher:  # torch is imported once
        monkeypatch.setattr("graphmend_lint.verify.launcher.Launcher", lambda: nullcontext(launcher))
        assert head.run(*update).code == 0
        assert head.run(*measure).code == 0
        head.write("src/head.py", GROWN)
        outcome = head.run(*measure)
    assert outcome.code == 1
    assert blocks("")[1] in outcome.out


# -- YAML --------------------------------------------------------------------------------------------------------------


def documents() -> list[Any]:
    return [yaml.safe_load(text) for text in blocks("yaml")]


def test_hooks_are_accepted_by_pre_commit(tmp_path: Path) -> None:
    hooks = tmp_path / ".pre-commit-config.yaml"
    hooks.write_text(blocks("yaml")[0])
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", str(hooks)], check=True)
    (repo,) = documents()[0]["repos"]
    known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {hook["id"] for hook in repo["hooks"]} <= known


def test_the_command_of_the_hook(head: Project) -> None:
    """It is given the names of files, as pre-commit does."""
    (repo,) = documents()[0]["repos"]
    args = shlex.split(repo["hooks"][0]["entry"])[1:]
    head.run("check", "--update-baseline")
    assert head.run(*args, "src/head.py").code == 0
    head.write("src/head.py", GROWN)
    assert head.run(*args, "src/head.py").code == 1


def test_the_workflow_is_complete() -> None:
    workflow = documents()[1]
    assert workflow.keys() == {"name", True, "permissions", "env", "jobs"}, "YAML reads `on` as true"
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert "uses" not in step or re.fullmatch(r"[\w./-]+@v\d+", step["uses"])
    first = workflow["jobs"]["new-breaks"]
    assert first["permissions"]["security-events"] == "write"
    (upload,) = [step for step in first["steps"] if "upload-sarif" in step.get("uses", "")]
    assert upload["with"]["sarif_file"] in " ".join(step.get("run", "") for step in first["steps"])


def test_the_commands_of_the_workflow(head: Project) -> None:
    runs = [step["run"] for step in documents()[1]["jobs"]["new-breaks"]["steps"] if "run" in step]
    annotate, report = (commands(run)[0] for run in runs if run.startswith("graphmend "))
    assert head.run("check", "--update-baseline").code == 0
    assert (head.run(*annotate).code, head.run(*annotate).out) == (0, "")
    head.write("src/head.py", GROWN)
    outcome = head.run(*annotate)
    assert outcome.code == 1
    assert outcome.lines[0].startswith("::warning file=src/head.py,line=10,")
    assert head.run(*report).code == 0
    (run,) = json.loads(head.read("graphmend.sarif"))["runs"]
    assert [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in run["results"]] == [10]


def test_the_step_for_changed_lines(head: Project) -> None:
    (step,) = documents()[2]
    (args,) = commands(step["run"].replace("$BASE", "main"))
    assert head.run(*args).code == 0
    head.write("src/head.py", GROWN)
    assert head.run(*args).lines[0].startswith("::warning file=src/head.py,line=10,")


def test_the_job_of_gitlab(head: Project) -> None:
    (job,) = documents()[3].values()
    (args,) = commands("\n".join(job["script"]))
    assert head.run(*args).code == 1, "there is no baseline"
    (entry,) = json.loads(head.read(job["artifacts"]["reports"]["codequality"]))
    assert entry["location"] == {"path": "src/head.py", "lines": {"begin": 8, "end": 8}}


def test_every_option_is_on_the_page(project: Project) -> None:
    shown = project.run("check", "--help").out
    for option in ("--baseline", "--update-baseline", "--prune-baseline", "--diff-base", "--measure"):
        assert f"{option} " in shown
        assert option in PAGE
