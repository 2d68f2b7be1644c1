"""Stand-ins for the linter's fixes: a test says which text becomes which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graphmend_lint.findings import Finding

IMPORT = ("import torch\n", "import torch\nfrom graphmend_lint.runtime import deferred\n")


@dataclass(frozen=True)
class Fixed:
    source: bytes
    applied: tuple[Finding, ...] = ()
    remaining: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass
class Replace:
    """Replaces texts in every file that has them, and remembers which files it was asked to fix."""

    pairs: tuple[tuple[str, str], ...]

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs
        self.asked: list[Path] = []

    def __call__(self, paths: list[Path]) -> dict[Path, Fixed]:
        self.asked = list(paths)
        return {path: Fixed(self._fixed(path.read_text()).encode()) for path in paths}

    def _fixed(self, text: str) -> str:
        for old, new in self.pairs:
            text = text.replace(old, new)
        return text
