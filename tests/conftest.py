"""What every test has: the markers of pyproject.toml, applied, a project to run the command in, caches of its own."""

from __future__ import annotations

import importlib.util
import logging
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.project import Project

# Read when torch is imported, by what a test starts as well. Each worker of `make test` has one core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
# Inductor would find out for each empty cache, in five seconds, whether the compiler knows vector instructions.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Give each worker empty compile caches: no test sees what another run, or another worker, has compiled."""
    caches = tempfile.TemporaryDirectory(prefix="graphmend-tests-")
    config.add_cleanup(caches.cleanup)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = caches.name


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project. The working directory is in it, and the cache beside it."""
    made = Project(tmp_path)
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(made.cache))
    return made


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Torch writes down all that it compiles as soon as its trace has a handler, and pytest gives it some: not here."""
    logging.getLogger("torch.__trace").handlers.clear()
    return (yield)


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
