"""What every test has: the markers of pyproject.toml, applied, and a project to run the command in."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project. The working directory is in it, and the cache beside it."""
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(made.cache))
    return made


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-fixtures", action="store_true", help="make what the fixes give now what the fixtures expect"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests marked `gpu` where torch sees no CUDA device."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not has_gpu():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="torch sees no CUDA device"))


def has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()
