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
from graphmend_lint.verify.options import Options
from graphmend_lint.verify.rules import Fixes, cover
from graphmend_lint.verify.target import TargetSpec
from graphmend_lint.verify.verdict import Arm, Capture, Run, Verdict


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


FixFiles = Callable[[list[Path]], Mapping[Path, FixedFile]]


def verify(
    target: TargetSpec,
    fix_files: FixFiles,
    *,
    fix_paths: Iterable[Path] = (),
    options: Options | None = None,
) -> Verdict:
    """Compares `target` as it is with `target` as `fix_files` would make it.

    Changes nothing in the user's tree. Without `fix_paths`, the files that the target's calls executed are
    fixed; torch and the standard library are left out. A file in `fix_paths` is fixed whether it was
    executed or not; a folder stands for the executed files below it.
    """
    try:
        with Verification(target, options) as verification:
            return verification.judge(fix_files, fix_paths)
    except CouldNotRun as error:
        return Verdict(target.text, "could not run", str(error))


class Verification:
    """The original arm of a target, measured once, against which any number of fixes can be judged.

    What it needs on disk goes away when the `with` block ends. Entering it raises CouldNotRun.
    """

    def __init__(self, target: TargetSpec, options: Options | None = None) -> None:
        self._target = target
        self._options = options or Options()
        self._fixed_arms = 0

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
        found = self._verdict(_arm(self._records, fixes.original_rules), fixes, len(paths))
        return replace(found, notes=(*found.notes, *fixes.problems))

    def _verdict(self, original: Arm, fixes: Fixes, asked: int) -> Verdict:
        environment = self._records["prepare"]["environment"]
        if not fixes.changed:
            return judge.nothing_fixed(self._target.text, original, asked, environment)
        files = fixes.changed_files()
        try:
            records = self._run_fixed(fixes.changed)
        except ArmsDiffer as error:
            return judge.built_differently(self._target.text, original, str(error), files, environment)
        fixed = _arm(records, fixes.fixed_rules)
        return judge.verdict(self._target.text, original, fixed, records["compare"], files, self._options, environment)

    def _run_original(self) -> dict[str, Any]:
        steps = ("prepare", "eager", "compiled", "capture")
        try:
            return run_arm(self._job("original", "original", steps))
        except ArmsDiffer as error:
            reason = f"the target builds something else each time: {error}"
            raise CouldNotRun("original", reason) from None

    def _run_fixed(self, changed: Mapping[Path, bytes]) -> dict[str, Any]:
        self._fixed_arms += 1
        home = f"fixed-{self._fixed_arms}"
        overlay = _write_overlay(changed, self._folder / f"overlay-{self._fixed_arms}")
        return run_arm(self._job("fixed", home, ("eager", "compiled", "capture", "compare"), overlay))

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
        shutil.rmtree(self._folder, ignore_errors=True)


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
    return Arm(Run.from_json(records["eager"]), Run.from_json(records["compiled"]), cover(capture, rules))
