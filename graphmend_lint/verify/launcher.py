"""Starts the processes of arms.

Importing torch takes seconds, and a verification runs several arms. Where forking is sound, one process imports
torch, and nothing of the user's; every arm is a fork of it. Elsewhere an arm is a process from scratch.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]

# The folder of graphmend_lint goes last on the path: it may be site-packages, which must not shadow anything.
_BOOT = """
import sys
sys.path.append(sys.argv[1])
from graphmend_lint.verify.worker.main import main
main(sys.argv[2:])
"""
_SERVE = _BOOT.replace("main(sys.argv[2:])", "serve()").replace("import main", "import serve")

# What torch reads of them would change what is measured.
_NOT_INHERITED = ("TORCH_LOGS", "TORCH_TRACE")
_ENVIRONMENT = {
    # No bytecode is left in the user's tree.
    "PYTHONDONTWRITEBYTECODE": "1",
    # Sets print in the same order in both arms.
    "PYTHONHASHSEED": "0",
    # Asking whether there is a GPU must not start CUDA in a process that forks.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


# Seconds for what takes none, or is no work of the user's code.
_PATIENCE = 300.0

# Seconds that the system is given to take a killed process down, which it does on its own time.
_DYING = 10.0


class Late(Exception):
    """The process was ended, since it had not finished in time."""


class NotLaunched(Exception):
    """No process could be started; the message is one line."""


def worker_command(job_file: Path, *more: str) -> list[str]:
    """The command line that runs the steps of a job, or only those named in `more`."""
    return [sys.executable, "-c", _BOOT, str(_PACKAGE_ROOT), str(job_file), *more]


def forks() -> bool:
    """Whether arms are forks: Linux tells the number of threads, by which one knows that a fork is sound."""
    return hasattr(os, "fork") and Path("/proc/self/task").exists()


class Launcher:
    """Runs jobs one after the other. The first `run` pays for what all share; `close` ends that process."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Launcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, job_file: Path, environment: dict[str, str], timeout: float) -> int:
        """Runs a job and returns its exit status; its output goes to `output.txt` beside the job file.

        Whatever the job started has ended when this returns or raises: an Inductor compile pool outlives its
        parent by a while.

        Raises:
            Late: it took more than `timeout` seconds.
            NotLaunched: torch cannot be imported.
        """
        if forks():
            return self._forked(job_file, environment, timeout)
        return _spawned(job_file, environment, timeout)

    def close(self) -> None:
        """Ends the process that the arms are forks of."""
        server, self._server = self._server, None
        if server is None:
            return
        _end_group(server.pid)
        server.wait()
        for stream in (server.stdin, server.stdout):
            if stream is not None:
                stream.close()

    def _forked(self, job_file: Path, environment: dict[str, str], timeout: float) -> int:
        server = self._started()
        assert server.stdin is not None
        request = {"job": str(job_file), "environment": environment, "output": str(job_file.with_name("output.txt"))}
        server.stdin.write(json.dumps(request).encode() + b"\n")
        process = int(self._answer(_PATIENCE)["process"])
        try:
            return int(self._answer(timeout)["status"])
        except Late:
            _end_group(process)
            self._answer(_PATIENCE)
            raise
        except BaseException:
            # What it is doing is unknown: the next arm gets a new one.
            self.close()
            raise
        finally:
            _end_group(process)
            _await_end(process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._server is not None and self._server.poll() is None:
            return self._server
        self.close()
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(_PACKAGE_ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Unbuffered: a line that waits in a buffer is one that `select` does not see.
            bufsize=0,
            env=_inherited(),
            start_new_session=True,
        )
        try:
            problem = self._answer(_PATIENCE)["problem"]
        except Late:
            self.close()
            raise NotLaunched(f"torch was not imported within {_PATIENCE:g} s") from None
        except BaseException:
            self.close()
            raise
        if problem:
            self.close()
            raise NotLaunched(problem)
        return self._server

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self._server is not None
        stream: IO[bytes] | None = self._server.stdout
        assert stream is not None
        if not select.select([stream], [], [], timeout)[0]:
            raise Late
        line = stream.readline()
        if not line:
            raise NotLaunched("the process that starts the arms has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _spawned(job_file: Path, environment: dict[str, str], timeout: float) -> int:
    with job_file.with_name("output.txt").open("wb") as output:
        process = subprocess.Popen(
            worker_command(job_file),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_inherited() | environment,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Late from None
        finally:
            if not _end_group(process.pid) and process.poll() is None:
                process.kill()
            process.wait()


def _inherited() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return kept | _ENVIRONMENT


def _end_group(leader: int) -> bool:
    """Ends all processes of a group; False where the system has no groups."""
    if not hasattr(os, "killpg"):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    return True


def _await_end(leader: int) -> None:
    """Waits until no process of a killed group runs any more."""
    deadline = time.monotonic() + _DYING
    while any(_members(leader)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _members(leader: int) -> Iterator[int]:
    """The processes of a group that hold anything still; zombies do not. From proc(5)."""
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # The name of the program, in parentheses, may hold anything.
            state, _, group = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(group) == leader and state not in ("Z", "X"):
                yield int(place.name)
