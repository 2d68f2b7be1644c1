"""One row of a benchmark: the breaks of a small model as it is, with the safe fixes, and with the unsafe ones too."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import graphmend_lint
from graphmend_lint import engine
from graphmend_lint.analysis.source import SourceError
from graphmend_lint.cache import default_folder
from graphmend_lint.config import Settings
from graphmend_lint.discovery import index_root
from graphmend_lint.findings import Finding
from graphmend_lint.fixing import FixResult, fix_source
from graphmend_lint.index import Index
from graphmend_lint.verify import Options, TargetSpec, Verdict
from graphmend_lint.verify.arm import CouldNotRun
from graphmend_lint.verify.driver import Verification
from graphmend_lint.verify.launcher import Launcher
from graphmend_lint.verify.linter import LinterFixes
from graphmend_lint.verify.verdict import Break, Capture

ROOT = Path(__file__).resolve().parents[1]
_INSTALLED = re.compile(r"[^\s'\"]*/site-packages/")


class Indices:
    """What is known of projects: each is indexed once for all rows, which costs more than fixing a file."""

    def __init__(self) -> None:
        self._made: dict[tuple[Path, bool], Index] = {}

    def around(self, path: Path, settings: Settings) -> Index:
        """The index of the project that a file is in."""
        root = index_root(path.parent)
        if root not in self._made:
            self._made[root] = engine.project_around(path, lambda _: settings, default_folder())
        return self._made[root]


class KeptFixes(LinterFixes):
    """The linter's fixes with its default settings. A file that several models execute is fixed once."""

    def __init__(self, indices: Indices, settings: Settings | None = None) -> None:
        self._settings_of_all = settings or Settings()
        super().__init__(settings=self._settings_of_all)
        self._indices = indices
        self._kept: dict[Path, FixResult | None] = {}

    def __call__(self, paths: list[Path]) -> dict[Path, FixResult]:
        self._kept |= {path: self._made(path) for path in paths if path not in self._kept}
        return {path: result for path in paths if (result := self._kept[path]) is not None}

    def _made(self, path: Path) -> FixResult | None:
        around = self._indices.around(path, self._settings_of_all)

        def lint(source: bytes, path: Path, settings: Settings) -> list[Finding]:
            return engine.lint_source(source, path, settings=settings, project=around)

        try:
            return fix_source(path.read_bytes(), path, settings=self._settings_of_all, lint=lint)
        except SourceError:
            return None


class UnsafeToo(KeptFixes):
    """The same with unsafe fixes. Files in which the safe ones leave none of those are not fixed again."""

    def __init__(self, safe: KeptFixes) -> None:
        super().__init__(safe._indices, Settings(unsafe_fixes=True))
        self._safe = safe

    def _made(self, path: Path) -> FixResult | None:
        safe = self._safe([path]).get(path)
        more = safe is not None and any(one.fix == "unsafe" for one in safe.remaining)
        return super()._made(path) if more else safe


@dataclass(frozen=True, slots=True)
class Fixed:
    """What came of a model with fixes. `left` are its breaks, `differing` the checks that failed, `unseen` the sides of
    rewritten tests that were never taken.
    """

    status: str
    reason: str
    after: int | None = None
    recompiles: tuple[int, int] | None = None
    fullgraph: bool | None = None
    rules: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """A row as it is kept. Breaks are those of the input set with the most: a call, as others count them.

    `safe` or `unsafe` is None where it was not run: the safe fixes alone where none of them is at a line that breaks
    but an unsafe one is, and the unsafe ones where they add nothing at such lines. `problem` says why there is no
    number.
    """

    row: str
    date: str
    versions: Mapping[str, str]
    seconds: float = 0.0
    before: int | None = None
    breaks: tuple[str, ...] = ()
    safe: Fixed | None = None
    unsafe: Fixed | None = None
    problem: str = ""

    @property
    def best(self) -> Fixed | None:
        """With all fixes that were tried."""
        return self.unsafe or self.safe

    @property
    def after_safe(self) -> int | None:
        """Breaks with the safe fixes. Where none of them is at a line that breaks, there are as many as before."""
        return self.safe.after if self.safe else self.before

    @property
    def after(self) -> int | None:
        return self.best.after if self.best else self.before

    @property
    def verdict(self) -> str:
        if self.best is None:
            return "could not run"
        return self.best.status if self.best.rules else "no fix"

    @property
    def reason(self) -> str:
        return self.best.reason if self.best else self.problem

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Measurement:
        fixed = {name: _fixed_of(record[name]) for name in ("safe", "unsafe")}
        return cls(**{**record, **fixed, "breaks": tuple(record["breaks"])})


def _fixed_of(record: dict[str, Any] | None) -> Fixed | None:
    if record is None:
        return None
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    return Fixed(**values)


@dataclass(frozen=True)
class Bench:
    """What all rows of a run share: the process that arms are forks of, and the fixes of files that were made."""

    options: Options
    packages: tuple[str, ...]
    launcher: Launcher = field(default_factory=Launcher)
    safe: KeptFixes = field(default_factory=lambda: KeptFixes(Indices()))

    @cached_property
    def unsafe(self) -> UnsafeToo:
        return UnsafeToo(self.safe)

    def measure(self, row: str, target: TargetSpec) -> Measurement:
        """Runs a target as it is, and fixed."""
        start = time.monotonic()
        versions = _versions(self.packages)
        today = date.today().isoformat()
        try:
            with Verification(target, self.options, self.launcher) as verification:
                original, verdicts = self._judged(verification)
        except CouldNotRun as error:
            return Measurement(row, today, versions, problem=portable(str(error)))
        return Measurement(
            row,
            today,
            versions,
            round(time.monotonic() - start, 1),
            most(original),
            tuple(map(_site, original.sites)),
            _kept(verdicts.get("safe")),
            _kept(verdicts.get("unsafe")),
        )

    def _judged(self, verification: Verification) -> tuple[Capture, dict[str, Verdict | Fixed]]:
        original = verification.judge(lambda _: {}).original
        assert original is not None
        fixers: dict[str, KeptFixes] = {"safe": self.safe, "unsafe": self.unsafe}
        met = {name: _met(original.capture.sites, fixes(verification.executed)) for name, fixes in fixers.items()}
        more = met["unsafe"] - met["safe"]
        wanted = [name for name, run in (("safe", met["safe"] or not more), ("unsafe", more)) if run]
        return original.capture, {name: _verdict(verification, fixers[name]) for name in wanted}


def _verdict(verification: Verification, fixes: KeptFixes) -> Verdict | Fixed:
    try:
        return verification.judge(fixes)
    except CouldNotRun as error:
        return Fixed("could not run", portable(str(error)))


def _met(sites: Sequence[Break], results: Mapping[Path, FixResult]) -> set[tuple[Path, int]]:
    """The lines that break and that a fix changes."""
    changed = {
        (path, line)
        for path, result in results.items()
        for finding in result.applied
        for span in (finding.span, *(edit.span for edit in (finding.plan.edits if finding.plan else ())))
        for line in range(span.line, span.end_line + 1)
    }
    return changed & {(Path(site.file), site.line) for site in sites}


def most(capture: Capture) -> int:
    """The breaks of the input set with the most."""
    return max(capture.breaks, default=0)


def _kept(found: Verdict | Fixed | None) -> Fixed | None:
    if not isinstance(found, Verdict):
        return found
    checks = {check.name: check for check in found.checks}
    fixed = found.fixed
    # Without any fix there are as many breaks as before.
    last = fixed or found.original
    recompiles = checks.get("recompiles")
    return Fixed(
        found.status,
        portable(found.reason),
        most(last.capture) if last else None,
        (int(recompiles.original), int(recompiles.fixed)) if recompiles else None,
        fixed.capture.whole if fixed else None,
        tuple(sorted({rule for file in found.files for rule in file.rules})),
        tuple(check.name for check in found.checks if not check.passed),
        tuple(f"{Path(one.path).name}:{one.line} {side}" for one in found.predicates for side in one.missing),
        tuple(map(_site, last.capture.sites)) if last else (),
        tuple(map(portable, found.notes)),
    )


def _site(site: Break) -> str:
    covered = f" [{site.rule}]" if site.rule else ""
    return portable(f"{site.file}:{site.line} {site.code.strip()} ({site.type}){covered}")


def portable(text: str) -> str:
    """A text without what is of this machine: where packages and this repository are."""
    return _INSTALLED.sub("", text).replace(f"{ROOT}/", "")


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {name: metadata.version(name) for name in packages if _installed(name)}
    return {"python": platform.python_version(), **found, "graphmend-lint": graphmend_lint.__version__}


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
