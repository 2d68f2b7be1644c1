"""Serves fixed sources in place of the user's files, without writing to the user's tree.

A module of a fixed file is what it was in everything but its code: name, package, `__file__` and `__spec__`
are those of the original, so that relative imports and data files beside it work. Tracebacks and `inspect`
show the fixed text.
"""

from __future__ import annotations

import json
import linecache
import os
from importlib.machinery import SourceFileLoader
from importlib.util import decode_source
from pathlib import Path
from types import CodeType
from typing import Any

# The loader's own methods, kept so that files outside the overlay are loaded as ever.
_get_code = SourceFileLoader.get_code
_get_data = SourceFileLoader.get_data


def install(manifest: Path) -> None:
    """From here on, modules of the files named in the manifest are made from the sources it gives them.

    The loader class is changed, not the list of finders: whoever finds a source file (the import system, an
    editable install, `spec_from_file_location`) loads it with this class.
    """
    places: dict[str, str] = json.loads(manifest.read_text(encoding="utf-8"))
    sources = {os.path.realpath(path): Path(place).read_bytes() for path, place in places.items()}

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = sources.get(os.path.realpath(path))
        if source is None:
            return _get_code(self, fullname)
        _show(path, source)
        # Bypasses the bytecode cache, which holds the original.
        code: CodeType = self.source_to_code(source, path)
        return code

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        source = sources.get(os.path.realpath(path))
        return _get_data(self, path) if source is None else source

    loader: Any = SourceFileLoader
    loader.get_code = get_code
    loader.get_data = get_data


def _show(path: str, source: bytes) -> None:
    """Makes linecache give the fixed text; an entry without a time stamp is not checked against the disk."""
    text = decode_source(source)
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
