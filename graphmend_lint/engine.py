"""The engine: findings for sources, files and trees.

Facts come from the project's index; a file is parsed again only if one of its functions is in a region and calls
something that a rule is about. The code that is linted is never imported or run.
"""

from __future__ import annotations

import gc
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend_lint import __version__, index, registry, suppressions, unused_suppression
from graphmend_lint.analysis import source as sources
from graphmend_lint.analysis.facts import FileFacts, Interest, may_interest
from graphmend_lint.analysis.project import Project
from graphmend_lint.analysis.regions import FileRegions
from graphmend_lint.analysis.summary import ModuleSummary, summarize
from graphmend_lint.cache import Cache
from graphmend_lint.config import ConfigError, Settings, load_settings
from graphmend_lint.discovery import index_root, python_files
from graphmend_lint.findings import Finding
from graphmend_lint.parallel import cores, in_order
from graphmend_lint.transforms import asserts, defer, trap, where
from graphmend_lint.transforms.checks import Options
from graphmend_lint.transforms.checks import interest as interest_of_checks

if TYPE_CHECKING:
    from graphmend_lint.fixing import FixResult

_NO_REGIONS = FileRegions({}, frozenset())

SettingsOf = Callable[[Path], Settings]
Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class FileResult:
    """What linting a file gave: findings, or the reason why it could not be linted."""

    path: Path
    findings: tuple[Finding, ...] = ()
    error: str | None = None


@dataclass(slots=True)
class Report:
    """What linting a set of files gave. `results` are sorted by path.

    `given` has the sources that do not come from the disk (stdin), by path.
    """

    results: list[FileResult]
    given: dict[str, bytes] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        return sorted((f for r in self.results for f in r.findings), key=lambda f: f.sort_key)

    @property
    def errors(self) -> list[FileResult]:
        return [r for r in self.results if r.error is not None]


def enabled_cards(settings: Settings, path: Path) -> tuple[registry.RuleCard, ...]:
    """The rules that run on a file.

    Raises:
        registry.UnknownRule: the configuration names a rule that does not exist.
    """
    own = (unused_suppression.CODE,) if settings.report_unused_suppressions else ()
    return _cards((*settings.select, *own), settings.ignored_codes(path))


@lru_cache(maxsize=256)
def _cards(selected: tuple[str, ...], ignored: tuple[str, ...]) -> tuple[registry.RuleCard, ...]:
    dropped = {card.code for card in registry.select(ignored)} if ignored else set()
    return tuple(card for card in registry.select(selected) if card.code not in dropped)


@lru_cache(maxsize=256)
def check_rules(settings: Settings) -> None:
    """Raise `ConfigError` where the settings name a rule that does not exist, or leave no rule to run."""
    lists = {"select": settings.select, "ignore": settings.ignore}
    lists |= {f'per-file-ignores "{pattern}"': codes for pattern, codes in settings.per_file_ignores}
    for key, codes in lists.items():
        check_names(f"{settings.where}{key}", codes)
    if not _cards(settings.select, settings.ignore):
        raise ConfigError(f"{settings.where}select: no rule is left to run")


def check_names(key: str, codes: Iterable[str]) -> None:
    """Raise `ConfigError` where `codes`, the value of `key`, name a rule that does not exist."""
    try:
        registry.select(codes)
    except registry.UnknownRule as error:
        raise ConfigError(f"{key}: {error}") from error


def analyse(
    source: sources.Source,
    summary: ModuleSummary,
    project: Project,
    regions: FileRegions,
    settings: Settings,
) -> list[Finding]:
    """The findings of one parsed file, sorted, without suppressed ones and those of too low a confidence."""
    cards = enabled_cards(settings, source.path)
    found = search(FileFacts(source, summary, project, regions), cards, settings)
    return judged(source, found, cards, settings)


def search(facts: FileFacts, cards: Sequence[registry.RuleCard], settings: Settings) -> list[Finding]:
    """All that the rules `cards` have to say of one file, silenced or not."""
    checks = Options(settings.trap_style, settings.carries_effects)
    found = [
        *defer.find(facts, _of(cards, "defer"), defer.Options(settings.defer_style, settings.carries_effects)),
        *trap.find(facts, _of(cards, "trap"), _messages(), checks),
        *asserts.find(facts, _of(cards, "asserts"), checks),
    ]
    tests = {edit.span for f in found if f.plan for edit in f.plan.edits if edit.kind in ("when", "unless")}
    tests |= {f.span for f in found if f.code in {card.code for card in _of(cards, "asserts")}}
    found += where.find(facts, _of(cards, "where"), tests)
    return found


def judged(
    source: sources.Source, found: Sequence[Finding], cards: Sequence[registry.RuleCard], settings: Settings
) -> list[Finding]:
    """What is reported of the findings that the rules `cards` have in a file, sorted."""
    comments = suppressions.Suppressions(source.text)
    told = [*found, *unused_suppression.find(comments, found, cards, source)]
    kept = [f for f in told if f.confidence == "definite" or settings.confidence == "likely"]
    return sorted((f for f in kept if not any(comments.silencing(f))), key=lambda f: f.sort_key)


def _of(cards: Iterable[registry.RuleCard], transform: str) -> list[registry.RuleCard]:
    return [card for card in cards if card.transform == transform]


def _messages() -> list[registry.RuleCard]:
    """The rules about messages, the ones that are not selected too: a fix takes along what is said in front of it."""
    return _of(registry.all_rules(), "defer")


def _interest(cards: Sequence[registry.RuleCard]) -> Interest:
    """What all the rules together look for."""
    guards = interest_of_checks([*_of(cards, "trap"), *_of(cards, "asserts")])
    branches = where.interest(_of(cards, "where"))
    return replace(defer.interest(_of(cards, "defer")), guards=guards.guards, branches=branches.branches)


# -- single sources --------------------------------------------------------------------------------------------------


def lint_source(source: bytes, path: Path, *, settings: Settings, project: index.Index | None = None) -> list[Finding]:
    """The findings in a source that may differ from the file at `path`, in the context of the project around it.

    Raises:
        SourceError: the source cannot be read as Python.
    """
    check_rules(settings)
    parsed = sources.parse(source, path)
    if b"torch" not in source and project is None:
        return judged(parsed, [], enabled_cards(settings, path), settings)
    place = path.absolute()
    try:
        summary = summarize(parsed.tree)
        around = (project or context_of(place)).with_source(place, summary)
        parsed.path = place
        found = analyse(parsed, summary, around.project, around.regions.get(place, _NO_REGIONS), settings)
    except RecursionError as error:
        raise sources.SourceError(path, "nested too deeply to analyse") from error
    return [replace(finding, path=str(path)) for finding in found]


def context_of(path: Path) -> index.Index:
    """The index of the project around a file, made once per process."""
    root, whole = index_root(path.parent)
    return index.index_for(root, whole, path.parent)


def project_around(path: Path, settings_of: SettingsOf, cache_folder: Path | None) -> index.Index:
    """The index of the project around a file that need not exist, as `lint_paths` would make it."""
    cache = Cache(cache_folder)
    try:
        place = path.absolute()
        root, members = index.files_of_project(place.parent, [place] if place.is_file() else [], settings_of)
        built = index.build(root, members, cache, settings_of(root))
        _ = built.regions
        return built
    finally:
        cache.close()


# -- trees -----------------------------------------------------------------------------------------------------------


def lint_paths(
    paths: Iterable[Path],
    *,
    settings_of: SettingsOf = load_settings,
    jobs: int | None = None,
    cache_folder: Path | None = None,
    start: Callable[[int], Tick] = lambda _: lambda _: None,
) -> Report:
    """Lint files and folders.

    `cache_folder` None: nothing is cached. `start` is called with the number of files and gives what is called with the
    number of files that are done. A path that does not exist is a result with an error.
    """
    files, missing = collect(paths, settings_of)
    jobs = jobs or cores()
    cache = Cache(cache_folder)
    results = missing
    try:
        groups = [
            (index.files_of_project(linted[0].parent, linted, settings_of), linted) for linted in _by_project(files)
        ]
        tick = start(sum(len(members) + len(linted) for (_, members), linted in groups))
        for (root, members), linted in groups:
            built = index.build(root, members, cache, settings_of(root), jobs, tick)
            results += lint_files(built, linted, cache, settings_of, jobs, tick)
    finally:
        cache.close()
    return Report(sorted(results, key=lambda r: str(r.path)))


def _by_project(paths: Iterable[Path]) -> list[list[Path]]:
    """The files, those of one project together."""
    projects: dict[tuple[Path, bool], list[Path]] = {}
    for path in paths:
        projects.setdefault(index_root(path.parent), []).append(path)
    return list(projects.values())


def collect(paths: Iterable[Path], settings_of: SettingsOf) -> tuple[list[Path], list[FileResult]]:
    """The files that the given paths stand for, each once, and an error for each path that does not exist."""
    files: dict[Path, None] = {}
    missing: list[FileResult] = []

    def note(error: OSError) -> None:
        missing.append(FileResult(Path(error.filename), error=sources.reason(error)))

    for path in paths:
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            note(error)
            continue
        check_rules(settings_of(path))
        place = Path(os.path.abspath(path))  # noqa: PTH100 (each file once, and links by their own names)
        files.update(dict.fromkeys(python_files(place, settings_of, note) if is_folder else [place]))
    for path in files:
        check_rules(settings_of(path))
    return sorted(files), missing


def lint_files(
    built: index.Index, linted: Sequence[Path], cache: Cache, settings_of: SettingsOf, jobs: int, tick: Tick
) -> list[FileResult]:
    """Lint files of one project."""
    failed = [FileResult(path, error=built.errors[path]) for path in linted if path in built.errors]
    sound = [path for path in linted if path not in built.errors]
    whole = built.digest
    keys = {path: _key(whole, built.digests[path], settings_of(path)) for path in sound}
    known = cache.findings(keys)
    results = [*failed, *(FileResult(path, tuple(found)) for path, found in known.items())]
    fresh: list[FileResult] = []
    todo = [path for path in sound if path not in known]
    if todo:
        interest = _interesting(built, todo, settings_of)
        fresh = [FileResult(path) for path in todo if path not in interest]
        work = [path for path in todo if path in interest]
        fresh += in_order(_lint_chunk, work, jobs, _silent, _start_worker, (built, settings_of))
        cache.store_findings((r.path, keys[r.path], r.findings) for r in fresh if r.error is None)
    tick(len(linted))
    return [*results, *fresh]


def _silent(_: int) -> None:
    return None


def _key(project: bytes, content: bytes, settings: Settings) -> bytes:
    # What is verified, and how, changes no finding.
    parts = (__version__, project, content, replace(settings, verify=()), rules_digest())
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


@lru_cache(maxsize=1)
def rules_digest() -> bytes:
    """Changes with the linter's own source, so that nobody is shown what an older one found."""
    whole = hashlib.blake2b(digest_size=16)
    own = Path(__file__).parent
    for path in [*sorted(own.rglob("*.py")), *(card.path for card in registry.all_rules())]:
        status = path.stat()
        whole.update(f"{path.name}{status.st_mtime_ns}{status.st_size}".encode())
    return whole.digest()


def _interesting(built: index.Index, paths: Sequence[Path], settings_of: SettingsOf) -> set[Path]:
    """The files with a function that calls something that a rule is about.

    The regions are found first: following calls brings in files that do not mention torch, and forked workers then
    share what was found.
    """
    everywhere = built.regions
    found = set()
    for path in paths:
        cards = enabled_cards(settings_of(path), path)
        summary = built.project.summaries.get(path)
        if summary is not None:
            wanted = _interest(cards)
            regions = everywhere.get(path, _NO_REGIONS)
            if any(may_interest(summary, function, regions, wanted) for function in summary.functions.values()):
                found.add(path)
        if unused_suppression.CODE in {card.code for card in cards} and suppressions.mentioned(path):
            found.add(path)
    return found


_worker: tuple[index.Index, SettingsOf] | None = None


def _start_worker(built: index.Index, settings_of: SettingsOf) -> None:
    global _worker
    _worker = (built, settings_of)


def _lint_chunk(paths: Sequence[Path]) -> list[FileResult]:
    assert _worker is not None
    built, settings_of = _worker
    gc.disable()
    try:
        return [_lint_file(built, path, settings_of(path)) for path in paths]
    finally:
        gc.enable()


def _lint_file(built: index.Index, path: Path, settings: Settings) -> FileResult:
    summary = built.project.summary(path)
    try:
        parsed = sources.parse(sources.read(path), path)
        if summary is None:
            return FileResult(path, tuple(judged(parsed, [], enabled_cards(settings, path), settings)))
        regions = built.regions.get(path, _NO_REGIONS)
        return FileResult(path, tuple(analyse(parsed, summary, built.project, regions, settings)))
    except sources.SourceError as error:
        return FileResult(path, error=error.message)
    except RecursionError:
        return FileResult(path, error="nested too deeply to analyse")


# -- fixing ----------------------------------------------------------------------------------------------------------


def fix_paths(
    paths: Sequence[Path],
    settings_of: SettingsOf = load_settings,
    jobs: int | None = None,
    cache_folder: Path | None = None,
) -> Iterator[tuple[Path, FixResult | str]]:
    """What fixing makes of each file, or why it could not be fixed; nothing is written."""
    cache = Cache(cache_folder)
    try:
        for wanted in _by_project(paths):
            root, members = index.files_of_project(wanted[0].parent, wanted, settings_of)
            built = index.build(root, members, cache, settings_of(root), jobs or cores())
            _ = built.regions
            yield from in_order(_fix_chunk, wanted, jobs or cores(), _silent, _start_worker, (built, settings_of))
    finally:
        cache.close()


def _fix_chunk(paths: Sequence[Path]) -> list[tuple[Path, FixResult | str]]:
    from graphmend_lint import fixing

    assert _worker is not None
    built, settings_of = _worker

    def lint(source: bytes, path: Path, settings: Settings) -> list[Finding]:
        return lint_source(source, path, settings=settings, project=built)

    def outcome(path: Path) -> FixResult | str:
        try:
            return fixing.fix_source(sources.read(path), path, settings=settings_of(path), lint=lint)
        except sources.SourceError as error:
            return error.message

    return [(path, outcome(path)) for path in paths]
