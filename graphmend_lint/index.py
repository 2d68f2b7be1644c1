"""The index of a project: summaries of its files, and the regions that follow from them.

Made once per run and project; summaries come from the cache where a file has not changed.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import multiprocessing
import symtable
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path

from graphmend_lint.analysis import source as sources
from graphmend_lint.analysis.project import Project, Symbol
from graphmend_lint.analysis.regions import FileRegions, RegionFinder
from graphmend_lint.analysis.summary import FunctionSummary, ModuleSummary, summarize
from graphmend_lint.cache import Cache
from graphmend_lint.config import Settings, load_settings
from graphmend_lint.discovery import index_root, python_files
from graphmend_lint.parallel import cores, in_order

#: A tree with more files than this is no project (a home folder under version control): only what is linted is indexed.
MAX_FILES = 50_000


@dataclass(frozen=True, slots=True)
class Scanned:
    """What reading a file gave. `summary` is None for a file that does not mention torch (or cannot be read)."""

    path: Path
    mtime: int
    size: int
    digest: bytes
    summary: ModuleSummary | None
    error: str | None


def scan(path: Path) -> Scanned:
    """Read, check and summarise one file."""
    try:
        status = path.stat()
        content = sources.read(path)
    except (OSError, sources.SourceError) as error:
        text = error.message if isinstance(error, sources.SourceError) else (error.strerror or str(error)).lower()
        return Scanned(path, 0, 0, b"", None, text)
    digest = hashlib.blake2b(content, digest_size=16).digest()
    seen = (path, status.st_mtime_ns, status.st_size, digest)
    try:
        if b"torch" not in content:
            _check_syntax(content, path)
            return Scanned(*seen, None, None)
        return Scanned(*seen, summarize(sources.parse(content, path).tree), None)
    except sources.SourceError as error:
        return Scanned(*seen, None, error.message)
    except RecursionError:
        return Scanned(*seen, None, "nested too deeply to analyse")


def _check_syntax(content: bytes, path: Path) -> None:
    """Raise `SourceError` for what is not Python; a symbol table takes half the time of a tree."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in `sources.parse`
            symtable.symtable(sources.decode(content, path), str(path), "exec")
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        sources.parse(content, path)


def scan_many(paths: Sequence[Path]) -> list[Scanned]:
    """`scan` for a worker: the collector only costs time while trees are built and dropped."""
    gc.disable()
    try:
        return [scan(path) for path in paths]
    finally:
        gc.enable()


@dataclass(slots=True)
class Index:
    """A project, ready for questions. `digests` are those of all its files, `errors` those that cannot be read."""

    root: Path
    digests: dict[Path, bytes]
    errors: dict[Path, str]
    entries: tuple[str, ...] = ()
    summaries: Callable[[], dict[Path, ModuleSummary | None]] = dict
    _project: Project | None = field(default=None, repr=False)
    _regions: dict[Path, FileRegions] | None = field(default=None, repr=False)

    @property
    def digest(self) -> bytes:
        """Changes whenever any file of the project does."""
        whole = hashlib.blake2b(repr(self.entries).encode(), digest_size=16)
        for path in sorted(self.digests):
            whole.update(str(path).encode(errors="replace"))
            whole.update(self.digests[path])
        return whole.digest()

    @property
    def project(self) -> Project:
        if self._project is None:
            self._project = Project(_load, self.summaries())
        return self._project

    @property
    def regions(self) -> dict[Path, FileRegions]:
        if self._regions is None:
            self._regions = find_regions(self.project, self.entries)
        return self._regions

    def with_source(self, path: Path, summary: ModuleSummary) -> Index:
        """The index with another content of one file; the regions are found again where they may have changed."""
        old = self.project.summary(path)
        changed = Index(self.root, self.digests, self.errors, self.entries)
        changed._project = Project(_load, {**self.project.summaries, path: summary})
        changed._regions = self.regions if old is not None and _same_regions(old, summary) else None
        return changed


_MESSAGES = frozenset({"critical", "debug", "error", "exception", "fatal", "info", "log", "warn", "warning", "write"})
#: Names that our own fixes bring in: they reach nothing.
_OWN_NAMES = frozenset(
    {"deferred", "fail", "fail_from", "formatted", "item", "late", "percent", "tolist", "unless", "when"}
)


def _same_regions(old: ModuleSummary, new: ModuleSummary) -> bool:
    """Whether two contents of a file certainly have the same entries and reach the same functions.

    A fix takes calls away and brings our own names in, in imports and locals too; nothing else may differ.
    """
    return (
        _frame(old) == _frame(new)
        and old.imports.items() <= new.imports.items()
        and new.imports.keys() - old.imports.keys() <= {*_OWN_NAMES, "torch"}
        and all(_reaches_no_more(old.functions[name], f) for name, f in new.functions.items())
    )


def _frame(summary: ModuleSummary) -> tuple[object, ...]:
    classes = {name: (c.bases, c.decorators, c.methods, c.attributes, c.fields) for name, c in summary.classes.items()}
    sites = {(site.scope, site.target, site.kind) for site in summary.compiled}
    return summary.functions.keys(), classes, sites, summary.star_imports, summary.assigned_calls, summary.assigned


def _reaches_no_more(old: FunctionSummary, new: FunctionSummary) -> bool:
    for field_ in fields(FunctionSummary):
        before, after = getattr(old, field_.name), getattr(new, field_.name)
        if field_.name in _REACHING_NOTHING or before == after:
            continue
        if field_.name == "locals":
            added = {value for name, value in after.items() if before.get(name) != value}
            if not before.keys() <= after.keys() or not all(map(_is_ours, added)):
                return False
        elif field_.name not in ("refs", "tried", "returns") or any(
            _may_reach(name, before) for name in after if name not in before
        ):
            return False
    return True


def _may_reach(name: str, before: Iterable[str]) -> bool:
    """Whether a name that was not loaded before may stand for a function of the project."""
    return not _is_ours(name) and not _speaks(name, before)


def _speaks(name: str, before: Iterable[str]) -> bool:
    """Whether a message was given with a method of what `name` holds: `deferred(logger)` for `logger.warning`."""
    refs = (ref.rpartition(".") for ref in before)
    return any(receiver == name and method.removesuffix("_once") in _MESSAGES for receiver, _, method in refs)


#: Fields of a function's summary that say nothing of what it reaches.
_REACHING_NOTHING = frozenset({"line", "end_line", "calls", "has_guard", "has_branch"})


def _is_ours(name: object) -> bool:
    """Whether a name, or a call of it, is one that fixes bring in: the runtime's, or `torch.where`."""
    parts = str(name).removesuffix("()").split(".")
    return parts[0] in _OWN_NAMES or parts[-1] == "where"


def _load(path: Path) -> ModuleSummary | None:
    try:
        return summarize(sources.parse(sources.read(path), path).tree)
    except (sources.SourceError, RecursionError):
        return None


def find_regions(project: Project, entries: Iterable[str]) -> dict[Path, FileRegions]:
    """The regions of every file, with the entries that the configuration names ("package.module:function")."""
    return finder_of(project, entries).run()


def finder_of(project: Project, entries: Iterable[str]) -> RegionFinder:
    """What finds the regions; it knows afterwards how each function was reached."""
    finder = RegionFinder(project)
    for entry in entries:
        module, _, qualname = entry.partition(":")
        for path, summary in project.summaries.items():
            if summary is not None and qualname in summary.functions and project.place(path)[1] == module:
                finder.enqueue(Symbol("function", path, qualname), f"`{entry}` in entries")
    return finder


def build(
    root: Path,
    files: Sequence[Path],
    cache: Cache,
    settings: Settings,
    jobs: int = 1,
    tick: Callable[[int], None] = lambda _: None,
) -> Index:
    """The index of the files of one project."""
    known = cache.files(files)
    digests: dict[Path, bytes] = {}
    stale: list[Path] = []
    for path in files:
        seen = known.get(path)
        try:
            status = path.stat()
        except OSError:
            stale.append(path)
            continue
        if seen is not None and seen[:2] == (status.st_mtime_ns, status.st_size):
            digests[path] = seen[2]
        else:
            stale.append(path)
    tick(len(files) - len(stale))
    fresh: dict[Path, ModuleSummary | None] = {}
    errors: dict[Path, str] = {}
    rows = []
    for scanned in in_order(scan_many, stale, jobs, tick):
        digests[scanned.path] = scanned.digest
        if scanned.error is not None:
            errors[scanned.path] = scanned.error
        else:
            rows.append((scanned.path, scanned.mtime, scanned.size, scanned.digest, scanned.summary))
            fresh[scanned.path] = scanned.summary
    cache.store_files(rows)
    unchanged = {path: digests[path] for path in files if path not in fresh and path not in errors}

    def summaries() -> dict[Path, ModuleSummary | None]:
        stored = {**cache.summaries(unchanged), **fresh}
        for path in unchanged.keys() - stored.keys():  # a damaged row, or another process cleared the cache
            stored[path] = scan(path).summary
        return {path: stored[path] for path in files if stored.get(path) is not None}

    return Index(root, digests, errors, settings.entries, summaries)


def files_of_project(
    folder: Path, linted: Iterable[Path], settings_of: Callable[[Path], Settings] = load_settings
) -> tuple[Path, list[Path]]:
    """The root of the project around `folder`, and its files; `linted` ones belong to it in any case."""
    root, whole = index_root(folder)
    found = list(python_files(root, settings_of)) if whole else []
    if len(found) > MAX_FILES:
        found = []
    return root, sorted({*found, *linted})


#: Seconds for which an index that a process keeps is taken to be up to date.
FRESH_FOR = 2.0


@dataclass(slots=True)
class _Kept:
    """An index, the state of the files that it was made of, and the time at which to look at them again."""

    index: Index | None = None
    state: dict[Path, tuple[int, int]] = field(default_factory=dict)
    again: float = 0.0


@lru_cache(maxsize=8)
def kept(root: Path, whole: bool, folder: Path) -> _Kept:
    return _Kept()


def index_for(root: Path, whole: bool, folder: Path) -> Index:
    """The index that one process keeps for linting single sources (an editor, Fixit and its workers).

    It follows changes on the disk, after a moment: looking at all files costs at most a twentieth of the time.
    """
    known = kept(root, whole, folder)
    began = time.monotonic()
    if known.index is not None and began < known.again:
        return known.index
    files = list(python_files(root, load_settings)) if whole else sorted(folder.glob("*.py"))
    files = files if len(files) <= MAX_FILES else []
    state = dict(_states(files))
    if known.index is None or state != known.state:
        known.index, known.state = _build_kept(root, folder, files), state
    now = time.monotonic()
    known.again = now + max(FRESH_FOR, 20 * (now - began))
    return known.index


def _states(files: Iterable[Path]) -> Iterator[tuple[Path, tuple[int, int]]]:
    for path in files:
        with contextlib.suppress(OSError):
            status = path.stat()
            yield path, (status.st_mtime_ns, status.st_size)


def _build_kept(root: Path, folder: Path, files: list[Path]) -> Index:
    from graphmend_lint.cache import default_folder

    jobs = cores() if multiprocessing.parent_process() is None else 1
    return build(root, files, Cache(default_folder()), load_settings(folder), jobs)
