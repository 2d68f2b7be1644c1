"""What `--help` shows: every command has examples, each on a line of its own."""

from __future__ import annotations

import pytest

from tests.cli.project import Project


@pytest.mark.parametrize("command", [(), ("lint",), ("fix",), ("verify",), ("check",), ("explain",), ("vendor",)])
def test_examples_stand_on_lines_of_their_own(project: Project, command: tuple[str, ...]) -> None:
    outcome = project.run(*command, "--help")
    assert outcome.code == 0
    examples = outcome.out.partition("Example")[2].splitlines()[1:]
    first = next(line for line in examples if line.strip())
    assert first.strip().startswith(("graphmend ", "git "))
    assert "\\b" not in outcome.out
