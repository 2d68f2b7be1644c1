"""A copy of the targets that a test may look at afterwards, and a place for temporary files of its own."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphmend_lint.verify.launcher import Launcher

TARGETS = Path(__file__).parent / "targets"


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of targets, copied without bytecode."""
    folder = tmp_path_factory.mktemp("targets") / "project"
    shutil.copytree(TARGETS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """Torch is imported once for all arms of the tests."""
    with Launcher() as launcher:
        yield launcher


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder where temporary files go meanwhile."""
    folder = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder


@pytest.fixture(scope="module")
def snapshot() -> Callable[[Path], dict[str, str]]:
    """Every file below a folder with the digest of what it holds."""
    return lambda folder: {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
