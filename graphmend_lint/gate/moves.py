"""Whether a function is still where a baseline says."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from graphmend_lint.analysis import source as sources
from graphmend_lint.gate.baseline import Entry, file_of
from graphmend_lint.gate.identity import scopes_of


class Scopes:
    """The functions that the files of a baseline have today. Files are parsed when they are asked for, once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = lru_cache(maxsize=None)(self._read)

    def is_gone(self, entry: Entry) -> bool:
        """Whether the file is gone, or has no such function any more. A file that cannot be read is not gone."""
        scopes = self._known(entry.path)
        return scopes is not None and entry.scope not in scopes

    def has_file(self, name: str) -> bool:
        return file_of(name, self._folder).exists()

    def _read(self, name: str) -> frozenset[str] | None:
        place = file_of(name, self._folder)
        if not place.exists():
            return frozenset()
        try:
            return scopes_of(sources.parse(sources.read(place), place).tree)
        except sources.SourceError:
            return None
