"""The hooks, run by pre-commit in a git repository, from a checkout that pre-commit installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.project import CLEAN, DECLINED, FIXED, MODEL, ROOT

pytestmark = pytest.mark.slow

#: What an installation is made of.
SHIPPED = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "graphmend_lint", "rules")
CONFIGURATION = """\
repos:
  - repo: {hooks}
    rev: {rev}
    hooks:
      - id: graphmend-fix
      - id: graphmend-lint
"""


def run(*command: str, folder: Path, check: bool = True, env: dict[str, str] | None = None) -> str:
    """What a program printed; with `check` it has to succeed."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=300, check=False
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def commit(folder: Path) -> str:
    """Commit all that is in a folder; the commit's name."""
    author = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    run("git", "init", "--quiet", folder=folder)
    run("git", "add", "--all", folder=folder)
    run("git", *author, "commit", "--quiet", "--no-verify", "--message", "state", folder=folder)
    return run("git", "rev-parse", "HEAD", folder=folder).strip()


#: A function that another file of the project brings into a region.
HELPERS = """\
import torch


def say(h):
    print(h.shape)
"""
CALLER = """\
import torch
from helpers import say


@torch.compile
def f(x: torch.Tensor):
    say(x)
    return x
"""


@dataclass(frozen=True)
class Repository:
    """A git repository that uses the hooks."""

    folder: Path
    home: Path

    def write(self, name: str, content: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        run("git", "add", name, folder=self.folder)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def hook(self, name: str) -> tuple[bool, str]:
        """Whether a hook passed on what is staged, and what pre-commit printed."""
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", name],
            cwd=self.folder,
            env={**os.environ, "PRE_COMMIT_HOME": str(self.home), "GRAPHMEND_CACHE_DIR": str(self.home / "cache")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def hooks(tmp_path: Path) -> tuple[Path, str]:
    """A checkout of this project as it is, and its commit."""
    probe = [sys.executable, "-m", "pip", "index", "versions", "pathspec", "--disable-pip-version-check"]
    if subprocess.run(probe, capture_output=True, timeout=120, check=False).returncode != 0:
        pytest.skip("no package index can be reached to install the hooks from")
    folder = tmp_path / "hooks"
    folder.mkdir()
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder, commit(folder)


@pytest.fixture
def repository(tmp_path: Path, hooks: tuple[Path, str]) -> Repository:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".pre-commit-config.yaml").write_text(CONFIGURATION.format(hooks=hooks[0], rev=hooks[1]))
    (folder / "pyproject.toml").write_text('[tool.graphmend]\nexclude = ["generated"]\n')
    (folder / "caller.py").write_text(CALLER)
    commit(folder)
    return Repository(folder, tmp_path / "pre-commit")


def test_hooks(repository: Repository) -> None:
    """One story, since the installation that all of it needs is what takes the time."""
    for name, content in (("model.py", MODEL), ("generated/model.py", MODEL), ("clean.py", CLEAN)):
        repository.write(name, content)
    repository.write("helpers.py", HELPERS)
    repository.write("broken.py", "def f(:\n")
    passed, shown = repository.hook("graphmend-lint")
    assert not passed
    assert "model.py:7:9: GM201 [*] `print(...)` ends the graph" in shown
    assert "helpers.py:5:5: GM201 [*] `print(...)` ends the graph (GB0059); defer it until the graph runs\n" in shown
    assert "broken.py: error: line 1: invalid syntax" in shown
    assert "generated" not in shown, "what is excluded stays so although it is named"
    _torch_is_not_installed(repository.home)

    repository.write("broken.py", "x = 1\n")
    passed, shown = repository.hook("graphmend-fix")
    assert not passed
    assert "files were modified by this hook" in shown
    assert repository.read("model.py") == FIXED
    assert repository.read("generated/model.py") == MODEL

    run("git", "add", "--all", folder=repository.folder)
    for hook in ("graphmend-fix", "graphmend-lint"):
        passed, shown = repository.hook(hook)
        assert passed, shown

    repository.write("model.py", DECLINED)
    passed, shown = repository.hook("graphmend-fix")
    assert not passed
    assert "model.py:7:9: GM201 `print(...)`" in shown
    assert "modified" not in shown


def _torch_is_not_installed(home: Path) -> None:
    (site,) = {path.parent for path in home.glob("repo*/py_env*/**/site-packages/graphmend_lint")}
    assert (site / "graphmend").is_dir()
    assert not (site / "torch").exists()
