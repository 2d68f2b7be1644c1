"""A real git repository around a project, whatever the user's own configuration of git says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.cli.project import Project

_AUTHOR = {f"GIT_{role}_{part}": "test@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


def git(folder: Path, *args: str) -> str:
    """Run git, which has to succeed."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **_AUTHOR}
    done = subprocess.run(
        ["git", *args], cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(project: Project) -> None:
    """Make the project a repository, with everything that is in it in one commit."""
    git(project.folder, "init", "--quiet", "--initial-branch=main")
    commit(project)


def commit(project: Project) -> None:
    """Commit everything that is there."""
    git(project.folder, "add", "--all")
    git(project.folder, "commit", "--quiet", "--allow-empty", "--message", "work")
