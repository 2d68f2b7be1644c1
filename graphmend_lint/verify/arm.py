"""One arm: a subprocess that runs one version of the code and leaves its results in a folder."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphmend_lint.verify.launcher import Late, Launcher, NotLaunched
from graphmend_lint.verify.options import Options
from graphmend_lint.verify.target import TargetSpec


class CouldNotRun(Exception):
    """An arm gave no result; the message is one line. `late`: it had not finished in time."""

    def __init__(self, arm: str, reason: str, *, late: bool = False) -> None:
        super().__init__(f"{arm} arm: {reason}")
        self.late = late
        self._arm, self._reason = arm, reason

    def because(self, cause: str) -> CouldNotRun:
        """The same with what it comes from."""
        return CouldNotRun(self._arm, f"{self._reason}; {cause}", late=self.late) if cause else self


class ArmsDiffer(Exception):
    """The arm built another model or other inputs than those that were saved; the message is one line."""


@dataclass(frozen=True, slots=True)
class ArmJob:
    """What an arm needs to know.

    `folder` is shared by all arms of a target: the fixed ones read what the original saved there. `home`,
    below it, is the arm's own. `watch` names the predicates that the "sides" step watches.
    """

    name: str
    target: TargetSpec
    options: Options
    folder: Path
    home: Path
    steps: tuple[str, ...]
    overlay: Path | None = None
    watch: Path | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "arm": self.name,
            "module": self.target.module,
            "attribute": self.target.attribute,
            "root": str(self.target.root),
            "options": {**asdict(self.options), "exact": self.options.exact},
            "folder": str(self.folder),
            "home": str(self.home),
            "overlay": str(self.overlay) if self.overlay else None,
            "watch": str(self.watch) if self.watch else None,
            "steps": list(self.steps),
        }


def run_arm(job: ArmJob, launcher: Launcher) -> dict[str, Any]:
    """Runs the steps of an arm and returns the record of each; raises CouldNotRun or ArmsDiffer. No process
    outlives the call.
    """
    home = job.home
    (home / "tmp").mkdir(parents=True)
    job_file = home / "job.json"
    job_file.write_text(json.dumps(job.to_json()), encoding="utf-8")
    try:
        status = launcher.run(job_file, _environment(home), job.options.timeout)
    except Late:
        raise CouldNotRun(job.name, _late(home, job.options.timeout), late=True) from None
    except NotLaunched as error:
        raise CouldNotRun(job.name, str(error)) from None
    return {step: _record_of(job.name, home, step, status) for step in job.steps}


def _environment(home: Path) -> dict[str, str]:
    """Caches and temporary files of the arm's own."""
    return {
        "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"),
        "TRITON_CACHE_DIR": str(home / "triton"),
        "TMPDIR": str(home / "tmp"),
    }


def _late(home: Path, timeout: float) -> str:
    current = home / "current"
    where = current.read_text(encoding="utf-8") if current.exists() else "start"
    return f"no result within {timeout:g} s ({where})"


def _record_of(arm: str, home: Path, step: str, status: int) -> dict[str, Any]:
    for name in ("import", step):
        file = home / f"{name}.json"
        if file.exists():
            record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if "failure" in record:
                raise CouldNotRun(arm, record["failure"])
            if "mismatch" in record:
                raise ArmsDiffer(record["mismatch"])
            if name == step:
                return record
    raise CouldNotRun(arm, f"{describe_exit(status)} ({_last_line(home / 'output.txt')})")


def describe_exit(status: int) -> str:
    """A return code in words."""
    if status >= 0:
        return f"ended with exit status {status}"
    if status == -signal.SIGKILL:
        return "was ended by SIGKILL (out of memory, perhaps)"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _last_line(output: Path) -> str:
    lines: Sequence[str] = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip()[:200] if lines else "no output"
