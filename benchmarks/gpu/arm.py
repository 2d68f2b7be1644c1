"""The process of one arm: one subject, one version of its files, one mode. Its result is a JSON file.

python -m benchmarks.gpu.arm JOB.json
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_STEADY, _SETTLING = 20, 4
_LAUNCHES = ("cudaGraphLaunch", "cudaLaunchKernel")


class _Count(logging.Handler):
    """Counts what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.heard += 1


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Measures the subject of a job."""
    from benchmarks.gpu.subjects import SUBJECTS

    torch.manual_seed(0)
    device = torch.device(job["device"])
    model, inputs, refused = SUBJECTS[job["subject"]].build(job["small"])
    model = model.eval().to(device)
    inputs = [_moved(pair, device) for pair in inputs]
    wait = (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else (lambda: None)
    ear = _listen()
    with torch.no_grad():
        eager = [_outputs(model(**pair)) for pair in inputs]
        _warm_up(job, device)
        function = torch.compile(model, backend=job["backend"], mode=None if job["mode"] == "default" else job["mode"])
        cold, _ = _timed(function, inputs[:1], wait)
        breaks = max(0, _graphs() - 1)
        for _ in range(_SETTLING):
            _, compiled = _timed(function, inputs, wait)
        ear.heard = 0
        steady = [_timed(function, inputs, wait)[0] for _ in range(_STEADY)]
        heard = ear.heard / _STEADY
        uncompiled = [_timed(model, inputs, wait)[0] for _ in range(_STEADY)]
        return {
            "breaks": breaks,
            "cold_s": round(cold, 3),
            "steady_ms": _milliseconds(steady),
            "eager_ms": _milliseconds(uncompiled),
            "peak_mb": round(torch.cuda.max_memory_allocated(device) / 2**20) if device.type == "cuda" else None,
            "messages_per_pass": heard,
            "launches_per_pass": _launches(function, inputs, wait) if device.type == "cuda" else None,
            "cudagraph_skips": int(_counters("inductor").get("cudagraph_skips", 0)),
            "compiled_to_eager": max(map(_distance, eager, compiled)),
            "refused": _refusal(function, inputs, _moved(refused, device), wait) if refused else None,
            "outputs": _kept(eager, compiled, Path(job["outputs"])),
        }


def _listen() -> _Count:
    ear = _Count()
    for name in ("transformers", "benchmarks"):
        logger = logging.getLogger(name)
        logger.addHandler(ear)
        logger.propagate = False
    return ear


def _warm_up(job: dict[str, Any], device: torch.device) -> None:
    """What torch does once in a process is not part of a cold start."""
    torch.compile(lambda x: x + 1, backend=job["backend"])(torch.ones(2, device=device))
    torch._dynamo.reset()
    _counters("stats").clear()


def _timed(function: Callable[..., Any], inputs: list[dict[str, Any]], wait: Callable[[], None]) -> tuple[float, Any]:
    """Seconds of one pass, and what it gave: copies, since CUDA graphs use their memory again."""
    found = []
    wait()
    start = time.perf_counter()
    for pair in inputs:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        found.append(_outputs(function(**pair)))
    wait()
    return time.perf_counter() - start, found


def _outputs(value: Any) -> list[torch.Tensor]:
    first = value if isinstance(value, torch.Tensor) else value[0]
    return [first.clone()]


def _distance(one: list[torch.Tensor], two: list[torch.Tensor]) -> float:
    """The largest difference, as a share of the largest value."""
    return max(
        float((a.double() - b.double()).abs().max() / a.double().abs().max()) for a, b in zip(one, two, strict=True)
    )


def _launches(function: Callable[..., Any], inputs: list[dict[str, Any]], wait: Callable[[], None]) -> dict[str, int]:
    """How often CUDA graphs and single kernels are launched in a pass."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        _timed(function, inputs, wait)
    counts = {event.key: event.count for event in found.key_averages()}
    return {name: counts.get(name, 0) for name in _LAUNCHES}


def _refusal(
    function: Callable[..., Any], inputs: list[dict[str, Any]], refused: dict[str, Any], wait: Callable[[], None]
) -> dict[str, Any]:
    """The exception that bad inputs raise, and whether good inputs work afterwards."""
    try:
        function(**refused)
        wait()
        raised = None
    except Exception as error:
        raised = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    try:
        _timed(function, inputs, wait)
        after = "works"
    except Exception as error:
        after = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return {"raised": raised, "afterwards": after}


def _kept(eager: list[Any], compiled: list[Any], file: Path) -> str:
    torch.save({"eager": eager, "compiled": compiled}, file)
    return file.name


def _milliseconds(seconds: list[float]) -> dict[str, float]:
    quarters = statistics.quantiles(seconds, n=4)
    return {name: round(1000 * value, 3) for name, value in zip(("q1", "median", "q3"), quarters, strict=True)}


def _graphs() -> int:
    return int(_counters("stats").get("unique_graphs", 0))


def _counters(group: str) -> Any:
    from torch._dynamo.utils import counters

    return counters[group]


def _moved(pair: dict[str, Any], device: torch.device) -> dict[str, Any]:
    return {name: value.to(device) for name, value in pair.items()}


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if job["overlay"]:
        from graphmend_lint.verify.worker import overlay

        overlay.install(Path(job["overlay"]))
    Path(job["result"]).write_text(json.dumps(run(job)), encoding="utf-8")


if __name__ == "__main__":
    main()
