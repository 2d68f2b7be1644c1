"""Where findings are, as other programs want it said: relative paths, addresses, UTF-16 columns, fingerprints."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from graphmend_lint.analysis import source as sources
from graphmend_lint.findings import Finding
from graphmend_lint.gate.identity import identify


def repository_root(folder: Path) -> Path:
    """The top of the git repository that a folder is in, the folder itself where there is none.

    Code hosts know files by their paths from there, wherever in the repository a command runs.
    """
    here = Path(os.path.abspath(folder))  # noqa: PTH100 (a link goes by its own name)
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)


def relative(path: str | Path, root: Path) -> str:
    """A path with forward slashes, relative to `root` where it lies below."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 (a link goes by its own name)
    try:
        return place.relative_to(root).as_posix()
    except ValueError:
        return place.as_posix()


def address(path: str) -> str:
    """A relative path as a relative URI, an absolute one as a `file:` URI."""
    quoted = quote(os.fsencode(path))
    return f"file://{'' if quoted.startswith('/') else '/'}{quoted}" if Path(path).is_absolute() else quoted


class Texts:
    """The lines of the files that findings are in, read when they are asked for.

    `given` has the sources that do not come from the disk (stdin), by path.
    """

    def __init__(self, given: Mapping[str, bytes] | None = None) -> None:
        self.given = dict(given or {})
        self._lines = lru_cache(maxsize=64)(self._read)

    def lines(self, path: str, first: int, last: int) -> list[str]:
        """Lines by number, from 1; empty ones where the file is gone or shorter by now."""
        known = self._lines(path)[first - 1 : last]
        return known + [""] * (last - first + 1 - len(known))

    def utf16(self, path: str, line: int, column: int) -> int:
        """A column in characters as one in UTF-16 code units, both from 0."""
        before = self.lines(path, line, line)[0][:column]
        return column + sum(character > "\uffff" for character in before)

    def _read(self, path: str) -> list[str]:
        place = Path(path)
        try:
            content = self.given[path] if path in self.given else sources.read(place)
            return sources.split_lines(sources.decode(content, place))
        except sources.SourceError:
            return []


def fingerprints(findings: Sequence[Finding], root: Path, texts: Texts) -> list[str]:
    """An id for each finding that stays when its file is edited elsewhere or formatted.

    It is made of the file, the rule, the function around and the code that is reported. Findings that agree in these
    are told apart by their order.
    """
    seen: Counter[str] = Counter()
    found = []
    for finding, what in zip(findings, _contents(findings, texts), strict=True):
        key = "\0".join((relative(finding.path, root), finding.code, *what))
        seen[key] += 1
        whole = f"{key}\0{seen[key]}"
        found.append(hashlib.sha256(whole.encode(errors="surrogateescape")).hexdigest()[:32])
    return found


def _contents(findings: Sequence[Finding], texts: Texts) -> list[tuple[str, str]]:
    try:
        return [(known.scope, known.content) for known in identify(findings, texts.given, None, 1)]
    except sources.SourceError:  # a file went away meanwhile: messages name the code too
        return [("", finding.message) for finding in findings]
