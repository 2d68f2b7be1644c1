"""Which files are linted, and which project a file belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pathspec

from graphmend_lint.analysis.project import package_root
from graphmend_lint.config import DEFAULT_EXCLUDE, Settings

_ROOT_MARKS = ("pyproject.toml", ".git", ".hg", "setup.py", "setup.cfg")
_EXCLUDED = pathspec.PathSpec.from_lines("gitignore", DEFAULT_EXCLUDE)


def python_files(
    folder: Path,
    settings: Callable[[Path], Settings],
    unreadable: Callable[[OSError], None] | None = None,
) -> Iterator[Path]:
    """Every `.py` and `.pyi` file below a folder, sorted, without what is excluded by default or by configuration.

    Links to folders are not followed, so that a link cannot lead out of the project or in circles. `unreadable` hears
    of folders that cannot be listed.
    """
    for current, folders, files in os.walk(folder, onerror=unreadable):
        here = Path(current)
        folders[:] = sorted(
            f for f in folders if not _EXCLUDED.match_file(f"{f}/") and not settings(here).excludes(here / f / "_")
        )
        for name in sorted(files):
            if name.endswith((".py", ".pyi")) and not settings(here).excludes(here / name):
                yield here / name


def is_excluded(path: Path, settings: Settings) -> bool:
    """Whether a file would be left out if the folder of its configuration were linted."""
    if settings.excludes(path):
        return True
    place = Path(os.path.abspath(path))  # noqa: PTH100 (a link goes by its own name)
    root = settings.root or project_root(place.parent)
    folders = place.parent.relative_to(root).parts if root and place.is_relative_to(root) else ()
    return any(_EXCLUDED.match_file(f"{folder}/") for folder in folders)


@lru_cache(maxsize=4096)
def project_root(folder: Path) -> Path | None:
    """The folder of the project that `folder` is in, None if nothing marks one.

    A folder inside `site-packages`, a virtual environment or the like does not belong to the project around that.
    """
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in _ROOT_MARKS):
            inside = folder.relative_to(candidate).as_posix()
            return None if inside != "." and _EXCLUDED.match_file(f"{inside}/") else candidate
    return None


@lru_cache(maxsize=4096)
def index_root(folder: Path) -> tuple[Path, bool]:
    """What is indexed to lint a file in `folder`, and whether to look below it.

    The project if there is one, else the outermost package, else the folder's own files.
    """
    marked = project_root(folder)
    if marked is not None:
        return marked, True
    if not (folder / "__init__.py").exists():
        return folder, False
    outer = package_root(folder / "__init__.py")
    top = folder
    while top.parent != outer:
        top = top.parent
    return top, True
