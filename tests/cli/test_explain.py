"""`graphmend explain FILE:LINE`: what is known of a line, and why."""

from __future__ import annotations

import pytest

from tests.cli.project import CLEAN, DECLINED, MODEL, Project, compiled

HELPERS = """\
import torch


def checked(h, limit: int = 3):
    if limit > 2:
        print("checked", h.shape, h.sum())
    return h


def apart(n: int):
    return n + 1
"""
CALLER = """\
import torch
from torch import nn

from helpers import checked


class Layer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rest(x)

    def rest(self, x):
        return checked(x)
"""


def explained(project: Project, place: str, *args: str) -> str:
    outcome = project.run("explain", place, *args)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


def test_a_finding_with_a_safe_fix(project: Project) -> None:
    project.write("model.py")
    before = project.files()
    text = explained(project, "model.py:7")
    assert text.startswith("model.py:7 in `Head.forward`\n\n")
    assert "This line is compiled: an entry reaches it (`Head.forward`).\n" in text
    assert "GM201 print-call: `print(...)` ends the graph (GB0059)" in text
    assert "  A fix is offered and safe" in text
    assert '    -        print("shape", x.shape)\n    +        deferred(print)("shape", x.shape)\n' in text
    assert "`graphmend rule GM201`, https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html" in text
    assert project.files() == before


def test_the_calls_from_the_entry_to_the_line(project: Project) -> None:
    project.write("helpers.py", HELPERS)
    project.write("caller.py", CALLER)
    lines = explained(project, "helpers.py:6").splitlines()
    assert lines[2:6] == [
        "This line is compiled: an entry reaches it (`Layer.forward`).",
        "  starts at `Layer.forward` (caller.py:8)",
        "  runs `Layer.rest` (caller.py:11)",
        "  runs `checked` (helpers.py:4)",
    ]


def test_an_entry_from_the_configuration(project: Project) -> None:
    project.write("helpers.py", HELPERS)
    project.configure('entries = ["helpers:checked"]')
    assert "an entry reaches it (`helpers:checked` in entries)." in explained(project, "helpers.py:6")


def test_what_operands_hold(project: Project) -> None:
    body = ["n = x.shape[0]", "v = x.sum().item()", "if x.sum() > n and flag and v:", "    x = x + 1"]
    project.write("model.py", compiled(*body))
    text = explained(project, "model.py:11")
    held = {line.rsplit("  ", 1)[0].strip(): line.rsplit("  ", 1)[1] for line in text.splitlines() if "  " in line}
    assert held["x.sum()"] == "a tensor"
    assert held["n"] == "known to Python while tracing: int, perhaps a symbol under dynamic shapes"
    assert held["flag"] == "known to Python while tracing: bool"
    assert held["v"] == "a Python value read from tensor data: number"


def test_a_decline_says_what_helps(project: Project) -> None:
    project.write("model.py", DECLINED)
    text = explained(project, "model.py:7")
    assert "  No fix is offered (argument-reads-data); what helps: pass the tensor, or `t.item()`" in text
    assert "@@" not in text


def test_an_unsafe_fix(project: Project) -> None:
    project.write("model.py", compiled("if (x > 3).any():", '    raise ValueError("too large")'))
    text = explained(project, "model.py:10")
    assert "  A fix is offered, but unsafe" in text
    assert '+        alarm(fail)(ValueError, "too large")' in text


def test_a_line_that_the_fix_of_another_changes(project: Project) -> None:
    project.write("model.py", compiled("if (x > 3).any():", '    logger.info("large")'))
    assert "In line 10, with a fix that changes this line too: GM202" in explained(project, "model.py:9")


@pytest.mark.parametrize(
    ("comment", "table", "why"),
    [
        ("  # noqa: GM201", "", "the comment in line 9 silences it"),
        ("", 'ignore = ["GM201"]', "the configuration leaves the rule out"),
        ("", 'per-file-ignores = { "model.py" = ["GM2"] }', "the configuration leaves the rule out"),
    ],
)
def test_a_finding_that_is_not_reported(project: Project, comment: str, table: str, why: str) -> None:
    project.configure(table)
    project.write("model.py", compiled(f'print("x"){comment}'))
    assert f"  Not reported: {why}.\n" in explained(project, "model.py:9")


def test_a_likely_one_where_definite_ones_are_wanted(project: Project) -> None:
    project.write("model.py", MODEL.replace("nn.Module", "object"))
    text = explained(project, "model.py:7")
    assert "This line may be compiled: it computes on tensors, and no entry is known that reaches it" in text
    assert "Not reported" not in text
    project.configure('confidence = "definite"')
    assert "  Not reported: only definite findings are wanted." in explained(project, "model.py:7")


def test_a_line_without_findings(project: Project) -> None:
    project.write("model.py")
    text = explained(project, "model.py:8")
    assert "This line is compiled" in text
    assert text.endswith("No rule has anything to say about it.\n")


@pytest.mark.parametrize(
    ("source", "line", "why"),
    [
        (MODEL, 1, "it is in no function and runs when the module is imported"),
        (CLEAN, 2, "reaches it, and the file does not import torch"),
        (HELPERS, 11, "reaches it, and none of its parameters is known to be a tensor"),
        (MODEL.replace("forward", "reset_parameters"), 7, "it is a function that a person or a script runs"),
        (MODEL.replace("    def", "    @torch.compiler.disable\n    def"), 8, "Dynamo is kept out of `Head.forward`"),
        (
            compiled("if not torch.compiler.is_compiling():", '    print("x")'),
            10,
            "Dynamo does not reach this line, or there is no code on it",
        ),
        (compiled("y = 1", "# a comment"), 10, "Dynamo does not reach this line, or there is no code on it"),
    ],
)
def test_a_line_that_is_not_compiled(project: Project, source: str, line: int, why: str) -> None:
    project.write("model.py", source)
    text = explained(project, f"model.py:{line}")
    assert "This line is not compiled: " in text
    assert f"{why}" in text
    assert "GM2" not in text


def test_a_test_file(project: Project) -> None:
    project.write("test_model.py", MODEL.replace("nn.Module", "object"))
    assert "the file is a test or a script, which calls models" in explained(project, "test_model.py:7")


@pytest.mark.parametrize("place", ["model.py:7:9", "model.py:7:9:", "model.py:7:"])
def test_a_place_as_lint_prints_it(project: Project, place: str) -> None:
    project.write("model.py")
    assert explained(project, place).startswith("model.py:7 in `Head.forward`")


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("model.py", "not of the form FILE:LINE: model.py"),
        ("model.py:x", "not of the form FILE:LINE: model.py:x"),
        (":7", "not of the form FILE:LINE: :7"),
        ("model.py:0", "model.py has 8 lines"),
        ("model.py:9", "model.py has 8 lines"),
        ("missing.py:1", "missing.py: no such file or directory"),
        ("broken.py:1", "broken.py: line 1: invalid syntax"),
    ],
)
def test_bad_input(project: Project, place: str, error: str) -> None:
    project.write("model.py")
    project.write("broken.py", "def f(:\n")
    outcome = project.run("explain", place)
    assert (outcome.code, outcome.out) == (2, "")
    assert error in outcome.err


def test_a_configuration_that_is_wrong(project: Project) -> None:
    project.write("model.py")
    project.configure("select = 1")
    outcome = project.run("explain", "model.py:7")
    assert outcome.code == 2
    assert "select must be a list of strings" in outcome.err
    assert project.run("explain", "model.py:7", "--isolated").code == 0
