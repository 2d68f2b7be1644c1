"""The command as a process: what it imports, what it never runs, and how it behaves in a shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import graphmend_lint
from tests.cli.project import COMMAND, FIXED, Project, compiled, python

HEAVY = ("torch", "libcst", "fixit", "graphmend", "transformers", "numpy", "rich")


def test_version(project: Project) -> None:
    outcome = project.process("--version")
    assert (outcome.code, outcome.out) == (0, f"graphmend, version {graphmend_lint.__version__}\n")


def test_installed_command(project: Project) -> None:
    script = shutil.which("graphmend", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("the distribution is not installed in this environment")
    project.write("model.py")
    done = subprocess.run([script, "lint"], capture_output=True, text=True, cwd=project.folder, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("model.py:7:9: GM201 ")


@pytest.mark.parametrize("args", [["lint"], ["lint", "-j", "2"], ["lint", "-"], ["rules"], ["rule", "GM201"]])
def test_linting_imports_nothing_heavy(project: Project, args: list[str]) -> None:
    for number in range(30):
        project.write(f"m{number}.py")
    script = (
        f"import sys\nfrom graphmend_lint.cli import main\ntry:\n    main({args!r})\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
    )
    assert python(["-c", script], project.folder, b"import torch\n").errors == ["[]"]


def test_linting_works_where_torch_cannot_be_imported(project: Project) -> None:
    project.write("model.py", compiled('print("x", x.shape)', 'logger.info("%s", x.sum().item() * 2)'))
    blocked = project.folder.parent / "blocked"
    for name in ("torch", "libcst", "fixit"):
        (blocked / name).mkdir(parents=True)
        (blocked / name / "__init__.py").write_text("raise ImportError('blocked')\n")
    script = f"import sys; sys.path.insert(0, {str(blocked)!r}); {COMMAND}"
    args = ["lint", "--output-format", "json", "--no-cache"]
    outcome = python(["-c", script, *args], project.folder)
    assert outcome.code == 1
    assert outcome.json == project.findings()


def test_linted_code_is_neither_run_nor_imported(project: Project) -> None:
    """Not even a module that shadows one of the standard library or of the linter's own."""
    bomb = "import pathlib\npathlib.Path('ran').touch()\nraise SystemExit('ran')\n"
    for name in ("ast.py", "click.py", "torch/__init__.py", "conftest.py", "sitecustomize.py", "graphmend_lint.py"):
        project.write(name, bomb + compiled('print("x")'))
    script = f"import sys; sys.path.remove(''); {COMMAND}"
    for args in (["lint"], ["fix"]):
        outcome = python(["-c", script, *args], project.folder)
        assert "Traceback" not in outcome.err
        assert outcome.code in (0, 1)
        assert not (project.folder / "ran").exists()
    assert "deferred(print)" in project.read("torch/__init__.py")


def test_the_same_bytes_from_any_process(project: Project) -> None:
    for number in range(40):
        project.write(
            f"m{number}.py", compiled('print("a"); print("b")', 'logger.info("c %s", x)', 'warnings.warn("d")')
        )
    outcomes = {
        project.process("lint", "--output-format", fmt, "--no-cache", "-j", jobs, env={"PYTHONHASHSEED": seed}).raw
        for jobs, seed in (("1", "0"), ("2", "1"), ("3", "2"))
        for fmt in ("json",)
    }
    (only,) = outcomes
    places = [(f["path"], f["line"], f["column"]) for f in json.loads(only)]
    assert len(places) == 160
    assert places == sorted(places)


def test_fix_as_a_process(project: Project) -> None:
    project.write("model.py")
    outcome = project.process("fix", "model.py")
    assert (outcome.code, outcome.err) == (0, "")
    assert project.read("model.py") == FIXED


def test_a_reader_that_goes_away(project: Project) -> None:
    """`graphmend lint | head -1` ends without a traceback."""
    project.write("model.py", compiled(*['print("x")'] * 3000))
    command = [sys.executable, "-c", COMMAND, "lint", "-j", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project.folder, env=dict(os.environ)
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""


def test_output_that_is_not_utf_8(project: Project) -> None:
    """Paths and code may hold what the terminal's encoding cannot show."""
    project.write("modèle.py", compiled('print("漢字", x.sum().item() * 2)'))
    outcome = project.process("lint", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert outcome.code == 1
    assert "Traceback" not in outcome.err
    assert "GM201" in outcome.out


def test_no_colours_and_no_bar_where_nobody_looks(project: Project) -> None:
    for number in range(250):
        project.write(f"m{number}.py", "x = 1\n")
    outcome = project.process("lint")
    assert outcome.err == ""
    assert "\x1b" not in outcome.out
