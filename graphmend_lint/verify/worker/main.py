"""The process of an arm: imports torch and the target once, then runs every step in a fresh copy of that
state.

What a program says once (`warning_once`, `lru_cache`, lazily made attributes) makes one run colour the
next, so no two steps share a process. A forked child is such a copy at no cost; where forking is not safe,
a step gets a process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphmend_lint.verify.arm import describe_exit
from graphmend_lint.verify.launcher import worker_command
from graphmend_lint.verify.worker.job import Job, Mismatch, StepFailure

# Torch and Dynamo come first: what they load is not the target's, and one module takes note of that.
_TORCH = ("torch", "torch._dynamo.convert_frame")
_TAKES_NOTE = "graphmend_lint.verify.worker.executed"


def serve() -> None:
    """Imports torch, then runs the jobs that the standard input names, one a line, each in a fork.

    The answers go to the standard output, one a line: the process of a job, then its exit status.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    problem = None
    try:
        _import_torch()
    except BaseException as error:
        problem = f"cannot import torch: {_in_one_line(error)}"
    print(json.dumps({"problem": problem}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _serve_one(request)
        with contextlib.suppress(OSError):
            # In both processes: neither may go on before it is done.
            os.setpgid(child, child)
        print(json.dumps({"process": child}), file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), file=answers, flush=True)


def _serve_one(request: dict[str, Any]) -> None:
    """Runs a job in this process, which ends with it."""
    status = 1
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(request["environment"])
        tempfile.tempdir = None
        main([request["job"]])
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # No exit handlers: they belong to the parent.
        os._exit(status)


def main(arguments: Sequence[str]) -> None:
    """Runs the steps of the job file named first, or only those named after it."""
    job = Job.load(Path(arguments[0]))
    wanted = tuple(arguments[1:])
    try:
        threads = _prepare(job)
    except BaseException as error:
        job.write("import", {"failure": f"cannot import {job.module}: {_in_one_line(error)}"})
        return
    for step in wanted or job.steps:
        if wanted:
            _run(job, step)
        elif not (_forked(job, step) if _fork_is_safe(job, threads) else _spawned(job, step)):
            return


def _prepare(job: Job) -> int | None:
    """Imports what all steps share; the number of threads before the target was imported."""
    job.enter("import")
    sys.path.insert(0, job.root)
    if job.overlay:
        from graphmend_lint.verify.worker import overlay

        overlay.install(job.overlay)
    _import_torch()
    if job.watch:
        from graphmend_lint.verify.worker import replay

        replay.install(job.watch)
    before = _threads()
    job.callable()
    return before


def _import_torch() -> None:
    """What torch does once in a process, it does here: before the target, and before the arms part."""
    for module in _TORCH:
        importlib.import_module(module)
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        torch.compile(torch.nn.Linear(1, 1), backend="eager")(torch.ones(1))
    torch._dynamo.reset()
    importlib.import_module(_TAKES_NOTE)


def _fork_is_safe(job: Job, threads: int | None) -> bool:
    """True if a fork of this process is a sound process, with all modules in it that the target is built
    from.

    Threads do not survive a fork. Those that torch and numpy start when they are imported are prepared for
    that; a target that computes while it is imported has started others.
    """
    for name in (job.prepared() or {}).get("modules", ()):
        # Building the target imports it too, and reports what goes wrong.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    now = _threads()
    return threads is not None and now is not None and now <= threads and not _cuda_started()


def _cuda_started() -> bool:
    cuda: Any = sys.modules["torch.cuda"]
    return bool(cuda.is_initialized())


def _threads() -> int | None:
    """The number of native threads; None where the system does not tell."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return None


def _forked(job: Job, step: str) -> bool:
    child = os.fork()
    if child == 0:
        try:
            _run(job, step)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # No exit handlers: they belong to the parent.
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return _ended_well(job, step, os.waitstatus_to_exitcode(status))


def _spawned(job: Job, step: str) -> bool:
    return _ended_well(job, step, subprocess.call(worker_command(job.file, step)))


def _ended_well(job: Job, step: str, status: int) -> bool:
    """True if the step left a result; what ended its process is written in place of the missing one."""
    result = job.read(step)
    if result is None:
        job.write(step, {"failure": f"the {step} run {describe_exit(status)}"})
        return False
    return "failure" not in result and "mismatch" not in result


def _run(job: Job, step: str) -> None:
    from graphmend_lint.verify.worker import steps

    job.enter(f"{step} run")
    try:
        result: dict[str, Any] = steps.STEPS[step](job)
    except StepFailure as error:
        result = {"failure": f"{error} ({step} run)"}
    except Mismatch as error:
        result = {"mismatch": str(error)}
    except BaseException as error:
        traceback.print_exc()
        result = {"failure": f"the {step} run failed: {_in_one_line(error)}"}
    job.write(step, result)


def _in_one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
