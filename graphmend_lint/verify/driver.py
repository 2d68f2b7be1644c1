"""Runs the arms and hands what they measured to the judge."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from graphmend_lint.verify import judge
from graphmend_lint.verify.arm import ArmJob, ArmsDiffer, CouldNotRun, run_arm
from graphmend_lint.verify.bisect import smallest
from graphmend_lint.verify.launcher import Launcher
from graphmend_lint.verify.options import Options
from graphmend_lint.verify.parts import Parts
from graphmend_lint.verify.rules import Fixes, cover
from graphmend_lint.verify.target import TargetSpec
from graphmend_lint.verify.verdict import Arm, Capture, Cause, Predicate, Run, Timing, Verdict


class FixedFile(Protocol):
    """A file after fixing: its whole source, the findings fixed in it, and those that remain in it.

    `problems` are lines about what went wrong.
    """

    @property
    def source(self) -> bytes: ...
    @property
    def applied(self) -> Sequence[Any]: ...
    @property
    def remaining(self) -> Sequence[Any]: ...
    @property
    def problems(self) -> Sequence[str]: ...


Records = dict[str, Any]

# What a fixed arm does to be compared with the original.
_COMPARED = ("eager", "compiled", "capture", "compare")
# Arms that are run to find the fix that makes a difference.
_MOST_TRIALS = 40
_NOTHING_SEEN: Records = {"predicates": [], "differences": []}

FixFiles = Callable[[list[Path]], Mapping[Path, FixedFile]]


def verify(
    target: TargetSpec,
    fix_files: FixFiles,
    *,
    fix_paths: Iterable[Path] = (),
    options: Options | None = None,
    launcher: Launcher | None = None,
) -> Verdict:
    """Compares `target` as it is with `target` as `fix_files` would make it.

    Changes nothing in the user's tree. Without `fix_paths`, the files that the target's calls executed are
    fixed; torch and the standard library are left out. A file in `fix_paths` is fixed whether it was
    executed or not; a folder stands for the executed files below it.
    """
    try:
        with Verification(target, options, launcher) as verification:
            return verification.judge(fix_files, fix_paths)
    except CouldNotRun as error:
        return Verdict(target.text, "could not run", str(error))


class Verification:
    """The original arm of a target, measured once, against which any number of fixes can be judged.

    What it needs on disk goes away when the `with` block ends, as do its processes, but for a `launcher` that
    was given. Entering it raises CouldNotRun.
    """

    def __init__(self, target: TargetSpec, options: Options | None = None, launcher: Launcher | None = None) -> None:
        self._target = target
        self._options = options or Options()
        self._launcher = launcher or Launcher()
        self._keeps_launcher = launcher is not None
        self._fixed_arms = 0
        self._watches = 0

    def __enter__(self) -> Verification:
        self._folder = Path(tempfile.mkdtemp(prefix="graphmend-verify-"))
        try:
            self._records = self._run_original()
            self._check_compiler()
        except BaseException:
            self._clean()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clean()

    @property
    def executed(self) -> list[Path]:
        """The files whose functions the target's calls executed."""
        return [Path(file) for file in self._records["prepare"]["executed"]]

    def judge(self, fix_files: FixFiles, fix_paths: Iterable[Path] = ()) -> Verdict:
        """The verdict on what `fix_files` makes of the files; raises CouldNotRun."""
        paths = _selected(self.executed, [path.resolve() for path in fix_paths])
        fixes = _fix(fix_files, paths)
        found = self._verdict(_arm(self._records, fixes.original_rules), fixes, len(paths), fix_files)
        return replace(found, notes=(*found.notes, *fixes.problems))

    def _verdict(self, original: Arm, fixes: Fixes, asked: int, fix_files: FixFiles) -> Verdict:
        environment = self._records["prepare"]["environment"]
        if not fixes.changed:
            return judge.nothing_fixed(self._target.text, original, asked, environment)
        files = fixes.changed_files()
        parts = Parts(fixes, fix_files)
        try:
            records = self._run_fixed(fixes.changed, self._fixed_steps())
        except ArmsDiffer as error:
            found = judge.built_differently(self._target.text, original, str(error), files, environment)
            return judge.with_causes(found, self._causes(parts, ("eager",), failing=ArmsDiffer))
        except CouldNotRun as error:
            causes = () if error.late else self._causes(parts, self._fixed_steps(), failing=CouldNotRun)
            raise error.because(judge.causes_in_words(causes) if causes else "") from None
        fixed = _arm(records, fixes.fixed_rules)
        found = judge.verdict(self._target.text, original, fixed, records["compare"], files, self._options, environment)
        if differing := judge.differences(found.checks):
            return judge.with_causes(found, self._causes_of(parts, original, {check.name for check in differing}))
        return self._with_sides(found, fixes, parts)

    def _causes_of(self, parts: Parts, original: Arm, names: set[str]) -> tuple[Cause, ...]:
        """The fixes that make checks fail. A difference that shows uncompiled is looked for uncompiled."""
        eager = {name for name in names if name.startswith("eager ")}
        if eager:

            def differs_eagerly(records: Records) -> bool:
                run = Run.from_json(records["eager"])
                checks = judge.eager_checks(original.eager, run, records["compare"]["eager"])
                return any(not check.passed and check.name in eager for check in checks)

            return self._causes(parts, ("eager", "compare"), differs_eagerly)

        def differs(records: Records) -> bool:
            found = judge.verdict("", original, _arm(records, {}), records["compare"], (), self._options, {})
            return any(check.name in names for check in judge.differences(found.checks))

        return self._causes(parts, _COMPARED, differs)

    def _causes(
        self,
        parts: Parts,
        steps: tuple[str, ...],
        differs: Callable[[Records], bool] | None = None,
        failing: type[Exception] | None = None,
    ) -> tuple[Cause, ...]:
        """The smallest set of fixes found whose arm leaves records that `differs` is true of, or ends in
        `failing` instead.
        """

        def differ(some: Sequence[Cause]) -> bool:
            changed = parts.sources(some)
            if not changed:
                return False
            try:
                records = self._run_fixed(changed, steps)
            except (ArmsDiffer, CouldNotRun) as error:
                return failing is not None and isinstance(error, failing)
            return differs is not None and differs(records)

        everything = parts.all
        return tuple(smallest(everything, differ, _MOST_TRIALS)) if everything else ()

    def _with_sides(self, found: Verdict, fixes: Fixes, parts: Parts) -> Verdict:
        """Watches the rewritten predicates in the original, and replays the functions around them."""
        if not fixes.watched:
            return found
        record, problem = self._run_sides(fixes.changed, fixes)
        predicates = tuple(Predicate.from_json(entry) for entry in record["predicates"])
        notes = (*found.notes, *problem, *_not_replayed(predicates), *fixes.not_watched(record["predicates"]))
        differing = record["differences"]
        sides = judge.with_sides(found, predicates, differing, self._options.require_both_sides)

        def differ(some: Sequence[Cause]) -> bool:
            changed = parts.sources(some)
            return bool(changed) and bool(self._run_sides(changed, fixes)[0]["differences"])

        causes = tuple(smallest(parts.all, differ, _MOST_TRIALS)) if differing and parts.all else ()
        return judge.with_causes(replace(sides, notes=notes), causes)

    def _run_sides(self, changed: Mapping[Path, bytes], fixes: Fixes) -> tuple[Records, tuple[str, ...]]:
        """What the "sides" step found of these versions of the files, and why that is not all."""
        self._watches += 1
        home = f"sides-{self._watches}"
        places = _write_overlay(changed, self._folder / f"{home}-overlay")
        fixed: dict[str, str] = json.loads(places.read_text(encoding="utf-8"))
        files = {path: {"fixed": fixed.get(path, path), "edits": edits} for path, edits in fixes.watched.items()}
        manifest = self._folder / f"{home}.json"
        manifest.write_text(json.dumps({"files": files}), encoding="utf-8")
        job = replace(self._job("original", home, ("sides",)), watch=manifest)
        try:
            record: Records = run_arm(job, self._launcher)["sides"]
        except (ArmsDiffer, CouldNotRun) as error:
            observed = job.home / "observed.json"
            record = json.loads(observed.read_text(encoding="utf-8")) if observed.exists() else _NOTHING_SEEN
            return record, (f"not all replays were made: {error}",)
        return record, ()

    def _run_original(self) -> Records:
        steps = ("prepare", "eager", "compiled", "capture", *self._timing())
        try:
            return run_arm(self._job("original", "original", steps), self._launcher)
        except ArmsDiffer as error:
            reason = f"the target builds something else each time: {error}"
            raise CouldNotRun("original", reason) from None

    def _fixed_steps(self) -> tuple[str, ...]:
        return (*_COMPARED, *self._timing())

    def _timing(self) -> tuple[str, ...]:
        return ("timing",) if self._options.passes else ()

    def _run_fixed(self, changed: Mapping[Path, bytes], steps: tuple[str, ...]) -> Records:
        self._fixed_arms += 1
        home = f"fixed-{self._fixed_arms}"
        overlay = _write_overlay(changed, self._folder / f"overlay-{self._fixed_arms}")
        return run_arm(self._job("fixed", home, steps, overlay), self._launcher)

    def _job(self, name: str, home: str, steps: tuple[str, ...], overlay: Path | None = None) -> ArmJob:
        return ArmJob(name, self._target, self._options, self._folder, self._folder / home, steps, overlay)

    def _check_compiler(self) -> None:
        """A backend that cannot compile the code as it is (no C++ compiler, say) proves nothing about a
        fix.
        """
        plain, compiled = (Run.from_json(self._records[step]).raised for step in ("eager", "compiled"))
        for number, (one, two) in enumerate(zip(plain, compiled, strict=True), 1):
            if two and one != two and two.type.startswith(("torch._dynamo.", "torch._inductor.")):
                reason = (two.text.strip().splitlines() or [""])[0]
                raise CouldNotRun("original", f"compiled call {number} raised {two.type}: {reason}")

    def _clean(self) -> None:
        if not self._keeps_launcher:
            self._launcher.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _not_replayed(predicates: tuple[Predicate, ...]) -> list[str]:
    noted = {f"{Path(one.path).name}:{one.line} was not replayed: {one.note}" for one in predicates if one.note}
    return sorted(noted)


def _selected(executed: list[Path], wanted: list[Path]) -> list[Path]:
    if not wanted:
        return executed
    folders = [path for path in wanted if path.is_dir()]
    files = [path for path in wanted if not path.is_dir()]
    return files + [path for path in executed if path not in files and any(map(path.is_relative_to, folders))]


def _fix(fix_files: FixFiles, paths: list[Path]) -> Fixes:
    results = {path.resolve(): result for path, result in fix_files(paths).items()} if paths else {}
    return Fixes(
        before={path: path.read_bytes() for path in results},
        after={path: result.source for path, result in results.items()},
        applied={path: tuple(result.applied) for path, result in results.items()},
        remaining={path: tuple(result.remaining) for path, result in results.items()},
        problems=tuple(problem for result in results.values() for problem in result.problems),
    )


def _write_overlay(changed: Mapping[Path, bytes], folder: Path) -> Path:
    """The fixed sources, and a list that says which file of the user each one stands for."""
    folder.mkdir()
    places = {}
    for number, (path, source) in enumerate(changed.items()):
        place = folder / f"{number}-{path.name}"
        place.write_bytes(source)
        places[str(path)] = str(place)
    manifest = folder / "overlay.json"
    manifest.write_text(json.dumps(places), encoding="utf-8")
    return manifest


def _arm(records: dict[str, Any], rules: Mapping[Path, Mapping[int, str]]) -> Arm:
    capture = Capture.from_json(records["capture"])
    timing = Timing.from_json(records["timing"]) if "timing" in records else None
    return Arm(Run.from_json(records["eager"]), Run.from_json(records["compiled"]), cover(capture, rules), timing)
