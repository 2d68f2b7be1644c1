"""One arm: a subprocess that runs one version of the code and leaves its results in a folder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphmend_lint.verify.options import Options
from graphmend_lint.verify.target import TargetSpec

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]

# The folder of graphmend_lint goes last on the path: it may be site-packages, which must not shadow anything.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from graphmend_lint.verify.worker.main import main
main(sys.argv[2:])
"""


class CouldNotRun(Exception):
    """An arm gave no result; the message is one line."""

    def __init__(self, arm: str, reason: str) -> None:
        super().__init__(f"{arm} arm: {reason}")


class ArmsDiffer(Exception):
    """The arm built another model or other inputs than those that were saved; the message is one line."""


@dataclass(frozen=True, slots=True)
class ArmJob:
    """What an arm needs to know.

    `folder` is shared by all arms of a target: the fixed ones read what the original saved there. `home`,
    below it, is the arm's own.
    """

    name: str
    target: TargetSpec
    options: Options
    folder: Path
    home: Path
    steps: tuple[str, ...]
    overlay: Path | None = None

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
            "steps": list(self.steps),
        }


def run_arm(job: ArmJob) -> dict[str, Any]:
    """Runs the steps of an arm and returns the record of each; raises CouldNotRun or ArmsDiffer. No process
    outlives the call.
    """
    home = job.home
    (home / "tmp").mkdir(parents=True)
    job_file = home / "job.json"
    job_file.write_text(json.dumps(job.to_json()), encoding="utf-8")
    command = worker_command(job_file)
    with (home / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(home),
            start_new_session=True,
        )
        try:
            status = process.wait(job.options.timeout)
        except subprocess.TimeoutExpired:
            raise CouldNotRun(job.name, _late(home, job.options.timeout)) from None
        finally:
            _end(process)
    return {step: _record_of(job.name, home, step, status) for step in job.steps}


def worker_command(job_file: Path, *more: str) -> list[str]:
    """The command line that runs the steps of a job, or only those named in `more`."""
    return [sys.executable, "-c", _BOOT, str(_PACKAGE_ROOT), str(job_file), *more]


def _environment(home: Path) -> dict[str, str]:
    """The user's environment with caches and temporary files of its own, and no bytecode left in the user's
    tree.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in ("TORCH_LOGS", "TORCH_TRACE")}
    return inherited | {
        "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"),
        "TRITON_CACHE_DIR": str(home / "triton"),
        "TMPDIR": str(home / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Sets print in the same order in both arms.
        "PYTHONHASHSEED": "0",
        # Asking whether there is a GPU must not start CUDA in a process that forks.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the arm and whatever it started: an Inductor compile pool outlives its parent by a while."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()
    process.wait()


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
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _last_line(output: Path) -> str:
    lines: Sequence[str] = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip()[:200] if lines else "no output"
