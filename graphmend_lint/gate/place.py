"""Which baseline a run has: one, whatever paths it is given."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from graphmend_lint.config import Settings
from graphmend_lint.discovery import project_root

SettingsOf = Callable[[Path], Settings]


def start_folder(paths: Sequence[Path], settings_of: SettingsOf) -> Path:
    """The folder whose project is checked: the current one, so that a hook finds the same baseline for any files.

    The folder that all paths have in common where the current one is in no project, or in another one.
    """
    here = Path.cwd()
    places = [Path(os.path.abspath(path)) for path in paths]  # noqa: PTH100 (a link goes by its own name)
    common = Path(os.path.commonpath([place if place.is_dir() else place.parent for place in places]))
    common = next(folder for folder in (common, *common.parents) if folder.is_dir())
    below = common.is_relative_to(here)
    return here if below and (_project(here, settings_of) or not _project(common, settings_of)) else common


def baseline_place(given: Path | None, start: Path, settings_of: SettingsOf) -> Path:
    """The file that is given, else the one that the configuration names, else one in the folder of the project."""
    return given or (_project(start, settings_of) or start) / settings_of(start).baseline


def _project(folder: Path, settings_of: SettingsOf) -> Path | None:
    settings = settings_of(folder)
    return settings.root if settings.source else project_root(folder)
