"""Which files the model's calls execute: the ones worth fixing."""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import graphmend_lint


@contextlib.contextmanager
def executed_files() -> Iterator[set[str]]:
    """Fills the set with the file names of all Python functions that are called meanwhile."""
    files: set[str] = set()

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    threading.setprofile(on_event)
    sys.setprofile(on_event)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def user_files(files: set[str]) -> list[str]:
    """Those that exist and are neither torch's, nor Python's, nor ours; as absolute paths, sorted."""
    paths = {os.path.realpath(file) for file in files if Path(file).is_file()}
    return sorted(path for path in paths if path not in _LOADED_BY_TORCH and not _is_foreign(path))


def packages_of(files: list[str]) -> list[str]:
    """The top-level packages that the files belong to."""
    wanted = set(files)
    names = {name.partition(".")[0] for name, path in _loaded_files().items() if path in wanted}
    return sorted(names - {"__main__"})


def _loaded_files() -> dict[str, str]:
    """The file of each module that has one."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return {name: os.path.realpath(file) for name, file in files.items() if isinstance(file, str)}


def _is_foreign(path: str) -> bool:
    site = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    if any(_below(path, folder) for folder in _OURS):
        return True
    return _below(path, sysconfig.get_path("stdlib")) and not any(_below(path, folder) for folder in site)


def _below(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(os.path.realpath(folder))


# This module is imported after torch and before the target. What torch imports must not import torch in turn,
# as a fixed file does.
_LOADED_BY_TORCH = frozenset(_loaded_files().values())
_OURS = [str(Path(torch.__file__).parent), *graphmend_lint.__path__]
