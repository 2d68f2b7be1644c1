"""How long the compiled model takes, cold and warm, and how much memory it needs."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

import torch

from graphmend_lint.verify.worker.calls import check_memory, copied
from graphmend_lint.verify.worker.job import Job
from graphmend_lint.verify.worker.messages import listening
from graphmend_lint.verify.worker.subject import InputSet, Subject, device_of, seed

# Passes before the steady state: a second shape makes Dynamo compile once more, for dynamic shapes.
_SETTLING = 3
# A slow model is timed over fewer passes.
_SECONDS = 10.0


def compiled_like(job: Job, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled as the options say."""
    if job.options["backend"] == "inductor":
        # Inductor's own random numbers are other ones than those of eager code.
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.fallback_random = True
    return torch.compile(function, **{name: job.options[name] for name in ("backend", "mode", "dynamic")})


def timed(job: Job, subject: Subject, packages: Collection[str]) -> dict[str, Any]:
    """Times passes over the input sets: the first compiled one, later ones, and uncompiled ones.

    The caches are empty: they are this step's own. What torch does once in a process is not in the figures.
    """
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(job.home / "cold-inductor")
    os.environ["TRITON_CACHE_DIR"] = str(job.home / "cold-triton")
    device = device_of(job.options["device"])
    with torch.set_grad_enabled(job.options["grad"]), listening(packages) as ear:
        compiled_like(job, _trivial)(torch.ones(2, device=device))
        torch._dynamo.reset()
        function = compiled_like(job, subject.model)
        cold = _pass(job, subject, function, device)
        for _ in range(_SETTLING):
            _pass(job, subject, function, device)
        steady = _passes(job, subject, function, device)
        memory = _peak_memory(device)
        eager = _passes(job, subject, subject.model, device)
        ear.take()
    return {"cold": cold, "steady": steady, "eager": eager, "memory": memory}


def _trivial(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def _passes(job: Job, subject: Subject, function: Callable[..., Any], device: torch.device) -> list[float]:
    found: list[float] = []
    while len(found) < job.options["passes"] and sum(found) < _SECONDS:
        found.append(_pass(job, subject, function, device))
    return found


def _pass(job: Job, subject: Subject, function: Callable[..., Any], device: torch.device) -> float:
    """Seconds in calls, one for each input set; copies of the inputs are made outside of that."""
    inputs = [copied(pair) for pair in subject.inputs]
    seed(job.options["seed"])
    _wait(device)
    start = time.perf_counter()
    for pair in inputs:
        _run(function, pair)
    _wait(device)
    return time.perf_counter() - start


def _run(function: Callable[..., Any], pair: InputSet) -> None:
    args, kwargs = pair
    try:
        function(*args, **kwargs)
    except Exception as error:
        check_memory(error)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    with contextlib.suppress(ImportError):
        resource: Any = importlib.import_module("resource")
        peak = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return peak if sys.platform == "darwin" else peak * 1024
    return 0
