"""What earlier runs found out, by content, in one SQLite file outside of the project.

The cache holds pickles, so it lives in the user's own cache folder (or where `--cache-dir` says), never in a checkout
that somebody else may have filled. A cache that cannot be read or written is a slower run, not an error.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphmend_lint import __version__
from graphmend_lint.analysis import summary

_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, mtime INTEGER, size INTEGER, digest BLOB, summary BLOB);
CREATE TABLE IF NOT EXISTS findings (path TEXT PRIMARY KEY, key BLOB, payload BLOB);
"""


def default_folder() -> Path:
    """`GRAPHMEND_CACHE_DIR`, else a folder in the user's cache folder."""
    if given := os.environ.get("GRAPHMEND_CACHE_DIR"):
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home())
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "graphmend"


def _name(path: Path) -> str:
    """A path as SQLite can hold it: file names may have bytes that are no text."""
    return str(path).encode(errors="backslashreplace").decode()


class Cache:
    """Summaries and findings by path and content digest. `folder` None: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._db: sqlite3.Connection | None = None
        if folder is None:
            return
        name = f"{__version__}-{summary.VERSION}-py{sys.version_info.major}{sys.version_info.minor}.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(folder / name, timeout=5)
            self._db.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {_SCHEMA}")
        except (OSError, sqlite3.Error):
            self._db = None

    def files(self, paths: Iterable[Path]) -> dict[Path, tuple[int, int, bytes]]:
        """Modification time (ns), size and digest of the files as they were last seen."""
        wanted = {_name(path): path for path in paths}
        rows = self._rows("SELECT path, mtime, size, digest FROM files")
        return {wanted[path]: (mtime, size, digest) for path, mtime, size, digest in rows if path in wanted}

    def summaries(self, digests: dict[Path, bytes]) -> dict[Path, Any]:
        """The stored summaries of files whose digest is still the same."""
        wanted = {_name(path): (path, digest) for path, digest in digests.items()}
        found: dict[Path, Any] = {}
        for name, digest, blob in self._rows("SELECT path, digest, summary FROM files"):
            if name in wanted and wanted[name][1] == digest and blob is not None:
                with contextlib.suppress(Exception):  # a damaged row is a row to make again
                    found[wanted[name][0]] = pickle.loads(blob)
        return found

    def store_files(self, rows: Iterable[tuple[Path, int, int, bytes, Any]]) -> None:
        """Remember files and their summaries."""
        packed = [(_name(p), mtime, size, digest, pickle.dumps(s, 5)) for p, mtime, size, digest, s in rows]
        self._write("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", packed)

    def findings(self, keys: dict[Path, bytes]) -> dict[Path, Any]:
        """The stored findings of files whose key is still the same."""
        wanted = {_name(path): (path, key) for path, key in keys.items()}
        found: dict[Path, Any] = {}
        for name, key, blob in self._rows("SELECT path, key, payload FROM findings"):
            if name in wanted and wanted[name][1] == key:
                with contextlib.suppress(Exception):
                    found[wanted[name][0]] = pickle.loads(blob)
        return found

    def store_findings(self, rows: Iterable[tuple[Path, bytes, Any]]) -> None:
        """Remember findings."""
        packed = [(_name(path), key, pickle.dumps(value, 5)) for path, key, value in rows]
        self._write("INSERT OR REPLACE INTO findings VALUES (?, ?, ?)", packed)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        if self._db is None:
            return []
        try:
            return self._db.execute(query).fetchall()
        except sqlite3.Error:
            return []

    def _write(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if self._db is None or not rows:
            return
        with contextlib.suppress(sqlite3.Error), self._db:
            self._db.executemany(statement, rows)
