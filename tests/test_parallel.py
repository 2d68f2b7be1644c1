"""Work over cores: the results of one core, in the order of the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from graphmend_lint import parallel
from graphmend_lint.parallel import WORTH_A_POOL, cores, in_order
from tests.cli.project import Project, compiled

_base = 0


def squares(items: Sequence[int]) -> list[int]:
    return [item * item for item in items]


def with_process(items: Sequence[int]) -> list[tuple[int, int]]:
    return [(item, os.getpid()) for item in items]


def start(base: int) -> None:
    global _base
    _base = base


def moved(items: Sequence[int]) -> list[int]:
    return [item + _base for item in items]


def failing(items: Sequence[int]) -> list[int]:
    raise ValueError("no")


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("number", [0, 1, WORTH_A_POOL - 1, WORTH_A_POOL, 101])
def test_order(jobs: int, number: int) -> None:
    ticks: list[int] = []
    assert list(in_order(squares, range(number), jobs, ticks.append)) == [n * n for n in range(number)]
    assert sum(ticks) == number


@pytest.mark.parametrize(("number", "elsewhere"), [(WORTH_A_POOL - 1, False), (WORTH_A_POOL, True)])
def test_processes_where_they_pay(number: int, elsewhere: bool) -> None:
    processes = {process for _, process in in_order(with_process, range(number), 2)}
    assert (os.getpid() not in processes) == elsewhere


@pytest.mark.parametrize("jobs", [1, 2])
def test_initializer(jobs: int) -> None:
    assert list(in_order(moved, range(50), jobs, initializer=start, initargs=(7,))) == list(range(7, 57))


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_come_through(jobs: int) -> None:
    with pytest.raises(ValueError, match="no"):
        list(in_order(failing, range(50), jobs))


def test_cores() -> None:
    assert cores() >= 1


def test_where_processes_cannot_be_forked(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """What workers need cannot be sent to another process there, so the work stays in this one."""
    for number in range(WORTH_A_POOL + 6):
        project.write(f"m{number}.py")
    expected = project.findings("--no-cache", "-j", "2")

    class Elsewhere:
        platform = "darwin"

    monkeypatch.setattr(parallel, "sys", Elsewhere)
    assert project.findings("--no-cache", "-j", "2") == expected
    assert len(expected) == WORTH_A_POOL + 6


def test_findings_are_the_same_for_any_number_of_jobs(project: Project) -> None:
    for number in range(40):
        project.write(f"m{number:02}.py", compiled('print("a")', 'logger.info("b")'))
    project.write("broken.py", "def f(:\n")
    outcomes = [project.run("lint", "--no-cache", "-j", jobs) for jobs in ("1", "2", "5")]
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0].code == 2
    assert len(outcomes[0].lines) == 81


@pytest.mark.skipif(sys.platform == "win32", reason="needs sched_getaffinity")
def test_default_is_one_per_core(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmend_lint.engine.cores", lambda: 1)
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", None)
    for number in range(30):
        project.write(f"m{number}.py")
    assert len(project.findings()) == 30
