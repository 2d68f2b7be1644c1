"""The fixes of a verification as parts that can be applied one by one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from graphmend_lint.verify.rules import Fixes
from graphmend_lint.verify.verdict import Cause


@runtime_checkable
class Selective(Protocol):
    """Fixes that can be chosen: `parts` are those of a file, `only` is the file with some of them."""

    def parts(self, path: Path) -> Sequence[Cause]: ...
    def only(self, path: Path, parts: Collection[Cause]) -> Any: ...


class Parts:
    """The single fixes where the fixer can tell them apart, else the files."""

    def __init__(self, fixes: Fixes, fix_files: object) -> None:
        self._changed = fixes.changed
        self._fixer = fix_files if isinstance(fix_files, Selective) else None

    @cached_property
    def all(self) -> list[Cause]:
        """Empty where there is one file, and nothing is known of the fixes in it."""
        found = [part for path in self._changed for part in self._parts_of(path)]
        return found if len(found) > 1 or any(part.code for part in found) else []

    def sources(self, some: Sequence[Cause]) -> dict[Path, bytes]:
        """The files as these fixes alone make them; those that stay as they are are left out."""
        made = {path: self._made(path, [part for part in some if part.path == str(path)]) for path in self._changed}
        return {path: source for path, source in made.items() if source is not None}

    def _parts_of(self, path: Path) -> Sequence[Cause]:
        found = self._fixer.parts(path) if self._fixer else ()
        return found or [Cause(str(path), 0, None)]

    def _made(self, path: Path, some: list[Cause]) -> bytes | None:
        if not some:
            return None
        if self._fixer is None or set(some) == set(self._parts_of(path)):
            return self._changed[path]
        source: bytes = self._fixer.only(path, some).source
        return None if source == path.read_bytes() else source
